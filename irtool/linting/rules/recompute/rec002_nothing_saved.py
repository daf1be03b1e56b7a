"""REC002: a copy for recomputation whose original is kept all the same."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, NodeRule, Threshold


class NothingSaved(NodeRule):
    """A recomputed operator whose first result is read by the backward pass as well."""

    code = "REC002"
    name = "recompute-saves-nothing"
    severity = "warning"
    summary = "An operator is computed again although its first result is kept"
    explanation = """
        Recomputation trades time for memory: the result is dropped after the forward pass and made
        again when the backward pass needs it. If a backward operator reads the first result too, it
        is kept until then anyway, and the second computation buys nothing. It happens where one
        cell is recomputed and a cell that shares its activation is not.
        """
    hint = "recompute the other readers' cell as well, or leave recompute away here"
    bad = """
        %4(y) = PrimFunc_GeLU(%3)                     read by %20 in the backward pass
        %19(z) = PrimFunc_GeLU(%3) cnode_attrs: {duplicated: Bool(1)}
        """
    good = """
        %4(y) = PrimFunc_GeLU(%3)                     read in the forward pass alone
        %19(z) = PrimFunc_GeLU(%3) cnode_attrs: {duplicated: Bool(1)}
        """
    dumps = ("validate",)
    least_bytes = Threshold(16 * MIB, "bytes", "results of at least so many bytes are told")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if not node.is_recomputed or node.op in PLUMBING:
            return
        if (node.output_bytes or 0) < self.least_bytes:
            return
        for tie in facts.ties.of(node):
            original = tie.left
            if tie.kind != "recompute" or not tie.certain or not isinstance(original, Node):
                continue
            reader = next((user for user in original.users if _is_late(user, facts)), None)
            if reader is not None:
                yield self.finding(
                    f"{node.op} is computed again although the backward pass reads the first "
                    f"result ({(node.output_bytes or 0) / MIB:,.0f} MiB) as well",
                    node,
                    related=(("the first one", original), ("which this reads", reader)),
                )


def _is_late(user: Node, facts: DumpFacts) -> bool:
    """Whether a reader of an original runs in the backward pass and takes its value."""
    return facts.phases.get(user) == "backward" and user.op not in PLUMBING

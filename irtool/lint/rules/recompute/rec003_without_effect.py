"""REC003: recompute was asked for, and nothing is recomputed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import DumpRule


class RecomputeWithoutEffect(DumpRule):
    """Nodes marked for recomputation in a scope of which validate holds no copy."""

    code = "REC003"
    name = "recompute-without-effect"
    severity = "warning"
    summary = "Recompute was asked for, but validate holds no second copy"
    explanation = """
        `cell.recompute()` marks the cell's operators (`recompute: Bool(1)`); differentiation then
        makes a second copy of what the backward pass needs. Where no operator of a marked cell has
        a copy, its activations are all kept: the setting was lost on the way. It happens to cells
        without parameters in front of anything that needs a gradient, to cells whose result the
        backward pass does not need, and when graphs are built by `lazy_inline` in versions that
        ignore it.
        """
    hint = "look at the scope in validate: which operators does the backward pass read?"
    bad = "%7(y) = PrimFunc_GeLU(%6) primitive_attrs: {recompute: Bool(1)}, and no copy of it"
    good = "%90(z) = PrimFunc_GeLU(%6) cnode_attrs: {duplicated: Bool(1), …}"
    dumps = ("validate",)

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        marked: dict[str, list[Node]] = defaultdict(list)
        copied: set[str] = set()
        for node in facts.dump.nodes():
            if node.op in PLUMBING or node.scope is None:
                continue
            if node.is_recomputed:
                copied.add(node.scope)
            elif _is_marked(node):
                marked[node.scope].append(node)
        if not _has_backward(facts):
            return
        for scope, nodes in marked.items():
            if not any(other.startswith(scope) or scope.startswith(other) for other in copied):
                yield self.finding(
                    f"recompute is set in {scope}, but nothing of it is computed again",
                    nodes[0],
                    key=scope,
                )


def _has_backward(facts: DumpFacts) -> bool:
    return any(phase == "backward" for phase in facts.phases.values())


def _is_marked(node: Node) -> bool:
    """Whether somebody asked to recompute a node.

    What the compiler puts in bears the mark of the operator that it serves.
    """
    if node.attribute("recompute") is not True or node.is_backward or node.op in COMMUNICATION:
        return False
    return not (node.instance_name or "").startswith(("redistribution_op", "forward_op"))

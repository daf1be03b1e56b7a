"""REC003: recompute was asked for, and nothing is recomputed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.cluster.memory_layers import NETWORK, layer_of_scope
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.linting.facts import DumpFacts
from irtool.linting.layers import kind_of
from irtool.linting.places import user_frames
from irtool.linting.rule import DumpRule


class RecomputeWithoutEffect(DumpRule):
    """Nodes marked for recomputation in a scope of which validate holds no copy."""

    code = "REC003"
    name = "recompute-without-effect"
    severity = "warning"
    summary = "Recompute was asked for, but validate holds no second copy"
    explanation = """
        `cell.recompute()` marks the cell's operators (`recompute: Bool(1)`); differentiation then
        makes a second copy of what the backward pass needs. Where no operator of a marked layer,
        nor of one like it, has a copy, its activations are all kept: the setting was lost on the
        way. A part of a layer that has nothing to compute again is not told. It happens to cells
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
            cell = _cell(node.scope)
            if node.is_recomputed:
                copied.add(cell)
            elif _is_marked(node):
                marked[cell].append(node)
        if not marked or not _has_backward(facts):
            return
        kinds = {kind_of(cell) for cell in copied}
        lost: dict[str, list[str]] = defaultdict(list)
        for cell in marked:
            # Where an equal layer has copies, REC004 tells of those that have none.
            if kind_of(cell) not in kinds:
                lost[kind_of(cell)].append(cell)
        for kind, cells in lost.items():
            more = f" and {len(cells) - 1} more like it" if len(cells) > 1 else ""
            nodes = marked[cells[0]]
            yield self.finding(
                f"recompute is set in {cells[0]}{more}, but nothing of it is computed again",
                next((node for node in nodes if user_frames(node)), nodes[0]),
                related=[("as little here", marked[cell][0]) for cell in cells[1:20]],
                key=kind,
            )


def _cell(scope: str) -> str:
    """The layer that a scope belongs to, else the scope itself."""
    layer = layer_of_scope(scope)
    return scope.removeprefix("recompute_") if layer == NETWORK else layer


def _has_backward(facts: DumpFacts) -> bool:
    return any(phase == "backward" for phase in facts.phases.values())


def _is_marked(node: Node) -> bool:
    """Whether somebody asked to recompute a node.

    What the compiler puts in bears the mark of the operator that it serves.
    """
    if node.attribute("recompute") is not True or node.is_backward or node.op in COMMUNICATION:
        return False
    return not (node.instance_name or "").startswith(("redistribution_op", "forward_op"))

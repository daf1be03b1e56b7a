"""Phases: which nodes run forward, backward, again for recomputation, or in the optimizer."""

from __future__ import annotations

from typing import Literal, TypeAlias

from irtool.ir.dump import Dump
from irtool.ir.node import ClosureTarget, Node
from irtool.ir.operators import ACCUMULATED, OPTIMIZERS, PLUMBING
from irtool.ir.values import NodeReference, ParameterReference

Phase: TypeAlias = Literal["forward", "backward", "recompute", "optimizer", "other"]


def phase(node: Node) -> Phase:
    """What a node belongs to, by its own marks; see :func:`phases` for all of a dump."""
    return _marked(node) or ("other" if node.op in PLUMBING else "forward")


def _marked(node: Node) -> Phase | None:
    if node.is_recomputed:
        return "recompute"
    if node.is_backward:
        return "backward"
    if node.unique_id is not None:
        return "forward"
    if "optimizer-" in (node.scope or "") or OPTIMIZERS.match(node.op):
        return "optimizer" if node.op not in ("UpdateState", "Return") else "other"
    return None


def phases(dump: Dump) -> dict[Node, Phase]:
    """The phase of every node: what no mark tells follows from producers and users.

    What comes after backward nodes and feeds no backward node belongs to the optimizer, if it
    reaches an update, else to the backward pass; passing nodes between phases are ``other``.
    Gradients that were summed over micro-batches come out of parameters: what reads these comes
    after the backward pass, too, although no value leads there.
    """
    found: dict[Node, Phase] = {}
    for graph in dump.graphs:
        _phases_of(graph.nodes, found)
    return found


def _phases_of(nodes: tuple[Node, ...], found: dict[Node, Phase]) -> None:
    marks: dict[Node, Phase | None] = {
        node: _gradient_call(node) or _marked(node) for node in nodes
    }
    late: set[Node] = set()
    for node in nodes:
        if _reads_sums(node) or any(
            marks.get(item) in ("backward", "optimizer") or item in late for item in _data(node)
        ):
            late.add(node)
    wanted: dict[Node, set[Phase]] = {}
    for node in reversed(nodes):
        mark: Phase | None = marks[node]
        if mark is None:
            mark = _from_users(node, node in late, wanted.get(node, set()))
        found[node] = mark
        for item in _data(node):
            # A passing node hands on what its own users want.
            passes = node.op in PLUMBING and mark == "other"
            handed: set[Phase] = wanted.get(node, set()) if passes else {mark}
            wanted.setdefault(item, set()).update(handed)


def _from_users(node: Node, late: bool, users: set[Phase]) -> Phase:
    passes = node.op in PLUMBING
    if node.op in ("UpdateState", "Return"):
        return "other"
    if late:
        if node.op.startswith("Assign"):
            return "optimizer"
        if "backward" in users:
            return "backward"
        if "optimizer" in users:
            return "optimizer"
        return "other" if passes else "backward"
    if users and users <= {"optimizer"}:
        return "optimizer"
    if passes:
        return "forward" if users & {"forward", "backward", "recompute"} else "other"
    return "forward"


def _reads_sums(node: Node) -> bool:
    """Whether a node waits for, or loads, a gradient summed over micro-batches.

    MindSpore keeps these sums in clones of the weights whose names begin with ``accu_grads.``.
    """
    first = node.operands[0] if node.op in ("Depend", "Load") and node.operands else None
    return (
        isinstance(first, ParameterReference)
        and first.label is not None
        and first.label.startswith(ACCUMULATED)
    )


def _data(node: Node) -> list[Node]:
    """Nodes of the same graph whose values a node takes; what only orders it is left out."""
    if node.op == "UpdateState" or node.graph is None:
        return []
    operands = node.operands[:1] if node.op == "Depend" else node.operands
    found = [node.graph.node(item.number) for item in operands if isinstance(item, NodeReference)]
    return [item for item in found if item is not None]


def _gradient_call(node: Node) -> Phase | None:
    """Before differentiation: calls of ``J(@G)`` run forward, of their second result backward."""
    target = node.target
    if not isinstance(target, ClosureTarget) or not isinstance(target.callee, NodeReference):
        return None
    callee = node.graph.node(target.callee.number) if node.graph else None
    if callee is None:
        return None
    if callee.op == "J":
        return "forward"
    return "backward" if callee.op == "TupleGetItem" else None

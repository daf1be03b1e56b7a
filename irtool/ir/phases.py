"""Phases: which nodes run forward, backward, again for recomputation, or in the optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Literal, TypeAlias

from irtool.ir.graph import DumpModel, Node
from irtool.ir.operators import ACCUMULATED, OPTIMIZERS, PLUMBING
from irtool.ir.statement import ClosureTarget
from irtool.ir.values import NodeReference, ParameterReference
from irtool.ir.worked_out import once

Phase: TypeAlias = Literal["forward", "backward", "recompute", "optimizer", "other"]


def phase(node: Node) -> Phase:
    """What a node belongs to, by its own marks; see :func:`phases` for all of a dump.

    Args:
        node: of any dump.
    """
    return _marked(node, node.op) or ("other" if node.op in PLUMBING else "forward")


def _marked(node: Node, op: str) -> Phase | None:
    if node.is_recomputed:
        return "recompute"
    if node.is_backward:
        return "backward"
    if node.unique_id is not None:
        return "forward"
    if is_optimizer(op) or "optimizer-" in (node.scope or ""):
        return "optimizer" if op not in ("UpdateState", "Return") else "other"
    return None


@lru_cache(maxsize=4096)
def is_optimizer(op: str) -> bool:
    """Whether an operator updates parameters, by its name.

    Args:
        op: an operator's name, ``AdamWeightDecay``.
    """
    return OPTIMIZERS.match(op) is not None


def phases(dump: DumpModel) -> Mapping[Node, Phase]:
    """The phase of every node, worked out once for a dump.

    Args:
        dump: any.

    Returns:
        ``forward``, ``backward``, ``recompute``, ``optimizer`` or ``other`` for each of its nodes.
    """
    return once(dump, PHASES, lambda: _all_phases(dump))


PHASES = "phases"
"""What :func:`phases` is called among the results of a dump."""


def _all_phases(dump: DumpModel) -> dict[Node, Phase]:
    phase_of: dict[Node, Phase] = {}
    for graph in dump.graphs:
        _phases_of(graph.nodes, phase_of)
    return phase_of


def _phases_of(nodes: tuple[Node, ...], phase_of: dict[Node, Phase]) -> None:
    marks: dict[Node, Phase | None] = {}
    data: dict[Node, list[Node]] = {}
    late: set[Node] = set()
    for node in nodes:
        op = node.op
        marks[node] = _gradient_call(node) or _marked(node, op)
        data[node] = taken = _data(node, op)
        reads_sums = op in ("Depend", "Load") and _reads_sums(node)
        if reads_sums or any(
            item in late or marks.get(item) in _BACKWARD_OR_LATER for item in taken
        ):
            late.add(node)
    wanted: dict[Node, set[Phase]] = {}
    for node in reversed(nodes):
        mark = marks[node]
        if mark is None:
            mark = _from_users(node, node in late, wanted.get(node, _NOBODY))
        phase_of[node] = mark
        taken = data[node]
        if not taken:
            continue
        # A passing node hands on what its own users want.
        passes = mark == "other" and node.op in PLUMBING
        handed: Set[Phase] = wanted.get(node, _NOBODY) if passes else {mark}
        for item in taken:
            if marks[item] is None:  # the others do not ask their users
                wanted.setdefault(item, set()).update(handed)


_BACKWARD_OR_LATER: frozenset[Phase | None] = frozenset(("backward", "optimizer"))
_NOBODY: Set[Phase] = frozenset()


def _from_users(node: Node, late: bool, users: Set[Phase]) -> Phase:
    op = node.op
    passes = op in PLUMBING
    if op in ("UpdateState", "Return"):
        return "other"
    if late:
        if op.startswith("Assign"):
            return "optimizer"
        if "backward" in users:
            return "backward"
        if "optimizer" in users:
            return "optimizer"
        return "other" if passes else "backward"
    if users and users <= _OPTIMIZER:
        return "optimizer"
    if passes:
        return "other" if users.isdisjoint(_COMPUTED) else "forward"
    return "forward"


_OPTIMIZER: frozenset[Phase] = frozenset(("optimizer",))
_COMPUTED: frozenset[Phase] = frozenset(("forward", "backward", "recompute"))


def _reads_sums(node: Node) -> bool:
    """Whether what a Depend or Load hands on is a gradient summed over micro-batches.

    MindSpore keeps these sums in clones of the weights whose names begin with ``accu_grads.``.
    """
    first = node.operands[0] if node.operands else None
    return (
        isinstance(first, ParameterReference)
        and first.label is not None
        and first.label.startswith(ACCUMULATED)
    )


def _data(node: Node, op: str) -> list[Node]:
    """Nodes of the same graph whose values a node takes; what only orders it is left out."""
    graph = node.graph
    if graph is None or not node.operands or op == "UpdateState":
        return []
    operands = node.operands[:1] if op == "Depend" else node.operands
    numbers = [item.number for item in operands if isinstance(item, NodeReference)]
    return [item for number in numbers if (item := graph.node(number)) is not None]


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

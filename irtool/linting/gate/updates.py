"""Updates: which weights the optimizer of a dump changes, by what, and whether by a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import (
    AmbiguousReference,
    Graph,
    GraphParameter,
    Node,
    Source,
    Unresolved,
)
from irtool.ir.operators import ACCUMULATED
from irtool.ir.phases import is_optimizer
from irtool.ir.statement import nested_references
from irtool.linting.facts import DumpFacts


@dataclass(frozen=True, slots=True)
class Update:
    """What changes a weight.

    ``has_gradient`` is False where all that the update reads leads back to constants and the
    network's parameters, without passing an operator of the backward pass.
    """

    weight: str
    node: Node
    has_gradient: bool


@dataclass(frozen=True, slots=True)
class Updates:
    """Those of a dump by weight; ``is_complete`` unless the weight of one is not known."""

    by_weight: dict[str, Update]
    is_complete: bool


def updates(facts: DumpFacts) -> Updates:
    """The updates of a dump, by operators made for it (``Adam``, ``ApplyMomentum``).

    Args:
        facts: of a dump with its optimizer, validate say.
    """
    return facts.kept("gate.updates", lambda: _updates(facts))


def _updates(facts: DumpFacts) -> Updates:
    gradients = _with_gradient(facts)
    by_weight: dict[str, Update] = {}
    is_complete = True
    for node in _update_nodes(facts):
        first = node.inputs[0] if node.inputs else None
        if not isinstance(first, GraphParameter) or not _is_of_entry(first, facts):
            is_complete = False
            continue
        update = Update(first.name, node, node in gradients)
        if by_weight.setdefault(first.name, update) is not update:
            is_complete = False  # two updates of a weight: which is meant is not known
    return Updates(by_weight, is_complete)


def _update_nodes(facts: DumpFacts) -> Iterator[Node]:
    return (node for node in facts.dump.nodes() if is_optimizer(node.op))


def _is_of_entry(parameter: GraphParameter, facts: DumpFacts) -> bool:
    entry = facts.dump.entry
    return entry is not None and parameter.graph == entry.name


def _with_gradient(facts: DumpFacts) -> set[Node]:
    """Nodes that take something, however far back, that may come of the backward pass.

    What is computed in another graph may, and so may what was summed over micro-batches.
    """
    reached: set[Node] = set()
    for node in facts.dump.nodes():
        if facts.phases.get(node) == "backward" or node.callees:
            reached.add(node)
            continue
        if node.op == "UpdateState":
            continue
        inputs = node.inputs[:1] if node.op in ("Depend", "Load") else node.inputs
        if any(_may_be_gradient(source, node, reached, facts) for source in inputs):
            reached.add(node)
    return reached


def _may_be_gradient(source: Source, node: Node, reached: set[Node], facts: DumpFacts) -> bool:
    if isinstance(source, Node):
        return source in reached or source.graph is not node.graph
    if isinstance(source, GraphParameter):
        return source.name.startswith(ACCUMULATED) or not _is_of_entry(source, facts)
    return isinstance(source, _OPAQUE) or any(True for _ in nested_references(source))


_OPAQUE = (Graph, AmbiguousReference, Unresolved)

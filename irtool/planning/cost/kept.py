"""Which results of the forward pass are kept for the backward pass, before that pass exists.

An operator's gradient reads some of its operands and results (``gradients`` in the table of
operators, as measured), those that the gradients which are asked for need.  What is
read stays: the result of the operator that made it, through whatever only renames it.  Weights and
batches stay anyway.  Where the table does not say what a gradient reads, the operator's results
are taken to stay.  A recomputed operator's results do not stay for other recomputed ones, but what
it takes from outside does.

That is what :func:`irtool.cluster.account.compiled_account` counts in a compiled step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from irtool.ir.graph import Node
from irtool.ir.values import python_value
from irtool.operators.gradients import Gradient
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.care import primitive
from irtool.sharding.network.edges import EdgeFinder, is_silent

Result = tuple[Node, int]
"""One result of an operator."""
Operand = tuple[Node, int]
"""One tensor operand of an operator."""


@dataclass(frozen=True, slots=True)
class Read:
    """A result that a gradient reads.

    Attributes:
        result: who made it.
        operand: as which operand; None: as the operator's own result.
    """

    result: Result
    operand: Operand | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the backward pass reads of the forward pass.

    Attributes:
        reads: the results that are read, and as what.
        weights: tensor operands that are read and that no operator made.
        makers: who made each tensor operand.
        assumed: operators of which nobody has said what their gradients read.
    """

    reads: tuple[Read, ...] = ()
    weights: frozenset[Operand] = frozenset()
    makers: Mapping[Operand, Result] = field(default_factory=dict[Operand, Result])
    assumed: tuple[Node, ...] = ()


def keeping(
    analysis: Analysis, marked: Collection[Node], weights: Mapping[Node, Collection[int]]
) -> Keeping:
    """What gradients read.

    Args:
        analysis: the network, all its operators judged.
        marked: nodes with a gradient.
        weights: by node the tensor operands that are trained weights.
    """
    return _Keeping(analysis, marked, weights).all()


def kept_results(keeping: Keeping) -> dict[Node, tuple[int, ...]]:
    """The results that stay, by who made them; what only renames hands on another's."""
    found: dict[Node, set[int]] = {}
    for read in keeping.reads:
        made = maker_of(read.result, keeping)
        if made is not None:
            found.setdefault(made[0], set()).add(made[1])
    return {node: tuple(sorted(indexes)) for node, indexes in found.items()}


def maker_of(result: Result | None, keeping: Keeping) -> Result | None:
    """Who made a result that others may only have renamed; None for a weight or a batch."""
    for _ in range(1000):
        if result is None or not operator_of(primitive(result[0])).is_("renames"):
            return result
        result = keeping.makers.get((result[0], 0))
    return None


class _Keeping:
    def __init__(
        self, analysis: Analysis, marked: Collection[Node], weights: Mapping[Node, Collection[int]]
    ) -> None:
        self.analysis = analysis
        self.marked = marked
        self.weights = weights
        self.makers: dict[Operand, Result] = {}
        self.read_weights: set[Operand] = set()

    def all(self) -> Keeping:
        self._find_makers()
        reads: dict[Read, None] = {}
        assumed: list[Node] = []
        for node, judged in self.analysis.judged.items():
            if node not in self.marked or node in self.analysis.foreign:
                continue
            if is_recomputed(node):
                reads.update(dict.fromkeys(self._operands(node, judged)))
                continue
            gradients = _gradients(node)
            if gradients is None:
                assumed.append(node)
                results = range(len(judged.call.call.results))
                reads.update(dict.fromkeys(Read((node, index)) for index in results))
                continue
            for gradient in gradients:
                if self._has_gradient(node, judged, gradient.of):
                    reads.update(dict.fromkeys(self._read(node, judged, gradient)))
        return Keeping(tuple(reads), frozenset(self.read_weights), self.makers, tuple(assumed))

    def _find_makers(self) -> None:
        finder = EdgeFinder(self.analysis)
        judged = self.analysis.judged
        for port in self.analysis.order:
            if not isinstance(port, Node) or port not in judged:
                continue
            if is_silent(primitive(port)) and not operator_of(primitive(port)).is_("renames"):
                continue
            for edge in finder.edges(port):
                own = judged.get(edge.consumer)
                tensor = own.call.slots.tensor(edge.position, edge.item) if own else None
                if tensor is not None:
                    self.makers.setdefault((edge.consumer, tensor), (port, edge.output))

    def _read(self, node: Node, judged: Judged, gradient: Gradient) -> Iterator[Read]:
        for index in gradient.results:
            if index < len(judged.call.call.results):
                yield Read((node, index))
        for position in gradient.operands:
            tensor = judged.call.slots.tensor(position)
            if tensor is None:
                continue
            maker = self.makers.get((node, tensor))
            if maker is None:
                self.read_weights.add((node, tensor))
            else:
                yield Read(maker, (node, tensor))

    def _operands(self, node: Node, judged: Judged) -> Iterator[Read]:
        """What is recomputed from: operands that are not recomputed themselves."""
        for tensor in range(len(judged.call.call.tensors)):
            maker = self.makers.get((node, tensor))
            if maker is not None and not is_recomputed(maker[0]):
                yield Read(maker, (node, tensor))

    def _has_gradient(self, node: Node, judged: Judged, position: int) -> bool:
        tensor = judged.call.slots.tensor(position)
        if tensor is None:
            return False
        maker = self.makers.get((node, tensor))
        return tensor in self.weights.get(node, ()) or (
            maker is not None and maker[0] in self.marked
        )


def _gradients(node: Node) -> tuple[Gradient, ...] | None:
    """What a node's gradients read.

    In training, BatchNorm's read mean and variance of the batch, which are results, where the
    table (measured outside of training) has the moving ones, operands of the same places.
    """
    found = operator_of(primitive(node)).gradients
    if found is None or primitive(node) != "BatchNorm" or not _trains_norm(node):
        return found
    batch = (3, 4)
    return tuple(
        Gradient(
            one.of,
            tuple(at for at in one.operands if at not in batch),
            tuple(dict.fromkeys((*one.results, *batch))),
        )
        for one in found
    )


def _trains_norm(node: Node) -> bool:
    given = node.operands[_IS_TRAINING] if len(node.operands) > _IS_TRAINING else None
    value = python_value(given) if given is not None else None
    return (value if isinstance(value, bool) else node.attribute("is_training")) is True


_IS_TRAINING = 5
"""The operand of BatchNorm that says so, where no attribute does."""


def is_recomputed(node: Node) -> bool:
    """Whether a node's cell asks for recomputation."""
    return node.attribute("recompute") is True

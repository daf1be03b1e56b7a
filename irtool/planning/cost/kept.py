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
from dataclasses import field
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node, Source
from irtool.ir.values import python_value
from irtool.operators.gradients import Gradient
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.edges import EdgeFinder, is_silent
from irtool.sharding.network.received import is_received
from irtool.sharding.network.recomputation import runs_again
from irtool.sharding.network.sharded_nodes import primitive

FIXED = frozenset({"_VirtualDataset", "GetNext"})
"""Operators whose strategy is the context's."""

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
class Carried:
    """A tensor operand of an operator, or a result of it, that counts as kept with the operator.

    ``share``: of its bytes that counts; ``is_batch``: no operator made it, it comes out of the
    dataset.
    """

    side: Literal["input", "output"]
    index: int
    share: float
    is_batch: bool


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the backward pass reads of the forward pass.

    Attributes:
        reads: the results that are read, by gradients or to run an operator again, and as what.
        again: operators that run again, as far as no strategy says otherwise: what they make does
            not stay.
        needed: by operator that may run again, what it runs again from.
        weights: tensor operands that are read and that no operator made.
        makers: who made each tensor operand.
        casts: tensor operands that come out of a Cast without a strategy: what it makes is read.
        assumed: operators of which nobody has said what their gradients read.
    """

    reads: tuple[Read, ...] = ()
    weights: frozenset[Operand] = frozenset()
    makers: Mapping[Operand, Result] = field(default_factory=dict[Operand, Result])
    casts: Mapping[Operand, Node] = field(default_factory=dict[Operand, Node])
    again: frozenset[Node] = frozenset()
    needed: Mapping[Node, tuple[Read, ...]] = field(default_factory=dict[Node, tuple[Read, ...]])
    assumed: tuple[Node, ...] = ()

    def reads_of(self, again: Collection[Node]) -> Iterator[Read]:
        """All reads, where these operators run again."""
        yield from self.reads
        for node in again:
            yield from self.needed.get(node, ())


def keeping(
    analysis: Analysis,
    marked: Collection[Node],
    weights: Mapping[Node, Collection[int]],
    again: Collection[Node] = (),
) -> Keeping:
    """What the backward pass reads of the forward pass.

    Args:
        analysis: the network, all its operators judged.
        marked: nodes with a gradient.
        weights: by node the tensor operands that are trained weights.
        again: nodes that run again.
    """
    return _Keeping(analysis, marked, weights, again).all()


def kept_results(keeping: Keeping) -> dict[Node, tuple[int, ...]]:
    """The results that stay, by who made them; what only renames hands on another's.

    Args:
        keeping: what the backward pass reads.

    Returns:
        numbers of an operator's results, ascending; an operator that runs again is not among them.
    """
    kept: dict[Node, set[int]] = {}
    for read in keeping.reads_of(keeping.again):
        made = maker_of(read, keeping)
        if made is not None and made[0] not in keeping.again:
            kept.setdefault(made[0], set()).add(made[1])
    return {node: tuple(sorted(indexes)) for node, indexes in kept.items()}


def carriers(keeping: Keeping) -> dict[Node, tuple[Carried, ...]]:
    """By operator the tensors whose bytes count with it, each with its share of them.

    Whoever reads a result keeps it as large as its own operand is cut, redistributed or not. All
    who read a result share it equally: so it counts once where they want it in one layout, and no
    more than is kept where they want it in several.

    Args:
        keeping: what the backward pass reads.
    """
    users: dict[Result, dict[tuple[Node, Literal["input", "output"], int], None]] = {}
    for read in keeping.reads_of(keeping.again):
        made = maker_of(read, keeping)
        if made is None or made[0] in keeping.again:
            continue
        own = (made[0], "output", made[1])
        user = own if read.operand is None else (read.operand[0], "input", read.operand[1])
        users.setdefault(made, {})[user] = None
    carried: dict[Node, list[Carried]] = {}
    for made, readers in users.items():
        is_batch = primitive(made[0]) in FIXED
        for node, side, index in readers:
            carried.setdefault(node, []).append(Carried(side, index, 1 / len(readers), is_batch))
    return {node: tuple(items) for node, items in carried.items()}


def maker_of(read: Read, keeping: Keeping) -> Result | None:
    """Who made what is read, which others may only have renamed; None for a weight or a batch."""
    operand, result = read.operand, read.result
    for _ in range(1000):
        cast = keeping.casts.get(operand) if operand is not None else None
        if cast is not None and cast not in keeping.again:
            return cast, 0
        if result is None or not operator_of(primitive(result[0])).is_("renames"):
            return result
        operand = (result[0], 0)
        result = keeping.makers.get(operand)
    return None


class _Keeping:
    def __init__(
        self,
        analysis: Analysis,
        marked: Collection[Node],
        weights: Mapping[Node, Collection[int]],
        again: Collection[Node],
    ) -> None:
        self.analysis = analysis
        self.again = again
        self.marked = marked
        self.weights = weights
        self.makers: dict[Operand, Result] = {}
        self.casts: dict[Operand, Node] = {}
        self.read_weights: set[Operand] = set()

    def all(self) -> Keeping:
        self._find_makers()
        reads: dict[Read, None] = {}
        assumed: list[Node] = []
        for node, judged in self.analysis.judged.items():
            if node not in self.marked or node in self.analysis.foreign:
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
        return Keeping(
            tuple(reads),
            frozenset(self.read_weights),
            self.makers,
            self.casts,
            frozenset(self.again),
            {node: tuple(self._operands(node, self.analysis.judged[node])) for node in self._may},
            tuple(assumed),
        )

    @property
    def _may(self) -> Iterator[Node]:
        """Operators of this stage that may run again."""
        analysis = self.analysis
        own = (node for node in analysis.judged if node not in analysis.foreign)
        return (node for node in own if node in self.again or runs_again(node))

    def _find_makers(self) -> None:
        finder = EdgeFinder(self.analysis)
        judged = self.analysis.judged
        for port in self.analysis.order:
            if not isinstance(port, Node):
                continue
            if port not in judged and not is_received(self.analysis, port):
                continue
            if is_silent(primitive(port)) and not operator_of(primitive(port)).is_("renames"):
                continue
            for edge in finder.edges(port):
                own = judged.get(edge.consumer)
                tensor = own.call.slots.tensor(edge.position, edge.item) if own else None
                if tensor is not None:
                    self.makers.setdefault((edge.consumer, tensor), (port, edge.output))

        for node, own in judged.items():
            for position, source in enumerate(self.analysis.network.inputs[node]):
                tensor, cast = own.call.slots.tensor(position), self._cast(source)
                if tensor is not None and cast is not None:
                    self.casts[node, tensor] = cast

    def _cast(self, source: Source) -> Node | None:
        """The Cast that a value comes out of, behind what only hands it on."""
        network = self.analysis.network
        for _ in range(1000):
            if not isinstance(source, Node) or source in self.analysis.judged:
                return None
            if primitive(source) == "Cast":
                return source
            if primitive(source) not in ("Depend", "Load") or not network.inputs[source]:
                return None
            source = network.inputs[source][0]
        return None

    def _read(self, node: Node, judged: Judged, gradient: Gradient) -> Iterator[Read]:
        for index in gradient.results:
            if index < len(judged.call.call.results):
                yield Read((node, index))
        for position in gradient.operands:
            tensor = judged.call.slots.tensor(position)
            if tensor is None:
                continue
            cast = self.casts.get((node, tensor))
            maker = self.makers.get((node, tensor))
            if maker is not None or cast is not None:
                yield Read(maker or (cast or node, 0), (node, tensor))
            else:
                self.read_weights.add((node, tensor))

    def _operands(self, node: Node, judged: Judged) -> Iterator[Read]:
        """What an operator runs again from."""
        for tensor in range(len(judged.call.call.tensors)):
            maker = self.makers.get((node, tensor))
            if maker is not None:
                yield Read(maker, (node, tensor))

    def _has_gradient(self, node: Node, judged: Judged, position: int) -> bool:
        tensor = judged.call.slots.tensor(position)
        if tensor is None:
            return False
        if tensor in self.weights.get(node, ()):
            return True
        maker = self.makers.get((node, tensor))
        if maker is None:
            return False
        if is_received(self.analysis, maker[0]):
            return "Float" in (judged.call.call.tensors[tensor].dtype or "")
        return maker[0] in self.marked


def _gradients(node: Node) -> tuple[Gradient, ...] | None:
    """What a node's gradients read.

    In training, BatchNorm's read mean and variance of the batch, which are results, where the
    table (measured outside of training) has the moving ones, operands of the same places.
    """
    gradients = operator_of(primitive(node)).gradients
    if gradients is None or primitive(node) != "BatchNorm" or not _trains_norm(node):
        return gradients
    batch = (3, 4)
    return tuple(
        Gradient(
            one.of,
            tuple(operand for operand in one.operands if operand not in batch),
            tuple(dict.fromkeys((*one.results, *batch))),
        )
        for one in gradients
    )


def _trains_norm(node: Node) -> bool:
    given = node.operands[_IS_TRAINING] if len(node.operands) > _IS_TRAINING else None
    value = python_value(given) if given is not None else None
    return (value if isinstance(value, bool) else node.attribute("is_training")) is True


_IS_TRAINING = 5
"""The operand of BatchNorm that says so, where no attribute does."""

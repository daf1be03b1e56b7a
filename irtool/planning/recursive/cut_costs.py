"""What the search thinks a two-way cut of an operator costs; in elements moved, not in bytes.

An operator's ways to be cut are options: which axes of its two operands and of its result are
halved, and what that costs the operator itself. On top comes what neighbours that were cut in this
round would have to hand over in another form.

Source: the costs that MindSpore's log of the search prints for each axis of each operator ("If the
I-axis is cut, the op-cost is …").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, prod

from irtool.ir.dataclass import dataclass
from irtool.planning.recursive.elimination import Mapping4, Vertex, combined
from irtool.planning.recursive.kinds import Kind, NotSearchable
from irtool.planning.recursive.tensors import (
    WHOLE,
    C,
    Four,
    H,
    N,
    W,
    elements,
    halved,
    local,
    single,
)

REDISTRIBUTION = 16.0
"""What one element that a neighbour has in another form counts."""
ROW_COEFFICIENT = single(0.1)
"""``rp_matmul_mem_coef``, MindSpore's default: the less, the rather rows of a product are cut.

That it is a single-precision 0.1 decides ties: it is a little more than a tenth.
"""
REPLICATED = 25.0
"""The square of the least cost of a cut, over this: what it costs not to cut a product."""
_BATCHED = 0.15
_CORES = 32


@dataclass(frozen=True, slots=True)
class Option:
    """A way to cut an operator in two: axes of its operands and its result that are halved."""

    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    result: tuple[int, ...] = ()
    cost: float = 0.0

    def cut(self, position: int) -> Four:
        """How this cuts the operand at a position; its result, if there is no such operand."""
        return halved(WHOLE, *(self.first, self.second, self.result)[min(position, 2)])


@dataclass(frozen=True, slots=True)
class Round:
    """How a vertex was cut in one round: its first operand and its result.

    Those whose strategy is given were never cut; ``steps`` are the halvings their strategy is made
    of, one a round (of operand and result).
    """

    first: Four = WHOLE
    result: Four = WHOLE
    first_steps: tuple[Four, ...] = ()
    result_steps: tuple[Four, ...] = ()

    def first_in(self, number: int) -> Four:
        """The cut of the first operand as seen in round ``number``."""
        return self.first_steps[number] if number < len(self.first_steps) else self.first

    def result_in(self, number: int) -> Four:
        """The cut of the result as seen in round ``number``."""
        return self.result_steps[number] if number < len(self.result_steps) else self.result


@dataclass(frozen=True, slots=True)
class Terms:
    """What products are cut under.

    ``row_coefficient``: what a cut of rows counts beside the others; ``rows``: whether rows may be
    cut at all (in a pipeline, as far as a micro-batch goes).
    """

    row_coefficient: float = ROW_COEFFICIENT
    rows: bool = True


def best_option(
    vertices: Sequence[Vertex], place: int, known: Mapping[int, Round], number: int, terms: Terms
) -> Option | None:
    """The cheapest cut of a vertex; None: there is none, or it is best not cut.

    Args:
        vertices: the graph.
        place: which vertex.
        known: what was cut in this round so far.
        number: the round.
        terms: of products.

    Raises:
        NotSearchable: it is not known how MindSpore cuts operators of this kind.
    """
    vertex = vertices[place]
    offered = _OPTIONS.get(vertex.kind)
    if offered is None:
        raise NotSearchable(f"no cut is known of {vertex.kind.value}")
    # Only products look at the round; all others see the first halving of what is given.
    seen = number if vertex.kind is Kind.MATMUL else 0
    best: Option | None = None
    least = inf
    for option in offered(vertex, terms):
        cost = option.cost
        if vertex.kind in _PRICED:
            cost += _redistribution(vertices, place, option, known, seen)
            # Sizes that are not known count -1, so that costs may be negative.
            cost = abs(cost)
        if cost < least:
            best, least = option, cost
    return best if best is not None and (best.first or best.second) else None


def weight_of(vertices: Sequence[Vertex], place: int, row_coefficient: float) -> float:
    """How early a vertex is cut where the order is by weight: the heaviest first.

    Products and convolutions should weigh what their cuts cost. But MindSpore reckons every one of
    them from the sizes of the graph's first vertex, so that all products weigh the same.

    Args:
        vertices: the graph.
        place: which vertex.
        row_coefficient: what a cut of a product's rows counts.

    Raises:
        NotSearchable: operators of this kind have no weight.
    """
    vertex, first = vertices[place], vertices[0]
    if vertex.kind is Kind.MATMUL:
        return max(_product_costs(first, row_coefficient))
    if vertex.kind is Kind.BATCH_MATMUL:
        return _batched_weight(first)
    if vertex.kind is Kind.CONVOLUTION:
        return _convolution_weight(first)
    weight = _WEIGHTS.get(vertex.kind)
    if weight is None:
        raise NotSearchable(
            f"above 32 devices operators are cut by weight, and {vertex.kind.value}, whose "
            "strategy is given, has none"
        )
    return weight


# -- the options of each class -------------------------------------------------------------------


def _product(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """A matrix product: rows, columns, the summed dimension, or not at all."""
    i, j, k = _product_sizes(vertex)
    by_rows, by_columns, by_sum, uncut = _product_costs(vertex, terms.row_coefficient)
    if terms.rows and _is_even(i):
        yield Option((H,), (), (H,), by_rows)
    # Of columns and the summed dimension only one is ever cut.
    if _is_even(j) and vertex.inputs_cut[0][W] == 1:
        yield Option((), (W,), (W,), by_columns)
    if _is_even(k) and vertex.inputs_cut[1][W] == 1:
        yield Option((W,), (H,), (), by_sum)
    yield Option(cost=uncut)


def _product_sizes(vertex: Vertex) -> tuple[int, int, int]:
    first = local(vertex.arguments[0], vertex.inputs_cut[0])
    second = local(vertex.arguments[1], vertex.inputs_cut[1])
    return first[H], second[W], first[W]


def _product_costs(vertex: Vertex, row_coefficient: float) -> tuple[float, float, float, float]:
    """Of rows, columns, the sum, and of not being cut."""
    i, j, k = (float(size) for size in _product_sizes(vertex))
    by_rows, by_columns, by_sum = j * k / 2 * row_coefficient, i * k / 2, i * j / 2
    least = min(by_rows, by_columns, by_sum)
    return by_rows, by_columns, by_sum, least * least / REPLICATED


def _convolution(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """A convolution: its batch only; MindSpore has channels switched off."""
    if _is_even(local(vertex.arguments[0], vertex.inputs_cut[0])[N]):
        kernel = prod(local(vertex.arguments[1], vertex.inputs_cut[1]))
        yield Option((N,), (), (N,), single(kernel / 2))


def _pooling(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """Pooling: batch or channels."""
    sizes = local(vertex.result, vertex.result_cut)
    for axis in (N, C):
        if _is_even(sizes[axis]):
            yield Option((axis,), (axis,), (axis,))


def _first_even(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """The first axis of the first operand that can be halved."""
    sizes = local(vertex.arguments[0], vertex.inputs_cut[0])
    for axis in (N, C, H, W):
        if _is_even(sizes[axis]):
            yield Option((axis,), (), (axis,))
            return


def _cross_entropy(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """Both operands alike; the result has the rows in its only dimension."""
    for option in _first_even(vertex, terms):
        result = (W,) if option.first == (H,) else ()
        yield Option(option.first, option.first, result)


def _none(vertex: Vertex, terms: Terms) -> Iterator[Option]:
    """Operators that are never cut."""
    yield Option()


def _is_even(size: int) -> bool:
    return size >= 2 and size % 2 == 0


_OPTIONS: dict[Kind, Callable[[Vertex, Terms], Iterator[Option]]] = {
    Kind.MATMUL: _product,
    Kind.CONVOLUTION: _convolution,
    Kind.POOLING: _pooling,
    Kind.CROSS_ENTROPY: _cross_entropy,
    Kind.BATCH_NORM: _first_even,
    Kind.PARAMETRIC: _first_even,
    Kind.SPARSE_CROSS_ENTROPY: _first_even,
    Kind.SEGMENT: _first_even,
    Kind.VIRTUAL: _first_even,
    Kind.UNKNOWN: _none,
}
"""What each class that is cut can be cut into, in the order in which ties are decided."""

_PRICED = frozenset({Kind.MATMUL, Kind.CONVOLUTION, Kind.POOLING})
"""Classes for which neighbours count; the others take what comes first."""


# -- neighbours ----------------------------------------------------------------------------------


def _redistribution(
    vertices: Sequence[Vertex], place: int, option: Option, known: Mapping[int, Round], number: int
) -> float:
    """What neighbours that were cut otherwise in this round would have to hand over.

    All that stands before counts by the size of the first operand, whichever it feeds.
    """
    vertex = vertices[place]
    differing = 0
    for position, source in enumerate(vertex.sources):
        differing += _before(vertices, place, source, position, option, known, number)
    for source, position in zip(vertex.extra, vertex.extra_operands, strict=False):
        differing += _before(vertices, place, source, position, option, known, number)
    cost = differing * REDISTRIBUTION * elements(vertex.arguments[0], vertex.inputs_cut[0])
    behind = 0
    for edge in vertex.targets:
        other = known.get(edge.target)
        if other is None or other.first_in(number) == option.cut(2):
            continue
        mapping = combined(vertex.reshaped, edge.reshaped)
        arguments = (*vertices[edge.target].arguments, WHOLE)
        behind += any(_is_same(vertex.result, mapping, sizes) for sizes in arguments)
    return cost + behind * REDISTRIBUTION * elements(vertex.result, vertex.result_cut)


def _before(
    vertices: Sequence[Vertex],
    place: int,
    source: int,
    position: int,
    option: Option,
    known: Mapping[int, Round],
    number: int,
) -> int:
    """How many edges from a source to an operand hold something else than is wanted."""
    other = known.get(source)
    if other is None or other.result_in(number) == option.cut(position):
        return 0
    vertex, producer = vertices[place], vertices[source]
    wanted = vertex.arguments[position] if position < len(vertex.arguments) else WHOLE
    return sum(
        _is_same(producer.result, combined(producer.reshaped, edge.reshaped), wanted)
        for edge in producer.targets
        if edge.target == place
    )


def _is_same(produced: Four, mapping: Mapping4, wanted: Four) -> bool:
    """Whether a result is an operand, up to a Reshape in between; if not, nothing is priced.

    Transposes in between are not seen: MindSpore looks at their permutation before it reads it.
    """
    if not mapping:
        return produced == wanted
    if any(len(part) > 1 for part in mapping):
        sizes = tuple(prod(produced[dimension] for dimension in part) for part in mapping)
        return sizes == wanted
    left = list(produced)
    for part, size in zip(mapping, wanted, strict=True):
        if not part or not size:
            return False
        left[part[0]] //= size
    return all(size == 1 for size in left)


# -- weights -------------------------------------------------------------------------------------


def _convolution_weight(vertex: Vertex) -> float:
    first = float(prod(local(vertex.arguments[0], vertex.inputs_cut[0])))
    kernel = float(prod(local(vertex.arguments[1], vertex.inputs_cut[1])))
    result = float(prod(local(vertex.result, vertex.result_cut)))
    costs = (kernel, first + kernel, first, first + result, result)
    return min(single(cost / 2) for cost in costs)


def _batched_weight(vertex: Vertex) -> float:
    """Of a batched product whose strategy is given: the dearest of its six choices."""
    halves = [
        elements(sizes, cuts) / 2
        for sizes, cuts in (
            (vertex.arguments[0], vertex.inputs_cut[0]),
            (vertex.arguments[1], vertex.inputs_cut[1]),
            (vertex.result, vertex.result_cut),
        )
    ]
    least = min(halves) * _BATCHED
    batch = 1.0
    for axis in (N, C):
        size = max(argument[axis] for argument in vertex.arguments[:2])
        batch *= size / min(cuts[axis] for cuts in vertex.inputs_cut[:2])
    share = float(_CORES) if int(batch) == 1 else max(_CORES / max(int(batch), 1) - 1, 0.0)
    return max(share * least, *halves, least * least / REPLICATED)


_WEIGHTS: dict[Kind, float] = {
    **dict.fromkeys(
        (Kind.BATCH_NORM, Kind.ONE_HOT, Kind.PARAMETRIC, Kind.SEGMENT, Kind.SOFTMAX,
         Kind.BATCH_PARALLEL, Kind.SPARSE_CROSS_ENTROPY, Kind.CROSS_ENTROPY),
        inf,
    ),
    **dict.fromkeys(
        (Kind.UNKNOWN, Kind.VIRTUAL, Kind.STAND_ALONE, Kind.POOLING, Kind.ELEMENTWISE,
         Kind.ACTIVATION, Kind.SQUEEZE, Kind.CAST, Kind.RESHAPE, Kind.BIAS_ADD),
        0.0,
    ),
}  # fmt: skip

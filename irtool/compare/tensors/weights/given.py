"""Which tensors of a run come from outside, and which of those are weights.

A dump of calls names no weights.  Some are known by the place in which a function reads them
(``linear``, ``layer_norm``).  Others are known by their shape: everything that a run computes of
its data has the batch for its first axis, so what is spread over that axis of another operand, and
was made by no call, is a weight, a table or a constant; so is the matrix of a product that has no
batch while the other operand has.  Where a call made such an operand of nothing larger
(``1 + weight``, ``exp(a)``), what that call was given is the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.compare.tensors.dtypes import FLOATS
from irtool.compare.tensors.masks import is_mask
from irtool.compare.tensors.measuring.values import MASKED
from irtool.compare.tensors.model import Columns, Op, Shape, TensorRun
from irtool.compare.tensors.semantics import family, is_random
from irtool.ir.dataclass import dataclass

Figures: TypeAlias = tuple[int, float, float, float]
"""Size, norm and extremes, by which a tensor is known again."""

_SPREADS = frozenset(("sum", "product", "elementwise"))
"""Families whose operands are spread over each other's axes."""
_HAND_ON = frozenset(("view", "cast", "collective"))
"""Families that give what they read."""
_MOST_CALLS = 4
"""Calls in a row that may have made an operand of a weight (``-exp(a)``, ``(1 + w) * s``)."""


@dataclass(slots=True)
class Given:
    """What a run reads that none of its calls made.

    Attributes:
        readers: by place of such a tensor the call that reads it, in the order of execution.
        weights: the same of those that are weights.
        sources: the same of what weights are made of: weights as well, or a row of numbers.
        maybes: the same of matrices in products of two: weights, or parts of a result that are
            taken out of it unseen.
        computed: places where functions read weights, of what calls of the dump have made.
    """

    readers: dict[int, Op] = field(default_factory=dict[int, Op])
    weights: dict[int, Op] = field(default_factory=dict[int, Op])
    sources: dict[int, Op] = field(default_factory=dict[int, Op])
    maybes: dict[int, Op] = field(default_factory=dict[int, Op])
    computed: frozenset[int] = frozenset()


def figures_of(columns: Columns, place: int) -> Figures:
    """By what a tensor is known again.

    Args:
        columns: of the dump.
        place: of the tensor.
    """
    return (
        math.prod(columns.shapes[place]),
        columns.norm[place],
        columns.most[place],
        columns.least[place],
    )


def given_to(run: TensorRun) -> Given:
    """What the forward calls of a run read from outside.

    Args:
        run: one step of one rank.
    """
    given = Given()
    columns, readers = run.columns, given.readers
    makers, computed = _Makers(columns), computed_weights(run)
    given.computed = computed
    is_float = [dtype in FLOATS for dtype in columns.dtypes]
    for op in run.ops:
        if op.phase != "forward":
            continue
        free: list[int] = []
        for place in op.inputs:
            if is_float[place] and makers.of(place) is None:
                readers[place] = op
                free.append(place)
        for place in op.parameters - computed:
            if place in readers:
                given.weights[place] = op
        if op.is_module:
            continue
        kind = family(op.type)
        spread = list(_spread(op, columns)) if kind in _SPREADS else []
        for place in spread:
            if place in free:
                given.weights.setdefault(place, op)
        if kind == "matmul" and free:
            for place, is_sure in _factors(op, columns, free):
                (given.weights if is_sure else given.maybes).setdefault(place, op)
        for place in (*spread, *(p for p in op.inputs if p in computed)):
            for source, reader in _sources(place, makers, given, _MOST_CALLS):
                given.sources.setdefault(source, reader)
        for place in op.outputs:
            makers.add(place, op)
    return given


def computed_weights(run: TensorRun) -> frozenset[int]:
    """What functions read where they read weights, and calls of the dump have made.

    So are ``weight + scale * b @ a``, ``g * v / |v|``, and what an optimizer gave before.  What is
    handed on unchanged, or drawn at random, is not computed.

    Args:
        run: one step of one rank.
    """
    columns = run.columns
    made: set[Figures] = set()
    computed: set[int] = set()
    for op in run.ops:
        if op.phase == "backward":
            continue
        if op.phase == "forward":
            computed.update(p for p in op.parameters if made and figures_of(columns, p) in made)
        if op.is_module or family(op.type) in _HAND_ON or is_random(op.type):
            continue
        read = {figures_of(columns, place) for place in op.inputs}
        for place in op.outputs:
            figures = figures_of(columns, place)
            if (
                figures not in read
                and figures[2] != figures[3]
                and all(map(math.isfinite, figures))
            ):
                made.add(figures)
    return frozenset(computed)


@dataclass(slots=True)
class _Makers:
    """The calls that made the tensors of a run, by figures; behind a cast, too, that no dump shows.

    Attributes:
        columns: of the run.
        exact: by figures.
        types: of results, by size.
        unrounded: results by size that nobody has asked for behind a cast so far.
        rounded: by size and extremes, as the coarsest type has them.
    """

    columns: Columns
    exact: dict[Figures, Op] = field(default_factory=dict[Figures, Op])
    types: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    unrounded: dict[int, list[tuple[int, Op]]] = field(
        default_factory=dict[int, list[tuple[int, Op]]]
    )
    rounded: dict[tuple[int, float, float], tuple[str, Op]] = field(
        default_factory=dict[tuple[int, float, float], tuple[str, Op]]
    )

    def add(self, place: int, maker: Op) -> None:
        """Note a result."""
        figures = figures_of(self.columns, place)
        self.exact.setdefault(figures, maker)
        if figures[2] != figures[3]:
            size = figures[0]
            if size not in self.types:
                self.types[size], self.unrounded[size] = set(), []
            self.types[size].add(self.columns.dtypes[place])
            self.unrounded[size].append((place, maker))

    def of(self, place: int) -> Op | None:
        """Who made a tensor; None for nobody."""
        figures = figures_of(self.columns, place)
        maker = self.exact.get(figures)
        if maker is not None or figures[2] == figures[3]:
            return maker
        size, _, most, least = figures
        dtype = self.columns.dtypes[place]
        if self.types.get(size, _NO_TYPES) <= {dtype}:
            return None  # no cast lies between two of one type
        self._round(size)
        other = self.rounded.get((size, halved(most), halved(least)))
        return other[1] if other is not None and other[0] != dtype else None

    def _round(self, size: int) -> None:
        """Note the results of a size as the coarsest type has them."""
        columns = self.columns
        for place, maker in self.unrounded[size]:
            key = size, halved(columns.most[place]), halved(columns.least[place])
            self.rounded.setdefault(key, (columns.dtypes[place], maker))
        self.unrounded[size].clear()


_NO_TYPES: frozenset[str] = frozenset()


def halved(number: float) -> float:
    """A number as BFloat16 has it, rounded to nearest, ties to even; what is not finite as it is.

    Args:
        number: of a longer type.
    """
    if not math.isfinite(number):
        return number
    mantissa, exponent = math.frexp(number)
    try:
        return math.ldexp(round(mantissa * 256), exponent - 8)
    except OverflowError:  # the largest numbers of double precision, as masks hold them
        return math.copysign(math.inf, number)


def _factors(op: Op, columns: Columns, free: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Factors of a product that no call made, and whether they are sure to be weights.

    Of two matrices either may be the weight, and what nobody made may be a part of a result.
    """
    if len(op.inputs) < 2:
        return
    axes = {place: len(columns.shapes[place]) for place in op.inputs}
    has_batch = any(count > 2 for count in axes.values())
    for place in free:
        if axes[place] == 1 and len(op.inputs) > 2:  # what ``addmm`` adds
            yield place, True
        elif axes[place] == 2 and not _may_mask(columns, place):
            yield place, has_batch


def _spread(op: Op, columns: Columns) -> Iterator[int]:
    """Operands that are spread over the first axis of a result, which is that of the batch."""
    if len(op.inputs) < 2 or not op.outputs:
        return
    result = columns.shapes[op.outputs[0]]
    for place in op.inputs:
        shape = columns.shapes[place]
        if _is_spread(shape, result) and not _may_mask(columns, place):
            yield place


def _is_spread(shape: Shape, result: Shape) -> bool:
    """Whether a tensor has all its numbers along later axes than the first one of a result."""
    while result and result[0] == 1:
        result = result[1:]
    while shape and shape[0] == 1:
        shape = shape[1:]
    return 0 < len(shape) < len(result) and math.prod(shape) > 1


def _may_mask(columns: Columns, place: int) -> bool:
    """Whether a tensor may be a mask: no two runs need write those that are added alike."""
    is_added = columns.broken[place] > 0 or columns.least[place] <= MASKED
    return is_added or is_mask(columns, place)


def _sources(place: int, makers: _Makers, given: Given, calls: int) -> Iterator[tuple[int, Op]]:
    """What the calls were given that made an operand of nothing larger than it."""
    columns = makers.columns
    maker = makers.of(place)
    if maker is None or not calls or not is_float_result(maker, columns):
        return
    size = math.prod(columns.shapes[place])
    sizes = [math.prod(columns.shapes[source]) for source in maker.inputs]
    if max(sizes, default=0) > size:
        return
    for source in maker.inputs:
        if source in given.readers and not _may_mask(columns, source):
            if math.prod(columns.shapes[source]) > 1:
                yield source, maker
        elif source not in given.readers:
            yield from _sources(source, makers, given, calls - 1)


def is_float_result(op: Op, columns: Columns) -> bool:
    """Whether a call gives one tensor of real numbers.

    Args:
        op: the call.
        columns: of its dump.
    """
    return len(op.outputs) == 1 and columns.dtypes[op.outputs[0]] in FLOATS

"""Matrices that one side keeps the other way round, as ``linear`` does and ``matmul`` does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, permutations, product
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.measuring.measure import Measure, measure_arrays
from irtool.compare.tensors.model import Places, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.semantics import family

if TYPE_CHECKING:
    from numpy.typing import NDArray

_APART = 0.01
"""Relative error from which a matrix is tried the other way round, and how much that must help."""
_NEARER = 0.25
"""The same where shapes say that axes have another order: tensors of nothing in common are 1.4
apart in any."""

_MOST_TRIED = 12
_MOST_AXES = 5


def measure_transposed(
    left: TensorRun,
    right: TensorRun,
    called: Iterable[tuple[OpPair, Slots]],
    measures: dict[Places, Measure],
) -> None:
    """Compare matrices of products with two names (linear, matmul) the other way round, too.

    So are all tensors whose axes come in another order on the other side: shapes say it.

    Args:
        left: one dump.
        right: the other.
        called: pairs of operators with their tensors.
        measures: of all pairs of tensors; the smaller error stays.
    """
    ours, theirs = left.columns.shapes, right.columns.shapes
    for pair, slots in called:
        for places in (*slots.inputs, *slots.outputs):
            if ours[places[0]] == theirs[places[1]]:
                continue
            measure = measures[places]
            if measure.exact and measure.error > _APART:
                other = _alike(left, right, places)
                if other is not None and other.error < _NEARER * measure.error:
                    measures[places] = other
        if pair.left.type.lower() == pair.right.type.lower() or family(pair.left.type) != "matmul":
            continue
        for places in (*slots.inputs, *slots.outputs):
            measure = measures[places]
            if measure.exact and measure.error > _APART:
                turned = _turned(left, right, places)
                if turned is not None and turned.error < _APART * measure.error:
                    measures[places] = turned


def measure_elsewhere(
    left: TensorRun,
    right: TensorRun,
    others: Mapping[Places, tuple[Sequence[int], Sequence[int]]],
    measures: dict[Places, Measure],
) -> None:
    """Of values that several tensors show, in several layouts, measure two that are laid out alike.

    Args:
        left: one dump.
        right: the other.
        others: by pair of tensors, all that show these values on either side.
        measures: of all pairs of tensors.
    """
    for places, (ours, theirs) in others.items():
        measure = measures.get(places)
        if measure is None or not measure.exact or measure.error <= _APART:
            continue
        for pair in islice(product(ours, theirs), _MOST_TRIED):
            other = _alike(left, right, pair)
            if other is not None and other.error < _APART * measure.error:
                measures[places] = other
                break


def _alike(left: TensorRun, right: TensorRun, places: Places) -> Measure | None:
    """How far two tensors are apart in the order of axes in which they agree best."""
    import numpy as np

    a, b = left.columns, right.columns
    shapes = a.shapes[places[0]], b.shapes[places[1]]
    if sorted(shapes[0]) != sorted(shapes[1]) or len(shapes[0]) > _MOST_AXES:
        return None
    is_matrix = len(shapes[0]) == 2
    alike: Measure | None = None
    arrays = _arrays(left, right, places)
    if arrays is None:
        return None
    for axes in permutations(range(len(shapes[1]))):
        is_turned = axes != tuple(range(len(axes)))
        if is_turned and shapes[0] == shapes[1] and not is_matrix:
            continue  # it could be told from nothing else
        if tuple(shapes[1][axis] for axis in axes) == shapes[0]:
            turned = np.ascontiguousarray(np.transpose(arrays[1], axes))
            measure = measure_arrays(arrays[0], turned)
            if alike is None or measure.error < alike.error:
                alike = measure
    return alike


def _turned(left: TensorRun, right: TensorRun, places: Places) -> Measure | None:
    import numpy as np

    a, b = left.columns, right.columns
    shape = a.shapes[places[0]]
    if len(shape) < 2 or b.shapes[places[1]] != (*shape[:-2], shape[-1], shape[-2]):
        return None
    arrays = _arrays(left, right, places)
    if arrays is None:
        return None
    return measure_arrays(arrays[0], np.ascontiguousarray(np.swapaxes(arrays[1], -1, -2)))


def _arrays(
    left: TensorRun, right: TensorRun, places: Places
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The values of two tensors, where both can be read."""
    a, b = left.columns, right.columns
    if not a.files[places[0]] or not b.files[places[1]]:
        return None
    try:
        return (
            read_array(a.files[places[0]], a.dtypes[places[0]]),
            read_array(b.files[places[1]], b.dtypes[places[1]]),
        )
    except BadPayload:
        return None

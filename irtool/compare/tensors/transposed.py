"""Matrices that one side keeps the other way round, as ``linear`` does and ``matmul`` does not."""

from __future__ import annotations

from collections.abc import Iterable

from irtool.compare.tensors.measure import Measure, measure_arrays
from irtool.compare.tensors.model import TensorRun
from irtool.compare.tensors.pairing import OpPair
from irtool.compare.tensors.payload import BadPayload, read_array
from irtool.compare.tensors.semantics import family
from irtool.compare.tensors.slots import Slots
from irtool.compare.tensors.verdict import Places

_APART = 0.01
"""Relative error from which a matrix is tried the other way round, and how much that must help."""


def measure_transposed(
    left: TensorRun,
    right: TensorRun,
    called: Iterable[tuple[OpPair, Slots]],
    measures: dict[Places, Measure],
) -> None:
    """Of products with two names (linear, matmul) compare matrices the other way round too."""
    for pair, slots in called:
        if pair.left.type.lower() == pair.right.type.lower() or family(pair.left.type) != "matmul":
            continue
        for places in (*slots.inputs, *slots.outputs):
            measure = measures[places]
            if measure.exact and measure.error > _APART:
                turned = _turned(left, right, places)
                if turned is not None and turned.error < _APART * measure.error:
                    measures[places] = turned


def _turned(left: TensorRun, right: TensorRun, places: Places) -> Measure | None:
    import numpy as np

    a, b = left.columns, right.columns
    shape = a.shapes[places[0]]
    if len(shape) < 2 or b.shapes[places[1]] != (*shape[:-2], shape[-1], shape[-2]):
        return None
    if not a.files[places[0]] or not b.files[places[1]]:
        return None
    try:
        ours = read_array(a.files[places[0]], a.dtypes[places[0]])
        theirs = read_array(b.files[places[1]], b.dtypes[places[1]])
    except BadPayload:
        return None
    return measure_arrays(ours, np.ascontiguousarray(np.swapaxes(theirs, -1, -2)))

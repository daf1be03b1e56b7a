"""How precise a tensor's values are, whatever type they are kept in.

A Float32 tensor that comes out of Float16 has the precision of Float16.  Asked only where an
operator is about to be accused: reading values and walking the graph takes time.
"""

from __future__ import annotations

import math

from irtool.compare.tensors.dtypes import coarsest, roundoff
from irtool.compare.tensors.formats.payload import BadPayload, Stored, read_stored
from irtool.compare.tensors.measuring.values import number_blocks
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import Node
from irtool.ir.limits import bounded_int

COARSEST = 2.0**-8
"""Unit roundoff of the coarsest type that values of a Float32 tensor may turn out to fit."""
_STEPS = 30
_BFLOAT16_BITS = 8


def true_unit(run: TensorRun, op: Op, place: int) -> float:
    """Unit roundoff of the coarsest type that an input has been through, as far as it shows.

    It shows in the type itself, in casts of the graph or of the calls before, and in values all of
    which are short for their type.

    Args:
        run: the dump.
        op: the operator that reads it.
        place: of the input in the columns.
    """
    units = [roundoff(run.columns.dtypes[place]), _by_graph(op, run, place), _by_casts(run, place)]
    if max(units) < 2.0**-20:
        units += (_by_values(run, place), _by_extremes(run, place))
    return max(units)


def _by_graph(op: Op, run: TensorRun, place: int) -> float:
    """Through the Casts that lead to it."""
    if op.node is None:
        return 0.0
    direction, _, text = run.columns.labels[place].partition(".")
    inputs = op.node.inputs
    if direction != "input" or not text.isdecimal() or bounded_int(text) >= len(inputs):
        return 0.0
    source: object = inputs[bounded_int(text)]
    unit = 0.0
    for _ in range(_STEPS):
        if not isinstance(source, Node) or family(source.op) not in ("cast", "view"):
            break
        if source.output_type is not None:
            unit = max(unit, roundoff(source.output_type.short().partition("[")[0]))
        source = source.inputs[0] if source.inputs else None
    return unit


def _by_casts(run: TensorRun, place: int) -> float:
    """Through Casts of the dump that put out the same values; without one, 0."""
    columns = run.columns
    norm, size = columns.norm[place], math.prod(columns.shapes[place])
    if math.isnan(norm):
        return 0.0
    if run.casts is None:
        run.casts = [op for op in run.ops if family(op.type) == "cast"]
    units = (
        coarsest([columns.dtypes[result] for result in op.tensors])
        for op in run.casts
        if any(
            columns.norm[result] == norm and math.prod(columns.shapes[result]) == size
            for result in op.outputs
        )
    )
    return max(units, default=0.0)


def _by_extremes(run: TensorRun, place: int) -> float:
    """Of stated figures: whether the largest and the smallest value are some of a shorter type.

    Values that a type of 24 bits has at random are not, but once in eight thousand times (twice,
    once in a hundred million); zero, whole and other short numbers say nothing.
    """
    columns = run.columns
    most, least = columns.most[place], columns.least[place]
    if columns.dtypes[place] != "Float32" or not (math.isfinite(most) and math.isfinite(least)):
        return 0.0
    telling = [extreme for extreme in (most, least) if math.frexp(extreme)[0] * 16 % 1]
    if most == least or not telling:
        return 0.0
    for name, bits in (
        ("BFloat16", _BFLOAT16_BITS),
        ("Float16", 11),
    ):  # what has 8 bits has 11 as well
        if all(math.frexp(extreme)[0] * 2**bits % 1 == 0 for extreme in telling):
            return roundoff(name)
    return 0.0


def fits_half(number: float) -> bool:
    """Whether BFloat16 has a number, as it has zero and one.

    Args:
        number: an extreme of a tensor.
    """
    return math.isfinite(number) and math.frexp(number)[0] * 2**_BFLOAT16_BITS % 1 == 0


def _by_values(run: TensorRun, place: int) -> float:
    """Whether every value is one that a shorter type has."""
    columns = run.columns
    if not columns.files[place]:
        return 0.0
    try:
        return _narrowest(read_stored(columns.files[place], columns.dtypes[place]))
    except BadPayload:
        return 0.0


def _narrowest(stored: Stored) -> float:
    """Roundoff of the coarsest type that has every value; 0 if it is their own."""
    import numpy as np

    if stored.dtype != "Float32" or stored.size < 16:
        return 0.0
    units = [roundoff("Float16"), roundoff("BFloat16")]
    for number, block in enumerate(number_blocks(stored)):
        if not number and len(np.unique(block[:64])) < 8:
            return 0.0  # masks and constants are exact in every type
        with np.errstate(over="ignore"):
            halved = block.astype(np.float16).astype(np.float32)
        if units[0] and not bool((halved == block).all()):
            units[0] = 0.0
        bits = np.frombuffer(block.tobytes(), np.uint32)
        if units[1] and bool((bits & np.uint32(0xFFFF)).any()):
            units[1] = 0.0
        if not any(units):
            return 0.0
    return max(units)

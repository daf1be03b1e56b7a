"""Products in half precision against the best that their type can hold of the same inputs.

Of *n* elements the error of a result, over that of rounding the exact product once, is 1 with a
spread of about 1/sqrt(2 n): a kernel that adds up in Float32 gives 1, whatever its order of terms,
and one that rounds a few partial sums is told from it though its error stays below a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.judging.reexecute import recomputed
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

LEAST = 1.15
"""How many times rounding once a result is off that is looked at, however many its elements."""
_SIGMAS = 4.0
"""Spreads of that ratio that chance may make."""
_NEAR = 0.3
"""Share of the squared error of rounding once, up to which a result is one that was rounded so."""
_SINGLE = 2.0**-24
_LEAST_EXPONENT = {"Float16": -13, "BFloat16": -125}
"""Of the smallest normal number, with a significand below 1: smaller ones have its step."""


def times_rounded_once(run: TensorRun, op: Op, place: int) -> float:
    """How many times further a product is from what its inputs give than rounding it once is.

    As healthy count the product rounded to nearest or cut off, and rounded before its bias is added
    and after.

    Args:
        run: the dump.
        op: a call of it; of products of matrices whose tensors are all of one half type something
            is said.
        place: its result.

    Returns:
        0 of what is healthy, and of what nothing is known of.
    """
    columns = run.columns
    dtypes = {columns.dtypes[tensor] for tensor in (*op.inputs, place)}
    dtype = columns.dtypes[place]
    is_product = family(op.type) == "matmul" and op.phase == "forward"
    if not is_product or dtypes != {dtype} or dtype not in _LEAST_EXPONENT:
        return 0.0
    results = recomputed(run, op)
    exact = results.get(columns.labels[place]) if results else None
    if exact is None or not columns.files[place]:
        return 0.0
    try:
        stored = read_array(columns.files[place], dtype).astype(np.float64)
        bias = _bias(run, op)
    except BadPayload:
        return 0.0
    if stored.shape != exact.shape or not np.isfinite(stored).all():
        return 0.0
    nearest = _rounded(exact, dtype)
    best = (nearest - exact) ** 2
    least = float(best.sum())
    if not least:
        return 0.0
    terms = math.prod(columns.norm[tensor] for tensor in op.inputs[:2])  # without cancellation
    added = (_SINGLE * terms) ** 2 if math.isfinite(terms) else 0.0  # adding up in Float32
    elements = least**2 / float((best**2).sum())
    times = math.sqrt(float(((stored - exact) ** 2).sum()) / (least + added))
    if times <= max(LEAST, 1.0 + _SIGMAS / math.sqrt(2.0 * elements)):
        return 0.0
    healthy = [nearest, _rounded(exact, dtype, np.trunc)]
    if bias is not None:
        healthy.append(_rounded(_rounded(exact - bias, dtype) + bias, dtype))
    is_near = any(float(((stored - one) ** 2).sum()) <= _NEAR * least for one in healthy)
    return 0.0 if is_near else times


def _bias(run: TensorRun, op: Op) -> Numbers | None:
    """What is added to a product."""
    columns = run.columns
    for place in op.inputs[2:]:
        if columns.files[place]:
            return read_array(columns.files[place], columns.dtypes[place]).astype(np.float64)
    return None


def _rounded(
    numbers: Numbers, dtype: str, whole: Callable[[Numbers], Numbers] = np.rint
) -> Numbers:
    """Numbers as a half type has them; what is too large for it stays."""
    _, exponents = np.frexp(numbers)
    steps = np.maximum(exponents, _LEAST_EXPONENT[dtype]) + round(math.log2(roundoff(dtype)))
    return np.ldexp(whole(np.ldexp(numbers, -steps)), steps)

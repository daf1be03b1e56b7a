"""Masks that a run is given: tensors of truth values, or of two numbers of which one is zero."""

from __future__ import annotations

import math

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.semantics import family

_MASKING = frozenset(("elementwise", "product", "sum", "attention"))
"""Families of calls that read a mask beside what they mask."""
_SUMMED = 1e-5
"""Relative difference of a sum of squares that another order of summing can make."""
_STATED = 4.0
"""Units of its type by which it may be off where mean and norm are stated in that."""


def is_mask(columns: Columns, place: int) -> bool:
    """Whether a tensor holds truth values, or zero and one other number.

    Squares are convex: of given extremes and mean their sum is the largest where every number is
    one of the extremes, and nowhere else (Edmundson and Madansky).  So figures show it.

    Args:
        columns: of the dump.
        place: of the tensor.
    """
    if columns.dtypes[place] == "Bool":
        return math.prod(columns.shapes[place]) > 1
    most, least, mean = columns.most[place], columns.least[place], columns.mean[place]
    if not is_float(columns.dtypes[place]) or most == least or most * least != 0:
        return False
    size, norm = math.prod(columns.shapes[place]), columns.norm[place]
    share = (mean - least) / (most - least)
    squares = size * (share * most**2 + (1 - share) * least**2)
    loose = _SUMMED + _STATED * roundoff(columns.dtypes[place])
    return math.isfinite(squares) and math.isclose(norm**2, squares, rel_tol=loose)


def reads_mask(op: Op, columns: Columns, place: int) -> bool:
    """Whether a call masks something with one of its inputs.

    Args:
        op: the call.
        columns: of its dump.
        place: of the input.
    """
    return (
        not op.is_module
        and len(op.inputs) > 1
        and family(op.type) in _MASKING
        and any(is_float(columns.dtypes[result]) for result in op.outputs)
        and is_mask(columns, place)
    )

"""How ids, labels, indices and masks differ: how many of them do, never by what share of a norm."""

from __future__ import annotations

from typing import Any

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.model import Columns, Places, TensorRun

_MOST = 1 << 26
"""Elements that are counted."""


def is_whole(left: TensorRun, right: TensorRun, places: Places) -> bool:
    """Whether both tensors hold whole numbers or truth values.

    Args:
        left: one dump.
        right: the other.
        places: of the tensor in both.
    """
    columns = left.columns, right.columns
    return not any(is_float(c.dtypes[place]) for c, place in zip(columns, places, strict=True))


def difference_text(left: TensorRun, right: TensorRun, places: Places) -> str:
    """How whole numbers differ, in words.

    Args:
        left: one dump.
        right: the other.
        places: of the tensor in both.

    Returns:
        Empty where neither values nor extremes tell it.
    """
    ours, theirs = left.columns, right.columns
    a, b = places
    if ours.files[a] and theirs.files[b]:
        try:
            return _of_values(ours, a, theirs, b)
        except BadPayload:
            pass
    ends = [(c.least[place], c.most[place]) for c, place in ((ours, a), (theirs, b))]
    if ends[0] == ends[1] or any(x != x for pair in ends for x in pair):
        return ""
    texts = [f"between {least:g} and {most:g}" for least, most in ends]
    return f"{texts[0]} on the left, {texts[1]} on the right"


def _of_values(ours: Columns, a: int, theirs: Columns, b: int) -> str:
    import numpy as np

    left: Any = read_array(ours.files[a], ours.dtypes[a])
    right: Any = read_array(theirs.files[b], theirs.dtypes[b])
    left, right = left.reshape(-1), right.reshape(-1)
    if left.size > _MOST:
        return ""
    if left.size != right.size:
        return f"{left.size:,} on the left, {right.size:,} on the right"
    unequal = int(np.count_nonzero(left != right))
    text = f"{unequal:,} of {left.size:,} differ"
    if unequal and left.dtype.kind != "b" and np.array_equal(np.sort(left), np.sort(right)):
        text += ", the same ones in another order"
    return text

"""A router that rounding tips over: experts get a row more or less, and none is at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single


def routed(*, tipped: int = 0, dropped: int = 0, scale: float = 1.0) -> list[Entry]:
    """Rows that an expert is given by which of two numbers of each is the larger, and their sum.

    Args:
        tipped: rows of nearly equal numbers, of which rounding makes the other one larger.
        dropped: rows that the expert leaves out though they are its.
        scale: of what it gives.
    """
    x = numbers(40, 4, seed=2)
    shares: Any = np.abs(numbers(40, 2, seed=3))
    shares[:8, 1] = shares[:8, 0] * 0.998
    shares[:tipped, 1] = shares[:tipped, 0] * 1.002
    shares = shares.astype(np.float16)
    chosen = shares.argmax(1)
    mask = chosen == 0
    rows = np.flatnonzero(mask)
    rows = rows[: len(rows) - dropped]
    weight = numbers(4, 4, seed=4)
    result: Array = single(x[rows] @ weight) * np.float32(scale)
    total = np.zeros_like(x)
    total[rows] = result
    return [
        ("Tensor.float.0.forward", (shares,), single(shares)),
        ("Tensor.argmax.0.forward", (shares, 1), chosen),
        ("Torch.where.0.forward", (mask,), [rows]),
        ("Tensor.__matmul__.0.forward", (single(x[rows]), weight), single(x[rows] @ weight)),
        ("Tensor.index_add_.0.forward", (np.zeros_like(x), 0, rows, result), total),
    ]


@pytest.mark.parametrize(
    ("change", "is_accused"),
    [({"tipped": 1}, False), ({"tipped": 3}, False), ({"tipped": 1, "dropped": 12}, True),
     ({"dropped": 1}, True), ({"scale": 1.1}, True), ({}, False)],
)  # fmt: skip
def test_a_few_rows_more_or_less_accuse_nobody_where_indices_differ(
    tmp_path: Path, change: dict[str, Any], is_accused: bool
) -> None:
    found = compared(tmp_path, routed(), routed(**change))
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert "given the same, its result is" not in found.first.why or change == {"dropped": 1}


def picked(others: int, *, is_half: bool = True, has_chosen: bool = True) -> list[Entry]:
    """Numbers that indices pick of each row: by which of two others is larger.

    Args:
        others: rows of which the other number is picked.
        is_half: the numbers that decide are in half precision.
        has_chosen: a call makes the indices.
    """
    kind = np.float16 if is_half else np.float32
    shares: Any = np.abs(numbers(64, 2, seed=5)) % 1
    # Sums of equally many rows, so that norms tell how many are picked otherwise.
    shares[:, 0], shares[:, 1] = 0.9, 0.5
    shares[0] = 0.95, 0.4
    shares[1] = 0.3, 0.95
    chosen = np.zeros((64, 1), np.int64)
    chosen[1] = 1
    chosen[2 : 2 + others] = 1
    result = single(np.take_along_axis(shares, chosen, 1))
    made: list[Entry] = [("Torch.sigmoid.0.forward", (shares.astype(kind),), shares.astype(kind))]
    if has_chosen:
        made.append(("Tensor.argmax.0.forward", (shares.astype(kind), 1), chosen))
    made.append(("Tensor.gather.0.forward", (single(shares), 1, chosen), result))
    return made


@pytest.mark.parametrize(
    ("others", "options", "is_accused"),
    [(1, {}, False), (20, {}, True), (1, {"is_half": False}, True),
     (1, {"has_chosen": False}, True), (0, {}, False)],
)  # fmt: skip
def test_figures_do_not_tell_an_index_that_rounding_tips_over_from_a_fault(
    tmp_path: Path, others: int, options: dict[str, bool], is_accused: bool
) -> None:
    sides = picked(0, **options), picked(others, **options)
    found = compared(tmp_path, *sides, tensors=False)
    assert (found.first is not None) == is_accused

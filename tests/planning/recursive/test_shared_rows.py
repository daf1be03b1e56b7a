"""When a table's rows and the indices that are looked up may both be cut."""

from __future__ import annotations

import pytest

from irtool.operators.layout import Shape
from irtool.planning.recursive.fitting import (
    _gather_rows,  # pyright: ignore[reportPrivateUsage]
    _shares,  # pyright: ignore[reportPrivateUsage]
)


@pytest.mark.parametrize(
    ("table", "indices", "is_shared"),
    [
        ((2, 1), (4, 1), True),  # eight devices in all
        ((2, 1), (2, 1), False),  # four: some would be left
        ((8, 1), (1, 1), False),  # one of both takes all devices
        ((1, 1), (8, 1), False),
        ((2, 2), (2, 1), False),  # columns are cut
        ((2, 1), (2, 2), True),  # indices in two dimensions
        ((2, 1), (1, 4), False),
        ((2,), (4, 1), False),
        ((2, 1), (4,), False),
        ((2, 1, 1), (4, 1), False),
        ((2, 1), (4, 1, 1), False),
    ],
)
def test_each_takes_a_part_of_the_devices(table: Shape, indices: Shape, is_shared: bool) -> None:
    assert _shares((table, indices), 8) is is_shared


@pytest.mark.parametrize(
    ("table", "indices", "rows"),
    [
        ((64, 8), (16, 4), ((1, 1), (8, 1))),  # indices first
        ((64, 8), (2, 4), ((4, 1), (2, 1))),  # the table takes what is left
        ((3, 8), (2, 4), ((1, 1), (2, 1))),  # an odd number of rows is not cut
        ((64, 8), (), ((8, 1), ())),
    ],
)
def test_the_indices_are_cut_before_the_rows(
    table: Shape, indices: Shape, rows: tuple[Shape, Shape]
) -> None:
    assert _gather_rows(table, indices, 8) == rows

"""Tensors of four dimensions, cut into powers of two: figures by hand."""

from __future__ import annotations

import pytest

from irtool.planning.recursive.tensors import (
    WHOLE,
    C,
    Four,
    H,
    N,
    W,
    elements,
    four_sizes,
    halved,
    last_four,
    local,
    pieces,
    ratio,
    row_of,
    single,
    turned,
)


def test_shapes_are_filled_up_from_the_left() -> None:
    assert four_sizes((5, 7)) == (1, 1, 5, 7)
    assert four_sizes(()) == WHOLE
    assert four_sizes((2, 3, 5, 7)) == (2, 3, 5, 7)
    assert four_sizes((2, 3, 5, 7, 11)) == WHOLE
    assert last_four((2, 3, 5, 7, 11)) == [3, 5, 7, 11]
    assert last_four((5, 7)) == [1, 1, 5, 7]


def test_rows_and_columns_are_turned() -> None:
    assert turned((2, 3, 5, 7)) == (2, 3, 7, 5)


def test_a_slice_is_cut_off() -> None:
    assert local((8, 7, 6, 5), (2, 2, 3, 4)) == (4, 3, 2, 1)


@pytest.mark.parametrize(
    ("cuts", "count"),
    [((1, 1, 1, 1), 1920), ((2, 1, 1, 1), 960), ((1, 4, 1, 1), 480), ((1, 1, 2, 1), 960),
     ((1, 1, 1, 8), 240), ((2, 2, 2, 2), 120), ((4, 1, 1, 1), 480)],
)  # fmt: skip
def test_elements_of_a_slice(cuts: Four, count: int) -> None:
    assert elements((8, 4, 6, 10), cuts) == count


def test_elements_are_reckoned_in_single_precision() -> None:
    """2^24 + 1 is the first whole number that single precision has not."""
    assert elements((2**24 + 1, 1, 1, 1), WHOLE) == 2**24
    assert single(0.1) == 0.10000000149011612
    assert elements((1, 1, 1, 3), (1, 1, 1, 2)) == 1.5


def test_an_axis_is_halved() -> None:
    assert halved((1, 2, 4, 1), N) == (2, 2, 4, 1)
    assert halved((1, 2, 4, 1), C) == (1, 4, 4, 1)
    assert halved((1, 2, 4, 1), H, W) == (1, 2, 8, 2)
    assert ratio((2, 8, 4, 6), (2, 2, 1, 3)) == (1, 4, 4, 2)


def test_a_strategy_is_the_last_of_the_four() -> None:
    assert row_of((2, 3, 5, 7), 2) == (5, 7)
    assert row_of((2, 3, 5, 7), 4) == (2, 3, 5, 7)
    assert pieces((2, 3, 5)) == 30
    assert pieces(()) == 1

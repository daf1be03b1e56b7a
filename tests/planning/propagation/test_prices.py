"""Prices between layouts, against figures of MindSpore's log of the propagation."""

from __future__ import annotations

import pytest

from irtool.operators.layout import TensorLayout
from irtool.planning.propagation.prices import Price, Prices, practical

RANKS = tuple(range(8))
SHAPE = (8, 16, 32)
BATCH = TensorLayout((8,), (0, -1, -1), SHAPE)


def whole(*matrix: int) -> TensorLayout:
    return TensorLayout(matrix, (-1, -1, -1), SHAPE)


@pytest.mark.parametrize(
    ("target", "communication", "computation"),
    [
        (whole(8), 12288.0, 4096.0),
        (whole(4, 2), 10240.0, 20480.0),
        (whole(2, 4), 10240.0, 28672.0),
        (whole(2, 2, 2), 11264.0, 32768.0),
        (BATCH, 0.0, 0.0),
    ],
)
def test_a_gather_costs_what_mindspore_logs(
    target: TensorLayout, communication: float, computation: float
) -> None:
    assert Prices(RANKS).of(BATCH, target, 4) == Price(communication, computation)


def test_a_cut_moves_nothing() -> None:
    cut = Prices(RANKS).of(whole(8), BATCH, 4)
    assert cut == Price(0.0, 4 * 8 * 16 * 32)


def test_a_price_is_remembered_for_layouts_of_any_shape() -> None:
    prices = Prices(RANKS)
    first = prices.of(BATCH, whole(8), 4)
    small = TensorLayout((8,), (0, -1, -1), (8, 1, 1))
    assert prices.of(small, TensorLayout((8,), (-1, -1, -1), (8, 1, 1)), 4) is first


def test_splitting_the_batch_over_all_devices_wins_ties_around_a_reshape() -> None:
    plain = Prices(RANKS).reshaped(BATCH, whole(4, 2), 4, False)
    batch = Prices(RANKS).reshaped(BATCH, whole(4, 2), 4, True)
    assert plain is not None
    assert batch == Price(plain.communication - 1, plain.computation - 1)


def test_layouts_of_other_sizes_have_no_price() -> None:
    assert Prices(RANKS).of(BATCH, TensorLayout((8,), (0,), (7,)), 4) is None


def test_small_transfers_cost_the_same() -> None:
    assert [practical(size) for size in (0.0, 1.0, 2048.0, 2049.0)] == [0.0, 3072.0, 3072.0, 3073.0]

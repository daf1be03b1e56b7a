"""How two tensors of weights are alike, by values and by figures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.measuring.alike import (
    NEAR_FIGURES,
    Stated,
    half_unit,
    likeness_of_figures,
    of_values,
)
from tests.compare.test_judging import numbers

UNIT = roundoff("Float32")
HALF = roundoff("BFloat16")
W = numbers(24, 16).astype(np.float64)


def test_the_other_way_round_is_the_same() -> None:
    found = of_values(W, np.ascontiguousarray(W.T), UNIT)
    assert found is not None
    assert found.is_same_numbers
    assert found.is_turned


def test_rows_in_another_order_are_the_same_numbers() -> None:
    found = of_values(W, W[::-1], UNIT)
    assert found is not None
    assert found.is_same_numbers
    assert found.is_reordered


def test_two_rows_of_many_that_changed_places_are_the_same_numbers_too() -> None:
    """However little that is of the norm; one number more is another matrix."""
    large = numbers(400, 16).astype(np.float64)
    other = large.copy()
    other[[3, 7]] = other[[7, 3]]
    found = of_values(large, other, UNIT)
    assert found is not None
    assert found.is_same_numbers
    assert found.is_reordered
    other[5, 5] += 0.1
    found = of_values(large, other, UNIT)
    assert found is not None
    assert not found.is_same_numbers


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_a_multiple_is_told_whatever_the_order(order: slice) -> None:
    found = of_values(W, (1.02 * W)[order], UNIT)
    assert found is not None
    assert math.isclose(found.factor, 1.02, rel_tol=1e-6)
    assert math.isclose(found.error, 1 - 1 / 1.02, rel_tol=1e-3)


@pytest.mark.parametrize(("errors", "is_told"), [(7.9, False), (8.2, True)])
def test_a_factor_is_one_within_its_own_scatter(errors: float, is_told: bool) -> None:
    factor = 1 + errors * HALF / math.sqrt(W.size)
    found = of_values(W, factor * W, HALF)
    assert found is not None
    assert math.isnan(found.factor) is not is_told


@pytest.mark.parametrize(("noise", "is_told"), [(0.9, True), (1.2, False)])
def test_behind_a_factor_rounding_may_be_left(noise: float, is_told: bool) -> None:
    other = numbers(24, 16, seed=3).astype(np.float64)
    other -= (other * W).sum() / (W * W).sum() * W
    other *= np.linalg.norm(W) / np.linalg.norm(other)
    found = of_values(W, 1.5 * (W + noise * HALF * other), HALF)
    assert found is not None
    assert math.isnan(found.factor) is not is_told


@pytest.mark.parametrize(("share", "is_related"), [(0.45, False), (0.55, True)])
def test_what_correlates_by_less_than_a_half_has_nothing_in_common(
    share: float, is_related: bool
) -> None:
    other = numbers(24, 16, seed=3).astype(np.float64)
    other -= (other * W).sum() / (W * W).sum() * W
    other *= np.linalg.norm(W) / np.linalg.norm(other)
    mixed = share * W + math.sqrt(1 - share * share) * other
    assert (of_values(W, mixed, UNIT) is not None) is is_related


def test_rows_in_another_order_and_off_by_noise_are_known_again() -> None:
    found = of_values(W, (W + 0.02 * numbers(24, 16, seed=4))[::-1], UNIT)
    assert found is not None
    assert found.is_reordered
    assert 0.01 < found.error < 0.03


FIGURES = Stated(2.0, -1.5, 12.0, 0.25)


def figures(other: Stated, unit: float = UNIT):
    return likeness_of_figures(FIGURES, other, 144, unit)


@pytest.mark.parametrize(("off", "is_same"), [(3.5e-6, True), (5e-6, False)])
def test_sums_may_be_added_in_another_order(off: float, is_same: bool) -> None:
    wide = Stated(2.0, -1.5, 12.000003, 0.250003)
    found = likeness_of_figures(wide, wide._replace(norm=wide.norm * (1 + off)), 144, UNIT)
    assert found is not None
    assert found.is_same_numbers is is_same
    found = likeness_of_figures(wide, wide._replace(mean=wide.mean + off), 144, UNIT)
    assert found is not None
    assert found.is_same_numbers is is_same


def test_an_extreme_may_not_differ_at_all() -> None:
    found = figures(FIGURES._replace(most=2.0000002))
    assert found is not None
    assert not found.is_same_numbers


@pytest.mark.parametrize(("steps", "is_same"), [(1, True), (2, False)])
def test_norms_in_half_precision_may_be_a_step_apart(steps: int, is_same: bool) -> None:
    found = figures(FIGURES._replace(norm=12.0 + steps * 2.0**-4), HALF)  # steps of 8 to 16
    assert found is not None
    assert found.is_same_numbers is is_same


def test_numbers_that_half_precision_has_not_are_stated_in_full() -> None:
    assert half_unit(12.0, 12.0625) == 2.0**-7
    assert half_unit(12.0, 12.03125) == 2.0**-10
    assert half_unit(12.0, 12.000003) == 0.0


def test_a_multiple_shows_in_all_figures() -> None:
    found = figures(Stated(2.04, -1.53, 12.24, 0.255))
    assert found is not None
    assert math.isclose(found.factor, 1.02)
    found = figures(Stated(2.04, -1.5, 12.24, 0.255))
    assert found is not None
    assert math.isnan(found.factor)


@pytest.mark.parametrize(("off", "is_related"), [(0.9, True), (1.1, False)])
def test_figures_that_are_far_apart_are_of_other_weights(off: float, is_related: bool) -> None:
    other = FIGURES._replace(most=FIGURES.most / (1 - off * NEAR_FIGURES))
    assert (figures(other) is not None) is is_related

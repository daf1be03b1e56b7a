"""A factor stands out of rounding: over all elements, not by the worst one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.judging.bias import explained_scale, is_comparable, scale_of
from irtool.compare.tensors.measuring.measure import Measure, measure_arrays
from tests.compare.dumps import Entry
from tests.compare.test_judging import compared

UNIT = 2.0**-11
"""Of Float16."""


def tensor(seed: int) -> NDArray[np.float16]:
    return np.random.default_rng(seed).standard_normal((40, 24)).astype(np.float16)


def test_the_factor_is_that_of_least_squares() -> None:
    x = tensor(1).astype(np.float64)
    assert scale_of(measure_arrays(x, 1.02 * x)) == pytest.approx(0.02)
    noise = np.random.default_rng(2).standard_normal(x.shape) * 0.01
    assert abs(scale_of(measure_arrays(x, x + noise))) < 0.002
    assert math.isnan(scale_of(Measure(0.0, 0.0, 0.0, True)))


def test_figures_tell_the_factor_by_their_norms() -> None:
    assert scale_of(Measure(0.5, 2.0, 2.1, False, exact=False)) == pytest.approx(0.05)


def test_infinite_tensors_tell_none() -> None:
    assert not is_comparable(Measure(0.1, 1.0, 1.0, False, 1, 1))
    assert is_comparable(Measure(0.1, 1.0, 1.0, False))


@pytest.mark.parametrize(
    ("scales", "error", "unit", "exact", "explained"),
    [
        ([], 0.0, UNIT, True, 1.5 * UNIT),
        ([0.01, -0.02], 0.0, UNIT, True, 0.06 + 1.5 * UNIT),
        ([], 0.1, UNIT, True, 0.02 + 0.8 / 1024 + 1.5 * UNIT),
        ([], 0.0, 2.0**-24, False, 1e-3),
        ([], 0.0, 2.0**-8, False, 2.05 * 2.0**-8),
        ([math.nan], 0.0, UNIT, True, 1.5 * UNIT),
    ],
)
def test_what_a_factor_may_be(
    scales: list[float], error: float, unit: float, exact: bool, explained: float
) -> None:
    assert explained_scale(scales, error, unit, exact) == pytest.approx(explained)


@pytest.mark.parametrize(("size", "units"), [(1, 4.1), (4, 2.05), (16, 1.5)])
def test_rounding_takes_few_elements_further_than_many(size: int, units: float) -> None:
    assert explained_scale([], 0.0, UNIT, True, size) == pytest.approx(units * UNIT)


@pytest.mark.parametrize(("size", "chance"), [(16, 0.02), (100, 0.008), (10_000, 0.0008)])
def test_inputs_that_are_off_by_chance_change_the_norm_of_few_elements_more(
    size: int, chance: float
) -> None:
    expected = chance + 2e-4 + 2.05 * 2.0**-8
    assert explained_scale([], 0.01, 2.0**-8, False, size) == pytest.approx(expected)


def scaled(tmp_path: Path, units: float) -> TensorComparison:
    """A product in half precision whose result one side scales by so many roundings."""
    x, y = tensor(3), tensor(4)
    calls: list[list[Entry]] = [
        [
            (
                "Functional.mystery.0.forward",
                (x,),
                (y.astype(np.float64) * (1 + n * units * UNIT)).astype(np.float16),
            )
        ]
        for n in range(2)
    ]
    return compared(tmp_path, *calls)


@pytest.mark.parametrize(("units", "is_accused"), [(1.2, False), (1.8, True)])
def test_a_scaled_result_is_named_from_one_and_a_half_roundings_on(
    tmp_path: Path, units: float, is_accused: bool
) -> None:
    found = scaled(tmp_path, units)
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert "all of them together do not" in found.first.why

"""Minus infinity and the least finite number mask alike."""

from __future__ import annotations

import numpy as np
import pytest

from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.measuring.stated import measure_stated
from irtool.compare.tensors.model import Columns


@pytest.mark.parametrize("least", [float(np.finfo(np.float32).min), -65504.0, -1e9, -9990.0])
def test_a_mask_of_values_is_one_however_it_is_written(least: float) -> None:
    ours, theirs = np.ones(8, np.float32), np.ones(8, np.float32)
    ours[::2], theirs[::2] = -np.inf, least
    found = measure_arrays(ours, theirs)
    assert found.error == 0
    assert found.broken_left == found.broken_right == 4


def test_other_elements_masked_are_another_mask() -> None:
    ours, theirs = np.ones(8, np.float32), np.ones(8, np.float32)
    ours[::2], theirs[1::2] = -np.inf, -1e9
    assert measure_arrays(ours, theirs).error > 0.5


def test_a_mask_that_is_added_leaves_its_scores() -> None:
    """As small as -1e4 it is one only where the other side masks beyond doubt."""
    scores = np.array([3.0, -7.5, 12.0])
    masked = np.full(3, -np.inf)
    assert measure_arrays(scores - 1e4, masked).error == 0
    assert measure_arrays(scores - 1e4, scores * 2 - 1e4).error > 0
    assert measure_arrays(scores - 9e3, masked).broken_left == 0


def test_large_numbers_that_do_not_mask_are_compared() -> None:
    found = measure_arrays(np.array([-9e3, 1.0]), np.array([-7e4, 1.0]))
    assert found.error > 0.8


@pytest.mark.parametrize(
    ("least", "is_alike"), [(-3.4e38, True), (-65504.0, True), (-9990.0, True), (-9000.0, False)]
)
def test_a_mask_of_figures(least: float, is_alike: bool) -> None:
    left, right = Columns(), Columns()
    left.add("input.0", "Float32", (8,), (1.0, -np.inf, -np.inf, np.inf), broken=1)
    right.add("input.0", "Float32", (8,), (1.0, least, least / 2, abs(least)), broken=0)
    (found,) = measure_stated(left, right, [(0, 0)])
    assert (found.broken_left == found.broken_right) == is_alike
    if is_alike:
        assert found.error == 0

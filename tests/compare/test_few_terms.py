"""Few elements, and sums that cancel: where rounding looks larger than it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.judging.bias import evenly
from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single


@pytest.mark.parametrize(
    ("size", "share"), [(0, 1.0), (5, 1.0), (6, 4 / np.sqrt(18)), (85, 4 / np.sqrt(255)),
                        (86, 0.25), (10**6, 0.25)]
)  # fmt: skip
def test_rounding_changes_the_factor_of_few_elements_more(size: int, share: float) -> None:
    assert evenly(size) == pytest.approx(share)


def convolution(gradient: Array, bias: Array) -> list[Entry]:
    """A convolution before a batch norm, and its gradient: that of its bias cancels."""
    x, w = numbers(4, 3, 6, 6, seed=1), numbers(8, 3, 3, 3, seed=2)
    y = numbers(4, 8, 6, 6, seed=3)
    return [
        ("Functional.conv2d.0.forward", (x, w, np.zeros(8, np.float32)), y),
        ("Functional.conv2d.0.backward", (gradient,), [single(x), single(w), bias]),
    ]


@pytest.mark.parametrize(("size", "is_accused"), [(1e-7, False), (1.0, True)])
def test_a_bias_whose_gradient_cancels_is_left_over_by_rounding(
    tmp_path: Path, size: float, is_accused: bool
) -> None:
    gradient = numbers(4, 8, 6, 6, seed=4)
    calls = [convolution(gradient, single(size * numbers(8, seed=5 + n))) for n in range(2)]
    found = compared(tmp_path, *calls)
    assert (found.first is not None) == is_accused

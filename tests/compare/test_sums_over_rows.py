"""Sums over few elements that were rounded in half precision, by figures alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.runs.comparison import compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

ROWS = 200


def calls(terms: int, is_rounded_otherwise: bool, factor: float, kind: str) -> list[Entry]:
    """A sum in half precision, its squares in single precision, and their mean over rows."""
    draw = np.random.default_rng(4)
    h = np.asarray(draw.normal(size=(ROWS, terms)), kind)
    h[0, 0], h[0, 1] = 6, -6  # extremes that are rounded alike
    given = h
    if is_rounded_otherwise:
        up = draw.random(h.shape) < 0.5
        up[0, :2] = False
        h = np.where(up, np.nextafter(h, np.asarray(np.inf, kind)), h)
    wide = np.asarray(h, np.float32)
    squares = wide * wide
    mean = np.asarray(squares.mean(-1, keepdims=True) * factor, np.float32)
    return [
        ("Tensor.__add__.0.forward", [given, np.zeros_like(given)], h),
        ("Tensor.square.0.forward", [wide], squares),
        ("Tensor.mean.0.forward", [squares, -1], mean),
    ]


@pytest.mark.parametrize(
    ("terms", "rounded", "factor", "kind", "is_named"),
    [
        (32, True, 1.0, "float16", False),
        (128, True, 1.0, "float16", False),
        (32, True, 1.02, "float16", True),
        (32, False, 1.0003, "float16", True),  # what went in is the same
        (32, False, 1.0003, "float32", True),  # nothing is rounded so coarsely
    ],
)
def test_a_mean_of_few_shows_what_figures_of_all_hide(
    tmp_path: Path, terms: int, rounded: bool, factor: float, kind: str, is_named: bool
) -> None:
    sides = [
        msprobe(tmp_path / name, calls(terms, *how, kind))
        for name, how in (("left", (False, 1.0)), ("right", (rounded, factor)))
    ]
    left, right = (side_of_run(load_run(str(side)), None) for side in sides)
    first = compare_runs(left, right, Settings()).first
    assert (first is not None and first.pair.left.type == "mean") == is_named

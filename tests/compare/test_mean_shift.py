"""From statistics, half precision: a few elements that are wrong show in the mean alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.comparison import compare_tensors
from irtool.compare.tensors.judging.bias import explained_shift, mean_shift
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Columns
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import unit

UNIT = 2.0**-11
"""Of Float16."""
Half = NDArray[np.float16]


def operands() -> tuple[Half, Half]:
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((96, 48)), 0.1 * rng.standard_normal((64, 48))
    return x.astype(np.float16), w.astype(np.float16)


def product() -> Half:
    x, w = operands()
    return (x.astype(float) @ w.astype(float).T).astype(np.float16)


def judged(tmp_path: Path, right: Half, tensors: bool = False) -> list[Judged]:
    x, w = operands()
    sides = []
    for name, result in (("a", product()), ("b", right)):
        calls: list[Entry] = [("Functional.linear.0.forward", [x, w], result)]
        sides.append(unit(msprobe(tmp_path / name, calls, tensors)))
    return compare_tensors(*sides).judged


def test_a_block_that_is_wrong_is_named_by_the_mean(tmp_path: Path) -> None:
    wrong = product()
    wrong[-4:, -3:] = np.abs(wrong[-4:, -3:]) * np.float16(1.25)
    one = judged(tmp_path, wrong)[0]
    assert one.verdict == "introduces error"
    assert "the mean of its result" in one.why


def test_what_rounds_every_element_the_other_way_is_healthy(tmp_path: Path) -> None:
    signs = np.where(np.random.default_rng(6).random(product().shape) < 0.5, np.inf, -np.inf)
    other = np.nextafter(product(), signs.astype(np.float16))
    assert judged(tmp_path, other)[0].verdict != "introduces error"


@pytest.mark.parametrize(
    ("type_", "arguments", "is_accused"),
    [("linear", 2, True), ("softmax", 1, True), ("relu", 1, False), ("dropout", 2, False)],
)
@pytest.mark.parametrize(("times", "is_more"), [(0.95, False), (1.05, True)])
def test_a_mean_may_be_off_by_six_standard_deviations(
    type_: str, arguments: int, is_accused: bool, times: float, is_more: bool, tmp_path: Path
) -> None:
    """Of what joins several numbers: element by element other ones may have come in."""
    x, w = operands()
    result = product()
    calls: list[Entry] = [(f"Functional.{type_}.0.forward", [x, w][:arguments], result)]
    left, right = (unit(msprobe(tmp_path / name, calls)) for name in "ab")
    place = right.ops[0].outputs[0]
    for run in (left, right):
        run.columns.mean[place] = 0.0
    shift = times * explained_shift(UNIT, 0.0)
    norm = left.columns.norm[place]
    step = UNIT * 2.0 ** math.frexp(shift * norm / result.size)[1]
    right.columns.mean[place] = shift * norm / result.size + step
    one = compare_tensors(left, right).judged[0]
    assert (one.verdict == "introduces error") is (is_accused and is_more)


def columns(mean: float, norm: float = 10.0, dtype: str = "Float16") -> Columns:
    made = Columns()
    made.add("output.0", dtype, (10, 10), (3.0, -3.0, mean, norm))
    return made


def test_a_shift_is_what_errors_at_random_add_up_to() -> None:
    """100 elements, each off by e at random, are off by e / 10 on average."""
    assert mean_shift((columns(0.0, dtype="Float32"), columns(0.01, dtype="Float32")), (0, 0)) == (
        pytest.approx(0.1, rel=1e-4)
    )
    step = 2.0**-10  # between 1 and 2, where stating it may have taken it
    assert mean_shift((columns(1.0), columns(1.0 + step)), (0, 0)) == 0.0
    assert mean_shift((columns(1.0), columns(1.0 + 3 * step)), (0, 0)) == pytest.approx(20 * step)
    assert mean_shift((columns(0.0), columns(0.0)), (0, 0)) == 0.0
    for odd in (columns(math.nan), columns(0.5, math.inf), columns(0.5, 0.0)):
        assert mean_shift((odd, odd), (0, 0)) == 0.0
    assert explained_shift(UNIT, 0.0) == pytest.approx(6 * 0.58 * UNIT)
    assert explained_shift(UNIT, 0.01) == pytest.approx(0.06, rel=1e-3)


# -- what no call made -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "dtype", "is_accused"),
    [(7.5, "Float16", False), (8.5, "Float16", True), (8.5, "Float32", False)],
)
def test_the_mean_of_what_no_call_made_may_be_off_by_eight_times_that(
    times: float, dtype: str, is_accused: bool, tmp_path: Path
) -> None:
    """A mask of a dropout with one row less, a table that is another one."""
    x, _ = operands()
    calls: list[Entry] = [("Tensor.__mul__.0.forward", [x, x[::-1].copy()], product())]
    left, right = (unit(msprobe(tmp_path / name, calls)) for name in "ab")
    place = right.ops[0].inputs[1]
    for run in (left, right):
        run.columns.mean[place] = 0.0
        run.columns.dtypes[place] = dtype
    norm, size = left.columns.norm[place], x.size
    shift = times * explained_shift(UNIT, 0.0) * norm / size
    right.columns.mean[place] = shift + UNIT * 2.0 ** math.frexp(shift)[1]
    one = compare_tensors(left, right).judged[0]
    assert (one.verdict == "introduces error" and "on average" in one.entered) is is_accused

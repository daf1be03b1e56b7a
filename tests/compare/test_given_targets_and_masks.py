"""Targets that are activations are no labels; masks that are passed in are facts; what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs, first_case
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.compare.tensors.masks import is_mask
from irtool.compare.tensors.model import Columns
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

ROWS, WIDTH = 8, 6
Numbers = Any
DRAW = np.random.default_rng(7)
X = DRAW.normal(size=(ROWS, WIDTH)).astype(np.float32)
W = DRAW.normal(size=(WIDTH, WIDTH)).astype(np.float32)
NOISE = DRAW.normal(size=(ROWS, WIDTH)).astype(np.float32)


def compared(
    folder: Path, left: list[Entry], right: list[Entry], *, tensors: bool = True
) -> RunComparison:
    paths = [
        msprobe(folder / "left", left, tensors=tensors),
        msprobe(folder / "right", right, tensors=tensors),
    ]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def row(found: RunComparison, name: str) -> tuple[str, bool | None] | None:
    return next(((r.right, r.same) for r in found.hyperparameters if r.name == name), None)


def advice(found: RunComparison) -> str:
    case = first_case(found)
    return case.advice[0] if case is not None else ""


def relative(x: Numbers, error: float) -> Numbers:
    """A tensor that is off by a relative error in all its elements."""
    scale = error * np.linalg.norm(x) / np.linalg.norm(NOISE[: len(x)])
    return (x + scale * NOISE[: len(x)]).astype(np.float32)


def taught(target: Numbers, result: Numbers) -> list[Entry]:
    """A product, and a loss of it that reads a target."""
    loss = np.asarray(((result - target) ** 2).mean(), np.float32)
    return [
        ("Functional.linear.0.forward", [X, W], result),
        ("Functional.mse_loss.0.forward", [result, target], loss),
    ]


# -- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "is_told"), [(1.8, False), (2.2, True)])
def test_a_target_that_is_off_by_what_was_off_before_may_have_been_computed(
    tmp_path: Path, times: float, is_told: bool
) -> None:
    result, target = X @ W.T, np.tanh(X)
    error = 1e-3
    found = compared(
        tmp_path,
        taught(target, result),
        taught(relative(target, times * error), relative(result, error)),
    )
    told = row(found, "labels")
    assert told == (("1 of 1 differ", False) if is_told else None)


@pytest.mark.parametrize(("count", "is_told"), [(4, True), (5, False)])
def test_few_elements_that_differ_are_no_error_that_was_carried(
    tmp_path: Path, count: int, is_told: bool
) -> None:
    """A tenth of 48 elements; rounding that went through a target leaves few of them equal."""
    result, target = X @ W.T, np.tanh(X)
    other = target.copy()
    other.reshape(-1)[:count] += np.float32(1e-5)
    found = compared(tmp_path, taught(target, result), taught(other, relative(result, 1e-3)))
    assert row(found, "labels") == (("1 of 1 differ", False) if is_told else None)


@pytest.mark.parametrize("is_picked", [True, False])
def test_rows_of_a_result_are_no_label_however_far_apart(tmp_path: Path, is_picked: bool) -> None:
    """The first row is so long that what the others are off by hardly shows in all of them."""
    result = (X @ W.T).astype(np.float32)
    result[0] *= 1e4
    other = result.copy()
    other[1:] = relative(result[1:], 1e-2)
    targets = [side[1:] if is_picked else np.sinh(side[1:]) for side in (result, other)]
    ends = [
        [*taught(side, side)[:1],
         ("Functional.mse_loss.0.forward", [X[1:], target], np.asarray(1.0, np.float32))]
        for side, target in zip((result, other), targets, strict=True)
    ]  # fmt: skip
    found = compared(tmp_path, ends[0], ends[1])
    assert row(found, "labels") == (None if is_picked else ("1 of 1 differ", False))


@pytest.mark.parametrize("tensors", [True, False])
def test_a_target_that_differs_where_nothing_did_before_is_told(
    tmp_path: Path, tensors: bool
) -> None:
    result, target = X @ W.T, np.tanh(X)
    found = compared(
        tmp_path, taught(target, result), taught(relative(target, 1e-4), result), tensors=tensors
    )
    assert row(found, "labels") == ("1 of 1 differ", False)


def test_whole_numbers_are_labels_whatever_was_off_before(tmp_path: Path) -> None:
    result, labels = X @ W.T, np.arange(ROWS) % WIDTH
    ends = [
        [*taught(X, side)[:1],
         ("Functional.cross_entropy.0.forward", [side, ids], np.asarray(loss, np.float32))]
        for side, ids, loss in (
            (result, labels, 1.0), (relative(result, 0.9), np.roll(labels, 1), 2.0)
        )
    ]  # fmt: skip
    assert row(compared(tmp_path, ends[0], ends[1]), "labels") == ("1 of 1 differ", False)


# -- masks ----------------------------------------------------------------------------------------


def masked(mask: Numbers, function: str = "Tensor.masked_fill") -> list[Entry]:
    """A product that is masked, or multiplied by a mask."""
    result = (X @ W.T).astype(np.float32)
    is_product = mask.dtype != bool
    if function == "Torch.where":
        given, hidden = [mask, result, np.float32(-9) * np.ones_like(result)], ~mask
    else:
        given, hidden = ([result, mask] if is_product else [result, mask, -9.0]), mask
    y = result * mask if is_product else np.where(hidden, np.float32(-9), result)
    return [
        ("Functional.linear.0.forward", [X, W], result),
        (f"{function}.0.forward", given, y.astype(np.float32)),
        ("Torch.sin.0.forward", [y.astype(np.float32)], np.sin(y).astype(np.float32)),
    ]


HIDDEN = DRAW.random((ROWS, WIDTH)) < 0.3
KEPT = ((DRAW.random((ROWS, WIDTH)) < 0.8) / 0.8).astype(np.float32)


def test_a_mask_that_differs_is_a_fact_and_says_how_many_elements(tmp_path: Path) -> None:
    found = compared(tmp_path, masked(HIDDEN), masked(HIDDEN[::-1].copy()))
    count = int((HIDDEN[::-1] != HIDDEN).sum())
    assert row(found, "masks") == ("1 of 1 differ", False)
    where = next(r.where for r in found.hyperparameters if r.name == "masks")
    assert f"{count} of 48 differ" in where
    assert "how this mask is made" in advice(found)


def test_a_mask_to_multiply_by_is_a_fact_too(tmp_path: Path) -> None:
    other = KEPT.copy()
    other[0] = 0
    found = compared(tmp_path, masked(KEPT, "Tensor.__mul__"), masked(other, "Tensor.__mul__"))
    assert row(found, "masks") == ("1 of 1 differ", False)
    assert row(found, "initial weights") == ("equal (1 compared)", True)


@pytest.mark.parametrize("mask", [HIDDEN, KEPT])
def test_masks_that_are_equal_are_said_to_be(tmp_path: Path, mask: Numbers) -> None:
    function = "Tensor.masked_fill" if mask is HIDDEN else "Tensor.__mul__"
    found = compared(tmp_path, masked(mask, function), masked(mask, function))
    assert row(found, "masks") == ("equal (1 compared)", True)


def test_a_mask_that_is_written_the_other_way_round_is_nothing_to_see(tmp_path: Path) -> None:
    left = masked(~HIDDEN, "Torch.where")
    _, given, result = masked(~HIDDEN, "Torch.where")[1]
    turned = ("Torch.where.0.forward", [HIDDEN, given[2], given[1]], result)
    found = compared(tmp_path, left, [left[0], turned, left[2]])
    assert not found.is_suspicious
    assert (row(found, "masks") or ("",))[0] == ""


def column(values: Numbers, dtype: str = "Float32") -> Columns:
    columns = Columns()
    wide = np.asarray(values, np.float64)
    figures = (wide.max(), wide.min(), wide.mean(), np.linalg.norm(wide))
    columns.add("input.1", dtype, wide.shape, tuple(map(float, figures)))
    return columns


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0, 1.25, 1.25, 0, 0], True),
        ([0, -1e4, 0, 0], True),
        ([0, 1.25, 1.25, 0.01, 0], False),  # a third number
        ([0.5, 1.25, 1.25, 0.5], False),  # neither is zero
        ([1.0, 1.0, 1.0], False),  # ones are the weights of a norm
        ([0.0, 0.0], False),
    ],
)
def test_zero_and_one_other_number_are_a_mask_by_figures_alone(
    values: list[float], wanted: bool
) -> None:
    assert is_mask(column(values), 0) is wanted


def test_truth_values_are_a_mask_whatever_they_are() -> None:
    assert is_mask(column([1, 1], "Bool"), 0)
    assert not is_mask(column([1], "Bool"), 0)


# -- what to try ----------------------------------------------------------------------------------


def test_labels_that_differ_are_looked_for_where_labels_are_made(tmp_path: Path) -> None:
    result, labels = (X @ W.T).astype(np.float32), np.arange(ROWS) % WIDTH
    ends = [
        [*taught(X, result)[:1],
         ("Functional.cross_entropy.0.forward", [result, ids], np.asarray(loss, np.float32))]
        for ids, loss in ((labels, 1.0), (np.roll(labels, 1), 2.0))
    ]  # fmt: skip
    assert "how the labels are made" in advice(compared(tmp_path, ends[0], ends[1]))


@pytest.mark.parametrize(("factor", "is_told"), [(1.02, True), (1.009, False)])
def test_the_factor_of_a_call_of_one_side_alone_is_told_behind_a_cast(
    tmp_path: Path, factor: float, is_told: bool
) -> None:
    """The loss reads in Float32 what half precision has rounded."""
    logits = (X @ W.T).astype(np.float16)
    scaled = (logits * np.float32(factor)).astype(np.float16)
    product: Entry = ("Tensor.__mul__.0.forward", [logits, factor], scaled)
    labels = np.arange(ROWS) % WIDTH
    ends: list[list[Entry]] = [
        [("Functional.linear.0.forward", [X.astype(np.float16), W.astype(np.float16)], logits),
         *([product] if side is scaled else []),
         ("Functional.cross_entropy.0.forward", [side.astype(np.float32), labels],
          np.asarray(side.astype(np.float64).std(), np.float32))]
        for side in (logits, scaled)
    ]  # fmt: skip
    first = compared(tmp_path, ends[0], ends[1]).first
    assert first is not None
    assert first.maker_right is not None
    assert (abs(first.multiple - 1.02) < 1e-3) is is_told

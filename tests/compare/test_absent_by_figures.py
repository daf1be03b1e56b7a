"""Calls of one side alone, known by figures: what the other side lacks, and what cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs, first_case
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import sentences
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

ROWS, WIDTH = 16, 8
Numbers = Any
DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(ROWS, WIDTH)).astype(np.float16)
W = (DRAW.normal(size=(WIDTH, WIDTH)) / 3).astype(np.float16)


def half(values: Numbers) -> Numbers:
    return np.asarray(values).astype(np.float16)


def capped(cap: float | None, noise: float = 0.0, makes_up: bool = False) -> list[Entry]:
    """Scores that go through a soft cap on one side, in half precision."""
    y = half((X @ W.T).astype(np.float32) * (1 + noise))
    made: list[Entry] = [("Functional.linear.0.forward", [X, W], y)]
    if cap is not None:
        z = half(np.tanh(y.astype(np.float32) / cap) * cap)
        made.append(("Torch.tanh.0.forward", [y], z))
        y = z
    shares = half(np.exp(y.astype(np.float32)) / np.exp(y.astype(np.float32)).sum(-1)[:, None])
    made.append(("Torch.softmax.0.forward", [y], shares))
    if makes_up:
        made.append(("Torch.sinh.0.forward", [shares], half(np.sinh(shares))))
    return made


def compared(folder: Path, left: list[Entry], right: list[Entry]) -> RunComparison:
    paths = [msprobe(folder / "left", left), msprobe(folder / "right", right)]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


@pytest.mark.parametrize("is_left", [True, False])
def test_a_call_of_one_side_is_named_where_the_other_reads_what_goes_in(
    tmp_path: Path, is_left: bool
) -> None:
    """Its effect is within what half precision rounds, and moves more than one figure."""
    sides = [capped(30.0), capped(None)]
    found = compared(tmp_path, *(sides if is_left else sides[::-1]))
    first = found.first
    assert first is not None
    assert "goes through Torch.tanh.0.forward" in first.entered
    assert (first.maker_left is not None) is is_left
    assert first.error_out < 8 * 2.0**-11


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(capped(None, noise=2e-3), id="figures that differ by rounding"),
        pytest.param(capped(None, makes_up=True), id="a call behind it may do the same"),
    ],
)
def test_nobody_is_accused_where_figures_leave_it_open(tmp_path: Path, right: list[Entry]) -> None:
    found = compared(tmp_path, capped(30.0), right)
    assert found.first is None or "goes through" not in found.first.entered


def test_a_call_that_changes_no_figure_is_nothing_to_see(tmp_path: Path) -> None:
    """A cap that nothing comes near."""
    found = compared(tmp_path, capped(1e5), capped(None))
    assert not found.is_suspicious


def test_what_a_call_of_one_side_changes_cannot_be_told(tmp_path: Path) -> None:
    found = compared(tmp_path, capped(1e5), capped(None))
    text = " ".join(sentences(found, first_case(found)))
    assert "what Torch.tanh.0.forward on the left alone changes, which rounding may hide" in text


def test_calls_that_both_sides_make_leave_nothing_open(tmp_path: Path) -> None:
    found = compared(tmp_path, capped(30.0), capped(30.0, noise=1e-3))
    assert "alone changes" not in " ".join(sentences(found, first_case(found)))


@pytest.mark.parametrize(("factor", "is_named"), [(0.9, True), (0.997, False)])
def test_the_factor_of_a_hook_is_known_behind_whatever_was_off_before(
    tmp_path: Path, factor: float, is_named: bool
) -> None:
    """A hook multiplies a gradient by a number; five thousandths are what figures show."""
    given = half(DRAW.normal(size=(ROWS, WIDTH)))
    sides: list[list[Entry]] = []
    for is_hooked in (False, True):
        before = half(given.astype(np.float32) * (1.004 if is_hooked else 1.0))
        scaled = half(before.astype(np.float32) * factor) if is_hooked else before
        sides.append(
            [("Torch.sin.0.forward", [X], half(np.sin(X))),
             ("Torch.tanh.0.forward", [half(np.sin(X))], half(np.tanh(np.sin(X)))),
             ("Torch.tanh.0.backward", [given], [before]),
             *([("Tensor.__mul__.0.forward", [before, factor], scaled)] if is_hooked else []),
             ("Torch.sin.0.backward", [scaled], [half(np.cos(X) * scaled)])]
        )  # fmt: skip
    first = compared(tmp_path, sides[0], sides[1]).first
    is_told = first is not None and f"is {factor:g} times" in first.entered
    assert is_told is is_named


def test_a_weight_that_is_read_in_every_step_of_a_loop_counts_once(tmp_path: Path) -> None:
    def looped(factor: float) -> list[Entry]:
        x, weight = X.astype(np.float32), (W * np.float32(factor)).astype(np.float32)
        made: list[Entry] = []
        for step in range(3):
            y = (x @ weight.T).astype(np.float32)
            made.append((f"Functional.linear.{step}.forward", [x, weight], y))
            x = y
        return made

    rows = [
        next(row.right for row in compared(tmp_path / str(n), looped(1), looped(factor))
             .hyperparameters if row.name == "initial weights")
        for n, factor in enumerate((1.0, 1.02))
    ]  # fmt: skip
    assert rows == ["equal extremes, means and norms (1 compared)", "1 of 1 differ"]


@pytest.mark.parametrize("is_masked", [True, False])
def test_scores_that_are_masked_agree_by_one_figure_which_tells_nothing(
    tmp_path: Path, is_masked: bool
) -> None:
    """The bias of one side is 1.1 times the other's; behind the mask the largest score is one."""
    scores = DRAW.normal(size=(ROWS, ROWS)).astype(np.float32)
    scores[0, 0] = 9.0
    bias = np.tril(DRAW.normal(size=(ROWS, ROWS)).astype(np.float32)) * np.float32(0.2)
    bias[0, 0] = 0.0
    sides: list[list[Entry]] = []
    for factor in (1.0, 1.1):
        other = (bias * np.float32(factor)).astype(np.float32)
        y = scores + other
        hidden = np.triu(np.ones((ROWS, ROWS), bool), 1)
        z = np.where(hidden, np.float32(-np.inf if is_masked else -3.0), y)
        p = np.exp(z - z.max(-1, keepdims=True))
        shares = (p / p.sum(-1, keepdims=True)).astype(np.float32)
        product: Entry = ("Tensor.__mul__.0.forward", [bias, factor], other)
        with np.errstate(invalid="ignore"):
            sides.append(
                [("Torch.sin.0.forward", [scores], scores),
                 *([product] if factor != 1 else []),
                 ("Tensor.__add__.0.forward", [scores, other], y),
                 ("Tensor.masked_fill.0.forward", [y, hidden, -9.0], z),
                 ("Torch.softmax.0.forward", [z], shares)]
            )  # fmt: skip
    with np.errstate(invalid="ignore"):
        first = compared(tmp_path, sides[0], sides[1]).first
    assert first is not None
    assert first.pair.left.name == "Tensor.__add__.0.forward"

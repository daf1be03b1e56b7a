"""The figures of two loss curves against numpy, and each limit of the verdict from both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.compare.losses.comparison import LossComparison, compare_losses
from irtool.compare.losses.series import LossRun, Series


def run(values: list[float], first: int = 0) -> LossRun:
    return LossRun("run", "json", Series(dict(enumerate(values, start=first))))


def compared(left: list[float], right: list[float]) -> LossComparison:
    return compare_losses(run(left), run(right))


def alternating(count: int, size: float) -> list[float]:
    return [size * (-1) ** step for step in range(count)]


LOSSES = st.lists(st.tuples(st.floats(0.5, 8), st.floats(-0.2, 0.2)), min_size=5, max_size=40)


@settings(max_examples=80)
@given(LOSSES)
def test_the_figures_are_those_of_numpy(pairs: list[tuple[float, float]]) -> None:
    left = np.array([value for value, _ in pairs])
    right = left + np.array([delta for _, delta in pairs])
    found = compared(list(left), list(right))
    delta = right - left
    relative = np.abs(delta) / left
    count = len(pairs)
    assert found.first == pytest.approx(relative[0], abs=1e-12)
    assert found.mae == pytest.approx(np.abs(delta).mean(), abs=1e-12)
    assert found.mre == pytest.approx(relative.mean(), abs=1e-12)
    assert found.late_mre == pytest.approx(relative[-(count // 4) :].mean(), abs=1e-12)
    assert found.worst[0] == pytest.approx(relative.max(), abs=1e-12)
    assert relative[found.worst[1]] == pytest.approx(relative.max(), abs=1e-12)
    assert found.drift.mean == pytest.approx(delta.mean(), abs=1e-12)
    assert found.drift.relative == pytest.approx(delta.mean() / left.mean(), abs=1e-12)
    if np.any(delta):
        assert found.drift.positive == pytest.approx((delta > 0).sum() / (delta != 0).sum())
    steps = [np.diff(left), np.diff(right)]
    if min(step.std() for step in steps) > 1e-6:
        assert found.increments == pytest.approx(np.corrcoef(*steps)[0, 1], abs=1e-6)


@settings(max_examples=80)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=60))
def test_the_standard_error_counts_that_neighbours_go_together(deltas: list[float]) -> None:
    """Newey and West, 1987: autocovariances with Bartlett weights over a window of steps."""
    values = np.array(deltas)
    base = [10.0] * len(deltas)
    found = compared(base, list(10.0 + values)).drift
    moved = (10.0 + values) - 10.0
    window = min(len(deltas) - 1, max(1, round(math.sqrt(len(deltas)))))
    centred = moved - moved.mean()
    covariances = [
        float(centred[lag:] @ centred[: len(deltas) - lag]) / len(deltas)
        for lag in range(window + 1)
    ]
    variance = covariances[0] + 2 * sum(
        (1 - lag / (window + 1)) * covariances[lag] for lag in range(1, window + 1)
    )
    assert found.lag == window
    if variance > 1e-9:
        expected = moved.mean() / math.sqrt(variance / len(deltas))
        assert found.t == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0009, "noise"), (1.0011, "different from the first step")]
)
def test_a_first_loss_off_by_a_thousandth_is_another_forward_pass(
    factor: float, verdict: str
) -> None:
    left = [4.0] * 12
    noise = alternating(12, 0.004)
    right = [value + delta for value, delta in zip(left, noise, strict=True)]
    right[0] = left[0] * factor
    assert compared(left, right).verdict == verdict


@pytest.mark.parametrize(("steps", "verdict"), [(7, "noise"), (8, "drift")])
def test_a_drift_needs_eight_steps(steps: int, verdict: str) -> None:
    assert compared([4.0] * steps, [4.001] * steps).verdict == verdict


@pytest.mark.parametrize(("times_the_floor", "verdict"), [(9.5, "noise"), (10.5, "drift")])
def test_a_drift_is_more_than_ten_times_the_noise_of_repeats(
    times_the_floor: float, verdict: str
) -> None:
    left = [4.0] * 40
    floor = 1e-4
    repeat = run([value + delta for value, delta in zip(left, alternating(40, floor), strict=True)])
    right = run([value + times_the_floor * floor for value in left])
    found = compare_losses(run(left), right, [repeat])
    assert found.floor == pytest.approx(floor)
    assert found.floor_from == "repeats"
    assert found.verdict == verdict


@pytest.mark.parametrize(("wave", "verdict"), [(1.0, "drift"), (60.0, "noise")])
def test_a_mean_that_is_small_beside_its_waves_is_chance(wave: float, verdict: str) -> None:
    """t is the mean over its standard error; slow waves of the difference make it uncertain."""
    left = [4.0] * 64
    right = [4.0 + 1e-4 + wave * 1e-5 * math.sin(step / 9) for step in range(64)]
    found = compared(left, right)
    assert (abs(found.drift.t) > 4) == (verdict == "drift")
    assert found.verdict == verdict


@pytest.mark.parametrize(("gaps", "change"), [(4, 30), (5, None)])
def test_a_change_is_where_four_in_five_of_the_next_twenty_steps_stay_away(
    gaps: int, change: int | None
) -> None:
    deltas = [0.0] * 30 + [1e-2] * 20
    for place in range(31, 31 + 2 * gaps, 2):
        deltas[place] = 0.0
    found = compared([4.0] * 50, [4.0 + delta for delta in deltas])
    assert (found.change_step == 30) == (change == 30)


@pytest.mark.parametrize(("jump", "is_told"), [(7.5, False), (8.5, True)])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_jump_of_eight_times_the_usual_change_is_a_spike(
    jump: float, is_told: bool, side: str
) -> None:
    """In units of the median change from the median, as a normal distribution has it."""
    usual = [0.0]
    for step in range(60):
        usual.append(usual[-1] + 0.01 * (1 if step % 2 else -1))
    spread = 1.4826 * 0.01
    jumping = list(usual)
    for place in range(30, len(jumping)):
        jumping[place] += jump * spread - (jumping[30] - jumping[29] if place == 30 else 0.0)
    jumping[30] = jumping[29] + jump * spread
    curves = {"left": [4 + v for v in usual], "right": [4 + v for v in usual]}
    curves[side] = [4 + v for v in jumping]
    found = compared(curves["left"], curves["right"])
    assert ((30, side) in found.spikes) == is_told


@pytest.mark.parametrize(
    ("error", "grade"),
    [
        (0.0049, "below 0.5 %"),
        (0.0051, "below 1 %"),
        (0.0099, "below 1 %"),
        (0.0101, "below 2 %"),
        (0.0199, "below 2 %"),
        (0.0201, "2 % or more"),
    ],
)
def test_grades_by_the_mean_relative_error(error: float, grade: str) -> None:
    assert compared([4.0] * 10, [4.0 * (1 + error)] * 10).grade == grade


@pytest.mark.parametrize(("ours", "theirs"), [(0, 1), (1, 0), (3, 4), (0, 2), (5, 5)])
def test_only_counting_from_zero_and_from_one_is_put_right(ours: int, theirs: int) -> None:
    values = [4.0 - 0.1 * step for step in range(10)]
    found = compare_losses(run(values, ours), run(values, theirs))
    aligned = {ours, theirs} == {0, 1}
    assert found.offset == (ours - theirs if aligned else 0)
    assert found.only_left == found.only_right == (0 if aligned else abs(ours - theirs))
    assert found.verdict == "identical" or (not aligned and ours != theirs)


def test_not_a_number_on_both_sides_is_no_difference() -> None:
    left = [4.0, math.nan, 3.0, math.inf, 2.0, 1.0]
    right = [4.0, math.nan, math.nan, 2.5, 2.0, 1.0]
    found = compared(left, right)
    assert found.broken == ((2, "right"), (3, "left"))
    assert found.steps == (0, 1, 2, 3, 4, 5)
    assert found.mae == 0.0
    assert found.is_suspicious

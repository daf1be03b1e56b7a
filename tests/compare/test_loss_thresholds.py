"""Each number that decides what is said of two loss curves, with a case on either side of it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

import pytest

from irtool.compare.losses.comparison import (
    FIRST_STEP,
    MULTIPLE_FEWEST,
    MULTIPLE_MOVES,
    MULTIPLE_SPREAD,
    LossComparison,
    NothingInCommon,
    _shift,
    compare_losses,
)
from irtool.compare.losses.series import LossRun, Series, quantum_of, series

FLOOR = 2.0**-24
"""What rounding makes of a loss of 1."""


def run(values: Sequence[float], first: int = 0, quantum: float = 0.0) -> LossRun:
    return LossRun("run", "json", Series(dict(enumerate(values, start=first)), quantum))


def ones(count: int) -> list[float]:
    return [1.0] * count


def compared(deltas: Sequence[float], *, quantum: float = 0.0, base: float = 1.0) -> LossComparison:
    """A flat curve against one that is off by so much at each step."""
    left = [base] * len(deltas)
    right = [base + delta for delta in deltas]
    return compare_losses(run(left), run(right, quantum=quantum))


# -- figures


def test_figures_of_four_steps_worked_out_by_hand() -> None:
    found = compare_losses(run([2.0, 4.0, 5.0, 8.0]), run([2.0, 5.0, 4.0, 8.4]))
    assert found.first == 0.0
    assert found.mae == pytest.approx((0 + 1 + 1 + 0.4) / 4)
    assert found.mre == pytest.approx((0 + 0.25 + 0.2 + 0.05) / 4)
    assert found.late_mre == pytest.approx(0.05)  # the last of four
    assert found.worst == (0.25, 1)
    assert found.drift.mean == pytest.approx(0.4 / 4)
    assert found.drift.relative == pytest.approx(0.1 / (19 / 4))
    assert found.drift.positive == pytest.approx(2 / 3)
    assert (found.steps, found.offset, found.only_left, found.only_right) == ((0, 1, 2, 3), 0, 0, 0)


def test_the_standard_error_counts_neighbours() -> None:
    """Four steps, two neighbours each: weights 2/3 and 1/3 (Newey and West)."""
    deltas = [1.0, 2.0, 4.0, 5.0]
    d = [delta - 3.0 for delta in deltas]
    variance = fmean(x * x for x in d)
    variance += 2 * (2 / 3) * (d[1] * d[0] + d[2] * d[1] + d[3] * d[2]) / 4
    variance += 2 * (1 / 3) * (d[2] * d[0] + d[3] * d[1]) / 4
    found = compared(deltas).drift
    assert found.lag == 2
    assert found.t == pytest.approx(3.0 / math.sqrt(variance / 4))


def test_a_constant_difference_is_no_chance_at_all() -> None:
    assert compared([0.5] * 4).drift.t == math.inf
    assert compared([-0.5] * 4).drift.t == -math.inf
    assert compared([0.0] * 4).drift.t == 0.0
    single = compared([0.5]).drift
    assert (single.lag, single.mean) == (0, 0.5)


def test_increments_that_go_together() -> None:
    up = [1.0, 2.0, 4.0, 5.0]
    assert compare_losses(run(up), run([2 * v for v in up])).increments == pytest.approx(1.0)
    assert compare_losses(run(up), run([-v for v in up])).increments == pytest.approx(-1.0)
    assert compare_losses(run(up[:2]), run(up[:2])).increments is None
    flat = [1.0, 2.0, 3.0, 4.0]
    assert compare_losses(run(flat), run(up)).increments is None  # one of them never changes


# -- verdicts


@pytest.mark.parametrize(
    ("first", "verdict"),
    [(0.9e-3, "noise"), (1.1e-3, "different from the first step")],
)
def test_the_first_loss_may_differ_by_a_thousandth(first: float, verdict: str) -> None:
    assert compared([first, -first, first, -first]).verdict == verdict


@pytest.mark.parametrize(("count", "verdict"), [(7, "noise"), (8, "drift")])
def test_fewer_than_eight_steps_are_no_drift(count: int, verdict: str) -> None:
    assert compared([1e-4] * count).verdict == verdict
    assert compared([-1e-4] * count).verdict == verdict


@pytest.mark.parametrize(("times", "verdict"), [(9.5, "noise"), (10.5, "drift")])
def test_a_drift_is_ten_times_the_noise_of_rounding(times: float, verdict: str) -> None:
    assert compared([times * FLOOR] * 30).verdict == verdict


@pytest.mark.parametrize(("times", "verdict"), [(9.5, "noise"), (10.5, "drift")])
def test_printed_digits_raise_the_noise(times: float, verdict: str) -> None:
    """Of digits of weight 2e-6 half is noise."""
    found = compared([times * 1e-6] * 30, quantum=2e-6)
    assert (found.floor_from, found.floor) == ("printed digits", 1e-6)
    assert found.verdict == verdict


def test_repeats_are_the_noise_and_the_largest_counts() -> None:
    repeats = [run([1 + d] * 4) for d in (1e-3, -3e-3, 2e-3)]
    found = compare_losses(run(ones(4)), run(ones(4)), repeats)
    assert (found.floor_from, found.floor) == ("repeats", pytest.approx(3e-3))
    other = compare_losses(run(ones(4)), run(ones(4)), [run(ones(4), first=90)])
    assert other.floor_from == "rounding"
    broken = run([math.nan, 1.001, 1.001, math.inf])
    assert compare_losses(run(ones(4)), run(ones(4)), [broken]).floor == pytest.approx(1e-3)


def test_chance_goes_both_ways() -> None:
    """A mean of four standard errors is no chance; of few steps that go together it takes more.

    Of 400 steps with 20 neighbours it takes 4 * (1 + 3 * 20 / 400) = 4.6 of them.
    """

    def of(t: float) -> LossComparison:
        swing = [1e-4 if n % 2 else -1e-4 for n in range(400)]
        plain = compared(swing).drift
        error = compared([s + 1e-5 for s in swing]).drift
        scale = 1e-5 / error.t
        assert plain.mean == pytest.approx(0.0, abs=1e-12)
        return compared([s + t * scale for s in swing])

    assert of(4.5).drift.t == pytest.approx(4.5, rel=1e-2)
    assert of(4.5).verdict == "noise"
    assert of(4.7).verdict == "drift"


@pytest.mark.parametrize(
    ("mre", "grade"),
    [
        (0.0049, "below 0.5 %"), (0.0051, "below 1 %"), (0.0099, "below 1 %"),
        (0.0101, "below 2 %"), (0.0199, "below 2 %"), (0.0201, "2 % or more"),
    ],
)  # fmt: skip
def test_grades(mre: float, grade: str) -> None:
    assert compared([mre] * 4).grade == grade


# -- where they part


def change(deltas: Sequence[float]) -> int | None:
    return compared(deltas).change_step


def test_the_step_from_which_differences_stay() -> None:
    assert change([0.0] * 30 + [1e-3] * 30) == 30
    assert change([0.0] * 60) is None
    assert change([1e-3] * 60) == 0


@pytest.mark.parametrize(("times", "step"), [(9.0, None), (11.0, 30)])
def test_they_stay_ten_times_above_what_was_before(times: float, step: int | None) -> None:
    """Before it differences of 1e-5."""
    deltas = [1e-5 if n % 2 else -1e-5 for n in range(30)]
    assert compared([d / 1e4 for d in deltas] + [1e-5] * 30).change_step == 30
    # The first differences are above the floor of rounding themselves: they begin at the start.
    found = change([1e-7] * 2 + [times * 1e-7 * 10] * 1)
    assert found is None  # too few behind it
    assert change([FLOOR] * 30 + [times * FLOOR] * 30) == step


@pytest.mark.parametrize(("above", "step"), [(15, None), (16, 30)])
def test_of_twenty_steps_behind_it_sixteen_are_above(above: int, step: int | None) -> None:
    """Those that follow are below."""
    window = [1e-3] * above + [0.0] * (20 - above)
    assert change([0.0] * 30 + window + [0.0] * 40) == step


@pytest.mark.parametrize(("left", "step"), [(4, None), (5, 30)])
def test_at_least_five_steps_lie_behind_it(left: int, step: int | None) -> None:
    assert change([0.0] * 30 + [1e-3] * left) == step
    assert change([1e-3] * 4) == 0  # of four there are no five


@pytest.mark.parametrize(("left", "is_known"), [(19, False), (20, True)])
def test_the_drift_behind_a_change_needs_twenty_steps(left: int, is_known: bool) -> None:
    found = compared([0.0] * 300 + [1e-5 + (1e-6 if n % 2 else 0.0) for n in range(left)])
    assert found.change_step == 300
    assert (found.drift_after is not None) == is_known
    if found.drift_after is not None:
        assert found.drift_after.mean == pytest.approx(1.05e-5, rel=1e-3)
        assert found.verdict == "drift"
    assert compared([1e-3] * 60).drift_after is None  # all of it is behind the first step


# -- spikes and breaks


def wobble(count: int) -> list[float]:
    """Increments of 0, 0.01 and -0.01 in turn: around 0, with a spread of 0.01."""
    return [1.0 + (0.01 if n % 3 == 2 else 0.0) for n in range(count)]


@pytest.mark.parametrize(("jump", "is_spike"), [(7.5, False), (8.5, True)])
def test_a_jump_of_eight_spreads_that_the_other_does_not_make(jump: float, is_spike: bool) -> None:
    left = wobble(40)
    right = list(left)
    right[22:] = [value + jump * 1.4826 * 0.01 for value in right[22:]]
    found = compare_losses(run(left), run(right)).spikes
    assert found == (((22, "right"),) if is_spike else ())
    turned = compare_losses(run(right), run(left)).spikes
    assert turned == (((22, "left"),) if is_spike else ())


@pytest.mark.parametrize(("other", "is_spike"), [(3.5, True), (4.5, False)])
def test_a_jump_that_both_make_is_none(other: float, is_spike: bool) -> None:
    sides: list[list[float]] = []
    for jump in (20.0, other):
        side = wobble(40)
        side[22:] = [value + jump * 1.4826 * 0.01 for value in side[22:]]
        sides.append(side)
    assert bool(compare_losses(run(sides[0]), run(sides[1])).spikes) == is_spike


def test_steps_at_which_only_one_is_no_number() -> None:
    left = [1.0, math.nan, 1.0, math.inf, math.nan, 1.0]
    right = [1.0, 1.0, math.inf, math.nan, math.inf, 1.0]
    found = compare_losses(run(left), run(right))
    assert found.broken == ((1, "left"), (2, "right"))
    assert found.is_suspicious
    assert found.verdict == "identical"
    assert found.mae == 0.0
    begins = compare_losses(run([math.nan, 1.0]), run([1.0, 1.0]))
    assert (begins.first, begins.verdict) == (math.inf, "different from the first step")


# -- steps


@pytest.mark.parametrize(
    ("left", "right", "offset"),
    [((0, 5), (1, 5), -1), ((1, 5), (0, 5), 1), ((1, 5), (2, 5), 0), ((0, 5), (2, 5), 0),
     ((0, 5), (1, 6), 0), ((0, 5), (0, 5), 0)],
)  # fmt: skip
def test_runs_that_count_from_0_and_from_1(
    left: tuple[int, int], right: tuple[int, int], offset: int
) -> None:
    found = compare_losses(run(ones(left[1]), left[0]), run(ones(right[1]), right[0]))
    assert found.offset == offset


def test_steps_of_one_side_are_counted() -> None:
    found = compare_losses(run(ones(9)), run(ones(10), first=4))
    assert (found.steps, found.only_left, found.only_right) == ((4, 5, 6, 7, 8), 4, 5)
    with pytest.raises(
        NothingInCommon, match="steps 0 to 2 on the left, steps 7 to 9 on the right"
    ):
        compare_losses(run(ones(3)), run(ones(3), first=7))
    with pytest.raises(NothingInCommon, match="no steps on the left"):
        compare_losses(run([]), run(ones(3)))


# -- digits


@pytest.mark.parametrize(
    ("text", "quantum"),
    [
        ("2.345", 1e-3), ("1.23E+00", 1e-2), ("1.5e-3", 1e-4), ("12", 1.0), ("-0.5", 0.1),
        ("1.23456789012", 0.0), ("1.2345678901", 1e-10), ("0.001234567890", 1e-12),
        ("nan", 0.0), ("", 0.0), ("1e9999", 0.0),
    ],
)  # fmt: skip
def test_the_weight_of_the_last_digit(text: str, quantum: float) -> None:
    assert quantum_of(text) == pytest.approx(quantum)


def test_the_coarsest_of_a_log_counts() -> None:
    assert series([(0, "1.234"), (1, "1.2"), (2, "1.23")]).quantum == 0.1


@pytest.mark.parametrize(
    ("values", "quantum"),
    [
        ([1.0078125, 2.015625], 2.0**-6),  # 8 bits; the larger one counts
        ([1.0078125], 2.0**-7),
        ([1.00390625, 1.0078125], 0.0),  # 9 bits
        ([1.5, 2.5], 0.0),  # short by themselves
    ],
)
def test_a_loss_of_eight_bits_has_their_unit(values: list[float], quantum: float) -> None:
    assert series(enumerate(values)).quantum == quantum


@pytest.mark.parametrize(("value", "is_finite"), [(9.9e99, True), (1e100, False), (-1e100, False)])
def test_no_training_prints_numbers_that_large(value: float, is_finite: bool) -> None:
    found = series([(0, value)]).values[0]
    assert math.isfinite(found) == is_finite
    assert math.copysign(1, found) == math.copysign(1, value)


# -- curves that part


def parted(count: int, factor: float, noise: float = 0.0, since: int = 0) -> LossComparison:
    """A falling curve and another, the same times ``factor`` from the middle or ``since`` on.

    Both scatter, each in its own way.
    """
    curve = [3 * math.exp(-n / count) + 0.5 for n in range(count)]
    start = since or count // 2
    left = [value + noise * (-1) ** n for n, value in enumerate(curve)]
    right = [
        value * (factor if n >= start else 1) + noise * (-1) ** (n // 2)
        for n, value in enumerate(curve)
    ]
    return compare_losses(run(left), run(right))


@pytest.mark.parametrize("count", [12, 100, 12_000])
def test_curves_that_part_for_good_are_told_at_any_length(count: int) -> None:
    found = parted(count, 2.0)
    assert (found.verdict, found.change_step) == ("drift", count // 2)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_it_does_not_matter_which_of_the_two_is_higher(factor: float) -> None:
    found = parted(12, factor)
    assert (found.verdict, found.change_step) == ("drift", 6)


@pytest.mark.parametrize(("since", "told"), [(8, True), (10, True), (11, False)])
def test_two_steps_behind_a_jump_are_enough(since: int, told: bool) -> None:
    assert (parted(12, 2.0, since=since).verdict == "drift") is told


@pytest.mark.parametrize(("since", "told"), [(3, True), (2, False)])
def test_a_jump_needs_three_equal_steps_before_it(since: int, told: bool) -> None:
    assert (parted(since + 4, 2.0, since=since).verdict == "drift") is told


@pytest.mark.parametrize(("noise", "told"), [(0.01, True), (0.1, False)])
def test_what_scatters_does_not_jump_until_five_steps_tell(noise: float, told: bool) -> None:
    assert (parted(12, 2.0, noise, since=8).verdict == "drift") is told


@pytest.mark.parametrize("count", [12, 1200])
@pytest.mark.parametrize(("factor", "told"), [(1.0011, True), (1.0009, False), (0.9989, True)])
def test_equal_curves_that_leave_each_other_have_parted_from_a_thousandth_on(
    count: int, factor: float, told: bool
) -> None:
    curve = [3 * math.exp(-n / count) + 0.5 for n in range(count)]
    right = [value * (factor if n >= count // 2 else 1) for n, value in enumerate(curve)]
    assert (_shift(range(count), curve, right, FLOOR) == count // 2) is told
    if told:
        found = parted(count, factor)
        assert (found.verdict, found.change_step) == ("drift", count // 2)


def shifted(shift: float, before: float = 0.0, behind: float = 0.0, count: int = 40) -> int | None:
    """The step of a shift in the middle, by what swings before it and behind it."""
    middle = count // 2
    swing = [before * (-1) ** (n // 2) for n in range(middle)]
    swing += [shift + behind * (-1) ** (n // 2) for n in range(count - middle)]
    return _shift(range(count), ones(count), [1 + delta for delta in swing], FLOOR)


@pytest.mark.parametrize(("before", "told"), [(0.00124, True), (0.00126, False)])
def test_they_leave_by_eight_times_what_they_were_apart(before: float, told: bool) -> None:
    assert (shifted(0.01, before) is not None) is told


@pytest.mark.parametrize(("behind", "told"), [(0.0019, True), (0.0021, False)])
def test_no_other_step_of_the_difference_is_a_third_of_the_leap(behind: float, told: bool) -> None:
    assert (shifted(0.01, 0.0, behind) is not None) is told


@pytest.mark.parametrize(("steps", "told"), [(1, True), (2, False), (10, False)])
def test_what_grows_over_some_steps_is_no_leap(steps: int, told: bool) -> None:
    right = [1 + 0.01 * min(1.0, max(0, n - 19) / steps) for n in range(40)]
    assert (_shift(range(40), ones(40), right, FLOOR) is not None) is told


@pytest.mark.parametrize(("floor", "told"), [(0.9e-3, True), (1.1e-3, False)])
def test_a_leap_is_ten_times_the_floor(floor: float, told: bool) -> None:
    right = [*ones(20), *[1.01] * 20]
    assert (_shift(range(40), ones(40), right, floor) is not None) is told


@pytest.mark.parametrize(("behind", "told"), [(5, True), (4, False)])
def test_five_steps_behind_a_small_leap_tell(behind: int, told: bool) -> None:
    right = [*ones(12), *[1.01] * behind]
    assert (_shift(range(12 + behind), ones(12 + behind), right, FLOOR) is not None) is told


@pytest.mark.parametrize(("noise", "told"), [(0.05, True), (1.0, False)])
def test_curves_part_by_more_than_their_own_noise(noise: float, told: bool) -> None:
    assert (parted(12, 1.5, noise).verdict == "drift") is told


# -- curves that part at the first update


def updated(second: float, first: float = 0.0, later: float = 0.01, stride: int = 1) -> str:
    """The verdict of two curves of five steps, by the relative difference of the first two."""
    left = [2.0, 1.9, 1.8, 1.7, 1.6]
    apart = [first, second, later, -later, later]
    right = [value * (1 + d) for value, d in zip(left, apart, strict=True)]
    ours, theirs = (
        LossRun("a", "csv", Series({n * stride: value for n, value in enumerate(values)}))
        for values in (left, right)
    )
    return compare_losses(ours, theirs).verdict


@pytest.mark.parametrize(("second", "told"), [(1.1e-3, True), (0.9e-3, False)])
def test_one_update_makes_no_thousandth_of_equal_losses(second: float, told: bool) -> None:
    assert (updated(second) == "drift") is told


@pytest.mark.parametrize(("first", "told"), [(0.9e-5, True), (1.1e-5, False)])
def test_first_losses_that_differ_say_nothing_of_the_update(first: float, told: bool) -> None:
    assert (updated(0.003, first) == "drift") is told


def test_steps_that_are_not_in_a_row_hide_many_updates() -> None:
    assert updated(0.003, stride=100) == "noise"


def test_three_steps_behind_the_update_are_apart() -> None:
    assert updated(0.003, later=0.0005) == "noise"


# -- curves that differ by noise from the first step on, and part later


def wandering(count: int, shift: float, split: int) -> LossComparison:
    """A curve and one of other data, which is higher by so much from a step on."""
    draw = random.Random(3)
    left = [1.0 + draw.gauss(0, 0.03) for _ in range(count)]
    right = [1.0 + draw.gauss(0, 0.03) + shift * (step >= split) for step in range(count)]
    return compare_losses(run(left), run(right))


@pytest.mark.parametrize(("shift", "told"), [(0.1, True), (0.0, False), (-0.1, True)])
def test_behind_noise_from_the_first_step_a_parting_is_still_seen(shift: float, told: bool) -> None:
    found = wandering(400, shift, 250)
    assert found.verdict == ("drift" if told else "noise")
    assert (found.change_step == 250) is told


@pytest.mark.parametrize(("shift", "told"), [(0.03, True), (0.01, False)])
def test_such_a_parting_is_more_than_two_percent(shift: float, told: bool) -> None:
    assert (wandering(4000, shift, 2000).verdict == "drift") is told


@pytest.mark.parametrize(("shift", "told"), [(0.12, True), (0.04, False)])
def test_such_a_parting_is_ten_standard_errors(shift: float, told: bool) -> None:
    assert (wandering(120, shift, 60).verdict == "drift") is told


# -- a single step


@pytest.mark.parametrize(("size", "verdict"), [(0.09, "noise"), (0.11, "spike")])
def test_a_jump_of_one_step_is_a_tenth_of_the_loss(size: float, verdict: str) -> None:
    found = compared([0.0, 0.0, 0.0, -size, 0.0, 0.0, 0.0])
    assert (found.verdict, found.spike_step) == (verdict, 3 if verdict == "spike" else None)
    assert found.is_suspicious == (verdict == "spike")


@pytest.mark.parametrize(("size", "verdict"), [(0.19, "noise"), (0.21, "spike")])
def test_a_jump_of_one_step_is_four_times_all_other_differences(size: float, verdict: str) -> None:
    draw = random.Random(5)
    swing = [5e-4, *[draw.uniform(-0.04, 0.04) for _ in range(60)], 0.05, -0.05, 0.0]
    swing[30] = size
    assert compared(swing).verdict == verdict


@pytest.mark.parametrize(("count", "verdict"), [(5, "noise"), (6, "spike")])
def test_a_jump_has_five_other_steps_around_it(count: int, verdict: str) -> None:
    assert compared([0.0, 0.0, 0.5, *[0.0] * (count - 3)]).verdict == verdict


def test_what_begins_at_the_last_step_is_no_single_one() -> None:
    assert compared([*[0.0] * 9, 0.5]).verdict == "noise"


def parting(shares: Sequence[float], first_step: int = 0, stride: int = 1) -> LossComparison:
    """Curves that begin alike and are so large a part of the loss apart after each update."""
    curve = [3 * math.exp(-n / 4) + 1 for n in range(len(shares))]
    steps = [first_step + stride * n for n in range(len(shares))]
    left = dict(zip(steps, curve, strict=True))
    right = {
        step: loss * (1 + share) for step, loss, share in zip(steps, curve, shares, strict=True)
    }
    return compare_losses(
        LossRun("left", "csv", Series(left, 1e-6)), LossRun("right", "csv", Series(right, 1e-6))
    )


def steadily(last: float, updates: int) -> list[float]:
    """Shares that grow alike from update to update, up to the last one."""
    return [last * n / updates for n in range(updates + 1)]


@pytest.mark.parametrize(("last", "told"), [(0.0031, True), (0.0029, False)])
def test_first_updates_part_curves_steadily_by_three_thousandths_at_least(
    last: float, told: bool
) -> None:
    assert (parting(steadily(last, 11)).verdict == "drift") is told


@pytest.mark.parametrize(("updates", "told"), [(8, True), (7, False)])
def test_eight_updates_tell_that_curves_part_steadily(updates: int, told: bool) -> None:
    assert (parting(steadily(0.0035, updates)).verdict == "drift") is told


@pytest.mark.parametrize(("factor", "told"), [(1.25, True), (1.35, False), (3.0, False)])
def test_what_grows_by_factors_is_chaos(factor: float, told: bool) -> None:
    """Half of the updates make more than a quarter of a steady difference."""
    shares = [0.0, *(0.004 * factor ** (n - 10) for n in range(11))]
    assert (parting(shares).verdict == "drift") is told


@pytest.mark.parametrize(("share", "since"), [(0.45, 1), (0.55, 5)])
def test_curves_that_leap_part_where_they_leap(share: float, since: int) -> None:
    shares = [0.0, *(0.001 * n for n in range(1, 12))]
    leap = shares[-1] * share / (1 - share)
    apart = [value + (leap if n >= 5 else 0.0) for n, value in enumerate(shares)]
    assert parting(apart).change_step == since


def test_steady_parting_is_told_of_steps_in_a_row_alone() -> None:
    assert parting(steadily(0.005, 11), first_step=100).verdict == "drift"
    assert parting(steadily(0.005, 11), stride=10).verdict == "noise"


def test_the_limit_of_few_steps_is_the_one_that_is_told() -> None:
    assert parting(steadily(0.002, 11)).drift.limit == pytest.approx(4 * (1 + 3 * 3 / 12))


@pytest.mark.parametrize(
    ("limit", "apart", "is_told"),
    [(FIRST_STEP, 0.0009, False), (FIRST_STEP, 0.0011, True), (2.0**-8, 0.0038, False),
     (2.0**-8, 0.0040, True)],
)  # fmt: skip
def test_first_losses_may_be_apart_by_what_their_forward_pass_rounds(
    limit: float, apart: float, is_told: bool
) -> None:
    found = compare_losses(run([3.0]), run([3.0 * (1 + apart)]), first_limit=limit)
    assert (found.verdict == "different from the first step") == is_told
    assert found.first_limit == limit


# -- multiples


def multiple(left: Sequence[float], right: Sequence[float]) -> float | None:
    comparison = compare_losses(run(left), run(right))
    assert (comparison.verdict == "multiple") == (comparison.multiple is not None)
    return comparison.multiple


FALLING = [2.0, 1.9, 1.7, 1.8, 1.5, 1.4]


def test_losses_that_are_summed_where_the_others_are_averaged() -> None:
    comparison = compare_losses(run(FALLING), run([4 * value for value in FALLING]))
    assert (comparison.multiple, comparison.change_step) == (4.0, None)
    assert comparison.is_suspicious, "nothing here says why"
    assert multiple([4 * value for value in FALLING], FALLING) == 0.25


def test_equal_losses_are_no_multiple() -> None:
    assert multiple(FALLING, FALLING) is None
    assert multiple(FALLING, [(1 + 0.99 * FIRST_STEP) * value for value in FALLING]) is None
    assert multiple(FALLING, [(1 + 1.01 * FIRST_STEP) * value for value in FALLING]) is not None


def test_a_multiple_is_the_same_at_every_step() -> None:
    for factor, is_one in ((0.99, True), (1.01, False)):
        right = [2 * value for value in FALLING]
        right[3] *= 1 + factor * MULTIPLE_SPREAD
        assert (multiple(FALLING, right) is not None) == is_one
    assert multiple(FALLING, [2 * value + 0.01 for value in FALLING]) is None
    assert multiple(FALLING, [*(2 * value for value in FALLING[:-1]), math.nan]) is None


def test_few_steps_and_flat_curves_tell_no_multiple() -> None:
    for count in (MULTIPLE_FEWEST - 1, MULTIPLE_FEWEST):
        right = [2 * value for value in FALLING[:count]]
        assert (multiple(FALLING[:count], right) is not None) == (count == MULTIPLE_FEWEST)
    for factor, moves in ((0.98, False), (1.02, True)):
        left = [1.0, 1.0, 1.0, 1.0 + factor * MULTIPLE_MOVES * MULTIPLE_SPREAD]
        assert (multiple(left, [2 * value for value in left]) is not None) == moves

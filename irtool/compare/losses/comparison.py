"""Two loss curves: where they part, how, and whether that is more than noise.

Differences of two healthy runs look random: their sign changes, and their mean is near 0.  A fault
pushes the loss to one side, be it ever so little.  So the mean of the signed difference is held
against its standard error, which counts that neighbouring steps go together (Newey and West, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median
from typing import Literal, TypeAlias

from irtool.compare.losses.series import LossRun, Series
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown

Verdict: TypeAlias = Literal[
    "identical", "noise", "spike", "drift", "different from the first step", "multiple"
]

FIRST_STEP = 1e-3
"""Relative error of the first loss above which the forward pass itself differs: ten times what
bfloat16 makes of a healthy network (3e-5 to 1e-4)."""
DRIFT_T = 4.0
"""Mean over standard error from which a signed difference is no chance."""
FEW_FACTOR = 3.0
"""How much more it has to be where neighbours are a large part of all steps: the standard error of
few steps that go together comes out too small (Kiefer and Vogelsang, 2005)."""
FEWEST = 8
"""Steps below which differences that go to one side are no drift: chance does that."""
FLOOR_FACTOR = 10.0
"""A mean difference below this many times the noise floor is not called a drift."""
CHANGE_FACTOR = 10.0
PART_FEWEST = 5
"""Steps on one side from which on curves that part by far more than their own noise have parted."""
PART_FACTOR = 4.0
"""How many times the noise of their difference the mean distance of two curves has to be: a mean of
five differences of such noise reaches that once in millions of pairs."""
PART_SHARE = 0.02
"""Part of the loss that it has to be besides: less is what healthy runs do."""
SHIFT_LEAST = FIRST_STEP
"""Part of the loss from which on curves that were alike and leave each other at once parted."""
SHIFT_BEFORE = 8.0
"""How many times as far apart as before they have to be then."""
SHIFT_STEP = 3.0
"""How many times any other step of their difference the one at which they part has to be, and of
how many differences around it (:data:`SHIFT_NEAR`)."""
SHIFT_NEAR = 20
SHIFT_SUDDEN = 0.5
"""Part of the distance that has to be there in the first steps behind it: what chaos makes of
rounding grows over many."""
SPLIT_FEWEST = 20
"""Steps on either side of a split of curves that differ by noise from the first step on."""
SPLIT_T = 10.0
"""Standard errors that the means of both sides have to be apart: noise of curves that go their own
ways wanders, and 4 is reached by chance."""
PART_MOST = 40
"""Steps up to which every step is tried as the one at which curves part: of longer ones the
differences before it tell."""
LEFT_SHARE = 0.25
"""Part of all steps for which one curve is on one side at the end, if it left the other slowly."""
OWN_FEWEST = 12
"""Steps that tell whether two curves share their noise."""
OWN_CORRELATION = 0.5
"""Of the bends of two curves: below it they do not share their batches."""
OWN_FACTOR = 3.0
"""How many times as much noise as the smoother curve the other has at most."""
OWN_FIRST = 4.0
"""How many times the noise of the differences the first one may be."""
JUMP_FEWEST = 2
"""Steps behind a jump from which on it is none of a single batch."""
JUMP_BEFORE = 3
"""Steps before a jump in which curves have to be alike, by a tenth of what a jump is at least."""
UPDATE_FIRST = 1e-5
"""Relative difference of first losses, printed digits too, up to which forward passes are one."""
UPDATE_FEWEST = 3
"""Steps behind such a first one that have to be apart by :data:`FIRST_STEP` each: what one update
makes of rounding is a hundred times less."""
STEADY_LEAST = 3 * FIRST_STEP
"""Part of the loss by which curves of one first loss part steadily in their first updates, if they
are no longer the same training: chaos makes of rounding less, and makes it grow by factors."""
STEADY_HALF = 0.25
"""Part of that which half of the updates make at least: of what grows by factors it is far less.
A single update makes at most twice as much: else the curves leap there."""
STEADY_STEPS = (FEWEST, 12)
"""Updates that tell so, at least and at most."""
MULTIPLE_FEWEST = 3
"""Common steps that tell whether one curve is a multiple of the other."""
MULTIPLE_SPREAD = 1e-4
"""How far the quotient of any step is from their median at most, relative to it."""
MULTIPLE_MOVES = 10.0
"""How many times that the left curve moves, relative to its level: of two flat curves the quotient
tells nothing."""
_ROUNDING = 2.0**-24
_WINDOW = 20
_PERSISTS = 0.8
_SPIKE_Z = 8.0
SPIKE_FACTOR = 4.0
"""How many times the largest other difference that of a single step has to be, to be no noise."""
SPIKE_SHARE = 0.1
"""Part of the loss that it has to be besides."""
SPIKE_FEWEST = 5
"""Other steps that tell what the noise is."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The mean signed difference (right minus left), its t value and the share of positive steps.

    ``relative`` is the mean over the mean loss; ``lag`` how many neighbouring steps were taken to
    go together; ``limit`` what ``t`` has to be above to be no chance.
    """

    mean: float
    relative: float
    t: float
    positive: float
    lag: int
    limit: float = DRIFT_T


@dataclass(frozen=True, slots=True)
class LossComparison(Shown):
    """What came of comparing two curves; errors are relative to the left one.

    Attributes:
        left: one run.
        right: the other.
        steps: steps that both have, in order.
        offset: added to the right one's steps so that they agree (0-based against 1-based).
        only_left: how many steps only the left one has.
        only_right: how many only the right one has.
        first: relative error of the first common step.
        mae: mean absolute error.
        mre: mean relative error.
        late_mre: mean relative error of the last quarter.
        worst: largest relative error, and its step.
        floor: absolute noise floor that was used, and where it is from.
        floor_from: ``repeats``, ``printed digits`` or ``rounding``.
        drift: of all common steps.
        drift_after: of those from ``change_step`` on; None where there is no change later than the
            first step, or too few steps behind it.
        change_step: first step from which the difference stays above the floor; None if none.
        spikes: steps at which one of the two jumps and the other does not.
        broken: steps at which only one of the two is NaN or infinite.
        increments: correlation of the steps' changes; None for fewer than three steps.
        verdict: in one word.
        spike_step: where one jumps by more than noise for that step alone; None if nowhere.
        own_ways: whether they differ from the first step on, each by a scatter of its own, as runs
            of other data or weights do.
        multiple: what the right losses are of the left ones at each step; None where that is no
            one number, or 1.
        first_limit: relative error of the first loss from which on the forward pass differs.
        grade: how large, by what is used in practice: below 0.5 %, below 1 %, below 2 %, above.
    """

    left: LossRun
    right: LossRun
    steps: tuple[int, ...]
    offset: int
    only_left: int
    only_right: int
    first: float
    mae: float
    mre: float
    late_mre: float
    worst: tuple[float, int]
    floor: float
    floor_from: str
    drift: Drift
    drift_after: Drift | None
    change_step: int | None
    spikes: tuple[tuple[int, str], ...]
    broken: tuple[tuple[int, str], ...]
    increments: float | None
    verdict: Verdict
    grade: str
    spike_step: int | None = None
    own_ways: bool = False
    multiple: float | None = None
    first_limit: float = FIRST_STEP

    @property
    def is_suspicious(self) -> bool:
        """Whether there is something to look for."""
        return self.verdict not in ("identical", "noise") or bool(self.broken)

    @property
    def values(self) -> tuple[list[float], list[float]]:
        """The left and the right loss at each of the common steps."""
        left, right = self.left.loss.values, self.right.loss.values
        return (
            [left[step] for step in self.steps],
            [right[step - self.offset] for step in self.steps],
        )

    @property
    def deltas(self) -> list[float]:
        """Right minus left at each of the common steps; 0 where one is not finite."""
        return [
            right - left if math.isfinite(left) and math.isfinite(right) else 0.0
            for left, right in zip(*self.values, strict=True)
        ]


class NothingInCommon(ValueError):
    """Two curves without a common step."""


def compare_losses(
    left: LossRun,
    right: LossRun,
    repeats: Sequence[LossRun] = (),
    first_limit: float = FIRST_STEP,
) -> LossComparison:
    """Compare two curves step by step.

    Args:
        left: the run that is trusted more.
        right: the other.
        repeats: more runs of the left side, whose differences are the noise floor.
        first_limit: relative error of the first loss above which the forward pass differs; more
            than :data:`FIRST_STEP` where both runs are known to round more coarsely.

    Raises:
        NothingInCommon: no step is in both.
    """
    common = _common(left, right)
    a, b, steps = common.left, common.right, common.steps
    deltas = [y - x for x, y in zip(a, b, strict=True)]
    relative = [abs(d) / max(abs(x), 1e-12) for d, x in zip(deltas, a, strict=True)]
    floor, floor_from = _floor(left, right, repeats, a)
    drift = _drift(deltas, a)
    first = relative[0] if common.starts else math.inf
    own_way = _goes_its_own_way(a, b)
    shown = _shown(left, right, a[0]) if a else 0.0
    parting = _parting(common, deltas, relative, floor, shown)
    change = parting.change
    after = _drift_after(steps, deltas, a, change)
    late = relative[-max(1, len(relative) // 4) :]
    worst = max(zip(relative, steps, strict=True), default=(0.0, common.every[0]))
    verdict: Verdict = "drift"
    if not parting.has_parted:
        start = first if first > _shown(left, right, common.ours[0]) and not own_way else 0.0
        share = PART_SHARE if own_way else 0.0
        verdict = _verdict(start, drift, after, deltas, floor, share, first_limit)
    multiple = _multiple(a, b) if len(steps) == len(common.every) else None
    if multiple is not None:
        verdict, change = "multiple", None
    spike = _lone_spike(steps, deltas, relative) if verdict == "noise" else None
    return LossComparison(
        left,
        right,
        tuple(common.every),
        common.offset,
        len(left.loss) - len(common.every),
        len(right.loss) - len(common.every),
        first,
        fmean(map(abs, deltas)) if deltas else 0.0,
        fmean(relative) if relative else 0.0,
        fmean(late) if late else 0.0,
        worst,
        floor,
        floor_from,
        drift,
        after,
        change if parting.jump is None or multiple is not None else parting.jump,
        _spikes(steps, a, b),
        _broken(common.every, common.ours, common.theirs),
        _correlation(_differences(a), _differences(b)),
        verdict if spike is None else "spike",
        _grade(fmean(relative) if relative else 0.0),
        spike,
        own_way and first > FIRST_STEP,
        multiple,
        first_limit,
    )


@dataclass(frozen=True, slots=True)
class _Common:
    """Two curves at the steps that both have.

    Attributes:
        offset: of the right curve's steps, taken off them.
        every: the steps, ascending, with the losses ``ours`` (left) and ``theirs``.
        steps: those at which both are finite, with ``left`` and ``right``.
        starts: whether the first of all steps is among these.
    """

    offset: int
    every: list[int]
    ours: list[float]
    theirs: list[float]
    steps: list[int]
    left: list[float]
    right: list[float]
    starts: bool


def _common(left: LossRun, right: LossRun) -> _Common:
    offset = _offset(left.loss, right.loss)
    moved = {step + offset: value for step, value in right.loss.values.items()}
    every = sorted(left.loss.values.keys() & moved.keys())
    if not every:
        raise NothingInCommon(
            f"the runs have no step in common: {_range(left.loss)} on the left, "
            f"{_range(right.loss)} on the right"
        )
    ours = [left.loss.values[step] for step in every]
    theirs = [moved[step] for step in every]
    finite = [n for n in range(len(every)) if math.isfinite(ours[n]) and math.isfinite(theirs[n])]
    return _Common(
        offset,
        every,
        ours,
        theirs,
        [every[n] for n in finite],
        [ours[n] for n in finite],
        [theirs[n] for n in finite],
        bool(finite) and finite[0] == 0,
    )


@dataclass(frozen=True, slots=True)
class _Parting:
    """Where curves part: at ``change`` by their differences, at ``jump`` at once; None: nowhere."""

    change: int | None
    jump: int | None
    has_parted: bool


def _parting(
    common: _Common,
    deltas: Sequence[float],
    relative: Sequence[float],
    floor: float,
    shown: float,
) -> _Parting:
    """Where and how two curves part, if they do; ``shown``: what printed digits cannot tell."""
    steps, a, b = common.steps, common.left, common.right
    change = _change_step(steps, deltas, floor)
    jump = _jump(steps, a, b)
    if jump is None and common.starts and _updates_differ(steps, deltas, relative, shown):
        jump = change = steps[1]
    if jump is not None or _have_parted(steps, a, b, change):
        return _Parting(change, jump, True)
    # Curves of other data go ways of their own: their levels wander.
    first = relative[0] if common.starts else math.inf
    others = _goes_its_own_way(a, b) and first > FIRST_STEP
    shift = None if others else _shift(steps, a, b, floor)
    split = _split(steps, a, b) or _split_of_noise(steps, a, b) or _left(steps, a, b)
    split = split if shift is None else shift
    return _Parting(change, jump, False) if split is None else _Parting(split, jump, True)


def _multiple(left: Sequence[float], right: Sequence[float]) -> float | None:
    """What the right losses are of the left ones, if it is one number at all steps, and not 1.

    Losses of one training that are summed where the other's are averaged, or scaled, are so.
    """
    if len(left) < MULTIPLE_FEWEST or not all(left):
        return None
    quotients = [y / x for x, y in zip(left, right, strict=True)]
    middle = median(quotients)
    level = fmean(map(abs, left))
    if abs(middle - 1) <= FIRST_STEP or max(left) - min(left) < (
        MULTIPLE_MOVES * MULTIPLE_SPREAD * level
    ):
        return None
    spread = max(abs(quotient - middle) for quotient in quotients)
    return middle if spread <= MULTIPLE_SPREAD * abs(middle) else None


def _offset(left: Series, right: Series) -> int:
    """1 or -1 where one run counts from 0 and the other from 1."""
    if not left.values or not right.values:
        return 0
    ours, theirs = left.steps, right.steps
    apart = ours[0] - theirs[0]
    same_rhythm = len(ours) == len(theirs) and ours[-1] - theirs[-1] == apart
    return apart if abs(apart) == 1 and same_rhythm and min(ours[0], theirs[0]) == 0 else 0


def _range(curve: Series) -> str:
    steps = curve.steps
    return f"steps {steps[0]} to {steps[-1]}" if steps else "no steps"


# -- noise ---------------------------------------------------------------------------------------


def _floor(
    left: LossRun, right: LossRun, repeats: Sequence[LossRun], losses: Sequence[float]
) -> tuple[float, str]:
    """The absolute difference that two healthy runs have, and what it was taken from."""
    differences = [_repeat_difference(left.loss, other.loss) for other in repeats]
    known = [value for value in differences if value is not None]
    if known:
        return max(known), "repeats"
    rounding = _ROUNDING * (median(map(abs, losses)) if losses else 0.0)
    printed = max(left.loss.quantum, right.loss.quantum) / 2
    return (printed, "printed digits") if printed > rounding else (rounding, "rounding")


def _repeat_difference(left: Series, other: Series) -> float | None:
    common = left.values.keys() & other.values.keys()
    deltas = [abs(left.values[step] - other.values[step]) for step in common]
    finite = [delta for delta in deltas if math.isfinite(delta)]
    return fmean(finite) if finite else None


def _drift(deltas: Sequence[float], losses: Sequence[float], all_steps: int = 0) -> Drift:
    count = len(deltas)
    if not count:
        return Drift(0.0, 0.0, 0.0, 0.0, 0)
    mean = fmean(deltas)
    lag = min(count - 1, round(count**0.5))
    error = _standard_error(deltas, mean, lag)
    t = mean / error if error > 0 else (math.copysign(math.inf, mean) if mean else 0.0)
    moved = [delta for delta in deltas if delta]
    positive = sum(delta > 0 for delta in moved) / len(moved) if moved else 0.0
    scale = fmean(map(abs, losses)) or 1.0
    return Drift(
        mean,
        mean / scale,
        t,
        positive,
        lag,
        DRIFT_T * (1 + FEW_FACTOR * lag / (all_steps or count)),
    )


def _drift_after(
    steps: Sequence[int], deltas: Sequence[float], losses: Sequence[float], change: int | None
) -> Drift | None:
    """The drift behind a change, which the steps before it would dilute."""
    if change is None or not steps or change == steps[0]:
        return None
    start = steps.index(change)
    if len(deltas) - start < _WINDOW:
        return None
    return _drift(deltas[start:], losses[start:], len(deltas))


def _standard_error(deltas: Sequence[float], mean: float, lag: int) -> float:
    """Of a mean whose terms go together over ``lag`` steps; Bartlett weights keep it positive."""
    count = len(deltas)
    centred = [delta - mean for delta in deltas]
    variance = fmean(value * value for value in centred)
    for distance in range(1, lag + 1):
        product = sum(x * y for x, y in zip(centred[distance:], centred[:-distance], strict=True))
        variance += 2 * (1 - distance / (lag + 1)) * product / count
    return math.sqrt(max(variance, 0.0) / count)


def _change_step(steps: Sequence[int], deltas: Sequence[float], floor: float) -> int | None:
    """The first step from which on nearly all differences are above the floor before it.

    The floor is that of two healthy runs, or what the differences were until then.
    """
    level = floor
    before: list[float] = []
    for place, delta in enumerate(deltas):
        if before:
            level = max(floor, median(before[-_WINDOW:]))
        if abs(delta) > CHANGE_FACTOR * level:
            following = deltas[place : place + _WINDOW]
            above = sum(abs(later) > CHANGE_FACTOR * level for later in following)
            if above >= _PERSISTS * len(following) and len(following) >= min(5, len(deltas)):
                return steps[place]
        before.append(abs(delta))
    return None


# -- the rest ------------------------------------------------------------------------------------


def _differences(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(values)]


def _correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    if len(left) < 2:
        return None
    a, b = fmean(left), fmean(right)
    cross = sum((x - a) * (y - b) for x, y in zip(left, right, strict=True))
    # Of numbers near the largest there are, products are infinite, and so nothing is known.
    norms = math.hypot(*(x - a for x in left)) * math.hypot(*(y - b for y in right))
    correlation = cross / norms if norms else math.nan
    return correlation if math.isfinite(correlation) else None


def _spikes(
    steps: Sequence[int], left: Sequence[float], right: Sequence[float]
) -> tuple[tuple[int, str], ...]:
    """Jumps of one curve that the other does not make, by a robust score of the increments."""
    jumps = [_differences(left), _differences(right)]
    scores: list[list[float]] = []
    for increments in jumps:
        centre = median(increments) if increments else 0.0
        spread = median(abs(value - centre) for value in increments) if increments else 0.0
        scores.append([(v - centre) / (1.4826 * spread) if spread else 0.0 for v in increments])
    spikes: list[tuple[int, str]] = []
    for place, (ours, theirs) in enumerate(zip(*scores, strict=True)):
        if max(ours, theirs) > _SPIKE_Z and min(ours, theirs) < _SPIKE_Z / 2:
            spikes.append((steps[place + 1], "left" if ours > theirs else "right"))
    return tuple(spikes)


def _lone_spike(
    steps: Sequence[int], deltas: Sequence[float], relative: Sequence[float]
) -> int | None:
    """The step at which alone curves are apart, by far more than anywhere else."""
    if len(steps) <= SPIKE_FEWEST:
        return None
    place = max(range(len(steps)), key=lambda n: (relative[n], n))
    if place == len(steps) - 1:
        return None  # what begins at the last step is no single one yet
    size = abs(deltas[place])
    others = max(abs(delta) for n, delta in enumerate(deltas) if n != place)
    is_large = size > SPIKE_FACTOR * others and relative[place] > SPIKE_SHARE
    return steps[place] if is_large else None


def _broken(
    steps: Sequence[int], left: Sequence[float], right: Sequence[float]
) -> tuple[tuple[int, str], ...]:
    broken: list[tuple[int, str]] = []
    for step, ours, theirs in zip(steps, left, right, strict=True):
        if math.isfinite(ours) != math.isfinite(theirs):
            broken.append((step, "right" if math.isfinite(ours) else "left"))
    return tuple(broken)


def _shown(left: LossRun, right: LossRun, loss: float) -> float:
    """The relative difference that printed digits, or the type of a loss, make by themselves."""
    quantum = max(left.loss.quantum, right.loss.quantum)
    return quantum * (1 + 1e-9) / abs(loss) if loss and math.isfinite(loss) else 0.0


def _verdict(
    first: float,
    drift: Drift,
    after: Drift | None,
    deltas: Sequence[float],
    floor: float,
    share: float,
    first_limit: float,
) -> Verdict:
    if not any(deltas) and math.isfinite(first):
        return "identical"
    if first > first_limit:
        return "different from the first step"
    for candidate in (drift, after):
        if candidate is None or len(deltas) < FEWEST:
            continue
        if abs(candidate.t) <= candidate.limit:
            continue
        if abs(candidate.mean) > FLOOR_FACTOR * floor and abs(candidate.relative) > share:
            return "drift"
    return "noise"


def _have_parted(
    steps: Sequence[int], left: Sequence[float], right: Sequence[float], change: int | None
) -> bool:
    """Whether curves that were alike leave each other for good, by far more than their noise.

    The noise is what their difference leaves a straight line by from step to step: that needs no
    more than a few steps, and a bend that both have is none of it.
    """
    if change is None or not steps or change == steps[0]:
        return False
    start = steps.index(change)
    behind = [y - x for x, y in zip(left[start:], right[start:], strict=True)]
    if len(behind) < PART_FEWEST or min(behind) < 0 < max(behind):
        return False
    return _is_apart(behind, left[start:], _roughness(behind))


def _is_apart(deltas: Sequence[float], losses: Sequence[float], noise: float) -> bool:
    """Whether differences are more than noise, and than healthy runs have."""
    apart = abs(_usual(deltas))
    scale = fmean(map(abs, losses)) or 1.0
    return apart > PART_FACTOR * noise and apart > PART_SHARE * scale


def _usual(values: Sequence[float]) -> float:
    """The mean without the one that is furthest off: a single step makes no level."""
    if len(values) < 3:
        return fmean(values)
    centre = median(values)
    furthest = max(values, key=lambda value: abs(value - centre))
    return (math.fsum(values) - furthest) / (len(values) - 1)


def _left(steps: Sequence[int], left: Sequence[float], right: Sequence[float]) -> int | None:
    """The step from which on the right curve stays on one side, for the last quarter at least.

    That is how a slow drift ends up, whose beginning is hidden in noise.
    """
    deltas = [y - x for x, y in zip(left, right, strict=True)]
    side = next((delta for delta in reversed(deltas) if delta), 0.0)
    turn = next((n for n in reversed(range(len(deltas))) if deltas[n] * side <= 0), 0)
    start = turn + 1
    behind = deltas[start:]
    if len(behind) < max(PART_FEWEST, LEFT_SHARE * len(deltas)):
        return None
    quarter = behind[-max(PART_FEWEST, len(behind) // 4) :]
    is_left = _is_apart(quarter, left[-len(quarter) :], _roughness(behind))
    return steps[start] if is_left else None


def _goes_its_own_way(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether both curves have a noise of their own, as much of it, and do not share it.

    So do runs that are given other data: their first losses tell nothing of the forward pass.
    """
    if len(left) < OWN_FEWEST:
        return False
    ours, theirs = _bends(left), _bends(right)
    apart = [(y - x) / max(abs(x), 1e-12) for x, y in zip(left, right, strict=True)]
    least, most = sorted((_roughness(left), _roughness(right)))
    together = _correlation(ours, theirs)
    return (
        together is not None
        and abs(together) < OWN_CORRELATION
        and 0 < most < OWN_FACTOR * least
        and abs(apart[0]) < OWN_FIRST * _roughness(apart)
    )


def _jump(steps: Sequence[int], left: Sequence[float], right: Sequence[float]) -> int | None:
    """The step at which curves that were alike leave each other at once, and for good."""
    apart = [(y - x) / max(abs(x), 1e-12) for x, y in zip(left, right, strict=True)]
    start = next((n for n, d in enumerate(apart) if abs(d) > PART_SHARE), len(apart))
    before, behind = apart[:start], apart[start:]
    if len(before) < JUMP_BEFORE or len(behind) < JUMP_FEWEST or min(behind) < 0 < max(behind):
        return None
    least = min(map(abs, behind))
    is_sudden = max(map(abs, before)) <= max(PART_SHARE, least) / 10
    return steps[start] if is_sudden and least > PART_SHARE else None


def _updates_differ(
    steps: Sequence[int], deltas: Sequence[float], relative: Sequence[float], shown: float
) -> bool:
    """Whether first losses are one, and those after updates far more than rounding apart.

    Only of steps in a row: over a hundred updates rounding grows as large.
    """
    if not steps or max(relative[0], shown) > UPDATE_FIRST:
        return False
    in_row = next((n for n, step in enumerate(steps) if step != steps[0] + n), len(steps))
    behind = relative[1 : min(in_row, 1 + UPDATE_FEWEST)]
    if len(behind) == UPDATE_FEWEST and min(behind) > FIRST_STEP:
        return True
    fewest, most = STEADY_STEPS
    last = min(in_row - 1, most)
    if last < fewest or relative[last] <= STEADY_LEAST:
        return False
    behind = deltas[1 : 1 + last]
    largest = max(abs(step) for step in _differences(relative[: 1 + last]))
    is_steady = relative[last // 2] > STEADY_HALF * relative[last] > largest / 2
    is_on_one_side = not min(behind) < 0 < max(behind)
    noise = _roughness(deltas[: 1 + last])
    return is_steady and is_on_one_side and abs(_usual(behind)) > PART_FACTOR * noise


def _split(steps: Sequence[int], left: Sequence[float], right: Sequence[float]) -> int | None:
    """The step of a short pair of curves from which on they are on another level for good."""
    if not 2 * JUMP_BEFORE <= len(steps) <= PART_MOST:
        return None
    deltas = [y - x for x, y in zip(left, right, strict=True)]
    best: tuple[float, int] | None = None
    least = _roughness(deltas)  # of five differences the scatter may come out small by chance
    for start in range(JUMP_BEFORE, len(steps) - PART_FEWEST + 1):
        before, behind = deltas[:start], deltas[start:]
        noise = max(_roughness(before), _roughness(behind), least)
        moved = abs(_usual(behind) - _usual(before))
        scale = fmean(map(abs, left[start:])) or 1.0
        one_sided = min(behind) > 0 or max(behind) < 0
        if one_sided and moved > max(PART_FACTOR * noise, PART_SHARE * scale):
            best = max(best or (0.0, 0), (moved, start))
    return steps[best[1]] if best else None


def _shift(
    steps: Sequence[int], left: Sequence[float], right: Sequence[float], floor: float
) -> int | None:
    """The step at which curves that shared their noise leave each other at once, and for good.

    How far that is counts against their own noise: what they were apart before, and what their
    difference does from step to step.
    """
    count = len(steps)
    if count < JUMP_BEFORE + PART_FEWEST:
        return None
    apart = [(y - x) / max(abs(x), 1e-12) for x, y in zip(left, right, strict=True)]
    starts = range(JUMP_BEFORE, count - PART_FEWEST + 1)
    if count > PART_MOST:
        starts = [_best_split(apart, JUMP_BEFORE, PART_FEWEST)]
    best: tuple[float, int] | None = None
    for start in starts:
        before, behind = apart[:start], apart[start:]
        level = abs(_usual(behind))
        scale = min(map(abs, left[start:]), default=0.0)
        noise = max(_roughness(before), _roughness(behind), _roughness(apart))
        least = max(
            SHIFT_LEAST,
            SHIFT_BEFORE * math.hypot(*before) / start**0.5,
            PART_FACTOR * noise,
            FLOOR_FACTOR * floor / scale if scale else math.inf,
        )
        if level > least and _is_sudden(apart, start, level):
            best = max(best or (0.0, 0), (level, start))
    return steps[best[1]] if best else None


def _is_sudden(apart: Sequence[float], start: int, level: float) -> bool:
    """Whether differences leap by most of their level, on one side, as they never do elsewhere."""
    before, behind = apart[:start], apart[start:]
    side = 1.0 if fmean(behind) > 0 else -1.0
    others = sum(value * side > 0 for value in behind)
    first = [value * side for value in behind[:PART_FEWEST]]
    near = apart[max(0, start - SHIFT_NEAR) : start + SHIFT_NEAR]
    leap = apart[start] - apart[start - 1]
    rest = sorted(map(abs, _differences(near)))[:-1]
    return (
        others >= 0.95 * len(behind)
        and min(first) >= SHIFT_SUDDEN * level
        and max(map(abs, before[-PART_FEWEST:])) < SHIFT_SUDDEN * level
        and abs(leap) >= SHIFT_STEP * rest[-1]
    )


def _best_split(apart: Sequence[float], before: int, behind: int) -> int:
    """The place of the split that explains most of some differences.

    Args:
        apart: the differences.
        before: how many it leaves before it at least.
        behind: how many behind it.
    """
    count = len(apart)
    sums = [0.0, *accumulate(apart)]
    mean = sums[-1] / count

    def explained(start: int) -> float:
        return (sums[start] - start * mean) ** 2 / (start * (count - start))

    return max(range(before, count - behind + 1), key=explained)


def _split_of_noise(
    steps: Sequence[int], left: Sequence[float], right: Sequence[float]
) -> int | None:
    """The step from which on curves that differed before by noise alone are on another level.

    The split that explains most of the differences is the one whose means are furthest apart for
    the steps on either side; what is left of it on each side is the noise.
    """
    count = len(steps)
    if count < 2 * SPLIT_FEWEST:
        return None
    apart = [(y - x) / max(abs(x), 1e-12) for x, y in zip(left, right, strict=True)]
    start = _best_split(apart, SPLIT_FEWEST, SPLIT_FEWEST)
    before, behind = apart[:start], apart[start:]
    means = fmean(before), fmean(behind)
    errors = [
        _standard_error(part, centre, round(len(part) ** 0.5))
        for part, centre in zip((before, behind), means, strict=True)
    ]
    moved = abs(means[1] - means[0])
    has_parted = moved > SPLIT_T * math.hypot(*errors) and moved > PART_SHARE
    return steps[start] if has_parted and abs(means[1]) > abs(means[0]) else None


def _roughness(values: Sequence[float]) -> float:
    """The scatter of a curve around a line through its neighbours, by the median."""
    if len(values) < 3:
        return 0.0
    return median(map(abs, _bends(values))) / (0.6745 * 6**0.5)


def _bends(values: Sequence[float]) -> list[float]:
    """How far each value is off the line through its neighbours, twice."""
    return [a - 2 * b + c for a, b, c in zip(values, values[1:], values[2:], strict=False)]


def _grade(mre: float) -> str:
    for limit, name in ((0.005, "below 0.5 %"), (0.01, "below 1 %"), (0.02, "below 2 %")):
        if mre < limit:
            return name
    return "2 % or more"

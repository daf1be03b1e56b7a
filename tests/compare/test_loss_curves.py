"""Random curves of 12 to 12,000 steps: noise alone is silent, and what is planted is named."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from irtool.compare.losses.comparison import LossComparison, compare_losses
from irtool.compare.losses.series import LossRun, Series

Curve = list[float]


def falling(draw: random.Random, count: int) -> Curve:
    top = draw.choice((0.7, 2.3, 10.8))
    end = top * draw.uniform(0.05, 0.6)
    return [end + (top - end) * math.exp(-5 * n / count) for n in range(count)]


def wandering(draw: random.Random, count: int, size: float, memory: float) -> Curve:
    """Noise that keeps a part of itself from step to step."""
    value, found = draw.gauss(0, size), Curve()
    for _ in range(count):
        found.append(value)
        value = memory * value + draw.gauss(0, size * math.sqrt(1 - memory**2))
    return found


def same_data(draw: random.Random, count: int) -> tuple[Curve, Curve]:
    """Two runs of the same batches, which rounding drives apart slowly."""
    left = [value * max(0.2, draw.gauss(1, 0.03)) for value in falling(draw, count)]
    size = draw.choice((1e-4, 1e-3))
    noise = wandering(draw, count, size, draw.choice((0.0, 0.5)))
    noise[0] = 0.0
    return left, [x * (1 + y * n / count) for n, (x, y) in enumerate(zip(left, noise, strict=True))]


def other_data(draw: random.Random, count: int) -> tuple[Curve, Curve]:
    """Two runs that see other batches, each with noise of its own from the first step on."""
    base = falling(draw, count)
    size = draw.choice((0.003, 0.01))
    sides = [wandering(draw, count, size, draw.choice((0.0, 0.4))) for _ in range(2)]
    left, right = ([x * (1 + y) for x, y in zip(base, side, strict=True)] for side in sides)
    return left, right


def compared(left: Curve, right: Curve) -> LossComparison:
    runs = [LossRun("", "csv", Series(dict(enumerate(values)))) for values in (left, right)]
    return compare_losses(*runs)


SEEDS = [(12, seed) for seed in range(8)] + [(200, seed) for seed in range(4)] + [(12_000, 0)]
PAIRS = {"same data": same_data, "other data": other_data}
Pair = Callable[[random.Random, int], tuple[Curve, Curve]]


@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_rounding_alone_is_silent(count: int, seed: int) -> None:
    found = compared(*same_data(random.Random(seed), count))
    assert not found.is_suspicious


@pytest.mark.parametrize(("count", "seed"), [case for case in SEEDS if case[0] > 12])
def test_noise_of_other_data_is_silent(count: int, seed: int) -> None:
    found = compared(*other_data(random.Random(seed), count))
    assert (found.verdict, found.own_ways) == ("noise", found.first > 1e-3)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_what_is_doubled_from_the_middle_is_told_with_its_step(
    count: int, seed: int, pair: Pair
) -> None:
    left, right = pair(random.Random(seed), count)
    middle = count // 2
    found = compared(left, right[:middle] + [2 * value for value in right[middle:]])
    assert found.verdict == "drift"
    assert found.change_step == pytest.approx(middle, abs=max(2, count // 10))


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_a_slow_drift_of_a_fifth_is_told(count: int, seed: int, pair: Pair) -> None:
    left, right = pair(random.Random(seed), count)
    found = compared(left, [x * (1 + 0.2 * n / count) for n, x in enumerate(right)])
    assert found.verdict == "drift"


@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_a_step_of_a_tenth_is_told_with_its_place(count: int, seed: int) -> None:
    left, right = same_data(random.Random(seed), count)
    start = count // 3
    found = compared(left, right[:start] + [1.1 * value for value in right[start:]])
    assert (found.verdict, found.change_step) == ("drift", start)


@pytest.mark.parametrize("part", [0.005, -0.015, 0.019])
@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_a_small_leap_is_told_where_curves_were_alike(count: int, seed: int, part: float) -> None:
    """By their own noise, a fifteenth of the leap, before and behind it."""
    draw = random.Random(seed)
    left = [value * max(0.2, draw.gauss(1, 0.03)) for value in falling(draw, count)]
    noise = [abs(part) / 15 * draw.uniform(-1, 1) for _ in range(count)]
    middle = count // 2
    right = [
        x * (1 + y) * (1 + part * (n >= middle))
        for n, (x, y) in enumerate(zip(left, noise, strict=True))
    ]
    right[0] = left[0]
    found = compared(left, right)
    assert (found.verdict, found.change_step) == ("drift", middle)


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_rounding_that_grows_to_a_hundredth_is_silent(count: int, seed: int, rate: float) -> None:
    draw = random.Random(seed)
    left = [value * max(0.2, draw.gauss(1, 0.03)) for value in falling(draw, count)]
    noise = wandering(draw, count, 0.01, 0.5)
    grown = [1e-7 * math.exp(min(rate * n, 30.0)) for n in range(count)]
    right = [x * (1 + y * g / (1 + g)) for x, y, g in zip(left, noise, grown, strict=True)]
    assert not compared(left, right).is_suspicious


@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_a_single_step_is_a_spike(count: int, seed: int) -> None:
    left, right = same_data(random.Random(seed), count)
    right[count // 3] *= 1.5
    found = compared(left, right)
    assert (found.verdict, found.spike_step) == ("spike", count // 3)


@pytest.mark.parametrize("end", [math.nan, math.inf])
@pytest.mark.parametrize(("count", "seed"), SEEDS)
def test_a_tail_that_is_no_number_is_told_from_its_first_step(
    count: int, seed: int, end: float
) -> None:
    left, right = same_data(random.Random(seed), count)
    last = 2 * count // 3
    found = compared(left, right[:last] + [end] * (count - last))
    assert found.broken[0] == (last, "right")
    assert found.is_suspicious

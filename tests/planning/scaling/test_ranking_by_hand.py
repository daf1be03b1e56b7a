"""Which cuts of a network are looked at, and which are told: candidates of stated seconds."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.planning.scaling.candidates import SHOWN, Candidate, Candidates, _Ranking
from irtool.planning.stages.stages import CannotPlan
from irtool.sharding.network.context import ParallelContext

Cut = tuple[int, int, int]
Priced = Callable[[int, int, int, bool, bool], "tuple[float, bool] | None"]
"""Seconds of a candidate and whether it fits, by devices, stages, micro-batches and decisions."""


def candidate(
    seconds: float,
    cut: Cut = (8, 1, 1),
    *,
    optimizer: bool = False,
    recompute: bool = False,
    fits: bool = True,
) -> Candidate:
    return Candidate(*cut, optimizer, recompute, seconds, 1, None, fits)


class Ranking(_Ranking):
    """One whose plans are stated."""

    def __init__(
        self, price: Priced, devices: int = 8, layers: int = 4, batch: int = 64, work: float = 0.0
    ) -> None:
        self.price, self.devices, self.batch, self.limit = price, devices, batch, 1 << 30
        self.network: Any = SimpleNamespace(layers=layers)
        self.context = ParallelContext(devices=8, full_batch=True)
        self.candidates, self.problem = [], None
        self.work, self.passed_over = work, 0
        self.asked: list[tuple[int, int, int, bool, bool]] = []

    def _tried(
        self, devices: int, stages: int, micro: int, *, optimizer: bool, recompute: bool
    ) -> Candidate | None:
        key = devices, stages, micro, optimizer, recompute
        assert key not in self.asked
        self.asked.append(key)
        priced = self.price(*key)
        if priced is None:
            self.problem = self.problem or CannotPlan(f"not {key}")
            return None
        seconds, fits = priced
        found = candidate(
            seconds, (devices, stages, micro), optimizer=optimizer, recompute=recompute, fits=fits
        )
        self.candidates.append(found)
        return found


def cuts_of(ranked: Candidates) -> list[tuple[int, int, int, bool, bool]]:
    return [
        (one.devices, one.stages, one.micro_batches, one.optimizer_parallel, one.recompute)
        for one in ranked.ranked
    ]


# -- which are looked at ---------------------------------------------------------------------------


def plain_only(seconds: float = 1.0) -> Priced:
    return lambda devices, stages, micro, *_: (seconds, True) if stages == micro == 1 else None


@pytest.mark.parametrize(
    ("devices", "looked_at"),
    [(8, [8, 4, 2, 1]), (24, [24, 12, 6, 3]), (5, [5]), (1, [1])],
)
def test_halves_of_the_devices_are_looked_at_while_there_are_any(
    devices: int, looked_at: list[int]
) -> None:
    assert list(Ranking(plain_only(), devices)._devices()) == looked_at


@pytest.mark.parametrize(("fitting", "slower", "looked_at"), [
    (10, 0, [8, 4]),  # 24 s of work are 3 s on eight devices, 6 on four, 12 on two
    (9, 0, [8, 4, 2, 1]),  # nine are told however slow
    (9, 1, [8, 4, 2, 1]),  # what does not fit is none of the ten
])  # fmt: skip
def test_fewer_devices_are_passed_over_where_computing_alone_takes_longer_than_the_tenth(
    fitting: int, slower: int, looked_at: list[int]
) -> None:
    ranking = Ranking(plain_only(), work=24.0)
    ranking.candidates = [candidate(7.0) for _ in range(fitting)]
    ranking.candidates += [candidate(7.0, fits=False) for _ in range(slower)]
    assert list(ranking._devices()) == looked_at
    assert ranking.passed_over == 4 - len(looked_at)


def test_the_tenth_is_the_slowest_that_is_told() -> None:
    ranking = Ranking(plain_only())
    ranking.candidates = [candidate(float(n)) for n in range(SHOWN + 3, 0, -1)]
    ranking.candidates.append(candidate(0.5, fits=False))
    assert ranking._tenth() == SHOWN
    ranking.candidates = ranking.candidates[: SHOWN - 1]
    assert ranking._tenth() == float("inf")


@pytest.mark.parametrize(
    ("devices", "layers", "batch", "cuts"),
    [
        (2, 4, 64, [(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (2, 16)]),
        (2, 1, 64, [(1, 2), (1, 4), (1, 8)]),  # one layer is not cut
        (2, 0, 64, [(1, 2), (1, 4), (1, 8)]),
        (1, 4, 64, [(1, 2), (1, 4), (1, 8)]),  # one device is no two stages
        (24, 4, 2, [(1, 2), (2, 2)]),  # of 24 devices two stages have twelve each
        (2, 4, 4, [(1, 2), (1, 4), (2, 4)]),  # as far as the batch goes
        (2, 4, 2, [(1, 2), (2, 2)]),  # one micro-batch a stage, where there are no two
        (2, 4, 3, []),
        (2, 4, 0, []),
        (4, 8, 8, [(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8)]),
    ],
)
def test_stages_double_and_have_two_four_or_eight_micro_batches_each(
    devices: int, layers: int, batch: int, cuts: list[tuple[int, int]]
) -> None:
    assert list(Ranking(plain_only(), devices, layers, batch)._cuts(devices)) == cuts


def test_a_pipeline_that_waits_longer_than_the_tenth_takes_is_passed_over() -> None:
    """Of 8 s on two devices: four micro-batches of two stages wait a quarter of 4 s, eight 1/8."""
    ranking = Ranking(plain_only(), work=8.0)
    ranking.candidates = [candidate(4.6) for _ in range(SHOWN)]
    assert list(ranking._cuts(2)) == [(1, 2), (1, 4), (1, 8), (2, 8), (2, 16)]
    assert ranking.passed_over == 1
    ranking.candidates = [candidate(4.5) for _ in range(SHOWN)]
    assert list(ranking._cuts(2)) == [(1, 2), (1, 4), (1, 8), (2, 16)]


@pytest.mark.parametrize(("priced", "decisions"), [
    ((1.0, True), [(False, False)]),
    ((1.0, False), [(False, False), (True, False), (True, True)]),
    (None, [(False, False), (True, False), (True, True)]),
])  # fmt: skip
def test_what_fits_as_it_is_needs_no_decisions(
    priced: tuple[float, bool] | None, decisions: list[tuple[bool, bool]]
) -> None:
    ranking = Ranking(lambda *_: priced)
    ranking._tried_with_decisions(8, 2, 4)
    assert [asked[3:] for asked in ranking.asked] == decisions


def test_the_fastest_five_are_tried_with_optimizer_parallel_and_the_plain_one_too() -> None:
    ranking = Ranking(lambda *_: (9.0, True))
    ranking.candidates = [candidate(float(n), (8, 1, 2 * n)) for n in range(1, 8)]
    ranking.candidates += [
        candidate(20.0, (8, 1, 1), fits=False),
        candidate(21.0, (4, 1, 1)),
        candidate(0.5, (8, 1, 2), optimizer=True),  # the first of them is known so
    ]
    ranking._with_optimizer()
    assert ranking.asked == [
        (8, 1, 4, True, False), (8, 1, 6, True, False), (8, 1, 8, True, False),
        (8, 1, 1, True, False), (8, 1, 1, True, True),  # it is full: with recomputation, too
    ]  # fmt: skip


# -- which are told --------------------------------------------------------------------------------


def priced(devices: int, stages: int, micro: int, optimizer: bool, recompute: bool) -> Any:
    """Pipelines are faster than what is plain; more micro-batches are faster."""
    del recompute
    plain = stages == micro == 1
    return (100.0 if plain else 10.0 + 1 / micro + stages / 64) * 8 / devices + optimizer, True


def test_ten_are_told_by_seconds_and_the_plain_one_is_one_of_them() -> None:
    found = Ranking(priced).ranked()
    seconds = [one.seconds for one in found.ranked]
    assert len(seconds) == SHOWN
    assert seconds == sorted(seconds)
    assert cuts_of(found)[-1] == (8, 1, 1, False, False)  # the slowest of all on eight devices
    assert found.best == 0
    assert found.tried > SHOWN
    assert all(one.devices == 8 for one in found.ranked)


def test_what_does_not_fit_is_not_told_but_for_the_plain_one() -> None:
    found = Ranking(lambda *key: (priced(*key)[0], key[1] == 2)).ranked()
    assert {one.stages for one in found.ranked if one.fits} == {2}
    (plain,) = (one for one in found.ranked if not one.fits)
    assert plain.is_plain
    assert plain.devices == 8
    assert found.best is not None
    assert found.ranked[found.best].fits


def test_of_two_as_fast_the_one_on_fewer_devices_comes_first() -> None:
    found = Ranking(plain_only(3.0), layers=1, batch=0).ranked()
    assert [one.devices for one in found.ranked if one.is_plain] == [1, 2, 4, 8]


def test_where_nothing_can_be_planned_the_first_reason_is_told() -> None:
    with pytest.raises(CannotPlan, match=r"not \(8, 1, 1, False, False\)"):
        Ranking(lambda *_: None).ranked()


@pytest.mark.parametrize(
    ("cut", "optimizer", "recompute", "is_plain"),
    [
        ((8, 1, 1), False, False, True),
        ((8, 2, 1), False, False, False),
        ((8, 1, 2), False, False, False),
        ((8, 1, 1), True, False, False),
        ((8, 1, 1), False, True, False),
    ],
)
def test_plain_is_what_nothing_was_decided_of(
    cut: Cut, optimizer: bool, recompute: bool, is_plain: bool
) -> None:
    assert candidate(1.0, cut, optimizer=optimizer, recompute=recompute).is_plain == is_plain

"""Where plans nearly tie: none that communicates dearer than what the dump has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.machine import BUILT_IN, built_in
from irtool.planning.cost.costs import Cause, Communication
from irtool.planning.plans.plan import plan
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import MemoryCost, StepCost
from irtool.planning.plans.ties import (
    MARGIN,
    Priced,
    communication_of,
    is_tie,
    no_dearer,
    with_slower_links,
)
from irtool.planning.search.search import Solution
from irtool.sharding.network.context import ParallelContext

MACHINE = built_in("ascend_910b")
RANKS = tuple(range(8))


def step(compute: float, communication: float) -> StepCost:
    """A step of one operator."""
    collective = Communication("AllReduce", "forward", RANKS, 1, 1, communication)
    seconds: dict[Cause, float] = {"compute": compute, "operator collectives": communication}
    item = CostItem("operator", None, "MatMul", seconds, (collective,))
    return StepCost(MACHINE, (item,), MemoryCost(0, 0, 0, 0), (), True)


def test_a_plan_ties_if_it_communicates_dearer_and_saves_next_to_nothing() -> None:
    before = step(100.0, 10.0)
    assert is_tie(before, step(98.5, 11.0))
    assert not is_tie(before, step(97.5, 11.0)), "it saves more than the margin"
    assert not is_tie(before, step(99.5, 10.0)), "it communicates no dearer"
    assert MARGIN == 0.01


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("op", ["AllReduce", "AllGather", "AlltoAll", "Send"])
def test_slower_links_make_each_collective_longer_by_their_part(name: str, op: str) -> None:
    machine = built_in(name)
    slower = with_slower_links(machine, 0.5)
    for ranks in (RANKS[:2], RANKS, tuple(range(16))):
        for size in (0, 1 << 20):
            wanted = 1.5 * machine.seconds(op, size, ranks)
            assert slower.seconds(op, size, ranks) == pytest.approx(wanted)


points = st.tuples(st.integers(1, 1000), st.integers(1, 1000))


@given(st.lists(points, min_size=1, max_size=12), points)
def test_what_communicates_no_dearer_is_found_with_a_bound(
    others: list[tuple[int, int]], first: tuple[int, int]
) -> None:
    priced = [
        Priced(Solution((at,), 0.0, 1), step(*map(float, each)))
        for at, each in enumerate([first, *others])
    ]
    own = priced[0]
    asked: list[Priced] = []

    def at_price(price: float) -> Priced:
        def value(each: Priced) -> float:
            return each.cost.seconds + price * each.communication

        best = min(priced, key=value)
        asked.append(best)
        return replace(best, solution=replace(best.solution, bound=value(best)))

    fastest = at_price(0.0)
    if fastest.communication <= own.communication:
        return
    found, bound = no_dearer(fastest, own, at_price)
    within = [each for each in priced if each.communication <= own.communication]
    best = min(each.cost.seconds for each in within)
    assert found.communication <= own.communication
    assert found.cost.seconds <= own.cost.seconds
    tried = [each.cost.seconds for each in asked if each.communication <= own.communication]
    assert found.cost.seconds == min([own.cost.seconds, *tried])
    assert bound <= best * (1 + 1e-9)
    assert fastest.cost.seconds <= bound * (1 + 1e-9)


@pytest.mark.corpus
def test_a_network_of_convolutions_is_not_exchanged_for_a_hundredth(corpus: Path) -> None:
    """With all-to-all the last product could be cut: fewer bytes, but slower to communicate."""
    folder = corpus / "planning" / "resnet_rec_8"
    dump = irtool.load(str(folder / "step_parallel_begin.ir"))
    under = ParallelContext.from_mapping(
        {"devices": 8, "full_batch": True, "enable_alltoall": True},
        mode="auto_parallel",
        search="sharding_propagation",
    )
    found = plan(dump, under, MACHINE)
    assert found.before is not None
    assert communication_of(found.after) <= communication_of(found.before) * (1 + 1e-9)
    assert found.after.seconds <= found.before.seconds * (1 + 1e-9)
    assert found.gap == pytest.approx(0, abs=1e-5)
    assert any("not taken" in note for note in found.notes)
    assert found.passed_over is not None
    assert found.passed_over.seconds < found.after.seconds

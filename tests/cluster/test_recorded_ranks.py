"""Ranks that recorded in which order they launched: their programs in that order."""

from __future__ import annotations

import irtool
from irtool.artefacts.recorded import RecordedOrder
from irtool.cluster.ranks import Cluster, cluster_of
from irtool.cluster.recorded_scripts import reordered
from tests.cluster.rank_dumps import all_reduce, rank_text

BOTH = (0, 1)
GONE = "records name communications otherwise than all dumps: not used"


def cluster(*, chained: bool = False) -> Cluster:
    """Two ranks with three sums each, named ``Default/AllReduce-op0`` to ``-op2``."""
    text = rank_text(*(all_reduce(BOTH, shape=(size,)) for size in (1, 2, 3)), chained=chained)
    for number in range(3):
        place = f"      # In file net.py:{number + 1}, 8~20/"
        name = f"      # Fullname with scope: (Default/AllReduce-op{number})\n"
        text = text.replace(place, name + place)
    return cluster_of({rank: irtool.load(text.encode()) for rank in BOTH})


def order(*numbers: int, more: tuple[str, ...] = ()) -> RecordedOrder:
    names = (*(f"Default/AllReduce-op{number}" for number in numbers), *more)
    return RecordedOrder("order", names, tuple(range(len(names))))


def sizes(found: Cluster, rank: int) -> list[int]:
    return [(step.collective.shape or (0,))[0] for step in found.ranks[rank].program.steps]


def test_a_rank_communicates_as_it_recorded_it() -> None:
    found, notes = reordered(cluster(), {1: order(2, 0, 1)})
    assert (sizes(found, 0), sizes(found, 1)) == ([1, 2, 3], [3, 1, 2])
    assert found.classes == ((0,), (1,))
    assert notes == ()


def test_steps_wait_for_what_was_launched_before_them_only() -> None:
    found, _ = reordered(cluster(chained=True), {0: order(1, 0, 2)})
    steps = found.ranks[0].program.steps
    assert sizes(found, 0) == [2, 1, 3]
    # The second waited for the first, which now comes later; the third for both.
    assert steps[0].after == ()
    assert set(steps[2].after) <= {0, 1}
    assert steps[2].after


def test_what_one_of_two_records_otherwise_is_told() -> None:
    strange = order(0, 1, more=("Default/AllReduce-op9", "Default/MatMul-op9"))
    found, notes = reordered(cluster(), {0: strange, 1: order(0, 1, 2)})
    assert sizes(found, 0) == [1, 2]
    assert notes == (
        "0: recorded Default/AllReduce-op9, which its dump does not have",
        "0: never launched Default/AllReduce-op2, which its dump has",
    )


def test_records_that_all_name_otherwise_are_not_used() -> None:
    strange = order(0, 1, more=("Default/AllReduce-op9",))
    whole = cluster()
    found, notes = reordered(whole, {0: strange, 1: strange})
    assert found is whole
    assert notes == (GONE,)
    # A single rank's record may be right, and two that differ can't both be renamed by the backend.
    assert reordered(whole, {0: strange})[1] != (GONE,)
    other = order(0, 1, more=("Default/AllReduce-op8",))
    assert reordered(whole, {0: strange, 1: other})[1] != (GONE,)


def test_records_of_ranks_without_dumps_say_nothing() -> None:
    found, notes = reordered(cluster(), {7: order(2, 1, 0)})
    assert sorted(found.ranks) == [0, 1]
    assert notes == ()

"""What is said of a pipeline, from both sides of what decides it."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cluster.pipeline.advice import advise
from irtool.cluster.pipeline.cut import Layer, best_cut
from irtool.cluster.schedule import (
    Played,
    StageTimes,
    Task,
    gpipe,
    interleaved,
    least_seconds,
    one_forward_one_backward,
    play,
)


def stages(*costs: float, layers: int = 1) -> list[list[Layer]]:
    return [
        [Layer(f"l{n}.{k}", cost / layers) for k in range(layers)] for n, cost in enumerate(costs)
    ]


def switches(count: int, micro: int, chunks: int = 1, layers: int = 1) -> list[tuple[str, str]]:
    found = advise(stages(*[1.0] * count, layers=layers), count, micro, None, chunks)
    return [(item.switch, item.value) for item in found]


@pytest.mark.parametrize(
    ("count", "micro", "wanted"), [(4, 30, None), (4, 29, "30"), (2, 10, None), (2, 9, "10")]
)
def test_more_micro_batches_are_advised_until_a_tenth_is_idle(
    count: int, micro: int, wanted: str | None
) -> None:
    """Idle over working time is (stages - 1) / micro-batches."""
    found = [value for switch, value in switches(count, micro) if switch == "micro_size"]
    assert found == ([] if wanted is None else [wanted])


def test_fewer_micro_batches_than_stages_are_told_first() -> None:
    assert switches(4, 3)[0] == ("micro_size", "4")
    assert ("micro_size", "4") not in switches(4, 4)


@pytest.mark.parametrize(
    ("layers", "chunks", "values"),
    [
        (1, 1, []),
        (2, 1, ["2 chunks a stage"]),
        (3, 1, ["2 chunks a stage"]),
        (4, 1, ["2 chunks a stage", "4 chunks a stage"]),
        (4, 2, ["4 chunks a stage"]),
    ],
)
def test_interleaving_needs_a_layer_a_chunk(layers: int, chunks: int, values: list[str]) -> None:
    found = switches(4, 8, chunks, layers)
    assert [value for switch, value in found if "interleave" in switch] == values
    assert not [switch for switch, _ in switches(4, 3, 1, 4) if "interleave" in switch]


@pytest.mark.parametrize(("slowest", "is_told"), [(100.0, False), (102.5, True)])
def test_another_cut_is_worth_it_if_it_saves_two_in_a_hundred(
    slowest: float, is_told: bool
) -> None:
    layers = [Layer(str(n), 10.0) for n in range(20)]
    cut = best_cut(layers, 2)
    assert cut is not None
    assert cut.slowest == 100.0
    found = advise(stages(slowest, 200 - slowest), 2, 100, cut)
    assert ("pipeline_stage" in [item.switch for item in found]) == is_told


# -- against the clock -----------------------------------------------------------------------------


def ends(times: list[StageTimes], micro: int, chunks: int, made: Played) -> None:
    """Every task runs after the one before it on its stage and what it needs, and not later."""
    count = len(times)
    last = count * chunks - 1
    when = {
        (one.task.kind, one.task.micro, one.task.chunk * count + stage): one
        for stage, tasks in enumerate(made.stages)
        for one in tasks
    }
    assert len(when) == 2 * micro * count * chunks
    for (kind, batch, place), one in when.items():
        stage = place % count
        own = made.stages[stage]
        turn = own.index(one)
        ready = own[turn - 1].end if turn else 0.0
        if kind == "F":
            needed, near = ("F", place - 1), place - 1
        elif place < last:
            needed, near = ("B", place + 1), place + 1
        else:
            needed, near = ("F", place), place
        if near >= 0:
            before = when[needed[0], batch, needed[1]]
            handed = times[near % count].send if near % count != stage else 0.0
            ready = max(ready, before.end + handed)
        assert one.start == pytest.approx(ready)
        seconds = times[stage].forward if kind == "F" else times[stage].backward
        assert one.end - one.start == pytest.approx(seconds / chunks)
    assert made.seconds == pytest.approx(max(one.end for one in when.values()))
    busy = [sum(one.end - one.start for one in tasks) for tasks in made.stages]
    assert made.busy == pytest.approx(max(busy))
    assert made.idle_share == pytest.approx(1 - sum(busy) / (made.seconds * count))


TIMES = st.lists(
    st.builds(StageTimes, st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0, 2)),
    min_size=2,
    max_size=4,
)


@given(TIMES, st.integers(1, 6))
def test_tasks_start_as_soon_as_their_stage_and_their_input_are_there(
    times: list[StageTimes], micro: int
) -> None:
    for make in (gpipe, one_forward_one_backward):
        ends(times, micro, 1, play([make(n, len(times), micro) for n in range(len(times))], times))


@given(TIMES, st.integers(0, 4), st.sampled_from([2, 3]))
def test_chunks_take_their_share_and_hand_on_from_the_last_stage_to_the_first(
    times: list[StageTimes], more: int, chunks: int
) -> None:
    count = len(times)
    micro = count + more
    made = play([interleaved(n, count, micro, chunks) for n in range(count)], times)
    assert not made.waits
    ends(times, micro, chunks, made)


@given(TIMES, st.integers(1, 6))
def test_the_least_time_is_what_the_slowest_stage_needs_behind_those_before_it(
    times: list[StageTimes], micro: int
) -> None:
    work = [one.forward + one.backward for one in times]
    expected = max(micro * own + sum(work[:stage]) for stage, own in enumerate(work))
    assert least_seconds(times, micro) == pytest.approx(max(expected, sum(work)))


@given(st.integers(1, 5), st.integers(1, 8))
def test_a_schedule_runs_every_pass_once_and_backward_after_forward(count: int, micro: int) -> None:
    for stage in range(count):
        for made in (gpipe(stage, count, micro), one_forward_one_backward(stage, count, micro)):
            assert sorted(map(str, made.tasks)) == sorted(
                f"{kind}{n}" for kind in "FB" for n in range(micro)
            )
            for n in range(micro):
                assert made.tasks.index(Task("F", n)) < made.tasks.index(Task("B", n))
            assert made.micro_batches == micro
        assert gpipe(stage, count, micro).warm_up == micro
        assert one_forward_one_backward(stage, count, micro).warm_up == min(micro, count - stage)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=2, max_size=7),
    st.integers(1, 4),
    st.integers(0, 20),
)
def test_the_best_cut_is_the_most_even_of_the_fastest_that_fit(
    work: list[tuple[int, int]], count: int, limit: int
) -> None:
    layers = [Layer(str(n), float(cost), size) for n, (cost, size) in enumerate(work)]
    found = best_cut(layers, count, static_limit=limit)
    cuts = [
        [work[a:b] for a, b in pairwise((0, *edges, len(work)))]
        for edges in combinations(range(1, len(work)), count - 1)
    ]
    fitting = [
        sorted_costs
        for cut in cuts
        if all(sum(size for _, size in run) <= limit for run in cut)
        for sorted_costs in [[sum(cost for cost, _ in run) for run in cut]]
    ]
    if not fitting:
        assert found is None
        return
    assert found is not None
    value = min((max(costs), sum(cost**2 for cost in costs)) for costs in fitting)
    assert found.slowest == value[0] == max(found.costs)
    mean = sum(found.costs) / count
    assert found.imbalance == pytest.approx(value[0] / mean - 1 if mean else 0.0)
    assert [name for run in found.stages for name in run] == [layer.name for layer in layers]
    assert sum(cost**2 for cost in found.costs) == value[1]


def test_the_other_stages_are_even_though_a_later_one_is_the_slowest() -> None:
    """8 at least for one stage: (1, 7) beside (2, 5) and (7, 1) leaves more than 157 in squares."""
    layers = [Layer(str(n), float(cost)) for n, cost in enumerate((1, 7, 2, 5, 7, 1))]
    found = best_cut(layers, 4)
    assert found is not None
    assert found.slowest == 8
    assert sum(cost**2 for cost in found.costs) == 157


def test_a_stage_holds_only_what_it_can() -> None:
    """Whether layers fit is asked of each stage, for the layers from one up to before another."""
    layers = [Layer(name, 1.0) for name in "abcdef"]
    free = best_cut(layers, 3)
    assert free is not None
    assert free.stages == (("a", "b"), ("c", "d"), ("e", "f"))
    small = best_cut(layers, 3, fits=lambda stage, first, last: stage != 1 or last - first <= 1)
    assert small is not None
    assert max(map(len, small.stages)) == 3
    assert len(small.stages[1]) == 1
    front = best_cut(layers, 3, fits=lambda stage, first, last: stage or last <= 1)
    assert front is not None
    assert front.stages[0] == ("a",)
    assert best_cut(layers, 3, fits=lambda stage, first, last: last < 6) is None
    assert best_cut(layers, 7) is None
    assert best_cut(layers, 0) is None

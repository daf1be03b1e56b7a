"""Pipelines: schedules as dumps hold them, waiting by formula and by clock, cuts, transfers."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import memory
from irtool.cluster.pipeline import Pipeline, StageInput, pipeline
from irtool.cluster.pipeline.cut import Layer, best_cut
from irtool.cluster.schedule import (
    Schedule,
    StageTimes,
    Task,
    gpipe,
    ideal_bubble,
    interleaved,
    least_seconds,
    name_of,
    one_forward_one_backward,
    play,
    share_of_wall,
)
from irtool.syntax.run import load_run

FOUR = (
    "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
    "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
    "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
    "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7",
)


def of_run(folder: Path, stages: int, devices: int, ranks: tuple[int, ...] = ()) -> Pipeline:
    run = load_run(folder)
    inputs: list[StageInput] = []
    for one in run.classes():
        if one.file is not None and (not ranks or one.representative in ranks):
            dump = irtool.load(one.file.path)
            inputs.append(StageInput(one.representative, one.ranks, memory(dump)))
    return pipeline(inputs, stages, devices, default_machine())


# -- schedules in dumps ------------------------------------------------------------------------


def test_one_forward_one_backward_is_read_off_the_dumps(samples: Path) -> None:
    """Four stages, eight micro-batches: in flight are 4, 3, 2 and 1."""
    found = of_run(samples / "pipeline_8_micro", 4, 4)
    assert [str(stage.schedule) for stage in found.stages] == list(FOUR)
    schedules = [stage.schedule for stage in found.stages if stage.schedule]
    assert [one.in_flight for one in schedules] == [4, 3, 2, 1]
    assert [one.warm_up for one in schedules] == [4, 3, 2, 1]
    assert {stage.schedule_name for stage in found.stages} == {"1f1b"}


def test_an_interleaved_schedule_is_the_one_that_the_formula_makes(samples: Path) -> None:
    """Cells are reused: their calls say micro-batch and chunk, of the backward pass too."""
    found = of_run(samples / "pipeline_interleaved", 2, 2)
    assert [stage.schedule for stage in found.stages] == [
        interleaved(stage, 2, 4, 2) for stage in range(2)
    ]
    assert {stage.schedule_name for stage in found.stages} == {"interleaved"}
    assert found.transfers.unmatched == ()
    assert found.transfers.matched == 24
    assert found.cut is None
    assert not any("pipeline_interleave" in item.switch for item in found.advice)


def test_all_forward_then_all_backward_in_two_chunks(samples: Path) -> None:
    found = of_run(samples / "pipeline_interleaved_gpipe", 2, 2)
    for stage in found.stages:
        assert str(stage.schedule) == (
            "F0 F1 F2 F3 F0.1 F1.1 F2.1 F3.1 B0.1 B1.1 B2.1 B3.1 B0 B1 B2 B3"
        )
        assert stage.schedule_name == "interleaved gpipe"


def test_a_loss_that_needs_no_forward_result_does_not_upset_the_order(samples: Path) -> None:
    found = of_run(samples / "pipeline_4_stages", 4, 8)
    assert str(found.stages[3].schedule) == "F0 B0 F1 B1 F2 B2 F3 B3"


@pytest.mark.parametrize(
    ("folder", "stages", "devices", "sends"),
    [
        ("pipeline_2_stages", 2, 4, 4),
        ("pipeline_4_stages", 4, 8, 24),
        ("pipeline_8_micro", 4, 4, 48),
    ],
)
def test_every_send_has_its_receive(
    folder: str, stages: int, devices: int, sends: int, samples: Path
) -> None:
    found = of_run(samples / folder, stages, devices).transfers
    assert found.matched == sends
    assert found.unmatched == ()
    assert {(one.from_stage, one.to_stage) for one in found.items} == {
        pair for a, b in pairwise(range(stages)) for pair in ((a, b), (b, a))
    }


@pytest.mark.parametrize(
    "classes",
    [
        ((0, 1), (2,), (3,)),
        ((0,), (1,), (2, 3)),
        ((0,), (1,), (2,), (3,)),
    ],
)
def test_classes_of_a_stage_need_not_fit_those_of_the_next(
    samples: Path, classes: tuple[tuple[int, ...], ...]
) -> None:
    folder = samples / "pipeline_2_stages"
    inputs = [
        StageInput(
            ranks[0], ranks, memory(irtool.load(folder / f"rank_{ranks[0]}/20_validate_0080.ir"))
        )
        for ranks in classes
    ]
    found = pipeline(inputs, 2, 4, default_machine()).transfers
    whole = of_run(folder, 2, 4).transfers
    assert found.unmatched == ()
    assert (found.matched, found.items) == (whole.matched, whole.items)


def test_a_receive_that_one_rank_of_a_class_waits_for(samples: Path) -> None:
    folder = samples / "pipeline_2_stages"
    text = (folder / "rank_1/20_validate_0080.ir").read_text(encoding="utf-8")
    dumps = {rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir") for rank in (0, 2)}
    dumps[1] = irtool.loads(text.replace("dest_rank: I64(3)", "dest_rank: I64(2)"))
    inputs = [
        StageInput(0, (0,), memory(dumps[0])),
        StageInput(1, (1,), memory(dumps[1])),
        StageInput(2, (2, 3), memory(dumps[2])),
    ]
    found = pipeline(inputs, 2, 4, default_machine()).transfers
    assert {(item.rank, item.why) for item in found.unmatched} == {
        (1, "no Receive"), (3, "no Send")
    }  # fmt: skip


def test_a_missing_stage_is_said_and_limits_the_answer(samples: Path) -> None:
    found = of_run(samples / "pipeline_8_micro", 4, 4, ranks=(0, 1, 3))
    assert found.missing == (2,)
    assert found.cut is None
    assert found.played is None
    assert found.imbalance is None
    assert all(not item.is_certain for item in found.transfers.unmatched)
    assert {item.peer for item in found.transfers.unmatched} == {2}


def test_ranks_of_a_stage_have_equal_graphs(samples: Path) -> None:
    run = load_run(samples / "pipeline_4_stages")
    assert [one.ranks for one in run.classes()] == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize(
    ("program", "classes"),
    [
        ("search", [tuple(range(8))]),
        ("chain", [(0, 1, 5)]),
        ("batch_split", [(0, 5)]),
        ("data_parallel", [(0, 5)]),
        ("two_stages", [(0, 3), (4, 7)]),
    ],
)
def test_ranks_that_need_one_compilation(
    samples: Path, program: str, classes: list[tuple[int, ...]]
) -> None:
    run = load_run(samples / "rank_classes" / program)
    assert [one.ranks for one in run.classes()] == classes


# -- formulas and the clock --------------------------------------------------------------------


def test_ideal_bubbles() -> None:
    assert ideal_bubble(16, 16) == 0.9375
    assert ideal_bubble(4, 8) == 0.375
    assert ideal_bubble(4, 8, 2) == 0.1875
    assert share_of_wall(1.0) == 0.5


@given(st.integers(2, 6), st.integers(1, 12), st.floats(0.1, 3), st.floats(0.1, 3))
def test_equal_stages_wait_as_the_formula_says(
    stages: int, micro: int, forward: float, backward: float
) -> None:
    times = [StageTimes(forward, backward)] * stages
    for make in (gpipe, one_forward_one_backward):
        played = play([make(stage, stages, micro) for stage in range(stages)], times)
        assert not played.waits
        work = (forward + backward) * micro
        assert played.seconds / work - 1 == pytest.approx(ideal_bubble(stages, micro))


@given(st.integers(2, 5), st.integers(0, 7), st.integers(1, 3))
def test_interleaving_divides_the_bubble_by_its_chunks(stages: int, more: int, chunks: int) -> None:
    micro = stages + more
    times = [StageTimes(1.0, 2.0)] * stages
    played = play([interleaved(one, stages, micro, chunks) for one in range(stages)], times)
    assert not played.waits
    assert played.seconds / (3 * micro) - 1 == pytest.approx(ideal_bubble(stages, micro, chunks))


@given(
    st.lists(st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)), min_size=2, max_size=5),
    st.integers(1, 8),
)
def test_no_schedule_beats_the_least_time(work: list[tuple[float, float]], micro: int) -> None:
    times = [StageTimes(*one) for one in work]
    count = len(times)
    for make in (gpipe, one_forward_one_backward):
        played = play([make(stage, count, micro) for stage in range(count)], times)
        assert played.seconds >= least_seconds(times, micro) - 1e-9


@given(st.integers(1, 6), st.integers(1, 12))
def test_activations_in_flight(stages: int, micro: int) -> None:
    for stage in range(stages):
        assert one_forward_one_backward(stage, stages, micro).in_flight == min(
            micro, stages - stage
        )
        assert gpipe(stage, stages, micro).in_flight == micro


def test_schedules_that_block_each_other_are_told() -> None:
    first = Schedule((Task("B", 0), Task("F", 0)))
    second = Schedule((Task("F", 0), Task("B", 0)))
    assert play([first, second], [StageTimes(1, 1)] * 2).waits


def test_names_of_schedules() -> None:
    assert name_of(one_forward_one_backward(1, 4, 8), 1, 4) == "1f1b"
    assert name_of(gpipe(1, 4, 8), 1, 4) == "gpipe"
    assert name_of(interleaved(1, 4, 8, 2), 1, 4) == "interleaved"


# -- cuts --------------------------------------------------------------------------------------

LAYERS = st.lists(st.integers(0, 20), min_size=1, max_size=8)


@given(LAYERS, st.integers(1, 8))
def test_no_cut_is_better_than_the_best(costs: list[int], stages: int) -> None:
    layers = [Layer(str(place), float(cost)) for place, cost in enumerate(costs)]
    found = best_cut(layers, stages)
    if stages > len(costs):
        assert found is None
        return
    slowest = min(
        max(sum(costs[a:b]) for a, b in pairwise((0, *edges, len(costs))))
        for edges in combinations(range(1, len(costs)), stages - 1)
    )
    assert found is not None
    assert found.slowest == slowest == max(found.costs)
    assert [name for names in found.stages for name in names] == [one.name for one in layers]


def test_a_cut_obeys_the_memory_of_a_device() -> None:
    layers = [Layer("a", 1.0, 60), Layer("b", 1.0, 60), Layer("c", 1.0, 10), Layer("d", 1.0, 10)]
    free, bound = best_cut(layers, 2), best_cut(layers, 2, static_limit=100)
    assert free is not None
    assert free.stages == (("a", "b"), ("c", "d"))
    assert bound is not None
    assert bound.stages == (("a",), ("b", "c", "d"))
    assert best_cut(layers, 2, static_limit=50) is None


def test_layers_of_a_stage_hold_its_work_and_parameters(samples: Path) -> None:
    found = of_run(samples / "pipeline_8_micro", 4, 4)
    for stage in found.stages:
        names = [layer.name for layer in stage.layers if layer.static]
        assert names == [f"bs.{stage.index}"]
        assert stage.work.forward > 0
        assert stage.work.backward > stage.work.forward
        assert not stage.work.unknown

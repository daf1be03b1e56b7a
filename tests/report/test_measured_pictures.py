"""What was measured as pictures: a step beside the predicted one, memory over it, the graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.artefacts.cpu_profile import MemorySample, memory_samples
from irtool.artefacts.damage import Damage
from irtool.artefacts.profile import StepTotals, cpu_profile, usual_place
from irtool.artefacts.trace_profile import trace_profile
from irtool.cluster.machine import default_machine
from irtool.cluster.measured import MeasuredStep, measured_step
from irtool.cluster.memory import memory
from irtool.cluster.modelled import modelled_step
from irtool.report.measured_pictures import (
    SERIES,
    PredictedRun,
    measured_graph,
    memory_picture,
    predicted_by_kernels,
    step_picture,
)

RUN = Path(__file__).parents[2] / "samples/artefacts/run"
LAUNCHES = RUN / "profiler/cpu_op_execute_timestamp_0.txt"


@pytest.fixture(scope="module")
def step() -> MeasuredStep:
    dump = irtool.load(str(next(RUN.glob("graphs/graph_build*"))))
    profile = cpu_profile(str(LAUNCHES), Damage(str(LAUNCHES)))
    return measured_step(profile, dump, default_machine())


def steps(*walls: float) -> tuple[StepTotals, ...]:
    return tuple(StepTotals(str(at), wall, wall, 0, 0) for at, wall in enumerate(walls))


@pytest.mark.parametrize(
    ("walls", "place"),
    [((), None), ((5,), 0), ((5, 7), 0), ((9, 7, 8), 1), ((1, 9, 7, 8), 3), ((1, 4, 3, 2, 5), 2)],
)
def test_the_usual_step_is_no_outlier_and_no_warm_up(
    walls: tuple[float, ...], place: int | None
) -> None:
    assert usual_place(steps(*walls)) == place


def test_the_runs_of_the_usual_step_are_in_order(step: MeasuredStep) -> None:
    usual = step.profile.usual
    assert usual is not None
    assert usual.name == "2"
    assert len(usual.runs) == 83
    starts = [run.start for run in usual.runs]
    assert starts == sorted(starts)
    assert starts[0] == usual.begin


def test_a_trace_holds_the_same_step(step: MeasuredStep) -> None:
    path = str(RUN / "profiler/trace_view.json")
    told, own = trace_profile(path, Damage(path)).usual, step.profile.usual
    assert told is not None
    assert own is not None
    assert {run.name for run in told.runs} == {run.name for run in own.runs}


def test_a_step_stands_above_the_predicted_one_in_its_order(step: MeasuredStep) -> None:
    predicted = predicted_by_kernels(modelled_step(step.dump, default_machine()), step)
    assert {each.series for each in predicted} <= set(SERIES)
    phases = [each.series for each in predicted]
    assert phases.index("forward") < phases.index("backward") < phases.index("optimizer")
    (picture,) = step_picture(step, predicted)
    assert "measured, computing: GeLUGrad" in picture.svg
    assert "model, computing: GeLUGrad" in picture.svg
    assert "communicating" not in picture.svg
    assert "6.21 ms; the model's" in picture.note


def test_communication_has_a_lane_of_its_own(step: MeasuredStep) -> None:
    predicted = [
        PredictedRun("MatMul", "forward", 0.0, 1.0),
        PredictedRun("AllReduce of w", "communication", 0.5, 1.0),
    ]
    (picture,) = step_picture(step, predicted)
    assert "model, communicating: AllReduce of w" in picture.svg


def test_what_is_too_fine_to_be_seen_is_joined(step: MeasuredStep) -> None:
    fine = [PredictedRun("Cast", "forward", at / 10_000, 1 / 10_000) for at in range(10_000)]
    (picture,) = step_picture(step, fine)
    assert "Cast and 9999 more" in picture.svg
    coarse = [PredictedRun("Cast", "forward", at / 100, 1 / 100) for at in range(100)]
    (picture,) = step_picture(step, coarse)
    assert picture.svg.count("model, computing: Cast,") == 100


def test_without_times_there_is_no_picture(step: MeasuredStep) -> None:
    bare = replace(step, profile=replace(step.profile, usual=None))
    assert list(step_picture(bare, [])) == []
    assert list(memory_picture(bare, memory(step.dump), [])) == []


def test_predicted_memory_runs_along_the_recorded_pool(step: MeasuredStep) -> None:
    path = str(RUN / "profiler/cpu_ms_memory_record_0.txt")
    samples = list(memory_samples(path, Damage(path)))
    (picture,) = memory_picture(step, memory(step.dump), samples)
    assert "the pool, as recorded" in picture.svg
    usual = step.profile.usual
    assert usual is not None
    before = [MemorySample(usual.begin - 1, 1, 1, 1)]
    (alone,) = memory_picture(step, memory(step.dump), before)
    assert "the pool, as recorded" not in alone.svg


def test_time_and_memory_lie_over_the_graph_that_ran(step: MeasuredStep) -> None:
    graph = measured_graph(step, memory(step.dump))
    overlays = {each["topic"]: each for each in graph.data["overlays"]}
    assert list(overlays) == ["measured", "cost", "memory"]
    assert len(overlays["measured"]["marks"]) == 83
    assert overlays["measured"]["unit"] == "seconds"
    values = [mark[1] for mark in overlays["memory"]["marks"]]
    assert sum(values) == memory(step.dump).dynamic_bytes
    without = measured_graph(step, None).data["overlays"]
    assert [each["topic"] for each in without] == ["measured", "cost"]

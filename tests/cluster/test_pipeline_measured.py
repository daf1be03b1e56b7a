"""Steps of stages as measured, beside the schedule.

Tables are written here under the header of MindSpore 2.7.0's viewer: no real one of MindSpore was
seen.  One of a cluster that msprof-analyze wrote has the same columns.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from irtool.artefacts.kernels import StepTime
from irtool.cli.main import main
from irtool.cluster.pipeline.measured import measured_stage

ROOT = Path(__file__).parents[2]
HEADER = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def step(computing: float, exposed: float, free: float, bubble: float | None) -> StepTime:
    return StepTime(1, "", computing, exposed, 10.0, free, None, bubble)


def test_the_usual_step_is_the_median_without_the_first_of_three() -> None:
    steps = [step(900, 0, 0, 0), step(100, 60, 40, 50), step(300, 60, 40, 30)]
    found = measured_stage(2, 1, "", steps)
    assert found.steps == 2
    assert (found.computing, found.exposed) == pytest.approx((200e-6, 60e-6))
    assert (found.total, found.bubble) == pytest.approx((300e-6, 40e-6))
    assert found.idle == pytest.approx(1 / 3)


def test_two_steps_both_count() -> None:
    assert measured_stage(0, None, "", [step(100, 0, 0, None), step(300, 0, 0, None)]).steps == 2


def test_a_table_without_bubbles_tells_none() -> None:
    assert measured_stage(0, 0, "", [step(1, 1, 1, None)]).bubble is None


def test_bubbles_of_a_run_stand_beside_its_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(ROOT / "samples/pipeline_2_stages", run)
    for rank, bubble in ((0, 700), (2, 400)):
        folder = run / f"rank_{rank}" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir()
        rows = [f"{number},500,{bubble + 100},50,650,200,0,{bubble},100,0" for number in (1, 2)]
        text = "\n".join([HEADER, *rows, "3,nonsense,,,,,,,,"]) + "\n"
        (folder / "step_trace_time.csv").write_text(text, encoding="utf-8")
    main(["pipeline", str(run), "-f", "json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)["measured"]
    assert [(each["rank"], each["stage"]) for each in found] == [(0, 0), (2, 1)]
    assert [each["bubble"] for each in found] == pytest.approx([700e-6, 400e-6])
    assert found[0]["total"] == pytest.approx(1500e-6)
    assert "ART002" in captured.err
    main(["pipeline", str(run)])
    assert "Steps as measured" in capsys.readouterr().out

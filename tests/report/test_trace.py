"""A predicted step as a trace: everything that is priced stands in it once, nothing at once in a
lane."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"
BEGINS = [
    "gpt/step_parallel_begin_0018.ir",
    "mlp_semi_auto/step_parallel_begin_0018.ir",
    "shard_size_4/step_parallel_begin_0018.ir.xz",
]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main(["cost", *words])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("begin", BEGINS)
def test_the_trace_holds_all_seconds_of_the_step(
    begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(SAMPLES / begin)
    seconds = asked(capsys, path, "-f", "json")["cost"]["before"]
    events = asked(capsys, path, "-f", "perfetto")["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert sum(span["dur"] for span in spans) == pytest.approx(seconds * 1e6)
    assert max(span["ts"] + span["dur"] for span in spans) <= seconds * 1e6 * (1 + 1e-9)
    for lane in (1, 2):
        times = sorted((s["ts"], s["ts"] + s["dur"]) for s in spans if s["tid"] == lane)
        assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(times))


def test_a_stage_is_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    events = asked(capsys, str(SAMPLES / "pipeline_run"), "-f", "perfetto")["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    assert [name.split(",")[0] for _, name in sorted(names.items())] == ["stage 0", "stage 1"]

"""``irtool plan --to-stages``: a pipeline as a table, as JSON, and for MindSpore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main

BEGIN = "mlp_recursive_search/step_parallel_begin_0019.ir"


def run(capsys: pytest.CaptureFixture[str], samples: Path, *arguments: str) -> tuple[int, str, str]:
    status = main(["plan", str(samples / BEGIN), "--to-stages", "2", *arguments])
    found = capsys.readouterr()
    return status, found.out, found.err


def test_stages_are_shown(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples, "--micro-batches", "4")
    assert status in (0, 1)
    assert "8: 2 stages of 4" in out
    assert "a step of 4 micro-batches" in out
    assert "a device of the fullest stage" in out


def test_strategies_of_the_dump_stand_before_those_of_stages(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    main(["plan", str(samples / BEGIN), "-f", "json"])
    plain = json.loads(capsys.readouterr().out)
    _, out, _ = run(capsys, samples, "-f", "json")
    before = {row["node"]: row["before"] for row in json.loads(out)["operators"]}
    assert before == {row["node"]: row["before"] for row in plain["operators"]}
    assert any(before.values())


def test_the_object_is_of_the_fullest_stage_and_of_all_work(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples, "--format", "json")
    found = json.loads(out)
    stages = found["pipeline"]["stages"]
    fullest = max(each["static_bytes"] + each["activation_bytes"] for each in stages)
    assert found["memory_bytes"]["total"] == fullest
    assert found["cost"]["after"] == pytest.approx(sum(each["seconds"] for each in stages))
    assert found["cost"]["lower_bound"] <= found["cost"]["after"]
    assert [(each["from"], each["to"]) for each in found["pipeline"]["transfers"]] == [(0, 1)]


def test_decisions_are_made_inside_of_stages(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    options = ("--recompute", "auto", "--optimizer-parallel", "auto", "--format", "json")
    _, out, _ = run(capsys, samples, *options)
    found = json.loads(out)
    assert found["decisions"] is not None
    assert found["pipeline"]["replanned"] == []


def test_cells_get_their_stage(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, out, _ = run(capsys, samples, "--format", "shard")
    assert status == 0
    assert "net.network._backbone.up.pipeline_stage = 0" in out
    assert "net.network._backbone.down.pipeline_stage = 1" in out


def test_the_file_has_the_keys_of_the_network_in_a_pipeline_cell(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    status, out, _ = run(capsys, samples, "--format", "strategy", "--micro-batches", "4")
    assert status == 0
    keys = json.loads(out)["parallel_strategy_item"]
    assert sum("/up-Linear/MatMul-op" in key for key in keys) == 1
    assert sum("/StridedSlice-op" in key for key in keys) == 8
    assert all("PipelineCell" in key or "_VirtualDataset" in key for key in keys)

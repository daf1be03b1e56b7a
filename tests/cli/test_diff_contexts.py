"""What ``irtool diff`` tells scripts of the contexts that both sides were compiled with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

BEGIN = "step_parallel_begin_0018.ir"


def answer(capsys: pytest.CaptureFixture[str], *sides: Path) -> dict[str, Any]:
    main(["diff", *map(str, sides), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_two_dumps_have_the_contexts_of_their_folders(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    sides = [samples / name / BEGIN for name in ("mlp_rejected", "mlp_semi_auto")]
    told = answer(capsys, *sides)
    assert [one["files"] for one in told["contexts"]] == [[str(side)] for side in sides]
    assert told["context"] == told["contexts"][0]["context"]
    assert told["context"]["device_num"]["path"] == str(samples / "mlp_rejected" / "case.json")
    assert told["context"]["origins"]["device_target"] == "assumed"


def test_two_runs_have_those_of_the_dumps_that_were_compared(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    told = answer(capsys, *(samples / "mlp_grown" / name for name in ("before", "after")))
    assert [one["context"]["device_num"]["origin"] for one in told["contexts"]] == ["file", "file"]


def test_without_folder_only_the_dump_tells(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    lone = tmp_path / "lone.ir"
    lone.write_bytes((samples / "mlp_semi_auto" / BEGIN).read_bytes())
    told = answer(capsys, lone, lone)
    assert told["identical"]
    assert "file" not in told["context"]["origins"].values()

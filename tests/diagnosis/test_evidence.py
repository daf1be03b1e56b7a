"""What is said of compiled runs with one planted cause each (MindSpore 2.7.0, paths neutral)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from irtool.cli.main import app

EVIDENCE = Path(__file__).parent / "evidence"


def findings(name: str, *words: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["doctor", str(EVIDENCE / name), "--format", "json", *words])
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)["findings"]


def test_a_step_of_gradients_and_updates_is_told_before_what_saves_less() -> None:
    first = findings("weights_of_most_of_a_step", "--devices", "8")[0]
    assert (first["task"], first["severity"]) == ("slow-step", "info")
    assert first["edit"] == {"setting": "enable_parallel_optimizer", "value": True}
    assert first["gain"]["seconds"] > 1e-3
    assert "gradients" in first["cause"]


def test_a_layer_that_lies_unlike_its_equals_is_one_finding() -> None:
    first = findings("a_layer_on_another_mesh", "--devices", "2")[0]
    assert "12 operators of layers.2 are sharded differently from their peers" in first["cause"]
    assert "4 redistributions fewer" in first["cause"]
    assert (first["severity"], first["gain"]) == ("info", None)


def test_tensor_parallel_ranks_on_several_nodes_are_a_fault() -> None:
    first = findings("ranks_across_nodes")[0]
    assert (first["task"], first["severity"]) == ("group", "warning")
    assert first["gain"]["seconds"] > 0
    assert first["source"]["line"] > 0

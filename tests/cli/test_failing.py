"""``--fail-on``: from which severity on commands that judge end with status 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.cli.failing import FailLevel, fails
from irtool.cli.main import main


@pytest.mark.parametrize(
    ("level", "statuses"),
    [("error", (1, 0, 0)), ("warning", (1, 1, 0)), ("info", (1, 1, 1)), ("never", (0, 0, 0))],
)
def test_a_severity_fails_from_its_level_on(level: str, statuses: tuple[int, int, int]) -> None:
    found = tuple(fails(FailLevel(level), severity) for severity in ("error", "warning", "info"))  # type: ignore[arg-type]  # a tuple of literals
    assert found == statuses
    assert fails(FailLevel(level), None) == 0


@pytest.mark.parametrize(
    ("command", "path", "level", "status"),
    [
        ("check", "mlp_rejected", "error", 1),
        ("check", "mlp_rejected", "never", 0),
        ("lint", "mlp_rejected", "error", 1),
        ("lint", "recompute_lost", "error", 0),
        ("lint", "recompute_lost", "warning", 1),
        ("doctor", "recompute_lost", "warning", 1),
        ("doctor", "recompute_lost", "error", 0),
        ("cost", "mlp_rejected", "error", 1),
        ("cost", "mlp_rejected", "never", 0),
        ("plan", "mlp_semi_auto", "info", 1),
        ("plan", "mlp_semi_auto", "warning", 0),
        ("pipeline", "pipeline_2_stages/rank_0", "info", 1),
        ("pipeline", "pipeline_2_stages/rank_0", "warning", 0),
        ("recover", "gpt", "info", 0),
    ],
)
def test_commands_that_judge_take_it(
    samples: Path,
    command: str,
    path: str,
    level: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([command, str(samples / path), "--fail-on", level]) == status
    capsys.readouterr()


def test_a_hang_is_an_error(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(samples / "hang_one_strategy")
    assert main(["comm", "hang", run, "--fail-on", "error"]) == 1
    assert main(["comm", "hang", run, "--fail-on", "never"]) == 0
    capsys.readouterr()


def test_what_differs_is_a_warning(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [str(samples / name) for name in ("mlp_semi_auto", "mlp_rejected")]
    assert main(["diff", *sides, "--fail-on", "warning"]) == 1
    assert main(["diff", *sides, "--fail-on", "error"]) == 0
    capsys.readouterr()


def test_a_parameter_of_no_old_checkpoint_is_a_warning(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = samples / "strategies"
    layouts = [str(folder / "dp2tp2.json"), str(folder / "merged/dp2tp2pp2.json")]
    assert main(["ckpt", *layouts, "--fail-on", "warning"]) == 1
    assert main(["ckpt", *layouts, "--fail-on", "error"]) == 0
    capsys.readouterr()


def test_a_refused_plan_to_recover_to_is_an_error(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["recover", str(samples / "mlp_semi_auto"), "--to", "8"]
    refused = [*asked, "--plan", str(samples / "mlp_rejected")]
    assert main([*refused, "--fail-on", "error"]) == 1
    assert main([*refused, "--fail-on", "never"]) == 0
    capsys.readouterr()

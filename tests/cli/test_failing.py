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

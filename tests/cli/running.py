"""Command lines in this process, in the repository's root, so that paths in outputs stay short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from irtool.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command line ended."""

    status: int
    output: str
    errors: str


Run = Callable[..., Ran]
"""Runs a command line, whose arguments may be paths."""


def runner(
    capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, *command: str
) -> Run:
    """What runs command lines in a test.

    Args:
        capture: of the test.
        monkeypatch: of the test.
        command: what every command line begins with.
    """
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("IRTOOL_DEBUG", raising=False)

    def run(*arguments: str | Path) -> Ran:
        capture.readouterr()
        status = main([*command, *map(str, arguments)])
        captured = capture.readouterr()
        output = captured.out.decode("utf-8", "replace")
        return Ran(status, output, captured.err.decode("utf-8"))

    return run

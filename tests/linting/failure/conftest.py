"""Helpers for tests of what a failed run leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from irtool.linting.failure.finding import Explained, LoggedFinding
from irtool.linting.failure.log import LogReader

HERE = Path(__file__).resolve().parent
Read = Callable[[Iterable[str]], Explained]
ReadLog = Callable[[str, str], list[LoggedFinding]]


@pytest.fixture
def read() -> Read:
    """Read lines as a log."""

    def _read(lines: Iterable[str]) -> Explained:
        reader = LogReader("run.log")
        for number, line in enumerate(lines, 1):
            reader.feed(number, line)
        return reader.finish()

    return _read


@pytest.fixture
def read_log(read: Read) -> ReadLog:
    """Findings of a log in ``logs/VERSION/NAME.log``."""

    def _read(version: str, name: str) -> list[LoggedFinding]:
        path = HERE / "logs" / version / f"{name}.log"
        return list(read(path.read_text(encoding="utf-8").split("\n")).findings)

    return _read


@pytest.fixture
def material() -> Path:
    """The folder of logs and failure dumps."""
    return HERE

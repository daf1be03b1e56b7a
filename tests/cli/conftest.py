"""Fixtures of the tests of commands."""

from __future__ import annotations

import pytest

from tests.cli.running import Run, runner


@pytest.fixture
def irtool(
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Run:
    """Runs command lines; a module's ``COMMAND`` is what all of its command lines begin with."""
    command: str = getattr(request.module, "COMMAND", "")
    return runner(capfdbinary, monkeypatch, *command.split())

"""Help, version, and what must not be imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import irtool
from irtool.cli.commands import COMMANDS
from irtool.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert "Usage: irtool" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"irtool {irtool.__version__}\n"


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Commands:" in "".join(capsys.readouterr())


def test_help_imports_neither_lark_nor_rich() -> None:
    code = (
        "import sys; from irtool.cli.main import main; main(['--help']);"
        "print([name for name in ('lark', 'rich', 'pyarrow', 'graphviz') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"

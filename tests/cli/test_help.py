"""Help, version, and what must not be imported for them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cli.commands import COMMANDS
from irtool.cli.help import EXAMPLES
from irtool.cli.main import app, main

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


def test_no_command_shows_what_to_do_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 2
    shown = capsys.readouterr().out
    assert "irtool RUN" in shown
    assert "irtool --help" in shown
    assert "MS_DEV_SAVE_GRAPHS" in shown
    assert "this folder" not in shown.lower()
    assert all(len(line) <= 100 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("name", "said"), [("rank_0", "looks like a run"), ("a.ir", "dumps in this folder")]
)
def test_no_command_looks_for_dumps_here(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    said: str,
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    main([])
    assert said in capsys.readouterr().out


def test_help_imports_neither_lark_nor_rich() -> None:
    code = (
        "import sys; from irtool.cli.main import main; main(['--help']);"
        "print([name for name in ('lark', 'rich', 'pyarrow', 'graphviz') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


# -- groups and examples ---------------------------------------------------------------------------


def command_words() -> list[str]:
    """Every command, those of a group with its word before; "" is irtool alone."""
    inner = [f"comm {name}" for name in ("groups", "hang", "reuse", "fuse")]
    return ["", *COMMANDS, *inner]


@pytest.mark.parametrize("words", command_words())
def test_help_ends_in_two_or_three_examples(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--help"]) == 0
    _, _, shown = capsys.readouterr().out.partition("Examples:\n")
    lines = shown.splitlines()
    assert 2 <= len(lines) <= 3
    assert tuple(line.strip() for line in lines) == EXAMPLES[words]
    assert all(len(line) < 80 for line in lines)


@pytest.mark.parametrize(
    ("words", "line"), [(words, line) for words, lines in EXAMPLES.items() for line in lines]
)
def test_examples_are_lines_that_the_command_understands(words: str, line: str) -> None:
    arguments = shlex.split(line)[1:]
    command: Any = app
    context: Any = None
    if arguments[0] == "RUN":  # a folder alone is a run
        arguments = ["doctor", *arguments]
    whole = 2 if arguments[0] == "comm" else 1
    assert " ".join(arguments[:whole]).startswith(words) or words == "doctor"
    words = " ".join(arguments[:whole])
    for word in words.split():
        context = command.make_context("irtool", [], parent=context, resilient_parsing=True)
        command = command.get_command(context, word)
    command.make_context(words, arguments[len(words.split()) :], parent=context)


def test_options_stand_in_groups_those_of_the_context_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["plan", "--help"])
    shown = capsys.readouterr().out
    titles = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:2] == ["Arguments:", "Options:"]
    assert titles[-4:] == ["What is read:", "Output:", "Parallel context:", "Examples:"]
    assert "What a plan is held to:" in titles
    output = shown[shown.index("Output:") : shown.index("Parallel context:")]
    assert "--format" in output
    assert "--limit" in output

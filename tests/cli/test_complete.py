"""Completion, asked as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from irtool.cli import complete

VALIDATE = "samples/mlp_semi_auto/20_validate_0080.ir"


def offered(line: str) -> list[str]:
    """What bash would offer for the last word of a line."""
    words = line.split(" ")
    ran = subprocess.run(
        [sys.executable, "-c", "from irtool.__main__ import main; main()"],
        env={
            **os.environ,
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_IRTOOL_COMPLETE": "bash_complete",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    return [line.removeprefix("plain,") for line in ran.stdout.split("\n")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("irtool lint --select STR", "STR001"),
        ("irtool lint --ignore COM001,STR00", "COM001,STR001"),
        ("irtool rules COM0", "COM001"),
        ("irtool cost --machine gpu", "gpu_h100"),
        (f"irtool comm groups {VALIDATE} --group 4-6", "4-6301172352641561019"),
        (f"irtool check {VALIDATE} --why %5", "%52"),
    ],
)
def test_a_shell_is_offered_what_there_is(line: str, expected: str) -> None:
    assert expected in offered(line)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", "op"),
        ("sco", "scope"),
        ('op == "MatMul" and sha', 'op == "MatMul" and shape'),
        ('op == "MatMu', 'op == "MatMul'),
        ("op in ('Add', 'Mul', 'MatM", "op in ('Add', 'Mul', 'MatMul"),
        ("not (att", "not (attr."),
    ],
)
def test_the_last_word_of_a_query_is_completed(typed: str, expected: str) -> None:
    found = complete.query_words(typed)
    assert expected in found
    assert all(text.startswith(typed) for text in found)


@pytest.mark.parametrize("line", ["", "irtool check no-such.ir --why ", "irtool check 'no-such.ir"])
def test_a_dump_that_is_not_there_offers_nothing(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    assert complete.groups("") == []
    assert complete.nodes("%") == []
    assert complete.nodes("") == []


def test_all_names_of_a_large_dump_help_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "irtool check samples/gpt/20_validate_0080.ir --why %")
    assert len(complete.nodes("%")) == complete.MOST

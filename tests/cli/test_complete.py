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
        (f"irtool viz {VALIDATE} --around %5", "%52"),
        (f"irtool viz {VALIDATE} --path %5 %7", "%73"),
        (f"irtool viz {VALIDATE} --around equiv_33", "equiv_33_CNode_445"),
        (f"irtool parse {VALIDATE} --history %5", "%52"),
        (f"irtool parse {VALIDATE} --reduce %5", "%52"),
        (f"irtool parse {VALIDATE} --group-by op,pha", "op,phase"),
        ("irtool parse --keep STR00", "STR001"),
        ("irtool gate --select GAT00", "GAT001"),
        ("irtool explain STR00", "STR001"),
        ("irtool rules MatM", "MatMul"),
    ],
)
def test_a_shell_is_offered_what_there_is(line: str, expected: str) -> None:
    assert expected in offered(line)


@pytest.mark.parametrize(
    "line",
    [
        "irtool samp",
        "irtool parse samp",
        "irtool diff samples samp",
        "irtool explain samp",
        "irtool cost --machine ./ours",
        f"irtool parse {VALIDATE} -o samp",
    ],
)
def test_where_a_path_may_stand_the_shell_offers_its_files(line: str) -> None:
    assert offered(line)[:2] == [f"file,{line.split()[-1]}", ""]


@pytest.mark.parametrize(
    "line", ["irtool doc", "irtool lint --select STR00", "irtool viz --radius "]
)
def test_elsewhere_it_does_not(line: str) -> None:
    assert not [each for each in offered(line) if each.startswith("file,")]


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

"""What README claims is run: every row of symptom → command, the screenful, the Python lines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from irtool.cli.main import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = [
    (symptom, command)
    for symptom, commands in re.findall(r"^\| ([^|]+?) \| (`irtool [^|]+) \|", README, re.MULTILINE)
    for command in re.findall(r"`(irtool [^`]+)`", commands)
]
SYMPTOMS = {
    "out of memory", "slow step", "slow compile", "compile failure", "strategy rejected",
    "wrong group", "hang", "stage imbalance", "missing recompute", "unexpected AllGather",
    "wrong loss", "failed node",
}  # fmt: skip
"""Symptoms that people come with."""
FINDS = {
    "strategy rejected", "compile failure", "wrong loss", "wrong on another device", "what changed",
    "better strategy", "something is wrong with a run, or nobody knows yet", "hang",
    "missing recompute", "slow compile", "findings in CI", "regressions in CI",
}  # fmt: skip
"""Symptoms whose command has something to tell: exit status 1."""


def run(command: str) -> tuple[int, str]:
    words = shlex.split(command.replace("\\|", "|"))
    result = CliRunner().invoke(app, words[1:])
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def beside_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a clone, where commands that write may write."""
    (tmp_path / "samples").symlink_to(ROOT / "samples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")


def test_every_symptom_has_a_row() -> None:
    assert {symptom for symptom, _ in ROWS} >= SYMPTOMS


@pytest.mark.parametrize(("symptom", "command"), ROWS)
def test_row_runs_and_finds_something(symptom: str, command: str) -> None:
    status, output = run(command)
    assert status == (1 if symptom in FINDS else 0), output
    _, _, written = command.partition(" -o ")
    if written:
        output = Path(written).read_text(encoding="utf-8")
    assert len(output.splitlines()) >= 3, f"{symptom}: nothing to look at"


@pytest.mark.parametrize("command", [command for _, command in ROWS])
def test_row_is_for_a_terminal(command: str) -> None:
    """What a terminal can't show goes to a file: there the row would end in an error."""
    assert " -o " in command or not re.search(r"irtool viz|--format (html|strategy)", command)


def test_screenful_is_what_the_command_prints() -> None:
    block = re.search(r"^```\n\$ (irtool .*)\n([\s\S]*?)\n```$", README, re.MULTILINE)
    assert block is not None
    status, output = run(block[1])
    assert status == 0
    assert output.strip() == block[2].strip()


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target

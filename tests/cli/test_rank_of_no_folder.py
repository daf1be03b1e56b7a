"""Dumps of another rank than 0, in a folder that does not say whose they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

RANK_5 = Path(__file__).resolve().parents[1] / "cluster" / "context" / "interleaved_rank_5"
"""Two stages of four devices."""

COMMANDS = (
    ("check",),
    ("cost",),
    ("plan",),
    ("memory",),
    ("pipeline",),
    ("comm", "groups"),
    ("comm", "hang"),
    ("comm", "reuse"),
    ("comm", "fuse"),
    ("recover", "--lost", "0"),
    ("lint", "--no-cache"),
)
_APART = ("context", "contexts", "assumptions", "contradictions", "path", "file", "seconds")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_answer_is_that_of_a_folder_of_their_rank(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, named = tmp_path / "plain" / "run", tmp_path / "named" / "run"
    shutil.copytree(RANK_5, plain)
    shutil.copytree(RANK_5, named / "rank_5")
    split = 2 if words[0] == "comm" else 1
    answers: list[Any] = []
    for folder in (plain, named):
        main([*words[:split], str(folder), *words[split:], "--format", "json"])
        answers.append(_bare(json.loads(capsys.readouterr().out)))
    assert answers[0] == answers[1]


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key not in _APART}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_bare(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value

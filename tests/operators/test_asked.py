"""Networks that MindSpore was asked about to settle one question each, replayed.

``asked.jsonl.xz`` holds them in the form of ``benchmarks/record_operators``: gradients of several
results and of constants, int64 where rows are masked, a place counted from behind, ranks of
indices, strategies of another length.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.replay_operators import disagreements, records

ASKED: dict[str, dict[str, Any]] = {
    record["case"]["name"]: record
    for record in records([Path(__file__).with_name("asked.jsonl.xz")])
}


@pytest.mark.parametrize("name", ASKED)
def test_what_mindspore_answered_is_what_is_said(name: str) -> None:
    wrong = disagreements(ASKED[name])
    assert not wrong, "\n".join(map(str, wrong))


def test_each_question_was_answered_both_ways() -> None:
    verdicts = Counter(record["verdict"] == "accepted" for record in ASKED.values())
    assert min(verdicts.values()) > 30

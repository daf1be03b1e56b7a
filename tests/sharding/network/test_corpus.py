"""Verdicts on real compilations, most of which are MindSpore's own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

REFUSED = ("init failed", "extract configured layout failed", "TensorInfo are different")


@pytest.mark.slow
def test_verdicts_equal_those_of_mindspore(corpus: Path) -> None:
    total = equal = unknown = 0
    wrong: list[str] = []
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        begin = next(path.parent.glob("step_parallel_begin*"), None)
        about = case["accepted"] or any(words in case["error"] for words in REFUSED)
        if begin is None or not about:
            continue
        report = check(irtool.load(begin), ParallelContext.from_mapping(case["context"]))
        total += 1
        equal += report.accepted is case["accepted"]
        unknown += report.accepted is None
        if case["accepted"] and report.accepted is False:
            wrong.append(path.parent.name)
    assert not wrong, "legal networks called illegal"
    assert equal >= 0.99 * total
    assert unknown <= 0.05 * total

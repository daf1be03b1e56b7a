"""Verdicts on real compilations, most of which are MindSpore's own tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

LOG = re.compile(r"\[mindspore/\S*?([\w.]+\.(?:cc|h)):\d+\] (\w+)\] ?(?:(\w+?)Info\d*\b)?")
"""File and function of a line of MindSpore's log, and the operator that it begins with."""

CODES = {
    "strategy-size": {"CheckStrategyByVector", "CheckStrategy", "CheckInputStrategy"},
    "strategy-length": {"CheckStrategyByVector", "CheckStrategy"},
    "strategy-value": {"CheckStrategyByVector"},
    "not-divisible": {"CheckStrategyByVector", "CheckStrategy", "InferDevMatrixShape"},
    "not-power-of-two": {"CheckStrategyByVector"},
    "device-count": {"InferRepeatedCalcInfo", "CheckStrategy", "CheckInputLayout"},
    "device-list": {"CheckDeviceList"},
    "context": {"ParallelInit"},
}
"""Functions of MindSpore that refuse for the reasons that every operator has."""

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


@pytest.mark.slow
def test_first_reasons_are_those_of_the_log(corpus: Path) -> None:
    told = 0
    wrong: list[str] = []
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        begin = next(path.parent.glob("step_parallel_begin*"), None)
        lines = [match for line in case["log"] if (match := LOG.match(line))]
        about = any(words in case["error"] for words in REFUSED)
        if case["accepted"] or begin is None or not lines or not about:
            continue
        report = check(irtool.load(begin), ParallelContext.from_mapping(case["context"]))
        errors = [finding for finding in report.findings if finding.severity == "error"]
        if not errors:
            continue  # the verdict is counted above
        file, function, operator = lines[0].groups()
        told += 1
        same = operator is None or errors[0].op.lstrip("_") == operator
        if not same or errors[0].check != f"{file}:{function}":
            wrong.append(f"{path.parent.name}: {errors[0].op} {errors[0].check}")
        if function not in CODES.get(errors[0].code, {function}):
            wrong.append(f"{path.parent.name}: {errors[0].code} from {function}")
    assert told > 50
    assert not wrong

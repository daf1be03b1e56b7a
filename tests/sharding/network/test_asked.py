"""Single questions that MindSpore 2.7.0 answered: what it takes, refuses, and communicates.

``asked.json.xz`` holds the dump before the parallel pass of each, without source lines, MindSpore's
verdict and first reason, and the communication operators of its validate dump.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult

RECORDS = lzma.decompress((Path(__file__).parent / "asked.json.xz").read_bytes())
ASKED: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}
EXCHANGE = "NeighborExchange"
"""Of an exchange between neighbours the records hold its group: all devices."""


def report_of(name: str) -> CheckResult:
    record = ASKED[name]
    dump = irtool.loads(record["begin"])
    return check(dump, ParallelContext.from_mapping(record["context"]))


@pytest.mark.parametrize("name", ASKED)
def test_verdict_is_mindspores_or_unknown(name: str) -> None:
    report = report_of(name)
    if report.accepted is None:
        assert any("nobody measured" in finding.message for finding in report.findings)
    else:
        assert report.accepted is ASKED[name]["accepted"]


@pytest.mark.parametrize("name", [name for name, record in ASKED.items() if record["accepted"]])
def test_communications_are_those_that_mindspore_compiled(name: str) -> None:
    report = report_of(name)
    predicted: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for item in report.communications:
        ranks = tuple(range(report.devices)) if item.op == EXCHANGE else item.ranks
        predicted[item.op, ranks] += item.count
    compiled = {(op, tuple(ranks)): count for op, ranks, count in ASKED[name]["communications"]}
    assert predicted == compiled

"""What is predicted of a network, in the form in which records hold what MindSpore compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from irtool.sharding.against import compare
from irtool.sharding.check import check
from irtool.sharding.network.report import CheckResult
from tests.records import Record

Launches: TypeAlias = "Counter[tuple[str, tuple[int, ...]]]"
"""How often a step launches an operator among some ranks."""


def predicted_launches(report: CheckResult) -> Launches:
    """All communication operators of the stage that are predicted."""
    launches: Launches = Counter()
    for item in report.communications:
        launches[item.op, item.ranks] += item.count
    return launches


def compiled_launches(record: Mapping[str, Any]) -> Launches:
    """All communication operators of the stage that a record has of its validate dump."""
    return Counter({(op, tuple(ranks)): count for op, ranks, count in record["communications"]})


def assert_is_as_compiled(report: CheckResult, record: Mapping[str, Any]) -> None:
    """All communication operators of the stage, and how each parameter is stored."""
    assert report.accepted is True
    assert predicted_launches(report) == compiled_launches(record)
    slices = {item.name: list(item.slice) for item in report.parameters if item.slice is not None}
    assert {name: slices.get(name) for name in record["slices"]} == record["slices"]


def assert_predicted(record: Record) -> None:
    """Slices, groups, collectives, redistributions, mirrors: nothing differs."""
    begin = record.dump("begin")
    report = check(begin, record.context)
    assert report.accepted is True
    found = compare(report, begin, record.dump("validate"))
    assert [item.message for item in found.differences] == []
    assert found.agrees
    legal = sum(item.verdict == "legal" for item in report.operators)
    assert found.matched == legal - record.removed

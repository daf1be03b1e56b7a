"""Networks as MindSpore compiled or refused them: what it made of each is what is predicted.

The networks are those of MindSpore's own tests of operators, each with the dump before the parallel
pass, the one after all passes, and what its log says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irtool.sharding.against import compare
from irtool.sharding.check import check
from tests.records import records
from tests.sharding.network.test_corpus import LOG

HERE = Path(__file__).parent
COMPILED = records(HERE / "compiled_cases.jsonl.xz")
REFUSED = records(HERE / "refused_cases.jsonl.xz")


@pytest.mark.parametrize("name", COMPILED)
def test_what_was_compiled_is_what_is_predicted(name: str) -> None:
    """Slices, groups, collectives, redistributions, mirrors: nothing differs."""
    record = COMPILED[name]
    begin = record.dump("begin")
    report = check(begin, record.context)
    assert report.accepted is True
    found = compare(report, begin, record.dump("validate"))
    assert [item.message for item in found.differences] == []
    assert found.agrees
    legal = sum(item.verdict == "legal" for item in report.operators)
    assert found.matched == legal - record.removed


@pytest.mark.parametrize("name", REFUSED)
def test_what_was_refused_is_refused_for_the_reason_of_the_log(name: str) -> None:
    record = REFUSED[name]
    report = check(record.dump("begin"), record.context)
    assert report.accepted is False
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert errors
    logged = next((match for line in record.log if (match := LOG.match(line))), None)
    if logged is not None and re.search(r"init failed|layout failed|are different", record.error):
        file, function, operator = logged.groups()
        assert errors[0].check == f"{file}:{function}"
        assert operator is None or errors[0].op.lstrip("_") == operator

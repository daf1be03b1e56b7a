"""Networks as MindSpore compiled or refused them: what it made of each is what is predicted.

The networks are those of MindSpore's own tests of operators, each with the dump before the parallel
pass, the one after all passes, and what its log says.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.ir.collectives import is_collective
from irtool.ir.dump import Dump
from irtool.sharding.against import compare
from irtool.sharding.check import check
from irtool.sharding.network.report import OperatorReport
from irtool.sharding.why import explain_in
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.walk import surroundings
from tests.records import Record, records
from tests.sharding.network.compiled import assert_predicted
from tests.sharding.network.test_corpus import LOG

HERE = Path(__file__).parent
COMPILED = records(HERE / "compiled_cases.jsonl.xz")
REFUSED = records(HERE / "refused_cases.jsonl.xz")


@pytest.mark.parametrize("name", COMPILED)
def test_what_was_compiled_is_what_is_predicted(name: str) -> None:
    """Slices, groups, collectives, redistributions, mirrors: nothing differs."""
    assert_predicted(COMPILED[name])


STRATEGY = re.compile(r"in_strategy: (\((?:\([\d, ]*\)(?:, )?)+\))")


SPLIT = [
    name
    for name, record in COMPILED.items()
    if record.context.stages == 1
    and any(re.search("[2-9]", match[1]) for match in STRATEGY.finditer(record.dumps["begin"]))
]
"""Networks of one stage with an operator that is split by a strategy."""


def with_whole(record: Record, operator: OperatorReport) -> Dump | None:
    """The begin dump with one operator that is not split at all; None where it is not already."""
    lines = record.dumps["begin"].split("\n")
    place = operator.node.line - 1
    match = STRATEGY.search(lines[place])
    if match is None:
        return None
    whole = re.sub(r"\d+", "1", match[0])
    lines[place] = lines[place].replace(match[0], whole)
    changed = irtool.loads("\n".join(lines), "step_parallel_begin_0018.ir")
    return changed if whole != match[0] else None


@pytest.mark.parametrize("name", SPLIT)
def test_another_strategy_than_was_compiled_is_noticed(name: str) -> None:
    """With one operator whole that was split, the operator itself is named."""
    record = COMPILED[name]
    for operator in check(record.dump("begin"), record.context).operators:
        begin = with_whole(record, operator)
        if operator.op == "_VirtualDataset" or begin is None:
            continue
        report = check(begin, record.context)
        if not report.accepted:
            continue
        found = compare(report, begin, record.dump("validate"))
        assert not found.agrees
        named = {(item.kind, item.begin.id) for item in found.differences if item.begin is not None}
        lone = {item.begin.id for item in found.unmatched if item.begin is not None}
        here = operator.node.id
        assert {("strategy", here), ("slice", here)} & named or here in lone
        return
    pytest.fail("no operator of it could be whole")


ORIGINS = {
    "redistribution": {"redistribution", "dataset"},
    "forward": {"forward reduction"},
    "mirror": {"mirror"},
}
"""What MindSpore calls the nodes that it inserts, and what that makes them."""


def causes(record: Record) -> list[tuple[str, Cause]]:
    """The collectives of a compiled network by the names MindSpore gave them, with their causes."""
    later = record.dump("validate")
    around = surroundings(later, record.dump("begin"))
    return [
        (node.instance_name or "", explain_in(around, node))
        for node in later.nodes(where=is_collective)
    ]


def test_why_a_collective_is_there_is_what_its_name_says() -> None:
    seen: Counter[str] = Counter()
    for record in COMPILED.values():
        for name, cause in causes(record):
            assert cause.kind != "unknown"
            word = next((word for word in ORIGINS if word in name), None)
            if word is not None:
                assert cause.kind in ORIGINS[word], (record.name, name)
                assert cause.is_gradient == name.startswith("grad")
                assert cause.op == cause.node.op
                seen[word] += 1
    assert seen.keys() == ORIGINS.keys()
    assert seen["redistribution"] > 30


FORWARD = re.compile(r"= (?:AllReduce|AllGather|ReduceScatter)\(.*instance name: (?:forward|redis)")


def with_other(line: str, what: str) -> str:
    """The line of a collective with another reduction, or another group of as many ranks."""
    if what == "reduction":
        return line.replace('op: "sum"', 'op: "max"')
    match = re.search(r"rank_list: \(([\d, ]+)\)", line)
    ranks = [int(word) for word in match[1].split(", ")] if match else []
    others = [rank for rank in range(8) if rank not in ranks][: len(ranks)]
    if match is None or len(others) < max(2, len(ranks)):
        return line
    line = re.sub(r'group: "[^"]+"', 'group: "another"', line)
    return line.replace(match[0], f"rank_list: ({', '.join(map(str, others))})")


@pytest.mark.parametrize("what", ["reduction", "group"])
def test_another_collective_than_was_predicted_is_noticed(what: str) -> None:
    """Every collective of the forward pass in turn, wherever its edge can be compared."""
    tried = 0
    for record in COMPILED.values():
        lines = record.dumps["validate"].split("\n")
        for place, line in enumerate(lines):
            other = with_other(line, what) if FORWARD.search(line) else line
            if other == line:
                continue
            text = "\n".join([*lines[:place], other, *lines[place + 1 :]])
            begin = record.dump("begin")
            report = check(begin, record.context)
            found = compare(report, begin, irtool.loads(text, "20_validate_0080.ir"))
            assert found.differences or found.unmatched, record.name
            tried += 1
    assert tried > 8


@pytest.mark.parametrize("name", list(COMPILED)[::4])
def test_an_optimizer_that_was_not_shared_is_noticed(name: str) -> None:
    """Nothing is gathered in the dump of what is predicted to be gathered."""
    record = COMPILED[name]
    begin = record.dump("begin")
    context = replace(record.context, parallel_optimizer=True, threshold=0)
    report = check(begin, context)
    shared = {item.name for item in report.parameters if item.gather_ranks}
    found = compare(report, begin, record.dump("validate"))
    told = {item.parameter for item in found.differences}
    if not record.context.parallel_optimizer:
        assert shared <= told
        assert found.agrees == (not shared)


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

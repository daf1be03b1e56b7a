"""What irtool says of networks of one operator is what MindSpore said: the records, replayed."""

from __future__ import annotations

import csv
import importlib.util
import json
import lzma
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MEASURED = BENCHMARKS / "record_operators" / "measured.tsv"
with MEASURED.open(encoding="utf-8", newline="") as table:
    OPERATORS = sorted({row["operator"] for row in csv.DictReader(table, delimiter="\t")})


@pytest.fixture(scope="module")
def replay() -> Any:
    spec = importlib.util.spec_from_file_location(
        "replay_operators", BENCHMARKS / "replay_operators.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def lines_by_operator() -> dict[str, list[str]]:
    """The records as they stand in their files: few tests need more than some of them."""
    found = defaultdict[str, list[str]](list)
    for path in sorted((MEASURED.parent / "records").glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                match = re.match(r'\{"case": ?\{"operator": ?"(\w+)"', line)
                assert match is not None, line[:80]
                found[match[1]].append(line)
    return found


def records_of(replay: Any, operator: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [json.loads(line) for line in lines_by_operator()[operator]]
    return sorted(filter(replay.is_judgeable, records), key=replay.identity)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_is_what_mindspore_made_of_it(replay: Any, operator: str) -> None:
    """All records but those that are noted as not equal yet."""
    states = replay.noted()
    wrong = [
        item
        for record in records_of(replay, operator)
        if states.get(replay.identity(record)) != "open"
        for item in replay.disagreements(record)
    ]
    assert not wrong, "\n".join(map(str, wrong[:20]))


def test_a_record_that_is_turned_round_disagrees(replay: Any) -> None:
    states = replay.noted()
    equal = [one for one in records_of(replay, "Add") if replay.identity(one) not in states]
    accepted = next(
        one for one in equal if (one["case"]["kind"], one["verdict"]) == ("tuple", "accepted")
    )
    refused = next(one for one in equal if one["verdict"] == "refused")
    kinds = [
        {item.kind for item in replay.disagreements(record)}
        for record in (
            {**accepted, "verdict": "refused"},
            {**refused, "verdict": "accepted"},
            {**accepted, "matrix": [3], "inputs": [], "outputs": []},
            {**accepted, "communications": [["AllReduce", [0, 5], 1, "forward", ""]]},
        )
    ]
    assert kinds == [
        {"accepted though illegal"},
        {"refused though legal"},
        {"matrix or maps"},
        {"forward communication"},
    ]

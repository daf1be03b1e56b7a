"""What irtool says of networks of one operator is what MindSpore said: the records, replayed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ONE_IN = 16
"""The sample of records that never disagreed."""


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


def test_a_sample_of_the_records_and_all_that_were_mended_are_equal(replay: Any) -> None:
    states = replay.noted()
    chosen = [
        record
        for record in replay.records()
        if replay.is_judgeable(record)
        for name in [replay.identity(record)]
        if states.get(name) == "mended" or (name not in states and int(name, 16) % ONE_IN == 0)
    ]
    assert chosen
    wrong = [item for record in chosen for item in replay.disagreements(record)]
    assert not wrong, "\n".join(map(str, wrong[:20]))


def test_a_record_that_is_turned_round_disagrees(replay: Any) -> None:
    states = replay.noted()
    equal = [
        record
        for record in replay.records()
        if replay.is_judgeable(record) and replay.identity(record) not in states
    ]
    accepted = next(
        record
        for record in equal
        if (record["case"]["operator"], record["case"]["kind"]) == ("Add", "tuple")
    )
    refused = next(record for record in equal if record["verdict"] == "refused")
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

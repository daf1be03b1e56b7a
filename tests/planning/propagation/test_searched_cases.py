"""Strategies that MindSpore's sharding propagation gave the networks of its own tests, and others.

``searched_networks.jsonl.xz``: a perceptron and two layers of GPT, for 8 devices.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.planning.plans.agreement import agreement
from irtool.planning.propagation.search import search
from tests.planning.propagation.test_propagated_search import analysis_of, network_of, plain_dump
from tests.records import records

HERE = Path(__file__).parent
CASES = records(HERE / "searched_cases.jsonl.xz") | records(HERE / "searched_networks.jsonl.xz")


@pytest.mark.parametrize("name", CASES)
def test_the_propagation_gives_what_mindspore_gave(name: str) -> None:
    record = CASES[name]
    after = record.dump("begin")
    plain = plain_dump(after)
    choice = search(analysis_of(network_of(plain), record.context))
    found = agreement(plain, after, choice.strategies, choice.outs)
    assert not found.differing
    assert len(found.operators) == record.operators

"""Strategies that MindSpore's recursive search gave the networks of its own tests, and others.

``searched_networks.jsonl.xz``: a perceptron, two layers of GPT, ResNet and Wide & Deep, for 8, 64
and 512 devices.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irtool.planning.plans.agreement import agreement
from irtool.planning.recursive.cut_costs import ROW_COEFFICIENT
from irtool.planning.recursive.search import search
from tests.planning.recursive.test_search import (
    COEFFICIENTS,
    analysis_of,
    network_of,
    without_strategies,
)
from tests.records import records

HERE = Path(__file__).parent
CASES = records(HERE / "searched_cases.jsonl.xz") | records(HERE / "searched_networks.jsonl.xz")


@pytest.mark.parametrize("name", CASES)
def test_the_search_gives_what_mindspore_gave(name: str) -> None:
    record = CASES[name]
    after = record.dump("begin")
    plain = without_strategies(after)
    coefficient = next(
        (number for key, number in COEFFICIENTS.items() if re.search(key, name)), ROW_COEFFICIENT
    )
    analysis = analysis_of(network_of(plain), record.context)
    choice = search(analysis, row_coefficient=coefficient)
    found = agreement(plain, after, choice.strategies, choice.outs)
    assert not found.differing
    assert len(found.operators) == record.operators

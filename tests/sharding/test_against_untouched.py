"""Nothing differs in a compilation that nobody touched, right after the parallel pass or later.

``untouched.jsonl.xz`` holds small networks compiled with MindSpore: their source, context and the
three dumps. Addresses and lines of source are left out.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.sharding.against import compare
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext


def _read() -> dict[str, dict[str, Any]]:
    with lzma.open(Path(__file__).with_name("untouched.jsonl.xz"), "rt", encoding="utf-8") as lines:
        return {network["name"]: network for network in map(json.loads, lines)}


NETWORKS = _read()


@pytest.mark.parametrize("later", ["step_parallel_end", "validate"])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_untouched_compilation_does_not_differ(name: str, later: str) -> None:
    network = NETWORKS[name]
    context = {
        "device_num": network["devices"],
        "full_batch": True,
        "parallel_mode": "semi_auto_parallel",
        **network["context"],
    }
    begin, actual = (irtool.load(network[pass_].encode()) for pass_ in ("begin", later))
    report = check(begin, ParallelContext.from_mapping(context))
    assert report.accepted
    comparison = compare(report, begin, actual)
    assert not comparison.differences
    assert comparison.matched == comparison.total or later == "validate"


def test_what_a_later_pass_makes_is_missed_in_the_dump_that_should_have_it() -> None:
    """Attention in a ring: the exchanges that are cut out of the validate dump are missed."""
    network = NETWORKS["attention in a ring of two"]
    begin = irtool.load(network["begin"].encode())
    report = check(begin, ParallelContext.from_mapping({"device_num": 8, "full_batch": True}))
    cut = network["validate"].replace(" = NeighborExchange(", " = MakeTuple(")
    found = compare(report, begin, irtool.load(cut.encode())).differences
    assert "missing collective" in {difference.kind for difference in found}


def test_communication_behind_a_result_that_nobody_reads_is_not_counted() -> None:
    counted = {
        name: sum(
            item.count
            for item in check(
                irtool.load(NETWORKS[name]["begin"].encode()),
                ParallelContext.from_mapping({"device_num": 8, "full_batch": True}),
            ).communications
            if item.op == "AllReduce"
        )
        for name in ("one of two products is read", "both products are read")
    }
    assert counted == {"one of two products is read": 1, "both products are read": 2}

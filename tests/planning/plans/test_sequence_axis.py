"""Attention in a ring: what passes round is of the sequence, before it is compiled and after."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cluster.axes import axes, passes_round
from irtool.cluster.machine import built_in
from irtool.ir.collectives import collectives
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.axes import axis_costs
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

FILE = Path(__file__).parents[2] / "sharding" / "untouched.jsonl.xz"
RECORDS: dict[str, dict[str, Any]] = {
    record["name"]: record
    for record in map(json.loads, lzma.decompress(FILE.read_bytes()).decode().splitlines())
    if "in a ring" in record["name"]
}


@pytest.mark.parametrize(
    ("name", "exchanges"), [("attention in a ring of two", 1), ("attention in a ring of four", 3)]
)
def test_cost_and_the_compiled_step_tell_as_many_exchanges(name: str, exchanges: int) -> None:
    record = RECORDS[name]
    values = {"device_num": record["devices"], **(record["context"] or {})}
    context = ParallelContext.from_mapping(values)
    begin = irtool.loads(record["begin"], "step_parallel_begin_0018.ir")
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    told = {item.axis: item.count for item in axis_costs(cost)}
    validate = irtool.loads(record["validate"], "20_validate_0080.ir")
    compiled = list(axes(list(collectives(validate))).values())
    assert told["sequence"] == compiled.count("sequence") == exchanges


@pytest.mark.parametrize(
    ("op", "communication", "is_round"),
    [
        ("FlashAttentionScore", "NeighborExchange", True),
        ("FlashAttentionScore", "AllReduce", False),
        ("Conv2D", "NeighborExchangeV2", False),  # halos of a split image
    ],
)
def test_only_attention_passes_round(op: str, communication: str, is_round: bool) -> None:
    assert passes_round(op, communication) is is_round

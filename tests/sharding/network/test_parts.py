"""Operators that compute in interleaved parts, beside others that do not, as compiled.

``parts.json.xz``: small networks (MindSpore 2.7.0) in the form of ``tied.json.xz``: layouts whose
last axis interleaves, along one dimension or another, joined, gathered and cut on the way in and
out.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.operators.layout import TensorLayout
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.part_chains import exchanged, with_part_axis
from tests.sharding.network.compiled import compiled_launches, predicted_launches

RECORDS = lzma.decompress((Path(__file__).parent / "parts.json.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}


def report_of(name: str) -> CheckResult:
    record = NETWORKS[name]
    return check(irtool.loads(record["begin"]), ParallelContext.from_mapping(record["context"]))


@pytest.mark.parametrize("name", [name for name, one in NETWORKS.items() if one["accepted"]])
def test_communications(name: str) -> None:
    report = report_of(name)
    assert report.accepted is True
    assert predicted_launches(report) == compiled_launches(NETWORKS[name])


@pytest.mark.parametrize("name", [name for name, one in NETWORKS.items() if not one["accepted"]])
def test_what_can_not_be_computed_in_parts_is_refused(name: str) -> None:
    report = report_of(name)
    assert report.accepted is False
    codes = [item.code for item in report.findings if item.severity == "error"]
    assert codes[0] == "interleaved-parts"


SHAPE = (64, 32)
APART = TensorLayout((2, 2, 2), ((2, 0), 1), SHAPE)
"""Rows in parts, on two devices each; columns on two."""


@pytest.mark.parametrize(
    ("target", "count"),
    [
        pytest.param(((2, 0), -1), 2, id="columns are gathered of each part"),
        pytest.param((2, -1), 2, id="and then the parts are joined"),
        pytest.param((-1, 1), 1, id="rows are gathered of joined parts"),
    ],
)
def test_an_exchange_runs_for_each_part_until_they_are_joined(
    target: tuple[int | tuple[int, ...], ...], count: int
) -> None:
    behind = TensorLayout((2, 2, 2), target, SHAPE)
    found = list(exchanged(APART, behind, (0, 1, 2, 3), 0))
    assert [(step.op, times) for step, times in found] == [("AllGather", count)]


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_an_exchange_runs_as_often_as_there_are_parts(parts: int) -> None:
    """Their number is that of the last axis, whatever the devices are."""
    apart = TensorLayout((2, 2, parts), ((2, 0), 1), SHAPE)
    behind = TensorLayout((2, 2, parts), ((2, 0), -1), SHAPE)
    ((step, times),) = exchanged(apart, behind, (0, 1, 2, 3), 3)
    assert (step.op, step.ranks, times) == ("AllGather", (2, 3), parts)


def test_what_lies_alike_in_parts_exchanges_nothing() -> None:
    assert list(exchanged(APART, APART, (0, 1, 2, 3), 0)) == []


def test_the_axis_of_parts_stands_behind_those_of_devices() -> None:
    plain = TensorLayout((2, 2), ((1, 0), -1), SHAPE)
    assert with_part_axis(plain, 4) == TensorLayout((2, 2, 4), ((2, 1), -1), SHAPE)

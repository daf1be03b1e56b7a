"""Weights that several pipeline stages, or several operators, share, as MindSpore compiled them.

``tied.json.xz``: networks of the kind ``tied`` of ``benchmarks/networks``, some more of its parts
and two lazily inlined decoders in stages, compiled with MindSpore 2.7.0: the dump before the
parallel pass without source lines, the verdict, and of accepted ones the communication operators
of the validate dump and every parameter's slice.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.compiled import assert_is_as_compiled

RECORDS = lzma.decompress((Path(__file__).parent / "tied.json.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}
ACCEPTED = [name for name, record in NETWORKS.items() if record["accepted"]]
REFUSED = [name for name, record in NETWORKS.items() if not record["accepted"]]
OTHERWISE = {"plain_diff_r7", "lh_diff_r7"}
"""MindSpore accepts these, and computes with slices that their operators do not want."""


def report_of(name: str) -> CheckResult:
    record = NETWORKS[name]
    return check(irtool.loads(record["begin"]), ParallelContext.from_mapping(record["context"]))


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name not in OTHERWISE])
def test_what_was_compiled_is_what_is_predicted(name: str) -> None:
    assert_is_as_compiled(report_of(name), NETWORKS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_a_weight_that_can_not_be_shared_so_is_refused(name: str) -> None:
    report = report_of(name)
    assert report.accepted is False
    codes = {item.code for item in report.findings if item.severity == "error"}
    wanted = {"gradient-sums"} if "grad" in NETWORKS[name]["error"] else {"handed-weight"}
    assert codes == wanted


@pytest.mark.parametrize("name", sorted(OTHERWISE))
def test_a_stage_that_wants_other_slices_than_it_is_handed_is_doubted(name: str) -> None:
    report = report_of(name)
    assert report.accepted is None
    told = [item.message for item in report.findings if item.code == "unknown"]
    assert told
    assert "hands over slices of (32, 32) of the weight, and slices of (64, 32)" in told[0]


@pytest.mark.parametrize("name", ["440517_0151_pipeline", "440517_0049_pipeline"])
def test_a_stage_keeps_what_it_only_updates(name: str) -> None:
    """The table of a decoder on its last stage: with its states, and nothing gathers it."""
    report = report_of(name)
    kept = {item.name for item in report.parameters if not item.is_read}
    assert {"network.table", "adam_m.network.table", "adam_v.network.table"} <= kept
    assert {item.weight for item in report.parameters if not item.is_read} == {"network.table"}
    assert all(item.mirror_ranks is None for item in report.parameters if not item.is_read)

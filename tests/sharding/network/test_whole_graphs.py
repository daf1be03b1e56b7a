"""All communication operators of a step, of random networks that MindSpore 2.7.0 compiled.

``whole_graphs.json.xz`` holds networks that were once predicted wrongly: the dump before the
parallel pass without source lines, MindSpore's verdict, and the communication operators of its
validate dump; of some also the ranks of each mirror, those of one rank included. Those that begin
with ``asked_`` were compiled to settle one question each: unknown sizes in a first stage, tuples
of tensors and layouts as dataset, results of sharded functions, weights kept out of optimizer
parallel, layouts that interleave, shard sizes, strategies of a program's own for its dataset, the
axis of repeated calculation, the attribute ``layout`` amidst a network, output layouts of
transposed tensors, and ``self_define_shard``.
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
from tests.sharding.network.compiled import compiled_launches, predicted_launches

RECORDS = lzma.decompress((Path(__file__).parent / "whole_graphs.json.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}

HIDDEN = {
    "test_control_flow.test_control_flow.1": "gradients of branches",
    "test_auto_parallel_adasum.test_auto_parallel_adasum3.1": "AdaSum",
    "test_auto_parallel_for_loop_multi_subgraph.test_double_subgraphs.1": "several gradients",
    "test_custom_op_parallel.test_custom_op_all_tensor_all_tuple_param.1": "weights of Custom",
}
"""What is said of communications that the dump before the parallel pass does not show."""

UNKNOWN = {
    "asked_turned_half": "slices (32, 16), and a device has (64, 8)",
    "asked_turned_drawn_08": "slices (64, 16, 4), and a device has (64, 2, 32)",
    "asked_turned_drawn_29": "other axes of size 1",
    "asked_own_slice": "what StridedSlice with self_define_shard makes of slices",
    "asked_own_relu_other": "maps that differ",
}
"""What is said of networks whose verdict is not known."""


def report_of(name: str) -> CheckResult:
    record = NETWORKS[name]
    return check(irtool.loads(record["begin"]), ParallelContext.from_mapping(record["context"]))


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in UNKNOWN])
def test_verdict(name: str) -> None:
    assert report_of(name).accepted is NETWORKS[name]["accepted"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_says_why(name: str) -> None:
    report = report_of(name)
    assert report.accepted is None
    assert [UNKNOWN[name] in item.message for item in report.findings] == [True]


@pytest.mark.parametrize(
    "name", [name for name, one in NETWORKS.items() if one["accepted"] and name not in UNKNOWN]
)
def test_communications(name: str) -> None:
    """All that is predicted is there, and nothing else where nothing is hidden."""
    report = report_of(name)
    predicted, compiled = predicted_launches(report), compiled_launches(NETWORKS[name])
    assert predicted == (compiled & predicted if name in HIDDEN else compiled)


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hides_communications_is_named(name: str) -> None:
    assert any(HIDDEN[name] in text for text in report_of(name).communications_unknown)


def test_copies_of_recomputed_cells_say_so() -> None:
    communications = report_of("4711_0196_decoder").communications
    again = [item for item in communications if "recomputed" in item.why]
    assert [(item.op, item.phase) for item in again] == [("AllReduce", "backward")]


@pytest.mark.parametrize("name", [name for name, one in NETWORKS.items() if "mirrors" in one])
def test_mirrors(name: str) -> None:
    """Groups of one rank, too: they are kept where the weight's user has a tuple strategy."""
    predicted = {
        item.name: "-".join(map(str, item.mirror_ranks))
        for item in report_of(name).parameters
        if item.mirror_ranks
    }
    assert predicted == NETWORKS[name]["mirrors"]

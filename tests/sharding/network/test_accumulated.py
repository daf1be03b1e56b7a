"""Gradients summed up over micro-batches, as MindSpore compiled the steps that sum them up.

``accumulated.json.xz``: networks of the kind ``tied`` of ``benchmarks/networks`` in one stage and
in two, with steps that keep no sums, keep them, or hand them to the optimizer as they are; compiled
with MindSpore 2.7.0: the dump before the parallel pass without source lines, the verdict, and of
accepted ones the communication operators of the validate dump and every parameter's slice.
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
from tests.sharding.network.small import Small, tensor

RECORDS = lzma.decompress((Path(__file__).parent / "accumulated.json.xz").read_bytes())
NETWORKS: dict[str, dict[str, Any]] = {record["name"]: record for record in json.loads(RECORDS)}
ACCEPTED = [name for name, record in NETWORKS.items() if record["accepted"]]
CHECKS = {
    "grad_accu": "step_parallel_utils.cc:CreateMirrorInput",
    "accu_grads": "step_parallel_utils.cc:CreateMirrorInput",
    "lazy_inline": "parallel_preprocessor.cc:MicroBatchPreProcess",
}
"""By a word of MindSpore's error; every other one says that two shapes don't fit."""


def report_of(name: str, **changed: object) -> CheckResult:
    record = NETWORKS[name]
    context = ParallelContext.from_mapping({**record["context"], **changed})
    return check(irtool.loads(record["begin"]), context)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_was_compiled_is_what_is_predicted(name: str) -> None:
    assert_is_as_compiled(report_of(name), NETWORKS[name])


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ACCEPTED])
def test_what_was_refused_is_refused_where_mindspore_does(name: str) -> None:
    report = report_of(name)
    assert report.accepted is False
    (error,) = [item for item in report.findings if item.severity == "error"]
    assert error.code == "gradient-sums"
    said = NETWORKS[name]["error"]
    checks = [check for word, check in CHECKS.items() if word in said]
    assert error.check == (checks[0] if checks else "evaluator.cc:Run")


def test_a_sum_that_does_not_fit_is_told_with_both_sizes() -> None:
    report = report_of("pipeline_sums_given_to_parts_of_adam")
    (error,) = [item for item in report.findings if item.severity == "error"]
    assert error.op == "Adam"
    assert "holds (16, 32) of network.table" in error.message
    assert "which is (64, 32)" in error.message
    assert "gradient_accumulation_shard" in error.message


def test_sums_that_are_cut_fit_their_parts() -> None:
    """With the setting that the message names it is taken, and without it refused."""
    config = {"parallel_optimizer_threshold": 0}
    cut = {**config, "gradient_accumulation_shard": True}
    given = report_of("pipeline_sums_given_to_parts_of_adam", parallel_optimizer_config=cut)
    assert given.accepted is True
    whole = report_of("pipeline_parts_of_sums_given", parallel_optimizer_config=config)
    assert whole.accepted is False


# -- one stage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "shard", "micro", "inlined", "refused"),
    [
        (1, True, True, False, True),
        (1, False, True, False, False),  # sums stay whole
        (1, True, True, True, False),  # a cell is inlined late
        (1, True, False, False, False),  # nothing is summed over micro-batches
        (2, True, True, False, False),  # stages have graphs of their own
    ],
)
def test_sums_over_micro_batches_of_one_stage_are_cut_in_cells_that_are_inlined_late(
    stages: int, shard: bool, micro: bool, inlined: bool, refused: bool
) -> None:
    net = Small()
    x, w = net.input("x", (64, 64)), net.weight("w", (64, 64))
    inner = net.graph("inner")
    y, v = inner.parameter(tensor((64, 64))), inner.parameter(w.type)
    attributes = "grad_accu_num: I64(2)" if micro else ""
    cut = inner.add("PrimFunc_ReLU", [y], tensor((64, 64)), attributes=attributes)
    inner.result = inner.product(cut, v, (64, 64), ((4, 1), (1, 2)))
    main = net.graph("main")
    (main.result,) = main.gradients(inner, [x, w], [w])
    text = net.text()
    if inlined:
        text = text.replace("subgraph attr:\n", "subgraph attr:\ncell_reuse: 1\n", 1)
    context = {
        "device_num": 8 * stages, "pipeline_stages": stages, "full_batch": True,
        "enable_parallel_optimizer": True,
        "parallel_optimizer_config": {"gradient_accumulation_shard": shard},
    }  # fmt: skip
    report = check(irtool.loads(text, "begin.ir"), ParallelContext.from_mapping(context))
    messages = [item.message for item in report.findings if item.code == "gradient-sums"]
    assert any("needs a network that is inlined late" in one for one in messages) is refused

"""Every communication of a step, forward and backward, as MindSpore compiled it.

``compiled/``: random networks compiled by MindSpore 2.7.0, the dump before the parallel pass and
that after the last one, without source lines (``benchmarks/networks/compile.py``, seed 1).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import irtool
from irtool.ir.collectives import collective, exchange_ranks
from irtool.sharding.check import check
from irtool.sharding.network.communications import StepCommunication, merged
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.compiled import predicted_launches
from tests.sharding.network.small import Small, constant, tensor

ROOT = Path(__file__).resolve().parents[3]
COMPILED = [
    *sorted((Path(__file__).parent / "compiled").iterdir()),
    *(ROOT / "samples" / name for name in ("gpt", "mlp_semi_auto", "mlp_semi_auto_2.10")),
    *(ROOT / "samples/pipeline_run" / name for name in ("rank_0", "rank_4")),
    ROOT / "samples/shard_size_4",
]

Key = tuple[str, tuple[int, ...]]


def report_of(folder: Path) -> CheckResult:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    begin = next(folder.glob("step_parallel_begin*"))
    return check(irtool.load(begin), ParallelContext.from_mapping(case["context"]))


def compiled_in(folder: Path, report: CheckResult) -> Counter[Key]:
    """The communication operators of the validate dump; of a transfer, its two ends."""
    found: Counter[Key] = Counter()
    for node in irtool.load(next(folder.glob("*_validate_*"))).whole().nodes:
        item = collective(node.node, report.devices)
        if item is None or item.is_virtual:
            continue
        ranks = exchange_ranks(node.node, report.context.rank) or item.ranks or ()
        if item.peer is not None:
            ranks = tuple(sorted((report.context.rank, item.peer)))
        if len(ranks) > 1:
            found[item.op, ranks] += 1
    return found


@pytest.mark.parametrize("folder", COMPILED, ids=lambda path: path.name)
def test_communications_are_those_that_mindspore_compiled(folder: Path) -> None:
    report = report_of(folder)
    predicted = predicted_launches(report)
    assert predicted == compiled_in(folder, report)
    assert predicted


def test_the_gradient_of_a_gather_scatters_what_was_gathered(samples: Path) -> None:
    found = report_of(samples / "mlp_semi_auto").communications
    gather = next(item for item in found if item.op == "AllGather")
    scatter = next(item for item in found if item.op == "ReduceScatter")
    assert (gather.phase, scatter.phase) == ("forward", "backward")
    assert gather.bytes is not None
    assert scatter.bytes == gather.bytes * len(gather.ranks)


@pytest.mark.parametrize("scatters", [False, True])
def test_a_collective_and_that_of_its_gradient_handle_the_same_numbers(scatters: bool) -> None:
    """A product whose sum every device holds whole, or its part of it: (8, 64) floats."""
    net = Small()
    x, w = net.input("x", (64, 64)), net.weight("w", (64, 64))
    inner = net.graph("inner")
    y = inner.parameter(x.type)
    parts = ", out_strategy: ((8, 1))" if scatters else ""
    product = inner.add(
        "PrimFunc_MatMul", [y, w, constant(False), constant(False)],
        tensor((64, 64)), attributes=f"in_strategy: ((1, 8), (8, 1)){parts}",
    )  # fmt: skip
    inner.result = inner.op("Exp", product, (64, 64), ((8 if scatters else 1, 1),))
    main = net.graph("main")
    (main.result,) = main.gradients(inner, [x], [w])
    found = {(item.op, item.phase): item.bytes for item in net.checked().communications}
    whole, part = 64 * 64 * 4, 8 * 64 * 4
    if scatters:
        assert found == {("ReduceScatter", "forward"): whole, ("AllGather", "backward"): part}
    else:
        assert found == {("AllReduce", "forward"): whole, ("AllReduce", "backward"): whole}


def test_what_is_computed_in_parts_is_redistributed_in_parts() -> None:
    """An interleaved layout: MindSpore gathers each half by itself, 64 of 128 numbers."""
    folder = Path(__file__).parent / "compiled" / "0061_interleaved"
    report = report_of(folder)
    assert [(item.ranks, item.bytes, item.count) for item in report.communications] == [
        ((0, 1), 256, 2),
        ((0, 1, 2, 3), 512, 1),
    ]


def test_a_loss_that_is_summed_has_no_gradient_to_communicate(samples: Path) -> None:
    found = report_of(samples / "mlp_semi_auto").communications
    loss = [item for item in found if "ReduceMean" in item.why]
    assert [(item.phase, item.count) for item in loss] == [("forward", 1)]


def test_a_refused_network_communicates_nothing(samples: Path) -> None:
    assert report_of(samples / "mlp_rejected").communications == ()


def test_equal_communications_are_counted_together() -> None:
    one = StepCommunication("AllReduce", (0, 1), 8, "forward", 1, "user code")
    other = StepCommunication("AllReduce", (0, 1), 8, "backward", 2, "user code")
    assert merged([one, other, one]) == (
        StepCommunication("AllReduce", (0, 1), 8, "forward", 2, "user code"),
        other,
    )

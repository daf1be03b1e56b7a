"""The check of whole networks, on the samples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.operators.table import declare, forget_declared
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, OperatorReport


def report_of(folder: Path, **overrides: object) -> CheckResult:
    """Check the begin dump of a folder under its own context."""
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    dump = irtool.load(next(folder.glob("step_parallel_begin*")))
    return check(dump, ParallelContext.from_mapping(case["context"], **overrides))


def operator(report: CheckResult, node: str) -> OperatorReport:
    return next(item for item in report.operators if item.node.id == node)


def test_the_excerpt_of_the_documentation(samples: Path) -> None:
    dump = irtool.load(samples / "search_page_step_parallel_begin.ir")
    report = check(dump, ParallelContext(devices=8))
    assert report.accepted
    matmul = operator(report, "%4")
    assert matmul.input_slices == ((64, 392), (512, 392))
    assert matmul.output_slices == ((64, 512),)
    (reduction,) = matmul.collectives
    assert (reduction.op, reduction.ranks) == ("AllReduce", (0, 1))
    assert reduction.group == "2-5004544844489628105"
    assert reduction.bytes == 64 * 512 * 4
    assert operator(report, "%6").judgement.repeats == 2
    assert operator(report, "%7").judgement.repeats == 2


@pytest.mark.parametrize(
    "folder",
    [
        "mlp_semi_auto",
        "mlp_semi_auto_2.10",
        "mlp_recursive_search",
        "mlp_propagation_layouts",
        "layout",
        "gpt",
        "pipeline_run/rank_0",
        "pipeline_run/rank_4",
    ],
)
def test_accepted_samples(samples: Path, folder: str) -> None:
    report = report_of(samples / folder)
    assert report.accepted
    assert all(item.verdict == "legal" for item in report.operators)
    assert not [item for item in report.findings if item.severity != "info"]


def test_a_rejected_network_names_operator_and_check(samples: Path) -> None:
    report = report_of(samples / "mlp_rejected")
    assert report.accepted is False
    first = report.findings[0]
    assert (first.op, first.severity, first.line) == ("MatMul", "error", 75)
    assert first.check == "matmul_info.cc:CheckInputStrategy"


def test_redistribution_before_the_last_layer(samples: Path) -> None:
    report = report_of(samples / "mlp_semi_auto")
    (last,) = [item for item in report.redistributions if item.consumer.id == "%13"]
    assert (last.producer.id, last.input) == ("%11", 0)
    # As the step_parallel_end dump of the same compilation has it.
    assert [(step.op, step.ranks, step.axis) for step in last.operators or ()] == [
        ("Reshape", (), None),
        ("AllGather", (0, 1, 2, 3), 0),
        ("Split", (), 0),
        ("Concat", (), 2),
        ("Reshape", (), None),
        ("StridedSlice", (), 0),
    ]


def test_parameters_and_mirrors(samples: Path) -> None:
    report = report_of(samples / "mlp_semi_auto")
    weights = {item.name: item for item in report.parameters}
    up, mid = weights["up.weight"], weights["mid.weight"]
    assert (up.slice, up.mirror_ranks) == ((128, 784), (0, 4))
    assert (mid.slice, mid.mirror_ranks) == ((512, 128), (0, 4))
    assert weights["down.bias"].mirror_ranks == tuple(range(8))
    assert weights["momentum"].mirror_ranks is None
    for name in ("up.weight", "mid.weight", "down.bias"):
        state = weights[f"moments.{name}"]
        assert (state.slice, state.mirror_ranks) == (weights[name].slice, None)


def test_optimizer_parallel_cuts_large_weights(samples: Path) -> None:
    plain = report_of(samples / "mlp_semi_auto")
    cut = report_of(samples / "mlp_semi_auto", parallel_optimizer=True)
    small = report_of(samples / "mlp_semi_auto", parallel_optimizer=True, threshold=10**6)
    assert not any(item.gather_ranks for item in (*plain.parameters, *small.parameters))
    gathered = [item for item in cut.parameters if item.gather_ranks]
    assert gathered
    for item in gathered:
        assert item.base is not None
        assert item.gather_ranks is not None
        assert item.slice == (item.base[0] // len(item.gather_ranks), *item.base[1:])
        assert item.mirror_ranks is None


def test_dataset_slices_follow_the_rank(samples: Path) -> None:
    for rank in (0, 5):
        report = report_of(
            samples / "mlp_semi_auto", rank=rank, dataset=((8, 1), (8, 1)), full_batch=False
        )
        first = report.dataset[0]
        assert first.slice == (first.shape[0] // 8, *first.shape[1:])
        assert first.offset == (rank * first.slice[0], *(0 for _ in first.shape[1:]))


def test_a_dataset_split_in_two_dimensions_is_refused(samples: Path) -> None:
    report = report_of(samples / "mlp_semi_auto", dataset=((2, 2), (1, 1)), full_batch=False)
    assert report.accepted is False
    assert report.findings[0].op == "_VirtualDataset"


def test_a_lost_dataset_strategy_leaves_the_verdict_open(samples: Path) -> None:
    report = report_of(samples / "mlp_semi_auto", dataset="unknown")
    assert report.accepted is None
    assert report.findings[0].severity == "warning"


def test_stages_and_loss(samples: Path) -> None:
    first = report_of(samples / "pipeline_run" / "rank_0")
    last = report_of(samples / "pipeline_run" / "rank_4")
    assert not any(item.is_loss for item in first.operators)
    assert any(item.is_loss for item in last.operators)
    ranks = {r for item in last.operators for c in item.collectives for r in c.ranks}
    assert ranks <= {4, 5, 6, 7}


def test_the_operators_of_a_layer_are_judged_alike_from_any_rank(samples: Path) -> None:
    reports = [report_of(samples / "gpt", rank=rank) for rank in (0, 7)]
    strategies = [[item.strategy for item in report.operators] for report in reports]
    assert strategies[0] == strategies[1]


def test_modes_without_strategies_check_nothing(samples: Path) -> None:
    report = report_of(samples / "mlp_rejected", mode="data_parallel")
    assert report.accepted is True
    assert not report.operators


def test_a_dump_after_the_parallel_pass_is_not_judged(samples: Path) -> None:
    dump = irtool.load(samples / "mlp_semi_auto" / "20_validate_0080.ir")
    report = check(dump, ParallelContext(devices=8, full_batch=True))
    assert report.accepted is None
    assert not report.operators


def test_statements_without_types_are_unknown(samples: Path) -> None:
    dump = irtool.load(samples / "search_page_pinned.ir")
    report = check(dump, ParallelContext(devices=8))
    assert report.accepted is None
    assert report.operators[0].verdict == "unknown"


def test_the_rule_on_device_lists_can_be_lifted(samples: Path) -> None:
    """A group of three ranks is impossible on the first Ascend 910 only."""
    dump = irtool.load(samples / "search_page_step_parallel_begin.ir")
    context = ParallelContext(devices=8)
    assert check(dump, context).accepted == check(dump, replace(context, soc="Ascend910B")).accepted


OVERRIDDEN = """\
subgraph @main() {
  %0(x) = PrimFunc_MatMul(%para1_x, %para2_w, Bool(0), Bool(0)) {instance name: mm} \
primitive_attrs: {out_strategy: ((4, 2)), in_strategy: ((4, 1), (1, 2))} \
{in_strategy: ((8, 1), (1, 1))}
      : (<Tensor[Float32], (16, 32)>, <Ref[Tensor[Float32]], (32, 64), ref_key=w>, \
<Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 64)>)
  Return(%0)
      : (<Tensor[Float32], (16, 64)>)
}
"""


@pytest.mark.parametrize(
    ("search", "accepted"), [("recursive_programming", True), ("sharding_propagation", False)]
)
def test_a_search_may_override_what_the_user_asked_for(search: str, accepted: bool) -> None:
    context = ParallelContext(8, mode="auto_parallel", search=search, soc="Ascend910B")
    report = check(irtool.load(OVERRIDDEN.encode()), context)
    (found,) = report.operators
    assert found.strategy == ((8, 1), (1, 1))
    # The output strategy of the user goes with the input strategies that it belongs to.
    assert (found.verdict == "legal") is accepted


def test_the_results_of_an_inference_go_to_all_stages_on_request(samples: Path) -> None:
    text = next((samples / "mlp_semi_auto").glob("step_parallel_begin*")).read_text("utf-8")
    evaluated = irtool.load(text.replace("training: 1", "training: 0").encode())
    context = ParallelContext(16, stages=2, rank=9, result_broadcast=True)
    (broadcast,) = check(evaluated, context).broadcasts
    assert (broadcast.op, broadcast.ranks) == ("AllReduce", (1, 9))
    assert check(irtool.load(text.encode()), context).broadcasts == ()
    assert check(evaluated, replace(context, result_broadcast=False)).broadcasts == ()


@pytest.mark.parametrize(
    ("name", "older"),
    [
        ("search_page_step_parallel_begin.ir", True),
        ("mlp_semi_auto/step_parallel_begin_0018.ir", False),
    ],
)
def test_an_older_dump_is_told_once_what_its_answers_were_measured_with(
    samples: Path, name: str, older: bool
) -> None:
    result = check(irtool.load(samples / name), ParallelContext(devices=8))
    said = [item for item in result.findings if "2.7 to 2.10" in item.message]
    assert [item.severity for item in said] == ["info"] * older


def test_operators_of_the_users_own_are_told_once_to_be_declared(samples: Path) -> None:
    text = (samples / "custom_rules/custom.rules").read_text()
    dump = irtool.load(samples / "custom_rules/step_parallel_begin_0001.ir")
    declare(text, "custom.rules")
    try:
        result = check(dump, ParallelContext(devices=8))
    finally:
        forget_declared()
    said = [item for item in result.findings if "declarations" in item.message]
    assert [item.severity for item in said] == ["info"]
    assert said[0].message.startswith("2 operators are judged by the user's declarations")
    assert said[0].message.endswith(": MyMatMulBias, MyRowNorm")

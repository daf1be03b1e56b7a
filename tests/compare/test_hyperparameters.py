"""Hyperparameters of two sides: where they are found, and when they are called the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.compare.losses.series import LossRun, Series
from irtool.compare.runs.hyperparameters import Evidence, Row, hyperparameters
from irtool.ir.dump import Dump
from tests.compare.dumps import msprobe
from tests.compare.graphs import dump
from tests.compare.test_judging import numbers, unit

DROPOUT = "d = Dropout(%x) f32 (8, 16) {{keep_prob: F32({})}}"
NORM = "n = LayerNorm(%x, %b, %b) f32 (8, 16) {{epsilon: F32({})}}"


def rows(left: Evidence, right: Evidence) -> dict[str, Row]:
    return {row.name: row for row in hyperparameters(left, right)}


def told(**context: object) -> Evidence:
    return Evidence(context=context)


def graph(*statements: str) -> Evidence:
    return Evidence(dump=dump(*statements))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("0.5", "0.5", True),
        ("0.5", "0.500009", True),
        ("0.5", "0.500011", False),
        ("0.0", "0.0000001", False),
    ],
)
def test_numbers_are_the_same_within_what_single_precision_prints(
    left: str, right: str, same: bool
) -> None:
    found = rows(graph(DROPOUT.format(left)), graph(DROPOUT.format(right)))
    row = found["dropout keep probability"]
    assert row.same is same
    assert row.left == f"{float(left):.6g}"
    assert row.where == "%0 Dropout"


def test_what_only_one_side_tells_is_no_difference() -> None:
    found = rows(told(loss_scale=1024), Evidence())["loss scale"]
    assert (found.left, found.right, found.same) == ("1024", "(not known)", None)
    found = rows(Evidence(), told(loss_scale=1024))["loss scale"]
    assert (found.left, found.right, found.same) == ("(not known)", "1024", None)


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "name"),
    [
        ("device_num", 8, 16, "devices"),
        ("pipeline_stages", 2, 4, "pipeline stages"),
        ("global_batch_size", 32, 64, "global batch"),
        ("enable_parallel_optimizer", True, False, "optimizer parallel"),
        ("micro_batch", 4, 8, "micro batches"),
        ("gradient_fp32_sync", True, False, "gradients summed in Float32"),
    ],
)
def test_contexts_are_compared_by_what_they_set(
    key: str, ours: object, theirs: object, name: str
) -> None:
    row = rows(told(**{key: ours}), told(**{key: theirs}))[name]
    assert (row.left, row.right, row.same, row.where) == (str(ours), str(theirs), False, "context")
    assert rows(told(**{key: ours}), told(**{key: ours}))[name].same is True


def test_gradients_are_a_mean_or_a_sum() -> None:
    row = rows(told(gradients_mean=True), told(gradients_mean=False))["gradients"]
    assert (row.left, row.right, row.same) == ("mean", "sum", False)


def test_norms_are_told_and_their_gradients_are_not() -> None:
    gradient = "g = LayerNormGrad(%x, %b) f32 (8, 16) {epsilon: F32(0.5)}"
    row = rows(graph(NORM.format("1e-05"), gradient), graph(NORM.format("1e-06")))["norm epsilon"]
    assert (row.left, row.right, row.same) == ("1e-05", "1e-06", False)


def test_several_values_are_a_set() -> None:
    one = graph(NORM.format("1e-05"), NORM.format("1e-06").replace("n =", "m ="))
    other = graph(NORM.format("1e-06"), NORM.format("1e-05").replace("n =", "m ="))
    assert rows(one, other)["norm epsilon"].same is True
    assert rows(one, graph(NORM.format("1e-05")))["norm epsilon"].same is False


@pytest.mark.parametrize(
    ("context", "batch"),
    [
        ({"device_num": 8, "parallel_mode": "data_parallel"}, 8 * 8),
        ({"device_num": 8, "parallel_mode": "data_parallel", "pipeline_stages": 2}, 8 * 4),
        ({"device_num": 8, "dataset_strategy": [[4, 1], [4, 1]]}, 8 * 4),
        ({"device_num": 8, "dataset_strategy": [[4]], "grad_accumulation_step": 3}, 8 * 4 * 3),
        ({"device_num": 1, "parallel_mode": "stand_alone"}, 8),
        ({"device_num": 8, "parallel_mode": "semi_auto_parallel"}, None),
        ({"parallel_mode": "data_parallel"}, None),
    ],
)
def test_the_global_batch_is_that_of_a_rank_times_the_slices(
    context: Mapping[str, object], batch: int | None
) -> None:
    side = Evidence(dump=with_input(), context=context)
    found = rows(side, side)
    assert found["batch of a rank"].left == "8"
    assert ("global batch" in found) == (batch is not None)
    if batch is not None:
        assert found["global batch"].left == str(batch)
        assert found["global batch"].same is True


def with_input() -> Dump:
    """A network whose input is no weight."""
    return irtool.loads(
        "# IR entry: @net\n# Total subgraphs: 1\n\n# Params:\n"
        "%para1_ids: <Tensor[Int32], (8, 16)> : [8, 16]\n\nsubgraph @net() {\n"
        "  %0(a) = PrimFunc_ReLU(%para1_ids)\n"
        "      : (<Tensor[Int32], (8, 16)>) -> (<Tensor[Int32], (8, 16)>)\n"
        "  Return(%0)\n      : (<Tensor[Int32], (8, 16)>)\n}\n"
    )


def logged(**others: Mapping[int, float]) -> Evidence:
    series = {name: Series(dict(values)) for name, values in others.items()}
    return Evidence(losses=LossRun("train.log", "log", Series({1: 2.0}), series))


def test_of_logs_the_first_value_counts() -> None:
    one = logged(learning_rate={1: 0.1, 2: 0.05}, loss_scale={1: 1024.0})
    other = logged(learning_rate={1: 0.1, 2: 0.2}, loss_scale={1: 512.0})
    found = rows(one, other)
    assert found["learning rate"].same is True
    assert found["loss scale"].same is False
    assert found["learning rate"].where == "first of train.log"


def test_a_log_and_a_setting_may_lie_a_schedule_apart() -> None:
    found = rows(logged(loss_scale={1: 1024.0}), told(loss_scale=512))["loss scale"]
    assert found.same is None
    assert rows(logged(loss_scale={1: 512.0}), told(loss_scale=512))["loss scale"].same is True


def test_calls_tell_dropout_and_smoothing(tmp_path: Path) -> None:
    x, labels = numbers(8, 4), np.arange(8).reshape(8, 1)
    for name, p in (("a", 0.1), ("b", 0.2)):
        msprobe(tmp_path / name, [
            ("Functional.embedding.0.forward", (labels, x), x),
            ("Functional.dropout.0.forward", (x, p), x),
        ], True)  # fmt: skip
    sides = [Evidence(tensors=unit(tmp_path / name)) for name in ("a", "b")]
    found = rows(*sides)
    assert (found["dropout"].left, found["dropout"].right) == ("0.1", "0.2")
    assert found["dropout"].same is False
    assert (found["batch of a rank"].left, found["batch of a rank"].same) == ("8", True)


def test_the_usual_order_comes_first() -> None:
    side = told(device_num=8, loss_scale=2, gradients_mean=True, micro_batch=4)
    more = [Row("weight decay", "0", "0", True), Row("learning rate", "1", "1", True)]
    names = [row.name for row in hyperparameters(side, side, more)]
    assert names == [
        "learning rate", "weight decay", "loss scale", "devices", "gradients", "micro batches",
    ]  # fmt: skip


def test_every_name_has_its_place_whatever_comes_first() -> None:
    usual = [
        "learning rate", "step size", "weight decay", "decay factor", "beta1", "beta2",
        "optimizer epsilon", "momentum", "dropout", "loss scale", "global batch", "batch of a rank",
        "devices", "gradients", "label smoothing", "norm epsilon", "initial weights", "anything",
    ]  # fmt: skip
    rows = [Row(name, "1", "1", True) for name in usual]
    silent = Evidence()
    for some in (rows, rows[::-1], rows[::2] + rows[1::2]):
        assert [row.name for row in hyperparameters(silent, silent, some)] == usual


# -- the batch of all ranks


LABELS = """\
# IR entry: @net_1
%para1_ids: <Tensor[Int32], (16, 128)>

subgraph @net_1() {
  %0(a) = Cast(%para1_ids, I64(43))
      : (<Tensor[Int32], (16, 128)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 128)>)
  Return(%0)
      : (<Tensor[Float32], (16, 128)>)
}
"""


@pytest.mark.parametrize(
    ("context", "total", "where"),
    [
        ({"device_num": "8", "parallel_mode": "data_parallel"}, "128", "16 a rank, 8 slices"),
        ({"device_num": 8, "parallel_mode": "hybrid_parallel"}, "128", "16 a rank, 8 slices"),
        (
            {"device_num": 8, "pipeline_stages": 2, "dataset_strategy": "data_parallel"},
            "64",
            "16 a rank, 4 slices",
        ),
        (
            {"device_num": 8, "parallel_mode": "data_parallel", "grad_accumulation_step": 3},
            "384",
            "16 a rank, 8 slices, 3 steps",
        ),
        ({"device_num": 1, "parallel_mode": "stand_alone"}, "16", "16 a rank, 1 slices"),
        ({"device_num": 1}, "16", "16 a rank, 1 slices"),
        (
            {"device_num": 8, "parallel_mode": "semi_auto_parallel",
             "dataset_strategy": [[4, 1], [4, 1]]},
            "64",
            "16 a rank, 4 slices",
        ),
        ({"device_num": 8, "dataset_strategy": ((2, 1),)}, "32", "16 a rank, 2 slices"),
        ({"parallel_mode": "data_parallel"}, None, ""),  # how many devices is not known
        ({"device_num": 8, "parallel_mode": "stand_alone"}, None, ""),
        ({"device_num": 8, "parallel_mode": "semi_auto_parallel"}, None, ""),
        ({"device_num": 8, "dataset_strategy": "full_batch"}, None, ""),
        ({"device_num": 8, "dataset_strategy": [[]]}, None, ""),
        ({"device_num": 8, "dataset_strategy": [["x"]]}, None, ""),
        ({"device_num": "eight", "parallel_mode": "data_parallel"}, None, ""),
    ],
)  # fmt: skip
def test_the_batch_of_all_ranks_where_all_is_known(
    context: dict[str, object], total: str | None, where: str
) -> None:
    found = rows(Evidence(dump=irtool.loads(LABELS), context=context), Evidence())
    assert found["batch of a rank"].left == "16"
    row = found.get("global batch")
    assert (row.left if row else None) == total
    if row is not None:
        assert row.where == where


def test_inputs_of_unknown_size_tell_no_batch() -> None:
    text = LABELS.replace("(16, 128)", "(-1, 128)")
    assert rows(Evidence(dump=irtool.loads(text)), Evidence()) == {}
    assert "batch of a rank" not in rows(
        Evidence(dump=irtool.loads(LABELS.replace("(16, 128)", "(16)"))), Evidence()
    )


@pytest.mark.parametrize(("mean", "text"), [(True, "mean"), (False, "sum")])
def test_what_becomes_of_gradients_is_told_in_words(mean: bool, text: str) -> None:
    assert rows(told(gradients_mean=mean), Evidence())["gradients"].left == text


def test_mirrors_tell_what_becomes_of_gradients() -> None:
    for value, text in ((1, "mean"), (0, "sum")):
        side = graph(f"m = _MirrorOperator(%x) f32 (8, 16) {{mean_flag: Bool({value})}}")
        assert rows(side, Evidence())["gradients"].left == text
    assert "gradients" not in rows(graph("m = _MirrorOperator(%x) f32 (8, 16)"), Evidence())


@pytest.mark.parametrize(
    ("statement", "name", "value"),
    [
        ("d = Dropout(%x) f32 (8, 16) {keep_prob: F32(0.75)}", "dropout keep probability", "0.75"),
        ("d = DropoutGrad(%x) f32 (8, 16) {keep_prob: F32(0.75)}", "", ""),
        ("d = DropoutGenMask(%x) f32 (8, 16) {keep_prob: F32(0.75)}", "", ""),
        ("n = LayerNorm(%x, %b, %b) f32 (8, 16) {epsilon: F32(0.5)}", "norm epsilon", "0.5"),
        ("n = LayerNormGrad(%x, %b, %b) f32 (8, 16) {epsilon: F32(0.5)}", "", ""),
        ("n = LayerNorm(%x, %b, %b) f32 (8, 16)", "", ""),
        ("n = ReLU(%x) f32 (8, 16) {epsilon: F32(0.5)}", "", ""),
    ],
)
def test_what_operators_of_a_graph_tell(statement: str, name: str, value: str) -> None:
    found = rows(graph(statement), Evidence())
    assert {row.name: row.left for row in found.values()} == ({name: value} if name else {})

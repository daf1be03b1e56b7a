"""Hyperparameters of two sides: where they are found, and when they are called the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.compare.hyperparameters import Evidence, Row, hyperparameters
from irtool.compare.losses.series import LossRun, Series
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

"""The parallel context: what is read, what is refused."""

from __future__ import annotations

import pytest

from irtool.operators.layout import UserLayout
from irtool.sharding.network.context import ParallelContext


def test_keys_of_a_case_as_strings() -> None:
    context = ParallelContext.from_mapping(
        {
            "device_num": "16",
            "global_rank": "9",
            "parallel_mode": "auto_parallel",
            "search_mode": "sharding_propagation",
            "pipeline_stages": "2",
            "full_batch": "True",
            "enable_parallel_optimizer": "False",
            "dataset_strategy": "full_batch",
            "gradients_mean": "True",
            "strategy_ckpt_save_file": "says nothing of sharding",
        }
    )
    assert context.stage_ranks == tuple(range(8, 16))
    assert context.stage == 1
    assert context.propagates
    assert context.full_batch
    assert context.gradients_mean
    assert not context.parallel_optimizer


def test_absent_keys_take_the_defaults_of_mindspore() -> None:
    context = ParallelContext.from_mapping({"device_num": 8})
    assert (context.mode, context.target, context.soc) == ("semi_auto_parallel", "Ascend", "")
    assert not context.enable_alltoall
    assert not context.full_batch
    assert context.threshold == 64
    assert context.weight_shard_size == -1


def test_options_win_over_the_mapping() -> None:
    context = ParallelContext.from_mapping({"device_num": "8"}, devices=16, rank=3, stages=None)
    assert (context.devices, context.rank, context.stages) == (16, 3, 1)


@pytest.mark.parametrize(
    ("given", "full_batch", "dataset"),
    [
        ("data_parallel", False, None),
        ("full_batch", True, None),
        ("[[1, 8], [8, 1]]", False, ((1, 8), (8, 1))),
        (((1, 8), ()), False, ((1, 8), ())),
        ("[]", False, "unknown"),
    ],
)
def test_dataset_strategy(given: object, full_batch: bool, dataset: object) -> None:
    context = ParallelContext.from_mapping({"device_num": 8, "dataset_strategy": given})
    assert context.full_batch is full_batch
    assert context.dataset == dataset


def test_full_batch_beside_a_dataset_strategy_is_no_conflict() -> None:
    values = {"device_num": 8, "full_batch": "True", "dataset_strategy": "((8, 1),)"}
    context = ParallelContext.from_mapping(values)
    assert context.dataset == ((8, 1),)


def test_dataset_strategy_of_layouts() -> None:
    layout = {"device_matrix": [4, 2], "tensor_map": [[1, 0], -1]}
    context = ParallelContext.from_mapping({"device_num": 8, "dataset_strategy": [layout]})
    assert context.dataset == (UserLayout((4, 2), ((1, 0), -1)),)


def test_parallel_optimizer_config() -> None:
    config = {"parallel_optimizer_threshold": 24, "optimizer_weight_shard_size": 2}
    values = {"device_num": 8, "parallel_optimizer_config": config}
    context = ParallelContext.from_mapping(values)
    assert (context.threshold, context.weight_shard_size) == (24, 2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"device_num": "0"}, "device_num must be from 1"),
        ({"device_num": 7}, "divisible by 8"),
        ({"device_num": 12}, "divisible by 8"),
        ({"device_num": "eight"}, "whole number"),
        ({"device_num": 8, "pipeline_stages": 3}, "not divisible by pipeline_stages 3"),
        ({"device_num": 8, "pipeline_stages": 0}, "pipeline_stages must be at least 1"),
        ({"device_num": 8, "global_rank": 8}, "global_rank must be from 0 to 7"),
        ({"device_num": 8, "global_rank": "-1"}, "global_rank must be from 0 to 7"),
        ({"device_num": 8, "parallel_mode": "semi"}, "parallel_mode 'semi'"),
        ({"device_num": 8, "full_batch": "perhaps"}, "full_batch must be true or false"),
        ({"device_num": 8, "dataset_strategy": "half"}, "dataset_strategy can't be read"),
        ({"device_num": 8, "dataset_strategy": [1, 2]}, "dataset_strategy must be a tuple"),
        ({"device_num": 8, "device_target": "TPU"}, "device_target must be"),
    ],
)
def test_bad_values(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ParallelContext.from_mapping(values)


def test_what_mindspore_does_not_begin_to_compile() -> None:
    context = ParallelContext(devices=2, parallel_optimizer=True, weight_shard_size=4)
    assert [*context.refusals()] == [
        "optimizer_weight_shard_size 4 exceeds the number of devices 2"
    ]
    assert not [*ParallelContext(devices=8, parallel_optimizer=True).refusals()]
    search = ParallelContext(8, 2, mode="auto_parallel", search="dynamic_programming")
    assert len([*search.refusals()]) == 1

"""The parallel context: what is read, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.operators.layout import UserLayout
from irtool.sharding.network.context import EXCLUDED, MODES, ParallelContext


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


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("devices", "16", "devices", 16),
        ("rank", 3, "rank", 3),
        ("stages", "2", "stages", 2),
        ("pipeline_stages", 4.0, "stages", 4),
        ("parallel_mode", " auto_parallel ", "mode", "auto_parallel"),
        ("search_mode", "dynamic_programming", "search", "dynamic_programming"),
        ("auto_parallel_search_mode", "sharding_propagation", "search", "sharding_propagation"),
        ("device_target", "ascend", "target", "Ascend"),
        ("target", "gpu", "target", "GPU"),
        ("device_target", "CPU", "target", "CPU"),
        ("soc", "ascend910b", "soc", "ascend910b"),
        ("soc_version", "ascend910", "soc", "ascend910"),
        ("full_batch", 1, "full_batch", True),
        ("full_batch", "0", "full_batch", False),
        ("enable_alltoall", " TRUE ", "enable_alltoall", True),
        ("enable_parallel_optimizer", "true", "parallel_optimizer", True),
        ("optimizer_weight_shard_size", "4", "weight_shard_size", 4),
        ("optimizer_weight_shard_size", 1, "weight_shard_size", -1),
        ("optimizer_weight_shard_size", 2, "weight_shard_size", 2),
        ("grad_accumulation_step", "3", "accumulation_step", 3),
        ("gradients_mean", "True", "gradients_mean", True),
        ("gradient_fp32_sync", "False", "gradient_fp32_sync", False),
        ("loss_repeated_mean", False, "loss_repeated_mean", False),
        ("pipeline_interleave", "True", "interleave", True),
        ("pipeline_config", {"pipeline_interleave": True}, "interleave", True),
        ("pipeline_config", "{'pipeline_interleave': True}", "interleave", True),
        ("pipeline_config", {"pipeline_scheduler": "gpipe"}, "scheduler", "gpipe"),
        ("pipeline_scheduler", " gpipe ", "scheduler", "gpipe"),
        ("pipeline_config", {"pipeline_scheduler": "1f1b"}, "interleave", False),
        ("pipeline_result_broadcast", "True", "result_broadcast", True),
        (EXCLUDED, "a.b, *.norm.*,", "excluded", ("a.b", "*.norm.*")),
        (EXCLUDED, ["a", " b "], "excluded", ("a", "b")),
        (EXCLUDED, '["a", "b"]', "excluded", ("a", "b")),
        (EXCLUDED, "('a', 'b')", "excluded", ("a", "b")),
        ("dataset_strategy", [[[1, 8], [8, 1]], [2]], "dataset", ((1, 8), (8, 1), (2,))),
        ("dataset_strategy", "((8, 1), ((4, 2), (1,)))", "dataset", ((8, 1), (4, 2), (1,))),
        ("dataset_strategy", None, "dataset", None),
        ("parallel_optimizer_config", None, "threshold", 64),
        ("parallel_optimizer_config", {"parallel_optimizer_threshold": 0}, "threshold", 0),
        ("parallel_optimizer_config", {"parallel_optimizer_threshold": -1}, "threshold", 64),
        ("parallel_optimizer_config", "{'gradient_accumulation_shard': True}",
         "accumulation_shard", True),
        ("parallel_optimizer_config", {"optimizer_weight_shard_size": "8"},
         "weight_shard_size", 8),
    ],
)  # fmt: skip
def test_every_key_fills_its_field(key: str, value: object, field: str, expected: object) -> None:
    context = ParallelContext.from_mapping({"device_num": 8, key: value})
    assert getattr(context, field) == expected
    # It says nothing of anything else.
    plain = ParallelContext.from_mapping({"device_num": 8})
    assert replace(context, **{field: getattr(plain, field)}) == plain


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("(Layout((4, 2), ('dp', 'mp'))('dp', 'None'),)", (1, -1)),
        ("Layout((4, 2), ('dp', 'mp'))('mp', 'dp')", (0, 1)),
        ("[Layout(device_matrix=(4, 2), alias_name=('dp', 'mp'))(('dp', 'mp'), 'None')]",
         ((1, 0), -1)),
    ],
)  # fmt: skip
def test_layouts_as_programs_write_them(text: str, entries: tuple[object, ...]) -> None:
    context = ParallelContext.from_mapping({"device_num": 8, "dataset_strategy": text})
    assert context.dataset is not None
    (layout,) = context.dataset
    assert isinstance(layout, UserLayout)
    assert (layout.device_matrix, layout.tensor_map) == ((4, 2), entries)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"device_num": 4104}, "device_num must be from 1 to 4096"),
        ({"device_num": True}, "whole number"),
        ({"device_num": 8.5}, "whole number"),
        ({"device_num": [8]}, "whole number"),
        ({"device_num": 8, "soc": 5}, "soc must be a text"),
        ({"device_num": 8, "search_mode": "fast"}, "search_mode 'fast'"),
        ({"device_num": 8, "optimizer_weight_shard_size": 0}, "must be -1 or from 1"),
        ({"device_num": 8, "optimizer_weight_shard_size": 4097}, "from 1 to 4096, but is 4097"),
        ({"device_num": 8, "optimizer_weight_shard_size": -2}, "must be -1 or from 1"),
        ({"device_num": 8, "pipeline_config": "[1]"}, "pipeline_config must be a table"),
        ({"device_num": 8, "pipeline_config": "?"}, "pipeline_config can't be read"),
        ({"device_num": 8, "parallel_optimizer_config": "7"}, "must be a table"),
        ({"device_num": 8, "parallel_optimizer_config": {"parallel_optimizer_threshold": -2}},
         "parallel_optimizer_threshold must not be negative"),
        ({"device_num": 8, EXCLUDED: 7}, "must be names of weights"),
        ({"device_num": 8, EXCLUDED: {"a": 1}}, "must be names of weights"),
        ({"device_num": 8, EXCLUDED: ["a", 7]}, "must be names of weights"),
        ({"device_num": 8, "dataset_strategy": 8}, "must be a tuple of tuples"),
        ({"device_num": 8, "dataset_strategy": ["ab"]}, "must be a tuple of tuples"),
        ({"device_num": 8, "dataset_strategy": "'ab'"}, "must be a tuple of tuples"),
        ({"device_num": 8, "dataset_strategy": [[True]]}, "must hold whole numbers"),
        ({"device_num": 8, "dataset_strategy": [[1, "2"]]}, "must hold whole numbers"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8]}]}, "a layout needs"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8], "tensor_map": [1]}]},
         "a layout needs"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8], "tensor_map": [-2]}]},
         "a layout needs"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8], "tensor_map": ["x"]}]},
         "a layout needs"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8], "tensor_map": [0.5]}]},
         "a layout needs"),
        ({"device_num": 8, "dataset_strategy": [{"device_matrix": [8], "tensor_map": [0]}, (8,)]},
         "mixes layouts"),
        ({"device_num": 8, "dataset_strategy": "(Layout((8,), ('a',)),)"}, "can't be read"),
        ({"device_num": 8, "dataset_strategy": "Layout((8,), ('a',))(x=1)"}, "can't be read"),
        ({"device_num": 8, "dataset_strategy": "Layout(("}, "can't be read"),
    ],
)  # fmt: skip
def test_more_bad_values(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ParallelContext.from_mapping(values)


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 24, 4096])
def test_numbers_of_devices_that_there_are(devices: int) -> None:
    assert ParallelContext(devices).stage_ranks == tuple(range(devices))
    assert ParallelContext(devices, rank=devices - 1).stage == 0


def test_what_a_mode_means() -> None:
    told = {
        mode: (context.is_parallel, context.searches, context.propagates, context.overrides)
        for mode in MODES
        for context in [ParallelContext(8, mode=mode)]
    }
    assert told == {
        "stand_alone": (False, False, False, False),
        "data_parallel": (False, False, False, False),
        "hybrid_parallel": (False, False, False, False),
        "semi_auto_parallel": (True, False, False, False),
        "auto_parallel": (True, True, False, True),
    }
    propagating = ParallelContext(8, mode="auto_parallel", search="sharding_propagation")
    assert (propagating.propagates, propagating.overrides) == (True, False)
    assert not ParallelContext(8, search="sharding_propagation").propagates


def test_weights_are_excluded_by_name_or_pattern() -> None:
    context = ParallelContext(8, excluded=("a.w", "*.norm.*"))
    assert context.excludes("a.w")
    assert context.excludes("b.norm.gamma")
    assert not context.excludes("A.w")
    assert not context.excludes("b.w")


def test_refusals_on_both_sides_of_what_is_taken() -> None:
    for size, refused in ((8, False), (9, True)):
        context = ParallelContext(8, parallel_optimizer=True, weight_shard_size=size)
        assert bool([*context.refusals()]) == refused
    assert not [*ParallelContext(8, weight_shard_size=16).refusals()]
    for stages, mode, search, refused in (
        (1, "auto_parallel", "dynamic_programming", False),
        (2, "semi_auto_parallel", "dynamic_programming", False),
        (2, "auto_parallel", "recursive_programming", False),
        (2, "auto_parallel", "dynamic_programming", True),
    ):
        found = [*ParallelContext(8, stages, mode=mode, search=search).refusals()]
        assert bool(found) == refused


def test_what_operators_are_told() -> None:
    values = {
        "device_num": 16, "pipeline_stages": 2, "global_rank": 9, "soc": "ascend910b",
        "parallel_mode": "auto_parallel", "device_target": "GPU", "full_batch": True,
    }  # fmt: skip
    context = ParallelContext.from_mapping(values)
    told = context.for_operators(dynamic=True)
    assert (told.devices, told.device_num, told.rank) == (tuple(range(8, 16)), 16, 9)
    assert (told.target, told.soc, told.searching, told.dynamic) == (
        "GPU",
        "ascend910b",
        True,
        True,
    )
    assert told.full_batch
    assert context.for_rank(3).for_operators(dynamic=False).devices == tuple(range(8))
    lost = ParallelContext.from_mapping({"device_num": 8, "dataset_strategy": "[]"})
    assert lost.for_operators(dynamic=False).dataset_strategy is None


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("a, b.*", ("a", "b.*")),
        ("('a', 'b')", ("a", "b")),
        (" ['a']", ("a",)),
        (["a", " b ", ""], ("a", "b")),
        (("a",), ("a",)),
        ("", ()),
    ],
)
def test_names_of_weights_in_every_form(given: object, names: tuple[str, ...]) -> None:
    context = ParallelContext.from_mapping({"parallel_optimizer_excluded": given})
    assert context.excluded == names


@pytest.mark.parametrize("given", [7, {"a": "b"}, ["a", 7], "[1, 2]", True])
def test_what_are_no_names_of_weights(given: object) -> None:
    with pytest.raises(ValueError, match="must be names of weights, but is"):
        ParallelContext.from_mapping({"parallel_optimizer_excluded": given})


@pytest.mark.parametrize(
    ("dataset", "counts"),
    [
        ([[8, 1], [8]], True),
        ([[8, 1], []], True),  # a number is the same for all
        ([[8, 1], [4]], False),
        ([[8, 2], [8]], False),
        ([[4, 1], [4]], False),
        ([[1, 1], [1]], False),
        ([()], False),
        ("data_parallel", False),  # it holds for any number of devices as it is
        ("full_batch", False),
        ("[]", False),
    ],
)
def test_a_dataset_that_counts_devices_counts_others_elsewhere(
    dataset: object, counts: bool
) -> None:
    values = {"device_num": 16, "pipeline_stages": 2, "global_rank": 9, "dataset_strategy": dataset}
    context = ParallelContext.from_mapping(values)
    assert context.counts_devices is counts
    fewer = context.for_devices(8)
    assert (fewer.devices, fewer.rank, fewer.stages) == (8, 0, 2)
    assert (fewer.dataset, fewer.full_batch) == (
        (None, False) if counts else (context.dataset, context.full_batch)
    )
    assert bool(context.dataset_note(8)) is counts
    same = context.for_devices(16)
    assert (same.dataset, context.dataset_note(16)) == (context.dataset, "")
    if counts:
        assert "into 8 parts" in context.dataset_note(8)
        assert "or 4 parts" in context.dataset_note(8)


def test_a_dataset_of_one_device_a_stage_counts_nothing() -> None:
    values = {"device_num": 2, "pipeline_stages": 2, "dataset_strategy": [[1, 1]]}
    assert not ParallelContext.from_mapping(values).counts_devices

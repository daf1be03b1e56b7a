"""What would save memory: predictions held against what MindSpore compiled with the switch on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import memory
from irtool.cluster.what_if import Option, Trial
from irtool.cluster.what_if.plan import MemoryPlan, memory_plan
from irtool.cluster.what_if.state import weights


def plan_of(samples: Path, name: str, limit: int | None = None) -> MemoryPlan:
    found = memory(irtool.load(samples / "memory" / f"{name}.ir.xz"))
    return memory_plan(found, default_machine(), limit)


def options(plan: MemoryPlan, switch: str) -> list[Option]:
    return [saving.option for saving in plan.savings if saving.option.switch == switch]


@pytest.mark.parametrize(
    ("switch", "off", "on", "tolerance"),
    [
        ("optimizer parallel", "without_optimizer_parallel", "with_optimizer_parallel", 0.001),
        ("gradient_accumulation_shard", "accumulated_whole", "accumulated_sharded", 0.0),
        ("recompute", "without_recompute", "with_recompute", 0.05),
        ("pipeline_stages", "without_recompute", "two_stages", 0.1),
    ],
)
def test_a_prediction_is_what_the_compiler_does(
    switch: str, off: str, on: str, tolerance: float, samples: Path
) -> None:
    before = plan_of(samples, off)
    after = memory(irtool.load(samples / "memory" / f"{on}.ir.xz"))
    chosen = options(before, switch)
    assert chosen
    static = before.memory.static_bytes + sum(option.static for option in chosen)
    # Only a first pipeline brings small constants of its own.
    allowed = tolerance * after.peak_bytes if switch == "pipeline_stages" else 0
    assert abs(static - after.static_bytes) <= allowed
    peak = Trial(before.memory).peak(chosen)
    assert abs(peak - after.peak_bytes) <= tolerance * after.peak_bytes


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("threshold_128", None),
        ("threshold_120", "smaller than parallel_optimizer_threshold (64 KB)"),
        ("threshold_130", "the first dimension, 130, is no multiple of 8 replicas"),
    ],
)
def test_which_weights_are_sharded(name: str, why: str | None, samples: Path) -> None:
    """128 x 128 in single precision is exactly 64 KB and sharded; 130 rows do not divide by 8."""
    found = memory(irtool.load(samples / "memory" / f"{name}.ir.xz"))
    for weight in weights(found):
        assert weight.is_sharded == (why is None)
        assert weight.unshardable() == (why or "") or weight.is_sharded


def test_options_are_ranked_by_their_price(samples: Path) -> None:
    useful = [one for one in plan_of(samples, "without_recompute").savings if one.saved > 0]
    prices = [max(0.0, one.seconds) / one.saved for one in useful]
    assert prices == sorted(prices)
    assert all(
        one.saved <= 0 for one in plan_of(samples, "without_recompute").savings[len(useful) :]
    )


def test_combinations_stay_below_the_limit_and_need_all_their_options(samples: Path) -> None:
    before = plan_of(samples, "without_recompute")
    beside = before.memory.device_bytes.high - before.memory.peak_bytes
    limit = beside + before.memory.peak_bytes * 3 // 4
    plan = plan_of(samples, "without_recompute", limit)
    trial = Trial(plan.memory)
    assert plan.combinations
    for one in plan.combinations:
        assert one.peak == trial.peak(one.options) <= limit - beside
        for option in one.options:
            rest = [other for other in one.options if other is not option]
            assert trial.peak(rest) > limit - beside


def test_nothing_is_combined_that_frees_the_same_bytes(samples: Path) -> None:
    plan = plan_of(samples, "without_recompute", 1)
    assert plan.combinations == ()
    for one in plan_of(samples, "without_recompute", 800 << 20).combinations:
        switches = [option.switch for option in one.options if not option.target]
        assert len({"optimizer parallel", "primitive_target", "pipeline_stages"} & {*switches}) <= 1


def test_recompute_costs_operations_and_communication(samples: Path) -> None:
    plan = plan_of(samples, "without_recompute")
    with_communication = options(plan, "recompute")
    without = options(plan, "recompute, mp_comm_recompute=False")
    assert all(option.flops > 0 and option.traffic_bytes > 0 for option in with_communication)
    assert all(option.flops > 0 and option.traffic_bytes == 0 for option in without)


def test_cells_that_are_recomputed_already_are_no_candidates(samples: Path) -> None:
    assert not options(plan_of(samples, "with_recompute"), "recompute")


def test_recomputed_collectives_can_be_kept_instead(samples: Path) -> None:
    (option,) = options(plan_of(samples, "with_recompute"), "mp_comm_recompute")
    assert option.traffic_bytes < 0


def test_a_cell_is_recomputed_one_way_or_offloaded(samples: Path) -> None:
    plan = plan_of(samples, "without_recompute")
    ways = ("recompute", "recompute, mp_comm_recompute=False", "offload")
    found = [option for way in ways for option in options(plan, way)]
    assert found
    assert all(option.excludes.issuperset(ways) for option in found)


def test_parameter_servers_move_rows_of_tables_only(samples: Path) -> None:
    found = memory(irtool.load(samples / "gpt/20_validate_0080.ir"))
    served = {one.name: one for one in memory_plan(found, default_machine()).served}
    table = served["embedding"]
    assert table.is_table
    assert table.pushed <= table.bytes
    other = served["layers.0.up.weight"]
    assert not other.is_table
    assert other.pushed == other.pulled == other.bytes


@given(st.integers(0, 7), st.integers(0, 7), st.integers(1, 1000))
def test_a_tensor_that_dies_earlier_never_raises_the_peak(a: int, b: int, size: int) -> None:
    from irtool.cluster.what_if import Change

    class Fake:
        curve = (5, 9, 2000, 3, 4, 1500, 7, 8)
        static_bytes = 100

    trial = Trial(Fake())  # type: ignore[arg-type]  # only the curve is looked at
    change = Change(min(a, b), max(a, b), -size)
    assert trial.peak([Option("x", "", "", (change,))]) <= trial.peak([]) == 2100


def test_savings_alike_on_several_cells_are_one_line(samples: Path) -> None:
    plan = plan_of(samples, "without_recompute")
    groups = plan.folded_savings
    assert sum(max(len(one.targets), 1) for one in groups) == len(plan.savings)
    folded = [one for one in groups if len(one.targets) > 1]
    assert folded
    for group in folded:
        assert group.targets[0] == group.saving.option.target
        alike = [
            one
            for one in plan.savings
            if one.option.switch == group.saving.option.switch
            and one.option.target in group.targets
        ]
        assert len(alike) == len(group.targets)
        assert {(one.saved, one.option.flops) for one in alike} == {
            (group.saving.saved, group.saving.option.flops)
        }


def test_static_memory_by_layer_adds_up_to_that_of_its_causes(samples: Path) -> None:
    memory = plan_of(samples, "without_recompute").memory
    layers = memory.static_by_layer(("parameters", "optimizer state"))
    for cause in ("parameters", "optimizer state"):
        total = sum(sizes.get(cause, 0) for sizes in layers.values())
        assert total == memory.static_by_cause[cause] > 0
    assert all("inputs" not in sizes for sizes in layers.values())

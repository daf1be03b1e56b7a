"""What is searched together: ranked, the plain one among it, and as dear as the whole network."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.plans.plan import plan
from irtool.planning.scaling.candidates import Candidates, candidates_of
from irtool.planning.scaling.folded import FoldedMaker, LayersAreNoCells
from irtool.planning.scaling.scaled import Scaled, scaled
from irtool.planning.stages.stages import staged_plan
from irtool.sharding.network.context import ParallelContext

GPT = Path(__file__).parents[3] / "samples" / "gpt" / "step_parallel_begin_0018.ir"
CONTEXT = ParallelContext(devices=2, mode="semi_auto_parallel", full_batch=True)
MACHINE = replace(default_machine(), overlap=0.0)


@cache
def network() -> Scaled:
    return scaled(irtool.load(str(GPT)), {"layers": 6, "hidden": 512, "sequence": 128, "batch": 2})


@cache
def found() -> Candidates:
    return candidates_of(network(), CONTEXT, MACHINE, 2, None)


def test_they_are_ranked_and_the_plain_one_is_among_them() -> None:
    seconds = [each.seconds for each in found().ranked]
    assert seconds == sorted(seconds)
    assert len(seconds) <= 10
    assert sum(each.is_plain and each.devices == 2 for each in found().ranked) == 1


def test_each_is_told_once() -> None:
    assert len(set(found().ranked)) == len(found().ranked)


def test_no_bound_is_above_its_candidate() -> None:
    assert all(each.lower_bound is not None for each in found().ranked)
    assert all((each.lower_bound or 0) <= each.seconds for each in found().ranked)


def test_one_layer_stands_for_its_equals() -> None:
    plain = next(each for each in found().ranked if each.is_plain and each.devices == 2)
    whole = plan(network().dump, CONTEXT, MACHINE, devices=2)
    assert abs(plain.seconds / whole.after.seconds - 1) < 1e-9
    assert abs(plain.memory_bytes / whole.after.memory.total - 1) < 0.02


def test_where_no_layer_stands_for_its_equals_all_are_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check(_: FoldedMaker) -> None:
        raise LayersAreNoCells("stages are cut between cells")

    monkeypatch.setattr(FoldedMaker, "_check", check)
    all_planned = candidates_of(network(), CONTEXT, MACHINE, 2, None)
    plain = next(each for each in all_planned.ranked if each.is_plain and each.devices == 2)
    whole = plan(network().dump, CONTEXT, MACHINE, devices=2)
    assert plain.seconds == pytest.approx(whole.after.seconds)
    assert len(all_planned.ranked) > 1


def test_a_pipeline_of_the_shallow_network_costs_what_that_of_the_deep_one_does() -> None:
    cut = next(each for each in found().ranked if each.stages > 1 and not each.optimizer_parallel)
    whole = staged_plan(
        network().dump, CONTEXT, MACHINE, cut.stages, devices=cut.devices,
        micro_batches=cut.micro_batches, memory_limit=found().limit,
    )  # fmt: skip
    assert abs(cut.seconds / whole.seconds - 1) < 1e-9
    assert cut.memory_bytes == max(stage.bytes for stage in whole.stages)

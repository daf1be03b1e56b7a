"""Stages: every layer in one of them, balanced, with the memory that 1F1B holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.search.effort import EFFORTS
from irtool.planning.search.tables import CannotPlan
from irtool.planning.stages.files import staged_cells, staged_operator_file
from irtool.planning.stages.stages import StagedPlan, staged_plan
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
MACHINE = default_machine()


@pytest.fixture(scope="module")
def begin() -> Dump:
    return irtool.load(str(SAMPLES / "mlp_recursive_search" / "step_parallel_begin_0019.ir"))


@pytest.fixture(scope="module")
def gpt() -> Dump:
    return irtool.load(str(SAMPLES / "gpt" / "step_parallel_begin_0018.ir"))


@pytest.fixture(scope="module")
def halves(begin: Dump) -> StagedPlan:
    return staged_plan(begin, CONTEXT, MACHINE, 2, micro_batches=4)


@pytest.fixture(scope="module")
def gpt_halves(gpt: Dump) -> StagedPlan:
    return staged_plan(gpt, CONTEXT, MACHINE, 2, micro_batches=4)


def test_each_stage_has_its_share_of_the_devices(halves: StagedPlan) -> None:
    assert halves.devices == 8
    assert halves.inner.context.devices == 4
    assert halves.inner.report.accepted is True


def test_every_operator_is_in_one_stage(halves: StagedPlan) -> None:
    nodes = [node for stage in halves.stages for node in stage.nodes]
    assert len(nodes) == len(set(nodes))
    assert set(nodes) == set(halves.inner.report.by_node)


def test_the_stages_together_do_all_of_the_work(halves: StagedPlan) -> None:
    work = sum(stage.seconds for stage in halves.stages)
    assert work == pytest.approx(halves.inner.after.seconds)
    assert halves.inner.lower_bound is not None
    assert halves.inner.lower_bound <= work


def test_a_plan_is_of_one_micro_batch(gpt: Dump, gpt_halves: StagedPlan) -> None:
    """A batch of 8 in 4 parts leaves 2 rows, so nothing can split it by more."""
    splits = {
        item.after[1][0]
        for item in gpt_halves.inner.operators
        if item.node.op == "Gather" and item.after is not None
    }
    assert max(splits) <= 2
    with pytest.raises(CannotPlan, match=r"8 rows.*cut into 3"):
        staged_plan(gpt, CONTEXT, MACHINE, 2, micro_batches=3)


def test_a_step_takes_as_long_as_the_schedule(halves: StagedPlan) -> None:
    """No shorter than the slowest stage, and no longer than all of them one after the other."""
    slowest = max(stage.seconds for stage in halves.stages)
    assert slowest <= halves.seconds <= 2 * sum(stage.seconds for stage in halves.stages)


def test_the_cut_is_the_best_of_all(begin: Dump, gpt: Dump) -> None:
    """Against every cut of the cells, two and three stages."""
    for dump, stages in ((begin, 2), (begin, 3), (gpt, 2), (gpt, 3)):
        context = replace(CONTEXT, devices=24) if stages == 3 else CONTEXT
        found = staged_plan(dump, context, MACHINE, stages, micro_batches=4)
        slowest = max(stage.seconds for stage in found.stages)
        singles = staged_plan(dump, CONTEXT, MACHINE, 1, micro_batches=4).stages[0]
        assert singles.seconds == pytest.approx(sum(stage.seconds for stage in found.stages), rel=1)
        times = _cell_seconds(found)
        best = min(
            max(sum(times[a:b]) for a, b in zip((0, *cut), (*cut, len(times)), strict=True))
            for cut in combinations(range(1, len(times)), stages - 1)
        )
        assert slowest == pytest.approx(best)


def _cell_seconds(found: StagedPlan) -> list[float]:
    """Seconds of each cell: what stands outside of any goes with the one before it."""
    outside = ("before the layers", "between layers", "behind the layers")
    scopes: list[str] = []
    for stage in found.stages:
        scopes += [name for name in stage.layers if name not in outside]
    times = [0.0] * len(scopes)
    place = -1
    order = {id(node): at for at, node in enumerate(found.inner.dump.nodes())}
    cell: dict[int, int] = {}
    nodes = [node for stage in found.stages for node in stage.nodes]
    for node in sorted(nodes, key=lambda node: order[id(node)]):
        parts = (node.scope or "").replace("-", "/").split("/")
        named = [
            at for at, name in enumerate(scopes) if all(word in parts for word in name.split("."))
        ]
        place = named[0] if named else max(place, 0)
        cell[id(node)] = place
    for item in found.inner.after.items:
        times[cell.get(id(item.node), 0)] += item.total
    return times


def test_the_first_stage_holds_results_of_more_micro_batches(begin: Dump) -> None:
    two, eight = (staged_plan(begin, CONTEXT, MACHINE, 2, micro_batches=count) for count in (2, 8))
    assert [stage.in_flight for stage in two.stages] == [2, 1]
    assert eight.stages[0].activation_bytes < two.stages[0].activation_bytes
    assert eight.bubble < two.bubble


def test_memory_is_that_of_the_fullest_stage(halves: StagedPlan) -> None:
    assert halves.inner.after.memory.total == max(stage.bytes for stage in halves.stages)


def test_weights_outside_of_cells_are_in_every_stage(
    halves: StagedPlan, gpt_halves: StagedPlan
) -> None:
    """The embedding is a parameter of this GPT itself, all other weights are in cells."""
    assert [stage.loose_bytes for stage in halves.stages] == [0, 0]
    parameters = gpt_halves.inner.dump.parameters
    held = sum(each.size or 0 for each in parameters if each.name.endswith("embedding"))
    (table,) = (each.size or 0 for each in parameters if each.name == "embedding")
    assert held == 2 * table  # with its optimizer state; a gradient beside
    assert [stage.loose_bytes for stage in gpt_halves.stages] == [0, 3 * table]
    assert any("embedding: used outside of cells" in note for note in gpt_halves.inner.notes)


def test_results_and_shared_weights_go_from_stage_to_stage(gpt_halves: StagedPlan) -> None:
    results = [item for item in gpt_halves.transfers if not item.what.startswith("weight")]
    assert [(item.source, item.target, item.count, item.returned) for item in results] == [
        (0, 1, 4, True)
    ]
    sent = sum(item.size * item.count for item in gpt_halves.transfers)
    assert gpt_halves.stages[0].sent_bytes == sent


# -- under a limit -------------------------------------------------------------------------------


def test_a_stage_that_does_not_fit_is_named(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match=r"in stage \d \("):
        staged_plan(begin, CONTEXT, MACHINE, 2, memory_limit=1)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("optimizer", [False, True])
def test_every_stage_fits(gpt: Dump, recompute: bool, optimizer: bool) -> None:
    free = staged_plan(
        gpt, CONTEXT, MACHINE, 2, decide_recompute=recompute, decide_optimizer=optimizer
    )
    limit = max(stage.bytes for stage in free.stages) * 9 // 10
    found = staged_plan(
        gpt, CONTEXT, MACHINE, 2, memory_limit=limit, decide_recompute=recompute,
        decide_optimizer=optimizer,
    )  # fmt: skip
    assert all(stage.bytes <= limit for stage in found.stages)
    assert found.inner.report.accepted is True
    assert (found.inner.decisions is not None) == (recompute or optimizer)


@pytest.mark.corpus
def test_a_deep_network_fits_by_other_cuts_strategies_and_recomputation(corpus: Path) -> None:
    """What was refused at every limit when a step's results were held at once."""
    folder = corpus / "planning" / "gpt_L8_B64_rec_8"
    begin = irtool.load(str(folder / "step_parallel_begin.ir"))
    free = staged_plan(begin, CONTEXT, MACHINE, 2)
    most = max(stage.bytes for stage in free.stages)
    for part, recompute in ((9, False), (7, True), (5, True)):
        limit = most * part // 10
        found = staged_plan(
            begin, CONTEXT, MACHINE, 2, memory_limit=limit, decide_recompute=recompute
        )
        assert all(stage.bytes <= limit for stage in found.stages)
        assert found.seconds < 1.5 * free.seconds


# -- odd input -----------------------------------------------------------------------------------


def test_more_stages_than_layers_are_refused(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="as many layers"):
        staged_plan(begin, CONTEXT, MACHINE, 8)


def test_stages_that_the_devices_do_not_divide_into_are_refused(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match=r"cannot be divided.*1, 2, 4, 8 would do"):
        staged_plan(begin, CONTEXT, MACHINE, 3)


def test_fewer_micro_batches_than_stages_are_refused(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="fewer micro-batches"):
        staged_plan(begin, CONTEXT, MACHINE, 2, micro_batches=1)


def test_a_micro_batch_is_split_as_the_dataset_is(gpt: Dump) -> None:
    """8 rows over 4 devices leave 2 micro-batches."""
    context = replace(CONTEXT, full_batch=False)
    assert staged_plan(gpt, context, MACHINE, 2).micro_batches == 2
    with pytest.raises(CannotPlan, match="at most 2 micro-batches"):
        staged_plan(gpt, context, MACHINE, 2, micro_batches=4)


def test_a_dump_with_stages_is_refused() -> None:
    path = next((SAMPLES / "pipeline_2_stages").rglob("*.ir"))
    with pytest.raises(CannotPlan, match="whole network"):
        staged_plan(irtool.load(str(path)), CONTEXT, MACHINE, 2)
    context = replace(CONTEXT, stages=2)
    with pytest.raises(CannotPlan, match="2 stages already"):
        staged_plan(irtool.load(str(path)), context, MACHINE, 2)


def test_one_stage_is_the_plan_without_stages(begin: Dump) -> None:
    found = staged_plan(begin, CONTEXT, MACHINE, 1)
    assert len(found.stages) == 1
    assert found.micro_batches == 1
    assert found.seconds == pytest.approx(found.inner.after.seconds)
    assert found.transfers == ()


# -- for MindSpore -------------------------------------------------------------------------------


def test_each_cell_has_a_stage(halves: StagedPlan) -> None:
    cells = staged_cells(halves)
    assert sorted(set(cells.values())) == [0, 1]
    names = [scope.split("/")[-1] for scope in cells]
    assert names == ["up-Linear", "mid-Linear", "down-Linear", "_loss_fn-Loss"]
    assert list(cells.values()) == sorted(cells.values())


def test_cells_are_keyed_once_and_what_is_outside_once_a_micro_batch(halves: StagedPlan) -> None:
    keys: dict[str, object] = staged_operator_file(halves)["parallel_strategy_item"]  # pyright: ignore[reportAssignmentType]  # JSON
    scope = "Default/network-PipelineCell/network-WithLossCell/_backbone-Mlp"
    assert f"{scope}/up-Linear/MatMul-op0" in keys
    assert f"{scope}/up-Linear/MatMul-op1" not in keys
    assert f"{scope}/ReLU-op7" in keys
    assert "Default/network-PipelineCell/Add-op2" in keys
    slices = "Default/network-PipelineCell/micro_inputs-CellList/3-_MicroBatch/StridedSlice"
    assert f"{slices}-op1" in keys


def test_names_of_another_network_are_refused(halves: StagedPlan) -> None:
    other = {"parallel_strategy_item": {"Default/x-op0": {"parallel_strategy": [[1]], "stage": 0}}}
    with pytest.raises(NotExpressible, match="Default/x-op0"):
        staged_operator_file(halves, other)


def test_stages_of_few_strategies_are_near_those_of_all(
    gpt: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], pairs=100_000))
    full = staged_plan(gpt, CONTEXT, MACHINE, 2, devices=256, micro_batches=4, effort="full")
    quick = staged_plan(gpt, CONTEXT, MACHINE, 2, devices=256, micro_batches=4, effort="quick")
    assert not any("--effort" in note for note in full.inner.notes)
    assert any("--effort full" in note for note in quick.inner.notes)
    assert full.seconds * 0.999 <= quick.seconds <= full.seconds * 1.02

"""One account of what is kept: ``cost`` predicts what a compiled train step holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.account import Account, compiled_account, fused_bytes
from irtool.cluster.machine import built_in
from irtool.cluster.memory import memory
from irtool.cluster.pricing import Launch
from irtool.ir.parameter_roles import parameter_roles
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.plan import plan
from irtool.planning.plans.step.report import MemoryCost, step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from tests.records import records

DUMPS = Path(__file__).parents[2] / "cluster" / "dumps"
STEPS = [
    "data_parallel", "own_lion", "own_factor", "own_master", "accumulate", "loss_scale",
    "convolutions",
]  # fmt: skip


def dump_of(step: str, kind: str) -> irtool.Dump:
    (file,) = (DUMPS / step).glob(f"*{kind}_[0-9]*.ir*")
    return irtool.load(file)


@pytest.mark.parametrize("step", STEPS)
def test_everything_that_is_held_is_that_of_the_compiled_step(step: str) -> None:
    begin, validate = dump_of(step, "step_parallel_begin"), dump_of(step, "validate")
    context = ParallelContext(devices=8, full_batch=True)
    told = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    roles = parameter_roles(validate)
    held = {"weight": 0, "state": 0}
    for item in validate.parameters:
        role = roles[item.name].role
        if role in held:
            held[role] += item.size or 0
    assert told.memory.states == held["state"]
    assert told.memory.weights == held["weight"]
    seen = compiled_account(memory(validate))
    assert told.memory.accumulated == seen.accumulated
    assert told.memory.gradients == seen.gradients
    # The scale of the loss, one number, is kept where there is one.
    assert 0 <= seen.kept - told.memory.activations <= 4
    assert (told.memory.inputs, told.memory.fused) == (seen.inputs, seen.fused)
    assert 0 <= seen.total - told.memory.total <= 8


@pytest.mark.parametrize("step", STEPS)
def test_memory_counts_each_parameter_for_what_it_is(step: str) -> None:
    validate = dump_of(step, "validate")
    roles = parameter_roles(validate)
    causes = {item.name: item.cause for item in memory(validate).static}
    expected = {"weight": "parameters", "state": "optimizer state", "input": "inputs",
                "accumulated gradient": "accumulated gradients", "other": "other"}  # fmt: skip
    assert roles
    for name, each in roles.items():
        assert causes[name] == expected[each.role]


SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize(
    ("sample", "context"),
    [
        ("gpt", ParallelContext(devices=8, full_batch=True)),
        ("mlp_semi_auto", ParallelContext(devices=8, full_batch=True)),
        (
            "shard_size_4",
            ParallelContext(
                devices=8, full_batch=True, parallel_optimizer=True, weight_shard_size=4,
                threshold=0,
            ),
        ),
    ],
)  # fmt: skip
def test_kept_results_and_gathered_weights_are_predicted_to_the_byte(
    sample: str, context: ParallelContext
) -> None:
    begin, validate = (
        irtool.load(next((SAMPLES / sample).glob(f"*{kind}_[0-9]*.ir*")))
        for kind in ("step_parallel_begin", "validate")
    )
    told = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    seen = compiled_account(memory(validate))
    assert told.memory.activations == seen.kept > 0
    assert told.memory.gathered == seen.gathered
    assert (seen.gathered > 0) is context.parallel_optimizer


def test_a_plan_holds_its_limit_against_what_the_compiled_step_holds() -> None:
    """What the tables of a search do not count (batch, buffers) is left room for."""
    begin, validate = (
        irtool.load(next((SAMPLES / "gpt").glob(f"*{kind}_[0-9]*.ir*")))
        for kind in ("step_parallel_begin", "validate")
    )
    context, machine = ParallelContext(devices=8, full_batch=True), built_in("ascend_910b")
    own = step_cost(structure_of(begin, context), check(begin, context), machine).memory
    assert own.total == compiled_account(memory(validate)).total
    free = plan(begin, context, machine).after
    for limit in (free.memory.total, free.memory.total - 1):
        found = plan(begin, context, machine, memory_limit=limit)
        assert found.after.memory.total <= limit
        assert found.lower_bound is not None
        assert found.lower_bound <= found.after.seconds
        assert (found.after.seconds > free.seconds * (1 + 1e-9)) is (limit < free.memory.total)


def test_a_buffer_counts_as_far_as_it_is_larger_than_what_was_freed_for_it() -> None:
    assert Account(kept=10, gathered=5, fused=15, weights=1).total == 16
    assert Account(kept=10, gathered=5, fused=16, weights=1).total == 17


def test_only_what_goes_together_needs_a_buffer() -> None:
    """Each tensor is filled up to the next block of 1,024 bytes, one that fits exactly too."""
    two, eight = (0, 1), tuple(range(8))
    pair = [Launch("AllReduce", 1023, two, 1), Launch("AllReduce", 1024, two, 1)]
    assert fused_bytes(pair) == 1024 + 2048
    assert fused_bytes(pair[:1]) == 0
    assert fused_bytes([pair[0], Launch("AllReduce", 1024, eight, 1)]) == 0
    assert fused_bytes([pair[0], Launch("AllReduce", 1024, two, 0)]) == 0


STAGES = records(Path(__file__).parent / "stages_with_memory.jsonl.xz")
"""Stages behind the first of random decoders that MindSpore 2.7.0 compiled: one with two
micro-batches in one graph, one of eight with cells that are inlined late and run again."""


@pytest.mark.parametrize("name", STAGES)
def test_a_later_stage_keeps_what_it_was_sent_for_each_micro_batch_on_its_way(name: str) -> None:
    record = STAGES[name]
    begin, context = record.dump("begin"), record.context
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    compiled = compiled_account(memory(record.dump("validate")))
    assert cost.memory.activations == compiled.kept
    assert cost.memory.weights == compiled.weights
    assert cost.memory.states == compiled.states
    assert cost.memory.gradients == compiled.gradients
    assert cost.memory.total == compiled.total


CUT = records(Path(__file__).parent / "stages_between.jsonl.xz")
"""Blocks of two products that MindSpore 2.7.0 compiled: the second of four stages, which reads no
batch; the first of two that hold two chunks each (four micro-batches), and the last of two such
under ``gpipe``, which keeps the results of all micro-batches."""
MIDDLE, _, GPIPE = CUT


@pytest.mark.parametrize("name", CUT)
def test_stages_hold_inputs_that_they_do_not_read_and_results_of_all_chunks(name: str) -> None:
    record = CUT[name]
    begin, context = record.dump("begin"), record.context
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    compiled = compiled_account(memory(record.dump("validate")))
    assert cost.memory.activations == compiled.kept > 0
    assert cost.memory.inputs == compiled.inputs > 0
    assert cost.memory.total == compiled.total


def test_gpipe_keeps_more_than_one_forward_one_backward() -> None:
    record = CUT[GPIPE]
    begin, machine = record.dump("begin"), built_in("ascend_910b")
    all_of_them, some = (
        step_cost(structure_of(begin, context), check(begin, context), machine).memory.activations
        for context in (record.context, replace(record.context, scheduler="1f1b"))
    )
    # The last stage of two runs back as soon as both chunks ran: 3 of 8 are kept.
    assert some * 8 == all_of_them * 3


@pytest.mark.parametrize(
    ("rows", "full_batch", "size"),
    [(64, False, 8 * 32 * 4), (64, True, 64 * 32 * 4), (8, False, 32 * 4), (7, False, 7 * 32 * 4)],
)
def test_inputs_that_a_stage_does_not_read_are_cut_where_rows_are_enough(
    rows: int, full_batch: bool, size: int
) -> None:
    """As many rows as the stage has devices are enough; a full batch is never cut."""
    record = CUT[MIDDLE]
    text = record.dumps["begin"].replace("(64, 32)> : [64, 32]", f"({rows}, 32)> : [{rows}, 32]")
    begin = irtool.loads(text, "step_parallel_begin_0018.ir")
    context = replace(record.context, full_batch=full_batch)
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    assert cost.memory.inputs == 2 * size


KEEPS_COMMUNICATION = records(Path(__file__).parent / "kept_communication.jsonl.xz")
"""Random networks with ``recompute(mp_comm_recompute=False)`` that MindSpore 2.7.0 compiled: what
it inserts in a recomputed cell stays, slices and Reshapes too."""


@pytest.mark.parametrize("name", KEEPS_COMMUNICATION)
def test_what_is_inserted_in_a_cell_stays_where_communication_is_not_recomputed(name: str) -> None:
    record = KEEPS_COMMUNICATION[name]
    begin, context = record.dump("begin"), record.context
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    compiled = compiled_account(memory(record.dump("validate")))
    assert cost.memory.activations == compiled.kept > 0
    assert cost.memory.total == compiled.total


VIEWS = records(Path(__file__).parent / "kept_views.jsonl.xz")
"""A random decoder with experts that MindSpore 2.7.0 compiled: a norm's result is read as it is,
and by a product behind a Reshape of a device's own slice."""


@pytest.mark.parametrize("name", VIEWS)
def test_a_slice_that_is_also_read_in_another_shape_is_kept_once(name: str) -> None:
    record = VIEWS[name]
    begin, context = record.dump("begin"), record.context
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    compiled = compiled_account(memory(record.dump("validate")))
    assert cost.memory.activations == compiled.kept
    assert cost.memory.total == compiled.total


COPIES = records(Path(__file__).parent / "kept_copies.jsonl.xz")
"""Random networks, planned, that MindSpore 2.7.0 compiled: a transformer whose products' operands
are transposed for their gradients as soon as they are there, and PyTorch-like attention that reads
one value as query, key and value."""


def accounts(name: str) -> tuple[MemoryCost, Account]:
    record = COPIES[name]
    begin, context = record.dump("begin"), record.context
    cost = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    return cost.memory, compiled_account(memory(record.dump("validate")))


def test_a_copy_that_the_backward_pass_reads_instead_of_a_result_is_kept() -> None:
    planned, compiled = accounts("860103_0009_former2_8_a2a")
    assert planned.activations == compiled.kept
    assert planned.total == compiled.total


def test_what_two_equal_operators_make_is_kept_once() -> None:
    planned, compiled = accounts("890104_0006_hand_encoder_64_a2a")
    assert (
        planned.activations == 62_080
    )  # three gathers of one value, were they not merged: 160,384
    assert planned.total == pytest.approx(compiled.total, rel=0.05)

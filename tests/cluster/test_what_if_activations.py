"""What-ifs on activations and stages of two layers, each figure worked out by hand.

Launches: 0 MatMul and 1 ReLU of layer 0, 2 MatMul and 3 ReLU of layer 1, 4 the loss; backward
5 ReluGrad (of the loss's input, reads 3 and 2), 6 the gradient of layer 1's weight (reads 1),
7 MatMul (reads 5), 8 ReluGrad (reads 7 and 0), 9 the gradient of layer 0's weight; two updates.
Each activation is ``SIZE`` bytes; the weights are 256 x 64 and 64 x 64.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.cluster.machine import Level, Machine
from irtool.cluster.memory import Memory
from irtool.cluster.memory.static import StaticTensor
from irtool.cluster.what_if import Change, Option, Traffic
from irtool.cluster.what_if.plan import memory_plan, prices
from irtool.cluster.what_if.recompute import activation_options, recomputed_collectives
from irtool.cluster.what_if.stages import more_stages, served_weights
from irtool.cluster.what_if.state import weights
from tests.cluster.step_by_hand import GRADIENTS, RANKS, Step, tensor

ROWS = 2048
SIZE = ROWS * 64 * 4
ZERO = "Default/network-Net/layers-CellList/0-Block/"
ONE = "Default/network-Net/layers-CellList/1-Block/"


def device(
    *, reads_input: bool = True, reduces: bool = False, layers: tuple[str, str] = (ZERO, ONE)
) -> Memory:
    """The step; ``reads_input``: launch 6 reads layer 1's input; ``reduces``: 0 is summed up."""
    zero, one = layers
    shapes = {"layers.0.w": (256, 64), "layers.1.w": (64, 64)}
    step = Step(
        {before + name: shape for name, shape in shapes.items() for before in ("", "moments.")}
    )
    size = tensor(ROWS, 64)
    h0 = step.do("MatMul", "x", "layers.0.w", out=size, scope=zero, primal='unique_id: "1"')
    if reduces:
        h0 = step.do("AllReduce", h0, out=size, scope=zero, instance="forward_op_123456789012",
                     attributes=f'group: "g", op: "sum", rank_list: {RANKS}')  # fmt: skip
    r0 = step.do("ReLU", h0, out=size, scope=zero, primal='unique_id: "2"')
    h1 = step.do("MatMul", r0, "layers.1.w", out=size, scope=one, primal='unique_id: "3"')
    r1 = step.do("ReLU", h1, out=size, scope=one, primal='unique_id: "4"')
    loss = step.do("ReduceSum", r1, out=tensor(), scope="Default/", primal='unique_id: "5"')

    def back(op: str, *inputs: str, out: str, scope: str, of: int) -> str:
        scope = scope.replace("Default/network-Net/", GRADIENTS)
        return step.do(op, *inputs, out=out, scope=scope, primal=f'forward_unique_id: "{of}"')

    g1 = back("ReluGrad", r1, h1, out=size, scope=one, of=4)
    w1 = back("MatMul", r0 if reads_input else g1, g1, out=tensor(64, 64), scope=one, of=3)
    gx = back("MatMul", g1, "layers.1.w", out=size, scope=one, of=3)
    g0 = back("ReluGrad", gx, h0, out=size, scope=zero, of=2)
    w0 = back("MatMul", "x", g0, out=tensor(256, 64), scope=zero, of=1)
    for name, gradient in (("layers.1.w", w1), ("layers.0.w", w0)):
        step.do("ApplyMomentum", name, f"moments.{name}", gradient, out=tensor(1),
                scope="Default/optimizer-Momentum/")  # fmt: skip
    return step.memory(loss)


def options(found: Memory) -> dict[tuple[str, str], Option]:
    return {(one.switch, one.target): one for one in activation_options(found)}


# -- the device ------------------------------------------------------------------------------------


def test_the_curve_is_what_is_alive_in_each_launch() -> None:
    found = device()
    s, w0, w1, loss = SIZE, 256 * 64 * 4, 64 * 64 * 4, 4
    assert found.curve == (
        s, 2 * s, 3 * s, 4 * s, 4 * s + loss, 5 * s + loss,  # r1 and h1 die in 5
        3 * s + w1 + loss, 3 * s + w1 + loss, 3 * s + w1 + loss, s + w0 + w1 + loss,
        w0 + w1 + loss, w0 + loss,
    )  # fmt: skip
    assert found.peak_launch == 5
    alive = [
        (one.node.id, one.cause, one.phase, one.layer, one.born, one.dies) for one in found.alive
    ]
    assert alive == [
        ("%0", "activations", "forward", "layers.0", 0, 8),
        ("%1", "activations", "forward", "layers.0", 1, 6),
        ("%2", "activations", "forward", "layers.1", 2, 5),
        ("%3", "activations", "forward", "layers.1", 3, 5),
        ("%5", "temporaries", "backward", "layers.1", 5, 7),
        ("%4", "temporaries", "forward", "(network)", 4, 11),
    ]
    assert [one.last_user.id if one.last_user else "" for one in found.alive] == [
        "%8", "%6", "%5", "%5", "%7", "",
    ]  # fmt: skip
    # weights 65536 + 16384 with a momentum each, and the inputs 8 x 256 and 8
    assert found.static_bytes == 2 * (65536 + 16384) + 8 * 256 * 4 + 8 * 4
    # a kernel may take as much as the largest input of a product
    assert (found.workspace.low, found.workspace.high) == (0, SIZE)
    assert found.device_bytes.high == found.peak_bytes + SIZE


@pytest.mark.parametrize(("more", "fits"), [(-1, False), (0, None), (SIZE - 1, None), (SIZE, True)])
def test_a_limit_inside_the_interval_leaves_it_open(more: int, fits: bool | None) -> None:
    found = device()
    assert found.fits(found.peak_bytes + more) is fits


def test_what_is_damaged_or_unknown_never_surely_fits() -> None:
    found = device()
    assert replace(found, is_damaged=True).fits(1 << 60) is None
    assert replace(found, unknown=("%4",)).fits(1 << 60) is None
    assert replace(found, unknown=("%4",)).fits(1) is False


# -- recompute and offload -------------------------------------------------------------------------


def test_a_recomputed_layer_frees_what_it_keeps_until_it_is_needed_again() -> None:
    """Layer 0 keeps launch 0's result, read by 1 and 8: gone from 2 to 7.  Its result (1) stays."""
    found = options(device())
    zero, one = found["recompute", "layers.0"], found["recompute", "layers.1"]
    assert zero.changes == (Change(2, 7, -SIZE),)
    assert zero.how == "layers.0.recompute()"
    # launch 2's result is read by 3 and 5; launch 3's by the loss, outside of the layer: it stays
    assert one.changes == (Change(4, 4, -SIZE),)
    # two operations for each multiplication of the product, one for each element of the rest
    assert zero.flops == 2 * ROWS * 256 * 64 + ROWS * 64
    assert one.flops == 2 * ROWS * 64 * 64 + ROWS * 64
    assert [node.op for node in zero.again] == ["MatMul", "ReLU"]
    assert zero.traffic == ()
    assert zero.flops_unknown == 0


def test_inputs_of_a_recomputed_layer_live_until_then() -> None:
    """Where nothing else reads launch 1's result after 2, recomputing in 5 keeps it from 3 to 5."""
    found = options(device(reads_input=False))
    assert found["recompute", "layers.1"].changes == (Change(4, 4, -SIZE), Change(3, 5, SIZE))


def test_what_is_moved_to_the_host_is_back_one_launch_early() -> None:
    found = options(device())
    one = found["offload", "layers.0"]
    assert one.changes == (Change(2, 6, -SIZE),)
    assert one.traffic == (Traffic("host", 2 * SIZE, "MoveTo"),)
    assert ("offload", "layers.1") not in found  # from 4 to 3: no time to be away


def test_collectives_of_a_recomputed_layer_run_again_or_are_kept() -> None:
    """The summed product (launch 1) is what the backward pass reads; kept, nothing is saved."""
    found = options(device(reduces=True))
    again = found["recompute", "layers.0"]
    assert again.traffic == (Traffic("group", SIZE, "AllReduce", RANKS),)
    assert [node.op for node in again.again] == ["MatMul", "ReLU"]
    assert again.changes == (Change(3, 8, -SIZE),)
    assert ("recompute, mp_comm_recompute=False", "layers.0") not in found
    assert recomputed_collectives(device(reduces=True)) is None  # none runs twice yet


def test_what_belongs_to_no_layer_is_not_recomputed() -> None:
    found = options(device(layers=("Default/", ONE)))
    assert {target for _, target in found} == {"layers.1"}


# -- stages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "micro", "kept", "idle", "batches"),
    [
        (1, 1, 1 / 2, 1 / 2, 1),  # two micro-batches for two stages, half the layers
        (1, 8, 1 / 8, 1 / 8, 1),  # two of eight in flight
        (2, 8, 1, 3 / 8 - 1 / 8, 8),  # four in flight instead of two, of half as many layers
        (4, 2, 1 / 2, 7 / 2 - 3 / 2, 2),
    ],
)
def test_twice_the_stages(stages: int, micro: int, kept: float, idle: float, batches: int) -> None:
    found = device()
    one = more_stages(found, stages, micro)
    assert one is not None
    # activations at the peak: four
    assert one.changes == (Change(0, 11, -int(4 * SIZE * (1 - kept))),)
    # layer 1's weight and momentum go; gradients are accumulated from now on, with what clears them
    assert one.static == -(2 * 16384) + 2 * 65536
    products = 2 * ROWS * 64 * (256 + 64 + 64) + 2 * 64 * 64 * 64 + 2 * 256 * 64 * 256
    operations = products + 5 * ROWS * 64 + 4 * (256 + 64) * 64  # five small ones, two updates
    assert one.flops == int(operations * idle)
    assert one.traffic == (Traffic("stage", 2 * SIZE * batches, "Send"),)
    assert one.how == f"set_auto_parallel_context(pipeline_stages={2 * stages})"


def test_accumulated_gradients_that_are_there_already_are_shared_out() -> None:
    found = device()
    more = tuple(
        StaticTensor(f"accu.{n}", "accumulated gradients", f"layers.{n}.w", f"layers.{n}", size,
                     "Float32", (1,), 1)
        for n, size in ((0, 65536), (1, 16384))
    )  # fmt: skip
    one = more_stages(replace(found, static=(*found.static, *more)), 2, 8)
    assert one is not None
    assert one.static == -3 * 16384


def test_one_layer_cannot_be_cut() -> None:
    assert more_stages(device(layers=(ONE, ONE)), 1, 1) is None
    found = device()
    one = tuple(item for item in found.static if item.layer != "layers.1")
    assert more_stages(replace(found, static=one), 1, 1) is None


# -- servers and prices ----------------------------------------------------------------------------


def test_servers_move_each_weight_there_and_back() -> None:
    found = device()
    served = {one.name: one for one in served_weights(found, weights(found))}
    first = served["layers.0.w"]
    assert (first.bytes, first.pushed, first.pulled, first.moved) == (65536, 65536, 65536, 131072)
    assert first.all_reduce == 0  # no other rank has it
    replicated = [replace(one, replicas=RANKS) for one in weights(found)]
    assert [one.all_reduce for one in served_weights(found, replicated)] == [
        2 * 3 * 16384 // 4, 2 * 3 * 65536 // 4,
    ]  # fmt: skip


MACHINE = Machine(
    "m", "Ascend", (Level("in", 2, 8.0), Level("out", None, 4.0, 0.0, 3.0)), 1, {"Float32": 16.0}
)


def test_seconds_of_an_option() -> None:
    """16 operations, 2 bytes to the host and 4 between nodes a second; collectives start in 3."""
    price = prices(device(), MACHINE, 2.0)
    assert price(Option("x", "", "", flops=32)) == 2.0
    assert price(Option("x", "", "", traffic=(Traffic("host", 6),))) == 3.0
    assert price(Option("x", "", "", traffic=(Traffic("stage", 6),))) == 1.5
    out = Traffic("group", 8, "AllGather", (0, 2))
    assert price(Option("x", "", "", traffic=(out,))) == 3 + 1 / 2 * 8 / 4
    # two that start together, and one that is no more
    both = (replace(out, fusion=1), replace(out, fusion=1))
    assert price(Option("x", "", "", traffic=both)) == 3 + 2 * 1
    less = replace(out, bytes=-8)
    assert price(Option("x", "", "", traffic=(less,))) == -4
    assert price(Option("x", "", "", traffic=(out, less))) == 0


def test_a_plan_looks_for_sets_only_where_the_limit_is_passed() -> None:
    found = device()
    high = found.device_bytes.high
    assert memory_plan(found, MACHINE).combinations == ()
    assert memory_plan(found, MACHINE, high).combinations == ()
    under = memory_plan(found, MACHINE, high - 1)
    assert under.combinations
    beside = high - found.peak_bytes
    assert all(one.peak <= high - 1 - beside for one in under.combinations)
    assert under.micro_batches == 1


# -- what the figures leave out --------------------------------------------------------------------


def test_a_step_without_a_backward_pass_is_told() -> None:
    step = Step({"w": (256, 64)})
    first = step.do("MatMul", "x", "w", out=tensor(8, 64))
    (note,) = step.memory(first).notes
    assert note.startswith("no backward pass:")
    assert device().notes == ()


def test_a_dump_that_launches_nothing_is_told() -> None:
    found = Step({"w": (256, 64)}).memory("%para1_x")
    assert found.notes == ("nothing is launched: this dump has no operators",)
    assert (found.curve, found.peak_launch, found.alive) == ((), None, ())


def test_mirrors_that_are_still_virtual_show_whole_sizes() -> None:
    step = Step({"w": (256, 64)})
    mirrored = step.do("_MirrorOperator", "w", out=tensor(256, 64))
    first = step.do("MatMul", "x", mirrored, out=tensor(8, 64))
    notes = step.memory(first).notes
    assert any(note.startswith("not sliced yet") for note in notes)


def test_groups_have_buffers_and_the_world_always_has_one() -> None:
    """200 MiB for each group that is used; that of all devices may exist besides."""
    each = 200 << 20
    found = device(reduces=True).communicators
    assert (found.groups, found.bytes.low, found.bytes.high) == (("g",), each, 2 * each)
    step = Step({"w": (256, 64)})
    step.do("AllReduce", "x", out=tensor(8, 256),
            attributes='group: "hccl_world_group", rank_list: (0, 1)')  # fmt: skip
    last = step.do("AllReduce", "x", out=tensor(8, 256),
                   attributes='group: "g", rank_list: (0, 1)')  # fmt: skip
    world = step.memory(last).communicators
    assert (world.bytes.low, world.bytes.high) == (2 * each, 2 * each)
    assert device().communicators.groups == ()


def test_what_is_fused_may_be_copied_into_one_buffer() -> None:
    """Each tensor in whole KB and one more; alone in its bucket none is copied."""

    def fused(*ids: int) -> int:
        step = Step({})
        last = ""
        for number in ids:
            attributes = f'group: "g", fusion: I64({number}), rank_list: (0, 1)'
            last = step.do("AllReduce", "x", out=tensor(8, 256), attributes=attributes)
        return step.memory(last).fusion.high

    size = (8 * 256 * 4 // 1024 + 1) * 1024
    assert fused(1) == 0
    assert fused(1, 2) == 0
    assert fused(0, 0) == 0  # id 0 is never fused
    assert fused(1, 1) == 2 * size
    assert fused(1, 1, 2, 2, 2) == 3 * size


# -- what stays ------------------------------------------------------------------------------------


def test_constants_of_a_graph_stay_and_are_named_by_their_place() -> None:
    step = Step({"w": (256, 64)})
    step.names["c"], step.types["c"] = "Tensor(shape=[3, 5], dtype=Float16, value=[])", tensor(3, 5)
    found = step.memory(step.do("Add", "x", "c", out=tensor(8, 256)))
    (constant,) = [one for one in found.static if one.cause == "constants"]
    assert (constant.name, constant.bytes, constant.shape) == ("%0 input 1", 2 * 3 * 5, (3, 5))


def test_what_only_the_host_uses_is_on_the_host() -> None:
    """A parameter that one operator on the device reads, too, is on the device."""
    step = Step({"a": (256, 64), "b": (256, 64), "unused": (4, 4)})
    there = 'primitive_target: "CPU"'
    step.do("ReLU", "a", out=tensor(256, 64), attributes=there)
    step.do("ReLU", "b", out=tensor(256, 64), attributes=there)
    found = step.memory(step.do("ReLU", "b", out=tensor(256, 64)))
    assert [one.name for one in found.static if one.on_host] == ["a"]
    assert found.host_bytes == 256 * 64 * 4
    assert found.static_by_cause["parameters"] == 256 * 64 * 4 + 4 * 4 * 4

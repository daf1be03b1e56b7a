"""What-ifs on weights and their states, on one small step whose every figure is known by hand.

Four ranks hold the same slices.  ``a`` (256 x 64 in single precision: exactly 64 KB), ``b`` (64 x
3) and ``table`` (512 x 32, exactly 64 KB, only looked up in) each have one momentum.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.cluster.memory import Memory
from irtool.cluster.memory.static import StaticTensor
from irtool.cluster.what_if import Change, Option, Traffic
from irtool.cluster.what_if.state import Weight, state_options, weights
from tests.cluster.step_by_hand import GRADIENTS, RANKS, Step, tensor

SHAPES = {"a": (256, 64), "b": (64, 3), "table": (512, 32)}
KB64 = 65536
B = 64 * 3 * 4
FIRST = 'forward_unique_id: "1"'
SECOND = 'forward_unique_id: "2"'


def replicated(
    optimizer: str = "ApplyMomentum", shapes: dict[str, tuple[int, ...]] = SHAPES
) -> Memory:
    """Every rank holds all of each weight, and gradients are summed."""
    step = Step({p + k: s for k, s in shapes.items() for p in ("", "moments.")})
    own = {name: tensor(*shape) for name, shape in shapes.items()}
    h = step.do("MatMul", "x", "a", out=tensor(8, 64), scope="Default/network-Net/first-Dense/",
                primal='unique_id: "1", origin_input_shapes: ((32, 256), (256, 128)), '
                       'mirror_user_id: "a"')  # fmt: skip
    y = step.do("MatMul", h, "b", out=tensor(8, 3), primal='unique_id: "2"')
    r = step.do("Gather", "table", "ids", out=tensor(8, 32), primal='unique_id: "3"')
    made = {
        "a": step.do("MatMul", "x", h, out=own["a"], scope=GRADIENTS, primal=FIRST),
        "b": step.do("MatMul", h, y, out=own["b"], scope=GRADIENTS, primal=SECOND),
        "table": step.do("UnsortedSegmentSum", r, "ids", out=own["table"], scope=GRADIENTS,
                         primal='forward_unique_id: "3"'),
    }  # fmt: skip
    for name, gradient in made.items():
        total = step.collective(
            "AllReduce", gradient, name, own[name], "grad_mirror_MirrorOperator"
        )
        step.do(optimizer, name, f"moments.{name}", total, out=own[name],
                scope="Default/optimizer-Momentum/")  # fmt: skip
    return step.memory(h)


def sharded(own: tuple[int, int] = (64, 64), small: tuple[int, int] = (64, 3)) -> Memory:
    """``a`` is a quarter of itself and gathered; ``b`` is whole."""
    full = (4 * own[0], own[1])
    step = Step({"a": own, "moments.a": own, "b": small, "moments.b": small})
    a = step.collective("AllGather", "a", "a", tensor(*full), "parallel_optimizer_allgather")
    h = step.do("MatMul", "x", a, out=tensor(8, 64), primal='unique_id: "1"')
    y = step.do("MatMul", h, "b", out=tensor(8, small[1]), primal='unique_id: "2"')
    gb = step.do("MatMul", h, y, out=tensor(*small), scope=GRADIENTS, primal=SECOND)
    gh = step.do("MatMul", y, a, out=tensor(8, 64), scope=GRADIENTS, primal=FIRST)
    ga = step.do("MatMul", "x", gh, out=tensor(*full), scope=GRADIENTS, primal=FIRST)
    mine = step.collective("ReduceScatter", ga, "a", tensor(*own), "grad_parallel_optimizer")
    total = step.collective("AllReduce", gb, "b", tensor(*small), "grad_mirror_MirrorOperator")
    for name, gradient in (("a", mine), ("b", total)):
        step.do("ApplyMomentum", name, f"moments.{name}", gradient, out=tensor(8),
                scope="Default/optimizer-Momentum/")  # fmt: skip
    return step.memory(h)


def option(found: Memory, switch: str, micro: int = 1) -> Option | None:
    options = [one for one in state_options(found, micro) if one.switch == switch]
    assert len(options) <= 1
    return options[0] if options else None


# -- what a weight is ------------------------------------------------------------------------------


def test_a_weight_has_its_state_its_replicas_and_its_size_before_slicing() -> None:
    found = {one.name: one for one in weights(replicated())}
    assert list(found) == ["a", "b", "table"]
    a, b, table = found.values()
    assert (a.state, b.state, table.state) == (KB64, B, KB64)
    assert (a.accumulated, a.gradient_bytes) == (0, 0)
    assert {one.replicas for one in found.values()} == {RANKS}
    # origin_input_shapes says (256, 128) for the weight: twice the columns of the slice
    assert (a.full_bytes, b.full_bytes, table.full_bytes) == (2 * KB64, None, None)
    assert not any(one.is_sharded for one in found.values())
    assert a.gradient is not None
    assert a.gradient.op == "AllReduce"


def test_the_threshold_of_the_run_says_which_weights_stay_whole() -> None:
    """A weight as large as the threshold is sharded, one that is a byte smaller is not."""
    b = next(one for one in weights(replicated(), B) if one.name == "b")
    assert b.unshardable() == ""
    above = next(one for one in weights(replicated(), B + 1) if one.name == "b")
    assert above.unshardable().startswith("smaller than parallel_optimizer_threshold")
    notes = [
        option.note
        for threshold in (32 << 10, 64 << 10)
        for option in state_options(sharded(), threshold=threshold)
        if option.switch == "parallel_optimizer_threshold"
    ]
    assert notes == ["1 weights below 32 KB", "1 weights below 64 KB"]


def test_a_sharded_weight_is_gathered_and_its_gradient_scattered() -> None:
    a, b = weights(sharded())
    assert a.is_sharded
    assert a.gather is not None
    assert a.gather.bytes == KB64
    assert a.gradient is not None
    assert a.gradient.op == "ReduceScatter"
    assert not b.is_sharded


def weight(
    shape: tuple[int, ...] | None, size: int | None, ranks: int, full: int | None = None
) -> Weight:
    own = StaticTensor("w", "parameters", "w", "", size, "Float32", shape, 1)
    return Weight(own, 0, 0, tuple(range(ranks)), None, None, full, 0)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (weight((256, 64), KB64, 4), ""),
        (weight((256, 64), KB64 - 1, 4), "smaller than parallel_optimizer_threshold (64 KB)"),
        (weight((256, 64), KB64 // 2, 4, full=KB64), ""),  # the whole weight counts
        (weight((256, 64), KB64, 4, full=KB64 - 1), "smaller than parallel_optimizer_threshold"),
        (weight((256, 64), None, 4), ""),
        (weight((256, 64), KB64, 1), "no other rank has this slice"),
        (weight((256, 64), KB64, 2), ""),
        (weight((254, 64), KB64, 4), "the first dimension, 254, is no multiple of 4 replicas"),
        (weight((), KB64, 4), "the first dimension, 1, is no multiple of 4 replicas"),
        (weight(None, KB64, 4), "the first dimension, 1, is no multiple of 4 replicas"),
    ],
)
def test_which_weights_can_be_sharded(one: Weight, why: str) -> None:
    assert one.unshardable().startswith(why)
    assert bool(one.unshardable()) == bool(why)


def test_another_threshold_is_another_answer() -> None:
    small = weight((256, 64), 3 << 10, 4)
    assert small.unshardable(3 << 10) == ""
    assert small.unshardable(4 << 10) == "smaller than parallel_optimizer_threshold (4 KB)"


# -- optimizer parallel ----------------------------------------------------------------------------


def test_optimizer_parallel_keeps_a_share_and_gathers_before_each_use() -> None:
    """Three quarters of weight and momentum go, and of the summed gradient's result.

    Launches: 0 MatMul, 1 MatMul, 2 Gather, 3 to 5 gradients, then AllReduce and update in turn.
    """
    found = option(replicated(), "optimizer parallel")
    assert found is not None
    assert found.static == -2 * (2 * KB64 * 3 // 4)
    assert found.changes == (
        Change(0, 0, KB64),  # a, read in launch 0
        Change(6, 7, -KB64 * 3 // 4),
        Change(1, 2, KB64),  # the table, gathered one launch before it is read in launch 2
        Change(10, 11, -KB64 * 3 // 4),
    )
    assert found.traffic == 2 * (
        Traffic("group", KB64, "AllGather", RANKS, 1),
        Traffic("group", -KB64, "AllReduce", RANKS, 2),
        Traffic("group", KB64, "ReduceScatter", RANKS, 1),
    )
    assert found.note.startswith("2 of 3 weights")
    assert option(replicated(), "parallel_optimizer_threshold") is None


def test_nothing_is_offered_where_nothing_can_be_sharded() -> None:
    small = {"a": (255, 64), "b": (64, 3), "table": (8, 32)}
    assert option(replicated(shapes=small), "optimizer parallel") is None


def test_a_threshold_of_nothing_shards_what_is_small() -> None:
    """Where the optimizer is sharded already, ``b`` stays whole only for its size."""
    found = option(sharded(), "parallel_optimizer_threshold")
    assert found is not None
    assert found.static == -(2 * B * 3 // 4)
    assert found.note == "1 weights below 64 KB"
    assert option(sharded(), "optimizer parallel") is None
    assert option(sharded(small=(63, 3)), "parallel_optimizer_threshold") is None


def test_gathered_weights_may_be_gathered_again() -> None:
    """Launches: 0 AllGather, 1 MatMul (a), 2, 3, 4 MatMul of the gradient (a), ...

    Behind launch 1 it may go, and is back one launch before it is needed in launch 4.
    """
    found = option(sharded(), "parallel_optimizer_comm_recompute")
    assert found is not None
    assert found.changes == (Change(2, 2, -KB64),)
    assert found.traffic == (Traffic("group", KB64, "AllGather", RANKS, 2),)
    assert found.note.startswith("1 weights are gathered twice")
    assert option(replicated(), "parallel_optimizer_comm_recompute") is None


# -- accumulated gradients -------------------------------------------------------------------------


def accumulating(found: Memory, **sizes: int) -> Memory:
    """The same device with accumulated gradients of these bytes."""
    more = tuple(
        StaticTensor(
            f"accu_grads.{name}", "accumulated gradients", name, name, size, "Float32", (1,), 1
        )
        for name, size in sizes.items()
    )
    return replace(found, static=(*found.static, *more))


def test_accumulated_gradients_are_sharded_with_a_scatter_for_each_micro_batch_more() -> None:
    found = option(accumulating(replicated(), a=KB64), "gradient_accumulation_shard", 4)
    assert found is not None
    assert found.static == -KB64 * 3 // 4
    assert found.traffic == (Traffic("group", 3 * KB64, "ReduceScatter", RANKS),)
    assert found.note == "a ReduceScatter in each of 4 micro-batches; needs optimizer parallel"
    assert option(replicated(), "gradient_accumulation_shard", 4) is None
    # b may not be sharded, and so may not its gradient
    assert option(accumulating(replicated(), b=B), "gradient_accumulation_shard", 4) is None


def test_a_gradient_that_is_a_slice_already_is_left() -> None:
    """Of the sharded ``a`` each rank holds 64 x 64: a gradient as large is a slice."""
    slice_ = KB64 // 4
    whole = option(accumulating(sharded(), a=KB64), "gradient_accumulation_shard", 2)
    assert whole is not None
    assert whole.static == -KB64 * 3 // 4
    assert whole.note == "a ReduceScatter in each of 2 micro-batches"
    assert option(accumulating(sharded(), a=slice_), "gradient_accumulation_shard", 2) is None
    assert option(accumulating(sharded(), a=slice_ + 4), "gradient_accumulation_shard", 2)


# -- the host --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "how"),
    [
        ("ApplyMomentum", 'set_device("CPU") on ApplyMomentum'),
        ("FusedSparseAdam", 'optimizer.target = "CPU"'),
    ],
)
def test_state_on_the_host_moves_gradients_there_and_weights_back(optimizer: str, how: str) -> None:
    found = option(replicated(optimizer), "primitive_target")
    assert found is not None
    assert found.static == -(2 * KB64 + B)
    assert found.traffic == (Traffic("host", 2 * (2 * KB64 + B), "copies"),)
    assert found.how == how


def test_without_an_update_or_without_state_nothing_moves_to_the_host() -> None:
    assert option(replicated("Identity"), "primitive_target") is None
    found = replicated()
    bare = replace(found, static=tuple(o for o in found.static if o.cause != "optimizer state"))
    assert option(bare, "primitive_target") is None


def test_a_table_that_is_only_looked_up_in_may_live_on_the_host() -> None:
    """Rows come (8 x 32 of 4 bytes) and their gradients go; table and momentum are there."""
    found = option(replicated(), "primitive_target of lookups")
    assert found is not None
    assert found.target == "table"
    assert found.static == -2 * KB64
    assert found.traffic == (Traffic("host", 2 * 8 * 32 * 4, "copies"),)
    assert found.how == 'Gather().set_device("CPU")'
    device = replicated()
    there = tuple(replace(one, on_host=one.name == "table") for one in device.static)
    assert option(replace(device, static=there), "primitive_target of lookups") is None


def test_options_on_the_same_bytes_exclude_one_another() -> None:
    for one in state_options(replicated()):
        assert {"optimizer parallel", "primitive_target", "pipeline_stages"} <= one.excludes
        assert (one.switch in one.excludes) == (one.switch != "primitive_target of lookups")

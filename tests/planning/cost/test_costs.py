"""What single things cost: copies of a redistribution, the optimizer's step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.cluster.flops_seconds import LAUNCH_SECONDS
from irtool.cluster.machine import built_in, default_machine
from irtool.operators.call import OperatorCall, constant, tensor
from irtool.operators.judgement import Context
from irtool.operators.layout import TensorLayout
from irtool.planning.cost.costs import (
    compute_seconds,
    copied_bytes,
    copy_seconds,
    operator_communications,
    update_seconds,
)
from irtool.planning.search.chains import chain_seconds
from irtool.sharding.judge import judge
from irtool.sharding.redistribution import RedistributionStep, infer

MACHINE = built_in("ascend_910b")
RANKS = tuple(range(8))


def exchange(shape: tuple[int, ...], cut: int, joined: int) -> RedistributionStep:
    after = list(shape)
    after[cut] //= 8
    after[joined] *= 8
    return RedistributionStep("AlltoAll", shape, tuple(after), cut, joined, 8, None, RANKS)


@pytest.mark.parametrize(
    ("shape", "cut", "joined", "copies"),
    [((64, 64, 64), 1, 2, 2), ((64, 64), 0, 1, 1), ((64, 64), 1, 0, 1), ((1, 64, 64), 1, 2, 1)],
)
def test_an_alltoall_copies_its_slice_along_all_but_the_leading_dimension(
    shape: tuple[int, ...], cut: int, joined: int, copies: int
) -> None:
    size = 4 * 64 * 64 * (64 if shape[0] == 64 and len(shape) == 3 else 1)
    assert copied_bytes([exchange(shape, cut, joined)], 4) == [size] * copies


def test_a_gather_inside_splits_and_joins_and_a_slice_writes_what_it_keeps() -> None:
    source = TensorLayout((8,), (-1, 0), (1024, 1024))
    target = TensorLayout((8,), (0, -1), (1024, 1024))
    steps = infer(source, target, RANKS, 0)
    assert [step.op for step in steps] == ["AllGather", "Split", "Concat", "StridedSlice"]
    whole = 4 * 1024 * 1024
    assert copied_bytes(steps, 4) == [whole, whole, whole // 8]


def test_a_small_copy_takes_a_launch_and_a_large_one_reads_and_writes() -> None:
    assert copy_seconds(8, MACHINE) == LAUNCH_SECONDS
    assert copy_seconds(1 << 30, MACHINE) == pytest.approx(2 * (1 << 30) / 1.6e12)
    assert copy_seconds(1 << 30, replace(MACHINE, memory_bandwidth=0.0)) == LAUNCH_SECONDS


def test_a_slice_that_communicates_nothing_is_launched_forward_and_back() -> None:
    source = TensorLayout((8,), (-1, -1), (8, 8))
    target = TensorLayout((8,), (0, -1), (8, 8))
    steps = infer(source, target, RANKS, 0)
    assert chain_seconds(steps, 4, MACHINE, gradient=True) == pytest.approx(2 * LAUNCH_SECONDS)


def test_the_optimizer_reads_weight_gradient_and_states_and_writes_all_but_the_gradient() -> None:
    size = 1 << 30
    assert update_seconds(size, 2 * size, MACHINE) == pytest.approx(7 * size / 1.6e12)


def looked_up(table: tuple[int, int]) -> float:
    """Seconds of looking 1024 rows of 512 numbers up, without communication."""
    inputs = (tensor(65536, 512), tensor(1024, dtype="Int32"), constant(0))
    call = OperatorCall("Gather", inputs, (tensor(1024, 512),))
    found = judge(call, (table, (1,)), Context(RANKS))
    assert found.verdict == "legal"
    return compute_seconds(call, found, MACHINE, gradient=True)


def test_rows_of_a_split_table_are_masked_forward_and_back() -> None:
    rows, columns = looked_up((8, 1)), looked_up((1, 8))
    whole = copy_seconds(4 * 1024 * 512, MACHINE)
    # By columns, a device reads, writes and differentiates an eighth of what is looked up.
    more = 3 * (whole - copy_seconds(4 * 1024 * 64, MACHINE))
    masks = 5 * LAUNCH_SECONDS + 2 * whole
    assert rows - columns == pytest.approx(more + masks, rel=0.01)


def test_a_lookup_reads_the_rows_that_it_wants_and_its_gradient_writes_a_table() -> None:
    found = looked_up((1, 1))
    rows, table = 4 * 1024 * 512, 4 * 65536 * 512
    assert found == pytest.approx((3 * 2 * rows + table) / 1.6e12, rel=0.01)


def test_blocks_that_are_gathered_before_a_product_are_paid_for() -> None:
    """Both ways: each operand is gathered, and its gradient scattered (validate dumps show it)."""
    operands = (tensor(64, 32), tensor(32, 128))
    flags = {"transpose_a": False, "transpose_b": False}
    call = OperatorCall("MatMul", operands, (tensor(64, 128),), flags)
    judged = judge(call, ((4, 2), (4, 2)), Context(tuple(range(8)), 8))
    found = operator_communications(call, judged, default_machine(), gradient=True)
    assert [(each.op, len(each.ranks), each.size) for each in found] == [
        ("AllGather", 2, 64 // 4 * 32 * 4),
        ("ReduceScatter", 2, 64 // 4 * 32 * 4),
        ("AllGather", 4, 32 * 128 // 2 * 4),
        ("ReduceScatter", 4, 32 * 128 // 2 * 4),
    ]

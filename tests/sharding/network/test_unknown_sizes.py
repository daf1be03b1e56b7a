"""A Reshape of unknown sizes: its chain, executed on simulated devices with sizes filled in."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from irtool.operators.layout import DYNAMIC, Shape, TensorLayout
from irtool.sharding.network.unknown_sizes import reshape_chain
from irtool.sharding.redistribution import RedistributionStep

np = pytest.importorskip("numpy")

Held = dict[int, list["np.ndarray"]]
"""What each rank has of a chain: one tensor, or the parts of a Split."""


def slices(layout: TensorLayout, shape: Shape, devices: range) -> Held:
    """What each rank holds of the numbers from 0 on in a tensor of this shape."""
    whole = np.arange(prod(shape)).reshape(shape)
    filled = replace(layout, tensor_shape=shape)
    held: Held = {}
    for place, rank in enumerate(devices):
        piece = filled.piece(place)
        spans = zip(piece.offset, piece.shape, strict=True)
        held[rank] = [whole[tuple(slice(low, low + size) for low, size in spans)]]
    return held


def fits(known: Shape, actual: tuple[int, ...]) -> bool:
    return len(known) == len(actual) and all(
        one in (DYNAMIC, other) for one, other in zip(known, actual, strict=True)
    )


def execute(steps: dict[int, RedistributionStep], held: Held, shape: Shape, local: Shape) -> Held:
    """One step on all ranks; a Reshape of several unknown sizes has one of these two shapes."""
    after: Held = {}
    for rank, step in steps.items():
        parts = held[rank]
        if step.op == "Concat":
            assert all(fits(step.input_shape, part.shape) for part in parts)
            found = [np.concatenate(parts, step.axis)]
        else:
            (tensor,) = parts if step.op != "TupleGetItem" else parts[step.index :][:1]
            assert fits(step.input_shape, tensor.shape)
            if step.op == "AllGather":
                assert rank in step.ranks
                assert step.count == len(step.ranks)
                found = [np.concatenate([held[peer][0] for peer in step.ranks], step.axis)]
            elif step.op == "Split":
                assert step.axis is not None
                found = np.split(tensor, step.count, step.axis)
            elif step.op == "Reshape":
                sizes = [step.output_shape, shape, local]
                chosen = next(
                    one
                    for one in sizes
                    if prod(one) == tensor.size or one.count(DYNAMIC) == 1
                    if fits(step.output_shape, one) or one is step.output_shape
                )
                found = [tensor.reshape(chosen)]
            else:
                assert step.op == "TupleGetItem"
                found = [tensor]
        assert all(fits(step.output_shape, part.shape) for part in found)
        after[rank] = found
    return after


def layout(matrix: Shape, *entries: int | tuple[int, ...], shape: Shape) -> TensorLayout:
    return TensorLayout(matrix, entries, shape)


ROWS = layout((8, 1), 1, 0, shape=(DYNAMIC, 32))


@pytest.mark.parametrize(
    ("source", "target", "shapes", "operators"),
    [
        # one unknown size: MindSpore calculates with a prime in its place
        (ROWS, layout((8, 1, 1), 2, 1, 0, shape=(DYNAMIC, 4, 8)), ((16, 32), (16, 4, 8)),
         ["Reshape"]),
        (layout((1, 8), 1, 0, shape=(DYNAMIC, 32)),
         layout((8, 1, 1), 2, 1, 0, shape=(DYNAMIC, 4, 8)), ((16, 32), (16, 4, 8)), None),
        (layout((4, 2), 1, 0, shape=(DYNAMIC, 32)),
         layout((2, 4), 1, 0, shape=(DYNAMIC, 16)), ((16, 32), (32, 16)), None),
        (layout((2, 4), 0, -1, shape=(DYNAMIC, 32)),
         layout((8, 1), -1, -1, shape=(DYNAMIC, 16)), ((16, 32), (32, 16)),
         ["Reshape", "AllGather", "Reshape"]),
        # several: everything is gathered, reshaped, and cut
        (layout((2, 4), 1, 0, shape=(DYNAMIC, DYNAMIC)),
         layout((4, 2), 1, 0, shape=(DYNAMIC, DYNAMIC)), ((16, 32), (32, 16)),
         ["AllGather", "AllGather", "Split", "Concat", "Reshape", "Split", "TupleGetItem",
          "Split", "TupleGetItem"]),
        (layout((2, 4), (1, 0), -1, shape=(DYNAMIC, DYNAMIC)),
         layout((2, 2, 2), (0, 2), 1, shape=(DYNAMIC, DYNAMIC)), ((16, 32), (32, 16)), None),
        (layout((2, 2, 2), 2, 1, 0, shape=(DYNAMIC, 4, DYNAMIC)),
         layout((2, 4), 0, 1, shape=(DYNAMIC, DYNAMIC)), ((16, 4, 8), (64, 8)), None),
        (layout((8, 1), -1, 1, shape=(DYNAMIC, DYNAMIC)),
         layout((8, 1), -1, -1, shape=(DYNAMIC, 16)), ((16, 32), (32, 16)), None),
        # whole rows of the same devices: nothing moves
        (layout((4, 2), 1, -1, shape=(DYNAMIC, DYNAMIC)),
         layout((4, 2), 1, -1, shape=(DYNAMIC, 64)), ((16, 32), (8, 64)), ["Reshape"]),
    ],
)  # fmt: skip
def test_every_rank_ends_with_its_slice(
    source: TensorLayout, target: TensorLayout, shapes: tuple[Shape, Shape],
    operators: list[str] | None,
) -> None:  # fmt: skip
    devices = range(8, 16)
    chains = {
        rank: reshape_chain(source, target, tuple(devices), rank, enable_alltoall=False)
        for rank in devices
    }
    held = slices(source, shapes[0], devices)
    expected = slices(target, shapes[1], devices)
    for steps in zip(*[chain or () for chain in chains.values()], strict=True):
        assert len({step.op for step in steps}) == 1
        local = expected[devices[0]][0].shape
        held = execute(dict(zip(devices, steps, strict=True)), held, shapes[1], local)
    for rank in devices:
        assert np.array_equal(held[rank][0], expected[rank][0])
    if operators is not None:
        assert [step.op for step in chains[8] or ()] == operators


def test_rows_of_other_devices_do_move() -> None:
    """Neighbours hold the same rows on one side, others hold them on the other."""
    source = layout((4, 2), 1, -1, shape=(DYNAMIC, DYNAMIC))
    target = layout((2, 4), 0, -1, shape=(DYNAMIC, 64))
    found = reshape_chain(source, target, tuple(range(8)), 0, enable_alltoall=False)
    assert found is not None
    assert [step.op for step in found] == ["AllGather", "Reshape", "Split", "TupleGetItem"]


@pytest.mark.parametrize(
    ("matrix", "axis", "stays"),
    [((2, 4), 1, True), ((2, 2, 2), 2, True), ((2, 2, 2), 1, False), ((4, 2), 0, False)],
)
def test_rows_stay_where_as_many_neighbours_hold_the_same(
    matrix: Shape, axis: int, stays: bool
) -> None:
    """However the devices are counted: the first four of eight hold the first half."""
    source = layout((2, 2, 2), 2, -1, shape=(DYNAMIC, DYNAMIC))
    target = layout(matrix, axis, -1, shape=(DYNAMIC, 64))
    found = reshape_chain(source, target, tuple(range(8)), 0, enable_alltoall=False)
    assert found is not None
    assert ([step.op for step in found] == ["Reshape"]) is stays


@pytest.mark.parametrize(
    ("source", "target"),
    [
        # along one known size each, MindSpore goes another way
        (layout((8, 1), -1, -1, 1, shape=(DYNAMIC, DYNAMIC, 16)),
         layout((8, 1), -1, 1, -1, shape=(DYNAMIC, 16, DYNAMIC))),
        # unknown on one side only
        (ROWS, layout((8, 1), 1, -1, shape=(32, 16))),
        (layout((8, 1), 1, -1, shape=(32, 16)), ROWS),
        # sizes that no layout of the prime fits
        (layout((8, 1), 1, -1, shape=(DYNAMIC, 3)), layout((8, 1), -1, 1, shape=(DYNAMIC, 5))),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_said(source: TensorLayout, target: TensorLayout) -> None:
    assert reshape_chain(source, target, tuple(range(8)), 0, enable_alltoall=False) is None


def test_along_an_unknown_size_on_one_side_all_is_gathered() -> None:
    source = layout((8, 1), 1, -1, shape=(DYNAMIC, DYNAMIC))
    target = layout((8, 1), -1, 1, shape=(DYNAMIC, 16))
    found = reshape_chain(source, target, tuple(range(8)), 0, enable_alltoall=False)
    assert found is not None
    assert [step.op for step in found] == ["AllGather", "Reshape", "Split", "TupleGetItem"]


ROWS, PARTED = (DYNAMIC, 64), (DYNAMIC, 8, 64)


@pytest.mark.parametrize(
    ("before", "cut", "after", "wanted", "operators"),
    [
        (ROWS, 8, PARTED, 8, ["Reshape"]),
        (ROWS, 8, PARTED, 4, ["AllGather", "Reshape", "Split"]),
        (ROWS, 8, PARTED, 2, ["AllGather", "Reshape", "Split"]),
        (PARTED, 2, ROWS, 8, ["Reshape", "Split", "Reshape"]),
        (PARTED, 1, ROWS, 2, ["Split", "Reshape"]),
    ],
)
def test_rows_stay_where_they_are_cut_as_mindspore_numbers_them(
    before: Shape, cut: int, after: Shape, wanted: int, operators: list[str]
) -> None:
    # What MindSpore 2.7 made of (n, 64) and (m, 8, 64): its number for m is the least that the
    # target divides, so that eight parts of n = 8m are no whole rows of m.
    source = TensorLayout((cut, 8 // cut), (1, *(-1 for _ in before[1:])), before)
    target = TensorLayout((wanted, 8 // wanted), (1, *(-1 for _ in after[1:])), after)
    chain = reshape_chain(source, target, tuple(range(8)), 0, enable_alltoall=False) or ()
    assert [step.op for step in chain if step.op != "TupleGetItem"] == operators

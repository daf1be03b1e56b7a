"""Layouts as bits say where each device's slice lies; groups' prices are the least of any parts."""

from __future__ import annotations

from itertools import accumulate, pairwise, permutations
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from irtool.cluster.machine import Level, Machine
from irtool.operators.layout import Shape, TensorLayout
from irtool.planning.cost.group_rates import rates
from irtool.planning.cost.layout_bits import LEVELS, bits_from, bits_of, common_shape, layout_from
from irtool.planning.recovery.groups import GroupTable, GroupUse, group_changes, tiles

MATRICES = st.sampled_from([(2,), (4,), (2, 2), (8,), (4, 2), (2, 4), (2, 2, 2), (2, 1, 4)])
SIZES = st.lists(st.sampled_from([8, 16, 12, 24]), min_size=1, max_size=3)


@st.composite
def layouts(draw: st.DrawFn) -> TensorLayout:
    """Each axis of the devices splits one dimension, or none; several may split one together."""
    matrix = draw(MATRICES)
    shape = tuple(draw(SIZES))
    taken: dict[int, list[int]] = {}
    for axis in range(len(matrix)):
        at = draw(st.sampled_from([None, *range(len(shape))]))
        if at is not None:
            taken.setdefault(at, []).append(axis)
    entries = [
        tuple(draw(st.permutations(taken[at]))) if at in taken else (-1,)
        for at in range(len(shape))
    ]
    made = TensorLayout(matrix, tuple(e[0] if len(e) == 1 else e for e in entries), shape)
    assume(made.problem() is None)
    assume(all(size % split == 0 for size, split in zip(shape, made.splits, strict=True)))
    return made


def offsets(place: list[int], device: int, shape: Shape) -> list[int]:
    """Where a device's slice begins, from the bits of its number."""
    found = [0] * len(shape)
    for bit, at in enumerate(place):
        if at >= 0 and device >> bit & 1:
            dimension, halving = divmod(at, LEVELS)
            found[dimension] += shape[dimension] >> (halving + 1)
    return found


@given(layouts())
def test_each_bit_of_a_device_decides_one_halving(layout: TensorLayout) -> None:
    bits, known = bits_of([layout], layout.tensor_shape)
    devices = prod(layout.device_matrix)
    # a dimension of 12 can be halved twice, of 24 three times, before it is odd
    room = [(size & -size).bit_length() - 1 for size in layout.tensor_shape]
    assert known[0] == all(split <= 1 << r for split, r in zip(layout.splits, room, strict=True))
    assert bits.count == devices.bit_length() - 1
    if not known[0]:
        return
    place = [int(at) for at in bits.place[0]]
    for device in range(devices):
        begins = offsets(place, device, layout.tensor_shape)
        assert begins == list(layout.piece(device).offset)
    again = layout_from(place, int(bits.cuts[0]), layout.tensor_shape)
    for device in range(devices):
        assert again.piece(device) == layout.piece(device)
    assert again.standard() == again


@given(layouts())
def test_elements_before_a_place_on_one_device(layout: TensorLayout) -> None:
    """Bits from the last place to the first; before each lies what earlier ones leave of it."""
    bits, known = bits_of([layout], layout.tensor_shape)
    assume(known[0])
    shape = layout.tensor_shape
    places = [int(at) for at in bits.place[0]]
    ordered = [places[int(bit)] for bit in bits.order[0]]
    assert ordered == sorted(places, reverse=True)
    for at, lead in zip(ordered, bits.lead[0], strict=True):
        if at < 0:
            continue
        dimension, halving = divmod(at, LEVELS)
        before = prod(shape[:dimension]) * 2**halving
        earlier = sum(0 <= other < at for other in places)
        assert lead == before / 2**earlier


def test_a_finer_shape_has_places_of_its_own() -> None:
    """16 rows are 4 x 4: the third halving of the rows is the first of the second part."""
    rows = TensorLayout((8,), (0,), (16,))
    whole, known = bits_of([rows], (16,))
    assert known[0]
    assert list(whole.place[0]) == [2, 1, 0]
    fine, known = bits_of([rows], (4, 4))
    assert known[0]
    assert list(fine.place[0]) == [LEVELS, 1, 0]
    moved, found = bits_from((16,), whole.place, whole.cuts, np.array([True]), (4, 4))
    assert found[0]
    assert list(moved.place[0]) == [LEVELS, 1, 0]
    # 12 x 2 of 24 rows: twelve can be halved twice only, and the third halving is no part of two
    rows = TensorLayout((8,), (0,), (24,))
    _, known = bits_of([rows], (12, 2))
    assert not known[0]


SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), max_size=4)


@given(SHAPES, SHAPES)
def test_the_common_shape_has_the_borders_of_both(first: list[int], second: list[int]) -> None:
    found = common_shape(tuple(first), tuple(second))
    if prod(first) != prod(second):
        assert found is None
        return
    borders = sorted({1, *accumulate(first, mul), *accumulate(second, mul)})
    steps = [b // a for a, b in pairwise(borders)]
    if any(b % a for a, b in pairwise(borders)):
        assert found is None
    else:
        assert found == tuple(steps)


def test_sizes_that_nobody_knows_have_nothing_in_common() -> None:
    assert common_shape((-1, 4), (-1, 4)) is None
    assert common_shape((0, 4), (0, 4)) is None
    assert common_shape((), ()) == ()


# -- prices of groups ------------------------------------------------------------------------------

MACHINES = [
    Machine("a", "Ascend", (Level("in", 2, 8.0, 1.0, 3.0), Level("out", None, 1.0, 2.0, 0.5)), 1),
    Machine("b", "Ascend", (Level("in", 4, 1.0, 0.0, 9.0), Level("out", None, 4.0, 0.1, 0.0)), 1),
]


def compositions(total: int) -> list[tuple[int, ...]]:
    if not total:
        return [()]
    return [(n, *rest) for n in range(1, total + 1) for rest in compositions(total - n)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("op", ["AllGather", "AllReduce"])
def test_parts_one_after_the_other_may_be_cheaper(machine: Machine, op: str) -> None:
    """Against every way to do neighbouring bits in parts, and every order of the parts."""
    count = 3
    found = rates(machine, [op], count)

    def line(low: int, bits: int) -> tuple[float, float]:
        return machine.line(op, range(0, 1 << (low + bits), 1 << low))

    for low in range(count):
        for bits in range(1, count - low + 1):
            assert (found.start[low, bits], found.per_byte[low, bits]) == line(low, bits)
            starts, bytes_, grown = [], [], []
            for parts in compositions(bits):
                edges = list(accumulate(parts, initial=low))[:-1]
                lines = [line(at, part) for at, part in zip(edges, parts, strict=True)]
                starts.append(sum(start for start, _ in lines))
                bytes_.append(sum(byte for _, byte in lines))
                for order in permutations(range(len(parts))):
                    held, total = -bits, 0.0  # a gather's part ends with what was gathered so far
                    for at in order:
                        held += parts[at]
                        total += lines[at][1] * 2.0**held
                    grown.append(total)
            assert found.least_start[low, bits] == pytest.approx(min(starts))
            assert found.least_per_byte[low, bits] == pytest.approx(min(bytes_))
            assert found.least_grown[low, bits] == pytest.approx(min(grown))


def test_several_operators_are_one_after_the_other() -> None:
    both = rates(MACHINES[0], ["AllGather", "ReduceScatter"], 2)
    one = rates(MACHINES[0], ["AllGather"], 2)
    other = rates(MACHINES[0], ["ReduceScatter"], 2)
    for name in ("start", "per_byte", "least_start", "least_per_byte", "least_grown"):
        assert getattr(both, name) == pytest.approx(getattr(one, name) + getattr(other, name))


# -- groups ----------------------------------------------------------------------------------------


def use(*ranks: int, name: str = "g") -> GroupUse:
    return GroupUse(ranks, name, {"AllReduce": 1})


@pytest.mark.parametrize(
    ("steps", "ranks", "expected"),
    [
        ((0, 1), range(4), [(0, 1), (2, 3)]),
        ((0, 2), range(4), [(0, 2), (1, 3)]),
        ((0, 2), range(4, 8), [(4, 6), (5, 7)]),
        ((0, 1, 4, 5), range(8), [(0, 1, 4, 5), (2, 3, 6, 7)]),
        ((0, 3), range(4), []),
        ((0, 1), range(3), []),
    ],
)
def test_a_form_is_laid_over_the_ranks_of_a_stage(
    steps: tuple[int, ...], ranks: range, expected: list[tuple[int, ...]]
) -> None:
    assert tiles(steps, ranks) == expected


def test_a_loss_breaks_the_groups_that_hold_it_and_touches_their_ranks() -> None:
    world = use(0, 1, 2, 3, 4, 5, 6, 7, name="hccl_world_group")
    table = GroupTable((use(0, 1), use(2, 3), use(0, 2), world))
    assert [group.ranks for group in table.broken_by([3])] == [(2, 3), tuple(range(8))]
    # every rank is in the group of all: that touches none
    assert table.untouched_ranks([3], range(8)) == (0, 1, 4, 5, 6, 7)
    assert table.untouched_ranks([0], range(8)) == (3, 4, 5, 6, 7)
    same = GroupTable((use(0, 1), use(0, 1, 2, 3, name="2-77")))
    assert same.untouched_ranks([3], range(4)) == ()  # as large, but a group of its own


def test_groups_of_a_new_plan_by_their_ranks() -> None:
    old, new = GroupTable((use(0, 1), use(0, 2))), GroupTable((use(0, 1, name="h"), use(2, 3)))
    found = group_changes(old, new)
    assert [group.ranks for group in found.kept] == [(0, 1)]
    assert [group.name for group in found.kept] == ["h"]
    assert [group.ranks for group in found.added] == [(2, 3)]
    assert [group.ranks for group in found.removed] == [(0, 2)]

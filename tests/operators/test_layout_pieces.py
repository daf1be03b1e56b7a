"""Layouts by what every device holds: the elements themselves, of random layouts."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.operators.layout import (
    DYNAMIC,
    WHOLE,
    MapEntry,
    TensorLayout,
    UserLayout,
    entries_of,
    replicas,
    shift_map,
)

np = pytest.importorskip("numpy")


@st.composite
def layouts(draw: st.DrawFn, devices: int = 8) -> TensorLayout:
    """A layout of a tensor of 16 by 8 by 24 on eight devices, axes of size 1 included."""
    matrix = draw(st.sampled_from([(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 1, 4), (4, 1, 2)]))
    assert prod(matrix) == devices
    free = list(draw(st.permutations(range(len(matrix)))))
    entries: list[MapEntry] = []
    for _ in range(3):
        count = draw(st.integers(0, min(2, len(free))))
        taken = tuple(free.pop() for _ in range(count))
        entries.append(taken if len(taken) > 1 else taken[0] if taken else WHOLE)
    return TensorLayout(matrix, tuple(entries), (16, 8, 24))


WHOLE_TENSOR = np.arange(16 * 8 * 24).reshape(16, 8, 24)


def held(layout: TensorLayout, position: int) -> tuple[int, ...]:
    """The elements that a device holds, in their order."""
    whole = WHOLE_TENSOR.reshape(layout.tensor_shape)
    piece = layout.piece(position)
    spans = zip(piece.offset, piece.shape, strict=True)
    return tuple(whole[tuple(slice(low, low + size) for low, size in spans)].ravel().tolist())


@given(layouts())
def test_every_element_is_held_equally_often(layout: TensorLayout) -> None:
    assert layout.problem() is None
    counts = Counter(element for at in range(8) for element in held(layout, at))
    assert set(counts.values()) == {layout.repeats}
    assert len(counts) == WHOLE_TENSOR.size
    assert layout.is_whole == (layout.repeats == 8)
    assert prod(layout.slice_shape) * 8 == WHOLE_TENSOR.size * layout.repeats


@given(layouts(), st.integers(0, 7))
def test_replicas_are_those_who_hold_the_same(layout: TensorLayout, rank: int) -> None:
    same = tuple(at for at in range(8) if held(layout, at) == held(layout, rank))
    assert replicas(layout, range(8), rank) == same
    assert len(same) == layout.repeats
    assert replicas(layout, range(16, 24), 16 + rank) == tuple(16 + at for at in same)


@given(layouts(), layouts())
def test_layouts_are_the_same_if_all_devices_hold_the_same(
    one: TensorLayout, other: TensorLayout
) -> None:
    alike = all(held(one, at) == held(other, at) for at in range(8))
    assert one.same_as(other) == alike


@given(layouts())
def test_other_forms_of_a_layout_hold_the_same(layout: TensorLayout) -> None:
    standard = layout.standard()
    assert 1 not in standard.device_matrix or standard.device_matrix == (1,)
    for other in (standard, layout.expanded()):
        assert [held(other, at) for at in range(8)] == [held(layout, at) for at in range(8)]
    assert all(not isinstance(entry, tuple) for entry in layout.expanded().tensor_map)


@given(layouts())
def test_an_axis_more_at_the_right_end_repeats_every_device(layout: TensorLayout) -> None:
    more = TensorLayout(
        (*layout.device_matrix, 3), shift_map(layout.tensor_map), layout.tensor_shape
    )
    assert [held(more, at) for at in range(24)] == [held(layout, at // 3) for at in range(24)]
    assert more.without_last_axis() == layout
    with_part = shift_map(((1, WHOLE), WHOLE, 0), 2)
    assert with_part == ((3, WHOLE), WHOLE, 2)


def test_unknown_sizes_are_cut_into_unknown_ones() -> None:
    layout = TensorLayout((2, 4), (1, 0), (DYNAMIC, 8))
    assert layout.slice_shape == (DYNAMIC, 2)
    assert layout.piece(7).offset == (0, 6)
    assert layout.problem() is None


@pytest.mark.parametrize(
    ("entries", "interleaves", "scatters"),
    [
        ((1, -1), False, False),
        ((0, -1), True, False),
        (((1, 0), -1), True, False),
        (((0, 1), -1), True, True),
        (((2, 1), -1), False, False),
    ],
)
def test_the_last_axis_interleaves(
    entries: tuple[MapEntry, ...], interleaves: bool, scatters: bool
) -> None:
    layout = UserLayout((2, 4, 2), entries, interleaved=True)
    assert (layout.interleaves, layout.scatters) == (interleaves, scatters)
    plain = UserLayout((2, 4, 2), entries)
    assert not plain.interleaves
    assert not plain.scatters
    assert prod(layout.tensor_layout((16, 8)).device_matrix) == 8
    assert prod(plain.tensor_layout((16, 8)).device_matrix) == 16
    without = [tuple(a for a in entries_of(e) if a != 0) for e in entries]
    assert layout.strategy == tuple(prod((2, 4, 2)[2 - a] for a in axes) for axes in without)

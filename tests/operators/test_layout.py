"""Layouts: matrices, maps, slices, ranks."""

from __future__ import annotations

import pytest

from irtool.operators.layout import (
    TensorLayout,
    UserLayout,
    coordinates,
    position_of,
    ranks_along,
    repeated_calculation,
    replicas,
)


def test_slices_and_pieces() -> None:
    layout = TensorLayout((4, 2, 1), (2, 1), (256, 784))
    assert layout.splits == (4, 2)
    assert layout.slice_shape == (64, 392)
    assert layout.piece(0).offset == (0, 0)
    assert layout.piece(5).offset == (128, 392)
    assert layout.repeats == 1


def test_dynamic_dimensions_stay() -> None:
    assert TensorLayout((8,), (0, -1), (-1, 64)).slice_shape == (-1, 64)


@pytest.mark.parametrize(
    ("layout", "word"),
    [
        (TensorLayout((2, 4), (1, 0, -1), (8, 8)), "length"),
        (TensorLayout((2, 4), (2, 0), (8, 8)), "no axis 2"),
        (TensorLayout((2, 4), (0, 0), (8, 8)), "twice"),
        (TensorLayout((2, 4), (0, 1), (2, 8)), "does not divide"),
    ],
)
def test_what_is_no_layout(layout: TensorLayout, word: str) -> None:
    problem = layout.problem()
    assert problem is not None
    assert word in problem


def test_standard_form_drops_axes_of_size_one() -> None:
    standard = TensorLayout((1, 4, 1, 2), (3, 2, 0), (8, 8, 8)).standard()
    assert standard == TensorLayout((4, 2), (-1, 1, 0), (8, 8, 8))
    assert TensorLayout((1, 1), (1, 0), (8, 8)).standard().device_matrix == (1,)


def test_one_dimension_along_several_axes() -> None:
    layout = TensorLayout((2, 4, 2), ((2, 0), -1), (16, 8))
    assert layout.slice_shape == (4, 8)
    assert layout.expanded() == TensorLayout((2, 4, 2), (2, 0, -1), (2, 8, 8))
    assert [layout.piece(position).offset[0] for position in (0, 1, 8, 9)] == [0, 4, 8, 12]


def test_equal_layouts_over_different_matrices() -> None:
    left = TensorLayout((4, 2), (1, -1), (8, 8))
    assert left.same_as(TensorLayout((2, 2, 2), ((2, 1), -1), (8, 8)))
    assert not left.same_as(TensorLayout((2, 4), (0, -1), (8, 8)))


def test_an_interleaving_axis_is_no_device() -> None:
    layout = UserLayout((2, 2, 2), ((2, 0), 1), interleaved=True)
    assert layout.tensor_layout((16, 8)) == TensorLayout((2, 2), (1, 0), (16, 8))
    assert layout.full_layout((16, 8)).slice_shape == (4, 4)
    assert layout.strategy == (2, 2)


def test_repeated_calculation_goes_right_by_default() -> None:
    right = repeated_calculation((4, 1), 8)
    assert right is not None
    assert (right.device_matrix, right.shifted((1, -1))) == ((4, 1, 2), (2, -1))
    left = repeated_calculation((4, 1), 8, right=False)
    assert left is not None
    assert (left.device_matrix, left.shifted((1, -1))) == ((2, 4, 1), (1, -1))
    assert repeated_calculation((3,), 8) is None


def test_ranks_of_a_group() -> None:
    assert coordinates((4, 2), 5) == (2, 1)
    assert position_of((4, 2), (2, 1)) == 5
    stage = range(8, 16)
    assert ranks_along((4, 2), (1,), stage, 9) == (8, 9)
    assert ranks_along((4, 2), (0,), stage, 9) == (9, 11, 13, 15)
    # MatMul weight (512, 784), strategy ((4, 2), (1, 2)): replicas of rank 0
    assert replicas(TensorLayout((4, 2, 1), (0, 1), (512, 784)), range(8), 0) == (0, 2, 4, 6)
    with pytest.raises(ValueError, match="rank 3"):
        ranks_along((4, 2), (1,), stage, 3)

"""What an operator takes over from its neighbours, MindSpore's oddities included."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.operators.call import OperatorCall, Strategy, constant, tensor
from irtool.operators.layout import Shape
from irtool.planning.recursive.fitting import Devices, fitted, valid
from irtool.planning.recursive.kinds import Kind, kind_of
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.sources import gather_row, reshaped_row, row_from_user

EIGHT = Devices(8, 8)


def operator(op: str, inputs: list[Shape], output: Shape, *values: object) -> Operator:
    """An operator with tensors of these shapes, then these constants."""
    operands = (*(tensor(*shape) for shape in inputs), *(constant(value) for value in values))
    call = OperatorCall(op, operands, (tensor(*output),))
    return Operator(0, None, call, kind_of(call, 8), tuple(inputs), (output,))


@pytest.mark.parametrize(
    ("before", "after", "row", "expected"),
    [
        # A whole number that the first dimension does not take goes to the next one.
        ((8192, 1024), (8, 1024, 16, 64), (64, 1), (1, 64, 1, 1)),
        ((65536, 1024), (64, 1024, 16, 64), (64, 1), (64, 1, 1, 1)),
        ((8192, 1024), (8, 1024, 16, 64), (32, 2), (1, 32, 2, 1)),
        ((8, 1024, 1024), (8192, 1024), (8, 1, 1), (8, 1)),
        ((8, 1024), (8192,), (8, 1), (8,)),
        ((6, 4), (24,), (2, 2), (4,)),
        ((4, 6), (2, 2, 6), (4, 1), (2, 2, 1)),
        # A size that is not known divides others into negative ones.
        ((-1, 512), (-1, -1, 8, 64), (1, 64), (1, 1, 64, 1)),
        ((-1, 512), (-1, -1, 512), (1, 8), (1, 1, 8)),
    ],
)
def test_a_split_goes_through_a_reshape(
    before: Shape, after: Shape, row: Shape, expected: Shape
) -> None:
    assert reshaped_row(before, after, row) == expected


@given(st.lists(st.sampled_from([1, 2, 3, 4, 8, 16]), min_size=1, max_size=4), st.data())
def test_a_reshape_makes_no_more_pieces(shape: list[int], data: st.DataObject) -> None:
    row = [data.draw(st.sampled_from([n for n in (1, 2, 4, 8) if size % n == 0])) for size in shape]
    joined = (prod(shape),)
    for other in (joined, tuple(shape)):
        found = reshaped_row(tuple(shape), other, tuple(row))
        assert prod(row) % prod(found) == 0


def test_a_transpose_is_turned_the_same_way_in_both_directions() -> None:
    """MindSpore takes the permutation, not its inverse, to go from the result to the operand."""
    turn = operator("Transpose", [(4, 8, 16)], (8, 16, 4), (1, 2, 0))
    user = operator("ReLU", [(8, 16, 4)], (8, 16, 4))
    wanted: dict[int, Strategy] = {1: ((2, 4, 1),)}
    assert row_from_user([turn, user], wanted, 0, 1, 0, 8) == (4, 1, 2)


def test_a_gather_cuts_its_first_dimension_then_the_largest() -> None:
    assert gather_row((4, 2, 64), 32) == (4, 1, 8)


@pytest.mark.parametrize(
    ("op", "inputs", "output", "values", "row", "expected"),
    [
        ("Add", [(8, 4, 16), (16,)], (8, 4, 16), (), (2, 1, 4), ((2, 1, 4), (4,))),
        ("Add", [(8, 4, 16), (1, 16)], (8, 4, 16), (), (2, 4, 1), ((2, 4, 1), (1, 1))),
        # A row of the smaller operand is not worth anything.
        ("Mul", [(8, 4, 16), (16,)], (8, 4, 16), (), (8,), ((1, 1, 1), (1,))),
        ("ReLU", [(8, 1, 16)], (8, 1, 16), (), (2, 4, 1), ((2, 1, 1),)),
        ("BiasAdd", [(8, 16), (16,)], (8, 16), (0,), (2, 4), ((2, 4), (4,))),
        ("Softmax", [(8, 16)], (8, 16), ((-1,),), (2, 4), ((2, 1),)),
        ("LayerNorm", [(8, 4, 16), (16,), (16,)], (8, 4, 16), (-1, -1), (2, 2, 2),
         ((2, 2, 1), (1,), (1,))),
        ("RmsNorm", [(4, 16), (16,)], (4, 16), (), (1, 8), ((4, 1), (1,))),
        ("BatchMatMul", [(2, 4, 8, 16), (2, 4, 16, 8)], (2, 4, 8, 8), (False, False),
         (2, 1, 2, 2), ((2, 1, 2, 1), (2, 1, 1, 2))),
        ("BatchMatMul", [(2, 8, 16), (2, 8, 16)], (2, 8, 8), (False, True), (2, 2, 2),
         ((2, 2, 1), (2, 2, 1))),
        ("Gather", [(64, 16), (4, 16)], (4, 16, 16), (0, 0), (1, 1), ((2, 1), (4, 1))),
        ("Gather", [(64, 16), (8, 16)], (8, 16, 16), (0, 0), (1, 1), ((1, 1), (8, 1))),
        ("Gather", [(64, 16), (4,)], (4, 16), (0, 0), (1, 1), ((1, 1), (4,))),
        ("StridedSlice", [(8, 16)], (8, 4), ((0, 0), (8, 4), (1, 1)), (2, 4), ((2, 1),)),
        ("Flatten", [(8, 4, 4)], (8, 16), (), (1, 2, 1), ((8, 1, 1),)),
        ("OneHot", [(8,), (), ()], (8, 16), (), (4,), ((4, 1), (), ())),
    ],
)  # fmt: skip
def test_a_row_becomes_a_strategy(
    op: str,
    inputs: list[Shape],
    output: Shape,
    values: tuple[object, ...],
    row: Shape,
    expected: Strategy,
) -> None:
    assert fitted(operator(op, inputs, output, *values), row, EIGHT) == expected


def test_splits_that_do_not_divide_become_whole() -> None:
    relu = operator("ReLU", [(6, 8)], (6, 8))
    assert valid(relu, ((4, 8),)) == ((1, 8),)


def test_an_operator_that_the_search_does_not_know_is_left_whole() -> None:
    assert operator("TopK", [(8, 16)], (8, 16), 2).kind is Kind.UNKNOWN
    assert operator("Nobody", [(8, 16)], (8, 16)).kind is Kind.BATCH_PARALLEL
    assert operator("Nobody", [(6, 16)], (8, 16)).kind is Kind.STAND_ALONE

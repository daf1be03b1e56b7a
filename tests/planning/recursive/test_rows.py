"""Rows that operators take over, one oddity of MindSpore's search at a time, worked out by hand."""

from __future__ import annotations

import pytest

from irtool.operators.call import Operand, OperatorCall, Strategy, constant, tensor
from irtool.operators.layout import Shape
from irtool.planning.recursive.elimination import Vertex
from irtool.planning.recursive.fitting import Devices, fitted, valid
from irtool.planning.recursive.kinds import Kind, NotSearchable, kind_of
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.sources import (
    gather_row,
    reshaped_row,
    row_from_producer,
    row_from_user,
)

EIGHT = Devices(8, 8)
NONE = constant(None)


def operator(op: str, inputs: list[Shape], output: Shape, *values: object, **attributes: object):
    """An operator with tensors of these shapes, then these constants, and attributes."""
    operands = (*(tensor(*shape) for shape in inputs), *(constant(value) for value in values))
    return called(op, operands, output, **attributes)


def called(op: str, operands: tuple[Operand, ...], output: Shape, **attributes: object) -> Operator:
    call = OperatorCall(op, operands, (tensor(*output),), attributes)
    shapes = tuple(each.shape for one in operands for each in one.tensors if each.shape is not None)
    return Operator(0, None, call, kind_of(call, 8), shapes, (output,))


# -- from the row to the strategy ----------------------------------------------------------------


def test_an_empty_row_gives_every_operand_an_empty_one() -> None:
    assert fitted(operator("Add", [(8, 4), (8, 4)], (8, 4)), (), EIGHT) == ((), ())


@pytest.mark.parametrize(
    ("inputs", "row", "expected"),
    [
        # Of one rank: the row for both, but what does not divide is whole.
        ([(8, 6), (8, 6)], (2, 4), ((2, 1), (2, 1))),
        ([(8, 6), (1, 6)], (2, 3), ((2, 3), (1, 3))),
        # The smaller operand comes first.
        ([(16,), (8, 4, 16)], (2, 1, 4), ((4,), (2, 1, 4))),
        ([(1, 16), (8, 4, 16)], (2, 4, 2), ((1, 2), (2, 4, 2))),
        ([(16,), (8, 4, 16)], (2, 1), ((1,), (1, 1, 1))),
        ([(), (8, 16)], (2, 4), ((), (2, 4))),
        # Rows of the larger one that do not divide are whole, too.
        ([(6, 16), (16,)], (4, 4), ((1, 4), (4,))),
        ([(8, 16), (12,)], (2, 8), ((2, 8), (1,))),
    ],
)
def test_two_operands(inputs: list[Shape], row: Shape, expected: Strategy) -> None:
    larger = max(inputs, key=len)
    assert fitted(operator("Add", inputs, larger), row, EIGHT) == expected


def test_a_row_that_is_too_short_leaves_the_rest_whole() -> None:
    assert fitted(operator("ReLU", [(8, 4, 16)], (8, 4, 16)), (2,), EIGHT) == ((2, 1, 1),)
    one_hot = operator("OneHot", [(8,), (), ()], (8, 16))
    assert fitted(one_hot, (8, 16), EIGHT) == ((8, 16), (), ())
    assert fitted(one_hot, (8, 32), EIGHT) == ((8, 1), (), ())
    assert fitted(one_hot, (16,), EIGHT) == ((1, 1), (), ())


def test_a_bias_needs_a_row_of_two() -> None:
    bias = operator("BiasAdd", [(8, 16), (16,)], (8, 16), 0)
    assert fitted(bias, (2, 4, 2), EIGHT) == ((2, 4, 2), (4,))
    with pytest.raises(NotSearchable, match="BiasAdd takes over a row of 1"):
        fitted(bias, (2,), EIGHT)


@pytest.mark.parametrize(
    ("axis", "row", "expected"),
    [
        ((-1,), (2, 2, 2), ((2, 2, 1),)),
        ((0,), (2, 2, 2), ((1, 2, 2),)),
        ((0, 2), (2, 2, 2), ((1, 2, 1),)),
        ((-3,), (2, 2, 2), ((1, 2, 2),)),
        ((-1,), (2, 3, 2), ((2, 1, 1),)),  # 3 does not divide 4
    ],
)
def test_a_softmax_is_whole_along_its_axes(
    axis: tuple[int, ...], row: Shape, expected: Strategy
) -> None:
    softmax = operator("Softmax", [(8, 4, 16)], (8, 4, 16), axis)
    assert fitted(softmax, row, EIGHT) == expected


@pytest.mark.parametrize("axis", [(2,), (-4,)])
def test_an_axis_outside_of_the_row_is_an_error_of_mindspore(axis: tuple[int, ...]) -> None:
    softmax = operator("Softmax", [(8, 4, 16)], (8, 4, 16), axis)
    with pytest.raises(NotSearchable, match="an axis of Softmax lies outside of the 2 it takes"):
        fitted(softmax, (2, 2), EIGHT)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({"axis": (1,)}, (2, 1, 4)), ({"axis": (2, 0)}, (2, 2, 1)), ({"axis": (0, 2)}, (1, 2, 4)),
     ({}, (1, 2, 4))],
)  # fmt: skip
def test_l2_normalisation_is_whole_along_its_first_axis_only(
    attributes: dict[str, object], expected: Shape
) -> None:
    normalised = operator("L2Normalize", [(8, 4, 16)], (8, 4, 16), **attributes)
    assert fitted(normalised, (2, 2, 4), EIGHT) == (expected,)


def test_layer_norm_is_whole_along_the_last_axis_alone() -> None:
    norm = operator("LayerNorm", [(8, 4, 16), (4, 16), (4, 16)], (8, 4, 16), 1, 1)
    assert fitted(norm, (2, 2, 2), EIGHT) == ((2, 2, 1), (1,), (1,))


@pytest.mark.parametrize(
    ("shape", "scale", "expected"),
    [
        ((16, 4, 32), (32,), ((8, 1, 1), (1,))),
        ((2, 4, 32), (32,), ((2, 1, 1), (1,))),
        ((16, 32), (16, 32), ((8, 1), (8, 1))),
    ],
)
def test_rms_norm_splits_its_first_dimension_over_all_it_can(
    shape: Shape, scale: Shape, expected: Strategy
) -> None:
    norm = operator("RmsNorm", [shape, scale], shape)
    assert fitted(norm, (1, 4), EIGHT) == expected


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "expected"),
    [
        ((0, 0), (8, 16), (1, 1), {}, (2, 4)),
        ((0, 0), (8, 15), (1, 1), {}, (2, 1)),
        ((1, 0), (8, 16), (1, 1), {}, (1, 4)),
        ((0, 0), (8, 16), (1, 2), {}, (2, 1)),
        ((0, 0), (9, 17), (1, 1), {}, (2, 4)),  # behind the end is the end
        ((1, 0), (8, 16), (1, 1), {"begin_mask": 1}, (2, 4)),
        ((1, 3), (8, 16), (1, 1), {"begin_mask": 1}, (2, 1)),
        ((1, 3), (8, 16), (1, 1), {"begin_mask": 2}, (1, 4)),
        ((0, 0), (8, 5), (1, 1), {"end_mask": 2}, (2, 4)),
        ((0, 0), (3, 5), (1, 1), {"end_mask": 2}, (1, 4)),
        ((0, 0), (8, 16), (-1, 1), {"begin_mask": 1, "end_mask": 1}, (1, 4)),
        ((0,), (4,), (1,), {}, (1, 4)),  # the second dimension is not sliced
    ],
)
def test_a_slice_is_split_where_it_takes_everything(
    begin: Shape, end: Shape, strides: Shape, masks: dict[str, int], expected: Shape
) -> None:
    sliced = operator("StridedSlice", [(8, 16)], (8, 16), begin, end, strides, **masks)
    assert fitted(sliced, (2, 4), EIGHT) == (expected,)


def test_a_new_axis_of_a_slice_is_whole() -> None:
    sliced = operator(
        "StridedSlice", [(8, 16)], (1, 8, 16), (0, 0, 0), (9, 8, 16), (1, 1, 1), new_axis_mask=1
    )
    assert fitted(sliced, (2, 4), EIGHT) == ((1, 2, 4),)
    last = operator(
        "StridedSlice", [(8, 16)], (8, 16, 1), (0, 0, 3), (8, 16, 9), (1, 1, 2), new_axis_mask=4
    )
    assert fitted(last, (2, 4), EIGHT) == ((2, 4, 1),)
    # The row of the new axis is 1 already: what it takes there makes no difference.
    middle = operator(
        "StridedSlice", [(8, 16)], (8, 1, 4), (0, 7, 0), (8, 7, 4), (1, 1, 1), new_axis_mask=2
    )
    assert fitted(middle, (2, 4), EIGHT) == ((2, 1, 1),)


def test_a_slice_without_redistribution_is_split_though_it_takes_a_part() -> None:
    part = ((0, 0), (4, 16), (1, 1))
    asked = operator("StridedSlice", [(8, 16)], (4, 16), *part, skip_redistribution=True)
    assert fitted(asked, (2, 4), EIGHT) == ((2, 4),)
    steps = operator(
        "StridedSlice", [(8, 16)], (4, 16), (0, 0), (8, 16), (2, 1), skip_redistribution=True
    )
    assert fitted(steps, (2, 4), EIGHT) == ((1, 4),)


@pytest.mark.parametrize(
    ("table", "indices", "axis", "stage", "expected"),
    [
        # Indices take what they can; what is left goes to the rows of the table.
        ((64, 16), (16, 4), 0, 8, ((1, 1), (8, 1))),
        ((64, 16), (6, 4), 0, 8, ((4, 1), (2, 1))),
        ((64, 16, 2), (6, 4), 0, 8, ((1, 1, 1), (2, 1))),  # both only in two dimensions
        ((64, 16), (6,), 0, 8, ((1, 1), (2,))),
        ((64, 16), (2, 4), 0, 2, ((1, 1), (2, 1))),
        ((64, 1), (2, 4), 0, 8, ((4, 1), (2, 1))),
        ((64, 16), (3, 4), 0, 8, ((8, 1), (1, 1))),
        ((64, 16), (), 0, 8, ((8, 1), ())),
        ((64, 16), (4,), -2, 4, ((1, 1), (4,))),
        # Along columns the result's row counts.
        ((64, 16), (4, 4), 1, 8, ((8, 1), (1, 1))),
    ],
)
def test_a_gather_goes_by_itself(
    table: Shape, indices: Shape, axis: int, stage: int, expected: Strategy
) -> None:
    result = (*table[:axis], *indices, *table[axis + 1 :]) if axis >= 0 else (4, 16)
    gather = operator("Gather", [table, indices], result, axis, 0)
    assert fitted(gather, (1, 1), Devices(stage, stage)) == expected


def test_a_gather_along_a_later_axis_is_an_error_of_mindspore() -> None:
    gather = operator("Gather", [(8, 8, 8), (4,)], (8, 8, 4), 2, 0)
    with pytest.raises(NotSearchable, match="axis 2"):
        fitted(gather, (1, 1, 1), EIGHT)


@pytest.mark.parametrize(("size", "split"), [(16, 8), (8, 8), (12, 1), (4, 1)])
def test_flatten_is_over_all_devices_or_none(size: int, split: int) -> None:
    flatten = operator("Flatten", [(size, 4)], (size, 4))
    assert fitted(flatten, (1, 2), EIGHT) == ((split, 1),)


@pytest.mark.parametrize(
    ("turns", "row", "expected"),
    [
        ((False, False), (2, 2, 4), ((2, 2, 1), (2, 1, 4))),
        ((True, False), (2, 2, 4), ((2, 1, 2), (2, 1, 4))),
        ((False, True), (2, 2, 4), ((2, 2, 1), (2, 4, 1))),
        ((False, False), (2, 4), ((1, 2, 1), (1, 1, 4))),  # the row says nothing of the batch
    ],
)
def test_a_batched_product_sums_up_what_is_whole(
    turns: tuple[bool, bool], row: Shape, expected: Strategy
) -> None:
    product = operator("BatchMatMul", [(2, 8, 8), (2, 8, 8)], (2, 8, 8), *turns)
    assert fitted(product, row, EIGHT) == expected


def attention(layout: str, query: Shape, key: Shape, heads: int, *more: Operand, mode: int = 0):
    """FlashAttentionScore with optional operands behind query, key and value."""
    shapes = (tensor(*query), tensor(*key), tensor(*key))
    return called(
        "FlashAttentionScore", (*shapes, *more), query,
        head_num=heads, input_layout=layout, sparse_mode=mode,
    )  # fmt: skip


def test_attention_splits_batch_heads_and_the_querys_sequence() -> None:
    whole = attention("BNSD", (4, 8, 16, 32), (4, 8, 16, 32), 8)
    assert fitted(whole, (2, 4, 2, 1), EIGHT) == ((2, 4, 2, 1), (2, 4, 1, 1), (2, 4, 1, 1))
    rows = attention("BSH", (4, 16, 256), (4, 16, 256), 8)
    assert fitted(rows, (2, 2, 4), EIGHT) == ((2, 2, 4), (2, 1, 4), (2, 1, 4))
    assert fitted(rows, (2,), EIGHT) == ((2, 1, 1), (2, 1, 1), (2, 1, 1))


def test_heads_of_keys_that_all_queries_share_are_whole() -> None:
    shared = attention("BSH", (4, 16, 256), (4, 16, 32), 8)
    assert fitted(shared, (2, 1, 4), EIGHT) == ((2, 1, 4), (2, 1, 1), (2, 1, 1))
    grouped = attention("BSH", (4, 16, 256), (4, 16, 64), 8)
    assert fitted(grouped, (2, 1, 4), EIGHT) == ((2, 1, 4), (2, 1, 4), (2, 1, 4))


@pytest.mark.parametrize(
    ("shape", "mode", "expected"),
    [
        ((16, 16), 0, (2, 1)),
        ((2048, 2048), 2, (1, 1)),  # a compressed mask is whole
        ((4, 8, 16, 16), 0, (2, 2, 2, 1)),
        ((4, 1, 16, 16), 0, (2, 1, 2, 1)),
        ((1, 1, 16, 16), 0, (1, 1, 2, 1)),
    ],
)
def test_a_mask_of_attention(shape: Shape, mode: int, expected: Shape) -> None:
    mask = (NONE, NONE, NONE, tensor(*shape))
    found = attention("BNSD", (4, 8, 16, 32), (4, 8, 16, 32), 8, *mask, mode=mode)
    assert fitted(found, (2, 2, 2, 1), EIGHT)[3] == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((4, 8, 16, 16), (2, 2, 2, 1)), ((1, 8, 16, 16), (1, 2, 2, 1)), ((4, 8, 1, 1), (2, 2, 1, 1))],
)
def test_a_shift_of_attention(shape: Shape, expected: Shape) -> None:
    found = attention("BNSD", (4, 8, 16, 32), (4, 8, 16, 32), 8, tensor(*shape))
    assert fitted(found, (2, 2, 2, 1), EIGHT)[3] == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (((4, 8),), ((4, 8),)),
        (((8, 8),), ((1, 8),)),  # 8 does not divide 4
        (((4,),), ((4, 1),)),
        (((4, 1),), ((4, 1),)),
        (((3, 8),), ((1, 8),)),
        (((4, 32),), ((4, 1),)),  # more parts than there are rows
    ],
)
def test_what_does_not_divide_is_made_whole(strategy: Strategy, expected: Strategy) -> None:
    assert valid(operator("ReLU", [(4, 16)], (4, 16)), strategy) == expected


def test_what_is_filled_keeps_splits_that_do_not_divide() -> None:
    fill = operator("FillV2", [(), ()], (6, 8))
    assert fill.search.fits == "filled"
    assert fitted(fill, (4,), EIGHT) == ((4, 1), ())
    assert valid(fill, ((4, 1), ())) == ((4, 1), ())


# -- from a producer -----------------------------------------------------------------------------


def behind(
    source: Operator, strategy: Strategy, user: Operator | None = None, devices: int = 8
) -> Shape:
    """The row that a user of an operator's result takes over."""
    user = user or operator("ReLU", [source.outputs[0]], source.outputs[0])
    return row_from_producer([source, user], {}, {0: strategy}, 1, 0, devices)


@pytest.mark.parametrize(
    ("inputs", "strategy", "row"),
    [
        ([(8, 16), (8, 16)], ((2, 4), (1, 1)), (2, 4)),
        ([(16,), (8, 16)], ((4,), (2, 4)), (2, 4)),
        ([(8, 16), (16,)], ((2, 4), (4,)), (2, 4)),
        ([(8, 16), (8, 16)], (), ()),
    ],
)
def test_a_sum_hands_on_the_row_of_its_largest_operand(
    inputs: list[Shape], strategy: Strategy, row: Shape
) -> None:
    assert behind(operator("Add", inputs, (8, 16)), strategy) == row


@pytest.mark.parametrize(
    ("keep", "axis", "row"),
    [
        (False, (1,), (2, 2)),
        (False, (-1,), (2, 4)),
        (False, (0, 2), (4,)),
        (False, (), ()),  # over all of them
        (True, (1,), (2, 4, 2)),
    ],
)
def test_a_reduction_hands_on_what_it_keeps(keep: bool, axis: tuple[int, ...], row: Shape) -> None:
    shapes = {(1,): (8, 4), (-1,): (8, 8), (0, 2): (8,), (): ()}
    total = operator(
        "ReduceSum", [(8, 8, 4)], (8, 1, 4) if keep else shapes[axis], axis, keep_dims=keep
    )
    user = operator("ReLU", [(8, 8)], (8, 8))
    assert behind(total, ((2, 4, 2),), user) == row


@pytest.mark.parametrize(("axis", "row"), [(0, (1, 2, 4)), (1, (2, 1, 4)), (-1, (2, 4, 1))])
def test_a_new_dimension_is_whole(axis: int, row: Shape) -> None:
    expanded = operator("ExpandDims", [(8, 16)], (1, 8, 16), axis)
    assert behind(expanded, ((2, 4),)) == row


@pytest.mark.parametrize(("axis", "row"), [((1,), (2, 4)), ((-2,), (2, 4)), ((), (2, 1, 4))])
def test_what_is_squeezed_is_gone(axis: tuple[int, ...], row: Shape) -> None:
    squeezed = operator("Squeeze", [(8, 1, 16)], (8, 16), axis=axis)
    assert behind(squeezed, ((2, 1, 4),)) == row


def test_flattened_dimensions_have_their_product() -> None:
    assert behind(operator("Flatten", [(8, 4, 16)], (8, 64)), ((2, 2, 4),)) == (2, 8)


@pytest.mark.parametrize(("axis", "row"), [(0, (1, 4, 2)), (2, (2, 4, 1)), (-1, (2, 4, 2))])
def test_along_what_is_accumulated_a_result_is_whole(axis: int, row: Shape) -> None:
    """A negative axis counts from one behind the end, so that -1 is none."""
    total = operator("CumSum", [(8, 4, 16)], (8, 4, 16), axis)
    assert behind(total, ((2, 4, 2),)) == row


@pytest.mark.parametrize(
    ("axis", "keep", "row"),
    [(1, False, (2, 2)), (-1, False, (2, 4)), (0, False, (4, 2)), (1, True, (2, 4, 2))],
)
def test_the_axis_of_an_argument_is_gone(axis: int, keep: bool, row: Shape) -> None:
    found = operator("ArgMaxWithValue", [(8, 4, 16)], (8, 16), axis=axis, keep_dims=keep)
    assert behind(found, ((2, 4, 2),)) == row


def test_an_argument_needs_its_axis() -> None:
    found = operator("ArgMaxWithValue", [(8, 4, 16)], (8, 16), keep_dims=False)
    with pytest.raises(NotSearchable, match="the axis of ArgMaxWithValue"):
        behind(found, ((2, 4, 2),))


def test_a_gather_hands_on_what_its_result_can_be_cut_into() -> None:
    gather = operator("Gather", [(64, 16), (4, 2)], (4, 2, 16), 0, 0)
    assert behind(gather, ((1, 1), (4, 1))) == (4, 1, 2)


def test_nothing_is_handed_on_by_a_slice_nor_taken_by_a_transpose() -> None:
    sliced = operator("StridedSlice", [(8, 16)], (8, 16), (0, 0), (8, 16), (1, 1))
    assert behind(sliced, ((2, 4),)) == ()
    relu = operator("ReLU", [(8, 16)], (8, 16))
    turned = operator("Transpose", [(8, 16)], (16, 8), (1, 0))
    assert behind(relu, ((2, 4),), turned) == ()
    one_hot = operator("OneHot", [(8,), (), ()], (8, 16))
    assert behind(relu, ((2, 4),), one_hot) == ()
    assert behind(turned, ((2, 4),)) == (4, 2)


def test_an_operator_that_was_cut_hands_on_its_cut() -> None:
    product = operator("MatMul", [(8, 16), (16, 32)], (8, 32), False, False)
    vertex = Vertex.__new__(Vertex)
    object.__setattr__(vertex, "result_cut", (1, 1, 2, 4))
    for shape, row in (((8, 32), (2, 4)), ((32,), (4,)), ((8, 4, 2, 16), (1, 1, 2, 4))):
        user = operator("ReLU", [shape], shape)
        assert row_from_producer([product, user], {0: vertex}, {}, 1, 0, 8) == row
    scalar = operator("ReLU", [()], ())
    assert row_from_producer([product, scalar], {0: vertex}, {}, 1, 0, 8) == ()
    five = operator("ReLU", [(2, 2, 2, 2, 2)], (2, 2, 2, 2, 2))
    with pytest.raises(NotSearchable, match="5 dimensions"):
        row_from_producer([product, five], {0: vertex}, {}, 1, 0, 8)


# -- from a user ---------------------------------------------------------------------------------


def before(op: Operator, wanted: Shape, devices: int = 8, operand: int = 0) -> Shape:
    """The row that an operator takes over from what a user wants of its result."""
    user = operator("ReLU", [op.outputs[0]], op.outputs[0])
    return row_from_user([op, user], {1: (wanted,)}, 0, 1, operand, devices)


def test_what_a_user_wants_is_taken_and_filled_up() -> None:
    relu = operator("ReLU", [(8, 16)], (8, 16))
    assert before(relu, (2, 4)) == (2, 4)
    assert before(relu, (2,)) == (2, 1)
    assert before(relu, (2, 4, 8)) == (2, 4)
    assert before(relu, (2, 4), operand=1) == (1, 1)  # the user has no such row


@pytest.mark.parametrize(("axis", "row"), [(0, (4, 2)), (1, (2, 2)), (-1, (2, 4))])
def test_a_new_dimension_is_left_out_before_it(axis: int, row: Shape) -> None:
    expanded = operator("ExpandDims", [(8, 16)], (1, 8, 16), axis)
    assert before(expanded, (2, 4, 2)) == row


@pytest.mark.parametrize(
    ("axis", "keep", "wanted", "row"),
    [
        ((1,), False, (2, 4), (2, 1, 4)),
        ((-1,), False, (2, 4), (2, 4, 1)),
        ((0, 2), False, (4,), (1, 4, 1)),
        ((1,), False, (2,), (2, 1, 1)),
        ((1,), True, (2, 1, 4), (2, 1, 4)),
    ],
)
def test_before_a_reduction_what_is_summed_is_whole(
    axis: tuple[int, ...], keep: bool, wanted: Shape, row: Shape
) -> None:
    total = operator("ReduceSum", [(8, 8, 8)], (8, 8), axis, keep_dims=keep)
    assert before(total, wanted) == row


@pytest.mark.parametrize(
    ("axis", "wanted", "devices", "row"),
    [
        ((1,), (2, 4), 8, (2, 1, 4)),
        ((1,), (2, 2), 8, ()),  # only a row of all devices is worth taking
        ((1,), (2, 2), 4, (2, 1, 2)),
        ((0,), (2, 4), 8, (2, 4, 1)),  # the first axis is not put back
        ((2,), (2, 4), 8, (2, 4, 1)),
    ],
)
def test_before_a_squeeze_dimensions_of_one_are_put_back(
    axis: tuple[int, ...], wanted: Shape, devices: int, row: Shape
) -> None:
    squeezed = operator("Squeeze", [(8, 1, 16)], (8, 16), axis=axis)
    assert before(squeezed, wanted, devices) == row


def test_a_reshape_and_a_gather_before_a_user() -> None:
    reshape = operator("Reshape", [(8, 4, 16)], (32, 16), (32, 16))
    assert reshape.kind is Kind.RESHAPE
    assert before(reshape, (4, 2)) == reshaped_row((32, 16), (8, 4, 16), (4, 2)) == (4, 1, 2)
    gather = operator("Gather", [(64, 16), (4, 2)], (4, 2, 16), 0, 0)
    assert before(gather, (1, 1, 1)) == (4, 1, 2)


def test_arguments_take_nothing_over() -> None:
    flatten = operator("Flatten", [(8, 4, 4)], (8, 16))
    assert before(flatten, (2, 4)) == ()


# -- shared --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "devices", "row"),
    [
        ((8,), 8, (8,)),
        ((8,), 4, (4,)),
        ((16,), 8, (8,)),
        ((6, 16), 8, (2, 4)),
        ((3, 5), 8, (1, 1)),
        ((2, 4, 8), 16, (2, 1, 8)),
        ((2, 8, 8), 32, (2, 8, 2)),  # of equal ones the first
        ((), 8, ()),
    ],
)
def test_a_tensor_is_cut_in_two_again_and_again(shape: Shape, devices: int, row: Shape) -> None:
    assert gather_row(shape, devices) == row

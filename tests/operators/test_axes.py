"""The axes of a call, read off its operator's entry, are what the rule makes of them."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.operators.axes import CallAxes, axes_of
from irtool.operators.call import Operand, OperatorCall, Strategy, constant, tensor
from irtool.operators.judgement import Context
from irtool.sharding.judge import judge

DEVICES = Context(tuple(range(32)), 32, soc="Ascend910B")


def call(op: str, *inputs: Operand, out: tuple[int, ...], **attributes: object) -> OperatorCall:
    return OperatorCall(op, inputs, (tensor(*out),), attributes)


def turned(a: bool, b: bool) -> OperatorCall:
    first, second = (8, 16) if a else (16, 8), (32, 8) if b else (8, 32)
    flags = (constant(a), constant(b))
    return call("MatMul", tensor(*first), tensor(*second), *flags, out=(16, 32))


CALLS = {
    "product": turned(False, False),
    "product, transposed": turned(True, True),
    "batched product": call("BatchMatMul", tensor(4, 8, 16), tensor(4, 16, 8), out=(4, 8, 8)),
    "broadcast": call("Add", tensor(8, 1, 64), tensor(16, 1), out=(8, 16, 64)),
    "softmax": call("Softmax", tensor(8, 16, 64), constant((-1,)), out=(8, 16, 64)),
    "sum": call("ReduceSum", tensor(8, 64), constant((0,)), constant(False), out=(64,)),
    "kept sum": call("ReduceSum", tensor(8, 64), constant((0,)), constant(True), out=(1, 64)),
    "transpose": call("Transpose", tensor(4, 8, 16), constant((2, 0, 1)), out=(16, 4, 8)),
    "concat": call("Concat", Operand(items=(tensor(8, 4), tensor(8, 4))), constant(1), out=(8, 8)),
    "bias": call("BiasAdd", tensor(8, 16, 4), tensor(16), out=(8, 16, 4)),
}


def told(name: str) -> CallAxes:
    found = axes_of(CALLS[name], DEVICES)
    assert found is not None
    return found


def roles(name: str) -> list[tuple[str, str]]:
    return [(axis.name, axis.role) for axis in told(name).axes]


def test_an_axis_of_a_product_is_summed_and_the_others_come_out() -> None:
    assert roles("product") == [("m", "passed"), ("k", "summed"), ("n", "passed")]
    (summed,) = (axis for axis in told("product").axes if axis.role == "summed")
    assert summed.inputs == ((0, 1), (1, 0))
    assert summed.outputs == ()


def test_a_flag_turns_the_axes_of_an_operand() -> None:
    by_name = {axis.name: axis.inputs for axis in told("product, transposed").axes}
    assert by_name == {"k": ((0, 0), (1, 1)), "m": ((0, 1),), "n": ((1, 0),)}


def test_axes_that_must_be_whole_are_none() -> None:
    assert [axis.inputs for axis in told("softmax").axes] == [((0, 0),), ((0, 1),)]
    assert [axis.inputs for axis in told("concat").axes] == [((0, 0), (1, 0))]


def test_dimensions_of_one_lie_along_no_axis() -> None:
    assert [axis.inputs for axis in told("broadcast").axes] == [((0, 0),), ((0, 2),), ((1, 0),)]


def test_a_permuted_axis_comes_out_elsewhere() -> None:
    assert [axis.outputs for axis in told("transpose").axes] == [((0, 1),), ((0, 2),), ((0, 0),)]


@pytest.mark.parametrize(
    "unknown",
    [
        call("Flatten", tensor(8, 4, 4), out=(8, 16)),  # MindSpore has no class for it
        call("Reshape", tensor(8, 4, 4), constant((8, 16)), out=(8, 16)),  # as neighbours want it
        call("MatMul", tensor(8), tensor(8, 4), out=(4,)),  # of other ranks
        call("StridedSlice", tensor(8, 4), tensor(2), tensor(2), tensor(2), out=(4, 4)),
    ],
)
def test_what_the_entry_does_not_tell_is_not_told(unknown: OperatorCall) -> None:
    assert axes_of(unknown, DEVICES) is None


def left_to_the_function(of: OperatorCall) -> list[str]:
    found = axes_of(of, DEVICES)
    assert found is not None
    return [axis.name for axis in found.axes if axis.judged]


def test_axes_of_which_a_function_says_what_follows_are_marked() -> None:
    image = call("Conv2D", tensor(8, 8, 32, 32), tensor(16, 8, 3, 3), out=(8, 16, 32, 32))
    assert left_to_the_function(image) == ["h", "w"]
    table = call("Gather", tensor(64, 32), tensor(8), constant(0), constant(0), out=(8, 32))
    assert left_to_the_function(table) == ["t0"]
    silent = call("ReduceSum", tensor(8, 64), constant((0,)), out=(64,), cross_batch=True)
    assert left_to_the_function(silent) == ["x1", "x"]


@pytest.mark.parametrize(("group_size", "names"), [({}, []), ({"group_size": 2}, ["n"])])
def test_an_attribute_may_leave_axes_to_the_function(
    group_size: dict[str, object], names: list[str]
) -> None:
    vectors = [tensor(16)] * 4
    of = call("BatchNorm", tensor(8, 16, 4, 4), *vectors, out=(8, 16, 4, 4), **group_size)
    assert left_to_the_function(of) == names


def test_the_axes_of_unknown_sizes_are_told_too() -> None:
    found = axes_of(call("ReLU", tensor(-1, 16), out=(-1, 16)), DEVICES)
    assert found is not None
    assert [axis.entries for axis in found.axes] == [((0, 0),), ((0, 1),)]


def test_a_strategy_may_be_one_of_the_output() -> None:
    of = call("OneHot", tensor(64), constant(32), tensor(), tensor(), constant(-1), out=(64, 32))
    found = axes_of(of, DEVICES)
    assert found is not None
    assert found.rows == ((64, 32), (), ())
    assert [(axis.entries, axis.inputs) for axis in found.axes] == [
        (((0, 0),), ((0, 0),)),
        (((0, 1),), ()),
    ]


@pytest.mark.parametrize(
    ("of", "limits"),
    [
        # twelve heads, whatever the hidden size
        (
            OperatorCall(
                "FlashAttentionScore",
                (
                    *(tensor(8, 64, 192) for _ in range(3)),
                    *(constant(None) for _ in range(7)),
                    constant(12),
                ),
                (tensor(8, 12, 64, 8), tensor(8, 12, 64, 8), tensor(1), tensor(8, 64, 192)),
                {"input_layout": "BSH", "sparse_mode": 0},
            ),
            {"b": 8, "s": 64, "n": 12},
        ),
        # a repeated dimension is cut into its repetitions
        (call("Tile", tensor(8, 16), constant((6, 1)), out=(48, 16)), {"x0": 6, "x1": 16}),
        # what is written into a dimension of one can not be split
        (call("InplaceCopy", tensor(8, 1), tensor(8, 4), out=(8, 1)), {"x1": 8, "x": 1}),
    ],
)
def test_what_a_split_must_divide(of: OperatorCall, limits: dict[str, int]) -> None:
    found = axes_of(of, DEVICES)
    assert found is not None
    assert {axis.name: axis.limit for axis in found.axes} == limits


@given(st.sampled_from(sorted(CALLS)), st.data())
def test_splits_along_axes_are_legal_and_cut_what_lies_along_them(
    name: str, data: st.DataObject
) -> None:
    asked, axes = CALLS[name], told(name)
    values = [data.draw(st.sampled_from((1, 2, 4)), axis.name) for axis in axes.axes]
    if prod(values) > DEVICES.stage_size:
        return
    judgement = judge(asked, strategy_of(axes, values), DEVICES)
    assert judgement.verdict == "legal"
    matrix = [values[at] for at in axes.order if values[at] > 1]
    matrix += [judgement.repeats] if judgement.repeats > 1 else []
    assert [size for size in judgement.device_matrix if size > 1] == matrix
    for side, tensors, slices in (
        ("inputs", asked.tensors, judgement.input_slices),
        ("outputs", asked.results, judgement.output_slices),
    ):
        for at, operand in enumerate(tensors):
            expected = list(operand.shape or ())
            for axis, value in zip(axes.axes, values, strict=True):
                for place, dimension in getattr(axis, side):
                    if place == at:
                        expected[dimension] //= value
            assert slices[at] == tuple(expected)
    summed = prod(value for axis, value in zip(axes.axes, values, strict=True)
                  if axis.role == "summed")  # fmt: skip
    assert [len(one.ranks) for one in judgement.collectives] == ([summed] if summed > 1 else [])


def strategy_of(axes: CallAxes, values: list[int]) -> Strategy:
    rows = [[1] * len(row) for row in axes.rows]
    for axis, value in zip(axes.axes, values, strict=True):
        for row, dimension in axis.entries:
            rows[row][dimension] = value
    return tuple(tuple(row) for row in rows)

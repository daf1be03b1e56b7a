"""Which tensors of a run are one value, who makes it and who reads it: small runs by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from irtool.compare.tensors.model import NAN, Columns, Op, Phase, Shape
from irtool.compare.tensors.pairing.across import Partners
from irtool.compare.tensors.pairing.flow import Flow, Value
from tests.compare.operators import run

SIZE: Shape = (4, 4)


class Calls:
    """Calls that read and make tensors; a number stands for a tensor of that norm."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.ops: list[Op] = []

    def tensor(
        self,
        norm: float,
        shape: Shape = SIZE,
        extremes: tuple[float, float] | None = None,
        dtype: str = "Float32",
    ) -> int:
        most, least = extremes or (norm / 2, -norm / 3)
        return self.columns.add("t", dtype, shape, (most, least, NAN, norm))

    def call(
        self,
        type_: str,
        reads: Sequence[float | int | None],
        makes: Sequence[float],
        phase: Phase = "forward",
        call: str = "",
        shape: Shape = SIZE,
        attributes: dict[str, object] | None = None,
        is_module: bool = False,
    ) -> Op:
        op = Op(
            len(self.ops), f"{type_}.{len(self.ops)}", type_, phase,
            [self.tensor(norm) for norm in reads if norm is not None],
            [self.tensor(norm, shape) for norm in makes],
            call=call, attributes=attributes or {}, is_module=is_module,
        )  # fmt: skip
        self.ops.append(op)
        return op

    @property
    def flow(self) -> Flow:
        return Flow(run(self.columns, self.ops))


def described(value: Value) -> tuple[float, str, list[str]]:
    maker = "" if value.maker is None else value.maker.name
    return value.figures[0], maker, [op.name for op in value.readers]


# -- values --------------------------------------------------------------------------------------


def test_tensors_of_the_same_figures_are_one_value() -> None:
    calls = Calls()
    calls.call("linear", [1.0, 2.0], [3.0], call="linear.0")
    calls.call("relu", [3.0], [4.0], call="relu.0")
    calls.call("add", [4.0, 3.0], [5.0], call="add.0")
    flow = calls.flow
    assert [described(value) for value in flow.values] == [
        (1.0, "", ["linear.0"]),
        (2.0, "", ["linear.0"]),
        (3.0, "linear.0", ["relu.1", "add.2"]),
        (4.0, "relu.1", ["add.2"]),
        (5.0, "add.2", []),
    ]
    assert [value.number for value in flow.values] == [0, 1, 2, 3, 4]
    assert flow.values[2].places == [2, 3, 6]
    assert flow.values[2].made == 2
    assert (flow.values[0].made, flow.values[0].size) == (-1, 16)
    assert flow.values[0].unit == 2.0**-24
    assert [value.number for value in flow.inputs(calls.ops[2])] == [3, 2]
    assert [value.number for value in flow.outputs(calls.ops[2])] == [4]
    assert flow.forward == {0, 1, 2}
    assert not flow.is_graph


def test_who_reads_a_value_twice_reads_it_once() -> None:
    calls = Calls()
    op = calls.call("mul", [1.0, 1.0], [2.0], call="mul.0")
    flow = calls.flow
    assert flow.values[0].readers == [op]
    assert [value.number for value in flow.inputs(op)] == [0]


def test_a_view_is_no_call_and_makes_no_value() -> None:
    calls = Calls()
    calls.call("linear", [1.0], [2.0], call="linear.0")
    calls.call("transpose", [2.0], [2.0], call="transpose.0")
    last = calls.call("relu", [2.0], [3.0], call="relu.0")
    flow = calls.flow
    assert [op.type for op in flow.calls] == ["linear", "relu"]
    assert flow.values[1].readers == [last]
    assert flow.values[1].places == [1, 2, 3, 4]


def test_who_makes_something_new_besides_is_a_call() -> None:
    calls = Calls()
    split = calls.call("split", [1.0], [1.0, 2.0], call="split.0")
    flow = calls.flow
    assert flow.calls == [split]
    assert [value.number for value in flow.outputs(split)] == [1]


def test_modules_optimizers_and_parameters_are_no_calls() -> None:
    calls = Calls()
    calls.call("Linear", [1.0], [2.0], call="m", is_module=True)
    calls.call("Parameter", [], [3.0])
    calls.call("addcdiv_", [4.0], [5.0], phase="optimizer")
    assert calls.flow.calls == []
    assert calls.flow.values == []


@pytest.mark.parametrize(("apart", "is_same"), [(0.9e-5, True), (1.1e-5, False)])
def test_norms_may_differ_by_the_order_of_adding_up(apart: float, is_same: bool) -> None:
    calls = Calls()
    places = [
        calls.tensor(1.0, extremes=(0.5, -0.5)),
        calls.tensor(1 + apart, extremes=(0.5, -0.5)),
    ]
    calls.ops.append(Op(0, "add", "add", "forward", places, [], call="add.0"))
    assert len(calls.flow.values) == (1 if is_same else 2)


@pytest.mark.parametrize(
    ("shape", "extremes"), [((2, 4), (0.5, -0.5)), (SIZE, (0.5, -0.4)), (SIZE, (0.6, -0.5))]
)
def test_size_and_extremes_tell_values_apart(shape: Shape, extremes: tuple[float, float]) -> None:
    calls = Calls()
    places = [calls.tensor(1.0, extremes=(0.5, -0.5)), calls.tensor(1.0, shape, extremes)]
    calls.ops.append(Op(0, "add", "add", "forward", places, [], call="add.0"))
    assert len(calls.flow.values) == 2


@pytest.mark.parametrize(
    ("norm", "shape", "extremes", "dtype", "is_value"),
    [
        (1.0, SIZE, (0.5, -0.5), "Float32", True),
        (1.0, SIZE, (0.5, -0.5), "Int32", False),
        (1.0, SIZE, (0.25, 0.25), "Float32", False),  # a constant is like any other
        (0.25, (), (0.25, 0.25), "Float32", True),
        (1.0, (), (1.0, 1.0), "Float32", False),
        (0.0, (), (0.0, 0.0), "Float32", False),
        (1.0, (), (-1.0, -1.0), "Float32", False),
        (math.nan, SIZE, (0.5, -0.5), "Float32", False),
        (math.inf, SIZE, (0.5, -0.5), "Float32", False),
        (1.0, SIZE, (math.nan, math.nan), "Float32", False),
    ],
)
def test_what_can_be_told_from_other_tensors(
    norm: float, shape: Shape, extremes: tuple[float, float], dtype: str, is_value: bool
) -> None:
    calls = Calls()
    place = calls.tensor(norm, shape, extremes, dtype)
    calls.ops.append(Op(0, "relu", "relu", "forward", [place], [], call="relu.0"))
    flow = calls.flow
    assert (flow.value(place) is not None) == is_value
    assert (flow.find(place) is not None) == is_value


def test_what_is_repeated_is_the_same_value() -> None:
    calls = Calls()
    calls.call("linear", [1.0], [2.0], call="linear.0")
    calls.call("expand", [2.0], [8.0], call="expand.0", shape=(4, 64))
    reader = Op(2, "relu", "relu", "forward", [calls.tensor(8.0, (4, 64))], [], call="relu.0")
    calls.ops.append(reader)
    flow = calls.flow
    assert [op.type for op in flow.calls] == ["linear", "relu"]
    assert flow.values[1].readers == [reader]
    assert flow.find(calls.tensor(8.0, (4, 64))) is flow.values[1]


# -- gradients -----------------------------------------------------------------------------------


def test_a_gradient_is_another_value_than_a_tensor_of_the_same_figures() -> None:
    calls = Calls()
    calls.call("relu", [1.0], [2.0], call="relu.0")
    first = calls.call("relu", [2.0], [1.0], phase="backward", call="relu.0")
    calls.call("relu", [7.0], [8.0], phase="backward", call="relu.0")
    flow = calls.flow
    assert [value.is_gradient for value in flow.values] == [False, False, True, True, True, True]
    assert flow.gradient_calls == {"relu.0": first}
    assert flow.forward == {0}
    assert flow.forward_readers(flow.values[0]) == [calls.ops[0]]
    outside = calls.tensor(2.0)
    assert flow.at(outside) is flow.values[1]
    assert flow.at(outside, True) is flow.values[2]


def test_in_a_graph_nobody_says_what_is_a_gradient() -> None:
    calls = Calls()
    calls.call("ReLU", [1.0], [2.0])
    calls.call("ReluGrad", [2.0], [1.5], phase="backward")
    flow = calls.flow
    assert flow.is_graph
    assert [value.is_gradient for value in flow.values] == [False, False, False]
    assert len(flow.values[1].readers) == 1


# -- the forward pass of a graph -----------------------------------------------------------------


def graph(*, with_loss: bool = True, beside: int = 1) -> Calls:
    """A product, a loss of one number, and what does not lead to it."""
    calls = Calls()
    calls.call("MatMul", [1.0, 2.0], [3.0])
    calls.call("Loss", [3.0], [4.0] if with_loss else [5.0], shape=() if with_loss else SIZE)
    for number in range(beside):
        calls.call("MatMul", [3.0], [10.0 + number])
    return calls


def test_the_forward_pass_of_a_graph_is_what_the_loss_is_made_of() -> None:
    flow = graph().flow
    assert flow.loss is not None
    assert flow.loss.figures[0] == 4.0
    assert flow.forward == {0, 1}


@pytest.mark.parametrize(("beside", "forward"), [(2, {0, 1}), (3, {0, 1, 2, 3, 4})])
def test_a_loss_of_less_than_half_of_all_is_none(beside: int, forward: set[int]) -> None:
    assert graph(beside=beside).flow.forward == forward


def test_without_a_loss_the_dump_says_what_is_forward() -> None:
    calls = graph(with_loss=False)
    calls.call("MatMulGrad", [3.0], [6.0], phase="backward")
    flow = calls.flow
    assert flow.loss is None
    assert flow.forward == {0, 1, 2}


def test_numbers_among_the_attributes_of_a_graph_are_read() -> None:
    calls = Calls()
    scale = calls.call("Sum", [1.0], [], shape=())
    scale.outputs = [calls.tensor(0.25, (), (0.25, 0.25))]
    reader = calls.call("Muls", [2.0], [3.0], attributes={"scale": 0.25, "other": 0.5, "on": True})
    flow = calls.flow
    (number,) = flow.scalars(reader)
    assert number.maker is scale
    assert [value.figures[0] for value in flow.inputs(reader)] == [2.0, 0.25]
    assert list(flow.scalars(scale)) == []


def test_calls_of_an_interface_have_numbers_of_their_own() -> None:
    calls = Calls()
    scale = calls.call("sum", [1.0], [], call="sum.0")
    scale.outputs = [calls.tensor(0.25, (), (0.25, 0.25))]
    reader = calls.call("mul", [2.0], [3.0], call="mul.0", attributes={"scale": 0.25})
    assert list(calls.flow.scalars(reader)) == []


# -- partners ------------------------------------------------------------------------------------


def partner(left: tuple[float, float, float], right: tuple[float, float, float],
            dtype: str = "Float32", shape: Shape = SIZE) -> bool:  # fmt: skip
    """Whether tensors of these norms and extremes are the same value of two runs."""
    flows: list[Flow] = []
    for number, (norm, most, least) in enumerate((left, right)):
        calls = Calls()
        place = calls.tensor(norm, shape if number else SIZE, (most, least), dtype)
        calls.ops.append(Op(0, "relu", "relu", "forward", [place], [], call="relu.0"))
        flows.append(calls.flow)
    return bool(Partners(flows[0], flows[1]).of_left)


@pytest.mark.parametrize(
    ("apart", "dtype", "are_partners"),
    [
        (0.99e-4, "Float32", True),
        (1.02e-4, "Float32", False),
        (3.9 * 2.0**-11, "Float16", True),
        (4.1 * 2.0**-11, "Float16", False),
        (3.9 * 2.0**-8, "BFloat16", True),
        (4.1 * 2.0**-8, "BFloat16", False),
    ],
)
def test_values_of_two_frameworks_differ_by_rounding(
    apart: float, dtype: str, are_partners: bool
) -> None:
    assert partner((1.0, 0.5, -0.5), (1 - apart, 0.5, -0.5), dtype) == are_partners
    assert partner((1 - apart, 0.5, -0.5), (1.0, 0.5, -0.5), dtype) == are_partners
    assert partner((1.0, 0.5, -0.5), (1.0, 0.5 * (1 - apart), -0.5), dtype) == are_partners
    assert partner((1.0, 0.5, -0.5), (1.0, 0.5, -0.5 * (1 - apart)), dtype) == are_partners


def test_values_of_another_size_are_others() -> None:
    assert not partner((1.0, 0.5, -0.5), (1.0, 0.5, -0.5), shape=(4, 5))


def test_the_nearest_values_go_together() -> None:
    flows: list[Flow] = []
    for norms in ((1.0, 1.00005), (1.00004, 1.0)):
        calls = Calls()
        for norm in norms:
            place = calls.tensor(norm, extremes=(0.5, -0.5))
            calls.ops.append(
                Op(len(calls.ops), "relu", "relu", "forward", [place], [], call=f"relu.{norm}")
            )
        flows.append(calls.flow)
    found = Partners(flows[0], flows[1])
    assert {a: b.number for a, b in found.of_left.items()} == {0: 1, 1: 0}
    assert {b: a.number for b, a in found.of_right.items()} == {0: 1, 1: 0}


def test_alike_values_go_together_in_their_order() -> None:
    """Figures that are nearer than a millionth say nothing: the order of calls does."""
    flows: list[Flow] = []
    for norms in ((1.0, 1.00003), (1.0 + 2e-7, 1.00003)):
        calls = Calls()
        for number, norm in enumerate(norms):
            place = calls.tensor(norm, extremes=(0.5, -0.5))
            calls.ops.append(
                Op(number, "relu", "relu", "forward", [place], [], call=f"relu.{number}")
            )
        flows.append(calls.flow)
    found = Partners(flows[0], flows[1])
    assert {a: b.number for a, b in found.of_left.items()} == {0: 0, 1: 1}


def test_a_value_has_one_partner() -> None:
    calls = [Calls(), Calls()]
    for each in calls:
        each.call("relu", [1.0], [2.0], call="relu.0")
    found = Partners(calls[0].flow, calls[1].flow)
    first, second = found.left.values
    assert not found.pair(first, found.right.values[1])
    assert found.of_left[0] is found.right.values[0]
    assert found.of_right[1] is second


def test_the_result_of_a_call_is_known_by_its_parameters() -> None:
    """Behind a fault: the same weight, other results; then what is made of it."""
    sides: list[Calls] = []
    for fault in (1.0, 3.0):
        calls = Calls()
        calls.call("linear", [1.0 * fault, 2.0], [5.0 * fault], call="linear.0")
        sides.append(calls)
    found = Partners(sides[0].flow, sides[1].flow)
    numbers = {a: b.number for a, b in found.of_left.items()}
    # the weight by its figures, the result by the weight, and what the product reads besides
    assert numbers == {1: 1, 2: 2, 0: 0}


@pytest.mark.parametrize(("shape", "are_partners"), [(SIZE, True), ((2, 2), False)])
def test_what_is_left_of_two_equal_sums_goes_together_if_its_size_does(
    shape: Shape, are_partners: bool
) -> None:
    """Both add what they just computed, which differs, to the same; the results are alike."""
    sides: list[Calls] = []
    for norm, size in ((7.0, SIZE), (21.0, shape)):
        calls = Calls()
        calls.call("exp", [1.0], [norm], call="exp.0", shape=size)
        adds = calls.call("add", [2.0], [5.0], call="add.0")
        adds.inputs = [calls.tensor(norm, size), *adds.inputs]
        sides.append(calls)
    flows = sides[0].flow, sides[1].flow
    found = Partners(*flows)
    partners = {flows[0].values[a].figures[0]: b.figures[0] for a, b in found.of_left.items()}
    assert partners.get(7.0) == (21.0 if are_partners else None)
    assert partners.items() >= {1.0: 1.0, 2.0: 2.0, 5.0: 5.0}.items()

"""What differs in how two operators were called, and what of it others have computed."""

from __future__ import annotations

import math

import pytest

import irtool
from irtool.compare.tensors.judging.arguments import changed_arguments, computed_scalars
from irtool.compare.tensors.model import Columns, Op, Shape
from irtool.compare.tensors.pairing.operators import How, OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.ir.graph import Node
from tests.compare.operators import operator, tensor


def op(
    type_: str = "add", attributes: dict[str, object] | None = None, node: Node | None = None,
    call: str = "",
) -> Op:  # fmt: skip
    return Op(
        0, type_, type_, "forward", [0], [1], attributes=attributes or {}, node=node, call=call
    )


def changes(
    left: Op,
    right: Op,
    shapes: tuple[Shape, Shape] = ((4, 4), (4, 4)),
    slots: Slots | None = None,
    *,
    how: How = "order",
    worst: float = 0.0,
    changed: dict[Node, list[str]] | None = None,
) -> list[str]:
    columns = [Columns(), Columns()]
    for one, shape in zip(columns, shapes, strict=True):
        for label in ("input.0", "output.0", "input.1", "input.2"):
            tensor(one, label, shape)
    pair = OpPair(left, right, how)
    slots = slots or Slots(((0, 0),), ((1, 1),))
    found = changed_arguments(pair, slots, columns[0], columns[1], changed or {}, worst)
    return [str(change) for change in found]


def test_equal_calls_differ_in_nothing() -> None:
    assert changes(op(), op()) == []
    assert changes(op("Add"), op("add")) == []


def test_another_operator_or_attribute_is_told() -> None:
    assert changes(op("add"), op("sub")) == ["operator: add → sub"]
    one, other = op(attributes={"axis": -1}), op(attributes={"axis": -2})
    assert changes(one, other) == ["axis: -1 → -2"]


def test_another_shape_of_as_many_dimensions_is_told() -> None:
    assert changes(op(), op(), ((4, 4), (4, 8))) == [
        "input.0 shape: (4, 4) → (4, 8)",
        "output.0 shape: (4, 4) → (4, 8)",
    ]
    assert changes(op(), op(), ((4, 4), (16,))) == []


def test_a_tensor_that_one_side_lacks_is_told() -> None:
    both = Slots(((0, 0),), ((1, 1),), (2,), ())
    assert changes(op(), op(), slots=both) == ["input.1: Float32[4, 4] → (none)"]
    assert changes(op(), op(), slots=both, how="graph") == []  # the graphs say it themselves
    two = Slots(((0, 0),), ((1, 1),), (2,), (2, 3))
    assert changes(op(), op(), slots=two) == [
        "input.1: Float32[4, 4] → (none)",
        "input.1: (none) → Float32[4, 4]",
        "input.2: (none) → Float32[4, 4]",
    ]
    assert changes(op(), op(), slots=Slots((), (), (2,), (3,))) == []  # as many: called otherwise


NUMBERS = {"input.1": 1.0, "input.2": 5.0}
NEAR = {"input.1": 1.001, "input.2": 5.0}


def test_numbers_no_further_apart_than_what_went_before_may_have_been_computed() -> None:
    """0.1 % apart, where up to ten times the worst error before is believed."""
    assert changes(op(attributes=NUMBERS), op(attributes=NEAR)) == ["input.1: 1 → 1.001"]
    assert changes(op(attributes=NUMBERS), op(attributes=NEAR), worst=1.1e-4) == []
    assert changes(op(attributes=NUMBERS), op(attributes=NEAR), worst=0.9e-4) != []


def test_calls_of_an_interface_have_numbers_of_the_program() -> None:
    one, other = op(attributes=NUMBERS, call="a.0"), op(attributes=NEAR, call="a.0")
    assert changes(one, other, worst=1.0) == ["input.1: 1 → 1.001"]


def test_how_far_computed_numbers_are_apart() -> None:
    pair = OpPair(op(attributes=NUMBERS), op(attributes=NEAR), "order")
    assert computed_scalars(pair, 1e-2) == pytest.approx(0.001 / 1.001)
    assert computed_scalars(pair, 0.0) == 0.0
    assert computed_scalars(OpPair(op(attributes=NUMBERS), op(), "order"), 1.0) == 0.0
    assert computed_scalars(OpPair(op(), op(attributes=NUMBERS), "order"), 1.0) == 0.0
    infinite = op(attributes={"input.1": math.inf})
    assert computed_scalars(OpPair(op(attributes=NUMBERS), infinite, "order"), 1.0) == 0.0
    whole = OpPair(op(attributes={"input.1": 1}), op(attributes={"input.1": 2}), "order")
    assert computed_scalars(whole, 1.0) == 0.0


GRAPH = """\
# IR entry: @net_1
%para1_x: <Ref[Tensor[Float32]], (4, 4), ref_key=x>  :  has_default

subgraph @net_1() {
  %0(a) = Sqrt(%para1_x)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  %1(b) = Load(%0, U)
      : (<Tensor[Float32], (4, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (4, 4)>)
  %2(c) = Adam(%para1_x, %1, F32(0.5))
      : (<Tensor[Float32], (4, 4)>, <Tensor[Float32], (4, 4)>, <Float32, NoShape>) -> (<Tensor[Float32], (4, 4)>)
  Return(%2)
      : (<Tensor[Float32], (4, 4)>)
}
"""  # noqa: E501  (lines as MindSpore prints them)


def test_the_graph_says_which_numbers_are_computed() -> None:
    """Input 1 comes of an operator, seen through Load; input 2 is a constant."""
    node = irtool.loads(GRAPH).graphs[0].nodes[2]
    left = op(attributes={"input.1": 1.0, "input.2": 0.5}, node=node)
    right = op(attributes={"input.1": 3.0, "input.2": 0.7})
    assert changes(left, right) == ["input.2: 0.5 → 0.7"]
    assert computed_scalars(OpPair(left, right, "graph"), 0.0) == pytest.approx(2 / 3)


@pytest.mark.parametrize("source", ["%0", "%para1_x"])
@pytest.mark.parametrize("loads", [1, 20, 21])
def test_a_number_is_looked_for_behind_twenty_loads(loads: int, source: str) -> None:
    """What an operator makes is computed, a parameter is not; further away nobody looks."""
    tensor = "<Tensor[Float32], (4, 4)>"
    lines = "".join(
        f"  %{n}(b{n}) = Load(%{n - 1}, U)\n      : ({tensor}, <UMonad, NoShape>) -> ({tensor})\n"
        for n in range(1, loads + 1)
    ).replace("Load(%0,", f"Load({source},")
    before, _, rest = GRAPH.partition("  %1(b)")
    text = before + lines + rest.partition(f"-> ({tensor})\n")[2]
    text = text.replace("%2(c)", "%99(c)").replace("Return(%2)", "Return(%99)")
    text = text.replace("%1, F32", f"%{loads}, F32")
    node = irtool.loads(text).graphs[0].nodes[-2]
    assert node.op == "Adam"
    left = op(attributes={"input.1": 1.0}, node=node)
    told = changes(left, op(attributes={"input.1": 3.0}))
    is_computed = source == "%0" or loads > 20
    assert told == ([] if is_computed else ["input.1: 1 → 3"])


def test_without_an_error_before_no_number_is_computed() -> None:
    columns = [Columns(), Columns()]
    pair = OpPair(op(attributes={"input.1": 1.0}), op(attributes={"input.1": 1.01}), "order")
    (found,) = changed_arguments(pair, Slots((), ()), *columns, {})
    assert str(found) == "input.1: 1 → 1.01"


def test_what_the_graphs_say_of_the_node_is_told() -> None:
    node = irtool.loads(GRAPH).graphs[0].nodes[2]
    said = {node: ["beta1: 0.9 → 0.8"]}
    assert changes(op(node=node), op(), changed=said) == ["beta1: 0.9 → 0.8"]
    assert changes(op(), op(), changed=said) == []


@pytest.mark.parametrize(("divisor", "told"), [(4.0, []), (4.1, ["operator: __mul__ → __truediv__",
                                                              "input.1: 0.25 → 4.1"])])  # fmt: skip
def test_a_factor_and_its_inverse_are_one_number(divisor: float, told: list[str]) -> None:
    assert (
        changes(op("__mul__", {"input.1": 0.25}), op("__truediv__", {"input.1": divisor})) == told
    )


def test_arguments_of_one_function_under_two_names_are_counted_otherwise() -> None:
    left, right = op("matmul", call="a"), op("einsum", {"input.0": "bqd,bkd->bqk"}, call="b")
    assert changes(left, right) == ["operator: matmul → einsum"]
    left, right = op("relu", call="a"), op("leaky_relu", {"slope": 0.1}, call="b")
    assert changes(left, right) == ["operator: relu → leaky_relu", "slope: (none) → 0.1"]


@pytest.mark.parametrize(
    ("own", "norms", "is_exchanged"),
    [
        ((2.0, 3.0), (2.0, 3.0), False),
        ((2.0, 3.0), (3.0, 2.0), True),
        ((2.0, 3.0), (3.0, 3.0), False),
        ((2.0, 3.0), (2.5, 2.0), False),
        ((2.0, 2.0077), (2.0077, 2.0), False),  # together off by 1/128 of the first: rounding
        ((2.0, 2.0079), (2.0079, 2.0), True),
    ],
)
def test_operands_that_changed_places_show_in_their_norms(
    own: tuple[float, float], norms: tuple[float, float], is_exchanged: bool
) -> None:
    """Figures of the result, which is transposed, do not tell."""
    columns = [Columns(), Columns()]
    sides = [
        operator(one, "matmul", [((4, 4), a), ((4, 4), b)], ((4, 4), 1.0))
        for one, (a, b) in zip(columns, (own, norms), strict=True)
    ]
    slots = Slots(((0, 0), (1, 1)), ((2, 2),))
    found = changed_arguments(OpPair(sides[0], sides[1], "order"), slots, *columns, {})
    wanted = ["operands: in this order → exchanged"] if is_exchanged else []
    assert [str(change) for change in found] == wanted


@pytest.mark.parametrize(
    "name", ["input.need_weights", "input.average_attn_weights", "input.return_indices"]
)
def test_what_else_a_call_is_to_give_changes_no_number(name: str) -> None:
    assert changes(op(attributes={name: False}), op(attributes={name: True})) == []


def test_a_further_result_is_no_difference_and_a_first_one_is() -> None:
    columns = [Columns(), Columns()]
    for one in columns:
        for label in ("input.0", "output.0", "output.1"):
            tensor(one, label)
    pair = OpPair(op(), op(), "order")
    for lone, expected in ((2, []), (1, ["output.0: (none) → Float32[4, 4]"])):
        slots = Slots(((0, 0),), (), (), (lone,))
        assert list(map(str, changed_arguments(pair, slots, *columns, {}))) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("index_add", "scatter_add", ["operator: index_add → scatter_add"]),
        ("index_add", "mul", ["operator: index_add → mul", "dim: 0 → 1"]),
    ],
)
def test_of_functions_that_do_the_same_arguments_are_not_compared(
    ours: str, theirs: str, expected: list[str]
) -> None:
    """``dim`` of one is not ``dim`` of the other, and their results say whether they agree."""
    left, right = op(ours, {"dim": 0}, call="c"), op(theirs, {"dim": 1}, call="c")
    assert changes(left, right) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "is_one"),
    [
        ("__truediv__", "div", True),
        ("__iadd__", "add", True),
        ("__sub__", "sub", True),
        ("__rsub__", "__sub__", False),  # the other way round
        ("__rsub__", "rsub", False),
        ("sqrt", "rsqrt", False),
        ("mystery", "riddle", False),
    ],
)
def test_methods_operators_and_functions_of_one_name_are_one_function(
    ours: str, theirs: str, is_one: bool
) -> None:
    found = changes(op(ours, call="c"), op(theirs, call="c"))
    assert found == ([] if is_one else [f"operator: {ours} → {theirs}"])

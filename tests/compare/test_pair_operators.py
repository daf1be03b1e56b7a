"""Which operators of two dumps are the same one: each way of knowing, by calls made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import irtool
from irtool.compare.tensors.model import NAN, Columns, Op, Phase, Shape, TensorRun
from irtool.compare.tensors.pairing.operators import kind_of, pair_operators
from irtool.ir.graph import Node
from tests.compare.operators import tensor


class Side:
    """One dump, call by call."""

    def __init__(self, framework: str = "pytorch", kind: str = "msprobe") -> None:
        self.columns = Columns()
        self.ops: list[Op] = []
        self.framework, self.kind = framework, kind

    def call(
        self, name: str, type_: str, inputs: Sequence[Shape] = ((4, 4),), output: Shape = (4, 4),
        norm: float = NAN, parameter: float = NAN, phase: Phase = "forward", call: str = "?",
        owner: str = "", is_module: bool = False, node: Node | None = None,
        extremes: tuple[float, float] = (2.0, -2.0),
    ) -> Side:  # fmt: skip
        columns = self.columns
        given = [tensor(columns, f"input.{n}", shape) for n, shape in enumerate(inputs)]
        parameters: list[int] = []
        if parameter == parameter:
            given.append(tensor(columns, "weight", (4, 4), norm=parameter, extremes=(2.0, -2.0)))
            parameters.append(given[-1])
        put = tensor(columns, "output.0", output, norm=norm, extremes=extremes)
        self.ops.append(
            Op(len(self.ops), name, type_, phase, given, [put], frozenset(parameters), owner=owner,
               call=name if call == "?" else call, is_module=is_module, node=node)
        )  # fmt: skip
        return self

    def run(self, *, order_known: bool = True) -> TensorRun:
        return TensorRun(
            "x", self.kind, "statistics", self.framework, self.columns, self.ops,  # type: ignore[arg-type]
            order_known=order_known,
        )  # fmt: skip


def pairs(left: Side, right: Side, **options: object) -> list[tuple[str, str, str]]:
    found = pair_operators(left.run(), right.run(), **options)  # type: ignore[arg-type]
    places = [pair.left.index for pair in found]
    assert places == sorted(set(places)), "each once, in the order of the left dump"
    assert len({pair.right.index for pair in found}) == len(found)
    return [(pair.left.name, pair.right.name, pair.how) for pair in found]


def named(*names: str, **more: object) -> Side:
    """Calls of operators by their names: ``relu.0``."""
    side = Side()
    for name in names:
        side.call(name, name.partition(".")[0], **more)  # type: ignore[arg-type]
    return side


def test_pairs_stand_in_the_order_of_the_left_dump_whatever_told_them() -> None:
    """What the map says is paired first, though it ran last."""
    names = ("relu.0", "exp.0", "tanh.0", "sin.0")
    found = pairs(named(*names), named(*names), given={"sin.0": "sin.0", "exp.0": "exp.0"})
    assert [(left, how) for left, _, how in found] == [
        ("relu.0", "order"), ("exp.0", "map"), ("tanh.0", "order"), ("sin.0", "map"),
    ]  # fmt: skip


def test_calls_in_the_same_order() -> None:
    found = pairs(named("relu.0", "exp.0", "relu.1"), named("relu.0", "exp.0", "relu.1"))
    assert found == [(name, name, "order") for name in ("relu.0", "exp.0", "relu.1")]


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_call_more_moves_all_behind_it(place: int) -> None:
    """Equal names are different calls then."""
    types = ["relu", "exp", "tanh"]
    left = named(*(f"{kind}.0" for kind in types))
    types.insert(place, "relu")
    counts: dict[str, int] = {}
    right = Side()
    for kind in types:
        right.call(f"{kind}.{counts.get(kind, 0)}", kind)
        counts[kind] = counts.get(kind, 0) + 1
    found = pairs(left, right)
    assert [pair[0] for pair in found] == ["relu.0", "exp.0", "tanh.0"]
    assert [pair[1] for pair in found[1:]] == ["exp.0", "tanh.0"]
    turned = [(b, a) for a, b, _ in pairs(right, left)]
    assert turned == [(a, b) for a, b, _ in found]


def test_what_one_side_lacks_is_left_alone() -> None:
    left = named("relu.0", "softmax.0", "layer_norm.0", "softmax.1", "relu.1")
    found = pairs(left, named("relu.0", "softmax.0", "relu.1"))
    assert [b for _, b, _ in found] == ["relu.0", "softmax.0", "relu.1"]
    assert (found[0][0], found[2][0]) == ("relu.0", "relu.1")
    assert found[1][0].startswith("softmax")


def test_other_shapes_are_other_calls_at_first_and_the_same_kind_later() -> None:
    left = Side().call("relu.0", "relu", [(4, 4)]).call("relu.1", "relu", [(8, 2)], (8, 2))
    right = Side().call("relu.0", "relu", [(8, 2)], (8, 2))
    assert pairs(left, right) == [("relu.1", "relu.0", "order")]
    other = Side().call("gelu.0", "gelu", [(4, 4)])
    assert pairs(left, other) == [("relu.0", "gelu.0", "order")]  # another of the same family
    far = Side().call("gelu.0", "gelu", [(5, 5)], (5, 5))
    assert pairs(left, far) == []


def test_reductions_of_the_same_inputs_are_the_same_whatever_comes_out() -> None:
    left = Side().call("mean.0", "mean", [(4, 6)], (4,))
    assert pairs(left, Side().call("mean.0", "mean", [(4, 6)], (6,))) == [
        ("mean.0", "mean.0", "order")
    ]
    assert pairs(left, Side().call("sum.0", "sum", [(4, 6)], (6,))) == []
    exp = Side().call("exp.0", "exp", [(4, 6)], (4, 6))
    assert pairs(exp, Side().call("exp.0", "exp", [(4, 6)], (6,))) == []


def test_phases_are_apart() -> None:
    left = named("relu.0", phase="forward")
    assert pairs(left, named("relu.0", phase="backward")) == []
    both = named("relu.0", phase="optimizer")
    assert pairs(both, both) == [("relu.0", "relu.0", "order")]


def test_parameters_tell_calls_that_changed_places() -> None:
    left, right = Side(), Side()
    for n, norm in enumerate((1.0, 2.0, 3.0)):
        left.call(f"linear.{n}", "linear", parameter=norm)
    for n, norm in enumerate((3.0, 1.0, 2.0)):
        right.call(f"linear.{n}", "linear", parameter=norm)
    assert pairs(left, right) == [
        ("linear.0", "linear.1", "parameters"),
        ("linear.1", "linear.2", "parameters"),
        ("linear.2", "linear.0", "parameters"),
    ]


@pytest.mark.parametrize(("norm", "how"), [(1.0004, "parameters"), (1.002, "order")])
def test_parameters_are_the_same_by_four_digits(norm: float, how: str) -> None:
    left = Side().call("linear.0", "linear", parameter=1.0)
    right = Side().call("linear.0", "linear", parameter=norm)
    assert pairs(left, right) == [("linear.0", "linear.0", how)]


def test_parameters_that_several_read_or_that_are_zero_tell_nothing() -> None:
    twice = (
        Side().call("linear.0", "linear", parameter=1.0).call("linear.1", "linear", parameter=1.0)
    )
    assert [how for *_, how in pairs(twice, twice)] == ["order", "order"]
    zeros = Side().call("linear.0", "linear", parameter=0.0)
    assert [how for *_, how in pairs(zeros, zeros)] == ["order"]


def test_a_map_of_the_user_goes_before() -> None:
    left, right = named("relu.0", "relu.1"), named("relu.0", "relu.1")
    assert pairs(left, right, given={"relu.0": "relu.1"}) == [("relu.0", "relu.1", "map")]


def test_a_line_for_a_module_serves_all_in_it() -> None:
    left, right = Side(), Side()
    for side, name in ((left, "old"), (right, "new")):
        side.call(f"Module.{name}.a.Linear.forward.0", "Linear", owner=f"{name}.a", is_module=True)
        side.call(f"Module.{name}.b.Linear.forward.0", "Linear", owner=f"{name}.b", is_module=True)
    assert [how for *_, how in pairs(left, right)] == ["order", "order"]
    found = pairs(left, right, given={"old": "wrong", "old.": "new."})
    assert [(a.split(".")[2], b.split(".")[2], how) for a, b, how in found] == [
        ("a", "a", "map"),
        ("b", "b", "map"),
    ]


def test_modules_go_by_path_direction_and_count() -> None:
    left, right = Side(), Side()
    for side, type_ in ((left, "Linear"), (right, "Dense")):
        for count in range(2):
            side.call(f"Module.a.{type_}.forward.{count}", type_, owner="a", is_module=True)
        side.call(
            f"Module.a.{type_}.backward.0", type_, owner="a", is_module=True, phase="backward"
        )
        side.call(
            f"Module.a.{type_}.parameters_grad.0",
            type_,
            owner="a",
            is_module=True,
            phase="backward",
        )
    found = pairs(left, right)
    assert [how for *_, how in found] == ["module"] * 4
    assert [b for _, b, _ in found] == [a.replace("Linear", "Dense") for a, _, _ in found]


def test_gradients_follow_their_calls() -> None:
    left, right = Side(), Side()
    for side, order in ((left, (1.0, 2.0)), (right, (2.0, 1.0))):
        for n, norm in enumerate(order):
            side.call(f"linear.{n}", "linear", parameter=norm)
        for n in (1, 0):
            side.call(f"linear.{n}.backward", "linear", phase="backward", call=f"linear.{n}")
    found = {a: (b, how) for a, b, how in pairs(left, right)}
    assert found["linear.0.backward"] == ("linear.1.backward", "gradient")
    assert found["linear.1.backward"] == ("linear.0.backward", "gradient")


def test_gradients_of_calls_that_are_not_paired_are_none_of_each_others() -> None:
    """A product of joined operands on one side, the sum of two smaller ones on the other."""
    sides = []
    for shapes in (((4, 8), (8, 4)), ((4, 4), (4, 4))):
        side = Side().call("linear.0", "linear", shapes)
        side.call("linear.0.backward", "linear", phase="backward", call="linear.0")
        sides.append(side)
    assert pairs(*sides) == []
    unseen = [named("relu.0"), named("relu.0")]
    for side in unseen:
        side.call("tanh.7.backward", "tanh", phase="backward", call="tanh.7")
    found = pairs(*unseen)
    assert ("tanh.7.backward", "tanh.7.backward", "order") in found, "dumps without those calls"


def test_where_no_order_is_known_names_alone_tell() -> None:
    left, right = named("a.0", "b.0"), named("b.0", "c.0")
    found = pair_operators(left.run(order_known=False), right.run())
    assert [(pair.left.name, pair.right.name, pair.how) for pair in found] == [
        ("b.0", "b.0", "name")
    ]


def test_parameters_at_the_end_go_by_name() -> None:
    left = (
        Side().call("w", "Parameter", phase="optimizer").call("v", "Parameter", phase="optimizer")
    )
    right = (
        Side().call("v", "Parameter", phase="optimizer").call("u", "Parameter", phase="optimizer")
    )
    assert ("v", "v", "name") in pairs(left, right)


def test_calls_may_be_left_out() -> None:
    left = named("relu.0").call("step.0", "adamw", phase="optimizer")
    assert pairs(left, left, calls=False) == [("step.0", "step.0", "order")]


# -- two frameworks


def crossed(*norms: float, framework: str, kind: str = "relu") -> Side:
    side = Side(framework)
    for n, norm in enumerate(norms):
        side.call(f"{kind}.{n}", kind, norm=norm)
    return side


def test_of_two_frameworks_equal_values_tell() -> None:
    left = crossed(1.0, 2.0, 3.0, framework="pytorch")
    right = crossed(2.0, 3.0, framework="mindspore", kind="ReLU")
    assert pairs(left, right) == [("relu.1", "ReLU.0", "values"), ("relu.2", "ReLU.1", "values")]
    same = crossed(2.0, 3.0, framework="pytorch")
    assert [(a, b) for a, b, _ in pairs(left, same)] == [("relu.0", "relu.0"), ("relu.1", "relu.1")]


def test_flat_results_tell_nothing() -> None:
    left, right = Side("pytorch"), Side("mindspore")
    for side in (left, right):
        side.call("relu.0", "relu", norm=1.0, extremes=(0.5, 0.5))
    assert [how for *_, how in pairs(left, right)] == ["order"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("__iadd__", "TensorAdd"), ("add_", "AddExt"), ("mul", "Muls"), ("div", "RealDiv"),
        ("sum", "ReduceSum"), ("maximum", "Maximum"), ("masked_fill", "Select"),
        ("gelu", "FastGeLU"), ("linear", "MatMul"), ("softmax", "LogSoftmax"),
    ],
)  # fmt: skip
def test_operators_that_are_called_otherwise(one: str, other: str) -> None:
    kinds = [kind_of(Op(0, name, name, "forward", [], [])) for name in (one, other)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(("one", "other"), [("add", "sub"), ("relu", "gelu"), ("sum", "mean")])
def test_operators_that_are_others(one: str, other: str) -> None:
    kinds = [kind_of(Op(0, name, name, "forward", [], [])) for name in (one, other)]
    assert kinds[0] != kinds[1]


# -- nodes of graphs


GRAPH = """\
# IR entry: @net_1
%para1_x: <Tensor[Float32], (4, 4)>

subgraph @net_1() {
  %0(a) = Exp(%para1_x)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  %1(b) = Exp(%0)
      : (<Tensor[Float32], (4, 4)>) -> (<Tensor[Float32], (4, 4)>)
  Return(%1)
      : (<Tensor[Float32], (4, 4)>)
}
"""


def test_matched_nodes_go_before_everything_launch_by_launch() -> None:
    first, second = irtool.loads(GRAPH).graphs[0].nodes[:2]
    theirs, _ = irtool.loads(GRAPH).graphs[0].nodes[:2]
    left, right = Side("mindspore", "mindspore"), Side("mindspore", "mindspore")
    for n, node in enumerate((first, second, first, first)):
        left.call(f"Exp-op{n}", "Exp", node=node, call="")
    for n in range(2):
        right.call(f"Exp-op{n + 7}", "Exp", node=theirs, call="")
    found = pairs(left, right, nodes={first: theirs})
    assert found == [("Exp-op0", "Exp-op7", "graph"), ("Exp-op2", "Exp-op8", "graph")]


# -- parts of products


def test_a_product_of_half_the_columns_is_no_partner() -> None:
    left = Side().call("linear.0", "linear", [(4, 8), (16, 8)], (4, 16))
    right = Side().call("linear.0", "linear", [(4, 8), (8, 8)], (4, 8))
    assert pairs(left, right) == []
    assert pairs(left, left) == [("linear.0", "linear.0", "order")]
    assert pairs(left, right, given={"linear.0": "linear.0"}) == []
    other = Side().call("matmul.0", "matmul", [(4, 8), (8, 16)], (4, 16))
    assert pairs(left, other) == [("linear.0", "matmul.0", "order")]

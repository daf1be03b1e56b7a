"""Which tensors of two operators that are one belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.compare.tensors.model import Columns, Op, Phase
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import (
    Slots,
    is_fused_sum,
    pair_parameter_gradients,
    pair_tensors,
)
from tests.compare.operators import tensor

Tensors = dict[str, tuple[tuple[int, ...], float]]
"""By label a shape and a norm."""


class Side:
    """An operator of a dump, its tensors called by their labels."""

    def __init__(
        self, type_: str, inputs: Tensors, outputs: Tensors, *, name: str = "",
        module: bool = False, phase: Phase = "forward", owner: str = "",
    ) -> None:  # fmt: skip
        self.columns = Columns()
        places = [
            [tensor(self.columns, label, shape, norm=norm) for label, (shape, norm) in some.items()]
            for some in (inputs, outputs)
        ]
        self.op = Op(0, name or type_, type_, phase, *places, owner=owner, is_module=module)

    def label(self, place: int) -> str:
        return self.columns.labels[place]


def paired(left: Side, right: Side) -> tuple[list[tuple[str, str]], ...]:
    """Labels that belong together: of inputs and outputs, then what each side has alone."""
    found = pair_tensors(OpPair(left.op, right.op, "order"), left.columns, right.columns)
    both = [
        [(left.label(a), right.label(b)) for a, b in pairs]
        for pairs in (found.inputs, found.outputs)
    ]
    alone = [
        [(side.label(place), "") for place in places]
        for side, places in ((left, found.only_left), (right, found.only_right))
    ]
    return (*both, *alone)


SQUARE, ROW = ((4, 4), 1.0), ((4,), 1.0)
OUT = {"output.0": SQUARE}


def test_labels_go_before_shapes() -> None:
    left = Side("Add", {"input.0": SQUARE, "input.1": SQUARE}, OUT)
    right = Side("Add", {"input.1": SQUARE, "input.0": SQUARE}, OUT)
    assert paired(left, right) == (
        [("input.0", "input.0"), ("input.1", "input.1")], [("output.0", "output.0")], [], [],
    )  # fmt: skip


def test_what_is_called_otherwise_goes_by_its_shape() -> None:
    left = Side("Linear", {"input.0": SQUARE, "weight": ((8, 4), 1.0), "bias": ROW}, OUT)
    right = Side("Linear", {"input.0": SQUARE, "kwargs.b": ROW, "kwargs.w": ((8, 4), 1.0)}, OUT)
    assert paired(left, right)[0] == [
        ("input.0", "input.0"), ("weight", "kwargs.w"), ("bias", "kwargs.b"),
    ]  # fmt: skip


def test_of_one_left_on_each_side_the_number_of_elements_is_enough() -> None:
    """A view of it: (4, 4) and (16,)."""
    left = Side("Op", {"input.0": SQUARE, "a": SQUARE}, OUT)
    right = Side("Op", {"input.0": SQUARE, "b": ((16,), 1.0)}, OUT)
    assert paired(left, right)[0] == [("input.0", "input.0"), ("a", "b")]
    other = Side("Op", {"input.0": SQUARE, "b": ((15,), 1.0)}, OUT)
    assert paired(left, other) == (
        [("input.0", "input.0")], [("output.0", "output.0")], [("a", "")], [("b", "")],
    )  # fmt: skip


def test_of_two_left_on_a_side_the_number_of_elements_is_not_enough() -> None:
    left = Side("Op", {"a": SQUARE, "c": ((2, 2), 1.0)}, OUT)
    right = Side("Op", {"b": ((16,), 1.0), "d": ((4,), 1.0)}, OUT)
    assert paired(left, right) == (
        [], [("output.0", "output.0")], [("a", ""), ("c", "")], [("b", ""), ("d", "")],
    )  # fmt: skip


def test_what_one_side_has_more_of_stands_alone() -> None:
    left = Side("Op", {"input.0": SQUARE}, {"output.0": SQUARE, "output.1": ROW})
    right = Side("Op", {"input.0": SQUARE, "input.1": ROW}, OUT)
    assert paired(left, right) == (
        [("input.0", "input.0")], [("output.0", "output.0")], [("output.1", "")], [("input.1", "")],
    )  # fmt: skip


def test_operators_of_other_types_pair_by_place_where_all_shapes_agree() -> None:
    """Arguments are counted otherwise: input.1 of one is input.2 of the other."""
    left = Side("BiasAdd", {"input.1": SQUARE, "input.2": SQUARE}, OUT)
    right = Side("add", {"input.0": SQUARE, "input.1": SQUARE}, OUT)
    assert paired(left, right)[0] == [("input.1", "input.0"), ("input.2", "input.1")]
    same = Side("BiasAdd", {"input.0": SQUARE, "input.1": SQUARE}, OUT)
    assert paired(left, same)[0] == [("input.1", "input.1"), ("input.2", "input.0")]


@pytest.mark.parametrize(("module", "partner"), [(True, "near"), (False, "far")])
def test_of_parameters_alike_a_module_takes_the_one_of_the_nearest_norm(
    module: bool, partner: str
) -> None:
    left = Side("Cell", {"w": ((4, 4), 5.0)}, OUT, module=module)
    right = Side("Cell", {"far": ((4, 4), 9.0), "near": ((4, 4), 5.5)}, OUT, module=module)
    assert paired(left, right)[0] == [("w", partner)]


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        ("linear", "matmul", False),  # one of them adds a bias
        ("linear", "linear", True),
        ("linear", "add", True),  # not both are products
    ],
)
def test_the_result_before_a_bias_is_not_that_behind_it(
    left: str, right: str, shared: bool
) -> None:
    three = {"input.0": SQUARE, "input.1": SQUARE, "input.2": ROW}
    two = {"input.0": SQUARE, "input.1": SQUARE}
    _, outputs, ours, theirs = paired(Side(left, three, OUT), Side(right, two, OUT))
    assert outputs == ([("output.0", "output.0")] if shared else [])
    assert ours == [("input.2", "")] + ([] if shared else [("output.0", "")])
    assert theirs == ([] if shared else [("output.0", "")])


@pytest.mark.parametrize("changed", [{"module": True}, {"phase": "backward"}])
def test_modules_and_gradients_show_all_of_a_product(changed: dict[str, object]) -> None:
    three = {"input.0": SQUARE, "input.1": SQUARE, "input.2": ROW}
    two = {"input.0": SQUARE, "input.1": SQUARE}
    left = Side("linear", three, OUT, **changed)  # type: ignore[arg-type]  # one of its options
    right = Side("matmul", two, OUT, **changed)  # type: ignore[arg-type]  # likewise
    assert paired(left, right)[1] == [("output.0", "output.0")]


# -- gradients of parameters -----------------------------------------------------------------------

GRADIENTS = "Cell.dense.Dense.parameters_grad"


def with_gradients(names: tuple[str, str], theirs: dict[str, tuple[int, ...]]) -> list[Slots]:
    """A module whose parameters are called otherwise on either side, and their gradients."""
    ours = {"weight.grad": ((8, 4), 1.0), "bias.grad": ((8,), 1.0)}
    sides = [
        [
            Side("Dense", {"input.0": SQUARE, name: ((8, 4), 1.0), "bias": ((8,), 1.0)}, OUT,
                 module=True, owner="dense"),
            Side("Dense", {}, grads, module=True, owner="dense", name=GRADIENTS, phase="backward"),
        ]
        for name, grads in zip(
            names, (ours, {label: (shape, 1.0) for label, shape in theirs.items()}), strict=True
        )
    ]  # fmt: skip
    columns = [Columns(), Columns()]
    pairs: list[OpPair] = []
    for one, other in zip(*sides, strict=True):
        moved: list[Op] = []
        for at, side in enumerate((one, other)):
            start = len(columns[at].labels)
            for place, label in enumerate(side.columns.labels):
                tensor(columns[at], label, side.columns.shapes[place], norm=1.0)
            moved.append(
                replace(
                    side.op,
                    inputs=[start + place for place in side.op.inputs],
                    outputs=[start + place for place in side.op.outputs],
                )
            )
        pairs.append(OpPair(moved[0], moved[1], "order"))
    slots = [pair_tensors(pair, *columns) for pair in pairs]
    found = pair_parameter_gradients(pairs, slots, *columns)
    assert found[0] == slots[0]
    return [
        Slots((), tuple((columns[0].labels[a], columns[1].labels[b]) for a, b in each.outputs))  # type: ignore[misc]  # labels for places
        for each in (slots[1], found[1])
    ]


def test_gradients_of_parameters_pair_as_the_parameters_do() -> None:
    names = {"gamma.grad": (8, 4), "bias.grad": (8,)}
    _, found = with_gradients(("weight", "gamma"), names)
    assert found.outputs == (("weight.grad", "gamma.grad"), ("bias.grad", "bias.grad"))


def test_gradients_of_another_shape_stay_as_they_were() -> None:
    before, found = with_gradients(("weight", "gamma"), {"gamma.grad": (4, 8), "bias.grad": (8,)})
    assert found == before


def test_operands_of_calls_of_two_names_are_paired_by_their_sizes() -> None:
    x, w = ((3, 4), 1.0), ((5, 4), 2.0)
    left = Side("linear", {"input.0": x, "input.1": w}, OUT)
    right = Side("einsum", {"input.1": x, "input.2": w}, OUT)
    assert paired(left, right)[0] == [("input.0", "input.1"), ("input.1", "input.2")]
    flat = Side("bmm", {"input.0": ((12,), 1.0), "input.1": ((20,), 2.0)}, OUT)
    assert paired(left, flat)[0] == [("input.0", "input.0"), ("input.1", "input.1")]


@pytest.mark.parametrize(("count", "is_paired"), [(1, True), (2, False)])
def test_gradients_of_calls_that_end_in_other_functions_are_not_paired(
    count: int, is_paired: bool
) -> None:
    """Of a product that ends in a view the view's gradient is dumped, one and not two."""
    results = {f"output.{n}": SQUARE for n in range(2)}
    sides = [
        Side("matmul", {"input.0": SQUARE}, OUT, phase="backward"),
        Side("bmm", {"input.0": SQUARE}, dict(list(results.items())[:count]), phase="backward"),
    ]
    for side in sides:
        side.op.call = f"{side.op.type}.0"
    assert bool(paired(*sides)[1]) is is_paired


LONG, SHORT = ((4, 4), 3.0), ((4, 4), 2.0)


def test_sums_of_which_one_has_a_product_in_it_share_what_is_the_same_tensor() -> None:
    """``a * b + x`` and ``addcmul(x, a, b)``."""
    left = Side("__add__", {"input.0": LONG, "input.1": SHORT}, OUT, name="call")
    right = Side(
        "addcmul", {"input.0": SHORT, "input.1": ((4, 4), 7.0), "input.2": SQUARE}, OUT, name="call"
    )
    for side in (left, right):
        side.op.call = "call"
    assert paired(left, right) == (
        [("input.1", "input.0")], [("output.0", "output.0")],
        [("input.0", "")], [("input.1", ""), ("input.2", "")],
    )  # fmt: skip
    assert is_fused_sum(OpPair(left.op, right.op, "order"))


@pytest.mark.parametrize(("norm", "is_same"), [(2.01, True), (2.03, False)])
def test_norms_a_hundredth_apart_are_one_term_and_not_more(norm: float, is_same: bool) -> None:
    left = Side("__add__", {"input.0": LONG, "input.1": SHORT}, OUT)
    right = Side("addcmul", {"input.0": ((4, 4), norm), "a": SQUARE, "b": SQUARE}, OUT)
    for side in (left, right):
        side.op.call = "call"
    expected = [("input.1", "input.0")] if is_same else []
    assert paired(left, right)[0] == expected


def test_gradients_of_such_sums_are_of_the_terms_that_both_have() -> None:
    left = Side("__add__", {"input.0": SQUARE}, {"output.0": LONG, "output.1": SHORT})
    right = Side("addcmul", {"input.0": SQUARE}, {"output.0": SHORT, "output.1": ((4, 4), 9.0)})
    for side in (left, right):
        side.op.call, side.op.phase = "call", "backward"
    assert paired(left, right)[1] == [("output.1", "output.0")]


@pytest.mark.parametrize(
    ("ours", "theirs", "calls", "is_fused"),
    [
        ("__add__", "addcmul", True, True),
        ("__add__", "addcmul", False, False),  # no call of an API: MindSpore's Add, say
        ("addcmul", "addcmul", True, False),
        ("__mul__", "addcmul", True, False),
    ],
)
def test_which_sums_have_a_product_in_them(
    ours: str, theirs: str, calls: bool, is_fused: bool
) -> None:
    left = Side(ours, {"input.0": SQUARE, "input.1": SQUARE}, OUT)
    right = Side(theirs, {"input.0": SQUARE, "a": SQUARE, "b": SQUARE}, OUT)
    for side in (left, right):
        side.op.call = "call" if calls else ""
    assert is_fused_sum(OpPair(left.op, right.op, "order")) is is_fused


def test_operands_of_other_sizes_are_none_of_each_others() -> None:
    """``index_add(0, index, rows)`` takes one index a row, ``scatter_add`` one an element."""
    left = Side("index_add", {"input.0": SQUARE, "input.2": ROW, "input.3": SQUARE}, OUT)
    right = Side("scatter_add", {"input.0": SQUARE, "input.2": SQUARE, "input.3": SQUARE}, OUT)
    assert ("input.2", "input.2") not in paired(left, right)[0]
    assert ("input.0", "input.0") in paired(left, right)[0]

"""Layouts that a propagation gives the neighbours of operators that have some."""

from __future__ import annotations

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, Value, constant, edge, tensor

SQUARE = (64, 64)
TURNED = (
    "in_layout: ({'device_matrix': (2, 4), 'tensor_map': (0, 1), 'interleaved_parallel': false})"
)
"""Split (4, 2), but on other devices than the strategy (4, 2) is."""
PROPAGATES = {"parallel_mode": "auto_parallel", "search_mode": "sharding_propagation"}


def with_layout(strategy: tuple[int, int], *, before: bool, **options: object) -> CheckResult:
    """A ReLU with a layout, and an Exp with a strategy behind or before it."""
    net = Small()
    main = net.graph("main")
    x = net.input("x", SQUARE)

    def relu(source: Value) -> Value:
        return main.add("PrimFunc_ReLU", [source], tensor(SQUARE), attributes=TURNED)

    def exp(source: Value) -> Value:
        return main.add("PrimFunc_Exp", [source], tensor(SQUARE), strategy=(strategy,))

    main.result = relu(exp(x)) if before else exp(relu(x))
    return net.checked(**options)


@pytest.mark.parametrize("before", [False, True])
def test_a_neighbour_that_splits_alike_lies_alike(before: bool) -> None:
    names = ("Exp", "ReLU") if before else ("ReLU", "Exp")
    report = with_layout((4, 2), before=before, **PROPAGATES)
    assert edge(report, *names).operators == ()
    (exp,) = [item for item in report.operators if item.op == "Exp"]
    assert exp.device_matrix == (2, 4)


@pytest.mark.parametrize("before", [False, True])
def test_one_that_splits_otherwise_keeps_its_own(before: bool) -> None:
    names = ("Exp", "ReLU") if before else ("ReLU", "Exp")
    report = with_layout((2, 4), before=before, **PROPAGATES)
    assert edge(report, *names).operators
    (exp,) = [item for item in report.operators if item.op == "Exp"]
    assert exp.device_matrix == (2, 4)
    assert exp.input_maps == ((1, 0),)


def test_a_search_that_does_not_propagate_leaves_neighbours_alone() -> None:
    report = with_layout(
        (4, 2), before=False, parallel_mode="auto_parallel", search_mode="recursive_programming"
    )
    assert edge(report, "ReLU", "Exp").operators


@pytest.mark.parametrize(("other", "adopts"), [((1, 1), True), ((4, 2), False)])
def test_an_operator_of_two_adopts_where_the_other_is_whole(
    other: tuple[int, int], adopts: bool
) -> None:
    """A layout of one operand only: the other must not lie anywhere yet."""
    net = Small()
    main = net.graph("main")
    x, y = net.input("x", SQUARE), net.input("y", (1, 1) if other == (1, 1) else SQUARE)
    first = main.add("PrimFunc_ReLU", [x], tensor(SQUARE), attributes=TURNED)
    main.result = main.add("PrimFunc_Add", [first, y], tensor(SQUARE), strategy=((4, 2), other))
    report = net.checked(**PROPAGATES)
    (found,) = [item for item in report.operators if item.op == "Add"]
    assert (found.device_matrix == (2, 4)) is adopts


def test_layouts_spread_from_neighbour_to_neighbour() -> None:
    net = Small()
    main = net.graph("main")
    value = main.add("PrimFunc_ReLU", [net.input("x", SQUARE)], tensor(SQUARE), attributes=TURNED)
    for op in ("Exp", "Tanh", "Abs"):
        value = main.add(f"PrimFunc_{op}", [value], tensor(SQUARE), strategy=((4, 2),))
    main.result = value
    report = net.checked(**PROPAGATES)
    assert {item.device_matrix for item in report.operators} == {(2, 4)}


def test_an_operator_away_from_all_layouts_keeps_what_its_strategy_makes() -> None:
    """It is fixed by nobody, so that its neighbours take nothing over from it either."""
    net = Small()
    main = net.graph("main")
    product = main.add(
        "PrimFunc_MatMul",
        [net.input("y", SQUARE), net.input("z", SQUARE), constant(False), constant(False)],
        tensor(SQUARE),
        strategy=((2, 1), (1, 4)),
    )
    exp = main.add("PrimFunc_Exp", [product], tensor(SQUARE), strategy=((2, 4),))
    main.result = main.add("PrimFunc_ReLU", [exp], tensor(SQUARE), attributes=TURNED)
    report = net.checked(**PROPAGATES)
    matrices = {item.op: item.device_matrix for item in report.operators}
    assert matrices == {"ReLU": (2, 4), "MatMul": (2, 1, 4), "Exp": (2, 4)}


FLAT = "in_layout: ({'device_matrix': (4, 2), 'tensor_map': (1, 0), 'interleaved_parallel': false})"
"""Split (4, 2) as the strategy (4, 2) is."""


def test_between_two_layouts_that_of_the_producer_is_taken_over() -> None:
    net = Small()
    main = net.graph("main")
    first = main.add("PrimFunc_ReLU", [net.input("x", SQUARE)], tensor(SQUARE), attributes=TURNED)
    middle = main.add("PrimFunc_Exp", [first], tensor(SQUARE), strategy=((4, 2),))
    main.result = main.add("PrimFunc_Tanh", [middle], tensor(SQUARE), attributes=FLAT)
    report = net.checked(**PROPAGATES)
    assert edge(report, "ReLU", "Exp").operators == ()
    assert edge(report, "Exp", "Tanh").operators

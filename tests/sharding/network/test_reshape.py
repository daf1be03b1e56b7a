"""A Reshape lies as its producer leaves its input and as its first user wants its output."""

from __future__ import annotations

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Body, Small, Value, around, constant, edge, tensor

SQUARE, LONG = (64, 64), (4096,)
PAIR = "<Tuple[Tensor[Float32]*2], TupleShape((64, 64), (64, 64))>"


def network() -> tuple[Small, Value, Body]:
    net = Small()
    return net, net.input("x", SQUARE), net.graph("main")


def behind(main: Body, value: Value, strategy: tuple[tuple[int, ...], ...] = ((8,),)) -> None:
    """A Reshape to a line, and an operator that wants it split."""
    main.result = main.op("Exp", main.reshape(value, LONG), LONG, strategy)


# -- its input -----------------------------------------------------------------------------------


def test_what_hands_on_is_looked_through() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    cast = main.add("PrimFunc_Cast", [first, constant(43)], tensor(SQUARE))
    other = main.op("Tanh", x, SQUARE, ((1, 8),))
    waits = main.add("Depend", [cast, other], tensor(SQUARE))
    behind(main, waits)
    assert around(net.checked()) == ((8, 1), (8,))


def test_what_only_waits_is_not_its_producer() -> None:
    """A Depend's second operand is no value of it: where the first leads nowhere, nothing is."""
    net, x, main = network()
    other = main.op("Tanh", x, SQUARE, ((1, 8),))
    waits = main.add("Depend", [x, other], tensor(SQUARE))
    behind(main, waits)
    assert around(net.checked()) == ((1, 1), (8,))


def test_an_input_of_the_network_comes_whole() -> None:
    net, x, main = network()
    behind(main, x)
    assert around(net.checked()) == ((1, 1), (8,))


@pytest.mark.parametrize(("item", "splits"), [(0, (8, 1)), (1, (1, 8))])
def test_an_item_of_a_tuple_is_its_own_producer(item: int, splits: tuple[int, int]) -> None:
    """Of what several graphs hand back together, the item that is taken."""
    net = Small()
    x = net.input("x", SQUARE)
    inner = net.graph("inner")
    y = inner.parameter(tensor(SQUARE))
    parts = [inner.op("ReLU", y, SQUARE, ((8, 1),)), inner.op("Tanh", y, SQUARE, ((1, 8),))]
    inner.result = inner.add("MakeTuple", parts, PAIR)
    main = net.graph("main")
    both = main.add("call @inner", [x], PAIR)
    taken = main.add("TupleGetItem", [both, constant(item)], tensor(SQUARE))
    behind(main, taken)
    assert around(net.checked())[0] == splits


def test_several_results_of_an_operator_lie_apart() -> None:
    net, x, main = network()
    split = "<Tuple[Tensor[Float32]*2], TupleShape((64, 32), (64, 32))>"
    parts = main.add("PrimFunc_Split", [x, constant(1), constant(2)], split, user=((8, 1),))
    taken = main.add("TupleGetItem", [parts, constant(1)], tensor((64, 32)))
    main.result = main.op("Exp", main.reshape(taken, (2048,)), (2048,), ((8,),))
    assert around(net.checked()) == ((8, 1), (8,))


def called(argument: Value, net: Small, strategy: tuple[tuple[int, ...], ...] = ((8,),)) -> Body:
    """A graph with a Reshape of its parameter, called with a value."""
    inner = net.graph("inner")
    y = inner.parameter(tensor(SQUARE))
    behind(inner, y, strategy)
    return inner


def test_a_parameter_of_a_graph_comes_as_its_first_call_gives_it() -> None:
    net, x, _ = network()
    net.graphs.clear()
    called(x, net)
    main = net.graph("main")
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    cast = main.add("PrimFunc_Cast", [first, constant(43)], tensor(SQUARE))
    main.result = main.add("call @inner", [cast], tensor(LONG))
    assert around(net.checked()) == ((8, 1), (8,))


def test_what_a_graph_hands_back_comes_as_its_last_operator_leaves_it() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    inner = net.graph("inner")
    y = inner.parameter(tensor(SQUARE))
    inner.result = inner.op("ReLU", y, SQUARE, ((2, 4),))
    main = net.graph("main")
    behind(main, main.add("call @inner", [x], tensor(SQUARE)))
    assert around(net.checked())[0] == (2, 4)


# -- of a weight ---------------------------------------------------------------------------------


def of_weight(
    rows: int = 64, user: tuple[tuple[int, ...], ...] | None = None, **options: object
) -> tuple[CheckResult, Small]:
    """A Reshape of a weight that nothing else uses."""
    net = Small()
    x = net.input("x", (rows * 64,))
    w = net.weight("w", (rows, 64))
    main = net.graph("main")
    line = main.reshape(w, (rows * 64,), user)
    main.result = main.add("PrimFunc_Mul", [x, line], tensor((rows * 64,)), user=((8,), (8,)))
    return net.checked(**options), net


@pytest.mark.parametrize(("rows", "splits"), [(64, (8, 1)), (8, (8, 1)), (12, (1, 1)), (4, (1, 1))])
def test_a_weight_alone_is_split_along_its_first_dimension(
    rows: int, splits: tuple[int, int]
) -> None:
    assert around(of_weight(rows)[0]) == (splits, (8,))


def test_a_scalar_weight_is_whole() -> None:
    net = Small()
    x = net.input("x", (64,))
    w = net.weight("w", ())
    main = net.graph("main")
    one = main.reshape(w, (1,))
    main.result = main.add("PrimFunc_Mul", [x, one], tensor((64,)), user=((8,), (1,)))
    assert around(net.checked()) == ((), (1,))


@pytest.mark.parametrize(
    ("user", "splits"),
    [
        (((4, 2),), (4, 2)),
        (((2, 1),), (2, 1)),  # the rest of the devices repeat it
        (((1, 8),), (1, 8)),
        (((4, 4),), (8, 1)),  # more than there are: as if nothing was said
        (((3, 1),), (8, 1)),
        (((8,),), (8, 1)),
    ],
)
def test_a_strategy_of_a_reshape_of_a_weight_is_the_weights(
    user: tuple[tuple[int, ...], ...], splits: tuple[int, int]
) -> None:
    report, _ = of_weight(64, user)
    assert around(report)[0] == splits


def test_a_strategy_of_another_reshape_is_refused() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    line = main.reshape(first, LONG, ((8, 1),))
    main.result = main.op("Exp", line, LONG, ((8,),))
    report = net.checked()
    assert report.accepted is False
    assert report.findings[0].code == "reshape-strategy"


@pytest.mark.parametrize("through", ["Load", "call", "nothing"])
def test_a_weight_lies_as_its_other_user_wants_it(through: str) -> None:
    """Whoever looks at it first: behind a Load, in a graph, or directly."""
    net = Small()
    x, line = net.input("x", SQUARE), net.input("line", LONG)
    w = net.weight("w", SQUARE)
    inner = net.graph("inner")
    y, v = inner.parameter(tensor(SQUARE)), inner.parameter(w.type)
    inner.result = inner.product(y, v, SQUARE, ((2, 1), (1, 4)))
    if through != "call":
        net.graphs.clear()
    main = net.graph("main")
    used = w
    if through == "Load":
        used = main.add("Load", [w, line], tensor(SQUARE))
    if through == "call":
        product = main.add("call @inner", [x, used], tensor(SQUARE))
    else:
        product = main.product(x, used, SQUARE, ((2, 1), (1, 4)))
    scaled = main.add(
        "PrimFunc_Mul", [line, main.reshape(used, LONG)], tensor(LONG), user=((8,), (8,))
    )
    main.result = main.add("MakeTuple", [product, scaled], "<Tuple[Tensor[Float32]*2], "
                           "TupleShape((64, 64), (4096))>")  # fmt: skip
    assert around(net.checked())[0] == (1, 4)


# -- its output ----------------------------------------------------------------------------------


def test_a_print_or_dump_behind_it_leaves_it_as_it_came() -> None:
    """They see the tensor as the producer left it, if they come first."""
    for op in ("Print", "TensorDump"):
        net, x, main = network()
        first = main.op("ReLU", x, SQUARE, ((4, 2),))
        same = main.reshape(first, SQUARE)
        main.result = main.add(op, [same], tensor(SQUARE))
        assert around(net.checked()) == ((4, 2), (4, 2)), op


def test_of_several_reshapes_the_last_goes_by_its_user() -> None:
    """One before another Reshape leaves its value as it comes."""
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    middle = main.reshape(first, SQUARE)
    main.result = main.op("Exp", main.reshape(middle, LONG), LONG, ((4,),))
    report = net.checked()
    assert sorted([around(report, 0), around(report, 1)]) == [
        ((8, 1), (4,)),
        ((8, 1), (8, 1)),
    ]


def test_the_first_user_counts() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    line = main.reshape(first, LONG)
    one = main.op("Exp", line, LONG, ((8,),))
    other = main.op("Tanh", line, LONG, ((2,),))
    pair = "<Tuple[Tensor[Float32]*2], TupleShape((4096), (4096))>"
    main.result = main.add("MakeTuple", [one, other], pair)
    report = net.checked()
    target = around(report)[1]
    # The network is looked at from its result on, last operands first.
    assert target == (2,)
    assert [step.op for step in edge(report, "Reshape", "Exp").operators or ()] == ["StridedSlice"]
    assert not edge(report, "Reshape", "Tanh").operators


def test_what_waits_for_it_is_no_user() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    line = main.reshape(first, LONG)
    one = main.op("Exp", line, LONG, ((8,),))
    waits = main.add("Depend", [one, line], tensor(LONG))
    main.result = main.op("Tanh", waits, LONG, ((2,),))
    assert around(net.checked())[1] == (8,)


def test_a_user_in_a_called_graph_counts() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    inner = net.graph("inner")
    inner.result = inner.op("Exp", inner.parameter(tensor(LONG)), LONG, ((4,),))
    main = net.graph("main")
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    main.result = main.add("call @inner", [main.reshape(first, LONG)], tensor(LONG))
    assert around(net.checked()) == ((8, 1), (4,))


def test_a_user_behind_the_call_of_its_graph_counts() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    inner = net.graph("inner")
    first = inner.op("ReLU", inner.parameter(tensor(SQUARE)), SQUARE, ((8, 1),))
    inner.result = inner.reshape(first, LONG)
    main = net.graph("main")
    main.result = main.op("Exp", main.add("call @inner", [x], tensor(LONG)), LONG, ((4,),))
    assert around(net.checked()) == ((8, 1), (4,))


@pytest.mark.parametrize(("item", "splits"), [(0, (4,)), (1, (2,))])
def test_a_user_of_the_item_counts_that_it_is(item: int, splits: tuple[int]) -> None:
    """Tied with another value, taken out again: users of the other item are none of its own."""
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    line = main.reshape(first, LONG)
    other = main.op("Neg", main.reshape(x, LONG), LONG, ((1,),))
    parts = [line, other] if item == 0 else [other, line]
    pair = "<Tuple[Tensor[Float32]*2], TupleShape((4096), (4096))>"
    both = main.add("MakeTuple", parts, pair)
    zero = main.add("TupleGetItem", [both, constant(0)], tensor(LONG))
    one = main.add("TupleGetItem", [both, constant(1)], tensor(LONG))
    left = main.op("Exp", zero, LONG, ((4,),))
    right = main.op("Tanh", one, LONG, ((2,),))
    main.result = main.add("MakeTuple", [left, right], pair)
    report = net.checked()
    (found,) = [
        item for item in report.redistributions
        if item.replaces and item.source is not None and item.source.splits == (8, 1)
    ]  # fmt: skip
    assert found.target is not None
    assert found.target.splits == splits


@pytest.mark.parametrize(("full_batch", "split"), [(True, 1), (False, 8)])
def test_a_result_of_an_evaluation_is_split_along_its_batch(full_batch: bool, split: int) -> None:
    net, x, main = network()
    main.result = main.reshape(main.op("ReLU", x, SQUARE, ((1, 8),)), LONG)
    assert around(net.checked(full_batch=full_batch)) == ((1, 8), (split,))


def test_a_result_that_nobody_uses_is_whole() -> None:
    """In training nothing is put behind a result."""
    net, x, main = network()
    main.result = main.reshape(main.op("ReLU", x, SQUARE, ((1, 8),)), LONG)
    assert around(net.checked(parallel_mode="auto_parallel"))[1] == (1,)


# -- what is not known ---------------------------------------------------------------------------


def test_beside_an_operator_that_is_refused_nothing_is_known() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((3, 1),))
    behind(main, first)
    report = net.checked()
    (item,) = [item for item in report.operators if item.op == "Reshape"]
    assert item.verdict == "unknown"
    assert "the layout of a neighbour is not known: %0 ReLU" in item.judgement.reasons[0].message


def test_before_an_operator_that_is_refused_nothing_is_known() -> None:
    net, x, main = network()
    first = main.op("ReLU", x, SQUARE, ((8, 1),))
    behind(main, first, ((3,),))
    report = net.checked()
    (item,) = [item for item in report.operators if item.op == "Reshape"]
    assert item.verdict == "unknown"
    assert "%2 Exp" in item.judgement.reasons[0].message

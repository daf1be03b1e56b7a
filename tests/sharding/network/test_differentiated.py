"""Of which inputs gradients are asked: item 1 of what a differentiated graph gives, and on."""

from __future__ import annotations

import pytest

from irtool.sharding.network.analysis import analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.gradients import _is_discrete
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.weights import differentiated_inputs
from tests.sharding.network.small import Small, Value, constant, tensor

SHAPE = (8, 16)
FUNC = "<Func, NoShape>"
BOTH = "<Tuple[Tensor[Float32],Func], TupleShape((8, 16), NoShape)>"
GIVEN = "<Tuple[Object:EnvType,Tensor[Float32]*2], TupleShape(NoShape, (8, 16), (8, 16))>"


def asked(*items: int | None, from_: int = 1) -> list[str]:
    """Operands of ``x * y`` whose gradients are taken; None: all gradients as they are."""
    small = Small()
    x, y = small.input("x", SHAPE), small.input("y", SHAPE)
    inner = small.graph("inner")
    left, right = inner.parameter(tensor(SHAPE)), inner.parameter(tensor(SHAPE))
    inner.result = inner.add("PrimFunc_Mul", [left, right], tensor(SHAPE))
    body = small.graph("main")
    made = body.add("J", [Value("@inner", FUNC)], FUNC)
    applied = body.add(made.text, [x, y], BOTH)
    back = body.add("TupleGetItem", [applied, constant(from_)], FUNC)
    one = Value("Tensor(shape=[8, 16], dtype=Float32, value=[...])", "<Tensor[Float32], (8, 16)>")
    given = body.add(back.text, [one], GIVEN)
    taken = [
        given if item is None else body.add("TupleGetItem", [given, constant(item)], tensor(SHAPE))
        for item in items
    ]
    body.result = body.add("MakeTuple", taken, GIVEN)
    found = differentiated_inputs(analysis_of(network_of(small.dump()), ParallelContext(8)))
    return sorted({90: "x", 91: "y"}[item.number or 0] for item in found)


@pytest.mark.parametrize(
    ("items", "inputs"),
    [
        pytest.param((0,), [], id="those of the weights"),
        pytest.param((1,), ["x"], id="of the first input"),
        pytest.param((2,), ["y"], id="of the second"),
        pytest.param((1, 2), ["x", "y"], id="of both"),
        pytest.param((3,), [], id="of an input that there is not"),
        pytest.param((None,), [], id="all of them as they are"),
    ],
)
def test_an_item_is_the_gradient_of_an_input(
    items: tuple[int | None, ...], inputs: list[str]
) -> None:
    assert asked(*items) == inputs


def test_what_the_graph_itself_gives_is_no_gradient() -> None:
    assert asked(1, from_=0) == []


@pytest.mark.parametrize(
    ("given", "result", "ends"),
    [
        ("Float32", "Int32", True),
        ("Float16", "UInt8", True),
        ("Float32", "Bool", True),
        ("Float32", "Float16", False),
        ("Float32", "BFloat16", False),
        ("Int32", "Int64", False),  # computed with whole numbers alone
        ("Bool", "Int32", False),
    ],
)
def test_no_gradient_comes_back_through_whole_numbers_and_truth(
    given: str, result: str, ends: bool
) -> None:
    small = Small()
    x = small.input("x", (8, 4), given)
    main = small.graph("main")
    main.result = main.add("PrimFunc_Mine", [x], tensor((8, 4), result))
    assert _is_discrete(small.dump().graphs[0].nodes[0]) is ends

"""The gradient that a differentiated graph is given: split as the one result it is handed to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, Value, constant, tensor

SHAPE = (64, 64)
FUNC = "<Func, NoShape>"
PAIR = "<Tuple[Tensor[Float32],Func], TupleShape((64, 64), NoShape)>"
BOTH = "<Tuple[Tensor[Float32]*2], TupleShape((64, 64), (64, 64))>"
SPLIT, WHOLE = ((8, 1),), ((1, 1),)


def differentiated(results: Sequence[str]) -> CheckResult:
    """The gradient of a graph with some results.

    Each result is ``split`` or ``whole`` (of an operator with that strategy), ``refused`` (of one
    whose strategy MindSpore does not take), ``input`` (what came in, as it came), and behind
    ``held`` one that StopGradient holds back.
    """
    small = Small()
    x = small.input("x", SHAPE)
    inner = small.graph("inner")
    y = inner.parameter(tensor(SHAPE))
    strategies = {"split": SPLIT, "whole": WHOLE, "refused": ((3, 1),)}
    made: list[Value] = []
    for words in results:
        *held, kind = words.split()
        value = y if kind == "input" else inner.op("ReLU", y, SHAPE, strategies[kind])
        made.append(inner.op("StopGradient", value, SHAPE) if held else value)
    inner.result = inner.add("MakeTuple", made, BOTH)
    body = small.graph("main")
    graph = body.add("J", [Value("@inner", FUNC)], FUNC)
    applied = body.add(graph.text, [x], PAIR)
    back = body.add("TupleGetItem", [applied, constant(1)], FUNC)
    one = "Tensor(shape=[64, 64], dtype=Float32, value=[...])"
    given = Value(f"({one}, {one})", BOTH)
    body.result = body.add(back.text, [given], BOTH)
    return small.checked()


def refused(report: CheckResult) -> list[str]:
    return [item.message for item in report.findings if item.code == "sens"]


@pytest.mark.parametrize("kind", ["whole", "input"])
def test_beside_what_is_held_back_a_result_may_be_whole(kind: str) -> None:
    assert refused(differentiated([kind, "held split"])) == []


def test_beside_what_is_held_back_a_result_must_not_be_split() -> None:
    (message,) = refused(differentiated(["split", "held whole"]))
    assert "a gradient of its whole shape (64, 64), though each device holds (8, 64)" in message


def test_what_is_refused_itself_is_not_refused_again() -> None:
    report = differentiated(["refused", "held whole"])
    assert not report.accepted
    assert refused(report) == []


@pytest.mark.parametrize("results", [("split", "whole"), ("whole", "input")])
def test_several_results_of_which_none_is_held_back_have_no_gradient(
    results: tuple[str, str],
) -> None:
    (message,) = refused(differentiated(results))
    assert message.startswith("the gradient is taken of several results of inner")

"""The gradient that a differentiated graph is given: split as the one result it is handed to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Body, Small, Value, constant, tensor

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


# -- one result ------------------------------------------------------------------------------------


def of_one(
    op: str,
    shape: tuple[int, ...],
    attributes: str,
    more: Sequence[Value] = (),
    of: tuple[int, ...] = SHAPE,
    **options: object,
) -> CheckResult:
    """The gradient of a graph whose one result an operator with these attributes gives."""
    small = Small()
    x = small.input("x", of)
    inner = small.graph("inner")
    y = inner.parameter(tensor(of))
    inner.result = inner.add(f"PrimFunc_{op}", [y, *more], tensor(shape), attributes=attributes)
    return differentiate(small, x, inner, **options)


def differentiate(small: Small, x: Value, inner: Body, **options: object) -> CheckResult:
    """What is said of the gradient of a graph that is called with an input."""
    assert inner.result is not None
    body = small.graph("main")
    graph = body.add("J", [Value("@inner", FUNC)], FUNC)
    applied = body.add(graph.text, [x], PAIR)
    back = body.add("TupleGetItem", [applied, constant(1)], FUNC)
    given = Value("Tensor(shape=[], dtype=Float32, value=1)", inner.result.type)
    body.result = body.add(back.text, [given], x.type)
    return small.checked(**options)


def layouts(entries: str, matrix: str = "8") -> str:
    laid = f"'device_matrix': ({matrix}), 'tensor_map': ({entries})"
    return f"in_layout: ({{{laid}, 'interleaved_parallel': false}})"


EXPANDED = (64, 64, 1)
NOTED = (
    "under layouts MindSpore notes the shape (64, 64) of the input for the result, and takes no "
    "gradient of shape (64, 64, 1) for it"
)


def test_under_a_layout_a_new_dimension_at_the_end_takes_no_gradient() -> None:
    (message,) = refused(of_one("ExpandDims", EXPANDED, layouts("0, -1"), [constant(-1)]))
    assert message.startswith(NOTED)


@pytest.mark.parametrize(
    "report",
    [
        of_one("ExpandDims", EXPANDED, "in_strategy: ((8, 1))", [constant(-1)]),
        of_one("ExpandDims", EXPANDED, layouts("(1, 0), -1", "4, 2"), [constant(-1)]),
        of_one("ReLU", SHAPE, layouts("0, -1")),
        of_one("Squeeze", SHAPE, f"axis: (), {layouts('0, -1')}"),
        of_one("ReLU", SHAPE, "in_strategy: ((8, 1))"),
    ],
    ids=["a strategy", "several axes", "another operator", "the same shape", "neither"],
)
def test_elsewhere_it_takes_one(report: CheckResult) -> None:
    assert refused(report) == []


def test_nothing_is_said_of_pipelines() -> None:
    stages = {"device_num": 16, "pipeline_stages": 2}
    report = of_one("ExpandDims", EXPANDED, layouts("0, -1"), [constant(-1)], **stages)
    assert refused(report) == []


@pytest.mark.parametrize(
    ("axis", "row", "held"),
    [
        (-1, (1, 8), "(64, 8, 2)"),
        (-2, (2, 1), "(32, 2, 64)"),
        (-1, (8, 1), ""),
        (-2, (1, 8), ""),
        (0, (1, 8), ""),
        (2, (1, 8), ""),
    ],
)
def test_a_result_that_lies_otherwise_than_it_is_noted_takes_no_gradient(
    axis: int, row: tuple[int, int], held: str
) -> None:
    """Stacked along a place counted from behind, a layout has the new dimension one before it."""
    small = Small()
    x = small.input("x", SHAPE)
    inner = small.graph("inner")
    y = inner.parameter(tensor(SHAPE))
    both = inner.add("MakeTuple", [y, y], BOTH)
    shape = [64, 64]
    shape.insert(axis % 3, 2)
    stacked = f"axis: I64({axis})"
    inner.result = inner.add(
        "PrimFunc_Stack", [both], tensor(shape), user=(row, row), attributes=stacked
    )
    report = differentiate(small, x, inner)
    (found,) = (item for item in report.operators if item.op == "Stack")
    assert found.verdict == "legal"
    messages = refused(report)
    assert len(messages) == bool(held)
    assert all(f"each device holds {held} of this result" in message for message in messages)

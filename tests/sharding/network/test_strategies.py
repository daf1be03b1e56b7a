"""What is asked of a node, by what stands at it: a strategy, layouts, a search's choice."""

from __future__ import annotations

import pytest

import irtool
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.layout import UserLayout
from irtool.sharding.network.strategies import StrategyFormatError, Wanted, padded, wanted
from tests.sharding.calls import call


def node(attributes: str) -> Node:
    text = (
        "# IR entry: @main\n%para1_x: <Tensor[Float32], (8, 8)>\n\nsubgraph @main() {\n"
        f"  %0(out) = PrimFunc_ReLU(%para1_x) {{instance name: relu}}{attributes}\n"
        "      : (<Tensor[Float32], (8, 8)>) -> (<Tensor[Float32], (8, 8)>)\n"
        "  Return(%0)\n      : (<Tensor[Float32], (8, 8)>)\n}\n"
    )
    dump = irtool.loads(text)
    assert not dump.problems
    return dump.graphs[0].nodes[0]


LAYOUT = "{'device_matrix': (4, 2), 'tensor_map': (1, 0), 'interleaved_parallel': false}"
OTHER = "{'device_matrix': (4, 2), 'tensor_map': (-1, 0), 'interleaved_parallel': false}"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", Wanted()),
        (" primitive_attrs: {in_strategy: ((4, 2))}", Wanted(((4, 2),))),
        (
            " primitive_attrs: {in_strategy: ((4, 2)), out_strategy: ((2, 1))}",
            Wanted(((4, 2),), ((2, 1),)),
        ),
        (" cnode_primal_attrs: {in_strategy: ((4, 2))}", Wanted(((4, 2),))),
        (
            " primitive_attrs: {in_strategy: ((1, 1))} cnode_primal_attrs: {in_strategy: ((4, 2))}",
            Wanted(((4, 2),)),
        ),
        (
            f" primitive_attrs: {{in_layout: ({LAYOUT})}}",
            Wanted(in_layout=(UserLayout((4, 2), (1, 0)),)),
        ),
        (
            f" primitive_attrs: {{in_layout: ({LAYOUT}), out_layout: ({OTHER}), "
            "in_strategy: ((8, 1))}",
            Wanted(
                in_layout=(UserLayout((4, 2), (1, 0)),), out_layout=(UserLayout((4, 2), (-1, 0)),)
            ),
        ),
        (" primitive_attrs: {in_strategy: (((4, 2), (2, 1)), (1, 1))}",
         Wanted(((4, 2), (2, 1), (1, 1)))),
    ],
)  # fmt: skip
def test_what_is_asked(attributes: str, expected: Wanted) -> None:
    assert wanted(node(attributes)) == expected


BEHIND = " {in_strategy: ((2, 1)), out_strategy: ((1, 2))}"
CHOSEN = Wanted(((2, 1),), ((1, 2),))


@pytest.mark.parametrize(
    ("attributes", "expected", "overridden"),
    [
        # What a search chose stands behind the statement, and goes before what users gave.
        (" primitive_attrs: {in_strategy: ((4, 2))}" + BEHIND, CHOSEN, CHOSEN),
        (" cnode_primal_attrs: {in_strategy: ((4, 2))}" + BEHIND, CHOSEN, CHOSEN),
        # But layouts go before it, unless the search does not keep to them.
        (
            f" primitive_attrs: {{in_layout: ({LAYOUT})}}" + BEHIND,
            Wanted(in_layout=(UserLayout((4, 2), (1, 0)),)),
            CHOSEN,
        ),
        # A layout of the result alone is what a function was given; the search did the rest.
        (f" primitive_attrs: {{out_layout: ({OTHER})}}" + BEHIND, CHOSEN, CHOSEN),
        (
            f" primitive_attrs: {{out_layout: ({OTHER})}}",
            Wanted(out_layout=(UserLayout((4, 2), (-1, 0)),)),
            Wanted(out_layout=(UserLayout((4, 2), (-1, 0)),)),
        ),
        # A search that says nothing overrides nothing.
        (" primitive_attrs: {in_strategy: ((4, 2))}", Wanted(((4, 2),)), Wanted(((4, 2),))),
        (
            f" primitive_attrs: {{in_layout: ({LAYOUT})}}",
            Wanted(in_layout=(UserLayout((4, 2), (1, 0)),)),
            Wanted(in_layout=(UserLayout((4, 2), (1, 0)),)),
        ),
    ],
)
def test_a_search_goes_before_strategies_and_layouts_before_a_search(
    attributes: str, expected: Wanted, overridden: Wanted
) -> None:
    assert wanted(node(attributes)) == expected
    assert wanted(node(attributes), overridden=True) == overridden


def test_nothing_is_asked_where_there_is_neither() -> None:
    assert wanted(node("")).is_nothing
    assert not Wanted(((1,),)).is_nothing
    layout = (UserLayout((4, 2), (1, 0)),)
    assert not Wanted(in_layout=layout).is_nothing
    assert not Wanted(out_layout=layout).is_nothing
    assert Wanted(out_strategy=((1,),)).is_nothing  # alone it says nothing


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (" primitive_attrs: {in_strategy: I64(4)}", "must be a tuple of tuples, but is 4"),
        (" primitive_attrs: {in_strategy: (4, 2)}", "but holds 4"),
        (' primitive_attrs: {in_strategy: (("a", 2))}', "must hold whole numbers"),
        (" primitive_attrs: {in_layout: (7)}", "must hold layouts, but holds 7"),
    ],
)
def test_what_is_no_strategy(attributes: str, message: str) -> None:
    with pytest.raises(StrategyFormatError, match=message):
        wanted(node(attributes))


@pytest.mark.parametrize(
    ("written", "entries"),
    [
        ("(1, 0)", (1, 0)),
        ("((1), 0)", (1, 0)),
        ("((1, 0), -1)", ((1, 0), -1)),
    ],
)
def test_a_dimension_along_one_axis_is_written_with_or_without_parentheses(
    written: str, entries: tuple[object, ...]
) -> None:
    layout = f"{{'device_matrix': (4, 2), 'tensor_map': {written}}}"
    asked = wanted(node(f" primitive_attrs: {{in_layout: ({layout})}}"))
    assert asked.in_layout == (UserLayout((4, 2), entries),)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (((8, 1),), ((8, 1), (), (1,), (1, 1))),
        (((8, 1), (4,)), ((8, 1), (), (4,), (1, 1))),
        (((8, 1), (4,), (2, 2)), ((8, 1), (), (4,), (2, 2))),
        (((8, 1), (), (4,), (2, 2)), ((8, 1), (), (4,), (2, 2))),
    ],
)
def test_inputs_without_a_row_are_whole_and_numbers_have_none(
    strategy: Strategy, expected: Strategy
) -> None:
    what = call("Own", [8, 8], [], [8], [8, 8], out=[8, 8])
    assert padded(strategy, what) == expected

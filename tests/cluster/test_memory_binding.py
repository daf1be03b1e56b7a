"""Numbers for unknown dimensions: ranges on both sides, and whatever follows from others."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.memory.binding import (
    BindingError,
    Symbol,
    bound,
    demanded,
    has_unknown_sizes,
    symbols,
)
from irtool.ir.dump import Dump


def dump(follows: str, *, second: str = "s2<[1,inf]>", more: str = "") -> Dump:
    """Two inputs, of s1 x 4 and of s2 x s1, and one operator whose rows follow from them."""
    text = f"""\
# IR entry: @main
# Total subgraphs: 1
# Params:
%para1_x: <Tensor[Float32], (-1, 4)> : [s1<[2,64]|4N+2>, 4]
%para2_y: <Tensor[Float32], (-1, -1)> : [{second}, s1<[2,64]|4N+2>]
subgraph @main() {{
  %0(a) = Add(%para1_x, %para2_y)
      : (<Tensor[Float32], (-1, 4)>, <Tensor[Float32], (-1, -1)>) -> (<Tensor[Float32], (-1, 4)>)
      : (S:[s1<[2,64]|4N+2>, 4], S:[{second}, s1<[2,64]|4N+2>]) -> (S:[s3<[0,inf]|={follows}>, 4])
{more}  Return(%0)
}}
"""
    return irtool.load(text.encode())


def rows(made: Dump) -> int | None:
    (node,) = made.nodes("Add")
    assert node.output_type is not None
    assert node.output_type.dimensions is not None
    return node.output_type.dimensions[0]


# -- symbols ---------------------------------------------------------------------------------------


def test_a_symbol_has_its_range_its_divisor_and_its_places() -> None:
    assert symbols(dump("s1*2")) == (
        Symbol("s1", 2, 64, 4, 2, None, ("x[0]", "y[1]")),
        Symbol("s2", 1, None, 1, 0, None, ("y[0]",)),
        Symbol("s3", 0, None, 1, 0, "s1*2"),
    )
    # what follows from others need not be given, nor what is no input's
    assert [one.name for one in demanded(dump("s1*2"))] == ["s1", "s2"]
    assert [one.name for one in demanded(dump("s1", second="s2<[1,inf]|=s1/2>"))] == ["s1"]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1, "s is from 2 to 64, not 1"),
        (2, ""),
        (3, "s is a multiple of 4 and 2, not 3"),
        (4, "s is a multiple of 4 and 2, not 4"),
        (6, ""),
        (62, ""),
        (64, "s is a multiple of 4 and 2, not 64"),
        (66, "s is from 2 to 64, not 66"),
    ],
)
def test_a_size_is_in_the_range_and_leaves_the_remainder(size: int, message: str) -> None:
    one = Symbol("s", 2, 64, 4, 2, None)
    if not message:
        one.check(size)
        return
    with pytest.raises(BindingError) as caught:
        one.check(size)
    assert str(caught.value) == message


def test_no_size_is_below_nothing_and_a_divisor_alone_is_said_alone() -> None:
    Symbol("s", -5, None, 1, 0, None).check(0)
    with pytest.raises(BindingError, match="s is from 0 to any number, not -1"):
        Symbol("s", -5, None, 1, 0, None).check(-1)
    Symbol("s", 0, None, 8, 0, None).check(16)
    with pytest.raises(BindingError, match="s is a multiple of 8, not 12"):
        Symbol("s", 0, None, 8, 0, None).check(12)
    Symbol("s", 0, 9, 4, 5, None).check(9)  # five and one are the same remainder of four


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s9", r"s9 is no unknown dimension \(there are: s1, s2, s3, x\[0\], y\[1\], y\[0\]\)"),
        ("x[1]", r"x\[1\] is no unknown dimension"),
    ],
)
def test_a_name_that_means_nothing_lists_those_that_do(name: str, message: str) -> None:
    with pytest.raises(BindingError, match=message):
        bound(dump("s1"), {name: 6})


def test_inputs_and_places_are_bound_alike() -> None:
    for name in ("s1", "x[0]", "y[1]"):
        made = bound(dump("s2"), {name: 6})
        first, second = made.parameters
        assert first.type is not None
        assert second.type is not None
        assert first.type.dimensions == (6, 4)
        assert second.type.dimensions == (-1, 6)
        assert rows(made) == -1
        assert has_unknown_sizes(made)
    both = bound(dump("s2"), {"s1": 6, "s2": 5})
    assert rows(both) == 5
    assert not has_unknown_sizes(both)


# -- what follows ----------------------------------------------------------------------------------

ATOMS = st.sampled_from(["s1", "s2", "1", "2", "3", "10"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"{p[0]}{p[1]}{p[2]}"),
        inner.map(lambda text: f"({text})"),
        ATOMS.map(lambda text: f"(-{text})"),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.sampled_from([2, 6, 30]), st.integers(1, 9))
def test_a_relation_is_reckoned_in_fractions(text: str, first: int, second: int) -> None:
    """Against Python's own arithmetic; what is no whole number stays unknown."""
    names = {"s1": Fraction(first), "s2": Fraction(second), "Fraction": Fraction}
    try:
        exact = eval(_in_fractions(text), {}, names)  # of our own expression
    except ZeroDivisionError:
        exact = None
    expected = int(exact) if exact is not None and Fraction(exact).denominator == 1 else -1
    assert rows(bound(dump(text), {"s1": first, "s2": second})) == expected


def _in_fractions(text: str) -> str:
    return re.sub(r"(?<![s\d])\d+", lambda match: f"Fraction({match[0]})", text)


@pytest.mark.parametrize("text", ["s1%2", "s9*2", "s1**", "max(s1,s2)", "s1/0", "s1 s2"])
def test_what_cannot_be_reckoned_stays_unknown(text: str) -> None:
    assert rows(bound(dump(text), {"s1": 6, "s2": 5})) == -1


def test_relations_follow_from_one_another_in_any_order() -> None:
    """s2 is half of s3, which is twice s1: known only once s3 is."""
    made = bound(dump("s1*2", second="s2<[0,inf]|=s3/2>"), {"s1": 6})
    assert rows(made) == 12
    (second,) = (item for item in made.parameters if item.name == "y")
    assert second.type is not None
    assert second.type.dimensions == (6, 6)


def test_tuples_are_bound_element_by_element_and_known_sizes_stay() -> None:
    pair = (
        "  %1(b) = Split(%0)\n      : (<Tensor[Float32], (-1, 4)>) -> (<Tuple[Tensor[Float32]*2], "
        "TupleShape((-1, 4), (3, -1))>)\n"
        "      : (S:[s3<[0,inf]|=s1>, 4]) -> "
        "(S:[[s3<[0,inf]|=s1>, 4], [s2<[1,inf]>, s2<[1,inf]>]])\n"
    )
    made = bound(dump("s1", more=pair), {"s1": 6, "s2": 5})
    (node,) = made.nodes("Split")
    assert node.output_type is not None
    # the dump says three rows there: what is printed as known is kept
    assert [shape for _, shape in node.output_type.tensors] == [(6, 4), (3, 5)]

"""What a dump says of sizes that are not known: the second line of types, with symbols."""

from __future__ import annotations

import pytest

import irtool
from irtool.sharding.network.symbols import (
    Sizes,
    fitting,
    sizes_of_inputs,
    sizes_of_output,
    sizes_of_parameter,
)

DUMP = """\
# IR entry: @main
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (-1, 64)> : [-1, 64]

subgraph @main() {{
  %0(a) = ReLU(%para1_x) {{instance name: a}}
      : (<Tensor[Float32], (-1, 64)>) -> (<Tensor[Float32], (-1, 64)>)
{symbols}  Return(%0)
      : (<Tensor[Float32], (-1, 64)>)
}}
"""
LINE = "      : (S:[s1<[16,inf]|16N>, 64]) -> (S:[[s2<[8,inf]|8N+4>, 64]])\n"


def relu(symbols: str):
    return next(node for node in irtool.loads(DUMP.format(symbols=symbols)).nodes("ReLU"))


def test_the_second_line_tells_symbols_and_divisors_of_operands_and_result() -> None:
    node = relu(LINE)
    assert sizes_of_inputs(node) == ((Sizes((16, 64), ("s1", "64")),),)
    assert sizes_of_output(node) == (Sizes((4, 64), ("s2", "64")),)


def test_without_the_line_nothing_is_known() -> None:
    node = relu("")
    assert sizes_of_inputs(node) == ()
    assert sizes_of_output(node) == ()


@pytest.mark.parametrize(
    ("text", "divisors", "symbols"),
    [
        pytest.param("[s1, 64]", (1, 64), ("s1", "64"), id="a symbol of which nothing is said"),
        pytest.param("[s1<[1,inf]>, 64]", (1, 64), ("s1", "64"), id="a range divides nothing"),
        pytest.param("[s1<[16,inf]|16N>, 64]", (16, 64), ("s1", "64"), id="a multiple"),
        pytest.param("[s1<|8N+4>, 64]", (4, 64), ("s1", "64"), id="a rest that divides it"),
        pytest.param("[s1<|8N+6>, 64]", (2, 64), ("s1", "64"), id="a rest that shares a divisor"),
        pytest.param("[s1<|8N+1>, s12]", (1, 1), ("s1", "s12"), id="a rest of one"),
        pytest.param("[16]", (16,), ("16",), id="one size"),
        pytest.param("[-1, 8]", (-1, 8), ("-1", "8"), id="a size without a symbol"),
    ],
)
def test_sizes_of_a_parameter(text: str, divisors: tuple[int, ...], symbols: tuple[str, ...]):
    assert sizes_of_parameter(text) == Sizes(divisors, symbols)


@pytest.mark.parametrize("text", [None, "", "NoShape", "(s1, 64)"])
def test_what_is_no_list_of_sizes_tells_nothing(text: str | None) -> None:
    assert sizes_of_parameter(text) is None


KNOWN = (Sizes((16, 64), ("s1", "64")), Sizes((8,), ("s2",)))


@pytest.mark.parametrize(
    ("index", "shape", "found"),
    [
        pytest.param(0, (-1, 64), KNOWN[0], id="the tensor's own"),
        pytest.param(1, (-1,), KNOWN[1], id="another tensor's"),
        pytest.param(0, (16, 64), None, id="all is known anyhow"),
        pytest.param(0, (-1, 64, 1), None, id="of another rank"),
        pytest.param(2, (-1, 64), None, id="one tensor too many"),
    ],
)
def test_sizes_are_taken_for_a_tensor_that_needs_them(
    index: int, shape: tuple[int, ...], found: Sizes | None
) -> None:
    assert fitting(KNOWN, index, shape) == found

"""What the words of a formula stand for, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from irtool.operators.counting import Expression, Shape, Tensors, size_of

Sizes = list[Shape]


def value(
    expression: Expression,
    inputs: list[Sizes],
    outputs: Sizes,
    attributes: Mapping[str | int, object] | None = None,
) -> Fraction | None:
    named = attributes or {}
    return size_of(expression)(Tensors(inputs, outputs, lambda key: named.get(key)))


INPUTS: list[Sizes] = [[(2, 3, 5)], [], [(7,), (11,)]]
"""A tensor, a number, a tuple of tensors."""
OUTPUTS: Sizes = [(13, 17), (19,)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (("integer", 7), 7),
        (("quantity", "input"), 30),
        (("quantity", "input0"), 30),
        (("quantity", "input1"), None),  # no tensor
        (("quantity", "input2"), 7),  # the first of the tuple
        (("quantity", "input3"), None),
        (("quantity", "output"), 221),
        (("quantity", "output1"), 19),
        (("quantity", "output2"), None),
        (("quantity", "inputs"), 30 + 7 + 11),
        (("quantity", "outputs"), 221 + 19),
        (("dimension", "input", 0), 2),
        (("dimension", "input", 2), 5),
        (("dimension", "input", -3), 2),
        (("dimension", "input", 3), None),
        (("dimension", "input", -4), None),
        (("dimension", "output1", 0), 19),
        (("add", ("integer", 3), ("integer", 4)), 7),
        (("subtract", ("integer", 3), ("integer", 4)), -1),
        (("multiply", ("integer", 3), ("integer", 4)), 12),
        (("divide", ("integer", 3), ("integer", 4)), Fraction(3, 4)),
        (("divide", ("integer", 3), ("integer", 0)), None),
        (("add", ("integer", 3), ("quantity", "input1")), None),
        (("multiply", ("quantity", "input3"), ("integer", 0)), None),
    ],
)
def test_words_and_arithmetic(expression: Expression, expected: Fraction | int | None) -> None:
    assert value(expression, INPUTS, OUTPUTS) == expected


def test_unknown_sizes_make_unknown_numbers() -> None:
    unknown: list[Sizes] = [[(2, -1)], [(3,)]]
    for word in ("input", "inputs"):
        assert value(("quantity", word), unknown, []) is None
    assert value(("dimension", "input", 0), unknown, []) == 2
    assert value(("dimension", "input", 1), unknown, []) is None
    assert value(("quantity", "outputs"), [], []) is None
    assert value(("quantity", "input"), [[()]], []) == 1  # a scalar
    assert value(("quantity", "input"), [[(0, 4)]], []) == 0


@pytest.mark.parametrize(
    ("shape", "attributes", "expected"),
    [
        ((2, 3), {}, 3),
        ((2, 3), {"transpose_a": True}, 2),
        ((2, 3), {"transpose_a": False}, 3),
        ((2, 3), {2: True}, 2),  # as an operand
        ((2, 3), {"transpose_a": False, 2: True}, 3),
        ((5, 2, 3), {"transpose_a": True}, 2),
        ((3,), {"transpose_a": True}, 3),
        ((), {}, None),
    ],
)
def test_what_a_product_sums_up(
    shape: Shape, attributes: Mapping[str | int, object], expected: int | None
) -> None:
    assert value(("quantity", "contracted"), [[shape]], [], attributes) == expected


KEYS, HEAD = ("quantity", "keys"), ("quantity", "head")
WIDE = {"head_num": 4}


@pytest.mark.parametrize(
    ("layout", "query", "key", "keys", "head"),
    [
        ("BSH", (2, 8, 64), (2, 16, 64), 16, 16),
        (0, (2, 8, 64), (2, 16, 64), 16, 16),
        ("SBH", (8, 2, 64), (16, 2, 64), 16, 16),
        (2, (8, 2, 64), (16, 2, 64), 16, 16),
        ("BNSD", (2, 4, 8, 32), (2, 4, 16, 32), 16, 32),
        (1, (2, 4, 8, 32), (2, 4, 16, 32), 16, 32),
        ("BSND", (2, 8, 4, 32), (2, 16, 4, 32), 16, 32),
        (3, (2, 8, 4, 32), (2, 16, 4, 32), 16, 32),
        ("TND", (8, 4, 32), (16, 4, 32), 16, 32),
        (4, (8, 4, 32), (16, 4, 32), 16, 32),
        ("TH", (8, 64), (16, 64), 16, 16),
        (5, (8, 64), (16, 64), 16, 16),
        (None, (2, 8, 64), (2, 16, 64), 16, 16),  # batch, length, width
        (None, (2, 4, 8, 32), (2, 4, 16, 32), 16, 32),
        (99, (2, 8, 64), (2, 16, 64), 16, 16),
        ("BSH", (2, 4, 8, 32), (2, 4, 16, 32), 16, 32),  # the rank says more
        (None, (64,), (64,), None, None),
    ],
)
def test_keys_and_heads_of_an_attention(
    layout: object, query: Shape, key: Shape, keys: int | None, head: int | None
) -> None:
    attributes: dict[str | int, object] = {**WIDE, "input_layout": layout}
    assert value(KEYS, [[query], [key]], [], attributes) == keys
    assert value(HEAD, [[query], [key]], [], attributes) == head


@pytest.mark.parametrize(("operands", "shift"), [(20, 0), (21, 5)])
def test_arguments_may_have_become_operands(operands: int, shift: int) -> None:
    """Heads and layout stand at places 10 and 16, five later in the gradient."""
    query: list[Sizes] = [[(8, 2, 64)], [(16, 2, 64)]]
    inputs = [*query, *([] for _ in range(operands - 2))]
    attributes: dict[str | int, object] = {10 + shift: 4, 16 + shift: "SBH"}
    assert value(KEYS, inputs, [], attributes) == 16
    assert value(HEAD, inputs, [], attributes) == 16


def test_heads_that_nobody_states_are_unknown() -> None:
    shapes: list[Sizes] = [[(2, 8, 64)], [(2, 16, 64)]]
    assert value(HEAD, shapes, []) is None
    assert value(HEAD, shapes, [], {"head_num": 0}) is None
    assert value(HEAD, shapes, [], {"head_num": "4"}) is None

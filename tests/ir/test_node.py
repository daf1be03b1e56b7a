"""What a node says of itself, whatever its attributes hold."""

from __future__ import annotations

import pytest

from irtool import loads

STATEMENT = (
    '  %0(a) = Relu(%1) cnode_primal_attrs: {{forward_unique_id: {}, unique_id: "7"}}\n'
    "      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n"
)


@pytest.mark.parametrize(
    ("written", "identity"),
    [('"12"', "12"), ("I64(12)", "12"), ("[I64(2)]", None), ("Bool(1)", None), ("()", None)],
)
def test_an_identity_is_a_text_or_a_number(written: str, identity: str | None) -> None:
    (node,) = loads(STATEMENT.format(written)).nodes()
    assert (node.forward_unique_id, node.unique_id) == (identity, "7")


SHARDED = (
    "  %0(a) = Concat(%1, I64(0)) primitive_attrs: {{in_strategy: {}}}\n"
    "      : (<Tensor[Float32], (2)>, <Int64, NoShape>) -> (<Tensor[Float32], (2)>)\n"
)


@pytest.mark.parametrize(
    ("written", "strategy"),
    [
        ("((I64(2), I64(4)), (I64(4), I64(1)))", ((2, 4), (4, 1))),
        ("((I64(1)), ())", ((1,), ())),
        # The tensors of a list have a row each.
        ("(((I64(2), I64(1)), (I64(2), I64(1))))", ((2, 1), (2, 1))),
        ("()", ()),
        # Anything else is no strategy, and stays there to be shown.
        ("I64(2)", None),
        ("(I64(2), I64(4))", None),
        ('((I64(2), "4"))', None),
        ("((I64(2), Bool(1)))", None),
        ("(((I64(2)), I64(2)))", None),
    ],
)
def test_a_strategy_has_a_row_a_tensor(
    written: str, strategy: tuple[tuple[int, ...], ...] | None
) -> None:
    (node,) = loads(SHARDED.format(written)).nodes()
    assert node.in_strategy == node.user_strategy == strategy
    assert node.has_strategy
    assert node.written_strategy() == node.written_strategy("user_strategy")


def test_no_strategy_is_none() -> None:
    (node,) = loads(STATEMENT.format('"12"')).nodes()
    assert node.in_strategy is node.user_strategy is node.out_strategy is None
    assert not node.has_strategy

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

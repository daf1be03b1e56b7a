"""Where a primitive is held: the attribute of a cell that scope, name and source spell."""

from __future__ import annotations

import pytest

import irtool
from irtool.ir.graph import Node
from irtool.ir.held import cell_path, held_by

RECORD = """\
# IR entry: @main
# Total subgraphs: 1

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (16, 32)> : [16, 32]

subgraph @main() {{
  %0(a) = ReLU(%para1_x) {{instance name: {name}}}
      : (<Tensor[Float32], (16, 32)>) -> (<Tensor[Float32], (16, 32)>)
      # Scope: ({scope})
      # In file net.py:3, 8~9/        y = self.block(x, self.act)/
      # In file net.py:7, 8~9/        {source}/
  Return(%0)
      : (<Tensor[Float32], (16, 32)>)
}}
"""


def relu(name: str, source: str, scope: str = "Default/block-Block") -> Node:
    dump = irtool.loads(RECORD.format(name=name, source=source, scope=scope))
    return next(node for node in dump.nodes() if node.op == "ReLU")


@pytest.mark.parametrize(
    ("name", "source", "held"),
    [
        ("relu", "return self.relu(x)", ("net.block", "relu")),
        ("relu", "return ops.relu(x)", None),
        ("relu", "return x.relu()", None),
        ("act", "return act(x)", ("net.block", "act")),
        ("relu", "return self.relu_of(x)", None),
        ("a b", "return self.relu(x)", None),
    ],
    ids=["called", "a function", "a method", "handed on", "another name", "no name of Python"],
)
def test_an_attribute_is_named_in_the_source(
    name: str, source: str, held: tuple[str, str] | None
) -> None:
    assert held_by(relu(name, source)) == held


def test_cells_that_are_computed_again_are_the_same_cells() -> None:
    scope = "recompute_Default/blocks-CellList/0-Block"
    assert held_by(relu("relu", "self.relu(x)", scope)) == ("net.blocks[0]", "relu")


def test_what_is_no_cell_has_no_path() -> None:
    assert cell_path("Default") == "net"
    assert cell_path("Gradients/Default/block-Block") == ""
    assert cell_path("Default/block") == ""

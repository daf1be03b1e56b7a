"""A small sound dump, for tests that damage it, and how to look at what is read of it."""

from __future__ import annotations

import irtool
from irtool.ir.dump import Dump

DUMP = """\
# IR entry: @main_1
# Total subgraphs: 2

# Total params: 2
# Params:
%para1_x: <Tensor[Float32], (8, 4)>
%para2_w "q": <Ref[Tensor[Float32]], (4, 2), ref_key=w "q", is_parameter>  :  has_default

Node counting information:
Total number of nodes: 12
Total number of cnodes: 5

subgraph attr:
training: 1
subgraph instance: inner_2 : 0x55a1
# In file net.py:12, 4~30/    def inner(y):/
subgraph @inner_2(%para3_y) {
  %0(a) = PrimFunc_Add(%para3_y, Tensor(shape=[2, 2], dtype=Float32, value=
[[ 1.0 2.0]
 [ 3.0 4.0]])) {instance name: add} cnode_attrs: {checkpoint: Bool(1)}
      : (<Tensor[Float32], (8, 2)>, <Tensor[Float32], (2, 2), value=...>) -> (<null>)
      # Fullname with scope: (Default/net/Add-op0)
      # In file net.py:13, 8~20/        y + [[1, 2]]/
  Return(%0)
      : (<null>)
}


subgraph attr:
training: 1
subgraph @main_1() {
  %0(x) = MatMul(%para1_x, %para2_w "q") {in_strategy: ((2, 1), (1, 2))}
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (4, 2)>) -> (<Tensor[Float32], (8, 2)>)
  %1(c) = call @inner_2(%0)
      : (<Tensor[Float32], (8, 2)>) -> (<null>)
  Return(%1)
      : (<null>)
}


"""
NODES = 5

MULTIBYTE = (
    DUMP.replace("inner_2", "↓↻_2").replace('w "q"', 'вес "β" {✗}').replace("net.py", "сеть.py")
)


def count(read: Dump) -> int:
    return sum(len(graph.nodes) for graph in read.graphs)


def load_back(data: bytes) -> Dump:
    """The dump of these bytes, having checked that they print back."""
    read = irtool.load(data)
    assert irtool.dumps(read).encode("utf-8", "surrogateescape") == data
    return read


def codes(read: Dump) -> list[str]:
    return [problem.code for problem in read.problems]

"""Operators that use a weight: directly, behind a Load, and behind what hands it on."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.weights import _users

SIZE = "<Tensor[Float32], (8, 8)>"
WEIGHT = "<Ref[Tensor[Float32]], (8, 8), ref_key=w, is_parameter>"
TEXT = f"""# IR entry: @main
%para1_x: {SIZE} : [8, 8]
%para2_w: {WEIGHT}  :  has_default
subgraph @main() {{
  %0(state) = UpdateState(U, %para2_w)
      : (<UMonad, NoShape>, {WEIGHT}) -> (<UMonad, NoShape>)
  %1(load) = Load(%para2_w, %0)
      : ({WEIGHT}, <UMonad, NoShape>) -> ({SIZE})
  %2(near) = PrimFunc_Exp(%1)
      : ({SIZE}) -> ({SIZE})
  %3(hands) = Depend(%1, %2)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  %4(far) = PrimFunc_Sub(%para1_x, %3)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  %5(behind) = PrimFunc_Neg(%4)
      : ({SIZE}) -> ({SIZE})
  %6(pair) = MakeTuple(%para1_x, %1)
      : ({SIZE}, {SIZE}) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
  %7(joined) = PrimFunc_AddN(%6)
      : (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>) -> ({SIZE})
  %8(called) = call @inner(%para1_x, %1)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  %9(plain) = PrimFunc_Mul(%5, %para2_w)
      : ({SIZE}, {WEIGHT}) -> ({SIZE})
  %10(late) = UpdateState(%0, %1)
      : (<UMonad, NoShape>, {SIZE}) -> (<UMonad, NoShape>)
  %11(all) = MakeTuple(%7, %8, %9)
      : ({SIZE}, {SIZE}, {SIZE}) -> (<Tuple[Tensor[Float32]*3], TupleShape((8, 8), (8, 8), (8, 8))>)
  Return(%11)
}}
subgraph @inner(%para3_p, %para4_q) {{
  %0(inside) = PrimFunc_Cos(%para4_q)
      : ({SIZE}) -> ({SIZE})
  %1(other) = PrimFunc_Sin(%para3_p)
      : ({SIZE}) -> ({SIZE})
  %2(sum) = PrimFunc_Add(%0, %1)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  Return(%2)
}}
"""


def users(judged: Iterable[str]) -> list[tuple[str, int, int]]:
    """Names of the operators, as which operand they take the weight, and which item of it."""
    network = network_of(irtool.loads(TEXT, "net.ir"))
    nodes = {node.name: node for node in network.inputs if node.name}
    analysis: Any = SimpleNamespace(network=network, judged={nodes[name]: None for name in judged})
    assert network.entry is not None
    (_, weight) = network.entry.parameters
    return sorted((use.node.name, use.position, use.item) for use in _users(analysis, weight))


EVERY = ("near", "far", "behind", "joined", "inside", "other", "sum", "plain")


def test_each_use_counts_once_where_it_is_nearest() -> None:
    found = users(EVERY)
    assert [row[:2] for row in found] == [
        ("far", 1), ("inside", 0), ("joined", 0), ("near", 0), ("plain", 1),
    ]  # fmt: skip
    assert {name: item for name, _, item in found if item} == {"joined": 1}


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        (["behind"], ["behind"]),  # behind what is no operator
        (["plain"], ["plain", "plain"]),  # and as its own operand
        (["sum"], ["sum"]),  # in the graph that is called with it
        (["other"], []),  # of the graph's other operand
        ([], []),
    ],
)
def test_what_is_no_operator_is_looked_behind(judged: list[str], expected: list[str]) -> None:
    assert [name for name, *_ in users(judged)] == expected

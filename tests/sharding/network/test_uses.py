"""What a node is used for: as which operand of another one, or as what it calls."""

from __future__ import annotations

import irtool
from irtool.sharding.network.graphs import network_of

SIZE = "<Tensor[Float32], (8, 8)>"
TEXT = f"""# IR entry: @main
%para1_x: {SIZE} : [8, 8]
subgraph @main() {{
  %0(a) = PrimFunc_Neg(%para1_x)
      : ({SIZE}) -> ({SIZE})
  %1(f) = Partial(@inner, %0)
  %2(b) = %1(%para1_x, %0)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  %3(c) = PrimFunc_Add(%0, %0)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  %4(d) = PrimFunc_Mul(%2, %3)
      : ({SIZE}, {SIZE}) -> ({SIZE})
  Return(%4)
}}
subgraph @inner(%para2_p, %para3_q, %para4_r) {{
  %0(e) = PrimFunc_Exp(%para3_q)
      : ({SIZE}) -> ({SIZE})
  Return(%0)
}}
"""


def uses(place: int) -> set[tuple[str, int]]:
    """Debug names of the nodes that use a node of the main graph, and as which operand."""
    network = network_of(irtool.loads(TEXT, "net.ir"))
    node = list(network.entry.nodes)[place]
    return {(use.node.name, use.position) for use in network.users_of(node)}


def test_operands_count_from_0_and_each_counts() -> None:
    assert uses(0) == {("f", 1), ("b", 1), ("c", 0), ("c", 1)}
    assert uses(3) == {("d", 1)}


def test_what_is_called_is_no_operand() -> None:
    assert uses(1) == {("b", -1)}

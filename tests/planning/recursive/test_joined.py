"""Slices of a Concat that are one of its parts again."""

from __future__ import annotations

import pytest

import irtool
from irtool.planning.recursive.joined import without_joined
from irtool.planning.recursive.kinds import NotSearchable
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.sharded_nodes import primitive

TYPE = "<Tensor[Float32], (64, 64)>"
FOUR = "<Tuple[Int64*2], TupleShape(NoShape, NoShape)>"


def network(cut: str, *, axis: int = 0, second: int = 64) -> Network:
    """Two ReLUs, joined; a Neg of what is cut out."""
    other, shape = f"<Tensor[Float32], ({second}, 64)>", f"({64 + second}, 64)"
    pair = f"<Tuple[Tensor[Float32]*2], TupleShape((64, 64), ({second}, 64))>"
    whole = f"<Tensor[Float32], {shape}>"
    body = (
        f"  %0(a) = PrimFunc_ReLU(%para1_x)\n      : ({TYPE}) -> ({TYPE})\n"
        f"  %1(b) = PrimFunc_ReLU(%para2_y)\n      : ({other}) -> ({other})\n"
        f"  %2(t) = MakeTuple(%0, %1)\n      : ({TYPE}, {other}) -> ({pair})\n"
        f"  %3(c) = PrimFunc_Concat(%2, I64({axis}))\n"
        f"      : ({pair}, <Int64, NoShape>) -> ({whole})\n"
        f"  %4(s) = PrimFunc_StridedSlice(%3, {cut}, I64(0), I64(0), I64(0), I64(0), I64(0))\n"
        f"      : ({whole}, {FOUR}, {FOUR}, {FOUR}, <Int64, NoShape>, <Int64, NoShape>, "
        f"<Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> ({TYPE})\n"
        f"  %5(n) = PrimFunc_Neg(%4)\n      : ({TYPE}) -> ({TYPE})\n"
    )
    text = (
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Attrs:\n\n# Total params: 2\n# Params:\n"
        f"%para1_x: {TYPE} : [64, 64]\n%para2_y: {other} : [{second}, 64]\n\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        f"{body}  Return(%5)\n      : ({TYPE})\n}}\n"
    )
    dump = irtool.loads(text, "net.ir")
    assert not dump.problems
    return network_of(dump)


def cut(low: int, high: int, step: int = 1) -> str:
    return f"(I64({low}), I64(0)), (I64({high}), I64(64)), (I64({step}), I64(1))"


def reached(found: Network) -> list[str]:
    return [primitive(port) for port in found.preorder if hasattr(port, "op")]


@pytest.mark.parametrize(("low", "parameter"), [(0, "x"), (64, "y")])
def test_a_part_takes_the_place_of_its_slice(low: int, parameter: str) -> None:
    found = without_joined(network(cut(low, low + 64)))
    assert reached(found)[1:] == ["Neg", "ReLU"]
    assert [getattr(port, "name", "") for port in found.preorder][-1] == parameter
    (use,) = found.users_of(found.preorder[2])
    assert primitive(use.node) == "Neg"


@pytest.mark.parametrize(
    "kept",
    [
        network(cut(0, 128)),  # all of it
        network(cut(0, 64, 2)),  # every second row
        network(cut(64, 128), axis=-2),  # an axis that counts from the end
    ],
)
def test_other_slices_are_kept(kept: Network) -> None:
    assert without_joined(kept) is kept


def test_a_slice_that_is_taken_for_another_part_is_refused() -> None:
    with pytest.raises(NotSearchable, match="32 to 96 of %3, for the part of it that is 0 to 64"):
        without_joined(network(cut(32, 96)))
    with pytest.raises(NotSearchable, match="for the part of it that is 64 to 256"):
        without_joined(network(cut(64, 128), second=192))

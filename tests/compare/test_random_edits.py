"""One edit to a random network is told as that edit, wherever it stands, from both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dump import Dump
from tests.compare.graphs import dump

ONE = ("ReLU", "Tanh", "Exp", "GeLU", "Softmax")
TWO = ("MatMul", "Mul", "Sub", "RealDiv")


@dataclass(frozen=True)
class Statement:
    """A call of values by name, in a layer, with an attribute."""

    name: str
    op: str
    operands: tuple[str, ...]
    layer: int
    axis: int = 0

    @property
    def text(self) -> str:
        operands = ", ".join(f"%{name}" for name in self.operands)
        scope = f"@Default/layers.{self.layer}"
        return f"{self.name} = {self.op}({operands}) f32 (8, 16) {scope} {{axis: I64({self.axis})}}"


Network = tuple[Statement, ...]


def dumped(network: Network, shift: int = 0) -> Dump:
    return dump(*(each.text for each in network), shift=shift)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A chain with branches: every operator reads the one before it, and maybe an earlier one."""
    made: list[Statement] = []
    for number in range(draw(st.integers(3, 9))):
        before = made[-1].name if made else "x"
        name, layer = f"n{number}", number // 3
        axis = draw(st.integers(0, 3))
        if draw(st.booleans()):
            made.append(Statement(name, draw(st.sampled_from(ONE)), (before,), layer, axis))
        else:
            others = ["w", "v", *(each.name for each in made[:-1])]
            other = draw(st.sampled_from(others))
            made.append(Statement(name, draw(st.sampled_from(TWO)), (before, other), layer, axis))
    return tuple(made)


@st.composite
def places(draw: st.DrawFn) -> tuple[Network, int]:
    network = draw(networks())
    return network, draw(st.integers(0, len(network) - 1))


def with_one(network: Network, place: int, **changes: object) -> Network:
    return (*network[:place], replace(network[place], **changes), *network[place + 1 :])  # type: ignore[arg-type]


def only(diff: GraphDiff) -> tuple[str, str, int, int]:
    """The one edit: kind, detail, and how many nodes it has on either side."""
    assert len(diff.edits) == 1, [(edit.kind, edit.detail) for edit in diff.edits]
    (edit,) = diff.edits
    return edit.kind, edit.detail, len(edit.left), len(edit.right)


@settings(max_examples=25)
@given(networks(), st.integers(0, 50))
def test_a_network_is_itself(network: Network, shift: int) -> None:
    diff = diff_graphs(dumped(network), dumped(network, shift))
    assert diff.is_identical
    assert len(diff.pairs) == len(network) + 1  # and Return
    assert not diff.edits
    assert not diff.changed


@settings(max_examples=25)
@given(places(), st.integers(4, 9))
def test_another_attribute(found: tuple[Network, int], axis: int) -> None:
    network, place = found
    diff = diff_graphs(dumped(network), dumped(with_one(network, place, axis=axis)))
    assert only(diff) == ("attribute changed", f"axis: {network[place].axis} → {axis}", 1, 1)
    assert diff.edits[0].left[0].op == network[place].op
    assert not diff.only_left
    assert not diff.only_right
    assert not diff.is_identical
    assert diff.first_divergence is not None
    assert diff.first_divergence.left is diff.edits[0].left[0]


@settings(max_examples=25)
@given(places())
def test_another_operator(found: tuple[Network, int]) -> None:
    network, place = found
    old = network[place].op
    new = {"MatMul": "BatchMatMul"}.get(old, f"Other{old}")
    left, right = dumped(network), dumped(with_one(network, place, op=new))
    assert only(diff_graphs(left, right)) == ("replaced", f"{old} → {new}", 1, 1)
    assert only(diff_graphs(right, left)) == ("replaced", f"{new} → {old}", 1, 1)


@settings(max_examples=25)
@given(
    places(),
    st.sampled_from([("Erf", "added", "removed"), ("Cast", "cast inserted", "cast removed")]),
)
def test_one_more_operator(found: tuple[Network, int], more: tuple[str, str, str]) -> None:
    network, place = found
    op, inserted, removed = more
    here = network[place]
    one = Statement("new", op, here.operands[:1], here.layer)
    behind = replace(here, operands=("new", *here.operands[1:]))
    longer = (*network[:place], one, behind, *network[place + 1 :])
    left, right = dumped(network), dumped(longer)
    assert only(diff_graphs(left, right))[0] == inserted
    assert only(diff_graphs(left, right))[2:] == (0, 1)
    assert only(diff_graphs(right, left))[0] == removed
    assert only(diff_graphs(right, left))[2:] == (1, 0)
    assert len(diff_graphs(left, right).pairs) == len(network) + 1  # and Return


@settings(max_examples=25)
@given(places())
def test_operands_the_other_way_round(found: tuple[Network, int]) -> None:
    network, place = found
    here = network[place]
    assume(len(here.operands) == 2 and here.operands[0] != here.operands[1])
    turned = with_one(network, place, operands=here.operands[::-1])
    diff = diff_graphs(dumped(network), dumped(turned))
    if here.op == "Mul":
        assert only(diff) == ("operands reordered", "same operands, other order", 1, 1)
        return
    # Of what does not commute, each input is another one.
    assert {edit.kind for edit in diff.edits} <= {"input changed", "parameter renamed"}
    assert [edit.detail.split(":")[0] for edit in diff.edits] == ["operand 1", "operand 2"]
    assert all(edit.left[0].op == here.op for edit in diff.edits)


@settings(max_examples=25)
@given(places())
def test_another_layer(found: tuple[Network, int]) -> None:
    network, place = found
    old = network[place].layer
    diff = diff_graphs(dumped(network), dumped(with_one(network, place, layer=7)))
    detail = f"scope: Default/layers.{old} → Default/layers.7"
    assert only(diff) == ("moved", detail, 1, 1)

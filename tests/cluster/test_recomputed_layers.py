"""Layers of one kind of which only some are computed again: by mistake, or on purpose."""

from __future__ import annotations

import pytest

import irtool
from irtool.cluster.recomputed_layers import UnevenLayers, uneven_layers


def uneven(kept: list[int], recomputed: list[int]) -> UnevenLayers:
    layers = {f"network.layers.{number}": () for number in kept}
    return UnevenLayers(tuple(f"network.layers.{number}" for number in recomputed), layers)


@pytest.mark.parametrize(
    ("kept", "recomputed", "is_selective"),
    [
        ([4, 5], [0, 1, 2, 3], True),  # the last ones
        ([0, 1], [2, 3, 10], True),  # the first ones, in order of numbers
        ([9, 10], [2, 3], True),
        ([5], [0, 1, 2, 3, 4], False),  # one alone may have been forgotten
        ([2, 3], [0, 1, 4, 5], False),  # in the middle
        ([0, 5], [1, 2, 3, 4], False),  # both ends
        ([0, 3], [2, 3], False),  # layers of one number: of two kinds of names
        ([3, 4], [2, 3], False),
    ],
)
def test_several_at_one_end_are_left_out_on_purpose(
    kept: list[int], recomputed: list[int], is_selective: bool
) -> None:
    assert uneven(kept, recomputed).is_selective is is_selective


def test_the_share_that_is_kept() -> None:
    assert uneven([4, 5], [0, 1, 2, 3]).share_kept == pytest.approx(1 / 3)


KIND = "<Tensor[Float32], (4, 4)>"


def layers_of(*statements: tuple[int, str, str, bool]) -> tuple[UnevenLayers, ...]:
    """Of statements: the layer, the operator, its instance name, and whether it is done again."""
    lines = ["# IR entry: @G", "", f"%para1_x: {KIND}", "", "subgraph @G() {"]
    for number, (layer, op, instance, again) in enumerate(statements):
        source = f"%{number - 1}" if number else "%para1_x"
        name = f" {{instance name: {instance}}}" if instance else ""
        attributes = " cnode_attrs: {duplicated: Bool(1)}" if again else ""
        scope = f"Default/network-Net/layers-CellList/{layer}-Block/{op}-op{number}"
        lines.append(f"  %{number}(CNode_{number}) = PrimFunc_{op}({source}){name}{attributes}")
        lines += [f"      : ({KIND}) -> ({KIND})", f"      # Fullname with scope: ({scope})"]
    lines += [f"  Return(%{len(statements) - 1})", f"      : ({KIND})", "}", ""]
    dump = irtool.load("\n".join(lines).encode(), name="20_validate_0080.ir")
    return uneven_layers(dump, dict.fromkeys(dump.nodes(), "forward"))


def test_signs_that_stand_in_the_scope_of_the_first_layer_make_no_other_kind() -> None:
    """MindSpore gives what ``x + y`` makes in any layer the scope in which it parsed it first."""
    first = [(0, "MatMul", "matmul", False), (0, "Add", "", False), (0, "Add", "", False)]
    again = [(0, "MatMul", "matmul", True)]
    (found,) = layers_of(*first, *again, (1, "MatMul", "matmul", False))
    assert found.recomputed == ("layers.0",)
    assert list(found.kept) == ["layers.1"]


def test_cells_that_hold_other_operators_are_of_other_kinds() -> None:
    first = [(0, "MatMul", "matmul", False), (0, "MatMul", "matmul", True)]
    assert layers_of(*first, (1, "ReLU", "relu", False)) == ()


def test_cells_that_hold_nothing_are_told_apart_by_all_operators() -> None:
    first = [(0, "MatMul", "", False), (0, "Add", "", False), (0, "MatMul", "", True)]
    assert layers_of(*first, (1, "MatMul", "", False)) == ()
    (found,) = layers_of(*first, (1, "MatMul", "", False), (1, "Add", "", False))
    assert list(found.kept) == ["layers.1"]

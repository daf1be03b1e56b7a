"""Layers of operators whose scopes tell none, by the weights that they read."""

from __future__ import annotations

import pytest

import irtool
from irtool.cluster.weight_layers import cell_scope, cells_of, layer_of
from irtool.ir.dump import Dump

SIZE = "<Tensor[Float32], (4, 4)>"
NAMES = ("embedding.table", "layers.0.w", "layers.1.w")
HEAD = "# IR entry: @main\n" + "".join(
    f"%para{n + 1}_{name}: <Ref[Tensor[Float32]], (4, 4), ref_key={name}, is_parameter>"
    "  :  has_default\n"
    for n, name in enumerate(NAMES)
) + f"%para4_x: {SIZE} : [4, 4]\nsubgraph @main() {{\n"  # fmt: skip


def dump(*rows: tuple[str, str, str], scope: str = "Default/net") -> Dump:
    """Statements by name, what they call, and their primal attributes."""
    lines = [
        f"  %{n}({name}) = {call}{f' cnode_primal_attrs: {{{attributes}}}' if attributes else ''}\n"
        f"      : ({', '.join([SIZE] * (call.count(',') + 1))}) -> ({SIZE})\n"
        f"      # Scope: ({scope})\n"
        for n, (name, call, attributes) in enumerate(rows)
    ]
    return irtool.loads(f"{HEAD}{''.join(lines)}  Return(%{len(rows) - 1})\n}}\n", "validate.ir")


NETWORK = (
    ("table", "PrimFunc_Gather(%para1_embedding.table, %para4_x)", ""),
    ("first", "PrimFunc_MatMul(%0, %para2_layers.0.w)", 'unique_id: "1"'),
    ("act", "PrimFunc_ReLU(%1)", 'unique_id: "2"'),
    ("load", "Load(%para3_layers.1.w, %para4_x)", ""),
    ("second", "PrimFunc_MatMul(%2, %3)", 'unique_id: "3"'),
    ("sum", "PrimFunc_Add(%4, %1)", 'unique_id: "4"'),
    ("alone", "PrimFunc_Neg(%para4_x)", ""),
    ("later", "PrimFunc_Add(%6, %5)", ""),
    ("grad1", "PrimFunc_ReluGrad(%7, %2)", 'forward_unique_id: "2"'),
    ("grad3", "PrimFunc_MatMul(%8, %3)", 'forward_unique_id: "3"'),
    ("grad9", "PrimFunc_MatMul(%9, %3)", 'forward_unique_id: "9"'),
)


def layers(found: Dump) -> dict[str, str]:
    return {node.name: layer_of(node) for node in found.nodes() if node.name}


def test_an_operator_is_of_the_layer_of_its_weight_or_of_what_made_its_last_input() -> None:
    """The sum reads both layers, the later of which counts; what was made last is of no layer."""
    told = {name: layer for name, layer in layers(dump(*NETWORK)).items() if "." in layer}
    assert told == {
        "first": "layers.0", "act": "layers.0", "load": "layers.1", "second": "layers.1",
        "sum": "layers.1",
        "grad1": "layers.0", "grad3": "layers.1",  # of what they are the gradients
    }  # fmt: skip


def test_where_scopes_tell_layers_weights_are_not_asked() -> None:
    found = dump(*NETWORK, scope="Default/net/layers-CellList/7-Block")
    assert set(layers(found).values()) == {"layers.7"}


def test_what_stands_alone_or_reads_other_weights_is_the_networks() -> None:
    found = layers(dump(*NETWORK))
    assert len({found["table"], found["alone"], found["grad9"]}) == 1
    assert not any(char.isdigit() for char in found["table"])


@pytest.mark.parametrize(
    ("name", "scope", "cells"),
    [("second", "Default/layers/1", ("layers.1",)), ("alone", "Default/net", ())],
)
def test_a_scope_is_made_where_a_weight_tells_the_layer(
    name: str, scope: str, cells: tuple[str, ...]
) -> None:
    found = dump(*NETWORK)
    (node,) = (node for node in found.nodes() if node.name == name)
    assert cell_scope(node) == scope
    assert cells_of(node) == cells


def test_cells_of_a_scope_stand_before_those_of_weights() -> None:
    found = dump(*NETWORK, scope="Default/net/layers-CellList/7-Block/heads-CellList/2-Head")
    (node,) = (node for node in found.nodes() if node.name == "second")
    assert cells_of(node)[0] == "layers.7"
    assert len(cells_of(node)) == 2
    assert cell_scope(node) == node.scope

"""Layers of operators in dumps whose scopes tell none: by the weights that they read.

Where gradients are taken by a function (``value_and_grad`` of a cell that is no part of the one
that is compiled), MindSpore prints ``Default/MatMul`` or ``recompute_/MatMul`` for all cells alike.
Weights keep their names, so an operator that reads ``stages.2.norm.gamma`` is one of ``stages.2``,
and what reads no weight is of the layer whose operator made the last of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from irtool.cluster.memory.layers import cells_of_scope, layer_of_parameter, layer_of_scope
from irtool.ir.dump import Dump, dump_of
from irtool.ir.graph import GraphParameter, Node

_KNOWN: WeakKeyDictionary[Dump, Mapping[Node, str]] = WeakKeyDictionary()
"""What was found of each dump, as long as somebody holds it."""


def layer_of(node: Node) -> str:
    """The layer of an operator: ``layers.0`` by its scope, else by the weights that it reads.

    Args:
        node: of a dump, or alone.

    Returns:
        ``(network)`` where neither tells a part of the network.
    """
    named = layer_of_scope(node.scope)
    if is_numbered(named):
        return named
    dump = dump_of(node)
    return named if dump is None else _by_weights(dump).get(node, named)


def cells_of(node: Node) -> tuple[str, ...]:
    """The numbered cells that an operator stands in, the layer first; none where there are none.

    Args:
        node: of a dump, or alone.
    """
    cells = cells_of_scope(node.scope)
    if cells:
        return cells
    layer = layer_of(node)
    return (layer,) if is_numbered(layer) else ()


def cell_scope(node: Node) -> str | None:
    """The scope of an operator; of a dump whose scopes tell no layers, one that tells it.

    Args:
        node: of a dump, or alone.
    """
    layer = layer_of(node)
    if layer == layer_of_scope(node.scope):
        return node.scope
    return f"Default/{layer.replace('.', '/')}"


def is_numbered(layer: str) -> bool:
    """Whether a layer is one of several that repeat, which a number in its name says.

    Args:
        layer: its name.
    """
    return any(char.isdigit() for char in layer)


def _by_weights(dump: Dump) -> Mapping[Node, str]:
    if dump not in _KNOWN:
        has_numbers = any(is_numbered(layer_of_scope(node.scope)) for node in dump.nodes())
        _KNOWN[dump] = {} if has_numbers else dict(_layers(dump))
    return _KNOWN[dump]


def _layers(dump: Dump) -> Iterator[tuple[Node, str]]:
    """Each operator of a numbered layer, with the layer; gradients by what they are of."""
    layers: dict[Node, tuple[int, str]] = {}
    by_id: dict[str, str] = {}
    for number, node in enumerate(dump.nodes()):
        if node.is_backward:
            layer = by_id.get(node.forward_unique_id or "", "")
        else:
            layer = _own(node) or _inherited(node, layers)
            layers[node] = number, layer
            if node.unique_id is not None:
                by_id.setdefault(node.unique_id, layer)
        if is_numbered(layer):
            yield node, layer


def _own(node: Node) -> str:
    """The layer of the weight that a node reads, or loads; "" where it reads none."""
    for source in node.inputs:
        if isinstance(source, Node) and source.op == "Load" and source.inputs:
            source = source.inputs[0]
        declared = source.declaration if isinstance(source, GraphParameter) else None
        if declared is not None and declared.is_weight:
            return layer_of_parameter(declared.name)
    return ""


def _inherited(node: Node, layers: Mapping[Node, tuple[int, str]]) -> str:
    """The layer of the last of a node's inputs."""
    known = [
        layers[source] for source in node.inputs if isinstance(source, Node) and source in layers
    ]
    return max(known)[1] if known else ""

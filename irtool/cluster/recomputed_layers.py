"""Layers of one kind of which some are recomputed and others are not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from irtool.cluster.weight_layers import is_numbered, layer_of
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.ir.phases import Phase

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, eq=False, slots=True)
class UnevenLayers:
    """Layers that compute the same, of which only some are computed again.

    ``kept`` are those that are not, with their forward nodes.
    """

    recomputed: tuple[str, ...]
    kept: Mapping[str, tuple[Node, ...]]

    @property
    def share_kept(self) -> float:
        """Part of the layers that is not recomputed."""
        return len(self.kept) / (len(self.kept) + len(self.recomputed))

    @property
    def is_selective(self) -> bool:
        """Whether several layers at one end are left out, as people do on purpose."""
        kept, done = ([_number(layer) for layer in side] for side in (self.kept, self.recomputed))
        return len(kept) > 1 and (min(kept) > max(done) or max(kept) < min(done))


def uneven_layers(dump: Dump, phases: Mapping[Node, Phase]) -> tuple[UnevenLayers, ...]:
    """Kinds of layers of which some are recomputed.

    Layers are of one kind if their cells hold the same operators, collectives and what only hands
    values on left out; their numbers, and that recomputed cells have scopes of their own
    (``recompute_Default/…``), make no difference.

    Args:
        dump: a validate dump.
        phases: of its nodes.
    """
    forward: dict[str, list[Node]] = {}
    again: set[str] = set()
    for node in dump.nodes():
        if node.op in PLUMBING or node.op in COMMUNICATION or node.scope is None:
            continue
        layer = layer_of(node)
        if not is_numbered(layer):
            continue
        if node.is_recomputed:
            again.add(layer)
        elif phases.get(node) == "forward":
            forward.setdefault(layer, []).append(node)
    kinds: dict[object, list[str]] = {}
    for layer, nodes in forward.items():
        kinds.setdefault((_kind(layer), _operators(nodes)), []).append(layer)
    uneven: list[UnevenLayers] = []
    for layers in kinds.values():
        kept = {layer: tuple(forward[layer]) for layer in layers if layer not in again}
        done = tuple(layer for layer in layers if layer in again)
        if kept and done:
            uneven.append(UnevenLayers(done, kept))
    return tuple(uneven)


def _number(layer: str) -> tuple[int, ...]:
    """Numbers in a layer's name, by which layers stand in order."""
    return tuple(int(text) for text in _DIGITS.findall(layer))


def _kind(layer: str) -> str:
    return "".join("#" if char.isdigit() else char for char in layer).replace("##", "#")


def _operators(nodes: Sequence[Node]) -> tuple[tuple[str, int], ...]:
    """What runs in a layer: the operators that its cell holds, or all if it holds none.

    Signs and functions (``x + y``, ``ops.gelu(x)``) of a later layer may have the scope of the
    first one that MindSpore parsed, and what cuts a tensor anew is inserted in some layers alone.
    """
    counts = Counter(node.op for node in nodes)
    held = Counter(node.op for node in nodes if _is_held(node))
    return tuple(sorted((held or counts).items()))


def _is_held(node: Node) -> bool:
    name = node.instance_name
    return bool(name) and not name.startswith("redistribution_op")

"""Layers that repeat: which operator of one stands for which of the others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from irtool.cluster.weight_layers import cell_scope, is_numbered, layer_of
from irtool.compare.identity import scope_pattern
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """One operator of a layer, in all layers of its kind that have it: by layer.

    ``layers`` are all of the kind, those without it too.
    """

    op: str
    scope: str
    nodes: Mapping[str, Node]
    layers: tuple[str, ...]


def slots(nodes: Iterable[Node]) -> tuple[Slot, ...]:
    """The operators of repeated layers, each with its equals in the other layers.

    Operators are equals if they stand in scopes that differ in numbers alone, and are there the
    same one of their kind in printed order.

    Args:
        nodes: forward operators of a dump; plumbing and collectives are passed over.
    """
    by_place: dict[tuple[str, str, int], dict[str, Node]] = defaultdict(dict)
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    counts: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        if node.op in PLUMBING or node.op in COMMUNICATION or node.scope is None:
            continue
        if (node.micro or 0) > 0 or node.is_recomputed:
            continue
        layer = layer_of(node)
        if not is_numbered(layer):
            continue
        # Recomputed cells have scopes of their own.
        scope = (cell_scope(node) or "").removeprefix("recompute_")
        pattern = scope_pattern(scope)
        kinds[kind_of(layer)].setdefault(layer)
        place = counts[scope, node.op]
        counts[scope, node.op] += 1
        by_place[pattern, node.op, place][layer] = node
    return tuple(
        Slot(op, pattern, by_layer, tuple(kinds[kind_of(next(iter(by_layer)))]))
        for (pattern, op, _), by_layer in by_place.items()
    )


def layer_number(layer: str) -> tuple[int, ...]:
    """Numbers in a layer's name, by which layers stand in order.

    Args:
        layer: ``layers.12``, whose number is (12,).
    """
    return tuple(int(text) for text in _DIGITS.findall(layer))


def kind_of(layer: str) -> str:
    """The name of a layer with its numbers left out: ``layers.#`` for ``layers.12``.

    Args:
        layer: its name.
    """
    return _DIGITS.sub("#", layer)

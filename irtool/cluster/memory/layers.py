"""Layers: the part of a network that a parameter's name or a node's scope belongs to."""

from __future__ import annotations

import re
from functools import lru_cache

NETWORK = "(network)"
"""The layer of what belongs to no layer."""

_WRAPPERS = frozenset(
    ("network", "_backbone", "backbone", "_loss_fn", "net", "model", "_network", "module")
)
_INPUTS = "micro_inputs"
"""The cell that cuts a batch into micro-batches: no layer, though its parts are numbered."""
_NUMBER = re.compile(r"\d")


@lru_cache(maxsize=65536)
def layer_of_parameter(name: str) -> str:
    """The layer of a parameter: ``layers.0`` for ``layers.0.attention.query.weight``.

    Args:
        name: of the parameter, with dots.

    Returns:
        The first word where the name has no number; ``(network)`` where it tells no part of the
        network.
    """
    return _layer(name.split("."), all_cells=False)


@lru_cache(maxsize=65536)
def layer_of_scope(scope: str | None) -> str:
    """The layer that a scope lies in: ``layers.0`` for ``Default/…/layers-CellList/0-Layer``.

    Args:
        scope: cells from the outermost on; None or "": none.

    Returns:
        The first cell where none has a number; ``(network)`` where the scope tells no part of it.
    """
    parts = (scope or "").split("/")
    words = [part.partition("-")[0] for part in parts]
    words = words[1:] if words[0] == "Gradients" else words
    words = [word for word in words if not word.startswith("Grad_")]
    words = words[1:] if words and words[0] in ("Default", "recompute_Default") else words
    return NETWORK if _INPUTS in words[:2] else _layer(words, all_cells=True)


@lru_cache(maxsize=65536)
def cells_of_scope(scope: str | None) -> tuple[str, ...]:
    """``down.0`` and ``down.0.blocks.1``: the layer, and the cells of lists that stand in it.

    Only what a ``CellList`` numbers counts within a layer: those of a ``SequentialCell`` are its
    steps.

    Args:
        scope: cells from the outermost on; None or "": none.

    Returns:
        Empty where the layer has no number.
    """
    layer = layer_of_scope(scope)
    if not _NUMBER.search(layer):
        return ()
    parts = (scope or "").split("/")
    words = [part.partition("-")[0] for part in parts]
    depth = len(layer.split("."))
    first = next(
        place for place in range(len(words)) if ".".join(words[place : place + depth]) == layer
    )
    inner = [
        ".".join(words[first : place + 1])
        for place in range(first + depth, len(parts))
        if parts[place - 1].endswith("-CellList") and words[place].isdigit()
    ]
    return (layer, *inner)


def _layer(words: list[str], all_cells: bool) -> str:
    while len(words) > 1 and words[0] in _WRAPPERS:
        words = words[1:]
    for place, word in enumerate(words):
        if _NUMBER.search(word) and (all_cells or place + 1 < len(words) or place == 0):
            return ".".join(words[: place + 1])
    first = words[0] if words else ""
    return first if first and first not in _WRAPPERS else NETWORK

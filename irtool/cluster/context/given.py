"""Layers of what is given of a context: options, files, and the folder, key by key."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import cast

from irtool.cluster.context.model import Origin
from irtool.ir.dataclass import dataclass
from irtool.syntax.reading import parse_json

KEYS_BY_ALIAS = {
    "devices": "device_num",
    "rank": "global_rank",
    "stages": "pipeline_stages",
    "auto_parallel_search_mode": "search_mode",
    "target": "device_target",
    "soc_version": "soc",
}
"""Keys by their other names."""

OPTIMIZER = "parallel_optimizer_config"
IN_OPTIMIZER = (
    "parallel_optimizer_threshold",
    "optimizer_weight_shard_size",
    "gradient_accumulation_shard",
)
"""Keys of ``parallel_optimizer_config`` that may stand outside of it, too."""
ENVIRONMENT = "environment"
"""Key of the environment variables that the training process had."""


class ContextError(ValueError):
    """A value that can't be right; ``key`` names it, ``origin`` says who gave it."""

    def __init__(self, message: str, key: str = "", origin: Origin | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.key = key
        self.origin = origin


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says.

    ``is_asked``: the command line says it, or a file that it names; what stands there goes before
    what dumps show, since whoever asks may ask what would be.
    """

    values: Mapping[str, object]
    origin: Origin
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """What all places together say: values by key, who said each, and which were asked for."""

    values: Mapping[str, object] = field(default_factory=dict[str, object])
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    asked: frozenset[str] = frozenset()


def merged(layers: Iterable[Layer]) -> Given:
    """Stronger layers over weaker ones, key by key; the strongest comes last.

    Args:
        layers: from the weakest to the strongest.

    Raises:
        ContextError: a value that must be a table is none.
    """
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    asked: set[str] = set()
    for layer in layers:
        keys = _merge(values, origins, layer)
        asked = asked | keys if layer.is_asked else asked - keys
    return Given(values, origins, frozenset(asked))


def _merge(values: dict[str, object], origins: dict[str, Origin], layer: Layer) -> set[str]:
    """Put a layer over weaker ones; the keys that it says something of."""
    own = {
        KEYS_BY_ALIAS.get(key, key): value
        for key, value in layer.values.items()
        if value is not None
    }
    if "full_batch" in own and "dataset_strategy" not in own:
        # The two say the same thing in two ways; within one layer dataset_strategy goes first.
        values.pop("dataset_strategy", None)
        origins.pop("dataset_strategy", None)
    config = _table(own.pop(OPTIMIZER, None), OPTIMIZER, layer.origin)
    config |= {key: own.pop(key) for key in IN_OPTIMIZER if key in own}
    if config:
        below = cast("dict[str, object]", values.get(OPTIMIZER, {}))
        own[OPTIMIZER] = {**below, **config}
    if ENVIRONMENT in own:
        below = cast("dict[str, object]", values.get(ENVIRONMENT, {}))
        own[ENVIRONMENT] = {**below, **_table(own[ENVIRONMENT], ENVIRONMENT, layer.origin)}
    values.update(own)
    keys = {*own, *config}
    origins.update(dict.fromkeys(keys, layer.origin))
    return keys


def _table(value: object, key: str, origin: Origin) -> dict[str, object]:
    if isinstance(value, str):
        value = _literal(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ContextError(f"{key} must be a table, but is {value!r}", key, origin)
    return dict(cast("dict[str, object]", value))


def _literal(text: str) -> object:
    for read in (parse_json, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text

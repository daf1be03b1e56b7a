"""Primitives by name, wherever MindSpore keeps them."""

from __future__ import annotations

import importlib
from typing import Any

MODULES = (
    "mindspore.ops.operations",
    "mindspore.ops.auto_generate.gen_ops_prim",
    "mindspore.ops.operations._inner_ops",
    "mindspore.ops.operations.nn_ops",
    "mindspore.ops.operations.math_ops",
    "mindspore.ops.operations.array_ops",
    "mindspore.ops.operations._infer_ops",
    "mindspore.ops.operations._rl_inner_ops",
    "mindspore.ops.operations._quant_ops",
    "mindspore.ops.operations.image_ops",
    "mindspore.ops.operations.inner_ops",
    "mindspore.ops.operations.linalg_ops",
    "mindspore.ops.operations.other_ops",
    "mindspore.ops.operations.random_ops",
    "mindspore.ops.operations.sparse_ops",
    "mindspore.ops.operations.spectral_ops",
    "mindspore.ops.operations.custom_ops",
    "mindspore.ops.operations._thor_ops",
    "mindspore.ops.operations.reshard_ops",
)


def primitive(name: str) -> Any:
    """The class of a primitive; one that Python does not export is made from its bare name."""
    for module in MODULES:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            continue
        if isinstance(found, type):
            return found
    raise LookupError(f"no primitive {name}")

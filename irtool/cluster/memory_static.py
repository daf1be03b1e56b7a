"""What lives on a device for the whole of a run: parameters and what is kept beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from irtool.cluster.liveness import Liveness, Rounding, rounded
from irtool.cluster.memory_layers import layer_of_parameter
from irtool.ir.dump import Dump
from irtool.ir.items import Parameter
from irtool.ir.node import Node
from irtool.ir.types import BITS
from irtool.ir.values import TensorLiteral

StaticCause: TypeAlias = Literal[
    "parameters", "optimizer state", "accumulated gradients", "inputs", "constants", "other"
]
STATIC_CAUSES: tuple[StaticCause, ...] = (
    "parameters", "optimizer state", "accumulated gradients", "inputs", "constants", "other",
)  # fmt: skip
"""``other`` are the small values that an optimizer keeps: step, learning rate, loss scale."""

ACCUMULATED = "accu_grads."
"""What MindSpore puts before a parameter's name for its accumulated gradient."""


@dataclass(frozen=True, slots=True)
class StaticTensor:
    """One tensor that lives longer than a step.

    ``bytes`` is its size on this device, None where a dimension is unknown; ``parameter`` the name
    of the weight that it belongs to (its own, for a weight); ``on_host`` whether only operators
    placed on the CPU use it.
    """

    name: str
    cause: StaticCause
    parameter: str
    layer: str
    bytes: int | None
    dtype: str | None
    shape: tuple[int, ...] | None
    line: int
    on_host: bool = False


def static_tensors(
    dump: Dump, live: Liveness, rounding: Rounding = "pool"
) -> tuple[StaticTensor, ...]:
    """Parameters of the entry by what they are for, and constants that the graph holds.

    Inputs count once: with a dataset that sinks, the device holds the next batch too.
    """
    owner_of = owners(item.name for item in dump.parameters if item.is_weight)
    updated = {owner for name, owner in owner_of.items() if owner != name}
    host = _on_host(live)
    found = [
        _static(item, owner_of, updated, rounding, item.name in host) for item in dump.parameters
    ]
    return (*found, *_constants(dump, rounding))


def _static(
    item: Parameter,
    owner_of: Mapping[str, str],
    updated: set[str],
    rounding: Rounding,
    on_host: bool,
) -> StaticTensor:
    owner = owner_of.get(item.name, item.name)
    cause: StaticCause
    if item.name not in owner_of:
        cause = "inputs"
    elif item.name.startswith(ACCUMULATED):
        cause = "accumulated gradients"
    elif owner != item.name:
        cause = "optimizer state"
    elif item.name in updated or not _is_small(item):
        cause = "parameters"
    else:
        cause = "other"
    size = item.size
    return StaticTensor(
        item.name,
        cause,
        owner,
        layer_of_parameter(owner),
        None if size is None else rounded(size, rounding),
        item.type.dtype if item.type else None,
        item.type.dimensions if item.type else None,
        item.line,
        on_host,
    )


_STATE_WORDS = frozenset(
    ("accu_grads", "accum", "accum_update", "adam_m", "adam_v", "exp_avg", "exp_avg_sq", "exp_inf",
     "lamb_m", "lamb_v", "linear", "max_exp_avg_sq", "mean_grad", "mean_square", "moment",
     "moment1", "moment2", "moments", "momentum_buf", "prev", "stat", "step_size", "vhat")
)  # fmt: skip
"""What MindSpore's optimizers put before a weight's name (``mindspore.nn``, ``mint``, 2.7)."""


def owners(names: Iterable[str]) -> dict[str, str]:
    """The weight that each parameter is kept for, its own name for a weight.

    ``moments.up.weight`` is kept for ``up.weight``, and where the optimizer is part of a cell,
    ``cell.moments.up.weight`` for ``cell.up.weight``.  What something is kept for is a weight
    itself, however its name begins: ``dense.bias`` beside ``moments.dense.bias``, where ``bias`` is
    another weight.
    """
    known = dict.fromkeys(names)
    weights = {other for name in known for other in _owners_of(name) if other in known}
    return {
        name: name
        if name in weights
        else next((other for other in _owners_of(name) if other in known), name)
        for name in known
    }


def _owners_of(name: str) -> Iterator[str]:
    """What a parameter may be kept for: what stands behind each dot, the longest first.

    And the name without a word of an optimizer inside.
    """
    words = name.split(".")
    for place in range(1, len(words)):
        yield ".".join(words[place:])
    for place in range(1, len(words) - 1):
        if words[place] in _STATE_WORDS:
            yield ".".join((*words[:place], *words[place + 1 :]))


def _is_small(item: Parameter) -> bool:
    dimensions = item.type.dimensions if item.type else None
    return dimensions is not None and dimensions in ((), (1,))


def _on_host(live: Liveness) -> set[str]:
    """Parameters that are used, and by operators on the CPU only (``primitive_target``)."""
    found: set[str] = set()
    for name, uses in live.parameter_uses.items():
        nodes = [live.launched[place].node for place in uses]
        if nodes and all(node.attribute("primitive_target") == "CPU" for node in nodes):
            found.add(name)
    return found


def _constants(dump: Dump, rounding: Rounding) -> Iterable[StaticTensor]:
    """Tensors written into the graph; equal ones of one statement are one."""
    for node in dump.nodes():
        for place, operand in enumerate(node.operands):
            if not isinstance(operand, TensorLiteral) or not operand.shape:
                continue
            bits = BITS.get(operand.dtype)
            size = None
            if bits is not None and min(operand.shape) >= 0:
                size = bits // 8
                for dimension in operand.shape:
                    size *= dimension
                size = rounded(size, rounding)
            yield StaticTensor(
                constant_name(node, place),
                "constants",
                "",
                "",
                size,
                operand.dtype,
                operand.shape,
                node.line,
            )


def constant_name(node: Node, place: int) -> str:
    """What the constant operand of a node is called: ``%4 input 1``."""
    return f"{node.id} input {place}"


def by_cause(tensors: Iterable[StaticTensor], on_host: bool = False) -> Mapping[StaticCause, int]:
    """Bytes of each cause on the device (or in host memory); unknown sizes count nothing."""
    found: dict[StaticCause, int] = dict.fromkeys(STATIC_CAUSES, 0)
    for item in tensors:
        if item.on_host == on_host:
            found[item.cause] += item.bytes or 0
    return found


__all__ = [
    "ACCUMULATED",
    "STATIC_CAUSES",
    "StaticCause",
    "StaticTensor",
    "by_cause",
    "constant_name",
    "owners",
    "static_tensors",
]

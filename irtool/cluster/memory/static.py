"""What lives on a device for the whole of a run: parameters and what is kept beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from irtool.cluster.liveness import Liveness, Rounding, rounded
from irtool.cluster.memory.layers import layer_of_parameter
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.items import Parameter
from irtool.ir.parameter_roles import ParameterRole, Role, parameter_roles
from irtool.ir.types import BITS
from irtool.ir.values import TensorLiteral

StaticCause: TypeAlias = Literal[
    "parameters", "optimizer state", "accumulated gradients", "inputs", "constants", "other"
]
STATIC_CAUSES: tuple[StaticCause, ...] = (
    "parameters", "optimizer state", "accumulated gradients", "inputs", "constants", "other",
)  # fmt: skip
"""``other`` is what is kept for no single weight: step, learning rate, loss scale, caches."""


@dataclass(frozen=True, slots=True)
class StaticTensor:
    """One tensor that lives longer than a step.

    ``bytes`` is its size on this device, None where a dimension is unknown; ``parameter`` the name
    of the weight that it belongs to (its own, for a weight); ``on_host`` whether only operators
    placed on the CPU use it; ``updated`` whether it is a weight that the step updates.
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
    updated: bool = False


def static_tensors(
    dump: Dump, live: Liveness, rounding: Rounding = "pool"
) -> tuple[StaticTensor, ...]:
    """Parameters of the entry by what they are for, and constants that the graph holds.

    Inputs count once: with a dataset that sinks, the device holds the next batch too.

    Args:
        dump: whose entry's parameters count.
        live: what a step allocates, which tells what is kept on the host.
        rounding: of the backend.
    """
    roles = parameter_roles(dump)
    host = _on_host(live)
    parameters = [
        _static(item, roles[item.name], rounding, item.name in host) for item in dump.parameters
    ]
    return (*parameters, *_constants(dump, rounding))


_CAUSES: Mapping[Role, StaticCause] = {
    "input": "inputs",
    "weight": "parameters",
    "state": "optimizer state",
    "accumulated gradient": "accumulated gradients",
    "other": "other",
}


def _static(
    item: Parameter, role: ParameterRole, rounding: Rounding, on_host: bool
) -> StaticTensor:
    size = item.size
    return StaticTensor(
        item.name,
        _CAUSES[role.role],
        role.weight,
        layer_of_parameter(role.weight),
        None if size is None else rounded(size, rounding),
        item.type.dtype if item.type else None,
        item.type.dimensions if item.type else None,
        item.line,
        on_host,
        role.updated,
    )


def _on_host(live: Liveness) -> set[str]:
    """Parameters that are used, and by operators on the CPU only (``primitive_target``)."""
    names: set[str] = set()
    for name, uses in live.parameter_uses.items():
        nodes = [live.launched[place].node for place in uses]
        if nodes and all(node.attribute("primitive_target") == "CPU" for node in nodes):
            names.add(name)
    return names


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
    """What the constant operand of a node is called in answers: ``%4 input 1``.

    Args:
        node: that takes it.
        place: of the operand, from 0.
    """
    return f"{node.id} input {place}"


def by_cause(tensors: Iterable[StaticTensor], on_host: bool = False) -> Mapping[StaticCause, int]:
    """Bytes of each cause on the device, or in host memory; unknown sizes count nothing.

    Args:
        tensors: that stay for the whole run.
        on_host: whether to count those in host memory, and no others.

    Returns:
        With each cause, 0 where it has none.
    """
    sums: dict[StaticCause, int] = dict.fromkeys(STATIC_CAUSES, 0)
    for item in tensors:
        if item.on_host == on_host:
            sums[item.cause] += item.bytes or 0
    return sums


__all__ = [
    "STATIC_CAUSES",
    "StaticCause",
    "StaticTensor",
    "by_cause",
    "constant_name",
    "static_tensors",
]

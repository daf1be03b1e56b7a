"""Visits everything that reading promises: no contender may leave work for later."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

_FIELDS: dict[type, Any] = {}


def touch(dump: Any) -> int:
    """Visit operands, types and attributes of every node; the number of nodes."""
    count = 0
    for graph in dump.graphs:
        for node in graph.nodes:
            count += 1
            for operand in node.operands:
                _value(operand)
            signature = node.signature
            if signature is not None:
                for abstract in (*signature.inputs, *(signature.outputs or ())):
                    if abstract is not None:
                        _fields(abstract.type)
                        _fields(abstract.shape)
            for block in (
                node.primitive_attributes,
                node.node_attributes,
                node.primal_attributes,
                node.strategy,
            ):
                if block is not None:
                    for _, value in block.entries:
                        _value(value)
    return count


def _value(value: Any) -> None:
    for item in _fields(value):
        if type(item) is tuple:
            for inner in item:
                _value(inner)


def _fields(value: Any) -> tuple[Any, ...]:
    """All fields of a dataclass instance, by one call in C; nothing for plain data."""
    getter = _FIELDS.get(type(value))
    if getter is None:
        names = getattr(type(value), "__dataclass_fields__", {})
        if len(names) > 1:
            getter = attrgetter(*names)
        elif names:
            only = attrgetter(*names)
            getter = lambda value: (only(value),)  # noqa: E731
        else:
            getter = lambda _: ()  # noqa: E731
        _FIELDS[type(value)] = getter
    return getter(value)

"""What people call things of a node: one row a field, for queries, groups and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from irtool.ir.collectives import collective, is_collective
from irtool.ir.graph import Node
from irtool.ir.ties import Phase, phases
from irtool.ir.ties import phase as node_phase
from irtool.ir.values import Attributes
from irtool.syntax.printer import print_value

BLOCKS = {
    "attr": ("node_attributes", "primal_attributes", "primitive_attributes"),
    "cnode": ("node_attributes",),
    "primal": ("primal_attributes",),
    "primitive": ("primitive_attributes",),
}
"""Prefixes of attribute access, and the blocks each looks into, first to last."""


def block_value(node: Node, block: str, key: str) -> object:
    """The value of an attribute as Python has it.

    Args:
        node: with its blocks.
        block: ``primitive``, ``cnode``, ``primal``, …; ``attr`` looks into all.
        key: name of the attribute.

    Returns:
        None where there is no such attribute.
    """
    for name in BLOCKS[block]:
        attributes = cast("Attributes | None", getattr(node, name))
        if attributes is not None and key in attributes:
            return plain_value(attributes[key])
    return None


def plain_value(value: object) -> object:
    """Numbers, texts, tuples, lists and dictionaries as they are; other literals as printed.

    Args:
        value: an attribute's, or a literal of the model.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        items = [plain_value(item) for item in cast("list[object]", value)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {str(key): plain_value(item) for key, item in entries.items()}
    if isinstance(value, slice):
        bounds = cast("slice[object, object, object]", value)
        parts = (bounds.start, bounds.stop, bounds.step)
        return f"Slice[{' : '.join(str(plain_value(part)) for part in parts)}]"
    return print_value(value)  # type: ignore[arg-type]  # every other value is a literal


def phase(node: Node) -> Phase:
    """``forward``, ``backward``, ``recompute``, ``optimizer`` or ``other``.

    What a node does not say itself follows from its neighbours, worked out once for a dump.

    Args:
        node: of a dump, or alone.
    """
    dump = node.graph.dump if node.graph else None
    if dump is None:
        return node_phase(node)
    return phases(dump).get(node) or node_phase(node)


def group(node: Node) -> str | None:
    """Name of the communication group of a collective; None where a node names none.

    Args:
        node: of any kind.
    """
    name = node.attribute("group")
    return name if isinstance(name, str) and name else None


def ranks(node: Node) -> tuple[int, ...] | None:
    """Ranks of the communication group of a collective, sorted; None where they are not known.

    Args:
        node: of any kind.
    """
    communication = collective(node)
    return communication.ranks if communication else None


def origin(node: Node) -> str | None:
    """Why a collective is there, such as ``redistribution`` or ``mirror``; None if nothing tells.

    Args:
        node: of any kind.
    """
    communication = collective(node)
    return communication.origin if communication else None


def source(node: Node) -> str | None:
    """The line of the user's code that made a node, as ``net.py:33``; None where the dump lacks it.

    Args:
        node: with its comments.
    """
    location = node.location
    return f"{location.path}:{location.line}" if location else None


def _graph(node: Node) -> str | None:
    return node.graph.name if node.graph else None


def _file(node: Node) -> str | None:
    return node.graph.dump.path if node.graph and node.graph.dump else None


def _dtype(node: Node) -> str | None:
    return node.output_type.dtype if node.output_type else None


def _shape(node: Node) -> tuple[int, ...] | None:
    return node.output_type.dimensions if node.output_type else None


def _type(node: Node) -> str | None:
    return node.output_type.short() if node.output_type else None


def _input_types(node: Node) -> tuple[str | None, ...]:
    return tuple(input_type.short() if input_type else None for input_type in node.input_types)


FIELDS: dict[str, Callable[[Node], object]] = {
    "op": lambda node: node.op,
    "name": lambda node: node.name,
    "id": lambda node: node.id,
    "instance_name": lambda node: node.instance_name,
    "scope": lambda node: node.scope,
    "full_name": lambda node: node.full_name,
    "graph": _graph,
    "file": _file,
    "line": lambda node: node.line,
    "source": source,
    "phase": phase,
    "forward": lambda node: phase(node) == "forward",
    "backward": lambda node: phase(node) == "backward",
    "recompute": lambda node: phase(node) == "recompute",
    "type": _type,
    "dtype": _dtype,
    "shape": _shape,
    "bytes": lambda node: node.output_bytes,
    "input_types": _input_types,
    "strategy": lambda node: plain_value(node.written_strategy()),
    "in_strategy": lambda node: plain_value(node.written_strategy()),
    "user_strategy": lambda node: plain_value(node.written_strategy("user_strategy")),
    "out_strategy": lambda node: plain_value(node.written_strategy("out_strategy")),
    "in_layout": lambda node: plain_value(node.in_layout),
    "out_layout": lambda node: plain_value(node.out_layout),
    "collective": is_collective,
    "group": group,
    "ranks": ranks,
    "origin": origin,
    "micro": lambda node: node.micro,
    "stage": lambda node: node.stage,
    "unique_id": lambda node: node.unique_id,
    "forward_unique_id": lambda node: node.forward_unique_id,
}
"""Every field by name; a function gives None where the node has no such thing."""

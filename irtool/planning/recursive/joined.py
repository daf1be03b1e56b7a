"""Parts that are joined by a Concat and taken out of it again: MindSpore leaves out both.

Before it searches, it puts the part in the place of each StridedSlice that has the size of a part.
Which part that is it reckons from where the slice begins, as if all parts had the slice's size;
where that is wrong, so is what it compiles. Of an axis that counts from the end it takes nothing.

Not reproduced: a Concat that is all that a called graph returns.

Source: dumps before and after the search that MindSpore 2.7.0 makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from irtool.ir.graph import Node, Source
from irtool.operators.layout import Shape
from irtool.planning.recursive.kinds import NotSearchable
from irtool.sharding.network.calls import call_of
from irtool.sharding.network.graphs import Network, Port, Use, order_users
from irtool.sharding.network.sharded_nodes import primitive

Parts = Mapping[Node, Source]
"""By StridedSlice, the part that is put in its place."""


def without_joined(network: Network) -> Network:
    """The network that MindSpore searches: each slice that is a part of a Concat is that part.

    Args:
        network: as the dump has it.

    Raises:
        NotSearchable: MindSpore takes a slice for a part that it is not.
    """
    parts = _taken_apart(network)
    if not parts:
        return network
    users: dict[int, list[Use]] = {}
    for key, uses in network.users.items():
        users[key] = [use for use in uses if use.node not in parts]
    for node in parts:
        part = _resolved(node, parts)
        users.setdefault(id(part), []).extend(users.pop(id(node), ()))
    inputs = {
        node: tuple(_resolved(source, parts) for source in sources)
        for node, sources in network.inputs.items()
        if node not in parts
    }
    reduced = replace(network, inputs=inputs, users=users)
    order_users(reduced)
    reached = {id(port) for port in reduced.preorder}
    for uses in users.values():
        uses[:] = [use for use in uses if id(use.node) in reached]
    return reduced


def _taken_apart(network: Network) -> dict[Node, Source]:
    """All slices that are parts of a Concat."""
    parts: dict[Node, Source] = {}
    for port in network.preorder:
        if isinstance(port, Node) and primitive(port) == "Concat":
            for node in list(_slices(network, port, parts)):
                part = _part(network, port, node)
                if part is not None:
                    parts[node] = part
    return parts


def _slices(network: Network, joined: Port, known: Parts) -> Iterator[Node]:
    """StridedSlice operators that take a value, also one that they were given instead."""
    for use in network.users_of(joined):
        if primitive(use.node) == "StridedSlice" and use.position == 0:
            yield use.node
        elif primitive(use.node) == "Depend" and use.position == 0:
            yield from _slices(network, use.node, known)
    for node, part in known.items():
        if part is joined:
            yield from _slices(network, node, {})


def _part(network: Network, joined: Node, cut: Node) -> Source | None:
    """The part that a slice is; None: it is none."""
    items, axis = network.first(joined), _numbers(network, joined, 1)
    begin, end, strides = (_numbers(network, cut, operand) for operand in (1, 2, 3))
    shape = joined.output_type.dimensions if joined.output_type is not None else None
    if not isinstance(items, Node) or primitive(items) != "MakeTuple" or shape is None:
        return None
    if not axis or begin is None or end is None or any(step != 1 for step in strides or (0,)):
        return None
    parts = network.inputs[items]
    tensors = call_of(network, joined).call.tensors
    if axis[0] < 0 or len(tensors) < len(parts):
        return None
    sizes = [(tensor.shape or ())[axis[0]] for tensor in tensors[: len(parts)]]
    index: int | None = None
    for dimension, (low, high, size) in enumerate(zip(begin, end, shape, strict=False)):
        length = high - low
        if dimension != axis[0]:
            if length != size:
                return None
        elif length == size or length == 0 or not 0 <= int(low / length) < len(parts):
            return None
        else:
            index = int(low / length)
            _check_place(joined, cut, (low, high), (sum(sizes[:index]), sum(sizes[: index + 1])))
    return parts[index] if index is not None else None


def _check_place(joined: Node, cut: Node, wanted: Shape, actual: Shape) -> None:
    if wanted != actual:
        raise NotSearchable(
            f"it takes {cut.id}, {wanted[0]} to {wanted[1]} of {joined.id}, for the part of it "
            f"that is {actual[0]} to {actual[1]}, and goes on with another network"
        )


def _numbers(network: Network, node: Node, position: int) -> Shape | None:
    """A constant operand: one number, or several."""
    operands = call_of(network, node).call.inputs
    if position >= len(operands) or not operands[position].is_constant:
        return None
    value = operands[position].value
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
    numbers = tuple(item for item in items if isinstance(item, int))
    return numbers if numbers and len(numbers) == len(items) else None


def _resolved(source: Source, parts: Parts) -> Source:
    while isinstance(source, Node) and source in parts:
        source = parts[source]
    return source

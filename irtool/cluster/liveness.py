"""Liveness: which tensors a step allocates, when each is born, and when it is used last.

A buffer is born when its operator is launched and dies after the last launch that uses it as data,
under any of its names.  What only orders (the second input of Depend, UpdateState) uses nothing;
what only renames (Load, Depend, tuples, Reshape, updates in place) allocates nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.cluster.launch_order import OrderMethod, launches, launches_nothing
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.operators import COMMUNICATION, OPTIMIZERS
from irtool.ir.types import BITS, Abstract, RefType, SequenceType
from irtool.ir.values import Scalar, Word
from irtool.ir.whole import Whole, WholeNode, WholeSource
from irtool.operators.table import operator_of

Rounding: TypeAlias = Literal["none", "pool", "somas"]
"""How a backend rounds sizes: not at all, to 512 bytes (the memory pool of kernel-by-kernel
execution), or to 512 bytes with a margin (Somas, execution of whole graphs)."""

_COMMUNICATION_GUARD = 1024
_BLOCK = 512


def renames(op: str) -> bool:
    """Whether an operator's result is its first input, with another shape at most.

    Args:
        op: name of the primitive.
    """
    return operator_of(op).is_("renames") or op in ("StopGradient", "Send")


@dataclass(slots=True, eq=False)
class Buffer:
    """One tensor that a launch allocates.

    ``index`` is its place among the operator's outputs, ``size`` its bytes as allocated (None
    where a dimension is unknown), ``born`` and ``dies`` launch numbers: alive in ``born`` and in
    ``dies``, dead after.  ``users`` are the launches that use it, in order.
    """

    node: WholeNode
    index: int
    size: int | None
    born: int
    dies: int
    users: list[int] = field(default_factory=list[int])
    is_result: bool = False

    def __repr__(self) -> str:
        return f"<Buffer {self.node}[{self.index}] {self.size} {self.born}-{self.dies}>"


@dataclass(frozen=True, eq=False)
class Liveness:
    """The buffers of a step, and the launches they are born at.

    ``parameter_uses`` are the launches that read a parameter, by its name.  ``incomplete`` says
    why the buffers are not all (control flow); empty if they are.
    """

    launched: tuple[WholeNode, ...]
    buffers: tuple[Buffer, ...]
    parameter_uses: dict[str, list[int]]
    incomplete: str = ""


def liveness(
    source: Dump | Whole,
    order: OrderMethod | Literal["dump"] | Sequence[WholeNode] = "bfs",
    rounding: Rounding = "pool",
    views: bool = False,
) -> Liveness:
    """Follow every tensor of a step from its birth to its last use.

    Args:
        source: a dump, whose calls are inlined first, or a view with calls inlined.
        order: MindSpore's launch order, ``dfs``, ``dump`` for the printed order, or the nodes of
            ``source`` (a view) in the order in which they were really launched.
        rounding: how sizes are rounded.
        views: whether Transpose, Split, slices and the like are views instead of copies.
    """
    inlined = source.whole() if isinstance(source, Dump) else source
    if isinstance(order, str) and order != "dump":
        launched = launches(inlined, order)
    else:
        nodes = inlined.nodes if isinstance(order, str) else order
        launched = tuple(item for item in nodes if not launches_nothing(item.op))
    follower = _Follower(launched, rounding, views)
    follower.follow(inlined)
    incomplete = ""
    if inlined.kept_calls:
        incomplete = "results of control flow are not followed beyond their graphs"
    buffers = tuple(buffer for made in follower.buffers.values() for buffer in made)
    ordered = tuple(sorted(buffers, key=lambda buffer: (buffer.born, buffer.index)))
    return Liveness(launched, ordered, follower.parameter_uses, incomplete)


def curve(buffers: Iterator[Buffer] | tuple[Buffer, ...], count: int) -> list[int]:
    """Bytes alive during each of ``count`` launches, its own results and inputs included.

    Args:
        buffers: with the launches that they are born and die in; an unknown size counts nothing.
        count: of launches in the step.
    """
    changes = [0] * (count + 1)
    for buffer in buffers:
        size = buffer.size or 0
        changes[buffer.born] += size
        changes[buffer.dies + 1] -= size
    alive = 0
    totals: list[int] = []
    for change in changes[:count]:
        alive += change
        totals.append(alive)
    return totals


def rounded(size: int, rounding: Rounding, communicated: bool = False) -> int:
    """Bytes that a backend allocates for a tensor.

    Args:
        size: bytes of the tensor.
        rounding: of the backend: none, to 512 bytes (at least so many), or that with a margin of 31
            (Somas).
        communicated: whether it is the result of a collective, which takes 1,024 bytes more (unless
            nothing is rounded).
    """
    if rounding == "none":
        return size
    if communicated:
        return max(1, math.ceil(size / _BLOCK)) * _BLOCK + _COMMUNICATION_GUARD
    if rounding == "somas":
        return (size + _BLOCK + 31) // _BLOCK * _BLOCK
    return max(1, math.ceil(size / _BLOCK)) * _BLOCK


# A value: the buffers of each tensor in it.  Several buffers where it may be one of several.
_Value: TypeAlias = "tuple[_Value, ...] | frozenset[Buffer]"
_NOTHING: frozenset[Buffer] = frozenset()


class _Follower:
    """Resolves what each operand is made of; launches are numbered by their place."""

    def __init__(self, launched: tuple[WholeNode, ...], rounding: Rounding, views: bool) -> None:
        self.launched = launched
        self.number = {item: place for place, item in enumerate(launched)}
        self.rounding: Rounding = rounding
        self.views = views
        self.values: dict[WholeNode, _Value] = {}
        self.parameters: dict[WholeNode, tuple[str, ...]] = {}
        self.buffers: dict[WholeNode, list[Buffer]] = {}
        self.parameter_uses: dict[str, list[int]] = {}

    def follow(self, inlined: Whole) -> None:
        last = max(0, len(self.launched) - 1)
        for item in inlined.nodes:  # inputs stand before users
            self.values[item] = self._value(item)
        for place, item in enumerate(self.launched):
            for source in item.inputs:
                self._use(source, place)
        for item in inlined.nodes:
            if item.node.is_return or item.op == "call" or item.function is not None:
                for source in item.inputs:
                    for buffer in _buffers_in(self._operand(source)):
                        buffer.dies = last
                        buffer.is_result = True

    def _use(self, source: WholeSource, place: int) -> None:
        for buffer in _buffers_in(self._operand(source)):
            buffer.dies = max(buffer.dies, place)
            if not buffer.users or buffer.users[-1] != place:
                buffer.users.append(place)
        for name in self._read(source):
            uses = self.parameter_uses.setdefault(name, [])
            if not uses or uses[-1] != place:
                uses.append(place)

    def _read(self, source: WholeSource) -> tuple[str, ...]:
        """Names of the parameters that an operand is, or is loaded from."""
        if isinstance(source, GraphParameter):
            reference = source.type.ref_key if source.type else None
            return (reference or source.name,)
        if isinstance(source, WholeNode):
            return self.parameters.get(source, ())
        if isinstance(source, tuple):
            return tuple(name for one in source for name in self._read(one))
        return ()

    def _operand(self, source: WholeSource) -> _Value:
        if isinstance(source, WholeNode):
            return self.values.get(source, _NOTHING)
        if isinstance(source, tuple):
            return tuple(self._operand(one) for one in source)
        return _NOTHING

    def _value(self, item: WholeNode) -> _Value:
        op = item.op
        inputs = item.inputs
        if (
            op in ("Load", "Depend")
            or renames(op)
            or (self.views and operator_of(op).is_("strided"))
        ):
            if inputs:
                self.parameters[item] = self._read(inputs[0])
            return self._operand(inputs[0]) if inputs else _NOTHING
        if op in ("MakeTuple", "MakeList"):
            names = dict.fromkeys(name for one in inputs for name in self._read(one))
            self.parameters[item] = tuple(names)
            return tuple(self._operand(one) for one in inputs)
        if op in ("TupleGetItem", "ListGetItem") and len(inputs) > 1:
            return _element(self._operand(inputs[0]), inputs[1])
        if launches_nothing(op):
            return _NOTHING
        if _is_in_place(item.node):
            return self._operand(inputs[0]) if inputs else _NOTHING
        return self._allocated(item)

    def _allocated(self, item: WholeNode) -> _Value:
        output = item.node.output_type
        sizes = _sizes(output) if output is not None else []
        born = self.number.get(item)
        if born is None:
            return _NOTHING
        communicated = item.op in COMMUNICATION
        made = [
            Buffer(
                item,
                index,
                None if size is None else rounded(size, self.rounding, communicated),
                born,
                born,
            )
            for index, size in enumerate(sizes)
        ]
        self.buffers[item] = made
        values = tuple(frozenset((buffer,)) for buffer in made)
        return values[0] if len(values) == 1 and not _is_tuple(output) else values


def _is_tuple(output: Abstract | None) -> bool:
    return output is not None and isinstance(output.type, SequenceType)


def _sizes(output: Abstract) -> list[int | None]:
    sizes: list[int | None] = []
    for dtype, dimensions in output.tensors:
        bits = BITS.get(dtype or "")
        known = bits is not None and all(size >= 0 for size in dimensions)
        sizes.append((math.prod(dimensions) * (bits or 0) + 7) // 8 if known else None)
    return sizes


def _is_in_place(node: Node) -> bool:
    """Whether a node writes its result into its first input."""
    op = node.op
    if operator_of(op).is_("in_place") or op.startswith("Inplace") or OPTIMIZERS.match(op):
        return True
    first = node.input_types[0] if node.input_types else None
    if first is None or not isinstance(first.type, RefType):
        return False
    return bool(node.attribute("side_effect_mem"))


def _element(value: _Value, index: WholeSource) -> _Value:
    """One element of a tuple; all of it where the place is not known."""
    place = index.value if isinstance(index, Scalar | Word) else None
    if not isinstance(value, tuple):
        return value
    if isinstance(place, int) and -len(value) <= place < len(value):
        return value[place]
    return frozenset(_buffers_in(value))


def _buffers_in(value: _Value) -> Iterator[Buffer]:
    """Every buffer of a value; a tuple that stands in others several times is looked at once."""
    if isinstance(value, frozenset):
        yield from value
        return
    seen: set[int] = set()
    stack: list[_Value] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, frozenset):
            yield from one
        elif id(one) not in seen:
            seen.add(id(one))
            stack.extend(reversed(one))

"""Which operators of a run on one device and of a run that is cut over several are the same one.

The front end keeps the scope of every operator that the user wrote, and puts its own into the same
scopes, where names are counted anew.  So operators that are alone in their scope are paired first;
of several in one scope, those that read what is paired already, and are read by it; the rest in
their order, as far as their shapes go into each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from irtool.compare.layouts.ranks import (
    is_accumulated,
    node_ops,
    operand,
    parameter_of,
    readers,
)
from irtool.compare.layouts.slices import counts_of
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import Node

_SHARED = "Expand_"
"""Scopes that the kernel expander gives to whatever it expands, wherever it stands."""
_WRAPPERS = ("network-PipelineCell_", "network-MicroBatchInterleaved_")
_TRANSPARENT = ("view", "cast", "collective")
HELPERS = ("_VirtualDiv", "_MirrorOperator")
"""In the names of operators that the front end adds where a network is cut."""
MICRO_BATCH = "-_MicroBatch"
"""In the scope of what takes a micro-batch out of the batch."""
_MOST_ROUNDS = 200
_MOST_STEPS = 30
_Key: TypeAlias = tuple[str, str]


def same_operators(one_device: TensorRun, part: TensorRun) -> dict[int, int]:
    """Pairs of operators by their places in the order of execution.

    Args:
        one_device: the run on one device.
        part: one rank of the other.

    Returns:
        The place in the second one by that in the first.
    """
    ours, theirs = _by_key(one_device), _by_key(part)
    pairs: dict[int, int] = {}
    several: list[_Key] = []
    for key, ops in ours.items():
        others = theirs.get(key, [])
        if len(ops) == len(others) == 1:
            if _fits(one_device, ops[0], part, others[0]):
                pairs[ops[0].index] = others[0].index
        elif others:
            several.append(key)
    sides = _Side(one_device), _Side(part)
    for _ in range(_MOST_ROUNDS):
        before = len(pairs)
        for key in several:
            _by_neighbours(sides, ours[key], theirs[key], pairs)
        if len(pairs) == before:  # gradients may be made in the scope of another layer
            _by_kind(sides, pairs)
        if len(pairs) == before:
            break
    taken = set(pairs.values())
    for key in several:
        rest = [op for op in ours[key] if op.index not in pairs]
        free = [op for op in theirs[key] if op.index not in taken]
        if not key[1].startswith(_SHARED):
            pairs.update(_in_order(sides, rest, free, dict(pairs)))
    return pairs


def _by_kind(sides: tuple[_Side, _Side], pairs: dict[int, int]) -> None:
    """Pair what is left by its neighbours, whatever its scope."""
    taken = set(pairs.values())
    theirs: dict[str, list[Op]] = {}
    for op in sides[1].run.ops:
        if op.index not in taken and op.node is not None:
            theirs.setdefault(op.type, []).append(op)
    for op in sides[0].run.ops:
        if op.index not in pairs and op.node is not None and theirs.get(op.type):
            _by_neighbours(sides, [op], theirs[op.type], pairs)


def _by_key(run: TensorRun) -> dict[_Key, list[Op]]:
    ops: dict[_Key, list[Op]] = {}
    for op in run.ops:
        ops.setdefault(_key(op), []).append(op)
    return ops


class _Side:
    """What the operators of one dump read and are read by."""

    def __init__(self, run: TensorRun) -> None:
        self.run = run
        self.ops = node_ops(run)

    def operands(self, op: Op) -> list[Hashable]:
        """The operator, parameter or constant that makes each operand."""
        if op.node is None:
            return []
        return [self._maker(op.node, place) for place in range(len(op.node.inputs))]

    def _maker(self, node: Node, place: int) -> Hashable:
        for _ in range(_MOST_STEPS):
            source = operand(node, place)
            if source is None:
                return _given(node, place)
            node, place = source[0], 0
            if node.op == "Receive":
                return None  # another stage made it
            helps = any(word in (node.full_name or "") for word in HELPERS)
            if family(node.op) not in _TRANSPARENT and not helps:
                made = self.ops.get(node)
                return None if made is None or _reads_accumulated(node) else made.index
        return None

    def readers(self, op: Op) -> set[int]:
        """The operators that read its results."""
        indices: set[int] = set()
        waiting = list(readers(op.node)) if op.node is not None else []
        for _ in range(_MOST_STEPS):
            if not waiting:
                break
            node = waiting.pop()
            helps = any(word in (node.full_name or "") for word in HELPERS)
            made = self.ops.get(node)
            if family(node.op) in _TRANSPARENT or helps:
                waiting += list(readers(node))
            if made is not None:
                indices.add(made.index)
        return indices


def _reads_accumulated(node: Node) -> bool:
    """Whether a node reads what gradients of micro-batches are added up in."""
    return any(is_accumulated(parameter_of(node, place)) for place in range(len(node.inputs)))


def _given(node: Node, place: int) -> Hashable:
    """A parameter by its name; of constants only flags are the same however a network is cut.

    What accumulates gradients stands for them, and is nothing that the other run has.
    """
    parameter = parameter_of(node, place)
    if parameter is not None:
        return None if is_accumulated(parameter) else parameter.name
    text = str(node.inputs[place]) if place < len(node.inputs) else ""
    return text if "Bool" in text or text in ("True", "False") else None


def _by_neighbours(
    sides: tuple[_Side, _Side], ours: Sequence[Op], theirs: Sequence[Op], pairs: dict[int, int]
) -> None:
    """Pair operators of one scope and kind whose neighbours are paired with each other."""
    taken = set(pairs.values())
    free = [op for op in theirs if op.index not in taken]
    for op in ours:
        if op.index in pairs:
            continue
        scores = [(_likeness(sides, op, other, pairs), other) for other in free]
        scores = [(score, other) for score, other in scores if score > 0]
        best = max((score for score, _ in scores), default=0)
        chosen = [other for score, other in scores if score == best]
        if len(chosen) == 1 and _fits(sides[0].run, op, sides[1].run, chosen[0]):
            pairs[op.index] = chosen[0].index
            free.remove(chosen[0])


def _likeness(sides: tuple[_Side, _Side], op: Op, other: Op, pairs: dict[int, int]) -> int:
    """How many neighbours agree; -1 where one that is known does not."""
    score = 0
    taken = set(pairs.values())
    theirs = sides[1].operands(other)
    for a, b in zip(sides[0].operands(op), theirs, strict=False):
        if isinstance(a, str) or isinstance(b, str):
            if a is None or b is None:
                continue
            if a != b:
                return -1
            score += 1
        elif isinstance(a, int) and isinstance(b, int):
            if pairs.get(a) == b:
                score += 2
            elif a in pairs or b in taken:
                return -1
        elif isinstance(a, int) and a in pairs and pairs[a] in theirs:
            return -1  # it is read at another place
    expected = {pairs[a] for a in sides[0].readers(op) if a in pairs}
    return score + len(expected & sides[1].readers(other))


def _key(op: Op) -> _Key:
    scope = op.name.rpartition("-op")[0] or op.name
    for wrapper in _WRAPPERS:
        scope = scope.replace(wrapper, "")
    return op.type, _SHARED if scope.startswith(_SHARED) else scope


def _in_order(
    sides: tuple[_Side, _Side], ours: Sequence[Op], theirs: Sequence[Op], pairs: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Pair in the order of execution what fits, and does not read other operators."""
    place = 0
    for op in ours:
        for other in range(place, len(theirs)):
            fits = _fits(sides[0].run, op, sides[1].run, theirs[other])
            if fits and _likeness(sides, op, theirs[other], pairs) >= 0:
                yield op.index, theirs[other].index
                place = other + 1
                break


def _fits(one_device: TensorRun, op: Op, part: TensorRun, other: Op) -> bool:
    """Whether every tensor of one is a part of the other's, by its shape; sums of as many terms."""
    if op.type == "AddN" and len(op.inputs) != len(other.inputs):
        return False
    shapes = {part.columns.labels[p]: part.columns.shapes[p] for p in other.tensors}
    for place in op.tensors:
        piece = shapes.get(one_device.columns.labels[place])
        if piece is not None and counts_of(one_device.columns.shapes[place], piece) is None:
            return False
    return True

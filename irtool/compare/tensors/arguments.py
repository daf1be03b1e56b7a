"""What differs in how two operators were called: scalars, shapes, tensors that one side lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.compare.tensors.attributes import AttributeChange, changed_attributes
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.pairing import OpPair, Slots
from irtool.ir.node import Node

_MOST_STEPS = 20


def changed_arguments(
    pair: OpPair,
    slots: Slots,
    left: Columns,
    right: Columns,
    changed: Mapping[Node, Sequence[str]],
) -> Iterator[AttributeChange]:
    """Differences of two calls that can change numbers.

    Args:
        pair: the operators.
        slots: their tensors.
        left: columns of the left dump.
        right: columns of the right one.
        changed: what the graphs say of matched nodes, in words.
    """
    if pair.left.type.lower() != pair.right.type.lower():
        yield AttributeChange("operator", pair.left.type, pair.right.type)
    computed = _computed(pair.left)
    for change in changed_attributes(pair.left.attributes, pair.right.attributes):
        if change.name not in computed:
            yield change
    for a, b in (*slots.inputs, *slots.outputs):
        ours, theirs = left.shapes[a], right.shapes[b]
        if ours != theirs and len(ours) == len(theirs):
            yield AttributeChange(f"{left.labels[a]} shape", str(ours), str(theirs))
    if len(slots.only_left) != len(slots.only_right) and pair.how != "graph":
        for at in slots.only_left:
            yield AttributeChange(left.labels[at], _tensor_text(left, at), "(none)")
        for at in slots.only_right:
            yield AttributeChange(right.labels[at], "(none)", _tensor_text(right, at))
    if pair.left.node is not None:
        for text in changed.get(pair.left.node, ()):
            name, _, rest = text.partition(": ")
            before, _, after = rest.partition(" → ")
            yield AttributeChange(name, before, after)


def _computed(op: Op) -> frozenset[str]:
    """Scalar inputs that other operators compute: they carry error like any tensor."""
    if op.node is None:
        return frozenset()
    found: set[str] = set()
    for place, source in enumerate(op.node.inputs):
        steps = 0
        while isinstance(source, Node) and source.op in ("Load", "Depend") and steps < _MOST_STEPS:
            source = source.inputs[0] if source.inputs else None
            steps += 1
        if isinstance(source, Node):
            found.add(f"input.{place}")
    return frozenset(found)


def _tensor_text(columns: Columns, place: int) -> str:
    shape = ", ".join(map(str, columns.shapes[place]))
    return f"{columns.dtypes[place]}[{shape}]"

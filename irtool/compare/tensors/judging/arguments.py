"""What differs in how two operators were called: scalars, shapes, tensors that one side lacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from irtool.compare.tensors.judging.attributes import (
    ABSENT,
    AttributeChange,
    changed_attributes,
    is_same_number,
)
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots, is_fused_sum
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import Node
from irtool.operators.table import operator_called

_SPELLED_OTHERWISE = frozenset(("matmul", "view", "scatter"))
"""Families whose functions all do the same: which one is called changes no number."""
_EXCHANGED = 2.0**-7
"""Relative difference of norms, summed up, from which two operands are not one another."""
_MOST_STEPS = 20
_FEW = 10.0


def changed_arguments(
    pair: OpPair,
    slots: Slots,
    left: Columns,
    right: Columns,
    changed: Mapping[Node, Sequence[str]],
    worst: float = 0.0,
) -> Iterator[AttributeChange]:
    """Differences of two calls that can change numbers.

    Args:
        pair: the operators.
        slots: their tensors.
        left: columns of the left dump.
        right: columns of the right one.
        changed: what the graphs say of matched nodes, in words.
        worst: the largest error before: numbers that are no further apart may have been computed.
    """
    if pair.left.type.lower() != pair.right.type.lower():
        if _is_same_factor(pair):
            return
        if not _is_alias(pair):
            yield AttributeChange("operator", pair.left.type, pair.right.type)
        if is_spelled_otherwise(pair):
            return
    if pair.left.attributes != pair.right.attributes:
        computed = _computed(pair, worst)
        for change in changed_attributes(pair.left.attributes, pair.right.attributes):
            if change.name not in computed:
                yield change
    if _are_exchanged(pair, slots, left, right):
        yield AttributeChange("operands", "in this order", "exchanged")
    for a, b in (*slots.inputs, *slots.outputs):
        ours, theirs = left.shapes[a], right.shapes[b]
        if ours != theirs and len(ours) == len(theirs):
            yield AttributeChange(f"{left.labels[a]} shape", str(ours), str(theirs))
    lone = [
        [place for place in places if not _is_further_result(pair.left, columns.labels[place])]
        for columns, places in ((left, slots.only_left), (right, slots.only_right))
    ]
    if len(lone[0]) != len(lone[1]) and pair.how != "graph":
        for place in lone[0]:
            yield AttributeChange(left.labels[place], _tensor_text(left, place), ABSENT)
        for place in lone[1]:
            yield AttributeChange(right.labels[place], ABSENT, _tensor_text(right, place))
    if pair.left.node is not None:
        for text in changed.get(pair.left.node, ()):
            name, _, rest = text.partition(": ")
            before, _, after = rest.partition(" → ")
            yield AttributeChange(name, before, after)


def _is_further_result(op: Op, label: str) -> bool:
    """Whether a tensor is a result of a call besides its first: indices, weights of attention."""
    return op.phase == "forward" and label.startswith("output") and label != "output.0"


def _are_exchanged(pair: OpPair, slots: Slots, left: Columns, right: Columns) -> bool:
    """Whether the operands of a product have changed places, by figures: its result is transposed.

    Figures of a transposed result are the same, and only values tell whether it is.
    """
    if len(slots.inputs) < 2:
        return False
    (a, b), (c, d) = slots.inputs[:2]
    straight = abs(left.norm[a] - right.norm[b]) + abs(left.norm[c] - right.norm[d])
    if not straight > _EXCHANGED * left.norm[a]:
        return False  # nearly always
    op = pair.left
    if op.phase != "forward" or op.is_opaque or family(op.type) not in ("matmul", "attention"):
        return False
    if left.shapes[a] != left.shapes[c] or left.files[a] or left.files[c]:
        return False
    across = abs(left.norm[a] - right.norm[d]) + abs(left.norm[c] - right.norm[b])
    return across < straight / _FEW


def factor_of(op: Op) -> float | None:
    """The number that an operator multiplies its one tensor by; None for anything else.

    Args:
        op: one that reads a tensor and a number.
    """
    kind = op.type.lower().strip("_")
    if len(op.inputs) != 1 or kind not in ("mul", "div", "truediv", "imul", "rmul", "itruediv"):
        return None
    numbers = [
        float(value)
        for value in op.attributes.values()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) != 1 or numbers[0] == 0 or not math.isfinite(numbers[0]):
        return None
    return numbers[0] if "mul" in kind else 1 / numbers[0]


def _is_alias(pair: OpPair) -> bool:
    """Whether two calls are one function, as ``x / y``, ``x.div(y)`` and ``torch.div(x, y)`` are.

    Python's reflected operators (``__rsub__``) take their operands the other way round.
    """
    words = pair.left.type.lower(), pair.right.type.lower()
    is_reflected = [word.startswith("__r") for word in words]
    if not (pair.left.call and pair.right.call) or is_reflected[0] != is_reflected[1]:
        return False
    return "" != operator_called(words[0]).name == operator_called(words[1]).name


def _is_same_factor(pair: OpPair) -> bool:
    """Whether one side divides by a number and the other multiplies by its inverse."""
    ours, theirs = factor_of(pair.left), factor_of(pair.right)
    return ours is not None and theirs is not None and is_same_number(ours, theirs)


def is_spelled_otherwise(pair: OpPair) -> bool:
    """Whether two calls of PyTorch are one function that has several names.

    Their arguments are counted and called otherwise then: what they amount to the result shows.

    Args:
        pair: two operators.
    """
    if not (pair.left.call and pair.right.call) or pair.left.is_module:
        return False
    kinds = family(pair.left.type), family(pair.right.type)
    if is_fused_sum(pair):
        return True
    return kinds[0] == kinds[1] and kinds[0] in _SPELLED_OTHERWISE


def computed_scalars(pair: OpPair, worst: float) -> float:
    """The largest relative difference of scalar arguments that other operators computed.

    Args:
        pair: the operator on both sides.
        worst: the largest relative error before it, by which computed numbers are known without a
            graph.
    """
    ours, theirs = pair.left.attributes, pair.right.attributes
    if not ours or not theirs:
        return 0.0
    computed = _computed(pair, worst)
    return max((_apart(ours.get(name), theirs.get(name)) for name in computed), default=0.0)


def _computed(pair: OpPair, worst: float) -> frozenset[str]:
    """Scalar inputs that other operators compute: they carry error like any tensor.

    The graph says which these are; without one, those that differ by no more than anything before.
    """
    op = pair.left
    if op.node is None:
        if op.call or not worst:  # calls of an API have Python's own numbers
            return frozenset()
        ours, theirs = op.attributes, pair.right.attributes
        return frozenset(
            name
            for name in ours
            if name in theirs and 0 < _apart(ours[name], theirs[name]) <= _FEW * worst
        )
    computed: set[str] = set()
    for place, source in enumerate(op.node.inputs):
        steps = 0
        while isinstance(source, Node) and source.op in ("Load", "Depend") and steps < _MOST_STEPS:
            source = source.inputs[0] if source.inputs else None
            steps += 1
        if isinstance(source, Node):
            computed.add(f"input.{place}")
    return frozenset(computed)


def _apart(left: object, right: object) -> float:
    """Relative difference of two numbers; 0 for anything else."""
    if not isinstance(left, float) or not isinstance(right, float):
        return 0.0
    largest = max(abs(left), abs(right))
    return abs(left - right) / largest if largest and math.isfinite(largest) else 0.0


def _tensor_text(columns: Columns, place: int) -> str:
    shape = ", ".join(map(str, columns.shapes[place]))
    return f"{columns.dtypes[place]}[{shape}]"

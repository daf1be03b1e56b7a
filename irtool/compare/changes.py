"""Changes of an operator that two dumps share, in people's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from irtool.compare.attributes import Topic, plain_text, topic
from irtool.compare.matching import Matching
from irtool.compare.side import Constant, From, Named, Operand, Operator
from irtool.compare.similarity import same_operand
from irtool.ir.dataclass import dataclass
from irtool.operators.table import operator_of

Kind: TypeAlias = Literal[
    "dtype changed",
    "shape changed",
    "attribute changed",
    "re-sharded",
    "recompute changed",
    "group changed",
    "schedule changed",
    "constant changed",
    "input changed",
    "operands reordered",
    "parameter renamed",
    "moved",
]

_OF_TOPIC: dict[Topic, Kind] = {
    "attribute": "attribute changed",
    "sharding": "re-sharded",
    "recompute": "recompute changed",
    "group": "group changed",
    "schedule": "schedule changed",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: ``what`` changed (an attribute, an operand's place), from and to."""

    kind: Kind
    what: str
    before: str
    after: str

    @property
    def detail(self) -> str:
        """What changed, from and to."""
        return f"{self.what}: {self.before} → {self.after}" if self.what else self.after

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def changes(matching: Matching, index: int, in_sum: bool = False) -> tuple[Change, ...]:
    """What differs between an operator of the left side and its match; empty if nothing does.

    Args:
        matching: the matched sides.
        index: the operator of the left side.
        in_sum: it belongs to a sum whose order changed as a whole, so its operands are not told.
    """
    other = matching.left[index]
    left, right = matching.sides[0].operators[index], matching.sides[1].operators[other]
    if matching.rounds[index] == "identical":
        return tuple(_place(left, right))
    types = matching.sides[0].types[index], matching.sides[1].types[other]
    return (
        *_types(*types),
        *_attributes(left, right),
        *(() if in_sum else _operands(matching, left, right)),
        *_place(left, right),
    )


def _types(before: str, after: str) -> Iterator[Change]:
    if before == after or not before or not after:
        return
    names = [text.partition("[") for text in (before, after)]
    if names[0][0] != names[1][0] or before.startswith("Tuple"):
        same_shape = names[0][2] == names[1][2]
        shown = (names[0][0], names[1][0]) if same_shape else (before, after)
        yield Change("dtype changed" if same_shape else "shape changed", "result", *shown)
    else:
        yield Change("shape changed", "result", f"[{names[0][2]}", f"[{names[1][2]}")


def _attributes(left: Operator, right: Operator) -> Iterator[Change]:
    if left.attributes == right.attributes:
        return
    for key in (*left.attributes, *(key for key in right.attributes if key not in left.attributes)):
        before, after = left.attributes.get(key), right.attributes.get(key)
        if before != after:
            texts = [_absent(key in side.attributes, side.attributes.get(key))
                     for side in (left, right)]  # fmt: skip
            yield Change(_OF_TOPIC[topic(key)], key, texts[0], texts[1])


def _absent(has: bool, value: object) -> str:
    return plain_text(value) if has else "(none)"


def _operands(matching: Matching, left: Operator, right: Operator) -> Iterator[Change]:
    ours, theirs = left.operands, right.operands
    if len(ours) != len(theirs):
        yield Change("input changed", "number of operands", str(len(ours)), str(len(theirs)))
        return
    wrong = [
        place
        for place, (mine, yours) in enumerate(zip(ours, theirs, strict=True))
        if not same_operand(mine, yours, matching.left)
    ]
    if (
        len(wrong) > 1
        and operator_of(left.op).is_("commutes")
        and _same_in_any_order(matching, ours, theirs)
    ):
        yield Change("operands reordered", "", "", "same operands, other order")
        return
    names = operator_of(left.op)
    for place in wrong:
        what = names.operand_name(place) or f"operand {place + 1}"
        yield from _operand(matching, what, ours[place], theirs[place])


def _operand(matching: Matching, what: str, mine: Operand, yours: Operand) -> Iterator[Change]:
    texts = operand_text(matching, 0, mine), operand_text(matching, 1, yours)
    if isinstance(mine, Constant) and isinstance(yours, Constant):
        yield Change("constant changed", what, *texts)
    elif isinstance(mine, Named) and isinstance(yours, Named):
        yield Change("parameter renamed", what, *texts)
    elif not _is_bypass(matching, mine, yours):
        yield Change("input changed", what, *texts)


def _is_bypass(matching: Matching, mine: Operand, yours: Operand) -> bool:
    """Whether the operand is the same but for operators that only one side has.

    What was inserted or removed on the way is an edit of its own; the reader did not change.
    """
    pairs = [(mine, yours)]
    if isinstance(mine, tuple) and isinstance(yours, tuple) and len(mine) == len(yours):
        pairs = list(zip(mine, yours, strict=True))
    return all(
        same_operand(a, b, matching.left)
        or _is_unmatched(matching, 0, a)
        or _is_unmatched(matching, 1, b)
        for a, b in pairs
    )


def _is_unmatched(matching: Matching, which: int, operand: Operand) -> bool:
    taken = matching.right if which else matching.left
    return isinstance(operand, From) and operand.operator not in taken


def _same_in_any_order(
    matching: Matching, ours: tuple[Operand, ...], theirs: tuple[Operand, ...]
) -> bool:
    left = list(theirs)
    for mine in ours:
        for position, yours in enumerate(left):
            if same_operand(mine, yours, matching.left):
                del left[position]
                break
        else:
            return False
    return not left


def operand_text(matching: Matching, which: int, operand: Operand) -> str:
    """An operand as people write it: ``%4 MatMul``, a parameter's name, a value."""
    match operand:
        case From():
            node = matching.sides[which].operators[operand.operator].node
            element = "".join(f"[{number}]" for number in operand.element)
            return f"{node.id} {node.op}{element}"
        case Named():
            return operand.name
        case Constant():
            return plain_text(operand.value)
        case tuple():
            return f"({', '.join(operand_text(matching, which, item) for item in operand)})"


def _place(left: Operator, right: Operator) -> Iterator[Change]:
    before, after = left.node.scope, right.node.scope
    if before is not None and after is not None and before != after:
        yield Change("moved", "scope", before, after)
    if left.phase != right.phase:
        yield Change("moved", "phase", left.phase, right.phase)

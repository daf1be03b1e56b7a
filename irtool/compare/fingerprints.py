"""Numbers that are equal for operators that compute the same, seen from inputs or from readers.

Two operators of two dumps have the same number *from inputs* if everything that leads to them is
equal, and the same number *from readers* if everything that comes of them is.  Numbers are handed
out by a table that both sides share, so that equal numbers mean equal keys: nothing collides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field

from irtool.compare.side import Constant, From, Named, Operand, Side
from irtool.ir.dataclass import dataclass
from irtool.ir.whole import WholeNode

Content = Callable[[Side, int], Hashable]


@dataclass(slots=True)
class Numbering:
    """A number for each key, the same for the same key."""

    numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def of(self, key: Hashable) -> int:
        """The number of a key: that of an equal key before, or the next one."""
        return self.numbers.setdefault(key, len(self.numbers))


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """For each operator of one side: its content, and its number from inputs and from readers."""

    contents: tuple[int, ...]
    inputs: tuple[int, ...]
    readers: tuple[int, ...]


def fingerprints(side: Side, content: Content, numbering: Numbering) -> Fingerprints:
    """Numbers of all operators of a side.

    Args:
        side: the operators.
        content: what an operator is by itself; what it leaves out makes no difference.
        numbering: the table that both sides share.
    """
    count = len(side.operators)
    contents = tuple(numbering.of((content(side, index),)) for index in range(count))
    inputs: list[int] = []
    for index, operator in enumerate(side.operators):
        made = tuple(_shape_of(operand, inputs) for operand in operator.operands)
        inputs.append(numbering.of((contents[index], made)))
    readers = [0] * count
    for index in range(count - 1, -1, -1):
        # A reader that comes earlier closes a cycle through a kept call: there is none otherwise.
        users = sorted((readers[user], place) for user, place in side.readers[index])
        readers[index] = numbering.of((contents[index], "readers", tuple(users)))
    return Fingerprints(contents, tuple(inputs), tuple(readers))


def order_fingerprint(side: Side, numbering: Numbering) -> tuple[int, ...]:
    """Numbers of all statements, those included that only order others; equal if all is equal.

    Args:
        side: whose statements are numbered.
        numbering: that both sides share.

    Returns:
        Sorted, one number for each statement.
    """
    numbers: list[int] = []
    for item in side.whole.nodes:
        made = tuple(
            numbers[source.index] if isinstance(source, WholeNode) else type(source).__name__
            for source in item.inputs
        )
        numbers.append(numbering.of(("order", item.op, made)))
    return tuple(sorted(numbers))


def _shape_of(operand: Operand, inputs: list[int]) -> Hashable:
    match operand:
        case From():
            return (inputs[operand.operator], operand.element)
        case tuple():
            return tuple(_shape_of(item, inputs) for item in operand)
        case Named() | Constant():
            return None  # stands in the content, if it is to make a difference


def loose_content(side: Side, index: int) -> Hashable:
    """An operator without what sharding, casts and versions change: name and parameters read.

    Args:
        side: of a comparison.
        index: of the operator on that side.
    """
    operator = side.operators[index]
    return (operator.op, operator.names())

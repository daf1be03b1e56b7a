"""What the callbacks of the grammar share: leaves, and the shapes of intermediate results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from lark import Token, Transformer

from irtool.ir.dataclass import dataclass
from irtool.ir.statement import Target
from irtool.ir.types import Signature, TextSignature
from irtool.ir.values import Attributes
from irtool.syntax.decode import MEMOS
from irtool.syntax.part import Part, leaf


@dataclass(frozen=True, slots=True)
class StatementParts:
    """The parts of one statement, and how its blocks are to be understood."""

    number: Part[int] | None
    name: Part[str] | None
    target: Part[Target]
    operands: Part[tuple[Any, ...]]
    tails: Tails
    return_word: Part[str] | None


@dataclass(frozen=True, slots=True)
class SignatureParts:
    """A type line; ``strategy`` is the block that versions up to 1.6 print before it."""

    line: Part[Signature | TextSignature]
    strategy: Part[Attributes] | None


@dataclass(frozen=True, slots=True)
class Block:
    """An attribute block and what stands before its braces."""

    label: str
    attributes: Part[Attributes]


@dataclass(frozen=True, slots=True)
class Tails:
    """What follows the operands of a statement."""

    instance_name: Part[str] | None
    blocks: tuple[Block, ...]
    prototype: Part[str] | None


@dataclass(frozen=True, slots=True)
class Note:
    """What follows type and shape: a flag, or the key of a reference."""

    is_key: bool
    text: Part[str]


@dataclass(frozen=True, slots=True)
class TypeList:
    """A list in parentheses on a type line; ``kind`` is None for plain types."""

    items: Part[tuple[Any, ...]]
    kind: str | None
    is_path: bool


@dataclass(frozen=True, slots=True)
class HeadParameters:
    """Parameters in the head of a graph and the punctuation around them."""

    items: Part[tuple[Any, ...]]
    spelling: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One attribute; ``separator`` stands between its name and its value."""

    pair: Part[Any]
    separator: str

    def at(self, start: int) -> Entry:
        """This entry in a record where its first hole is number ``start``."""
        return Entry(self.pair.at(start), self.separator)


Entries: TypeAlias = tuple[Entry, ...]
NOTHING: Part[Any] = Part(None)
TEXT_KINDS = {"KERNEL": "kernel", "SYMBOLIC": "symbolic", "OBJECT": "objects"}


class Leaves(Transformer[Token, Any]):
    """Makes the part of a single token."""

    masked = True
    restore: Callable[[str], str] | None = None

    def leaf(self, kind: str, token: str) -> Part[Any]:
        text = str(token)
        if self.restore is not None:
            text = self.restore(text)
        return leaf(text, MEMOS[kind], self.masked)

    def text(self, token: str) -> Part[str]:
        return self.leaf("text", token)


def pair(first: Any, second: Any) -> tuple[Any, Any]:
    """Two values as a tuple.

    Args:
        first: of any kind.
        second: of any kind.
    """
    return first, second


def flat(groups: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items of groups in line: a tuple among them stands for a run that one token holds.

    Args:
        groups: items, and tuples of items.
    """
    if any(isinstance(group, tuple) for group in groups):
        return tuple(
            item
            for group in groups
            for item in (cast("tuple[Any, ...]", group) if isinstance(group, tuple) else (group,))
        )
    return groups

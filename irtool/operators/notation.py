"""What the notation of the table says, read: declarations (grammars/rule.lark says how written).

A declaration is what a text says of one operator: its sharding rule, and facts. ``table`` makes
entries of declarations, which ``notation_reader`` reads, and ``pattern`` says what a rule means for
one operator call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from irtool.ir.dataclass import dataclass

Mark = Literal["", "*", "~", "!", "*!", "=", "*="]

ROWS = ("output", "scalar", "others")
"""What entries of a strategy may be about, beside inputs by their numbers: the first output, a
scalar, all inputs behind the first."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a pattern: ``name`` "" is an axis without name, never split.

    ``mark``: ``*`` any number of axes, ``~`` the same but broadcast, ``!`` and ``*!`` never split,
    ``=`` and ``*=`` split only if the axis comes out as large as it went in.
    """

    name: str
    mark: Mark = ""

    @property
    def many(self) -> bool:
        return self.mark in ("*", "~", "*!", "*=")

    @property
    def unsplit(self) -> bool:
        return self.mark in ("!", "*!") or not self.name

    @property
    def sized(self) -> bool:
        return self.mark in ("=", "*=")


@dataclass(frozen=True, slots=True)
class InputPattern:
    """The axes of one input. ``count``: "" one, "?" perhaps none, "+" each element of a tuple."""

    axes: tuple[Axis, ...]
    count: Literal["", "?", "+"] = ""
    swaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the axes that an attribute names: drop, insert, permute, unsplit.

    ``keep``: a flag by which what is dropped is kept, and whole; ``ones``: if the attribute names
    none, those of size 1 are dropped; ``inside``: a place from behind counts the axes before.
    """

    kind: Literal["drop", "insert", "permute", "unsplit"]
    attribute: str
    keep: str = ""
    ones: bool = False
    inside: bool = False


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """The axes of one output; ``every``: the pattern of all outputs that follow."""

    axes: tuple[Axis, ...]
    every: bool = False
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A forward collective over an axis, or over the axes that an attribute names.

    ``output``: the number of the output that it stands behind.
    """

    over: Axis
    reduce: str = "sum"
    output: int = 0


@dataclass(frozen=True, slots=True)
class Whole:
    """The axes that an attribute names must not be split.

    ``unless``: a flag that allows it, or ``layout``: under a layout they may.
    """

    attribute: str
    unless: str = ""
    says: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Axes, or those that an attribute names, of which the function says what follows if split.

    ``flag``: only where this attribute is true; "": always.
    """

    over: tuple[Axis, ...]
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """The split of an axis must divide a number: one that an attribute has, or this one."""

    axis: str
    number: str | int


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute a rule asks for: by name, or by position among all inputs."""

    name: str
    position: int | None = None
    default: object = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One operator's rule. ``text`` is its notation as it stands in the file."""

    op: str
    family: str = ""
    text: str = ""
    source: str = ""
    kind: Literal["notation", "function", "unknown"] = "notation"
    attributes: tuple[Attribute, ...] = ()
    inputs: tuple[InputPattern, ...] = ()
    outputs: tuple[OutputPattern, ...] = ()
    reduces: tuple[Reduce, ...] = ()
    wholes: tuple[Whole, ...] = ()
    equal_says: str = ""
    order: tuple[str, ...] | None = None
    function: str = ""
    mirror: tuple[int, ...] | None = None
    loss: int = 0
    layout: bool = False
    layout_check: str = ""
    configured: str = ""
    ones_whole: bool = False
    judged: tuple[Judged, ...] = ()
    limits: tuple[Limit, ...] = ()
    rows: tuple[str | int, ...] | None = None
    repeats_right: bool = False
    read_inputs: int | None = None
    static: bool = False
    batch: str = ""
    check: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a text says of one operator.

    Attributes:
        op: its name.
        sharding: fields of its ``Rule``; None: the text doesn't say how it is sharded.
        facts: fields of its entry, as ``irtool.operators.entry`` has them.
        attributes: attributes and constant inputs that rule and facts ask for.
        family, check: of the family that it stands in.
        text: how it is sharded, as it is written.
        source: the file.
    """

    op: str
    sharding: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    attributes: tuple[Attribute, ...] = ()
    family: str = ""
    check: str = ""
    text: str = ""
    source: str = ""

    @property
    def rule(self) -> Rule | None:
        """How the operator is sharded."""
        if self.sharding is None:
            return None
        fields: dict[str, Any] = {"check": self.check, **self.sharding}
        return Rule(
            op=self.op,
            family=self.family,
            text=self.text,
            source=self.source,
            attributes=self.attributes,
            **fields,
        )


@dataclass(frozen=True, slots=True)
class Family:
    """Name and log source of a family, and what its entries have in common."""

    name: str = ""
    check: str = ""
    body: Body | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """What stands behind the colon: ``says_how`` if it says how the operator is sharded."""

    says_how: bool
    sharding: Mapping[str, Any]
    facts: Mapping[str, Any]
    text: str


class RuleError(ValueError):
    """A rules text that can't be read; the message says where.

    ``line`` and ``column`` count from 1; they are 0 where the cause (an error of Lark) has them.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.hint = hint

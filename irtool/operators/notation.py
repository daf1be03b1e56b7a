"""The rule notation: text read by Lark into ``Rule`` objects (grammars/rule.lark says what it is).

A rule is data. ``pattern`` says what it means for one operator call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from lark import Discard, Lark, Token, Transformer, v_args  # pyright: ignore[reportUnknownVariableType]
from lark.exceptions import LarkError

from irtool.syntax.grammar import grammar_text

Mark = Literal["", "*", "~", "!", "*!"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a pattern: ``name`` "" is an axis without name, never split.

    ``mark``: ``*`` any number of axes, ``~`` the same but broadcast, ``!`` and ``*!`` never split.
    """

    name: str
    mark: Mark = ""

    @property
    def many(self) -> bool:
        return self.mark in ("*", "~", "*!")

    @property
    def unsplit(self) -> bool:
        return self.mark in ("!", "*!") or not self.name


@dataclass(frozen=True, slots=True)
class InputPattern:
    """The axes of one input. ``count``: "" one, "?" perhaps none, "+" each element of a tuple."""

    axes: tuple[Axis, ...]
    count: Literal["", "?", "+"] = ""
    swaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the axes that an attribute names: drop, insert, permute, unsplit."""

    kind: Literal["drop", "insert", "permute", "unsplit"]
    attribute: str
    keep: str = ""


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """The axes of one output; ``every``: the pattern of all outputs that follow."""

    axes: tuple[Axis, ...]
    every: bool = False
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A forward collective over an axis, or over the axes that an attribute names."""

    over: Axis
    reduce: str = "sum"


@dataclass(frozen=True, slots=True)
class Whole:
    """The axes that an attribute names must not be split."""

    attribute: str
    says: str = ""


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
    ones_whole: bool = False
    read_inputs: int | None = None
    static: bool = False
    batch: str = ""
    check: str = ""
    reason: str = ""


class RuleError(ValueError):
    """A rules text that can't be read; the message says where."""


@lru_cache(maxsize=1)
def rule_parser() -> Lark:
    """The parser of rules texts."""
    text = grammar_text("rule.lark")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def read_rules(text: str, source: str = "") -> list[Rule]:
    """Read a rules text. ``source`` names it in errors and in listings."""
    try:
        # Lark states the type of a tree's children in part only.
        tree = rule_parser().parse(text)  # pyright: ignore[reportUnknownMemberType]
        rules: list[Rule] = _Reader(text, source).transform(tree)
    except LarkError as error:
        where = f"{source}: " if source else ""
        raise RuleError(f"{where}{error}") from error
    return rules


def _unquoted(token: Token) -> str:
    return str(token)[1:-1]


class _Reader(Transformer[Token, Any]):
    """Parse tree to rules, bottom up."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__()
        self._text = text
        self._source = source

    # values and attributes
    def number(self, items: list[Token]) -> int:
        return int(items[0])

    def true(self, _: list[Token]) -> bool:
        return True

    def false(self, _: list[Token]) -> bool:
        return False

    def none(self, _: list[Token]) -> None:
        return None

    def text(self, items: list[Token]) -> str:
        return _unquoted(items[0])

    def tuple(self, items: list[object]) -> tuple[object, ...]:
        return tuple(item for item in items if item is not None)

    @v_args(meta=True)
    def attribute(self, meta: Any, items: list[Any]) -> Attribute:
        name, position, default = items
        written = self._text[meta.start_pos : meta.end_pos]
        return Attribute(
            str(name), None if position is None else int(position), default, "=" in written
        )

    def attributes(self, items: list[Attribute]) -> tuple[Attribute, ...]:
        return (*items,)

    # axes, inputs, outputs
    def named(self, items: list[Any]) -> Axis:
        mark, name = items
        return Axis(str(name), str(mark) if mark else "")  # type: ignore[arg-type]

    def whole(self, _: list[Any]) -> Axis:
        return Axis("")

    def all_whole(self, _: list[Any]) -> Axis:
        return Axis("", "*!")

    def swap(self, items: list[Token]) -> str:
        return str(items[0])

    def input(self, items: list[Any]) -> InputPattern:
        axes = tuple(item for item in items if isinstance(item, Axis))
        swaps = tuple(item for item in items if type(item) is str)
        count = next((str(item) for item in items if isinstance(item, Token)), "")
        return InputPattern(axes, count, swaps)  # type: ignore[arg-type]

    def drop(self, items: list[Any]) -> Change:
        return Change("drop", str(items[0]), str(items[1]) if items[1] else "")

    def insert(self, items: list[Any]) -> Change:
        return Change("insert", str(items[0]))

    def permute(self, items: list[Any]) -> Change:
        return Change("permute", str(items[0]))

    def unsplit(self, items: list[Any]) -> Change:
        return Change("unsplit", str(items[0]))

    def output(self, items: list[Any]) -> OutputPattern:
        axes = tuple(item for item in items if isinstance(item, Axis))
        changes = tuple(item for item in items if isinstance(item, Change))
        return OutputPattern(axes, any(isinstance(item, Token) for item in items), changes)

    def signature(self, items: list[Any]) -> dict[str, Any]:
        return {
            "inputs": tuple(item for item in items if isinstance(item, InputPattern)),
            "outputs": tuple(item for item in items if isinstance(item, OutputPattern)),
        }

    # clauses: each gives fields of Rule
    def over(self, items: list[Any]) -> Axis:
        mark, name = items
        return Axis(str(name), str(mark) if mark else "")  # type: ignore[arg-type]

    def says(self, items: list[Token]) -> str:
        return _unquoted(items[0])

    def place(self, items: list[Token]) -> str:
        return _unquoted(items[0])

    def reduce(self, items: list[Any]) -> dict[str, Any]:
        return {"reduces": (Reduce(items[0], str(items[1]) if items[1] else "sum"),)}

    def whole_axes(self, items: list[Any]) -> dict[str, Any]:
        return {"wholes": (Whole(str(items[0]), items[1] or ""),)}

    def equal(self, items: list[Any]) -> dict[str, Any]:
        return {"equal_says": items[0] or ""}

    def order(self, items: list[Any]) -> dict[str, Any]:
        return {"order": tuple(str(item) for item in items)}

    def via(self, items: list[Any]) -> dict[str, Any]:
        return {"function": str(items[0])}

    def mirror(self, items: list[Any]) -> dict[str, Any]:
        return {"mirror": tuple(int(item) for item in items)}

    def loss(self, items: list[Any]) -> dict[str, Any]:
        return {"loss": int(items[0])}

    def layout(self, _: list[Any]) -> dict[str, Any]:
        return {"layout": True}

    def ones_whole(self, _: list[Any]) -> dict[str, Any]:
        return {"ones_whole": True}

    def inputs(self, items: list[Any]) -> dict[str, Any]:
        return {"read_inputs": int(items[0])}

    def static(self, _: list[Any]) -> dict[str, Any]:
        return {"static": True}

    def batch(self, items: list[Any]) -> dict[str, Any]:
        return {"batch": _unquoted(items[0])}

    def placed(self, items: list[Any]) -> dict[str, Any]:
        return {"check": items[0]}

    # rules
    def _body(self, first: dict[str, Any], clauses: list[dict[str, Any]]) -> dict[str, Any]:
        fields = dict(first)
        for clause in clauses:
            for name, value in clause.items():
                joined = name in ("reduces", "wholes") and name in fields
                fields[name] = fields[name] + value if joined else value
        return fields

    def regular(self, items: list[Any]) -> dict[str, Any]:
        return self._body(items[0], items[1:])

    def irregular(self, items: list[Any]) -> dict[str, Any]:
        return self._body({"kind": "function", "function": str(items[0])}, items[1:])

    def unknown(self, items: list[Any]) -> dict[str, Any]:
        return {"kind": "unknown", "reason": _unquoted(items[0])}

    def names(self, items: list[Token]) -> list[str]:
        return [str(item) for item in items]

    def flops(self, _: list[Any]) -> object:
        return Discard  # read by irtool.cluster.flops

    @v_args(meta=True)
    def rule(self, meta: Any, items: list[Any]) -> list[Rule]:
        names, attributes, fields = items
        body = self._text[meta.start_pos : meta.end_pos].partition(":")[2]
        text = " ".join(body.split())
        return [
            Rule(op=name, text=text, source=self._source, attributes=attributes or (), **fields)
            for name in names
        ]

    def family(self, items: list[Any]) -> tuple[str, str]:
        return str(items[0]), items[1] or ""

    def start(self, items: list[Any]) -> list[Rule]:
        rules: list[Rule] = []
        family, check = "", ""
        for item in items:
            if isinstance(item, tuple):
                family, check = item  # type: ignore[assignment]
                continue
            rules += [replace(rule, family=family, check=rule.check or check) for rule in item]
        return rules

"""Reads the notation of the table: texts, by Lark, into declarations (grammars/rule.lark)."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NoReturn

from lark import Lark, Token, Transformer, v_args  # pyright: ignore[reportUnknownVariableType]
from lark.exceptions import LarkError, VisitError

from irtool.ir.dataclass import dataclass
from irtool.operators.counting import QUANTITY, TENSOR, Expression
from irtool.operators.facts import COMPUTATIONS, CONFIGURED, TRAITS, Search
from irtool.operators.notation import (
    ROWS,
    Attribute,
    Axis,
    Body,
    Change,
    Declaration,
    Family,
    InputPattern,
    Judged,
    Limit,
    OutputPattern,
    Reduce,
    Rule,
    RuleError,
    Whole,
)
from irtool.syntax.grammar_parser import parser_of


@lru_cache(maxsize=1)
def rule_parser() -> Lark:
    """The parser of rules texts."""
    return parser_of("rule.lark")


def read_declarations(
    text: str, source: str = "", family: Family | None = None
) -> list[Declaration]:
    """Read a text of the table.

    Args:
        text: the notation.
        source: names it in errors and in listings.
        family: that its first entries stand in.

    Raises:
        RuleError: it can't be read, or uses a word that means nothing.
    """
    where = f"{source}: " if source else ""
    try:
        # Lark states the type of a tree's children in part only.
        tree = rule_parser().parse(text)  # pyright: ignore[reportUnknownMemberType]
        return _Reader(text, source, family or Family()).transform(tree)
    except VisitError as error:
        cause = error.orig_exc
        if not isinstance(cause, RuleError):  # a number of thousands of digits, say
            raise RuleError(f"{where}{cause}") from None
        raise RuleError(f"{where}{cause}", cause.line, cause.column, cause.hint) from None
    except RecursionError:
        raise RuleError(f"{where}nested too deeply") from None
    except LarkError as error:
        raise RuleError(f"{where}{error}") from error


def read_rules(text: str, source: str = "") -> list[Rule]:
    """The sharding rules of a text."""
    return [rule for one in read_declarations(text, source) if (rule := one.rule) is not None]


@lru_cache(maxsize=4096)
def read_body(text: str) -> Mapping[str, Any]:
    """The fields of the rule whose signature and clauses a text has.

    Args:
        text: an entry of the notation without its operator's name.

    Raises:
        RuleError: it can't be read.
    """
    (declaration,) = read_declarations(f"_: {text}")
    return declaration.sharding or {}


def read_family(text: str, source: str = "") -> Family:
    """The family that a text declares.

    Args:
        text: of the family's head, in the notation.
        source: names it in errors.
    """
    tree = rule_parser().parse(text)  # pyright: ignore[reportUnknownMemberType]
    reader = _Reader(text, source, Family())
    reader.transform(tree)
    return reader.family_read


def _unquoted(token: Token) -> str:
    return str(token)[1:-1]


_JOINED = ("reduces", "wholes", "judged", "limits")
"""Fields of a rule that several clauses add to."""


class _Reader(Transformer[Token, Any]):
    """Parse tree to rules, bottom up."""

    def __init__(self, text: str, source: str, family: Family) -> None:
        super().__init__()
        self._text = text
        self._source = source
        self.family_read = family

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
        return Axis(str(name), str(mark) if mark else "")  # type: ignore[arg-type]  # a mark of the grammar

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
        return InputPattern(axes, count, swaps)  # type: ignore[arg-type]  # names of swaps

    def drop(self, items: list[Any]) -> Change:
        return Change("drop", str(items[0]), str(items[1]) if items[1] else "")

    def drop_or_ones(self, items: list[Any]) -> Change:
        return Change("drop", str(items[0]), ones=True)

    def insert_inside(self, items: list[Any]) -> Change:
        return Change("insert", str(items[0]), inside=True)

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
        return Axis(str(name), str(mark) if mark else "")  # type: ignore[arg-type]  # a mark of the grammar

    def says(self, items: list[Token]) -> str:
        return _unquoted(items[0])

    def place(self, items: list[Token]) -> str:
        return _unquoted(items[0])

    def reduce(self, items: list[Any]) -> dict[str, Any]:
        over, kind, output = items
        return {"reduces": (Reduce(over, str(kind or "sum"), int(output or 0)),)}

    def whole_axes(self, items: list[Any]) -> dict[str, Any]:
        name, unless, says = items
        return {"wholes": (Whole(str(name), str(unless or ""), says or ""),)}

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

    def refused(self, items: list[str]) -> dict[str, Any]:
        return {"layout_check": items[0]}

    def configured(self, items: list[Any]) -> dict[str, Any]:
        return {"configured": _known(items[0], CONFIGURED, "no way to lie")}

    def ones_whole(self, _: list[Any]) -> dict[str, Any]:
        return {"ones_whole": True}

    def inputs(self, items: list[Any]) -> dict[str, Any]:
        return {"read_inputs": int(items[0])}

    def takes(self, items: list[Any]) -> dict[str, Any]:
        return {"inputs": (*items,)}

    def judged(self, items: list[Any]) -> dict[str, Any]:
        *over, flag = items
        return {"judged": (Judged(tuple(over), str(flag or "")),)}

    def divides(self, items: list[Any]) -> dict[str, Any]:
        return {"limits": (Limit(str(items[0]), items[1]),)}

    def rows(self, items: list[Any]) -> dict[str, Any]:
        return {"rows": tuple(items)}

    def limit(self, items: list[Token]) -> str | int:
        return int(items[0]) if items[0].type == "INT" else str(items[0])

    def row(self, items: list[Token]) -> str | int:
        token = items[0]
        if token.type != "INT" and token not in ROWS:
            _fail(
                token,
                f"{token} is nothing that a strategy is about",
                f"there are: {', '.join(ROWS)}",
            )
        return int(token) if token.type == "INT" else str(token)

    def right(self, _: list[Any]) -> dict[str, Any]:
        return {"repeats_right": True}

    def static(self, _: list[Any]) -> dict[str, Any]:
        return {"static": True}

    def batch(self, items: list[Any]) -> dict[str, Any]:
        return {"batch": _unquoted(items[0])}

    def placed(self, items: list[Any]) -> dict[str, Any]:
        return {"check": items[0]}

    # facts: each gives fields of an entry
    def computes(self, items: list[Token]) -> dict[str, Any]:
        return {"computes": _known(items[0], COMPUTATIONS, "no numeric family").replace("_", " ")}

    def count(self, items: list[Expression]) -> dict[str, Any]:
        return {"flops": items[0]}

    def gradient(self, items: list[Token]) -> dict[str, Any]:
        return {"gradient_of": str(items[0])}

    def word(self, items: list[Token]) -> str:
        return _plain(items[0])

    def torch(self, items: list[str]) -> dict[str, Any]:
        return {"torch": tuple(items)}

    def modules(self, items: list[str]) -> dict[str, Any]:
        return {"modules": tuple(items)}

    def like(self, items: list[Token]) -> dict[str, Any]:
        return {"like": _plain(items[0])}

    def updates(self, items: list[Token]) -> dict[str, Any]:
        return {"updates": tuple(int(item) for item in items)}

    def unwritten(self, items: list[Token]) -> dict[str, Any]:
        return {"unwritten": tuple(int(item) for item in items)}

    def weights(self, items: list[Token]) -> dict[str, Any]:
        return {"weights": tuple(int(item) for item in items)}

    def operands(self, items: list[tuple[int, str]]) -> dict[str, Any]:
        return {"named": tuple(items)}

    def operand(self, items: list[Token]) -> tuple[int, str]:
        name, place = items
        return int(place), str(name)

    def search(self, items: list[Token | None]) -> dict[str, Any]:
        return {"search": Search(*(str(item) if item else "" for item in items))}

    def propagates(self, items: list[Token]) -> dict[str, Any]:
        return {"propagates": str(items[0])}

    def traits(self, items: list[Token]) -> dict[str, Any]:
        return {"traits": frozenset(_known(item, TRAITS, "no trait") for item in items)}

    # sums of operations
    def integer(self, items: list[Token]) -> Expression:
        return ("integer", int(items[0]))

    def quantity(self, items: list[Token]) -> Expression:
        if not QUANTITY.match(items[0]):
            _fail(items[0], f"{items[0]} is no size of a tensor")
        return ("quantity", str(items[0]))

    def dimension(self, items: list[Token]) -> Expression:
        if not TENSOR.match(items[0]):
            _fail(items[0], f"{items[0]} is no tensor")
        return ("dimension", str(items[0]), int(items[1]))

    def add(self, items: list[Expression]) -> Expression:
        return ("add", *items)

    def subtract(self, items: list[Expression]) -> Expression:
        return ("subtract", *items)

    def multiply(self, items: list[Expression]) -> Expression:
        return ("multiply", *items)

    def divide(self, items: list[Expression]) -> Expression:
        return ("divide", *items)

    # bodies
    def _body(self, meta: Any, first: dict[str, Any] | None, clauses: list[Any]) -> Body:
        sharding = dict(first or {})
        facts: dict[str, Any] = {}
        written, position = "", meta.start_pos
        for clause in clauses:
            if isinstance(clause, _Fact):
                written += self._text[position : clause.start]
                position = clause.end
                facts |= clause.fields
                continue
            for name, value in clause.items():
                joined = name in _JOINED and name in sharding
                sharding[name] = sharding[name] + value if joined else value
        written += self._text[position : meta.end_pos]
        return Body(first is not None, sharding, facts, " ".join(written.split()))

    @v_args(meta=True)
    def clause(self, meta: Any, items: list[dict[str, Any]]) -> _Fact:
        return _Fact(items[0], meta.start_pos, meta.end_pos)

    @v_args(meta=True)
    def regular(self, meta: Any, items: list[Any]) -> Body:
        return self._body(meta, items[0], items[1:])

    @v_args(meta=True)
    def irregular(self, meta: Any, items: list[Any]) -> Body:
        name, signature, *clauses = items
        said: dict[str, Any] = {"kind": "function", "function": str(name), **(signature or {})}
        return self._body(meta, said, clauses)

    @v_args(meta=True)
    def unknown(self, meta: Any, items: list[Any]) -> Body:
        return self._body(meta, {"kind": "unknown", "reason": _unquoted(items[0])}, items[1:])

    @v_args(meta=True)
    def only_clauses(self, meta: Any, items: list[Any]) -> Body:
        return self._body(meta, None, items)

    # statements
    def names(self, items: list[Token]) -> list[str]:
        return [_plain(item) for item in items]

    def flops(self, items: list[Any]) -> list[Declaration]:
        _, names, expression = items
        facts = {"flops": expression}
        return [Declaration(name, None, facts, source=self._source) for name in names]

    def rule(self, items: list[Any]) -> list[Declaration]:
        names, attributes, body = items
        family = self.family_read
        common = family.body or Body(False, {}, {}, "")
        own = body or Body(False, {}, {}, "")
        sharding: dict[str, Any] | None = None
        if own.says_how:
            sharding, text = dict(own.sharding), own.text
        else:
            text = " ".join(filter(None, (common.text, own.text)))
            if common.says_how:
                sharding = {**common.sharding, **own.sharding}
        return [
            Declaration(
                op=name,
                sharding=sharding,
                facts={**common.facts, **own.facts},
                attributes=attributes or (),
                family=family.name,
                check=family.check,
                text=text,
                source=self._source,
            )
            for name in names
        ]

    def family(self, items: list[Any]) -> list[Declaration]:
        name, place, body = items
        self.family_read = Family(str(name), place or "", body)
        return []

    def start(self, items: list[list[Declaration]]) -> list[Declaration]:
        return [declaration for item in items for declaration in item]


@dataclass(frozen=True, slots=True)
class _Fact:
    """Fields of an entry, and where in the text they stand."""

    fields: dict[str, Any]
    start: int
    end: int


def _plain(token: Token) -> str:
    return str(token).strip('"')


def _known(token: Token, words: Mapping[str, str], what: str) -> str:
    if token not in words:
        near = get_close_matches(token, list(words), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(words)}"
        _fail(token, f"{token} is {what}", hint)
    return str(token)


def _fail(token: Token, message: str, hint: str = "") -> NoReturn:
    raise RuleError(message, token.line or 0, token.column or 0, hint)

"""The query language: ``op == "MatMul" and "layers.3" in scope`` becomes a predicate over nodes.

The grammar is ``grammars/query.lark``; docs/queries.md explains it to people.  A comparison with
something that a node does not have is false, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeAlias, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from irtool.ir.graph import Node
from irtool.syntax.grammar_parser import parser_of
from irtool.syntax.patterns import Pattern, PatternError
from irtool.syntax.query_compare import COMPARISONS, compared, contains, length, matches
from irtool.syntax.query_fields import BLOCKS, FIELDS, block_value

MAX_QUERY = 4096
"""Characters of the longest query."""
_MAX_DEPTH = 50

Predicate: TypeAlias = Callable[[Node], bool]
Getter: TypeAlias = Callable[[Node], object]
_Syntax: TypeAlias = "Tree[Token]"


class QueryError(ValueError):
    """A query that cannot be understood; ``column`` counts from 1."""

    def __init__(self, message: str, text: str, column: int, hint: str = "") -> None:
        super().__init__(message, text, column, hint)
        self.message = message
        self.text = text
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        return self.message


def query(text: str) -> Predicate:
    """Make a predicate from a query, for :meth:`Dump.nodes` and ``--where``.

    Args:
        text: such as ``op == "MatMul" and shape[0] >= 1024``.

    Returns:
        A function that says whether a node meets the query.

    Raises:
        QueryError: the text is no query; says where and what was expected.
    """
    if not text.strip():
        raise QueryError("the query is empty", text, 1, 'try op == "MatMul"')
    if len(text) > MAX_QUERY:
        raise QueryError(f"longer than {MAX_QUERY} characters", text, MAX_QUERY + 1)
    compiled = _Compiler(text).compile(_parse(text))
    return lambda node: bool(compiled(node))


def field(path: str) -> Getter:
    """The function that gives one field of a node: ``op``, ``attr.group``, ``shape[0]``.

    Args:
        path: as people write it in queries.

    Raises:
        QueryError: there is no such field.
    """
    tree = _parse(path)
    only = tree.children[0]
    if not (isinstance(only, Tree) and only.data == "field"):
        raise QueryError("expected the name of a field", path, 1, _field_hint(path))
    return _Compiler(path).field(only)


def operators_named(text: str) -> tuple[str, ...]:
    """The texts that a query compares ``op`` with: ``op == "MatMul"``, ``op in ("Add", "Sub")``.

    Args:
        text: of the query.

    Returns:
        Each once, in order.

    Raises:
        QueryError: the text is no query.
    """
    operators: list[str] = []
    for tree in _parse(text).iter_subtrees():
        if tree.data != "comparison":
            continue
        for place, sign in enumerate(tree.children[1::2]):
            left, right = tree.children[2 * place], tree.children[2 * place + 2]
            if " ".join(str(sign).split()) not in _EQUALS:
                continue
            for field_, value in ((left, right), (right, left)):
                if isinstance(field_, Tree) and field_.data == "field" and _is_op(field_):
                    operators += _texts(value)
    return tuple(dict.fromkeys(operators))


_EQUALS = ("==", "!=", "in", "not in")


def _is_op(tree: _Syntax) -> bool:
    return len(tree.children) == 1 and str(tree.children[0]) == "op"


def _texts(tree: _Syntax | Token) -> list[str]:
    if not isinstance(tree, Tree):
        return []
    if tree.data == "text":
        return [_unquoted(str(tree.children[0]))]
    return [text for child in tree.children for text in _texts(child)]


# -- parsing -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return parser_of("query.lark")


def _parse(text: str) -> _Syntax:
    depth = deepest = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH or text.count("not") > 4 * _MAX_DEPTH:
        raise QueryError("nested too deeply", text, 1, "split it into several queries")
    try:
        parser: Any = _parser()
        return cast("_Syntax", parser.parse(text))
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None


_WORDS = {
    "COMPARE": "a comparison (==, !=, <, <=, >, >=, in, not in, =~)",
    "AND": "'and'",
    "OR": "'or'",
    "RPAR": "')'",
    "RSQB": "']'",
    "COMMA": "','",
    "KEY": "a name",
    "INDEX": "a number",
    "$END": "the end",
}
_OPERAND = {"NAME", "STRING", "NUMBER"}
_SLIPS = (
    (re.compile(r"=(?!=)"), "use == to compare"),
    (re.compile(r"&&?"), "write and"),
    (re.compile(r"\|\|?"), "write or"),
    (re.compile(r"!(?!=)"), "write not"),
    (re.compile(r"[“”‘’]"), 'use plain quotation marks: "…"'),
    (re.compile(r"[\"'][^\"']*\Z"), "this quotation mark is never closed"),
    (re.compile(r"is\b"), "use == to compare, has(field) to ask whether there is one"),
    (re.compile(r"(contains|like|matches)\b"), 'write "text" in field, or field =~ "pattern"'),
)


def _syntax_error(text: str, error: UnexpectedInput) -> QueryError:
    column = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    wanted: set[str] = set()
    if isinstance(error, UnexpectedCharacters):
        wanted = set(error.allowed or ())
    elif isinstance(error, UnexpectedToken):
        wanted = set(error.accepts or error.expected)
        if cast("Token", cast("Any", error).token).type == "$END":
            column = len(text)
    for brackets, close in (("()", "RPAR"), ("[]", "RSQB")):
        # The lexer names all that it could take, even where no bracket is open.
        opened, closed = (text.count(bracket, 0, column) for bracket in brackets)
        if opened <= closed:
            wanted.discard(close)
    if not wanted & {"RPAR", "RSQB"}:
        wanted.discard("COMMA")
    phrases = [_WORDS[name] for name in _WORDS if name in wanted]
    if wanted >= _OPERAND:
        phrases = ["a field, a text in quotes or a number", *phrases]
    hint = next((hint for slip, hint in _SLIPS if slip.match(text, column)), "")
    return QueryError(f"expected {_listed(phrases)}", text, column + 1, hint)


def _listed(phrases: list[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases) or "something else"
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"


# -- compiling ---------------------------------------------------------------------------------


class _Compiler:
    """Turns a syntax tree into closures; each gives None where the node lacks something."""

    def __init__(self, text: str) -> None:
        self.source = text

    def compile(self, tree: _Syntax | Token) -> Getter:
        assert isinstance(tree, Tree)
        return cast("Getter", getattr(self, str(tree.data))(tree))

    def start(self, tree: _Syntax) -> Getter:
        return self.compile(tree.children[0])

    def disjunction(self, tree: _Syntax) -> Getter:
        parts = [self.compile(child) for child in tree.children]
        return lambda node: any(part(node) for part in parts)

    def conjunction(self, tree: _Syntax) -> Getter:
        parts = [self.compile(child) for child in tree.children]
        return lambda node: all(part(node) for part in parts)

    def negation(self, tree: _Syntax) -> Getter:
        part = self.compile(tree.children[0])
        return lambda node: not part(node)

    def comparison(self, tree: _Syntax) -> Getter:
        operands = [self.compile(child) for child in tree.children[::2]]
        signs = [" ".join(str(sign).split()) for sign in tree.children[1::2]]
        checks: list[Predicate] = []
        for place, sign in enumerate(signs):
            left, right = operands[place], operands[place + 1]
            scoped = _is_scope(tree.children[2 * place + 2])
            checks.append(self._check(sign, left, right, tree.children[2 * place + 2], scoped))
        return lambda node: all(check(node) for check in checks)

    def _check(
        self, sign: str, left: Getter, right: Getter, tree: _Syntax | Token, scoped: bool
    ) -> Predicate:
        if sign in ("=~", "!~"):
            pattern = self._pattern(tree)
            return lambda node: self._matches(tree, pattern, left(node), sign == "=~")
        if sign in ("in", "not in"):
            return lambda node: contains(left(node), right(node), scoped, sign == "in")
        compare = COMPARISONS[sign]
        return lambda node: compared(compare, left(node), right(node))

    def _matches(
        self, tree: _Syntax | Token, pattern: Pattern, value: object, wanted: bool
    ) -> bool:
        try:
            return matches(pattern, value, wanted)
        except PatternError as error:
            raise QueryError(error.message, self.source, _column(tree) + 1, error.hint) from None

    def _pattern(self, tree: _Syntax | Token) -> Pattern:
        if not (isinstance(tree, Tree) and tree.data == "text"):
            message = "expected a regular expression in quotes"
            raise QueryError(message, self.source, _column(tree))
        try:
            return Pattern(_unquoted(str(tree.children[0])))
        except PatternError as error:
            column = _column(tree) + 1 + error.position
            raise QueryError(error.message, self.source, column, error.hint) from None

    # literals

    def text(self, tree: _Syntax) -> Getter:
        return _constant(_unquoted(str(tree.children[0])))

    def number(self, tree: _Syntax) -> Getter:
        return _constant(_number(str(tree.children[0])))

    def true(self, _: _Syntax) -> Getter:
        return _constant(True)

    def false(self, _: _Syntax) -> Getter:
        return _constant(False)

    def sequence(self, tree: _Syntax) -> Getter:
        parts = [self.compile(child) for child in _elements(tree)]
        return lambda node: tuple(part(node) for part in parts)

    def group(self, tree: _Syntax) -> Getter:
        """Brackets: around a literal they make a tuple of one, as in ``((4, 1))`` of a dump."""
        inner = tree.children[0]
        part = self.compile(inner)
        if isinstance(inner, Tree) and inner.data in ("text", "number", "sequence"):
            return lambda node: (part(node),)
        if isinstance(inner, Tree) and inner.data == "group" and _is_literal(inner):
            return lambda node: (part(node),)
        return part

    # fields and functions

    def call(self, tree: _Syntax) -> Getter:
        name, argument = str(tree.children[0]), self.compile(tree.children[1])
        if name == "has":
            return lambda node: argument(node) is not None
        if name == "len":
            return lambda node: length(argument(node))
        message = f"there is no function {name!r}"
        raise QueryError(message, self.source, _column(tree), "the functions are has() and len()")

    def field(self, tree: _Syntax) -> Getter:
        name, *accesses = tree.children
        keys = [_key(cast("_Syntax", access)) for access in accesses]
        if str(name) in BLOCKS:
            if not keys or isinstance(keys[0], int):
                hint = f"write {name}.KEY, such as {name}.fusion"
                raise QueryError(
                    f"which attribute of {str(name)!r}?", self.source, _column(tree), hint
                )
            block, key = str(name), keys[0]
            return _indexed(lambda node: block_value(node, block, key), keys[1:])
        getter = FIELDS.get(str(name))
        if getter is None:
            message = f"there is no field {str(name)!r}"
            raise QueryError(message, self.source, _column(tree), _field_hint(str(name)))
        return _indexed(getter, keys)


def _field_hint(name: str) -> str:
    known = [*FIELDS, *(f"{block}." for block in BLOCKS)]
    close = get_close_matches(name, known, n=2, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if name[:1].isupper():
        return f'put text in quotes: "{name}"'
    return f"for an attribute write attr.{name}; fields: {', '.join(FIELDS)}"


def _is_scope(tree: _Syntax | Token) -> bool:
    if not (isinstance(tree, Tree) and tree.data == "field" and len(tree.children) == 1):
        return False
    return str(tree.children[0]) in ("scope", "full_name")


def _is_literal(tree: _Syntax) -> bool:
    inner = tree.children[0]
    if not isinstance(inner, Tree):
        return False
    return inner.data in ("text", "number", "sequence") or (
        inner.data == "group" and _is_literal(inner)
    )


def _elements(tree: _Syntax) -> list[_Syntax]:
    elements: list[_Syntax] = []
    for child in tree.children:
        if isinstance(child, Tree):
            elements += _elements(child) if child.data == "items" else [child]
    return elements


def _key(access: _Syntax) -> str | int:
    token = cast("Token", access.children[0])
    if token.type == "INDEX":
        return int(token)
    return _unquoted(str(token)) if token.type == "STRING" else str(token)


def _indexed(getter: Getter, keys: list[str | int]) -> Getter:
    if not keys:
        return getter

    def get(node: Node) -> object:
        value = getter(node)
        for key in keys:
            try:
                value = cast("dict[object, object]", value)[key]
            except (LookupError, TypeError):
                return None
        return value

    return get


def _column(tree: _Syntax | Token) -> int:
    if isinstance(tree, Token):
        return tree.column or 1
    return cast("int", getattr(tree.meta, "column", 1))


def _constant(value: object) -> Getter:
    return lambda node: value


def _unquoted(text: str) -> str:
    # Only the quotation mark is escaped, so that regular expressions keep their backslashes.
    return text[1:-1].replace("\\" + text[0], text[0])


_UNITS = {"": 1, "B": 1} | {
    f"{letter}{binary}{end}": (1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGT", 1)
    for binary in ("", "i")
    for end in ("", "B")
}


def _number(text: str) -> int | float:
    digits = text.rstrip("KMGTiB ")
    value = float(digits) if any(mark in digits for mark in ".eE") else int(digits)
    return value * _UNITS[text[len(digits) :].strip()]

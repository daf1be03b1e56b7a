"""Lark's parser of the grammar of dumps: imported when the first record is parsed.

What was read before is opened from the kept model, and never asks for it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from lark import Lark
from lark.exceptions import LarkError
from lark.lexer import PatternStr

from irtool.syntax import grammar_tables
from irtool.syntax.assemble import Assembler
from irtool.syntax.cache_files import KeptFiles, digest
from irtool.syntax.grammar import Unreadable, check_length
from irtool.syntax.grammar_files import grammar_file, grammar_text
from irtool.syntax.grammar_run import Run

MAX_DEPTH = 100
"""Deepest nesting of brackets that is read; real dumps stay below 10."""

_LOCK = threading.Lock()
_BRACKETS = re.compile(r"[(\[{)\]}]")
_MOST_EXPECTED = 4
"""Tokens that a message names before it shortens them."""


def parser_of(name: str, transformer: object = None) -> Lark:
    """The parser of one of irtool's grammars, from tables that were made before if there are any.

    Args:
        name: file name of the grammar.
        transformer: makes something of what is parsed, instead of trees.
    """
    text = grammar_text(name)
    with suppress(OSError):
        tables = grammar_file(grammar_tables.file_of(name))
        if parser := grammar_tables.from_tables(name, text, tables, transformer):
            return parser
    kept, key = KeptFiles("grammars"), digest(grammar_tables.key_of(name, text))
    tables = kept.get(key)
    if tables and (parser := grammar_tables.from_tables(name, text, tables, transformer)):
        return parser
    parser = grammar_tables.built(name, text, transformer)
    kept.put(key, grammar_tables.tables_of(name, text, parser))
    return parser


@lru_cache(maxsize=1)
def _parser() -> tuple[Lark, Run | None, Assembler]:
    assembler = Assembler()
    parser = parser_of("dump.lark", assembler)
    try:
        return parser, Run(parser, assembler), assembler
    except Exception:  # another version of Lark may keep its tables elsewhere
        return parser, None, assembler


def parse(
    text: str,
    start: str,
    masked: bool = False,
    restore: Callable[[str], str] | None = None,
    plain: bool = False,
) -> Any:
    """Parse one record by Lark and return its part.

    Args:
        text: the record, without indentation.
        start: start symbol of the grammar.
        masked: runs of digits are indices of holes.
        restore: puts back names that were replaced before parsing.
        plain: let Lark itself run its tables.

    Raises:
        Unreadable: the grammar does not accept the record.
    """
    check_length(text)
    if _depth(text) > MAX_DEPTH:
        raise Unreadable(f"brackets nested deeper than {MAX_DEPTH} levels", 0)
    with _LOCK:
        parser, run, assembler = _parser()
        assembler.masked, assembler.restore = masked, restore
        if run is not None and not plain:
            with suppress(Exception):  # Lark tells what is wrong
                return run.parse(text, start, masked and restore is None)
        try:
            # Lark states no type of what a transformer makes.
            result: Any = parser.parse(text, start=start)  # pyright: ignore[reportUnknownMemberType]
            return result
        except (LarkError, ValueError, RecursionError) as error:
            raise Unreadable(_expectation(parser, error), _column(error, text)) from None


def _column(error: Exception, text: str) -> int:
    if getattr(getattr(error, "token", None), "type", "") == "$END":
        return len(text)
    return getattr(error, "pos_in_stream", None) or 0


def _expectation(parser: Lark, error: Exception) -> str:
    """What the grammar would have accepted, in the words of a reader."""
    accepts, expects = getattr(error, "accepts", None), getattr(error, "expected", None)
    expected: set[str] = accepts or expects or set()
    names = sorted({_terminal(parser, name) for name in expected})
    if not names:
        return str(error).partition("\n")[0] or "not a statement"
    if len(names) > _MOST_EXPECTED:
        return f"expected {names[0]}, {names[1]}, … here"
    return f"expected {' or '.join(names)} here"


def _terminal(parser: Lark, name: str) -> str:
    if name == "$END":
        return "the end of the line"
    pattern = parser.get_terminal(name).pattern
    if isinstance(pattern, PatternStr):
        return f"'{pattern.value}'"
    return "a " + name.lower().lstrip("_").replace("_", " ")


def _depth(text: str) -> int:
    """How deep brackets are nested; at most how many there are, where they are few."""
    depth = deepest = 0
    if (few := sum(map(text.count, "([{"))) <= MAX_DEPTH:
        return few
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest

"""Records of dumps as the grammar takes them, and how equal ones are told from each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irtool.ir.limits import MAX_RUN

MAX_DEPTH = 100
"""Deepest nesting of brackets that is read; real dumps stay below 10."""
MAX_RECORD = 4 << 20
"""Characters of the longest record that is read; the longest seen has 186,104."""

_BRACKETS = re.compile(r"[(\[{)\]}]")
_LONG_RUN = re.compile(rf"(?<![0-9])[0-9]{{{MAX_RUN + 1}}}")


class Unreadable(ValueError):
    """A record that the grammar does not accept; ``column`` counts from 0 in the record."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message, column)
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


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
    from irtool.syntax.grammar_parser import parsed  # Lark takes time to import

    return parsed(text, start, masked, restore, plain)


def check_length(text: str) -> None:
    """Refuse a record that is longer than any compiler prints, before it is parsed.

    Args:
        text: of the record.

    Raises:
        Unreadable: the record, or a number in it, is longer than that.
    """
    if len(text) <= MAX_RUN:
        return
    if len(text) > MAX_RECORD:
        raise Unreadable(f"longer than {MAX_RECORD >> 20} MiB", 0)
    if match := _LONG_RUN.search(text):
        raise Unreadable(f"a number of more than {MAX_RUN:,} digits", match.start())


def _depth(text: str) -> int:
    """How deep brackets are nested; at most how many there are, where they are few."""
    depth = deepest = 0
    if (few := sum(map(text.count, "([{"))) <= MAX_DEPTH:
        return few
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


Key = tuple[str, ...]


def mask(literals: Key) -> str:
    """A record with each run of digits replaced by its index: 0, 1, 2, ….

    Args:
        literals: the texts between the runs of digits, one more than there are runs.
    """
    return "".join(
        f"{piece}{index}" if index < len(literals) - 1 else piece
        for index, piece in enumerate(literals)
    )

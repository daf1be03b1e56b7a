"""Queries that come from the command line."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from irtool.cli.report import Failure, note
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.statement import operator_name
from irtool.operators.table import UNKNOWN, entries, operator_of
from irtool.syntax.query import Predicate, QueryError, operators_named, query

_NO_PRIMITIVES = frozenset(("call", "Return"))


def read_query(option: str, text: str) -> Predicate:
    """The predicate of a query given as ``option``.

    An operator in it that nobody knows, but that is written like one, gets a note: it may be
    somebody's own.

    Raises:
        Failure: the query can't be read; tells the place in it.
    """
    try:
        made = query(text)
        names = operators_named(text)
    except QueryError as error:
        raise of_query(option, error) from None
    for name in names:
        _note_near(option, name)
    return made


@cache  # a command may read a query more than once
def _note_near(option: str, name: str) -> None:
    near = near_operators(name)
    if near:
        note(f"{option}: irtool knows no operator {name}; did you mean {' or '.join(near)}?")


def near_operators(name: str) -> list[str]:
    """Known operators that are written like one that is not known; none where it is known."""
    fixed = (*COMMUNICATION, *PLUMBING, *VIRTUAL, *_NO_PRIMITIVES)
    if name in fixed or operator_of(name) is not UNKNOWN or not name:
        return []
    if operator_name(name) != name:
        return [operator_name(name)]
    known = dict.fromkeys((*fixed, *entries()))
    small = {each.lower(): each for each in known}
    if name.lower() in small:
        return [small[name.lower()]]
    close = get_close_matches(name.lower(), small, n=3, cutoff=0.8)
    return [small[each] for each in close]


def of_query(option: str, error: QueryError) -> Failure:
    """What is wrong with a query, and where in it."""
    place = f"{option}:1:{error.column}"
    return Failure(error.message, place, error.column, error.text, error.hint, "QRY001")

"""Queries that come from the command line."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from irtool.cli.report import Failure, note
from irtool.operators.near import near_note

if TYPE_CHECKING:
    from irtool.syntax.query import Predicate, QueryError


def read_query(option: str, text: str) -> Predicate:
    """The predicate of a query given as ``option``.

    An operator in it that nobody knows, but that is written like one, gets a note: it may be
    somebody's own.

    Args:
        option: that it was given to, for the message.
        text: the query.

    Raises:
        Failure: the query can't be read; tells the place in it.
    """
    from irtool.syntax.query import QueryError, operators_named, query  # it imports Lark

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
    text = near_note(name)
    if text:
        note(f"{option}: {text}")


def of_query(option: str, error: QueryError) -> Failure:
    """What is wrong with a query, and where in it.

    Args:
        option: that it was given to.
        error: as the query's reader raises it.
    """
    place = f"{option}:1:{error.column}"
    return Failure(error.message, place, error.column, error.text, error.hint, "QRY001")

"""Queries that come from the command line."""

from __future__ import annotations

from irtool.cli.report import Failure
from irtool.syntax.query import Predicate, QueryError, query


def read_query(option: str, text: str) -> Predicate:
    """The predicate of a query given as ``option``.

    Raises:
        Failure: the query can't be read; tells the place in it.
    """
    try:
        return query(text)
    except QueryError as error:
        raise of_query(option, error) from None


def of_query(option: str, error: QueryError) -> Failure:
    """What is wrong with a query, and where in it."""
    place = f"{option}:1:{error.column}"
    return Failure(error.message, place, error.column, error.text, error.hint, "QRY001")

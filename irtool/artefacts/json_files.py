"""Documents in JSON beside the dumps: read whole, every part of the wrong kind left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from irtool.artefacts.errors import ArtefactError, bytes_of
from irtool.ir.limits import MAX_DOCUMENT
from irtool.syntax.reading import JsonError, parse_json


def json_object(path: str, what: str) -> dict[str, Any]:
    """The object that a file holds.

    Args:
        path: the file.
        what: the object is, for people.

    Raises:
        ArtefactError: it can't be read, or holds something else.
    """
    try:
        document = parse_json(bytes_of(path, MAX_DOCUMENT))
    except JsonError as error:
        message = f"is no JSON: {error.message}"
        raise ArtefactError(path, message, error.line, error.column) from None
    if not isinstance(document, dict):
        raise ArtefactError(path, f"holds no {what}", 1)
    return cast("dict[str, Any]", document)


def table_of(value: object) -> dict[str, Any]:
    """A value that is an object; an empty one where it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def number_of(table: Mapping[str, Any], name: str) -> float | None:
    """A member that is a finite number."""
    value: Any = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

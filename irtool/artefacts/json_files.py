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
    """A value that is an object; an empty one where it is something else.

    Args:
        value: anything that JSON holds.
    """
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def number_of(table: Mapping[str, Any], name: str) -> float | None:
    """A member of a JSON object as a finite number.

    Args:
        table: the object.
        name: of the member.

    Returns:
        None where it is missing, no number, a boolean, infinite or beyond a float.
    """
    value: Any = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

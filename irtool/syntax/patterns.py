"""Regular expressions of users, which end: a pattern that would search for ever is an error.

Patterns come from command lines, but from settings in a repository too.  They are matched by the
module ``regex``, which understands what Python's ``re`` does and can be told to give up.
"""

from __future__ import annotations

import time
from typing import Any

import regex

MAX_PATTERN = 200
"""Characters of the longest regular expression."""
MAX_SUBJECT = 4096
"""Characters of a text that a regular expression looks at."""
MAX_SECONDS = 2.0
"""Seconds after which a search for one match is given up; real ones take microseconds."""
MAX_TOTAL = 60.0
"""Seconds that all searches of one pattern may take."""


class PatternError(ValueError):
    """No regular expression, or one that takes too long; ``position``: from 0, -1 before it."""

    def __init__(self, message: str, position: int = 0, hint: str = "") -> None:
        super().__init__(message, position, hint)
        self.message = message
        self.position = position
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class Pattern:
    """A regular expression.

    Args:
        text: as for Python's ``re``.

    Raises:
        PatternError: it is none, or too long.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            message = f"regular expression longer than {MAX_PATTERN} characters"
            raise PatternError(message, -1)
        self.text = text
        self._spent = 0.0
        try:
            # The stubs of regex leave types open.
            self._pattern: Any = regex.compile(text)  # pyright: ignore[reportUnknownMemberType]
        except (regex.error, OverflowError, RecursionError, ValueError, IndexError) as error:
            message = str(getattr(error, "msg", error))
            position = int(getattr(error, "pos", None) or 0)
            raise PatternError(f"not a regular expression: {message}", position) from None

    def is_in(self, text: str) -> bool:
        """Whether the beginning of a text (:data:`MAX_SUBJECT` characters) has a match.

        Raises:
            PatternError: this takes too long.
        """
        start = time.perf_counter()
        try:
            match = self._pattern.search(text[:MAX_SUBJECT], timeout=MAX_SECONDS)
        except TimeoutError:
            self._spent = MAX_TOTAL
            match = None
        self._spent += time.perf_counter() - start
        if self._spent > MAX_TOTAL:
            hint = "repeats within repeats, such as (a+)+, multiply"
            raise PatternError("this regular expression takes too long", 0, hint)
        return match is not None

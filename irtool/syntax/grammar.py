"""Records of dumps as the grammar takes them, and how equal ones are told from each other."""

from __future__ import annotations

import re

from irtool.ir.limits import MAX_RUN

MAX_RECORD = 4 << 20
"""Characters of the longest record that is read; the longest seen has 186,104."""

_LONG_RUN = re.compile(rf"(?<![0-9])[0-9]{{{MAX_RUN + 1}}}")


class Unreadable(ValueError):
    """A record that the grammar does not accept; ``column`` counts from 0 in the record."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message, column)
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])


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

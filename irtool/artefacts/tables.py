"""Tables in CSV, row by row: columns by their header, in bounded memory, whatever is damaged.

Columns come and go with versions and levels of profiling, so nothing goes by position.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.ir.dataclass import dataclass
from irtool.syntax.reading import opened

LONGEST_CELL = 1 << 22
"""Characters of the longest cell: Python stacks and shapes of many inputs stand in one."""
_LONGEST_LINE = 1 << 23


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its cells by column, and the line where it ends."""

    line: int
    cells: Mapping[str, str]

    def text(self, *names: str) -> str:
        """The cell of the first of some columns that is there; empty where none is."""
        for name in names:
            if name in self.cells:
                return self.cells[name].strip()
        return ""

    def number(self, *names: str) -> float | None:
        """The first of some columns that is there, as a number; None for ``N/A`` and the like."""
        try:
            value = float(self.text(*names))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def integer(self, *names: str) -> int | None:
        """The first of some columns that is there, as a whole number; None where it is none."""
        text = self.text(*names)
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 40 else None


@contextmanager
def text_lines(path: str) -> Generator[TextIO]:
    """A text file opened for reading; bytes that are no UTF-8 are replaced.

    Args:
        path: the file.
    """
    import io

    try:
        with opened(path) as raw:
            yield io.TextIOWrapper(raw, "utf-8", "replace", newline="")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtefactError(path, f"{reason[:1].lower()}{reason[1:]}") from None


def rows(
    path: str,
    needed: Sequence[str | tuple[str, ...]],
    damage: Damage,
    *,
    escaped: bool = False,
) -> Iterator[Row]:
    """The rows of a table, one after the other.

    Args:
        path: the file.
        needed: columns without which it is no such table; of several names one.
        damage: takes rows that can't be read.
        escaped: quotes in cells stand behind a backslash (``std::quoted``), not doubled.

    Raises:
        ArtefactError: it can't be opened, or lacks a column.
    """
    with text_lines(path) as stream:
        reader = (
            csv.reader(_lines(stream), escapechar="\\", doublequote=False)
            if escaped
            else csv.reader(_lines(stream))
        )
        header = _header(reader, path)
        for names in needed:
            if not any(name in header for name in ((names,) if isinstance(names, str) else names)):
                name = names if isinstance(names, str) else names[0]
                message = f"has no column {name!r}"
                raise ArtefactError(
                    path, message, 1, hint=f"its columns: {', '.join(header)[:200]}"
                )
        while True:
            try:
                cells = _next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                damage.add(reader.line_num, f"no row: {error}")
                continue
            if not cells:
                continue
            if len(cells) < len(header):
                message = f"a row of {len(cells)} cells, where the header has {len(header)}"
                damage.add(reader.line_num, message, text=",".join(cells))
                continue
            yield Row(reader.line_num, dict(zip(header, cells, strict=False)))


def _next(reader: Iterator[list[str]]) -> list[str]:
    """The next row. The limit of cells is the process's: other tables keep theirs."""
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        return next(reader)
    finally:
        csv.field_size_limit(usual)


def _header(reader: Iterator[list[str]], path: str) -> list[str]:
    try:
        header = _next(reader)
    except StopIteration:
        header = []
    except csv.Error as error:
        raise ArtefactError(path, f"is no table: {error}", 1) from None
    if not header:
        raise ArtefactError(path, "is empty")
    names = [name.strip().lstrip("\ufeff") for name in header]
    while names and not names[-1]:  # the memory tracker ends every line with a comma
        names.pop()
    return names


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines without characters that no table holds, none of them longer than a bound."""
    while line := stream.readline(_LONGEST_LINE):
        yield line.replace("\0", "\ufffd") if "\0" in line else line

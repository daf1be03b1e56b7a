"""The text of a document, and its positions as the protocol and as dumps count them.

The protocol counts lines from 0, ends them at CRLF, LF or a lone CR, and counts characters in units
of an encoding, UTF-16 unless client and server agree on another.  A dump's own lines count from 1
and end at LF or CRLF; its columns are characters.  Offsets, which are characters from the start,
stand between the two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from lsprotocol.types import Position, PositionEncodingKind, Range

from irtool.ir.dataclass import dataclass

UTF16 = str(PositionEncodingKind.Utf16.value)
_BYTES = {
    UTF16: ("utf-16-le", 2),
    str(PositionEncodingKind.Utf8.value): ("utf-8", 1),
    str(PositionEncodingKind.Utf32.value): ("utf-32-le", 4),
}
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, eq=False)
class Text:
    """A text; ``encoding`` says in which units positions count characters."""

    content: str
    encoding: str = UTF16

    @cached_property
    def _own_starts(self) -> Sequence[int]:
        """Offsets of the lines that end at LF."""
        lengths = map(len, self.content.split("\n"))
        return [0, *(end + index for index, end in enumerate(accumulate(lengths), 1))][:-1]

    @cached_property
    def _starts(self) -> Sequence[int]:
        """Offsets of the protocol's lines."""
        if self.content.count("\r") == self.content.count("\r\n"):
            return self._own_starts
        return [0, *(end.end() for end in _LINE_END.finditer(self.content))]

    @property
    def line_count(self) -> int:
        """Lines as the dump counts them; after a last LF there is one more, which is empty."""
        return len(self._own_starts)

    # -- lines of the dump ---------------------------------------------------------------------

    def start_of(self, line: int) -> int:
        """Offset where a line of the dump (from 1) begins, behind a byte order mark."""
        starts = self._own_starts
        if line > len(starts):
            return len(self.content)
        start = starts[max(line, 1) - 1]
        return start + 1 if start == 0 and self.content.startswith("\ufeff") else start

    def end_of(self, line: int) -> int:
        """Offset where a line of the dump ends, before its line end."""
        starts = self._own_starts
        if line >= len(starts):
            return len(self.content)
        end = starts[max(line, 1)] - 1
        return end - 1 if self.content[end - 1 : end] == "\r" else end

    def line_at(self, offset: int) -> int:
        """The line of the dump (from 1) that holds an offset."""
        return bisect_right(self._own_starts, offset)

    def line(self, line: int) -> str:
        """A line of the dump, without its end."""
        return self.content[self.start_of(line) : self.end_of(line)]

    # -- positions of the protocol -------------------------------------------------------------

    def offset(self, position: Position) -> int:
        """The offset of a position; one behind the end of a line is the line's end."""
        starts = self._starts
        if position.line >= len(starts):
            return len(self.content)
        start = starts[position.line]
        end = starts[position.line + 1] if position.line + 1 < len(starts) else len(self.content)
        line = self.content[start:end].rstrip("\r\n")
        if line.isascii():
            return start + min(position.character, len(line))
        name, size = _BYTES[self.encoding]
        data = line.encode(name, "surrogatepass")[: position.character * size]
        return start + len(data.decode(name, "ignore" if size < 4 else "surrogatepass"))

    def position(self, offset: int) -> Position:
        """The position of an offset."""
        starts = self._starts
        line = bisect_right(starts, offset) - 1
        return Position(line, self._units(self.content[starts[line] : offset]))

    def _units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        name, size = _BYTES[self.encoding]
        return len(text.encode(name, "surrogatepass")) // size

    def range(self, start: int, end: int) -> Range:
        """The range between two offsets."""
        return Range(self.position(start), self.position(end))

    def line_range(self, line: int) -> Range:
        """A line of the dump, without its indentation and its end."""
        start, end = self.start_of(line), self.end_of(line)
        text = self.content[start:end]
        return self.range(start + len(text) - len(text.lstrip()), end)

    def replaced(self, where: Range, new: str) -> Text:
        """The text with a part replaced."""
        start, end = self.offset(where.start), self.offset(where.end)
        return Text(self.content[:start] + new + self.content[end:], self.encoding)

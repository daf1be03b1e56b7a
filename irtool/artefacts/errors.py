"""Why a file beside the dumps can't be used, and where in it."""

from __future__ import annotations

from irtool.ir.limits import MAX_SETTINGS
from irtool.syntax.reading import read_bytes


class ArtefactError(Exception):
    """A file that can't be read as what it should be.

    Attributes:
        path: the file.
        message: what is wrong, in one line.
        line: where, from 1; 0 where the whole file is meant.
        column: where in that line, from 1.
        hint: what to do about it.
    """

    def __init__(
        self, path: str, message: str, line: int = 0, column: int = 1, hint: str = ""
    ) -> None:
        super().__init__(path, message, line, column, hint)
        self.path = path
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN``, or the file alone."""
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def bytes_of(path: str, most: int = MAX_SETTINGS) -> bytes:
    """All bytes of a file.

    Args:
        path: the file, or a named pipe.
        most: bytes beyond which it is refused.

    Raises:
        ArtefactError: it can't be read, or is larger than ``most`` bytes.
    """
    try:
        return read_bytes(path, most)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtefactError(path, f"{reason[:1].lower()}{reason[1:]}") from None


def position_in(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte of a text, both from 1.

    Args:
        data: the whole text.
        offset: of the byte, from 0.

    Returns:
        The column counts bytes, not characters.
    """
    before = data[:offset]
    return before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1

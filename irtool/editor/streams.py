"""The standard streams as the server reads and writes them, whatever stands in them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO

LONGEST_HEADER = 8192
"""Bytes of a header line; the protocol's own take some thirty."""
LONGEST_MESSAGE = 1 << 30
"""Bytes of one message: an editor that opens a dump sends all of it."""
_DIGITS = 18
"""Of a number of bytes that is read as one: Python refuses those of thousands."""
_PIECE = 1 << 20
_WHY = 200
"""Letters of what was raised: some of it quotes the message."""
_LENGTH = re.compile(rb"Content-Length: *(\d+)\s*$")


class Incoming:
    """Bytes from a client: memory grows with what comes, not with what a header announces."""

    def __init__(self, stream: BinaryIO, complain: Callable[[str], None]) -> None:
        self.stream = stream
        self.complain = complain

    def readline(self) -> bytes:
        """The next line of a header, b"" at the end; a blank line in the place of what is none.

        Behind a message that was left out the next header stands on the same line as its end.
        """
        line = self._line()
        length = _LENGTH.search(line)
        if length is None:
            return line
        if len(length[1]) > _DIGITS or int(length[1]) > LONGEST_MESSAGE:
            announced = length[1][:_DIGITS].decode("ascii")
            more = "…" if len(length[1]) > _DIGITS else ""
            self.complain(
                f"left out a message of {announced}{more} bytes; {LONGEST_MESSAGE} are the most"
            )
            return b"\r\n"
        return b"Content-Length: " + length[1] + b"\r\n"

    def _line(self) -> bytes:
        """A line, or the end of a long one."""
        line = self.stream.readline(LONGEST_HEADER)
        while line and not line.endswith(b"\n"):
            more = self.stream.readline(LONGEST_HEADER)
            if not more:
                return b""
            line = (line + more)[-LONGEST_HEADER:]
        return line

    def read(self, size: int) -> bytes:
        """So many bytes, or as many as come."""
        pieces: list[bytes] = []
        while size > 0 and (piece := self.stream.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


class Outgoing:
    """Bytes for a client; the stream stays open, for it belongs to the process."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def write(self, data: bytes) -> None:
        self.stream.write(data)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        """What the protocol calls when it ends."""
        self.flush()


@contextmanager
def complaints(complain: Callable[[str], None]) -> Generator[None]:
    """Tell in one line each what pygls would print with a traceback; in debugging let it print.

    Args:
        complain: takes each line; it is not called while ``IRTOOL_DEBUG`` is set.
    """
    if os.environ.get("IRTOOL_DEBUG"):
        yield
        return
    logger = logging.getLogger("pygls")
    handler = _OneLine(complain)
    passed_on, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = passed_on


class _OneLine(logging.Handler):
    """Errors as a sentence and what was raised, the innermost."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self.complain = complain

    def emit(self, record: logging.LogRecord) -> None:
        """Told where something was raised; what is logged before that says the same."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return
        while error.__cause__ is not None:
            error = error.__cause__
        message = record.getMessage().split("\n")[0].rstrip(".:")
        why = str(error).split("\n")[0][:_WHY]
        self.complain(f"{message[:1].lower()}{message[1:]}: {type(error).__name__}: {why}")

"""Where results go: standard output or the file of ``-o``, as text or bytes."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO, TextIO, cast

from irtool.cli.writing import NewFile, Sink, is_standard_output, output_errors, standard_output
from irtool.report.model import Document, Report
from irtool.report.plain import colours_wanted, is_terminal, plain_lines
from irtool.report.text import escape_lines

Written = tuple[str | None, bytes]
"""The file of ``-o`` (None: standard output), and what was written there."""


_LONGEST = 32 << 20
"""Bytes of output of which a copy is kept."""


class NotedOutput:
    """What is written to outputs, unless it is too long; ``open``: how many are not closed."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.open = 0
        self.is_long = False


_noted: ContextVar[NotedOutput | None] = ContextVar("noted_output", default=None)


@contextmanager
def noting_output() -> Generator[NotedOutput]:
    """Keep a copy of all that is written to outputs, until the end of a block."""
    made = NotedOutput()
    token = _noted.set(made)
    try:
        yield made
    finally:
        _noted.reset(token)


class _Copied(io.RawIOBase):
    """A destination that keeps a copy of what is written to it."""

    def __init__(self, sink: Sink, noted: NotedOutput) -> None:
        self._sink = sink
        self._noted = noted
        self.copy = bytearray()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sink.tell()

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes-like, always
        if not self._noted.is_long:
            self.copy += data
            if len(self.copy) > _LONGEST:
                self._noted.is_long = True
                self.copy.clear()
        return self._sink.write(data)

    def flush(self) -> None:
        if not self.closed:
            self._sink.flush()


class _CopiedText(io.TextIOBase):
    """A terminal that keeps a copy of what is shown on it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.copy: list[str] = []

    @property
    def encoding(self) -> str:  # type: ignore[override]  # which no reader sets
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        self.copy.append(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


class Output:
    """One destination, opened when the first piece is written; a file is there when it is whole."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: NewFile | None = None
        self._sink: Sink | _Copied | None = None

    @property
    def terminal(self) -> bool:
        """Whether the output is a terminal, where a person reads along."""
        return is_standard_output(self._path) and is_terminal(sys.stdout)

    @property
    def coloured(self) -> bool:
        """Whether colours are wanted where it goes."""
        return is_standard_output(self._path) and colours_wanted(sys.stdout)

    def binary(self) -> BinaryIO:
        """The destination for bytes.

        Raises:
            Failure: the file cannot be written, or it is one that was read.
        """
        if self._sink is None:
            if self._path is None or is_standard_output(self._path):
                self._sink = standard_output()
            else:
                self._file = NewFile(self._path)
                self._sink = self._file.sink
            if (noted := _noted.get()) is not None:
                noted.open += 1
                self._sink = _Copied(self._sink, noted)
        return cast("BinaryIO", self._sink)

    def write(self, text: str) -> None:
        """Write text that a renderer has made harmless."""
        self.binary().write(text.encode("utf-8", "backslashreplace"))

    def write_dump(self, text: str) -> None:
        """Write a dump byte for byte, or with its control characters escaped on a terminal."""
        if self.terminal:
            self.write(escape_lines(text))
        else:
            self.binary().write(text.encode("utf-8", "surrogateescape"))

    def show(self, document: Document | Report) -> None:
        """Write a document as people read it: coloured on a terminal, else as plain text."""
        if self.terminal or self.coloured:
            from irtool.report.terminal import write_rich

            noted = _noted.get()
            stream = sys.stdout if noted is None else _CopiedText(sys.stdout)
            with output_errors("standard output"):
                write_rich(document.blocks, cast("TextIO", stream))
            if noted is not None and isinstance(stream, _CopiedText):
                shown = "".join(stream.copy).encode(stream.encoding, "backslashreplace")
                noted.written.append((None, shown))
        else:
            self.write("".join(f"{line}\n" for line in plain_lines(document.blocks)))

    def close(self) -> None:
        """Finish: only now a file is at its place.

        Raises:
            Failure: what was written last cannot be.
        """
        if self._file is not None:
            self._file.keep()
        elif self._sink is not None:
            self._sink.flush()
        noted = _noted.get()
        if noted is not None and isinstance(self._sink, _Copied):
            noted.open -= 1
            noted.written.append((self._path, bytes(self._sink.copy)))
        self._file = self._sink = None

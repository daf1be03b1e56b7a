"""Where results go: standard output or the file of ``-o``, as text or bytes."""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO, TextIO, cast

from irtool.cli.report import Failure
from irtool.render.tables import Document, is_terminal, plain_lines
from irtool.render.text import escape_lines


class Output:
    """One destination, opened when the first piece is written."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._stream: BinaryIO | None = None

    @property
    def terminal(self) -> bool:
        """Whether a person reads along."""
        return self._path is None and is_terminal(sys.stdout)

    def binary(self) -> BinaryIO:
        """The destination for bytes.

        Raises:
            Failure: the file cannot be written.
        """
        if self._stream is None:
            if self._path is None or self._path == "-":
                self._stream = cast("BinaryIO", getattr(sys.stdout, "buffer", None) or _Text())
            else:
                self._stream = _opened(self._path)
        return self._stream

    def write(self, text: str) -> None:
        """Write text that a renderer has made harmless."""
        self.binary().write(text.encode("utf-8", "backslashreplace"))

    def write_dump(self, text: str) -> None:
        """Write a dump byte for byte, or with its control characters escaped on a terminal."""
        if self.terminal:
            self.write(escape_lines(text))
        else:
            self.binary().write(text.encode("utf-8", "surrogateescape"))

    def show(self, document: Document) -> None:
        """Write a document for people."""
        if self.terminal:
            from irtool.render.terminal import write_rich

            write_rich(document, sys.stdout)
        else:
            self.write("".join(f"{line}\n" for line in plain_lines(document)))

    def close(self) -> None:
        """Finish: a file is complete after this."""
        if self._stream is None:
            return
        self._stream.flush()
        if self._path is not None and self._path != "-":
            self._stream.close()
        self._stream = None


class _Text(io.RawIOBase):
    """Bytes for a standard output that takes only text (a notebook, a test)."""

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes are all it gets
        cast("TextIO", sys.stdout).write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "wb")  # closed by Output.close
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        folder = os.path.dirname(path)
        hint = f"there is no folder {folder}" if folder and not os.path.isdir(folder) else ""
        raise Failure(f"cannot write: {reason}", path, hint=hint) from None

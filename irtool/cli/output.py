"""Where results go: standard output or the file of ``-o``, as text or bytes."""

from __future__ import annotations

import sys
from typing import BinaryIO, cast

from irtool.cli.writing import NewFile, Sink, is_standard_output, output_errors, standard_output
from irtool.report.model import Document, Report
from irtool.report.plain import colours_wanted, is_terminal, plain_lines
from irtool.report.text import escape_lines


class Output:
    """One destination, opened when the first piece is written; a file is there when it is whole."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: NewFile | None = None
        self._sink: Sink | None = None

    @property
    def terminal(self) -> bool:
        """Whether a person reads along."""
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
        """Write a document for people."""
        if self.terminal or self.coloured:
            from irtool.report.terminal import write_rich

            with output_errors("standard output"):
                write_rich(document.blocks, sys.stdout)
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
        self._file = self._sink = None

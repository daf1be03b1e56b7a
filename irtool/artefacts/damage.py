"""What could not be read of a file, each with its place: the rest is read all the same."""

from __future__ import annotations

from irtool.ir.finding import Finding

CODE = "ART002"
"""Of a part of an artefact that can't be read."""
MOST = 20
"""Problems of one file that are kept; the others are counted."""
_TEXT = 120


class Damage:
    """Problems of one file, as they come up.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0
        self._kept: list[Finding] = []

    def add(self, line: int, message: str, column: int = 1, text: str = "", hint: str = "") -> None:
        """Note one; lines and columns count from 1."""
        self.count += 1
        if len(self._kept) < MOST:
            kept = text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
            self._kept.append(
                Finding(
                    CODE,
                    "warning",
                    message,
                    self.path,
                    line,
                    column,
                    statement=kept,
                    hint=hint,
                )
            )

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The first ones, and one that says how many more there are."""
        if self.count <= len(self._kept):
            return tuple(self._kept)
        more = f"{self.count - len(self._kept):,} more rows could not be read"
        return (*self._kept, Finding(CODE, "warning", more, self.path, 1))

"""Problems found while reading, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be read as it should: where, what, and what to do about it.

    ``line`` and ``column`` count from 1; ``text`` is the offending source line, shortened.
    """

    code: str
    message: str
    path: str
    line: int
    column: int
    severity: Severity = "error"
    text: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}:{self.column}: {self.severity}[{self.code}]: {self.message}"
        )

"""What is said of a failure: findings, where they were seen, and what to type next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
Role = Literal["cause", "unknown", "consequence", "note"]

ROLES: tuple[Role, ...] = ("cause", "unknown", "consequence", "note")
"""In the order in which findings are told: causes before what follows from them."""


@dataclass(frozen=True, slots=True)
class PythonLine:
    """A line of Python: ``source`` is its text as far as the log has it."""

    path: str
    line: int
    source: str = ""

    @property
    def text(self) -> str:
        """``net.py:12: x = self.matmul(x, w)``."""
        return f"{self.path}:{self.line}: {self.source}" if self.source else f"{self.place}"

    @property
    def place(self) -> str:
        """``net.py:12``."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause (or consequence, or note), however many lines tell of it.

    Attributes:
        code: what it is; refusals have the codes of ``irtool check``.
        severity: error, warning or info.
        role: whether it is a cause, follows from another failure, or only says something.
        message: a sentence.
        path: the log or ``analyze_fail.ir`` that tells of it first.
        line: the line there.
        text: that line as it stands.
        op: the operator, or ``parameter``; empty where the log names none.
        check: the rule of MindSpore that refused, ``file.cc:Function``.
        values: what the line holds, by name.
        python: the user's innermost line of Python.
        stack: lines of Python on the way there, outermost first.
        call: the failing statement of ``analyze_fail.ir``.
        operands: types of its operands.
        ranks: ranks whose logs tell of it.
        times: how often it was told.
        echoes: lines that only repeat it.
        time: when it was told first, as the log prints it.
        next: the command to type next.
        meaning: what it means and what to do.
        reference: where that is said.
    """

    code: str
    severity: Severity
    role: Role
    message: str
    path: str
    line: int
    text: str
    op: str = ""
    check: str = ""
    values: tuple[tuple[str, str], ...] = ()
    python: PythonLine | None = None
    stack: tuple[PythonLine, ...] = ()
    call: str = ""
    operands: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    times: int = 1
    echoes: int = 0
    time: str = ""
    next: str = ""
    meaning: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One file with what was found in it; ``left_out`` counts findings beyond the bound."""

    path: str
    kind: Literal["log", "analyze_fail", "dump"]
    lines: int = 0
    rank: int | None = None
    findings: tuple[Finding, ...] = ()
    left_out: int = 0
    damage: str = ""

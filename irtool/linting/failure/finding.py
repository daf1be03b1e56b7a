"""What is said of a failure: findings, and what a log tells beside what every finding says."""

from __future__ import annotations

from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding

Role = Literal["cause", "unknown", "consequence", "note"]

ROLES: tuple[Role, ...] = ("cause", "unknown", "consequence", "note")
"""In the order in which findings are told: causes before what follows from them."""


@dataclass(frozen=True, slots=True)
class LoggedFinding(Finding):
    """One cause (or consequence, or note), however many lines tell of it.

    Its file is the log or ``analyze_fail.ir`` that tells of it first, its statement the line there
    as it stands, its operator ``parameter`` where the log refuses one. Refusals have the codes of
    ``irtool check``. Frames are MindSpore's own as well.

    Attributes:
        role: whether it is a cause, follows from another failure, or only says something.
        values: what the line holds, by name.
        call: the failing statement of ``analyze_fail.ir``.
        operands: types of its operands.
        inputs: types of the network's inputs, as the failing compilation has them.
        times: how often it was told.
        echoes: lines that only repeat it.
        time: when it was told first, as the log prints it.
    """

    role: Role = "cause"
    values: tuple[tuple[str, str], ...] = ()
    call: str = ""
    operands: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    times: int = 1
    echoes: int = 0
    time: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One file with what was found in it; ``left_out`` counts findings beyond the bound."""

    path: str
    kind: Literal["log", "analyze_fail", "dump"]
    lines: int = 0
    rank: int | None = None
    findings: tuple[LoggedFinding, ...] = ()
    left_out: int = 0
    damage: str = ""

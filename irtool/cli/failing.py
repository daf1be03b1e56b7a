"""What makes a command that judges end with status 1: findings, from some severity on."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

from irtool.cli.parameters import Option
from irtool.ir.finding import SEVERITIES, Severity


class FailLevel(str, Enum):
    """From which severity on a command fails."""

    error = "error"
    warning = "warning"
    info = "info"
    never = "never"


FailOn = Annotated[
    FailLevel,
    Option("--fail-on", metavar="SEVERITY",
                 help="Exit 1 only from this severity on: error, warning, info, never."),
]  # fmt: skip


def fails(level: FailLevel, *severities: Severity | None, those: Iterable[Severity] = ()) -> int:
    """The exit status by what was found: 1 if anything is as severe as ``--fail-on`` says, else 0.

    Args:
        level: what ``--fail-on`` says.
        *severities: of what was found; None where something was not.
        those: more of them.
    """
    if level is FailLevel.never:
        return 0
    grave = SEVERITIES[: SEVERITIES.index(level.value) + 1]
    return int(any(severity in grave for severity in (*severities, *those)))

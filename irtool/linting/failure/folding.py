"""Findings that say the same, of one log or of several, become one."""

from __future__ import annotations

from dataclasses import replace

from irtool.linting.failure.finding import LoggedFinding
from irtool.linting.failure.record import masked


def finding_key(finding: LoggedFinding) -> tuple[str, ...]:
    """What findings that say the same have in common.

    Args:
        finding: of a log or a dump of a failure.

    Returns:
        Equal for those, with numbers in messages left out.
    """
    if finding.role in ("unknown", "note"):
        return finding.code, finding.role, masked(finding.message)
    said = "" if finding.check or finding.role == "consequence" else masked(finding.message)
    return finding.code, finding.role, finding.op or "", finding.check, said


def folded(first: LoggedFinding, second: LoggedFinding) -> LoggedFinding:
    """Two findings that say the same as one; the later speaks only if it says more.

    What waits in vain is told by several lines, of which some name the rank that was waited for.

    Args:
        first: that was told first.
        second: with the same key (:func:`finding_key`).
    """
    more = first.role == "consequence" and len(second.values) > len(first.values)
    teller = second if more or (second.call and not first.call) else first
    return replace(
        teller,
        ranks=tuple(sorted({*first.ranks, *second.ranks})),
        times=first.times + second.times,
        echoes=first.echoes + second.echoes,
        source=teller.source or first.source or second.source,
        frames=teller.frames or first.frames or second.frames,
    )

"""What the answer of ``check`` adds to a cause: layouts on both sides, and what to change."""

from __future__ import annotations

from irtool.sharding.network.report import Report
from irtool.sharding.why_cause import Cause
from irtool.sharding.why_walk import Surroundings


def with_report(around: Surroundings, cause: Cause, report: Report) -> Cause:
    """Add layouts and the remedy."""
    return cause

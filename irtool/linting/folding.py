"""One cause, one finding: what repeats from layer to layer at one line of Python is told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from irtool.compare.identity import scope_pattern
from irtool.ir.finding import Finding, RelatedPlace

_MOST_PLACES = 50
"""Places that a finding names beside its own; a network of thousands of layers has more."""


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one dump that say the same of the same line of Python, as one.

    Where the dump prints no line, scopes that differ in the numbers of layers alone are one place.
    The first finding stays; the others become related places of it.  Suppressed findings are left
    as they are, so that each keeps the comment or setting that answers for it.
    """
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(_cause(finding, number), []).append(finding)
    return [_joined(same) for same in groups.values()]


def _cause(finding: Finding, number: int) -> object:
    if finding.suppressed or finding.node is None:
        return number
    source = finding.source
    place = (source.path, source.line) if source is not None else scope_pattern(finding.scope or "")
    return (
        finding.code, finding.severity, finding.message, finding.file, finding.fix, place,
        finding.op,
    )  # fmt: skip


def _joined(same: list[Finding]) -> Finding:
    first, *others = same
    if not others:
        return first
    here = f"here as well ({len(same)} places in all)" if len(others) > 1 else "here as well"
    places = tuple(
        RelatedPlace(here, other.file, other.line, other.column, other.node)
        for other in others[:_MOST_PLACES]
    )
    return replace(first, related=(*first.related, *places))

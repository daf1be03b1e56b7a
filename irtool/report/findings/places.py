"""What reports share: groups of equal findings, places for other tools, and counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import CONSEQUENCE, SEVERITIES, Finding, Findings
from irtool.ir.units import count_text


@dataclass(frozen=True, slots=True)
class Spot:
    """A place that other tools point at; ``end_column`` is exclusive, None where unknown."""

    path: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


def primary(finding: Finding) -> Spot:
    """The user's line of Python, so that a review shows it there; else the dump's.

    Args:
        finding: with or without a line of Python.
    """
    source = finding.source
    if source is None:
        return dump_spot(finding)
    end = source.end_line if source.end_line and source.end_line > source.line else None
    return Spot(source.path, max(source.line, 1), source.column, end, source.end_column)


def dump_spot(finding: Finding) -> Spot:
    """The statement in the dump.

    Args:
        finding: its columns are those of the operator; one of the whole file is put at line 1.
    """
    if not finding.line:
        return Spot(finding.file, 1)
    return Spot(finding.file, finding.line, finding.column, None, finding.end_column)


def seen(finding: Finding, most: int = 8) -> list[str]:
    """Other places of a finding, what comes of it among them, one a line.

    Args:
        finding: with its related places.
        most: places that are listed; a last line counts the others.
    """
    lines = [
        f"{relative(place.file)}:{place.line}:{place.column}: {place.message}"
        for place in finding.related[:most]
    ]
    more = len(finding.related) - most
    return [*lines, f"… {count_text(more)} more"] if more > 0 else lines


def consequences(finding: Finding, most: int = 4) -> str:
    """What comes of a finding, in one line; "" where nothing is told to.

    Args:
        finding: with its related places.
        most: consequences that are named; the others are counted.
    """
    effects = [
        place.message.removeprefix(CONSEQUENCE)
        for place in finding.related
        if place.message.startswith(CONSEQUENCE)
    ]
    more = [f"{count_text(len(effects) - most)} more"] if len(effects) > most else []
    return "; ".join([*effects[:most], *more])


def relative(path: str) -> str:
    """A path from the current folder, with slashes, if it lies below it.

    Args:
        path: of a file, or a name in angle brackets (``<stdin>``), which stays as it is.
    """
    if path.startswith("<") or not path:
        return path
    full = os.path.abspath(path)
    root = os.getcwd()
    inside = full.startswith(root.rstrip(os.sep) + os.sep)
    return (os.path.relpath(full, root) if inside else path).replace(os.sep, "/")


def uri(path: str) -> str:
    """A path as a URI reference, relative if it lies below the current folder.

    Args:
        path: of a file; absolute ones elsewhere become ``file://`` URIs.
    """
    shown = relative(path)
    if os.path.isabs(path) and shown == path.replace(os.sep, "/"):
        return f"file://{quote(shown)}"
    return quote(shown)


def severity_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Findings by severity, the gravest first; those that there are none of too.

    Args:
        findings: in any order.
    """
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def code_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Findings by code, the most frequent first.

    Args:
        findings: in any order; codes that are as frequent stand by name.
    """
    counts = Counter(finding.code for finding in findings)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first; otherwise in their order.

    Args:
        findings: in the order that shall hold within a severity.
    """
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


@dataclass(frozen=True, slots=True)
class Alike:
    """Findings that say the same of the same line of Python; the first speaks for all."""

    first: Finding
    others: tuple[Finding, ...]


def alike(findings: Sequence[Finding]) -> list[Alike]:
    """Findings in groups of which each is told once: a mistake in a layer that repeats.

    Args:
        findings: equal are those of one code, severity, message, line of Python and fix.

    Returns:
        groups in the order of their first findings.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        source = finding.source
        line = (source.path, source.line) if source is not None else None
        key = (finding.code, finding.severity, finding.message, line, finding.fix)
        groups.setdefault(key, []).append(finding)
    return [Alike(same[0], tuple(same[1:])) for same in groups.values()]


def rule_names(findings: Findings) -> dict[str, str]:
    """The rules' names by code.

    Args:
        findings: with the rules that were asked.
    """
    return {rule.code: rule.name for rule in findings.rules}

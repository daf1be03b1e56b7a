"""What comes of a cause is told below it: of each rule's findings, which others are its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from irtool.ir.finding import CONSEQUENCE, SEVERITIES, Finding, RelatedPlace
from irtool.linting.rule import Rule


def nested(
    findings: Sequence[Finding], rules: Iterable[Rule], across_files: bool = False
) -> list[Finding]:
    """Causes with their consequences as related places, and what has no cause, in their order.

    Args:
        findings: of one comparison, or of any number of dumps.
        rules: that say what their findings follow from.
        across_files: whether the cause may be told of another file, as in a comparison.
    """

    def place(code: str, finding: Finding) -> tuple[str, str]:
        return code, "" if across_files else finding.file

    by_code = {rule.code: rule for rule in rules}
    places: dict[tuple[str, str], list[int]] = {}
    for number, finding in enumerate(findings):
        if not finding.suppressed:
            places.setdefault(place(finding.code, finding), []).append(number)
    causes: dict[int, int] = {}
    for number, finding in enumerate(findings):
        rule = by_code.get(finding.code)
        if rule is None or finding.suppressed:
            continue
        codes = (place(code, finding) for code in (*rule.follows_from, *rule.follows_producer))
        likely = (other for code in codes for other in places.get(code, ()))
        cause = next((other for other in likely if _fits(findings[other], finding, rule)), None)
        if cause is not None:
            causes[number] = cause
    below: dict[int, list[Finding]] = {}
    for number in causes:
        below.setdefault(_root(number, causes), []).append(findings[number])
    return [
        with_consequences(finding, below.get(number, ()))
        for number, finding in enumerate(findings)
        if number not in causes
    ]


def with_consequences(cause: Finding, consequences: Sequence[Finding]) -> Finding:
    """A cause with what comes of it, as grave as the gravest of both."""
    if not consequences:
        return cause
    places = tuple(
        RelatedPlace(
            f"{CONSEQUENCE}{consequence.code}: {consequence.message}",
            consequence.file,
            consequence.line,
            consequence.column,
            consequence.node,
        )
        for consequence in consequences
    )
    severity = min(
        (cause.severity, *(consequence.severity for consequence in consequences)),
        key=SEVERITIES.index,
    )
    return replace(cause, severity=severity, related=(*places, *cause.related))


def _fits(cause: Finding, finding: Finding, rule: Rule) -> bool:
    """Whether one finding may be the reason of another, by where they are."""
    if rule.follows_where == "dump":
        return True
    nodes = {cause.node, *(other.node for other in cause.related)} - {None}
    if finding.node in nodes:
        return True
    is_of_producer = cause.code in rule.follows_producer
    return is_of_producer and any(other.node in nodes for other in finding.related)


def _root(number: int, causes: dict[int, int]) -> int:
    """The cause of a cause, as far as there is one."""
    seen: set[int] = set()
    while number in causes and number not in seen:
        seen.add(number)
        number = causes[number]
    return number

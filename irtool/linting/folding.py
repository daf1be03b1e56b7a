"""One cause, one finding: what repeats at one line of Python, layers and gradient, is told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irtool.compare.identity import scope_pattern
from irtool.ir.finding import SEVERITIES, Finding, RelatedPlace
from irtool.ir.units import plural

_MOST_PLACES = 50
"""Places that a finding names beside its own; a network of thousands of layers has more."""


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one dump that say the same of the same line of Python, as one.

    Where the dump prints no line, scopes that differ in the numbers of layers alone are one place.
    The first finding stays; the others become related places of it.  What a rule says of the
    gradient of a line of which it says something as grave belongs to that: who changes the line
    changes both.  Suppressed findings are left as they are, so that each keeps the comment or
    setting that answers for it.

    Args:
        findings: of one dump, in their order.
    """
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(_cause(finding, number), []).append(finding)
    same = list(groups.values())
    gradients = _gradients(same)
    hidden = {number for numbers in gradients.values() for number in numbers}
    return [
        _joined(group, [each for other in gradients.get(number, ()) for each in same[other]])
        for number, group in enumerate(same)
        if number not in hidden
    ]


def _cause(finding: Finding, number: int) -> object:
    if finding.suppressed or finding.node is None:
        return number
    source = finding.source
    place = (source.path, source.line) if source is not None else scope_pattern(finding.scope or "")
    return (
        finding.code, finding.severity, finding.message, finding.file, finding.fix, place,
        finding.op, finding.is_backward,
    )  # fmt: skip


def _gradients(groups: Sequence[list[Finding]]) -> dict[int, list[int]]:
    """Groups of a forward pass, with those that tell the same of its gradient, by number."""
    forward: dict[object, list[int]] = {}
    for number, (first, *_) in enumerate(groups):
        if not first.is_backward and (line := _line(first)) is not None:
            forward.setdefault(line, []).append(number)
    gradients: dict[int, list[int]] = {}
    for number, (first, *_) in enumerate(groups):
        if first.is_backward and (line := _line(first)) is not None:
            least = _grave(first)
            as_grave = [n for n in forward.get(line, ()) if _grave(groups[n][0]) <= least]
            if as_grave:
                gradients.setdefault(_likest(as_grave, groups, first), []).append(number)
    return gradients


def _line(finding: Finding) -> object:
    """The line of Python that a rule speaks of; None where nobody says it."""
    source = finding.source
    if finding.suppressed or finding.node is None or source is None:
        return None
    return finding.code, finding.file, source.path, source.line


def _grave(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _likest(numbers: Sequence[int], groups: Sequence[list[Finding]], to: Finding) -> int:
    """The group that says the same as a finding, else of the same operator, else the first."""

    def unlike(number: int) -> tuple[bool, bool]:
        first = groups[number][0]
        return first.message != to.message, first.op != to.op

    return min(numbers, key=unlike)


def _joined(same: Sequence[Finding], gradients: Sequence[Finding]) -> Finding:
    first, *others = same
    places = list(_places(_here(len(same), len(gradients)), others))
    places += _places(_in_gradient(len(gradients)), gradients)
    return replace(first, related=(*first.related, *places[:_MOST_PLACES])) if places else first


def _places(message: str, findings: Iterable[Finding]) -> Iterator[RelatedPlace]:
    for each in findings:
        yield RelatedPlace(message, each.file, each.line, each.column, each.node)


def _here(places: int, gradients: int) -> str:
    """What is said of the places of one pass; all are counted, that of the finding too."""
    counts = [f"{places} places in all"] if places > 2 or gradients else []
    counts += [f"and {gradients} in its gradient"] if gradients else []
    return f"here as well ({', '.join(counts)})" if counts else "here as well"


def _in_gradient(places: int) -> str:
    return f"in its gradient ({plural(places, 'place')})" if places > 1 else "in its gradient"

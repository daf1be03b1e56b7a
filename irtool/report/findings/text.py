"""For people: each finding with its statement, a caret, the line of Python, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Findings, Gain, Silenced
from irtool.ir.units import bytes_text, count_text, plural, ranks_text, seconds_text
from irtool.report.findings.places import (
    Alike,
    alike,
    by_severity,
    code_counts,
    relative,
    rule_names,
    seen,
    severity_counts,
)
from irtool.report.text import escape

MOST_GROUPS = 50
_MOST_PLACES = 6
_MOST_GONE = 10
_COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;34", "label": "36", "caret": "1;31"}
_NEED_TEXTS = {
    "begin": "needs a step_parallel_begin dump",
    "validate": "needs a validate dump",
    "devices": "needs the number of devices",
    "ranks": "needs the dumps of other ranks",
    "machine": "needs --machine",
    "environment": "needs the run's environment variables ([context.environment])",
}


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How wide, whether in colour, and how many groups of findings (None: the usual number)."""

    width: int = 100
    colour: bool = False
    limit: int | None = None
    statistics: bool = False


def text_pieces(findings: Findings, style: TextStyle) -> Iterator[str]:
    """Each group of equal findings with its statement and what to do, then how many there are.

    Args:
        findings: of one run of ``lint`` or ``gate``.
        style: width in characters, colour, groups that are shown (0: all), whether codes are
            counted.

    Yields:
        pieces with their line ends, the gravest findings first.
    """
    groups = alike(by_severity(findings.items))
    most = MOST_GROUPS if style.limit is None else style.limit or len(groups)
    for group in groups[:most]:
        yield _group(group, style) + "\n"
    if len(groups) > most:
        rest = sum(1 + len(group.others) for group in groups[most:])
        yield f"… {plural(rest, 'more finding')} (--limit 0 shows all)\n\n"
    if style.statistics:
        yield statistics_text(findings)
    yield summary_text(findings)


def concise_pieces(findings: Findings, style: TextStyle) -> Iterator[str]:
    """A line a finding: ``FILE:LINE:COL: severity[CODE]: message``.

    Args:
        findings: told in their own order, equal ones each.
        style: whether in colour, and whether codes are counted at the end.
    """
    for finding in findings.items:
        source = finding.source
        elsewhere = source is not None and source.path != finding.file
        tail = f" ({source.path}:{source.line})" if source is not None and elsewhere else ""
        place = relative(finding.file) + finding.place[len(finding.file) :]
        head = _paint(f"{finding.severity}[{finding.code}]", finding.severity, style)
        yield f"{escape(place)}: {head}: {escape(finding.message + tail)}\n"
    if style.statistics:
        yield statistics_text(findings)


def _group(group: Alike, style: TextStyle) -> str:
    finding = group.first
    place = relative(finding.file) + finding.place[len(finding.file) :]
    head = _paint(f"{finding.severity}[{finding.code}]", finding.severity, style)
    lines = [f"{escape(place)}: {head}: {escape(finding.message)}"]
    lines += _excerpt(finding, style)
    for label, text in _facts(group):
        lines.append(f"  {_paint(f'{label:<6}', 'label', style)} {escape(text)}")
    return "\n".join(lines) + "\n"


def _facts(group: Alike) -> Iterator[tuple[str, str]]:
    finding = group.first
    if finding.source is not None and finding.source.path != finding.file:
        source = finding.source
        yield "source", f"{source.path}:{source.line}" + (f": {source.text}" if source.text else "")
    if finding.scope:
        yield "scope", finding.scope
    if len(finding.ranks) > 1:
        yield "ranks", ranks_text(finding.ranks)
    for line in seen(finding, _MOST_PLACES):
        yield "see", line
    if group.others:
        yield "also", _others_text(finding, group.others)
    if finding.instead:
        yield "fix", finding.instead
    if finding.gain is not None and (gain := gain_text(finding.gain)):
        yield "gain", gain
    if finding.hint:
        yield "hint", finding.hint


def gain_text(gain: Gain) -> str:
    """``12 ms a step, 1.5 MiB a device``: what is known of it.

    Args:
        gain: what an edit is worth; "" where neither is known.
    """
    known = ("" if gain.seconds is None else f"{seconds_text(gain.seconds)} a step",
             "" if gain.bytes is None else f"{bytes_text(gain.bytes)} a device")  # fmt: skip
    return ", ".join(filter(None, known))


def _others_text(first: Finding, others: Sequence[Finding]) -> str:
    places = [
        (f"line {other.line}" if other.file == first.file else other.place)
        + (f" {other.node}" if other.node else "")
        for other in others[:_MOST_PLACES]
    ]
    if len(others) > _MOST_PLACES:
        places.append(f"… {count_text(len(others) - _MOST_PLACES)} more")
    return f"{plural(len(others), 'other place')}: {', '.join(places)}"


def _excerpt(finding: Finding, style: TextStyle) -> list[str]:
    """The dump's line, cut around what is meant, with carets under that."""
    text = finding.statement
    if not text.strip() or finding.column > len(text) + 1:
        return []
    number = str(finding.line)
    room = max(style.width - len(number) - 7, 20)
    offset = max(finding.column - 1, 0)
    length = min(max(finding.end_column - finding.column, 1), len(text) - offset or 1, room)
    start = 0
    if offset + length > room:
        start = max(0, min(offset - room // 4, len(text) - room))
    shown = text[start : start + room]
    lead, end = ("…" if start else ""), ("…" if start + room < len(text) else "")
    before = lead + escape(shown[: offset - start])
    meant = escape(shown[offset - start : offset - start + length])
    after = escape(shown[offset - start + length :]) + end
    carets = _paint("^" * max(len(meant), 1), "caret", style)
    bar = " " * len(number)
    return [f"  {number} | {before}{meant}{after}", f"  {bar} | {' ' * len(before)}{carets}"]


def _paint(text: str, kind: str, style: TextStyle) -> str:
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if style.colour else text


# -- the end -----------------------------------------------------------------------------------


def statistics_text(findings: Findings) -> str:
    """How often each rule spoke."""
    names = rule_names(findings)
    rows = [
        (count_text(count), code, names.get(code, ""))
        for code, count in code_counts(findings.items).items()
    ]
    width = max((len(row[0]) for row in rows), default=0)
    return "".join(f"{row[0]:>{width}}  {row[1]}  {row[2]}\n" for row in rows)


def summary_text(findings: Findings) -> str:
    """How many findings, what was left out, and which rules could not look.

    Args:
        findings: of one run of ``lint`` or ``gate``.

    Returns:
        lines with their ends; the first holds the counts.
    """
    where = plural(findings.files, "dump")
    if findings.compilations > 1:
        where += f" of {plural(findings.compilations, 'compilation')}"
    lines = [_count_line(findings, where)]
    suppressed = _suppressed_text(findings.suppressed)
    if suppressed:
        lines.append(f"not shown: {suppressed}")
    if findings.stale:
        gone = plural(len(findings.stale), "known finding")
        it = "it" if len(findings.stale) == 1 else "them"
        lines.append(f"{gone} of the baseline did not come again: --update-baseline takes {it} out")
        lines += [f"gone: {entry}" for entry in findings.stale[:_MOST_GONE]]
        if len(findings.stale) > _MOST_GONE:
            lines.append(f"gone: … {count_text(len(findings.stale) - _MOST_GONE)} more")
    lines += [f"skipped {line}" for line in silenced_lines(findings.silenced)]
    return "\n".join(map(escape, lines)) + "\n"


def _count_line(findings: Findings, where: str) -> str:
    if not findings.items:
        return f"nothing found in {where}, by {plural(len(findings.checked), 'rule')}"
    counts = severity_counts(findings.items)
    nouns = {"error": "error", "warning": "warning", "info": "remark"}
    parts = [plural(count, nouns[name]) for name, count in counts.items() if count]
    return f"{plural(len(findings.items), 'finding')} in {where}: {', '.join(parts)}"


def _suppressed_text(suppressed: Sequence[Finding]) -> str:
    counts = {"baseline": 0, "comments": 0, "configuration": 0}
    for finding in suppressed:
        reason = finding.suppressed
        configured = reason.startswith(("per-scope-ignores", "per-file-ignores"))
        kind = "baseline" if reason == "baseline" else "comments"
        counts["configuration" if configured else kind] += 1
    words = {
        "baseline": "known in the baseline",
        "comments": "suppressed by comments",
        "configuration": "ignored by the configuration",
    }
    return ", ".join(f"{count_text(counts[k])} {words[k]}" for k in words if counts[k])


def silenced_lines(silenced: Sequence[Silenced]) -> list[str]:
    """Rules that could not look, by what they lacked."""
    groups: dict[tuple[str, str, int, int], list[str]] = {}
    for rule in silenced:
        key = (rule.need, rule.reason, rule.count, rule.total)
        groups.setdefault(key, []).append(rule.code)
    lines: list[str] = []
    for (need, reason, count, total), codes in groups.items():
        text = f"{_codes_text(codes)}: {_NEED_TEXTS.get(need, f'needs {need}')}"
        if total > 1 and count < total:
            text += f", in {count_text(count)} of {count_text(total)} compilations"
        lines.append(text + (f" ({reason})" if reason else ""))
    return lines


def _codes_text(codes: Sequence[str]) -> str:
    """Codes in their order, runs of three and more joined: ``COM001, COM004-COM006``."""
    runs: list[list[str]] = []
    for code in sorted(set(codes)):
        last = runs[-1][-1] if runs else ""
        if last[:-3] == code[:-3] and last and int(last[-3:]) + 1 == int(code[-3:]):
            runs[-1].append(code)
        else:
            runs.append([code])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)

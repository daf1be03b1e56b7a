"""What ``irtool explain PATH`` shows: causes first, each with what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.units import plural, ranks_text
from irtool.report.model import Document, Facts, Heading, Note
from irtool.report.text import shortened

if TYPE_CHECKING:
    from irtool.ir.finding import SourceLine
    from irtool.lint.failure.finding import Explained, LoggedFinding
    from irtool.lint.failure.report import Explanation

SCHEMA = "irtool.explain/1"
NO_DUMPS = "DUMPS"
_MOST_FRAMES = 12
_WIDTH = 400
_LABELS = {
    "cause": "{severity}",
    "unknown": "unknown",
    "consequence": "follows",
    "note": "{severity}",
}


def explain_document(report: Explanation) -> Document:
    """All findings, causes first."""
    document = Document([Heading(_heading(report))])
    document.add(*(Facts(_facts(finding)) for finding in report.findings))
    if report.left_out:
        document.add(Note(f"… {plural(report.left_out, 'more finding')}, not kept"))
    if any(NO_DUMPS in finding.command.split() for finding in report.findings):
        document.add(Note(f"{NO_DUMPS} stands for the folder of the run's dumps"))
    if not report.findings:
        document.add(Note(_nothing(report)))
    return document


def explain_object(report: Explanation) -> dict[str, object]:
    """The same for scripts."""
    return {
        "schema": SCHEMA,
        "files": [_file_object(each) for each in report.files],
        "findings": [_finding_object(finding) for finding in report.findings],
        "left_out": report.left_out,
    }


def _heading(report: Explanation) -> str:
    names = report.files[0].path if len(report.files) == 1 else plural(len(report.files), "file")
    counts = [
        plural(number, noun)
        for role, noun in (
            ("cause", "cause"),
            ("unknown", "unknown error"),
            ("consequence", "consequence"),
            ("note", "note"),
        )
        if (number := sum(finding.role == role for finding in report.findings))
    ]
    return f"{names}: {', '.join(counts) if counts else 'nothing found'}"


def _nothing(report: Explanation) -> str:
    if all(each.kind == "dump" for each in report.files):
        return "the dump of a pass that succeeded: irtool check and irtool lint look into it"
    return f"no known line and no error in {plural(report.lines, 'line')}"


def _facts(finding: LoggedFinding) -> list[tuple[str, str]]:
    label = _LABELS[finding.role].format(severity=finding.severity)
    subject = "" if finding.op in (None, "", "parameter") else f"{finding.op}: "
    message = shortened(finding.message, _WIDTH)
    if subject and message.startswith(("MindSpore refused", f"{finding.op} ")):
        subject = ""
    facts = [(label, subject + message), ("code", _code(finding)), ("at", _place(finding))]
    if finding.role == "unknown" or finding.message not in finding.statement:
        facts += [("log", shortened(line, _WIDTH)) for line in finding.statement.split("\n")[:1]]
    if finding.source is not None:
        facts.append(("source", finding.source.shown))
    if finding.call and finding.call != finding.statement:
        facts.append(("call", shortened(finding.call, _WIDTH)))
    if finding.operands:
        facts.append(("operands", ", ".join(finding.operands)))
    if len(finding.frames) > 1:
        facts += _stack(finding.frames)
    if finding.ranks:
        facts.append(("ranks", ranks_text(finding.ranks)))
    if finding.edit is not None:
        facts.append(("edit", finding.edit.text))
    if finding.hint:
        facts.append(("meaning", finding.hint))
    if finding.command:
        facts.append(("next", finding.command))
    return facts


def _code(finding: LoggedFinding) -> str:
    return f"{finding.code}, {finding.check} in MindSpore" if finding.check else finding.code


def _place(finding: LoggedFinding) -> str:
    more: list[str] = []
    if finding.times > 1:
        more.append(f"{finding.times:,} times")
    if finding.echoes:
        more.append(f"repeated by {plural(finding.echoes, 'line')}")
    place = f"{finding.file}:{finding.line}"
    return f"{place} ({', '.join(more)})" if more else place


def _stack(stack: tuple[SourceLine, ...]) -> list[tuple[str, str]]:
    """Outermost first; of a deep one the middle is left out."""
    lines = [frame.shown for frame in stack]
    if len(lines) > _MOST_FRAMES:
        half = _MOST_FRAMES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more", *lines[-half:]]
    return [("stack" if index == 0 else "", line) for index, line in enumerate(lines)]


def _file_object(each: Explained) -> dict[str, object]:
    return {
        "path": each.path,
        "kind": each.kind,
        "lines": each.lines,
        "rank": each.rank,
        "damage": each.damage or None,
    }


def _finding_object(finding: LoggedFinding) -> dict[str, object]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "role": finding.role,
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "text": finding.statement,
        "op": finding.op or None,
        "check": finding.check or None,
        "values": dict(finding.values),
        "source": _line_object(finding.source),
        "stack": [_line_object(frame) for frame in finding.frames],
        "call": finding.call or None,
        "operands": list(finding.operands),
        "ranks": list(finding.ranks),
        "times": finding.times,
        "echoes": finding.echoes,
        "time": finding.time or None,
        "meaning": finding.hint or None,
        "next": finding.command or None,
        "reference": finding.reference or None,
    }


def _line_object(frame: SourceLine | None) -> dict[str, object] | None:
    if frame is None:
        return None
    return {"file": frame.path, "line": frame.line, "text": frame.text or None}

"""Diagnostics: what could not be read, and what ``check`` and ``lint`` find."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import (
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
    Position,
    Range,
)
from pygls.uris import from_fs_path

from irtool.editor.document import Document
from irtool.ir.finding import Finding, Severity
from irtool.ir.units import tuple_text
from irtool.report.text import escape_lines

_SEVERITIES: dict[Severity, DiagnosticSeverity] = {
    "error": DiagnosticSeverity.Error,
    "warning": DiagnosticSeverity.Warning,
    "info": DiagnosticSeverity.Information,
}


def diagnostics(document: Document) -> list[Diagnostic]:
    """Everything that is wrong or worth a look, as far as it is known by now.

    Args:
        document: the dump, with the answers of the analyses so far.

    Returns:
        problems while reading, findings of the linter, of ``check`` what the linter does not tell
        (once all is asked), and what could not be asked.
    """
    answers = document.answers
    problems = document.dump.problems
    reported = {(problem.code, problem.line) for problem in problems}
    shown = [_problem(document, problem) for problem in problems]
    shown += [
        _finding(document, finding)
        for finding in answers.findings
        if not _is_reported(finding, reported)
    ]
    # The linter tells most of what check found, in a form that more can be done with.
    report = answers.report if answers.is_complete else None
    checked = report.findings if report is not None else ()
    shown += [
        _checked(document, from_check)
        for from_check in checked
        if not any(is_same(finding, from_check) for finding in answers.findings)
    ]
    troubles = (document.project.trouble, *answers.troubles)
    shown += [_trouble(document, text) for text in troubles if text]
    return shown


def _is_reported(finding: Finding, reported: set[tuple[str, int]]) -> bool:
    return (finding.code, finding.line) in reported


def is_same(finding: Finding, checked: Finding) -> bool:
    """Whether the linter tells what ``check`` told it.

    Args:
        finding: the linter's.
        checked: that of ``check``, in the same dump.
    """
    return finding.line == checked.line and checked.message in finding.message


def _problem(document: Document, problem: Finding) -> Diagnostic:
    text = document.text
    start = min(text.start_of(problem.line) + problem.column - 1, text.end_of(problem.line))
    where = text.range(start, max(text.end_of(problem.line), start))
    message = "\n".join(part for part in (problem.message, problem.hint) if part)
    return _diagnostic(where, problem.severity, "irtool", problem.code, message)


def _finding(document: Document, finding: Finding) -> Diagnostic:
    parts = [finding.message]
    if finding.instead:
        parts.append(f"instead: {finding.instead}")
    elif finding.hint:
        parts.append(finding.hint)
    made = _diagnostic(
        finding_range(document, finding),
        finding.severity,
        "irtool lint",
        finding.code,
        "\n".join(parts),
    )
    made.related_information = list(_related(document, finding)) or None
    return made


def finding_range(document: Document, finding: Finding) -> Range:
    """The part of the dump that a finding is about; the first line where it is all of it.

    Args:
        document: the dump.
        finding: its line and columns count from 1, in characters, as everywhere in irtool.

    Returns:
        the range in the protocol's units, never beyond the end of the line.
    """
    if not finding.line:
        return document.text.line_range(1)
    base = document.text.start_of(finding.line)
    end = document.text.end_of(finding.line)
    start = min(base + finding.column - 1, end)
    return document.text.range(start, min(max(base + finding.end_column - 1, start), end))


def _related(document: Document, finding: Finding) -> Iterator[DiagnosticRelatedInformation]:
    for place in finding.related:
        if place.file == document.path and place.line:
            where = Location(document.uri, document.text.line_range(place.line))
            yield DiagnosticRelatedInformation(where, place.message)
    for frame in finding.frames:
        path = document.project.python_file(frame.path)
        uri = from_fs_path(path) if path is not None else None
        if uri is not None:
            start = Position(max(frame.line - 1, 0), 0)
            message = escape_lines(frame.text) or f"line {frame.line}"
            yield DiagnosticRelatedInformation(Location(uri, Range(start, start)), message)


def _checked(document: Document, finding: Finding) -> Diagnostic:
    parts = [f"{finding.op}: {finding.message}" if finding.op else finding.message]
    options = document.answers.proposals.strategies.get(finding, ())
    if options:
        parts.append("instead: in_strategy " + ", or ".join(map(tuple_text, options)))
    if finding.check:
        parts.append(f"MindSpore says it in {finding.check}")
    where = document.text.line_range(finding.line or 1)
    return _diagnostic(where, finding.severity, "irtool check", finding.code, "\n".join(parts))


def _trouble(document: Document, text: str) -> Diagnostic:
    where = document.text.line_range(1)
    return _diagnostic(where, "info", "irtool", None, text)


def _diagnostic(
    where: Range, severity: Severity, source: str, code: str | None, message: str
) -> Diagnostic:
    return Diagnostic(where, escape_lines(message), _SEVERITIES[severity], code, source=source)

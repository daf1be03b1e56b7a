"""What ``irtool explain PATH`` tells: causes first, each with what to type next."""

from __future__ import annotations

from typing import Annotated, Literal

from irtool.ir.finding import Severity, SourceLine
from irtool.ir.units import plural, ranks_text
from irtool.linting.failure.finding import ROLES, Explained, LoggedFinding, Role
from irtool.linting.failure.report import NO_DUMPS, Explanation
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Answer,
    Cell,
    Column,
    Element,
    FindingCard,
    FindingCards,
    Note,
    Report,
    Table,
    Tone,
    number_column,
    text_column,
)
from irtool.report.run_answer import RunAnswer, no_context
from irtool.report.text import shortened

_MOST_FRAMES = 12
_WIDTH = 400
_LABELS: dict[Role, str] = {"unknown": "unknown", "consequence": "follows"}
_NOUNS: dict[Role, str] = {
    "cause": "cause",
    "unknown": "unknown error",
    "consequence": "consequence",
    "note": "note",
}


# -- for scripts ---------------------------------------------------------------------------------


class ExplainedFile(AnswerObject, frozen=True, kw_only=True):
    """A file that was read."""

    path: str
    kind: Literal["log", "analyze_fail", "dump"]
    lines: int
    rank: Annotated[int | None, doc("whose it is, by its name or folder")]
    damage: Annotated[str | None, doc("why a part of it could not be read")]


class PythonLine(AnswerObject, frozen=True, kw_only=True):
    """A line of Python that a log names."""

    file: str
    line: int
    text: Annotated[str | None, doc("as far as the log has it")]


class LogFinding(AnswerObject, frozen=True, kw_only=True):
    """One cause, consequence or note, however many lines tell of it."""

    code: Annotated[str, doc("of a refusal: the one that `irtool check` gives for it")]
    severity: Severity
    role: Annotated[
        Role,
        doc(
            "`unknown`: an error that irtool does not know, as it stands; `consequence`: another "
            "failure is behind it (a timeout, say); `note`: no failure, but worth knowing"
        ),
    ]
    message: str
    file: Annotated[str, doc("the file that tells of it first")]
    line: int
    text: Annotated[
        str,
        doc(
            "the line as it stands, at most 1,000 characters; of an `analyze_fail.ir` the "
            "exception, at most 2,000"
        ),
    ]
    op: Annotated[
        str | None, doc("null where nothing names one; `parameter` where a parameter is refused")
    ]
    check: Annotated[str | None, doc("the place in MindSpore that refuses it: `file.cc:Function`")]
    values: Annotated[dict[str, str], doc("what the line says, by name, as texts")]
    source: Annotated[PythonLine | None, doc("the user's innermost line of Python")]
    stack: Annotated[list[PythonLine], doc("the way there, outermost first")]
    call: Annotated[str | None, doc("the failing statement of an `analyze_fail.ir`")]
    operands: Annotated[list[str], doc("the types that went into it")]
    ranks: Annotated[list[int], doc("whose logs tell of it")]
    times: Annotated[int, doc("how often it was told, in all files")]
    echoes: Annotated[int, doc("lines that only repeat it")]
    time: Annotated[str | None, doc("when it was told first, as the log prints it")]
    meaning: Annotated[str | None, doc("what it means and what to do")]
    next: Annotated[
        str | None,
        doc("a command; `DUMPS` in it stands for the folder of the dumps, where it is not known"),
    ]
    reference: Annotated[str | None, doc("where the meaning is said")]


class ExplainAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.explain/1"
):
    """What logs and an `analyze_fail.ir` say: causes first, in a role by the time in the logs."""

    left_out: Annotated[int, doc("findings beyond 500 of a file")]
    files: list[ExplainedFile]
    findings: list[LogFinding]


def explain_answer(explanation: Explanation) -> ExplainAnswer:
    """The answer of ``irtool explain PATH`` for scripts.

    Args:
        explanation: what logs and failure dumps say.
    """
    return ExplainAnswer(
        **no_context(),
        left_out=explanation.left_out,
        files=[_file(item) for item in explanation.files],
        findings=[_log_finding(finding) for finding in explanation.findings],
    )


def _file(item: Explained) -> ExplainedFile:
    return ExplainedFile(
        path=item.path,
        kind=item.kind,
        lines=item.lines,
        rank=item.rank,
        damage=item.damage or None,
    )


def _log_finding(finding: LoggedFinding) -> LogFinding:
    return LogFinding(
        code=finding.code,
        severity=finding.severity,
        role=finding.role,
        message=finding.message,
        file=finding.file,
        line=finding.line,
        text=finding.statement,
        op=finding.op or None,
        check=finding.check or None,
        values=dict(finding.values),
        source=_python_line(finding.source) if finding.source is not None else None,
        stack=[_python_line(frame) for frame in finding.frames],
        call=finding.call or None,
        operands=list(finding.operands),
        ranks=list(finding.ranks),
        times=finding.times,
        echoes=finding.echoes,
        time=finding.time or None,
        meaning=finding.hint or None,
        next=finding.command or None,
        reference=finding.reference or None,
    )


def _python_line(frame: SourceLine) -> PythonLine:
    return PythonLine(file=frame.path, line=frame.line, text=frame.text or None)


# -- for people ----------------------------------------------------------------------------------


def explain_report(explanation: Explanation) -> Report:
    """All findings, causes first, and the files where there are several.

    Args:
        explanation: what logs and failure dumps say.
    """
    elements: list[Element] = []
    if explanation.findings:
        elements.append(FindingCards("Findings", [_card(item) for item in explanation.findings]))
    if explanation.left_out:
        elements.append(Note(f"… {plural(explanation.left_out, 'more finding')}, not kept"))
    if any(NO_DUMPS in finding.command.split() for finding in explanation.findings):
        elements.append(Note(f"{NO_DUMPS} stands for the folder of the run's dumps"))
    if not explanation.findings:
        elements.append(Note(_nothing(explanation)))
    if len(explanation.files) > 1:
        elements.append(_files_table(explanation))
    grave = any(finding.severity == "error" for finding in explanation.findings)
    tone: Tone = "bad" if grave else "plain" if explanation.findings else "good"
    subject = _subject(explanation)
    return Report(f"explain: {subject}", Answer(_counts(explanation), tone), elements, subject)


def _subject(explanation: Explanation) -> str:
    files = explanation.files
    return files[0].path if len(files) == 1 else plural(len(files), "file")


def _counts(explanation: Explanation) -> str:
    counts = [
        plural(number, _NOUNS[role])
        for role in ROLES
        if (number := sum(finding.role == role for finding in explanation.findings))
    ]
    return ", ".join(counts) if counts else "nothing found"


def _nothing(explanation: Explanation) -> str:
    if all(item.kind == "dump" for item in explanation.files):
        return "the dump of a pass that succeeded: irtool check and irtool lint look into it"
    return f"no known line and no error in {plural(explanation.lines, 'line')}"


def _files_table(explanation: Explanation) -> Table:
    columns = [
        text_column("file"), Column("kind"), number_column("rank"), number_column("lines"),
        number_column("findings"), text_column("not read", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [item.path, item.kind, item.rank, item.lines, len(item.findings) + item.left_out,
         item.damage]
        for item in explanation.files
    ]  # fmt: skip
    return Table("Files", columns, rows, noun="file", most=20)


def _card(finding: LoggedFinding) -> FindingCard:
    subject = "" if finding.op in (None, "", "parameter") else f"{finding.op}: "
    message = shortened(finding.message, _WIDTH)
    if subject and message.startswith(("MindSpore refused", f"{finding.op} ")):
        subject = ""
    return FindingCard(
        finding.severity,
        subject + message,
        f"{finding.code}, {finding.check} in MindSpore" if finding.check else finding.code,
        _facts(finding),
        label=_LABELS.get(finding.role, ""),
    )


def _facts(finding: LoggedFinding) -> list[tuple[str, Cell]]:
    facts: list[tuple[str, Cell]] = [("where", _place(finding))]
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


def _place(finding: LoggedFinding) -> str:
    more: list[str] = []
    if finding.times > 1:
        more.append(f"{finding.times:,} times")
    if finding.echoes:
        more.append(f"repeated by {plural(finding.echoes, 'line')}")
    place = f"{finding.file}:{finding.line}"
    return f"{place} ({', '.join(more)})" if more else place


def _stack(stack: tuple[SourceLine, ...]) -> list[tuple[str, Cell]]:
    """Outermost first; of a deep one the middle is left out."""
    lines = [frame.shown for frame in stack]
    if len(lines) > _MOST_FRAMES:
        half = _MOST_FRAMES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more", *lines[-half:]]
    return [("stack" if index == 0 else "", line) for index, line in enumerate(lines)]

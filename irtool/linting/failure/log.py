"""Reads a log line by line: known lines become findings, many lines of one cause become one.

A refusal of the sharding pass is several ERROR lines of one thread, the reason first, then a line
of each caller up to ``Init failed``, then a Python exception that names the operator.  They are
taken together; each other known line is a finding of its own.  Memory is bounded: only findings
are kept, and of those at most :data:`MOST_FINDINGS`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Edit, SourceLine
from irtool.linting.failure.finding import Explained, LoggedFinding, Role
from irtool.linting.failure.folding import finding_key, folded
from irtool.linting.failure.frames import FrameCollector, innermost, python_frame
from irtool.linting.failure.known import KnownLine, KnownLines, known_lines
from irtool.linting.failure.record import Record, exception_of, masked, parse_line
from irtool.linting.failure.template import filled

MOST_FINDINGS = 500
"""Most different findings of one log; what comes after is counted."""
_MOST_TEXT = 1000
_MOST_FRAMES = 60
_MOST_ALIKE = 400
_MOST_IDLE = 4096
_BELOW = "Exception happened, check the information as below"
_FAIL_FILE = re.compile(r"See file '([^']{1,400}analyze_fail\.ir)'")
_FAIL_DEFAULT = "rank_0/om/analyze_fail.ir"
_COUNTS = re.compile(r"(?<![A-Za-z0-9])\d+")

_OPERATOR = re.compile(r"\b_?([A-Z][A-Za-z0-9_]*?)Info\d{0,6}\b")
_NO_OPERATORS = frozenset(
    {"Tensor", "Operator", "Group", "Param", "Strategy", "Abstract", "Device"}
)
_UNKNOWN = "unknown"
_FROM_CALLER = ("SelfDefineShard",)
"""Sharding classes that serve any operator: the exception knows which."""


@dataclass(slots=True)
class _Draft:
    """A finding while its lines come in; ``open`` until an exception or another failure."""

    entry: KnownLine | None
    record: Record
    line: int
    text: str
    values: dict[str, str]
    op: str = ""
    echoes: int = 0
    times: int = 1
    ended: bool = False
    exception: str = ""
    role: Role | None = None
    frames: FrameCollector | None = None
    traceback: tuple[SourceLine, ...] = ()
    ranks: frozenset[int] = frozenset()
    time: str = ""
    fail_file: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        if self.entry is None:
            return _UNKNOWN, self.record.check, masked(self.record.message), self.exception
        return self.entry.id, self.record.check, self.op, ""


class LogReader:
    """Takes the lines of one log; :meth:`finish` gives what was found."""

    def __init__(self, path: str, rank: int | None = None, known: KnownLines | None = None) -> None:
        self._path = path
        self._rank = rank
        self._known = known or known_lines()
        self._drafts: list[_Draft] = []
        self._open: dict[tuple[str, str], _Draft] = {}
        self._last: _Draft | None = None
        self._collecting: FrameCollector | None = None
        self._traceback: list[SourceLine] = []
        self._frame_source = False
        self._seen: dict[tuple[str, str, str, str], _Draft] = {}
        self._left_out = 0
        self._lines = 0
        self._time = ""
        self._idle: set[str] = set()

    def feed(self, number: int, text: str) -> None:
        """Take a line without its end; ``number`` counts from 1."""
        self._lines = number
        record = parse_line(text)
        if record.level == "plain":
            self._plain(number, text, record)
            return
        self._collecting = None
        self._time = record.time or self._time
        if record.message.startswith(_BELOW):
            return  # the exception stands on the next line
        matched = self._known.match(record)
        if matched is not None:
            self._matched(number, text, record, *matched)
        elif record.level == "error":
            self._unmatched(number, text, record)

    # -- lines with a header -------------------------------------------------------------------

    def _matched(
        self, number: int, text: str, record: Record, entry: KnownLine, values: dict[str, str]
    ) -> None:
        if record.is_parallel and record.level == "error":
            self._refusal(number, text, record, entry, values)
        elif entry.role == "refusal" and self._repeats(self._last, record):
            assert self._last is not None
            self._last.echoes += 1
        else:
            self._add(_Draft(entry, record, number, text[:_MOST_TEXT], values, _op(values)))

    def _unmatched(self, number: int, text: str, record: Record) -> None:
        if record.is_parallel:
            self._refusal(number, text, record, None, {})
        else:
            self._add(_Draft(None, record, number, text[:_MOST_TEXT], {}))

    def _refusal(
        self,
        number: int,
        text: str,
        record: Record,
        entry: KnownLine | None,
        values: dict[str, str],
    ) -> None:
        """A line of the sharding pass: the first of a refusal, or one that repeats it."""
        op = _op(values) or operator_in(record.message)
        draft = self._open.get(record.stream)
        if draft is not None and not draft.ended and (not op or not draft.op or draft.op == op):
            draft.echoes += 1
            draft.op = draft.op or op
        else:
            draft = _Draft(entry, record, number, text[:_MOST_TEXT], values, op)
            self._add(draft, key_later=True)
            self._open[record.stream] = draft
        if entry is not None and entry.role in ("end", "refusal"):
            draft.ended = True
        self._last = draft

    # -- lines without one -----------------------------------------------------------------------

    def _plain(self, number: int, text: str, record: Record) -> None:
        exception = exception_of(text)
        if exception is not None:
            self._exception(number, text, record, *exception)
            return
        frame = python_frame(text)
        if frame is not None:
            if len(self._traceback) < _MOST_FRAMES:
                self._traceback.append(frame)
            self._frame_source = True
            return
        if self._frame_source and self._traceback and text.strip():
            last = self._traceback[-1]
            self._traceback[-1] = SourceLine(last.path, last.line, text=text.strip()[:160])
            self._frame_source = False
            return
        if text.startswith("Traceback (most recent call last)"):
            self._traceback.clear()
            self._collecting = None
            return
        if self._collecting is not None:
            self._collecting.feed(text)
            if self._last is not None and (match := _FAIL_FILE.search(text[:_MOST_TEXT])):
                self._last.fail_file = match[1]
        matched = self._known_plain(record)
        if matched is None or matched[0].role not in ("cause", "consequence", "note"):
            return
        entry, values = matched
        last = self._last
        if self._collecting is not None and last is not None and last.exception:
            # Exceptions of newer versions begin with an empty line; the reason stands below.
            if last.entry is None:
                last.entry, last.record = entry, replace(record, level="exception")
                last.values = {**last.values, **values}
                return
            if last.entry.code == entry.code:
                last.echoes += 1
                if len(values) > len(last.values):
                    last.entry, last.values = entry, values
                return
        self._add(_Draft(entry, record, number, text[:_MOST_TEXT], values, _op(values)))

    def _known_plain(self, record: Record) -> tuple[KnownLine, dict[str, str]] | None:
        """Match a line without header, of which training prints many that differ in numbers only.

        Digits after a letter stay, since they tell codes such as EL0004 apart.
        """
        if len(record.message) > _MOST_ALIKE:
            return self._known.match(record)
        alike = _COUNTS.sub("#", record.message)
        if alike in self._idle:
            return None
        matched = self._known.match(record)
        if matched is None:
            if len(self._idle) >= _MOST_IDLE:
                self._idle.clear()
            self._idle.add(alike)
        return matched

    def _exception(self, number: int, text: str, record: Record, kind: str, message: str) -> None:
        """The last line of a traceback: it ends a refusal, or is a finding of its own."""
        traceback, self._traceback = tuple(self._traceback), []
        said = replace(record, level="exception", message=message)
        matched = self._known.match(said)
        entry, values = matched if matched is not None else (None, {})
        last = self._last
        if last is not None and not last.exception and self._ends(last, entry, message):
            draft = last
            if entry is not None:
                draft.values = {**draft.values, **values}
                self._sharpen(draft, entry, said, number, text)
            draft.op = _op(values) or draft.op
            draft.ended = True
            draft.echoes += 1
        else:
            op = _op(values) or operator_in(message)
            text = text[:_MOST_TEXT]
            draft = _Draft(entry, said, number, text, values, op)
            self._add(draft)
            self._last = draft
        draft.exception = f"{kind}: {message}"[:_MOST_TEXT]
        draft.traceback = draft.traceback or traceback
        if draft.frames is None:
            draft.frames = FrameCollector()
        self._collecting = draft.frames
        self._open.clear()

    @staticmethod
    def _sharpen(draft: _Draft, entry: KnownLine, said: Record, number: int, text: str) -> None:
        """Let the exception speak where it says more than the lines before it."""
        if draft.entry is None or entry.role == "refusal":
            return
        if draft.entry.role == "consequence" and entry.role == "cause":
            draft.entry, draft.record = entry, said
            draft.line, draft.text = number, text[:_MOST_TEXT]
        elif draft.entry.code == entry.code:
            draft.entry = entry

    @staticmethod
    def _ends(last: _Draft, entry: KnownLine | None, message: str) -> bool:
        """Whether an exception belongs to the failure that was told last."""
        if entry is not None and entry.role == "refusal":
            return last.record.is_parallel or (
                last.entry is not None and last.entry.code == entry.code
            )
        if entry is not None and last.entry is not None and entry.code == last.entry.code:
            return True
        if entry is None and last.entry is None and last.record.is_parallel:
            return True  # what a pass says before it raises
        return message[:200] in last.record.message

    @staticmethod
    def _repeats(last: _Draft | None, record: Record) -> bool:
        return last is not None and (
            bool(last.exception) or record.message[:80] in last.record.message
        )

    # -- what was found --------------------------------------------------------------------------

    def _add(self, draft: _Draft, key_later: bool = False) -> None:
        """Keep a finding, or count it with one that says the same."""
        draft.time = draft.record.time or self._time
        if draft.record.rank is not None:
            draft.ranks = frozenset({draft.record.rank})
        if not key_later:
            before = self._seen.get(draft.key)
            if before is not None:
                before.times += 1
                before.ranks |= draft.ranks
                if draft.record.level in ("error", "exception"):
                    self._last = before
                return
            if len(self._seen) >= MOST_FINDINGS:
                self._left_out += 1
                return
            self._seen[draft.key] = draft
        elif len(self._drafts) >= 2 * MOST_FINDINGS:
            self._left_out += 1
            return
        self._drafts.append(draft)
        if draft.record.level in ("error", "exception"):
            self._last = draft

    def finish(self, damage: str = "") -> Explained:
        """All that was found, in the order of the log."""
        findings: dict[tuple[str, ...], LoggedFinding] = {}
        entry_ids = {draft.entry.id for draft in self._drafts if draft.entry is not None}
        for draft in self._drafts:
            if draft.entry is not None and draft.entry.unless & entry_ids:
                continue
            finding = self._finding(draft)
            key = finding_key(finding)
            before = findings.get(key)
            findings[key] = finding if before is None else folded(before, finding)
        return Explained(
            self._path,
            "log",
            self._lines,
            self._rank,
            tuple(findings.values()),
            self._left_out,
            damage,
        )

    def _finding(self, draft: _Draft) -> LoggedFinding:
        entry, record = draft.entry, draft.record
        refused = record.is_parallel and (draft.ended or bool(draft.exception))
        role: Role = "unknown"
        exceeds = False
        if entry is not None:
            role = "cause" if entry.role in ("echo", "end", "refusal") else entry.role
            if exceeds := entry.exceeds(draft.values):
                role = "cause"
        elif refused:
            role = "cause"
        op = draft.op
        if entry is not None and entry.code in ("parameter-users", "interleaved-parameter"):
            op = "parameter"
        values = {**draft.values, "op": op}
        stack = draft.frames.stack if draft.frames is not None else ()
        stack = stack or draft.traceback
        ranks = draft.ranks or (frozenset() if self._rank is None else frozenset({self._rank}))
        return LoggedFinding(
            code=entry.code if entry else "refused" if refused else _UNKNOWN,
            severity=entry.severity if entry and not exceeds else "error",
            role=role,
            message=_message(entry, record, values, draft.exception),
            file=self._path,
            line=draft.line,
            statement=draft.text,
            op=op,
            check=record.check if record.is_parallel and role in ("cause", "unknown") else "",
            values=tuple((name, value) for name, value in values.items() if value),
            source=innermost(stack),
            frames=stack,
            ranks=tuple(sorted(ranks)),
            times=draft.times,
            echoes=draft.echoes,
            time=draft.time,
            edit=_edit(entry, values),
            command=_next(entry, draft.fail_file),
            hint=filled(entry.meaning, values) if entry else "",
            reference=entry.reference if entry else "",
        )


def _edit(entry: KnownLine | None, values: dict[str, str]) -> Edit | None:
    """The setting that the entry says is to be another."""
    if entry is None or not entry.setting:
        return None
    value = filled(entry.value, values)
    return Edit(setting=entry.setting, value=int(value) if value.isdecimal() else value)


def _next(entry: KnownLine | None, fail_file: str) -> str:
    """The command of the entry, or to look into the ``analyze_fail.ir`` that the log names."""
    if fail_file or (entry is not None and "{file}" in entry.next):
        return f"irtool explain {shlex.quote(fail_file or _FAIL_DEFAULT)}"
    return entry.next if entry is not None else ""


def operator_in(message: str) -> str:
    """The operator whose sharding object a line names: ``MatMul`` of ``MatMulInfo22: …``.

    Args:
        message: of the line, of which 2000 characters are looked at.

    Returns:
        Empty where it names none.
    """
    for match in _OPERATOR.finditer(message[:2000]):
        if match[1] not in _NO_OPERATORS:
            return "" if match[1] in _FROM_CALLER else match[1]
    return ""


def _op(values: dict[str, str]) -> str:
    return values.get("op", "")


_MOST_SAME = 80
_SECTION = re.compile(r"#[ud]msg#[^#]{0,100}#[ud]msg#")
_LEAD = re.compile(r"(?:Current op )?_?[A-Z][A-Za-z0-9_]*Info\d* ?: ?")


def _message(
    entry: KnownLine | None, record: Record, values: dict[str, str], exception: str
) -> str:
    if entry is not None and entry.message:
        return " ".join(filled(entry.message, values).replace("[const vector]", "").split())
    said = exception if exception and entry is None and not record.source else record.message
    said = _SECTION.sub("", said[:_MOST_TEXT]).strip()
    said = " ".join(_LEAD.sub("", said, count=1).replace("[const vector]", "").split())
    raised = " ".join(exception.partition(": ")[2].split())
    if entry is None and record.is_parallel and raised and raised[:_MOST_SAME] not in said:
        return f"{said.rstrip('.')}: {raised}"
    return said

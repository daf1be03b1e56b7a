"""Everything that some files say, folded over ranks and put in order: causes first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.linting.failure.casts import cast_of
from irtool.linting.failure.finding import ROLES, Explained, LoggedFinding
from irtool.linting.failure.folding import finding_key, folded
from irtool.linting.failure.shape_edits import shape_edit
from irtool.linting.failure.sliced_inputs import sliced_input
from irtool.linting.failure.template import filled
from irtool.linting.failure.wording import worded

NO_DUMPS = "DUMPS"
"""Stands in a command for the folder of the dumps, where nobody knows it."""
_WHERE = re.compile(r" --where '[^']*\{op\}[^']*'")

_CELL = re.compile(r"mindspore_nn_layer_[a-z_]+_([A-Z]\w*?)_construct")
"""The graph of one of MindSpore's own cells."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of ``irtool explain PATH``: ``findings`` with the root cause first."""

    files: tuple[Explained, ...]
    findings: tuple[LoggedFinding, ...]
    left_out: int = 0

    @property
    def lines(self) -> int:
        """Lines of all files."""
        return sum(file.lines for file in self.files)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the run of a file stands: the folder of its dumps ("" if nobody knows), its folder."""

    dumps: str = ""
    folder: str = "."


def report_of(explained: Sequence[tuple[Explained, Place]]) -> Explanation:
    """Fold what several files say alike, and put causes before what follows from them.

    Within one role the finding that was told first is the first, by the time in the logs, then by
    the order of the files.

    Args:
        explained: what each file says, with where its run stands.
    """
    by_key: dict[tuple[str, ...], tuple[tuple[int, str, int, int], LoggedFinding]] = {}
    for index, (file, place) in enumerate(explained):
        for finding in file.findings:
            order = (ROLES.index(finding.role), finding.time or "~", index, finding.line)
            ready = replace(finding, command=next_command(finding, place))
            key = finding_key(finding)
            before = by_key.get(key)
            by_key[key] = (order, ready) if before is None else _folded(before, (order, ready))
    ordered = sorted(_each_failure_once(list(by_key.values())), key=lambda item: item[0])
    return Explanation(
        tuple(file for file, _ in explained),
        tuple(_in_words(_with_edit(finding)) for _, finding in ordered),
        sum(file.left_out for file, _ in explained),
    )


def _with_edit(finding: LoggedFinding) -> LoggedFinding:
    """A finding about types or shapes with what mends it, where the line tells it."""
    said, types, source = finding.message, finding.operands, finding.source
    edit = finding.edit or cast_of(said, types, source)
    if edit is None and (doubt := sliced_input(said, types, finding.inputs)):
        return replace(finding, message=f"{said.rstrip('.')}; {doubt}")
    cell = _CELL.search(dict(finding.values).get("graph", ""))
    name = "" if cell is None else cell[1]
    edit = edit or shape_edit(said, finding.op or "", types, source, name)
    return finding if edit is None else replace(finding, edit=edit)


def _in_words(finding: LoggedFinding) -> LoggedFinding:
    message = worded(finding.message, finding.op or "", finding.source)
    return finding if message == finding.message else replace(finding, message=message)


_Placed = tuple[tuple[int, str, int, int], LoggedFinding]
_UNSAID = ("unknown", "compile-failed", "refused")
"""Codes of failures that no entry of the table knows."""
_MOST_ALIKE = 120


def _each_failure_once(placed: list[_Placed]) -> list[_Placed]:
    """A compilation fails once: what its log and ``analyze_fail.ir`` say of it is one finding."""
    dumped = [item for item in placed if _is_of_dump(item[1])]
    logged = [item for item in placed if not _is_of_dump(item[1])]
    for order, finding in dumped:
        place = next((n for n, item in enumerate(logged) if _is_same(item[1], finding)), None)
        if place is None:
            logged.append((order, finding))
        else:
            logged[place] = logged[place][0], _joined(logged[place][1], finding)
    return logged


def _is_of_dump(finding: LoggedFinding) -> bool:
    return bool(finding.call) or "analyze_fail" in finding.file.rsplit("/", 1)[-1]


def _is_same(log: LoggedFinding, dump: LoggedFinding) -> bool:
    """Whether a log tells of the failure that left a dump: by the rank, and what both quote."""
    if log.role not in ("cause", "unknown") or log.check:
        return False
    if log.ranks and dump.ranks and not set(log.ranks) & set(dump.ranks):
        return False
    first = dump.statement.split("\n", 1)[0].strip().rstrip(".")[:_MOST_ALIKE]
    if first and first != dump.call:
        return first in log.statement or first in log.message or log.code == dump.code
    return log.code == dump.code or log.code in _UNSAID


def _joined(log: LoggedFinding, dump: LoggedFinding) -> LoggedFinding:
    """The log's place, with the statement, types and lines of Python that the dump knows."""
    tells_more = log.code == dump.code and dump.message.startswith(log.message)
    teller = dump if tells_more or (log.code in _UNSAID and dump.code not in _UNSAID) else log
    source = dump.source if dump.source is not None and dump.frames else log.source
    return replace(
        teller,
        file=log.file,
        line=log.line,
        statement=log.statement,
        op=log.op or dump.op,
        call=dump.call,
        operands=dump.operands,
        inputs=dump.inputs,
        source=source or dump.source,
        frames=dump.frames or log.frames,
        edit=log.edit or dump.edit,
        command=dump.command,
        values=(*log.values, *dump.values),
        ranks=tuple(sorted({*log.ranks, *dump.ranks})),
        times=max(log.times, dump.times),
        echoes=log.echoes,
        time=log.time,
        role="cause",
    )


def _folded(first: _Placed, second: _Placed) -> _Placed:
    """Two findings that say the same as one: the earlier speaks, or the one that tells more."""
    early, late = sorted((first, second), key=lambda item: item[0])
    return early[0], folded(early[1], late[1])


def next_command(finding: LoggedFinding, place: Place) -> str:
    """The command to type next, with the finding's own values in it."""
    text = finding.command
    if not finding.op or finding.op == "parameter":
        text = _WHERE.sub("", text)
    values = dict(finding.values)
    values["op"] = finding.op or ""
    values["line"] = str(finding.line)
    values["file"] = shlex.quote(finding.file)
    values["dumps"] = shlex.quote(place.dumps) if place.dumps else NO_DUMPS
    values["folder"] = shlex.quote(place.folder)
    return filled(text, values)

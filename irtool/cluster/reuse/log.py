"""What MindSpore's log says of the reuse of communication subgraphs, held against a prediction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from irtool.cluster.reuse import ReuseReport
from irtool.ir.dataclass import dataclass
from irtool.ir.limits import bounded_int

_CAP = re.compile(r"MAX_COMM_OP_REUSE_NUM: (\d+)")
_START = re.compile(r"Start reuse (\d+) comm ops for key (.+?)\s*$")
_REUSED = re.compile(r"Reuse comm op reused_comm_sub_graphs_ size: (\d+)")
_LABELS = re.compile(r"Label list size: ?(\d+)")
_STREAMS = re.compile(r"Total stream number:? (\d+)(?: exceeds the limit of (\d+))?")
_WARNED = re.compile(r"MS_COMM_COMPILER_OPT should be -1 or a positive integer.*")


@dataclass(frozen=True, slots=True)
class ReuseLog:
    """What a log says; None where it has no such line."""

    cap: int | None = None
    groups: tuple[tuple[int, str], ...] = ()
    reused: int | None = None
    labels: int | None = None
    streams: int | None = None
    stream_limit: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the log says nothing of reuse at all."""
        return self.cap is None and not self.groups and self.reused is None and not self.warnings


@dataclass(frozen=True, slots=True)
class LogCheck:
    """One fact: what was predicted and what the log says (None: the log has no such line)."""

    fact: str
    predicted: int
    logged: int | None

    @property
    def agrees(self) -> bool | None:
        """None where the log does not say."""
        return None if self.logged is None else self.logged == self.predicted


@dataclass(slots=True)
class _Log:
    groups: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    warnings: list[str] = field(default_factory=list[str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])


def read_log(lines: Iterable[str]) -> ReuseLog:
    """Read the lines of a log of one rank; later lines of a kind go before earlier ones.

    Args:
        lines: with or without their ends.
    """
    log = _Log()
    for line in lines:
        if match := _START.search(line):
            log.groups.append((bounded_int(match[1]), match[2]))
        elif match := _WARNED.search(line):
            log.warnings.append(match[0].strip())
        for name, pattern in (("cap", _CAP), ("reused", _REUSED), ("labels", _LABELS)):
            if match := pattern.search(line):
                log.numbers[name] = bounded_int(match[1])
        if match := _STREAMS.search(line):
            log.numbers["streams"] = bounded_int(match[1])
            if match[2]:
                log.numbers["limit"] = bounded_int(match[2])
    get = log.numbers.get
    return ReuseLog(
        get("cap"),
        tuple(log.groups),
        get("reused"),
        get("labels"),
        get("streams"),
        get("limit"),
        tuple(log.warnings),
    )


def check_log(report: ReuseReport, log: ReuseLog) -> tuple[LogCheck, ...]:
    """Every fact of a prediction beside what the log says of it.

    Args:
        report: the prediction.
        log: of the same compilation.

    Returns:
        What the log does not say has None there.
    """
    after = report.after
    checks = [
        LogCheck("cap", report.limit.cap, log.cap),
        LogCheck("operators reused", after.reused, log.reused),
        LogCheck("subgraphs", after.subgraphs, len(log.groups) if log.groups else log.reused and 0),
        LogCheck("labels", after.labels, log.labels),
        LogCheck("streams", after.streams, log.streams),
    ]
    logged = {_plain(key): count for count, key in log.groups}
    counts = {group.candidate.key: group.candidate.count for group in report.groups}
    otherwise = 0 if logged else None
    checks += [
        LogCheck(f"reused for {key}", counts[key], logged.pop(_plain(key), otherwise))
        for key in after.taken
    ]
    checks += [LogCheck(f"reused for {key}", 0, count) for key, count in logged.items()]
    return tuple(checks)


def _plain(key: str) -> str:
    """A key without the id of the root graph, which no dump tells."""
    return re.sub(r"_(?:\d+|<graph id>)$", "", key) if key.count("_") > 3 else key


def expected_lines(report: ReuseReport) -> tuple[str, ...]:
    """The lines that the log of the compilation will have, in order.

    Args:
        report: the prediction.

    Returns:
        Without time and place; none where reuse is switched off.
    """
    limit = report.limit
    if limit.error:
        return (f"exception: {limit.error}",)
    if limit.warning:
        return (f"WARNING: {limit.warning}",)
    if not limit.enabled:
        return ()
    counts = {group.candidate.key: group.candidate.count for group in report.groups}
    return (
        f"MAX_COMM_OP_REUSE_NUM: {limit.cap}",
        *(f"Start reuse {counts[key]} comm ops for key {key}" for key in report.after.taken),
        f"Reuse comm op reused_comm_sub_graphs_ size: {report.after.reused}",
        f"Label list size: {report.after.labels}",
        f"Total stream number: {report.after.streams}",
    )

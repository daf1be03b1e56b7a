"""What ``irtool comm reuse`` shows: kinds and what becomes of them, streams, the best cap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.reuse import ReuseGroup, ReuseReport
from irtool.cluster.reuse_graph import Choice
from irtool.cluster.reuse_limit import VARIABLE
from irtool.cluster.reuse_log import LogCheck, expected_lines
from irtool.cluster.reuse_streams import LABEL_LIMIT
from irtool.ir.units import bytes_text, count_text, plural, ranks_text
from irtool.report.comm_pieces import pieces, shown, type_text
from irtool.report.model import (
    Answer,
    Block,
    Column,
    Document,
    Element,
    Facts,
    Heading,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    number_column,
)
from irtool.report.model import text_column as wide
from irtool.report.page.charts import bars

SCHEMA = "irtool.comm.reuse/1"


@dataclass(frozen=True, slots=True)
class ReuseView:
    """A report with what stands beside it.

    ``dialect`` is the range of versions that the dump shows, ``log`` what a log says of it.
    """

    path: str
    report: ReuseReport
    log: Sequence[LogCheck] = ()
    log_path: str = ""
    dialect: str = ""
    limit: int | None = None


def reuse_document(view: ReuseView) -> Document:
    """What reuse does to a graph."""
    document = Document([Heading(f"{view.path}: {_answer(view.report)}")])
    document.add(Facts(_facts(view)), *_blocks(view))
    return document


def _answer(report: ReuseReport) -> str:
    limit = report.limit
    if limit.error:
        return f"MindSpore raises an exception: {limit.error}"
    if not limit.enabled:
        off = (
            f"reuse is off ({limit.warning})"
            if limit.warning
            else f"reuse is off: {VARIABLE} unset"
        )
        return f"{off}; {_recommendation(report)}"
    before, after = report.before, report.after
    return (
        f"{count_text(after.reused)} of {plural(report.communications, 'communication')} reused, "
        f"streams {count_text(before.streams)} → {count_text(after.streams)}"
    )


def _recommendation(report: ReuseReport) -> str:
    best = report.recommended
    if best is None:
        return "no value would save a stream"
    return (
        f"{best.cap} would be best: streams {count_text(report.before.streams)} → "
        f"{count_text(best.streams)}"
    )


def _facts(view: ReuseView) -> list[tuple[str, str]]:
    report = view.report
    target = report.target
    usable = target.usable_streams
    version = ".".join(map(str, target.version))
    facts = [
        ("for", f"MindSpore {version} on Ascend in graph mode, seen from rank {report.rank}"),
        ("streams", f"{_streams(report.before)} without, {_streams(report.after)} as set; "
                    f"{count_text(usable)} can be used: {report.verdict}"),
        ("labels", f"{count_text(report.after.labels)} of {count_text(LABEL_LIMIT)}"),
        ("communications", f"{count_text(report.in_dump)} in the dump, "
                           f"{count_text(report.communications)} when fused, "
                           f"{count_text(report.communications_after)} as set"),
    ]  # fmt: skip
    best = report.recommended
    facts.append(("best value", _recommendation(report) + (f", {_costs(best)}" if best else "")))
    if best is not None and report.knapsack_streams < best.streams:
        facts.append(
            ("lost", f"a free choice of kinds would need {report.knapsack_streams} streams; "
                     "MindSpore takes them in the order of their keys")
        )  # fmt: skip
    if report.largest_micro is not None:
        most = report.largest_micro
        facts.append(
            ("micro-batches", f"{report.micro} now; streams allow {count_text(most.without)} "
             f"without reuse, {count_text(most.with_reuse)} with; beyond "
             f"{count_text(most.reusing)} the labels hold no kind as a whole")
        )  # fmt: skip
    if not report.has_tags:
        facts.append(("tags", "none: the pass that tags runs in automatic parallel modes only"))
    if view.dialect:
        facts.append(
            ("note", f"the dump reads like MindSpore {view.dialect}; reuse is gone from 2.3 on "
                     f"(--target-version 2.7 tells what is left)")
        )  # fmt: skip
    return facts


def _streams(choice: Choice) -> str:
    return (
        f"{count_text(choice.streams)} (4 × {count_text(choice.communication_streams)} of them for "
        "communication)"
    )


def _costs(choice: Choice) -> str:
    return (
        f"{count_text(choice.labels)} labels, {plural(choice.subgraphs, 'subgraph')} with an HCCL "
        f"group each ({bytes_text(choice.buffer_bytes)} of device memory)"
    )


def _blocks(view: ReuseView) -> Iterator[Block]:
    report = view.report
    count = shown(len(report.groups), view.limit)
    columns = (
        Column("operator"),
        Column("tensor"),
        wide("ranks"),
        number_column("count"),
        number_column("when fused"),
        number_column("a stream"),
        number_column("before"),
        number_column("after"),
        Column("reused"),
        wide("why not"),
        number_column("first line"),
    )
    rows = [_group_row(item) for item in _by_count(report)[:count]]
    yield Table("Kinds, and the communication streams they take", columns, rows)
    yield from left_out(len(report.groups) - count, "kind")
    lines = expected_lines(report)
    if lines:
        yield Table("What the log will say", (wide("line"),), [(line,) for line in lines])
    if view.log:
        yield _log_table(view)


def left_out(count: int, noun: str) -> Iterator[Block]:
    """What stands below a list that is not shown whole; ``--limit`` means something else here."""
    if count > 0:
        yield Note(f"  … {plural(count, f'more {noun}')} (--rows 0 shows all)")


def _by_count(report: ReuseReport) -> list[ReuseGroup]:
    return sorted(report.groups, key=lambda item: (-item.candidate.count, item.candidate.key))


def _group_row(item: ReuseGroup) -> tuple[str | int | None, ...]:
    one = item.candidate
    return (
        one.op,
        "any shape" if one.operators < one.count else type_text(one.dtype, one.shape),
        ranks_text(one.ranks),
        one.count,
        one.operators,
        one.capacity,
        item.streams_before,
        item.streams_after,
        "yes" if item.reused else "no",
        item.reason,
        one.first.line,
    )


def _log_table(view: ReuseView) -> Table:
    rows = [
        (
            check.fact,
            check.predicted,
            "no such line" if check.logged is None else count_text(check.logged),
            {True: "yes", False: "NO", None: ""}[check.agrees],
        )
        for check in view.log
    ]
    columns = (wide("fact"), number_column("predicted"), number_column("log"), Column("agrees"))
    return Table(f"Against {view.log_path}", columns, rows)


def reuse_pieces(view: ReuseView) -> Iterator[str]:
    """``irtool.comm.reuse/1``."""
    report = view.report
    most = report.largest_micro
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "target_version": ".".join(map(str, report.target.version)),
        "available": True,
        "rank": report.rank,
        "enabled": report.limit.enabled,
        "limit": report.limit.cap if report.limit.enabled else None,
        "error": report.limit.error or None,
        "warning": report.limit.warning or None,
        "streams_before": report.before.streams,
        "streams_after": report.after.streams,
        "stream_limit": report.target.usable_streams,
        "labels": report.after.labels,
        "label_limit": LABEL_LIMIT,
        "reused": report.after.reused,
        "subgraphs": report.after.subgraphs,
        "buffer_bytes": report.after.buffer_bytes,
        "communications_in_dump": report.in_dump,
        "communications_before": report.communications,
        "communications_after": report.communications_after,
        "recommended_limit": report.recommended.cap if report.recommended else None,
        "recommended": _choice_object(report.recommended),
        "ideal_streams": report.knapsack_streams,
        "verdict": report.verdict,
        "micro": report.micro or None,
        "largest_micro": None
        if most is None
        else {
            "without": most.without,
            "with": most.with_reuse,
            "until_labels_run_out": most.reusing,
        },
        "log_lines": list(expected_lines(report)),
    }
    lists: dict[str, Sequence[object]] = {"groups": [_group_object(one) for one in report.groups]}
    if view.log:
        lists["log"] = [
            {
                "fact": check.fact,
                "predicted": check.predicted,
                "logged": check.logged,
                "agrees": check.agrees,
            }
            for check in view.log
        ]
    return pieces(head, lists)


def _choice_object(choice: Choice | None) -> dict[str, object] | None:
    if choice is None:
        return None
    return {
        "limit": choice.cap,
        "reused": choice.reused,
        "subgraphs": choice.subgraphs,
        "streams": choice.streams,
        "labels": choice.labels,
        "buffer_bytes": choice.buffer_bytes,
    }


def _group_object(item: ReuseGroup) -> dict[str, object]:
    one = item.candidate
    return {
        "op": one.op,
        "dtype": one.dtype,
        "shape": None if one.shape is None else list(one.shape),
        "group": one.group,
        "ranks": None if one.ranks is None else list(one.ranks),
        "reduction": one.reduction,
        "count": one.count,
        "operators": one.operators,
        "capacity": one.capacity,
        "reused": item.reused,
        "streams_before": item.streams_before,
        "streams_after": item.streams_after,
        "why_not": item.reason or None,
        "key": one.key,
        "line": one.first.line,
    }


def reuse_svg(report: ReuseReport) -> str:
    """Streams without reuse, as set, and with the best value."""
    rows = [("without reuse", report.before), ("as set", report.after)]
    if report.recommended is not None:
        rows.append((f"{VARIABLE}={report.recommended.cap}", report.recommended))
    parts = [
        (name, (one.streams - 4 * one.communication_streams, 4 * one.communication_streams))
        for name, one in rows
    ]
    return bars(parts, "number", ("compute", "communication"))


def reuse_page(view: ReuseView) -> Report:
    """The page: answer, streams as bars, tables."""
    report = view.report
    bad = report.limit.error or report.verdict == "not enough"
    tone: Tone = "bad" if bad else "plain"
    details = [f"{name}: {value}" for name, value in _facts(view)]
    picture = Picture("Streams", reuse_svg(report), "Streams of the device, by use.")
    sections: list[Element] = [picture, *_blocks(view)]
    return Report(f"comm reuse: {view.path}", Answer(_answer(report), tone, details), sections)

"""What ``irtool comm hang`` shows: does it hang, who waits for whom, and what limits the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from irtool.cluster.hang import HangReport, unknown_parts
from irtool.cluster.hang_play import Wait
from irtool.cluster.matching import FATAL
from irtool.ir.units import count_text, plural, ranks_text
from irtool.report.comm_pieces import (
    devices_text,
    disagreement_object,
    disagreements_table,
    missing_text,
    pieces,
    place_object,
    place_text,
    source_text,
    transfer_object,
    type_text,
    unmatched_table,
)
from irtool.report.model import (
    Answer,
    Block,
    Column,
    Document,
    Element,
    Facts,
    FindingCard,
    FindingCards,
    Heading,
    Picture,
    Report,
    Table,
    number_column,
)
from irtool.report.model import text_column as wide
from irtool.report.page.charts import bars

SCHEMA = "irtool.comm.hang/1"
_MOST_BARS = 64


@dataclass(frozen=True, slots=True)
class HangView:
    """A report with how many rows to show."""

    path: str
    report: HangReport
    limit: int | None = None


def hang_document(view: HangView) -> Document:
    """Whether a run hangs, and why."""
    report = view.report
    document = Document([Heading(f"{view.path}: {answer(report)}"), Facts(_facts(report))])
    document.add(*_blocks(view))
    return document


def answer(report: HangReport) -> str:
    """The verdict in a line."""
    if not report.played:
        return "nothing is communicated"
    if not report.hangs:
        missing = ", as far as the dumps there tell" if report.missing_ranks else ""
        if report.mismatches:
            return f"no hang{missing}, but ranks do not agree"
        if report.needs_buffers:
            return f"no hang{missing}, as Sends need not wait for their Receives"
        return f"no hang{missing}"
    often = "" if report.certain else " where collectives of different groups wait for each other"
    if report.closed:
        around = plural(len(report.cycle), "communication")
        return f"hangs{often}: {around} wait for each other in a circle"
    fatal = [item for item in report.mismatches if item.kind in FATAL]
    if fatal:
        return f"hangs: {fatal[0].message}"
    if report.cycle:
        return f"hangs{often}: {report.cycle[-1].reason}"
    item = (*report.unmatched, *report.unfit)[0]
    if item.mismatch:
        return f"hangs or spoils memory: {item.mismatch}"
    other = "Receive" if item.send is not None else "Send"
    return f"hangs: {plural(len(report.unmatched), 'transfer')} without {other}"


def _facts(report: HangReport) -> list[tuple[str, str]]:
    facts = [
        ("ranks", f"{ranks_text(report.ranks)} of {devices_text(report.devices, report.is_exact)}"),
        ("played", f"{plural(report.played, 'communication')} in launch order"),
    ]
    if report.stuck:
        most = f"{ranks_text(tuple(report.stuck))}"
        facts.append(("stuck", f"{count_text(sum(report.stuck.values()))} on ranks {most}"))
    if report.cycle and not report.certain:
        facts.append(
            (
                "streams",
                "every group with a stream of its own (multi_stream: group, today's default) "
                "may get by; one stream for all (multi_stream: true) does not",
            )
        )
    if report.missing_ranks:
        facts.append(("missing", missing_text(report.missing_ranks, report.devices)))
    for sender, receiver, by in report.shifted:
        text = (
            f"tags of rank {sender} to rank {receiver} differ by {by} throughout: are these dumps "
        )
        facts.append(("tags", f"{text}of one run?"))
    limits = list(unknown_parts(report))
    if limits:
        facts.append(("limits", "; ".join(limits)))
    return facts


def _blocks(view: HangView) -> Iterator[Block]:
    report = view.report
    if report.cycle:
        yield _cycle_table("Who waits for whom", report.cycle)
    if report.needs_buffers:
        title = "Who would wait for whom if a Send waited for its Receive"
        yield _cycle_table(title, report.needs_buffers)
    if report.mismatches:
        yield disagreements_table(report.mismatches, view.limit)
    if report.crossed:
        table = disagreements_table(report.crossed, view.limit)
        yield replace(table, title="Tags that cross (HCCL and NCCL hand over what comes first)")
    wrong = (*report.unmatched, *report.unfit)
    if wrong:
        yield unmatched_table(wrong, view.limit)


def _cycle_table(title: str, cycle: Sequence[Wait]) -> Table:
    columns = (
        number_column("rank"),
        number_column("line"),
        Column("node"),
        Column("operator"),
        wide("group"),
        number_column("waits for"),
        wide("because"),
        wide("source"),
    )
    rows = [
        (
            wait.place.rank,
            wait.place.line,
            wait.place.collective.node.id,
            _operator_text(wait),
            _group_text(wait),
            wait.waits_for,
            wait.reason,
            source_text(wait.place.collective.node),
        )
        for wait in cycle
    ]
    return Table(title, columns, rows)


def _operator_text(wait: Wait) -> str:
    item = wait.place.collective
    return f"{item.op} {type_text(item.dtype, item.shape)}"


def _group_text(wait: Wait) -> str:
    party = wait.place.party
    if party.peer is not None:
        tag = wait.place.collective.tag
        return f"peer {party.peer}" + ("" if tag is None else f", tag {tag}")
    return f"{party.group} ({ranks_text(party.ranks)})"


# -- JSON ----------------------------------------------------------------------------------------


def hang_pieces(view: HangView) -> Iterator[str]:
    """``irtool.comm.hang/1``."""
    report = view.report
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "hangs": report.hangs,
        "certain": report.certain if report.hangs else None,
        "closed": report.closed if report.cycle else None,
        "answer": answer(report),
        "devices": report.devices,
        "devices_exact": report.is_exact,
        "ranks": list(report.ranks),
        "missing_ranks": list(report.missing_ranks),
        "played": report.played,
        "stuck": {str(rank): count for rank, count in report.stuck.items()},
        "conditional": report.conditional,
        "limits": list(unknown_parts(report)),
    }
    lists = {
        "cycle": [_wait_object(wait) for wait in report.cycle],
        "needs_buffers": [_wait_object(wait) for wait in report.needs_buffers],
        "mismatches": [
            *map(disagreement_object, report.mismatches),
            *(_unfit_object(item) for item in map(transfer_object, report.unfit)),
        ],
        "crossed_tags": [disagreement_object(item) for item in report.crossed],
        "unmatched": [transfer_object(item) for item in report.unmatched],
    }
    return pieces(head, lists)


def _unfit_object(item: dict[str, object]) -> dict[str, object]:
    return {"kind": "transfer", "message": item["mismatch"], **item}


def _wait_object(wait: Wait) -> dict[str, object]:
    following = wait.next
    return {
        **place_object(wait.place),
        "waits_for": wait.waits_for,
        "reason": wait.reason,
        "next": None if following is None else place_object(following),
    }


# -- the page ------------------------------------------------------------------------------------


def hang_svg(report: HangReport) -> str:
    """How far each rank got: communications done and stuck."""
    names = ("done", "stuck")
    ranks = [rank for rank in report.ranks if rank in report.stuck] or list(report.ranks)
    rows = [
        (
            f"rank {rank}",
            (report.counts[rank] - report.stuck.get(rank, 0), report.stuck.get(rank, 0)),
        )
        for rank in ranks[:_MOST_BARS]
    ]
    return bars(rows, "number", names)


def hang_page(view: HangView) -> Report:
    """The page: verdict, who waits for whom as findings, and the tables."""
    report = view.report
    tone = "bad" if report.hangs else "unknown" if report.missing_ranks else "good"
    findings = [
        FindingCard(
            "error",
            f"{place_text(wait.place)} waits for rank {wait.waits_for}: {wait.reason}",
            "hang",
            [("source", source_text(wait.place.collective.node) or "unknown")],
        )
        for wait in report.cycle
    ]
    sections: list[Element] = []
    if findings:
        sections.append(FindingCards("Who waits for whom", findings))
    sections += _blocks(view)
    sections.append(
        Picture(
            "How far each rank got", hang_svg(report), "Communications done and stuck, by rank."
        )
    )
    details = [f"{name}: {value}" for name, value in _facts(report)]
    return Report(f"comm hang: {view.path}", Answer(answer(report), tone, details), sections)

"""``irtool comm hang``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import field
from msgspec.structs import asdict

from irtool.cluster.context.model import RunContext
from irtool.cluster.hang import HangReport, unknown_parts
from irtool.cluster.hang_play import Wait
from irtool.cluster.matching import FATAL, Transfer
from irtool.ir.units import count_text, plural, ranks_text
from irtool.report.answer import AnswerObject, RunAnswer, context_fields, doc
from irtool.report.comm.places import (
    CommunicationPlace,
    GroupDisagreement,
    TransferEnds,
    communication_place,
    disagreements_table,
    group_disagreement,
    missing_text,
    place_text,
    ranks_fact,
    source_text,
    transfer_ends,
    type_text,
    unmatched_table,
)
from irtool.report.model import (
    Answer,
    Element,
    Facts,
    FindingCard,
    FindingCards,
    Picture,
    Report,
    Table,
    Tone,
    number_column,
    text_column,
)
from irtool.report.page.charts import bars

_MOST_BARS = 64


@dataclass(frozen=True, slots=True)
class HangView:
    """A report with how many rows to show."""

    path: str
    report: HangReport
    limit: int | None = None


# -- for scripts ---------------------------------------------------------------------------------


class CommunicationWait(CommunicationPlace, frozen=True, kw_only=True):
    """A communication that never completes, and the rank that it waits for."""

    waits_for: Annotated[int, doc("a rank")]
    reason: str
    next: Annotated[
        CommunicationPlace | None,
        doc("what that rank is held up by; null: it has nothing that fits"),
    ]


class Mismatch(AnswerObject, frozen=True, kw_only=True):
    """Members of a group, or the ends of a transfer, that do not fit together."""

    kind: Annotated[str, doc("what differs between members of a group; or `transfer`")]
    message: str
    group: Annotated[str | None, doc("this and the next keys: of a group, as above")] = None
    index: int | None = None
    left: CommunicationPlace | None = None
    right: CommunicationPlace | None = None
    right_rank: int | None = None
    sender: Annotated[int | None, doc("this and the next keys: of a transfer, as above")] = field(
        default=None, name="from"
    )
    receiver: int | None = field(default=None, name="to")
    tag: int | None = None
    send: CommunicationPlace | None = None
    receive: CommunicationPlace | None = None
    matched: bool | None = None
    known: bool | None = None
    mismatch: str | None = None


class HangAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.hang/1"
):
    """Does the run hang? All ranks' communications are played in launch order."""

    path: Annotated[str, doc("what was read")]
    hangs: bool
    certain: Annotated[
        bool | None,
        doc(
            "false: only where collectives of different groups wait for each other "
            "(`multi_stream: true`); null: no hang"
        ),
    ]
    closed: Annotated[
        bool | None, doc("`cycle` leads back to its beginning; false: it ends at what is missing")
    ]
    answer: Annotated[str, doc("in a line, for people")]
    devices: int
    devices_exact: Annotated[bool, doc("false: at least so many, as ranks in groups tell")]
    ranks: Annotated[Sequence[int], doc("whose dumps were read")]
    missing_ranks: Annotated[Sequence[int], doc("ranks that take part and left no dump")]
    played: Annotated[int, doc("communications")]
    stuck: Annotated[dict[str, int], doc("communications that never complete, by rank")]
    conditional: Annotated[int, doc("communications behind control flow, assumed to run once")]
    limits: Annotated[list[str], doc("what was not known, as texts")]
    cycle: Annotated[list[CommunicationWait], doc("who waits for whom")]
    needs_buffers: Annotated[
        list[CommunicationWait],
        doc("what would be a cycle if a Send waited for its Receive; no hang"),
    ]
    mismatches: list[Mismatch]
    crossed_tags: Annotated[
        list[GroupDisagreement],
        doc("routes whose tags are received in another order than they are sent in; no hang"),
    ]
    unmatched: Annotated[
        list[TransferEnds], doc("Sends without a Receive, Receives without a Send")
    ]


def hang_answer(view: HangView, context: RunContext) -> HangAnswer:
    """The answer for scripts."""
    report = view.report
    return HangAnswer(
        path=view.path,
        hangs=report.hangs,
        certain=report.certain if report.hangs else None,
        closed=report.closed if report.cycle else None,
        answer=_answer_text(report),
        devices=report.devices,
        devices_exact=report.is_exact,
        ranks=report.ranks,
        missing_ranks=report.missing_ranks,
        played=report.played,
        stuck={str(rank): count for rank, count in report.stuck.items()},
        conditional=report.conditional,
        limits=list(unknown_parts(report)),
        cycle=[_wait(wait) for wait in report.cycle],
        needs_buffers=[_wait(wait) for wait in report.needs_buffers],
        mismatches=[
            *(Mismatch(**asdict(group_disagreement(item))) for item in report.mismatches),
            *(_unfit(item) for item in report.unfit),
        ],
        crossed_tags=[group_disagreement(item) for item in report.crossed],
        unmatched=[transfer_ends(item) for item in report.unmatched],
        **context_fields(context),
    )


def _wait(wait: Wait) -> CommunicationWait:
    return CommunicationWait(
        **asdict(communication_place(wait.place)),
        waits_for=wait.waits_for,
        reason=wait.reason,
        next=None if wait.next is None else communication_place(wait.next),
    )


def _unfit(item: Transfer) -> Mismatch:
    return Mismatch(kind="transfer", message=item.mismatch, **asdict(transfer_ends(item)))


# -- for people ----------------------------------------------------------------------------------


def hang_report(view: HangView, is_page: bool = False) -> Report:
    """Whether a run hangs, and why; a page draws how far each rank got."""
    report = view.report
    elements: list[Element] = [Facts(_facts(report))]
    if is_page and report.cycle:
        elements.append(FindingCards("Who waits for whom", [_card(wait) for wait in report.cycle]))
    elements += _tables(view)
    if is_page:
        elements.append(_progress_picture(report))
    tone: Tone = "bad" if report.hangs else "unknown" if report.missing_ranks else "good"
    return Report(
        f"comm hang: {view.path}", Answer(_answer_text(report), tone), elements, view.path
    )


def _answer_text(report: HangReport) -> str:
    """The verdict in a line."""
    if not report.played:
        return "nothing is communicated"
    if not report.hangs:
        known = " in the dumps that were read" if report.missing_ranks else ""
        if report.mismatches:
            return f"no hang{known}, but ranks do not agree"
        if report.needs_buffers:
            return f"no hang{known} as long as a Send does not wait for its Receive"
        return f"no hang{known}"
    when = "" if report.certain else " with one stream for all groups (multi_stream: true)"
    if report.closed:
        waiting = plural(len(report.cycle), "communication")
        return f"hangs{when}: {waiting} wait for each other in a cycle"
    fatal = [item for item in report.mismatches if item.kind in FATAL]
    if fatal:
        return f"hangs: {fatal[0].message}"
    if report.cycle:
        return f"hangs{when}: {report.cycle[-1].reason}"
    item = (*report.unmatched, *report.unfit)[0]
    if item.mismatch:
        return f"hangs or corrupts memory: {item.mismatch}"
    other = "Receive" if item.send is not None else "Send"
    return f"hangs: {plural(len(report.unmatched), 'transfer')} without {other}"


def _facts(report: HangReport) -> list[tuple[str, str]]:
    facts = [
        ("ranks", ranks_fact(report.ranks, report.devices, report.is_exact)),
        ("played", f"{plural(report.played, 'communication')} in launch order"),
    ]
    if report.stuck:
        ranks = tuple(report.stuck)
        whose = f"rank{'' if len(ranks) == 1 else 's'} {ranks_text(ranks)}"
        facts.append(("incomplete", f"{count_text(sum(report.stuck.values()))}, of {whose}"))
    if report.cycle and not report.certain:
        text = "a stream for each group (multi_stream: group, the default) may avoid the hang"
        facts.append(("streams", text))
    if report.missing_ranks:
        facts.append(("missing", missing_text(report.missing_ranks, report.devices)))
    for sender, receiver, by in report.shifted:
        text = (
            f"from rank {sender} to rank {receiver} all differ by {by}: are these dumps of one run?"
        )
        facts.append(("tags", text))
    limits = list(unknown_parts(report))
    if limits:
        facts.append(("limits", "; ".join(limits)))
    return facts


def _tables(view: HangView) -> Iterator[Table]:
    report = view.report
    if report.cycle:
        yield _cycle_table("Who waits for whom", report.cycle)
    if report.needs_buffers:
        yield _cycle_table(
            "Who would wait for whom if a Send waited for its Receive", report.needs_buffers
        )
    if report.mismatches:
        yield disagreements_table(report.mismatches, view.limit)
    if report.crossed:
        title = "Tags that cross (HCCL and NCCL deliver in the order sent)"
        yield disagreements_table(report.crossed, view.limit, title)
    wrong = (*report.unmatched, *report.unfit)
    if wrong:
        yield unmatched_table(wrong, view.limit)


def _cycle_table(title: str, cycle: Sequence[Wait]) -> Table:
    columns = [
        number_column("rank"), number_column("line"), text_column("node"),
        text_column("operator"), text_column("group", 1), number_column("waits for"),
        text_column("because"), text_column("source", 2),
    ]  # fmt: skip
    rows = [
        [
            wait.place.rank,
            wait.place.line,
            wait.place.collective.node.id,
            _operator_text(wait),
            _group_text(wait),
            wait.waits_for,
            wait.reason,
            source_text(wait.place.collective.node),
        ]
        for wait in cycle
    ]
    return Table(title, columns, rows, noun="communication")


def _operator_text(wait: Wait) -> str:
    item = wait.place.collective
    return f"{item.op} {type_text(item.dtype, item.shape)}"


def _group_text(wait: Wait) -> str:
    party = wait.place.party
    if party.peer is None:
        return f"{party.group} ({ranks_text(party.ranks)})"
    tag = wait.place.collective.tag
    return f"peer {party.peer}" + ("" if tag is None else f", tag {tag}")


def _card(wait: Wait) -> FindingCard:
    return FindingCard(
        "error",
        f"{place_text(wait.place)} waits for rank {wait.waits_for}: {wait.reason}",
        "hang",
        [("source", source_text(wait.place.collective.node) or "unknown")],
    )


def _progress_picture(report: HangReport) -> Picture:
    """Communications completed and incomplete: of the ranks that hang, else of all."""
    ranks = [rank for rank in report.ranks if rank in report.stuck] or list(report.ranks)
    rows = [
        (f"rank {rank}", (report.completed(rank), report.stuck.get(rank, 0)))
        for rank in ranks[:_MOST_BARS]
    ]
    return Picture(
        "How far each rank got",
        bars(rows, "number", ("completed", "incomplete")),
        "Communications that complete and that never do, by rank.",
    )

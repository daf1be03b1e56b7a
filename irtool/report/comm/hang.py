"""``irtool comm hang``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import field
from msgspec.structs import asdict

from irtool.cluster.context.model import RunContext
from irtool.cluster.hang import HangReport, unknown_parts
from irtool.cluster.hang.blocking import Blocked, Member, MemberState
from irtool.cluster.hang.board import Wait, step_text
from irtool.cluster.hang.script import Departure, DepartureKind
from irtool.cluster.matching import FATAL, Transfer
from irtool.compare.edits import Pattern
from irtool.diagnosis.script_difference import ScriptDifference
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.units import numbered_text, plural, ranks_text
from irtool.report.answer import AnswerObject, doc
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
    Cell,
    Element,
    Facts,
    FindingCard,
    FindingCards,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    number_column,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.run_answer import RunAnswer, context_fields

_MOST_BARS = 64


@dataclass(frozen=True, slots=True)
class PlayedOrder:
    """In which order communications were played.

    Attributes:
        source: ``recorded`` by the run; ``dumps``: as MindSpore launches what they say.
        paths: the records.
        notes: ``RANK: …``: where record and dump disagree.
    """

    source: Literal["recorded", "dumps"] = "dumps"
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HangView:
    """A report with how many rows to show, and why the odd rank's graph is another."""

    path: str
    report: HangReport
    limit: int | None = None
    difference: ScriptDifference | None = None
    order: PlayedOrder | None = None


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
    group: Annotated[str | None, doc("null: not a mismatch in a group")] = None
    index: Annotated[int | None, doc("of the collective inside the group, from 0")] = None
    left: Annotated[CommunicationPlace | None, doc("what one member calls there")] = None
    right: Annotated[CommunicationPlace | None, doc("null: the other rank has nothing there")] = (
        None
    )
    right_rank: Annotated[int | None, doc("the other member's rank")] = None
    sender: Annotated[int | None, doc("rank that sends; null: not known, or not a transfer")] = (
        field(default=None, name="from")
    )
    receiver: Annotated[int | None, doc("the receiving rank")] = field(default=None, name="to")
    tag: Annotated[int | None, doc("`sr_tag` of the transfer")] = None
    send: Annotated[CommunicationPlace | None, doc("null: there is none")] = None
    receive: Annotated[CommunicationPlace | None, doc("null: there is none")] = None
    matched: Annotated[bool | None, doc("both ends are there")] = None
    known: Annotated[bool | None, doc("false: the other end is on a rank without a dump")] = None
    mismatch: Annotated[str | None, doc("how the ends differ in type or shape")] = None


class BlockedMember(AnswerObject, frozen=True, kw_only=True):
    """A member of the group that is blocked, and what it waits in."""

    rank: int
    state: Annotated[
        MemberState,
        doc("in this collective, in another one, in none (it is through), or not known"),
    ]
    node: Annotated[str | None, doc("what it waits in; null: nothing")]
    op: str | None
    group: Annotated[str | None, doc("of what it waits in")]
    dtype: str | None
    shape: Annotated[Sequence[int] | None, doc("null: not known")]
    scope: Annotated[str | None, doc("of the node: its layer")]
    line: Annotated[int | None, doc("of the dump")]
    path: Annotated[str | None, doc("the dump")]
    source: Annotated[str | None, doc("the user's line of Python; null: the dump prints none")]


class BlockedCollective(AnswerObject, frozen=True, kw_only=True):
    """The first collective that its group never gets done."""

    group: str
    index: Annotated[int, doc("of the collective inside the group, from 0")]
    members: list[BlockedMember]
    why: Annotated[str, doc("who waits, and which ranks diverge from the others and how")]


class ScriptDeparture(AnswerObject, frozen=True, kw_only=True):
    """Ranks that do not communicate what others of their stage do."""

    ranks: Annotated[Sequence[int], doc("ranks that diverge")]
    common: Annotated[Sequence[int], doc("the other ranks")]
    certain: Annotated[bool, doc("false: no side has more ranks")]
    kind: Annotated[DepartureKind, doc("what differs from the other ranks")]
    index: Annotated[int, doc("of the communication in launch order, from 0")]
    message: str
    here: Annotated[CommunicationPlace | None, doc("what those that leave do there")]
    there: Annotated[CommunicationPlace | None, doc("what the others do there")]


class GraphEdit(AnswerObject, frozen=True, kw_only=True):
    """How the graph of a rank that diverges differs from that of another rank."""

    kind: str
    detail: str
    times: int
    scope: Annotated[str | None, doc("the layer")]
    left: Annotated[str | None, doc("node of a rank that keeps to the script")]
    right: Annotated[str | None, doc("node of the rank that left")]
    source: Annotated[str | None, doc("the user's line of Python; null: the dump prints none")]


class GraphDifference(AnswerObject, frozen=True, kw_only=True):
    """How the graphs of two ranks differ before they part."""

    left_rank: int
    right_rank: int
    dump: Annotated[str, doc("the pass of the dumps that were compared")] = field(name="pass")
    edits: list[GraphEdit]


class HangAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.hang/1"
):
    """Does the run hang? All ranks' communications are simulated in launch order."""

    path: Annotated[str, doc("what was read")]
    order: PlayedOrder
    hangs: Annotated[
        bool | None, doc("null: not in these dumps, but dumps of ranks that take part are missing")
    ]
    blocked: Annotated[
        BlockedCollective | None, doc("where it stops; null: nowhere in these dumps")
    ]
    odd_ranks: Annotated[
        Sequence[int],
        doc("that diverge from most ranks of their stage; empty: nobody can say"),
    ]
    departures: Annotated[
        list[ScriptDeparture], doc("which ranks diverge from others of their stage; empty: no hang")
    ]
    difference: Annotated[
        GraphDifference | None, doc("between the first rank that diverges and one that does not")
    ]
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
    stuck: Annotated[Sequence[int], doc("ranks that never proceed")]
    incomplete: Annotated[dict[str, int], doc("communications that never complete, by rank")]
    conditional: Annotated[int, doc("communications behind control flow, assumed to run once")]
    limits: Annotated[list[str], doc("what was not known, as texts")]
    cycle: Annotated[list[CommunicationWait], doc("who waits for whom")]
    needs_buffers: Annotated[
        list[CommunicationWait],
        doc("what is a cycle if a Send waits for its Receive; where `hangs`, only then"),
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
    """The answer of ``irtool comm hang`` for scripts.

    Args:
        view: how the ranks' collectives played out.
        context: of the run, with origins.

    Returns:
        ``hangs`` is null where nothing hangs in the dumps that are there, and some ranks left none.
    """
    report = view.report
    return HangAnswer(
        path=view.path,
        order=view.order or PlayedOrder(),
        hangs=None if report.missing_ranks and not report.hangs else report.hangs,
        blocked=None if report.blocked is None else _blocked(report.blocked),
        odd_ranks=report.odd_ranks,
        departures=[_departure(item) for item in report.left],
        difference=None if view.difference is None else _difference(view.difference),
        certain=report.certain if report.hangs else None,
        closed=report.closed if report.cycle else None,
        answer=_answer_text(report),
        devices=report.devices,
        devices_exact=report.is_exact,
        ranks=report.ranks,
        missing_ranks=report.missing_ranks,
        played=report.played,
        stuck=tuple(report.stuck),
        incomplete={str(rank): count for rank, count in report.stuck.items()},
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


def _blocked(item: Blocked) -> BlockedCollective:
    members = [_member(member) for member in item.members]
    return BlockedCollective(group=item.group, index=item.index, members=members, why=item.why)


def _member(member: Member) -> BlockedMember:
    there = None if member.place is None else communication_place(member.place)
    return BlockedMember(
        rank=member.rank,
        state=member.state,
        node=there and there.node,
        op=there and there.op,
        group=there and there.group,
        dtype=there and there.dtype,
        shape=there and there.shape,
        scope=member.place.collective.node.scope if member.place else None,
        line=there and there.line,
        path=there and there.path,
        source=there and there.source,
    )


def _departure(item: Departure) -> ScriptDeparture:
    return ScriptDeparture(
        ranks=item.ranks,
        common=item.common,
        certain=item.certain,
        kind=item.kind,
        index=item.index,
        message=item.text,
        here=None if item.here is None else communication_place(item.here),
        there=None if item.there is None else communication_place(item.there),
    )


def _difference(item: ScriptDifference) -> GraphDifference:
    edits = [
        GraphEdit(
            kind=pattern.first.kind,
            detail=pattern.detail,
            times=len(pattern.edits),
            scope=_layer_of(pattern),
            left=_node_text(pattern.first.left),
            right=_node_text(pattern.first.right),
            source=source_text(pattern.first.node),
        )
        for pattern in item.edits
    ]
    return GraphDifference(
        left_rank=item.other, right_rank=item.rank, dump=item.pass_name, edits=edits
    )


def _layer_of(pattern: Pattern) -> str | None:
    """The layer of an edit, or the kind of layers that have it."""
    return pattern.scope if pattern.layers > 1 else pattern.first.node.scope


def _node_text(nodes: Sequence[Node]) -> str | None:
    return f"{nodes[0].id} {nodes[0].op}" if nodes else None


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
    """Whether a run hangs, and why; a page draws how far each rank got.

    Args:
        view: how the ranks' collectives played out.
        is_page: whether pictures are seen.
    """
    report = view.report
    elements: list[Element] = [Facts([*_facts(report), *_order_facts(view.order)])]
    if view.order is not None:
        elements += [Note(f"note: rank {text}") for text in view.order.notes]
    if is_page and report.cycle:
        elements.append(FindingCards("Who waits for whom", [_card(wait) for wait in report.cycle]))
    elements += _tables(view)
    if is_page:
        elements.append(_progress_picture(report))
    tone: Tone = "bad" if report.hangs else "unknown" if report.missing_ranks else "good"
    return Report(
        f"comm hang: {view.path}", Answer(_answer_text(report), tone), elements, view.path
    )


def _order_facts(order: PlayedOrder | None) -> Iterator[tuple[str, str]]:
    if order is not None and order.source == "recorded":
        yield "order", f"as recorded: {plural(len(order.paths), 'record')}, {order.paths[0]} first"


def _answer_text(report: HangReport) -> str:
    """The verdict in a line."""
    if not report.played:
        return "nothing is communicated"
    if not report.hangs:
        known = " in the dumps that were read, others are missing" if report.missing_ranks else ""
        if report.mismatches:
            return f"no hang{known}, but ranks do not agree"
        if report.needs_buffers:
            return f"no hang{known} as long as a Send does not wait for its Receive"
        return f"no hang{known}"
    if report.needs_buffers:
        when = " where a Send waits for its Receive"
    else:
        when = "" if report.certain else " with one stream for all groups (multi_stream: true)"
    if report.blocked is not None:
        return f"hangs{when}: {report.blocked.why}"
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
        ("simulated", f"{plural(report.played, 'communication')} in launch order"),
    ]
    if report.odd_ranks:
        facts.append(("diverging", numbered_text("rank", report.odd_ranks)))
    if report.blocked is not None:
        facts.append(("blocked", _blocked_text(report.blocked)))
    if report.stuck:
        whose = numbered_text("rank", report.stuck)
        waiting = plural(sum(report.stuck.values()), "communication")
        facts.append(("incomplete", f"{waiting} on {whose} never completed"))
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


def _blocked_text(item: Blocked) -> str:
    if item.peers is not None:
        return f"transfer {item.index + 1} from rank {item.peers[0]} to rank {item.peers[1]}"
    ranks = ranks_text(tuple(member.rank for member in item.members))
    return f"collective {item.index + 1} of {item.group} (ranks {ranks})"


def _blocked_table(item: Blocked) -> Table:
    columns = [
        number_column("rank"), text_column("state"), text_column("node"), number_column("line"),
        text_column("operator"), text_column("group", 2), text_column("source", 1),
        text_column("layer", 3),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for member in item.members:
        if member.place is None:
            rows.append([member.rank, member.state, *[None] * 6])
            continue
        node = member.place.collective.node
        rows.append(
            [
                member.rank, member.state, node.id, node.line, step_text(member.place),
                member.place.party.group, source_text(node), node.scope,
            ]
        )  # fmt: skip
    return Table("Where the run stops", columns, rows, noun="member")


def _departures_table(items: Sequence[Departure]) -> Table:
    columns = [
        text_column("ranks"), text_column("differ from"), text_column("in"),
        text_column("how"), text_column("source", 1), text_column("layer", 2),
        text_column("source there", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            ranks_text(item.ranks),
            ranks_text(item.common),
            item.kind if item.certain else f"{item.kind} (either side)",
            item.text,
            source_text(item.here.collective.node) if item.here else None,
            _layer_text(item),
            source_text(item.there.collective.node) if item.there else None,
        ]
        for item in items
    ]
    return Table("Diverging ranks", columns, rows, noun="difference")


def _layer_text(item: Departure) -> str | None:
    place = item.here or item.there
    return None if place is None else place.collective.node.scope


def _difference_table(item: ScriptDifference) -> Table:
    title = f"Graph differences, rank {item.rank} vs rank {item.other} ({item.pass_name})"
    columns = [
        text_column("what"), number_column("times"), text_column(f"rank {item.other}"),
        text_column(f"rank {item.rank}"), text_column("detail"), text_column("source", 1),
        text_column("layer", 2),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            pattern.first.kind, len(pattern.edits), _node_text(pattern.first.left),
            _node_text(pattern.first.right), pattern.detail, source_text(pattern.first.node),
            _layer_of(pattern),
        ]
        for pattern in item.edits
    ]  # fmt: skip
    return Table(title, columns, rows, noun="edit")


def _tables(view: HangView) -> Iterator[Table]:
    report = view.report
    if report.blocked is not None:
        yield _blocked_table(report.blocked)
    if report.left:
        yield _departures_table(report.left)
    if view.difference is not None:
        yield _difference_table(view.difference)
    if report.cycle:
        yield _cycle_table("Who waits for whom", report.cycle)
    if report.needs_buffers and not report.hangs:
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

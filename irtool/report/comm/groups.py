"""``irtool comm groups``: its answers for scripts, and its reports for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeAlias

from msgspec.structs import asdict

from irtool.cluster.axes import Axis
from irtool.cluster.context.model import RunContext
from irtool.cluster.groups import (
    FoundBy,
    Group,
    GroupReport,
    Kind,
    NamedGroup,
    Row,
    Total,
    exchange,
)
from irtool.ir.collectives import Origin
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.groups import RanksFrom
from irtool.ir.phases import Phase
from irtool.ir.units import bytes_text, count_text, plural, ranks_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.comm.places import (
    GroupDisagreement,
    TransferEnds,
    disagreements_table,
    group_disagreement,
    machine_text,
    missing_text,
    ranks_fact,
    source_text,
    transfer_ends,
    type_text,
    unmatched_table,
)
from irtool.report.model import (
    USUAL_ROWS,
    Amount,
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.charts import heat_map
from irtool.report.run_answer import RunAnswer, context_fields


@dataclass(frozen=True, slots=True)
class GroupsView:
    """A report with what was asked of it: which nodes, how many rows."""

    path: str
    report: GroupReport
    chosen: Callable[[Node], bool]
    listed: bool = False
    limit: int | None = None

    @property
    def rows(self) -> list[Row]:
        """Communications that ``--where`` chose."""
        return [row for row in self.report.rows if self.chosen(row.collective.node)]

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of communication of which ``--where`` chose the first."""
        return [kind for kind in self.report.kinds if self.chosen(kind.first.collective.node)]


# -- for scripts ---------------------------------------------------------------------------------


class CommunicationTotal(AnswerObject, frozen=True, kw_only=True):
    """Communications added up over all ranks."""

    count: int
    bytes: Annotated[
        int,
        doc("tensor sizes added up, as far as known: each the larger of input and output"),
    ]
    seconds: Annotated[float, doc("modelled time")]
    unknown: Annotated[int, doc("communications of unknown size")]


class AxisAndLevelTotal(CommunicationTotal, frozen=True, kw_only=True):
    """Communications of one axis over one level of links, added up over all ranks."""

    axis: Axis
    level: Annotated[str, doc("the links, as the machine model calls them; or `unknown`")]


class CommunicationTotals(AnswerObject, frozen=True, kw_only=True):
    """Communications added up over all ranks."""

    axis: dict[str, CommunicationTotal]
    level: Annotated[dict[str, CommunicationTotal], doc("by the links used")]
    axis_and_level: list[AxisAndLevelTotal]


class Communication(AnswerObject, frozen=True, kw_only=True):
    """A collective or transfer of one rank."""

    rank: int
    equal_ranks: Annotated[int, doc("ranks with an equal graph, for which this one stands")]
    node: str
    op: Annotated[str, doc("the collective, `Send` or `Receive`")]
    dtype: str | None
    shape: Annotated[Sequence[int] | None, doc("null: not known")]
    bytes: Annotated[
        int | None, doc("the larger of input and output on one rank; null: a size is not known")
    ]
    ranks: Annotated[Sequence[int] | None, doc("of the group, global, in order; null: not known")]
    group: Annotated[str | None, doc("its name; null: between two ranks")]
    axis: Annotated[
        Axis,
        doc("of parallelism; `sequence`: ring attention; `data and tensor`: ranks of both"),
    ]
    phase: Phase
    fusion: Annotated[int | None, doc("fusion id, 0: never fused; null: the node says nothing")]
    stream: Annotated[
        int, doc("with MindSpore's default: one a group, from 1 in launch order; 0 computes")
    ]
    level: Annotated[str | None, doc("the links between the ranks; null: ranks not known")]
    seconds: Annotated[
        float | None,
        doc("modelled, not measured; of fused ones a part; null: size or ranks not known"),
    ]
    reduction: Annotated[str | None, doc("`sum`, `max`, `min`, `prod` where it reduces")]
    why: Annotated[Origin, doc("why it is there")]
    parameter: Annotated[str | None, doc("whose value or gradient it is")]
    peer: Annotated[int | None, doc("of a Send or Receive: the other rank")]
    tag: Annotated[int | None, doc("of a Send or Receive: its `sr_tag`")]
    conditional: Annotated[bool, doc("it stands behind control flow: whether it runs is not known")]
    line: Annotated[int, doc("of the dump")]
    source: Annotated[str | None, doc("the user's line of Python; null: the dump prints none")]


class CommunicationKind(AnswerObject, frozen=True, kw_only=True):
    """Communications of one rank that are alike in all but their place."""

    rank: int
    op: str
    axis: Axis
    phase: Phase
    ranks: Sequence[int] | None
    level: Annotated[str | None, doc("the links between the ranks")]
    dtype: str | None
    shape: Sequence[int] | None
    count: int
    bytes: Annotated[
        int | None,
        doc("tensor sizes of all of them added up: each the larger of input and output"),
    ]
    seconds: Annotated[float | None, doc("modelled time of all of them")]
    line: Annotated[int, doc("of the first, in the dump")]


class CommunicationGroup(AnswerObject, frozen=True, kw_only=True):
    """A communication group: its ranks, and what they communicate in it."""

    name: str
    ranks: Annotated[Sequence[int] | None, doc("null: not known")]
    known_from: Annotated[
        RanksFrom | None,
        doc("which attribute lists the ranks; `name`: the hash was searched; null: nothing does"),
    ]
    axes: Sequence[Axis]
    level: Annotated[str | None, doc("the links between the ranks")]
    count: Annotated[int, doc("of communications, over all ranks")]
    bytes: int


class GroupsAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.groups/1"
):
    """Every collective and transfer: group, axis of parallelism, phase, stream, link.

    Of ranks with equal graphs the first stands for all; totals count every rank.
    """

    path: Annotated[str, doc("what was read")]
    devices: int
    devices_exact: Annotated[bool, doc("false: at least so many, as ranks in groups tell")]
    partial: Annotated[
        str | None,
        doc("the pass of the dumps, where it comes before all communications are there"),
    ]
    ranks: Annotated[Sequence[int], doc("whose dumps were read")]
    missing_ranks: Annotated[Sequence[int], doc("ranks that take part and left no dump")]
    machine: Annotated[str, doc("name of the machine model")]
    totals: CommunicationTotals
    collectives: Annotated[list[Communication], doc("in launch order")]
    dearest: Annotated[
        list[CommunicationKind], doc("equal ones added up, those that take longest first")
    ]
    groups: Annotated[list[CommunicationGroup], doc("those with the most bytes first")]
    disagreements: list[GroupDisagreement]
    transfers: Annotated[list[TransferEnds], doc("each Send with its Receive")]


class GroupOfName(AnswerObject, frozen=True, kw_only=True):
    """What a group's name stands for."""

    name: str
    ranks: Annotated[Sequence[int] | None, doc("null: not known")]
    known_from: Annotated[
        FoundBy,
        doc(
            "`dump`: a dump lists them; `world`: all devices; `plain`: the name is the ranks; "
            "`name`: the hash was searched"
        ),
    ]
    axes: Sequence[Axis]
    level: Annotated[str | None, doc("the links between the ranks")]
    members: Annotated[Sequence[int], doc("ranks whose dumps use the name")]


class NamedGroupAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.groups/1"
):
    """With `--group NAME`: which ranks, operators and lines the name stands for."""

    path: Annotated[str, doc("what was read; without a dump the name")]
    group: GroupOfName
    collectives: Annotated[list[Communication], doc("of the group, in launch order")]
    disagreements: Annotated[list[GroupDisagreement], doc("of the group")]


GroupsAnswers: TypeAlias = GroupsAnswer | NamedGroupAnswer


def groups_answer(view: GroupsView, context: RunContext) -> GroupsAnswer:
    """The answer of ``irtool comm groups`` for scripts.

    Args:
        view: what a run communicates; ``--limit`` cuts its lists of collectives and kinds.
        context: of the run, with origins.
    """
    report = view.report
    most = view.limit or None
    return GroupsAnswer(
        path=view.path,
        devices=report.devices,
        devices_exact=report.is_exact,
        partial=report.partial or None,
        ranks=report.ranks,
        missing_ranks=report.missing,
        machine=report.machine.name,
        totals=CommunicationTotals(
            axis=_by_name(report.by_axis.items()),
            level=_by_name(report.by_level.items()),
            axis_and_level=[
                AxisAndLevelTotal(axis=axis, level=level, **asdict(_total(total)))
                for (axis, level), total in report.by_axis_and_level.items()
            ],
        ),
        collectives=[_communication(row) for row in view.rows[:most]],
        dearest=[_kind(kind) for kind in view.kinds[:most]],
        groups=[_group(group) for group in report.groups],
        disagreements=[group_disagreement(item) for item in report.disagreements],
        transfers=[transfer_ends(item) for item in report.transfers],
        **context_fields(context),
    )


def named_group_answer(
    view: GroupsView, group: NamedGroup, context: RunContext
) -> NamedGroupAnswer:
    """The answer for scripts of ``--group NAME``.

    Args:
        view: what the run communicates.
        group: what the name stands for.
        context: of the run, with origins.
    """
    return NamedGroupAnswer(
        path=view.path,
        group=GroupOfName(
            name=group.name,
            ranks=group.ranks,
            known_from=group.found_by,
            axes=group.axes,
            level=group.level,
            members=group.members,
        ),
        collectives=[_communication(row) for row in group.rows],
        disagreements=[group_disagreement(item) for item in group.disagreements],
        **context_fields(context),
    )


def _by_name(totals: Iterable[tuple[str, Total]]) -> dict[str, CommunicationTotal]:
    return {name: _total(total) for name, total in totals}


def _total(total: Total) -> CommunicationTotal:
    return CommunicationTotal(
        count=total.count, bytes=total.bytes, seconds=total.seconds, unknown=total.unknown
    )


def _communication(row: Row) -> Communication:
    item, party = row.collective, row.party
    return Communication(
        rank=row.rank,
        equal_ranks=row.alike,
        node=item.node.id,
        op=item.op,
        dtype=item.dtype,
        shape=item.shape,
        bytes=item.bytes,
        ranks=party.ranks,
        group=party.group,
        axis=row.axis,
        phase=row.phase,
        fusion=item.fusion,
        stream=row.stream,
        level=row.level,
        seconds=row.seconds,
        reduction=item.reduction,
        why=item.origin,
        parameter=item.parameter,
        peer=party.peer,
        tag=item.tag,
        conditional=row.conditional,
        line=item.node.line,
        source=source_text(item.node),
    )


def _kind(kind: Kind) -> CommunicationKind:
    return CommunicationKind(
        rank=kind.first.rank,
        op=kind.op,
        axis=kind.axis,
        phase=kind.phase,
        ranks=kind.ranks,
        level=kind.level,
        dtype=kind.dtype,
        shape=kind.shape,
        count=kind.count,
        bytes=kind.bytes,
        seconds=kind.seconds,
        line=kind.first.collective.node.line,
    )


def _group(group: Group) -> CommunicationGroup:
    return CommunicationGroup(
        name=group.name,
        ranks=group.ranks,
        known_from=group.ranks_from,
        axes=group.axes,
        level=group.level,
        count=group.count,
        bytes=group.bytes,
    )


# -- for people ----------------------------------------------------------------------------------


def groups_report(view: GroupsView, is_page: bool = False) -> Report:
    """What a run communicates; a page shows who exchanges with whom, and all kinds.

    Args:
        view: what the run communicates, and what was asked of it.
        is_page: whether pictures are seen.
    """
    report = view.report
    elements: list[Element] = [Facts(_facts(view))]
    if is_page:
        elements.append(_exchange_picture(report))
    if report.by_axis:
        elements.append(_totals_table(report))
    if view.listed:
        elements.append(_rows_table(view.rows, view.limit))
    if report.kinds and (is_page or not view.listed):
        elements.append(_kinds_table(view))
    if report.groups:
        elements.append(_groups_table(report.groups, view.limit))
    if report.disagreements:
        elements.append(disagreements_table(report.disagreements, view.limit))
    if report.unfit_transfers:
        elements.append(unmatched_table(report.unfit_transfers, view.limit))
    is_bad = report.disagreements or report.unfit_transfers
    tone: Tone = "bad" if is_bad else "unknown" if report.missing else "good"
    answer = Answer(_answer_text(report), tone)
    return Report(f"comm groups: {view.path}", answer, elements, view.path)


def _answer_text(report: GroupReport) -> str:
    """How much is communicated, and whether ranks agree."""
    if not report.rows:
        return f"nothing is communicated{' yet' if report.partial else ''}"
    total = report.total
    ranks = "" if len(report.ranks) == 1 else f" of {plural(len(report.ranks), 'rank')}"
    text = f"{plural(total.count, 'communication')}{ranks} in {plural(len(report.groups), 'group')}"
    problems = len(report.disagreements) + len(report.unfit_transfers)
    return f"{text}, {bytes_text(total.bytes)}" + (
        f"; {plural(problems, 'place')} where ranks do not agree" if problems else ""
    )


def _facts(view: GroupsView) -> list[tuple[str, str]]:
    """What one has to know besides: ranks, machine, transfers, what is missing."""
    report = view.report
    ranks = ranks_fact(report.ranks, report.devices, report.is_exact)
    distinct = len({row.rank for row in report.rows})
    if len(report.ranks) > max(distinct, 1):
        ranks += f"; {distinct} distinct, equal ones shown once"
    facts = [("ranks", ranks), ("machine", machine_text(report.machine))]
    if report.transfers:
        matched = sum(item.matched for item in report.transfers)
        known = sum(item.known for item in report.transfers)
        unknown = len(report.transfers) - known
        texts = [f"{count_text(matched)} of {count_text(known)} matched"] if known else []
        texts += [f"{count_text(unknown)} with ranks that left no dump"] if unknown else []
        facts.append(("transfers", "; ".join(texts)))
    if report.missing and len(report.ranks) > 1:
        facts.append(("missing", missing_text(report.missing, report.devices)))
    if report.partial:
        text = f"{report.partial} does not hold all communications yet: validate does"
        facts.append(("limits", text))
    return facts


def _totals_table(report: GroupReport) -> Table:
    columns = [
        text_column("axis"), text_column("link"), number_column("count"),
        number_column("bytes", "bytes"), number_column("time", "seconds"),
    ]  # fmt: skip
    rows = [
        [axis, level, total.count, _bytes_cell(total), total.seconds]
        for (axis, level), total in report.by_axis_and_level.items()
    ]
    several = " of all ranks" if len(report.ranks) > 1 else ""
    note = "Bytes: the larger of a communication's input and output on one rank."
    return Table(f"By axis and link{several}", columns, rows, noun="sum", note=note)


def _bytes_cell(total: Total) -> Cell:
    if not total.unknown:
        return total.bytes
    return Amount(total.bytes, "bytes", f"{bytes_text(total.bytes)} + {total.unknown} unknown")


def _kinds_table(view: GroupsView) -> Table:
    columns = [
        number_column("rank", rank=3), text_column("operator"), text_column("axis"),
        text_column("phase", 1), text_column("ranks", 2), text_column("link", 2),
        text_column("tensor", 1), number_column("count"), number_column("bytes", "bytes"),
        number_column("time", "seconds"), number_column("first line", rank=3),
    ]  # fmt: skip
    rows = [
        [
            kind.first.rank,
            kind.op,
            kind.axis,
            kind.phase,
            ranks_text(kind.ranks),
            kind.level,
            type_text(kind.dtype, kind.shape),
            kind.count,
            Amount(kind.bytes, "bytes"),
            Amount(kind.seconds, "seconds"),
            kind.first.collective.node.line,
        ]
        for kind in view.kinds
    ]
    most = rows_shown(view.limit)
    return Table("Communications by kind, most time first", columns, rows, noun="kind", most=most)


def _rows_table(rows: Sequence[Row], limit: int | None) -> Table:
    """One line a communication."""
    columns = [
        number_column("rank", rank=2), number_column("line"), text_column("node"),
        text_column("operator"), text_column("tensor", 1), number_column("bytes", "bytes"),
        text_column("ranks"), text_column("axis", 1), text_column("phase", 2),
        number_column("fusion", rank=3), number_column("stream", rank=3), text_column("link", 3),
        text_column("source", 4),
    ]  # fmt: skip
    lines = [
        [
            row.rank,
            row.collective.node.line,
            row.collective.node.id,
            row.collective.op,
            type_text(row.collective.dtype, row.collective.shape),
            Amount(row.collective.bytes, "bytes"),
            _parties_text(row),
            row.axis,
            row.phase,
            row.collective.fusion,
            row.stream,
            row.level,
            source_text(row.collective.node),
        ]
        for row in rows
    ]
    most = rows_shown(limit, 10 * USUAL_ROWS)
    return Table("In launch order", columns, lines, noun="communication", most=most)


def _parties_text(row: Row) -> str:
    """``0-3``; of a transfer ``0 → 2 tag 5``."""
    party = row.party
    if party.peer is None:
        return ranks_text(party.ranks)
    arrow = "→" if row.collective.op == "Send" else "←"
    tag = "" if row.collective.tag is None else f" tag {row.collective.tag}"
    return f"{row.rank} {arrow} {party.peer}{tag}"


def _groups_table(groups: Sequence[Group], limit: int | None) -> Table:
    columns = [
        text_column("group"), text_column("ranks"), text_column("known from", 2),
        text_column("axes"), text_column("link", 1), number_column("count"),
        number_column("bytes", "bytes"),
    ]  # fmt: skip
    rows = [
        [
            group.name,
            ranks_text(group.ranks),
            group.ranks_from or ("all devices" if group.ranks else "nothing"),
            ", ".join(group.axes),
            group.level,
            group.count,
            group.bytes,
        ]
        for group in groups
    ]
    return Table("Groups", columns, rows, noun="group", most=rows_shown(limit))


def _exchange_picture(report: GroupReport) -> Picture:
    matrix = exchange(report)
    return Picture(
        "Who exchanges with whom",
        heat_map(matrix.names, matrix.names, matrix.bytes, "bytes"),
        "A matrix of ranks; a field is darker the more bytes two ranks exchange.",
    )


_KNOWN_FROM: dict[FoundBy, str] = {
    "dump": "the dumps list them",
    "world": "it is the group of all devices",
    "plain": "the name is its ranks",
    "name": "the name's hash, searched",
    "nothing": "no dump lists it, and no regular group has this hash",
}


def named_group_report(view: GroupsView, group: NamedGroup) -> Report:
    """What a group's name stands for.

    Args:
        view: what the run communicates; without ranks where the name alone was given.
        group: its ranks and axes, as far as anything tells them, and what uses it.
    """
    is_known = group.ranks is not None
    axes = ", ".join(group.axes)
    if not axes:
        axes = "unknown: no operator of these dumps uses it" if view.report.ranks else ""
    used_by = "no dump was given: a run folder would tell operators and lines"
    if view.report.ranks:
        used_by = f"ranks {ranks_text(group.members)}" if group.members else "no dump"
    facts = [("known from", _KNOWN_FROM[group.found_by])]
    facts += [("axes", axes)] if axes else []
    facts += [("link", group.level)] if group.level else []
    facts.append(("used by", used_by))
    elements: list[Element] = [Facts(facts)]
    if not is_known:
        elements.append(
            Note("--devices N tells how many there are; groups of the user's own have no hash")
        )
    if group.rows:
        elements.append(_rows_table(group.rows, view.limit))
    if group.disagreements:
        elements.append(disagreements_table(group.disagreements, view.limit))
    ranks = f"ranks {ranks_text(group.ranks)}" if is_known else "unknown ranks"
    tone: Tone = "bad" if group.disagreements else "good" if is_known else "unknown"
    return Report(f"comm groups: {group.name}", Answer(ranks, tone), elements, group.name)

"""``irtool comm reuse``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.cluster.reuse import ReuseGroup, ReuseReport, Verdict
from irtool.cluster.reuse.graph import Choice
from irtool.cluster.reuse.limit import VARIABLE
from irtool.cluster.reuse.log import LogCheck, expected_lines
from irtool.cluster.reuse.streams import LABEL_LIMIT, STREAMS_PER_COMMUNICATION
from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text, count_text, plural, ranks_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.comm.places import type_text
from irtool.report.model import (
    Amount,
    Answer,
    Element,
    Facts,
    Picture,
    Report,
    Table,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.run_answer import RunAnswer, context_fields


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


# -- for scripts ---------------------------------------------------------------------------------


class CapEffect(AnswerObject, frozen=True, kw_only=True):
    """What a cap of reused operators does."""

    limit: Annotated[int, doc("the cap")]
    reused: Annotated[int, doc("communications")]
    subgraphs: int
    streams: Annotated[int, doc("of the device, for the whole graph, secondary ones included")]
    labels: int
    buffer_bytes: Annotated[int, doc("device memory of the HCCL groups of the subgraphs")]


class MostMicroBatches(AnswerObject, frozen=True, kw_only=True):
    """How many micro-batches the device allows."""

    without: Annotated[int | None, doc("streams, without reuse")]
    with_reuse: Annotated[int | None, doc("streams, with reuse")] = field(name="with")
    until_labels_run_out: Annotated[int | None, doc("beyond it no kind fits into the labels")]


class ReuseKind(AnswerObject, frozen=True, kw_only=True):
    """Communications that could share a subgraph."""

    op: str
    dtype: str | None
    shape: Sequence[int] | None
    group: Annotated[str | None, doc("name of the HCCL group")]
    ranks: Annotated[Sequence[int] | None, doc("of the group; null: not known")]
    reduction: str | None
    count: int
    operators: Annotated[int, doc("left of them when equal fusion ids are fused")]
    capacity: Annotated[int, doc("how many fit on a stream")]
    reused: bool
    streams_before: Annotated[int, doc("communication streams without reuse")]
    streams_after: Annotated[int, doc("communication streams as set")]
    why_not: Annotated[str | None, doc("why they are not reused")]
    key: Annotated[str, doc("as MindSpore orders them by")]
    line: Annotated[int, doc("of the first, in the dump")]


class LoggedFact(AnswerObject, frozen=True, kw_only=True):
    """A fact that a log says, beside the prediction."""

    fact: str
    predicted: int
    logged: Annotated[int | None, doc("null: the log has no such line")]
    agrees: Annotated[bool | None, doc("null: the log does not say")]


class ReuseAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.reuse/1"
):
    """Extraction and reuse of communication subgraphs in MindSpore 1.8 to 2.2."""

    path: Annotated[str, doc("what was read")]
    target_version: Annotated[str, doc("of MindSpore")]
    available: Annotated[Literal[True], doc("MindSpore has the feature")] = True
    rank: Annotated[int, doc("whose graph")]
    enabled: bool
    limit: Annotated[int | None, doc("the cap that the value means; null: reuse is off")]
    error: Annotated[str | None, doc("the exception that the value raises")]
    warning: Annotated[str | None, doc("what MindSpore's log says of the value")]
    streams_before: Annotated[
        int, doc("of the device, for the whole graph, secondary ones included; without reuse")
    ]
    streams_after: Annotated[
        int, doc("streams of the device, for the whole graph, with reuse as set")
    ]
    stream_limit: Annotated[int, doc("streams that can be used")]
    labels: int
    label_limit: int
    reused: Annotated[int, doc("communications")]
    subgraphs: int
    buffer_bytes: Annotated[int, doc("device memory of the HCCL groups of the subgraphs")]
    communications_in_dump: int
    communications_before: Annotated[int, doc("left when equal fusion ids are fused")]
    communications_after: Annotated[int, doc("as set: reused ones count once a subgraph")]
    recommended_limit: Annotated[int | None, doc("the best cap; null: none saves a stream")]
    recommended: Annotated[CapEffect | None, doc("what the best cap does")]
    ideal_streams: Annotated[int, doc("with a free choice of kinds")]
    verdict: Annotated[Verdict, doc("whether reuse is needed")]
    micro: Annotated[int | None, doc("micro-batches of the graph; null: no pipeline")]
    largest_micro: MostMicroBatches | None
    log_lines: Annotated[list[str], doc("what the log will say")]
    groups: Annotated[list[ReuseKind], doc("in the order of their keys")]
    log: Annotated[list[LoggedFact], doc("with `--log`; else empty")]


def reuse_answer(view: ReuseView, context: RunContext) -> ReuseAnswer:
    """The answer of ``irtool comm reuse`` for scripts.

    Args:
        view: what reuse does to a rank's graph, and what a log says of it.
        context: of the run, with origins.
    """
    report = view.report
    most = report.largest_micro
    return ReuseAnswer(
        path=view.path,
        target_version=report.target.version_text,
        rank=report.rank,
        enabled=report.limit.enabled,
        limit=report.limit.cap if report.limit.enabled else None,
        error=report.limit.error or None,
        warning=report.limit.warning or None,
        streams_before=report.before.streams,
        streams_after=report.after.streams,
        stream_limit=report.target.usable_streams,
        labels=report.after.labels,
        label_limit=LABEL_LIMIT,
        reused=report.after.reused,
        subgraphs=report.after.subgraphs,
        buffer_bytes=report.after.buffer_bytes,
        communications_in_dump=report.in_dump,
        communications_before=report.communications,
        communications_after=report.communications_after,
        recommended_limit=report.recommended.cap if report.recommended else None,
        recommended=_cap_effect(report.recommended) if report.recommended else None,
        ideal_streams=report.knapsack_streams,
        verdict=report.verdict,
        micro=report.micro or None,
        largest_micro=None
        if most is None
        else MostMicroBatches(
            without=most.without, with_reuse=most.with_reuse, until_labels_run_out=most.reusing
        ),
        log_lines=list(expected_lines(report)),
        groups=[_kind(item) for item in report.groups],
        log=[
            LoggedFact(
                fact=check.fact,
                predicted=check.predicted,
                logged=check.logged,
                agrees=check.agrees,
            )
            for check in view.log
        ],
        **context_fields(context),
    )


def _cap_effect(choice: Choice) -> CapEffect:
    return CapEffect(
        limit=choice.cap,
        reused=choice.reused,
        subgraphs=choice.subgraphs,
        streams=choice.streams,
        labels=choice.labels,
        buffer_bytes=choice.buffer_bytes,
    )


def _kind(item: ReuseGroup) -> ReuseKind:
    one = item.candidate
    return ReuseKind(
        op=one.op,
        dtype=one.dtype,
        shape=one.shape,
        group=one.group,
        ranks=one.ranks,
        reduction=one.reduction,
        count=one.count,
        operators=one.operators,
        capacity=one.capacity,
        reused=item.reused,
        streams_before=item.streams_before,
        streams_after=item.streams_after,
        why_not=item.reason or None,
        key=one.key,
        line=one.first.line,
    )


# -- for people ----------------------------------------------------------------------------------


def reuse_report(view: ReuseView, is_page: bool = False) -> Report:
    """What reuse does to a graph; a page draws the streams.

    Args:
        view: what reuse does to a rank's graph, and what a log says of it.
        is_page: whether pictures are seen.
    """
    report = view.report
    elements: list[Element] = [Facts(list(_facts(view)))]
    if is_page:
        elements.append(_streams_picture(report))
    elements.append(_kinds_table(view))
    lines = expected_lines(report)
    if lines:
        columns = [text_column("line")]
        elements.append(Table("Expected lines of the log", columns, [[line] for line in lines]))
    if view.log:
        elements.append(_log_table(view))
    is_bad = report.limit.error or report.verdict == "not enough"
    answer = Answer(_answer_text(report), "bad" if is_bad else "plain")
    return Report(f"comm reuse: {view.path}", answer, elements, view.path)


def _answer_text(report: ReuseReport) -> str:
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


def _facts(view: ReuseView) -> Iterator[tuple[str, str]]:
    report, best, most = view.report, view.report.recommended, view.report.largest_micro
    target = report.target
    version = target.version_text
    yield "for", f"MindSpore {version} on Ascend in graph mode, seen from rank {report.rank}"
    streams = f"{_streams_text(report.before)} without reuse, {_streams_text(report.after)} as set"
    usable = f"{count_text(target.usable_streams)} usable: reuse is {report.verdict}"
    yield "streams", f"{streams}; {usable}"
    yield "labels", f"{count_text(report.after.labels)} of {count_text(LABEL_LIMIT)}"
    counts = (
        f"{count_text(report.in_dump)} in the dump, {count_text(report.communications)} when "
        f"fused, {count_text(report.communications_after)} as set"
    )
    yield "communications", counts
    yield "best value", _recommendation(report) + (f", {_costs(best)}" if best else "")
    if best is not None and report.knapsack_streams < best.streams:
        lost = f"a free choice of kinds would need {report.knapsack_streams} streams"
        yield "lost", f"{lost}; MindSpore takes them in the order of their keys"
    if most is not None:
        allowed = (
            f"{report.micro} now; streams allow {count_text(most.without)} without reuse, "
            f"{count_text(most.with_reuse)} with it"
        )
        if most.reusing:
            allowed += f"; beyond {count_text(most.reusing)} no kind fits into the labels"
        yield "micro-batches", allowed
    if not report.has_tags:
        yield "tags", "none: MindSpore tags in automatic parallel modes only"
    if view.dialect:
        note = f"the dump reads like MindSpore {view.dialect}; reuse is gone from 2.3 on"
        yield "note", f"{note} (--target-version 2.7 tells what is left)"


def _streams_text(choice: Choice) -> str:
    return (
        f"{count_text(choice.streams)} ("
        f"{plural(choice.communication_streams, 'communication stream')} of "
        f"{STREAMS_PER_COMMUNICATION} hardware streams each)"
    )


def _costs(choice: Choice) -> str:
    return (
        f"{count_text(choice.labels)} labels, {plural(choice.subgraphs, 'subgraph')} with an HCCL "
        f"group each ({bytes_text(choice.buffer_bytes)} of device memory)"
    )


def _kinds_table(view: ReuseView) -> Table:
    columns = [
        text_column("operator"), text_column("tensor"), text_column("ranks", 1),
        number_column("count"), number_column("when fused", rank=2),
        number_column("fit a stream", rank=2), number_column("streams before"),
        number_column("after"), text_column("reused"), text_column("reason", 1),
        number_column("first line", rank=3),
    ]  # fmt: skip
    rows = [
        [
            item.candidate.op,
            _tensor_text(item),
            ranks_text(item.candidate.ranks),
            item.candidate.count,
            item.candidate.operators,
            item.candidate.capacity,
            item.streams_before,
            item.streams_after,
            "yes" if item.reused else "no",
            item.reason,
            item.candidate.first.line,
        ]
        for item in view.report.by_count
    ]
    title = "Kinds of communication, and the streams that they take"
    return first_rows(Table(title, columns, rows, noun="kind"), view.limit)


def _tensor_text(item: ReuseGroup) -> str:
    one = item.candidate
    return "any shape" if one.operators < one.count else type_text(one.dtype, one.shape)


def _log_table(view: ReuseView) -> Table:
    columns = [
        text_column("fact"), number_column("predicted"), number_column("log"),
        text_column("agrees"),
    ]  # fmt: skip
    rows = [
        [
            check.fact,
            check.predicted,
            Amount(None, text="no such line") if check.logged is None else check.logged,
            {True: "yes", False: "no", None: ""}[check.agrees],
        ]
        for check in view.log
    ]
    return Table(f"Prediction and {view.log_path}", columns, rows)


def _streams_picture(report: ReuseReport) -> Picture:
    """Streams without reuse, as set, and with the best value."""
    choices = [("without reuse", report.before), ("as set", report.after)]
    if report.recommended is not None:
        choices.append((f"{VARIABLE}={report.recommended.cap}", report.recommended))
    rows = [(name, (one.compute_streams, one.device_streams)) for name, one in choices]
    svg = bars(rows, "number", ("compute", "communication"))
    return Picture("Streams", svg, "Streams of the device, by use.")

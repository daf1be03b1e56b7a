"""What ``irtool check`` shows to people: the verdict, why, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import SEVERITIES, Finding
from irtool.ir.graph import Node, node_of
from irtool.ir.units import bytes_text, count_text, plural, tuple_text
from irtool.report.checking.proposed import layouts_text, output_text, shard_text, together_text
from irtool.report.checking.tables import (
    collectives_table,
    dataset_table,
    operators_table,
    parameters_table,
    redistributions_table,
)
from irtool.report.json import json_text, json_value
from irtool.report.model import (
    Answer,
    Block,
    Cell,
    Element,
    Explorer,
    Facts,
    FindingCard,
    FindingCards,
    Link,
    Note,
    Report,
    Table,
    Tone,
    rows_shown,
)
from irtool.report.page.graph.data import graph_data
from irtool.report.page.keys import node_key
from irtool.report.picture.overlay import Mark, Overlay, worst
from irtool.report.places import location_text
from irtool.report.text import shortened
from irtool.sharding.network.analysis import UNKNOWN
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import (
    CheckResult,
    OperatorReport,
    RedistributionReport,
)
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.network.totals import collective_rows, moves, parameter_counts, verdict_counts
from irtool.sharding.suggest import NO_PROPOSALS, Proposals
from irtool.syntax.printer import print_value

MOST_FINDINGS = 20
ALL_LISTS = frozenset({"operators", "redistributions", "parameters"})
DEVICE_LIST = "device-list"
_MOST_PLACES = 8
_STATEMENT = 400


_ADVICE = {
    "parameter-users": "strategies that split the parameter alike in all operators that use it",
    "out-layout": "leave out out_layout",
    "reshape-strategy": "leave out the strategy: Reshape takes that of its neighbours",
}


@dataclass(frozen=True, slots=True)
class CheckView:
    """A report with what was asked of it.

    Attributes:
        path: the dump.
        result: the answer of ``check``.
        operators: those that ``--where`` chose.
        redistributions: edges to or from those, on which something is inserted.
        origin: where the context was found.
        instead: strategies and layouts that would be legal, by finding.
        lists: which lists were asked for: operators, redistributions, parameters.
        limit: most rows; None for the usual number, 0 for all.
    """

    path: str
    result: CheckResult
    operators: Sequence[OperatorReport]
    redistributions: Sequence[RedistributionReport]
    origin: str = ""
    instead: Proposals = NO_PROPOSALS
    lists: frozenset[str] = frozenset()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings that say the same of operators with the same name; the first speaks for all."""

    first: Finding
    others: tuple[Finding, ...]


def grouped_findings(result: CheckResult, found: Proposals = NO_PROPOSALS) -> list[FindingGroup]:
    """Findings, errors first, the same mistake of many layers with the same proposal once."""
    groups: dict[tuple[str, str, str, str, Wanted | None], list[Finding]] = {}
    for item in sorted(result.findings, key=lambda item: SEVERITIES.index(item.severity)):
        key = (item.severity, item.code, item.op or "", item.message, found.first.get(item))
        groups.setdefault(key, []).append(item)
    return [FindingGroup(items[0], tuple(items[1:])) for items in groups.values()]


def check_report(
    view: CheckView, dump: Dump | None = None, against: Sequence[Block] = ()
) -> Report:
    """The verdict, findings, a summary, and the lists that were asked for.

    Args:
        view: what ``check`` says, and what was asked of it.
        dump: what was checked, for a page: then it has all lists, and the graph.
        against: what came of comparing with a later dump.
    """
    result = view.result
    elements: list[Element] = [Facts(summary_facts(view))]
    groups = grouped_findings(result, view.instead)
    if groups:
        cards = [_card(view, group) for group in groups]
        most = rows_shown(view.limit, MOST_FINDINGS)
        title = plural(len(result.findings), "finding")
        elements.append(FindingCards(title, cards, most=most))
    if together := together_text(view.instead):
        elements.append(Note(together))
    is_page = dump is not None
    elements += [
        table for table in _tables(view, is_page, bool(against)) if table.rows or not is_page
    ]
    elements += against
    if dump is not None:
        overlays = [findings_overlay(result)] if result.findings else []
        elements.append(Explorer("Graph", graph_data(dump, result, overlays)))
    answer = Answer(verdict_text(result), tone_of(result))
    return Report(f"check: {view.path}", answer, elements, view.path)


def _tables(view: CheckView, is_page: bool, is_compared: bool) -> Iterator[Table]:
    result = view.result
    lists = ALL_LISTS if is_page else view.lists
    rows = collective_rows(result) if result.accepted is not False else []
    if is_page or (rows and not view.lists and not is_compared):
        yield collectives_table(rows, view.limit)
    if "operators" in lists:
        yield operators_table(view.operators, view.limit)
    if "redistributions" in lists:
        edges = [edge for edge in view.redistributions if moves(edge)]
        yield redistributions_table(edges, view.limit)
    if "parameters" in lists:
        yield parameters_table(result.parameters, view.limit, result.context)
    if is_page:
        yield dataset_table(result.dataset)


def tone_of(result: CheckResult) -> Tone:
    """Accepted is good, refused bad."""
    return "unknown" if result.accepted is None else "good" if result.accepted else "bad"


def findings_overlay(result: CheckResult) -> Overlay:
    """The findings as marks on nodes.

    Args:
        result: what ``check`` says of the dump that is drawn.

    Returns:
        one mark a node, as grave as its worst finding; those of no node by their message.
    """
    marks: dict[Node, Mark] = {}
    unplaced: list[str] = []
    for item in result.findings:
        node = node_of(item)
        if node is None:
            unplaced.append(item.message)
            continue
        before = marks.get(node)
        text = f"{before.text}; {item.message}" if before else item.message
        severity = worst((item.severity, before.severity if before else None))
        marks[node] = Mark(None, severity, text)
    return Overlay("findings", "findings of check", "", marks, "max", tuple(unplaced))


def verdict_text(result: CheckResult) -> str:
    """``accepted``, ``refused``, or of which part nothing can be said."""
    if not result.context.is_parallel:
        return f"accepted: strategies mean nothing in mode {result.context.mode}"
    if result.accepted:
        return "accepted"
    if result.accepted is False:
        errors = sum(finding.severity == "error" for finding in result.findings)
        return f"refused, for {plural(errors, 'reason')}"
    parts = sorted({finding.op or "dump" for finding in result.findings if _unknown(finding)})
    return f"unknown in a part: {', '.join(parts[:_MOST_PLACES])}"


def _unknown(finding: Finding) -> bool:
    return finding.severity == "warning" and finding.code == UNKNOWN


# -- the summary -------------------------------------------------------------------------------


def summary_facts(view: CheckView) -> list[tuple[str, str]]:
    """Context, counts, and what the rank reads: label and value."""
    result = view.result
    facts = [("context", _context(view))]
    verdicts = verdict_counts(result)
    if verdicts:
        parts = [
            f"{count_text(verdicts[name])} {name}"
            for name in ("legal", "illegal", "unknown")
            if verdicts[name]
        ]
        facts.append(("operators", ", ".join(parts)))
    if result.accepted is False or not result.context.is_parallel:
        return facts
    edges = result.redistributions
    unknown = sum(edge.operators is None for edge in edges)
    changed = sum(moves(edge) for edge in edges) - unknown
    text = f"on {count_text(changed)} of {plural(len(edges), 'edge')}"
    facts.append(("redistributions", text + (f", {unknown} not known" if unknown else "")))
    if result.communications_unknown:
        facts.append(
            ("communications", f"unknown in a part: {'; '.join(result.communications_unknown)}")
        )
    if result.parameters:
        facts.append(("parameters", _parameters(result)))
    facts += [
        (
            "dataset",
            f"{item.input}: {tuple_text(item.slice)} from {tuple_text(item.offset)} "
            f"of {tuple_text(item.shape)}",
        )
        for item in result.dataset
    ]
    return facts


def _context(view: CheckView) -> str:
    context = view.result.context
    parts = [
        plural(context.devices, "device"),
        *([plural(context.stages, "stage")] if context.stages > 1 else []),
        f"seen from rank {context.rank}"
        + (f" of stage {context.stage}" if context.stages > 1 else ""),
        context.mode + (f" by {context.search}" if context.searches else ""),
        context.soc if context.soc.startswith(context.target) else _hardware(context),
        *(["all-to-all"] if context.enable_alltoall else []),
        *(["optimizer parallel"] if context.parallel_optimizer else []),
    ]
    return ", ".join(parts) + (f" ({view.origin})" if view.origin else "")


def _hardware(context: ParallelContext) -> str:
    return context.target + (f" {context.soc}" if context.soc else "")


def _parameters(result: CheckResult) -> str:
    counts = parameter_counts(result)
    kept_out = sum(result.context.keeps_out(item.name) for item in result.parameters)
    parts = [
        f"{count_text(number)} {what}"
        for number, what in (
            (counts.sliced, "sliced"),
            (counts.mirrored, "with mirror (gradient AllReduce)"),
            (counts.sharded, "sharded by the optimizer"),
            (kept_out, "kept out of that (parallel_optimizer=False)"),
            (counts.unknown, "not known"),
        )
        if number
    ]
    text = f"{count_text(counts.total)}, {bytes_text(counts.bytes)} on a device"
    return "; ".join([text, ", ".join(parts)] if parts else [text])


# -- findings ----------------------------------------------------------------------------------


def _card(view: CheckView, group: FindingGroup) -> FindingCard:
    """What a person needs to mend it."""
    finding, node = group.first, node_of(group.first)
    subject = " ".join(part for part in (node and node.id, finding.op) if part)
    if not subject or finding.op == "parameter":
        message = finding.message
    else:
        message = f"{subject}: {finding.message}"
    code = finding.code + (f", {finding.check} in MindSpore" if finding.check else "")
    facts: list[tuple[str, Cell]] = []
    if finding.line:
        place = f"{finding.file}:{finding.line}{_others(group)}"
        facts.append(("where", place if node is None else Link(place, node_key(node))))
    if node is not None:
        facts.append(("statement", _statement(node)))
        if node.scope:
            facts.append(("scope", node.scope))
        if source := location_text(node.location):
            facts.append(("source", source))
    texts = instead_texts(view, finding)
    facts += [("instead", text) for text in texts]
    if node is not None and finding in view.instead.first:
        facts.append(("set with", shard_text(node)))
    return FindingCard(finding.severity, message, code, facts)


def _others(group: FindingGroup) -> str:
    if not group.others:
        return ""
    lines = [str(item.line) for item in group.others]
    places = ", ".join(lines[:_MOST_PLACES]) + (", …" if len(lines) > _MOST_PLACES else "")
    return f", and {count_text(len(lines))} more like it: {places}"


def _statement(node: Node) -> str:
    operands = ", ".join(print_value(operand) for operand in node.operands)
    text = shortened(f"{node.id} = {node.op}({operands})", _STATEMENT)
    shapes = [
        ", ".join(tuple_text(shape) for _, shape in abstract.tensors)
        for abstract in node.input_types
        if abstract is not None and abstract.tensors
    ]
    if shapes:
        text += f" of {', '.join(shapes)}"
    for name, value in (
        ("in_strategy", node.written_strategy()),
        ("out_strategy", node.written_strategy("out_strategy")),
    ):
        if value is not None:
            text += f", {name} {tuple_text(value)}"
    for name, value in (("in_layout", node.in_layout), ("out_layout", node.out_layout)):
        if value is not None:
            text += f", {name} {json_text(json_value(value))}"
    return text


def instead_texts(view: CheckView, finding: Finding) -> list[str]:
    """What to write instead of what a finding refuses, a text each.

    Args:
        view: the answer with its proposals.
        finding: one of the answer's findings.

    Returns:
        layouts, strategies, why there are none, and advice for findings of this code; empty where
        nothing is known.
    """
    texts: list[str] = []
    strategies = view.instead.strategies.get(finding, ())
    layouts = view.instead.layouts.get(finding, ())
    end = output_text(view.instead, finding)
    if layouts:
        texts.append("in_layout " + ", or ".join(map(layouts_text, layouts)) + end)
    if strategies:
        texts.append("in_strategy " + ", or ".join(map(tuple_text, strategies)) + end)
    if why := view.instead.why_none.get(finding):
        texts.append(why)
    if finding.code in _ADVICE:
        texts.append(_ADVICE[finding.code])
    if finding.code == DEVICE_LIST:
        soc = view.result.context.soc or "''"
        texts.append(
            f"the rule holds on first-generation Ascend 910 only (soc {soc}); if yours is another: "
            "--soc Ascend910B"
        )
    return texts

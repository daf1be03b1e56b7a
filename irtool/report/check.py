"""What ``irtool check`` shows to people: the verdict, why, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irtool.ir.units import bytes_text, count_text, plural, tuple_text
from irtool.operators.layout import WHOLE, MapEntry, UserLayout
from irtool.report.check_counts import collective_rows, moves, parameter_counts, verdict_counts
from irtool.report.check_tables import (
    collectives_table,
    operators_table,
    parameters_table,
    redistributions_table,
    shown,
)
from irtool.report.json import json_text, json_value
from irtool.report.model import Document, Facts, Heading, Note
from irtool.report.text import shortened
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import (
    CheckFinding,
    OperatorReport,
    RedistributionReport,
    Report,
)
from irtool.sharding.suggest import NO_PROPOSALS, Proposals
from irtool.syntax.printer import print_value

MOST_FINDINGS = 20
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
        report: the answer of ``check``.
        operators: those that ``--where`` chose.
        redistributions: edges to or from those, on which something is inserted.
        origin: where the context was found.
        instead: strategies and layouts that would be legal, by finding.
        lists: which lists were asked for: operators, redistributions, parameters.
        limit: most rows; None for the usual number, 0 for all.
        brief: leave out the collectives, since another question was asked.
    """

    path: str
    report: Report
    operators: Sequence[OperatorReport]
    redistributions: Sequence[RedistributionReport]
    origin: str = ""
    instead: Proposals = NO_PROPOSALS
    lists: frozenset[str] = frozenset()
    limit: int | None = None
    brief: bool = False


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings that say the same of operators with the same name; the first speaks for all."""

    first: CheckFinding
    others: tuple[CheckFinding, ...]


def grouped_findings(report: Report) -> list[FindingGroup]:
    """Findings, errors first, the same mistake of many layers once."""
    order = {"error": 0, "warning": 1, "info": 2}
    found: dict[tuple[str, str, str, str], list[CheckFinding]] = {}
    for item in sorted(report.findings, key=lambda item: order[item.severity]):
        found.setdefault((item.severity, item.code, item.op, item.message), []).append(item)
    return [FindingGroup(items[0], tuple(items[1:])) for items in found.values()]


TOGETHER = (
    "With the first of each instead, the whole network passes this check. The dump does not hold "
    "the lines with .shard( that set strategies: they stand where the operator is made."
)
NOT_TOGETHER = "No combination of these was found that the whole network passes the check with."


def check_document(view: CheckView) -> Document:
    """The verdict, findings, a summary, and the lists that were asked for."""
    report = view.report
    document = Document([Heading(f"{view.path}: {verdict_text(report)}")])
    document.add(Facts(summary_facts(view)))
    groups = grouped_findings(report)
    count = shown(len(groups), view.limit, MOST_FINDINGS)
    document.add(*(Facts(facts_of_finding(view, group)) for group in groups[:count]))
    if len(groups) > count:
        rest = plural(len(groups) - count, "more finding")
        document.add(Note(f"… {rest} (--limit 0 shows all)"))
    if view.instead.together is not None:
        document.add(Note(TOGETHER if view.instead.together else NOT_TOGETHER))
    rows = collective_rows(report) if report.accepted is not False else []
    if rows and not view.lists and not view.brief:
        document.add(collectives_table(rows, view.limit))
    if "operators" in view.lists:
        document.add(operators_table(view.operators, view.limit))
    if "redistributions" in view.lists:
        edges = [edge for edge in view.redistributions if moves(edge)]
        document.add(redistributions_table(edges, view.limit))
    if "parameters" in view.lists:
        document.add(parameters_table(report.parameters, view.limit))
    return document


def verdict_text(report: Report) -> str:
    """``accepted``, ``refused``, or of which part nothing can be said."""
    if not report.context.is_parallel:
        return f"accepted: strategies mean nothing in mode {report.context.mode}"
    if report.accepted:
        return "accepted"
    if report.accepted is False:
        errors = sum(finding.severity == "error" for finding in report.findings)
        return f"refused, for {plural(errors, 'reason')}"
    parts = sorted({finding.op or "dump" for finding in report.findings if _unknown(finding)})
    return f"unknown in a part: {', '.join(parts[:_MOST_PLACES])}"


def _unknown(finding: CheckFinding) -> bool:
    return finding.severity == "warning" and finding.code == "unknown"


# -- the summary -------------------------------------------------------------------------------


def summary_facts(view: CheckView) -> list[tuple[str, str]]:
    """Context, counts, and what the rank reads: label and value."""
    report = view.report
    facts = [("context", _context(view))]
    verdicts = verdict_counts(report)
    if verdicts:
        parts = [
            f"{count_text(verdicts[name])} {name}"
            for name in ("legal", "illegal", "unknown")
            if verdicts[name]
        ]
        facts.append(("operators", ", ".join(parts)))
    if report.accepted is False or not report.context.is_parallel:
        return facts
    edges = report.redistributions
    unknown = sum(edge.operators is None for edge in edges)
    changed = sum(moves(edge) for edge in edges) - unknown
    text = f"on {count_text(changed)} of {plural(len(edges), 'edge')}"
    facts.append(("redistributions", text + (f", {unknown} not known" if unknown else "")))
    if report.parameters:
        facts.append(("parameters", _parameters(report)))
    facts += [
        (
            "dataset",
            f"{item.input}: {tuple_text(item.slice)} from {tuple_text(item.offset)} "
            f"of {tuple_text(item.shape)}",
        )
        for item in report.dataset
    ]
    return facts


def _context(view: CheckView) -> str:
    context = view.report.context
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


def _parameters(report: Report) -> str:
    counts = parameter_counts(report)
    parts = [
        f"{count_text(number)} {what}"
        for number, what in (
            (counts.sliced, "sliced"),
            (counts.mirrored, "with mirror (gradient AllReduce)"),
            (counts.sharded, "sharded by the optimizer"),
            (counts.unknown, "not known"),
        )
        if number
    ]
    text = f"{count_text(counts.total)}, {bytes_text(counts.bytes)} on a device"
    return "; ".join([text, ", ".join(parts)] if parts else [text])


# -- findings ----------------------------------------------------------------------------------


def facts_of_finding(view: CheckView, group: FindingGroup) -> list[tuple[str, str]]:
    """What a person needs to mend it: label and value."""
    finding = group.first
    subject = " ".join(part for part in (finding.node and finding.node.id, finding.op) if part)
    if finding.op == "parameter":
        subject = ""
    facts = [
        (finding.severity, f"{subject}: {finding.message}" if subject else finding.message),
        ("code", finding.code + (f", {finding.check} in MindSpore" if finding.check else "")),
    ]
    if finding.line:
        facts.append(("at", f"{finding.file}:{finding.line}{_others(group)}"))
    node = finding.node
    if node is not None:
        facts.append(("statement", _statement(finding)))
        if node.scope:
            facts.append(("scope", node.scope))
        if source := source_text(finding):
            facts.append(("source", source))
    facts += [("instead", text) for text in _instead(view, finding)]
    return facts


def _others(group: FindingGroup) -> str:
    if not group.others:
        return ""
    lines = [str(item.line) for item in group.others]
    places = ", ".join(lines[:_MOST_PLACES]) + (", …" if len(lines) > _MOST_PLACES else "")
    return f", and {count_text(len(lines))} more like it: {places}"


def _statement(finding: CheckFinding) -> str:
    node = finding.node
    assert node is not None
    operands = ", ".join(print_value(operand) for operand in node.operands)
    text = shortened(f"{node.id} = {node.op}({operands})", _STATEMENT)
    shapes = [
        ", ".join(tuple_text(shape) for _, shape in abstract.tensors)
        for abstract in node.input_types
        if abstract is not None and abstract.tensors
    ]
    if shapes:
        text += f" of {', '.join(shapes)}"
    for name, value in (("in_strategy", node.in_strategy), ("out_strategy", node.out_strategy)):
        if value is not None:
            text += f", {name} {tuple_text(value)}"
    for name, value in (("in_layout", node.in_layout), ("out_layout", node.out_layout)):
        if value is not None:
            text += f", {name} {json_text(json_value(value))}"
    return text


def source_text(finding: CheckFinding) -> str:
    """The user's Python line: ``net.py:33: return self.matmul(x, w)``."""
    location = finding.node.location if finding.node is not None else None
    if location is None:
        return ""
    code = (location.source or "").strip().strip("/").strip()
    return f"{location.path}:{location.line}" + (f": {code}" if code else "")


def layouts_text(layouts: Sequence[UserLayout]) -> str:
    """Layouts as one writes them: ``((dp, None), (tp, None)) over (2, 4)``."""
    matrix = layouts[0].device_matrix if layouts else ()
    names = layouts[0].alias_name if layouts else ()
    last = len(matrix) - 1

    def entry_text(entry: MapEntry) -> str:
        if isinstance(entry, tuple):
            return f"({', '.join(map(entry_text, entry))})"
        if entry == WHOLE:
            return "None"
        place = last - entry
        return names[place] if place < len(names) else f"axis {place}"

    rows = [f"({', '.join(map(entry_text, layout.tensor_map))})" for layout in layouts]
    return f"({', '.join(rows)}) over {tuple_text(matrix)}"


def _instead(view: CheckView, finding: CheckFinding) -> list[str]:
    found: list[str] = []
    strategies = view.instead.strategies.get(finding, ())
    layouts = view.instead.layouts.get(finding, ())
    if layouts:
        found.append("in_layout " + ", or ".join(map(layouts_text, layouts)))
    if strategies:
        without = finding.node is not None and finding.node.out_strategy is not None
        end = ", without out_strategy" if without else ""
        found.append("in_strategy " + ", or ".join(map(tuple_text, strategies)) + end)
    if finding.code in _ADVICE:
        found.append(_ADVICE[finding.code])
    if finding.code == DEVICE_LIST:
        soc = view.report.context.soc or "''"
        found.append(
            f"the rule holds on first-generation Ascend 910 only (soc {soc}); if yours is another: "
            "--soc Ascend910B"
        )
    return found

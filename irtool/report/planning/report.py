"""The report of ``irtool plan``: what changes and why, cost before and after, how good it is."""

from __future__ import annotations

import math

from irtool.ir.dump import Dump
from irtool.ir.units import UNKNOWN, bytes_text, plural, seconds_text, share_text, tuple_text
from irtool.operators.call import Strategy
from irtool.planning.cost.costs import CAUSES
from irtool.planning.plans.plan import Plan, PlannedOperator
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Element,
    Explorer,
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
from irtool.report.page.charts import bars
from irtool.report.page.graph.data import graph_data
from irtool.report.page.links import with_node_links
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.places import place_text
from irtool.report.planning.elastic import (
    border_table,
    border_text,
    decision_facts,
    elastic_facts,
    not_kept_table,
    onto_facts,
    points_table,
)
from irtool.report.planning.scaled import candidates_fact, candidates_table, roles_table
from irtool.report.planning.stages import stage_facts, stages_table
from irtool.report.planning.view import PlanView
from irtool.report.text import shortened

USUAL_ROWS = 25
_TEXT = 60
"""Characters of a change at a node of the graph."""

_ROUNDING = 1e-9
"""Part of a step that is nothing but rounding."""


def plan_report(view: PlanView, dump: Dump | None = None) -> Report:
    """The answer, cost by cause, what changes.

    Args:
        view: the plan.
        dump: that of the plan, for a page: then its graph shows what changes.
    """
    plan = view.plan
    elements: list[Element] = [Facts(_facts(view))]
    if view.scaled is not None:
        elements.append(roles_table(view.scaled))
    if view.candidates is not None:
        elements.append(candidates_table(view.candidates))
    if view.elastic is not None:
        elements.append(points_table(view.elastic))
    if view.staged is not None:
        elements.append(stages_table(view.staged))
    elements.append(costs_table(view))
    if any(item.changes for item in plan.operators):
        elements.append(changes_table(view))
    if plan.onto is not None and plan.onto.not_kept:
        elements.append(not_kept_table(plan.onto, view.limit))
    if plan.border is not None:
        elements += [border_table(plan.border), Note(border_text(plan.border))]
    elements += [Note(f"note: {text}") for text in plan.notes]
    had = any(item.before is not None for item in plan.operators)
    if had and plan.before is None and view.staged is None and view.elastic is None:
        text = "MindSpore would refuse the dump's strategies, or they are not complete"
        elements.append(Note(f"note: what they cost before is not known: {text} (`irtool check`)"))
    if dump is not None:
        elements = with_node_links(elements, [item.node for item in plan.operators])
        elements += [_shares_picture(view), _graph(plan, dump)]
    tone: Tone = "good" if plan.report.accepted else "unknown"
    return Report(f"plan: {view.path}", Answer(view_text(view), tone), elements, view.path)


def view_text(view: PlanView) -> str:
    """The answer in one line."""
    staged = view.staged
    if view.elastic is not None:
        return elastic_text(view.plan)
    if staged is None:
        return answer_text(view.plan)
    inside = f"inside of a stage {gap_text(view.plan)}"
    if staged.replanned:
        inside = f"{len(staged.replanned)} of them planned anew to fit into the memory"
    return (
        f"{seconds_text(staged.seconds)} a step in {plural(len(staged.stages), 'stage')}; {inside}"
    )


def elastic_text(plan: Plan) -> str:
    """What ran before ran on other devices: its strategies, fitted to these, are what to beat.

    Args:
        plan: of one stage, for the new devices.
    """
    text = f"{seconds_text(plan.after.seconds)} a step on {plan.context.devices} devices"
    if plan.before is not None:
        text += f", with the old strategies fitted to them {seconds_text(plan.before.seconds)}"
    return text


def answer_text(plan: Plan) -> str:
    """``10.2 ms a step instead of 15.1 ms: 1.48x faster; …``, and how far that is from the best.

    Args:
        plan: of a dump whose own strategies, where it has any, were priced, too.
    """
    after = plan.after.seconds
    text = f"{seconds_text(after)} a step"
    if plan.before is not None:
        before = plan.before.seconds
        if plan.lower_bound is None and before == after:
            text += ", as the dump has it"
        elif plan.lower_bound is None and before <= after:
            text += f" where the dump has {seconds_text(before)}"
        elif before < after * (1 - 1e-9):
            # Not comparable: something that is given, or the memory limit, rules the dump's out.
            text += (
                f" where the dump, which is not within what is given, has {seconds_text(before)}"
            )
        elif before <= after * (1 + 1e-9) and plan.passed_over is not None:
            text += ", as the dump has it"
        elif before <= after * (1 + 1e-9):
            is_best = plan.gap is not None and plan.gap <= _ROUNDING
            text = f"{seconds_text(before)} a step can't be made shorter"
            if not is_best:
                text = (
                    f"{seconds_text(before)} a step, as the dump has it: nothing shorter was found"
                )
        else:
            text += f" instead of {seconds_text(before)}: {before / after:.2f}x faster"
    return f"{text}; {gap_text(plan)}"


def gap_text(plan: Plan) -> str:
    """How far from the best this may be."""
    if plan.gap is None and plan.algorithm == "exact":
        return "how much less it could be is not known"
    if plan.gap is None:
        return f"what MindSpore's {plan.algorithm} search chooses"
    what = "the optimum of the model"
    if any(item.pinned for item in plan.operators):
        what += " under what is given"
    if plan.passed_over is not None:
        what += " among plans that communicate no dearer than the dump"
    return (
        what
        if plan.gap <= _ROUNDING
        else f"at most {share_text(_rounded_up(plan.gap))} above {what}"
    )


def _rounded_up(share: float) -> float:
    """To a tenth of a percent, so that "at most" holds as it is written."""
    return math.ceil(1000 * share) / 1000


def _facts(view: PlanView) -> list[tuple[str, str]]:
    plan = view.plan
    accepted = {True: "accepted", False: "refused", None: "not known in all parts"}
    memory = plan.after.memory
    limit = f" (limit {bytes_text(plan.memory_limit)})" if plan.memory_limit is not None else ""
    of = " of the fullest stage" if view.staged is not None else ""
    changed = sum(item.changes for item in plan.operators)
    facts = [
        *_devices(view),
        ("machine", f"{plan.after.machine.name}; only ratios of times mean something"),
        ("check", accepted[plan.report.accepted]),
        *_bound(view),
        *_overlap(plan),
        ("memory", f"{bytes_text(memory.total)} a device{of}{limit}"),
        ("operators", f"{changed:,} of {len(plan.operators):,} change strategy"),
        ("search", f"{seconds_text(plan.seconds)} CPU, {plural(plan.rounds, 'round')}"),
    ]
    pinned = sum(item.pinned for item in plan.operators)
    pinned -= len(plan.onto.kept) if plan.onto is not None else 0
    if pinned:
        facts.insert(-1, ("pinned", plural(pinned, "operator")))
    if plan.onto is not None:
        facts[-1:-1] = onto_facts(plan.onto)
    if view.candidates is not None:
        facts.insert(-1, ("candidates", candidates_fact(view.candidates)))
    if plan.decisions is not None:
        facts[-1:-1] = decision_facts(plan.decisions)
    return facts


def _bound(view: PlanView) -> list[tuple[str, str]]:
    plan = view.plan
    if plan.lower_bound is None and plan.algorithm == "exact":
        return [("lower bound", "not known: see the note")]
    if plan.lower_bound is None:
        return [("lower bound", f"not known to MindSpore's {plan.algorithm} search")]
    text = seconds_text(plan.lower_bound)
    if view.staged is not None:
        text = f"{text} of work in all stages ({seconds_text(plan.after.seconds)} are planned)"
    return [("lower bound", text)]


def _overlap(plan: Plan) -> list[tuple[str, str]]:
    """What is left of the gain where nothing is hidden, or all that can be."""
    before, after = plan.before, plan.after
    if before is None or before.spent == after.spent:
        return []
    if all(cost.hidden_at_best <= _ROUNDING * cost.spent for cost in (before, after)):
        return []
    gains = [
        (old.spent - part * old.hidden_at_best) - (new.spent - part * new.hidden_at_best)
        for part, old, new in ((0.0, before, after), (1.0, before, after))
    ]
    ends = [f"{seconds_text(cost.spent - cost.hidden_at_best)}" for cost in (after, before)]
    text = f"{ends[0]} instead of {ends[1]} if computing hides all that it can"
    if gains[0] * gains[1] < 0:
        turn = gains[0] / (gains[0] - gains[1])
        text += f"; the gain turns at --overlap {turn:.2f}"
    return [("overlap", text)]


def _devices(view: PlanView) -> list[tuple[str, str]]:
    if view.elastic is not None:
        return elastic_facts(view.elastic)
    if view.staged is not None:
        return stage_facts(view.staged)
    return [("devices", str(view.plan.context.devices))]


def costs_table(view: PlanView) -> Table:
    """Seconds by cause, before and after; and bytes."""
    before, after = view.plan.before, view.plan.after
    rows: list[list[Cell]] = [
        [str(cause), before.shares[cause] if before else UNKNOWN, after.shares[cause]]
        for cause in CAUSES
        if after.shares[cause] or (before and before.shares[cause])
    ]
    if after.hides or (before and before.hides):
        rows.append(["hidden", -before.hides if before else UNKNOWN, -after.hides])
    rows.append(["all", before.seconds if before else UNKNOWN, after.seconds])
    sizes = {
        "received by a device": (
            sum(before.received.values()) if before else None,
            sum(after.received.values()),
        ),
        "memory of a device": (before.memory.total if before else None, after.memory.total),
    }
    for what, (old, new) in sizes.items():
        rows.append([what, Amount(old, "bytes"), Amount(new, "bytes")])
    name = "before" if view.elastic is None else "old ones, fitted"
    columns = [
        text_column("cost"), number_column(name, "seconds"), number_column("after", "seconds"),
    ]  # fmt: skip
    title = "Cost by cause"
    if view.staged is not None:
        title += " (one device of every stage, together)"
    return Table(title, columns, rows)


def changes_table(view: PlanView) -> Table:
    """Operators that change strategy, equal ones of repeated layers together.

    Args:
        view: the plan, and how many rows of it text shows.
    """
    plan = view.plan
    planned = {
        item.node: item.total for item in plan.after.items if item.kind == "operator" and item.node
    }
    old: dict[str, float] = {}
    for item in plan.before.items if plan.before else ():
        if item.kind == "operator" and item.node is not None:
            old[_key(item.node.id, item.node.graph.name if item.node.graph else "")] = item.total
    groups: dict[object, list[PlannedOperator]] = {}
    for item in plan.operators:
        if item.changes:
            key = (item.node.op, item.before, item.after, item.out_after, place_text(item.node))
            groups.setdefault(key, []).append(item)
    rows: list[list[Cell]] = []
    for items in groups.values():
        first = items[0]
        graph = first.node.graph.name if first.node.graph else ""
        rows.append(
            [
                first.node.id + (f" +{len(items) - 1}" if len(items) > 1 else ""),
                first.node.op,
                strategy_text(first.before, first.out_before),
                strategy_text(first.after, first.out_after),
                old.get(_key(first.node.id, graph)),
                planned.get(first.node, 0.0),
                place_text(first.node),
            ]
        )
    columns = [
        text_column("node"), text_column("operator"), text_column("before"), text_column("after"),
        number_column("time before", "seconds", 1), number_column("time after", "seconds", 1),
        text_column("where", 2),
    ]  # fmt: skip
    title = "What changes (times of an operator with its own collectives)"
    most = rows_shown(view.limit, USUAL_ROWS)
    return Table(title, columns, rows, noun="change", most=most)


def _key(node: str, graph: str) -> str:
    return f"{graph} {node}"


def strategy_text(strategy: Strategy | None, out: Strategy | None) -> str:
    """``((8, 1), (1, 1)) -> ((8, 1),)``.

    Args:
        strategy: one tuple a tensor input; None: the operator has none.
        out: of the outputs, where it is set.
    """
    if strategy is None:
        return "none"
    return tuple_text(strategy) + (f" -> {tuple_text(out)}" if out is not None else "")


def _shares_picture(view: PlanView) -> Picture:
    """A step before and after, by cause."""
    plan = view.plan
    before = "before" if view.elastic is None else "old, fitted"
    sides = [(before, plan.before), ("after", plan.after)]
    rows = [
        (name, [cost.shares.get(cause, 0.0) for cause in CAUSES])
        for name, cost in sides
        if cost is not None
    ]
    described = "Time of a step by cause" + (", before and after" if plan.before else "")
    title = "A step" if view.staged is None else "All stages together"
    return Picture(title, bars(rows, "seconds", list(CAUSES)), described)


def _graph(plan: Plan, dump: Dump) -> Explorer:
    changes = {item.node: Mark(None, "changed", _change_text(item))
               for item in plan.operators if item.changes}  # fmt: skip
    pinned = {
        item.node: Mark(None, "info", "pinned")
        for item in plan.operators
        if item.pinned and not item.changes
    }
    overlay = Overlay("plan", "strategies before → after", marks=changes | pinned)
    return Explorer("The plan", graph_data(dump, plan.report, [overlay]))


def _change_text(item: PlannedOperator) -> str:
    before = strategy_text(item.before, item.out_before)
    return shortened(f"{before} → {strategy_text(item.after, item.out_after)}", _TEXT)

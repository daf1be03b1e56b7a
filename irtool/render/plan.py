"""What ``irtool plan`` shows: what changes and why, cost before and after, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass

from irtool.operators.call import Strategy
from irtool.planning.cost.costs import ASSUMPTIONS, CAUSES
from irtool.planning.plans.plan import Plan, PlannedOperator
from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.stages.stages import StagedPlan
from irtool.render.cost import (
    communication_object,
    memory_object,
    place_text,
    seconds_text,
)
from irtool.render.plan_elastic import (
    border_object,
    border_table,
    border_text,
    decision_facts,
    decisions_object,
    elastic_facts,
    elastic_object,
    not_kept_table,
    onto_facts,
    onto_object,
    points_table,
)
from irtool.render.plan_stages import (
    stage_assumptions,
    stage_facts,
    stages_object,
    stages_table,
)
from irtool.render.tables import (
    Document,
    Facts,
    Heading,
    Note,
    Table,
    number_column,
    text_column,
)
from irtool.render.text import bytes_text, plural

SCHEMA = "irtool.plan/1"
USUAL_ROWS = 25


@dataclass(frozen=True, eq=False)
class PlanView:
    """A plan to show; ``limit`` rows of what changes; ``elastic``: what it was chosen from."""

    plan: Plan
    path: str
    limit: int | None = None
    elastic: ElasticPlan | None = None
    staged: StagedPlan | None = None


def plan_document(view: PlanView) -> Document:
    """The answer, cost by cause, what changes."""
    plan = view.plan
    document = Document([Heading(f"{view.path}: {view_text(view)}"), Facts(_facts(view))])
    if view.elastic is not None:
        document.add(points_table(view.elastic))
    if view.staged is not None:
        document.add(stages_table(view.staged))
    document.add(costs_table(view))
    if any(item.changes for item in plan.operators):
        document.add(changes_table(view))
    if plan.onto is not None and (table := not_kept_table(plan.onto, view.limit)) is not None:
        document.add(table)
    if plan.border is not None:
        document.add(border_table(plan.border), Note(border_text(plan.border)))
    document.add(*(Note(f"note: {text}") for text in plan.notes))
    had = any(item.before is not None for item in plan.operators)
    if had and plan.before is None and view.staged is None and view.elastic is None:
        text = "MindSpore would refuse the dump's strategies, or they are not complete"
        document.add(Note(f"note: what they cost before is not known: {text} (`irtool check`)"))
    document.add(*(Note(f"assumed: {text}") for text in assumed(view)))
    return document


def assumed(view: PlanView) -> list[str]:
    """What the model takes for granted."""
    found = list(ASSUMPTIONS) if view.staged is None else stage_assumptions()
    decisions = view.plan.decisions
    if decisions is None or not decisions.recomputed:
        return found
    return [text.replace("none is recomputed", "but for what is recomputed") for text in found]


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
    """What ran before ran on other devices: its strategies, fitted to these, are what to beat."""
    text = f"{seconds_text(plan.after.seconds)} a step on {plan.context.devices} devices"
    if plan.before is not None:
        text += f", with the old strategies fitted to them {seconds_text(plan.before.seconds)}"
    return text


def answer_text(plan: Plan) -> str:
    """``10.2 ms a step instead of 15.1 ms (1.48 times): optimal under the model``."""
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
            text = f"{seconds_text(before)} a step can't be made shorter"
        else:
            text += f" instead of {seconds_text(before)}: {before / after:.2f} times shorter"
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
    return what if plan.gap <= 1e-9 else f"at most {100 * plan.gap:.2f} % above {what}"


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
        ("memory", f"{bytes_text(memory.total)} a device{of}{limit}"),
        ("operators", f"{changed:,} of {len(plan.operators):,} get another strategy"),
        ("search", f"{plan.seconds:.2f} s CPU, {plural(plan.rounds, 'round')}"),
    ]
    pinned = sum(item.pinned for item in plan.operators)
    pinned -= len(plan.onto.kept) if plan.onto is not None else 0
    if pinned:
        facts.insert(-1, ("pinned", plural(pinned, "operator")))
    if plan.onto is not None:
        facts[-1:-1] = onto_facts(plan.onto)
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


def _devices(view: PlanView) -> list[tuple[str, str]]:
    if view.elastic is not None:
        return elastic_facts(view.elastic)
    if view.staged is not None:
        return stage_facts(view.staged)
    return [("devices", str(view.plan.context.devices))]


def costs_table(view: PlanView) -> Table:
    """Seconds by cause, before and after; and bytes."""
    before, after = view.plan.before, view.plan.after
    rows: list[list[str | int | None]] = [
        [
            cause,
            seconds_text(before.shares[cause]) if before else "?",
            seconds_text(after.shares[cause]),
        ]
        for cause in CAUSES
        if after.shares[cause] or (before and before.shares[cause])
    ]
    rows.append(
        ["all", seconds_text(before.seconds) if before else "?", seconds_text(after.seconds)]
    )
    rows.append(
        [
            "received by a device",
            bytes_text(sum(before.received.values())) if before else "?",
            bytes_text(sum(after.received.values())),
        ]
    )
    rows.append(
        [
            "memory of a device",
            bytes_text(before.memory.total) if before else "?",
            bytes_text(after.memory.total),
        ]
    )
    name = "before" if view.elastic is None else "old ones, fitted"
    columns = [text_column("cost"), number_column(name), number_column("after")]
    title = "Cost by cause"
    if view.staged is not None:
        title += " (one device of every stage, together)"
    return Table(title, columns, rows)


def changes_table(view: PlanView) -> Table:
    """Operators that get another strategy, equal ones of repeated layers together."""
    plan = view.plan
    costs = {
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
    rows: list[list[str | int | None]] = []
    for items in groups.values():
        first = items[0]
        graph = first.node.graph.name if first.node.graph else ""
        before = old.get(_key(first.node.id, graph))
        rows.append(
            [
                first.node.id + (f" +{len(items) - 1}" if len(items) > 1 else ""),
                first.node.op,
                strategy_text(first.before, first.out_before),
                strategy_text(first.after, first.out_after),
                seconds_text(before) if before is not None else "",
                seconds_text(costs.get(first.node, 0.0)),
                place_text(first.node),
            ]
        )
    shown = len(rows) if view.limit == 0 else view.limit or USUAL_ROWS
    columns = [
        text_column("node"), text_column("operator"), text_column("before"), text_column("after"),
        number_column("alone"), number_column("then"), text_column("where"),
    ]  # fmt: skip
    left = max(0, len(rows) - shown)
    return Table("What changes (time of the operator with its own collectives)", columns,
                 rows[:shown], left, "change")  # fmt: skip


def _key(node: str, graph: str) -> str:
    return f"{graph} {node}"


def strategy_text(strategy: Strategy | None, out: Strategy | None) -> str:
    """``((8, 1), (1, 1)) -> ((8, 1),)``."""
    if strategy is None:
        return "none"
    text = repr(strategy).replace(",)", ")") if len(strategy) > 1 else repr(strategy)
    return text + (f" -> {out!r}" if out is not None else "")


def plan_object(view: PlanView) -> dict[str, object]:
    """The JSON object."""
    plan = view.plan
    return {
        "schema": SCHEMA,
        "path": view.path,
        "algorithm": plan.algorithm,
        "devices": plan.context.devices,
        "accepted": plan.report.accepted,
        "machine": plan.after.machine.name,
        "cost": {
            "before": plan.before.seconds if plan.before else None,
            "after": plan.after.seconds,
            "lower_bound": plan.lower_bound,
            "passed_over": plan.passed_over.seconds if plan.passed_over is not None else None,
            "unit": "seconds a step",
            "hidden": {
                "before": plan.before.hidden_at_best if plan.before else None,
                "after": plan.after.hidden_at_best,
            },
        },
        "shares": {
            "before": dict(plan.before.shares) if plan.before else None,
            "after": dict(plan.after.shares),
        },
        "communication": communication_object(plan.after),
        "memory_bytes": memory_object(plan.after),
        "memory_limit": plan.memory_limit,
        "seconds": plan.seconds,
        "rounds": plan.rounds,
        "operators": [
            {
                "node": item.node.id,
                "op": item.node.op,
                "line": item.node.line,
                "before": item.before,
                "after": item.after,
                "out_before": item.out_before,
                "out_after": item.out_after,
                "pinned": item.pinned,
                "why": item.why,
            }
            for item in plan.operators
        ],
        "elastic": elastic_object(view.elastic) if view.elastic is not None else None,
        "pipeline": stages_object(view.staged) if view.staged is not None else None,
        "onto": onto_object(plan.onto) if plan.onto is not None else None,
        "border": border_object(plan.border) if plan.border is not None else None,
        "decisions": decisions_object(plan.decisions) if plan.decisions is not None else None,
        "notes": list(plan.notes),
        "assumptions": assumed(view),
    }

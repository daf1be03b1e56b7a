"""What ``irtool cost`` shows: shares of a step, the dearest operators and edges, what to pull."""

from __future__ import annotations

from dataclasses import dataclass

from irtool.cluster.schedule import ideal_bubble, share_of_wall
from irtool.ir.node import Node
from irtool.planning.cost.costs import ASSUMPTIONS, seconds_of
from irtool.planning.plans.cost_axes import axis_costs
from irtool.planning.plans.cost_items import CostItem
from irtool.planning.plans.cost_report import StepCost, without_strategy
from irtool.render.comm_fuse import hideable_object
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
from irtool.sharding.network.report import Report

SCHEMA = "irtool.cost/1"
USUAL_ROWS = 10
_UNKNOWN = 5

LEVERS = {
    "compute": "plan: split it where devices repeat it",
    "operator collectives": "plan: split another dimension, or scatter the sum",
    "redistribution": "plan: one layout on both sides",
    "gradients": "plan: split the weight; comm fuse: fewer, larger sums",
    "optimizer parallel": "comm fuse, or share states among fewer devices",
    "optimizer": "optimizer parallel: each device updates a part",
}


@dataclass(frozen=True, eq=False)
class CostView:
    """A step's cost, and the report that it was made from.

    ``stages``: the cost of each stage of a pipeline, the slowest first; ``cost`` is that one's.
    """

    cost: StepCost
    report: Report
    path: str
    limit: int | None = None
    stages: tuple[tuple[int, StepCost], ...] = ()

    @property
    def stage(self) -> int | None:
        """Whose cost it is, where it is that of one of several stages."""
        return self.stages[0][0] if self.stages else None


def seconds_text(seconds: float) -> str:
    """``1.25 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def share_text(part: float, whole: float) -> str:
    """``37.5 %``."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else "?"


def place_text(node: Node | None) -> str:
    """Where a node comes from: the line of Python, or that of the dump."""
    if node is None:
        return ""
    location = node.location
    if location is None:
        return f"line {node.line} of the dump"
    code = (location.source or "").strip().strip("/").strip()
    return f"{location.path}:{location.line}" + (f": {code}" if code else "")


def lever_of(item: CostItem) -> str:
    """What would make an item cheaper."""
    cause = max(item.seconds, key=lambda each: item.seconds[each])
    return LEVERS[cause]


def cost_document(view: CostView) -> Document:
    """The answer, shares, and the dearest parts."""
    cost = view.cost
    title = view.path if view.stage is None else f"{view.path}, stage {view.stage}"
    document = Document([Heading(f"{title}: {answer_text(view)}"), Facts(_facts(view))])
    if view.stages:
        document.add(stages_table(view))
    tables = (shares_table(cost), axes_table(cost), links_table(cost), dearest_table(view))
    document.add(*(table for table in tables if table.rows))
    document.add(*(Note(f"not priced: {text}") for text in cost.unknown[:_UNKNOWN]))
    if len(cost.unknown) > _UNKNOWN:
        document.add(Note(f"not priced: {len(cost.unknown) - _UNKNOWN:,} more (--format json)"))
    document.add(*(Note(f"assumed: {text}") for text in assumed(view)))
    return document


def assumed(view: CostView) -> list[str]:
    """What the figures take for granted."""
    count = without_strategy(view.report)
    found = [*ASSUMPTIONS, *_of_machine(view.cost)]
    if count:
        what = f"{plural(count, 'operator')} without a strategy"
        found.insert(0, f"{what}: as MindSpore makes them where nothing is searched")
    return found


def _of_machine(cost: StepCost) -> list[str]:
    return [f"{cost.machine.name}: {text}" for text in cost.machine.sources]


def answer_text(view: CostView) -> str:
    """``a step takes 12.3 ms: 60 % compute, …``."""
    cost = view.cost
    what = "a step" if cost.differentiates else "a forward pass (the dump takes no gradient)"
    shares = sorted(cost.shares.items(), key=lambda each: -each[1])
    named = ", ".join(
        f"{share_text(seconds, cost.seconds)} {cause}" for cause, seconds in shares[:3] if seconds
    )
    least = "at least " if cost.unknown else ""
    text = f"{what} of {least}{seconds_text(cost.seconds)}: {named}"
    if not cost.seconds:
        text = "nothing here can be priced"
    if view.report.accepted is False:
        return f"MindSpore would refuse these strategies; {text}"
    return text


def _facts(view: CostView) -> list[tuple[str, str]]:
    cost, memory = view.cost, view.cost.memory
    facts = [
        ("devices", f"{view.report.devices}, seen from rank {view.report.context.rank}"),
        ("machine", f"{cost.machine.name}; only ratios of times mean something"),
        (
            "memory",
            f"{bytes_text(memory.total)} a device: {bytes_text(memory.weights)} weights, "
            f"{bytes_text(memory.gradients)} gradients, {bytes_text(memory.states)} states, "
            f"{bytes_text(memory.activations)} results kept",
        ),
    ]
    if cost.operations:
        facts.append(("arithmetic", f"{count_text(cost.operations)}FLOP a device and step"))
    communicated = seconds_of(cost.communications)
    if communicated:
        facts.append(("communication", _hidden_text(cost, communicated)))
    if cost.recompute_seconds:
        more = seconds_text(cost.recompute_seconds)
        facts.append(("recomputation", f"{more} more, of what the network marks for it"))
    stages = view.report.context.stages
    if stages > 1:
        facts.append(("pipeline", pipeline_text(stages)))
    return facts


def _hidden_text(cost: StepCost, communicated: float) -> str:
    """How long devices communicate, and how much of that computing can hide."""
    text = f"{seconds_text(communicated)} if nothing is hidden"
    sums, gathers = cost.overlaps
    if not sums.hideable + gathers.hideable:
        return text
    hidden = cost.hidden_at_best
    text += f"; {seconds_text(communicated - hidden)} if "
    what = "gradient sums hide behind the backward pass"
    if gathers.hideable:
        what += " and gathers of weights behind what comes before them"
    return f"{text}{what}, fused as they are (comm fuse: better)"


def pipeline_text(stages: int) -> str:
    """The bubble of the usual schedules, by micro-batches."""
    shares = ", ".join(
        f"{100 * share_of_wall(ideal_bubble(stages, count)):.0f} % with {count}"
        for count in (stages, 4 * stages)
    )
    return f"1 of {stages} stages; idle at least {shares} micro-batches (irtool pipeline says more)"


def count_text(number: float) -> str:
    """``1.25 T``."""
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f} "


def shares_table(cost: StepCost) -> Table:
    """Seconds by cause."""
    rows = [
        [cause, seconds_text(seconds), share_text(seconds, cost.seconds), LEVERS[cause]]
        for cause, seconds in cost.shares.items()
        if seconds
    ]
    columns = [
        text_column("cause"), number_column("time"), number_column("share"), text_column("lever"),
    ]  # fmt: skip
    return Table("Where a step goes", columns, rows)


def stages_table(view: CostView) -> Table:
    """The stages of a pipeline, the slowest first."""
    rows = [
        [
            stage,
            seconds_text(cost.seconds),
            share_text(cost.shares["compute"], cost.seconds),
            bytes_text(cost.memory.total),
        ]
        for stage, cost in view.stages
    ]
    columns = [
        number_column("stage"), number_column("time"), number_column("compute"),
        number_column("memory"),
    ]  # fmt: skip
    return Table("Stages, the slowest first", columns, rows)


def axes_table(cost: StepCost) -> Table:
    """Communication by axis of parallelism."""
    rows = [
        [
            each.axis,
            each.count,
            seconds_text(each.seconds),
            share_text(each.seconds, cost.seconds),
            bytes_text(each.received),
        ]
        for each in axis_costs(cost)
    ]
    columns = [
        text_column("axis"), number_column("count"), number_column("time"),
        number_column("share"), number_column("a device receives"),
    ]  # fmt: skip
    return Table("Communication by axis", columns, rows)


def links_table(cost: StepCost) -> Table:
    """Communication by collective and phase."""
    rows = [
        [*key, each.count, seconds_text(each.seconds), bytes_text(each.received)]
        for key, each in cost.by_kind.items()
    ]
    columns = [
        text_column("collective"), text_column("phase"), text_column("links"),
        number_column("count"), number_column("time"), number_column("a device receives"),
    ]  # fmt: skip
    return Table("Communication", columns, rows)


def dearest_table(view: CostView) -> Table:
    """The operators, edges and weights that take longest."""
    cost = view.cost
    count = len(cost.items) if view.limit == 0 else view.limit or USUAL_ROWS
    rows = [
        [
            item.node.id if item.node else "",
            f"{item.kind} {item.name}",
            seconds_text(item.total),
            share_text(item.total, cost.seconds),
            bytes_text(item.received),
            place_text(item.node),
            lever_of(item),
        ]
        for item in cost.dearest(count)
    ]
    columns = [
        text_column("node"), text_column("what"), number_column("time"), number_column("share"),
        number_column("received"), text_column("where"), text_column("lever"),
    ]  # fmt: skip
    left = max(0, len(cost.items) - count)
    return Table(f"Dearest {plural(len(rows), 'part')}", columns, rows, left, "part")


def cost_object(view: CostView) -> dict[str, object]:
    """The JSON object."""
    cost = view.cost
    return {
        "schema": SCHEMA,
        "path": view.path,
        "stage": view.stage,
        "algorithm": None,
        "devices": view.report.devices,
        "accepted": view.report.accepted,
        "machine": cost.machine.name,
        "cost": {
            "before": cost.seconds or None,
            "after": None,
            "lower_bound": None,
            "unit": "seconds a step",
            "hidden": {"before": cost.hidden_at_best if cost.seconds else None, "after": None},
        },
        "shares": dict(cost.shares),
        "links": cost.by_link,
        "axes": {each.axis: each.seconds for each in axis_costs(cost)},
        "hidden_at_best": cost.hidden_at_best,
        "hideable": hideable_object(*cost.overlaps),
        "flop": cost.operations,
        "recompute_seconds": cost.recompute_seconds,
        "stages": [
            {"stage": stage, "seconds": each.seconds, "shares": dict(each.shares)}
            for stage, each in view.stages
        ],
        "communication": communication_object(cost),
        "memory_bytes": memory_object(cost),
        "operators": [item_object(item) for item in cost.items if item.kind == "operator"],
        "edges": [item_object(item) for item in cost.items if item.kind == "edge"],
        "weights": [item_object(item) for item in cost.items if item.kind == "weight"],
        "unknown": list(cost.unknown),
        "assumptions": assumed(view),
    }


def communication_object(cost: StepCost) -> list[dict[str, object]]:
    """Bytes that a device receives, by collective and phase."""
    return [
        {"op": op, "phase": phase, "received_bytes": received}
        for (op, phase), received in sorted(cost.received.items())
    ]


def memory_object(cost: StepCost) -> dict[str, int]:
    """Bytes of a device by cause."""
    memory = cost.memory
    return {
        "weights": memory.weights,
        "gradients": memory.gradients,
        "states": memory.states,
        "activations": memory.activations,
        "total": memory.total,
    }


def item_object(item: CostItem) -> dict[str, object]:
    """One operator, edge or weight."""
    node = item.node
    return {
        "node": node.id if node else None,
        "op": item.name,
        "line": node.line if node else None,
        "from": item.producer.id if item.producer else None,
        "strategy": item.strategy,
        "seconds": dict(item.seconds),
        "received_bytes": item.received,
        "where": place_text(node),
        "lever": lever_of(item),
    }

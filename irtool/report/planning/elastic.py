"""What ``irtool plan`` shows of other devices, of an old plan, and of a region's border."""

from __future__ import annotations

from math import isinf

from irtool.ir.units import (
    bandwidth_text,
    bytes_text,
    numbered_text,
    plural,
    seconds_text,
)
from irtool.planning.plans.border import Border, Share
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.onto import Onto
from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.recovery.elastic.target import Point
from irtool.planning.recovery.elastic.transition import COMPILE_SECONDS
from irtool.report.model import Amount, Cell, Table, number_column, rows_shown, text_column
from irtool.report.places import place_text

_MOST_NOT_KEPT = 15


def elastic_facts(plan: ElasticPlan) -> list[tuple[str, str]]:
    """Which devices, and what the choice was made by.

    Args:
        plan: for other devices than the old plan ran on.
    """
    facts: list[tuple[str, str]] = []
    if plan.lost:
        facts.append(("lost", numbered_text("rank", plan.lost)))
    point = plan.point
    facts.append(("devices", f"{point.devices}: {plan.why}"))
    more = plan.best_with_more
    if more is not None:
        facts.append(("not more", _against(plan, more)))
    near = ", ".join(map(str, plan.legal[:6])) + (", …" if len(plan.legal) > 6 else "")
    facts.append(("legal", near))
    paid = f"bytes at {bandwidth_text(plan.bandwidth)}, {seconds_text(COMPILE_SECONDS)} an operator"
    facts.append(("chosen for", f"{horizon_text(plan.horizon)} (--horizon): {paid}"))
    return facts


def _against(plan: ElasticPlan, other: Point) -> str:
    """Why a plan with more devices was not chosen."""
    if isinf(plan.horizon):
        mine, theirs = plan.point.seconds, other.seconds
        return f"a step takes {seconds_text(mine)}; with {other.devices} {seconds_text(theirs)}"
    mine, theirs = (_all_seconds(plan, point) for point in (plan.point, other))
    return (
        f"{horizon_text(plan.horizon)} and the way there take {seconds_text(mine)}; with "
        f"{other.devices} devices {seconds_text(theirs)}"
    )


def _all_seconds(plan: ElasticPlan, point: Point) -> float:
    """Of the horizon's steps, and until they begin."""
    return point.seconds_over(plan.horizon, plan.bandwidth) * plan.horizon


def points_table(plan: ElasticPlan) -> Table:
    """What there was to choose from.

    Args:
        plan: for other devices; each of its points is a row, with seconds and bytes before the
            first step and in which horizon it is the cheapest.
    """
    endless = isinf(plan.horizon)
    rows: list[list[Cell]] = []
    for place, (point, best) in enumerate(zip(plan.points, plan.best_over, strict=True)):
        rows.append(
            [
                "chosen" if place == plan.chosen else "",
                point.devices,
                point.seconds,
                int(point.fetched_per_device),
                point.fetched_bytes,
                point.recompiled,
                point.changed,
                point.seconds_before(plan.bandwidth),
                *([] if endless else [_all_seconds(plan, point)]),
                _range_text(best),
            ]
        )
    columns = [
        text_column("plan"), number_column("devices"), number_column("a step", "seconds"),
        number_column("fetched by a device", "bytes", 1), number_column("by all", "bytes", 3),
        number_column("slices change", rank=2), number_column("strategies change", rank=2),
        number_column("start-up", "seconds"),
        *([] if endless else [number_column(f"with {horizon_text(plan.horizon)}", "seconds")]),
        text_column("cheapest for"),
    ]  # fmt: skip
    title = "A faster step against bytes to move and operators (whose slices change) to compile"
    return Table(title, columns, rows)


def _range_text(horizons: tuple[float, float] | None) -> str:
    """``120 to 3,400 steps``."""
    if horizons is None:
        return "no number of steps"
    least, most = horizons
    if isinf(most):
        return f"{least:,.0f} steps and more" if least > 1 else "any number of steps"
    return f"{least:,.0f} to {most:,.0f} steps"


def horizon_text(horizon: float) -> str:
    """How long the new plan is to run: ``10,000 steps``.

    Args:
        horizon: steps; infinity is written as endless.
    """
    if isinf(horizon):
        return "endless steps"
    return f"{horizon:,.0f} step{'s' if horizon != 1 else ''}"


# -- decisions beside strategies -----------------------------------------------------------------


def decision_facts(decisions: Decisions) -> list[tuple[str, str]]:
    """Optimizer parallel and recomputation.

    Args:
        decisions: which weights are cut and which operators run again, where the plan decides that.

    Returns:
        a fact for each of the two that was decided.
    """
    facts: list[tuple[str, str]] = []
    if decisions.sharded is not None:
        text = f"{plural(len(decisions.sharded), 'weight')} cut over replicas"
        if decisions.sharded and decisions.unsharded:
            text += f", parallel_optimizer=False on {len(decisions.unsharded):,} others"
        facts.append(("optimizer", text))
    if decisions.recomputed is not None:
        text = f"{plural(len(decisions.recomputed), 'operator')} run again"
        if decisions.recomputed:
            text += (
                f": {seconds_text(decisions.seconds)} more, {bytes_text(decisions.saved)} of "
                f"results not kept, {bytes_text(decisions.held)} of them at a time"
            )
        facts.append(("recompute", text))
    return facts


# -- onto an old plan ----------------------------------------------------------------------------


def onto_facts(onto: Onto) -> list[tuple[str, str]]:
    """What was kept, added, removed.

    Args:
        onto: how an old plan was taken over.
    """
    return [
        (
            "old plan",
            f"{plural(len(onto.kept), 'operator')} kept, {len(onto.added):,} added, "
            f"{len(onto.not_kept):,} not kept, {onto.removed:,} gone",
        )
    ]


def not_kept_table(onto: Onto, limit: int | None) -> Table:
    """Operators that both have, planned anew.

    Args:
        onto: how an old plan was taken over.
        limit: rows that text shows: None the usual number, 0 all.
    """
    rows = [[item.node.id, item.node.op, item.why, place_text(item.node)] for item in onto.not_kept]
    columns = [
        text_column("node"), text_column("operator"), text_column("why"), text_column("where", 1),
    ]  # fmt: skip
    most = rows_shown(limit, _MOST_NOT_KEPT)
    return Table("Not kept of the old plan", columns, rows, noun="operator", most=most)


# -- a region's border ---------------------------------------------------------------------------


def border_table(border: Border) -> Table:
    """A region's plan against one of everything.

    Args:
        border: seconds of a step, with the rest frozen and with all planned.
    """
    columns = [
        text_column("region"), number_column("rest frozen", "seconds"),
        number_column("all planned", "seconds"),
    ]  # fmt: skip
    frozen, free = border.frozen, border.free
    rows: list[list[Cell]] = [
        ["inside", frozen.inside, free.inside],
        ["edges across its border", _edges(frozen), _edges(free)],
        ["whole step", frozen.total, free.total],
    ]
    return Table("What the frozen border costs", columns, rows)


def _edges(share: Share) -> Amount:
    return Amount(share.border, "seconds", f"{seconds_text(share.border)} ({share.edges})")


def border_text(border: Border) -> str:
    """What the frozen border costs, in one sentence.

    Args:
        border: seconds of a step, with the rest frozen and with all planned.
    """
    return (
        f"the frozen border {_costs(border.seconds)} the region {_size(border.seconds)}; not "
        f"planning the rest {_costs(border.step_seconds)} {_size(border.step_seconds)} a step"
    )


def _costs(seconds: float) -> str:
    return "costs" if seconds >= 0 else "saves"


def _size(seconds: float) -> str:
    return seconds_text(abs(seconds))

"""What ``irtool plan`` shows of other devices, of an old plan, and of a region's border."""

from __future__ import annotations

from math import isinf

from irtool.planning.plans.border import Border, Share
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.onto import Onto
from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.recovery.elastic_target import Point
from irtool.planning.recovery.elastic_way import COMPILE_SECONDS
from irtool.render.cost import place_text, seconds_text
from irtool.render.tables import Table, number_column, text_column
from irtool.render.text import bytes_text, plural, ranks_text

_MOST_NOT_KEPT = 15


def elastic_facts(found: ElasticPlan) -> list[tuple[str, str]]:
    """Which devices, and what the choice was made by."""
    facts: list[tuple[str, str]] = []
    if found.lost:
        facts.append(("lost ranks", ranks_text(found.lost)))
    point = found.point
    facts.append(("devices", f"{point.devices}: {found.why}"))
    more = found.best_with_more
    if more is not None:
        facts.append(("not more", _against(found, more)))
    near = ", ".join(map(str, found.legal[:6])) + (", …" if len(found.legal) > 6 else "")
    facts.append(("legal", near))
    paid = f"bytes at {found.bandwidth / 1e9:.0f} GB/s, {1e3 * COMPILE_SECONDS:.0f} ms an operator"
    facts.append(("chosen for", f"{horizon_text(found.horizon)} (--horizon): {paid}"))
    return facts


def _against(found: ElasticPlan, other: Point) -> str:
    """Why a plan with more devices was not chosen."""
    if isinf(found.horizon):
        mine, theirs = found.point.seconds, other.seconds
        return f"a step takes {seconds_text(mine)}; with {other.devices} {seconds_text(theirs)}"
    mine, theirs = (_all_seconds(found, each) for each in (found.point, other))
    return (
        f"{horizon_text(found.horizon)} and the way there take {seconds_text(mine)}; with "
        f"{other.devices} devices {seconds_text(theirs)}"
    )


def _all_seconds(found: ElasticPlan, point: Point) -> float:
    """Of the horizon's steps, and until they begin."""
    return point.seconds_over(found.horizon, found.bandwidth) * found.horizon


def points_table(found: ElasticPlan) -> Table:
    """What there was to choose from."""
    endless = isinf(found.horizon)
    rows: list[list[str | int | None]] = []
    for at, (point, best) in enumerate(zip(found.points, found.best_over, strict=True)):
        whole = [] if endless else [seconds_text(_all_seconds(found, point))]
        rows.append(
            [
                "chosen" if at == found.chosen else "",
                point.devices,
                seconds_text(point.seconds),
                bytes_text(int(point.fetched_per_device)),
                bytes_text(point.fetched_bytes),
                point.recompiled,
                point.changed,
                seconds_text(point.seconds_before(found.bandwidth)),
                *whole,
                _range_text(best),
            ]
        )
    columns = [
        text_column(""), number_column("devices"), number_column("a step"),
        number_column("fetched by a device"), number_column("by all"),
        number_column("slices change"), number_column("forms change"),
        number_column("until it runs"),
        *([] if endless else [number_column(f"with {horizon_text(found.horizon)}")]),
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
    """``10,000 steps``."""
    if isinf(horizon):
        return "endless steps"
    return f"{horizon:,.0f} step{'s' if horizon != 1 else ''}"


def elastic_object(found: ElasticPlan) -> dict[str, object]:
    """The JSON object."""
    return {
        "lost": list(found.lost),
        "devices": list(found.devices),
        "legal": list(found.legal),
        "why": found.why,
        "horizon": None if isinf(found.horizon) else found.horizon,
        "bandwidth": found.bandwidth,
        "compile_seconds": COMPILE_SECONDS,
        "operators": found.operators,
        "chosen": found.chosen,
        "points": [
            {
                "devices": point.devices,
                "seconds": point.seconds,
                "fetched_bytes": point.fetched_bytes,
                "slices_changed": point.recompiled,
                "strategies_changed": point.changed,
                "seconds_before": point.seconds_before(found.bandwidth),
                "horizon": None if isinf(point.horizon) else point.horizon,
                "cheapest_for": None if best is None else [best[0], _finite(best[1])],
            }
            for point, best in zip(found.points, found.best_over, strict=True)
        ],
    }


def _finite(number: float) -> float | None:
    return None if isinf(number) else number


# -- decisions beside strategies -----------------------------------------------------------------


def decision_facts(found: Decisions) -> list[tuple[str, str]]:
    """Optimizer parallel and recomputation."""
    facts: list[tuple[str, str]] = []
    if found.sharded is not None:
        text = f"{plural(len(found.sharded), 'weight')} cut over replicas"
        if found.sharded and found.whole:
            text += f", parallel_optimizer=False on {len(found.whole):,} others"
        facts.append(("optimizer", text))
    if found.recomputed is not None:
        text = f"{plural(len(found.recomputed), 'operator')} run again"
        if found.recomputed:
            text += (
                f": {seconds_text(found.seconds)} more, {bytes_text(found.saved)} of results not "
                f"kept, {bytes_text(found.held)} of them at a time"
            )
        facts.append(("recompute", text))
    return facts


def decisions_object(found: Decisions) -> dict[str, object]:
    """The JSON object."""
    again = None if found.recomputed is None else [node.id for node in found.recomputed]
    return {
        "sharded": None if found.sharded is None else list(found.sharded),
        "whole": list(found.whole),
        "recomputed": again,
        "recompute_seconds": found.seconds,
        "saved_bytes": found.saved,
        "held_bytes": found.held,
    }


# -- onto an old plan ----------------------------------------------------------------------------


def onto_facts(found: Onto) -> list[tuple[str, str]]:
    """What was kept, added, removed."""
    return [
        (
            "old plan",
            f"{plural(len(found.kept), 'operator')} kept, {len(found.added):,} added, "
            f"{len(found.not_kept):,} not kept, {found.removed:,} gone",
        )
    ]


def not_kept_table(found: Onto, limit: int | None) -> Table | None:
    """Operators that both have, planned anew."""
    if not found.not_kept:
        return None
    shown = len(found.not_kept) if limit == 0 else limit or _MOST_NOT_KEPT
    rows: list[list[str | int | None]] = [
        [item.node.id, item.node.op, item.why, place_text(item.node)]
        for item in found.not_kept[:shown]
    ]
    columns = [text_column(each) for each in ("node", "operator", "why", "where")]
    left = max(0, len(found.not_kept) - shown)
    return Table("Not kept of the old plan", columns, rows, left, "operator")


def onto_object(found: Onto) -> dict[str, object]:
    """The JSON object."""
    return {
        "kept": [node.id for node in found.kept],
        "added": [node.id for node in found.added],
        "not_kept": [
            {"node": item.node.id, "op": item.node.op, "why": item.why} for item in found.not_kept
        ],
        "removed": found.removed,
    }


# -- a region's border ---------------------------------------------------------------------------


def border_table(border: Border) -> Table:
    """A region's plan against one of everything."""
    columns = [text_column("region"), number_column("rest frozen"), number_column("all planned")]
    frozen, free = border.frozen, border.free
    rows: list[list[str | int | None]] = [
        ["inside", seconds_text(frozen.inside), seconds_text(free.inside)],
        [
            "edges across its border",
            f"{seconds_text(frozen.border)} ({frozen.edges})",
            f"{seconds_text(free.border)} ({free.edges})",
        ],
        ["whole step", seconds_text(frozen.whole), seconds_text(free.whole)],
    ]
    return Table("What the frozen border costs", columns, rows)


def border_text(border: Border) -> str:
    """In one sentence."""
    return (
        f"the frozen border {_costs(border.seconds)} the region {_size(border.seconds)}; not "
        f"planning the rest {_costs(border.step_seconds)} {_size(border.step_seconds)} a step"
    )


def _costs(seconds: float) -> str:
    return "costs" if seconds >= 0 else "saves"


def _size(seconds: float) -> str:
    return seconds_text(abs(seconds))


def border_object(border: Border) -> dict[str, object]:
    """The JSON object."""
    return {
        "operators": border.operators,
        "seconds": border.seconds,
        "step_seconds": border.step_seconds,
        "frozen": _share(border.frozen),
        "free": _share(border.free),
    }


def _share(share: Share) -> dict[str, object]:
    return {
        "inside": share.inside,
        "border": share.border,
        "edges": share.edges,
        "whole": share.whole,
    }

"""The tables of ``irtool recover``."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import bytes_text, ranks_text, seconds_text, tuple_text
from irtool.planning.recovery.groups import GroupChanges
from irtool.planning.recovery.growth import Growth
from irtool.planning.recovery.recover import Way
from irtool.planning.recovery.replan import Replan
from irtool.planning.recovery.reshard import Resharding
from irtool.planning.recovery.survival import SurvivingSlice, WeakPoint
from irtool.planning.recovery.times import RecoveryTime
from irtool.report.model import Cell, Table, number_column, text_column
from irtool.report.recovery_view import RecoveryView

Rows = list[list[Cell]]


def weak_table(view: RecoveryView, points: Sequence[WeakPoint], what: str) -> Table:
    """The smallest losses that peers cannot repair."""
    size = len(points[0].units) if points else 0
    title = f"Smallest sets of {what} whose loss no peer can repair: {size} at once"
    shown = view.shown(len(points))
    columns = (text_column(what), number_column("parameters"), text_column("for example"))
    rows: Rows = [
        [ranks_text(point.units), len(point.parameters), point.parameters[0]]
        for point in points[:shown]
    ]
    return Table(title, columns, rows, max(0, len(points) - shown), "set")


def groups_table(view: RecoveryView) -> Table:
    """Groups that hold a lost rank."""
    broken = view.recovery.broken
    shown = view.shown(len(broken))
    columns = (
        text_column("ranks"), number_column("size"), text_column("group"), text_column("used by"),
        text_column(""),
    )  # fmt: skip
    rows: Rows = [
        [
            ranks_text(group.ranks),
            len(group.ranks),
            group.name,
            ", ".join(f"{count} {op}" for op, count in group.operators.items()),
            "by shifting" if group.extrapolated else "",
        ]
        for group in broken[:shown]
    ]
    left_out = max(0, len(broken) - shown)
    return Table("Groups to build anew", columns, rows, left_out, "group")


def group_changes_table(view: RecoveryView, changes: GroupChanges) -> Table:
    """Groups that only one of the plans has."""
    groups = [
        *((group, "new") for group in changes.added),
        *((group, "no longer there") for group in changes.removed),
    ]
    shown = view.shown(len(groups))
    columns = (text_column("ranks"), number_column("size"), text_column("group"), text_column(""))
    rows: Rows = [
        [ranks_text(group.ranks), len(group.ranks), group.name, what]
        for group, what in groups[:shown]
    ]
    title = "Groups that change (as predicted for both plans)"
    return Table(title, columns, rows, max(0, len(groups) - shown), "group")


def survivors_table(view: RecoveryView) -> Table:
    """What lost ranks held, and who still holds it: one row for the same holders."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[SurvivingSlice]] = {}
    for each in view.recovery.surviving:
        found.setdefault((each.lost, each.survivors), []).append(each)
    shown = view.shown(len(found))
    columns = (
        text_column("lost with"), text_column("survives on"), number_column("parameters"),
        number_column("bytes"), text_column("for example"),
    )  # fmt: skip
    rows: Rows = [
        [
            ranks_text(lost),
            ranks_text(survivors),
            len(slices),
            bytes_text(sum(each.bytes for each in slices)),
            slices[0].parameter,
        ]
        for (lost, survivors), slices in list(found.items())[:shown]
    ]
    title = "Slices of lost ranks that peers hold (no disk needed)"
    return Table(title, columns, rows, max(0, len(found) - shown), "set")


def lost_table(view: RecoveryView) -> Table:
    """What nobody holds any more."""
    lost = sorted(view.recovery.lost, key=lambda each: -each.bytes)
    shown = view.shown(len(lost))
    columns = (text_column("parameter"), text_column("held by"), number_column("bytes"))
    rows: Rows = [
        [each.parameter, ranks_text(each.ranks), bytes_text(each.bytes)] for each in lost[:shown]
    ]
    left_out = max(0, len(lost) - shown)
    return Table("Slices without a holder", columns, rows, left_out, "slice")


def growth_table(view: RecoveryView, growth: Growth) -> Table:
    """Parameters of the grown network that are not as they were."""
    order = {"new": 0, "resharded": 1, "renamed": 2, "kept": 3}
    items = sorted(growth.parameters, key=lambda each: (order[each.fate], each.name))
    items = [each for each in items if each.fate != "kept"]
    shown = view.shown(len(items), 20)
    columns = (
        text_column("parameter"), text_column("fate"), text_column("shape"), number_column("bytes"),
        text_column("slice of rank 0"),
    )  # fmt: skip
    rows: Rows = [
        [
            f"{each.name} (was {each.old})" if each.old else each.name,
            {"new": "to initialise"}.get(each.fate, each.fate),
            str(each.shape),
            bytes_text(each.bytes),
            ", ".join(f"{a}:{b}" for a, b in each.slices.get(0, ())),
        ]
        for each in items[:shown]
    ]
    title = "Parameters that are not as they were"
    return Table(title, columns, rows, max(0, len(items) - shown), "parameter")


def ways_table(ways: Sequence[Way], before: float | None) -> Table:
    """Plans to choose from, the chosen one first."""
    columns = (
        text_column("strategies"), text_column("MindSpore"), number_column("a step"),
        number_column("operators changed"), number_column("bytes to move"),
        number_column("lost"), number_column("seconds to move"),
    )  # fmt: skip
    verdicts = {True: "accepts", False: "refuses", None: "not known"}
    rows: Rows = [
        [
            way.plan.how,
            verdicts[way.plan.accepted],
            seconds_text(way.plan.seconds),
            len(way.plan.changes),
            bytes_text(way.moves.peer_bytes),
            bytes_text(way.moves.lost_bytes),
            f"{way.moves.seconds:,.2f}",
        ]
        for way in ways
    ]
    title = f"Ways to go on, the first is taken (a step took {seconds_text(before)} by this model)"
    return Table(title, columns, rows)


def moves_table(view: RecoveryView, moves: Resharding) -> Table:
    """What each new rank gets, by the links that it takes."""
    shown = view.shown(len(moves.moves))
    names = [level.name for level in moves.machine.levels]
    rows: Rows = [
        [
            move.rank,
            "new device" if move.device is None else f"was rank {move.device}",
            bytes_text(move.local),
            *(bytes_text(move.levels.get(name, 0)) for name in names),
            bytes_text(move.lost),
        ]
        for move in moves.moves[:shown]
    ]
    columns = (
        number_column("rank"), text_column("device"), number_column("has already"),
        *(number_column(f"over {name}") for name in names), number_column("from storage"),
    )  # fmt: skip
    best = "best mapping" if moves.is_best else "mapping in order"
    title = (
        f"Restore, {best}: {bytes_text(moves.peer_bytes)} from peers "
        f"({bytes_text(moves.identity_bytes)} in order), {bytes_text(moves.lost_bytes)} lost"
    )
    return Table(title, columns, rows, max(0, len(moves.moves) - shown), "rank")


def levels_table(moves: Resharding) -> Table:
    """What goes over links of each kind."""
    columns = (
        text_column("links"), number_column("bytes"), number_column("pairs"),
        number_column("busiest link"), number_column("sends most"), number_column("gets most"),
        number_column("seconds"),
    )  # fmt: skip
    rows: Rows = [
        [
            each.level.name,
            bytes_text(each.bytes),
            each.pairs,
            bytes_text(each.link),
            bytes_text(each.sender),
            bytes_text(each.receiver),
            f"{each.seconds:,.3f}",
        ]
        for each in moves.levels
    ]
    return Table("Bytes to move by kind of link", columns, rows)


def links_table(view: RecoveryView, moves: Resharding) -> Table:
    """The pairs of devices with most to carry."""
    links = moves.busiest
    shown = view.shown(len(links), 8)
    columns = (
        text_column("from"), text_column("to"), number_column("plays rank"), text_column("link"),
        number_column("bytes"),
    )  # fmt: skip
    rows: Rows = [
        [
            f"rank {each.source}",
            "new device" if each.device is None else f"rank {each.device}",
            each.rank,
            each.level,
            bytes_text(each.bytes),
        ]
        for each in links[:shown]
    ]
    return Table("Busiest links", columns, rows, max(0, len(links) - shown), "link")


def changes_table(view: RecoveryView, plan: Replan) -> Table:
    """Strategies that change, equal changes once."""
    counts: dict[tuple[str, str, str], int] = {}
    for each in plan.changes:
        key = (each.node.op, tuple_text(each.before) or "none", tuple_text(each.after) or "none")
        counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    shown = view.shown(len(ordered))
    columns = (
        text_column("operator"), number_column("times"), text_column("strategy"),
        text_column("becomes"),
    )  # fmt: skip
    rows: Rows = [[op, count, before, after] for (op, before, after), count in ordered[:shown]]
    return Table("Strategies that change", columns, rows, max(0, len(ordered) - shown))


def times_table(view: RecoveryView) -> Table:
    """Both ways to get the state back."""
    times = view.recovery.times
    ways: list[tuple[str, RecoveryTime | None]] = [
        ("from peers", times.peers),
        ("from a checkpoint", times.checkpoint),
    ]
    columns = (
        text_column("seconds"),
        *(number_column(name) for name, _ in times.checkpoint.terms()),
        number_column("in all"),
        text_column("largest"),
    )
    lost = bool(view.recovery.lost)
    missing = "not possible" if lost else "not known"
    rows: Rows = []
    for name, way in ways:
        if way is None:
            rows.append([f"{name}: {missing}", *[None] * (len(columns) - 2), ""])
        else:
            texts = [f"{seconds:,.1f}" for _, seconds in way.terms()]
            rows.append([name, *texts, f"{way.total:,.1f}", way.largest])
    store = f"; writing a checkpoint of {bytes_text(times.checkpoint_bytes)} "
    store += f"{times.store_seconds:,.1f} s"
    return Table(f"Time, by the assumptions below{store}", columns, rows)

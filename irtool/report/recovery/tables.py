"""The tables of ``irtool recover``."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import UNKNOWN, bytes_text, ranks_text, seconds_text, tuple_text
from irtool.planning.recovery.groups import GroupChanges
from irtool.planning.recovery.growth import Growth
from irtool.planning.recovery.recover import Alternative
from irtool.planning.recovery.replan import Replan
from irtool.planning.recovery.reshard import Resharding
from irtool.planning.recovery.survival import SurvivingSlice, WeakPoint
from irtool.planning.recovery.times import RecoveryTime
from irtool.report.model import Cell, Table, number_column, text_column
from irtool.report.recovery.view import RecoveryView

Rows = list[list[Cell]]


def weak_table(view: RecoveryView, points: Sequence[WeakPoint], what: str) -> Table:
    """The smallest losses that peers cannot repair.

    Args:
        view: how many rows text shows.
        points: sets of equally many ranks or servers.
        what: "ranks" or "servers".
    """
    size = len(points[0].units) if points else 0
    title = f"Smallest sets of {what} whose loss no peer can repair: {size} at once"
    columns = (text_column(what), number_column("parameters"), text_column("for example", 1))
    rows: Rows = [
        [ranks_text(point.units), len(point.parameters), point.parameters[0]] for point in points
    ]
    return Table(title, columns, rows, noun="set", most=view.most())


def groups_table(view: RecoveryView) -> Table:
    """Groups that hold a lost rank.

    Args:
        view: the recovery.
    """
    broken = view.recovery.broken
    columns = (
        text_column("ranks"), number_column("size"), text_column("group", 1),
        text_column("used by"), text_column("", 2),
    )  # fmt: skip
    rows: Rows = [
        [
            ranks_text(group.ranks),
            len(group.ranks),
            group.name,
            ", ".join(f"{count} {op}" for op, count in group.operators.items()),
            "inferred from other ranks" if group.extrapolated else "",
        ]
        for group in broken
    ]
    return Table("Groups to rebuild", columns, rows, noun="group", most=view.most())


def group_changes_table(view: RecoveryView, changes: GroupChanges) -> Table:
    """Groups that only one of the plans has.

    Args:
        view: how many rows text shows.
        changes: groups of the new plan against those of the old one.
    """
    groups = [
        *((group, "new") for group in changes.added),
        *((group, "no longer there") for group in changes.removed),
    ]
    columns = (
        text_column("ranks"),
        number_column("size"),
        text_column("group", 1),
        text_column(""),
    )
    rows: Rows = [
        [ranks_text(group.ranks), len(group.ranks), group.name, what] for group, what in groups
    ]
    title = "Groups that change (as predicted for both plans)"
    return Table(title, columns, rows, noun="group", most=view.most())


def survivors_table(view: RecoveryView) -> Table:
    """What lost ranks held, and who still holds it: one row for the same holders.

    Args:
        view: the recovery; bytes are those of the slices, each once.
    """
    by_holders: dict[tuple[tuple[int, ...], tuple[int, ...]], list[SurvivingSlice]] = {}
    for piece in view.recovery.surviving:
        by_holders.setdefault((piece.lost, piece.survivors), []).append(piece)
    columns = (
        text_column("lost with"), text_column("survives on"), number_column("parameters"),
        number_column("bytes", "bytes"), text_column("for example", 1),
    )  # fmt: skip
    rows: Rows = [
        [
            ranks_text(lost),
            ranks_text(survivors),
            len(slices),
            sum(piece.bytes for piece in slices),
            slices[0].parameter,
        ]
        for (lost, survivors), slices in by_holders.items()
    ]
    title = "Slices of lost ranks that peers hold (no disk needed)"
    return Table(title, columns, rows, noun="set", most=view.most())


def lost_table(view: RecoveryView) -> Table:
    """What nobody holds any more.

    Args:
        view: the recovery; the largest slices first.
    """
    lost = sorted(view.recovery.lost, key=lambda piece: -piece.bytes)
    columns = (text_column("parameter"), text_column("held by"), number_column("bytes", "bytes"))
    rows: Rows = [[piece.parameter, ranks_text(piece.ranks), piece.bytes] for piece in lost]
    return Table("Slices without a holder", columns, rows, noun="slice", most=view.most())


def growth_table(view: RecoveryView, growth: Growth) -> Table:
    """Parameters of the grown network that are not as they were.

    Args:
        view: how many rows text shows.
        growth: what became of each parameter; new ones stand first.
    """
    order = {"new": 0, "resharded": 1, "renamed": 2, "kept": 3}
    items = sorted(growth.parameters, key=lambda parameter: (order[parameter.fate], parameter.name))
    items = [parameter for parameter in items if parameter.fate != "kept"]
    columns = (
        text_column("parameter"), text_column("fate"), text_column("shape"),
        number_column("bytes", "bytes"), text_column("slice of rank 0", 1),
    )  # fmt: skip
    rows: Rows = [
        [
            f"{parameter.name} (was {parameter.old})" if parameter.old else parameter.name,
            {"new": "to initialise"}.get(parameter.fate, parameter.fate),
            str(parameter.shape),
            parameter.bytes,
            ", ".join(f"{a}:{b}" for a, b in parameter.slices.get(0, ())),
        ]
        for parameter in items
    ]
    title = "Parameters that are not as they were"
    return Table(title, columns, rows, noun="parameter", most=view.most(20))


def alternatives_table(alternatives: Sequence[Alternative], before: float | None) -> Table:
    """Plans to choose from, the chosen one first.

    Args:
        alternatives: with what each moves and loses.
        before: seconds of a step before the change; None: not known.
    """
    columns = (
        text_column("strategies"), text_column("check"), number_column("a step", "seconds"),
        number_column("operators changed", rank=1), number_column("moved", "bytes"),
        number_column("lost", "bytes"), number_column("time to move", "seconds"),
    )  # fmt: skip
    verdicts = {True: "passes", False: "refuses", None: "not known"}
    rows: Rows = [
        [
            alternative.plan.how,
            verdicts[alternative.plan.accepted],
            UNKNOWN if alternative.plan.seconds is None else alternative.plan.seconds,
            len(alternative.plan.changes),
            alternative.moves.peer_bytes,
            alternative.moves.lost_bytes,
            alternative.moves.seconds,
        ]
        for alternative in alternatives
    ]
    took = f"a step took {seconds_text(before)} by this model"
    title = f"Plans to go on with, the first is taken ({took})"
    return Table(title, columns, rows)


def moves_table(view: RecoveryView, moves: Resharding) -> Table:
    """What each new rank gets, by the links that it takes.

    Args:
        view: how many rows text shows.
        moves: bytes to each rank that it has already, gets from peers, or reads from storage.
    """
    names = [level.name for level in moves.machine.levels]
    rows: Rows = [
        [
            move.rank,
            "new device" if move.device is None else f"was rank {move.device}",
            move.local,
            *(move.levels.get(name, 0) for name in names),
            move.lost,
        ]
        for move in moves.moves
    ]
    columns = (
        number_column("rank"), text_column("device"), number_column("has already", "bytes"),
        *(number_column(f"over {name}", "bytes") for name in names),
        number_column("from storage", "bytes"),
    )  # fmt: skip
    best = "best mapping" if moves.is_best else "mapping in order"
    title = (
        f"Restore, {best}: {bytes_text(moves.peer_bytes)} from peers "
        f"({bytes_text(moves.identity_bytes)} in order), {bytes_text(moves.lost_bytes)} lost"
    )
    return Table(title, columns, rows, noun="rank", most=view.most())


def levels_table(moves: Resharding) -> Table:
    """What goes over links of each kind.

    Args:
        moves: bytes to each rank.
    """
    columns = (
        text_column("links"), number_column("bytes", "bytes"), number_column("pairs"),
        number_column("busiest link", "bytes", 1), number_column("sends most", "bytes", 2),
        number_column("receives most", "bytes", 2), number_column("time", "seconds"),
    )  # fmt: skip
    rows: Rows = [
        [
            traffic.level.name,
            traffic.bytes,
            traffic.pairs,
            traffic.link,
            traffic.sender,
            traffic.receiver,
            traffic.seconds,
        ]
        for traffic in moves.levels
    ]
    return Table("Bytes to move by kind of link", columns, rows)


def links_table(view: RecoveryView, moves: Resharding) -> Table:
    """The pairs of devices with most to carry.

    Args:
        view: how many rows text shows.
        moves: bytes to each rank, with the busiest pairs.
    """
    links = moves.busiest
    columns = (
        text_column("from"), text_column("to"), number_column("plays rank"), text_column("link"),
        number_column("bytes", "bytes"),
    )  # fmt: skip
    rows: Rows = [
        [
            f"rank {link.source}",
            "new device" if link.device is None else f"rank {link.device}",
            link.rank,
            link.level,
            link.bytes,
        ]
        for link in links
    ]
    return Table("Busiest links", columns, rows, noun="link", most=view.most(8))


def changes_table(view: RecoveryView, plan: Replan) -> Table:
    """Strategies that change, equal changes once.

    Args:
        view: how many rows text shows.
        plan: to go on with; the most frequent changes first.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for change in plan.changes:
        key = (
            change.node.op,
            tuple_text(change.before) or "none",
            tuple_text(change.after) or "none",
        )
        counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    columns = (
        text_column("operator"), number_column("times"), text_column("strategy"),
        text_column("becomes"),
    )  # fmt: skip
    rows: Rows = [[op, count, before, after] for (op, before, after), count in ordered]
    return Table("Strategies that change", columns, rows, most=view.most())


def times_table(view: RecoveryView) -> Table:
    """Both ways to get the state back.

    Args:
        view: the recovery; times are seconds by its assumptions.
    """
    times = view.recovery.times
    restores: list[tuple[str, RecoveryTime | None]] = [
        ("from peers", times.peers),
        ("from a checkpoint", times.checkpoint),
    ]
    columns = (
        text_column("state"),
        *(number_column(name, "seconds", 1) for name, _ in times.checkpoint.terms()),
        number_column("in all", "seconds"),
        text_column("largest"),
    )
    missing = "not possible" if view.recovery.lost else "not known"
    rows: Rows = []
    for name, time in restores:
        if time is None:
            rows.append([f"{name}: {missing}", *[None] * (len(columns) - 2), ""])
        else:
            seconds = [seconds for _, seconds in time.terms()]
            rows.append([name, *seconds, time.total, time.largest])
    store = f"writing a checkpoint of {bytes_text(times.checkpoint_bytes)} takes "
    store += seconds_text(times.store_seconds)
    return Table(f"Time, by the assumptions below; {store}", columns, rows)

"""``irtool recover --format json``: the keys that docs/json-recover.md describes."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.planning.recovery.groups import GroupChanges, GroupUse
from irtool.planning.recovery.growth import Growth
from irtool.planning.recovery.recover import Recovery, Way
from irtool.planning.recovery.reshard import Resharding
from irtool.planning.recovery.survival import WeakPoint
from irtool.planning.recovery.times import Assumptions, RecoveryTime
from irtool.report.recovery_view import RecoveryView, assumptions_text

_MOVES: tuple[str, ...] = (
    "bytes_moved", "bytes_moved_in_order", "bytes_from_storage", "best_mapping", "levels", "links",
    "moves",
)  # fmt: skip
"""Keys of what moves: all null where nobody knows."""
_MOST_LINKS = 100
"""Links that are listed, the busiest first: there may be as many as pairs of devices."""


def recovery_object(view: RecoveryView) -> dict[str, object]:
    """Everything that was found."""
    found = view.recovery
    return {
        "schema": "irtool.recover/1",
        "path": view.path,
        "devices": found.context.devices,
        "lost": list(found.request.lost),
        "added": found.request.added,
        "target": found.target,
        "legal": list(found.legal),
        "accepted": found.accepted,
        "plan": found.plan.how if found.plan is not None else None,
        "ways": [_way_object(way) for way in found.ways],
        "step_seconds_before": found.old_seconds,
        **_groups_object(found),
        **_slices_object(found),
        **_moves_object(found.moves),
        "operators_changed": found.changed,
        "changes": [
            {
                "node": each.node.id,
                "op": each.node.op,
                "line": each.node.line,
                "before": each.before,
                "after": each.after,
            }
            for each in (found.plan.changes if found.plan is not None else ())
        ],
        "classes": [list(ranks) for ranks in view.classes],
        "compile_cache": view.cache,
        "fingerprints": {str(stage): text for stage, text in view.fingerprints.items()},
        "growth": _growth_object(found.growth),
        "time": _times_object(found, view.assumptions),
        "notes": [*found.notes, *view.notes],
    }


def _way_object(way: Way) -> dict[str, object]:
    return {
        "how": way.plan.how,
        "accepted": way.plan.accepted,
        "step_seconds": way.plan.seconds,
        "operators_changed": len(way.plan.changes),
        "bytes_moved": way.moves.peer_bytes,
        "bytes_from_storage": way.moves.lost_bytes,
        "move_seconds": way.moves.seconds,
    }


def _groups_object(found: Recovery) -> dict[str, object]:
    return {
        "groups_rebuilt": [
            {
                "group": group.name,
                "ranks": list(group.ranks),
                "operators": dict(group.operators),
                "extrapolated": group.extrapolated,
            }
            for group in found.broken
        ],
        "groups_changed": _changes_object(found.group_changes),
    }


def _changes_object(changes: GroupChanges | None) -> dict[str, object] | None:
    if changes is None:
        return None
    return {
        "kept": _names(changes.kept),
        "added": _names(changes.added),
        "removed": _names(changes.removed),
    }


def _names(groups: Sequence[GroupUse]) -> list[dict[str, object]]:
    return [{"group": group.name, "ranks": list(group.ranks)} for group in groups]


def _slices_object(found: Recovery) -> dict[str, object]:
    return {
        "slices_lost": [
            {"parameter": each.parameter, "ranks": list(each.ranks), "bytes": each.bytes}
            for each in found.lost
        ],
        "slices_surviving": [
            {
                "parameter": each.parameter,
                "lost": list(each.lost),
                "survivors": list(each.survivors),
                "bytes": each.bytes,
            }
            for each in found.surviving
        ],
        "common_replicas": [list(ranks) for ranks in found.common_replicas],
        "replicas": [
            {"parameter": item.name, "sets": [list(ranks) for ranks in item.replica_sets]}
            for item in found.old.items
        ],
        "weak_points": _units(found.weak),
        "weak_servers": _units(found.weak_servers),
    }


def _units(points: Sequence[WeakPoint]) -> list[list[int]]:
    return [list(point.units) for point in points]


def _moves_object(moves: Resharding | None) -> dict[str, object]:
    if moves is None:
        nothing: dict[str, object] = {}
        return {**nothing, **dict.fromkeys(_MOVES)}
    return {
        "bytes_moved": moves.peer_bytes,
        "bytes_moved_in_order": moves.identity_bytes,
        "bytes_from_storage": moves.lost_bytes,
        "best_mapping": moves.is_best,
        "levels": [
            {
                "level": each.level.name,
                "bytes": each.bytes,
                "links": each.pairs,
                "busiest_link": each.link,
                "busiest_sender": each.sender,
                "busiest_receiver": each.receiver,
                "seconds": each.seconds,
            }
            for each in moves.levels
        ],
        "links": [
            {
                "from": each.source,
                "rank": each.rank,
                "device": each.device,
                "level": each.level,
                "bytes": each.bytes,
            }
            for each in moves.busiest[:_MOST_LINKS]
        ],
        "moves": [
            {
                "rank": move.rank,
                "device": move.device,
                "local": move.local,
                "peers": move.peers,
                "levels": dict(move.levels),
                "storage": move.lost,
            }
            for move in moves.moves
        ],
    }


def _times_object(found: Recovery, assumptions: Assumptions) -> dict[str, object]:
    times = found.times
    return {
        "peers": _time_object(times.peers),
        "checkpoint": _time_object(times.checkpoint),
        "checkpoint_bytes": times.checkpoint_bytes,
        "store_seconds": times.store_seconds,
        "assumptions": assumptions_text(assumptions, found.machine),
    }


def _time_object(time: RecoveryTime | None) -> dict[str, object] | None:
    if time is None:
        return None
    terms = {name.replace(" ", "_"): seconds for name, seconds in time.terms()}
    return {**terms, "total": time.total, "largest": time.largest}


def _growth_object(growth: Growth | None) -> dict[str, object] | None:
    if growth is None:
        return None
    return {
        "local": growth.is_local,
        "operators_unchanged": growth.unchanged,
        "operators_resharded": [node.id for node in growth.resharded],
        "operators_added": [node.id for node in growth.added],
        "operators_removed": [node.id for node in growth.removed],
        "border": [node.id for node in growth.border],
        "dropped": list(growth.dropped),
        "parameters": [
            {
                "name": each.name,
                "fate": each.fate,
                "old": each.old,
                "shape": list(each.shape),
                "bytes": each.bytes,
                "slices": {
                    str(rank): [list(extent) for extent in box] for rank, box in each.slices.items()
                },
            }
            for each in growth.parameters
        ],
    }

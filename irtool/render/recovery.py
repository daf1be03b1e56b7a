"""What ``irtool recover`` tells people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irtool.planning.growth import Growth
from irtool.planning.recovery import Recovery
from irtool.planning.recovery_groups import GroupChanges
from irtool.planning.recovery_time import Assumptions, RecoveryTime
from irtool.planning.reshard import SurvivingSlice, WeakPoint
from irtool.render.page.document import document_sections
from irtool.render.page.page import Answer, Page
from irtool.render.tables import (
    Document,
    Facts,
    Heading,
    Note,
    Table,
    number_column,
    text_column,
)
from irtool.render.text import bytes_text, plural, ranks_text, shortened

_USUAL = 12


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """A recovery with what the command knows around it.

    ``classes`` are ranks with equal graphs; ``cache`` says whether a compile cache is valid.
    """

    recovery: Recovery
    path: str
    assumptions: Assumptions
    classes: Sequence[tuple[int, ...]] = ()
    cache: str = ""
    limit: int | None = None
    notes: Sequence[str] = field(default_factory=tuple[str, ...])


def recovery_document(view: RecoveryView) -> Document:
    """The answer first, then what changes, what moves, and how long it takes."""
    found = view.recovery
    document = Document([Heading(answer_text(view)), Facts(_facts(view))])
    happened = bool(found.request.lost or found.request.added or found.request.to or found.growth)
    if not happened:
        document.add(_weak_table(found.weak, "ranks", view.limit))
        document.add(_weak_table(found.weak_servers, "servers", view.limit))
        return _with_notes(document, view)
    if found.broken:
        document.add(_groups_table(view))
    if found.surviving:
        document.add(_survivors_table(view))
    if found.lost:
        document.add(_lost_table(view))
    if found.growth is not None:
        document.add(_growth_table(found.growth, view.limit))
    document.add(_moves_table(view))
    if found.changed and found.plans:
        document.add(_changes_table(view))
    changes = found.group_changes
    if changes is not None and (changes.added or changes.removed):
        document.add(_group_changes_table(changes, view.limit))
    document.add(_times_table(view))
    return _with_notes(document, view)


def answer_text(view: RecoveryView) -> str:
    """The answer in one line."""
    found = view.recovery
    if found.growth is not None:
        new = sum(each.fate == "new" for each in found.growth.parameters)
        kept = sum(each.fate == "kept" for each in found.growth.parameters)
        where = "only the new part is planned" if found.growth.is_local else "the old part changes"
        return f"{plural(new, 'parameter')} to initialise, {kept:,} kept; {where}"
    if not (found.request.lost or found.request.added or found.request.to):
        if not found.weak:
            return "nothing is known of who holds what"
        least = len(found.weak[0].units)
        if least == 1:
            return "the loss of a single rank cannot be repaired from peers"
        any_of = "any single rank" if least == 2 else f"any {least - 1} ranks"
        return f"the loss of {any_of} can be repaired from peers"
    target = f"go on with {plural(found.target, 'device')}"
    if found.lost:
        return f"{target} from a checkpoint: {plural(len(found.lost), 'slice')} have no holder left"
    moved = found.moves.peer_bytes
    return f"{target}: everything survives, {bytes_text(moved)} move between devices"


def _facts(view: RecoveryView) -> list[tuple[str, str]]:
    found = view.recovery
    request = found.request
    facts = [("run", f"{view.path}: {plural(found.context.devices, 'device')}")]
    if found.context.stages > 1:
        facts.append(("stages", str(found.context.stages)))
    if request.lost:
        facts.append(("lost", f"ranks {ranks_text(request.lost)}"))
    if request.added:
        facts.append(("added", plural(request.added, "device")))
    if request.lost or request.added or request.to:
        facts.append(("devices", f"{found.target} ({found.why_target})"))
        facts.append(("legal", ", ".join(map(str, found.legal[:8]))))
    if view.classes:
        classes = ", ".join(ranks_text(ranks) for ranks in list(view.classes)[:6])
        facts.append(("equal graphs", f"{len(view.classes)} to compile: ranks {classes}"))
    if view.cache:
        facts.append(("compile cache", view.cache))
    all_groups = len(found.groups.groups)
    text = f"{all_groups:,}"
    if request.lost:
        text = f"{len(found.broken):,} of {all_groups:,} hold a lost rank"
        untouched = found.groups.untouched_ranks(request.lost, found.survivors)
        if untouched:
            text += f"; of ranks {ranks_text(untouched)} only the world's does"
    facts.append(("groups", text))
    facts.append(("replicas for TFT", _common_text(found)))
    if found.replanned:
        word = {True: "accepted", False: "refused", None: "not known"}[found.accepted]
        facts.append(("new plan", f"{word} by MindSpore; {found.changed:,} operators change"))
    if found.group_changes is not None:
        kept, added, removed = (
            len(each)
            for each in (
                found.group_changes.kept,
                found.group_changes.added,
                found.group_changes.removed,
            )
        )
        text = f"{kept:,} with the same ranks, {added:,} new, {removed:,} no longer there"
        facts.append(("groups of the plan", text))
    return facts


def _weak_table(points: Sequence[WeakPoint], what: str, limit: int | None) -> Table:
    size = len(points[0].units) if points else 0
    title = f"Smallest sets of {what} whose loss no peer can repair: {size} at once"
    shown = len(points) if limit == 0 else limit or _USUAL
    columns = (text_column(what), number_column("parameters"), text_column("for example"))
    rows: list[list[str | int | None]] = [
        [ranks_text(point.units), len(point.parameters), point.parameters[0]]
        for point in points[:shown]
    ]
    return Table(title, columns, rows, max(0, len(points) - shown), "set")


def _groups_table(view: RecoveryView) -> Table:
    broken = view.recovery.broken
    shown = len(broken) if view.limit == 0 else view.limit or _USUAL
    columns = (
        text_column("ranks"), number_column("size"), text_column("group"), text_column("used by"),
        text_column(""),
    )  # fmt: skip
    rows: list[list[str | int | None]] = [
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


def _common_text(found: Recovery) -> str:
    """MindSpore's own, coarser answer to who can restore whom."""
    sets = found.common_replicas
    least = min(map(len, sets), default=0)
    if least < 2:
        return "none: no two ranks hold the same of everything, so it restores from disk"
    listed = ", ".join(f"[{ranks_text(ranks)}]" for ranks in sets[:6])
    return f"ranks that hold the same of everything: {listed}{' …' if len(sets) > 6 else ''}"


def _group_changes_table(changes: GroupChanges, limit: int | None) -> Table:
    groups = [
        *((group, "new") for group in changes.added),
        *((group, "no longer there") for group in changes.removed),
    ]
    shown = len(groups) if limit == 0 else limit or _USUAL
    columns = (text_column("ranks"), number_column("size"), text_column("group"), text_column(""))
    rows: list[list[str | int | None]] = [
        [ranks_text(group.ranks), len(group.ranks), group.name, what]
        for group, what in groups[:shown]
    ]
    title = "Groups that change (as predicted for both plans)"
    return Table(title, columns, rows, max(0, len(groups) - shown), "group")


def _survivors_table(view: RecoveryView) -> Table:
    """What lost ranks held, and who still holds it: one row for the same holders."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[SurvivingSlice]] = {}
    for each in view.recovery.surviving:
        found.setdefault((each.lost, each.survivors), []).append(each)
    shown = len(found) if view.limit == 0 else view.limit or _USUAL
    columns = (
        text_column("lost with"), text_column("survives on"), number_column("parameters"),
        number_column("bytes"), text_column("for example"),
    )  # fmt: skip
    rows: list[list[str | int | None]] = [
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


def _lost_table(view: RecoveryView) -> Table:
    lost = sorted(view.recovery.lost, key=lambda each: -each.bytes)
    shown = len(lost) if view.limit == 0 else view.limit or _USUAL
    columns = (text_column("parameter"), text_column("held by"), number_column("bytes"))
    rows: list[list[str | int | None]] = [
        [each.parameter, ranks_text(each.ranks), bytes_text(each.bytes)] for each in lost[:shown]
    ]
    left_out = max(0, len(lost) - shown)
    return Table("Slices without a holder", columns, rows, left_out, "slice")


def _growth_table(growth: Growth, limit: int | None) -> Table:
    order = {"new": 0, "resharded": 1, "renamed": 2, "kept": 3}
    items = sorted(growth.parameters, key=lambda each: (order[each.fate], each.name))
    items = [each for each in items if each.fate != "kept"]
    shown = len(items) if limit == 0 else limit or 20
    columns = (
        text_column("parameter"), text_column("fate"), text_column("shape"), number_column("bytes"),
        text_column("slice of rank 0"),
    )  # fmt: skip
    rows: list[list[str | int | None]] = [
        [
            f"{each.name} (was {each.old})" if each.old else each.name,
            {"new": "to initialise"}.get(each.fate, each.fate),
            str(each.shape),
            bytes_text(each.bytes),
            ", ".join(f"{a}:{b}" for a, b in each.slices.get(0, ())),
        ]
        for each in items[:shown]
    ]
    return Table("Parameters that are not as they were", columns, rows, max(0, len(items) - shown))


def _moves_table(view: RecoveryView) -> Table:
    moves = view.recovery.moves
    rows: list[list[str | int | None]] = []
    listed = moves.moves
    shown = len(listed) if view.limit == 0 else view.limit or _USUAL
    for move in listed[:shown]:
        device = "new device" if move.device is None else f"was rank {move.device}"
        rows.append(
            [move.rank, device, bytes_text(move.local), bytes_text(move.inside),
             bytes_text(move.peers - move.inside), bytes_text(move.lost)]
        )  # fmt: skip
    columns = (
        number_column("rank"), text_column("device"), number_column("has already"),
        number_column("same server"), number_column("other servers"),
        number_column("from storage"),
    )  # fmt: skip
    best = "best mapping" if moves.is_best else "mapping in order"
    title = (
        f"Restore, {best}: {bytes_text(moves.peer_bytes)} from peers "
        f"({bytes_text(moves.identity_bytes)} in order), {bytes_text(moves.lost_bytes)} lost"
    )
    return Table(title, columns, rows, max(0, len(listed) - shown), "rank")


def _changes_table(view: RecoveryView) -> Table:
    counts: dict[tuple[str, str, str], int] = {}
    for plan in view.recovery.plans.values():
        for node, (before, after) in plan.changed.items():
            key = (node.op, str(before), str(after))
            counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    shown = len(ordered) if view.limit == 0 else view.limit or _USUAL
    columns = (
        text_column("operator"), number_column("times"), text_column("strategy"),
        text_column("becomes"),
    )  # fmt: skip
    rows: list[list[str | int | None]] = [
        [op, count, before, after] for (op, before, after), count in ordered[:shown]
    ]
    return Table("Strategies that change", columns, rows, max(0, len(ordered) - shown))


def _times_table(view: RecoveryView) -> Table:
    times = view.recovery.times
    ways: list[tuple[str, RecoveryTime | None]] = [
        ("from peers", times.peers),
        ("from a checkpoint", times.checkpoint),
    ]
    causes = ("start", "groups", "compile", "state", "data", "lost steps", "in all")
    columns = (
        text_column("seconds"),
        *(number_column(name) for name in causes),
        text_column("largest"),
    )
    rows: list[list[str | int | None]] = []
    for name, way in ways:
        if way is None:
            rows.append([f"{name}: not possible", *[None] * 7, ""])
        else:
            texts = [f"{seconds:,.1f}" for _, seconds in way.terms()]
            rows.append([name, *texts, f"{way.total:,.1f}", way.largest])
    store = f"; writing a checkpoint of {bytes_text(times.checkpoint_bytes)} "
    store += f"{times.store_seconds:,.1f} s"
    return Table(f"Time, by the assumptions below{store}", columns, rows)


def _with_notes(document: Document, view: RecoveryView) -> Document:
    for note in (*view.recovery.notes, *view.notes):
        document.add(Note(f"note: {shortened(note, 300)}"))
    if view.recovery.request.lost or view.recovery.request.added or view.recovery.growth:
        document.add(Note(f"assumed: {assumptions_text(view.assumptions)}"))
    return document


def assumptions_text(a: Assumptions) -> str:
    """What the times rest on."""
    return (
        f"{a.start_seconds:g} s to start, {a.group_seconds:g} s a group and {a.rank_seconds:g} s "
        f"a member, {a.statement_seconds:g} s to compile a statement, "
        f"{a.link_bandwidth / 1e9:g} GB/s from peers, {a.storage_bandwidth / 1e9:g} GB/s from "
        f"storage, {a.step_seconds:g} s a step, {a.checkpoint_steps} steps between checkpoints"
    )


def recovery_page(view: RecoveryView) -> Page:
    """The same as an html page."""
    document = recovery_document(view)
    tone = "bad" if view.recovery.lost else "good"
    sections = list(document_sections(Document(document.blocks[1:])))
    return Page(f"recover: {view.path}", Answer(answer_text(view), tone), sections)


def recovery_object(view: RecoveryView) -> dict[str, object]:
    """``--format json``: the keys that docs/json-recover.md describes."""
    found = view.recovery
    moves = found.moves
    times = found.times
    return {
        "schema": "irtool.recover/1",
        "path": view.path,
        "devices": found.context.devices,
        "lost": list(found.request.lost),
        "added": found.request.added,
        "target": found.target,
        "legal": list(found.legal),
        "accepted": found.accepted,
        "groups_rebuilt": [
            {
                "group": group.name,
                "ranks": list(group.ranks),
                "operators": dict(group.operators),
                "extrapolated": group.extrapolated,
            }
            for group in found.broken
        ],
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
        "groups_changed": _changes_object(found.group_changes),
        "bytes_moved": moves.peer_bytes,
        "bytes_moved_inside_servers": moves.inside_bytes,
        "bytes_moved_in_order": moves.identity_bytes,
        "bytes_from_storage": moves.lost_bytes,
        "moves": [
            {
                "rank": move.rank,
                "device": move.device,
                "local": move.local,
                "peers": move.peers,
                "inside_server": move.inside,
                "storage": move.lost,
            }
            for move in moves.moves
        ],
        "replicas": [
            {"parameter": item.name, "sets": [list(ranks) for ranks in item.replica_sets]}
            for item in found.old.items
        ],
        "weak_points": [list(point.units) for point in found.weak],
        "weak_servers": [list(point.units) for point in found.weak_servers],
        "operators_changed": found.changed,
        "classes": [list(ranks) for ranks in view.classes],
        "compile_cache": view.cache,
        "growth": _growth_object(found.growth),
        "time": {
            "peers": _time_object(times.peers),
            "checkpoint": _time_object(times.checkpoint),
            "checkpoint_bytes": times.checkpoint_bytes,
            "store_seconds": times.store_seconds,
            "assumptions": assumptions_text(view.assumptions),
        },
        "notes": [*found.notes, *view.notes],
    }


def _changes_object(changes: GroupChanges | None) -> dict[str, object] | None:
    if changes is None:
        return None
    return {
        word: [{"group": group.name, "ranks": list(group.ranks)} for group in groups]
        for word, groups in (
            ("kept", changes.kept),
            ("added", changes.added),
            ("removed", changes.removed),
        )
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

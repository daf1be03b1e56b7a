"""What ``irtool recover`` tells people: the answer, what changes, what moves, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.units import numbered_text, plural, ranks_text
from irtool.planning.recovery.growth import Growth
from irtool.planning.recovery.recover import Recovery
from irtool.report.model import Answer, Block, Element, Facts, Note, Report
from irtool.report.recovery.files import file_blocks
from irtool.report.recovery.pictures import pictures
from irtool.report.recovery.tables import (
    alternatives_table,
    changes_table,
    group_changes_table,
    groups_table,
    growth_table,
    levels_table,
    links_table,
    lost_table,
    moves_table,
    survivors_table,
    times_table,
    weak_table,
)
from irtool.report.recovery.view import RecoveryView, answer_text, assumptions_text
from irtool.report.text import shortened

_MOST_BORDER = 6


def recovery_report(view: RecoveryView, has_pictures: bool = False) -> Report:
    """The answer first, then what changes, what moves, and how long it takes.

    Args:
        view: the recovery; where nothing is lost or added, which losses would be the worst.
        has_pictures: whether pictures are seen.
    """
    recovery = view.recovery
    elements: list[Element] = [Facts(_facts(view))]
    if recovery.has_change:
        elements += _after(view)
    elif recovery.old.items:
        elements.append(weak_table(view, recovery.weak, "ranks"))
        elements.append(weak_table(view, recovery.weak_servers, "servers"))
    notes = (*recovery.notes, *view.notes)
    elements += [Note(f"note: {shortened(note, 300)}") for note in notes]
    if recovery.has_change:
        assumed = assumptions_text(view.assumptions, recovery.machine)
        elements.append(Note(f"assumed: {assumed}"))
    if has_pictures:
        elements += pictures(recovery)
    tone = "bad" if recovery.lost else "good"
    return Report(f"recover: {view.path}", Answer(answer_text(view), tone), elements)


def _after(view: RecoveryView) -> Iterator[Block]:
    """The tables of what happened, those that have something to say."""
    recovery = view.recovery
    if recovery.broken:
        yield groups_table(view)
    if recovery.surviving:
        yield survivors_table(view)
    if recovery.lost:
        yield lost_table(view)
    if recovery.growth is not None:
        yield growth_table(view, recovery.growth)
    if recovery.alternatives:
        yield alternatives_table(recovery.alternatives, recovery.old_seconds)
    if recovery.moves is not None and recovery.old.items:
        yield moves_table(view, recovery.moves)
        if recovery.moves.peer_bytes:
            yield levels_table(recovery.moves)
            yield links_table(view, recovery.moves)
    if recovery.plan is not None and recovery.plan.changes:
        yield changes_table(view, recovery.plan)
    changes = recovery.group_changes
    if changes is not None and (changes.added or changes.removed):
        yield group_changes_table(view, changes)
    yield times_table(view)
    yield from file_blocks(view)


def _facts(view: RecoveryView) -> list[tuple[str, str]]:
    recovery = view.recovery
    request = recovery.request
    facts = [("run", f"{view.path}: {plural(recovery.context.devices, 'device')}")]
    if recovery.context.stages > 1:
        facts.append(("stages", str(recovery.context.stages)))
    if request.lost:
        facts.append(("lost", numbered_text("rank", request.lost)))
    if request.added:
        facts.append(("added", plural(request.added, "device")))
    if request.lost or request.added or request.to:
        facts.append(("devices", f"{recovery.target} ({recovery.why_target})"))
        if recovery.stages != recovery.context.stages:
            facts.append(("new stages", str(recovery.stages)))
        facts.append(("legal", ", ".join(map(str, recovery.legal[:8]))))
    if view.classes:
        classes = "; ".join(numbered_text("rank", ranks) for ranks in list(view.classes)[:6])
        more = "; …" if len(view.classes) > 6 else ""
        facts.append(("equal graphs", f"{len(view.classes)} to compile: {classes}{more}"))
    if view.cache:
        facts.append(("compile cache", view.cache))
    facts.append(("groups", _groups_text(recovery)))
    if recovery.old.items:
        facts.append(("replicas for TFT", _common_text(recovery)))
    if recovery.plan is not None:
        word = {True: "passes", False: "is refused by", None: "cannot be judged in all parts by"}
        verdict = f"{word[recovery.accepted]} irtool check; {recovery.changed:,} operators change"
        facts.append(("new plan", verdict))
    if recovery.growth is not None:
        facts += _growth_facts(recovery.growth)
    if recovery.group_changes is not None:
        changes = recovery.group_changes
        facts.append((
            "groups of the plan",
            f"{len(changes.kept):,} with the same ranks, {len(changes.added):,} new, "
            f"{len(changes.removed):,} no longer there",
        ))  # fmt: skip
    return facts


def _growth_facts(growth: Growth) -> list[tuple[str, str]]:
    """What stays of the old plan, and where the new part meets it."""
    counts = [
        f"{growth.unchanged:,} keep their strategy",
        f"{len(growth.resharded):,} get another one",
        f"{len(growth.added):,} are new",
        f"{len(growth.removed):,} are gone",
    ]
    facts = [("operators", ", ".join(counts))]
    if growth.border:
        names = [f"{node.id} {node.op}" for node in growth.border]
        shown = ", ".join(names[:_MOST_BORDER])
        more = f" and {len(names) - _MOST_BORDER:,} more" if len(names) > _MOST_BORDER else ""
        facts.append(("border", f"{shown}{more}: a plan of the new part alone keeps their layouts"))
    if growth.dropped:
        facts.append(("dropped", ", ".join(growth.dropped[:_MOST_BORDER])))
    return facts


def _groups_text(recovery: Recovery) -> str:
    all_groups = len(recovery.groups.groups)
    if not recovery.request.lost:
        return f"{all_groups:,}"
    text = f"{len(recovery.broken):,} of {all_groups:,} hold a lost rank"
    untouched = recovery.groups.untouched_ranks(recovery.request.lost, recovery.survivors)
    if untouched:
        text += f"; of {numbered_text('rank', untouched)} only the world's does"
    return text


def _common_text(recovery: Recovery) -> str:
    """MindSpore's own, coarser answer to who can restore whom."""
    sets = recovery.common_replicas
    least = min(map(len, sets), default=0)
    if least < 2:
        return "none: no two ranks hold the same of everything, so it restores from disk"
    listed = ", ".join(f"[{ranks_text(ranks)}]" for ranks in sets[:6])
    return f"ranks that hold the same of everything: {listed}{' …' if len(sets) > 6 else ''}"

"""Do ranks agree, and do groups make sense: their members, their names, the links that they use?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.matching import disagreements
from irtool.cluster.spread_groups import SpreadGroup, spread_groups
from irtool.diagnosis.agreement import (
    unlike_fusion,
    unlike_gradients,
    unseen_fusion,
    wrong_numbers,
)
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject, source_of
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import plural, ranks_text, seconds_text

TASK: Task = "group"
READS: Reads = "validate"
_KINDS = {"name": "warning", "members": "error", "not a member": "error"}
_WORTH = 0.05
"""Part of a step that neighbours have to save to be told of."""
_MUCH = 0.2
"""Part of a step from which on nobody means to lose it."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Ranks that are not alike; groups that contradict themselves or lie across nodes.

    Args:
        subject: the run.

    Raises:
        CannotJudge: no validate dump is whole; or, once all is told, a part of it is in no dump.
    """
    numbered = list(wrong_numbers(subject))
    if numbered:
        yield from numbered  # all else follows from it
        return
    yield from unlike_gradients(subject)
    yield from unlike_fusion(subject)
    for item in disagreements(subject.cluster):
        severity = _KINDS.get(item.kind)
        if severity is None:
            continue
        node = item.left.collective.node
        yield diagnosis(
            TASK,
            "error" if severity == "error" else "warning",
            f"group {item.group}: {item.message}",
            subject.command("comm", "groups", "RUN"),
            rank=item.left.rank,
            node=node.id,
            file=item.left.path,
            line=item.left.line,
            source=source_of(node),
        )
    yield from _spread(subject)
    if unseen := unseen_fusion(subject):
        raise CannotJudge(unseen)


def _spread(subject: Subject) -> Iterator[Diagnosis]:
    """The group of layers that costs most by lying across nodes, if it would fit into one."""
    one = subject.cluster.ranks[min(subject.cluster.ranks)]
    groups = spread_groups(one, subject.machine)
    if not groups:
        return
    try:
        step = subject.cost.seconds
    except CannotJudge:
        return
    if groups[0].saved >= _WORTH * step:
        yield _apart(subject, groups[0], step)


def _apart(subject: Subject, group: SpreadGroup, step: float) -> Diagnosis:
    node = max(group.collectives, key=lambda item: item.bytes or 0).node
    rank = min(subject.cluster.ranks)
    return diagnosis(
        TASK,
        "warning" if group.saved >= _MUCH * step else "info",
        f"the group of ranks {ranks_text(group.ranks)} lies on {group.nodes} nodes of "
        f"{subject.machine.node_devices} devices and would fit into one: "
        f"{plural(len(group.collectives), 'collective')} of layers run between nodes; with its "
        f"axis last in the device matrix they are neighbours, which saves "
        f"{seconds_text(group.saved)} of a step of {seconds_text(step)}",
        subject.command("comm", "groups", "RUN"),
        rank=rank,
        node=node.id,
        file=subject.cluster.ranks[rank].path,
        line=node.line,
        source=source_of(node),
        edit=Edit(setting="Layout", value="this axis last in device_matrix and alias_name"),
        gain=Gain(seconds=group.saved),
        weight=group.saved,
        share=group.saved / step,
    )

"""Is something redistributed that another strategy or setting would leave in place?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis, strategy_edit
from irtool.diagnosis.subject import Reads, Subject, source_of
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import bytes_text, plural, seconds_text
from irtool.planning.plans.edits import NetworkEdit, network_edits

TASK: Task = "redistribution"
READS: Reads = "begin"
_WORK = 2_500
"""Operators to judge in all trials together: this is a first look."""
_MUCH = 0.2
"""Part of a step from which on saving it is more than an opportunity: a model says it, and what
is cut like its equals may be meant so."""
_MOST = 3
_PLANNED = 0.099
"""Share at most of a strategy that is merely dearer than another: where most of a step goes, which
is told from a tenth on, explains it."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Edits that were checked on the whole network, and what each saves.

    Args:
        subject: the run; the begin dump of its lowest rank is searched.

    Yields:
        the best few, one for a line of Python or setting; none for a network that is refused, or
        that nothing is redistributed in on one device a stage.

    Raises:
        CannotJudge: there is no whole begin dump, or nobody says for how many devices.
    """
    checked = subject.checked
    if checked.report.accepted is False or not checked.report.operators:
        return
    if not checked.report.redistributions and subject.parallel.stage_size < 2:
        return
    proposed = network_edits(
        checked.dump, checked.context, checked.report, subject.machine, work=_WORK,
        known=(subject.structure, subject.cost), network=checked.network,
    )  # fmt: skip
    reported: set[object] = set()
    for edit in proposed.edits:
        place = edit.setting or (edit.node is not None and (edit.node.op, source_of(edit.node)))
        if place in reported or len(reported) >= _MOST:
            continue
        reported.add(place)
        yield _diagnosis(subject, edit, proposed.before.seconds, checked.dump.path)


def _diagnosis(subject: Subject, edit: NetworkEdit, step: float, path: str) -> Diagnosis:
    share = max(0.0, edit.seconds) / step if step else 0.0
    node = edit.node
    source = source_of(node)
    if node is None:
        cause = f"{edit.setting} is off: tensors go from layout to layout by gathers"
        change = Edit(setting=edit.setting, value=True)
        command = subject.command("check", "RUN", "--enable-alltoall")
    else:
        layer = layer_of_scope(node.scope)
        many = f" and {len(edit.nodes) - 1} more" if len(edit.nodes) > 1 else ""
        usual = "different from its peers in other layers, " if edit.is_usual else ""
        of = "" if many or layer == NETWORK else f" of {layer}"
        cause = (
            f"{node.op} {node.id}{of}{many} is cut {edit.old}: {usual}"
            f"what it takes or gives has to be redistributed"
            if edit.edges > 0 or edit.is_usual
            else f"{node.op} {node.id}{of}{many} is cut {edit.old}, {edit.new} is cheaper"
        )
        if edit.is_layer:
            cause = (
                f"{len(edit.nodes)} operators of {layer} are sharded differently from their "
                "peers in other "
                f"layers ({node.op} {node.id} is cut {edit.old}), so that tensors are "
                "redistributed where it begins and ends"
            )
        change = strategy_edit(source, str(edit.old), str(edit.new))
        command = subject.command("check", "RUN", "--redistributions")
    fewer = f", {plural(edit.edges, 'redistribution')} fewer" if edit.edges > 0 else ""
    moved = f", {bytes_text(edit.bytes)} less to receive" if edit.bytes > 0 else ""
    saves = edit.seconds > 0
    worth = f"{seconds_text(edit.seconds)} of" if saves else "no longer than now,"
    is_fault = (edit.is_usual and saves) or (share >= _MUCH and edit.edges > 0)
    return diagnosis(
        TASK,
        "warning" if is_fault else "info",
        f"{cause}; {worth} {seconds_text(step)} a step{fewer}{moved}",
        command,
        rank=subject.picked.rank,
        node=None if node is None else node.id,
        file=path,
        line=0 if node is None else node.line,
        source=source,
        edit=change,
        gain=Gain(seconds=edit.seconds) if saves else None,
        share=share if node is None or edit.edges > 0 else min(share, _PLANNED),
        weight=edit.seconds + (1.0 if edit.is_usual else 0.0),
    )

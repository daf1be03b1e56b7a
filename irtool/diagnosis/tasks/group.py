"""Do groups make sense: their members, their names, the links that they use?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.matching import disagreements
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject, source_of

TASK: Task = "group"
READS: Reads = "validate"
_KINDS = {"name": "warning", "members": "error", "not a member": "error"}


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Groups that contradict themselves or one another."""
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

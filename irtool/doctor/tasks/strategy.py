"""Would MindSpore refuse a strategy, and what would it take instead?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.doctor.diagnosis import Diagnosis, Task
from irtool.doctor.subject import Checked, Reads, Subject, source_of
from irtool.ir.finding import Edit
from irtool.sharding.network.report import CheckFinding
from irtool.sharding.suggest import Proposals, proposals

TASK: Task = "strategy"
READS: Reads = "begin"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for each strategy that the compiler refuses, on every stage that left a dump."""
    for rank in _one_a_stage(subject):
        checked = subject.checked_of(rank) if rank != subject.picked.rank else subject.checked
        wrong = [item for item in checked.report.findings if item.severity == "error"]
        proposed = proposals(checked.dump, checked.report) if wrong else None
        for finding in wrong:
            yield _refused(subject, checked, finding, proposed, rank)


def _one_a_stage(subject: Subject) -> list[int]:
    """The lowest rank of each stage that has a begin dump."""
    size = subject.parallel.stage_size
    lowest: dict[int, int] = {}
    for rank, compilation in sorted(subject.compilations.items()):
        if compilation.file("step_parallel_begin") is not None:
            lowest.setdefault(rank // size, rank)
    return list(lowest.values()) or [subject.picked.rank]


def _refused(
    subject: Subject,
    checked: Checked,
    finding: CheckFinding,
    proposed: Proposals | None,
    rank: int,
) -> Diagnosis:
    source = source_of(finding.node)
    rows = proposed.strategies.get(finding, ()) if proposed is not None else ()
    edit = None
    strategy = finding.node.in_strategy if finding.node is not None else None
    if rows and source is not None and strategy is not None:
        edit = Edit(file=source.path, line=source.line, old=str(strategy), new=str(rows[0]))
    node = finding.node
    cause = (
        f"MindSpore refuses {node.op}: {finding.message}" if node is not None else finding.message
    )
    return Diagnosis(
        TASK,
        "error",
        cause,
        subject.command("check", "RUN"),
        rank=rank,
        node=None if node is None else node.id,
        file=checked.dump.path,
        line=0 if node is None else node.line,
        source=source,
        edit=edit,
    )

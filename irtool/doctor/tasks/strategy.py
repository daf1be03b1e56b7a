"""Would MindSpore refuse a strategy, and what would it take instead?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.doctor.diagnosis import Diagnosis, Task, diagnosis
from irtool.doctor.subject import Checked, Reads, Subject, source_of
from irtool.ir.finding import Edit, Finding
from irtool.ir.graph import Node
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
    finding: Finding,
    proposed: Proposals | None,
    rank: int,
) -> Diagnosis:
    node = finding.subject if isinstance(finding.subject, Node) else None
    source = finding.source or source_of(node)
    rows = proposed.strategies.get(finding, ()) if proposed is not None else ()
    edit = finding.edit
    strategy = node.in_strategy if node is not None else None
    if edit is None and rows and source is not None and strategy is not None:
        edit = Edit(file=source.path, line=source.line, old=str(strategy), new=str(rows[0]))
    refused = f"MindSpore refuses {finding.op}: " if finding.op else ""
    return diagnosis(
        TASK,
        "error",
        f"{refused}{finding.message}",
        subject.command("check", "RUN"),
        rank=rank,
        node=finding.node,
        file=checked.dump.path,
        line=finding.line,
        source=source,
        edit=edit,
    )

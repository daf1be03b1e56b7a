"""Which operator introduces error, compared with the other run?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings, compare_units
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import NoTensors
from irtool.doctor.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.doctor.subject import Reads, Subject, source_of
from irtool.ir.finding import SourceLine
from irtool.ir.units import plural
from irtool.syntax.run import Run
from irtool.syntax.source import DumpError

TASK: Task = "precision"
READS: Reads = "others"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for the first operator that introduces error of its own.

    Raises:
        CannotJudge: there is no other run, one of them left no tensors, or they are cut over
            different numbers of devices.
    """
    if subject.against is None:
        raise CannotJudge("there is nothing to compare with (--against RUN)")
    if len(subject.against.ranks) != len(subject.run.ranks):
        raise CannotJudge(
            f"the other run has {plural(len(subject.against.ranks), 'rank')}, this one "
            f"{len(subject.run.ranks)}: their tensors are other slices"
        )
    sides = [side_of_run(run, None) for run in (subject.against, subject.run)]
    for side in sides:
        if not side.units:
            raise CannotJudge(f"{side.path} left no tensors")
        if side.run is not None:
            _add_dump(side.run, side)
    try:
        units = compare_units(sides[0], sides[1], Settings())
    except NoTensors as error:
        raise CannotJudge(str(error)) from None
    faulty = next((unit for unit in units if unit.first is not None), None)
    if faulty is None or faulty.first is None:
        if not any(unit.pairs for unit in units):
            raise CannotJudge("no operator of one run has a partner in the other")
        return
    first = faulty.first
    node, name = first.pair.right.node, first.pair.right.name
    yield diagnosis(
        TASK,
        "error",
        f"{name} ({first.pair.right.type}) introduces error of its own: {_why(first)}",
        ("irtool", "diff", subject.against.path, subject.path),
        node=None if node is None else node.id,
        file=node.graph.dump.path if node is not None and node.graph and node.graph.dump else "",
        line=0 if node is None else node.line,
        source=source_of(node) or _source(first.pair.right.source),
        since=faulty.name,
    )


def _why(first: Judged) -> str:
    if first.why:
        return first.why
    return f"relative error {first.error_out:.2g}, of which {first.budget:.2g} is explained"


def _source(text: str) -> SourceLine | None:
    """``net.py:12``, as dumps of tensors print it."""
    path, _, line = text.rpartition(":")
    return SourceLine(path, int(line)) if path and line.isdecimal() else None


def _add_dump(run: Run, side: object) -> None:
    """The dump that tells most of the network, where there is one."""
    try:
        compilation = run.compilation()
        side.dump = compilation.read(compilation.main)  # type: ignore[attr-defined]  # a side
    except (LookupError, DumpError):
        return

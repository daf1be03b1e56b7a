"""Tensors of a run: the first NaN or infinity, and the first error against another run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from irtool.compare.runs.graphs import join_graph
from irtool.compare.runs.sides import Key, side_of_run
from irtool.compare.runs.units import Settings, UnitResult, compare_units, read_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.compare.tensors.nonfinite import LARGEST, NonFinite, first_non_finite
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Subject, source_of
from irtool.ir.finding import SourceLine
from irtool.ir.units import plural
from irtool.syntax.run import Run
from irtool.syntax.source import DumpError

_TASK: Task = "precision"


def tensor_diagnoses(subject: Subject) -> Iterator[Diagnosis]:
    """An error for the first NaN or infinity, and for the first operator with an error of its own.

    What comes behind a NaN is not compared. Where no operator adds an error, an info tells where
    this run computes in half precision and the other does not.

    Args:
        subject: the run, and in ``against`` the one that its tensors are held against.

    Raises:
        CannotJudge: there is no other run, one of them left no tensors, no operator has a partner
            in the other, or they are cut over different numbers of devices.
    """
    broken = _broken(subject)
    if broken is not None:
        yield broken
        return  # what is compared behind it differs because of it
    yield from _against(subject)


def _broken(subject: Subject) -> Diagnosis | None:
    """The first NaN or infinity of the run itself: of the first step that has any."""
    side = side_of_run(subject.run, None)
    _add_dump(subject.run, side)
    steps: dict[int, list[Key]] = {}
    for key in side.units:
        steps.setdefault(key[1], []).append(key)
    for step in sorted(steps):
        runs: list[TensorRun] = []
        for key in sorted(steps[step]):
            try:
                runs.append(read_unit(side.units[key]))
            except NoTensors:
                continue
        broken = first_non_finite(runs)
        if broken is not None:
            join_graph(side, broken.run)
            return _told_broken(subject, broken)
    return None


def _told_broken(subject: Subject, broken: NonFinite) -> Diagnosis:
    op, content = broken.op, broken.content
    node = op.node
    many = content.nan or content.infinite
    kind = "NaN" if content.nan else "infinity"
    of = f" in {many:,} of {content.count:,} elements" if content.count else ""
    name = node.full_name if node is not None and node.full_name else op.name
    if broken.is_read:
        cause = f"{name} ({op.type}) is given {kind}{of}, which no operator made: a weight or input"
    else:
        cause = f"{name} ({op.type}) makes the first {kind}{of}, of finite inputs"
        largest = broken.largest_input
        if not math.isnan(largest):
            cause += f" up to {largest:.3g}"
        limit = LARGEST.get(broken.dtype)
        if content.infinite and limit is not None and broken.dtype == "Float16":
            cause += f"; {broken.dtype} ends at {limit:,.0f}"
    step = broken.run.step
    return diagnosis(
        _TASK,
        "error",
        cause,
        subject.command("parse", "RUN", "--where", f'op == "{op.type}"')
        if subject.run.compilations
        else subject.command("doctor", "RUN", "--task", _TASK),
        rank=broken.run.rank,
        node=None if node is None else node.id,
        file=node.graph.dump.path if node is not None and node.graph and node.graph.dump else "",
        line=0 if node is None else node.line,
        source=source_of(node) or _source(op.source),
        since="" if step is None else f"step {step}",
    )


def _against(subject: Subject) -> Iterator[Diagnosis]:
    """An error for the first operator that introduces error of its own."""
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
        yield from _lowered(subject, subject.against, units)
        return
    first = faulty.first
    _check_slices(faulty, first)
    node, name = first.pair.right.node, first.pair.right.name
    yield diagnosis(
        _TASK,
        "error",
        f"{name} ({first.pair.right.type}) introduces error of its own: {_why(first)}",
        ("irtool", "diff", subject.against.path, subject.path),
        node=None if node is None else node.id,
        file=node.graph.dump.path if node is not None and node.graph and node.graph.dump else "",
        line=0 if node is None else node.line,
        source=source_of(node) or _source(first.pair.right.source),
        since=faulty.name,
    )


def _lowered(subject: Subject, against: Run, units: Sequence[UnitResult]) -> Iterator[Diagnosis]:
    """An info where this run computes in half precision what the other does not: no fault."""
    unit = next((unit for unit in units if unit.lowered), None)
    if unit is None:
        return
    (name, text), more = unit.lowered[0], len(unit.lowered) - 1
    judged = unit.comparison.judged if unit.comparison is not None else ()
    pair = next((item.pair for item in judged if item.lowered), None)
    node = None if pair is None else pair.right.node
    rest = f" (and {plural(more, 'more input')})" if more else ""
    yield diagnosis(
        _TASK,
        "info",
        f"precision is lowered before {name}: {text}{rest}; no operator has an error beyond that",
        ("irtool", "diff", against.path, subject.path),
        node=None if node is None else node.id,
        file=node.graph.dump.path if node is not None and node.graph and node.graph.dump else "",
        line=0 if node is None else node.line,
        source=source_of(node) or (None if pair is None else _source(pair.right.source)),
        since=unit.name,
    )


def _check_slices(unit: UnitResult, first: Judged) -> None:
    """Tensors of one operator that are cut otherwise are other slices, whatever their numbers.

    Raises:
        CannotJudge: they are.
    """
    both, places = unit.comparison, first.output
    if both is None or places is None or both.left.framework != both.right.framework:
        return
    left, right = both.left.columns.shapes[places[0]], both.right.columns.shapes[places[1]]
    if left != right:
        raise CannotJudge(
            f"the two runs are cut otherwise: {first.pair.right.name} gives {left} in the other "
            f"run and {right} in this one"
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

"""One run of several ranks as one list of operators: stages chained, micro-batches side by side.

Counters in msprobe's names begin anew on every rank and go on from micro-batch to micro-batch.
Taken apart, the same operator has the same name on all ranks and in all micro-batches.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.compare.layouts.alignment import OWN_CALL, calls_aligned, is_collective
from irtool.compare.layouts.declared import SideLayout
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.ir.dataclass import dataclass

Coordinate: TypeAlias = tuple[int, int, int]
"""Data parallel number, micro-batch, tensor parallel number."""
_CALL = re.compile(r"(?P<head>.+)\.(?P<call>\d+)\.(?P<way>forward|backward)")
_MODULE = re.compile(
    r"(?P<kind>Module|Cell)\.(?P<path>.+)\.(?P<type>[^.]+)"
    r"\.(?P<way>forward|backward|parameters_grad)\.(?P<call>\d+)"
)


class CannotChain(ValueError):
    """Ranks that the layout does not fit, and why."""


@dataclass(slots=True)
class LogicalOp:
    """An operator of the run as a whole.

    Attributes:
        op: as the lowest coordinate has it, under its name in the whole run.
        parts: the rank and its operator, by coordinate.
        stage: of the pipeline.
    """

    op: Op
    stage: int
    parts: dict[Coordinate, tuple[int, Op]] = field(
        default_factory=dict[Coordinate, "tuple[int, Op]"]
    )


@dataclass(slots=True)
class Chained:
    """A run as a whole, its tensors still in parts.

    Attributes:
        runs: by rank.
        layout: of them.
        micro: number of micro-batches.
        ops: in the order of execution of one micro-batch; indices are places in it.
        run: the same as a tensor dump, with the figures of the lowest coordinate.
    """

    runs: Mapping[int, TensorRun]
    layout: SideLayout
    micro: int
    ops: list[LogicalOp]
    run: TensorRun

    @property
    def is_cut(self) -> bool:
        """Whether there is anything to put together."""
        return len(self.runs) > 1 or self.micro > 1


_After: TypeAlias = tuple[LogicalOp, int]
"""The common call that a call of one rank alone follows, and as which one it does."""


def chained(runs: Mapping[int, TensorRun], layout: SideLayout, micro: int) -> Chained:
    """Bring the operators of all ranks together.

    Args:
        runs: one step of all ranks.
        layout: how they are cut.
        micro: number of micro-batches.

    Raises:
        CannotChain: there are other ranks than the layout says.
    """
    check_ranks(runs, layout)
    ranks = sorted(runs)
    ops: dict[str, LogicalOp] = {}
    before: dict[str, _After] = {}
    columns: dict[tuple[int, int], list[int]] = {}
    for place, rank in enumerate(ranks):
        columns.setdefault(layout.position(place)[1:], []).append(rank)
    for (data, tensor), members in sorted(columns.items()):
        naming = _Naming()
        for stage, rank in enumerate(members):
            named = like_lead(runs[columns[0, 0][stage]], runs[rank])
            last: LogicalOp | None = None
            for name, number, op in naming.named(named, micro):
                logical = ops.get(name)
                if logical is None:
                    logical = ops[name] = LogicalOp(_renamed(op, name), stage)
                    if OWN_CALL in name and last is not None and last.op.phase == op.phase:
                        common, number = before.get(last.op.name, (last, 0))
                        before[name] = common, number + 1
                last = logical
                logical.parts.setdefault((data, number, tensor), (rank, op))
            naming.next_stage()
    stages = layout.pipeline_parallel
    ordered = sorted(ops.values(), key=lambda item: _order(item, stages, before))
    return Chained(runs, layout, micro, ordered, as_run(runs, ordered))


def like_lead(lead: TensorRun, run: TensorRun) -> TensorRun:
    """One rank with the names that another has: a call that only one makes shifts its counters.

    Args:
        lead: the rank whose names count.
        run: the other.
    """
    if [op.name for op in lead.ops] == [op.name for op in run.ops]:
        return run
    names = {b.name: a.name for a, b in calls_aligned(lead, run)}
    heads = {name.rpartition(".")[0]: names[name].rpartition(".")[0] for name in names}
    known = {op.name for op in lead.ops}
    ops: list[Op] = []
    for op in run.ops:
        made = copy.copy(op)
        head, _, direction = op.name.rpartition(".")
        if _CALL.fullmatch(op.name) is not None and not op.is_module:
            made.name = (
                f"{heads[head]}.{direction}" if head in heads else f"{op.name}{OWN_CALL}{run.rank}"
            )
        elif op.name not in known:
            made.name = f"{op.name}{OWN_CALL}{run.rank}"
        ops.append(made)
    renamed = copy.copy(run)
    renamed.ops = ops
    return renamed


def check_ranks(runs: Mapping[int, TensorRun], layout: SideLayout) -> None:
    """Refuse a run that has another number of ranks than its layout.

    Args:
        runs: tensors of each rank.
        layout: degrees of parallelism, whose product is the number of ranks.

    Raises:
        CannotChain: the numbers differ; the message names both.
    """
    if len(runs) != layout.ranks:
        raise CannotChain(
            f"the layout makes {layout.ranks} ranks (tensor {layout.tensor_parallel} x data "
            f"{layout.data_parallel} x pipeline {layout.pipeline_parallel}), the run has "
            f"{len(runs)}"
        )


def micro_batches(
    sides: Sequence[Mapping[int, TensorRun]], layouts: Sequence[SideLayout]
) -> tuple[int, int]:
    """How many micro-batches each side has: declared, else by how often it calls the same things.

    Args:
        sides: one step of all ranks of each run.
        layouts: of both.
    """
    declared = [layout.micro_batches for layout in layouts]
    if declared[0] is not None or declared[1] is not None:
        return declared[0] or 1, declared[1] or 1
    counts = [_calls(runs, layout) for runs, layout in zip(sides, layouts, strict=True)]
    votes: Counter[tuple[int, int]] = Counter()
    for type_, ours in counts[0].items():
        theirs = counts[1].get(type_, 0)
        if theirs >= ours and theirs % ours == 0:
            votes[1, theirs // ours] += ours
        elif theirs and ours % theirs == 0:
            votes[ours // theirs, 1] += theirs
    return votes.most_common(1)[0][0] if votes else (1, 1)


def _calls(runs: Mapping[int, TensorRun], layout: SideLayout) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place, rank in enumerate(sorted(runs)):
        if layout.position(place)[1:] == (0, 0):
            for op in runs[rank].ops:
                if op.phase == "forward" and not is_collective(op) and not op.is_module:
                    counts[op.type] += 1
    if counts:
        return counts
    for place, rank in enumerate(sorted(runs)):  # level L0: modules alone
        if layout.position(place)[1:] == (0, 0):
            counts.update(op.type for op in runs[rank].ops if op.phase == "forward")
    return counts


class _Naming:
    """Names in the whole run of the operators of one rank after the other, stage by stage."""

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()
        self._here: Counter[str] = Counter()
        self._numbers: dict[str, set[int]] = {}
        self._numbers_here: dict[str, set[int]] = {}

    def next_stage(self) -> None:
        """What comes next runs on the next pipeline stage."""
        self._before += self._here
        self._here = Counter()
        for prefix, numbers in self._numbers_here.items():
            base = self._shift(prefix, numbers)
            self._numbers.setdefault(prefix, set()).update(number + base for number in numbers)
        self._numbers_here = {}

    def named(self, run: TensorRun, micro: int) -> Iterator[tuple[str, int, Op]]:
        """Name in the whole run, micro-batch and operator.

        Args:
            run: of one rank.
            micro: number of micro-batches.
        """
        calls: Counter[str] = Counter()
        for op in run.ops:
            split = _split(op)
            if split is not None and op.phase != "optimizer":
                calls[split[0]] = max(calls[split[0]], split[1] + 1)
                if (module := _MODULE.fullmatch(op.name)) is not None:
                    prefix, number, _ = _numbered(module["path"])
                    if number is not None:
                        self._numbers_here.setdefault(prefix, set()).add(number)
        for op in run.ops:
            split = _split(op)
            if split is None or op.phase == "optimizer":
                yield op.name, 0, op
                continue
            head, call = split
            per_micro = calls[head] // micro if calls[head] % micro == 0 else calls[head]
            yield self._name(op, head, call % per_micro), call // per_micro, op
        for head, count in calls.items():
            if _MODULE.fullmatch(f"{head}.0") is None:
                self._here[head] += count // micro if count % micro == 0 else count

    def _name(self, op: Op, head: str, call: int) -> str:
        module = _MODULE.fullmatch(op.name)
        if module is not None:
            path = self.path(module["path"])
            return f"{module['kind']}.{path}.{module['type']}.{module['way']}.{call}"
        direction = op.name.rpartition(".")[2]
        return f"{head}.{call + self._before[head]}.{direction}"

    def path(self, path: str) -> str:
        """A module's path in the whole run: stages may count their layers from 0."""
        prefix, number, rest = _numbered(path)
        if number is None:
            return path
        return (
            f"{prefix}{number + self._shift(prefix, self._numbers_here.get(prefix, set()))}{rest}"
        )

    def _shift(self, prefix: str, here: set[int]) -> int:
        before = self._numbers.get(prefix, set[int]())
        return len(before) if before & here else 0


def _numbered(path: str) -> tuple[str, int | None, str]:
    """A module's path up to its first number, that number, and the rest."""
    words = path.split(".")
    for place, word in enumerate(words):
        if word.isdecimal():
            before, after = words[:place], words[place + 1 :]
            prefix = ".".join([*before, ""]) if before else ""
            return prefix, int(word), "".join(f".{part}" for part in after)
    return path, None, ""


def _split(op: Op) -> tuple[str, int] | None:
    """A name without its counter, and that; of a module direction and path count by themselves."""
    match = _MODULE.fullmatch(op.name)
    if match is not None:
        return op.name.rpartition(".")[0], int(match["call"])
    match = _CALL.fullmatch(op.name)
    return None if match is None else (match["head"], int(match["call"]))


def _renamed(op: Op, name: str) -> Op:
    made = copy.copy(op)
    made.name = name
    if op.is_module and (match := _MODULE.fullmatch(name)) is not None:
        made.owner = match["path"]
        made.call = f"{match['kind']}.{match['path']}.{match['type']}.forward.{match['call']}"
    elif op.call:
        head, _, direction = name.rpartition(".")
        made.call = f"{head}.forward" if direction in ("forward", "backward") else name
    return made


def _order(item: LogicalOp, stages: int, before: Mapping[str, _After]) -> tuple[int, ...]:
    """Forward from the first stage on, backward from the last one.

    A call that one rank alone makes follows what it follows there.
    """
    common, number = before.get(item.op.name, (item, 0))
    if number:
        return (*_order(common, stages, before), number)
    phase = item.op.phase
    if phase == "forward":
        return 0, item.stage, item.op.index
    if phase == "backward":
        return 1, stages - item.stage, item.op.index
    return 2, item.stage, item.op.index


def as_run(runs: Mapping[int, TensorRun], ops: Sequence[LogicalOp]) -> TensorRun:
    """A dump of the operators, with the tensors of their lowest coordinates.

    Args:
        runs: by rank.
        ops: in the order of execution.
    """
    lead = runs[min(runs)]
    columns = Columns(resolution=lead.columns.resolution)
    made: list[Op] = []
    for index, item in enumerate(ops):
        rank, source = item.parts[min(item.parts)]
        theirs = runs[rank].columns
        places = {place: columns.add_from(theirs, place) for place in source.tensors}
        op = item.op
        op.index = index
        op.inputs = [places[place] for place in source.inputs]
        op.outputs = [places[place] for place in source.outputs]
        op.parameters = frozenset(places[place] for place in source.parameters)
        made.append(op)
    run = copy.copy(lead)
    run.columns, run.ops, run.complaints, run.casts = columns, made, [], None
    return run

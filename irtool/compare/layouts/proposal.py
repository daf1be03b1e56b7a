"""A layout proposed for two runs: from the values of their parameters, their shapes and names.

Tensor parallel ranks hold different slices of a parameter, data parallel ranks the same one;
pipeline stages call other operators.  What cannot be told stays as it is on one rank.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from irtool.compare.layouts.alignment import is_collective, same_operators_of
from irtool.compare.layouts.declared import SideLayout
from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import Columns, Op, Shape, TensorRun

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")
Runs = Mapping[int, TensorRun]


def proposed(left: Runs, right: Runs) -> tuple[SideLayout, SideLayout]:
    """The layout of both runs as far as they tell it.

    Args:
        left: one step of one run, by rank.
        right: the same of the other.
    """
    sides = (_degrees(left), _degrees(right))
    axes = _axes((left, right), sides)
    batch = _batch((left, right))
    made = [
        replace(side, batch=batch, parameters=axes if side.tensor_parallel > 1 else {})
        for side in sides
    ]
    return made[0], made[1]


def _degrees(runs: Runs) -> SideLayout:
    ranks = sorted(runs)
    calls = [_calls(runs[rank]) for rank in ranks]
    lengths = [len(list(group)) for _, group in groupby(calls)]
    per_stage = lengths[0] if len(lengths) > 1 and len(ranks) % lengths[0] == 0 else len(ranks)
    stage = ranks[:per_stage]
    slices: Counter[int] = Counter()
    values = [dict(_parameters(runs[rank])) for rank in stage]
    for name in values[0]:
        held = {value[name][1] for value in values if name in value}
        if len(held) > 1 and per_stage % len(held) == 0:
            slices[len(held)] += 1
    tensor = slices.most_common(1)[0][0] if slices else 1
    return SideLayout(tensor, per_stage // tensor, len(ranks) // per_stage)


def _calls(run: TensorRun) -> tuple[str, ...]:
    return tuple(op.type for op in run.ops if op.phase == "forward" and not is_collective(op))


def _parameters(run: TensorRun) -> Iterator[tuple[str, tuple[Shape, Hashable]]]:
    """Shape and figures of each parameter, by its name."""
    columns = run.columns
    for op in run.ops:
        if op.phase != "forward":
            continue
        for place in op.parameters:
            yield _name(op, columns.labels[place]), _held(columns, place)


def _held(columns: Columns, place: int) -> tuple[Shape, Hashable]:
    if columns.norm[place] != columns.norm[place]:
        complete(columns, place, False)
    figures = columns.norm[place], columns.most[place], columns.least[place]
    return columns.shapes[place], figures


def _name(op: Op, label: str) -> str:
    return f"{op.owner}.{label}" if op.is_module and op.owner else f"{op.name}.{label}"


def _axes(runs: tuple[Runs, Runs], sides: tuple[SideLayout, SideLayout]) -> dict[str, int]:
    """The axis that ranks cut of each parameter, layers under one pattern."""
    leads = runs[0][min(runs[0])], runs[1][min(runs[1])]
    known = [dict(_parameters(lead)) for lead in leads]
    shapes = {name: (shape, known[1][name][0]) for name, (shape, _) in known[0].items()
              if name in known[1]}  # fmt: skip
    axes: dict[str, int] = {}
    for name, (ours, theirs) in (shapes | _of_calls(leads, known)).items():
        if len(theirs) != len(ours) or ".forward" in name:
            continue
        cut = [
            axis
            for axis, (a, b) in enumerate(zip(ours, theirs, strict=True))
            if a != b and a * sides[0].tensor_parallel == b * sides[1].tensor_parallel
        ]
        if len(cut) == 1:
            axes.setdefault(_NUMBER.sub("*", name), cut[0])
    return axes


def _of_calls(
    leads: tuple[TensorRun, TensorRun], known: Sequence[Mapping[str, tuple[Shape, Hashable]]]
) -> dict[str, tuple[Shape, Shape]]:
    """Shapes of parameters that a module of one side reads, and on the other a call by itself.

    What ranks cut is often read by a function (``F.linear(x, self.down.weight)``), so that the
    module does not run there.
    """
    shapes: dict[str, tuple[Shape, Shape]] = {}
    pairs = same_operators_of(*leads)
    for which in (0, 1):
        names = {held: name for name, held in known[which].items()
                 if name not in known[1 - which] and ".forward" not in name}  # fmt: skip
        for a, b in pairs.items() if names else ():
            op, other = leads[which].ops[(a, b)[which]], leads[1 - which].ops[(b, a)[which]]
            columns, others = leads[which].columns, leads[1 - which].columns
            theirs = {others.labels[place]: others.shapes[place] for place in other.inputs}
            for place in op.inputs if not op.is_module else ():
                name = names.get(_held(columns, place))
                if name is not None and columns.labels[place] in theirs:
                    both = columns.shapes[place], theirs[columns.labels[place]]
                    shapes[name] = (both[which], both[1 - which])
    return shapes


def _batch(runs: tuple[Runs, Runs]) -> int:
    """The axis of the first operator's input that data parallel ranks and micro-batches cut."""
    shapes = [_first_shape(by_rank[min(by_rank)]) for by_rank in runs]
    if len(shapes[0]) == len(shapes[1]):
        for axis, (a, b) in enumerate(zip(*shapes, strict=True)):
            if a != b:
                return axis
    return 0


def _first_shape(run: TensorRun) -> Shape:
    for op in run.ops:
        if op.phase == "forward" and op.inputs and not is_collective(op):
            return run.columns.shapes[op.inputs[0]]
    return ()

"""What some ranks alone have off, of runs that a layout file tells of: slices, calls of one rank.

A call that one rank alone makes may be a log, or a bias that is added once.  It is a finding where
what it puts out is read on, and the other run, whose part that is, lacks what it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irtool.compare.layouts.alignment import OWN_CALL, is_collective
from irtool.compare.layouts.chained import Chained, Coordinate, LogicalOp
from irtool.compare.layouts.slice_by_slice import Pieces, Slices, scaled_on, slice_errors
from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.judging.inserted import effect_text
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import complete, measure_arrays
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.semantics import is_random

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from irtool.compare.layouts.whole_runs import AcrossRanks

_SAME_NUMBERS = 1e-6
"""Relative difference of figures of one tensor that two calls show."""
_UNITS = 8.0
"""Units of the type, or times the error of other ranks' parts, that what goes in may be off by."""
_MOST_CALLS = 8
"""Calls of one rank alone that follow each other."""


def off_on_one_rank(across: AcrossRanks, before: int) -> Judged | None:
    """The first operator where some ranks alone have something off that the whole does not show.

    Args:
        across: what was compared.
        before: index of the operator that is accused anyway, in the left run; a call of one rank
            that makes what this reads says more.
    """
    own = next(_own_calls(across, before), None)
    return _scaled_slices(across, before if own is None else own.pair.left.index) or own


def _own_calls(across: AcrossRanks, before: int) -> Iterator[Judged]:
    """Calls of one rank alone whose result goes on, and is not what the other run has there."""
    readers = {item.pair.right.index: item for item in across.comparison.judged}
    side = across.sides[1]
    for place, item in enumerate(side.ops):
        op = item.op
        if OWN_CALL not in op.name or op.phase != "forward" or op.is_module:
            continue
        if is_collective(op) or is_random(op.type) or not op.outputs:
            continue
        ((coordinate, (rank, call)), *_) = item.parts.items()
        columns = side.runs[rank].columns
        if not is_float(columns.dtypes[call.outputs[0]]):
            continue
        made = figures_at(columns, call.outputs[0])
        for reader in side.ops[place + 1 :]:
            judged, part = readers.get(reader.op.index), reader.parts.get(coordinate)
            if part is None or judged is None or reader.op.phase != "forward":
                continue
            if judged.pair.left.index > before:
                break
            read = next((p for p in part[1].inputs if are_one(made, figures_at(columns, p))), None)
            if read is None:
                continue
            found = _of_own_call(across, judged, (coordinate, item), columns.labels[read])
            if found is not None:
                yield found
            break


def _of_own_call(
    across: AcrossRanks, reader: Judged, own: tuple[Coordinate, LogicalOp], label: str
) -> Judged | None:
    """What is said of a call of one rank alone, held to the part of the other run."""
    side, (coordinate, item) = across.sides[1], own
    rank = item.parts[coordinate][0]
    columns = side.runs[rank].columns
    places = next((pair for pair in reader.slots.inputs
                   if side.run.columns.labels[pair[1]] == label), None)  # fmt: skip
    if places is None:
        return None
    pieces = pieces_of(across, 1, reader.pair.right, places[1])
    errors = slice_errors(pieces)
    calls, source = _calls_before(side, coordinate, item)
    if len(pieces.get(rank, ())) != 1 or not errors or source < 0:
        return None
    expected, value = pieces[rank][0]
    try:
        given = read_array(columns.files[source], columns.dtypes[source])
    except BadPayload:
        return None
    if given.shape != value.shape:
        return None
    entry, effect, measure = (
        measure_arrays(expected, given), measure_arrays(given, value),
        measure_arrays(expected, value),
    )  # fmt: skip
    unit = roundoff(columns.dtypes[source])
    usual = max((error.error for other, error in errors.items() if other != rank), default=0.0)
    if entry.error > _UNITS * max(usual, unit):
        return None
    text = effect_text(calls, f"rank {rank}", (entry, effect, measure), unit, value.size)
    if not text:
        return None
    judged = Judged(reader.pair, reader.slots, "introduces error", entered=f"{label}{text}")
    judged.ranks, judged.output, judged.wrong = (rank,), places, "right"
    judged.error_in, judged.error_out, judged.budget = entry.error, measure.error, entry.error
    judged.maker_right = item.op
    return judged


def _calls_before(side: Chained, coordinate: Coordinate, last: LogicalOp) -> tuple[list[Op], int]:
    """Calls of one rank alone that lead to one, and the place of what the first of them reads.

    -1 where a call reads several tensors of that size, or none.
    """
    rank, call = last.parts[coordinate]
    columns = side.runs[rank].columns
    size = math.prod(columns.shapes[call.outputs[0]])
    makers = [item for item in side.ops if OWN_CALL in item.op.name and coordinate in item.parts]
    calls = [last.op]
    while True:
        floats = [p for p in call.inputs if is_float(columns.dtypes[p])]
        given = [p for p in floats if math.prod(columns.shapes[p]) == size]
        if len(given) != 1:
            return calls, -1
        wanted = figures_at(columns, given[0])
        earlier = next(
            (item for item in makers if item.op.name not in {op.name for op in calls}
             and any(are_one(wanted, figures_at(columns, p))
                     for p in item.parts[coordinate][1].outputs)), None,
        )  # fmt: skip
        if earlier is None or len(calls) == _MOST_CALLS:
            return calls, given[0]
        calls.insert(0, earlier.op)
        call = earlier.parts[coordinate][1]


def pieces_of(across: AcrossRanks, which: int, op: Op, place: int) -> Pieces:
    """What each rank holds of a tensor beside its part of the other run's, or the whole.

    Args:
        across: what was compared.
        which: 0 for the left run, 1 for the right one.
        op: of that run.
        place: of the tensor in it.

    Returns:
        Nothing where ranks hold terms of a sum, or one cannot be read.
    """
    import numpy as np

    partition = across.assembled.partitions.get((which, place))
    match = across.assembled.partners.get((which, place))
    if partition is None or match is None or (which, place) in across.assembled.sums:
        return {}
    side, other = across.sides[which], across.sides[1 - which]
    columns, label = other.run.columns, side.run.columns.labels[place]
    factor = across.assembled.factors[which] if op.phase == "backward" else 1.0
    parts = side.ops[op.index].parts
    pieces: dict[int, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
    try:
        full = np.reshape(read_array(columns.files[match], columns.dtypes[match]), partition.whole)
        for coordinate, (rank, part) in parts.items():
            theirs = side.runs[rank].columns
            p = next((p for p in part.tensors if theirs.labels[p] == label), None)
            if p is None:
                return {}
            value = read_array(theirs.files[p], theirs.dtypes[p])
            value = value * factor if factor != 1 else value
            expected = partition.part(full, coordinate, _all(parts))
            pieces.setdefault(rank, []).append((expected, value))
    except (BadPayload, ValueError):
        return {}
    return pieces


def _scaled_slices(across: AcrossRanks, before: float) -> Judged | None:
    """The first operator where slices of some ranks alone are off by a factor.

    Args:
        across: what was compared.
        before: index of the operator that is accused anyway, in the left run.
    """
    columns = [side.run.columns for side in across.sides]
    usual = Slices(), Slices()
    for item in across.comparison.judged:
        ops = item.pair.left, item.pair.right
        if ops[0].index >= before or ops[0].phase != "forward":
            return None
        for places in (*item.slots.inputs, *item.slots.outputs):
            dtypes = [columns[which].dtypes[places[which]] for which in (0, 1)]
            if not all(map(is_float, dtypes)):
                continue
            for which in (1, 0):
                if not across.sides[which].is_cut or places[which] in ops[which].parameters:
                    continue
                errors = slice_errors(pieces_of(across, which, ops[which], places[which]))
                ranks = usual[which].scaled(errors, max(map(roundoff, dtypes)))
                if ranks:
                    label = columns[0].labels[places[0]]
                    return scaled_on(item, label, places, which, ranks, errors)
    return None


def _all(parts: Mapping[Coordinate, object]) -> Sequence[Coordinate]:
    return sorted(parts)


def figures_at(columns: Columns, place: int) -> tuple[float, ...]:
    """Extremes and norm of a tensor, out of its values where the dump states none.

    Args:
        columns: that it is in.
        place: where it is.
    """
    if math.isnan(columns.norm[place]):
        complete(columns, place, False)
    return columns.most[place], columns.least[place], columns.norm[place]


def are_one(ours: tuple[float, ...], theirs: tuple[float, ...]) -> bool:
    """Whether two calls show one tensor.

    Args:
        ours: figures of one.
        theirs: of the other.
    """
    return all(math.isclose(a, b, rel_tol=_SAME_NUMBERS) for a, b in zip(ours, theirs, strict=True))

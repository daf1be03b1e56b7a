"""Two runs that a layout file tells of: put together, compared, and what is wrong between ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irtool.compare.layouts.additions import regrouped_additions
from irtool.compare.layouts.alignment import OWN_CALL, is_collective, same_operators_of
from irtool.compare.layouts.assembled import Assembler, Odd
from irtool.compare.layouts.chained import (
    Chained,
    chained,
    check_ranks,
    micro_batches,
)
from irtool.compare.layouts.declared import SideLayout
from irtool.compare.layouts.figures import (
    SUMMED,
    Figures,
    agree,
    figures_in,
    joined_figures,
    odd_parts,
)
from irtool.compare.layouts.one_rank import are_one, figures_at, off_on_one_rank, pieces_of
from irtool.compare.layouts.slice_by_slice import say_arguments
from irtool.compare.layouts.whole_runs import AcrossRanks, Runs
from irtool.compare.tensors.comparison import compare_tensors
from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Scheduler, measure_arrays
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots

_HALF = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_NAMED = 0.1
"""Share of the largest error from which on a rank is named."""


def compare_across(
    runs: tuple[Runs, Runs],
    layouts: tuple[SideLayout, SideLayout],
    *,
    schedule: Scheduler | None = None,
    training: Training = "first step",
) -> Iterator[AcrossRanks]:
    """Compare one step of two runs.

    Ranks that both runs have alike (as many tensor or data parallel ones) are compared one by one.

    Args:
        runs: of both sides by rank.
        layouts: of both.
        schedule: where files are measured.
        training: what parameters have been through before this step.

    Raises:
        CannotChain: a layout does not fit its run.
    """
    for which in (0, 1):
        check_ranks(runs[which], layouts[which])
    micro = micro_batches(runs, layouts)
    if micro[0] == micro[1]:
        micro = (1, 1)  # compared one by one, by their counters
    for name, parts, reduced in _common(runs, layouts):
        sides = (
            chained(parts[0], reduced[0], micro[0]), chained(parts[1], reduced[1], micro[1]),
        )  # fmt: skip
        yield _compare(sides, name, schedule, training)


def _common(
    runs: tuple[Runs, Runs], layouts: tuple[SideLayout, SideLayout]
) -> Iterator[tuple[str, tuple[Runs, Runs], tuple[SideLayout, SideLayout]]]:
    """Parts of both runs that are compared with each other, and what is left of their layouts."""
    ours, theirs = layouts
    tensor = ours.tensor_parallel if ours.tensor_parallel == theirs.tensor_parallel else 1
    data = ours.data_parallel if ours.data_parallel == theirs.data_parallel else 1
    for d in range(data):
        for t in range(tensor):
            words = [f"tensor parallel rank {t}"] * (tensor > 1)
            words += [f"data parallel rank {d}"] * (data > 1)
            parts = [
                {
                    rank: runs[which][rank]
                    for place, rank in enumerate(sorted(runs[which]))
                    if (tensor == 1 or layouts[which].position(place)[2] == t)
                    and (data == 1 or layouts[which].position(place)[1] == d)
                }
                for which in (0, 1)
            ]
            reduced = [
                replace(
                    layout,
                    tensor_parallel=1 if tensor > 1 else layout.tensor_parallel,
                    data_parallel=1 if data > 1 else layout.data_parallel,
                )
                for layout in layouts
            ]
            yield ", ".join(words), (parts[0], parts[1]), (reduced[0], reduced[1])


def _compare(
    sides: tuple[Chained, Chained], name: str, schedule: Scheduler | None, training: Training
) -> AcrossRanks:
    folder = tempfile.TemporaryDirectory(prefix="irtool-diff-")
    regrouped = regrouped_additions(sides, same_operators_of(sides[0].run, sides[1].run))
    sides, pairs = regrouped.sides, regrouped.pairs
    assembled = Assembler(sides, folder.name).assemble(pairs, regrouped.unsummed)
    comparison = compare_tensors(
        sides[0].run,
        sides[1].run,
        known=pairs,
        schedule=schedule,
        training=training,
        sharded=True,
    )
    across = AcrossRanks(comparison, assembled, sides, name, folder)
    _settle(across, pairs)
    return across


def _settle(across: AcrossRanks, pairs: Mapping[int, int]) -> None:
    """Which of all that is wrong comes first, and on which ranks."""
    comparison = across.comparison
    first = comparison.first
    before = len(comparison.left.ops) if first is None else first.pair.left.index
    first = off_on_one_rank(across, before) or first
    partners = {b: a for a, b in pairs.items()}
    candidates: list[tuple[float, int, Judged]] = []
    for odd in across.assembled.odd:
        place = odd.op if odd.which == 0 else _place_in_left(odd.op, partners)
        candidates.append((place, 0, _of_odd(across, odd, partners)))
    if first is not None:
        first.ranks = first.ranks or _ranks_at_fault(across, first)
        if not first.ranks:
            first.ranks, first.ranks_open = _ranks_by_figures(across, first)
        _say_arguments(across, first)
        _name_stage(across, first)
        if first.entered and not first.parameter and first.output and not first.maker_right:
            _name_maker(across, first, pairs)
        candidates.append((first.pair.left.index, 1, first))
    if candidates:
        comparison.first = min(candidates, key=lambda row: row[:2])[2]


def _place_in_left(op: int, partners: Mapping[int, int]) -> float:
    """Where an operator of the right run lies among those of the left one: behind its neighbour."""
    if op in partners:
        return partners[op]
    return max((left for right, left in partners.items() if right < op), default=-1) + 0.5


def _of_odd(across: AcrossRanks, odd: Odd, partners: Mapping[int, int]) -> Judged:
    sides = across.sides
    op = sides[odd.which].run.ops[odd.op]
    if odd.which == 0:
        pair = OpPair(op, op, "order")
    else:
        left = partners.get(odd.op)
        pair = OpPair(op if left is None else sides[0].run.ops[left], op, "order")
    judged = Judged(pair, Slots((), ()), "introduces error", why=odd.why)
    judged.error_out = odd.error
    judged.ranks = odd.ranks
    judged.between = "replica" if odd.label else "sum"
    judged.wrong = ("left", "right")[odd.which]
    return judged


def _ranks_at_fault(across: AcrossRanks, first: Judged) -> tuple[int, ...]:
    """Whose part of the accused tensor is off; empty where it is everybody's or cannot be told."""
    if first.output is None:
        return ()
    for which in (1, 0):
        side = across.sides[which]
        if len(side.runs) < 2:
            continue
        ranks = _odd_ranks(across, which, first)
        if ranks:
            return ranks
    return ()


def _odd_ranks(across: AcrossRanks, which: int, first: Judged) -> tuple[int, ...]:
    assert first.output is not None
    op = (first.pair.left, first.pair.right)[which]
    errors = {
        rank: max(measure_arrays(*pair).error for pair in pairs)
        for rank, pairs in pieces_of(across, which, op, first.output[which]).items()
    }
    worst = max(errors.values(), default=0.0)
    odd = tuple(sorted(rank for rank, error in errors.items() if error > _NAMED * worst))
    partition = across.assembled.partitions.get((which, first.output[which]))
    is_cut = partition is not None and (partition.batch, partition.tensor) != (None, None)
    return odd if is_cut or len(odd) < len(errors) else ()


def _say_arguments(across: AcrossRanks, first: Judged) -> None:
    """Read the arguments of the ranks at fault."""
    ops = first.pair.left, first.pair.right
    for which in (1, 0):
        parts = across.sides[which].ops[ops[which].index].parts.values()
        own = {rank: part.attributes for rank, part in parts if rank in first.ranks}
        if len(across.sides[which].runs) > 1 and own:
            say_arguments(first, ops[1 - which].attributes, ops[which].attributes, own)
            return


def _name_stage(across: AcrossRanks, first: Judged) -> None:
    """Say which pipeline stage is at fault, and its ranks where no part tells fewer."""
    for which in (1, 0):
        side = across.sides[which]
        if side.layout.pipeline_parallel < 2:
            continue
        item = side.ops[(first.pair.left, first.pair.right)[which].index]
        first.stage = item.stage
        if not (first.ranks or first.ranks_open):
            first.ranks = tuple(sorted({rank for rank, _ in item.parts.values()}))
        return


def _ranks_by_figures(
    across: AcrossRanks, first: Judged
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Whose part of the accused tensor is off by figures, and of which ranks one may be it."""
    if first.output is None:
        return (), ()
    if ranks := _changed_ranks(across, first):
        return ranks, ()
    for which in (1, 0):
        side, op = across.sides[which], (first.pair.left, first.pair.right)[which]
        place = first.output[which]
        columns = side.run.columns
        if len(side.runs) < 2 or columns.files[place]:
            continue
        cells = _cells(across, which, op, place)
        whole = figures_in(across.sides[1 - which].run.columns, first.output[1 - which])
        unit = roundoff(columns.dtypes[place])
        slack = SUMMED if first.parameter else max(SUMMED, 4 * unit, 2 * first.error_in)
        odd = odd_parts([row for row, _ in cells], whole, slack, first.parameter)
        ranks = tuple(sorted({rank for number in odd for rank in cells[number][1]}))
        others = _cells(across, 1 - which, (first.pair.left, first.pair.right)[1 - which],
                        first.output[1 - which])  # fmt: skip
        if len(odd) > 1 and len(others) > 1 and len(cells) % len(others) == 0:
            # Norms and means of half precision are stated in it.
            stated = max(SUMMED, 2 * unit if unit > _HALF else 0.0)
            rows = [row for row, _ in cells], [row for row, _ in others]
            odd = _in_other_parts(*rows, odd, stated) or odd
            ranks = tuple(sorted({rank for number in odd for rank in cells[number][1]}))
        if odd:
            return (ranks, ()) if len(odd) == 1 else ((), ranks)
    return (), ()


def _changed_ranks(across: AcrossRanks, first: Judged) -> tuple[int, ...]:
    """Ranks that read something else than a call before gives them, where other ranks read that.

    What lies between is not in the dump; the figures of both on one rank are exact.
    """
    assert first.output is not None
    for which in (1, 0):
        side, op = across.sides[which], (first.pair.left, first.pair.right)[which]
        label = side.run.columns.labels[first.output[which]]
        reader = side.ops[op.index]
        if len(side.runs) < 2 or not label.startswith("input"):
            continue
        for maker in reversed(side.ops[: op.index]):
            if maker.op.phase != op.phase or OWN_CALL in maker.op.name:
                continue
            gives: dict[int, bool] = {}
            for coordinate, (rank, part) in reader.parts.items():
                columns = side.runs[rank].columns
                read = next((p for p in part.inputs if columns.labels[p] == label), None)
                made = maker.parts.get(coordinate)
                if read is None or made is None:
                    break
                wanted = {rank: figures_at(columns, read)}
                gives[rank] = gives.get(rank, True) and _gives(columns, made[1], wanted)
            if len(gives) == len(side.runs) and any(gives.values()):
                return () if all(gives.values()) else tuple(
                    sorted(rank for rank, is_one in gives.items() if not is_one)
                )  # fmt: skip
    return ()


def _in_other_parts(
    parts: Sequence[Figures], others: Sequence[Figures], odd: Sequence[int], slack: float
) -> tuple[int, ...]:
    """Those of some parts that lie in a part of the other run that they do not make up."""
    each = len(parts) // len(others)
    return tuple(
        number
        for number in odd
        if not agree(
            joined_figures(parts[number // each * each : (number // each + 1) * each]),
            others[number // each],
            slack,
        )
    )


def _cells(
    across: AcrossRanks, which: int, op: Op, place: int
) -> list[tuple[Figures, tuple[int, ...]]]:
    """Figures of each part of a tensor, in their order, and the ranks that hold it."""
    partition = across.assembled.partitions.get((which, place))
    side = across.sides[which]
    label = side.run.columns.labels[place]
    if partition is None or (partition.batch is None and partition.tensor is None):
        return []
    cells: dict[tuple[int, ...], tuple[Figures, set[int]]] = {}
    for coordinate, (rank, part) in sorted(side.ops[op.index].parts.items()):
        columns = side.runs[rank].columns
        own = next((p for p in part.tensors if columns.labels[p] == label), None)
        if own is None:
            return []
        number = (*coordinate[:2], 0) if partition.batch is not None else (0, 0, 0)
        number = (*number[:2], coordinate[2] if partition.tensor is not None else 0)
        cells.setdefault(number, (figures_in(columns, own), set()))[1].add(rank)
    return [(row, tuple(sorted(ranks))) for row, ranks in cells.values()]


def _name_maker(across: AcrossRanks, first: Judged, pairs: Mapping[int, int]) -> None:
    """Name the call without a partner that gives what is off, as the rank at fault has it.

    A call that one rank alone makes stands in no other's place, and what a pipeline stage receives
    was made on the one before.
    """
    assert first.output is not None
    side, op, paired = across.sides[1], first.pair.right, set(pairs.values())
    label = side.run.columns.labels[first.output[1]]
    parts = side.ops[op.index].parts
    wanted: dict[int, tuple[float, ...]] = {}
    for rank, part in parts.values():
        columns = side.runs[rank].columns
        place = next((p for p in part.tensors if columns.labels[p] == label), None)
        if place is not None and (not first.ranks or rank in first.ranks):
            wanted.setdefault(rank, figures_at(columns, place))
    for item in side.ops[: op.index]:
        if item.op.index in paired or item.op.is_module:
            continue
        if first.maker_right is not None and is_collective(item.op):
            continue
        makers = {owner for owner, call in item.parts.values()
                  if _gives(side.runs[owner].columns, call, wanted)}  # fmt: skip
        if makers:
            first.maker_right = item.op
            if OWN_CALL in item.op.name:
                first.ranks = tuple(sorted(makers))


def _gives(columns: Columns, call: Op, wanted: Mapping[int, tuple[float, ...]]) -> bool:
    """Whether a call gives what one of the ranks reads."""
    return any(
        are_one(own, figures_at(columns, place))
        for place in call.outputs
        for own in wanted.values()
    )

"""Two runs that are cut otherwise, or one that is cut: put together, then compared."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from irtool.compare.layouts.collectives import WrongCollective, wrong_collectives
from irtool.compare.layouts.figures import SUMMED, figures_in, figures_of, odd_parts
from irtool.compare.layouts.logical import (
    Logical,
    OtherReplica,
    put_together,
    rank_errors,
    rank_pieces,
)
from irtool.compare.layouts.outline import outline_of
from irtool.compare.layouts.ranks import Ranks, node_ops, operand
from irtool.compare.layouts.same_operators import same_operators
from irtool.compare.layouts.slice_by_slice import (
    Slices,
    say_arguments,
    scaled_on,
    slice_errors,
)
from irtool.compare.layouts.stages import (
    Begin,
    CannotJoin,
    Chain,
    begin_of,
    put_stages_together,
    stages_of,
    without_own,
)
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.facts import Differing, Kind
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Scheduler
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.units import error_text, numbered_text


@dataclass(frozen=True, slots=True)
class CutRun:
    """One step of a run, on one device or cut over several.

    Attributes:
        ranks: its tensors by rank, joined with their graphs where they have some.
        begin: gives a rank's ``step_parallel_begin``, the network before it is cut, if it has one.
    """

    ranks: Mapping[int, TensorRun]
    begin: Begin

    @property
    def one_device(self) -> TensorRun | None:
        """The whole run; None where it is cut."""
        return next(iter(self.ranks.values())) if len(self.ranks) == 1 else None


@dataclass(slots=True)
class LayoutComparison:
    """What came of it.

    Attributes:
        comparison: of both runs, put together.
        logical: how the run that is cut was put together; of two the right one.
        wrong: collectives that did not do their work.
        folder: holds the joined tensors; gone with this object.
        micros: number of micro-batches of each side.
        ranks: the runs of both sides, by rank.
    """

    comparison: TensorComparison
    logical: Logical
    wrong: Sequence[WrongCollective]
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)
    micros: tuple[int, int] = (1, 1)
    ranks: tuple[Mapping[int, TensorRun], Mapping[int, TensorRun]] = ({}, {})

    @property
    def unknown(self) -> list[str]:
        """Tensors that could not be put together, and why."""
        labels = self.logical.run.columns.labels
        return [f"{labels[place]}: {why}" for place, why in self.logical.unknown.items()]

    @property
    def replicas(self) -> list[tuple[Kind, Differing]]:
        """Weights and data that ranks should be given alike and are not, as facts."""
        columns, given = self.logical.run.columns, list[tuple[Kind, Differing]]()
        for item in self.logical.replicas:
            place = next((p for p in item.op.tensors if columns.labels[p] == item.label), None)
            if not item.is_given or place is None or item.op.phase != "forward":
                continue
            kind: Kind = "indices"
            if is_float(columns.dtypes[place]):
                kind = "initial weights" if place in item.op.parameters else "input data"
            name = f"{item.op.name}.{item.label} on {numbered_text('rank', item.ranks)}"
            given.append((kind, Differing(name, item.error)))
        return given


def compare_layouts(
    left: CutRun,
    right: CutRun,
    *,
    schedule: Scheduler | None = None,
    training: Training = "first step",
) -> LayoutComparison:
    """Compare one step of two runs that are cut otherwise; at least one of them is cut.

    A run on one device that has a graph says what shapes tensors have and which operators are the
    same; without one each run that is cut is put together by its own begin dumps.

    Args:
        left: the run that is trusted more.
        right: the other.
        schedule: where files are measured.
        training: what parameters have been through before this step.

    Raises:
        CannotJoin: a rank has no graph, nothing says which pipeline stage ranks run, or what shapes
            tensors have.
    """
    folder = tempfile.TemporaryDirectory(prefix="irtool-diff-")
    sides = left, right
    alone = next((run for side in sides if (run := side.one_device) is not None), None)
    reference = alone if alone is not None and has_graph(alone) else None
    runs: list[TensorRun] = []
    chains: list[Chain | None] = []
    for side, name in zip(sides, ("left", "right"), strict=True):
        if (whole := side.one_device) is not None:
            chains.append(None)
            runs.append(whole)
            continue
        try:
            chain = _chain(side, reference, folder.name, f"{name}-")
        except CannotJoin as error:
            raise CannotJoin(f"the {name} run: {error}") from None
        chains.append(chain)
        runs.append(chain.logical.run)
    nodes = _same_nodes(runs, chains, reference)
    comparison = compare_tensors(
        runs[0], runs[1], nodes=nodes, schedule=schedule, training=training,
        sharded=nodes is not None,
    )  # fmt: skip
    wrong: list[WrongCollective] = []
    made: list[Logical] = []
    for which in (1, 0):
        chain = chains[which]
        if chain is None:
            continue
        own = Ranks(dict(sorted(sides[which].ranks.items())))
        collectives = list(wrong_collectives(own))
        if not made or collectives or chain.logical.replicas:
            _settle(comparison, chain, own, collectives, which == 1)
        wrong = [*collectives, *wrong]
        made.append(chain.logical)
    micros = [
        1 if side.one_device is not None else stages_of(dict(sorted(side.ranks.items()))).micros
        for side in sides
    ]
    ranks = left.ranks, right.ranks
    return LayoutComparison(comparison, made[0], wrong, folder, (micros[0], micros[1]), ranks)


def has_graph(run: TensorRun) -> bool:
    """Whether operators of a run are known to be nodes of a graph."""
    return any(op.node is not None for op in run.ops)


def _chain(side: CutRun, reference: TensorRun | None, folder: str, prefix: str) -> Chain:
    """A run that is cut, put together."""
    given = dict(sorted(side.ranks.items()))
    for run in given.values() if reference is None else (reference, *given.values()):
        if not has_graph(run):
            raise CannotJoin(f"{run.path}: no graph says how tensors are cut")
    stages = stages_of(given)
    ranks = Ranks(without_own(given, stages))
    if len(stages.ranks) > 1 or stages.micros > 1:
        return put_stages_together(reference, side.begin, ranks.runs, stages, folder, prefix)
    if reference is not None:
        return Chain(put_together(reference, ranks, folder, prefix))
    outline = outline_of(begin_of(side.begin, ranks.runs), ranks.lead)
    logical = put_together(outline, ranks, folder, prefix)
    logical.keep_told()
    return Chain(logical)


def _same_nodes(
    runs: Sequence[TensorRun], chains: Sequence[Chain | None], reference: TensorRun | None
) -> dict[Node, Node] | None:
    """Nodes of the left run and of the right one that are the same; None where nothing tells."""
    cut = [chain for chain in chains if chain is not None]
    if reference is not None:
        nodes = cut[0].logical.nodes
        is_left = chains[0] is None
        return dict(nodes) if is_left else {theirs: ours for ours, theirs in nodes.items()}
    if len(cut) == 1:
        return None
    same: dict[Node, Node] = {}
    for a, b in same_operators(runs[0], runs[1]).items():
        pair = runs[0].ops[a].node, runs[1].ops[b].node
        if pair[0] is not None and pair[1] is not None:
            same[pair[0]] = pair[1]
    return same


def _settle(
    comparison: TensorComparison,
    chain: Chain,
    ranks: Ranks,
    wrong: Sequence[WrongCollective],
    is_left: bool,
) -> None:
    """Which of all that is wrong comes first, and on which ranks."""
    first, logical = comparison.first, chain.logical
    places = {op.name: op.index for op in logical.run.ops}
    candidates = [
        *(
            (
                chain.places.get(
                    (min(collective.group), collective.op.name), places.get(collective.op.name, 0)
                ),
                0,
                _of_collective(collective, is_left),
            )
            for collective in wrong[:1]
        ),
        *(
            (
                item.op.index,
                1,
                _of_replica(_owned(item, comparison, chain, ranks, is_left), ranks, is_left),
            )
            for item in logical.replicas[:1]
        ),
    ]
    before = len(comparison.left.ops) if first is None else first.pair.left.index
    first = _scaled_slices(comparison, chain, ranks, before, is_left) or first
    if first is not None:
        output = None if first.output is None else first.output[is_left]
        parts = ranks if output is None else chain.made_of.get(output, ranks)
        if not first.ranks:
            _name_ranks(comparison, first, logical, parts, is_left)
        ops = first.pair.left, first.pair.right
        name = ops[is_left].name
        own = {parts.rank_of(part): by_name[name].attributes for part, by_name in parts.ops.items()
               if parts.rank_of(part) in first.ranks and name in by_name}  # fmt: skip
        say_arguments(first, ops[not is_left].attributes, ops[is_left].attributes, own)
        if output in chain.made_of and len(set(map(id, chain.made_of.values()))) > 1:
            first.stage = chain.stage_of(output)
            if not (first.ranks or first.ranks_open):
                first.ranks = tuple(sorted({parts.rank_of(part) for part in parts.runs}))
        if first.entered and not first.parameter and not (first.maker_left or first.maker_right):
            _name_own(first, logical, ranks, is_left)
        named = (first.maker_left, first.maker_right)[is_left]
        op = named or (first.pair.left, first.pair.right)[is_left]
        candidates.append((op.index, 2, first))
    if candidates:
        comparison.first = min(candidates, key=lambda item: item[:2])[2]


def _scaled_slices(
    comparison: TensorComparison, chain: Chain, ranks: Ranks, before: int, is_left: bool
) -> Judged | None:
    """The first operator where slices of some ranks alone are off by a factor.

    Args:
        comparison: of both runs put together.
        chain: how the one that is cut was.
        ranks: of it.
        before: index of the operator that is accused anyway, in the left run.
        is_left: the left run is on one device, or the one that is not looked at.
    """
    which, usual = int(is_left), Slices()
    run, other = (comparison.left, comparison.right)[:: -1 if is_left else 1]
    for item in comparison.judged:
        ops = item.pair.left, item.pair.right
        node = ops[which].node
        if ops[0].index >= before or (node is not None and node.is_backward):
            return None
        for places in (*item.slots.inputs, *item.slots.outputs):
            place, dtype = places[which], run.columns.dtypes[places[which]]
            if not is_float(dtype) or place in ops[which].parameters:
                continue
            parts = chain.made_of.get(place, ranks)
            pieces = rank_pieces(chain.logical, parts, other, place, places[1 - which])
            errors = slice_errors(pieces)
            odd = usual.scaled(errors, roundoff(dtype))
            if odd:
                label = run.columns.labels[place]
                return scaled_on(item, label, places, which, odd, errors)
    return None


def _name_ranks(
    comparison: TensorComparison, first: Judged, logical: Logical, ranks: Ranks, is_left: bool
) -> None:
    """Say whose part of the accused tensor is off."""
    if first.output is None:
        return
    place, match = (first.output[1], first.output[0]) if is_left else first.output
    other = comparison.left if is_left else comparison.right
    errors = rank_errors(logical, ranks, other, place, match)
    if not errors:
        _name_ranks_by_figures(first, logical, ranks, (other, place, match))
        return
    worst = max(errors.values())
    odd = [rank for rank, error in errors.items() if error > 0.1 * worst]
    first.ranks = tuple(odd)


def _name_ranks_by_figures(
    first: Judged, logical: Logical, ranks: Ranks, tensor: tuple[TensorRun, int, int]
) -> None:
    """The same where figures alone were dumped: what they tell, and of whom they leave it open."""
    other, place, match = tensor
    cut, columns = logical.cuts.get(place), logical.run.columns
    op = next((op for op in logical.run.ops if place in op.tensors), None)
    if cut is None or op is None or columns.files[place] or place in logical.sums:
        return
    figures = figures_of(ranks, op.name, columns.labels[place])
    if figures is None or set(figures) != set(cut.parts):
        return
    cells = cut.replicas()
    whole = figures_in(other.columns, match)
    unit = roundoff(columns.dtypes[place])
    slack = SUMMED if first.parameter else max(SUMMED, 4 * unit, 2 * first.error_in)
    odd = odd_parts([figures[cell[0]] for cell in cells], whole, slack, first.parameter)
    owners = tuple(sorted({ranks.rank_of(part) for number in odd for part in cells[number]}))
    first.ranks, first.ranks_open = (owners, ()) if len(odd) == 1 else ((), owners)


def _name_own(first: Judged, logical: Logical, ranks: Ranks, is_left: bool) -> None:
    """Name what gives what is off and no other run has: a collective, an operator of one rank."""
    if first.output is None:
        return
    reader = (first.pair.left, first.pair.right)[is_left]
    label = logical.run.columns.labels[first.output[is_left]]
    common = {op.name for op in logical.run.ops}
    if (collective := _collective_before(reader, label, ranks)) is not None:
        _set_maker(first, collective, is_left)
        return
    import numpy as np

    for rank in first.ranks:
        if rank not in ranks.runs:
            return  # parts of micro-batches have no operators of their own
        read = ranks.values(rank, reader.name, label)
        columns = ranks.runs[rank].columns
        for op in ranks.runs[rank].ops:
            if op.name in common or read is None:
                continue
            made = [ranks.values(rank, op.name, columns.labels[place]) for place in op.outputs]
            if any(value is not None and np.array_equal(value.ravel(), read.ravel())
                   for value in made):  # fmt: skip
                _set_maker(first, op, is_left)


def _collective_before(op: Op, label: str, ranks: Ranks) -> Op | None:
    """The collective that gives an operand, None where another operator does."""
    text = label.partition(".")[2]
    if op.node is None or not label.startswith("input") or not text.isdecimal():
        return None
    source = operand(op.node, int(text))
    made = None if source is None else node_ops(ranks.lead).get(source[0])
    return made if made is not None and family(made.type) == "collective" else None


def _set_maker(first: Judged, op: Op, is_left: bool) -> None:
    if is_left:  # the other run
        first.maker_right = op
    else:
        first.maker_left = op


def _owned(
    replica: OtherReplica, comparison: TensorComparison, chain: Chain, ranks: Ranks, is_left: bool
) -> OtherReplica:
    """Which ranks hold other numbers than the other run, where it has that tensor."""
    run = comparison.right if is_left else comparison.left
    other = comparison.left if is_left else comparison.right
    for item in comparison.judged:
        op = item.pair.right if is_left else item.pair.left
        if op.index != replica.op.index:
            continue
        for places in (*item.slots.inputs, *item.slots.outputs):
            place, match = places[::-1] if is_left else places
            if run.columns.labels[place] == replica.label:
                parts = chain.made_of.get(place, ranks)
                errors = rank_errors(chain.logical, parts, other, place, match)
                odd = [rank for rank, error in errors.items() if error > 0.5 * replica.error]
                if odd and len(odd) < len(errors):
                    return replace(replica, ranks=tuple(sorted(odd)))
    return replica


def _of_replica(replica: OtherReplica, ranks: Ranks, is_left: bool) -> Judged:
    what = "data or a parameter" if replica.is_given else "a tensor that all of them hold whole"
    op, label = replica.op, replica.label
    if (made := _collective_before(op, label, ranks)) is not None:
        op, label = made, "its result"
    why = (
        f"{label}, {what}, is not the same on {numbered_text('rank', replica.ranks)} "
        f"as on the ranks that hold the same part: {error_text(replica.error)} relative"
    )
    judged = _alone(op, why, replica.error, is_left)
    judged.ranks = replica.ranks
    return judged


def _of_collective(wrong: WrongCollective, is_left: bool) -> Judged:
    judged = _alone(wrong.op, wrong.why, wrong.error, is_left)
    judged.budget = wrong.explained
    judged.z = wrong.error / wrong.explained
    judged.ranks = wrong.ranks
    return judged


def _alone(op: Op, why: str, error: float, is_left: bool) -> Judged:
    """What is said of an operator of the run that is cut, which the other need not have."""
    judged = Judged(OpPair(op, op, "graph"), Slots((), ()), "introduces error", why=why)
    judged.error_out, judged.error_in = error, 0.0
    if is_left:
        judged.maker_right = op
    else:
        judged.maker_left = op
    return judged

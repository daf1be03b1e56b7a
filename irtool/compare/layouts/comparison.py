"""A run on one device against one that is cut over several: tensors put together, then compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irtool.compare.layouts.collectives import WrongCollective, wrong_collectives
from irtool.compare.layouts.logical import Logical, OtherReplica, put_together, rank_errors
from irtool.compare.layouts.outline import outline_of
from irtool.compare.layouts.ranks import Ranks
from irtool.compare.layouts.same_operators import same_operators
from irtool.compare.layouts.stages import CannotJoin, Chain, put_stages_together, stages_of
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Scheduler
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import error_text


@dataclass(slots=True)
class LayoutComparison:
    """What came of it.

    Attributes:
        comparison: of the run on one device with the other, put together.
        logical: how that was put together.
        wrong: collectives that did not do their work.
        folder: holds the joined tensors; gone with this object.
    """

    comparison: TensorComparison
    logical: Logical
    wrong: Sequence[WrongCollective]
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)


def compare_layouts(
    one_device: TensorRun,
    runs: Mapping[int, TensorRun],
    *,
    is_left: bool = True,
    changed: Mapping[Node, Sequence[str]] | None = None,
    schedule: Scheduler | None = None,
    training: Training = "first step",
) -> LayoutComparison:
    """Compare one step.

    Args:
        one_device: the run on one device.
        runs: the other by rank, each joined with its graph.
        is_left: whether ``one_device`` is the left run.
        changed: what differs in matched nodes of the left graph, in words.
        schedule: where files are measured.
        training: what parameters have been through before this step.

    Raises:
        CannotJoin: a rank has no graph, or nothing says which pipeline stage ranks run.
    """
    ranks = Ranks(dict(sorted(runs.items())))
    _check((one_device, *ranks.runs.values()))
    stages = stages_of(ranks.runs)
    folder = tempfile.TemporaryDirectory(prefix="irtool-diff-")
    if len(stages.ranks) > 1 or stages.micros > 1:
        chain = put_stages_together(one_device, ranks.runs, stages, folder.name)
    else:
        chain = Chain(put_together(one_device, ranks, folder.name))
    logical = chain.logical
    nodes = dict(logical.nodes)
    sides = (one_device, logical.run)
    if not is_left:
        nodes = {theirs: ours for ours, theirs in nodes.items()}
        sides = (logical.run, one_device)
    comparison = compare_tensors(
        *sides, nodes=nodes, changed=changed, schedule=schedule, training=training, sharded=True
    )
    wrong = list(wrong_collectives(ranks))
    _settle(comparison, chain, ranks, wrong, is_left)
    return LayoutComparison(comparison, logical, wrong, folder)


def compare_with_other(
    one_device: TensorRun,
    runs: Mapping[int, TensorRun],
    begin: Dump,
    *,
    is_left: bool = True,
    schedule: Scheduler | None = None,
    training: Training = "first step",
) -> LayoutComparison:
    """Compare one step of a run of another framework on one device with one that is cut.

    Args:
        one_device: the run on one device.
        runs: the other by rank, each joined with its graph.
        begin: ``step_parallel_begin`` of that one: the network before it is cut.
        is_left: whether ``one_device`` is the left run.
        schedule: where files are measured.
        training: what parameters have been through before this step.

    Raises:
        CannotJoin: a rank has no graph, or runs a stage of a pipeline.
    """
    folder = tempfile.TemporaryDirectory(prefix="irtool-diff-")
    logical, ranks = _by_outline(runs, begin, folder.name, "")
    sides = (one_device, logical.run) if is_left else (logical.run, one_device)
    comparison = compare_tensors(*sides, schedule=schedule, training=training)
    wrong = list(wrong_collectives(ranks))
    _settle(comparison, Chain(logical), ranks, wrong, is_left)
    return LayoutComparison(comparison, logical, wrong, folder)


def compare_both(
    runs: tuple[Mapping[int, TensorRun], Mapping[int, TensorRun]],
    begins: tuple[Dump, Dump],
    *,
    schedule: Scheduler | None = None,
    training: Training = "first step",
) -> LayoutComparison:
    """Compare one step of two runs that are cut, each in its way.

    Args:
        runs: of both sides by rank, each joined with its graph.
        begins: ``step_parallel_begin`` of both.
        schedule: where files are measured.
        training: what parameters have been through before this step.

    Raises:
        CannotJoin: a rank has no graph, or runs a stage of a pipeline.
    """
    folder = tempfile.TemporaryDirectory(prefix="irtool-diff-")
    left, ours = _by_outline(runs[0], begins[0], folder.name, "left-")
    right, theirs = _by_outline(runs[1], begins[1], folder.name, "right-")
    nodes: dict[Node, Node] = {}
    for a, b in same_operators(left.run, right.run).items():
        pair = left.run.ops[a].node, right.run.ops[b].node
        if pair[0] is not None and pair[1] is not None:
            nodes[pair[0]] = pair[1]
    comparison = compare_tensors(
        left.run, right.run, nodes=nodes, schedule=schedule, training=training, sharded=True
    )
    wrong = list(wrong_collectives(theirs))
    _settle(comparison, Chain(right), theirs, wrong, True)
    others = list(wrong_collectives(ours))
    if others or left.replicas:
        _settle(comparison, Chain(left), ours, others, False)
    return LayoutComparison(comparison, right, [*others, *wrong], folder)


def _by_outline(
    runs: Mapping[int, TensorRun], begin: Dump, folder: str, prefix: str
) -> tuple[Logical, Ranks]:
    """A run put together by what its own begin dump says; what that does not tell is left out."""
    ranks = Ranks(dict(sorted(runs.items())))
    _check(ranks.runs.values())
    stages = stages_of(ranks.runs)
    if len(stages.ranks) > 1 or stages.micros > 1:
        raise CannotJoin(
            "pipeline stages and micro-batches are put together beside a run of MindSpore on one "
            "device alone"
        )
    logical = put_together(outline_of(begin, ranks.lead), ranks, folder, prefix)
    kept: list[Op] = []
    for op in logical.run.ops:
        op.inputs = [place for place in op.inputs if place in logical.cuts]
        op.outputs = [place for place in op.outputs if place in logical.cuts]
        if op.inputs or op.outputs:
            op.index = len(kept)
            kept.append(op)
    logical.run.ops = kept
    return logical, ranks


def _check(runs: Iterable[TensorRun]) -> None:
    for run in runs:
        if not any(op.node is not None for op in run.ops):
            raise CannotJoin(f"{run.path}: no graph says how tensors are cut")


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
        *((item.op.index, 1, _of_replica(item, is_left)) for item in logical.replicas[:1]),
    ]
    if first is not None:
        output = None if first.output is None else first.output[is_left]
        parts = ranks if output is None else chain.made_of.get(output, ranks)
        _name_ranks(comparison, first, logical, parts, is_left)
        named = (first.maker_left, first.maker_right)[is_left]
        op = named or (first.pair.left, first.pair.right)[is_left]
        candidates.append((op.index, 2, first))
    if candidates:
        comparison.first = min(candidates, key=lambda item: item[:2])[2]


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
        return
    worst = max(errors.values())
    odd = [rank for rank, error in errors.items() if error > 0.1 * worst]
    first.ranks = tuple(odd)


def _of_replica(replica: OtherReplica, is_left: bool) -> Judged:
    what = "data or a parameter" if replica.is_given else "a tensor that all of them hold whole"
    which = ", ".join(map(str, replica.ranks))
    why = (
        f"{replica.label}, {what}, is not the same on rank{'s' * (len(replica.ranks) > 1)} {which} "
        f"as on the ranks that hold the same part: {error_text(replica.error)} relative"
    )
    judged = _alone(replica.op, why, replica.error, is_left)
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

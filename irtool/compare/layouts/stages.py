"""Pipeline stages and micro-batches of MindSpore's own dumps, made comparable with one device.

Each stage runs operators of its own, each of them once a micro-batch; which one that is the graph
says (``micro``).  What a rank computes of one micro-batch is taken for a rank of its own, a *part*:
its operators get the names that they have on one device, and then parts are put together as ranks
are.  Activations are joined with the batch; gradients of parameters are terms of a sum.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irtool.compare.layouts.logical import Logical, put_together
from irtool.compare.layouts.ranks import Ranks, micro_of
from irtool.compare.layouts.same_operators import same_operators
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.ir.collectives import collective


class CannotJoin(ValueError):
    """Ranks whose tensors cannot be put together, and why."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Ranks by the stage that they run.

    Attributes:
        ranks: of each stage, ascending.
        micros: number of micro-batches.
    """

    ranks: Sequence[Sequence[int]]
    micros: int


def stages_of(runs: Mapping[int, TensorRun]) -> Stages:
    """Which ranks run which stage, and how many micro-batches there are.

    Args:
        runs: by rank, each joined with its graph.

    Raises:
        CannotJoin: ranks run different operators, and no transfer says which stage they are.
    """
    order = sorted(runs)
    numbers = {m for run in runs.values() for op in run.ops if (m := micro_of(op.node)) is not None}
    micros = max(numbers, default=0) + 1
    apart = [
        abs(order.index(info.peer) - place)
        for place, rank in enumerate(order)
        for op in runs[rank].ops
        if op.type in ("Send", "Receive") and op.node is not None
        if (info := collective(op.node)) is not None and info.peer in order
    ]
    size = min(apart, default=len(order))
    if not size or len(order) % size:
        raise CannotJoin("transfers between ranks do not say which pipeline stage each one is")
    stages = [order[n : n + size] for n in range(0, len(order), size)]
    for members in stages:
        names = {frozenset(op.name for op in runs[rank].ops) for rank in members}
        if len(names) > 1:
            raise CannotJoin("ranks of one pipeline stage run different operators")
    return Stages(stages, micros)


@dataclass(slots=True)
class Chain:
    """The stages of a run as a whole.

    Attributes:
        logical: all of them put together, one after the other.
        made_of: by place of a tensor in it, the parts that it was made of.
        places: index of an operator in it, by a rank and its name there.
    """

    logical: Logical
    made_of: dict[int, Ranks] = field(default_factory=dict[int, Ranks])
    places: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])


def put_stages_together(
    one_device: TensorRun, runs: Mapping[int, TensorRun], stages: Stages, folder: str
) -> Chain:
    """Put all stages together, and chain them.

    Args:
        one_device: the same step on one device.
        runs: all ranks.
        stages: which rank runs which.
        folder: where joined tensors are written.
    """
    made: list[tuple[Logical, Ranks]] = []
    names: dict[tuple[int, str], str] = {}
    factor: float | None = None
    for number in reversed(range(len(stages.ranks))):  # gradients begin on the last one
        members = {rank: runs[rank] for rank in stages.ranks[number]}
        ranks = Ranks(dict(_parts(one_device, members, stages.micros, names)), stages.micros)
        logical = put_together(one_device, ranks, folder, f"{number}-", factor)
        factor = logical.gradient_factor
        made.append((logical, ranks))
    chain = _chained(made[::-1])
    for number, members in enumerate(stages.ranks):
        known = _chain_names(chain, made[::-1][number][1])
        for (rank, name), here in names.items():
            if rank in members and here in known:
                chain.places[rank, name] = known[here]
    return chain


def _parts(
    one_device: TensorRun,
    runs: Mapping[int, TensorRun],
    micros: int,
    names: dict[tuple[int, str], str],
) -> Iterator[tuple[int, TensorRun]]:
    """What each rank of a stage computes of each micro-batch, by the number of the part.

    An operator is called as its partner on one device is; ``names`` takes what it is called here.
    """
    for rank, run in runs.items():
        numbers = [micro_of(op.node) for op in run.ops]
        for micro in range(micros):
            part = copy.copy(run)
            part.ops = []
            for op, number in zip(run.ops, numbers, strict=True):
                if number in (None, micro):
                    mine = copy.copy(op)
                    mine.index = len(part.ops)
                    part.ops.append(mine)
            partners = {
                b: one_device.ops[a].name for a, b in same_operators(one_device, part).items()
            }
            taken = set(partners.values())
            counts: Counter[str] = Counter()
            for op in part.ops:
                here = partners.get(op.index, op.name)
                if op.index not in partners and (micro_of(op.node) is not None or here in taken):
                    scope = op.name.rpartition("-op")[0]  # the same one in all micro-batches
                    here = f"{scope}-op{counts[scope]} of each micro-batch"
                    counts[scope] += 1
                names[rank, op.name] = here
                op.name = here
            yield rank * micros + micro, part


def _chain_names(chain: Chain, ranks: Ranks) -> dict[str, int]:
    """Indices in the chain of the operators of one stage, by their names."""
    return {
        op.name: op.index
        for op in chain.logical.run.ops
        if any(chain.made_of.get(place) is ranks for place in op.tensors)
    }


def _chained(made: Sequence[tuple[Logical, Ranks]]) -> Chain:
    """One run of all stages: forward from the first one on, backward from the last one."""
    rows = [
        (_order(op, stage, len(made)), stage, op)
        for stage, (logical, _) in enumerate(made)
        for op in logical.run.ops
    ]
    rows.sort(key=lambda row: row[0])
    lead = made[0][0].run
    run = copy.copy(lead)
    run.columns, run.ops, run.casts = Columns(resolution=lead.columns.resolution), [], None
    chain = Chain(Logical(run, gradient_factor=made[-1][0].gradient_factor))
    chained = chain.logical
    for _, stage, op in rows:
        logical, ranks = made[stage]
        places = {p: run.columns.add_from(logical.run.columns, p) for p in op.tensors}
        mine = copy.copy(op)
        mine.index = len(run.ops)
        mine.inputs = [places[place] for place in op.inputs]
        mine.outputs = [places[place] for place in op.outputs]
        mine.parameters = frozenset(places[p] for p in op.parameters if p in places)
        run.ops.append(mine)
        for old, new in places.items():
            chain.made_of[new] = ranks
            if old in logical.cuts:
                chained.cuts[new] = logical.cuts[old]
            if old in logical.sums:
                chained.sums[new] = logical.sums[old]
            if old in logical.unknown:
                chained.unknown[new] = logical.unknown[old]
    for logical, ranks in made:
        chained.nodes.update(logical.nodes)
        known = _chain_names(chain, ranks)
        for item in logical.replicas:
            item.op.index = known.get(item.op.name, item.op.index)
        chained.replicas += logical.replicas
    chained.replicas.sort(key=lambda item: item.op.index)
    return chain


def _order(op: Op, stage: int, stages: int) -> tuple[int, int, int]:
    if op.phase == "optimizer":
        return 2, stage, op.index
    backward = op.node is not None and op.node.is_backward
    return (1, stages - stage, op.index) if backward else (0, stage, op.index)

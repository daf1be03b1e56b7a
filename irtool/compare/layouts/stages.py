"""Pipeline stages and micro-batches of MindSpore's own dumps, made comparable with one device.

Each stage runs operators of its own, each of them once a micro-batch; which one that is the graph
says (``micro``).  What a rank computes of one micro-batch is taken for a rank of its own, a *part*:
its operators get the names that they have on one device, and then parts are put together as ranks
are.  Activations are joined with the batch; gradients of parameters are terms of a sum.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import TypeAlias

from irtool.compare.layouts.logical import Logical, gradients_of, put_together
from irtool.compare.layouts.outline import outline_of, takes_whole_batch
from irtool.compare.layouts.ranks import (
    Ranks,
    is_accumulated,
    micro_of,
    operand,
    parameter_of,
)
from irtool.compare.layouts.same_operators import MICRO_BATCH, same_operators
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.ir.collectives import collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node

_MOST_STEPS = 20
_ALIKE = 0.9
"""Share of its operators that a rank has to have in common with the others of its stage."""
_NUMBERED = re.compile(rf"\d+{MICRO_BATCH}")
"""What takes each micro-batch out of the batch has its number in the scope."""
Begin: TypeAlias = Callable[[int], Dump | None]


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
        common = _common(runs, members)
        if len(common) < _ALIKE * max(len(runs[rank].ops) for rank in members):
            raise CannotJoin("ranks of one pipeline stage run different operators")
    return Stages(stages, micros)


def _common(runs: Mapping[int, TensorRun], members: Sequence[int]) -> frozenset[str]:
    """Names of the operators that all of some ranks run."""
    names = [frozenset(op.name for op in runs[rank].ops) for rank in members]
    return names[0].intersection(*names[1:])


def without_own(runs: Mapping[int, TensorRun], stages: Stages) -> dict[int, TensorRun]:
    """Ranks with the operators that all of their stage run.

    Args:
        runs: by rank.
        stages: of these ranks.
    """
    kept: dict[int, TensorRun] = {}
    for members in stages.ranks:
        common = _common(runs, members)
        for rank in members:
            run = kept[rank] = runs[rank]
            if len(common) < len(run.ops):
                ops = [copy.copy(op) for op in run.ops if op.name in common]
                for index, op in enumerate(ops):
                    op.index = index
                kept[rank] = copy.copy(run)
                kept[rank].ops = ops
    return kept


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

    def stage_of(self, place: int) -> int:
        """The pipeline stage that a tensor was made on: its ranks are a higher part of all."""
        lowest = sorted({min(ranks.runs) for ranks in self.made_of.values()})
        return lowest.index(min(self.made_of[place].runs))


def put_stages_together(
    one_device: TensorRun | None,
    begin: Begin,
    runs: Mapping[int, TensorRun],
    stages: Stages,
    folder: str,
    prefix: str = "",
) -> Chain:
    """Put all stages together, and chain them.

    Args:
        one_device: the same step on one device, where there is one with a graph; else None.
        begin: gives a rank's ``step_parallel_begin``, which tells shapes where there is none.
        runs: all ranks.
        stages: which rank runs which.
        folder: where joined tensors are written.
        prefix: of the names of their files.

    Raises:
        CannotJoin: no rank of a stage has a begin dump, and nothing else tells shapes.
    """
    made: list[tuple[Logical, Ranks]] = []
    names: dict[tuple[int, str], str] = {}
    factor: float | None = None
    is_batch_whole = True if one_device else _takes_whole_batch(begin, runs, stages)
    for number in reversed(range(len(stages.ranks))):  # gradients begin on the last one
        members = {rank: without_idle(runs[rank]) for rank in stages.ranks[number]}
        lead = members[min(members)]
        called = _called(one_device, lead, stages.micros)
        ranks = Ranks(dict(_parts(members, stages.micros, called)), stages.micros)
        whole = one_device or outline_of(
            begin_of(begin, members), ranks.lead, stages.micros, is_batch_whole
        )
        logical = put_together(whole, ranks, folder, f"{prefix}{number}-", factor)
        if one_device is None:
            logical.keep_told()
        factor = logical.gradient_factor
        made.append((logical, ranks))
        for (_, name), here in called.items():
            names.update({(rank, name): here for rank in members})
    chain = _chained(made[::-1])
    for number, members in enumerate(stages.ranks):
        known = _chain_names(chain, made[::-1][number][1])
        for (rank, name), here in names.items():
            if rank in members and here in known:
                chain.places[rank, name] = known[here]
    return chain


def without_idle(run: TensorRun) -> TensorRun:
    """A rank without updates of parameters of other stages: it adds no gradients up for them.

    Args:
        run: joined with its graph.
    """
    added = {
        str(target.name)
        for op in run.ops
        if op.type == "AssignAdd" and op.node is not None
        if (target := parameter_of(op.node, 0)) is not None and is_accumulated(target)
    }
    kept = [op for op in run.ops if op.phase != "optimizer" or not _is_idle(op, added)]
    if len(kept) == len(run.ops):
        return run
    part = copy.copy(run)
    part.ops = []
    for op in kept:
        mine = copy.copy(op)
        mine.index = len(part.ops)
        part.ops.append(mine)
    return part


def _is_idle(op: Op, added: Set[str]) -> bool:
    """Whether an update reads nothing but a sum of gradients that nothing is added to."""
    waiting = [op.node] if op.node is not None else []
    for _ in range(_MOST_STEPS):
        if not waiting:
            return False
        node = waiting.pop()
        for place in range(len(node.inputs)):
            parameter = parameter_of(node, place)
            if is_accumulated(parameter) and parameter is not None:
                return str(parameter.name) not in added
            source = operand(node, place)
            if source is not None and source[0].op != "UpdateState":
                waiting.append(source[0])
    return False


def _takes_whole_batch(begin: Begin, runs: Mapping[int, TensorRun], stages: Stages) -> bool:
    """Whether micro-batches are taken out of the whole batch; every stage may be the one to say."""
    for members in stages.ranks:
        said = takes_whole_batch(begin_of(begin, members), runs[members[0]])
        if said is not None:
            return said
    return True


def begin_of(begin: Begin, ranks: Iterable[int]) -> Dump:
    """The network of some ranks before it is cut.

    Args:
        begin: gives a rank's ``step_parallel_begin``, if it has one.
        ranks: that run the same.

    Raises:
        CannotJoin: none of them has such a dump.
    """
    order = sorted(ranks)
    for rank in order:
        dump = begin(rank)
        if dump is not None:
            return dump
    which = f"rank {order[0]} has" if len(order) == 1 else f"ranks {order[0]} to {order[-1]} have"
    raise CannotJoin(
        f"{which} no step_parallel_begin dump, which says what tensors are before they are cut; "
        "compare the run with one of MindSpore on one device"
    )


def _part(run: TensorRun, micro: int) -> TensorRun:
    """What a rank computes of one micro-batch, and of none."""
    part = copy.copy(run)
    part.ops = []
    for op in run.ops:
        if micro_of(op.node) in (None, micro):
            mine = copy.copy(op)
            mine.index = len(part.ops)
            part.ops.append(mine)
    return part


def _called(
    one_device: TensorRun | None, lead: TensorRun, micros: int
) -> dict[tuple[int, str], str]:
    """What an operator of a stage is called in all micro-batches: as its partner is.

    Args:
        one_device: the run on one device; without one, names of the first micro-batch are taken.
        lead: the lowest rank of the stage.
        micros: number of micro-batches.

    Returns:
        Names by micro-batch and own name.
    """
    called: dict[tuple[int, str], str] = {}
    first = _part(lead, 0)
    for micro in range(micros):
        part = _part(lead, micro)
        reference = one_device or first
        pairs = same_operators(reference, part) if one_device or micro else {}
        partners = {b: reference.ops[a].name for a, b in pairs.items()}
        taken = set(partners.values())
        counts: Counter[str] = Counter()
        for op in part.ops:
            is_shared = micro_of(op.node) is None
            here = partners.get(op.index, op.name)
            if one_device is None and (is_shared or not micro):
                here = op.name
            elif op.index not in partners and (not is_shared or here in taken):
                scope = _NUMBERED.sub(MICRO_BATCH, op.name.rpartition("-op")[0])
                here = f"{scope}-op{counts[scope]} of each micro-batch"
                counts[scope] += 1
            called[micro, op.name] = here
    return called


def _parts(
    runs: Mapping[int, TensorRun], micros: int, called: Mapping[tuple[int, str], str]
) -> Iterator[tuple[int, TensorRun]]:
    """What each rank of a stage computes of each micro-batch, by the number of the part."""
    for rank, run in runs.items():
        for micro in range(micros):
            part = _part(run, micro)
            for op in part.ops:
                op.name = called[micro, op.name]
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
        (_order(op, stage, len(made), gradients), stage, op)
        for stage, (logical, _) in enumerate(made)
        for gradients in [gradients_of(logical.run)]
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


def _order(op: Op, stage: int, stages: int, gradients: Set[Node]) -> tuple[int, int, int]:
    if op.phase == "optimizer":
        return 2, stage, op.index
    backward = op.node is not None and (op.node.is_backward or op.node in gradients)
    return (1, stages - stage, op.index) if backward else (0, stage, op.index)

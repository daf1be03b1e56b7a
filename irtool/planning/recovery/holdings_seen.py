"""Who holds the same, read off the dumps of a run that were taken last (``validate``).

These show slices, not layouts: which ranks hold the same slice of a parameter, but not which part
of the whole it is.  A parameter's gradient is summed over the ranks that hold the same (a mirror
AllReduce), and scattered over those that share a slice (ReduceScatter of optimizer parallel, the
AllGather of the weight itself); what is neither summed nor gathered is held by one rank alone.
So boxes here are numbered parts of the parameter laid out flat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from irtool.cluster.ranks import Cluster, RankProgram
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.items import Parameter
from irtool.ir.operators import OPTIMIZERS
from irtool.ir.parameter_roles import weight_of
from irtool.ir.types import BITS
from irtool.planning.cost.holdings import Box, Holding, Holdings, is_restored
from irtool.planning.recovery.groups import tiles

Ranks = tuple[int, ...]
_SHARED = ("mirror", "optimizer parallel")
_SCATTERED = "optimizer parallel"
_SPARSE = "bprop_return_sparse"


@dataclass(frozen=True, slots=True)
class _Use:
    """Groups that a rank shares a parameter's slice in: summed over one, scattered over another."""

    summed: Ranks | None = None
    scattered: Ranks | None = None
    unknown: bool = False


def seen_holdings(cluster: Cluster, devices: int, stages: int) -> Holdings:
    """Who holds the same slices, as far as the dumps of some ranks tell.

    Args:
        cluster: ranks with their ``validate`` dumps; those of others are as these, shifted inside
            their stage.
        devices: of the whole run.
        stages: pipeline stages.
    """
    size = max(1, devices // max(1, stages))
    sets: dict[str, dict[int, Ranks]] = {}
    shapes: dict[str, Parameter] = {}
    unknown: dict[str, str] = {}
    owner_of: dict[str, str] = {}
    for rank, one in cluster.ranks.items():
        stage = range(rank // size * size, (rank // size + 1) * size)
        uses, updated, unnamed = _uses(one)
        listed = {
            item.name: item
            for item in one.program.dump.parameters
            if item.is_weight and is_restored(item.name)
        }
        owner_of |= weight_of(one.program.dump)
        for name, item in listed.items():
            shapes.setdefault(name, item)
            owner = owner_of[name]
            holders = _same(item, uses.get(owner), rank, stage, owner in updated and not unnamed)
            if isinstance(holders, str):
                unknown.setdefault(name, holders)
            else:
                sets.setdefault(name, {})[rank] = holders
    items: list[Holding] = []
    for name, by_rank in sets.items():
        boxes = None if name in unknown else _boxes(shapes[name], by_rank, size)
        if boxes is None:
            unknown.setdefault(name, "its dumps do not agree on who holds the same of it")
            continue
        kind = shapes[name].type
        dtype = kind.dtype if kind is not None else None
        elements = max(box[0][1] for box in boxes.values())
        items.append(
            Holding(name, owner_of[name], (elements,), BITS.get(dtype or "", 32) / 8, boxes)
        )
    seen = frozenset(rank // size for rank in cluster.ranks)
    return Holdings(devices, stages, tuple(items), unknown, {}, seen)


def _uses(one: RankProgram) -> tuple[Mapping[str, _Use], set[str], bool]:
    """Groups by weight, weights that an optimizer updates, and whether some group has no weight."""
    steps = one.program.steps
    uses = {name: _Use(unknown=True) for name in _sparse(one)}
    if any(step.collective.origin == "adasum" for step in steps):  # it sums by halves
        return uses, set(), True
    unnamed = False
    for step, party in zip(steps, one.parties, strict=True):
        item = step.collective
        if item.origin not in _SHARED:
            continue
        if item.parameter is None:
            unnamed = True
            continue
        before = uses.get(item.parameter, _Use())
        if party.ranks is None:
            uses[item.parameter] = _Use(unknown=True)
        elif item.origin == _SCATTERED and item.op in ("AllGather", "ReduceScatter"):
            uses[item.parameter] = _Use(before.summed, party.ranks, before.unknown)
        else:
            differs = before.summed not in (None, party.ranks)
            uses[item.parameter] = _Use(party.ranks, before.scattered, before.unknown or differs)
    return uses, _updated(one), unnamed


def _updated(one: RankProgram) -> set[str]:
    """Weights that an operator of the optimizer takes first."""
    return {
        name
        for node in one.program.dump.nodes(where=lambda node: bool(OPTIMIZERS.match(node.op)))
        if (name := _first_parameter(node))
    }


def _sparse(one: RankProgram) -> set[str]:
    """Tables whose gradients are some of their rows, gathered under no name."""
    gathers = one.program.dump.nodes(where=lambda node: node.attribute(_SPARSE) is True)
    return {name for node in gathers if (name := _first_parameter(node))}


def _first_parameter(node: Node) -> str:
    for _ in range(4):
        source = node.inputs[0] if node.operands else None
        if isinstance(source, Node) and source.op in ("Load", "Depend"):
            node = source
            continue
        declaration = getattr(source, "declaration", None)
        return declaration.name if isinstance(declaration, Parameter) else ""
    return ""


def _same(
    item: Parameter, use: _Use | None, rank: int, stage: range, is_updated: bool
) -> Ranks | str:
    """Ranks that hold the same slice as this one, or why nobody knows."""
    if use is not None and use.unknown:
        return "the ranks that sum its gradient are not known"
    if use is not None and use.summed is not None:
        return use.summed
    if use is not None:
        return (rank,)
    if item.type is not None and math.prod(item.type.dimensions or ()) == 1:
        return tuple(stage)
    if is_updated:
        return (rank,)
    return "no gradient: a validate dump does not show who holds the same of it"


def _boxes(item: Parameter, by_rank: Mapping[int, Ranks], size: int) -> dict[int, Box] | None:
    """A numbered part for each set of ranks that hold the same; None where sets contradict."""
    dimensions = item.type.dimensions if item.type else None
    if dimensions is None or min(dimensions, default=1) < 0:
        return None
    elements = math.prod(dimensions)
    if len({rank // size for rank in by_rank}) > 1 and elements > 1:
        return None  # in several stages: whether they hold the same, nothing shows
    sets = _all_sets(by_rank, size)
    boxes: dict[int, Box] = {}
    for number, ranks in enumerate(sets):
        if boxes.keys() & set(ranks):
            return None
        place = 0 if elements == 1 else number
        box = ((place * elements, (place + 1) * elements),)
        boxes.update(dict.fromkeys(ranks, box))
    return boxes


def _all_sets(by_rank: Mapping[int, Ranks], size: int) -> list[Ranks]:
    """The sets of ranks that were seen, and by shifting those of the ranks that left no dump."""
    sets = dict.fromkeys(by_rank.values())
    taken = {rank for members in sets for rank in members}
    for stage in {rank // size for rank in by_rank}:
        ranks = range(stage * size, (stage + 1) * size)
        for form in _forms(sets, ranks):
            for members in tiles(form, ranks):
                if taken.isdisjoint(members):
                    taken.update(members)
                    sets[members] = None
    return sorted(sets)


def _forms(sets: Iterable[Ranks], ranks: range) -> list[Ranks]:
    return list(
        dict.fromkeys(
            tuple(rank - members[0] for rank in members) for members in sets if members[0] in ranks
        )
    )

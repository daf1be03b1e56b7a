"""How a tensor is probably cut, by how those are that it is the same as, or a part of.

Where sizes leave several ways, and no replicas have to agree, the graph decides: an operand is cut
as the result that it is, a gradient as what it is the gradient of, and what a ReduceScatter makes
(or an AllGather reads) is its whole, cut once more over the collective's group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from irtool.compare.layouts.outline import Outline, Place
from irtool.compare.layouts.ranks import Ranks, node_ops, operand, parameter_of, readers
from irtool.compare.layouts.slices import Cut
from irtool.compare.tensors.model import Op, Shape
from irtool.compare.tensors.semantics import family
from irtool.ir.collectives import collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

_FACTORS = ("Mul", "RealDiv", "Muls", "Div")
_MOST_STEPS = 8


@dataclass(slots=True)
class KnownCuts:
    """Cuts that were found, and what they say of others.

    Attributes:
        ops: the operator of each node of the lowest rank.
        groups: by AllGather and ReduceScatter, the ranks of each group, each in its order.
        gathers: AllGathers of parameters, by their names.
        micros: number of micro-batches; parts are numbered by rank x micros + micro-batch.
        origins: forward tensors that a gradient is cut as.
    """

    ops: Mapping[Node, Op]
    groups: Mapping[str, Sequence[Sequence[int]]]
    gathers: Mapping[str, Sequence[Node]]
    micros: int
    origins: Mapping[Place, Sequence[Place]]
    by_place: dict[Place, Cut] = field(default_factory=dict[Place, Cut])
    by_sizes: dict[tuple[Shape, Shape], Cut] = field(default_factory=dict[tuple[Shape, Shape], Cut])

    def add(self, op: Op, label: str, cut: Cut) -> None:
        """Keep how a tensor is cut."""
        self.by_place[op.index, label] = cut
        self.by_sizes[cut.whole, cut.counts] = cut

    def likely(self, op: Op, label: str, whole: Shape, counts: Shape) -> Cut | None:
        """How a tensor is probably cut; else as the last one of these sizes."""
        for cut in self._related(op, label):
            if (cut.whole, cut.counts) == (whole, counts):
                return cut
        return self.by_sizes.get((whole, counts))

    def _related(self, op: Op, label: str) -> Iterator[Cut]:
        """Cuts of what a tensor is, or is made of without being moved."""
        direction, _, text = label.partition(".")
        if direction == "input" and op.node is not None and text.isdecimal():
            source = operand(op.node, int(text))
            if source is not None:
                yield from self._of_result(*source)
            elif (parameter := parameter_of(op.node, int(text))) is not None:
                yield from self._of_parameter(str(parameter.name))
        for origin in self.origins.get((op.index, label), ()):
            if origin in self.by_place:
                yield self.by_place[origin]

    def _of_result(self, node: Node, place: int) -> Iterator[Cut]:
        """That of a node's result, or of what it makes it of element by element."""
        for _ in range(_MOST_STEPS):
            op = self.ops.get(node)
            cut = None if op is None else self.by_place.get((op.index, f"output.{place}"))
            if cut is not None:
                yield cut
                return
            is_scatter = node.op == "ReduceScatter"
            source = operand(node, 0)
            if source is None or not (
                is_scatter or node.op in _FACTORS or family(node.op) == "cast"
            ):
                return
            if is_scatter:
                for full in self._of_result(*source):
                    yield from self._cut_again(full, node)
                return
            node, place = source

    def _of_parameter(self, name: str) -> Iterator[Cut]:
        """That of what an AllGather makes of a parameter, cut once more."""
        for gather in self.gathers.get(name, ()):
            for reader in readers(gather):
                op = self.ops.get(reader)
                for number in range(len(reader.inputs)) if op is not None else ():
                    cut = self.by_place.get((op.index, f"input.{number}")) if op else None
                    source = operand(reader, number)
                    if cut is not None and source is not None and source[0] is gather:
                        yield from self._cut_again(cut, gather)

    def _cut_again(self, cut: Cut, node: Node) -> Iterator[Cut]:
        """A cut whose first axis a collective's group shares once more."""
        op = self.ops.get(node)
        groups = self.groups.get(op.name, ()) if op is not None else ()
        size = len(groups[0]) if groups else 0
        if size < 2 or not cut.whole or cut.whole[0] % (cut.counts[0] * size):
            return
        numbers = {rank: place for group in groups for place, rank in enumerate(group)}
        if any(part // self.micros not in numbers for part in cut.parts):
            return
        parts = {
            part: (axes[0] * size + numbers[part // self.micros], *axes[1:])
            for part, axes in cut.parts.items()
        }
        yield Cut(cut.whole, (cut.counts[0] * size, *cut.counts[1:]), parts)


def known_cuts(ranks: Ranks, outline: Outline | None) -> KnownCuts:
    """Nothing yet, but what the graph says.

    Args:
        ranks: all ranks, joined with their graphs.
        outline: of the run, where none on one device tells its shapes.
    """
    groups: dict[str, list[tuple[int, ...]]] = {}
    gathers: dict[str, list[Node]] = {}
    for part, run in ranks.runs.items():
        for op in run.ops:
            if op.type not in ("AllGather", "ReduceScatter") or op.node is None:
                continue
            info = collective(op.node)
            if info is not None and info.ranks and ranks.rank_of(part) in info.ranks:
                members = tuple(info.ranks)
                if members not in groups.setdefault(op.name, []):
                    groups[op.name].append(members)
            parameter = parameter_of(op.node, 0)
            if run is ranks.lead and op.type == "AllGather" and parameter is not None:
                gathers.setdefault(str(parameter.name), []).append(op.node)
    origins = outline.origins if outline is not None else dict[Place, Sequence[Place]]()
    return KnownCuts(node_ops(ranks.lead), groups, gathers, ranks.micros, origins)

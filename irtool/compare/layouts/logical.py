"""The tensors of a run that is cut over devices, put together as one device would hold them.

Each tensor of an operator that the other run has too gets that one's shape: slices are joined,
partial sums added up over the group that adds them up later, of replicas the lowest rank's is
taken.  What was put together lies in files of a temporary folder, so memory holds one tensor.

Micro-batches are parts of the batch as ranks are.  A loss that is a mean over its micro-batch has
gradients that are as many times too large as there are micro-batches; those of parameters are
terms of a sum.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from irtool.compare.layouts.figures import apart, figures_of, whole_figures
from irtool.compare.layouts.known_cuts import known_cuts
from irtool.compare.layouts.local_indices import OwnRows, local_indices
from irtool.compare.layouts.outline import Outline
from irtool.compare.layouts.ranks import (
    Ranks,
    is_accumulated,
    micro_of,
    node_ops,
    operand,
    parameter_of,
    readers,
)
from irtool.compare.layouts.same_operators import MICRO_BATCH, same_operators
from irtool.compare.layouts.slice_by_slice import Pieces
from irtool.compare.layouts.slices import Cut, best_cut, counts_of, cuts
from irtool.compare.layouts.sums import VIRTUAL_DIVISION, Sums, gradient_nodes, partial_sums
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.model import NAN, Op, Shape, TensorRun
from irtool.ir.collectives import collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import dump_of
from irtool.ir.graph import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDED = 2.0**-18
"""Relative error up to which replicas count as the same: kernels of other ranks may round."""
SUM_BY_FIGURES = "ranks hold terms of a sum, which figures do not tell"
MAYBE_RESIDUE = "it is so small beside other gradients that it may be what rounding left"
_RESIDUE = 2.0**-16
"""How small a gradient is, by its root mean square, that may be rounding residue."""
_TELLING = 0.2
"""Relative error of a gradient up to which it says by what gradients are multiplied: 1/2 is not."""
_MEANS = ("ReduceMean", "MeanExt", "Mean")
_TOTALS = ("ReduceSum", "SumExt")
_HAND_ON = ("view", "cast", "sum")
_SCALES = ("RealDiv", "Mul", "Muls", "Div", "Divs")


@dataclass(frozen=True, slots=True)
class OtherReplica:
    """Ranks that should hold the same tensor and do not.

    Attributes:
        op: of the lowest rank.
        label: of the tensor.
        ranks: that hold another one than the lowest rank of theirs.
        error: the largest relative error against that.
        is_given: nothing in the dump makes it: data or a parameter.
    """

    op: Op
    label: str
    ranks: tuple[int, ...]
    error: float
    is_given: bool


@dataclass(slots=True)
class Logical:
    """A run put together.

    Attributes:
        run: as one device would hold it; operators of the lowest rank.
        nodes: nodes of the other run's graph and of this one that are the same operator.
        cuts: of each tensor that was joined, how it is cut.
        sums: tensors that were added up, with the group.
        replicas: those that differ, in the order of execution.
        unknown: tensors that could not be put together, and why.
        gradient_factor: by which gradients of micro-batches were multiplied; None where none were.
    """

    run: TensorRun
    nodes: dict[Node, Node] = field(default_factory=dict[Node, Node])
    cuts: dict[int, Cut] = field(default_factory=dict[int, Cut])
    sums: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    replicas: list[OtherReplica] = field(default_factory=list[OtherReplica])
    unknown: dict[int, str] = field(default_factory=dict[int, str])
    gradient_factor: float | None = None

    def keep_told(self) -> None:
        """Leave out every tensor of which nothing says how it is put together."""
        kept: list[Op] = []
        for op in self.run.ops:
            op.inputs = [place for place in op.inputs if place in self.cuts]
            op.outputs = [place for place in op.outputs if place in self.cuts]
            if op.inputs or op.outputs:
                op.index = len(kept)
                kept.append(op)
        self.run.ops = kept


def put_together(
    one_device: TensorRun | Outline,
    ranks: Ranks,
    folder: str,
    prefix: str = "",
    factor: float | None = None,
) -> Logical:
    """Put the tensors of all ranks together.

    Args:
        one_device: the same step on one device, which says what shapes tensors have; or an outline.
        ranks: all ranks; each joined with its graph.
        folder: where joined tensors are written; whoever called removes it.
        prefix: of the names of their files.
        factor: of gradients of micro-batches, where a later stage told it.
    """
    return _Builder(one_device, ranks, folder, prefix, factor).build()


class _Builder:
    def __init__(
        self,
        whole: TensorRun | Outline,
        ranks: Ranks,
        folder: str,
        prefix: str,
        factor: float | None,
    ) -> None:
        self.outline = None if isinstance(whole, TensorRun) else whole
        whole = whole if isinstance(whole, TensorRun) else whole.run
        self.whole, self.ranks, self.folder, self.prefix = whole, ranks, folder, prefix
        lead = ranks.lead
        self.run = copy.copy(lead)
        self.run.columns = _copied(lead)
        self.run.ops = [copy.copy(op) for op in lead.ops]
        self.ops = node_ops(self.run)
        self.logical = Logical(self.run, gradient_factor=factor)
        self.known = known_cuts(ranks, self.outline)
        sums = {ranks.rank_of(part): run for part, run in ranks.runs.items()}
        by_rank = {rank: _sums(run, rank) for rank, run in sums.items()}
        self.sums = {part: by_rank[ranks.rank_of(part)] for part in ranks.runs}
        self.gradients = gradients_of(lead) if ranks.micros > 1 else set[Node]()
        self.averaged: dict[tuple[str, str], float] = {}
        self.partners: dict[int, Op] = {}
        self.is_untold = False
        self.by_name = {rank: {op.name: op for op in run.ops} for rank, run in ranks.runs.items()}

    def build(self) -> Logical:
        is_alone = self.outline is not None
        pairs = self.outline.pairs if self.outline else same_operators(self.whole, self.run)
        partners = self.partners = {b: self.whole.ops[a] for a, b in pairs.items()}
        for op in self.run.ops:
            other = partners.get(op.index)
            if other is None or (MICRO_BATCH in op.name and not is_alone):
                self._compare_given(op)  # each micro-batch is another part of the batch
                continue
            if other.node is not None and op.node is not None and not is_alone:
                self.logical.nodes[other.node] = op.node
            op.parameters |= self._gathered(op)
            labels = {self.whole.columns.labels[place]: place for place in other.tensors}
            for place in op.tensors:
                match = labels.get(self.run.columns.labels[place])
                if match is not None:
                    self._put(op, place, match)
            self._follow(op, other, partners)
        self._leave_out_untold()
        return self.logical

    def _gathered(self, op: Op) -> frozenset[int]:
        """Inputs that are parameters, gathered from ranks that keep a part of them each."""
        places: set[int] = set()
        for place in op.inputs if op.node is not None else ():
            text = self.run.columns.labels[place].partition(".")[2]
            source = operand(op.node, int(text)) if op.node and text.isdecimal() else None
            if source is not None and source[0].op == "AllGather":
                parameter = parameter_of(source[0], 0)
                places.update([place] if parameter is not None else ())
        return frozenset(places)

    def _leave_out_untold(self) -> None:
        """Take out of the run what figures do not put together, or do not tell from residue."""
        unknown = self.logical.unknown
        columns = self.run.columns
        gradients = [
            place
            for op in self.run.ops
            if op.phase == "optimizer"
            for place in op.inputs
            if place in self.logical.cuts and not columns.files[place]
            and not self._is_given(op, columns.labels[place]) and len(columns.shapes[place]) > 0
        ]  # fmt: skip
        sizes = {place: self._root_mean_square(place) for place in gradients}
        floor = _RESIDUE * max(sizes.values(), default=0.0)
        for op in self.run.ops:
            if any(sizes.get(place, floor) < floor for place in op.inputs):
                unknown.update(dict.fromkeys(op.tensors, MAYBE_RESIDUE))
        untold = {p for p, why in unknown.items() if why in (SUM_BY_FIGURES, MAYBE_RESIDUE)}
        for op in self.run.ops if untold else ():
            op.inputs = [place for place in op.inputs if place not in untold]
            op.outputs = [place for place in op.outputs if place not in untold]

    def _root_mean_square(self, place: int) -> float:
        columns = self.run.columns
        return columns.norm[place] / math.sqrt(max(1, math.prod(columns.shapes[place])))

    def _put(self, op: Op, place: int, match: int, made: Op | None = None) -> None:
        """Put one tensor together.

        Args:
            op: that it belongs to.
            place: of it in the columns.
            match: of its partner in those of the other run.
            made: the operator whose first result stands for it, if that is another one.
        """
        columns, label = self.run.columns, self.run.columns.labels[place]
        source = place if made is None else made.outputs[0]
        name = (made or op).name
        wanted = self.whole.columns.shapes[match]
        counts = counts_of(wanted, columns.shapes[source])
        if counts is None:
            self.logical.unknown[place] = "its shape is no part of the other run's"
            return
        values = self._values(name, columns.labels[source])
        own = self._own_rows(op, label) if made is None else None
        candidates = self._candidates(wanted, counts, match)
        if not candidates:
            self.logical.unknown[place] = "no part of it is on each rank and in each micro-batch"
            return
        if own is not None and not (values and own.indices):
            self.logical.unknown[place] = "ranks look up rows of their own"
            return
        if not values:
            self._put_figures(op, place, candidates, made)
            return
        groups = {rank: self._group(rank, name, columns.labels[source]) for rank in values}
        if own is not None:
            values, groups = own.applied(label, values, groups)
        reference = self._reference(match) if len(candidates) > 1 else None
        likely = self.known.likely(op, label, wanted, counts)
        if self.outline is None:
            cut = best_cut(
                candidates,
                lambda candidate: self._distance(op, candidate, reference, values, groups),
                likely,
                lambda candidate: _disagreement(candidate, values, groups),
            )
        else:
            cut = best_cut(
                candidates, lambda candidate: _disagreement(candidate, values, groups), likely
            )
        factor = 1.0
        if self.ranks.micros > 1:
            factor = self._over_micros(op, place, match, cut, values, groups)
        if not factor:
            self.logical.unknown[place] = "nothing says what its micro-batches make together"
            return
        self.known.add(op, label, cut)
        self.logical.cuts[place] = cut
        is_sum = any(groups[ranks[0]].intersection(ranks[1:]) for ranks in cut.replicas())
        if is_sum:
            parts = groups[min(groups)]
            self.logical.sums[place] = tuple(sorted({self.ranks.rank_of(p) for p in parts}))
        elif made is None and not self._is_dead(op, place):
            self._compare_replicas(op, label, cut, values)
        is_other = is_sum or made is not None or own is not None
        if is_other or factor != 1 or any(count > 1 for count in counts):
            joined = cut.joined(values, groups)
            self._write(place, joined if factor == 1 else (joined * factor).astype(joined.dtype))

    def _own_rows(self, op: Op, label: str) -> OwnRows | None:
        """What says which rows are a rank's own, of a tensor that means something there alone."""
        if op.node is None or label.partition(".")[0] not in ("input", "output"):
            return None
        local = local_indices(op.node)
        if local is None or label not in (local.label, local.rows):
            return None
        subtraction = self.ops.get(local.subtraction)
        if subtraction is None:
            return OwnRows(local, {}, {}, {})
        given, first = (
            self._values(subtraction.name, text) for text in ("input.0", "input.1")
        )  # fmt: skip
        positions = self._values(op.name, local.label)
        whole = {rank: values for rank, values in given.items() if rank in first}
        if len(whole) != len(self.ranks.runs) or len(positions) != len(whole):
            return OwnRows(local, {}, {}, {})
        inside = {rank: positions[rank] == whole[rank] - first[rank] for rank in whole}
        groups: dict[int, frozenset[int]] = {}
        for rank, ops in self.by_name.items():
            node = ops[op.name].node if op.name in ops else None
            mine = None if node is None else local_indices(node)
            sums = (
                []
                if mine is None
                else [self.sums[rank].get((gather, 0)) for gather in mine.lookups]
            )
            micros = self.ranks.micros
            group = next((group for group in sums if group), frozenset[int]())
            groups[rank] = (
                group if micros == 1 else frozenset(r * micros + rank % micros for r in group)
            )
        return OwnRows(local, whole, inside, groups)

    def _candidates(self, wanted: Shape, counts: Shape, match: int) -> list[Cut]:
        """How ranks and micro-batches may hold a tensor."""
        candidates = list(cuts(wanted, counts, sorted(self.ranks.runs)))
        if self.outline is None or self.ranks.micros == 1:
            return candidates
        rows = self.outline.rows.get(match)
        return [cut for cut in candidates if self._cuts_rows(cut, self.outline, rows)]

    def _put_figures(self, op: Op, place: int, candidates: Sequence[Cut], made: Op | None) -> None:
        """Put figures of parts together where there are no values: slices have those of the whole.

        Those of sums do not follow from the terms' figures; they stay unknown.
        """
        columns, source = self.run.columns, made or op
        label = columns.labels[place if made is None else made.outputs[0]]
        figures = figures_of(self.ranks, source.name, label)
        if figures is None:
            return
        groups = {rank: self._group(rank, source.name, label) for rank in figures}
        cut = min(
            candidates,
            key=lambda item: max(apart(item, figures, groups).values(), default=0.0),
        )
        errors = apart(cut, figures, groups)
        odd = {rank: error for rank, error in errors.items() if error > _ROUNDED}
        is_sum = any(groups[ranks[0]].intersection(ranks[1:]) for ranks in cut.replicas())
        is_scaled = self.ranks.micros > 1 and op.node in self.gradients
        if is_sum or is_scaled or (odd and self.ranks.micros > 1):
            self.logical.unknown[place] = SUM_BY_FIGURES
            return
        self.logical.unknown.pop(place, None)
        self.logical.cuts[place] = cut
        if odd and not self._is_dead(op, place):
            owners = tuple(sorted(map(self.ranks.rank_of, odd)))
            given = self._is_given(op, label)
            replica = OtherReplica(op, label, owners, max(odd.values()), given)
            self.logical.replicas.append(replica)
        columns.shapes[place], columns.hashes[place] = cut.whole, ""
        columns.most[place], columns.least[place], columns.mean[place], columns.norm[place] = (
            whole_figures(cut, figures)
        )

    def _cuts_rows(self, cut: Cut, outline: Outline, rows: int | None) -> bool:
        """Whether micro-batches of a rank follow each other along one axis, and nothing else."""
        micros = self.ranks.micros
        step = 1
        if rows is not None and outline.is_batch_whole:
            step = cut.counts[rows] // micros
        for first in range(min(cut.parts), max(cut.parts) + 1, micros):
            start = cut.parts[first]
            for micro in range(micros):
                wanted = [part + step * micro * (axis == rows) for axis, part in enumerate(start)]
                if list(cut.parts[first + micro]) != wanted:
                    return False
        return True

    def _distance(
        self,
        op: Op,
        cut: Cut,
        reference: NDArray[Any] | None,
        values: Mapping[int, NDArray[Any]],
        groups: Mapping[int, frozenset[int]],
    ) -> float:
        """How far a tensor is from the other run's, put together in one way.

        Micro-batches of a gradient may hold terms of a sum there, or of a mean.
        """
        error = _error(reference, cut.joined(values, groups))
        micros = self.ranks.micros
        if micros == 1 or op.node not in self.gradients or reference is None:
            return error
        if any(cut.parts[part] != cut.parts[part - part % micros] for part in values):
            return error
        total = cut.joined(values, self._with_micros(groups))
        means = (_error(reference, (total / n).astype(total.dtype)) for n in (1, micros))
        return min(error, *means)

    def _with_micros(self, groups: Mapping[int, frozenset[int]]) -> dict[int, frozenset[int]]:
        """Groups that add up micro-batches too."""
        micros = self.ranks.micros
        made: dict[int, frozenset[int]] = {}
        for part, group in groups.items():
            ranks = {self.ranks.rank_of(other) for other in group or (part,)}
            made[part] = frozenset(r * micros + m for r in ranks for m in range(micros))
        return made

    def _over_micros(
        self,
        op: Op,
        place: int,
        match: int,
        cut: Cut,
        values: Mapping[int, NDArray[Any]],
        groups: dict[int, frozenset[int]],
    ) -> float:
        """Add up what micro-batches hold terms of; by what the result is to be multiplied.

        0: nobody knows by what.
        """
        micros, label = self.ranks.micros, self.run.columns.labels[place]
        if next(iter(values.values())).dtype.kind != "f" or micro_of(op.node) is None:
            return 1.0
        is_cut = len({cut.parts[part] for part in list(values)[:micros]}) > 1
        is_gradient = op.node in self.gradients and self._is_gradient(op, label)
        factor = 1.0
        if not is_gradient:
            if is_cut or (factor := self._mean_factor(op, label, values)) == 0:
                return 1.0
            if math.isnan(factor):
                return 0.0
            self.averaged[op.name, label] = factor
        if not is_cut:
            groups.update(self._with_micros(groups))
        return self._gradient_factor(op, match, cut, values, groups) if is_gradient else factor

    def _is_gradient(self, op: Op, label: str) -> bool:
        """Whether a tensor of a backward operator is one, not what the forward pass kept."""
        direction, _, text = label.partition(".")
        if direction == "output" or op.node is None or not text.isdecimal():
            return True
        source = operand(op.node, int(text))
        return source is not None and source[0] in self.gradients

    def _mean_factor(self, op: Op, label: str, values: Mapping[int, NDArray[Any]]) -> float:
        """By what to multiply the sum over micro-batches of a forward tensor.

        0: it is no such sum; NaN: nobody knows.
        """
        direction, _, text = label.partition(".")
        if direction == "input":
            source = operand(op.node, int(text)) if op.node and text.isdecimal() else None
            maker = None if source is None else self.ops.get(source[0])
            known = None if maker is None else (maker.name, f"output.{source[1] if source else 0}")
            return self.averaged.get(known, 0.0) if known else 0.0
        if op.type in (*_MEANS, *_TOTALS):
            parts = list(values.values())
            if all(measure_arrays(parts[0], other).error <= _ROUNDED for other in parts[1:]):
                return 0.0
            return 1.0 / self.ranks.micros if op.type in _MEANS else 1.0
        from irtool.compare.tensors.semantics import family

        if op.type in _SCALES or family(op.type) in _HAND_ON:
            return self._scaled_factor(op)
        return 0.0

    def _scaled_factor(self, op: Op) -> float:
        """The factor of what is made of a mean or sum over micro-batches alone, and of a number."""
        given = 0.0
        for number in range(len(op.node.inputs) if op.node is not None else 0):
            source = operand(op.node, number) if op.node is not None else None
            maker = None if source is None else self.ops.get(source[0])
            if maker is not None and source is not None:
                given = max(given, self.averaged.get((maker.name, f"output.{source[1]}"), 0.0))
        constant = op.attributes.get("input.1")
        if not given or op.type not in _SCALES or not isinstance(constant, int | float):
            return given
        if self.outline is not None:  # its rows may be those of a micro-batch, or of the batch
            self.is_untold = True
            return math.nan
        partner = self.partners.get(op.index)
        other = None if partner is None else partner.attributes.get("input.1")
        if not isinstance(other, int | float) or not other or not constant:
            return given
        ratio = constant / other if "Div" in op.type else other / constant
        return given * ratio if ratio in (1.0, 1.0 / self.ranks.micros) else given

    def _gradient_factor(
        self,
        op: Op,
        match: int,
        cut: Cut,
        values: Mapping[int, NDArray[Any]],
        groups: Mapping[int, frozenset[int]],
    ) -> float:
        """By what gradients of micro-batches are multiplied: what the loss's own gradient says.

        Within the gradient of a mean the division by the size of the micro-batch is still to come.
        Where nothing stands beside this run, the factor is that of the loss; 0: nobody knows it.
        """
        in_mean = str(op.node.attribute("forward_node_name") if op.node else "").startswith(_MEANS)
        known = self.logical.gradient_factor
        if known is not None and not in_mean:
            return known
        if self.is_untold:
            return 0.0
        if self.outline is not None:
            means = {factor for factor in self.averaged.values() if factor != 1}
            if not in_mean and self.averaged:
                self.logical.gradient_factor = min(means, default=1.0)
            return 0.0 if in_mean else self.logical.gradient_factor or 0.0
        reference = self._reference(match)
        if reference is None:
            return 1.0
        joined = cut.joined(values, groups)
        factors = (1.0 / self.ranks.micros, 1.0)
        errors = {factor: _error(reference, joined * factor) for factor in factors}
        best = min(factors, key=lambda factor: errors[factor])
        if not in_mean and joined.any() and errors[best] <= _TELLING:
            self.logical.gradient_factor = best
        return best

    def _values(self, name: str, label: str) -> dict[int, NDArray[Any]]:
        """The tensor of every rank; nothing where one of them lacks it."""
        values: dict[int, NDArray[Any]] = {}
        for rank in self.ranks.runs:
            value = self.ranks.values(rank, name, label)
            if value is None:
                return {}
            values[rank] = value
        return values

    def _group(self, rank: int, name: str, label: str) -> frozenset[int]:
        """Over which ranks a tensor is to be added up; empty where it is whole."""
        op = self.by_name[rank].get(name)
        direction, _, text = label.partition(".")
        if op is None or op.node is None or not text.isdecimal():
            return frozenset()
        key = (op.node, int(text)) if direction == "output" else operand(op.node, int(text))
        group = frozenset[int]() if key is None else self.sums[rank].get(key, frozenset[int]())
        micros = self.ranks.micros
        return group if micros == 1 else frozenset(r * micros + rank % micros for r in group)

    def _reference(self, match: int) -> NDArray[Any] | None:
        columns = self.whole.columns
        if not columns.files[match]:
            return None
        try:
            return read_array(columns.files[match], columns.dtypes[match])
        except BadPayload:
            return None

    def _is_dead(self, op: Op, place: int) -> bool:
        from irtool.compare.tensors.semantics import is_unwritten

        label = self.run.columns.labels[place]
        return is_unwritten(op.type, label) or self.run.columns.notes.get(place) == "dead output"

    def _compare_replicas(
        self,
        op: Op,
        label: str,
        cut: Cut,
        values: Mapping[int, NDArray[Any]],
        reference: NDArray[Any] | None = None,
    ) -> None:
        """Ranks that hold the same part must hold the same numbers.

        Those are odd that hold others than the other run, where this is known.
        """
        odd: dict[int, float] = {}
        for ranks in cut.replicas():
            for rank in ranks[1:]:
                error = measure_arrays(values[ranks[0]], values[rank]).error
                if error > _ROUNDED:
                    odd[self.ranks.rank_of(rank)] = error
        if odd and reference is not None and reference.shape == cut.whole:
            errors = {
                self.ranks.rank_of(rank): measure_arrays(reference[cut.window(rank)], value).error
                for rank, value in values.items()
            }
            others = {rank: error for rank, error in errors.items() if error > _ROUNDED}
            odd = others if 0 < len(others) < len(errors) else odd
        if odd:
            given = self._is_given(op, label)
            replica = OtherReplica(op, label, tuple(sorted(odd)), max(odd.values()), given)
            self.logical.replicas.append(replica)

    def _compare_given(self, op: Op) -> None:
        """Of operators that only this run has: whether all ranks were given the same data."""
        for place in op.inputs:
            label = self.run.columns.labels[place]
            if not self._is_given(op, label) or self._is_accumulated(op, label):
                continue
            shapes = {self.ranks.shape(rank, op.name, label) for rank in self.ranks.runs}
            name = _parameter_name(op, label)
            full = self._whole_shape(name)
            if len(shapes) != 1 or full is None or shapes != {full}:
                continue
            values = self._values(op.name, label)
            if values:
                cut = Cut(full, (1,) * len(full), dict.fromkeys(values, (0,) * len(full)))
                self._compare_replicas(op, label, cut, values, self._whole_value(name))

    def _whole_value(self, name: str) -> NDArray[Any] | None:
        """A parameter or an input as one device was given it, where it ran."""
        for op in self.whole.ops if self.outline is None else ():
            for place in op.inputs:
                if self._parameter_of(op, self.whole.columns.labels[place]) == name:
                    return self._reference(place)
        return None

    @staticmethod
    def _parameter_of(op: Op, label: str) -> str:
        is_numbered = label.startswith("input.") and label[6:].isdecimal()
        return _parameter_name(op, label) if is_numbered else ""

    def _whole_shape(self, name: str) -> tuple[int, ...] | None:
        """What shape a parameter or an input has on one device."""
        if self.outline is not None:
            return self.outline.parameters.get(name)
        from irtool.compare.tensors.join import signature_shapes

        for op in self.whole.ops:
            if op.node is None:
                continue
            for number, source in enumerate(op.node.inputs):
                if name and getattr(source, "name", None) == name:
                    return signature_shapes(op.node)[0].get(number)
        return None

    def _is_given(self, op: Op, label: str) -> bool:
        direction, _, text = label.partition(".")
        if direction != "input" or op.node is None or not text.isdecimal():
            return False
        return bool(_parameter_name(op, label))

    def _is_accumulated(self, op: Op, label: str) -> bool:
        """Whether an operand is what gradients of micro-batches are added up in: terms of a sum."""
        text = label.partition(".")[2]
        return op.node is not None and is_accumulated(parameter_of(op.node, int(text)))

    def _follow(self, op: Op, other: Op, partners: Mapping[int, Op]) -> None:
        """A factor that makes up for the cut belongs to the operator before it.

        A mean over a split batch is a mean of a part, then added up and divided by the number of
        parts; its gradient likewise.
        """
        if not op.outputs or op.node is None or not other.outputs:
            return
        scale = self._scale_after(op, partners)
        if scale is not None:
            self._put(op, op.outputs[0], other.outputs[0], scale)

    def _scale_after(self, op: Op, partners: Mapping[int, Op]) -> Op | None:
        assert op.node is not None
        nodes = list(readers(op.node))
        if len(nodes) != 1:
            return None
        reader = nodes[0]
        is_mean = op.type in _MEANS
        if reader.op == "AllReduce" and is_mean:
            nodes = list(readers(reader))
            if len(nodes) != 1:
                return None
            reader = nodes[0]
        made = self.ops.get(reader)
        if made is None or made.index in partners or made.type not in _SCALES or not made.outputs:
            return None
        return made if is_mean or VIRTUAL_DIVISION in made.name else None

    def _write(self, place: int, value: NDArray[Any]) -> None:
        import numpy as np

        columns = self.run.columns
        path = os.path.join(self.folder, f"{self.prefix}{place}.npy")
        np.save(path, value, allow_pickle=False)
        columns.files[place] = path
        columns.shapes[place] = tuple(value.shape)
        columns.most[place] = columns.least[place] = NAN
        columns.mean[place] = columns.norm[place] = NAN
        columns.hashes[place] = ""


def rank_errors(
    logical: Logical, ranks: Ranks, other: TensorRun, place: int, match: int
) -> dict[int, float]:
    """How far each rank's part of a tensor is from the other run's.

    Args:
        logical: the run put together.
        ranks: its ranks.
        other: the other run.
        place: of the tensor in the columns of the logical run.
        match: of its partner.

    Returns:
        Relative errors by rank; empty where a tensor is no slice.
    """
    return {
        rank: max(measure_arrays(*pair).error for pair in pairs)
        for rank, pairs in rank_pieces(logical, ranks, other, place, match).items()
    }


def rank_pieces(logical: Logical, ranks: Ranks, other: TensorRun, place: int, match: int) -> Pieces:
    """What each rank holds of a tensor beside its part of the other run's; as for rank_errors.

    Args:
        logical: the run put together.
        ranks: its ranks.
        other: the other run.
        place: of the tensor in the columns of the logical run.
        match: of its partner.
    """
    cut = logical.cuts.get(place)
    if cut is None or place in logical.sums or not other.columns.files[match]:
        return {}
    label = logical.run.columns.labels[place]
    op = next((op for op in logical.run.ops if place in op.tensors), None)
    name = "" if op is None else op.name
    try:
        reference = read_array(other.columns.files[match], other.columns.dtypes[match])
    except BadPayload:
        return {}
    is_gradient = op is not None and op.node is not None and op.node.is_backward
    factor = (logical.gradient_factor or 1.0) if is_gradient else 1.0
    pieces: dict[int, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
    for rank in cut.parts:
        value = ranks.values(rank, name, label)
        if value is not None and reference.shape == cut.whole:
            expected, value = reference[cut.window(rank)], value * factor
            node = ranks.ops[rank][name].node
            parts = {} if node is None else _gathered(node, label, expected, value)
            parts = parts or {ranks.rank_of(rank): (expected, value)}
            for owner, pair in parts.items():
                pieces.setdefault(owner, []).append(pair)
    return pieces


def _gathered(
    node: Node, label: str, expected: NDArray[Any], value: NDArray[Any]
) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
    """Of an operand that an AllGather puts together: the part of each rank."""
    text = label.partition(".")[2]
    source = operand(node, int(text)) if label.startswith("input") and text.isdecimal() else None
    info = collective(source[0]) if source is not None and source[0].op == "AllGather" else None
    if info is None or not info.ranks or not value.ndim or len(value) % len(info.ranks):
        return {}
    import numpy as np

    count = len(info.ranks)
    pieces = zip(info.ranks, np.split(expected, count), np.split(value, count), strict=True)
    return {rank: (ours, theirs) for rank, ours, theirs in pieces}


def gradients_of(run: TensorRun) -> set[Node]:
    """Nodes of a rank's backward pass.

    Args:
        run: the rank's tensors; without a graph joined to them there are none.
    """
    dump = next((dump_of(op.node) for op in run.ops if op.node is not None), None)
    graphs = dump.graphs if dump is not None else ()
    return {node for graph in graphs for node in gradient_nodes(graph.nodes)}


def _sums(run: TensorRun, rank: int) -> Sums:
    dump = next((dump_of(op.node) for op in run.ops if op.node is not None), None)
    return {} if dump is None else partial_sums(dump, rank)


def _error(reference: NDArray[Any] | None, value: NDArray[Any]) -> float:
    return 0.0 if reference is None else measure_arrays(reference, value).error


def _disagreement(
    cut: Cut, values: Mapping[int, NDArray[Any]], groups: Mapping[int, frozenset[int]]
) -> float:
    """How far ranks are apart that hold the same part under a cut, and are no terms of a sum."""
    errors = [
        measure_arrays(values[ranks[0]], values[rank]).error
        for ranks in cut.replicas()
        for rank in ranks[1:]
        if rank not in groups[ranks[0]]
    ]
    return max(errors, default=0.0)


def _parameter_name(op: Op, label: str) -> str:
    """The parameter of the graph that an operand is, empty for anything else."""
    if op.node is None:
        return ""
    source: object = op.node.inputs[int(label.partition(".")[2])] if _has(op.node, label) else None
    while isinstance(source, Node) and source.op in ("Load", "Depend"):
        source = source.inputs[0] if source.inputs else None
    return "" if source is None or isinstance(source, Node) else str(getattr(source, "name", ""))


def _has(node: Node, label: str) -> bool:
    text = label.partition(".")[2]
    return text.isdecimal() and int(text) < len(node.inputs)


def _copied(run: TensorRun) -> Any:
    columns = copy.copy(run.columns)
    lists: Sequence[str] = ("labels", "dtypes", "shapes", "most", "least", "mean", "norm",
                            "broken", "hashes", "files")  # fmt: skip
    for name in lists:
        setattr(columns, name, list(getattr(columns, name)))
    columns.notes, columns.unread = dict(columns.notes), dict(columns.unread)
    return columns

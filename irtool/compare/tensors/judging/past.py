"""What the operators before the one that is judged have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.bias import is_comparable, scale_of
from irtool.compare.tensors.judging.cancelled import Terms
from irtool.compare.tensors.judging.handed import Handed
from irtool.compare.tensors.judging.verdict import Judged, Measured
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Places, Shape, TensorRun
from irtool.ir.dataclass import dataclass

Training: TypeAlias = Literal["first step", "steps before", "steps compared"]
"""Whether both sides begin with the state they were given, or were trained before; and whether
those steps were compared."""
_SMALL = 0.02
"""Relative error up to which a tensor that was made of residue is more than residue."""


@dataclass(slots=True)
class Past:
    """Grows with every operator that is judged, in the order of the left dump.

    Attributes:
        forward: judged forward calls by name, for their gradients.
        worst: the largest relative error of an output so far that other operators go on with.
        worst_leaf: the same of gradients of parameters, which the optimizer alone reads.
        unit: roundoff of the coarsest type of a result so far: what figures of it hide.
        worst_scale: the largest factor, less 1, of an output so far.
        residue: tensors that are nothing but rounding, told by their size and norm.
        unwritten: tensors that no kernel has written, told in the same way.
        zero_state: the moments of an optimizer were zero before this step.
        composite: paths of modules whose parts were dumped too.
        training: what parameters and other state have been through.
        is_mixed: the dump shows modules and the calls within them.
        integers_differ: an operator has put out other whole numbers on both sides.
        handed: results so far, for those that one side hands on unchanged.
        has_chosen: an operator has made indices of real numbers, as a router does.
        computed: places of each run where functions read weights that calls have made.
        terms: what gradients are the sums of; None where nobody asks.
        broken_differ: one has put out NaN or infinity where the other side has none.
    """

    columns: Columns
    measures: Mapping[Places, Measure]
    handed: Handed
    forward: dict[str, Judged] = field(default_factory=dict[str, Judged])
    worst: float = 0.0
    worst_leaf: float = 0.0
    unit: float = 0.0
    worst_scale: float = 0.0
    residue: set[tuple[int, float]] = field(default_factory=set[tuple[int, float]])
    unwritten: set[tuple[int, float]] = field(default_factory=set[tuple[int, float]])
    zero_state: bool = False
    composite: set[str] = field(default_factory=set[str])
    is_mixed: bool = False
    training: Training = "first step"
    integers_differ: bool = False
    broken_differ: bool = False
    has_chosen: bool = False
    computed: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    terms: Terms | None = None

    def remember(self, judged: Judged) -> None:
        """Take in what one more operator showed: operators are judged in the order of execution."""
        op, columns = judged.pair.left, self.columns
        if op.phase == "forward" and op.call:
            self.forward[op.call] = judged
        if op.type.lower() in ("lerp_", "lerp") and op.inputs:
            self.zero_state = columns.norm[op.inputs[0]] == 0.0
        self._notice(judged)
        if not op.is_opaque:
            self.handed.remember(op, [p for p in judged.slots.outputs if p in self.measures])
        if self._is_tainted(judged):
            return
        if (
            judged.verdict in ("not comparable", "equal bits", "equal figures")
            or op.phase == "optimizer"
        ):
            return
        leaves = self._leaves(op)
        for places in judged.slots.outputs:
            measure = self.measures.get(places)
            if measure is not None and columns.shapes[places[0]] in leaves:
                self.worst_leaf = max(self.worst_leaf, measure.error)
                continue
            if measure is not None and measure.error > self.worst:
                self.worst = measure.error
            if measure is not None and not measure.equal:
                scale = abs(scale_of(measure))
                if scale > self.worst_scale and is_comparable(measure):
                    self.worst_scale = scale

    def before(self, op: Op) -> float:
        """The largest relative error of a result so far that an operator may go on with.

        Args:
            op: of the left run.
        """
        if op.phase == "optimizer" or op.is_opaque:
            return max(self.worst, self.worst_leaf)
        return self.worst

    def _leaves(self, op: Op) -> set[Shape]:
        """Shapes of the gradients of a call's parameters, where no other gradient has them."""
        forward = self.forward.get(op.call) if op.phase == "backward" and op.call else None
        if forward is None or op.is_opaque:
            return set()
        call, shapes = forward.pair.left, self.columns.shapes
        others = {shapes[place] for place in call.inputs if place not in call.parameters}
        return {shapes[place] for place in call.parameters} - others

    def _notice(self, judged: Judged) -> None:
        """Results that are no numbers to compute an error with."""
        dtypes, op = self.columns.dtypes, judged.pair.left
        if any(not is_float(dtypes[p]) and dtypes[p] != "Bool" for p in op.outputs):
            self.has_chosen = self.has_chosen or any(is_float(dtypes[p]) for p in op.inputs)
        for places in judged.slots.outputs:
            measure = self.measures.get(places)
            if measure is None:
                continue
            if is_broken(measure) and not is_broken_alike(measure):
                self.broken_differ = True
            self.unit = max(self.unit, roundoff(self.columns.dtypes[places[0]]))
            if not measure.equal and not is_float(self.columns.dtypes[places[0]]):
                self.integers_differ = True

    def _is_tainted(self, judged: Judged) -> bool:
        """Whether an operator works on residue; then its results are marked, and do not count."""
        is_residue = judged.verdict == "below rounding floor"
        if not is_residue and not self.residue:
            return False
        if not is_residue and not any(self.is_residue(a) for a, _ in judged.slots.inputs):
            return False
        for places in judged.slots.outputs:
            measure = self.measures.get(places)
            if measure is None:
                continue
            if is_residue or measure.error > _SMALL or math.isnan(measure.error):
                self.mark_residue(places)
        return True

    def hidden(self, op: Op) -> list[Measured]:
        """Tensors of the forward call that a gradient computes with."""
        if op.phase != "backward" or not op.call:
            return []
        forward = self.forward.get(op.call)
        if forward is None:
            return []
        places = (*forward.slots.inputs, *forward.slots.outputs)
        dtypes = self.columns.dtypes
        return [
            (p, self.measures[p]) for p in places if p in self.measures and is_float(dtypes[p[0]])
        ]

    def mark_residue(self, places: Places) -> None:
        """Say of a tensor that it is rounding residue."""
        key = self._value(places[0])
        if key is not None:
            self.residue.add(key)

    def mark_unwritten(self, places: Places) -> None:
        """Say of a result that no kernel has written it."""
        key = self._value(places[0])
        if key is not None:
            self.unwritten.add(key)

    def is_unwritten(self, place: int) -> bool:
        """Whether that was said of a tensor of the left dump."""
        return bool(self.unwritten) and self._value(place) in self.unwritten

    def is_residue(self, place: int) -> bool:
        """Whether that was said of a tensor of the left dump."""
        return bool(self.residue) and self._value(place) in self.residue

    def _value(self, place: int) -> tuple[int, float] | None:
        """What tells a tensor of the left dump from others: size and norm."""
        norm = self.columns.norm[place]
        if math.isnan(norm) or norm == 0.0:
            return None
        return math.prod(self.columns.shapes[place]), norm


def is_broken(measure: Measure) -> bool:
    """Whether there is NaN or infinity on either side.

    Args:
        measure: of a pair of tensors.
    """
    return measure.broken_left > 0 or measure.broken_right > 0


def is_broken_alike(measure: Measure) -> bool:
    """Whether as many elements are NaN or infinite on both sides: a mask, as a rule.

    Args:
        measure: of a pair of tensors; where nobody counted they are taken for alike.
    """
    return (
        measure.broken_left == measure.broken_right
        or min(measure.broken_left, measure.broken_right) < 0
    )


def is_mixed(run: TensorRun) -> bool:
    """Whether a dump shows modules and, before each, the calls within it.

    Args:
        run: of msprobe; the optimizer's calls don't count.
    """
    kinds = {op.is_module for op in run.ops if op.phase != "optimizer" and op.type != "Parameter"}
    return len(kinds) == 2


def composites(run: TensorRun) -> set[str]:
    """Paths of modules that have others within them.

    Args:
        run: with the modules that it shows.
    """
    names: set[str] = set()
    for op in run.ops:
        parent = op.owner.rpartition(".")[0] if op.is_module else ""
        while parent and parent not in names:
            names.add(parent)
            parent = parent.rpartition(".")[0]
    return names

"""Weights that sums and products read: nothing in a dump of calls says that they are some.

Of ``linear`` or ``layer_norm`` it is known which inputs are weights; of ``x * self.weight`` it is
not.  Such an input comes from no call before it, and so does what indexing makes.  But weights are
the same to the bit on both sides whatever error came before, which nothing is that was computed;
where most inputs of a kind are, one function's, in one place and shape, all of them are weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.ir.dataclass import dataclass

_PROOFS = 2
"""How many inputs of a kind have to be equal behind an error, for all of them to be weights."""
_SHARE = 2 / 3
"""Of all inputs of a kind, how many have to be equal."""
_FINE = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_ROUNDING = 2.0**-20
"""Relative error up to which an input may have been computed, and is no other weight."""


_Figures: TypeAlias = tuple[float, float, float]
"""Norm and extremes, which tell a tensor from others: of half precision a norm alone does not."""


@dataclass(slots=True)
class _Kind:
    """Inputs that calls of one function read in one place, in one shape; each value once."""

    proofs: int = 0
    equal: int = 0
    others: list[float] = field(default_factory=list[float])
    tensors: list[tuple[OpPair, Places]] = field(default_factory=list[tuple[OpPair, Places]])
    seen: set[_Figures] = field(default_factory=set[_Figures])

    @property
    def are_weights(self) -> bool:
        """Whether all of them are."""
        count = self.equal + len(self.others)
        is_most = self.proofs >= _PROOFS and self.equal >= _SHARE * count
        return is_most and all(error > _ROUNDING for error in self.others)


def mark_weights(
    left: TensorRun,
    right: TensorRun,
    pairs: Sequence[OpPair],
    slots: Sequence[Slots],
    measures: Mapping[Places, Measure],
) -> bool:
    """Note which inputs of sums, products and the like are weights, in the operators themselves.

    Args:
        left: one dump.
        right: the other.
        pairs: of operators, in the order of the left dump.
        slots: tensors of each pair.
        measures: of the tensors that were paired.

    Returns:
        Whether there are any.
    """
    columns = left.columns
    made: set[tuple[int, float]] = set()
    kinds: dict[Hashable, _Kind] = {}
    has_error = False
    for pair, tensors in zip(pairs, slots, strict=True):
        op = pair.left
        if op.phase != "forward" or op.is_module:
            continue
        for places in tensors.inputs:
            place, measure = places[0], measures[places]
            size = math.prod(columns.shapes[place])
            is_given = place not in op.parameters and (size, columns.norm[place]) not in made
            if size < 2 or not is_given or not is_float(columns.dtypes[place]):
                continue
            key = op.type, columns.labels[place], columns.shapes[place]
            _add(kinds.setdefault(key, _Kind()), pair, places, measure, has_error, columns)
        for place in op.outputs:
            made.add((math.prod(columns.shapes[place]), columns.norm[place]))
        has_error = has_error or any(not measures[p].equal for p in tensors.outputs)
    weights = [item for kind in kinds.values() if kind.are_weights for item in kind.tensors]
    for pair, (a, b) in weights:
        _mark(pair.left, a)
        _mark(pair.right, b)
    return bool(weights)


def _add(
    kind: _Kind,
    pair: OpPair,
    places: Places,
    measure: Measure,
    has_error: bool,
    columns: Columns,
) -> None:
    kind.tensors.append((pair, places))
    place = places[0]
    figures = columns.norm[place], columns.most[place], columns.least[place]
    if figures in kind.seen:
        return
    kind.seen.add(figures)
    is_fine = roundoff(columns.dtypes[place]) < _FINE
    if measure.equal and (measure.exact or is_fine):  # figures in half precision agree by chance
        kind.equal += 1
        kind.proofs += has_error
    else:
        kind.others.append(measure.error if math.isfinite(measure.error) else 0.0)


def _mark(op: Op, place: int) -> None:
    op.parameters = op.parameters | {place}

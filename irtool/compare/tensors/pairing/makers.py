"""Operators without a partner that made what a paired one reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.semantics import family

_HAND_ON = frozenset(("view", "cast"))
_SAME = 1e-6
"""Relative difference of the norms of one tensor that two operators show."""


def taken_calls(pairs: Sequence[OpPair]) -> tuple[set[int], set[int]]:
    """Places in the order of execution of the calls of either side that are in a pair.

    Args:
        pairs: of operators, which may be made of several calls.

    Returns:
        Of the left side, then of the right one.
    """
    return (
        {call.index for pair in pairs for call in pair.left.members},
        {call.index for pair in pairs for call in pair.right.members},
    )


class Makers:
    """Finds them by value: the norm of a tensor is as good as its name.

    Views, which the dump may not show, do not change it.
    """

    def __init__(self, left: TensorRun, right: TensorRun, pairs: Sequence[OpPair]) -> None:
        self._runs = left, right
        taken = taken_calls(pairs)
        self._free = tuple(
            [op for op in run.ops if op.index not in done]
            for run, done in zip(self._runs, taken, strict=True)
        )

    def maker(self, which: int, reader: Op, place: int) -> Op | None:
        """The last unpaired operator before a reader that computed what it reads, or None.

        Args:
            which: 0 for the left run, 1 for the right one.
            reader: the operator that reads.
            place: the tensor in the columns of that run.
        """
        maker: Op | None = None
        for op in self._makers(which, reader, place):
            if maker is None or family(op.type) not in _HAND_ON:
                maker = op
        return maker

    def has_call_after(self, which: int, op: Op, most: int) -> bool:
        """Whether an unpaired call that computes something follows an operator soon.

        Args:
            which: 0 for the left run, 1 for the right one.
            op: the operator.
            most: how many operators behind it are looked at.
        """
        return any(
            op.index < other.index <= op.index + most
            and other.phase == op.phase
            and family(other.type) not in _HAND_ON
            for other in self._free[which]
        )

    def origin(self, which: int, maker: Op) -> Op:
        """Of a maker that was given NaN or infinity: the unpaired operator where they begin."""
        broken = self._runs[which].columns.broken
        while True:
            given = next((place for place in maker.inputs if broken[place] > 0), None)
            earlier = None if given is None else self.maker(which, maker, given)
            if earlier is None:
                return maker
            maker = earlier

    def _makers(self, which: int, reader: Op, place: int) -> Iterator[Op]:
        """All unpaired operators that put it out: one, and views and casts that hand it on."""
        columns = self._runs[which].columns
        if math.isnan(columns.norm[place]):
            complete(columns, place, False)
        norm, size = columns.norm[place], math.prod(columns.shapes[place])
        for op in self._free[which]:
            if op.index >= reader.index:
                break
            for result in op.outputs:
                if math.prod(columns.shapes[result]) != size:
                    continue
                if math.isnan(columns.norm[result]):
                    complete(columns, result, False)
                if self._are_alike(which, place, result) or (
                    math.isnan(norm)
                    and math.isnan(columns.norm[result])
                    and self._are_broken(which, place, result)
                ):
                    yield op

    def _are_alike(self, which: int, place: int, result: int) -> bool:
        """Whether two tensors have one norm; of half precision it may be stated in that."""
        columns = self._runs[which].columns
        ours, theirs = columns.norm[place], columns.norm[result]
        if math.isclose(ours, theirs, rel_tol=_SAME):
            return True
        if columns.dtypes[place] == columns.dtypes[result]:
            return False
        most, least = columns.most, columns.least
        ends = most[place] == most[result] and least[place] == least[result]
        unit = max(roundoff(columns.dtypes[place]), roundoff(columns.dtypes[result]))
        return ends and most[place] != least[place] and math.isclose(ours, theirs, rel_tol=unit)

    def _are_broken(self, which: int, *places: int) -> bool:
        """Whether tensors hold NaN or infinity: these have no norm to know them by."""
        broken = self._runs[which].columns.broken
        return all(broken[place] > 0 for place in places)

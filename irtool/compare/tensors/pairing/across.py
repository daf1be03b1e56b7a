"""Which values of two frameworks are the same one, whatever the calls are that make them.

One side may compute in eight calls what the other does in one.  What both have then are the
values that go in and come out.  These are known by their figures as long as both sides agree;
behind a fault by the parameters that the calls read, which agree all the way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.flow import Flow, Value
from irtool.compare.tensors.pairing.operators import kind_of
from irtool.compare.tensors.semantics import family

_TOLERANCE = 1e-4
"""Relative difference of norm and extremes up to which Float32 tensors may be the same; shorter
types get as many roundings more."""
_ROUNDINGS = 4.0
_STEPS = 4
"""Calls that may lie between the one that reads a parameter and the one that has its result."""
_SURE = 1e-6
"""Differences of figures below which the order of calls decides."""


class Partners:
    """Pairs of values of two flows.

    Attributes:
        left, right: the flows.
        of_left: partner of a value of the left flow, by number.
        of_right: the same the other way round.
    """

    def __init__(self, left: Flow, right: Flow) -> None:
        self.left, self.right = left, right
        self.of_left: dict[int, Value] = {}
        self.of_right: dict[int, Value] = {}
        self._least = 0.0  # what has been through half precision is no nearer, whatever its type
        self._by_figures(gradients=False)
        ours, theirs = left.loss, right.loss
        if ours is not None and theirs is not None:
            self.pair(ours, theirs)
        while self._by_parameters() | self._by_remainders():
            pass
        units = (value.unit for flow in (left, right) for value in flow.values)
        self._least = max(units, default=0.0)
        self._by_figures(gradients=False)

    def pair(self, ours: Value, theirs: Value) -> bool:
        """Say that two values are the same one; False if one of them has a partner."""
        if ours.number in self.of_left or theirs.number in self.of_right:
            return False
        self.of_left[ours.number], self.of_right[theirs.number] = theirs, ours
        return True

    # -- by figures

    def _by_figures(self, *, gradients: bool) -> None:
        """Values of about the same figures, the nearest first."""
        ours = [v for v in self.left.values if self._takes_part(self.left, v, gradients, 0)]
        theirs = [v for v in self.right.values if self._takes_part(self.right, v, gradients, 1)]
        candidates = sorted(self._near(ours, theirs), key=lambda row: row[:2])
        for _, _, a, b in candidates:
            self.pair(self.left.values[a], self.right.values[b])

    def gradients_by_figures(self) -> None:
        """Gradients of about the same figures that have no partner yet."""
        self._by_figures(gradients=True)

    def _takes_part(self, flow: Flow, value: Value, gradients: bool, which: int) -> bool:
        taken = self.of_right if which else self.of_left
        if value.number in taken:
            return False
        if flow.is_graph:
            is_forward = value.maker is None or value.maker.index in flow.forward
            return is_forward != gradients
        return value.is_gradient == gradients

    def _near(
        self, ours: Sequence[Value], theirs: Sequence[Value]
    ) -> Iterator[tuple[float, float, int, int]]:
        """Pairs that may be the same: how far their figures and their places in order are apart."""
        by_size: dict[int, list[tuple[float, int]]] = {}
        for place, value in enumerate(theirs):
            by_size.setdefault(value.size, []).append((value.figures[0], place))
        for rows in by_size.values():
            rows.sort()
        coarsest = max([self._least, *{value.unit for value in theirs}])
        for place, value in enumerate(ours):
            rows = by_size.get(value.size, [])
            norm = value.figures[0]
            widest = 1.01 * max(_TOLERANCE, _ROUNDINGS * max(value.unit, coarsest))
            row = bisect_left(rows, (norm * (1 - widest), -1))
            while row < len(rows) and rows[row][0] <= norm * (1 + widest):
                other = theirs[rows[row][1]]
                apart = _apart(value, other)
                unit = max(value.unit, other.unit, self._least)
                if apart <= max(_TOLERANCE, _ROUNDINGS * unit):
                    order = abs(place / len(ours) - rows[row][1] / len(theirs))
                    yield max(apart, _SURE), order, value.number, other.number
                row += 1

    # -- by parameters

    def _by_parameters(self) -> bool:
        """Results of calls that read the same parameters; what products of them read besides."""
        is_new = False
        for op in self.left.calls:
            if op.index not in self.left.forward:
                continue
            other = self._reader(op)
            if other is None:
                continue
            for ours in self.left.outputs(op):
                theirs = self._result(other, ours.size)
                if theirs is not None and ours.number not in self.of_left:
                    is_new |= self._are_last(op, other) and self.pair(ours, theirs)
                break
            is_new |= self._operands(op)
        return is_new

    def _by_remainders(self) -> bool:
        """What is left of the operands of two operators of one kind, where all others are paired.

        Of a sum of what comes from far and of what was just computed, that is the latter.
        """
        is_new = False
        for number, match in list(self.of_left.items()):
            ours, theirs = self.left.values[number].maker, match.maker
            if ours is None or theirs is None or kind_of(ours) != kind_of(theirs):
                continue
            rest = [
                [value for value in flow.inputs(op) if value.number not in known]
                for flow, op, known in (
                    (self.left, ours, self.of_left),
                    (self.right, theirs, self.of_right),
                )
            ]
            number_of = len(list(self.left.inputs(ours))), len(list(self.right.inputs(theirs)))
            if number_of[0] != number_of[1] or not all(row and row[0].maker for row in rest):
                continue
            if len(rest[0]) == len(rest[1]) == 1 and rest[0][0].size == rest[1][0].size:
                is_new |= self.pair(rest[0][0], rest[1][0])
        return is_new

    def _reader(self, op: Op) -> Op | None:
        """The last call of the right run that reads the parameters of one of the left run."""
        reader: Op | None = None
        for leaf in self.left.inputs(op):
            other = self._counterpart(leaf, op)
            if other is not None and (reader is None or other.index > reader.index):
                reader = other
        return reader

    def _counterpart(self, leaf: Value, op: Op) -> Op | None:
        """The call of the right run that reads a parameter when a call of the left run does."""
        match = self.of_left.get(leaf.number)
        if leaf.maker is not None or match is None or match.maker is not None:
            return None
        ours, theirs = self.left.forward_readers(leaf), self.right.forward_readers(match)
        if len(ours) == len(theirs):
            return theirs[ours.index(op)] if op in ours else None
        return theirs[-1] if len(ours) == 1 and theirs else None

    def _are_last(self, op: Op, other: Op) -> bool:
        """Whether nobody reads the parameters of the right call after the left one."""
        for leaf in self.right.inputs(other):
            match = self.of_right.get(leaf.number)
            if leaf.maker is None and match is not None:
                readers = self.left.forward_readers(match)
                if readers and len(readers) == 1 and readers[-1].index > op.index:
                    return False
        return True

    def _result(self, op: Op, size: int) -> Value | None:
        """What a call makes, or what is made of it, of the size that is looked for."""
        for _ in range(_STEPS):
            made = next(self.right.outputs(op), None)
            if made is None or made.number in self.of_right:
                return None
            if made.size == size:
                return made
            readers = self.right.forward_readers(made)
            if len(readers) != 1:
                return None
            op = readers[0]
        return None

    def _operands(self, op: Op) -> bool:
        """Pair what two products read beside the same weights."""
        if family(op.type) not in ("matmul", "convolution"):
            return False
        for leaf in self.left.inputs(op):
            other = self._counterpart(leaf, op)
            if other is None or family(other.type) != family(op.type):
                continue
            ours = [v for v in self.left.inputs(op) if v.number not in self.of_left]
            theirs = [v for v in self.right.inputs(other) if v.number not in self.of_right]
            if len(ours) == len(theirs) == 1 and ours[0].size == theirs[0].size:
                return self.pair(ours[0], theirs[0])
        return False


def _apart(ours: Value, theirs: Value) -> float:
    """The largest relative difference of norms and extremes."""
    norms = max(ours.figures[0], theirs.figures[0])
    extreme = max(*map(abs, ours.figures[1:]), *map(abs, theirs.figures[1:]))
    if not norms or not extreme:
        return 0.0 if ours.figures == theirs.figures else 1.0
    return max(
        abs(ours.figures[0] - theirs.figures[0]) / norms,
        *(abs(a - b) / extreme for a, b in zip(ours.figures[1:], theirs.figures[1:], strict=True)),
    )

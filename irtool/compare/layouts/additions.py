"""Products whose bias and residual the two runs add in another order, brought to one order.

A product over a cut axis leaves partial sums on its ranks, so whoever cuts it adds the bias after
the collective, or on one rank before it, where one device has it in the product; and a residual
may come before the bias.  Between a product and the first call that does more than adding, the two
runs have some sums in common: what adds up the same terms.  Calls between two of these count as
one, with all that they read; the rest is as it was.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from irtool.compare.layouts.alignment import is_collective
from irtool.compare.layouts.chained import Chained, LogicalOp, as_run
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.flow import Flow, Value
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass

_ADDS = ("add", "iadd", "radd")
ADD_UP = (
    "all_reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "_reduce_scatter_base",
    "reduce",
)
"""Collectives that add up what ranks hold."""
_UNSEEN = 3
"""How many calls behind a collective may read a part of its result that no call is seen to cut."""
_Term: TypeAlias = Literal["vector", "tensor"]
_State: TypeAlias = tuple[int, int]
"""How many vectors (biases) and how many tensors (residuals) are in a sum besides the product."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A product, or an addition to it.

    Attributes:
        op: index of the call.
        state: what its result adds up.
        given: label of the operand that is the sum before; empty for the product.
        others: labels of what is added here, and what it is.
        is_summed: ranks were added up between the product and this.
    """

    op: int
    state: _State
    given: str = ""
    others: tuple[tuple[str, _Term], ...] = ()
    is_summed: bool = False


@dataclass(frozen=True, slots=True)
class Unsummed:
    """A product over a cut axis that something is added to before its ranks are added up.

    Attributes:
        which: 0 for the left run, 1 for the right one.
        op: index of the call.
    """

    which: int
    op: int


@dataclass(frozen=True, slots=True)
class Regrouped:
    """Two runs with their additions in one order.

    Attributes:
        sides: both.
        pairs: indices of operators that are the same one.
        unsummed: what is missing.
    """

    sides: tuple[Chained, Chained]
    pairs: Mapping[int, int]
    unsummed: Sequence[Unsummed]


def regrouped_additions(sides: tuple[Chained, Chained], pairs: Mapping[int, int]) -> Regrouped:
    """Bring additions to products to one order, where they have another one.

    Args:
        sides: both runs.
        pairs: indices of operators that are the same one.
    """
    work = _Work(sides)
    for a, b in sorted(pairs.items()):
        if _is_product(sides[0].ops[a].op) and _is_product(sides[1].ops[b].op):
            work.bring_together(a, b)
    return work.done(pairs)


class _Work:
    """Goes through the products, and keeps what stands for what."""

    def __init__(self, sides: tuple[Chained, Chained]) -> None:
        self.sides = sides
        self._flows = Flow(sides[0].run), Flow(sides[1].run)
        self._made: tuple[dict[int, LogicalOp | None], ...] = ({}, {})
        self._same: list[tuple[LogicalOp, LogicalOp]] = []
        self._unsummed: list[tuple[int, LogicalOp]] = []

    def bring_together(self, a: int, b: int) -> None:
        """Do it for one product that both runs have."""
        chains = [list(self._chain(which, op)) for which, op in ((0, a), (1, b))]
        if any(link.op in made for chain, made in zip(chains, self._made, strict=True)
               for link in chain):  # fmt: skip
            return
        if [link.state for link in chains[0]] == [link.state for link in chains[1]] and all(
            x.given == y.given for x, y in zip(*chains, strict=True)
        ):
            self._same += [
                (self.sides[0].ops[x.op], self.sides[1].ops[y.op])
                for x, y in zip(chains[0][1:], chains[1][1:], strict=True)
            ]
            return
        states = _in_common(*chains)
        if not states:
            if chains[0][0].state != chains[1][0].state:
                for which in (0, 1):
                    self._made[which][chains[which][0].op] = self._without_result(
                        which, chains[which][0].op
                    )
            return
        names = [self._unsummed_reader(which, chains, which) for which in (0, 1)]
        parts = [list(_segments(chain, states)) for chain in chains]
        for segments in zip(*parts, strict=True):
            made = [self._joined(which, segments[which], names[which]) for which in (0, 1)]
            self._same.append((made[0], made[1]))

    def done(self, pairs: Mapping[int, int]) -> Regrouped:
        """Both runs with sums of matrix products regrouped, and their pairs renumbered."""
        if not any(self._made) and not self._same:
            return Regrouped(self.sides, pairs, ())
        sides: list[Chained] = []
        numbers: list[dict[int, int]] = []
        for side, made in zip(self.sides, self._made, strict=True):
            ops: list[LogicalOp] = []
            number: dict[int, int] = {}
            for index, item in enumerate(side.ops):
                kept = made.get(index, item)
                if kept is not None:
                    number[id(kept)] = len(ops)
                    number.setdefault(id(item), len(ops))
                    ops.append(kept)
            numbers.append(number)
            run = as_run(side.runs, ops) if made else side.run
            sides.append(Chained(side.runs, side.layout, side.micro, ops, run))
        same = {
            (0, numbers[0][id(ours)]): numbers[1][id(theirs)]
            for ours, theirs in self._same
        }  # fmt: skip
        taken = set(same.values())
        renumbered = {
            numbers[0][id(self.sides[0].ops[a])]: numbers[1][id(self.sides[1].ops[b])]
            for a, b in pairs.items()
            if id(self.sides[0].ops[a]) in numbers[0] and id(self.sides[1].ops[b]) in numbers[1]
        }
        kept = {a: b for a, b in renumbered.items() if (0, a) not in same and b not in taken}
        kept |= {a: b for (_, a), b in same.items()}
        unsummed = [Unsummed(which, numbers[which][id(op)]) for which, op in self._unsummed]
        return Regrouped((sides[0], sides[1]), kept, unsummed)

    # -- what is added to a product

    def _chain(self, which: int, product: int) -> Iterator[_Link]:
        """A product and the additions behind it."""
        side, flow = self.sides[which], self._flows[which]
        op = side.run.ops[product]
        if not op.outputs:
            return
        floats = [place for place in op.inputs if len(side.run.columns.shapes[place]) > 0]
        state = (int(len(floats) > 2), 0)
        yield _Link(product, state)
        value, is_summed = flow.value(op.outputs[0]), False
        while value is not None:
            reader = self._only_reader(which, value)
            if reader is None:
                return
            if is_collective(reader):
                is_summed = True
                value = flow.value(reader.outputs[0]) if reader.outputs else None
                continue
            link = self._addition(which, reader, value, state, is_summed)
            if link is None:
                return
            yield link
            state = link.state
            value = flow.value(reader.outputs[0])

    def _only_reader(self, which: int, value: Value) -> Op | None:
        """The one call that reads a sum, if that adds something to it."""
        side, flow = self.sides[which], self._flows[which]
        readers = flow.forward_readers(value)
        if not readers and value.maker is not None and is_collective(value.maker):
            return self._reader_of_part(which, value)
        if len(readers) != 1:
            return None
        reader = readers[0]
        if is_collective(reader):
            return reader if reader.type in ADD_UP else None
        del side
        return reader if _is_addition(reader) else None

    def _reader_of_part(self, which: int, value: Value) -> Op | None:
        """The call that reads a rank's part of what a collective added up (sequence parallel)."""
        flow, degree = self._flows[which], self.sides[which].layout.tensor_parallel
        assert value.maker is not None
        later = [op for op in flow.calls if op.index > value.maker.index and op.phase == "forward"]
        for op in later[:_UNSEEN]:
            if _is_addition(op) and self._part(which, op, value.size // degree) is not None:
                return op
        return None

    def _part(self, which: int, op: Op, size: int) -> int | None:
        """The operand of a size that no call is seen to make."""
        flow = self._flows[which]
        for place in op.inputs:
            value = flow.value(place)
            if value is not None and value.size == size and value.maker is None:
                return place
        return None

    def _addition(
        self, which: int, op: Op, value: Value, state: _State, is_summed: bool
    ) -> _Link | None:
        """An addition to a sum; None where it is of another kind."""
        run, flow = self.sides[which].run, self._flows[which]
        given = next((place for place in op.inputs if flow.value(place) is value), None)
        if given is None:
            given = self._part(which, op, value.size // self.sides[which].layout.tensor_parallel)
        others = [place for place in op.inputs if place != given]
        if given is None or len(others) != 1 or len(op.outputs) != 1:
            return None
        sizes = [math.prod(run.columns.shapes[place]) for place in (given, others[0])]
        if sizes[1] > sizes[0] or self._is_product_sum(which, others[0]):
            return None
        term: _Term = "tensor" if sizes[0] == sizes[1] else "vector"
        state = (state[0] + (term == "vector"), state[1] + (term == "tensor"))
        labels = run.columns.labels
        return _Link(op.index, state, labels[given], ((labels[others[0]], term),), is_summed)

    def _is_product_sum(self, which: int, place: int) -> bool:
        """Whether what is added is another product, which only this reads."""
        flow = self._flows[which]
        value = flow.value(place)
        while value is not None and value.maker is not None:
            if len(flow.forward_readers(value)) != 1:
                return False
            if _is_product(value.maker):
                return True
            if not (is_collective(value.maker) or _is_addition(value.maker)):
                return False
            value = next(iter(flow.inputs(value.maker)), None)
        return False

    def _unsummed_reader(
        self, which: int, chains: Sequence[Sequence[_Link]], own: int
    ) -> LogicalOp | None:
        """What adds something to the terms of a product that nothing has added up."""
        side = self.sides[which]
        if side.layout.tensor_parallel < 2 or len(chains[own]) < 2:
            return None
        depths: list[int] = []
        for run, chain in ((self.sides[0].run, chains[0]), (self.sides[1].run, chains[1])):
            shape = run.columns.shapes[run.ops[chain[0].op].inputs[0]]
            depths.append(shape[-1] if shape else 0)
        link = chains[own][1]
        if depths[which] >= depths[1 - which] or link.is_summed:
            return None
        return side.ops[link.op]

    # -- one call for several

    def _joined(self, which: int, segment: Sequence[_Link], reader: LogicalOp | None) -> LogicalOp:
        """One operator that stands for the calls of a segment, in the place of its last one."""
        side = self.sides[which]
        items = [side.ops[link.op] for link in segment]
        parts = {
            coordinate: (rank, self._part_of(which, segment, items, coordinate))
            for coordinate, (rank, _) in items[-1].parts.items()
            if all(coordinate in item.parts for item in items)
        }
        op = copy.copy(items[0].op)
        is_odd = reader is not None and segment[0].given == "" and len(segment) > 1
        if is_odd and reader is not None:
            op.name = reader.op.name
        made = LogicalOp(op, items[0].stage, parts)
        for link in segment:
            self._made[which][link.op] = None
        self._made[which][segment[-1].op] = made
        if is_odd:
            self._unsummed.append((which, made))
        return made

    def _part_of(
        self, which: int, segment: Sequence[_Link], items: Sequence[LogicalOp],
        coordinate: tuple[int, int, int],
    ) -> Op:  # fmt: skip
        """The operator that a segment of a chain of sums makes on one rank."""
        rank, first = items[0].parts[coordinate]
        columns = self.sides[which].runs[rank].columns
        places: list[int] = []
        vectors: list[int] = []
        tensors: list[int] = []
        for link, item in zip(segment, items, strict=True):
            op = item.parts[coordinate][1]
            if not link.given:
                places += op.inputs
                continue
            labels = {columns.labels[place]: place for place in op.inputs}
            if link is segment[0] and link.given in labels:
                places.append(labels[link.given])
            for label, term in link.others:
                if label in labels:
                    (vectors if term == "vector" else tensors).append(labels[label])
        vectors += [place for place in places[2:] if not segment[0].given]
        places = places[:2] if not segment[0].given else places[:1]
        base = len(places)
        more = [*vectors, *([-1] * (base == 2 and not vectors)), *tensors]
        made = copy.copy(first)
        made.inputs = [
            self._labelled(which, rank, place, f"input.{number}")
            for number, place in enumerate((*places, *more))
            if place >= 0
        ]
        last = items[-1].parts[coordinate][1]
        made.outputs = [self._labelled(which, rank, last.outputs[0], "output.0")]
        weights = first.parameters
        old = [*places, *(place for place in more if place >= 0)]
        made.parameters = frozenset(
            new for new, place in zip(made.inputs, old, strict=True)
            if place in weights or place in vectors
        )  # fmt: skip
        return made

    def _labelled(self, which: int, rank: int, place: int, label: str) -> int:
        columns = self.sides[which].runs[rank].columns
        if columns.labels[place] == label:
            return place
        made = columns.add_from(columns, place)
        columns.labels[made] = label
        return made

    def _without_result(self, which: int, index: int) -> LogicalOp:
        """A product whose result the other run never has: only what it reads is compared."""
        item = self.sides[which].ops[index]
        made = copy.copy(item)
        made.parts = {}
        for coordinate, (rank, op) in item.parts.items():
            part = copy.copy(op)
            part.outputs = []
            made.parts[coordinate] = (rank, part)
        made.op = copy.copy(item.op)
        return made


def _in_common(ours: Sequence[_Link], theirs: Sequence[_Link]) -> list[_State]:
    """Sums that both runs have, in their order."""
    both = {link.state for link in theirs}
    states = [link.state for link in ours if link.state in both]
    total = max((state[1] for state in states), default=0)
    if total > 1:  # which of several residuals is in a sum, nobody says
        states = [state for state in states if state[1] in (0, total)]
    return states


def _segments(chain: Sequence[_Link], states: Sequence[_State]) -> Iterator[list[_Link]]:
    """Calls up to each of the sums that both have."""
    segment: list[_Link] = []
    for link in chain:
        segment.append(link)
        if link.state in states:
            yield segment
            segment = []


def _is_product(op: Op) -> bool:
    return op.phase == "forward" and not op.is_module and family(op.type) == "matmul"


def _is_addition(op: Op) -> bool:
    return not op.is_module and op.type.lower().strip("_") in _ADDS

"""Runs of two frameworks: their stretches as operator pairs, and how much of both is in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.pairing.stretches import Stretch, Stretches
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Crossing:
    """What of two runs of different frameworks could be paired.

    Attributes:
        pairs: operator pairs with their tensors, in no order.
        order: where each of them belongs in the order of the left run.
        forward: calls of the forward pass that are in one, and all, of the run that has fewer.
        backward: the same of its gradients.
        unseen: calls of that run without a partner, in order.
        unseen_gradients: those of which the gradient of what they make has none.
        is_left: whether it is the left run that has fewer.
        is_by_figures: gradients are paired by their figures and the parameters they update: the
            other run is a graph, which does not say what is the gradient of what.
        others: further tensors that show the same values as a pair of tensors, in other layouts.
    """

    pairs: tuple[tuple[OpPair, Slots], ...]
    order: tuple[float, ...]
    forward: tuple[int, int]
    backward: tuple[int, int]
    unseen: tuple[Op, ...]
    unseen_gradients: tuple[Op, ...]
    is_left: bool = True
    is_by_figures: bool = False
    others: Mapping[Places, tuple[list[int], list[int]]] = field(
        default_factory=dict[Places, tuple[list[int], list[int]]]
    )


def cross(left: TensorRun, right: TensorRun) -> Crossing | None:
    """Pair the calls of two frameworks' runs by the values that flow between them.

    Args:
        left: one run.
        right: the other.

    Returns:
        The pairs, and what has no partner; None where there is nothing to pair them by.
    """
    is_graph = [not any(op.call for op in run.ops) for run in (left, right)]
    if all(is_graph):
        return None
    flip = is_graph[0] or (not is_graph[1] and _calls(right) < _calls(left))
    sides = (right, left) if flip else (left, right)
    stretches_of_runs = Stretches(*sides)
    stretches = [*stretches_of_runs.forward(), *stretches_of_runs.backward()]
    if not stretches:
        return None
    flow = stretches_of_runs.flows[0]
    seen = {op.index for stretch in stretches for op in stretch.left}
    calls = [op for op in flow.calls if op.index in flow.forward]
    lone = tuple(op for op in calls if op.index not in seen)
    gradients, shown = stretches_of_runs.gradients[0], stretches_of_runs.shown
    lost = [flow.values[number] for number in gradients if number not in shown]
    pairs = [_pair(stretch, sides, flip) for stretch in stretches]
    return Crossing(
        tuple(pairs),
        tuple(
            pair.left.index if flip else max(pair.left.index, stretch.before - 0.5)
            for (pair, _), stretch in zip(pairs, stretches, strict=True)
        ),
        (len(calls) - len(lone), len(calls)),
        (len(gradients) - len(lost), len(gradients)),
        lone,
        tuple(value.maker for value in lost if value.maker is not None),
        not flip,
        stretches_of_runs.flows[1].is_graph,
        {(b, a): (theirs, ours) for (a, b), (ours, theirs) in stretches_of_runs.others.items()}
        if flip
        else stretches_of_runs.others,
    )


def _calls(run: TensorRun) -> int:
    return sum(not op.is_module for op in run.ops)


def _pair(stretch: Stretch, sides: tuple[TensorRun, TensorRun], flip: bool) -> tuple[OpPair, Slots]:
    inputs = [*stretch.inputs.values(), *_whole_numbers(stretch, sides)]
    outputs = list(stretch.outputs.values())
    ops = stretch.left, stretch.right
    made: list[Op] = []
    for which, (calls, run) in enumerate(zip(ops, sides, strict=True)):
        others = ops[1 - which]
        if len(calls) == len(others) == 1 and stretch.phase == "forward":
            made.append(calls[0])
            continue
        places = [pair[which] for pair in inputs], [pair[which] for pair in outputs]
        made.append(_together(calls, _kind(calls, others), stretch, run.columns, places))
    parameters = [
        (a, b)
        for a, b in inputs
        if any(a in op.parameters for op in ops[0]) or any(b in op.parameters for op in ops[1])
    ]
    for which, op in enumerate(made):
        if op.parts:
            op.parameters = frozenset(pair[which] for pair in parameters)
    if flip:
        slots = Slots(_turned(inputs), _turned(outputs))
        return OpPair(made[1], made[0], "flow"), slots
    return OpPair(made[0], made[1], "flow"), Slots(tuple(inputs), tuple(outputs))


def _turned(pairs: Sequence[Places]) -> tuple[Places, ...]:
    return tuple((b, a) for a, b in pairs)


def _kind(calls: Sequence[Op], others: Sequence[Op]) -> str:
    """The operator that calls are together: what the other side calls it, if that is one."""
    for members in (calls, others):
        kinds = {op.type for op in members}
        if len(kinds) == 1:
            return kinds.pop()
    return ""


def _together(
    calls: Sequence[Op],
    kind: str,
    stretch: Stretch,
    columns: Columns,
    places: tuple[list[int], list[int]],
) -> Op:
    """Several calls as one operator, called as the last of them."""
    last = calls[-1]
    attributes: Mapping[str, object] = last.attributes if len(calls) == 1 else {}
    return Op(
        last.index,
        last.name,
        kind or last.type,
        stretch.phase,
        tuple(places[0]),
        tuple(places[1]),
        attributes=attributes,
        owner=last.owner,
        call=stretch.call,
        source=last.source,
        node=last.node,
        parts=tuple(calls),
    )


def _whole_numbers(
    stretch: Stretch, sides: tuple[TensorRun, TensorRun]
) -> Iterator[tuple[int, int]]:
    """Indices and labels that both read: the only ones of their size."""
    if stretch.phase != "forward":
        return
    known = set(stretch.inputs.values())
    rows: list[dict[int, list[int]]] = []
    for calls, run in zip((stretch.left, stretch.right), sides, strict=True):
        sizes: dict[int, list[int]] = {}
        for op in calls:
            for place in op.inputs:
                dtype = run.columns.dtypes[place]
                size = _size(run.columns, place)
                if not is_float(dtype) and dtype != "Bool" and size > 1:
                    sizes.setdefault(size, []).append(place)
        rows.append(sizes)
    for size, ours in rows[0].items():
        theirs = rows[1].get(size, [])
        if len(ours) == len(theirs) == 1 and (ours[0], theirs[0]) not in known:
            yield ours[0], theirs[0]


def _size(columns: Columns, place: int) -> int:
    size = 1
    for length in columns.shapes[place]:
        size *= length
    return size

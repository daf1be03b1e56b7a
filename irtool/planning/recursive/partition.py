"""The rounds of the search: in each, every operator is cut in two once more, or stays as it is.

There are as many rounds as the number of devices can be halved. A round goes through the operators
in one order, each sees how its neighbours before it in that order were cut in the same round, and
nothing is ever taken back.

Source: order and choices in MindSpore's log of the search.
"""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.dataclass import dataclass
from irtool.planning.recursive.cut_costs import (
    ROW_COEFFICIENT,
    Option,
    Round,
    Terms,
    best_option,
    weight_of,
)
from irtool.planning.recursive.elimination import Vertex
from irtool.planning.recursive.kinds import Kind
from irtool.planning.recursive.tensors import WHOLE, C, Four, H, N, W, halved, ratio

BY_WEIGHT_ABOVE = 32
"""Devices above which the heaviest operators are cut first, not the ones farthest from the loss."""
SMALL_BATCH = 8
"""Micro-batches below this size keep that order by weight."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the rounds depend on.

    ``devices``: of all stages; ``micro_batch``: of a pipeline; ``row_coefficient``: what a cut of
    a product's rows counts.
    """

    devices: int
    stages: int = 1
    micro_batch: int = 1
    row_coefficient: float = ROW_COEFFICIENT


def cut_all(vertices: Sequence[Vertex], rounds: Rounds) -> None:
    """Cut every vertex for all devices; a pipeline takes the last cuts back.

    Args:
        vertices: the graph; the cuts of those that are not pinned are set.
        rounds: devices, stages, and what the order and the costs depend on.

    Raises:
        NotSearchable: MindSpore's search fails on this graph.
    """
    history: list[list[tuple[list[Four], Four]]] = [[_state(vertex)] for vertex in vertices]
    for number in range(rounds.devices.bit_length() - 1):
        known = {place: _given(vertex) for place, vertex in enumerate(vertices) if vertex.pinned}
        for place in _order(vertices, rounds):
            vertex = vertices[place]
            if vertex.pinned:
                continue
            before = _state(vertex)
            option = best_option(vertices, place, known, number, _terms(vertex, rounds))
            _apply(vertex, option)
            history[place].append(_state(vertex))
            known[place] = _round(vertex, before)
    if rounds.stages > 1:
        back = rounds.stages.bit_length() - 1
        for vertex, states in zip(vertices, history, strict=True):
            if not vertex.pinned:
                inputs, vertex.result_cut = states[len(states) - 1 - back]
                vertex.inputs_cut = list(inputs)


def _state(vertex: Vertex) -> tuple[list[Four], Four]:
    return list(vertex.inputs_cut), vertex.result_cut


def _order(vertices: Sequence[Vertex], rounds: Rounds) -> list[int]:
    """Which vertex is cut when."""
    if rounds.devices > BY_WEIGHT_ABOVE and rounds.micro_batch < SMALL_BATCH:
        keys = [
            (weight_of(vertices, place, rounds.row_coefficient), place)
            for place in range(len(vertices))
        ]
    else:
        keys = [
            (-1.0 if vertex.kind is Kind.UNKNOWN else float(place), place)
            for place, vertex in enumerate(vertices)
        ]
    return [place for _, place in sorted(keys, reverse=True)]


def _terms(vertex: Vertex, rounds: Rounds) -> Terms:
    rows = rounds.stages == 1 or rounds.micro_batch > vertex.inputs_cut[0][H]
    return Terms(rounds.row_coefficient, rows)


def _apply(vertex: Vertex, option: Option | None) -> None:
    if option is None:
        return
    first, second = vertex.inputs_cut[:2]
    vertex.inputs_cut[0] = halved(first, *option.first)
    vertex.inputs_cut[1] = halved(second, *option.second)
    if vertex.kind is Kind.POOLING:
        vertex.inputs_cut[1] = second
    vertex.result_cut = halved(vertex.result_cut, *option.result)


def _round(vertex: Vertex, before: tuple[list[Four], Four]) -> Round:
    """What was cut just now. Operators without producers show all cuts of their operand so far."""
    first = vertex.inputs_cut[0]
    if vertex.sources:
        first = ratio(first, before[0][0])
    return Round(first, ratio(vertex.result_cut, before[1]))


def _given(vertex: Vertex) -> Round:
    """The strategy that is given, as halvings in the order N, C, H, W."""
    first = _halvings(vertex.inputs_cut[0]) if vertex.sources else ()
    return Round(first_steps=first, result_steps=_halvings(vertex.result_cut))


def _halvings(cuts: Four) -> tuple[Four, ...]:
    halvings: list[Four] = []
    for axis in (N, C, H, W):
        left = float(cuts[axis])
        while left > 1:
            halvings.append(halved(WHOLE, axis))
            left /= 2
    return tuple(halvings)

"""The graph that is searched: operators that are not cut are taken out, their neighbours joined.

Source: which operators the log of the search names as cut, in which order, and between which it
prices a redistribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.guard import asking
from irtool.planning.recursive.kinds import CUT, Kind, NotSearchable
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.tensors import WHOLE, Four, four_sizes, last_four, turned

Mapping4: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension behind a Reshape the dimensions before it that it holds; empty: not known."""

MOST_INPUTS = 50


@dataclass(slots=True)
class Edge:
    """A use of a result; ``reshaped``: by what was taken out between the two."""

    target: int
    reshaped: Mapping4 = ()


@dataclass(slots=True)
class Vertex:
    """An operator of the graph.

    Attributes:
        place: its place among all operators.
        arguments: sizes of its inputs.
        result: sizes of its first output.
        sources: vertices that its operands come from, in their order.
        targets: vertices that use its result.
        extra: further vertices it depends on through what was taken out.
        extra_operands: for each of these, the operand behind which it was found.
        reshaped: what it does itself to dimensions (Reshape).
        inputs_cut: into how many slices each input is cut so far.
        result_cut: likewise its result.
        pinned: its strategy is given, so it is not cut.
    """

    place: int
    kind: Kind
    arguments: list[Four]
    result: Four
    reshaped: Mapping4 = ()
    sources: list[int] = field(default_factory=list[int])
    targets: list[Edge] = field(default_factory=list[Edge])
    extra: list[int] = field(default_factory=list[int])
    extra_operands: list[int] = field(default_factory=list[int])
    inputs_cut: list[Four] = field(default_factory=list[Four])
    result_cut: Four = WHOLE
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """The graph after elimination.

    ``left_out``: places of the operators that were taken out, in the order of their removal;
    ``vertex``: by place, the vertex of those that are cut.
    """

    vertices: list[Vertex]
    left_out: list[int]
    vertex: dict[int, Vertex]


def searched_graph(operators: Sequence[Operator], pinned: dict[int, Strategy]) -> Searched:
    """Build the graph, and take out what is not cut.

    Args:
        operators: in the search's order.
        pinned: strategies that are given, by place of the operator.

    Raises:
        NotSearchable: MindSpore's search fails on an operator.
    """
    vertices: list[Vertex] = []
    for operator in operators:
        with asking(operator.op, NotSearchable):
            vertices.append(_vertex(operator, pinned.get(operator.index)))
    for operator in operators:
        for source in operator.producers:
            if source is not None and source != operator.index:
                vertices[operator.index].sources.append(source)
                vertices[source].targets.append(Edge(operator.index))
    left_out: list[int] = []
    for vertex in vertices:
        if vertex.kind not in CUT and not vertex.pinned:
            left_out.append(vertex.place)
            _take_out(vertices, vertex)
    return _renumbered(vertices, left_out)


def _vertex(operator: Operator, strategy: Strategy | None) -> Vertex:
    shapes = operator.inputs[:1] if operator.op == "Stack" else operator.inputs[:MOST_INPUTS]
    turns = _turns(operator)
    arguments = [
        turned(four_sizes(shape)) if position in turns else four_sizes(shape)
        for position, shape in enumerate(shapes)
    ]
    result = four_sizes(operator.outputs[0]) if operator.outputs else WHOLE
    reshaped = _reshape_mapping(operator) if operator.kind is Kind.RESHAPE else ()
    vertex = Vertex(operator.index, operator.kind, arguments, result, reshaped)
    vertex.inputs_cut = [WHOLE for _ in range(max(2, len(arguments)))]
    vertex.arguments += [WHOLE] * (2 - len(arguments))
    if strategy is not None:
        _pin(vertex, strategy, turns)
    return vertex


def _turns(operator: Operator) -> frozenset[int]:
    """Operands that a matrix product takes transposed."""
    ranks = {Kind.MATMUL: (2,), Kind.BATCH_MATMUL: (2, 4)}.get(operator.kind, ())
    names = ("transpose_a", "transpose_b")
    return frozenset(
        position
        for position, name in enumerate(names)
        if position < len(operator.inputs)
        and len(operator.inputs[position]) in ranks
        and operator.kind in (Kind.MATMUL, Kind.BATCH_MATMUL)
        and operator.flag(name)
    )


def _pin(vertex: Vertex, strategy: Strategy, turns: frozenset[int]) -> None:
    vertex.pinned = True
    for position, row in enumerate(strategy[: len(vertex.inputs_cut)]):
        cuts = four_sizes(row)
        vertex.inputs_cut[position] = turned(cuts) if position in turns else cuts
    first, second = vertex.inputs_cut[:2]
    vertex.result_cut = first
    if vertex.kind is Kind.MATMUL:
        vertex.result_cut = (1, 1, first[2], second[3])


# -- dimensions behind a Reshape -----------------------------------------------------------------


def _reshape_mapping(operator: Operator) -> Mapping4:
    """Which dimensions before a Reshape each one behind it holds; empty where they don't match."""
    before, after = operator.inputs[0], operator.outputs[0]
    if len(before) <= len(after):
        return tuple((position,) for position in _matched(last_four(before), last_four(after)))
    held: list[list[int]] = []
    holds = _matched(last_four(after), last_four(before))
    if not holds:
        return ()
    position = 0
    for dimension in range(4):
        part: list[int] = []
        while position < len(holds) and holds[position] == dimension:
            part.append(position)
            position += 1
        held.append(part)
    return tuple(tuple(part) for part in held)


def _matched(large: list[int], small: list[int]) -> list[int]:
    """For each dimension of ``small`` the one of ``large`` that it is a factor of, from the left.

    Empty if that does not come out even.
    """
    large, small = list(large), list(small)
    dimensions: list[int | None] = [None] * len(small)
    i = o = 0
    while i < len(large) and o < len(small):
        if large[i] < small[o]:
            i += 1
            continue
        if small[o] and large[i] % small[o] == 0:
            large[i] //= small[o]
            small[o] = 1
            dimensions[o] = i
        o += 1
        if large[i] == 1:
            i += 1
    if any(size != 1 for size in small):
        return []
    matched = [dimension for dimension in dimensions if dimension is not None]
    return matched if len(matched) == len(dimensions) else []


def combined(first: Mapping4, second: Mapping4) -> Mapping4:
    """One change of dimensions after another; where one is not known, the other stands alone.

    Args:
        first: by dimension the dimensions before it that it holds; empty: not known.
        second: of what ``first`` gives.
    """
    if not first or not second:
        return first or second
    mapping: list[tuple[int, ...]] = []
    for position, part in enumerate(second):
        held = {origin for dimension in part for origin in first[dimension]} if part else {position}
        mapping.append(tuple(sorted(held)))
    return tuple(mapping)


# -- taking out ----------------------------------------------------------------------------------


def _take_out(vertices: list[Vertex], vertex: Vertex) -> None:
    """Join what stands before an operator with what stands behind it."""
    for source in (*vertex.sources, *vertex.extra):
        _join_targets(vertices[source], vertex)
    for edge in vertex.targets:
        _replace_source(vertices[edge.target], vertex)
        _replace_extra(vertices[edge.target], vertex)


def _join_targets(source: Vertex, vertex: Vertex) -> None:
    """The source's use of a vertex becomes a use by those behind it."""
    position = next(
        (k for k, edge in enumerate(source.targets) if edge.target == vertex.place), None
    )
    if position is None:
        return
    del source.targets[position]
    known = {edge.target for edge in source.targets}
    for edge in vertex.targets:
        if edge.target not in known:
            known.add(edge.target)
            source.targets.append(Edge(edge.target, combined(vertex.reshaped, edge.reshaped)))


def _replace_source(target: Vertex, vertex: Vertex) -> None:
    """A vertex among the sources gives its place to its own first source.

    Its other sources become extra ones of that operand.
    """
    if vertex.place not in target.sources:
        return
    position = target.sources.index(vertex.place)
    if not vertex.sources:
        del target.sources[position]
        return
    first, *others = vertex.sources
    if first in target.extra:
        gone = target.extra.index(first)
        del target.extra[gone], target.extra_operands[gone]
    target.sources[position] = first
    for other in (*others, *vertex.extra):
        if other not in target.extra:
            target.extra.append(other)
            target.extra_operands.append(position)


def _replace_extra(target: Vertex, vertex: Vertex) -> None:
    """Likewise among the extra sources, as far as these are not sources already."""
    if vertex.place not in target.extra:
        return
    position = target.extra.index(vertex.place)
    if not vertex.sources:
        del target.extra[position], target.extra_operands[position]
        return
    operand: int | None = target.extra_operands[position]
    if vertex.sources[0] in target.sources:
        del target.extra[position], target.extra_operands[position]
        # What follows takes the entry that moved up, as MindSpore does; there may be none.
        operand = target.extra_operands[position] if position < len(target.extra_operands) else None
    else:
        target.extra[position] = vertex.sources[0]
        operand = target.extra_operands[target.extra.index(vertex.sources[0])]
    for other in (*vertex.sources[1:], *vertex.extra):
        if other not in target.sources:
            target.extra.append(other)
            if operand is None and position < len(target.extra_operands):
                operand = target.extra_operands[position]
            if operand is not None:
                target.extra_operands.append(operand)


def _renumbered(vertices: list[Vertex], left_out: list[int]) -> Searched:
    gone = set(left_out)
    kept = [vertex for vertex in vertices if vertex.place not in gone]
    number = {vertex.place: index for index, vertex in enumerate(kept)}
    for vertex in kept:
        vertex.sources = [number[place] for place in vertex.sources if place in number]
        vertex.extra = [number[place] for place in vertex.extra if place in number]
        vertex.targets = [
            Edge(number[edge.target], edge.reshaped)
            for edge in vertex.targets
            if edge.target in number
        ]
    return Searched(kept, left_out, {vertex.place: vertex for vertex in kept})

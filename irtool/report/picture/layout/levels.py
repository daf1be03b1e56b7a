"""A picture taken apart into levels: what stands directly in each frame, and the lines there.

A line between boxes of different frames is cut where it crosses a frame's edge.  Each frame has a
port there, so that it can be laid out by itself and then stand as one box in the frame around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

from irtool.ir.dataclass import dataclass
from irtool.report.picture.layout.layered import Side
from irtool.report.picture.looks import Looks, Run
from irtool.report.picture.model import Box, Edge, Frame, Picture
from irtool.report.picture.ranking import upper_and_lower

LOOSE = "\0loose "
"""What stands beside lanes but in none of them is a lane without a frame, of this name."""


class PortKey(NamedTuple):
    """A place where lines cross a frame's edge: those of one value and look cross it together."""

    side: Side
    value: Hashable


class Ref(NamedTuple):
    """One end of a line within a level: a box, an inner frame (at a port), a text, or a port."""

    child: Hashable
    port: PortKey | None = None


class Piece(NamedTuple):
    """A line within a level, from its upper to its lower end."""

    upper: Ref
    lower: Ref
    value: Hashable


@dataclass(slots=True, eq=False)
class Level:
    """What stands directly in a frame.

    Attributes:
        frame: the frame; None for the picture itself and for what stands beside lanes.
        children: ids of boxes and frames, in order.
        labels: texts of lines, which take room as boxes do, by value.
        ports: where lines cross the frame's edge, with the end that they lead to inside.
        pieces: lines, with their weights.
        is_row: whether the children are lanes, side by side.
    """

    frame: Frame | None
    children: list[str] = field(default_factory=list[str])
    labels: dict[Hashable, tuple[Run, ...]] = field(default_factory=dict[Hashable, tuple[Run, ...]])
    ports: dict[PortKey, Ref] = field(default_factory=dict[PortKey, Ref])
    pieces: dict[Piece, float] = field(default_factory=dict[Piece, float])
    is_row: bool = False


class Step(NamedTuple):
    """A piece of an edge's route, in the level of a frame; ``down`` says which end comes first."""

    level: str
    piece: Piece
    down: bool


@dataclass(frozen=True, slots=True)
class Route:
    """The route of an edge from its tail to its head; ``label`` is where its text stands."""

    edge: Edge
    steps: tuple[Step, ...]
    label: tuple[str, Hashable] | None


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels by the frame's id, inner ones before those around them, and the edges' routes."""

    by_id: dict[str, Level]
    order: list[str]
    parent: dict[str, str]
    routes: list[Route]


def levels_of(picture: Picture, edges: Sequence[Edge], looks: Looks) -> Levels:
    """The levels of a picture.

    Args:
        picture: boxes and frames.
        edges: those of the picture that are drawn.
        looks: what their texts are, and which lines look alike.
    """
    return _Builder(picture, edges, looks).build()


class _Builder:
    def __init__(self, picture: Picture, edges: Sequence[Edge], looks: Looks) -> None:
        self.boxes = {box.id: box for box in picture.boxes}
        self.edges = [edge for edge in edges if edge.tail != edge.head]
        self.looks = looks
        self.levels: dict[str, Level] = {"": Level(None)}
        self.parent: dict[str, str] = {}
        self._add_frames(picture)
        self.depth = self._depths()

    def _add_frames(self, picture: Picture) -> None:
        frames = {frame.id: frame for frame in picture.frames}
        rows = {_around(frame, frames) for frame in picture.frames if frame.kind == "phase"}
        for frame in picture.frames:
            self.levels[frame.id] = Level(frame)
        for row in rows:
            self.levels[row].is_row = True
        for frame in picture.frames:
            self._put(frame.id, _around(frame, frames), rows if frame.kind != "phase" else ())
        for box in picture.boxes:
            self._put(box.id, box.frame if box.frame in frames else "", rows)

    def _put(self, id: str, around: str, rows: Iterable[str]) -> None:
        if around in rows:
            loose = LOOSE + around
            if loose not in self.levels:
                self.levels[loose] = Level(None)
                self.levels[around].children.append(loose)
                self.parent[loose] = around
            around = loose
        self.levels[around].children.append(id)
        self.parent[id] = around

    def _depths(self) -> dict[str, int]:
        depth = {"": 0}
        pending = [""]
        while pending:
            parent = pending.pop()
            for child in self.levels[parent].children:
                if child in self.levels:
                    depth[child] = depth[parent] + 1
                    pending.append(child)
        return depth

    def build(self) -> Levels:
        meetings = [self._meeting(edge) for edge in self.edges]
        between: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for edge, (level, tail, head) in zip(self.edges, meetings, strict=True):
            upper, _ = self._upper_and_lower(edge)
            pair = (tail, head) if upper.id == edge.tail else (head, tail)
            if edge.kind != "repeat":
                between[level].append(pair)
        piles = [] if self.levels[""].is_row else self._stages()
        between[""] += piles
        places: dict[str, int] = {}
        for id, level in self.levels.items():
            if not level.is_row:
                order = _from_above(level.children, between[id])
                places |= {child: place for place, child in enumerate(order)}
        routes = [
            self._route(edge, *meeting, places)
            for edge, meeting in zip(self.edges, meetings, strict=True)
        ]
        for pair in piles:
            upper, lower = sorted(pair, key=places.__getitem__)
            self.levels[""].pieces[Piece(Ref(upper), Ref(lower), ("pile", upper))] = 1.0
        inner_first = sorted(self.levels, key=lambda id: -self.depth[id])
        return Levels(self.levels, inner_first, self.parent, routes)

    def _upper_and_lower(self, edge: Edge) -> tuple[Box, Box]:
        return upper_and_lower(edge, self.boxes[edge.tail], self.boxes[edge.head])

    def _meeting(self, edge: Edge) -> tuple[str, str, str]:
        """The innermost frame around both ends, and what stands in it of each."""
        tail, head = edge.tail, edge.head
        while self.parent[tail] != self.parent[head]:
            deeper_tail = self.depth[self.parent[tail]] >= self.depth[self.parent[head]]
            deeper_head = self.depth[self.parent[head]] >= self.depth[self.parent[tail]]
            tail = self.parent[tail] if deeper_tail else tail
            head = self.parent[head] if deeper_head else head
        return self.parent[tail], tail, head

    def _route(self, edge: Edge, level: str, tail: str, head: str, places: dict[str, int]) -> Route:
        look = self.looks.line(edge)
        value = (edge.tail, look.colour, look.dashed)
        sides: tuple[Side, Side]
        if self.levels[level].is_row:
            side: Side = "bottom" if self.boxes[edge.head].lane == "backward" else "top"
            sides = side, side
        else:
            sides = ("bottom", "top") if places[tail] < places[head] else ("top", "bottom")
        out, first = self._through(edge.tail, tail, PortKey(sides[0], value))
        into, last = self._through(edge.head, head, PortKey(sides[1], value))
        steps = [Step(id, piece, piece.lower.child is None) for id, piece in out]
        down = self.levels[level].is_row or sides[0] == "bottom"
        label = None
        if look.label:
            label = (*value, sides[0], look.label)
            self.levels[level].labels[label] = look.label
        if label is None or self.levels[level].is_row:
            steps.append(self._step(level, first, last, label or value, down))
        else:
            middle = Ref(label)
            steps.append(self._step(level, first, middle, value, down))
            steps.append(self._step(level, middle, last, label, down))
        steps += [Step(id, piece, piece.upper.child is None) for id, piece in reversed(into)]
        return Route(edge, tuple(steps), (level, label) if label is not None else None)

    def _step(self, level: str, first: Ref, last: Ref, value: Hashable, down: bool) -> Step:
        piece = Piece(first, last, value) if down else Piece(last, first, value)
        pieces = self.levels[level].pieces
        pieces[piece] = min(pieces.get(piece, 0.0) + 1.0, 4.0)
        return Step(level, piece, down)

    def _through(self, box: str, child: str, port: PortKey) -> tuple[list[tuple[str, Piece]], Ref]:
        """The pieces from a box through the frames around it, up to one that is told."""
        path: list[tuple[str, Piece]] = []
        inner, ref = box, Ref(box)
        while inner != child:
            around = self.parent[inner]
            edge_of_frame = Ref(None, port)
            ends = (ref, edge_of_frame) if port.side == "bottom" else (edge_of_frame, ref)
            piece = Piece(*ends, port.value)
            level = self.levels[around]
            level.ports.setdefault(port, ref)
            level.pieces[piece] = 1.0
            path.append((around, piece))
            inner, ref = around, Ref(around, port)
        return path, ref

    def _stages(self) -> list[tuple[str, str]]:
        """Pairs of stages, one below the other even where none sends to the next."""
        frames = ((child, self.levels.get(child)) for child in self.levels[""].children)
        stages = [
            child
            for child, level in frames
            if level and level.frame and level.frame.kind == "stage"
        ]
        return list(pairwise(stages))


def _around(frame: Frame, frames: dict[str, Frame]) -> str:
    return frame.parent if frame.parent in frames else ""


def _from_above(children: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """An order in which the first of each pair comes first, where the pairs make no circle."""
    below: dict[str, list[str]] = defaultdict(list)
    lower: set[str] = set()
    for first, second in dict.fromkeys(pairs):
        below[first].append(second)
        lower.add(second)
    starts = [child for child in reversed(children) if child not in lower]
    starts += [child for child in reversed(children) if child in lower]
    seen: set[str] = set()
    left: list[str] = []
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        walk = [(start, iter(below[start]))]
        while walk:
            current, others = walk[-1]
            other = next((follower for follower in others if follower not in seen), None)
            if other is None:
                left.append(current)
                walk.pop()
            else:
                seen.add(other)
                walk.append((other, iter(below[other])))
    return left[::-1]

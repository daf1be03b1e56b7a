"""Places of everything in a picture, in pixels: frame by frame, the inner ones first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.report.picture.layout.layered import Cell, Join, Point, layered
from irtool.report.picture.layout.levels import (
    Level,
    Levels,
    Piece,
    PortKey,
    Ref,
    Route,
    levels_of,
)
from irtool.report.picture.layout.text_size import line_size
from irtool.report.picture.looks import LINE_FONT_SIZE, Looks, Run, TextLine
from irtool.report.picture.model import Box, Edge, Frame, Picture

_PAD = 10.0
_LANE_GAP = 26.0
_TRACK = 7.0
_BESIDE_TITLE = 14.0
_MARGIN = {"box": (8.0, 5.0), "parallelogram": (20.0, 5.0), "ellipse": (14.0, 3.0),
           "octagon": (14.0, 6.0), "box3d": (11.0, 8.0), "component": (16.0, 6.0)}  # fmt: skip
"""What an outline needs beside and above its text."""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle: its left upper corner, width and height."""

    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class Title:
    """The lines of a frame's title, and how much room they take."""

    lines: tuple[TextLine, ...]
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line of the picture: pieces between which its text stands, each from the tail's side."""

    edge: Edge
    pieces: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The text of one line, or of several of one value, and its middle."""

    area: Area
    lines: tuple[Run, ...]
    colour: str


@dataclass(slots=True)
class Layout:
    """Where everything in a picture stands, in pixels from its left upper corner."""

    width: float
    height: float
    boxes: dict[str, Area] = field(default_factory=dict[str, Area])
    frames: dict[str, Area] = field(default_factory=dict[str, Area])
    titles: dict[str, Title] = field(default_factory=dict[str, Title])
    lines: list[DrawnLine] = field(default_factory=list[DrawnLine])
    labels: list[Label] = field(default_factory=list[Label])


@dataclass(slots=True)
class _Inside:
    """The layout of one level, from the left upper corner of what it holds."""

    w: float
    h: float
    title: Title
    areas: dict[Hashable, Area]
    routes: dict[Piece, list[Point]]
    ports: dict[PortKey, float]
    shift: float = 0.0
    lift: float = 0.0
    ends_below: bool = False

    def grow(self, height: float) -> None:
        """Make a lane as high as the others of its row; what runs up stays at its foot."""
        self.lift += height - self.h if self.ends_below else 0.0
        self.h = height


def layout(picture: Picture, edges: Sequence[Edge], looks: Looks) -> Layout:
    """Lay out boxes, frames, lines and their texts.

    Args:
        picture: boxes and frames.
        edges: those of the picture that are drawn.
        looks: what stands in boxes, in frames and on lines.
    """
    levels = levels_of(picture, edges, looks)
    sizes = {box.id: box_size(box, looks) for box in picture.boxes}
    inside: dict[str, _Inside] = {}
    for id in levels.order:
        level = levels.by_id[id]
        make = _row if level.is_row else _stacked
        done = inside[id] = make(level, sizes, inside, frame_title(level.frame, looks))
        _frame_around(level, done)
        sizes[id] = done.w, done.h
    return _absolute(levels, inside, looks, picture)


def box_size(box: Box, looks: Looks) -> tuple[float, float]:
    """Width and height of a box: its texts, and what its outline needs beside them."""
    lines = [line_size(line) for line in looks.texts(box)]
    beside, above = _MARGIN[looks.box(box).shape]
    more = 4.0 if box.focus else 0.0
    width = max(width for width, _ in lines) + 2 * (beside + more)
    return max(width, 36.0), sum(height for _, height in lines) + 2 * (above + more)


def frame_title(frame: Frame | None, looks: Looks) -> Title:
    """What stands at the top of a frame."""
    if frame is None:
        return Title((), 0.0, 0.0)
    look = looks.frame(frame)
    head = [Run(look.title, look.size, "#333333", bold=True)]
    if look.repeats:
        head.append(Run(f"  {look.repeats}", look.size + 3, "#CC3311", bold=True))
    lines: list[TextLine] = [tuple(head)]
    if look.note:
        lines.append((Run(look.note, 9, "#777777"),))
    measured = [line_size(line) for line in lines]
    return Title(
        tuple(lines), max(width for width, _ in measured), sum(height for _, height in measured) + 8
    )


def label_size(lines: Sequence[Run]) -> tuple[float, float]:
    """Width and height of the text of a line."""
    measured = [line_size((line,), LINE_FONT_SIZE) for line in lines]
    return max(width for width, _ in measured) + 4, sum(height for _, height in measured) + 2


# -- one level -----------------------------------------------------------------------------------


def _stacked(
    level: Level, sizes: dict[str, tuple[float, float]], inside: dict[str, _Inside], title: Title
) -> _Inside:
    """Boxes, inner frames and texts of lines in ranks."""
    number: dict[Hashable, int] = {}
    cells: list[Cell] = []

    def add(key: Hashable, cell: Cell) -> None:
        number[key] = len(cells)
        cells.append(cell)

    for child in level.children:
        add(child, Cell(*sizes[child]))
    for label, lines in level.labels.items():
        add(label, Cell(*label_size(lines)))
    for port in _sorted_ports(level, number, inside):
        add(port, Cell(4.0, 0.0, port.side))

    def end(ref: Ref) -> tuple[int, float]:
        if ref.child is None:
            return number[ref.port], 0.0
        return number[ref.child], _beside_middle(ref, inside)

    joins: list[Join] = []
    for piece, weight in level.pieces.items():
        (upper, upper_x), (lower, lower_x) = end(piece.upper), end(piece.lower)
        joins.append(Join(upper, lower, upper_x, lower_x, piece.value, weight))
    placed = layered(cells, joins)
    areas = {
        key: Area(x - cells[index].w / 2, y - cells[index].h / 2, cells[index].w, cells[index].h)
        for key, index in number.items()
        for x, y in (placed.places[index],)
    }
    routes = dict(zip(level.pieces, placed.routes, strict=True))
    ports = {key: placed.places[number[key]][0] for key in level.ports}
    return _Inside(placed.width, placed.height, title, areas, routes, ports)


def _beside_middle(ref: Ref, inside: dict[str, _Inside]) -> float:
    """How far from the middle of a box a line ends: at a frame's port, else in the middle."""
    if ref.port is None:
        return 0.0
    inner = inside[str(ref.child)]
    return inner.ports[ref.port] - inner.w / 2


def _sorted_ports(
    level: Level, number: dict[Hashable, int], inside: dict[str, _Inside]
) -> list[PortKey]:
    """Ports in the order of what they lead to, which is a good start for few crossings."""

    def place(port: PortKey) -> tuple[int, float]:
        ref = level.ports[port]
        return number[ref.child], _beside_middle(ref, inside)

    return sorted(level.ports, key=place)


def _row(
    level: Level, sizes: dict[str, tuple[float, float]], inside: dict[str, _Inside], title: Title
) -> _Inside:
    """Lanes side by side; lines between them run along tracks above and below the row."""
    height = max((sizes[child][1] for child in level.children), default=0.0)
    left: dict[str, float] = {}
    x = 0.0
    for child in level.children:
        left[child] = x
        x += inside[child].w + _LANE_GAP
        if inside[child].title.lines:
            inside[child].grow(height)
    tracks = _Tracks(level, inside, left, height)
    areas: dict[Hashable, Area] = {
        child: Area(left[child], tracks.above, inside[child].w, inside[child].h)
        for child in level.children
    }
    areas |= tracks.labels()
    width = max([x - _LANE_GAP, *(area.x + area.w for area in areas.values())])
    routes = {piece: tracks.route(piece, areas) for piece in level.pieces}
    ports = {key: tracks.x(ref) for key, ref in level.ports.items()}
    return _Inside(width, tracks.height, title, areas, routes, ports)


class _Tracks:
    """Lines between lanes: one track for all that goes from one port with one text.

    Attributes:
        above: height of the tracks above the row.
        height: of the row with all tracks.
    """

    def __init__(
        self, level: Level, inside: dict[str, _Inside], left: dict[str, float], height: float
    ) -> None:
        self._level, self._inside, self._left = level, inside, left
        self._y: dict[tuple[Ref, Hashable], float] = {}
        self._spans: dict[tuple[Ref, Hashable], tuple[float, float]] = {}
        for piece in level.pieces:
            if piece.upper.child is not None and piece.lower.child is not None:
                ends = self.x(piece.upper), self.x(piece.lower)
                first, last = self._spans.get((piece.upper, piece.value), ends)
                span = min(first, *ends), max(last, *ends)
                self._spans[piece.upper, piece.value] = span
        keys = sorted(self._spans, key=lambda key: self._spans[key][1] - self._spans[key][0])
        above = [key for key in keys if key[0].port and key[0].port.side == "top"]
        below = [key for key in keys if key[0].port and key[0].port.side == "bottom"]
        y = 0.0
        for key in reversed(above):
            y += self._room(key)
            self._y[key] = y
        self.above = y + 2 * _TRACK if above else 0.0
        y = self.above + height + _TRACK
        for key in below:
            y += self._room(key)
            self._y[key] = y
        self.height = y + _TRACK if below else self.above + height

    def _room(self, key: tuple[Ref, Hashable]) -> float:
        lines = self._level.labels.get(key[1])
        return _TRACK + (label_size(lines)[1] if lines else 0.0)

    def x(self, ref: Ref) -> float:
        """Where the port of a lane is."""
        child = str(ref.child)
        port = self._inside[child].ports[ref.port] if ref.port else 0.0
        return self._left[child] + port

    def labels(self) -> dict[Hashable, Area]:
        """Texts stand on the middle of their tracks."""
        areas: dict[Hashable, Area] = {}
        for key, (first, last) in self._spans.items():
            lines = self._level.labels.get(key[1])
            if lines:
                w, h = label_size(lines)
                areas[key[1]] = Area(max(0.0, (first + last - w) / 2), self._y[key] - h, w, h)
        return areas

    def route(self, piece: Piece, areas: dict[Hashable, Area]) -> list[Point]:
        """From lane to lane along its track; straight up or down to the edge of the frame."""
        if piece.upper.child is None:
            x, end = self.x(piece.lower), areas[piece.lower.child]
            return [(x, 0.0), (x, end.y)]
        x, area = self.x(piece.upper), areas[piece.upper.child]
        if piece.lower.child is None:
            return [(x, area.y + area.h), (x, self.height)]
        bottom = piece.upper.port is not None and piece.upper.port.side == "bottom"
        end, other = self.x(piece.lower), areas[piece.lower.child]
        y = self._y[piece.upper, piece.value]
        start_y, end_y = (area.y + area.h, other.y + other.h) if bottom else (area.y, other.y)
        return [(x, start_y), (x, y), (end, y), (end, end_y)]


def _frame_around(level: Level, done: _Inside) -> None:
    """Add title and margins; lines that come in from above stay right of the title."""
    if level.frame is None:
        return
    tops = [x for port, x in done.ports.items() if port.side == "top"]
    done.shift = _PAD
    if tops:
        done.shift = max(_PAD, _PAD + done.title.w + _BESIDE_TITLE - min(tops))
    done.w = max(done.w + done.shift + _PAD, done.title.w + 2 * _PAD)
    done.lift = done.title.h
    done.h += done.lift + _PAD
    done.ends_below = level.frame.name == "backward"
    done.ports = {port: x + done.shift for port, x in done.ports.items()}


# -- all levels ----------------------------------------------------------------------------------


def _absolute(levels: Levels, inside: dict[str, _Inside], looks: Looks, picture: Picture) -> Layout:
    """Set every level into the one around it, the outermost first."""
    outermost = inside[""]
    drawing = Layout(outermost.w, outermost.h)
    origins: dict[str, Point] = {}
    for id in reversed(levels.order):
        here = inside[id]
        if id:
            x, y = origins[levels.parent[id]]
            area = _moved(inside[levels.parent[id]].areas[id], x, y)
            if levels.by_id[id].frame is not None:
                drawing.frames[id], drawing.titles[id] = area, here.title
            origins[id] = area.x + here.shift, area.y + here.lift
        else:
            origins[id] = 0.0, 0.0
    for box in picture.boxes:
        around = levels.parent[box.id]
        drawing.boxes[box.id] = _moved(inside[around].areas[box.id], *origins[around])
    seen: set[tuple[str, Hashable]] = set()
    for route in levels.routes:
        drawing.lines.append(DrawnLine(route.edge, _pieces(route, levels, inside, origins)))
        if route.label is not None and route.label not in seen:
            seen.add(route.label)
            level, label = route.label
            area = _moved(inside[level].areas[label], *origins[level])
            text = levels.by_id[level].labels[label]
            drawing.labels.append(Label(area, text, looks.line(route.edge).text_colour))
    return drawing


def _moved(area: Area, x: float, y: float) -> Area:
    return Area(area.x + x, area.y + y, area.w, area.h)


def _pieces(
    route: Route, levels: Levels, inside: dict[str, _Inside], origins: dict[str, Point]
) -> tuple[tuple[Point, ...], ...]:
    pieces: list[list[Point]] = [[]]
    for step in route.steps:
        x, y = origins[step.level]
        points = [(px + x, py + y) for px, py in inside[step.level].routes[step.piece]]
        start = step.piece.upper if step.down else step.piece.lower
        if start.child in levels.by_id[step.level].labels:
            pieces.append([])
        pieces[-1] += points if step.down else reversed(points)
    return tuple(tuple(piece) for piece in pieces)

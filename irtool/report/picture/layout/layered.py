"""Lays out boxes in ranks from top to bottom (Sugiyama, Tagawa and Toda, 1981).

Ranks by the longest way, order within them by the mean place of neighbours, coordinates by least
squares.  A line over several ranks gets a narrow cell in each of them, so that it passes between
the boxes; from rank to rank it crosses only the free band between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from math import ceil, sqrt
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass

Point: TypeAlias = tuple[float, float]
Side: TypeAlias = Literal["top", "bottom"]

GAP_X = 18.0
GAP_Y = 22.0
_LINE_GAP = 8.0
_PORT_GAP = 12.0
_MOST_IN_RANK = 14
_WIDE_RANK = 1100.0
"""Width up to which a rank stays one."""
_SHELF = 1.5
"""Width by height that parts without lines between them are packed into."""
_DIRECT, _LOOSE, _TRUNK = 3.0, 0.4, 4.0
"""How strongly lines pull: between neighbouring ranks, at the ends of a longer line, within it."""


@dataclass(slots=True)
class Cell:
    """What has a place: a box, a point on the frame's edge (``port``), or a line's passage."""

    w: float
    h: float
    port: Side | None = None
    real: bool = True
    rank: int = 0
    order: int = 0
    x: float = 0.0
    y: float = 0.0
    offset: float = 0.0
    up: list[Link] = field(default_factory=list["Link"])
    down: list[Link] = field(default_factory=list["Link"])

    @property
    def gap(self) -> float:
        """What stays free beside it."""
        return GAP_X if self.real and not self.port else _LINE_GAP


@dataclass(frozen=True, slots=True)
class Join:
    """A line from one box down to another; ``*_x`` tell where on the box, from its middle.

    Lines of equal ``value`` share their way as long as they have the same.
    """

    upper: int
    lower: int
    upper_x: float = 0.0
    lower_x: float = 0.0
    value: Hashable = None
    weight: float = 1.0


@dataclass(slots=True, eq=False)
class Link:
    """A piece of a line, from one rank to the next."""

    upper: Cell
    lower: Cell
    upper_x: float
    lower_x: float
    weight: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A layout: the middle of each box, and the points of each line from top to bottom."""

    width: float
    height: float
    places: list[Point]
    routes: list[list[Point]]


def layered(boxes: Sequence[Cell], joins: Sequence[Join]) -> Placed:
    """Places for boxes and lines.

    Args:
        boxes: with their sizes; the layout writes into them.
        joins: lines, which together make no circle.

    Returns:
        The places; parts that no line joins stand beside and below each other.
    """
    if not boxes:
        return Placed(0.0, 0.0, [], [])
    parts = [_Part(boxes, joins, members, own) for members, own in _parts(boxes, joins)]
    # Lines from outside lead to the first part: nothing may stand above or below it.
    parts.sort(key=lambda part: not part.has_ports)
    first = parts[0]
    indent = first.width + GAP_X * 1.5 if first.has_ports else 0.0
    area = sum((part.width + GAP_X) * (part.height + GAP_Y) for part in parts)
    most = indent + max(sqrt(area * _SHELF), *(part.width for part in parts), _WIDE_RANK / 2)
    places: list[Point] = [(0.0, 0.0)] * len(boxes)
    routes: list[list[Point]] = [[] for _ in joins]
    x = y = row = width = height = 0.0
    for part in parts:
        if x > indent and x + part.width > most:
            x, y, row = indent, y + row + GAP_Y, 0.0
        for index in part.members:
            places[index] = boxes[index].x - part.left + x, boxes[index].y + y
        for index, route in part.routes():
            routes[index] = [(px - part.left + x, py + y) for px, py in route]
        width = max(width, x + part.width)
        x += part.width + GAP_X * 1.5
        row = max(row, part.height)
        height = max(height, y + row)
        if part is first and indent:
            row = 0.0
    return Placed(width, height, places, routes)


def _parts(boxes: Sequence[Cell], joins: Sequence[Join]) -> list[tuple[list[int], list[int]]]:
    """Boxes that lines join, with their lines.

    All that has a port is one part: set below others, it would be reached through them.
    """
    root = list(range(len(boxes)))

    def find(index: int) -> int:
        while root[index] != index:
            root[index] = root[root[index]]
            index = root[index]
        return index

    def unite(one: int, other: int) -> None:
        first, second = sorted((find(one), find(other)))
        root[second] = first

    for join in joins:
        unite(join.upper, join.lower)
    ports = [index for index, box in enumerate(boxes) if box.port]
    for index in ports:
        unite(ports[0], index)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for index in range(len(boxes)):
        parts.setdefault(find(index), ([], []))[0].append(index)
    for number, join in enumerate(joins):
        parts[find(join.upper)][1].append(number)
    return list(parts.values())


class _Part:
    def __init__(
        self, boxes: Sequence[Cell], joins: Sequence[Join], members: list[int], own: list[int]
    ) -> None:
        self.members = members
        self._joins = [(number, joins[number]) for number in own]
        self._boxes = boxes
        cells = [boxes[index] for index in members]
        self.has_ports = any(cell.port for cell in cells)
        _rank(boxes, members, [join for _, join in self._joins])
        _widen(cells)
        self._passages = self._break(cells)
        ranks: list[list[Cell]] = [[] for _ in range(max(cell.rank for cell in cells) + 1)]
        for cell in cells:
            ranks[cell.rank].append(cell)
        ranks = _ordered(ranks)
        _place(ranks)
        self.left = min(cell.x - cell.w / 2 for cell in cells)
        self.width = max(cell.x + cell.w / 2 for cell in cells) - self.left
        self._tops, self._bottoms = _heights(ranks)
        self.height = self._bottoms[-1]

    def _break(self, cells: list[Cell]) -> list[list[Cell]]:
        """Passages of every line through the ranks between its ends; writes the links."""
        shared: dict[tuple[Hashable, int], Cell] = {}
        linked: set[tuple[int, int, float, float]] = set()

        def link(upper: Cell, lower: Cell, upper_x: float, lower_x: float, weight: float) -> None:
            key = (id(upper), id(lower), upper_x, lower_x)
            if key not in linked:
                linked.add(key)
                made = Link(upper, lower, upper_x, lower_x, weight)
                upper.down.append(made)
                lower.up.append(made)

        passages: list[list[Cell]] = []
        for _, join in self._joins:
            upper, lower = self._boxes[join.upper], self._boxes[join.lower]
            above, above_x = upper, join.upper_x
            passage: list[Cell] = []
            for rank in range(upper.rank + 1, lower.rank):
                cell = shared.get((join.value, rank))
                if cell is None:
                    cell = shared[join.value, rank] = Cell(6.0, 0.0, None, False, rank)
                    cells.append(cell)
                link(above, cell, above_x, 0.0, _LOOSE if above is upper else _TRUNK)
                above, above_x = cell, 0.0
                passage.append(cell)
            link(above, lower, above_x, join.lower_x, _LOOSE if passage else join.weight * _DIRECT)
            passages.append(passage)
        return passages

    def routes(self) -> Iterable[tuple[int, list[Point]]]:
        """The points of each line: straight through ranks, aslant only between them."""
        for (number, join), passage in zip(self._joins, self._passages, strict=True):
            upper, lower = self._boxes[join.upper], self._boxes[join.lower]
            start, end = upper.x + join.upper_x, lower.x + join.lower_x
            route = [(start, upper.y + upper.h / 2), (start, self._bottoms[upper.rank])]
            for cell in passage:
                route += [(cell.x, self._tops[cell.rank]), (cell.x, self._bottoms[cell.rank])]
            route += [(end, self._tops[lower.rank]), (end, lower.y - lower.h / 2)]
            yield number, [point for index, point in enumerate(route) if route[index - 1] != point]


# -- ranks ---------------------------------------------------------------------------------------


def _rank(boxes: Sequence[Cell], members: Sequence[int], joins: Sequence[Join]) -> None:
    """The longest way from above; what has more users than inputs goes down to its users."""
    down: dict[int, list[int]] = defaultdict(list)
    up: dict[int, list[int]] = defaultdict(list)
    for join in joins:
        down[join.upper].append(join.lower)
        up[join.lower].append(join.upper)
    waiting = {index: len(up[index]) for index in members}
    ready = deque(index for index in members if not waiting[index])
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        boxes[index].rank = 0 if boxes[index].port == "top" else 1
        for above in up[index]:
            boxes[index].rank = max(boxes[index].rank, boxes[above].rank + 1)
        for below in down[index]:
            waiting[below] -= 1
            if not waiting[below]:
                ready.append(below)
    last = max(boxes[index].rank for index in members) + 1
    for index in reversed(order):
        box = boxes[index]
        if box.port == "bottom":
            box.rank = last
        if box.port or len(down[index]) <= len(up[index]):
            continue
        users = [boxes[below].rank - 1 for below in down[index] if boxes[below].port != "bottom"]
        if users:
            box.rank = max(box.rank, min(users))
    used = sorted({boxes[index].rank for index in members})
    for index in members:
        boxes[index].rank = bisect_left(used, boxes[index].rank)


def _widen(cells: Sequence[Cell]) -> None:
    """A rank of very many or very wide boxes becomes several."""
    ranks: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        ranks[cell.rank].append(cell)
    more = 0
    for number in sorted(ranks):
        rank = ranks[number]
        rows = 1 if any(cell.port for cell in rank) else _rows(rank)
        per_row = ceil(len(rank) / rows)
        for index, cell in enumerate(rank):
            cell.rank = number + more + index // per_row
        more += ceil(len(rank) / per_row) - 1


def _rows(rank: Sequence[Cell]) -> int:
    wide = sum(cell.w + GAP_X for cell in rank)
    area = sum((cell.w + GAP_X) * (cell.h + GAP_Y) for cell in rank)
    most = max(_WIDE_RANK, sqrt(area * _SHELF) * 1.5)
    return min(len(rank), max(ceil(len(rank) / _MOST_IN_RANK), ceil(wide / most)))


# -- order within ranks --------------------------------------------------------------------------


def _ordered(ranks: list[list[Cell]]) -> list[list[Cell]]:
    _number(ranks)
    links = sum(len(cell.down) for rank in ranks for cell in rank)
    sweeps = 4 if links > 4000 else 8 if links > 800 else 14
    best, fewest = [list(rank) for rank in ranks], _crossings(ranks)
    for sweep in range(sweeps):
        if not fewest:
            break
        down = sweep % 2 == 0
        for rank in ranks[1:] if down else reversed(ranks[:-1]):
            _sort(rank, down)
        count = _crossings(ranks)
        if count < fewest:
            best, fewest = [list(rank) for rank in ranks], count
    _number(best)
    return best


def _number(ranks: Sequence[Sequence[Cell]]) -> None:
    for rank in ranks:
        for order, cell in enumerate(rank):
            cell.order = order


def _sort(rank: list[Cell], down: bool) -> None:
    """By the mean place of the neighbours in the rank before; boxes without any stay."""
    moving: list[tuple[float, int, Cell]] = []
    for cell in rank:
        total = weight = 0.0
        for link in cell.up if down else cell.down:
            other, x = (link.upper, link.upper_x) if down else (link.lower, link.lower_x)
            total += (other.order + x / (other.w + 1)) * link.weight
            weight += link.weight
        if weight:
            moving.append((total / weight, cell.order, cell))
    moving.sort(key=lambda item: item[:2])
    kept = {id(cell) for _, _, cell in moving}
    sorted_cells = (cell for _, _, cell in moving)
    rank[:] = [next(sorted_cells) if id(cell) in kept else cell for cell in rank]
    for order, cell in enumerate(rank):
        cell.order = order


def _crossings(ranks: Sequence[Sequence[Cell]]) -> int:
    """Crossings between neighbouring ranks, counted with a binary indexed tree."""
    total = 0
    for rank in ranks:
        ends: list[float] = []
        for cell in rank:
            below = [
                (link.upper_x, link.lower.order + link.lower_x / (link.lower.w + 1))
                for link in cell.down
            ]
            ends += [end for _, end in sorted(below)]
        place = {end: number + 1 for number, end in enumerate(sorted(set(ends)))}
        tree = [0] * (len(place) + 1)
        for seen, end in enumerate(ends):
            index = place[end]
            total += seen
            while index:
                total -= tree[index]
                index &= index - 1
            index = place[end]
            while index < len(tree):
                tree[index] += 1
                index += index & -index
    return total


# -- coordinates ---------------------------------------------------------------------------------


def _place(ranks: Sequence[Sequence[Cell]]) -> None:
    """Each box wants to stand where its neighbours are; sweeps bring it as near as it fits."""
    for rank in ranks:
        x = 0.0
        for cell in rank:
            cell.x = x + cell.w / 2
            x += cell.w + cell.gap
        for cell in rank:
            cell.x -= x / 2
    for sweep in range(12):
        both = sweep >= 10
        for rank in ranks if sweep % 2 == 0 else reversed(ranks):
            _settle(rank, both or sweep % 2 == 0, both or sweep % 2 == 1)


def _settle(rank: Sequence[Cell], up: bool, down: bool) -> None:
    """The nearest places that keep order and gaps: what collides is pooled (least squares)."""
    blocks: list[tuple[int, float, float]] = []
    offset = 0.0
    for index, cell in enumerate(rank):
        if index:
            before = rank[index - 1]
            firm = 1.0 if before.real and cell.real else 1.4
            offset += (before.w + cell.w) / 2 + max(before.gap, cell.gap) / firm
        cell.offset = offset
        wish, weight = _wish(cell, up, down)
        first, total = index, (wish - offset) * weight
        while blocks and blocks[-1][1] * weight > total * blocks[-1][2]:
            first, more, heavier = blocks.pop()
            total, weight = total + more, weight + heavier
        blocks.append((first, total, weight))
    ends = [*(first for first, _, _ in blocks[1:]), len(rank)]
    for (first, total, weight), end in zip(blocks, ends, strict=True):
        for cell in rank[first:end]:
            cell.x = total / weight + cell.offset


def _wish(cell: Cell, up: bool, down: bool) -> tuple[float, float]:
    """Where a cell wants to stand, and how much."""
    links = [*(cell.up if up else ()), *(cell.down if down else ())]
    # A branch of a trunk does not pull a box out of its own column.
    firm = any(link.weight >= _DIRECT for link in links)
    total = weight = 0.0
    for link in links:
        if firm and link.weight == _LOOSE:
            continue
        if link.lower is cell:
            x = link.upper.x + link.upper_x - link.lower_x
        else:
            x = link.lower.x + link.lower_x - link.upper_x
        total += x * link.weight
        weight += link.weight
    return (total / weight, weight) if weight else (cell.x, 0.05)


def _heights(ranks: Sequence[Sequence[Cell]]) -> tuple[list[float], list[float]]:
    """Top and bottom of each rank; writes the heights of its cells."""
    tops: list[float] = []
    bottoms: list[float] = []
    y = 0.0
    for number, rank in enumerate(ranks):
        height = max(cell.h for cell in rank)
        tops.append(y)
        bottoms.append(y + height)
        for cell in rank:
            cell.y = y + height / 2
        lines = sum(len(cell.down) for cell in rank)
        near = ranks[number : number + 2]
        ports = any(all(not cell.real or cell.port for cell in row) for row in near)
        y += height + (_PORT_GAP if ports else GAP_Y) + min(30.0, max(0, lines - 6) * 1.5)
    return tops, bottoms

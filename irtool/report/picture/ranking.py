"""Which boxes stand below which: along edges within a lane, and side by side where ties say so.

Graphviz cannot rank a graph whose ranking edges make a circle across frames, nor one with two
edges between the same boxes of which only one ranks.  Closed scopes make both easily, so the choice
is made here, pair by pair.
"""

from __future__ import annotations

from collections import defaultdict

from irtool.report.picture.model import Box, Edge, Picture

_MOST_TIES = 1500
"""Boxes beyond which ties take no part in the ranking: each has to be tried."""

Pair = tuple[str, str]


class Ranking:
    """The pairs of boxes (upper, lower) that rank; together they make no circle."""

    def __init__(self, picture: Picture, with_ties: bool = True) -> None:
        self._boxes = {box.id: box for box in picture.boxes}
        self._below: dict[str, list[str]] = defaultdict(list)
        self._pairs: set[Pair] = set()
        self._level: set[Pair] = set()
        joined = {frozenset((edge.tail, edge.head)) for edge in picture.edges if not is_tie(edge)}
        self._add_lanes([edge for edge in picture.edges if self._in_lane(edge)])
        self._inside = frozenset(self._pairs)
        for edge in picture.edges:
            if edge.kind == "transfer":
                self._add_transfer(edge)
        if not with_ties or len(self._boxes) > _MOST_TIES:
            return
        for edge in picture.edges:
            if is_tie(edge) and frozenset((edge.tail, edge.head)) not in joined:
                self._add_tie(edge)

    def is_turned(self, edge: Edge) -> bool:
        """Whether an edge must be written from head to tail and drawn the other way round."""
        pair = (edge.tail, edge.head)
        if pair in self._pairs or pair in self._level:
            return False
        return pair[::-1] in self._pairs

    def ranks(self, edge: Edge) -> bool:
        """Whether an edge takes part in the ranking."""
        pair = (edge.tail, edge.head)
        return pair in self._pairs or pair[::-1] in self._pairs or pair in self._level

    def boxes(self) -> set[str]:
        """Boxes whose height some edge decides."""
        return {id for pair in (*self._pairs, *self._level) for id in pair}

    def uppers(self) -> set[str]:
        """Boxes that some edge puts above another one of their lane."""
        return {upper for upper, _ in self._inside}

    def lowers(self) -> set[str]:
        """Boxes that some edge puts below another one of their lane."""
        return {lower for _, lower in self._inside}

    def _in_lane(self, edge: Edge) -> bool:
        tail, head = self._boxes[edge.tail], self._boxes[edge.head]
        return (
            same_lane(tail, head) and edge.kind not in ("repeat", "transfer") and not is_tie(edge)
        )

    def _add_lanes(self, edges: list[Edge]) -> None:
        """All edges but those that lead back to where a walk along the others came from."""
        out: dict[str, list[str]] = defaultdict(list)
        for upper, lower in dict.fromkeys(map(self._ends, edges)):
            out[upper].append(lower)
        state: dict[str, int] = {}
        for start in list(out):
            if start in state:
                continue
            state[start] = 1
            walk = [(start, iter(out[start]))]
            while walk:
                current, left = walk[-1]
                lower = next((follower for follower in left if state.get(follower) != 1), None)
                if lower is None:
                    state[current] = 2
                    walk.pop()
                    continue
                self._pairs.add((current, lower))
                self._below[current].append(lower)
                if lower not in state:
                    state[lower] = 1
                    walk.append((lower, iter(out.get(lower, ()))))

    def _ends(self, edge: Edge) -> Pair:
        upper, lower = upper_and_lower(edge, self._boxes[edge.tail], self._boxes[edge.head])
        return upper.id, lower.id

    def _add_transfer(self, edge: Edge) -> None:
        tail, head = self._boxes[edge.tail], self._boxes[edge.head]
        if tail.stage is None or head.stage is None or tail.stage == head.stage:
            return
        upper, lower = self._ends(edge)
        if not self._reaches(lower, upper):
            self._pairs.add((upper, lower))
            self._below[upper].append(lower)

    def _add_tie(self, edge: Edge) -> None:
        if not self._reaches(edge.head, edge.tail):
            self._level.add((edge.tail, edge.head))
            self._below[edge.tail].append(edge.head)

    def _reaches(self, start: str, end: str) -> bool:
        seen = {start}
        pending = [start]
        while pending:
            current = pending.pop()
            if current == end:
                return True
            for lower in self._below.get(current, ()):
                if lower not in seen:
                    seen.add(lower)
                    pending.append(lower)
        return False


def is_tie(edge: Edge) -> bool:
    """Whether an edge only says that two boxes belong together.

    Args:
        edge: of a picture.
    """
    return edge.kind in ("tie", "recompute")


def same_lane(tail: Box, head: Box) -> bool:
    """Whether two boxes stand in one lane; what is of no phase stands with the forward pass.

    Args:
        tail: a box of a picture.
        head: another one; boxes of two joined dumps never share a lane.
    """
    first, second = ("forward" if box.lane == "other" else box.lane for box in (tail, head))
    return first == second and tail.source == head.source


def upper_and_lower(edge: Edge, tail: Box, head: Box) -> tuple[Box, Box]:
    """Which end of an edge shall stand above the other one.

    The backward pass runs up. What one stage sends to the next leads down, in the backward pass up.

    Args:
        edge: of a picture.
        tail: the box that it comes from.
        head: the box that it goes to.

    Returns:
        the upper and the lower one.
    """
    if edge.kind == "transfer" and None not in (tail.stage, head.stage):
        turned = (tail.stage or 0) > (head.stage or 0)
    else:
        turned = tail.lane == "backward"
    return (head, tail) if turned else (tail, head)

"""Where lanes stand: from left to right, those of several stages in rows, one row below the other.

dot ignores level edges between frames, so loose points that nobody sees carry the lanes: a row of
them above, and, where stages are piled up, one below.  What a stage sends leaves it at its foot and
arrives at the head of the next one, in the backward pass the other way round; so no line has to
lead around a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any, TypeAlias

import graphviz

from irtool.report.picture.model import Frame, Picture
from irtool.report.picture.ranking import Ranking

Digraph: TypeAlias = Any
"""``graphviz.Digraph``, whose own types are incomplete."""
_POINT = {"label": "", "shape": "point", "style": "invis", "width": "0.01", "height": "0.01"}
_STRONG = "50"


class Lanes:
    """The lanes of a picture, and the points and unseen lines that hold them in place.

    dot keeps the order of outer frames only; so a stage has no frame of its own where lanes divide
    it.  The lanes are tinted and titled by stage, and the stage's name stands before its row.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        lanes = [frame for frame in picture.frames if frame.kind == "phase"]
        stages = {frame.id: frame for frame in picture.frames if frame.kind == "stage"}
        self._stages: dict[str, Frame] = {}
        self._rows: list[list[str]] = []
        for parent in dict.fromkeys(lane.parent for lane in lanes):
            self._rows.append([lane.id for lane in lanes if lane.parent == parent])
            if parent in stages:
                self._stages[parent] = stages[parent]
        if not lanes:
            self._rows = [list(stages)]
        self._is_piled = len(self._rows) > 1
        held = self._is_piled or len(self._rows[0]) > 1
        self._held = {lane for row in self._rows for lane in row} if held else set[str]()

    @property
    def frames(self) -> list[Frame]:
        """The frames to draw: the lanes of a stage in its place."""
        order = {id: number for number, id in enumerate(self._stages)}
        frames: list[Frame] = []
        for frame in self._picture.frames:
            if frame.id in self._stages:
                continue
            if frame.parent in self._stages:
                stage = self._stages[frame.parent]
                if frame.kind == "phase":
                    title = f"{stage.title}: {frame.title}"
                    frame = replace(frame, title=title, repeats=frame.repeats * stage.repeats)
                tint = "stage2" if order[stage.id] % 2 else "stage"
                frame = replace(frame, parent="", tint=tint)
            frames.append(frame)
        return frames

    def mark(self, graph: Digraph, frame: str) -> None:
        """The point inside a lane by which the row above holds it."""
        if frame in self._held:
            graph.node(f"lane_{frame}", **_POINT)
            if self._is_piled:
                graph.node(f"base_{frame}", **_POINT)

    def arrange(self, graph: Digraph, ranking: Ranking) -> None:
        """Write the rows of loose points that hold the lanes in their places.

        Args:
            graph: that the points and the lines between them are written into.
            ranking: which boxes stand below which, so that stages piled up keep apart.
        """
        if not self._held:
            return
        for row in self._rows:
            _row(graph, "head", row)
            for lane in row:
                _line(graph, f"head_{lane}", f"lane_{lane}", "100")
        if not self._is_piled:
            return
        for row in self._rows:
            _row(graph, "foot", row)
            for lane in row:
                _line(graph, f"base_{lane}", f"foot_{lane}", "100")
        self._hold(graph, ranking)
        for above, below in pairwise(self._rows):
            for upper, lower in zip_longest(above, below):
                _line(graph, f"foot_{upper or above[-1]}", f"head_{lower or below[-1]}", "10")

    def _hold(self, graph: Digraph, ranking: Ranking) -> None:
        """Hang what is highest in a lane on the row above, and the row below on what is lowest."""
        transfers = [edge for edge in self._picture.edges if edge.kind == "transfer"]
        ends = {id for edge in transfers for id in (edge.tail, edge.head)}
        lane_of = self._lane_of()
        uppers, lowers = ranking.uppers(), ranking.lowers()
        for box in self._picture.boxes:
            lane = lane_of.get(box.frame)
            if lane and box.id not in lowers:
                _line(graph, f"head_{lane}", box.id, _STRONG if box.id in ends else "2")
            if lane and box.id not in uppers:
                _line(graph, box.id, f"foot_{lane}", _STRONG if box.id in ends else "1")

    def _lane_of(self) -> Mapping[str, str]:
        """The lane of each frame; what stands in a stage but in no lane goes with the last."""
        lane_of = {lane: lane for row in self._rows for lane in row}
        for frame in self._picture.frames:
            if frame.id in lane_of and frame.parent in self._stages:
                lane_of[frame.parent] = frame.id
        for frame in self._picture.frames:
            if frame.id not in lane_of and frame.parent in lane_of:
                lane_of[frame.id] = lane_of[frame.parent]
        return lane_of


def _row(graph: Digraph, name: str, lanes: Sequence[str]) -> None:
    level: Digraph = graphviz.Digraph()
    level.attr("graph", rank="same")
    for lane in lanes:
        level.node(f"{name}_{lane}", **_POINT)
    for left, right in pairwise(lanes):
        _line(level, f"{name}_{left}", f"{name}_{right}", "100")
    graph.subgraph(level)


def _line(graph: Digraph, tail: str, head: str, weight: str) -> None:
    graph.edge(tail, head, style="invis", weight=weight)

"""Writes a picture in graphviz's language.

Lanes stand side by side: forward runs down, backward up beside the operators that it belongs to
(its edges are written the other way round for the layout, and drawn right), the optimizer beside
that.  Edges between lanes take no part in the ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import graphviz

from irtool.ir.units import count_text
from irtool.report.picture.boxes import WIDTH
from irtool.report.picture.colours import (
    SEVERITIES,
    Colouring,
    colouring,
    value_text,
)
from irtool.report.picture.dot_labels import (
    box_tooltip,
    edge_label,
    edge_tooltip,
    frame_title,
    head_label,
    html,
    plain,
    small,
)
from irtool.report.picture.lanes import Digraph, Lanes
from irtool.report.picture.legend import ACROSS, MOVE, SENT
from irtool.report.picture.model import Box, Edge, Frame, Picture
from irtool.report.picture.overlay import Overlay, OverlaySeverity, worst
from irtool.report.picture.ranking import Ranking, is_tie, same_lane
from irtool.report.text import shortened

FONT = "Helvetica,Arial,sans-serif"
_MANY = 300
"""Boxes from which dot's search for the shortest edges is cut short."""
CROWDED = 80
"""Boxes from which lines between lanes are left out: frames say how much goes there instead."""
MOST_ACROSS = 40
"""Lines between lanes beyond which all of them are left out."""
_COLUMN = 5
_VERY_MANY = 1500
"""Boxes from which edges are straight lines without texts."""
_FRAMES = {
    "stage": ("#F7F9FC", "#8888AA", "rounded,filled", "1.5"),
    "stage2": ("#FBF9F4", "#AA9977", "rounded,filled", "1.5"),
    "phase": ("#FFFFFF", "#666666", "rounded", "1.2"),
    "micro": ("#FBFBF4", "#999988", "rounded,filled", "1"),
    "graph": ("#F8F5FB", "#9977AA", "rounded,filled", "1"),
    "scope": ("#FFFFFF", "#BBBBBB", "rounded", "0.8"),
    "part": ("#FFFFFF", "#BBBBBB", "rounded,dashed", "0.8"),
}
_SHAPES = {
    "operator": "box", "scope": "box3d", "parameter": "ellipse", "input": "parallelogram",
    "result": "ellipse", "call": "component",
}  # fmt: skip
_LINE_COLOURS = {
    "data": "#555555", "repeat": "#555555", "tie": "#7788AA", "recompute": "#AA8877",
    "transfer": SENT, "call": "#997799", "order": "#999999",
}  # fmt: skip


Alignment: TypeAlias = Literal["level", "near", "none"]
"""On one level, a level apart, or anyhow: graphviz fails on some graphs with the first."""
ALIGNMENTS: tuple[Alignment, ...] = ("level", "near", "none")


def dot_text(picture: Picture, overlays: Sequence[Overlay] = ()) -> str:
    """The picture as graphviz's source text."""
    return dot_graph(picture, overlays).source


def dot_graph(
    picture: Picture, overlays: Sequence[Overlay] = (), alignment: Alignment = "level"
) -> Digraph:
    """The picture as a graph of the graphviz package, to be written or rendered.

    Args:
        picture: what is drawn.
        overlays: their units and titles; the marks are in the boxes already.
        alignment: how operators that belong together stand in their lanes.

    Raises:
        LookupError: colours by an overlay that is not there.
    """
    return _Writer(picture, overlays, alignment).graph()


class _Writer:
    def __init__(self, picture: Picture, overlays: Sequence[Overlay], alignment: Alignment) -> None:
        self.picture = picture
        self.aligned = alignment != "none"
        self.tie_length = "0" if alignment == "level" else "1"
        # Texts on lines that don't rank are another thing on which dot fails now and then.
        self.texts_across = alignment == "level"
        self.overlays = {overlay.topic: overlay for overlay in overlays}
        self.colours: Colouring = colouring(picture, overlays)
        self.boxes = {box.id: box for box in picture.boxes}
        self.inner: dict[str, list[Frame]] = {}
        self.lanes = Lanes(picture)
        frames = self.lanes.frames
        for frame in frames:
            self.inner.setdefault(frame.parent, []).append(frame)
        kept = {frame.id for frame in frames}
        self.content: dict[str, list[Box]] = {}
        for box in picture.boxes:
            there = box.frame if box.frame in kept else ""
            self.content.setdefault(there, []).append(box)
        self.plain_edges = len(picture.boxes) > _VERY_MANY
        self.ranking = Ranking(picture, self.aligned)
        across = sum(
            not same_lane(self.boxes[edge.tail], self.boxes[edge.head])
            for edge in picture.edges
            if edge.kind in ("data", "order")
        )
        self.crowded = len(picture.boxes) > CROWDED or across > MOST_ACROSS

    def graph(self) -> Digraph:
        found: Digraph = graphviz.Digraph("irtool", strict=False)
        found.attr("graph", **self._graph_attributes())
        found.attr("node", **self._node_defaults())
        found.attr("edge", **self._edge_defaults())
        if self.aligned:
            self.lanes.arrange(found, self.ranking)
        self._fill(found, "")
        for edge in self.picture.edges:
            self._edge(found, edge)
        self._stack(found)
        return found

    def _stack(self, graph: Digraph) -> None:
        """Boxes of a frame that nothing ranks stand in columns, not in one long row."""
        ranked = self.ranking.boxes()
        for boxes in self.content.values():
            loose = [box.id for box in boxes if box.id not in ranked]
            for start in range(0, len(loose), _COLUMN):
                column = loose[start : start + _COLUMN]
                for upper, lower in pairwise(column):
                    graph.edge(upper, lower, style="invis")

    def _graph_attributes(self) -> dict[str, str]:
        many = len(self.picture.boxes) > _MANY
        attributes = {
            "rankdir": "TB", "newrank": "true" if self.aligned else "false",
            "nodesep": "0.2", "ranksep": "0.32",
            "fontname": FONT, "fontsize": "12", "labelloc": "t", "labeljust": "l",
            "bgcolor": "white", "pad": "0.3", "outputorder": "edgesfirst",
            "label": head_label(self.picture, self.colours, self.crowded),
            "tooltip": plain(self.picture.title),
        }  # fmt: skip
        if many:
            attributes |= {"nslimit": "0.3", "nslimit1": "0.3", "mclimit": "0.3"}
        if self.plain_edges:
            attributes |= {"splines": "line"}
        return attributes

    @staticmethod
    def _node_defaults() -> dict[str, str]:
        return {
            "shape": "box", "style": "filled,rounded", "fillcolor": "white", "color": "#555555",
            "fontname": FONT, "fontsize": "11", "margin": "0.08,0.04", "height": "0.3",
            "width": "0.4", "penwidth": "0.8",
        }  # fmt: skip

    @staticmethod
    def _edge_defaults() -> dict[str, str]:
        return {
            "fontname": FONT, "fontsize": "8", "fontcolor": "#555555", "color": "#555555",
            "arrowsize": "0.6", "penwidth": "0.9",
        }  # fmt: skip

    # -- frames and boxes ----------------------------------------------------------------------

    def _fill(self, graph: Digraph, frame: str) -> None:
        """Boxes and inner frames of a frame; without recursion, since frames may be deep."""
        pending: list[tuple[Digraph, str, list[Frame]]] = [
            (graph, frame, list(self.inner.get(frame, ())))
        ]
        self._boxes(graph, frame)
        while pending:
            outer, _, left = pending[-1]
            if not left:
                pending.pop()
                if pending:
                    pending[-1][0].subgraph(outer)
                continue
            inner = left.pop(0)
            made: Digraph = graphviz.Digraph(f"cluster_{inner.id}")
            made.attr("graph", **self._frame(inner))
            self._boxes(made, inner.id)
            pending.append((made, inner.id, list(self.inner.get(inner.id, ()))))

    def _frame(self, frame: Frame) -> dict[str, str]:
        fill, line, style, width = _FRAMES[frame.tint or frame.kind]
        size = {"stage": 14, "phase": 13}.get(frame.kind, 10)
        title = html(frame_title(frame.title))
        label = f'<B><FONT POINT-SIZE="{size}" COLOR="#333333">{title}</FONT></B>'
        if frame.repeats > 1:
            label += (
                f'<B><FONT POINT-SIZE="{size + 3}" COLOR="#CC3311">  × {frame.repeats}</FONT></B>'
            )
        if frame.note and self.crowded:
            left = '<BR ALIGN="LEFT"/>'
            label += f"{left}{small(frame.note, 9, '#777777')}{left}"
        if frame.repeats > 1 and frame.kind != "stage":
            width, line = "2", "#777777"
        return {
            "label": f"<{label}>", "style": style, "fillcolor": fill, "bgcolor": "", "color": line,
            "penwidth": width, "labeljust": "l", "labelloc": "t", "margin": "10",
            "tooltip": plain(frame.title),
        }  # fmt: skip

    def _boxes(self, graph: Digraph, frame: str) -> None:
        if self.aligned:
            self.lanes.mark(graph, frame)
        for box in self.content.get(frame, ()):
            graph.node(box.id, self._label(box), **self._look(box))

    def _label(self, box: Box) -> str:
        light = 9 if box.kind != "parameter" else 8
        title = html(box.title)
        head = f"<B>{title}</B>" if box.kind not in ("parameter", "input") else title
        if box.repeats > 1 and box.kind == "scope":
            head += f' <FONT COLOR="#CC3311"><B>× {count_text(box.repeats)}</B></FONT>'
        lines = [head]
        lines += [small(line, light) for line in box.lines]
        if box.strategy:
            lines.append(small(shortened(box.strategy, WIDTH), light, "#003366"))
        if box.kind == "scope":
            lines += [
                small(f"{op} × {number}" if number > 1 else op, light, "#AA3300", bold=True)
                for op, number in box.groups
            ]
        for topic, mark in box.marks:
            lines.append(self._mark_line(topic, mark.severity, mark.value, mark.text))
        return f"<{'<BR/>'.join(line for line in lines if line)}>"

    def _mark_line(
        self, topic: str, severity: OverlaySeverity | None, value: float | None, text: str
    ) -> str:
        overlay = self.overlays.get(topic)
        parts = [value_text(value, overlay.unit)] if value is not None and overlay else []
        if text:
            parts.append(shortened(text, 44))
        if severity is not None and not parts:
            parts.append(SEVERITIES[severity][1])
        colour = SEVERITIES[severity][0] if severity else "#333333"
        return small(": ".join(parts), 9, colour, bold=severity is not None)

    def _look(self, box: Box) -> dict[str, str]:
        collective = box.kind == "operator" and bool(box.groups)
        shape = "octagon" if collective else _SHAPES[box.kind]
        look = {
            "shape": shape,
            "fillcolor": self.colours.fills.get(box.id, "#FFFFFF"),
            "tooltip": plain(box_tooltip(box)),
        }
        if shape != "box":
            look["style"] = "filled"
        if collective:
            look |= {"penwidth": "1.6", "color": "#AA3300", "margin": "0.01,0.01"}
        if box.kind == "parameter":
            look |= {"color": "#999999", "fontsize": "9", "margin": "0.02,0.01", "height": "0.2"}
        severity = worst(mark.severity for _, mark in box.marks)
        if severity is not None:
            look |= {"color": SEVERITIES[severity][0], "penwidth": "2.6"}
            if severity == "removed":
                look["style"] = "filled,dashed"
        if box.focus:
            look |= {"penwidth": "3", "peripheries": "2"}
        return look

    # -- edges ---------------------------------------------------------------------------------

    def _edge(self, graph: Digraph, edge: Edge) -> None:
        tail, head = self.boxes[edge.tail], self.boxes[edge.head]
        look = self._line(edge, tail, head)
        if not self.ranking.ranks(edge):
            if self._is_left_out(edge, tail, head):
                return
            look["constraint"] = "false"
        if self.ranking.is_turned(edge):
            graph.edge(edge.head, edge.tail, **look, dir="back")
        else:
            graph.edge(edge.tail, edge.head, **look)

    def _is_left_out(self, edge: Edge, tail: Box, head: Box) -> bool:
        """In a crowded picture, lines between lanes would cover everything else."""
        if is_tie(edge) and (self.crowded or not self.aligned):
            return True
        if not self.crowded or edge.kind in ("transfer", "call"):
            return False
        if edge.note and edge.kind == "data":
            return False
        return not same_lane(tail, head)

    def _speaks_across(self, edge: Edge) -> bool:
        """Whether a line between lanes has a text: what is inserted, sent or called there."""
        if not self.texts_across or edge.kind == "order":
            return False
        return edge.kind != "data" or bool(edge.note)

    def _line(self, edge: Edge, tail: Box, head: Box) -> dict[str, str]:
        if is_tie(edge):
            ranks = self.ranking.ranks(edge)
            look = {"arrowhead": "none", "penwidth": "0.7", "color": _LINE_COLOURS[edge.kind]}
            look["style"] = "invis" if self.crowded else "dashed"
            return look | ({"minlen": self.tie_length, "weight": "2"} if ranks else {})
        look = {"color": _LINE_COLOURS[edge.kind]}
        within = same_lane(tail, head)
        if not self.plain_edges:
            if within or (self._speaks_across(edge) and edge.kind != "transfer"):
                label = edge_label(edge, tail)
                look |= {"label": label} if label else {}
            look["tooltip"] = plain(edge_tooltip(edge, tail, head))
        if edge.kind == "data" and not within:
            look |= {"color": ACROSS, "fontcolor": "#999999", "penwidth": "0.7"}
        if edge.kind in ("repeat", "call", "order"):
            look["style"] = "dashed"
        elif edge.kind == "transfer":
            look |= {"penwidth": "2.2"}
        if edge.note and edge.kind == "data":
            look |= {"color": MOVE, "fontcolor": MOVE, "penwidth": "2.2"}
        elif edge.count > 1 and edge.kind == "data" and within:
            look["penwidth"] = "1.8"
        return look

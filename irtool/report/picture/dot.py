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

from irtool.report.picture.dot_labels import head_label, html, plain, run_html
from irtool.report.picture.lanes import Digraph, Lanes
from irtool.report.picture.looks import (
    BOX_WIDTH,
    FONT,
    FONT_SIZE,
    GREY,
    LINE_FONT_SIZE,
    LINE_WIDTH,
    LOUD,
    Looks,
    Run,
)
from irtool.report.picture.model import Box, Edge, Frame, Picture
from irtool.report.picture.overlay import Overlay
from irtool.report.picture.ranking import Ranking, is_tie
from irtool.report.picture.tooltips import box_tooltip, edge_tooltip

_MANY = 300
"""Boxes from which dot's search for the shortest edges is cut short."""
_COLUMN = 5

Alignment: TypeAlias = Literal["level", "near", "none"]
"""On one level, a level apart, or anyhow: graphviz fails on some graphs with the first."""
ALIGNMENTS: tuple[Alignment, ...] = ("level", "near", "none")


def dot_text(picture: Picture, overlays: Sequence[Overlay] = ()) -> str:
    """The picture as graphviz's source text.

    Args:
        picture: what is drawn.
        overlays: their units and titles; the marks are in the boxes already.

    Raises:
        LookupError: colours by an overlay that is not there.
    """
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
        self.looks = Looks(picture, overlays)
        self.colours = self.looks.colours
        self.crowded = self.looks.crowded
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
        self.ranking = Ranking(picture, self.aligned)

    def graph(self) -> Digraph:
        digraph: Digraph = graphviz.Digraph("irtool", strict=False)
        digraph.attr("graph", **self._graph_attributes())
        digraph.attr("node", **self._node_defaults())
        digraph.attr("edge", **self._edge_defaults())
        if self.aligned:
            self.lanes.arrange(digraph, self.ranking)
        self._fill(digraph, "")
        for edge in self.picture.edges:
            self._edge(digraph, edge)
        self._stack(digraph)
        return digraph

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
        if self.looks.plain_edges:
            attributes |= {"splines": "line"}
        return attributes

    @staticmethod
    def _node_defaults() -> dict[str, str]:
        return {
            "shape": "box", "style": "filled,rounded", "fillcolor": "white", "color": GREY,
            "fontname": FONT, "fontsize": str(FONT_SIZE), "margin": "0.08,0.04", "height": "0.3",
            "width": "0.4", "penwidth": BOX_WIDTH,
        }  # fmt: skip

    @staticmethod
    def _edge_defaults() -> dict[str, str]:
        return {
            "fontname": FONT, "fontsize": str(LINE_FONT_SIZE), "fontcolor": GREY,
            "color": GREY,
            "arrowsize": "0.6", "penwidth": LINE_WIDTH,
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
        look = self.looks.frame(frame)
        size, title = look.size, html(look.title)
        label = f'<B><FONT POINT-SIZE="{size}" COLOR="#333333">{title}</FONT></B>'
        if look.repeats:
            label += f'<B><FONT POINT-SIZE="{size + 3}" COLOR="{LOUD}">  {look.repeats}</FONT></B>'
        if look.note:
            left = '<BR ALIGN="LEFT"/>'
            label += f"{left}{run_html(Run(look.note, 9, '#777777'))}{left}"
        return {
            "label": f"<{label}>", "style": look.style, "fillcolor": look.fill, "bgcolor": "",
            "color": look.line, "penwidth": look.width, "labeljust": "l", "labelloc": "t",
            "margin": "10", "tooltip": plain(frame.title),
        }  # fmt: skip

    def _boxes(self, graph: Digraph, frame: str) -> None:
        if self.aligned:
            self.lanes.mark(graph, frame)
        for box in self.content.get(frame, ()):
            graph.node(box.id, self._label(box), **self._look(box))

    def _label(self, box: Box) -> str:
        lines = ("".join(map(run_html, line)) for line in self.looks.texts(box))
        return f"<{'<BR/>'.join(lines)}>"

    def _look(self, box: Box) -> dict[str, str]:
        look = self.looks.box(box)
        attributes = {
            "shape": look.shape, "fillcolor": look.fill, "tooltip": plain(box_tooltip(box)),
        }  # fmt: skip
        if look.dashed:
            attributes["style"] = "filled,dashed"
        elif look.shape != "box":
            attributes["style"] = "filled"
        if look.shape == "octagon":
            attributes["margin"] = "0.01,0.01"
        if box.kind == "parameter":
            attributes |= {"fontsize": "9", "margin": "0.02,0.01", "height": "0.2"}
        if look.line != GREY:
            attributes["color"] = look.line
        if look.width != BOX_WIDTH:
            attributes["penwidth"] = look.width
        if look.doubled:
            attributes["peripheries"] = "2"
        return attributes

    # -- edges ---------------------------------------------------------------------------------

    def _edge(self, graph: Digraph, edge: Edge) -> None:
        tail, head = self.boxes[edge.tail], self.boxes[edge.head]
        look = self._line(edge, tail, head)
        if not self.ranking.ranks(edge):
            if self.looks.is_left_out(edge, self.aligned):
                return
            look["constraint"] = "false"
        if self.ranking.is_turned(edge):
            graph.edge(edge.head, edge.tail, **look, dir="back")
        else:
            graph.edge(edge.tail, edge.head, **look)

    def _line(self, edge: Edge, tail: Box, head: Box) -> dict[str, str]:
        look = self.looks.line(edge, self.texts_across)
        attributes = {"color": look.colour}
        if look.width != LINE_WIDTH:
            attributes["penwidth"] = look.width
        if is_tie(edge):
            attributes |= {"arrowhead": "none", "style": "invis" if self.crowded else "dashed"}
            ranks = {"minlen": self.tie_length, "weight": "2"}
            return attributes | (ranks if self.ranking.ranks(edge) else {})
        if look.label:
            attributes["label"] = f"<{'<BR/>'.join(map(run_html, look.label))}>"
        if not self.looks.plain_edges:
            attributes["tooltip"] = plain(edge_tooltip(edge, tail, head))
        if look.text_colour != GREY:
            attributes["fontcolor"] = look.text_colour
        if look.dashed:
            attributes["style"] = "dashed"
        return attributes

"""How boxes, frames and lines of a picture look: what every writer of pictures draws alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text, count_text
from irtool.report.picture.boxes import WIDTH
from irtool.report.picture.colours import SEVERITIES, Colouring, colouring, value_text
from irtool.report.picture.legend import ACROSS, MOVE, SENT
from irtool.report.picture.model import Box, BoxKind, Edge, Frame, Picture
from irtool.report.picture.overlay import Mark, Overlay, worst
from irtool.report.picture.ranking import is_tie, same_lane
from irtool.report.text import shortened

Shape: TypeAlias = Literal["box", "box3d", "ellipse", "parallelogram", "component", "octagon"]
"""Outlines, by the names that graphviz has for them."""

FONT = "Helvetica,Arial,sans-serif"
FONT_SIZE = 11
LINE_FONT_SIZE = 8
CROWDED = 80
"""Boxes from which lines between lanes are left out: frames say how much goes there instead."""
MOST_ACROSS = 40
"""Lines between lanes beyond which all of them are left out."""
VERY_MANY = 1500
"""Boxes from which edges are straight lines without texts."""
GREY = "#555555"
"""Outlines, lines and their texts, unless something says otherwise."""
BOX_WIDTH = "0.8"
LINE_WIDTH = "0.9"
TEXT = "#444444"
LOUD = "#CC3311"
_TITLE = 44
_FRAMES = {
    "stage": ("#F7F9FC", "#8888AA", "rounded,filled", "1.5"),
    "stage2": ("#FBF9F4", "#AA9977", "rounded,filled", "1.5"),
    "phase": ("#FFFFFF", "#666666", "rounded", "1.2"),
    "micro": ("#FBFBF4", "#999988", "rounded,filled", "1"),
    "graph": ("#F8F5FB", "#9977AA", "rounded,filled", "1"),
    "scope": ("#FFFFFF", "#BBBBBB", "rounded", "0.8"),
    "part": ("#FFFFFF", "#BBBBBB", "rounded,dashed", "0.8"),
}
_SHAPES: dict[BoxKind, Shape] = {
    "operator": "box", "scope": "box3d", "parameter": "ellipse", "input": "parallelogram",
    "result": "ellipse", "call": "component",
}  # fmt: skip
_LINE_COLOURS = {
    "data": "#555555", "repeat": "#555555", "tie": "#7788AA", "recompute": "#AA8877",
    "transfer": SENT, "call": "#997799", "order": "#999999",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one look; no size or colour is that of the drawing."""

    text: str
    size: int | None = None
    colour: str | None = None
    bold: bool = False


TextLine: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class FrameLook:
    """How a frame is drawn: ``repeats`` and ``note`` are empty where there is nothing to say."""

    title: str
    size: int
    fill: str
    line: str
    style: str
    width: str
    repeats: str
    note: str


@dataclass(frozen=True, slots=True)
class BoxLook:
    """How a box is drawn; ``doubled`` has a second outline around it."""

    shape: Shape
    fill: str
    line: str = GREY
    width: str = BOX_WIDTH
    dashed: bool = False
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class LineLook:
    """How an edge is drawn, and the lines of its text."""

    colour: str
    text_colour: str = GREY
    width: str = LINE_WIDTH
    dashed: bool = False
    arrow: bool = True
    label: tuple[Run, ...] = ()


class Looks:
    """The looks of one picture.

    Attributes:
        crowded: whether lines between lanes are left out.
        plain_edges: whether lines have no texts.
        colours: what fills boxes, and the legend's rows for it.
    """

    def __init__(self, picture: Picture, overlays: Sequence[Overlay]) -> None:
        self.boxes = {box.id: box for box in picture.boxes}
        self.colours: Colouring = colouring(picture, overlays)
        self.plain_edges = len(picture.boxes) > VERY_MANY
        self._overlays = {overlay.topic: overlay for overlay in overlays}
        across = sum(
            not same_lane(self.boxes[edge.tail], self.boxes[edge.head])
            for edge in picture.edges
            if edge.kind in ("data", "order")
        )
        self.crowded = len(picture.boxes) > CROWDED or across > MOST_ACROSS

    def frame(self, frame: Frame) -> FrameLook:
        """How a frame looks; what it takes from other lanes stands in it where no line says so."""
        fill, line, style, width = _FRAMES[frame.tint or frame.kind]
        if frame.repeats > 1 and frame.kind != "stage":
            width, line = "2", "#777777"
        return FrameLook(
            _frame_title(frame.title),
            {"stage": 14, "phase": 13}.get(frame.kind, 10),
            fill,
            line,
            style,
            width,
            f"× {frame.repeats}" if frame.repeats > 1 else "",
            frame.note if self.crowded else "",
        )

    def texts(self, box: Box) -> list[TextLine]:
        """The lines that stand in a box."""
        light = 9 if box.kind != "parameter" else 8
        head = [Run(box.title, bold=box.kind not in ("parameter", "input"))]
        if box.repeats > 1 and box.kind == "scope":
            head += [Run(" "), Run(f"× {count_text(box.repeats)}", None, LOUD, bold=True)]
        lines: list[TextLine] = [tuple(head)]
        lines += [(Run(line, light, TEXT),) for line in box.lines]
        if box.strategy:
            lines.append((Run(shortened(box.strategy, WIDTH), light, "#003366"),))
        if box.kind == "scope":
            lines += [
                (Run(f"{op} × {number}" if number > 1 else op, light, "#AA3300", bold=True),)
                for op, number in box.groups
            ]
        lines += [(self._mark(topic, mark),) for topic, mark in box.marks]
        return [line for line in lines if line is lines[0] or line[0].text]

    def _mark(self, topic: str, mark: Mark) -> Run:
        overlay = self._overlays.get(topic)
        parts = [value_text(mark.value, overlay.unit)] if mark.value is not None and overlay else []
        if mark.text:
            parts.append(shortened(mark.text, 44))
        if mark.severity is not None and not parts:
            parts.append(SEVERITIES[mark.severity][1])
        colour = SEVERITIES[mark.severity][0] if mark.severity else "#333333"
        return Run(": ".join(parts), 9, colour, bold=mark.severity is not None)

    def box(self, box: Box) -> BoxLook:
        """How a box looks: its kind, then collectives, then what overlays say of it."""
        collective = box.kind == "operator" and bool(box.groups)
        line, width, dashed = GREY, BOX_WIDTH, False
        if collective:
            line, width = "#AA3300", "1.6"
        if box.kind == "parameter":
            line = "#999999"
        severity = worst(mark.severity for _, mark in box.marks)
        if severity is not None:
            line, width, dashed = SEVERITIES[severity][0], "2.6", severity == "removed"
        shape: Shape = "octagon" if collective else _SHAPES[box.kind]
        fill = self.colours.fills.get(box.id, "#FFFFFF")
        return BoxLook(shape, fill, line, "3" if box.focus else width, dashed, box.focus)

    def is_left_out(self, edge: Edge, ties: bool) -> bool:
        """Whether an edge that ranks nothing is not drawn.

        In a crowded picture, lines between lanes would cover everything else.

        Args:
            edge: the edge.
            ties: whether the drawing shows what belongs together by lines.
        """
        if is_tie(edge) and (self.crowded or not ties):
            return True
        if not self.crowded or edge.kind in ("transfer", "call"):
            return False
        if edge.note and edge.kind == "data":
            return False
        return not same_lane(self.boxes[edge.tail], self.boxes[edge.head])

    def line(self, edge: Edge, texts_across: bool = True) -> LineLook:
        """How the line of an edge looks, and what stands on it.

        Args:
            edge: the edge.
            texts_across: whether lines between lanes have texts: what is inserted or called there.
        """
        colour = _LINE_COLOURS[edge.kind]
        if is_tie(edge):
            return LineLook(colour, width="0.7", dashed=True, arrow=False)
        tail = self.boxes[edge.tail]
        within = same_lane(tail, self.boxes[edge.head])
        speaks = within or (texts_across and _speaks_across(edge))
        label = edge_texts(edge, tail) if speaks and not self.plain_edges else ()
        dashed = edge.kind in ("repeat", "call", "order")
        if edge.kind == "transfer":
            return LineLook(colour, width="2.2", label=label)
        if edge.note and edge.kind == "data":
            return LineLook(MOVE, MOVE, "2.2", label=label)
        if edge.kind == "data" and not within:
            return LineLook(ACROSS, "#999999", "0.7", label=label)
        bundled = edge.count > 1 and edge.kind == "data"
        return LineLook(colour, width="1.8" if bundled else LINE_WIDTH, dashed=dashed, label=label)


def _speaks_across(edge: Edge) -> bool:
    """Whether a line between lanes has a text: what is inserted or called there."""
    if edge.kind in ("order", "transfer"):
        return False
    return edge.kind != "data" or bool(edge.note)


def edge_texts(edge: Edge, tail: Box) -> tuple[Run, ...]:
    """How many, shape and bytes; what parameters hold stands in their boxes."""
    lines: list[str] = []
    if tail.kind not in ("parameter", "input") or edge.note or "→" in edge.label:
        lines = [edge.label] if edge.label and edge.label != "scalar" else []
        if edge.bytes:
            lines.append(bytes_text(edge.bytes))
    if edge.count > 1:
        lines = [f"× {count_text(edge.count)}", *lines]
    texts = [Run(line) for line in lines if line]
    if edge.note:
        texts.append(Run(shortened(edge.note, 40), bold=True))
    return tuple(texts)


def _frame_title(title: str) -> str:
    """The inner ones of a way of scopes, which tell more than the outer ones."""
    parts = title.split(" / ")
    while len(parts) > 2 and len(" / ".join(parts)) > _TITLE:
        parts = ["…", *parts[2 if parts[0] == "…" else 1 :]]
    return shortened(" / ".join(parts), 2 * _TITLE)

"""The model of a picture: boxes, edges between them, and the frames around them.  Plain data."""

from __future__ import annotations

from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.report.picture.overlay import Mark

BoxKind: TypeAlias = Literal["operator", "scope", "parameter", "input", "result", "call"]
EdgeKind: TypeAlias = Literal["data", "repeat", "tie", "recompute", "transfer", "call", "order"]
FrameKind: TypeAlias = Literal["stage", "phase", "micro", "graph", "scope", "part"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a picture: a statement, a parameter, or a closed scope.

    Attributes:
        id: unique in the picture.
        kind: an operator, a collapsed scope, a parameter, ….
        title: its first line.
        lines: what stands below: name, ranks, shape.
        strategy: of its operator, or of all its operators if they have the same; else "".
        operator_class: key of the class that colours it (:mod:`irtool.report.picture.classes`).
        frame: id of the frame that it stands in, "" for none.
        lane: phase of its nodes: forward, backward, recompute, optimizer, other.
        source: name of the dump in a joined picture, else None.
        stage: pipeline stage, None where not known.
        repeats: how often what it shows is there.
        nodes: the statements that it stands for, those of the repeats included.
        bytes: of all results of one repeat; None where a size is unknown or there is none.
        groups: collectives among the nodes of a scope, with counts.
        marks: what overlays say, by topic.
        focus: whether the user asked for this very node.
    """

    id: str
    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()
    strategy: str = ""
    operator_class: str = "other"
    frame: str = ""
    lane: str = "other"
    source: str | None = None
    stage: int | None = None
    repeats: int = 1
    nodes: tuple[Node, ...] = ()
    bytes: int | None = None
    groups: tuple[tuple[str, int], ...] = ()
    marks: tuple[tuple[str, Mark], ...] = ()
    focus: bool = False

    def mark(self, topic: str) -> Mark | None:
        """What the overlay of a topic says of it."""
        return next((mark for name, mark in self.marks if name == topic), None)


@dataclass(frozen=True, slots=True)
class Edge:
    """What goes from one box to another.

    ``count`` edges are bundled; ``bytes`` of all of them (None: unknown or none); ``label`` is a
    shape, or global → local; ``note`` names the operators of a redistribution that will be there;
    ``is_tie`` says that its ends also belong together as a tie's do.
    """

    tail: str
    head: str
    kind: EdgeKind = "data"
    count: int = 1
    bytes: int | None = None
    label: str = ""
    note: str = ""
    is_tie: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame around boxes: stage, phase, micro-batch, scope.  ``parent`` is the frame around it.

    ``repeats`` frames of equal structure are drawn as this one, ``total`` with those of the frames
    around it.  ``note`` says what it takes from other lanes; ``tint`` is how it is coloured, where
    its kind alone does not say it.
    """

    id: str
    kind: FrameKind
    title: str
    parent: str = ""
    repeats: int = 1
    name: str = ""
    total: int = 1
    note: str = ""
    tint: str = ""


@dataclass(frozen=True, slots=True)
class LegendRow:
    """One line of the legend: a fill colour, a symbol, or a coloured symbol, and what it means."""

    text: str
    colour: str = ""
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, ready to be written.

    ``shown`` statements stand in it; ``hidden`` ones (loads, monads, tuples) are never drawn, and
    ``left_out`` ones were not asked for.  ``notes`` are further lines below the title.
    """

    title: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    frames: tuple[Frame, ...]
    colour_by: str = "op"
    notes: tuple[str, ...] = ()
    shown: int = 0
    hidden: int = 0
    left_out: int = 0

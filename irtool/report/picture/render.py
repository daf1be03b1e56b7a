"""Renders pictures: by graphviz's ``dot`` program, and as svg by our own layout without it."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Literal, TypeAlias

import graphviz

from irtool.ir.units import plural
from irtool.report.picture.dot import ALIGNMENTS, Alignment, dot_graph
from irtool.report.picture.lanes import Digraph
from irtool.report.picture.model import Picture
from irtool.report.picture.overlay import Overlay
from irtool.report.picture.ranking import is_tie
from irtool.report.picture.svg import svg_text

INSTALL = (
    "install graphviz (apt install graphviz, brew install graphviz, or graphviz.org/download); "
    "--format svg, html and dot need none"
)
Drawer: TypeAlias = Literal["own", "dot"]
"""Who lays a picture out: irtool itself, or graphviz."""

_LOST = re.compile(r"lost (\w+) (\w+) edge")
_WAYS = re.compile(r"lost \w+ \w+ edge|Pshortestpath failed")
_UNSEEN = re.compile(r"^\s*(\w+) -> (\w+) \[[^\n]*style=invis", re.MULTILINE)


class RenderError(RuntimeError):
    """The picture cannot be rendered; ``hint`` says what helps."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def rendered(
    picture: Picture, format: str, overlays: Sequence[Overlay] = (), dpi: int | None = None
) -> bytes:
    """The picture as ``svg``, ``png`` or ``pdf``.

    Args:
        picture: what is drawn.
        format: as graphviz names it.
        overlays: as for :func:`irtool.report.picture.dot.dot_graph`.
        dpi: dots an inch, for ``png``.

    Raises:
        RenderError: the program ``dot`` is missing, or fails.
    """
    reason = ""
    tries: deque[tuple[Picture, Alignment]] = deque(
        (picture, alignment) for alignment in ALIGNMENTS
    )
    while tries:
        made, alignment = tries.popleft()
        graph = dot_graph(made, overlays, alignment)
        try:
            return _piped(graph, format, dpi)
        except graphviz.ExecutableNotFound:
            message = f"{format} needs the program dot (Graphviz), which is not installed"
            raise RenderError(message, INSTALL) from None
        except subprocess.CalledProcessError as error:
            lines = bytes(error.stderr or b"").decode("utf-8", "replace").strip().splitlines()
            lost = _lost(lines)
            if lost and lost <= set(_UNSEEN.findall(graph.source)) and error.stdout:
                return bytes(error.stdout)
            if made is picture and alignment == "level" and (fewer := _without(picture, lost)):
                tries.appendleft((fewer, alignment))
            reason = next((line for line in lines if "rror" in line), f"status {error.returncode}")
    hint = "fewer boxes may help: --max-nodes 100; --format dot gives the source"
    raise RenderError(f"dot fails: {reason}", hint)


def svg_of(
    picture: Picture, overlays: Sequence[Overlay] = (), by: Drawer | None = None
) -> tuple[bytes, str]:
    """The picture as svg, by graphviz where it is there and succeeds, else by our own layout.

    Args:
        picture: what is drawn.
        overlays: as for :func:`rendered`.
        by: who shall draw it; None for graphviz if that can be had.

    Returns:
        The document, and why graphviz did not draw it: "" where it did or was not asked.

    Raises:
        RenderError: graphviz was asked for, and is missing or fails.
    """
    reason = ""
    if by != "own":
        try:
            return rendered(picture, "svg", overlays), ""
        except RenderError as error:
            if by == "dot":
                raise
            reason = error.message
    return svg_text(picture, overlays).encode("utf-8"), reason


def _lost(lines: Sequence[str]) -> set[tuple[str, str]]:
    """The lines that dot found no way for, if that is all it complains of.

    It loses some of those that hold boxes on one level, most of which nobody would see.
    """
    if any("rror" in line and not _WAYS.search(line) for line in lines):
        return set()
    return {pair for line in lines for pair in _LOST.findall(line)}


def _without(picture: Picture, lost: Set[tuple[str, str]]) -> Picture | None:
    """The picture without the lost lines, which it says; None if one of them is more than a tie."""
    ends = {frozenset(pair) for pair in lost}
    gone = [edge for edge in picture.edges if frozenset((edge.tail, edge.head)) in ends]
    if not gone or not all(is_tie(edge) for edge in gone):
        return None
    kept = tuple(edge for edge in picture.edges if edge not in gone)
    note = f"graphviz finds no way for {plural(len(gone), 'line')} between what belongs together"
    return replace(picture, edges=kept, notes=(*picture.notes, note))


def _piped(graph: Digraph, format: str, dpi: int | None) -> bytes:
    if dpi is not None:
        graph.attr("graph", dpi=str(dpi))
    data: bytes = graph.pipe(format=format, quiet=True)
    if not data:
        raise subprocess.CalledProcessError(0, "dot", stderr=b"it wrote nothing")
    return data

"""Renders pictures by graphviz's ``dot`` program, which need not be there for anything else."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Sequence, Set
from dataclasses import replace

import graphviz

from irtool.ir.units import plural
from irtool.report.picture.dot import ALIGNMENTS, Alignment, dot_graph
from irtool.report.picture.lanes import Digraph
from irtool.report.picture.model import Picture
from irtool.report.picture.overlay import Overlay
from irtool.report.picture.ranking import is_tie

INSTALL = (
    "install graphviz (apt install graphviz, brew install graphviz, or graphviz.org/download); "
    "--format dot and html need none"
)


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
    tries: deque[tuple[Picture, Alignment]] = deque((picture, each) for each in ALIGNMENTS)
    while tries:
        made, alignment = tries.popleft()
        graph = dot_graph(made, overlays, alignment)
        try:
            return _piped(graph, format, dpi)
        except graphviz.ExecutableNotFound:
            message = "svg, png and pdf need the program dot (Graphviz), which is not installed"
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

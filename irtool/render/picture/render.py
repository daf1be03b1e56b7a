"""Renders pictures by graphviz's ``dot`` program, which need not be there for anything else."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

import graphviz

from irtool.render.picture.dot import ALIGNMENTS, Digraph, dot_graph
from irtool.render.picture.model import Picture
from irtool.render.picture.overlay import Overlay

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
        overlays: as for :func:`irtool.render.picture.dot.dot_graph`.
        dpi: dots an inch, for ``png``.

    Raises:
        RenderError: the program ``dot`` is missing, or fails.
    """
    reason = ""
    for alignment in ALIGNMENTS:
        graph = dot_graph(picture, overlays, alignment)
        try:
            return _piped(graph, format, dpi)
        except graphviz.ExecutableNotFound:
            message = "the program dot is not there, which svg, png and pdf are made with"
            raise RenderError(message, INSTALL) from None
        except subprocess.CalledProcessError as error:
            if (found := _whole_anyway(graph.source, error)) is not None:
                return found
            lines = bytes(error.stderr or b"").decode("utf-8", "replace").strip().splitlines()
            reason = next((line for line in lines if "rror" in line), f"status {error.returncode}")
    hint = "fewer boxes may help: --max-nodes 100; --format dot gives the source"
    raise RenderError(f"dot fails: {reason}", hint)


def _whole_anyway(source: str, error: subprocess.CalledProcessError) -> bytes | None:
    """What dot wrote, if all that it complains of is that it lost lines which nobody would see.

    It finds no way for some of the unseen lines that hold boxes on one level.
    """
    said = bytes(error.stderr or b"").decode("utf-8", "replace")
    lost = set(_LOST.findall(said))
    others = [line for line in said.splitlines() if "rror" in line and not _WAYS.search(line)]
    if not lost or others or not lost <= set(_UNSEEN.findall(source)):
        return None
    return bytes(error.stdout or b"") or None


def _piped(graph: Digraph, format: str, dpi: int | None) -> bytes:
    if dpi is not None:
        graph.attr("graph", dpi=str(dpi))
    data: bytes = graph.pipe(format=format, quiet=True)
    if not data:
        raise subprocess.CalledProcessError(0, "dot", stderr=b"it wrote nothing")
    return data

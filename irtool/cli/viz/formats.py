"""The formats of ``irtool viz``: one function each, which writes a drawing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import Literal

from irtool.cli.output import Output
from irtool.cli.report import Failure, note
from irtool.cli.viz.load import Drawn
from irtool.cli.writing import is_standard_output
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump, dumps_of
from irtool.ir.whole import Whole
from irtool.report.json import json_text
from irtool.report.picture.build import NoSuchScope, Wishes, picture
from irtool.report.picture.leaves import Material
from irtool.report.picture.model import Picture
from irtool.report.picture.overlay import Overlay

MANY_BOXES = 1000
"""Boxes from which dot takes long."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is to be written: what was read, the part of it that is shown, and how.

    ``layout`` says who places the boxes of an svg; None for graphviz if that can be had.
    """

    drawn: Drawn
    shown: Material
    wishes: Wishes
    overlays: Sequence[Overlay]
    layout: Literal["own", "dot"] | None = None


Writer = Callable[[Drawing, Output, "str | None"], None]


def format_of(asked: str | None, file: str | None, terminal: bool) -> str:
    """The format to write: what was asked for, else what the file's name ends with, else svg.

    Args:
        asked: ``--format``; None: it is not given.
        file: that is written; None, ``-`` or the like: standard output.
        terminal: whether the output is one.

    Raises:
        Failure: a terminal would get what only a file can hold.
    """
    form = asked
    if form is None and file is not None and not is_standard_output(file):
        ending = os.path.splitext(file)[1].lstrip(".").lower()
        form = {"gv": "dot", "htm": "html", "json": "model-explorer"}.get(ending, ending)
        if form not in WRITERS:
            known = ", ".join(WRITERS)
            raise Failure(f"which format has {file}?", hint=f"--format: {known}")
    form = form or "svg"
    if terminal and form != "dot":
        ending = {"model-explorer": "json"}.get(form, form)
        raise Failure(f"{form} is not for a terminal", hint=f"-o picture.{ending}, or > a file")
    return form


def _picture(drawing: Drawing) -> Picture:
    try:
        made = picture(drawing.shown, drawing.wishes, drawing.overlays, drawing.drawn.report)
    except NoSuchScope as error:
        hint = "irtool parse DUMP --group-by scope lists the scopes"
        raise Failure(f"--expand: there is no scope {error.args[0]}", hint=hint) from None
    most = drawing.wishes.most
    if most and len(made.boxes) > most:
        why = "for --expand" if drawing.wishes.expand else "one for each part at least"
        note(f"{len(made.boxes)} boxes, more than --max-nodes {most}: {why}")
    return made


def _dot(drawing: Drawing, output: Output, file: str | None) -> None:
    from irtool.report.picture.dot import dot_text

    output.write(dot_text(_picture(drawing), drawing.overlays))


def _svg(drawing: Drawing, output: Output, file: str | None) -> None:
    from irtool.report.picture.render import RenderError, svg_of

    made = _picture(drawing)
    if drawing.layout != "own":
        _warn_of_many(made)
    try:
        data, reason = svg_of(made, drawing.overlays, drawing.layout)
    except RenderError as error:
        raise Failure(error.message, hint=f"{error.hint}; --layout own needs none") from None
    if reason:
        note(f"drawn by irtool's own layout: {reason}")
    output.binary().write(data)


def _graphviz(format: str) -> Writer:
    def write(drawing: Drawing, output: Output, file: str | None) -> None:
        from irtool.report.picture.render import RenderError, rendered

        if drawing.layout == "own":
            raise Failure(f"--layout own draws svg, not {format}", hint="-f svg")
        made = _picture(drawing)
        _warn_of_many(made)
        try:
            data = rendered(made, format, drawing.overlays)
        except RenderError as error:
            raise Failure(error.message, hint=error.hint) from None
        output.binary().write(data)

    return write


def _warn_of_many(picture: Picture) -> None:
    boxes = len(picture.boxes)
    if boxes > MANY_BOXES and shutil.which("dot"):
        note(f"{boxes} boxes: dot may take minutes; --max-nodes 300 folds layers")


def _html(drawing: Drawing, output: Output, file: str | None) -> None:
    from irtool.report.page.graph.page import graph_page
    from irtool.report.page.write import render_page

    drawn = drawing.drawn
    is_joined = any(item.source is not None for item in drawn.whole.nodes)
    if is_joined:
        dumps = _named(drawn.whole)
        links = [(left.node, right.node, "transfer") for left, right in drawn.whole.transfers]
        page = graph_page(dumps, None, drawing.overlays, links, f"viz: {drawn.title}")
    else:
        page = graph_page(drawn.dumps[0], drawn.report, drawing.overlays)
    output.write(render_page(page))


def _named(whole: Whole) -> list[tuple[str, Dump]]:
    """The joined dumps by stage and rank; by rank alone where none sends to another."""
    ranks = {id(item.node.graph.dump): item.source for item in whole.nodes if item.node.graph}
    named = [(int(str(ranks[id(dump)])), dump) for dump in dumps_of(whole) if id(dump) in ranks]
    named.sort(key=lambda pair: pair[0])
    return [
        (f"stage {stage} · rank {rank}" if whole.transfers else f"rank {rank}", dump)
        for stage, (rank, dump) in enumerate(named)
    ]


def _model_explorer(drawing: Drawing, output: Output, file: str | None) -> None:
    from irtool.report.model_explorer.graph import graph_collection, model_explorer_graph
    from irtool.report.model_explorer.node_data import node_data

    name = drawing.drawn.title
    graph = model_explorer_graph(drawing.shown, name, drawing.drawn.report)
    output.write(json_text(graph_collection(name, [graph])))
    data = node_data(drawing.shown, name, drawing.overlays)
    if file is None or file == "-":
        note(f"node data ({', '.join(data)}) is written beside the file of -o FILE")
        return
    stem = os.path.splitext(file)[0]
    paths: list[str] = []
    for topic, content in data.items():
        paths.append(f"{stem}.{topic}.json")
        beside = Output(paths[-1])
        beside.write(json_text(content))
        beside.close()
    note(f"model-explorer {file} --node_data_paths={','.join(paths)}")


WRITERS: dict[str, Writer] = {
    "svg": _svg,
    "png": _graphviz("png"),
    "pdf": _graphviz("pdf"),
    "dot": _dot,
    "html": _html,
    "model-explorer": _model_explorer,
}
"""Writer by name of the format."""

"""The page of one dump, or of the stages of a run: nothing but the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import plural
from irtool.report.model import Answer, Explorer, Report, Tone
from irtool.report.page.graph.data import graph_data
from irtool.report.picture.overlay import Overlay
from irtool.sharding.network.report import CheckResult


def graph_page(
    dump: Dump | Sequence[tuple[str, Dump]],
    report: CheckResult | None = None,
    overlays: Iterable[Overlay] = (),
    links: Iterable[tuple[Node, Node, str]] = (),
    title: str = "",
) -> Report:
    """A page with the graph of a dump in which one can look around.

    Args:
        dump: the dump; or name and dump for each of several, such as the stages of a pipeline.
        report: what ``check`` says of it; slices, collectives and redistributions come with it.
        overlays: what other commands found; the first one colours the graph from the start.
        links: edges between dumps: producer, consumer, and what it is ("transfer").
        title: the question; by default ``viz:`` and the dump's path.
    """
    dumps = [("", dump)] if isinstance(dump, Dump) else list(dump)
    laid = list(overlays)
    count = sum(len(graph.nodes) for _, part in dumps for graph in part.graphs)
    graphs = sum(len(part.graphs) for _, part in dumps)
    answer = f"{plural(count, 'node')} in {plural(graphs, 'graph')}"
    if len(dumps) > 1:
        answer += f" of {plural(len(dumps), 'dump')}"
    unplaced = [f"{overlay.title}: {text}" for overlay in laid for text in overlay.unplaced]
    data = graph_data(dump, report, laid, links)
    return Report(
        title or f"viz: {dumps[0][1].path if dumps else ''}",
        Answer(answer, _tone(report), unplaced),
        [Explorer("Graph", data)],
    )


def _tone(report: CheckResult | None) -> Tone:
    if report is None:
        return "plain"
    return "unknown" if report.accepted is None else "good" if report.accepted else "bad"

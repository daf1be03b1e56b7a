"""``irtool cost --format html``: where a step goes, beside the graph coloured by it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.cost.costs import CAUSES
from irtool.planning.plans.cost_report import StepCost
from irtool.render.cost import CostView, answer_text, cost_document
from irtool.render.page.charts import bars
from irtool.render.page.document import document_sections, with_node_links
from irtool.render.page.graph_data import graph_data
from irtool.render.page.page import Answer, GraphSection, Page, PictureSection, Section, Tone
from irtool.render.picture.overlay import Mark, Overlay
from irtool.render.tables import Document


def cost_page(view: CostView, dump: Dump) -> Page:
    """An html page with everything.

    Args:
        view: the cost, and the report that it was made from.
        dump: the dump of that report.
    """
    tone: Tone = "bad" if view.report.accepted is False else "plain"
    document = cost_document(replace(view, limit=0))
    sections: list[Section] = list(document_sections(Document(document.blocks[1:])))
    marks = _marks(view.cost)
    sections = with_node_links(sections, list(marks))
    shares = view.cost.shares
    causes = [(str(cause), [shares[cause]]) for cause in CAUSES if shares.get(cause)]
    overlay = Overlay("cost", "cost of a step", "seconds", marks)
    sections += [
        PictureSection("A step", bars(causes, "seconds"), "Time of a step by cause"),
        GraphSection("Cost in the graph", graph_data(dump, view.report, [overlay])),
    ]
    title = view.path if view.stage is None else f"{view.path}, stage {view.stage}"
    return Page(f"cost: {title}", Answer(answer_text(view), tone), sections)


def _marks(cost: StepCost) -> dict[Node, Mark]:
    """Seconds by operator, with those of the edge that leads to it."""
    seconds: dict[Node, float] = defaultdict(float)
    for item in cost.items:
        if item.node is not None:
            seconds[item.node] += item.total
    return {node: Mark(value) for node, value in seconds.items()}

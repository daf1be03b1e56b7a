"""``irtool plan --format html``: what changes, beside the graph in which it does."""

from __future__ import annotations

from dataclasses import replace

from irtool.planning.cost.costs import CAUSES
from irtool.planning.plans.plan import Plan
from irtool.render.page.charts import bars
from irtool.render.page.document import document_sections, with_node_links
from irtool.render.page.graph_data import graph_data
from irtool.render.page.page import Answer, GraphSection, Page, PictureSection, Section, Tone
from irtool.render.picture.overlay import Mark, Overlay
from irtool.render.plan import PlanView, plan_document, strategy_text, view_text
from irtool.render.tables import Document
from irtool.render.text import shortened

_TEXT = 60


def plan_page(view: PlanView) -> Page:
    """An html page with everything."""
    plan = view.plan
    tone: Tone = "good" if plan.report.accepted else "unknown"
    document = plan_document(replace(view, limit=0))
    sections: list[Section] = list(document_sections(Document(document.blocks[1:])))
    sections = with_node_links(sections, [item.node for item in plan.operators])
    sections += [_costs(view), _graph(plan)]
    return Page(f"plan: {view.path}", Answer(view_text(view), tone, list(plan.notes)), sections)


def _costs(view: PlanView) -> PictureSection:
    """A step before and after, by cause."""
    plan = view.plan
    before = "before" if view.elastic is None else "old, fitted"
    sides = [(before, plan.before), ("after", plan.after)]
    rows = [
        (name, [cost.shares.get(cause, 0.0) for cause in CAUSES])
        for name, cost in sides
        if cost is not None
    ]
    described = "Time of a step by cause" + (", before and after" if plan.before else "")
    title = "A step" if view.staged is None else "All stages together"
    return PictureSection(title, bars(rows, "seconds", list(CAUSES)), described)


def _graph(plan: Plan) -> GraphSection:
    changes = {
        item.node: Mark(
            None,
            "changed",
            shortened(
                f"{strategy_text(item.before, item.out_before)} → "
                f"{strategy_text(item.after, item.out_after)}",
                _TEXT,
            ),
        )
        for item in plan.operators
        if item.changes
    }
    pinned = {
        item.node: Mark(None, "info", "pinned")
        for item in plan.operators
        if item.pinned and not item.changes
    }
    overlay = Overlay("plan", "strategies before → after", marks=changes | pinned)
    return GraphSection("The plan", graph_data(plan.dump, plan.report, [overlay]))

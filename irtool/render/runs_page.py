"""What ``irtool diff RUN_A RUN_B`` tells, as a page."""

from __future__ import annotations

from irtool.compare.runs import RunComparison
from irtool.compare.tensors.report import Case
from irtool.render.page.document import document_sections
from irtool.render.page.page import Answer, Page, TextSection
from irtool.render.runs import answer, runs_document
from irtool.render.tables import Document


def runs_page(found: RunComparison, case: Case | None) -> Page:
    """The same as a page."""
    lines = answer(found, case)
    document = runs_document(found, case, 0)
    tone = "bad" if found.is_suspicious else "good"
    body = Document(document.blocks[len(lines) :])
    sections = list(document_sections(body))
    title = f"{found.left.path} ↔ {found.right.path}"
    return Page(title, Answer(lines[0], tone, lines[1:]), sections or [TextSection("", [])])

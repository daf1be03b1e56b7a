"""Pages of ``irtool diff RUN_A RUN_B``: the graphs beside the answer, open where it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.compare.graph_diff import diff_graphs
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import RunSide
from irtool.compare.runs.suspects import suspects
from irtool.compare.runs.units import Settings
from irtool.compare.tensors.case import case_of
from irtool.report.diff.runs.answer import RunsView
from irtool.report.diff.runs.report import runs_report
from irtool.report.model import Explorer, Link, Report, Table
from irtool.report.page.write import render_page

SAMPLE = Path(__file__).resolve().parents[3] / "samples/gpt/20_validate_0080.ir"


def graph(page: Report) -> dict[str, Any]:
    return next(section.data for section in page.elements if isinstance(section, Explorer))


def marked(page: Report, topic: str) -> dict[str, tuple[str, str]]:
    """Severity and text of marked nodes by key."""
    data = graph(page)
    texts, keys = data["strings"], data["nodes"]["key"]
    overlay = next(each for each in data["overlays"] if each["topic"] == topic)
    return {
        texts[keys[node]]: (texts[severity], texts[text])
        for node, _, severity, text in overlay["marks"]
    }


def test_without_tensors_the_graphs_show_the_suspects(tmp_path: Path) -> None:
    changed = tmp_path / "changed.ir"
    changed.write_bytes(SAMPLE.read_bytes().replace(b"PrimFunc_GeLU(", b"PrimFunc_ReLU("))
    left, right = RunSide("a"), RunSide("b")
    left.dump, right.dump = irtool.load(SAMPLE), irtool.load(changed)
    graphs = diff_graphs(left.dump, right.dump)
    found = RunComparison(left, right, graphs, suspects=suspects(graphs))
    page = runs_report(RunsView(found), is_page=True)
    marks = marked(page, "diff")
    assert {key.split(":")[0] for key in marks} == {"left", "right"}
    assert {severity for severity, _ in marks.values()} == {"warning"}
    assert any("GeLU" in text for _, text in marks.values())
    assert "Both graphs" in render_page(page)


def test_runs_without_dumps_have_a_page_without_a_graph() -> None:
    found = RunComparison(RunSide("a"), RunSide("b"))
    page = runs_report(RunsView(found), is_page=True)
    assert not any(isinstance(section, Explorer) for section in page.elements)


@pytest.mark.corpus
def test_the_graph_is_marked_where_error_begins(corpus: Path) -> None:
    from irtool.compare.runs.sides import side_of_run
    from irtool.syntax.run import load_run

    folder = corpus / "precision" / "mindspore_cpu"
    sides = [
        side_of_run(load_run(str(folder / name)), None) for name in ("reference", "half_matmul")
    ]
    found = compare_runs(sides[0], sides[1], Settings())
    comparison = found.shown.comparison if found.shown is not None else None
    assert comparison is not None
    judged = next(item for item in comparison.judged if item.pair.left.type == "MatMul")
    page = runs_report(RunsView(found, case_of(comparison, judged)), is_page=True)
    marks = marked(page, "findings")
    accused = [key for key, mark in marks.items() if mark == ("error", "error begins here")]
    assert [key.split(":")[0] for key in accused] == ["left", "right"]
    keys = set(graph(page)["strings"])
    links = [
        cell.node
        for section in page.elements
        if isinstance(section, Table)
        for row in section.rows
        for cell in row
        if isinstance(cell, Link)
    ]
    assert links
    assert keys.issuperset(links)

"""Reports of ``irtool diff``: what people see of graphs, passes, ranks and losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.compare.losses.comparison import LossComparison, compare_losses
from irtool.compare.losses.read import read_loss
from irtool.compare.losses.series import LossRun, Series
from irtool.compare.runs.comparison import RunComparison, compare_runs, first_case
from irtool.compare.runs.hyperparameters import Row
from irtool.compare.runs.sides import RunSide, side_of_run
from irtool.compare.runs.units import Settings
from irtool.compare.series import RankClass, Step
from irtool.report.diff.graphs import DiffView, diff_answer, diff_report
from irtool.report.diff.losses import losses_report
from irtool.report.diff.runs.answer import RunsView
from irtool.report.diff.runs.report import runs_report
from irtool.report.diff.runs.sentences import sentences
from irtool.report.diff.series import passes_report, ranks_report
from irtool.report.model import Explorer, Facts, Link, Note, Picture, Report, Table
from irtool.report.plain import plain_lines
from irtool.syntax.load import load
from irtool.syntax.run import load_run

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


@pytest.fixture(scope="module")
def graphs() -> GraphDiff:
    folder = SAMPLES / "mlp_semi_auto"
    return diff_graphs(
        load(folder / "step_parallel_begin_0018.ir"), load(folder / "20_validate_0080.ir")
    )


@pytest.fixture(scope="module")
def runs() -> RunComparison:
    folder = SAMPLES / "precision"
    sides = [side_of_run(load_run(str(folder / name)), None) for name in ("reference", "tanh_gelu")]
    return compare_runs(sides[0], sides[1], Settings())


def tables(report: Report) -> dict[str, Table]:
    return {each.title: each for each in report.elements if isinstance(each, Table)}


def compared_losses(right: str) -> LossComparison:
    left, other = (
        read_loss(str(SAMPLES / "loss" / f"{name}.csv")) for name in ("reference", right)
    )
    return compare_losses(left, other)


def facts(report: Report) -> dict[str, Any]:
    return {
        label: value
        for each in report.elements
        if isinstance(each, Facts)
        for label, value in each.pairs
    }


# -- every report ----------------------------------------------------------------------------------


def test_numbers_are_values_in_every_table(graphs: GraphDiff, runs: RunComparison) -> None:
    losses = compared_losses("bfloat16")
    reports = [
        diff_report(DiffView(graphs), is_page=True),
        runs_report(RunsView(runs, first_case(runs)), is_page=True),
        losses_report(losses, is_page=True),
        passes_report("run", [Step("a", "b", graphs), Step("b", "c", None)]),
        ranks_report("run", [RankClass((0,), True, None), RankClass((1,), True, graphs)]),
    ]
    numeric = 0
    for report in reports:
        for table in tables(report).values():
            for row in table.rows:
                for cell, column in zip(row, table.columns, strict=True):
                    if column.is_numeric and cell is not None:
                        assert not isinstance(cell, str), (table.title, column.title, cell)
                        numeric += 1
    assert numeric > 100


# -- graphs ----------------------------------------------------------------------------------------


def test_text_begins_with_the_answer_and_where_it_begins(graphs: GraphDiff) -> None:
    lines = list(plain_lines(diff_report(DiffView(graphs)).blocks))
    assert lines[0] == "different: 24 edits of 19 kinds"
    assert "first difference  redistribution inserted: StridedSlice" in lines
    assert any(line.startswith("9 more results changed type only because") for line in lines)


def test_nodes_lead_into_the_graphs_of_a_page(graphs: GraphDiff) -> None:
    report = diff_report(DiffView(graphs), is_page=True)
    explorer = next(each for each in report.elements if isinstance(each, Explorer))
    links = [
        cell
        for row in tables(report)["Edits, in the order of the flow"].rows
        for cell in row
        if isinstance(cell, Link)
    ]
    links.append(facts(report)["on the right"])
    assert {link.node.split(":")[0] for link in links} == {"left", "right"}
    assert set(explorer.data["strings"]).issuperset(link.node for link in links)


def test_a_page_shows_the_statements_of_both_sides(graphs: GraphDiff) -> None:
    report = diff_report(DiffView(graphs), is_page=True)
    table = tables(report)["Side by side"]
    assert len(table.rows) == len(graphs.edits)
    statements = [cell for row in table.rows for cell in row if isinstance(cell, str)]
    assert any("\n" in text and "PrimFunc_" in text for text in statements)
    assert "Side by side" not in tables(diff_report(DiffView(graphs)))


def test_lists_are_of_the_nodes_that_are_wanted(graphs: GraphDiff) -> None:
    every = diff_answer(DiffView(graphs))
    chosen = diff_answer(DiffView(graphs, wanted=lambda node: node.op == "AllReduce"))
    assert 0 < len(chosen.only_right) < len(every.only_right)
    assert {node.op for node in chosen.only_right} == {"AllReduce"}
    assert chosen.matched == every.matched


# -- passes and ranks ------------------------------------------------------------------------------


def test_passes_without_a_change_are_one_line(graphs: GraphDiff) -> None:
    steps = [Step("0", "1", None), Step("1", "2", None), Step("2", "3", graphs)]
    report = passes_report("run", steps)
    assert report.answer.text == "1 of 3 passes changed something"
    (table,) = tables(report).values()
    assert [row[0] for row in table.rows] == ["(2 without a change)", "3"]
    before, after = steps[2].nodes
    assert table.rows[1][1:3] == [after, after - before]


def test_ranks_are_told_in_classes(graphs: GraphDiff) -> None:
    classes = [
        RankClass((0, 1), True, None),
        RankClass((2,), True, graphs),
        RankClass((3,), False, None),
    ]
    report = ranks_report("run", classes)
    assert report.answer.text == "4 ranks in 3 classes of equal graphs"
    against = [row[2] for row in tables(report)[""].rows]
    assert against[0] == "-"
    assert "collective inserted" in str(against[1])
    assert against[2] == "could not be read"
    assert list(tables(report)) == ["", "Ranks 2"]


# -- runs ------------------------------------------------------------------------------------------


def test_the_first_fault_is_the_answer(runs: RunComparison) -> None:
    report = runs_report(RunsView(runs, first_case(runs)))
    assert report.answer.tone == "bad"
    assert report.answer.text == (
        "error begins at Functional.gelu.1.forward (/home/user/train.py:26, rank 0, step 0)"
    )
    assert facts(report)["why"].endswith("3.6e-07 explained (405 times that)")


def test_settings_to_copy_keep_their_lines(graphs: GraphDiff) -> None:
    left, right = RunSide("a"), RunSide("b")
    left.dump, right.dump = graphs.left, graphs.right
    report = runs_report(RunsView(compare_runs(left, right, Settings())))
    settings = [each for each in report.elements if isinstance(each, Note) and each.verbatim]
    assert len(settings) == 2
    assert all('\n  "' in each.text for each in settings)


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ((), ["graphs: neither run has any", "tensors: neither run has any"]),
        (("b",), ["graphs: a has none", "tensors: neither run has any"]),
        (("a", "b"), ["tensors: neither run has any"]),
    ],
)
def test_what_was_not_compared_is_told(
    graphs: GraphDiff, which: tuple[str, ...], told: list[str]
) -> None:
    left, right = RunSide("a"), RunSide("b")
    left.dump = graphs.left if "a" in which else None
    right.dump = graphs.right if "b" in which else None
    missing = compare_runs(left, right, Settings()).missing
    assert missing == [*told, "losses: neither run has any"]


# -- losses ----------------------------------------------------------------------------------------


def test_text_has_a_line_of_bars_where_a_page_has_pictures() -> None:
    losses = compared_losses("halved_gradient")
    text, page = losses_report(losses), losses_report(losses, is_page=True)
    assert "█" in facts(text)["difference"]
    assert not any(isinstance(each, Picture) for each in text.elements)
    assert [each.title for each in page.elements if isinstance(each, Picture)] == [
        "Loss", "Difference",
    ]  # fmt: skip
    assert len(tables(page)["Loss by step"].rows) == 200
    assert text.answer.details == page.answer.details != []


@pytest.mark.parametrize(("steps", "pictures"), [(1, 0), (2, 2)])
def test_one_step_is_no_curve(steps: int, pictures: int, tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("step,loss\n" + "".join(f"{step},2.0\n" for step in range(steps)))
    losses = compare_losses(read_loss(str(path)), read_loss(str(path)))
    page = losses_report(losses, is_page=True)
    assert sum(isinstance(item, Picture) for item in page.elements) == pictures
    assert len(tables(page)["Loss by step"].rows) == steps


# -- sentences -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row("weight decay", "0", "0.01", False, "op0"), "weight decay: 0 | 0.01"),
        (
            Row("initial weights", "1 of 2 differ", "1 of 2 differ", False, "most at %4: 0.9"),
            "initial weights: 1 of 2 differ (most at %4: 0.9)",
        ),
    ],
)
def test_settings_that_differ_are_told_first(row: Row, told: str) -> None:
    same = Row("beta1", "0.9", "0.9", True)
    comparison = RunComparison(RunSide("a"), RunSide("b"), hyperparameters=[same, row])
    assert sentences(comparison, None)[0] == f"the runs have different settings: {told}"


@pytest.mark.parametrize(("has_tensors", "is_asked"), [(True, False), (False, True)])
def test_a_step_whose_tensors_were_compared_need_not_be_dumped(
    has_tensors: bool, is_asked: bool
) -> None:
    sides: list[RunSide] = []
    for name, factor in (("reference", 1.0), ("tanh_gelu", 1.3)):
        side = side_of_run(load_run(str(SAMPLES / "precision" / name)), None)
        values = {step: 4 + (factor > 1) * 0.004 * (-1) ** step for step in range(12)}
        values[0] = 4 * (1 + (factor > 1) * 0.002)
        side.losses = LossRun(side.path, "csv", Series(values))
        if not has_tensors:
            side.units.clear()
        sides.append(side)
    found = compare_runs(sides[0], sides[1], Settings())
    assert found.losses is not None
    assert found.losses.verdict == "different from the first step"
    texts = [
        str(each.text)
        for each in runs_report(RunsView(found, first_case(found))).elements
        if isinstance(each, Note)
    ]
    assert any("dump step 0" in text for text in texts) is is_asked

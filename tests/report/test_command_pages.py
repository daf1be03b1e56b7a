"""Pages of commands: the picture beside the answer, and tables that lead into it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import irtool
from irtool.cli.main import main
from irtool.report.model import Cell, Column, Facts, Link, Table
from irtool.report.page.cells import cell_parts
from irtool.report.page.keys import node_key
from irtool.report.page.links import with_node_links

ROOT = Path(__file__).resolve().parents[2]
MLP = "samples/mlp_semi_auto"


def page(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main([*arguments, "--format", "html"])
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        (("plan", MLP), ("A step", "The plan")),
        (("cost", MLP), ("A step", "Cost in the graph")),
        (("recover", MLP, "--lost", "1,5"), ("Devices", "What each new rank needs")),
        (("memory", MLP), ("Over one step",)),
        (("pipeline", "samples/pipeline_2_stages"), ("One step",)),
        (("check", MLP), ("Graph",)),
        (("lint", "samples/mlp_rejected"), ("samples/mlp_rejected/step_parallel_begin_0018.ir",)),
    ],
)
def test_the_picture_stands_beside_the_answer(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], titles: tuple[str, ...]
) -> None:
    if arguments[0] in ("plan", "cost", "recover"):
        pytest.importorskip("numpy")
    text = page(capsys, *arguments)
    beside = text[text.index('class="beside"') :]
    for title in titles:
        assert f">{title}</h2>" in beside


@pytest.mark.parametrize(
    "arguments",
    [
        "plan samples/mlp_semi_auto", "cost samples/mlp_semi_auto", "memory samples/mlp_semi_auto",
        "recover samples/mlp_semi_auto --lost 1,5", "pipeline samples/pipeline_2_stages",
        "check samples/mlp_semi_auto --operators --redistributions --parameters",
        "comm groups samples/pipeline_2_stages",
        "comm reuse samples/pipeline_2_stages", "comm fuse samples/mlp_semi_auto",
        "lint samples/mlp_rejected", "diff samples/mlp_grown/before samples/mlp_grown/after",
    ],
)  # fmt: skip
def test_columns_of_numbers_hold_values_and_sort_by_them(
    arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numpy")
    written: list[tuple[Cell, Column]] = []

    def watched(cell: Cell, column: Column) -> tuple[str, float | None, str | None]:
        written.append((cell, column))
        return cell_parts(cell, column)

    monkeypatch.setattr("irtool.report.page.write.cell_parts", watched)
    page(capsys, *arguments.split())
    assert written
    texts = [cell for cell, column in written if column.is_numeric and isinstance(cell, str)]
    assert [text for text in texts if text] == []


def test_ids_in_tables_lead_into_the_graph_where_they_name_one_node() -> None:
    dump = irtool.load(ROOT / MLP / "step_parallel_begin_0018.ir")
    nodes = list(dump.nodes(op="MatMul"))
    first, twin = nodes[0], next(node for node in dump.nodes() if node.id == "%0")
    table = Table("", [Column("cost"), Column("node")], [[1, first.id], [2, "%0"], [3, "-"]])
    other = Facts([("node", first.id)])
    graphs = [node for node in dump.nodes() if node.id == "%0"]
    linked, kept = with_node_links([table, other], [*nodes, twin, *graphs])
    assert isinstance(linked, Table)
    assert linked.rows[0] == [1, Link(first.id, node_key(first))]
    assert len(graphs) > 1
    assert linked.rows[1:] == [[2, "%0"], [3, "-"]]
    assert kept is other


def test_a_lost_device_and_what_each_other_becomes(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numpy")
    text = page(capsys, "recover", MLP, "--lost", "1,5")
    assert "<title>rank 1: lost</title>" in text
    assert "<title>rank 5: lost</title>" in text
    assert re.search(r"<title>rank \d goes on as rank 0</title>", text)
    assert "not needed</title>" in text

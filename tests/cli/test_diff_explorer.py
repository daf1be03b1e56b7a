"""``irtool diff --format model-explorer``: two graphs, and what joins their panes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "step_parallel_begin_0019.ir"
BEFORE, AFTER = f"samples/mlp_grown/before/{BEGIN}", f"samples/mlp_grown/after/{BEGIN}"


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def written(tmp_path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    file = tmp_path / "both.json"
    status = main(["diff", BEFORE, AFTER, "--format", "model-explorer", "-o", str(file)])
    assert status == 1
    mapping = json.loads((tmp_path / "both.mapping.json").read_text(encoding="utf-8"))
    return json.loads(file.read_text(encoding="utf-8"))["graphs"], mapping


Written = tuple[list[dict[str, Any]], dict[str, Any]]


def labels(graph: dict[str, Any]) -> dict[str, str]:
    return {node["id"]: node["label"] for node in graph["nodes"]}


def test_both_graphs_are_in_one_file(written: Written) -> None:
    graphs, _ = written
    assert [graph["id"] for graph in graphs] == ["left", "right"]


def test_the_mapping_joins_nodes_of_both_panes(written: Written) -> None:
    (left, right), mapping = written
    ours, theirs = labels(left), labels(right)
    pairs = [
        (one, other)
        for entry in mapping["mappingEntries"]
        for one in entry["leftNodeIds"]
        for other in entry["rightNodeIds"]
    ]
    assert pairs
    assert all(one in ours and other in theirs for one, other in pairs)
    assert [pair for pair in pairs if ours[pair[0]] != theirs[pair[1]]] == []


def test_only_what_was_added_is_in_no_pair(written: Written) -> None:
    (left, right), mapping = written
    entries = mapping["mappingEntries"]
    removed = labels(left).keys() - {id for each in entries for id in each["leftNodeIds"]}
    added = labels(right).keys() - {id for each in entries for id in each["rightNodeIds"]}
    assert removed == set()
    assert sorted(labels(right)[id] for id in added) == [
        "ApplyMomentum", "EnvironGet", "MatMul", "ReLU", "RefToEmbed", "ZerosLike",
        "added0.weight", "moments.added0.weight",
    ]  # fmt: skip


def test_without_a_file_the_mapping_is_said_to_be_missing(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["diff", BEFORE, AFTER, "--format", "model-explorer"]) == 1
    caught = capfdbinary.readouterr()
    assert len(json.loads(caught.out)["graphs"]) == 2
    assert b"the mapping" in caught.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--passes", "samples/mlp_semi_auto"],
        ["--ranks", "samples/pipeline_run"],
        ["--loss", "samples/loss/reference.csv", "samples/loss/bfloat16.csv"],
    ],
)
def test_other_questions_have_no_two_graphs(
    arguments: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["diff", *arguments, "--format", "model-explorer"]) == 2
    assert b"model-explorer shows two graphs" in capfdbinary.readouterr().err


def test_a_page_shows_both_graphs_beside_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "diff.html"
    assert main(["diff", BEFORE, AFTER, "--format", "html", "-o", str(file)]) == 1
    text = file.read_text(encoding="utf-8")
    assert "Both graphs" in text
    assert text.index("<h1") < text.index("Both graphs")

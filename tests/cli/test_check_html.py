"""``irtool check --format html``: the page holds what the terminal shows."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

ROOT = Path(__file__).resolve().parents[2]

Page = Callable[..., tuple[int, str, Any]]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Status, text and data of the page that a command line writes."""
    monkeypatch.chdir(ROOT)

    def run(*arguments: str) -> tuple[int, str, Any]:
        file = tmp_path / "page.html"
        status = main([*arguments, "--format", "html", "-o", str(file)])
        text = file.read_text(encoding="utf-8")
        found = re.search(r'id="data">([^<]*)</script>', text)
        assert found is not None
        return status, text, json.loads(zlib.decompress(base64.b64decode(found[1]), -15))

    return run


def titles(text: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", text)


def test_a_refused_network(page: Page) -> None:
    status, text, data = page("check", "samples/mlp_rejected")
    assert status == 1
    assert 'class="answer bad"' in text
    assert "refused, for 1 reason" in text
    assert titles(text)[:3] == ["1 finding", "Graph", "Operators"]
    assert "axis-mismatch" in text
    assert "in_strategy ((2, 4), (1, 4))" in text
    (marks,) = (overlay["marks"] for overlay in data["graph"]["overlays"])
    strings, nodes = data["graph"]["strings"], data["graph"]["nodes"]
    assert [(strings[nodes["id"][n]], strings[severity]) for n, _, severity, _ in marks] == [
        ("%8", "error")
    ]


def test_an_accepted_network(page: Page) -> None:
    status, text, data = page("check", "samples/gpt/step_parallel_begin_0018.ir")
    assert status == 0
    assert 'class="answer good"' in text
    assert {"Collectives of a step, by group", "Operators", "Redistributions", "Graph"} <= set(
        titles(text)
    )
    collectives, operators, *_ = data["tables"]
    assert len(operators) == 57
    assert collectives[0][0][0] == "AllReduce"
    assert collectives[0][2][:2] == ["128.0 KiB", 131072]
    assert data["graph"]["overlays"] == []


def test_nodes_in_tables_lead_to_the_graph(page: Page) -> None:
    _, _, data = page("check", "samples/gpt/step_parallel_begin_0018.ir")
    graph = data["graph"]
    known = {graph["strings"][key] for key in graph["nodes"]["key"]}
    links = {cell[2] for table in data["tables"] for row in table for cell in row if cell[2]}
    assert len(links) > 50
    assert links <= known


def test_the_comparison_with_a_later_dump(page: Page) -> None:
    status, text, _ = page(
        "check", "samples/gpt/step_parallel_begin_0018.ir", "--against",
        "samples/gpt/20_validate_0080.ir",
    )  # fmt: skip
    assert status == 0
    assert any("20_validate_0080.ir" in title for title in titles(text))


def test_why_a_node_is_there(page: Page) -> None:
    status, text, data = page("check", "samples/gpt", "--why", "%30")
    assert status == 0
    assert "forward reduction" in text
    assert len(data["graph"]["overlays"][0]["marks"]) == 1

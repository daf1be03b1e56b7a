"""Where things stand on a page, measured in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irtool.cli.main import app
from tests.report.page.conftest import wait

Opened = Callable[[str], Any]

QUESTIONS = (
    "check mlp_rejected/step_parallel_begin_0018.ir",
    "check mlp_semi_auto/step_parallel_begin_0018.ir --against mlp_semi_auto/20_validate_0080.ir",
    "cost mlp_recursive_search/step_parallel_begin_0019.ir --devices 8",
    "plan mlp_recursive_search/step_parallel_begin_0019.ir --devices 8",
    "comm groups gpt/20_validate_0080.ir",
    "comm hang hang_one_strategy",
    "comm reuse gpt/20_validate_0080.ir",
    "comm fuse gpt/20_validate_0080.ir",
    "memory gpt/20_validate_0080.ir",
    "pipeline pipeline_2_stages",
    "recover mlp_semi_auto --lost 5",
    "diff mlp_grown/before mlp_grown/after",
    "diff precision/reference precision/tanh_gelu",
    "doctor mlp_rejected",
    "lint mlp_rejected",
)
"""One of each kind of page."""

OVERFLOWING = """
return [...document.querySelectorAll(".scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label"))
"""


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_table_has_the_width_that_it_needs(
    question: str, opened: Opened, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples)
    page = CliRunner().invoke(app, [*question.split(), "--format", "html"]).stdout
    browser = opened(page)
    assert browser.execute_script("return innerWidth") == 1400
    assert browser.execute_script(OVERFLOWING) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == 1400


CROSSED = """
const corners = (item, inset) => {
  const box = item.getBoundingClientRect();
  return [box.left + inset, box.top + inset, box.right - inset, box.bottom - inset];
};
const inside = ([x, y], [left, top, right, bottom]) =>
  left < x && x < right && top < y && y < bottom;
const all = (selector, inset) =>
  [...document.querySelectorAll(selector)].map((item) => corners(item, inset));
const closed = all(".box:not(.open) .body", 3);
const titles = all(".box.open .title", 0);
const crossed = { boxes: 0, titles: 0, lines: 0 };
for (const line of document.querySelectorAll("path.line:not(.far)")) {
  crossed.lines += 1;
  const matrix = line.getScreenCTM();
  const length = line.getTotalLength();
  const points = [];
  for (let at = 0; at <= length; at += 3) {
    const point = line.getPointAtLength(at).matrixTransform(matrix);
    points.push([point.x, point.y]);
  }
  for (const box of closed) crossed.boxes += points.some((point) => inside(point, box));
  for (const box of titles) crossed.titles += points.some((point) => inside(point, box));
}
return crossed;
"""


@pytest.mark.parametrize("path", ["gpt/20_validate_0080.ir", "moe", "optimizer_parallel", "layout"])
def test_no_line_runs_through_a_box_or_a_title(path: str, opened: Opened, samples: Path) -> None:
    page = CliRunner().invoke(app, ["viz", str(samples / path), "--format", "html"]).stdout
    browser = opened(page)
    wait(browser, "return document.querySelectorAll('path.line').length")
    crossed = browser.execute_script(CROSSED)
    assert crossed["lines"] > 10
    assert (crossed["boxes"], crossed["titles"]) == (0, 0)


def test_text_before_the_first_table_stands_beside_the_picture(
    opened: Opened, samples: Path
) -> None:
    path = str(samples / "gpt" / "20_validate_0080.ir")
    page = CliRunner().invoke(app, ["memory", path, "--format", "html"]).stdout
    browser = opened(page)
    facts, picture, table = (
        browser.execute_script(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]",
            selector,
        )
        for selector in (".of-facts", ".of-picture", ".of-table")
    )
    assert facts[2] <= picture[0]
    assert facts[1] == pytest.approx(picture[1], abs=40)
    assert table[1] >= max(facts[3], picture[3])


def test_a_graph_below_short_text_has_the_whole_width(opened: Opened, samples: Path) -> None:
    path = str(samples / "mlp_rejected")
    browser = opened(CliRunner().invoke(app, ["check", path, "--format", "html"]).stdout)
    wait(browser, "return document.querySelectorAll('path.line').length")
    text, graph = (
        browser.execute_script(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]",
            selector,
        )
        for selector in (".column", ".of-graph")
    )
    assert text[3] <= graph[1]
    assert graph[2] - graph[0] > 0.9 * 1400

"""The scripts of pages: what of them a page holds."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from irtool.report.model import Answer, Explorer, Report
from irtool.report.page.write import render_page, without_comments

ASSETS = files("irtool.report.page") / "assets"
SCRIPTS = sorted(item.name for item in ASSETS.iterdir() if item.name.endswith(".js"))


def text_of(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def test_a_page_with_a_graph_holds_every_script() -> None:
    page = render_page(Report("t", Answer("a"), [Explorer("g", {})]))
    assert len(SCRIPTS) > 5
    for name in SCRIPTS:
        assert without_comments(text_of(name)) in page, name


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_line_of_a_script_on_a_page_is_a_comment(name: str) -> None:
    lines = without_comments(text_of(name)).splitlines()
    assert [line for line in lines if re.match(r"\s*(//|/\*\*(?!.*\*/.)|\* )", line)] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_text_in_a_script_goes_over_several_lines(name: str) -> None:
    """In one that did, a line could look like a comment without being one."""
    code = without_comments(text_of(name))
    assert [line for line in code.splitlines() if line.count("`") % 2 or line.endswith("\\")] == []


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("// words\ncode();\n", "code();\n"),
        ("  // words\n\n  code();\n", "\n  code();\n"),
        ("/** @param {A} a */\ncode();\n", "code();\n"),
        ("  /**\n   * Words * and more.\n   */\n  code();\n", "  code();\n"),
        ("/** one */\n/** two */ \ncode();\n/** three */\n", "code();\n"),
        ("code(); // why\n", "code(); // why\n"),
        (
            "/** @type {A} */ (code)();\nmore();\n/** b */\n",
            "/** @type {A} */ (code)();\nmore();\n",
        ),
        ('const address = "http://a";\n', 'const address = "http://a";\n'),
        ("const all = a\n  * b;\n", "const all = a\n  * b;\n"),
        ("const form = /^\\/\\/x/;\n", "const form = /^\\/\\/x/;\n"),
    ],
)
def test_lines_that_hold_nothing_but_a_comment_go(script: str, left: str) -> None:
    assert without_comments(script) == left

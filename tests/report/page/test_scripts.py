"""The scripts of pages: what of them a page holds, their types, and their faults."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

import irtool
from irtool.report.model import Explorer
from irtool.report.page.graph.data import graph_data
from irtool.report.page.write import without_comments
from irtool.report.picture.overlay import Overlay, OverlaySeverity
from tests.report.page.test_write import page, payload

ROOT = Path(__file__).resolve().parents[3]
ASSETS = files("irtool.report.page") / "assets"
SCRIPTS = sorted(item.name for item in ASSETS.iterdir() if item.name.endswith(".js"))


def text_of(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def test_a_page_with_a_graph_holds_every_script() -> None:
    text = page(Explorer("g", {}))
    assert len(SCRIPTS) > 5
    for name in SCRIPTS:
        assert without_comments(text_of(name)) in text, name


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


# -- types and faults --------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["tsc -p jsconfig.json", "biome lint --error-on-warnings"])
def test_the_scripts_have_neither_errors_of_types_nor_faults(tool: str) -> None:
    name, *options = tool.split()
    program = shutil.which(name, path=str(ROOT / "node_modules" / ".bin"))
    if program is None:
        pytest.skip(f"{name} is not installed here: npm ci")
    done = subprocess.run(
        [program, *options], cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_checked_is_what_ci_checks() -> None:
    package = (ROOT / "package.json").read_text(encoding="utf-8")
    assert '"check": "tsc -p jsconfig.json && biome lint --error-on-warnings"' in package
    assert "npm run check" in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_every_function_of_the_scripts_is_called() -> None:
    """The type checker sees no use of a name of a script, as any other script might use it."""
    code = "".join(without_comments(text_of(name)) for name in SCRIPTS)
    names = re.findall(r"^(?:async )?(?:function|class|const) (\w+)", code, re.MULTILINE)
    assert len(names) > 100
    unused = {name for name in names if len(re.findall(rf"\b{name}\b", code)) < 2}
    assert unused <= {"start"}  # which the page calls


def fields(interface: str) -> set[str]:
    """Names of the fields of an interface in types.d.ts."""
    form = rf"^interface {interface} {{\n([^}}]*)^}}"
    body = re.search(form, text_of("types.d.ts"), re.MULTILINE)
    assert body is not None
    return set(re.findall(r"^  (\w+)\??:", body[1], re.MULTILINE))


def words(type: str) -> set[str]:
    """The texts that a type of types.d.ts allows."""
    union = re.search(rf"^type {type} = ([^;]*);", text_of("types.d.ts"), re.MULTILINE)
    assert union is not None
    return set(re.findall(r'"(\w+)"', union[1]))


def test_the_types_name_what_is_written(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes())
    data = graph_data(dump, overlays=[Overlay("cost", "cost")], first=node)
    assert fields("GraphData") == data.keys()
    assert fields("OverlayData") == data["overlays"][0].keys()
    assert words("TextColumn") | words("NumberColumn") | {"facts"} == data["nodes"].keys()
    assert words("GroupTextColumn") | {"parent"} == data["groups"].keys()


def test_the_types_name_what_a_page_holds() -> None:
    assert fields("PageData") == payload(page()).keys()


def test_the_types_know_every_severity() -> None:
    assert words("Severity") == set(get_args(OverlaySeverity))

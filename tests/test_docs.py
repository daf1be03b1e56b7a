"""What pages show is run: commands with their outputs, Python, the notebook, the site itself."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import site
from irtool.cli.commands import COMMANDS
from irtool.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if not path.name.startswith("json-"))
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:bash|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = {"...", "…"}
"""Lines that stand for any number of lines."""
ELSEWHERE = {
    "irtool comm hang RUN": "a run of the corpus",
    "irtool gate golden/20_validate.ir build/20_validate_0080.ir": "a build of one's own",
    "irtool check step_parallel_begin_0001.ir --operators": "behind cd samples/custom_rules",
}
"""Commands with outputs that cannot be had here, and why."""


def shown() -> Iterator[tuple[str, str, str]]:
    """Page, command, and what it is said to print."""
    for page in PAGES:
        for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("irtool ") and output.strip():
                    yield page.name, command, output.rstrip()


def called() -> Iterator[tuple[str, str]]:
    """Every other line of a page that starts with irtool."""
    with_output = {(page, command) for page, command, _ in shown()}
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            joined = re.sub(r"\\\n\s*", " ", block)
            for line in joined.splitlines():
                command = line.removeprefix("$ ").strip()
                if command.startswith("irtool ") and (page.name, command) not in with_output:
                    yield page.name, command


@pytest.fixture(autouse=True)
def beside_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with ``samples/``, as a clone is: commands that write leave nothing in ours."""
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "samples").symlink_to(ROOT / "samples", target_is_directory=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")


def first_missing(expected: str, output: str) -> str | None:
    """The first line that is not printed where it should be; a page may leave out others."""
    printed = [line.rstrip() for line in output.splitlines()]
    at, anywhere = 0, False
    for line in expected.splitlines():
        if line.strip() in LEFT_OUT:
            anywhere = True
            continue
        rest = printed[at:] if anywhere else printed[at : at + 1]
        if line.rstrip() not in rest:
            return line
        at += rest.index(line.rstrip()) + 1
        anywhere = False
    return None


@pytest.mark.parametrize(
    ("page", "command", "output"),
    [(page, command, output) for page, command, output in shown() if command not in ELSEWHERE],
)
def test_pages_show_what_commands_print(page: str, command: str, output: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
    assert first_missing(output, result.output) is None, result.output


def test_commands_that_are_not_run_are_there() -> None:
    assert set(ELSEWHERE) <= {command for _, command, _ in shown()}


def words_of(command: str) -> list[str]:
    """What stands behind ``irtool``, without what a shell does with the output."""
    return shlex.split(re.split(r"\s(?:\||>|2>|&&|;)", command)[0], comments=True)[1:]


@pytest.mark.parametrize(
    "command", sorted({command for _, command in called() if " samples/" in command})
)
def test_what_pages_ask_of_samples_is_answered(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = CliRunner().invoke(app, words_of(command))
    if "Graphviz" in result.output and result.exit_code == 2:
        pytest.skip("a picture of this kind needs graphviz")
    assert result.exit_code in (0, 1), result.output


@pytest.mark.parametrize(("page", "command"), sorted(set(called())))
def test_pages_call_irtool_with_options_that_it_has(page: str, command: str) -> None:
    words = words_of(command)
    root: Any = app
    at, context = root, root.make_context("irtool", [], resilient_parsing=True)
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        words = ["doctor", *words]  # a folder alone is a run
    while words and hasattr(at, "commands") | (at is root) and not words[0].startswith("-"):
        name = words.pop(0)
        at = at.get_command(context, name)
        assert at is not None, f"{page}: {name}"
        if hasattr(at, "commands"):
            context = at.make_context(name, [], parent=context, resilient_parsing=True)
    if at is not root:
        at.make_context(at.name, words, parent=context)


def test_a_line_that_is_not_printed_is_told() -> None:
    assert first_missing("a\n...\nc", "a\nb\nc\n") is None
    assert first_missing("a\nc", "a\nb\nc\n") == "c"
    assert first_missing("...\nd", "a\nb\nc\n") == "d"


# -- Python ----------------------------------------------------------------------------------------


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if page.name == "library.md":  # where one block uses what the one before made
            yield page.name, "\n".join(blocks)


@pytest.mark.parametrize(("page", "code"), list(python_blocks()))
def test_pages_show_python_that_runs(page: str, code: str) -> None:
    pytest.importorskip("pyarrow")
    kept = "\n".join(line for line in code.splitlines() if "to_pandas" not in line)
    exec(compile(kept, page, "exec"), {"__name__": "page"})


def test_the_notebook_runs_from_the_sick_run_to_its_cure() -> None:
    notebook = json.loads((DOCS / "sick-run.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    names: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert cell["outputs"] == [], "outputs are made where it is read"
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert names["refused"].result.accepted is False
    assert names["cured"].result.accepted is True
    assert "(1, 4)" in str(names["edit"])


# -- the site --------------------------------------------------------------------------------------


def test_links_of_pages_lead_to_files() -> None:
    made = set(site.generated())
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists() and target not in made
    ]
    assert missing == []


def test_links_out_of_the_site_lead_to_the_repository_or_are_text() -> None:
    text = "see [the README](../irtool/report/README.md) and [plan](plan.md)"
    led = site.inside_links(text, "check.md", "https://host/irtool")
    assert "(https://host/irtool/blob/main/irtool/report/README.md)" in led
    assert "[plan](plan.md)" in led
    assert site.inside_links(text, "check.md", "") == "see the README and [plan](plan.md)"


def test_the_site_is_made_of_the_program() -> None:
    made = site.generated()
    commands = made["reference/commands.md"]
    assert all(f"## irtool {name}\n" in commands for name in COMMANDS)
    assert "`--open`" in commands
    assert "| MatMul |" in made["reference/operators.md"]
    library = made["reference/api.md"]
    assert "\ncheck(source: Source, context: Context = None" in library
    assert '```python\n>>> answer = irtool.check("samples/mlp_rejected")\n' in library
    assert "- `users`: " in library
    assert "- `to_dict()`: " in library
    assert "json-check.md" in made["reference/json.md"]


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="irtool[docs] is not here")
    pytest.importorskip("material", reason="irtool[docs] is not here")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reference" / "commands" / "index.html").exists()

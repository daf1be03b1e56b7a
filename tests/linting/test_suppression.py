"""Suppression: comments in the Python source, scopes and files of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.ir.finding import Finding, SourceLine
from irtool.linting.registry import own_rules
from irtool.linting.settings import read_settings
from irtool.linting.sources import SourceFiles
from irtool.linting.suppression import Suppressions, apply_ignores

CODE = "x = self.matmul(x, w)"


def finding(line: int, path: str = "net.py", code: str = "STR001", text: str = CODE) -> Finding:
    source = SourceLine(path, line, text=text)
    outer = SourceLine("train.py", 2, text="loss = net(x)")
    return Finding(code, "warning", "wrong", "a.ir", 7, source=source, frames=(outer, source))


def suppressed(
    folder: Path, source: str, found: Finding, mapping: tuple[tuple[str, str], ...] = ()
) -> str:
    (folder / "net.py").write_text(source)
    comments = Suppressions(SourceFiles(mapping, str(folder)), own_rules())
    return comments.apply([found])[0].suppressed


@pytest.mark.parametrize(
    ("source", "answers"),
    [
        (f"{CODE}  # irtool: ignore[STR001]", True),
        (f"{CODE}  # irtool: ignore[STR001, COM] since it is small", True),
        (f"{CODE}  # irtool: ignore[STR]", True),
        (f"{CODE}  # irtool: ignore[illegal-strategy]", True),
        (f"{CODE}  # irtool: ignore", True),
        (f"{CODE}  # noqa  # irtool: ignore[STR001]", True),
        (f"# irtool: ignore[STR001]\n{CODE}", True),
        (f"# irtool: ignore-file[STR001]\n\n{CODE}", True),
        (f"{CODE}  # irtool: ignore[COM]", False),
        (f"{CODE}  # irtool: ignored", False),
        (f"s = '# irtool: ignore'; {CODE}", False),
        (f"{CODE}\n# irtool: ignore[STR001]\ny = 1", False),
        (CODE, False),
    ],
)
def test_a_comment_answers_for_its_statement(tmp_path: Path, source: str, answers: bool) -> None:
    line = source.split("\n").index(next(s for s in source.split("\n") if CODE in s)) + 1
    text = source.split("\n")[line - 1].partition("  #")[0]
    assert bool(suppressed(tmp_path, source, finding(line, text=text))) is answers


def test_a_comment_at_a_call_answers_for_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\nloss = net(x)  # irtool: ignore[STR001]\n")
    assert suppressed(tmp_path, CODE, finding(1)) == "train.py:2"


def test_a_statement_of_several_lines_may_bear_it_on_any(tmp_path: Path) -> None:
    source = "x = self.matmul(\n    x,\n    w,  # irtool: ignore[STR001]\n)\n"
    frame = SourceLine("net.py", 1, 4, text="x = self.matmul(")
    found = Finding("STR001", "warning", "wrong", "a.ir", frames=(frame,))
    assert suppressed(tmp_path, source, found) == "net.py:3"


def test_a_file_that_changed_since_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("y = 3  # irtool: ignore\n")
    comments = Suppressions(SourceFiles((), str(tmp_path)), own_rules())
    assert comments.apply([finding(1)])[0].suppressed == ""
    assert comments.changed == {"net.py"}


def test_a_dump_of_another_machine_finds_the_file_by_the_end_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "net.py").write_text(f"{CODE}  # irtool: ignore[STR001]\n")
    comments = Suppressions(SourceFiles((), str(tmp_path)), own_rules())
    found = finding(1, "/home/ci/build/model/net.py")
    assert comments.apply([found])[0].suppressed == "model/net.py:1"


def test_a_mapping_says_where_paths_lead(tmp_path: Path) -> None:
    source = f"{CODE}  # irtool: ignore[STR001]"
    found = finding(1, "/build/42/src/net.py")
    assert suppressed(tmp_path, source, found, (("/build/42/src", "."),)) == "net.py:1"


def test_a_comment_that_names_no_rule_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"{CODE}  # irtool: ignore[STR0001]\n")
    comments = Suppressions(SourceFiles((), str(tmp_path)), own_rules())
    assert comments.apply([finding(1)])[0].suppressed == ""
    complaint = comments.complaints(["ENG002", "ENG003"])
    assert [(each.code, each.file, each.line) for each in complaint] == [("ENG002", "net.py", 1)]


def test_a_comment_that_nothing_needs_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"{CODE}\ny = 1  # irtool: ignore[COM]\n")
    comments = Suppressions(SourceFiles((), str(tmp_path)), own_rules())
    comments.apply([finding(1)])
    assert [(each.code, each.line) for each in comments.complaints(["ENG003"])] == [("ENG003", 2)]
    assert comments.complaints(["ENG002"]) == []


@pytest.mark.parametrize(
    ("table", "scope", "answers"),
    [
        ({"per-scope-ignores": {"layers.1": ["STR"]}}, "Default/layers.1-Cell", True),
        ({"per-scope-ignores": {"layers.1": ["STR"]}}, "Default/layers.10-Cell", False),
        ({"per-scope-ignores": {"layers.1": ["COM"]}}, "Default/layers.1-Cell", False),
        ({"per-scope-ignores": {"Default/*/mlp*": ["STR"]}}, "Default/a/mlp-Cell", True),
        ({"per-file-ignores": {"eval/*.ir": ["STR001"]}}, None, True),
        ({"per-file-ignores": {"train/*.ir": ["STR001"]}}, None, False),
    ],
)
def test_settings_answer_by_scope_and_file(
    table: dict[str, object], scope: str | None, answers: bool
) -> None:
    found = Finding("STR001", "warning", "wrong", "run/eval/a.ir", scope=scope)
    settings = read_settings(table)
    marked = apply_ignores([found], settings, own_rules(), lambda each: each.file)
    assert bool(marked[0].suppressed) is answers

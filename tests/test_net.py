"""The net: no answer on the samples changes unnoticed.

``python benchmarks/net.py`` tells by class what changed, ``--record`` keeps the answers of now.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from benchmarks import net, net_answers, net_changes, net_questions
from benchmarks.net_answers import Answer
from benchmarks.net_questions import Question

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths in the kept answers have slashes")

ASKED: dict[str, list[Question]] = {}
"""Questions by the file that keeps their answers: what one command says of one material."""
for _question in net_questions.kept_questions(ROOT):
    ASKED.setdefault(net.file_of(_question).as_posix(), []).append(_question)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("IRTOOL_DEBUG", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.mark.parametrize("file", ASKED)
def test_answers_are_those_that_are_kept(file: str, prepared: None) -> None:
    changes = net.compare_kept(net.kept_now(ASKED[file]), whole=False)
    assert not changes, "\n".join(
        [*net_changes.told(changes), "is it meant? python benchmarks/net.py --record"]
    )


def test_nothing_else_is_kept() -> None:
    kept = (path.relative_to(net.KEPT).as_posix() for path in net.KEPT.rglob("*.txt"))
    assert sorted(kept) == sorted(ASKED)


def test_kept_answers_are_small() -> None:
    assert sum(path.stat().st_size for path in net.KEPT.rglob("*.txt")) < 7_500_000


def test_no_command_breaks_or_hangs() -> None:
    for path in sorted(net.KEPT.rglob("*.txt")):
        for line, sections in net_answers.read_kept(path.read_text(encoding="utf-8")).items():
            assert re.fullmatch("[012]", sections["exit"][0]), f"{line}: {sections['exit'][0]}"


def test_every_command_is_asked_in_every_format_at_least_twice() -> None:
    asked = [question for questions in ASKED.values() for question in questions]
    for command, kinds in net_questions.formats().items():
        for kind in kinds:
            if (command, kind) in net_questions.DRAWN_BY_GRAPHVIZ:
                continue
            found = {item.words for item in asked if (item.command, item.format) == (command, kind)}
            assert len(found) >= 2, f"irtool {command} --format {kind}"


# -- what a change alters ------------------------------------------------------------------------

QUESTION = Question("gpt", "check", ("gpt.ir",), "json")
TABLE = Question("gpt", "check", ("gpt.ir",), "table")


def changes_of(old: Answer | None, new: Answer | None, question: Question = QUESTION) -> list[str]:
    kept = [
        None
        if answer is None
        else net_answers.read_kept(net_answers.kept_text([(question, answer)]))[question.line]
        for answer in (old, new)
    ]
    changes: net_changes.Changes = {}
    net_changes.compare(changes, question.line, *kept)
    return [f"{found.kind}: {found.where}" for found in changes]


def answer(status: str = "0", **sections: tuple[str, ...]) -> Answer:
    return Answer(status, sections)


def test_an_answer_that_stays_is_no_change() -> None:
    one = answer(accepted=("true",), bytes=("1", "1", "2"))
    assert changes_of(one, one) == []


def test_classes_of_change() -> None:
    old = answer(bytes=("1", "2"), gone=("1",))
    assert changes_of(old, answer(bytes=("1", "3"), more=("1",))) == [
        "value changed: bytes",
        "key removed: gone",
        "key added: more",
    ]
    assert changes_of(answer(), answer("internal error (2)")) == [
        "exit status: 0 → internal error (9)"
    ]
    failed = Answer("2", {net_answers.ERRORS: ("irtool: error[CTX003]: how many?",)})
    assert changes_of(failed, old) == ["exit status: 2 → 0", "answer where there was none: "]
    assert changes_of(old, failed) == ["exit status: 0 → 2", "no answer where there was one: "]
    assert changes_of(None, answer()) == ["answer added: "]
    assert changes_of(answer(), None) == ["answer removed: "]


def test_lines_of_one_shape_are_one_class() -> None:
    old = Answer("0", {net_answers.LINES: ("MatMul 12 B", "Add 13 B", "done")})
    new = Answer("0", {net_answers.LINES: ("MatMul 24 B", "Add 26 B", "done", "more")})
    assert changes_of(old, new, TABLE) == [
        "line changed: MatMul 9 B",
        "line changed: Add 9 B",
        "line added: more",
    ]
    wider = Answer("0", {net_answers.LINES: ("MatMul  12 B", "Add     13 B", "done")})
    assert changes_of(old, wider, TABLE) == ["spacing: "]


def test_a_change_behind_what_is_kept_is_seen() -> None:
    values = tuple(str(number) for number in range(1000))
    assert changes_of(answer(bytes=values), answer(bytes=(*values[:-1], "0"))) == [
        "value changed: bytes"
    ]
    lines = {net_answers.LINES: tuple(f"line {number}" for number in range(1000))}
    other = {net_answers.LINES: (*lines[net_answers.LINES][:-1], "line 0")}
    assert changes_of(Answer("0", lines), Answer("0", other), TABLE) != []


def test_answers_to_some_questions_are_kept_beside_the_others() -> None:
    one, other = net_answers.kept_text([(QUESTION, answer("0")), (TABLE, answer("1"))]), answer("2")
    new = net_answers.kept_text([(TABLE, other)])
    assert net_answers.joined(one, new) == net_answers.kept_text(
        [(QUESTION, answer("0")), (TABLE, other)]
    )
    assert net_answers.joined("", new) == new


def test_what_differs_from_run_to_run_is_left_out(prepared: None) -> None:
    question = Question("mlp", "plan", (net_questions.BEGIN,), "json")
    assert net_answers.ask(question).sections["seconds"] == ("TIME",)


def test_what_the_checkout_is_called_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question("run", "viz", ("samples/pipeline_2_stages", "--whole"), "dot")
    found = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        shutil.copytree(ROOT / "samples/pipeline_2_stages", tmp_path / name / question.words[0])
        monkeypatch.chdir(tmp_path / name)
        found.append(net_answers.ask(question))
    assert found[0] == found[1]
    assert found[0].status == "0"

"""Quick fixes: what they write is what makes the finding go away."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol.types import CodeAction, Position, Range, TextEdit

from irtool.editor.document import Document
from irtool.editor.features.actions import actions, strategy_place
from irtool.editor.features.diagnostics import diagnostics
from irtool.editor.text import Text
from tests.editor.opened import BEGIN, REJECTED, opened, text_in

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINE = "        return self.bias_add(self.matmul(x, self.weight), self.bias)"
WHOLE = Range(Position(0, 0), Position(100_000, 0))


def edits(action: CodeAction) -> tuple[str, Sequence[TextEdit]]:
    """The URI and edits of an action that changes one file that is there."""
    assert action.edit is not None
    assert action.edit.changes is not None
    ((uri, found),) = action.edit.changes.items()
    return uri, found


def applied(text: Text, found: Sequence[TextEdit]) -> str:
    for edit in found:
        text = text.replaced(edit.range, edit.new_text)
    return text.content


def titled(found: list[CodeAction], beginning: str) -> list[CodeAction]:
    return [action for action in found if action.title.startswith(beginning)]


def test_each_proposed_strategy_makes_the_dump_legal() -> None:
    document = opened(REJECTED, answered=True)
    offered = titled(actions(document, WHOLE), "Write in_strategy")
    assert [action.is_preferred for action in offered] == [True, False, False]
    for action in offered:
        uri, found = edits(action)
        assert uri == document.uri
        mended = opened(REJECTED, applied(document.text, found), answered=True)
        messages = [each.message for each in diagnostics(mended)]
        assert not any("the dimension that is summed up" in message for message in messages)


def test_an_action_names_the_diagnostics_that_it_answers() -> None:
    document = opened(REJECTED, answered=True)
    shown = diagnostics(document)
    for action in actions(document, shown[0].range, shown):
        assert action.diagnostics == shown


def test_there_is_nothing_to_do_elsewhere_or_where_all_is_well() -> None:
    document = opened(REJECTED, answered=True)
    assert actions(document, Range(Position(0, 0), Position(20, 0))) == []
    assert actions(opened(BEGIN, answered=True), WHOLE) == []


@pytest.mark.parametrize("name", [BEGIN, REJECTED, "gpt/step_parallel_begin_0018.ir"])
def test_the_place_of_a_strategy_holds_it(name: str) -> None:
    document = opened(name)
    nodes = [node for node in document.dump.nodes() if node.in_strategy is not None]
    assert nodes
    for node in nodes:
        place = strategy_place(document, node)
        assert place is not None
        text = text_in(document, place[0])
        assert text.startswith("((")
        assert text.count("(") == text.count(")")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text("\n".join([*[""] * 32, LINE, ""]), encoding="utf-8")
    return path


def suppressed(document: Document, path: Path) -> Document:
    (action,) = titled(actions(document, WHOLE), "Ignore STR001 in net.py:33")
    uri, found = edits(action)
    assert uri == path.as_uri()
    path.write_text(applied(Text(path.read_text(encoding="utf-8")), found), encoding="utf-8")
    return opened(REJECTED, folder=path.parent, answered=True)


def test_a_comment_in_python_answers_for_a_finding(python: Path) -> None:
    document = opened(REJECTED, folder=python.parent, answered=True)
    after = suppressed(document, python)
    line = python.read_text(encoding="utf-8").splitlines()[32]
    assert line == f"{LINE}  # irtool: ignore[STR001]"
    assert [each.code for each in after.answers.findings] == []


def test_a_comment_that_is_there_gets_one_more_code(python: Path) -> None:
    text = python.read_text(encoding="utf-8")
    python.write_text(text.replace(LINE, f"{LINE}  # irtool: ignore[COM001]"), encoding="utf-8")
    suppressed(opened(REJECTED, folder=python.parent, answered=True), python)
    line = python.read_text(encoding="utf-8").splitlines()[32]
    assert line.endswith("# irtool: ignore[COM001, STR001]")


def test_a_line_of_python_that_has_changed_is_left_alone(python: Path) -> None:
    python.write_text("\n" * 32 + "        return other(x)\n", encoding="utf-8")
    document = opened(REJECTED, folder=python.parent, answered=True)
    assert titled(actions(document, WHOLE), "Ignore STR001 in net.py") == []


def setting(folder: Path) -> CodeAction:
    document = opened(REJECTED, folder=folder, answered=True)
    (action,) = titled(actions(document, WHOLE), "Ignore STR001 in the scope")
    return action


def test_settings_are_made_where_there_are_none(tmp_path: Path) -> None:
    edit = setting(tmp_path).edit
    assert edit is not None
    created, written = edit.document_changes or ()
    assert created.uri == (tmp_path / "irtool.toml").as_uri()  # type: ignore[union-attr]
    text = applied(Text(""), written.edits)  # type: ignore[union-attr, arg-type]
    (scope,) = tomllib.loads(text)["lint"]["per-scope-ignores"]
    document = opened(REJECTED, folder=tmp_path, answered=True, lint=tomllib.loads(text)["lint"])
    assert document.answers.findings == ()
    assert scope.endswith("mid-Linear")


@pytest.mark.parametrize(
    "before",
    [
        "",
        "[lint]\nignore = []\n",
        '[lint.per-scope-ignores]\n"layers.0" = ["STR005"]\n\n[context]\ndevice_num = 8\n',
        "[context]\ndevice_num = 8",
    ],
)
def test_settings_that_are_there_stay(tmp_path: Path, before: str) -> None:
    path = tmp_path / "irtool.toml"
    path.write_text(before, encoding="utf-8")
    document = opened(REJECTED, folder=tmp_path, answered=True)
    (action,) = titled(actions(document, WHOLE), "Ignore STR001 in the scope")
    _, found = edits(action)
    after = tomllib.loads(applied(Text(before), found))
    old = tomllib.loads(before)
    assert "STR001" in str(after["lint"]["per-scope-ignores"])
    assert set(old) <= set(after)
    assert after.get("context") == old.get("context")

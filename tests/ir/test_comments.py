"""Comments are read when first asked for, and no more of them than the question needs."""

from __future__ import annotations

import gc

import pytest

from irtool.ir.comments import CommentLine, Comments, CommentTexts, Location, Remark, Scope

_LINES: dict[str, CommentLine] = {
    "a remark": Remark("a remark"),
    "a scope": Scope("Default/net"),
    "a place": Location("net.py", ":7", 7, None, None, None, None),
}


def _read(text: str, seen: list[str]) -> Comments:
    def decode(text: str) -> tuple[CommentLine, ...]:
        lines = text.split("\n")
        seen.extend(lines)
        return tuple(_LINES[line] for line in lines)

    return CommentTexts(decode).comments(text)


def test_the_scope_is_read_without_what_stands_behind_it():
    seen: list[str] = []
    comments = _read("a remark\na scope\na place", seen)
    assert comments.scope == Scope("Default/net")
    assert comments.scope is comments.scope
    assert seen == ["a remark", "a scope"]


def test_a_scope_is_the_same_whether_lines_were_read_before_or_are_read_afterwards():
    comments = _read("a remark\na scope\na place", [])
    assert comments.lines == tuple(_LINES.values())
    assert comments.scope == Scope("Default/net")
    comments = _read("a remark\na scope\na place", [])
    assert comments.scope == Scope("Default/net")
    assert comments.lines == tuple(_LINES.values())


def test_comments_without_a_scope_have_none():
    assert _read("a remark\na place", []).scope is None
    assert Comments().scope is None


@pytest.mark.parametrize("text", ["", "one", "one\n", "one\ntwo", "one\ntwo\n", "one\n\nthree"])
def test_the_text_of_comments_stays_as_it_was(text: str) -> None:
    assert _read(text, []).unread == text


def test_what_follows_the_first_line_is_kept_once() -> None:
    texts = CommentTexts(lambda text: ())
    made = [texts.comments(f"scope {number}\n{'a place' * 100}") for number in range(9)]
    held = [text for one in made for text in gc.get_referents(one) if isinstance(text, str)]
    assert len({id(text) for text in held if text.startswith("a place")}) == 1
    assert texts.comments("scope 3\n" + "a place" * 100) is made[3]

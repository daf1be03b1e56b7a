"""Comments are read when first asked for, and no more of them than the question needs."""

from __future__ import annotations

from irtool.ir.comments import CommentLine, Comments, Location, Remark, Scope

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

    return Comments.deferred(text, decode)


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

"""Positions: the protocol counts UTF-16 units and ends lines at a lone CR, dumps do neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, Range

from irtool.editor.text import Text

ODD = st.text(alphabet=list("ab\n\r↵\U0001f600\u2028\x0cé"), max_size=60)


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 3), ("utf-8", 6), ("utf-32", 2)])
def test_characters_count_in_units_of_the_encoding(encoding: str, character: int) -> None:
    text = Text("x\n%\U0001f600é(y)", encoding)
    position = text.position(text.content.index("é"))
    assert position == Position(1, 5 if encoding == "utf-8" else character)
    assert text.offset(position) == text.content.index("é")


@given(ODD, st.sampled_from(["utf-16", "utf-8", "utf-32"]))
def test_every_offset_has_a_position_and_comes_back(content: str, encoding: str) -> None:
    text = Text(content, encoding)
    for offset in range(len(content) + 1):
        if content[offset - 1 : offset + 1] == "\r\n":
            continue  # a position inside a line end means the line's end
        assert text.offset(text.position(offset)) == offset


@given(ODD)
def test_lines_of_a_dump_end_at_line_feeds_alone(content: str) -> None:
    text = Text(content)
    expected = content.split("\n")
    assert text.line_count == len(expected)
    for number, line in enumerate(expected, 1):
        assert text.line(number) == (line.removesuffix("\r") if number < len(expected) else line)
        assert text.line_at(text.start_of(number)) == number


@pytest.mark.parametrize("separator", ["\u2028", "\x0c", "\x85", "\v"])
def test_other_separators_end_no_line(separator: str) -> None:
    text = Text(f"a{separator}b\nc")
    assert text.position(len(text.content)) == Position(1, 1)


def test_a_lone_carriage_return_ends_a_line_of_the_protocol() -> None:
    text = Text("a\rb\r\nc\nd")
    assert [text.position(text.content.index(char)).line for char in "abcd"] == [0, 1, 2, 3]
    assert [text.line_at(text.content.index(char)) for char in "abcd"] == [1, 1, 2, 3]


def test_a_position_behind_a_line_is_its_end() -> None:
    text = Text("ab\r\ncd")
    assert text.offset(Position(0, 99)) == 2
    assert text.offset(Position(9, 0)) == 6


def test_columns_of_a_dump_begin_behind_a_byte_order_mark() -> None:
    text = Text("\ufeff# IR entry: @f\n")
    assert text.line(1) == "# IR entry: @f"


def test_a_part_is_replaced_where_the_protocol_says() -> None:
    text = Text("a\U0001f600b\nc")
    assert text.replaced(Range(Position(0, 3), Position(1, 1)), "X").content == "a\U0001f600X"

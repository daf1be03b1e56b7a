"""Patterns of log lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.linting.failure.template import filled, template


def test_values_stand_between_the_literal_pieces() -> None:
    pattern = template("strategy size: {given:int} is not equal to inputs size: {inputs:int}")
    found = pattern.match("X: strategy size: 2 is not equal to inputs size: 1.")
    assert found == {"given": "2", "inputs": "1"}


def test_a_missing_piece_is_no_match() -> None:
    assert template("a {x} b {y} c").match("a 1 b 2") is None


def test_a_value_of_another_kind_is_no_match() -> None:
    assert template("size {n:int} of").match("size many of") is None


def test_the_last_place_takes_the_rest() -> None:
    assert template("ranks: {ranks}").match("the ranks: 0, 1") == {"ranks": "0, 1"}


def test_the_first_place_begins_with_the_line() -> None:
    assert template("{n:int}th input").match("3th input") == {"n": "3"}


@pytest.mark.parametrize("text", ["{a}{b}", "{a}"])
def test_places_need_text_between_them(text: str) -> None:
    with pytest.raises(ValueError, match="text"):
        template(text)


def test_a_sentence_is_filled_and_unknown_values_stay_empty() -> None:
    assert filled("{a} of {b:int} {c}", {"a": "1", "b": "2"}) == "1 of 2 "


def test_bytes_are_told_in_binary_units() -> None:
    assert filled("{a:bytes}, {b:bytes}", {"a": "100", "b": "301990400"}) == "100 B, 288.0 MiB"
    assert filled("{a:bytes}", {"a": "many"}) == "many"


@given(st.text(alphabet="ab:=, 1", max_size=40), st.text(alphabet="ab:=, 1", max_size=40))
def test_what_was_printed_after_a_pattern_matches_it(first: str, second: str) -> None:
    line = f"needs <{first}> devices, has <{second}>!"
    found = template("needs <{x}> devices, has <{y}>!").match(line)
    assert found is not None
    assert found["x"] == first.split(">")[0].strip()


def test_hostile_lines_cost_no_more_than_one_look() -> None:
    pattern = template("a{x}b{y}c{z}d")
    assert pattern.match("ab" * 500_000) is None

"""Rows for scripts and spreadsheets."""

from __future__ import annotations

import csv
import io

import pytest

from irtool.report.rows import csv_text


def cell(value: object) -> str:
    text = csv_text([{"name": value}], ["name"], header=False)
    ((found,),) = csv.reader(io.StringIO(text))
    return found


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "=", "-1"])
def test_what_a_spreadsheet_would_run_is_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("lead", ["\t", "\r", "\n", "\x00"])
def test_control_characters_hide_no_formula(lead: str) -> None:
    assert cell(f"{lead}=1+1")[0] == "\\"


@pytest.mark.parametrize("number", [-1, -1.5, 0, 12])
def test_numbers_stay_numbers(number: float) -> None:
    assert cell(number) == str(number)


@pytest.mark.parametrize("text", ["MatMul", "%4", "a=b", "1-2", "'=1", "", "[-1]"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_nested_values_are_json() -> None:
    assert cell(["=1", -1]) == '["=1", -1]'

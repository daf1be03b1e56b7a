"""Answers as comma-separated values: numbers in the unit that a column's head names."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.report.csv import csv_pieces
from irtool.report.model import (
    Amount,
    Answer,
    Element,
    Facts,
    FindingCard,
    FindingCards,
    Link,
    Note,
    Report,
    Table,
    number_column,
    text_column,
)

ROOT = Path(__file__).parents[2]


def lines_of(*elements: Element) -> list[list[str]]:
    report = Report("a question", Answer("an answer"), elements)
    return list(csv.reader(io.StringIO("".join(csv_pieces(report)))))


def test_numbers_are_in_the_unit_that_the_head_names() -> None:
    columns = (
        text_column("name"),
        number_column("time", "seconds"),
        number_column("size", "bytes"),
        number_column("work", "operations"),
        number_column("share", "share"),
    )
    assert lines_of(Table("", columns, [("a", 0.0012, 1536, 2_000_000, 0.25)])) == [
        ["name", "time (s)", "size (B)", "work (FLOP)", "share"],
        ["a", "0.0012", "1536", "2000000", "0.25"],
    ]


def test_an_amount_is_a_number_only_where_the_head_names_its_unit() -> None:
    cells = (
        Amount(0.5, "seconds"),
        Amount(1536, "bytes"),
        Amount(1.5, "seconds", "1.5 s + 2 unknown"),
        Amount(None, "seconds"),
    )
    rows = [(cell,) for cell in cells]
    lines = lines_of(Table("", [number_column("cost", "seconds")], rows))
    assert lines == [["cost (s)"], ["0.5"], ["1.5 KiB"], ["1.5 s + 2 unknown"], ["?"]]


def test_what_is_no_number_says_so_and_nothing_is_empty() -> None:
    rows = [(math.inf,), (math.nan,), (None,), (0,)]
    lines = lines_of(
        Table("", [text_column("a"), number_column("n")], [("x", *row) for row in rows])
    )
    assert [line[1] for line in lines[1:]] == ["inf", "nan", "", "0"]


def test_a_text_is_no_formula_and_controls_no_terminal() -> None:
    rows = [("=1+1",), ("-x",), ("a,b",), ("\x1b[2J",), (Link("%4", "key"),)]
    lines = lines_of(Table("", [text_column("name")], rows))
    assert [line[0] for line in lines[1:]] == ["'=1+1", "'-x", "a,b", "\\x1b[2J", "%4"]


def test_all_rows_are_written_and_running_text_is_not() -> None:
    table = Table("t", [number_column("n")], [(n,) for n in range(30)], most=2)
    lines = lines_of(Note("said beside it"), table)
    assert lines[:2] == [["t"], ["n"]]
    assert len(lines) == 32


def test_parts_have_their_titles_and_an_empty_line_between_them() -> None:
    lines = lines_of(Facts([("devices", 8), ("peak", Amount(2048, "bytes"))], "Run"),
                     Table("Sizes", [number_column("size", "bytes")], [(1,)]))  # fmt: skip
    assert lines == [
        ["Run"], ["devices", "8"], ["peak", "2.0 KiB"], [], ["Sizes"], ["size (B)"], ["1"],
    ]  # fmt: skip


def test_findings_have_a_column_for_each_fact_that_one_of_them_has() -> None:
    cards = FindingCards(
        "2 findings",
        [
            FindingCard(
                "error", "wrong", "C1", [("at", "a.ir:3"), ("source", "x"), ("source", "y")]
            ),
            FindingCard("info", "odd", facts=[("rank", 4)]),
        ],
        most=1,
    )
    assert lines_of(cards) == [
        ["2 findings"],
        ["severity", "code", "message", "at", "source", "rank"],
        ["error", "C1", "wrong", "a.ir:3", "x; y", ""],
        ["info", "", "odd", "", "", "4"],
    ]


def test_a_command_writes_the_figures_of_its_answer_for_scripts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["comm", "groups", "samples/gpt", "-f", "csv"]) == 0
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    main(["comm", "groups", "samples/gpt", "-f", "json"])
    answer = json.loads(capsys.readouterr().out)
    start = lines.index(["Groups"])
    heads, *rows = lines[start + 1 :]
    assert sum(int(row[heads.index("bytes (B)")]) for row in rows) == sum(
        group["bytes"] for group in answer["groups"]
    )

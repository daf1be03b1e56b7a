"""Reports as lines: aligned in a pipe, folded to the width of a terminal, never cut."""

from __future__ import annotations

import io
import re

import pytest

from irtool.report.model import (
    Amount,
    Answer,
    Block,
    Column,
    Explorer,
    Facts,
    Heading,
    Link,
    Note,
    Report,
    Table,
    first_rows,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.plain import plain_lines
from irtool.report.terminal import columns_inside, write_rich


def lines(*blocks: Block) -> list[str]:
    return list(plain_lines(blocks))


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *blocks: Block) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    write_rich(blocks, stream)
    return re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()


COLUMNS = [
    Column("node"), number_column("time", "seconds"), number_column("size", "bytes"),
    text_column("why", rank=1), text_column("where", rank=2),
]  # fmt: skip
ROWS = [["%1", 0.002, 1536, "the sum of a split", "net.py:12: x = self.matmul(x, w)"],
        ["%20", 2e-6, None, "", "net.py:13"]]  # fmt: skip


def test_numbers_are_written_in_the_unit_of_their_column_and_stand_on_the_right() -> None:
    assert lines(Table("Parts", COLUMNS[:3], [row[:3] for row in ROWS])) == [
        "Parts",
        "  node  time     size",
        "  %1    2 ms  1.5 KiB",
        "  %20   2 µs",
    ]


def test_every_kind_of_block_is_a_line_or_more() -> None:
    assert lines(
        Heading("a\tb"), Note("n\nm"), Note("n\nm", verbatim=True),
        Facts([("key", 12345), ("longer", Amount(0.5, "share")), ("k", Link("%1", "x"))], "Facts"),
    ) == [
        "a\\tb", "n\\nm", "n", "m", "", "Facts", "key     12,345", "longer  50.0 %", "k       %1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "shown", "told"),
    [
        (None, 2, "… 1 more part (--rows 0 shows all)"),
        (1, 1, "… 2 more parts (--rows 0 shows all)"),
        (3, 3, ""),
        (0, 3, ""),
    ],
)
def test_rows_beyond_the_limit_are_counted(limit: int | None, shown: int, told: str) -> None:
    table = Table("", [Column("n")], [["a"], ["b"], ["c"]], noun="part")
    text = lines(first_rows(table, limit, 2))
    assert len(text) == 1 + shown + bool(told)
    assert text[-1].strip() == (told or "c")


def test_a_limit_of_nothing_is_the_usual_number_and_0_all() -> None:
    assert [rows_shown(limit, 5) for limit in (None, 0, 3)] == [5, None, 3]


def test_rows_that_nobody_made_are_counted_too() -> None:
    table = Table("", [Column("n")], [["a"], ["b"]], left_out=1_000, most=1)
    assert lines(table)[-1] == "  … 1,001 more rows (--limit 0 shows all)"


def test_a_report_shows_its_answer_first_and_leaves_out_what_text_cannot_show() -> None:
    report = Report("q", Answer("yes", details=["why"]), [Facts([("a", "b")]), Explorer("g", {})])
    assert list(plain_lines(report.blocks)) == ["yes", "why", "", "a  b"]


def test_columns_leave_a_narrow_table_by_their_rank() -> None:
    table = Table("Parts", COLUMNS, ROWS)
    rows = [["%1", "2 ms", "1.5 KiB", "x x " * 5, "y" * 20 + " y"]]
    assert columns_inside(table, rows, 80) == [0, 1, 2, 3, 4]
    # 4 + 4 + 7 + 16 + 20 columns (no word is cut), and two before each.
    assert columns_inside(table, rows, 61) == [0, 1, 2, 3, 4]
    assert columns_inside(table, rows, 60) == [0, 1, 2, 3]
    assert columns_inside(table, rows, 39) == [0, 1, 2, 3]
    assert columns_inside(table, rows, 38) == [0, 1, 2]
    assert columns_inside(table, rows, 1) == [0, 1, 2]


def test_what_leaves_a_table_stands_below_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_terminal(monkeypatch, 46, Table("Parts", COLUMNS, ROWS))
    assert [line.rstrip() for line in text] == [
        "",
        "Parts",
        "  node  time     size  why",
        "  %1    2 ms  1.5 KiB  the sum of a split",
        "      where: net.py:12: x = self.matmul(x, w)",
        "  %20   2 µs",
        "      where: net.py:13",
    ]


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 200])
def test_no_character_of_a_cell_is_lost(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(on_terminal(monkeypatch, columns, Table("Parts", COLUMNS, ROWS)))
    seen = re.sub(r"\s", "", text)
    for row in ROWS:
        assert re.sub(r"\s", "", str(row[0])) in seen
    if columns >= 40:
        assert "net.py:13" in seen

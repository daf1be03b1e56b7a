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
from irtool.report.terminal import columns_inside, folded, write_rich
from irtool.report.text import paragraphs


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


@pytest.mark.parametrize(
    ("texts", "inside"),
    [
        (["a word " * 4, "a word " * 5], [0, 1, 2]),  # two lines each
        (["a word " * 4, "a word " * 8], [0, 1]),  # two lines and four
        (["a word " * 4, "", "a word " * 6], [0, 1, 2]),  # two, one and three
        (["a word " * 4, "", "a word " * 8], [0, 1]),  # two, one and four
    ],
)
def test_a_column_leaves_that_would_fold_into_more_than_two_lines_a_row(
    texts: list[str], inside: list[int]
) -> None:
    columns = [Column("node"), text_column("layer"), text_column("why", rank=1)]
    rows = [["%1", "y" * 20, text.strip()] for text in texts]
    assert columns_inside(Table("Parts", columns, rows), rows, 48) == inside
    assert columns_inside(Table("Parts", columns, rows), rows, 120) == [0, 1, 2]


def test_a_column_that_always_stays_may_be_tall() -> None:
    columns = [Column("node"), text_column("why")]
    rows = [["%1", "a word " * 40]]
    assert columns_inside(Table("Parts", columns, rows), rows, 40) == [0, 1]


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


WIDE = Table(
    "Wide",
    [text_column("layer"), Column("line"), number_column("share", "share"), text_column("operator"),
     number_column("KiB", "bytes", rank=1), text_column("why", rank=2)],
    [
        ["layers.0.attention.query.weight", "671", 0.917, "StridedSlice(0: 178.5 KiB)", 182_784,
         "a device receives 91.7 % of it, dimension 0 of /net/blocks/attention.py:120"],
        ["Default/network-WithLossCell/_backbone-Network/0-Block", "12", 1.0, "ReLU", None, ""],
    ],
)  # fmt: skip


@pytest.mark.parametrize("columns", range(20, 241, 10))
def test_nothing_of_a_cell_is_lost_and_no_line_is_too_long(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in (Table("Parts", COLUMNS, ROWS), WIDE):
        shown = on_terminal(monkeypatch, columns, table)
        assert all(len(line) <= columns and line == line.rstrip() for line in shown)
        # Letters of a folded cell stand among those of its neighbours: in order, none is missing.
        text = "\n".join(shown)
        for cells in table.rows:
            for cell in cells:
                for part in re.findall(r"[^/.,_:\s-]{1,10}", cell if isinstance(cell, str) else ""):
                    assert part in text, (part, columns)


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 200])
def test_words_numbers_and_their_units_stay_together(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(on_terminal(monkeypatch, columns, WIDE))
    for whole in (
        "attention.",
        "671",
        "91.7 %",
        "StridedSlice(0:",
        "178.5 KiB",
        "receives",
        "line",
    ):
        assert whole in text, whole


def test_where_not_even_the_main_columns_have_room_a_row_is_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(
        "", [Column("node"), number_column("size", "bytes")], [["%12", 1536], ["%3", None]]
    )
    assert on_terminal(monkeypatch, 15, table) == ["", "  node     size", "  %12   1.5 KiB", "  %3"]
    assert on_terminal(monkeypatch, 14, table) == [
        "", "  node: %12", "    size:", "    1.5 KiB", "  node: %3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (31, ["layers.0.attention.query.weight"]),
        (30, ["layers.0.attention.query.", "weight"]),
        (12, ["layers.0.", "attention.", "query.weight"]),
        (8, ["layers.", "0.", "attentio", "n.query.", "weight"]),
    ],
)
def test_a_name_is_folded_behind_its_signs(width: int, lines: list[str]) -> None:
    assert folded("layers.0.attention.query.weight", width) == lines


def test_folded_text_keeps_its_indentation() -> None:
    assert folded("    a tree of many words", 14) == ["    a tree of", "    many words"]


def test_what_is_to_be_copied_is_never_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "# a comment of a program that is wider than the terminal\nx = 1"
    assert on_terminal(monkeypatch, 30, Note(code, verbatim=True)) == code.split("\n")


def test_facts_stand_beside_their_labels_or_below(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts([("label", "a text of several words here"), ("x", "y")])
    assert on_terminal(monkeypatch, 23, facts) == [
        "label  a text of", "       several words", "       here", "x      y",
    ]  # fmt: skip
    assert on_terminal(monkeypatch, 22, facts) == [
        "label", "  a text of several", "  words here", "x", "  y",
    ]  # fmt: skip


def test_paragraphs_are_joined_and_lists_tables_and_code_stay() -> None:
    text = "One line\nand its end.\n\n- an item\n- another\n  of two\n\n    code\n1. first\n| a |"
    assert paragraphs(text) == [
        "One line and its end.", "", "- an item", "- another", "  of two", "", "    code",
        "1. first", "| a |",
    ]  # fmt: skip

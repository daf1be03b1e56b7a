"""Tables of the grammars: parsers made of them are those that Lark makes of the text."""

from __future__ import annotations

import json

import pytest
from lark.exceptions import UnexpectedInput

from irtool.syntax import grammar_tables
from irtool.syntax.assemble import Assembler
from irtool.syntax.grammar import Unreadable
from irtool.syntax.grammar_files import grammar_text
from irtool.syntax.grammar_parser import parse, parser_of
from irtool.syntax.grammar_run import Run
from irtool.syntax.grammar_tables import OPTIONS, built, from_tables, key_of, tables_of

RECORDS = {
    "dump.lark": [
        ("statement", '%0(CNode_1) = PrimFunc_Add(%para0_x, I64(3)) {instance name: add} '
         'primitive_attrs: {output_names: [output]} cnode_attrs: {unique_id: "7"}'),
        ("type_line", "      : (<Tensor[Float32], (64, 32)>, <Int64, NoShape>) -> "
         "(<Tensor[Float32], (64, 32)>)"),
        ("comment", "# Scope: (Default/net)"),
    ],
    "query.lark": [(None, 'op == "MatMul" and not "layers.3" in scope')],
    "rule.lark": [(None, 'MatMul(a[m, k], b[k, n]) -> c[m, n]')],
}  # fmt: skip


def tree_or_error(parser: object, record: str, start: str | None) -> object:
    """The tree of a record, or what was expected where it is not one."""
    try:
        return parser.parse(record, start=start)  # type: ignore[attr-defined]
    except UnexpectedInput as error:
        return type(error).__name__, error.pos_in_stream, getattr(error, "expected", None)


@pytest.mark.parametrize("name", list(OPTIONS))
def test_both_parsers_say_the_same(name: str) -> None:
    text = grammar_text(name)
    plain = built(name, text)
    quick = from_tables(name, text, tables_of(name, text, plain))
    assert quick is not None
    for start, record in RECORDS[name]:
        for end in range(0, len(record) + 1, 3):
            expected = tree_or_error(plain, record[:end], start)
            assert tree_or_error(quick, record[:end], start) == expected


@pytest.mark.parametrize("name", list(OPTIONS))
def test_tables_are_made_the_same_each_time(name: str) -> None:
    text = grammar_text(name)
    assert json.loads(tables_of(name, text, built(name, text)))["key"] == key_of(name, text)


def test_tables_that_do_not_fit_are_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    text = grammar_text("query.lark")
    tables = tables_of("query.lark", text, built("query.lark", text))
    assert from_tables("query.lark", text, tables) is not None
    assert from_tables("query.lark", text + "\n// more", tables) is None
    for damaged in (b"", b"{}", b"\xff", tables[:-9], tables.replace(b'"states"', b'"estates"')):
        assert from_tables("query.lark", text, damaged) is None
    monkeypatch.setattr(grammar_tables.lark, "__version__", "0.1")
    assert from_tables("query.lark", text, tables) is None


def test_a_parser_is_built_once_and_then_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    parser_of("query.lark")

    def refuse(*arguments: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(grammar_tables, "built", refuse)
    assert parser_of("query.lark").parse('op == "Add"').data == "start"


@pytest.mark.parametrize(("start", "record"), RECORDS["dump.lark"])
def test_tables_run_without_larks_bookkeeping_make_the_same(start: str, record: str) -> None:
    assembler = Assembler()
    assembler.masked = False
    parser = parser_of("dump.lark", assembler)
    run = Run(parser, assembler)
    made = run.parse(record, start)
    by_lark = parser.parse(record, start=start)
    assert type(made) is type(by_lark)


def test_what_is_wrong_is_told_by_lark() -> None:
    with pytest.raises(Unreadable, match="expected") as told:
        parse("%0(CNode_1) = Add(%1, ) {", "statement")
    assert told.value.column == 25

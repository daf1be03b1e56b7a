"""The outline, and what can be folded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol.types import DocumentSymbol, SymbolKind

from irtool.editor.features import outline as module
from irtool.editor.features.folding import folding
from irtool.editor.features.outline import outline
from tests.editor.opened import BEGIN, FLOW, REJECTED, SAMPLES, VALIDATE, opened

DUMPS = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.ir"))


def every(symbols: list[DocumentSymbol]) -> Iterator[DocumentSymbol]:
    for symbol in symbols:
        yield symbol
        yield from every(list(symbol.children or ()))


def test_graphs_hold_phases_and_scopes_and_these_the_statements() -> None:
    found = outline(opened(REJECTED))
    assert [symbol.name[:12] for symbol in found] == ["parameters", "@13_mindspor", "@1_mindspore"]
    forward = (found[1].children or [])[0]
    assert (forward.name, forward.detail) == ("forward", "20 statements")
    names = {symbol.name for symbol in every([forward])}
    assert {"network-WithLossCell", "_backbone-Mlp", "mid-Linear", "%8 MatMul"} <= names


@pytest.mark.parametrize("name", DUMPS)
def test_every_statement_is_in_the_outline_once(name: str) -> None:
    document = opened(name)
    kinds = (SymbolKind.Method, SymbolKind.Function)
    rows = [
        symbol.selection_range.start.line + 1
        for symbol in every(outline(document))
        if symbol.kind in kinds and not symbol.name.startswith("@")
    ]
    assert sorted(rows) == sorted(node.line for node in document.dump.nodes())


@pytest.mark.parametrize("name", DUMPS)
def test_a_symbol_holds_its_own_name(name: str) -> None:
    for symbol in every(outline(opened(name))):
        assert symbol.name.strip()
        start, end = symbol.range.start, symbol.range.end
        own = symbol.selection_range
        assert (start.line, start.character) <= (own.start.line, own.start.character)
        assert (own.end.line, own.end.character) <= (end.line, end.character)


def test_large_dumps_show_scopes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    document = opened(BEGIN)
    count = sum(1 for _ in document.dump.nodes())
    monkeypatch.setattr(module, "MOST_STATEMENTS", count)
    assert any(symbol.kind == SymbolKind.Method for symbol in every(outline(document)))
    monkeypatch.setattr(module, "MOST_STATEMENTS", count - 1)
    assert not any(symbol.kind == SymbolKind.Method for symbol in every(outline(document)))


@pytest.mark.parametrize("name", [BEGIN, VALIDATE, FLOW])
def test_folds_are_nested_and_begin_in_lines_of_their_own(name: str) -> None:
    found = folding(opened(name))
    assert found
    for one in found:
        assert one.start_line < one.end_line
        for other in found:
            if one is not other:
                assert one.start_line != other.start_line
                apart = one.end_line < other.start_line or other.end_line < one.start_line
                inside = one.start_line < other.start_line and other.end_line <= one.end_line
                around = other.start_line < one.start_line and one.end_line <= other.end_line
                assert apart or inside or around


def test_a_layer_folds_with_all_of_its_statements() -> None:
    document = opened(VALIDATE)
    nodes = [n for n in document.dump.nodes() if (n.scope or "").endswith("up-Linear")]
    first = nodes[0].line - 1
    assert any(each.start_line == first for each in folding(document))


def test_only_as_many_folds_as_the_client_takes_the_largest_first() -> None:
    document = opened(BEGIN)
    assert len(folding(document, 3)) == 3
    whole = max(folding(document), key=lambda each: each.end_line - each.start_line)
    assert (whole.start_line, whole.end_line) in {
        (each.start_line, each.end_line) for each in folding(document, 3)
    }


def test_a_broken_dump_has_an_outline_of_what_was_read(tmp_path: Path) -> None:
    text = "subgraph @f() {\n  %0(a) = Add(F32(1), F32(2))\n  %1(b = \n"
    found = outline(opened(REJECTED, text))
    assert [symbol.name for symbol in found] == ["@f"]

"""The query language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.ir.dump import Dump
from irtool.syntax import patterns
from irtool.syntax.patterns import Pattern, PatternError
from irtool.syntax.query import MAX_QUERY, QueryError, field, query
from irtool.syntax.query_fields import FIELDS

ROOT = Path(__file__).resolve().parents[2]
GPT = ROOT / "samples/gpt/20_validate_0080.ir"


@pytest.fixture(scope="module")
def gpt() -> Dump:
    return irtool.load(GPT)


def documented() -> list[tuple[str, int]]:
    text = (ROOT / "docs/queries.md").read_text(encoding="utf-8").partition("## Tried")[2]
    rows = re.findall(r"^\| `(.+)` \| (\d+) \|$", text, re.MULTILINE)
    return [(row, int(count)) for row, count in rows]


@pytest.mark.parametrize(("text", "count"), documented())
def test_documented_queries(gpt: Dump, text: str, count: int) -> None:
    assert len(list(gpt.nodes(where=query(text)))) == count > 0


def test_every_field_is_documented() -> None:
    text = (ROOT / "docs/queries.md").read_text(encoding="utf-8")
    assert [name for name in FIELDS if f"`{name}`" not in text] == []


def found(dump: Dump, text: str) -> list[str]:
    return [node.id for node in dump.nodes(where=query(text))]


def test_agrees_with_python(gpt: Dump) -> None:
    expected = [
        node.id
        for node in gpt.nodes()
        if (node.op == "MatMul" or node.op == "Cast")
        and node.output_bytes is not None
        and not node.output_bytes < 2048
    ]
    assert found(gpt, 'op in ("MatMul", "Cast") and not bytes < 2 KiB and has(bytes)') == expected
    assert found(gpt, '(op == "MatMul" or op == "Cast") and bytes >= 2KiB') == expected


def test_brackets_around_one_value_make_a_tuple(gpt: Dump) -> None:
    one = found(gpt, "strategy == ((2, 4))")
    assert one == found(gpt, "strategy == ((2, 4),)") == found(gpt, "strategy == [[2, 4]]")
    assert found(gpt, "(line) > (100)") == []
    assert found(gpt, "(line) > 100") == found(gpt, "line > 100")


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_missing_is_never_equal_nor_different(gpt: Dump, sign: str) -> None:
    assert found(gpt, f"attr.no_such_key {sign} 1") == []
    assert found(gpt, f"shape[17] {sign} 1") == []
    if sign != "!=":
        assert found(gpt, f'bytes {sign} "text" or op {sign} 3 or strategy {sign} true') == []


def test_scopes_end_at_a_boundary() -> None:
    text = "\n".join(
        f"  %{n}(a{n}) = PrimFunc_Neg(%9)\n      # Scope: (Default/layers.{n}/x)"
        for n in (1, 10, 11)
    )
    dump = irtool.loads(f"subgraph @g() {{\n{text}\n}}\n")
    assert found(dump, '"layers.1" in scope') == ["%1"]
    assert found(dump, 'scope =~ "layers\\.1"') == ["%1", "%10", "%11"]
    assert found(dump, '"layers.1" not in scope') == ["%10", "%11"]


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("", 1, "empty", ""),
        ('op = "x"', 4, "expected a comparison", "use =="),
        ("op == MatMul", 7, "no field 'MatMul'", 'quotes: "MatMul"'),
        ('opp == "x"', 1, "no field 'opp'", "did you mean op"),
        ('op == "x', 7, "expected a field", "never closed"),
        ('(op == "x"', 11, "expected ')'", ""),
        ('op == "x" && backward', 11, "'and' or 'or'", "write and"),
        ("shape[0 == 1", 9, "expected ']'", ""),
        ("fusion > 1", 1, "no field 'fusion'", "attr.fusion"),
        ("foo(op)", 1, "no function 'foo'", "has() and len()"),
        ('op =~ "(a"', 10, "not a regular expression", ""),
        ("op =~ op", 7, "expected a regular expression", ""),
        (f'op =~ "{"a" * 201}"', 7, "longer than 200", ""),
        ("attr == 1", 1, "which attribute", "attr.KEY"),
        ("line == 1 and", 14, "expected a field", ""),
        ('op is "x"', 4, "expected a comparison", "use =="),
        ("(" * 300 + "1" + ")" * 300, 1, "nested too deeply", ""),
        ("1 == 1 and " * 1000 + "1", MAX_QUERY + 1, "longer than", ""),
    ],
)
def test_mistakes_have_a_place_and_a_hint(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        query(text)
    assert caught.value.column == column
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.text == text


WORDS = ["op", '"x"', "==", "!=", "in", "not", "and", "or", "(", ")", "[", "]", ",", ".", "attr",
         "shape", "1", "-2", "KiB", "=~", "has", "true", "\x00", "“", "\\"]  # fmt: skip


@given(
    st.lists(
        st.sampled_from(WORDS),
        max_size=12,
    )
)
def test_any_text_is_a_query_or_an_error(words: list[str]) -> None:
    text = " ".join(words)
    try:
        predicate = query(text)
    except QueryError as error:
        column = error.column
    else:
        column = 1
        node = next(irtool.loads("  %0(a) = PrimFunc_Neg(%1)\n").nodes())
        assert predicate(node) in (True, False)
    assert 1 <= column <= len(text) + 1


def test_fields_give_values(gpt: Dump) -> None:
    node = next(gpt.nodes(op="MatMul"))
    assert field("op")(node) == "MatMul"
    assert field("shape[0]")(node) == 128
    with pytest.raises(QueryError, match="no field 'pahse'"):
        field("pahse")
    with pytest.raises(QueryError, match="expected the name of a field"):
        field("op == 1")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}b", "(a{1,100}){1,100}b"])
def test_a_pattern_that_would_match_for_ever_is_an_error(
    monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(patterns, "MAX_SECONDS", 0.1)
    made = Pattern(pattern)
    with pytest.raises(PatternError, match="takes too long"):
        made.is_in("a" * 4000 + "c")


def test_many_slow_searches_are_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_TOTAL", 0.0)
    with pytest.raises(PatternError, match="takes too long"):
        Pattern("a").is_in("a")


def test_a_query_that_takes_too_long_says_where_its_pattern_stands(
    monkeypatch: pytest.MonkeyPatch, samples: Path
) -> None:
    monkeypatch.setattr(patterns, "MAX_TOTAL", 0.0)
    dump = irtool.load(samples / "custom_rules" / "step_parallel_begin_0001.ir")
    with pytest.raises(QueryError, match="takes too long") as raised:
        list(dump.nodes(where=query('op =~ "a"')))
    assert raised.value.column == 8


def test_a_text_is_looked_at_up_to_a_bound() -> None:
    assert Pattern("b").is_in("a" * 4095 + "b")
    assert not Pattern("b").is_in("a" * 4096 + "b")

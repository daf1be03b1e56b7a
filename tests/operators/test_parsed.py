"""Entries that were parsed before are those of the texts, whatever became of what was kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from irtool.operators import notation_reader, table
from irtool.operators.facts import Search
from irtool.operators.notation import Attribute, Declaration
from irtool.operators.notation_reader import read_declarations
from irtool.operators.parsed import parsed_bytes, parsed_from
from irtool.operators.table import PARSED_FILE, operator_of, parsed_table

TEXT = """\
family MatMul in "matmul_info.cc:CheckInputStrategy"
Product(flag@2 = False, pads@3 = (0, -1)):
    [~b m !k] swap flag  [*x .]?  ->  [~b m]  []+ drop axis keep flag   reduce k with max of 1
    whole axis unless layout says "no"   judged (m !k) if flag   divides m head
    strategy of (output 1)   flops 2 * output * input1[-1]   is (helper commutes)
    search matmul fits other gives first
    torch (mm "bmm")   updates 0 1
Unseen: unknown "nobody asked"
"""


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder for caches that nobody else has, and a table that nothing was asked of."""

    def forget() -> None:
        for known in (table._kept, table._entry, table._read, table.operator_of):
            known.cache_clear()

    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    forget()
    yield tmp_path / "entries"
    forget()


def declared() -> dict[str, Declaration]:
    """What the text declares, by operator."""
    return {one.op: one for one in read_declarations(TEXT, "mine")}


def test_what_was_kept_is_what_was_parsed() -> None:
    kept = parsed_from("key", parsed_bytes("key", declared()))
    assert kept is not None
    for name, one in declared().items():
        made = kept.of(name)
        assert made == one
        assert made is not None
        assert made.rule == one.rule
    assert kept.of("Other") is None


def test_each_word_of_a_declaration_is_read() -> None:
    text = """Product:
        [a b]  ->  [a]   search matmul fits other gives first
        torch (mm "bmm")   modules (Linear)   updates 0 1   weights 1   is (helper commutes)
Other:
        [a]  ->  [a]   search softmax
"""
    product, other = read_declarations(text, "mine")
    assert product.facts == {
        "search": Search("matmul", "other", "first"),
        "torch": ("mm", "bmm"),
        "modules": ("Linear",),
        "updates": (0, 1),
        "weights": (1,),
        "traits": frozenset(("helper", "commutes")),
    }
    assert other.facts == {"search": Search("softmax")}


def test_the_whole_table_can_be_kept() -> None:
    key = json.loads(parsed_table())["key"]
    kept = parsed_from(key, parsed_table())
    assert kept is not None
    for name, statement in table._statements().items():
        assert kept.of(name) == table._read(statement)[name]


def test_a_value_of_another_class_is_not_kept() -> None:
    odd = Declaration("Odd", facts={"flops": 1.5})
    with pytest.raises(TypeError, match="float"):
        parsed_bytes("key", {"Odd": odd})


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"key": "key", "entries": 3}'])
def test_damaged_data_are_nothing(data: bytes) -> None:
    assert parsed_from("key", data) is None


def test_what_another_table_kept_is_nothing() -> None:
    assert parsed_from("other", parsed_bytes("key", declared())) is None


@pytest.mark.parametrize(
    "value",
    [
        3,
        ["Attribute", "name", None, None, False],
        ["Attribute", "name", None, None, False, "too many"],
        ["open", "/etc/passwd"],
        ["tuple", ["mapping", "odd"]],
        [],
        [["tuple"]],
    ],
)
def test_an_entry_that_is_damaged_is_told(value: object) -> None:
    kept = parsed_from("key", json.dumps({"key": "key", "entries": {"One": value}}).encode())
    assert kept is not None
    with pytest.raises(ValueError, match="One"):
        kept.of("One")


def test_the_table_is_parsed_once_and_then_read(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = operator_of("MatMul")
    assert len(list(own_cache.iterdir())) == 1

    def refuse(*arguments: object) -> None:
        raise AssertionError("parsed again")

    for known in (table._kept, table._entry, table.operator_of):
        known.cache_clear()
    monkeypatch.setattr(table, "parsed_table", refuse)
    monkeypatch.setattr(notation_reader, "read_declarations", refuse)
    again = operator_of("MatMul")
    assert again == first
    assert again.rule is not None
    assert Attribute("transpose_a", 2, False, True) in again.attributes


def test_a_table_that_was_damaged_is_read_from_its_texts(own_cache: Path) -> None:
    first = operator_of("MatMul")
    (file,) = own_cache.iterdir()
    file.write_bytes(file.read_bytes()[:-40])
    for known in (table._kept, table._entry, table.operator_of):
        known.cache_clear()
    assert operator_of("MatMul") == first


def test_an_entry_that_was_damaged_is_read_from_its_text(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = json.dumps({"key": "key", "entries": {"MatMul": ["open", "file"]}}).encode()
    monkeypatch.setattr(table, "_kept", cache(lambda: parsed_from("key", damaged)))
    rule = operator_of("MatMul").rule
    assert rule is not None
    assert rule.function == "matmul"


def test_no_text_of_the_table_is_called_as_the_file_of_a_wheel() -> None:
    assert not PARSED_FILE.endswith(".rules")

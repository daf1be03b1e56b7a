"""Queries on the command line: an operator that nobody knows is told with those written like it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from irtool.cli.main import app
from irtool.cli.where import _note_near
from irtool.operators.near import near_operators
from irtool.syntax.query import operators_named

DUMP = "samples/mlp_semi_auto/20_validate_0080.ir"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('op == "MatMul"', ("MatMul",)),
        ('"Add" != op and op in ("Mul", "Sub")', ("Add", "Mul", "Sub")),
        ('not (op == "Add" or scope == "MatMull")', ("Add",)),
        ('op =~ "Mat.*" or "op" == scope', ()),
        ("recompute", ()),
    ],
)
def test_the_operators_in_a_query_are_those_that_op_is_compared_with(
    text: str, names: tuple[str, ...]
) -> None:
    assert set(operators_named(text)) == set(names)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("matmul", ["MatMul"]),
        ("allreduce", ["AllReduce"]),
        ("PrimFunc_MatMul", ["MatMul"]),
        ("MatMul", []),
        ("Return", []),
        ("call", []),
        ("MyOwnOperator", []),
        ("", []),
    ],
)
def test_names_that_are_known_or_like_none_have_no_near_ones(name: str, near: list[str]) -> None:
    assert near_operators(name) == near


def test_the_nearest_come_first() -> None:
    assert near_operators("MatMull")[0] == "MatMul"


@pytest.mark.parametrize("command", [["parse"], ["comm", "groups"], ["lint"]])
def test_a_command_notes_it_once_and_goes_on(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _note_near.cache_clear()
    said: list[str] = []
    monkeypatch.setattr("irtool.cli.where.note", said.append)
    ran = CliRunner().invoke(app, [*command, DUMP, "--where", 'op == "MatMulll"'])
    assert ran.exit_code in (0, 1)
    (text,) = said
    assert text.startswith("--where: irtool knows no operator MatMulll; did you mean MatMul")

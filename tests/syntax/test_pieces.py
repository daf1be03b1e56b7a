"""Pieces of records that were read before mean the same in other records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from lark import Token

from irtool.ir.graph import Node
from irtool.syntax.assemble import Assembler
from irtool.syntax.grammar import mask
from irtool.syntax.grammar_parser import parser_of
from irtool.syntax.grammar_run import Run
from irtool.syntax.part import DIGITS, Part
from irtool.syntax.pieces import PIECES
from irtool.syntax.records import Records

HEAD = "%1(CNode_2) = PrimFunc_Add(%0, I64(3))"
TYPES = "<Ref[Tensor[Float32]], (4, 8), ref_key=:w.1>"


class Counting(Assembler):
    """Counts the attributes that it is asked for."""

    asked = 0

    def attribute(self, key: Token, value: Part[Any] | None = None) -> Any:
        self.asked += 1
        return Part((str(key), value))


def values(node: Node) -> list[object]:
    """All that a node holds."""
    return [getattr(node, field.name) for field in fields(node)]


@pytest.mark.parametrize(
    "records",
    [
        # The same attribute at other holes, with other numbers, last and not last.
        (
            f"{HEAD} cnode_attrs: {{strategy: ((2, 4), (1, 4)), fusion: I64(7)}}",
            "%10(CNode_5) = Cast(%7) cnode_attrs: {fusion: I64(-1), strategy: ((8, 1), (1, 1))}",
        ),
        # A number, and a list of numbers that stands without brackets.
        (
            f"{HEAD} primitive_attrs: {{rank: 1, group: hccl_world}}",
            f"{HEAD} primitive_attrs: {{rank: 1, 2, 3, group: hccl_world}}",
            f"{HEAD} primitive_attrs: {{group: hccl_world, rank: 4, 5}}",
        ),
        # Texts that hold what attributes end with.
        (
            f'{HEAD} primitive_attrs: {{name: "a", mode: "b"}}',
            f'{HEAD} primitive_attrs: {{name: "a, mode: b", mode: "b"}}',
            f'{HEAD} primitive_attrs: {{name: "a}}", mode: "b"}}',
        ),
        # Attributes in an attribute, and in one of several spellings.
        (
            f"{HEAD} primitive_attrs: {{cell: Relu[name: I64(1)], last: Bool(1)}}",
            f"{HEAD} primitive_attrs: {{name: I64(2), cell: Relu[name: I64(1)]}}",
            f"{HEAD} primitive_attrs: {{last=Bool(0), name=I64(9)}}",
        ),
    ],
)
def test_statements_are_read_as_lark_reads_each_of_them(records: tuple[str, ...]) -> None:
    quick, plain = Records(), Records(plain=True)
    for record in records + records[::-1]:
        (template, holes), (other, _) = quick.statement(record), plain.statement(record)
        assert values(template.node(holes)) == values(other.node(()))


@pytest.mark.parametrize(
    "lines",
    [
        (f" : ({TYPES}) -> (<Int64, NoShape>)", f" : (<Int64, NoShape>, {TYPES}, {TYPES})"),
        (
            " : (<Tensor[Float32], (2), value=...>)",
            " : (<null>, <Tensor[Float32], (3), value=...>)",
        ),
        (" : (<Ref[Tensor[Bool]], (), ref_key=:a>b>)", " : (<Ref[Tensor[Bool]], (), ref_key=:a>)"),
    ],
)
def test_type_lines_are_read_as_lark_reads_each_of_them(lines: tuple[str, ...]) -> None:
    quick, plain = Records(), Records(plain=True)
    for line in lines + lines[::-1]:
        assert quick.type_line(line) == plain.type_line(line)


def masked(record: str) -> str:
    return mask(tuple(DIGITS.split(record)[::2]))


@pytest.mark.parametrize(
    ("second", "asked"),
    [
        ("{fusion: I64(5), group: hccl}", 0),
        ("{group: hccl, fusion: I64(5)}", 0),
        ("{other: I64(5), group: hccl}", 1),
        ("{fusion: I64(5), group: {'a': I64(1)}}", 1),
    ],
)
def test_a_piece_is_parsed_once(second: str, asked: int) -> None:
    counting = Counting()
    run = Run(parser_of("dump.lark", Assembler()), counting)
    head = "%1(CNode_2) = Add() primitive_attrs: "
    for first in ("{fusion: I64(5), group: hccl}", "{group: hccl, fusion: I64(5)}"):
        with pytest.raises(AttributeError):  # what counts makes no statement
            run.parse(masked(head + first), "statement", True)
    counting.asked = 0
    with pytest.raises(AttributeError):
        run.parse(masked(head + second), "statement", True)
    assert counting.asked == asked


def test_pieces_end_where_only_another_one_can_follow() -> None:
    attribute, abstract = PIECES["attribute"].match, PIECES["abstract"].match
    assert attribute("rank: 1, group: x}") is not None
    assert attribute("rank: 1, 2}") is None
    assert attribute("rank: (1, (2, [3])), group: x") is not None
    assert attribute("rank: (1, (2, [3]), group: x}") is None
    assert abstract(f"{TYPES}, <Int64, NoShape>)") is not None
    assert abstract(f"{TYPES} -> ") is None
    assert abstract("<Int64, NoShape>)") is None  # one token

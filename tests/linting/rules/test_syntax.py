"""SYN: is the dump whole and readable?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting.cases import compilation, dump_of, lint, messages, rule, the_one

FINE = dump_of("%0(a) = PrimFunc_ReLU(%para1_x)", "%1(b) = PrimFunc_GeLU(%0)")
UNREADABLE = FINE.replace("PrimFunc_GeLU(%0)", "PrimFunc_GeLU(%0")
HALF = FINE[: FINE.index("  Return")]
COUNTED = FINE.replace("# Params:", "Total number of cnodes: 9\n# Params:")


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        ("SYN001", UNREADABLE, 7),
        (
            "SYN002",
            FINE.replace("(%0)\n", "(%0)\n      : (<Tensor[Float32], (8>) -> (<null>)\n"),
            8,
        ),
        ("SYN003", HALF, 6),
        ("SYN004", COUNTED, 1),
        ("SYN005", "<!DOCTYPE html>\n", 1),
        ("SYN006", "", 1),
        ("SYN007", FINE + FINE.replace("@main", "@other"), 10),
        ("SYN008", FINE.replace("(a)", "(a\0)"), 6),
    ],
)
def test_what_the_reader_says_is_a_finding(code: str, text: str, line: int) -> None:
    found = lint(rule(code), compilation({"other": text})).findings
    assert line in {each.line for each in found}
    assert {each.code for each in found} == {code}


@pytest.mark.parametrize("code", [f"SYN{number:03}" for number in range(1, 11)])
def test_a_whole_dump_is_fine(code: str, samples: Path) -> None:
    for source in (FINE, samples / "gpt/20_validate_0080.ir", samples / "fragment_1.7.ir"):
        assert messages(lint(rule(code), compilation({"validate": source}))) == []


def test_two_nodes_with_one_number_are_named() -> None:
    text = dump_of("%0(a) = PrimFunc_ReLU(%para1_x)", "%0(b) = PrimFunc_GeLU(%para1_x)")
    found = the_one(lint(rule("SYN009"), compilation({"validate": text})))
    assert (found.line, found.op) == (7, "GeLU")
    assert [place.line for place in found.related] == [6]


def test_two_graphs_with_one_name_are_named() -> None:
    text = "".join(f"subgraph @g() {{\n  %0(a) = PrimFunc_{op}()\n}}\n" for op in ("Rank", "Size"))
    assert messages(lint(rule("SYN009"), compilation({"other": text}))) == [
        "there are two graphs called @g"
    ]


def test_two_parameters_with_one_name_are_named() -> None:
    parameters = ("%para1_w: <Tensor[Float32], (2)>", "%para2_w: <Tensor[Float32], (2)>")
    text = dump_of("%0(a) = PrimFunc_ReLU(%para1_w)", parameters=parameters)
    assert the_one(lint(rule("SYN009"), compilation({"other": text}))).key == "w"


def test_a_failed_compilation_may_print_a_graph_twice(samples: Path) -> None:
    path = samples / "analyze_fail/rank_0/om/analyze_fail.ir"
    assert messages(lint(rule("SYN009"), compilation({"other": path}))) == []


@pytest.mark.parametrize("operand", ["%9", "%para7_w", "@nowhere"])
def test_a_reference_to_nothing_is_named(operand: str) -> None:
    text = dump_of(f"%0(a) = PrimFunc_ReLU({operand})")
    found = the_one(lint(rule("SYN010"), compilation({"validate": text})))
    assert found.message == f"{operand} is defined nowhere in this dump"


def test_all_that_is_missing_is_one_finding() -> None:
    text = dump_of("%0(a) = PrimFunc_Add(%7, %8)", "%1(b) = PrimFunc_Mul(%7, %9)")
    found = the_one(lint(rule("SYN010"), compilation({"validate": text})))
    assert found.message == "%7 and 2 others are defined nowhere in this dump"
    assert [(each.line, each.message) for each in found.related] == [
        (7, "reads %7"),
        (6, "reads %8"),
        (7, "reads %9"),
    ]


def test_lines_below_one_that_cannot_be_read_are_its_rest() -> None:
    statement = "  $1(b) = PrimFunc_GeLU(%0)\n      : (<Tensor[Float32], (8)>) -> (<null>)\n"
    text = FINE.replace("  Return(%1)", f"{statement}  Return(%0)")
    found = the_one(lint(rule("SYN001"), compilation({"other": text})))
    assert found.severity == "info"  # nothing else shows damage
    assert [place.line for place in found.related] == [found.line + 1]


def test_a_line_of_types_without_its_statement_is_damage() -> None:
    types = "      : (<Tensor[Float32], (8)>) -> (<Tensor[Float32], (8)>)\n"
    text = FINE.replace("  Return(%1)", f"      # Scope: (Default)\n{types}  Return(%1)")
    assert the_one(lint(rule("SYN001"), compilation({"other": text}))).severity == "error"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("%1(b) = PrimFunc_GeLU(%0)\n", id="an excerpt"),
        pytest.param(UNREADABLE.replace("Return(%1)", "Return(%7)"), id="unreadable statement"),
        pytest.param(HALF.replace("%para1_x)", "%5)"), id="truncated"),
    ],
)
def test_what_is_missing_for_a_known_reason_is_not_told_again(text: str) -> None:
    assert messages(lint(rule("SYN010"), compilation({"validate": text}))) == []

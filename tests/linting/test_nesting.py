"""What comes of a cause is told below it, as grave as the gravest of both."""

from __future__ import annotations

from irtool.ir.finding import Finding, RelatedPlace, Severity
from irtool.linting.nesting import nested
from tests.linting.cases import rule

SYNTAX = [rule(code) for code in ("SYN003", "SYN004", "SYN008", "SYN010")]
STRATEGIES = [rule(code) for code in ("STR003", "STR005", "STR007")]


def said(code: str, severity: Severity = "error", file: str = "a.ir", node: str = "") -> Finding:
    return Finding(code, severity, f"{code} speaks", file, 1, node=node or None)


def test_the_count_of_a_dump_that_is_cut_is_no_finding_more() -> None:
    (finding,) = nested([said("SYN004"), said("SYN003", "warning")], SYNTAX)
    assert (finding.code, finding.severity) == ("SYN003", "error")
    assert [place.message for place in finding.related] == ["consequence, SYN004: SYN004 speaks"]


def test_what_follows_from_a_consequence_belongs_to_its_cause() -> None:
    (finding,) = nested([said("SYN004"), said("SYN010"), said("SYN008", "warning")], SYNTAX)
    assert finding.code == "SYN008"
    assert [place.message.split()[1] for place in finding.related] == ["SYN004:", "SYN010:"]


def test_another_dump_is_no_cause() -> None:
    findings = [said("SYN004"), said("SYN003", file="b.ir")]
    assert nested(findings, SYNTAX) == findings
    assert len(nested(findings, SYNTAX, across_files=True)) == 1


def test_what_is_answered_for_is_no_cause() -> None:
    cause = Finding("SYN003", "error", "cut", "a.ir", suppressed="a comment")
    assert nested([cause, said("SYN004")], SYNTAX) == [cause, said("SYN004")]


def test_a_strategy_that_leaves_devices_idle_is_why_its_operator_gathers() -> None:
    idle = Finding(
        "STR003", "warning", "uses 1 of 4", "a.ir", 1, node="%1",
        related=(RelatedPlace("here as well", "a.ir", 2, node="%2"),),
    )  # fmt: skip
    of_idle, of_other = (said("STR005", "warning", node=node) for node in ("%2", "%3"))
    first, second = nested([of_other, idle, of_idle], STRATEGIES)
    assert (first, second.code) == (of_other, "STR003")
    assert second.related[0].message == "consequence, STR005: STR005 speaks"


def test_an_operator_without_a_strategy_is_why_its_result_is_gathered() -> None:
    silent = said("STR007", "info", node="%1")
    gathered, other = (
        Finding(
            "STR005", "warning", "AllGather", "a.ir", 2, node=consumer,
            related=(RelatedPlace("the tensor comes from here", "a.ir", 1, node=producer),),
        )
        for consumer, producer in (("%2", "%1"), ("%4", "%3"))
    )  # fmt: skip
    first, second = nested([gathered, other, silent], STRATEGIES)
    assert (first.code, first.node) == ("STR005", "%4")
    assert (second.code, second.severity) == ("STR007", "warning")
    assert second.related[0].message == "consequence, STR005: AllGather"


def test_idle_devices_at_the_other_end_of_an_edge_are_no_cause() -> None:
    idle = said("STR003", "warning", node="%1")
    gathered = Finding(
        "STR005", "warning", "AllGather", "a.ir", 2, node="%2",
        related=(RelatedPlace("the tensor comes from here", "a.ir", 1, node="%1"),),
    )  # fmt: skip
    assert nested([gathered, idle], STRATEGIES) == [gathered, idle]

"""One cause at several places is told once, with the places beside it and how many they are."""

from __future__ import annotations

import pytest

from irtool.ir.finding import Finding, SourceLine
from irtool.linting.folding import folded

LINE = SourceLine("net.py", 7)


def at_nodes(count: int) -> list[Finding]:
    return [
        Finding("COM001", "warning", "of one rank", "a.ir", n + 1, node=f"%{n}", source=LINE)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2, "here as well"),
        (3, "here as well (3 places in all)"),
        (4, "here as well (4 places in all)"),
    ],
)
def test_all_places_are_counted_that_of_the_finding_too(count: int, text: str) -> None:
    (finding,) = folded(at_nodes(count))
    assert finding.node == "%0"
    assert {place.message for place in finding.related} == {text}
    assert [place.node for place in finding.related] == [f"%{n}" for n in range(1, count)]


def test_a_finding_that_stands_alone_names_no_place() -> None:
    (finding,) = folded(at_nodes(1))
    assert finding.related == ()


def test_another_line_of_python_is_another_finding() -> None:
    first, second = at_nodes(2)
    elsewhere = Finding(
        "COM001", "warning", "of one rank", "a.ir", 2, node="%1", source=SourceLine("net.py", 8)
    )
    assert folded([first, elsewhere]) == [first, elsewhere]
    assert len(folded([first, second])) == 1

"""One cause at several places is told once, with the places beside it and how many they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irtool.ir.finding import Finding, SourceLine
from irtool.linting.folding import folded
from tests.linting.cases import compilation, lint, rule

FOLDER = Path(__file__).parent / "evidence"

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


# -- the gradient of a line ----------------------------------------------------------------------


def of_gradient(node: str, message: str = "of one rank", **other: object) -> Finding:
    return replace(
        Finding("COM001", "warning", message, "a.ir", 9, node=node, source=LINE, is_backward=True),
        **other,  # type: ignore[arg-type]  # fields of a finding
    )


def test_what_is_said_of_the_gradient_belongs_to_the_line() -> None:
    gradients = [of_gradient("%8"), of_gradient("%9", "of another kind")]
    (finding,) = folded([gradients[0], *at_nodes(2), gradients[1]])
    assert finding.node == "%0"
    assert [(place.node, place.message) for place in finding.related] == [
        ("%1", "here as well (2 places in all, and 2 in its gradient)"),
        ("%8", "in its gradient (2 places)"),
        ("%9", "in its gradient (2 places)"),
    ]


@pytest.mark.parametrize(
    "gradient",
    [
        of_gradient("%9", source=SourceLine("net.py", 8)),
        of_gradient("%9", code="COM002"),
        of_gradient("%9", severity="error"),
        of_gradient("%9", file="b.ir"),
        of_gradient("%9", source=None),
        of_gradient("%9", suppressed="a comment"),
    ],
    ids=["another line", "another rule", "graver", "another dump", "no line", "suppressed"],
)
def test_what_is_no_gradient_of_it_stays(gradient: Finding) -> None:
    (first,) = at_nodes(1)
    assert folded([first, gradient]) == [first, gradient]


@pytest.mark.parametrize(
    ("dump", "code", "line", "devices"),
    [
        ("group_of_one_encoder", "COM001", "x = self.second(self.first(x))", 1),
        ("reduced_twice_encoder", "COM002", "x = self.second(self.first(x))", 4),
        ("reduced_scatter_encoder", "COM002", "x = self.scattered(self.gathered(x))", 4),
    ],
)
def test_collectives_of_the_users_code_are_one_finding_at_its_line(
    dump: str, code: str, line: str, devices: int
) -> None:
    facts = compilation({"validate": FOLDER / f"{dump}.validate.ir.xz"}, {"device_num": devices})
    (finding,) = folded(lint(rule(code), facts).findings)
    assert finding.source is not None
    assert finding.source.text.startswith(line)
    assert any("in its gradient" in place.message for place in finding.related)

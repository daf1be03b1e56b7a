"""Reports of findings: each format on the same few findings, and on names that want to do harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from irtool.ir.finding import (
    CONSEQUENCE,
    Finding,
    Findings,
    RelatedPlace,
    RuleText,
    Silenced,
    SourceLine,
)
from irtool.report.answer import answer_pieces
from irtool.report.findings.answer import lint_answer
from irtool.report.findings.formats import FORMATS, View
from irtool.report.findings.html import findings_page
from irtool.report.findings.text import TextStyle
from irtool.report.page.write import render_page

HERE = Path(__file__).parent
RULE = RuleText(
    "COM001", "collective-of-one", "COM", "warning", "A collective of one", "Nobody listens.",
    "leave it out", "AllReduce(0)", "AllReduce(0, 1)", (), (), "validate", (),
)  # fmt: skip
IN_PYTHON = Finding(
    code="COM001",
    severity="warning",
    message="AllReduce over one rank",
    file="dumps/20_validate_0080.ir",
    line=75,
    column=8,
    end_column=17,
    node="%8",
    op="AllReduce",
    graph="g",
    scope="Default/net/layers.0",
    statement="  %8 = AllReduce(%7)",
    source=SourceLine("net.py", 33, None, 30, 57, "return self.reduce(x)"),
    hint="leave it out",
    fix="x = x",
    related=(RelatedPlace("its input", "dumps/20_validate_0080.ir", 70, 3, "%7"),),
    rank=0,
    ranks=(0, 1, 2, 3),
    fingerprint="aa11",
)
WHOLE_FILE = Finding("SYN006", "error", "nothing in this file", "dumps/e.ir", fingerprint="bb22")
NASTY = Finding(
    "COM001", "info", "a \x1b[31mred\x1b[0m <script>alert(1)</script> %0A::error::x\n,:",
    "dumps/<b>\x1b]0;x\x07.ir", 3, 1, 2, scope='"><img src=x>', statement="\x1b[2J" + "w" * 5000,
    source=SourceLine("a b%,:\x1b.py", 1, text="\x00\x1b[31m"), fingerprint="cc33", key="]]>",
)  # fmt: skip
KNOWN = Finding(
    "COM001", "warning", "known", "dumps/a.ir", 4, fingerprint="dd44", suppressed="baseline"
)  # fmt: skip
FINDINGS = Findings(
    items=(IN_PYTHON, WHOLE_FILE),
    rules=(RULE,),
    suppressed=(KNOWN,),
    silenced=(Silenced("COM007", "ranks"),),
    stale=("COM001 old",),
    files=3,
    compilations=1,
    checked=("COM001", "COM007", "SYN006"),
)
HARMFUL = Findings((NASTY,), (RULE,), files=1, compilations=1)


def report(name: str, findings: Findings = FINDINGS, **style: Any) -> str:
    files = ("dumps/20_validate_0080.ir", "dumps/e.ir", "dumps/fine.ir")
    if name == "json":
        return "".join(answer_pieces(lint_answer(findings)))
    if name == "html":
        return render_page(findings_page(findings))
    return "".join(FORMATS[name](findings, View(TextStyle(**style), "lint", files)))


def test_text_shows_the_statement_a_caret_and_the_line_of_python() -> None:
    assert (
        report("text")
        == """\
dumps/e.ir: error[SYN006]: nothing in this file

dumps/20_validate_0080.ir:75:8: warning[COM001]: AllReduce over one rank
  75 |   %8 = AllReduce(%7)
     |        ^^^^^^^^^
  source net.py:33: return self.reduce(x)
  scope  Default/net/layers.0
  ranks  0-3
  see    dumps/20_validate_0080.ir:70:3: its input
  fix    x = x
  hint   leave it out

2 findings in 3 dumps: 1 error, 1 warning
not shown: 1 known in the baseline
1 known finding of the baseline did not come again: --update-baseline takes it out
gone: COM001 old
skipped COM007: needs the dumps of other ranks
"""
    )


def test_text_tells_equal_findings_once() -> None:
    again = [Finding("COM001", "warning", "m", "a.ir", line, node=f"%{line}") for line in range(9)]
    text = report("text", Findings(tuple(again)))
    assert text.count("warning[COM001]") == 1
    assert "also   8 other places: line 1 %1" in text


@pytest.mark.parametrize("column", [1, 50, 4000])
def test_text_cuts_long_statements_around_what_is_meant(column: int) -> None:
    statement = "x" * (column - 1) + "MEANT" + "y" * 5000
    found = Finding("COM001", "info", "m", "a.ir", 3, column, column + 5, statement=statement)
    lines = report("text", Findings((found,)), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    at = lines[2].index("^")
    assert lines[1][at : at + 5] == "MEANT"
    assert lines[2].count("^") == 5


def test_text_limits_and_says_so() -> None:
    many = tuple(Finding("COM001", "info", f"m{n}", "a.ir") for n in range(60))
    assert "… 10 more findings" in report("text", Findings(many))
    assert "… 58 more findings" in report("text", Findings(many), limit=2)
    assert "more findings" not in report("text", Findings(many), limit=0)


def test_nothing_found_is_said() -> None:
    nothing = Findings((), files=2, compilations=1, checked=("COM001",))
    assert report("text", nothing) == "nothing found in 2 dumps, by 1 rule\n"
    assert report("concise", nothing) == ""
    assert json.loads(report("sarif", nothing))["runs"][0]["results"] == []
    assert json.loads(report("gitlab", nothing)) == []


def test_statistics_count_by_rule() -> None:
    assert "1  COM001  collective-of-one\n1  SYN006" in report("text", statistics=True)


def test_concise_is_a_line_a_finding() -> None:
    assert report("concise").splitlines() == [
        "dumps/20_validate_0080.ir:75:8: warning[COM001]: AllReduce over one rank (net.py:33)",
        "dumps/e.ir: error[SYN006]: nothing in this file",
    ]


def test_json_has_the_fixed_keys() -> None:
    found = json.loads(report("json"))
    assert found["schema"] == "irtool.lint/1"
    assert {"code", "severity", "message", "file", "line", "column", "node", "fix"} <= set(
        found["findings"][0]
    )
    assert found["findings"][0]["source"]["line"] == 33
    assert found["findings"][1]["line"] is None
    assert found["counts"]["by_code"] == {"COM001": 1, "SYN006": 1}
    assert [each["fingerprint"] for each in found["suppressed"]] == ["dd44"]
    assert found["silent"][0]["need"] == "ranks"


@pytest.mark.parametrize("findings", [FINDINGS, HARMFUL], ids=["usual", "harmful"])
def test_sarif_is_valid(findings: Findings) -> None:
    schema = json.loads((HERE / "sarif_subset.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(report("sarif", findings)), schema)


def test_sarif_points_at_the_line_of_python_and_relates_the_dump() -> None:
    run = json.loads(report("sarif"))["runs"][0]
    result = next(each for each in run["results"] if each["ruleId"] == "COM001")
    primary = result["locations"][0]["physicalLocation"]
    assert primary["artifactLocation"]["uri"] == "net.py"
    assert primary["region"] == {"startLine": 33, "startColumn": 30, "endColumn": 57}
    related = [
        each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]
    ]
    assert related == [75, 70]
    assert result["partialFingerprints"] == {"irtoolFinding/v1": "aa11"}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "COM001"


def test_sarif_without_python_points_at_the_dump() -> None:
    results = json.loads(report("sarif"))["runs"][0]["results"]
    place = next(each for each in results if each["ruleId"] == "SYN006")["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "dumps/e.ir"
    assert place["physicalLocation"]["region"] == {"startLine": 1}


def test_sarif_marks_what_is_suppressed() -> None:
    results = json.loads(report("sarif"))["runs"][0]["results"]
    found = [each for each in results if "suppressions" in each]
    assert [each["suppressions"][0]["kind"] for each in found] == ["external"]


def test_github_annotates_the_line_of_python() -> None:
    assert report("github").splitlines() == [
        "::error file=dumps/e.ir,line=1,title=SYN006::nothing in this file%0Adump: dumps/e.ir",
        "::warning file=net.py,line=33,col=30,endColumn=57,title=COM001 collective-of-one::"
        "AllReduce over one rank%0Adump: dumps/20_validate_0080.ir:75"
        "%0Asee: dumps/20_validate_0080.ir:70:3: its input%0Ainstead: x = x%0Ahint: leave it out",
    ]


def test_gitlab_has_what_code_quality_needs() -> None:
    found = json.loads(report("gitlab"))
    assert [each["severity"] for each in found] == ["major", "critical"]
    assert found[0]["location"] == {"path": "net.py", "lines": {"begin": 33}}
    assert all({"description", "check_name", "fingerprint"} <= set(each) for each in found)


@pytest.mark.parametrize(
    ("count", "told"), [(1, "GAT001: m0"), (4, "m3)"), (5, "m3; 1 more)"), (9, "m3; 5 more)")]
)
def test_gitlab_tells_what_comes_of_a_finding_in_its_line(count: int, told: str) -> None:
    places = [RelatedPlace(f"{CONSEQUENCE}GAT001: m{number}", "a.ir", 3) for number in range(count)]
    found = replace(IN_PYTHON, related=(*places, *IN_PYTHON.related))
    (made,) = json.loads(report("gitlab", Findings((found,))))
    assert "(what comes of it: GAT001: m0" in made["description"]
    assert told in made["description"]
    assert "its input" not in made["description"]


@pytest.mark.parametrize("name", ["github", "junit"])
def test_other_places_are_told_up_to_a_number(name: str) -> None:
    places = tuple(RelatedPlace(f"place {number}", "a.ir", 3) for number in range(10))
    text = report(name, Findings((replace(IN_PYTHON, related=places[:8]),)))
    assert "a.ir:3:1: place 7" in text
    assert "more" not in text
    text = report(name, Findings((replace(IN_PYTHON, related=places),)))
    assert "place 8" not in text
    assert "… 2 more" in text


def test_junit_has_a_suite_a_dump_and_a_failure_a_finding() -> None:
    root = ElementTree.fromstring(report("junit"))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["dumps/20_validate_0080.ir", "dumps/e.ir", "dumps/fine.ir"]
    assert len(root.findall(".//failure")) == int(root.get("failures", "")) == 2
    assert suites["dumps/fine.ir"].get("failures") == "0"


def test_the_page_has_every_finding_in_full() -> None:
    text = report("html")
    for part in ("2 findings in 3 dumps", "AllReduce over one rank", "net.py:33", "x = x"):
        assert part in text


@pytest.mark.parametrize("name", [*FORMATS, "json", "html"])
def test_no_format_lets_control_characters_or_markup_through(name: str) -> None:
    text = report(name, HARMFUL)
    assert not any(ord(char) < 32 and char != "\n" for char in text)
    if name == "junit":
        ElementTree.fromstring(text)
    if name in ("junit", "html"):
        assert "<script>alert" not in text
        assert "<img" not in text
    if name == "github":
        # A command begins a line: what stands inside a message is none.
        assert [line.split()[0] for line in text.splitlines()] == ["::notice"]
    if name in ("json", "sarif", "gitlab"):
        json.loads(text)

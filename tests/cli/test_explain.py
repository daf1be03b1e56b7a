"""``irtool explain CODE`` and the table of ``irtool rules``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from irtool.cli.main import main
from irtool.linting.registry import own_rules

ROOT = Path(__file__).resolve().parents[2]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "explain", "COM001")
    assert status == 0
    assert out.startswith("COM001 collective-of-one: ")
    for part in ("severity  warning", "\nWhy\n", "\nBad\n", "\nGood\n", "\nInstead\n"):
        assert part in out


def test_a_name_is_as_good_as_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    by_name = run(capsys, "explain", "collective-of-one")
    assert by_name == run(capsys, "explain", "com001")


def test_a_prefix_explains_all_of_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "explain", "ENG", "--format", "json")[1]
    assert [each["code"] for each in json.loads(out)["rules"]] == ["ENG001", "ENG002", "ENG003"]


def test_a_code_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, errors = run(capsys, "explain", "COM0001")
    assert (status, out) == (2, "")
    assert "did you mean COM001?" in errors


def test_the_table_has_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "rules")
    assert status == 0
    for code in own_rules():
        assert f"\n  {code}  " in out


@pytest.mark.parametrize("format", ["json", "markdown"])
def test_rules_in_other_formats(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "rules", "SYN001", "illegal-strategy", "--format", format)[1]
    assert "unreadable-statement" in out
    assert "illegal-strategy" in out
    assert "collective-of-one" not in out


def test_json_is_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads((ROOT / "docs/json-rules.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(run(capsys, "rules", "--format", "json")[1]), schema)


def test_a_code_of_check_is_explained_by_what_mindspore_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = run(capsys, "explain", "device-list")
    assert status == 0
    assert out.startswith("device-list: ")
    assert "CheckDeviceList" in out
    found = json.loads(run(capsys, "explain", "device-list", "--format", "json")[1])
    assert {each["code"] for each in found["lines"]} == {"device-list"}

"""Real networks: no rule calls an error what MindSpore compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main

EVERY = 17
"""One compilation in so many; benchmarks/lint.py looks at all of them."""


def test_no_errors_on_what_mindspore_accepted(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = sorted(path.parent for path in (corpus / "verdicts").glob("*/case.json"))[::EVERY]
    verdicts = {
        str(case): json.loads((case / "case.json").read_text(encoding="utf-8"))["accepted"]
        for case in cases
    }
    output = tmp_path / "report.json"
    main(["lint", *verdicts, "--no-cache", "--format", "json", "-o", str(output)])
    capsys.readouterr()
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["counts"]["compilations"] == len(cases)
    errors = [each for each in report["findings"] if each["severity"] == "error"]
    wrong = [each for each in errors if verdicts[str(Path(each["file"]).parent)]]
    assert wrong == []
    assert errors, "some of them were refused"
    assert [each for each in report["findings"] if each["code"] == "ENG001"] == []

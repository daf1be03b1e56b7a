"""The precision that docs/lint.md tells is that of the findings that were judged."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def judged() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judged", ROOT / "benchmarks/lint_judged.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_was_judged(judged: ModuleType) -> None:
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    assert judged.placed(page, judged.table(judged.kept())) == page


def test_no_accepted_network_has_an_error_and_nine_of_ten_warnings_are_true(
    judged: ModuleType,
) -> None:
    sets = judged.kept()
    verdicts = [one["verdict"] for each in sets for one in each["judged"]]
    assert sum(sum(each["error"].values()) for each in sets) == 0
    assert sum(verdicts) >= 0.9 * len(verdicts) > 0


def test_what_nobody_judged_is_not_kept(judged: ModuleType) -> None:
    finding = {"code": "STR003", "verdict": None}
    with pytest.raises(SystemExit, match="1 of 1 findings have no verdict"):
        judged.keep({"name": "new", "judged": [finding]})

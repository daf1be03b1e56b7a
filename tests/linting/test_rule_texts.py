"""What rules declare: complete, in one style, and with documents that are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.linting.registry import FAMILIES, RuleEntry, mistake_in, own_rules
from irtool.linting.rule import EngineRule, NodeRule, RunRule
from irtool.report.rule_pages import documents

ROOT = Path(__file__).resolve().parents[2]
RULES = list(own_rules().values())


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.code)
def test_a_rule_declares_all_it_must(entry: RuleEntry) -> None:
    rule = entry.load()
    assert mistake_in(rule) == ""
    assert rule.code == entry.code
    assert entry.module.rpartition(".")[2].startswith(f"{rule.code.lower()}_")
    assert entry.code[:3] in FAMILIES
    assert not rule.summary.endswith(".")
    assert rule.hint
    assert not rule.hint.endswith(".")
    assert rule.__module__ == entry.module
    assert rule.__doc__
    assert issubclass(rule, EngineRule) or rule.check is not NodeRule.check  # type: ignore[attr-defined]  # rules that are no engine's have it
    if issubclass(rule, RunRule):
        assert "ranks" in rule.needs
    for threshold in rule.thresholds().values():
        assert threshold.default >= 0
        assert threshold.unit
        assert threshold.meaning
        assert not threshold.meaning.endswith(".")


def test_codes_and_names_are_unique() -> None:
    names = [entry.load().name for entry in RULES]
    assert len(set(names)) == len(names)


def test_the_pages_are_what_the_rules_say() -> None:
    folder = ROOT / "docs" / "rules"
    pages = documents([entry.text() for entry in RULES], FAMILIES)
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert sorted(written) == sorted(pages), "run: irtool rules --write-docs docs/rules"
    for name, text in pages.items():
        assert written[name] == text, f"{name}: run irtool rules --write-docs docs/rules"

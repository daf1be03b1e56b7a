"""Settings: which rules are on, with which severities and thresholds; mistakes are named."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from irtool.linting.registry import own_rules
from irtool.linting.settings import (
    Overrides,
    SettingsError,
    chosen_rules,
    overridden,
    read_settings,
)


def codes(table: Mapping[str, object], **options: tuple[str, ...]) -> list[str]:
    settings = overridden(read_settings(table), Overrides(**options))  # type: ignore[arg-type]  # options are by name
    return [rule.code for rule in chosen_rules(settings, own_rules())]


def test_without_settings_all_rules_are_on_that_are_on_by_default() -> None:
    on = codes({})
    assert "SYN001" in on
    assert "ENG003" not in on


def test_select_takes_codes_prefixes_and_names() -> None:
    assert codes({"select": ["SYN001", "unknown-suppression"]}) == ["SYN001", "ENG002"]
    assert set(codes({"select": "SYN"})) == {code for code in own_rules() if code[:3] == "SYN"}
    assert codes({"select": ["syn001,SYN002"]}) == ["SYN001", "SYN002"]


def test_extend_select_adds_and_ignore_takes_away() -> None:
    assert "ENG003" in codes({"extend-select": ["ENG003"]})
    assert "SYN008" not in codes({"ignore": ["SYN008"]})


def test_what_is_said_more_exactly_wins() -> None:
    assert codes({"select": ["SYN001"], "ignore": ["SYN"]}) == ["SYN001"]
    assert "SYN008" not in codes({"select": ["SYN"], "ignore": ["SYN008"]})
    assert codes({"select": ["SYN"], "ignore": ["SYN"]}) == []


def test_the_command_line_replaces_select_and_adds_the_rest() -> None:
    table = {"select": ["STR"], "ignore": ["SYN008"]}
    on = codes(table, select=("SYN",), ignore=("SYN001",))
    assert "SYN002" in on
    assert not {"STR001", "SYN001", "SYN008"} & set(on)


def test_severities_and_thresholds_reach_the_rule() -> None:
    table = {
        "severities": {"MEM": "info", "MEM001": "error"},
        "thresholds": {"MEM001": {"least-bytes": 7}},
    }
    rules = {rule.code: rule for rule in chosen_rules(read_settings(table), own_rules())}
    assert rules["MEM001"].chosen_severity == "error"
    assert rules["MEM002"].chosen_severity == "info"
    assert rules["MEM001"].values == {"least_bytes": 7}


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({"selct": []}, "there is no key selct", "did you mean select?"),
        ({"select": ["STRR001"]}, "there is no rule STRR001", "did you mean STR001?"),
        ({"select": ["illegal-strategi"]}, "no rule illegal-strategi", "illegal-strategy"),
        ({"ignore": [3]}, "ignore must hold codes", ""),
        ({"severities": {"STR": "fatal"}}, "'fatal' is no severity", "there are: error"),
        ({"severities": {"STX": "info"}}, "there is no rule STX", ""),
        ({"fail-on": "erorr"}, "'erorr' is no severity", "did you mean error?"),
        ({"thresholds": {"MEM001": {"least": 1}}}, "MEM001 has no threshold least", "least_bytes"),
        ({"thresholds": {"MEM001": {"least_bytes": -1}}}, "must not be negative", ""),
        ({"thresholds": {"MEM001": {"least_bytes": 0.5}}}, "must be a whole number of bytes", ""),
        ({"thresholds": {"MEM001": 3}}, "must be a table of numbers", ""),
        ({"thresholds": {"MEM001": {"least_bytes": True}}}, "must be a number", ""),
        ({"per-scope-ignores": {"layers.0": ["XYZ"]}}, "there is no rule XYZ", ""),
        ({"baseline": 3}, "baseline must be a file", ""),
        ({"source-map": {"/a": 1}}, "source-map./a must be a folder", ""),
    ],
)
def test_mistakes_are_named(table: Mapping[str, object], message: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=r".*") as caught:
        chosen_rules(read_settings(table), own_rules())
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_paths_are_seen_from_the_file() -> None:
    settings = read_settings({"baseline": "known.json", "source-map": {"/b": "src"}}, "conf")
    assert settings.baseline == "conf/known.json"
    assert settings.source_map == (("/b", "conf/src"),)

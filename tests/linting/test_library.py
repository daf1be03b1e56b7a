"""Linting from Python, and dumps that were damaged in any way."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.linting.kinds import kind_of_dump
from irtool.linting.library import lint
from irtool.linting.settings import SettingsError

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = (
    "mlp_semi_auto/step_parallel_begin_0018.ir",
    "mlp_semi_auto/20_validate_0080.ir",
    "optimizer_parallel/19_validate_0078.ir",
    "recompute/20_validate_0081.ir",
    "dynamic_shape/20_validate_0080.ir",
    "control_flow/01_type_inference_0001.ir",
)


def test_one_call_lints_a_dump() -> None:
    dump = irtool.load(SAMPLES / "mlp_rejected/step_parallel_begin_0018.ir")
    assert [each.code for each in lint(dump) if each.severity == "error"] == []
    found = lint(dump, context={"device_num": 8}, settings={"select": ["STR001"]})
    assert [(each.code, each.line) for each in found] == [("STR001", 75)]


def test_mistakes_in_settings_are_errors() -> None:
    with pytest.raises(SettingsError):
        lint(settings={"select": ["STRANGE"]})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mlp_semi_auto/step_parallel_begin_0018.ir", "begin"),
        ("mlp_semi_auto/step_parallel_end_0019.ir", "end"),
        ("mlp_semi_auto/20_validate_0080.ir", "validate"),
        ("gpt/20_validate_0080.ir", "validate"),
        ("layout/step_parallel_begin_0019.ir", "begin"),
    ],
)
def test_what_is_in_a_dump_tells_its_kind(name: str, kind: str) -> None:
    assert kind_of_dump(irtool.load(SAMPLES / name)) == kind


@lru_cache(maxsize=8)
def text_of(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_rule_fails_on_a_damaged_dump(data: st.DataObject) -> None:
    text = text_of(data.draw(st.sampled_from(NAMES)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from((0, 1, 5, 80, 3000))))
        text = (
            text[:start]
            + data.draw(st.sampled_from(("", "9", "(", "%0", "\n", "<null>")))
            + text[end:]
        )
    dump = irtool.loads(text)
    found = lint(dump, context={"device_num": 8}, kinds=("begin",))
    found += lint(dump, context={"device_num": 8}, kinds=("validate",))
    assert [each.message for each in found if each.code == "ENG001"] == []

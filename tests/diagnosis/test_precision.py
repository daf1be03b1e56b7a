"""Runs that differ by the precision they were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.cluster.context.given import Given
from irtool.compare.runs.units import UnitResult
from irtool.diagnosis import tensors
from irtool.diagnosis.subject import Subject
from irtool.diagnosis.tasks import precision
from irtool.syntax.run import load_run


@pytest.mark.parametrize("lowered", [(), (("up-MatMul", "input.0 was rounded to Float16"),) * 3])
def test_half_precision_that_explains_the_difference_is_an_opportunity(
    samples: Path, monkeypatch: pytest.MonkeyPatch, lowered: tuple[tuple[str, str], ...]
) -> None:
    run = load_run(str(samples / "precision" / "reference"))
    unit = UnitResult("step 0", {}, 9, 0, 0, None, False, (None, None), lowered=lowered)
    monkeypatch.setattr(tensors, "compare_units", lambda *_: [unit])
    found = list(precision.examine(Subject(run, lambda _: Given(), against=run)))
    assert [item.severity for item in found] == ["info"] * bool(lowered)
    assert all("before up-MatMul" in item.message for item in found)
    assert all("(and 2 more inputs)" in item.message for item in found)

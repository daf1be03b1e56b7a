"""What is told of an accused operator."""

from __future__ import annotations

from pathlib import Path

from irtool.compare.tensors.comparison import compare_tensors
from irtool.report.diff.runs.sentences import why_text
from tests.compare.dumps import npy
from tests.compare.test_judging import numbers, unit


def test_an_error_that_goes_in_unseen_is_told_as_unknown(tmp_path: Path) -> None:
    for name, sign in (("a", 1), ("b", -1)):
        folder = tmp_path / name / "rank_0" / "Net" / "0" / "0"
        npy(folder, "ReLU", "Default_ReLU-op0", 1, {"output.0": sign * numbers(4, 4)})
    found = compare_tensors(*(unit(tmp_path / name) for name in ("a", "b")))
    assert found.first is not None
    assert "error unknown in" in why_text(found.first)

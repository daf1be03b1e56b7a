"""Ids, labels and masks are told by how many of them differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import why_text
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import numbers, single

IDS = np.arange(1, 9).reshape(2, 4)


def looked_up(ids: np.ndarray) -> list[Entry]:
    table = numbers(16, 6)
    return [("Functional.embedding.0.forward", (ids, table), single(table[ids]))]


def told(folder: Path, other: np.ndarray, tensors: bool = True) -> RunComparison:
    paths = [
        msprobe(folder / name, looked_up(ids), tensors)
        for name, ids in (("left", IDS), ("right", other))
    ]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def changed(**places: int) -> np.ndarray:
    ids = IDS.copy().reshape(-1)
    for place, value in places.items():
        ids[int(place[1:])] = value
    return ids.reshape(IDS.shape)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (changed(n0=2), "1 of 8 differ"),
        (changed(n0=9, n5=14), "2 of 8 differ"),
        (IDS[::-1], "8 of 8 differ, the same ones in another order"),
        (changed(n0=2, n1=1), "2 of 8 differ, the same ones in another order"),
    ],
)
def test_how_many_ids_differ_is_told(tmp_path: Path, other: np.ndarray, text: str) -> None:
    found = told(tmp_path, np.ascontiguousarray(other))
    (row,) = [row for row in found.hyperparameters if row.name == "indices"]
    assert row.where == f"Functional.embedding.0.forward.input.0: {text}"
    assert row.same is False
    assert found.first is not None
    why = why_text(found.first)
    assert text in why
    assert "apart" not in why


def test_statistics_tell_between_which_numbers_they_are(tmp_path: Path) -> None:
    found = told(tmp_path, changed(n7=15), tensors=False)
    (row,) = [row for row in found.hyperparameters if row.name == "indices"]
    assert row.where.endswith("between 1 and 8 on the left, between 1 and 15 on the right")

"""Whose part is off, as far as figures tell it, and where they leave it open."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.layouts.declared import SideLayout
from irtool.compare.layouts.figures import SUMMED, Figures, agree, joined_figures, odd_parts
from tests.compare.dumps import Entry
from tests.compare.test_declared_layouts import ONE, Values, asked, compared, run, written

PARTS: list[Figures] = [
    (float(part.max()), float(part.min()), float(part.mean()), float(np.linalg.norm(part)))
    for part in np.random.default_rng(5).normal(0.1, 1.0, (4, 500))
]
WHOLE = joined_figures(PARTS)


def times(row: Figures, factor: float) -> Figures:
    return row[0] * factor, row[1] * factor, row[2] * factor, row[3] * factor


def with_part(place: int, row: Figures) -> list[Figures]:
    return [row if other == place else part for other, part in enumerate(PARTS)]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("factor", [0.9, 1.01, 1.05, 2.0])
def test_a_part_that_is_off_by_a_factor_is_so_in_all_figures(place: int, factor: float) -> None:
    assert odd_parts(with_part(place, times(PARTS[place], factor)), WHOLE, 1e-5) == (place,)


def test_what_is_within_the_slack_is_not_off() -> None:
    assert odd_parts(PARTS, WHOLE, 1e-5) == ()
    factor = 1 + 0.9e-3
    assert odd_parts(with_part(1, times(PARTS[1], factor)), WHOLE, 1e-5) == ()  # too little to tell


def test_a_factor_that_all_parts_have_is_no_matter_of_one() -> None:
    assert odd_parts([times(row, 1.05) for row in PARTS], WHOLE, 1e-5) == ()


def test_a_slice_that_two_parts_hold_is_one_of_theirs() -> None:
    assert odd_parts(with_part(3, PARTS[0]), WHOLE, 1e-5) == (0, 3)
    constant = (1.0, 1.0, 1.0, math.sqrt(500))  # gains at their start: nothing tells them apart
    same = [constant, constant, *PARTS[2:]]
    assert odd_parts(same, WHOLE, 1e-5) == ()


def test_micro_batches_of_one_ranks_data_may_be_twice_there() -> None:
    assert odd_parts([PARTS[0], PARTS[1]] * 2, WHOLE, 1e-5) == (0, 1, 2, 3)


def test_extremes_alone_tell_no_part() -> None:
    """Of labels no mean and no norm is stated, and many parts have the same extremes."""
    labels = [(9.0, 1.0, math.nan, math.nan), (8.0, 0.0, math.nan, math.nan)]
    assert odd_parts([labels[0], labels[0]], joined_figures(labels), SUMMED) == ()


@pytest.mark.parametrize("rank", [None, 0, 1])
def test_what_a_rank_reads_otherwise_than_its_call_before_gives_it(
    tmp_path: Path, rank: int | None
) -> None:
    """Rounded between two calls on one rank: no part shows it, the figures of that rank do."""

    def calls(values: Values, is_rounded: bool) -> list[Entry]:
        read = values.astype(np.float16).astype(np.float32) * np.float32(1.003)
        read = read if is_rounded else values
        return [
            ("Functional.linear.0.forward", (values,), values),
            ("Torch.tanh.0.forward", (read,), np.tanh(read)),
        ]

    whole = np.random.default_rng(8).normal(size=(32, 16)).astype(np.float32)
    left = written(tmp_path / "left", [calls(whole, False)], tensors=False)
    parts = [calls(part, number == rank) for number, part in enumerate(np.split(whole, 2, 1))]
    right = written(tmp_path / "right", parts, tensors=False)
    first = compared(left, right, ONE, SideLayout(tensor_parallel=2)).first
    assert (None if first is None else first.ranks) == (None if rank is None else (rank,))


def test_of_what_is_given_a_part_with_an_extreme_of_the_whole_is_right() -> None:
    largest = max(range(4), key=lambda place: PARTS[place][0])
    least = min(range(4), key=lambda place: PARTS[place][1])
    odd = next(place for place in range(4) if place not in (largest, least))
    other = (0.5, -0.5, 0.0, 3.0)
    rest = tuple(place for place in range(4) if place not in (largest, least))
    assert odd_parts(with_part(odd, other), WHOLE, SUMMED, is_exact=True) == rest
    assert odd_parts(with_part(odd, other), WHOLE, SUMMED) == ()


@pytest.mark.parametrize(("off", "are_same"), [(0.9, True), (1.1, False)])
def test_figures_agree_within_the_slack(off: float, are_same: bool) -> None:
    most, least, mean, norm = WHOLE
    assert agree((most, least, mean, norm * (1 + off * 1e-4)), WHOLE, 1e-4) == are_same


def test_statistics_leave_open_which_of_two_equal_slices_is_wrong(tmp_path: Path) -> None:
    left = run(tmp_path / "left", tensors=False)
    right = run(tmp_path / "right", tensor=2, fault="slice", tensors=False)
    result = compared(left, right, ONE, SideLayout(tensor_parallel=2))
    first = result.first
    assert first is not None
    assert (first.ranks, first.ranks_open) == ((), (0, 1))
    layout = tmp_path / "layout.json"
    layout.write_text(json.dumps({"left": {}, "right": {"tensor_parallel": 2}}))
    status, text = asked(left, right, "--layout", layout)
    assert status == 1
    assert "on some of ranks 0,1 (statistics do not tell which)" in " ".join(text.split())


def test_beside_fewer_ranks_they_tell_it(tmp_path: Path) -> None:
    left = run(tmp_path / "left", tensor=2, tensors=False)
    right = run(tmp_path / "right", tensor=4, fault="slice", tensors=False)
    result = compared(left, right, *(SideLayout(tensor_parallel=n) for n in (2, 4)))
    first = result.first
    assert first is not None
    assert first.ranks == (3,)

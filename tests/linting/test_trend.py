"""Trends of builds: which one needs most more than the one before it."""

from __future__ import annotations

import pytest

from irtool.linting.budget import Measured
from irtool.linting.trend import Build, largest_rise


def _build(name: str, *peaks: float) -> Build:
    ranks = tuple(
        Measured(rank, None, {"peak_memory": peak}, {}) for rank, peak in enumerate(peaks)
    )
    return Build(name, ranks)


def test_a_build_needs_what_its_rank_that_needs_most_of_it_needs() -> None:
    assert _build("a", 3.0, 7.0, 5.0).most("peak_memory") == 7.0
    assert _build("a", 3.0).most("step_seconds") is None


def test_the_build_that_rose_most_is_told_with_the_part_that_it_rose_by() -> None:
    builds = [_build("a", 100.0), _build("b", 110.0), _build("c", 165.0), _build("d", 170.0)]
    rise = largest_rise(builds, "peak_memory")
    assert rise is not None
    assert (rise[0].build, rise[1]) == ("c", pytest.approx(0.5))


@pytest.mark.parametrize(("after", "is_told"), [(100.9, False), (101.0, True), (50.0, False)])
def test_a_rise_is_told_from_one_per_cent_on(after: float, is_told: bool) -> None:
    rise = largest_rise([_build("a", 100.0), _build("b", after)], "peak_memory")
    assert (rise is not None) == is_told

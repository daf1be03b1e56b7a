"""Which ranks give the slices that a rank needs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from irtool.planning.checkpoints.sources import Need, chosen_sources


@pytest.mark.parametrize(
    ("rank", "holders", "preferred", "chosen"),
    [
        (5, [[3, 6]], (), [6]),  # the nearest
        (5, [[4, 6]], (), [4]),  # of two as near the lower one
        (5, [[5, 6]], (6,), [5]),  # its own goes before all others
        (5, [[3, 6]], (3,), [3]),  # what is read anyway before the nearest
        (5, [[6, 9], [7, 9]], (), [9, 9]),  # one rank that holds more before nearer ones
        (5, [[6, 9], [7, 9]], (6, 7), [6, 7]),
    ],
)
def test_own_slices_then_what_is_read_anyway_then_few_then_near_ranks(
    rank: int, holders: Sequence[Sequence[int]], preferred: Sequence[int], chosen: list[int]
) -> None:
    region = ((0, 4),)
    needs = {"w": [Need(ranks, region) for ranks in holders]}
    (found,) = chosen_sources(needs, rank, preferred)
    assert [source.rank for source in found[1]] == chosen

"""Layers of one kind of which only some are computed again: by mistake, or on purpose."""

from __future__ import annotations

import pytest

from irtool.cluster.recomputed_layers import UnevenLayers


def uneven(kept: list[int], recomputed: list[int]) -> UnevenLayers:
    layers = {f"network.layers.{number}": () for number in kept}
    return UnevenLayers(tuple(f"network.layers.{number}" for number in recomputed), layers)


@pytest.mark.parametrize(
    ("kept", "recomputed", "is_selective"),
    [
        ([4, 5], [0, 1, 2, 3], True),  # the last ones
        ([0, 1], [2, 3, 10], True),  # the first ones, in order of numbers
        ([9, 10], [2, 3], True),
        ([5], [0, 1, 2, 3, 4], False),  # one alone may have been forgotten
        ([2, 3], [0, 1, 4, 5], False),  # in the middle
        ([0, 5], [1, 2, 3, 4], False),  # both ends
        ([0, 3], [2, 3], False),  # layers of one number: of two kinds of names
        ([3, 4], [2, 3], False),
    ],
)
def test_several_at_one_end_are_left_out_on_purpose(
    kept: list[int], recomputed: list[int], is_selective: bool
) -> None:
    assert uneven(kept, recomputed).is_selective is is_selective


def test_the_share_that_is_kept() -> None:
    assert uneven([4, 5], [0, 1, 2, 3]).share_kept == pytest.approx(1 / 3)

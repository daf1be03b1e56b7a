"""The least of a sum of tables along one axis: the same piece by piece as at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.planning.search import exact


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[np.ndarray], list[int], int]:
    """Some arrays that are broadcast to a shape, and an axis."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    count = draw(st.integers(1, 4))
    chance = np.random.default_rng(draw(st.integers(0, 1000)))
    parts = []
    for _ in range(count):
        own = [size if draw(st.booleans()) else 1 for size in shape]
        parts.append(chance.random(own))
    return parts, shape, draw(st.integers(0, len(shape) - 1))


@pytest.mark.parametrize("piece", [1, 2, 5, 1 << 20])
@given(given_=sums())
def test_pieces_of_any_size_have_the_least_of_the_whole(
    piece: int, given_: tuple[list[np.ndarray], list[int], int]
) -> None:
    parts, shape, axis = given_
    whole = sum(np.broadcast_to(part, shape) for part in parts)
    before, exact.PIECE = exact.PIECE, piece
    try:
        found = exact._least_sum(parts, shape, axis)  # pyright: ignore[reportPrivateUsage]
    finally:
        exact.PIECE = before
    np.testing.assert_allclose(found, np.min(whole, axis=axis))

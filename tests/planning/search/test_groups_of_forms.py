"""Which ranks add up, by the bits of their numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.planning.search.candidate_forms import Form


@pytest.mark.parametrize(
    ("own", "runs", "ranks"),
    [
        (0, [(0, 2)], (0, 1, 2, 3)),
        (5, [(0, 2)], (4, 5, 6, 7)),
        (7, [(1, 2)], (1, 3, 5, 7)),
        (10, [(1, 1), (3, 1)], (0, 2, 8, 10)),
        (15, [(0, 1)], (14, 15)),
    ],
)
def test_ranks_that_differ_in_some_bits_are_a_group(
    own: int, runs: list[tuple[int, int]], ranks: tuple[int, ...]
) -> None:
    context = SimpleNamespace(devices=tuple(range(100, 116)), own_rank=100 + own)
    form: Any = SimpleNamespace(context=context)
    assert Form.ranks_of(form, runs) == tuple(100 + rank for rank in ranks)

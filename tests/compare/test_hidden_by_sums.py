"""A sum with a term that is much larger agrees whatever the other term is: that acquits nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.judging.picked import _by_chance
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import compared, numbers, single, unit


def residual(size: float, factor: float = 1.0, halves: bool = False) -> list[Entry]:
    """Rows times a share that indexing has picked, added to something of another size."""
    x, w = numbers(12, 16), numbers(16, 16, seed=1)
    kind = np.float16 if halves else np.float32
    y = (x @ w).astype(kind)
    share = (factor * (0.5 + 0.1 * numbers(12, 1, seed=2))).astype(kind)
    z = (y * share).astype(kind)
    big = (size * numbers(12, 16, seed=3)).astype(kind)
    total = (big + z).astype(kind)
    return [
        ("Functional.linear.0.forward", (x.astype(kind), w.T.astype(kind)), y),
        ("Tensor.__mul__.0.forward", (y, share), z),
        ("Tensor.__add__.0.forward", (big, z), total),
        ("Torch.tanh.0.forward", (total,), np.tanh(total)),
    ]


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("size", [1.0, 60.0, 400.0])
def test_a_share_that_is_off_is_named_however_large_the_rest(
    tmp_path: Path, size: float, tensors: bool
) -> None:
    left, right = residual(size, halves=True), residual(size, 0.6, halves=True)
    found = compared(tmp_path, left, right, tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Tensor.__mul__.0.forward"


@pytest.mark.parametrize(("count", "is_chance"), [(40, False), (40_000, True)])
def test_a_large_tensor_of_half_precision_holds_any_numbers(
    tmp_path: Path, count: int, is_chance: bool
) -> None:
    wanted = np.linspace(0.25, 0.75, 20).astype(np.float16)
    result = numbers(count, seed=5).astype(np.float16)
    entry: Entry = ("Torch.tanh.0.forward", (result,), result)
    run = unit(msprobe(tmp_path, [entry], tensors=True))
    place = run.ops[0].inputs[0]
    assert _by_chance(run, place, place, wanted.astype(np.float32)) is is_chance


def test_single_precision_holds_nothing_by_chance(tmp_path: Path) -> None:
    result = single(numbers(4000, seed=5))
    run = unit(msprobe(tmp_path, [("Torch.tanh.0.forward", (result,), result)], tensors=True))
    place = run.ops[0].inputs[0]
    assert not _by_chance(run, place, place, result[:20])

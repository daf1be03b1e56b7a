"""A call that one side asks for a result of another size has no partner, and is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compare.dumps import Entry
from tests.compare.test_judging import compared


def calls(chosen: int, given: float = 1.0) -> list[Entry]:
    """Some of the largest numbers of each row, and what is made of their sum."""
    x = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
    x *= np.float32(given)
    largest = np.sort(x, 1)[:, ::-1][:, :chosen].copy()
    weight = np.random.default_rng(2).standard_normal((6, 6)).astype(np.float32)
    total = largest.sum(1, keepdims=True)
    return [
        ("Functional.linear.0.forward", (x,), x),
        ("Torch.topk.0.forward", (x, chosen), largest),
        ("Functional.mystery.0.forward", (total, weight), weight * total),
    ]


@pytest.mark.parametrize("level", [True, False])
def test_the_call_is_named_not_what_reads_it(tmp_path: Path, level: bool) -> None:
    found = compared(tmp_path, calls(2), calls(1), tensors=level)
    assert found.first is not None
    assert found.first.pair.left.name == "Torch.topk.0.forward"
    assert "[6, 2] on the left and [6, 1] on the right" in found.first.why


def test_what_is_given_something_else_is_not_to_blame(tmp_path: Path) -> None:
    found = compared(tmp_path, calls(2), calls(1, given=1.5))
    assert found.first is not None
    assert found.first.pair.left.name != "Torch.topk.0.forward"

"""Calls that one side names otherwise, or asks for a result of another size."""

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


def masked(name: str, off: float, own: float = 0.0) -> list[Entry]:
    """A product that is off by rounding, and what a call of some name makes of it."""
    draw = np.random.default_rng(3)
    x = draw.standard_normal((8, 64)).astype(np.float32)
    weight = draw.standard_normal((16, 64)).astype(np.float32)
    made = x @ weight.T
    made += np.float32(off) * made * np.sign(draw.standard_normal(made.shape)).astype(np.float32)
    result = made * (1 + np.float32(own) * draw.standard_normal(made.shape).astype(np.float32))
    return [
        ("Functional.linear.0.forward", (x, weight), made),
        (f"{name}.0.forward", (made, -1.0), result),
        ("Functional.mystery.0.forward", (result, 2.0), result + 1),
    ]


def test_another_name_alone_is_nothing_to_see(tmp_path: Path) -> None:
    found = compared(tmp_path, masked("Tensor.masked_fill", 0), masked("Torch.where", 3e-7))
    assert found.first is None
    assert not found.counts.get("attribute differs")


def test_another_name_with_an_error_of_its_own_is_told(tmp_path: Path) -> None:
    other = masked("Torch.where", 3e-7, own=5e-7)
    found = compared(tmp_path, masked("Tensor.masked_fill", 0), other)
    assert found.first is None
    assert found.counts["attribute differs"] == 1

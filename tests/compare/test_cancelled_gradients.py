"""Gradients that are sums of terms which cancel: what rounding leaves, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single


def cancelling(residue: float, seed: int, *, terms: int = 2) -> list[Entry]:
    """A value that two calls read, whose gradients cancel but for something.

    Args:
        residue: norm of what is left of them, relative to one of them.
        seed: of what is left.
        terms: gradients that are given.
    """
    x, v, g = numbers(8, 8), numbers(8, 8, seed=1), numbers(8, 8, seed=2)
    grown = single(x * 1.5)
    left: Array = single(numbers(8, 8, seed=seed) * residue)
    made: list[Entry] = [
        ("Torch.exp.0.forward", (x,), grown),
        ("Tensor.__mul__.0.forward", (grown, v), single(grown * v)),
        ("Functional.mystery.0.forward", (grown, 3.0), single(grown + 3)),
        ("Tensor.__truediv__.0.forward", (single(grown * v), single(grown + 3)), g),
        ("Tensor.__truediv__.0.backward", (g,), [single(g * 0.5), single(-g * 0.25)]),
        ("Functional.mystery.0.backward", (single(-g * 0.25),), [single(-g)]),
    ]
    if terms > 1:
        made.append(("Tensor.__mul__.0.backward", (single(g * 0.5),), [g, single(g * v)]))
    made.append(("Torch.exp.0.backward", (left,), [single(left * grown)]))
    return made


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(("residue", "is_accused"), [(2e-8, False), (1e-6, False), (1e-3, True)])
def test_what_rounding_leaves_of_gradients_that_cancel_accuses_nobody(
    tmp_path: Path, residue: float, is_accused: bool, tensors: bool
) -> None:
    left, right = cancelling(residue, 5), cancelling(residue * 1.3, 6)
    found = compared(tmp_path, left, right, tensors)
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert found.first.pair.left.name == "Torch.exp.0.backward"


@pytest.mark.parametrize("tensors", [True, False])
def test_one_term_cancels_with_nothing(tmp_path: Path, tensors: bool) -> None:
    left, right = cancelling(1e-6, 5, terms=1), cancelling(1.5e-6, 6, terms=1)
    found = compared(tmp_path, left, right, tensors)
    assert found.first is not None


def test_a_fault_behind_residue_is_named(tmp_path: Path) -> None:
    left, right = cancelling(2e-8, 5), cancelling(3e-8, 6)
    g = numbers(8, 8, seed=9)
    for entries, factor in ((left, 1.0), (right, 1.001)):
        entries.append(("Functional.puzzle.0.backward", (g,), [single(g * factor)]))
    found = compared(tmp_path, left, right)
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.puzzle.0.backward"

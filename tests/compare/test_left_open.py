"""Where else a fault may be than at the operator that figures accuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.report.diff.runs.sentences import why_text
from tests.compare.dumps import Entry, network
from tests.compare.test_judging import Array, compared, numbers, single, softmax


def masked(kept: Array, factor: float = 1.0, is_scaled: bool = False) -> list[Entry]:
    """Scores of which some are masked, and their softmax."""
    scores = numbers(12, 12)
    hidden = np.where(kept, scores, -np.inf).astype(np.float32)
    entries: list[Entry] = [
        ("Tensor.masked_fill.0.forward", (scores, ~kept, -np.inf), hidden),
    ]
    if is_scaled:
        hidden = single(hidden / np.float32(factor))
        entries.append(("Tensor.__truediv__.0.forward", (entries[0][2], factor), hidden))
    return [*entries, ("Torch.softmax.0.forward", (hidden, -1), softmax(hidden))]


CAUSAL = np.tri(12, dtype=np.bool_)


def test_a_mask_is_in_question_where_a_softmax_of_equal_figures_differs(tmp_path: Path) -> None:
    other = CAUSAL.copy()
    other[:, 5] &= np.eye(12, dtype=np.bool_)[5]
    found = compared(tmp_path, masked(CAUSAL), masked(other), tensors=False)
    first = found.first
    assert first is not None
    assert first.since is not None
    assert (first.since.type, first.pair.left.type) == ("masked_fill", "softmax")
    assert "figures do not tell which elements are masked" in why_text(first)


@pytest.mark.parametrize(("factor", "is_named"), [(1.07, True), (1.004, False)])
def test_a_number_that_masked_scores_are_divided_by_shows_in_their_maximum(
    tmp_path: Path, factor: float, is_named: bool
) -> None:
    found = compared(tmp_path, masked(CAUSAL), masked(CAUSAL, factor, True), tensors=False)
    told = found.first.entered if found.first is not None else ""
    assert ("times what it is on the left" in told) is is_named


def test_the_call_of_one_side_that_made_an_input_is_named(tmp_path: Path) -> None:
    """Rolled numbers have the same figures, so the product seems to go wrong."""
    x, w = numbers(12, 16), numbers(16, 16, seed=1)
    rolled = np.roll(x, 1, 1)
    right: list[Entry] = [
        *network(),
        ("Torch.roll.0.forward", (x, 1), rolled),
        ("Functional.linear.2.forward", (rolled, w), single(rolled @ w.T)),
    ]
    left: list[Entry] = [*network(), ("Functional.linear.2.forward", (x, w), single(x @ w.T))]
    first = compared(tmp_path, left, right, tensors=False).first
    assert first is not None
    assert first.maker_right is not None
    assert first.maker_right.name == "Torch.roll.0.forward"
    assert "made on the right by Torch.roll.0.forward" in why_text(first)


def shares(error: float, largest: float) -> list[Entry]:
    """Shares between nought and one, and a product that reads them a little moved."""
    given = softmax(np.where(CAUSAL, numbers(12, 12), -np.inf)).astype(np.float32)
    moved = given * np.float32(1 + error)
    moved[0, 0] = largest
    w = numbers(12, 16)
    return [
        ("Torch.softmax.0.forward", (numbers(12, 12, seed=2), -1), given),
        ("Torch.matmul.0.forward", (moved, w), single(moved @ w)),
    ]


@pytest.mark.parametrize(
    ("error", "largest", "is_accused"),
    [(1e-3, 1.0, False), (6e-3, 1.0, True), (1e-3, 1.001, True)],
)
def test_what_rounding_explains_of_shares_may_be_rounding(
    tmp_path: Path, error: float, largest: float, is_accused: bool
) -> None:
    """Nought and one are numbers of every type: their extremes do not tell of which."""
    found = compared(tmp_path, shares(0.0, 1.0), shares(error, largest), tensors=False)
    assert (found.first is not None) is is_accused
    lowered = [item for item in found.judged if item.lowered]
    assert bool(lowered) is not is_accused

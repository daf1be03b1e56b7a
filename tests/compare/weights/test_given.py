"""Which inputs of a run come from outside, and which of them are weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors.weights.given import given_to, halved
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import numbers, single, unit


def weights_of(folder: Path, entries: list[Entry]) -> tuple[list[str], list[str]]:
    """Names of weights, and of what weights are made of."""
    run = unit(msprobe(folder, entries))
    given = given_to(run)
    return tuple(
        [f"{op.name}.{run.columns.labels[place]}" for place, op in places.items()]
        for places in (given.weights, given.sources)
    )  # type: ignore[return-value]


def product(x: Any, w: Any, name: str = "Tensor.__mul__.0.forward") -> Entry:
    return (name, (x, w), single(x * w))


@pytest.mark.parametrize(
    ("shape", "is_weight"),
    [
        ((16,), True),
        ((4, 16), True),
        ((1, 4, 16), True),
        ((4, 1), True),
        ((3, 4, 16), False),  # as many numbers along the batch: it may have been computed
        ((3, 1, 1), False),
        ((1,), False),  # one number is a scale that any code may make
    ],
)
def test_what_is_spread_over_the_batch_is_a_weight(
    tmp_path: Path, shape: tuple[int, ...], is_weight: bool
) -> None:
    found, _ = weights_of(tmp_path, [product(numbers(3, 4, 16), numbers(*shape, seed=1))])
    assert found == (["Tensor.__mul__.0.forward.input.1"] if is_weight else [])


def test_what_a_call_made_is_no_weight(tmp_path: Path) -> None:
    x = numbers(3, 16)
    mean = single(x.mean(0))
    entries = [("Torch.mean.0.forward", (x, 0), mean), product(x, mean)]
    assert weights_of(tmp_path, entries) == ([], [])


def test_what_a_call_made_behind_a_cast_that_no_dump_shows_is_none(tmp_path: Path) -> None:
    x = numbers(3, 16)
    mean = single(x.mean(0))
    half = mean.astype(np.float16)
    shown = single(np.where(np.abs(half) == 0, 0, half)).astype(np.float16)
    entries = [("Torch.mean.0.forward", (x, 0), mean), product(x.astype(np.float16), shown)]
    rounded = halved(float(mean.max())) == halved(float(shown.max()))
    rounded &= halved(float(mean.min())) == halved(float(shown.min()))
    assert (weights_of(tmp_path, entries)[0] == []) is rounded


def test_a_function_of_a_weight_alone_hands_on_that_it_is_one(tmp_path: Path) -> None:
    x, w = numbers(3, 16), numbers(16, seed=1)
    grown = single(np.exp(w))
    entries = [("Torch.exp.0.forward", (w,), grown), product(x, grown)]
    assert weights_of(tmp_path, entries) == ([], ["Torch.exp.0.forward.input.0"])


@pytest.mark.parametrize(("least", "is_weight"), [(-9.4e3, True), (-9.6e3, False)])
def test_a_mask_is_no_weight(tmp_path: Path, least: float, is_weight: bool) -> None:
    scores, mask = numbers(3, 4, 4), np.zeros((4, 4), np.float32)
    mask[0, 1:] = least
    mask[1, 0] = -1.0  # a third number: what holds two of them is a mask anyway
    entries = [("Tensor.__add__.0.forward", (scores, mask), single(scores + mask))]
    assert bool(weights_of(tmp_path, entries)[0]) is is_weight


@pytest.mark.parametrize(("shape", "is_weight"), [((3, 4, 16), True), ((12, 16), False)])
def test_a_matrix_without_a_batch_is_a_weight_where_the_other_operand_has_one(
    tmp_path: Path, shape: tuple[int, ...], is_weight: bool
) -> None:
    """Of two matrices that nobody made either may be the weight."""
    x, w = numbers(*shape), numbers(16, 8, seed=1)
    found, _ = weights_of(tmp_path, [("Torch.matmul.0.forward", (x, w), single(x @ w))])
    assert found == (["Torch.matmul.0.forward.input.1"] if is_weight else [])


def test_what_addmm_adds_is_a_weight(tmp_path: Path) -> None:
    x, w, b = numbers(12, 16), numbers(16, 8, seed=1), numbers(8, seed=2)
    y = single(np.tanh(x))
    entries = [
        ("Torch.tanh.0.forward", (x,), y),
        ("Torch.addmm.0.forward", (b, y, w), single(y @ w + b)),
    ]
    assert weights_of(tmp_path, entries)[0] == [
        "Torch.addmm.0.forward.input.0",
    ]


@pytest.mark.parametrize(
    ("number", "wanted"),
    [(1.0, 1.0), (1 + 2.0**-9, 1.0), (1 + 3 * 2.0**-9, 1 + 2.0**-7), (-3.0, -3.0)],
)
def test_numbers_as_bfloat16_has_them(number: float, wanted: float) -> None:
    assert halved(number) == wanted


def test_what_is_not_finite_stays() -> None:
    assert halved(-np.inf) == -np.inf


def test_the_largest_numbers_of_double_precision_are_past_those_of_bfloat16() -> None:
    largest = float(np.finfo(np.float64).max)
    assert (halved(largest), halved(-largest)) == (np.inf, -np.inf)


def test_results_are_looked_for_behind_a_cast_after_some_were_already(tmp_path: Path) -> None:
    x = numbers(3, 16)
    halves = [single(np.linspace(1, n, 16)).astype(np.float16) for n in (2, 4)]
    full = [half.astype(np.float32) for half in halves]
    entries: list[Entry] = []
    for place, (half, wide) in enumerate(zip(halves, full, strict=True)):
        entries.append((f"Torch.mean.{place}.forward", (x, 0), half))
        last = wide.copy()
        last[1:-1] += 0.01  # the same extremes, another norm
        entries.append(product(x, last, f"Tensor.__mul__.{place}.forward"))
    assert weights_of(tmp_path, entries)[0] == []

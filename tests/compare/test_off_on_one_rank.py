"""What one rank alone has off: its slices by themselves, and calls that only it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.declared import SideLayout
from irtool.compare.layouts.slice_by_slice import SliceError, Slices, slice_errors
from irtool.report.diff.runs.sentences import why_text
from tests.compare.dumps import Entry
from tests.compare.test_declared_layouts import ONE, compared, written

Values = NDArray[Any]
RANKS, ROWS, WIDTH = 4, 64, 16
HALF = 2.0**-11
"""Unit roundoff of Float16."""
NOISE = 4e-3
"""Relative error of every value before: eight units of Float16."""


def test_a_factor_on_one_slice_is_told_from_noise() -> None:
    draw = np.random.default_rng(0)
    whole = draw.normal(size=(4, 100))
    noisy = whole * (1 + 0.01 * draw.normal(size=whole.shape))
    noisy[3] *= 1.05
    errors = slice_errors({rank: [(whole[rank], noisy[rank])] for rank in range(4)})
    assert errors[3].scale == pytest.approx(0.05, abs=0.005)
    assert errors[3].is_factor
    assert not errors[0].is_factor
    assert Slices(0.01, 0.001).scaled(errors, HALF) == (3,)


@pytest.mark.parametrize(("scale", "ranks"), [(0.9, ()), (1.1, (1,))])
def test_a_factor_is_to_exceed_what_noise_and_other_slices_explain(
    scale: float, ranks: tuple[int, ...]
) -> None:
    noise, factor, size = 0.01, 0.002, 10_000  # before
    explained = 3 * factor + 2 * noise**2 + 8 * noise / size**0.5 + 1.5 * HALF
    off = scale * explained
    errors = {0: SliceError(noise, factor / 2, size), 1: SliceError(off, off, size)}
    assert Slices(noise, factor).scaled(errors, HALF) == ranks


@pytest.mark.parametrize(("share", "ranks"), [(0.7, ()), (0.72, (1,))])
def test_a_slice_that_is_off_by_more_than_a_factor_is_no_multiple(
    share: float, ranks: tuple[int, ...]
) -> None:
    """A token that another expert takes makes a slice longer too."""
    errors = {0: SliceError(1e-6, 0.0, 10_000), 1: SliceError(0.1, 0.1 * share, 10_000)}
    assert Slices().scaled(errors, HALF) == ranks


def test_what_all_ranks_have_is_no_matter_of_one() -> None:
    slices = Slices()
    assert slices.scaled({rank: SliceError(0.1, 0.1, 1000) for rank in range(2)}, HALF) == ()
    assert (slices.error, slices.scale) == (0.1, 0.1)


def test_a_small_slice_counts_as_little_as_it_is() -> None:
    whole = np.stack([np.ones(100), np.full(100, 1e-3)])
    errors = slice_errors({0: [(whole[0], whole[0])], 1: [(whole[1], 2 * whole[1])]})
    assert errors[1].scale == pytest.approx(1e-3 * 2**0.5, rel=1e-2)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_slices_with_nan_are_not_measured(broken: float) -> None:
    values = np.array([1.0, broken])
    assert slice_errors({0: [(np.ones(2), values)], 1: [(np.ones(2), np.ones(2))]}) == {}


def calls(x: Values, noise: float, own: str = "") -> list[Entry]:
    """A product of columns, maybe a call of this rank alone, a function, and another product."""
    draw = np.random.default_rng(abs(int(noise * 1e6)) + x.shape[1])
    noisy = (x * (1 + noise * draw.normal(size=x.shape))).astype(np.float16)
    entries: list[Entry] = [("Functional.linear.0.forward", (noisy,), noisy)]
    read = noisy
    if own:
        made = (noisy.astype(np.float32) * np.float32(own.partition(":")[2])).astype(np.float16)
        entries.append(("Tensor.__mul__.0.forward", (noisy, float(own.partition(":")[2])), made))
        read = noisy if own.startswith("log") else made
    active = np.tanh(read.astype(np.float32)).astype(np.float16)
    entries.append(("Torch.tanh.0.forward", (read,), active))
    return entries


@pytest.mark.parametrize(
    ("own", "named"),
    [("", False), ("log:1.05", False), ("into:1.05", True), ("into:1.02", True), ("into:1", False)],
)
def test_a_call_of_one_rank_is_a_finding_where_its_result_goes_on(
    tmp_path: Path, own: str, named: bool
) -> None:
    whole = np.random.default_rng(1).normal(size=(ROWS, RANKS * WIDTH)).astype(np.float16)
    left = written(tmp_path / "left", [calls(whole, 0.0)])
    parts = np.split(whole, RANKS, 1)
    ranks = [calls(part, NOISE, own * (rank == RANKS - 1)) for rank, part in enumerate(parts)]
    right = written(tmp_path / "right", ranks)
    first = compared(left, right, ONE, SideLayout(tensor_parallel=RANKS)).first
    assert (first is not None) == named
    if first is not None:
        assert first.maker_right is not None
        assert first.maker_right.name == "Tensor.__mul__.0.forward@3"
        assert first.ranks == (RANKS - 1,)


@pytest.mark.parametrize("stage", [0, 1])
def test_of_pipeline_stages_the_one_at_fault_is_named(tmp_path: Path, stage: int) -> None:
    draw = np.random.default_rng(2)
    x = draw.normal(size=(ROWS, WIDTH)).astype(np.float32)
    weights = [draw.normal(size=(WIDTH, WIDTH)).astype(np.float32) for _ in range(2)]

    def products(faulty: int | None) -> list[Entry]:
        given, made = x, []
        for number, weight in enumerate(weights):
            y = given @ weight.T * np.float32(1.05 if number == faulty else 1)
            made.append((f"Functional.linear.{number}.forward", (given, weight), y))
            given = y
        return made

    left = written(tmp_path / "left", [products(None)])
    first, second = products(stage)
    second = ("Functional.linear.0.forward", *second[1:])  # each rank counts its calls
    right = written(tmp_path / "right", [[first], [second]])
    found = compared(left, right, ONE, SideLayout(pipeline_parallel=2)).first
    assert found is not None
    assert (found.pair.left.name, found.stage, found.ranks) == (
        f"Functional.linear.{stage}.forward", stage, (stage,),
    )  # fmt: skip


@pytest.mark.parametrize("odd", [None, 0, 1])
@pytest.mark.parametrize("tensors", [True, False])
def test_the_arguments_of_the_rank_at_fault_are_the_reason(
    tmp_path: Path, odd: int | None, tensors: bool
) -> None:
    def calls(x: Values, factor: float) -> list[Entry]:
        made = (x * np.float32(factor)).astype(np.float32)
        return [
            ("Functional.linear.0.forward", (x,), x),
            ("Tensor.__mul__.0.forward", (x, factor), made),
            ("Torch.tanh.0.forward", (made,), np.tanh(made)),
        ]

    whole = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    left = written(tmp_path / "left", [calls(whole, 2.0)], tensors)
    parts = [calls(part, 2.1 if rank == odd else 2.0)
             for rank, part in enumerate(np.split(whole, 2, 1))]  # fmt: skip
    right = written(tmp_path / "right", parts, tensors)
    first = compared(left, right, ONE, SideLayout(tensor_parallel=2)).first
    assert (first is None) == (odd is None)
    if first is not None and odd is not None:
        assert first.ranks == (odd,)
        text = why_text(first)
        assert "2 → 2.1" in text
        assert "computed again" not in text
        assert ("on rank 1: 2 → 2.1" in text) == (odd == 1)

"""What functions read as weights and calls have made, and operands beside another function's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.compare.dumps import Entry
from tests.compare.test_exchanged_weights import Calls, compared, data, told, weights

WIDTH, RANK = 6, 2


def adapted(
    *, is_merged: bool, scale: float = 0.5, weight: int = 0, factor: float = 1.0
) -> list[Entry]:
    """A product, an adapter of low rank beside it or in its weight, and two calls behind them.

    Args:
        is_merged: the adapter is added to the weight.
        scale: of the adapter.
        weight: which weight it is added to.
        factor: of the weight that the second product reads.
    """
    calls, x, given = Calls(), data(), weights()
    draw = np.random.default_rng(7)
    a = draw.normal(size=(RANK, WIDTH)).astype(np.float32)
    b = draw.normal(size=(WIDTH, RANK)).astype(np.float32)
    if is_merged:
        low = calls.call("Torch.matmul", [b, a], b @ a)
        low = calls.call("Tensor.__mul__", [low, scale], scale * low)
        y = calls.linear(x, calls.call("Tensor.__add__", [given[weight], low], given[weight] + low))
    else:
        y = calls.linear(x, given[weight])
        low = calls.linear(calls.linear(x, a), b)
        low = calls.call("Tensor.__mul__", [low, scale], scale * low)
        y = calls.call("Tensor.__add__", [y, low], y + low)
    y = calls.call("Torch.tanh", [y], np.tanh(y))
    calls.linear(y, given[1] * np.float32(factor))
    return calls.made


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("merged", [(False, True), (True, False), (True, True)])
def test_an_adapter_in_the_weight_is_no_other_weight(
    tmp_path: Path, merged: tuple[bool, bool], tensors: bool
) -> None:
    left, right = (adapted(is_merged=one) for one in merged)
    found = compared(tmp_path, left, right, tensors=tensors)
    assert told(found)[0].startswith("equal")
    assert not found.is_suspicious


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("merged", [(False, True), (True, False)])
def test_an_adapter_of_another_scale_in_the_weight_is_named(
    tmp_path: Path, merged: tuple[bool, bool], tensors: bool
) -> None:
    left = adapted(is_merged=merged[0])
    right = adapted(is_merged=merged[1], scale=0.8)
    found = compared(tmp_path, left, right, tensors=tensors)
    assert told(found)[0].startswith("equal"), "weights are: the scale is none"
    assert found.first is not None


@pytest.mark.parametrize("tensors", [True, False])
def test_another_weight_beneath_an_adapter_is_told(tmp_path: Path, tensors: bool) -> None:
    left, right = adapted(is_merged=True), adapted(is_merged=True, weight=2)
    found = compared(tmp_path, left, right, tensors=tensors)
    assert told(found)[0] == "1 of 4 differ"
    assert found.first is not None


@pytest.mark.parametrize("tensors", [True, False])
def test_a_weight_behind_an_adapter_that_differs_is_told(tmp_path: Path, tensors: bool) -> None:
    left, right = adapted(is_merged=False), adapted(is_merged=True, factor=1.02)
    found = compared(tmp_path, left, right, tensors=tensors)
    assert told(found)[0] == "1 of 4 differ"


def turned(*, is_complex: bool, angle: float = 1.0, radius: float = 1.0) -> list[Entry]:
    """Positions by cosines, or by complex numbers of radius and angle, and what is made of them."""
    calls, x = Calls(), data()
    angles = np.linspace(0, 3, WIDTH, dtype=np.float32) * np.float32(angle)
    frequency = np.ones(WIDTH, np.float32) * np.float32(1.25)
    angles = calls.call("Tensor.__mul__", [angles, frequency], angles * frequency)
    cosine = np.cos(angles).astype(np.float32) * np.float32(radius)
    if is_complex:
        ones = np.full(WIDTH, radius, np.float32)
        value = (ones * np.exp(1j * angles)).astype(np.complex64)
        calls.made.append(("Torch.polar.0.forward", [ones, angles], value))
    else:
        calls.call("Tensor.cos", [angles], cosine)
    calls.call("Functional.mystery", [x * cosine, 2.0], x * cosine * 2)
    return calls.made


def test_operands_of_another_function_are_no_weights_and_do_not_correspond_by_place(
    tmp_path: Path,
) -> None:
    found = compared(tmp_path, turned(is_complex=False), turned(is_complex=True))
    assert not found.is_suspicious
    assert not any("differ" in str(row.left) for row in found.hyperparameters)


def test_what_the_other_function_makes_otherwise_shows_where_it_is_read(tmp_path: Path) -> None:
    found = compared(tmp_path, turned(is_complex=False), turned(is_complex=True, radius=1.1))
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.mystery.0.forward"


def test_another_angle_is_told_before_the_other_function(tmp_path: Path) -> None:
    found = compared(tmp_path, turned(is_complex=False), turned(is_complex=True, angle=1.1))
    assert found.first is not None
    assert found.first.pair.left.name == "Tensor.__mul__.0.forward"

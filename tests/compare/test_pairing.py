"""Operators of two frameworks, one of which computes a function in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from tests.compare.dumps import Entry, msprobe, npy
from tests.compare.test_judging import numbers, single, unit

Array = NDArray[np.float32]
X, W, B = numbers(16, 8), numbers(8, 8, seed=1), numbers(8, seed=2)


def sigmoid(x: Array) -> Array:
    return single(1 / (1 + np.exp(-x)))


def mindspore(folder: Path) -> Path:
    """A product, its bias, a function in parts, and a sum with what went in."""
    run = folder / "rank_0" / "Net" / "0" / "0"
    product = single(X @ W.T)
    biased = single(product + B)
    power = single(np.exp(-biased))
    more = single(power + 1)
    part = single(1 / more)
    calls = (
        ("MatMul", {"input.0": X, "input.1": W, "output.0": product}),
        ("BiasAdd", {"input.0": product, "input.1": B, "output.0": biased}),
        ("Exp", {"input.0": -biased, "output.0": power}),
        ("Add", {"input.0": power, "input.1": np.ones_like(power), "output.0": more}),
        ("Reciprocal", {"input.0": more, "output.0": part}),
        ("Add", {"input.0": X, "input.1": part, "output.0": single(X + part)}),
    )
    for number, (kind, values) in enumerate(calls):
        npy(run, kind, f"Default_{kind}-op{number}", 10 * number, values)
    return folder


def pytorch(folder: Path, weight: Array = W, slope: float = 1.0) -> Path:
    biased = single(X @ weight.T + B)
    part = sigmoid(single(slope * biased))
    calls: list[Entry] = [
        ("Functional.linear.0.forward", (X, weight, B), biased),
        ("Torch.sigmoid.0.forward", (biased,), part),
        ("Tensor.__add__.0.forward", (X, part), single(X + part)),
    ]
    return msprobe(folder, calls, True)


def compared(folder: Path, right: Path) -> TensorComparison:
    return compare_tensors(unit(mindspore(folder / "left")), unit(right))


def test_parts_of_a_function_are_no_partners_of_what_they_are_part_of(tmp_path: Path) -> None:
    found = compared(tmp_path, pytorch(tmp_path / "right"))
    assert found.first is None
    pairs = {item.pair.left.name: item.pair.right.name for item in found.judged}
    assert pairs["Default_Add-op5"] == "Tensor.__add__.0.forward"
    assert "Default_Add-op3" not in pairs


def test_weights_that_differ_are_named_before_the_product_that_reads_them(tmp_path: Path) -> None:
    found = compared(tmp_path, pytorch(tmp_path / "right", weight=single(W * 1.1)))
    assert found.first is not None
    assert found.first.pair.right.name == "Functional.linear.0.forward"
    assert found.first.entered.startswith("input.1, a parameter")


@pytest.mark.parametrize("slope", [0.5, 2.0])
def test_a_function_of_something_that_is_not_dumped_is_named_as_the_maker_of_what_is_read(
    tmp_path: Path, slope: float
) -> None:
    found = compared(tmp_path, pytorch(tmp_path / "right", slope=slope))
    assert found.first is not None
    assert found.first.maker_right is not None
    assert found.first.maker_right.name == "Torch.sigmoid.0.forward"


@pytest.mark.parametrize(("epsilon", "is_accused"), [(1e-5, False), (1e-2, True)])
def test_another_epsilon_shows_though_both_sides_compute_rightly(
    tmp_path: Path, epsilon: float, is_accused: bool
) -> None:
    def norm(small: float) -> Array:
        centred = X - X.mean(-1, keepdims=True)
        return single(centred / np.sqrt(X.var(-1, keepdims=True) + small))

    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    run = tmp_path / "left" / "rank_0" / "Net" / "0" / "0"
    npy(
        run, "LayerNorm", "Default_LayerNorm-op0", 1,
        {"input.0": X, "input.1": ones, "input.2": zeros, "output.0": norm(1e-5)},
    )  # fmt: skip
    call: Entry = ("Functional.layer_norm.0.forward", (X, 8, ones, zeros, epsilon), norm(epsilon))
    found = compare_tensors(
        unit(tmp_path / "left"), unit(msprobe(tmp_path / "right", [call], True))
    )
    assert (found.first is not None) == is_accused

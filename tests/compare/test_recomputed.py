"""Operators computed again: each against its definition, each gradient against differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.judging.reexecute import can_compute, recomputed, state_before
from irtool.compare.tensors.model import TensorRun
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import single, unit

Array = NDArray[Any]


def run(folder: Path, entries: Sequence[Entry], framework: str = "pytorch") -> TensorRun:
    return unit(msprobe(folder / framework, list(entries), True, framework))


def computed(
    folder: Path, op: str, arguments: Sequence[Any], result: Array, framework: str = "pytorch"
) -> Array | None:
    """The first result of a call, computed again from what the dump holds."""
    found = run(folder, [(f"Functional.{op}.0.forward", arguments, single(result))], framework)
    (only,) = (item for item in found.ops if item.type == op)
    assert can_compute(only)
    results = recomputed(found, only)
    return None if results is None else results["output.0"]


def inputs(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> Array:
    return single(np.random.default_rng(seed).uniform(low, high, shape))


X, OTHER, THIRD = inputs(4, 6), inputs(4, 6, seed=1, low=0.5), inputs(4, 6, seed=2, low=0.5)
POSITIVE = inputs(4, 6, seed=3, low=0.3, high=3.0)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    """x times the distribution function of the normal distribution."""
    return np.array([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]).reshape(
        x.shape
    )


def gelu_by_tanh(x: Array) -> Array:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


DEFINITIONS: dict[str, tuple[tuple[Any, ...], Callable[..., Any]]] = {
    "add": ((X, OTHER), lambda a, b: a + b),
    "__add__": ((X, 1.5), lambda a, b: a + b),
    "sub": ((X, OTHER), lambda a, b: a - b),
    "__rsub__": ((X, OTHER), lambda a, b: b - a),
    "mul": ((X, OTHER), lambda a, b: a * b),
    "div": ((X, OTHER), lambda a, b: a / b),
    "pow": ((POSITIVE, 3.0), lambda a, b: a * a * a),
    "maximum": ((X, OTHER), lambda a, b: np.where(a > b, a, b)),
    "minimum": ((X, OTHER), lambda a, b: np.where(a > b, b, a)),
    "addn": ((X, OTHER, THIRD), lambda a, b, c: a + b + c),
    "lerp": ((X, OTHER, 0.25), lambda a, b, w: 0.75 * a + 0.25 * b),
    "addcmul": ((X, OTHER, THIRD), lambda a, b, c: a + b * c),
    "addcdiv": ((X, OTHER, THIRD, 0.5), lambda a, b, c, v: a + v * b / c),
    "masked_fill": ((X, (X > 0), -9.0), lambda a, m, v: np.where(m, v, a)),
    "sqrt": ((POSITIVE,), lambda a: a**0.5),
    "rsqrt": ((POSITIVE,), lambda a: a**-0.5),
    "reciprocal": ((OTHER,), lambda a: a**-1),
    "exp": ((X,), lambda a: math.e**a),
    "log": ((POSITIVE,), lambda a: np.log2(a) * math.log(2)),
    "tanh": ((X,), lambda a: 2 * sigmoid(2 * a) - 1),
    "sin": ((X,), np.sin),
    "cos": ((X,), lambda a: np.sin(a + math.pi / 2)),
    "square": ((X,), lambda a: a * a),
    "neg": ((X,), lambda a: 0 - a),
    "abs": ((X,), lambda a: np.where(a < 0, -a, a)),
    "relu": ((X,), lambda a: np.where(a < 0, 0, a)),
    "sigmoid": ((X,), lambda a: np.exp(a) / (1 + np.exp(a))),
    "silu": ((X,), lambda a: a / (1 + np.exp(-a))),
    "softplus": ((X,), lambda a: np.log(1 + np.exp(a))),
    "gelu": ((X,), gelu),
    "view": ((X,), lambda a: a),
    "softmax": ((X, 0), lambda a, axis: np.exp(a) / np.exp(a).sum(axis)),
    "log_softmax": ((X, -1), lambda a, axis: a - np.log(np.exp(a).sum(axis, keepdims=True))),
    "mse_loss": ((X, OTHER), lambda a, b: np.mean((a - b) ** 2)),
    "matmul": ((X, OTHER.T.copy()), lambda a, b: np.einsum("ij,jk->ik", a, b)),
    "linear": ((X, OTHER, inputs(4, seed=7)), lambda a, w, b: np.einsum("ij,kj->ik", a, w) + b),
    "bmm": ((inputs(2, 3, 4), inputs(2, 4, 5)), lambda a, b: np.einsum("nij,njk->nik", a, b)),
}


@pytest.mark.parametrize("op", DEFINITIONS)
def test_a_call_gives_what_its_definition_says(tmp_path: Path, op: str) -> None:
    arguments, define = DEFINITIONS[op]
    exact = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in arguments]
    expected = np.asarray(define(*exact))
    found = computed(tmp_path, op, arguments, expected)
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_gelu_is_the_approximation_where_it_is_asked_for(tmp_path: Path) -> None:
    exact = X.astype(np.float64)
    by_tanh = gelu_by_tanh(exact)
    asked = computed(tmp_path / "asked", "gelu", (X, "tanh"), by_tanh)
    np.testing.assert_allclose(asked, by_tanh, rtol=1e-9)  # type: ignore[arg-type]
    mindspore = computed(tmp_path / "mindspore", "gelu", (X,), by_tanh, "mindspore")
    np.testing.assert_allclose(mindspore, by_tanh, rtol=1e-9)  # type: ignore[arg-type]
    plain = computed(tmp_path / "plain", "gelu", (X, "none"), gelu(exact))
    np.testing.assert_allclose(plain, gelu(exact), rtol=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize(("turn_a", "turn_b"), [(False, False), (True, False), (False, True)])
def test_products_of_turned_matrices(tmp_path: Path, turn_a: bool, turn_b: bool) -> None:
    a, b = inputs(4, 6), inputs(6, 5, seed=1)
    given = single(a.T) if turn_a else a, single(b.T) if turn_b else b
    expected = a.astype(np.float64) @ b
    found = computed(tmp_path, "batchmatmul", (*given, turn_a, turn_b), expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_reductions_whose_axes_the_shapes_tell(
    tmp_path: Path, op: str, axis: int | None, kept: bool
) -> None:
    exact = X.astype(np.float64)
    expected = getattr(np, op)(exact, axis=axis, keepdims=kept)
    found = computed(tmp_path, op, (X,), np.asarray(expected))
    if axis is not None and not kept:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_are_collected_as_asked(tmp_path: Path, reduction: str) -> None:
    labels = np.array([0, 5, 2, 2])
    logits = X.astype(np.float64)
    each = np.array(
        [np.log(np.exp(row).sum()) - row[k] for row, k in zip(logits, labels, strict=True)]
    )
    expected = {"none": each, "sum": each.sum(), "mean": each.mean()}[reduction]
    arguments = (X, labels, None, None, None, None, reduction)
    found = computed(tmp_path, "cross_entropy", arguments, np.asarray(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_norms_divide_by_the_spread_of_a_row(tmp_path: Path, epsilon: float) -> None:
    gamma, beta = inputs(6, seed=4), inputs(6, seed=5)
    exact = X.astype(np.float64)
    mean = exact.mean(1, keepdims=True)
    spread = np.sqrt(exact.var(1, keepdims=True) + epsilon)
    expected = (exact - mean) / spread * gamma + beta
    found = computed(tmp_path / "layer", "layer_norm", (X, 6, gamma, beta, epsilon), expected)
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    root = exact / np.sqrt((exact**2).mean(1, keepdims=True) + epsilon) * gamma
    found = computed(tmp_path / "root", "rms_norm", (X, 6, gamma, epsilon), root)
    assert found is not None
    np.testing.assert_allclose(found, root, rtol=1e-7, atol=1e-9)


# -- gradients -------------------------------------------------------------------------------------


def slope(function: Callable[[Array], Array], x: Array) -> Array:
    """Central differences, element by element."""
    step = 1e-6
    exact = x.astype(np.float64)
    return (function(exact + step) - function(exact - step)) / (2 * step)


SLOPES = ["relu", "tanh", "sigmoid", "silu", "exp", "sqrt", "rsqrt", "neg", "gelu"]


@pytest.mark.parametrize("op", SLOPES)
def test_the_gradient_of_a_call_is_its_slope(tmp_path: Path, op: str) -> None:
    _, define = DEFINITIONS[op]
    x, gradient = POSITIVE if op in ("sqrt", "rsqrt") else X, inputs(4, 6, seed=9)
    y = single(define(x.astype(np.float64)))
    expected = gradient * slope(define, x)
    entries: list[Entry] = [
        (f"Functional.{op}.0.forward", (x,), y),
        (f"Functional.{op}.0.backward", (gradient,), single(expected)),
    ]
    found = run(tmp_path, entries)
    forward, backward = found.ops
    results = recomputed(found, backward, forward)
    assert results is not None
    np.testing.assert_allclose(results["output.0"], expected, rtol=1e-6, atol=1e-8)
    assert recomputed(found, backward) is None


@pytest.mark.parametrize(
    ("op", "of", "order"),
    [
        ("relugrad", lambda a: np.maximum(a, 0), "gradient, y"),
        ("tanhgrad", np.tanh, "y, gradient"),
        ("sigmoidgrad", sigmoid, "y, gradient"),
        ("silugrad", lambda a: a * sigmoid(a), "gradient, x"),
        ("gelugrad", gelu_by_tanh, "gradient, x"),
    ],
)
def test_gradients_that_are_operators_of_their_own(
    tmp_path: Path, op: str, of: Callable[[Array], Array], order: str
) -> None:
    """MindSpore's: some take the forward result, some the forward input."""
    gradient = inputs(4, 6, seed=9)
    known = {"gradient": gradient, "x": X, "y": single(of(X.astype(np.float64)))}
    expected = gradient * slope(of, X)
    arguments = [known[name] for name in order.split(", ")]
    found = computed(tmp_path, op, arguments, expected, "mindspore")
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_softmax_is_that_of_the_whole_row(tmp_path: Path) -> None:
    exact = X.astype(np.float64)
    gradient = inputs(4, 6, seed=9)

    def total(x: Array) -> float:
        e = np.exp(x)
        return float((gradient * e / e.sum(1, keepdims=True)).sum())

    expected = by_differences(total, exact)
    e = np.exp(exact)
    entries: list[Entry] = [
        ("Torch.softmax.0.forward", (X, 1), single(e / e.sum(1, keepdims=True))),
        ("Torch.softmax.0.backward", (gradient,), single(expected)),
    ]
    found = run(tmp_path, entries)
    results = recomputed(found, found.ops[1], found.ops[0])
    assert results is not None
    np.testing.assert_allclose(results["output.0"], expected, rtol=1e-4, atol=1e-6)


def by_differences(total: Callable[[Array], float], x: Array) -> Array:
    step = 1e-6
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        more, less = x.copy(), x.copy()
        more[place] += step
        less[place] -= step
        found[place] = (total(more) - total(less)) / (2 * step)
    return found


def test_the_gradients_of_products(tmp_path: Path) -> None:
    a, b, gradient = inputs(4, 6), inputs(6, 5, seed=1), inputs(4, 5, seed=9)
    of_a = by_differences(lambda x: float((gradient * (x @ b)).sum()), a.astype(np.float64))
    of_b = by_differences(lambda x: float((gradient * (a @ x)).sum()), b.astype(np.float64))
    entries: list[Entry] = [
        ("Torch.matmul.0.forward", (a, b), single(a @ b)),
        ("Torch.matmul.0.backward", (gradient,), [single(of_a), single(of_b)]),
    ]
    found = run(tmp_path, entries)
    results = recomputed(found, found.ops[1], found.ops[0])
    assert results is not None
    np.testing.assert_allclose(results["output.0"], of_a, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(results["output.1"], of_b, rtol=1e-6, atol=1e-7)


def test_what_a_step_of_adam_found_is_worked_out_from_what_it_wrote(tmp_path: Path) -> None:
    rate, beta1, beta2, epsilon, decay = 0.01, 0.9, 0.99, 1e-6, 0.1
    w0, m0, v0 = X.astype(np.float64), OTHER.astype(np.float64), POSITIVE.astype(np.float64)
    gradient = inputs(4, 6, seed=9)
    m = beta1 * m0 + (1 - beta1) * gradient
    v = beta2 * v0 + (1 - beta2) * gradient.astype(np.float64) ** 2
    w = w0 - rate * (m / (np.sqrt(v) + epsilon) + decay * w0)
    arguments = (*map(single, (w, m, v)), rate, beta1, beta2, epsilon, decay, gradient)
    entries = [("Functional.AdamWeightDecay.0.forward", arguments, single(w))]
    found = run(tmp_path, entries, "mindspore")
    before = state_before(found, found.ops[0])
    assert before is not None
    np.testing.assert_allclose(before["input.0"], w0, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(before["input.1"], m0, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(before["input.2"], v0, rtol=1e-4, atol=1e-5)


def test_an_operator_that_nobody_knows_is_not_computed(tmp_path: Path) -> None:
    found = run(tmp_path, [("Functional.mystery.0.forward", (X,), X)])
    assert not can_compute(found.ops[0])
    assert recomputed(found, found.ops[0]) is None

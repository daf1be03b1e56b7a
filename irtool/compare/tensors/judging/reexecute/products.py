"""Products of matrices, sums, and what looks values up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irtool.compare.tensors.judging.reexecute.call import Array, Call, Results, computes


def _turned(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


@computes("matmul", "batchmatmul", "bmm", "mm", "__matmul__", "matmulext", "batchmatmulext")
def _matmul(call: Call) -> Array:
    a, b = call.tensor("input.0"), call.tensor("input.1")
    if call.number("input.2", "transpose_a", default=0.0):
        a = _turned(a)
    if call.number("input.3", "transpose_b", default=0.0):
        b = _turned(b)
    return np.matmul(a, b)


@computes("linear", "dense")
def _linear(call: Call) -> Array:
    y = np.matmul(call.tensor("input.0"), np.transpose(call.tensor("input.1")))
    return y + call.tensor("input.2") if call.has("input.2") else y


@computes("linear.backward")
def _linear_backward(call: Call) -> Results:
    """What PyTorch hands out: the gradients of the last node that the call consists of.

    For a batch of matrices that is a view, else ``addmm(bias, x, w^T)`` or ``mm(x, w^T)``, whose
    gradients are told apart by their shapes.
    """
    gradient, x, w = call.tensor("input.0"), call.saved("input.0"), call.saved("input.1")
    if x.ndim > 2:
        return {"output.0": gradient}
    candidates = (
        np.sum(gradient, axis=0),
        np.matmul(gradient, w),
        np.matmul(np.transpose(x), gradient),
    )
    return _by_shape(call, candidates)


@computes("matmul.backward", "__matmul__.backward")
def _matmul_backward(call: Call) -> Results | None:
    """``mm`` for two matrices; with a batch, a view of what ``bmm`` gives, as above."""
    if max(call.saved("input.0").ndim, call.saved("input.1").ndim) > 2:
        return {"output.0": call.tensor("input.0")}
    return _of_both(call)


@computes("bmm.backward", "mm.backward")
def _products(call: Call) -> Results | None:
    return _of_both(call)


def _of_both(call: Call) -> Results | None:
    """The gradients of both factors; None where their ranks are not those of a product."""
    gradient, a, b = call.tensor("input.0"), call.saved("input.0"), call.saved("input.1")
    if a.ndim != b.ndim or a.ndim < 2:
        return None
    return {
        "output.0": np.matmul(gradient, _turned(b)),
        "output.1": np.matmul(_turned(a), gradient),
    }


def _by_shape(call: Call, candidates: Sequence[Array]) -> Results:
    """Results by label, each with the only candidate of its shape."""
    columns, results = call.run.columns, Results()
    for place in call.op.outputs:
        fitting = [
            candidate for candidate in candidates if candidate.shape == columns.shapes[place]
        ]
        if len(fitting) == 1:
            results[columns.labels[place]] = fitting[0]
    return results


@computes("biasaddgrad")
def _bias_gradient(call: Call) -> Array | None:
    x = call.tensor("input.0")
    return np.sum(x, axis=0) if x.ndim == 2 else None


@computes("reducesum", "sum", "sumext")
def _sum(call: Call) -> Array | None:
    return _reduced(call, False)


@computes("reducemean", "mean", "meanext")
def _mean(call: Call) -> Array | None:
    return _reduced(call, True)


def _reduced(call: Call, is_mean: bool) -> Array | None:
    """A sum or mean over the axes that the shapes leave no choice of."""
    x, shape = call.tensor("input.0"), call.result_shape()
    axes = _axes(x.shape, shape)
    if axes is None:
        return None
    total = np.reshape(np.sum(x, axis=axes), shape)
    return total / (math.prod(x.shape) / max(1, math.prod(shape))) if is_mean else total


def _axes(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which axes a reduction took, where the shapes leave no choice."""
    if not after or math.prod(after) == 1:
        return tuple(range(len(before)))
    if len(before) == len(after):
        axes = tuple(n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        return axes if all(after[n] == 1 for n in axes) else None
    return None


@computes("embedding")
def _embedding(call: Call) -> Array:
    return call.tensor("input.1")[call.integers("input.0")]


@computes("gather")
def _gather(call: Call) -> Array | None:
    if call.run.framework != "mindspore" or call.number("input.2", default=0.0):
        return None
    return call.tensor("input.0")[call.integers("input.1")]

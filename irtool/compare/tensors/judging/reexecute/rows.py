"""Operators over the last axis, and losses."""

from __future__ import annotations

import numpy as np

from irtool.compare.tensors.judging.reexecute.call import Array, Call, computes


@computes("softmax", "softmaxext", "_softmax")
def _softmax(call: Call) -> Array:
    x, axis = call.tensor("input.0"), _axis(call)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@computes("log_softmax", "logsoftmax")
def _log_softmax(call: Call) -> Array:
    return _logs(call.tensor("input.0"), _axis(call))


def _axis(call: Call) -> int:
    return int(call.number("input.dim", "input.1", "axis", default=-1.0))


def _logs(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@computes("softmax.backward")
def _softmax_backward(call: Call) -> Array | None:
    gradient, y = call.tensor("input.0"), call.saved("output.0")
    if call.forward is None:
        return None
    values = call.forward.attributes
    axis = next((v for k in ("input.dim", "input.1") if isinstance(v := values.get(k), int)), -1)
    return y * (gradient - np.sum(gradient * y, axis=axis, keepdims=True))


@computes("layernorm", "layer_norm")
def _layer_norm(call: Call) -> Array:
    x = call.tensor("input.0")
    if call.op.type == "layer_norm":
        count = max(1, sum(key.startswith("input.1.") for key in call.op.attributes))
        gamma, beta, epsilon = "input.2", "input.3", call.number("input.4", "input.eps")
    else:
        count, gamma, beta = 1, "input.1", "input.2"
        epsilon = call.number("input.5", "epsilon")
    axes = tuple(range(x.ndim - count, x.ndim))
    centred = x - np.mean(x, axis=axes, keepdims=True)
    spread = np.mean(centred**2, axis=axes, keepdims=True)
    y = centred / np.sqrt(spread + epsilon)
    if call.has(gamma):
        y = y * call.tensor(gamma)
    return y + call.tensor(beta) if call.has(beta) else y


@computes("rms_norm", "rmsnorm")
def _rms_norm(call: Call) -> Array:
    x = call.tensor("input.0")
    gamma = "input.2" if call.op.type == "rms_norm" else "input.1"
    epsilon = call.number("input.3", "input.eps", "epsilon", default=float(np.finfo("f4").eps))
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon)
    return y * call.tensor(gamma) if call.has(gamma) else y


@computes("cross_entropy")
def _cross_entropy(call: Call) -> Array | None:
    x = call.tensor("input.0")
    smoothing = call.number("input.label_smoothing", "input.7", default=0.0)
    if x.ndim != 2 or call.is_float("input.1") or smoothing:
        return None
    labels = call.integers("input.1")
    if bool((labels < 0).any()):
        return None
    picked = -_logs(x, 1)[np.arange(len(labels)), labels]
    return _collected(call, picked, "input.6")


@computes("mse_loss")
def _mse_loss(call: Call) -> Array | None:
    return _collected(call, (call.tensor("input.0") - call.tensor("input.1")) ** 2, "input.4")


def _collected(call: Call, losses: Array, place: str) -> Array:
    reduction = call.op.attributes.get("input.reduction") or call.op.attributes.get(place)
    if reduction == "none":
        return losses
    total = float(np.sum(losses))
    return np.full((), total if reduction == "sum" else total / losses.size)

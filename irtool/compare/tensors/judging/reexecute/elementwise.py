"""Operators that work element by element, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irtool.compare.tensors.judging.reexecute.call import Array, Call, Kernel, computes
from irtool.compare.tensors.model import Op


@computes("add", "__add__", "__radd__", "__iadd__", "add_", "biasadd", "tensoradd", "addext")
def _add(call: Call) -> Array:
    return call.operand(0) + call.number("input.alpha", default=1.0) * call.operand(1)


@computes("sub", "__sub__", "__isub__", "sub_", "subext")
def _sub(call: Call) -> Array:
    return call.operand(0) - call.number("input.alpha", default=1.0) * call.operand(1)


@computes("__rsub__", "rsub")
def _rsub(call: Call) -> Array:
    return call.operand(1) - call.operand(0)


@computes("mul", "__mul__", "__rmul__", "__imul__", "mul_", "muls")
def _mul(call: Call) -> Array:
    return call.operand(0) * call.operand(1)


@computes("div", "realdiv", "__truediv__", "__itruediv__", "div_", "divs")
def _div(call: Call) -> Array:
    return call.operand(0) / call.operand(1)


@computes("pow", "__pow__", "tensorpow")
def _pow(call: Call) -> Array:
    return np.power(call.operand(0), call.operand(1))


@computes("maximum", "minimum")
def _extreme(call: Call) -> Array:
    function = np.maximum if call.op.type.lower() == "maximum" else np.minimum
    return function(call.operand(0), call.operand(1))


@computes("addn", "accumulatenv2")
def _addn(call: Call) -> Array:
    terms = call.tensors()
    total = np.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


@computes("lerp_", "lerp")
def _lerp(call: Call) -> Array:
    start, end = call.operand(0), call.operand(1)
    return start + call.operand(2) * (end - start)


@computes("addcmul_", "addcmul")
def _addcmul(call: Call) -> Array:
    scale = call.number("input.value", "input.3", default=1.0)
    return call.operand(0) + scale * call.operand(1) * call.operand(2)


@computes("addcdiv_", "addcdiv")
def _addcdiv(call: Call) -> Array:
    scale = call.number("input.value", "input.3", default=1.0)
    return call.operand(0) + scale * call.operand(1) / call.operand(2)


@computes("softplus")
def _softplus(call: Call) -> Array:
    beta = call.number("input.1", "input.beta", default=1.0)
    return np.logaddexp(0, beta * call.operand(0)) / beta


@computes("masked_fill", "masked_fill_", "maskedfill")
def _masked_fill(call: Call) -> Array:
    return np.where(call.operand(1) != 0, call.operand(2), call.operand(0))


def _unary(function: Callable[[Array], Array]) -> Kernel:
    return lambda call: function(call.operand(0))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _same(x: Array) -> Array:
    return x


_UNARY: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("sqrt sqrt_", np.sqrt),
    ("rsqrt rsqrt_", lambda x: 1 / np.sqrt(x)),
    ("reciprocal inv", lambda x: 1 / x),
    ("exp", np.exp),
    ("log", np.log),
    ("tanh", np.tanh),
    ("sin", np.sin),
    ("cos", np.cos),
    ("square", np.square),
    ("neg __neg__", np.negative),
    ("abs", np.abs),
    ("relu", lambda x: np.maximum(x, 0)),
    ("sigmoid", _sigmoid),
    ("silu swish", lambda x: x * _sigmoid(x)),
    ("cast to float half bfloat16 reshape clone view flatten contiguous", _same),
)
for _names, _function in _UNARY:
    computes(*_names.split())(_unary(_function))


# -- gradients -----------------------------------------------------------------------------------


def _slope(function: Callable[[Array], Array]) -> Kernel:
    """The gradient of a call: what comes in times the slope at the forward input."""
    return lambda call: call.tensor("input.0") * function(call.saved("input.0"))


def _silu_slope(x: Array) -> Array:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


_SLOPES: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("relu", lambda x: (x > 0).astype(np.float64)),
    ("tanh", lambda x: 1 - np.tanh(x) ** 2),
    ("sigmoid", lambda x: _sigmoid(x) * (1 - _sigmoid(x))),
    ("silu", _silu_slope),
    ("exp", np.exp),
    ("sqrt", lambda x: 0.5 / np.sqrt(x)),
    ("rsqrt", lambda x: -0.5 * x**-1.5),
    ("neg", lambda x: -np.ones_like(x)),
)
for _names, _function in _SLOPES:
    computes(f"{_names}.backward")(_slope(_function))


@computes("relugrad")
def _relu_grad(call: Call) -> Array:
    return call.operand(0) * (call.operand(1) > 0)


@computes("tanhgrad")
def _tanh_grad(call: Call) -> Array:
    return call.operand(1) * (1 - call.operand(0) ** 2)


@computes("sigmoidgrad")
def _sigmoid_grad(call: Call) -> Array:
    y = call.operand(0)
    return call.operand(1) * y * (1 - y)


@computes("silugrad")
def _silu_grad(call: Call) -> Array:
    return call.operand(0) * _silu_slope(call.operand(1))


# -- gelu ----------------------------------------------------------------------------------------

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def _erf(x: Array) -> Array:
    values: Array = np.vectorize(math.erf, otypes=[np.float64])(x)
    return values


@computes("gelu", "geluext")
def _gelu(call: Call) -> Array:
    x = call.operand(0)
    if _is_tanh(call, call.op):
        return 0.5 * x * (1 + np.tanh(_ROOT * (x + _CUBIC * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _is_tanh(call: Call, op: Op | None) -> bool:
    """MindSpore's GeLU is the tanh approximation, PyTorch's only if it is asked for."""
    if call.run.framework == "mindspore":
        return True
    values = (op or call.op).attributes
    return "tanh" in (values.get("input.approximate"), values.get("input.1"))


@computes("gelu.backward")
def _gelu_backward(call: Call) -> Array:
    x = call.saved("input.0")
    return call.tensor("input.0") * _gelu_slope(x, _is_tanh(call, call.forward))


@computes("gelugrad")
def _gelu_grad(call: Call) -> Array:
    return call.operand(0) * _gelu_slope(call.operand(1), _is_tanh(call, None))


def _gelu_slope(x: Array, is_tanh: bool) -> Array:
    if is_tanh:
        t = np.tanh(_ROOT * (x + _CUBIC * x**3))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _ROOT * (1 + 3 * _CUBIC * x * x)
    normal = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return 0.5 * (1 + _erf(x / math.sqrt(2))) + x * normal

"""Operators computed again in double precision, from the inputs that a dump holds.

Before an operator is accused, each side's output is held against what its own inputs give.  If
both agree, the operator did what it should with inputs that differ (it only passes error on, be
it magnified); if one does not, that side is the wrong one.

An operator is a function from a :class:`Call` to the arrays of its outputs by label (None: not
known); a new one is a function with :func:`_computes` before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.payload import BadPayload, read_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Results: TypeAlias = dict[str, Any]
Kernel: TypeAlias = Callable[["Call"], "Results | None"]

_MOST = 1 << 27
"""Elements of an operator's tensors beyond which nothing is computed again: 1 GiB a tensor."""


class Missing(LookupError):
    """A value that the dump does not hold."""


@dataclass(slots=True)
class Call:
    """One operator with values at hand: ``call.tensor("input.0")``, ``call.number("input.4")``."""

    run: TensorRun
    op: Op
    forward: Op | None = None
    _arrays: dict[str, Array] = field(default_factory=dict[str, Any])

    def tensor(self, label: str) -> Array:
        """An input in double precision (integers stay what they are).

        Raises:
            Missing: it is not in the dump.
        """
        if label not in self._arrays:
            self._arrays[label] = self._read(self.op, label)
        return self._arrays[label]

    def saved(self, label: str) -> Array:
        """A tensor of the forward call, for its gradient."""
        if self.forward is None:
            raise Missing(label)
        return self._read(self.forward, label)

    def has(self, label: str) -> bool:
        """Whether there is such an input."""
        columns = self.run.columns
        return any(columns.labels[at] == label for at in self.op.inputs)

    def tensors(self) -> list[Array]:
        """All inputs with values, in order."""
        return [self.tensor(self.run.columns.labels[at]) for at in self.op.inputs]

    def number(self, *labels: str, default: float | None = None) -> float:
        """A scalar argument, or a scalar attribute of the node."""
        for label in labels:
            value = self.op.attributes.get(label)
            if isinstance(value, bool | int | float):
                return float(value)
            if self.op.node is not None:
                value = self.op.node.attribute(label)
                if isinstance(value, int | float):
                    return float(value)
                if isinstance(value, tuple) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]  # attributes are plain data
                    return float(value[0])  # pyright: ignore[reportUnknownArgumentType]  # as above
        if default is None:
            raise Missing(labels[0])
        return default

    def operand(self, place: int) -> Any:
        """A tensor or scalar operand."""
        label = f"input.{place}"
        return self.tensor(label) if self.has(label) else self.number(label)

    def _read(self, op: Op, label: str) -> Array:
        import numpy as np

        columns = self.run.columns
        for at in (*op.inputs, *op.outputs):
            if columns.labels[at] == label and columns.files[at]:
                if math.prod(columns.shapes[at]) > _MOST:
                    raise Missing(label)
                array = read_array(columns.files[at], columns.dtypes[at])
                return array.astype(np.float64) if array.dtype.kind == "f" else array
        raise Missing(label)


_KERNELS: dict[str, Kernel] = {}


def _computes(*names: str) -> Callable[[Kernel], Kernel]:
    def add(kernel: Kernel) -> Kernel:
        for name in names:
            _KERNELS[name] = kernel
        return kernel

    return add


def can_compute(op: Op) -> bool:
    """Whether there is a function for an operator."""
    return _key(op) in _KERNELS


def _key(op: Op) -> str:
    return op.type.lower() + (".backward" if op.call and op.phase == "backward" else "")


def recomputed(run: TensorRun, op: Op, forward: Op | None = None) -> Mapping[str, Any] | None:
    """Outputs by label in double precision; None where the operator or a value is not known."""
    import numpy as np

    kernel = _KERNELS.get(_key(op))
    if kernel is None or op.is_module:
        return None
    try:
        with np.errstate(all="ignore"):
            found = kernel(Call(run, op, forward))
    except (Missing, BadPayload, ValueError, IndexError, TypeError, MemoryError):
        return None
    return {label: np.asarray(value) for label, value in found.items()} if found else None


def _out(array: Any) -> Results:
    return {"output.0": array}


# -- element by element --------------------------------------------------------------------------


@_computes("add", "__add__", "__radd__", "__iadd__", "add_", "biasadd", "tensoradd", "addext")
def _add(call: Call) -> Results | None:
    scale = call.number("input.alpha", default=1.0)
    return _out(call.operand(0) + scale * call.operand(1))


@_computes("sub", "__sub__", "__isub__", "sub_", "subext")
def _sub(call: Call) -> Results | None:
    return _out(call.operand(0) - call.number("input.alpha", default=1.0) * call.operand(1))


@_computes("__rsub__", "rsub")
def _rsub(call: Call) -> Results | None:
    return _out(call.operand(1) - call.operand(0))


@_computes("mul", "__mul__", "__rmul__", "__imul__", "mul_", "muls")
def _mul(call: Call) -> Results | None:
    return _out(call.operand(0) * call.operand(1))


@_computes("div", "realdiv", "__truediv__", "__itruediv__", "div_")
def _div(call: Call) -> Results | None:
    return _out(call.operand(0) / call.operand(1))


@_computes("addn", "accumulatenv2")
def _addn(call: Call) -> Results | None:
    return _out(sum(call.tensors()))


@_computes("lerp_", "lerp")
def _lerp(call: Call) -> Results | None:
    start, end = call.operand(0), call.operand(1)
    return _out(start + call.operand(2) * (end - start))


@_computes("addcmul_", "addcmul")
def _addcmul(call: Call) -> Results | None:
    scale = call.number("input.value", "input.3", default=1.0)
    return _out(call.operand(0) + scale * call.operand(1) * call.operand(2))


@_computes("addcdiv_", "addcdiv")
def _addcdiv(call: Call) -> Results | None:
    scale = call.number("input.value", "input.3", default=1.0)
    return _out(call.operand(0) + scale * call.operand(1) / call.operand(2))


@_computes("masked_fill", "masked_fill_", "maskedfill")
def _masked_fill(call: Call) -> Results | None:
    import numpy as np

    return _out(np.where(call.operand(1), call.operand(2), call.operand(0)))


def _unary(function: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(call: Call) -> Results | None:
        import numpy as np

        return _out(function(np, call.operand(0)))

    return kernel


for _names, _function in (
    (("sqrt", "sqrt_"), lambda np, x: np.sqrt(x)),
    (("rsqrt", "rsqrt_"), lambda np, x: 1 / np.sqrt(x)),
    (("exp",), lambda np, x: np.exp(x)),
    (("log",), lambda np, x: np.log(x)),
    (("tanh",), lambda np, x: np.tanh(x)),
    (("square",), lambda np, x: x * x),
    (("neg", "__neg__"), lambda np, x: -x),
    (("abs",), lambda np, x: np.abs(x)),
    (("relu",), lambda np, x: np.maximum(x, 0)),
    (("sigmoid",), lambda np, x: 1 / (1 + np.exp(-x))),
    (("silu", "swish"), lambda np, x: x / (1 + np.exp(-x))),
    (("cast", "to", "float", "half", "bfloat16", "reshape", "clone", "view", "flatten",
      "contiguous"), lambda np, x: x),
):  # fmt: skip
    _computes(*_names)(_unary(_function))


def _erf(x: Any) -> Any:
    import numpy as np

    return np.vectorize(math.erf, otypes=[np.float64])(x)


@_computes("gelu", "geluext")
def _gelu(call: Call) -> Results | None:
    import numpy as np

    x = call.operand(0)
    if _is_tanh(call):
        return _out(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return _out(0.5 * x * (1 + _erf(x / math.sqrt(2))))


def _is_tanh(call: Call, op: Op | None = None) -> bool:
    """MindSpore's GeLU is the tanh approximation, PyTorch's only if it is asked for."""
    if call.run.framework == "mindspore":
        return True
    values = (op or call.op).attributes
    return "tanh" in (values.get("input.approximate"), values.get("input.1"))


@_computes("gelu.backward")
def _gelu_backward(call: Call) -> Results | None:
    return _out(call.tensor("input.0") * _gelu_slope(call, call.saved("input.0"), call.forward))


@_computes("gelugrad")
def _gelu_grad(call: Call) -> Results | None:
    return _out(call.operand(0) * _gelu_slope(call, call.operand(1), None))


def _gelu_slope(call: Call, x: Any, op: Op | None) -> Any:
    import numpy as np

    if _is_tanh(call, op):
        c = math.sqrt(2 / math.pi)
        t = np.tanh(c * (x + 0.044715 * x**3))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)
    return 0.5 * (1 + _erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


# -- products ------------------------------------------------------------------------------------


@_computes("matmul", "batchmatmul", "bmm", "mm", "__matmul__", "matmulext")
def _matmul(call: Call) -> Results | None:
    a, b = call.tensor("input.0"), call.tensor("input.1")
    if call.number("input.2", "transpose_a", default=0.0):
        a = a.swapaxes(-1, -2)
    if call.number("input.3", "transpose_b", default=0.0):
        b = b.swapaxes(-1, -2)
    return _out(a @ b)


@_computes("linear", "dense")
def _linear(call: Call) -> Results | None:
    y = call.tensor("input.0") @ call.tensor("input.1").T
    return _out(y + call.tensor("input.2") if call.has("input.2") else y)


@_computes("linear.backward")
def _linear_backward(call: Call) -> Results | None:
    gradient = call.tensor("input.0")
    x, w = call.saved("input.0"), call.saved("input.1")
    rows = gradient.reshape(-1, gradient.shape[-1])
    found: Results = {
        "output.0": gradient @ w,
        "output.1": rows.T @ x.reshape(-1, x.shape[-1]),
        "output.2": rows.sum(axis=0),
    }
    return found


@_computes("matmul.backward", "bmm.backward")
def _matmul_backward(call: Call) -> Results | None:
    gradient = call.tensor("input.0")
    a, b = call.saved("input.0"), call.saved("input.1")
    if a.ndim != b.ndim or a.ndim < 2:
        return None
    return {"output.0": gradient @ b.swapaxes(-1, -2), "output.1": a.swapaxes(-1, -2) @ gradient}


@_computes("biasaddgrad")
def _bias_gradient(call: Call) -> Results | None:
    x = call.tensor("input.0")
    return _out(x.reshape(-1, x.shape[-1]).sum(axis=0)) if x.ndim == 2 else None


@_computes("reducesum", "sum", "sumext")
def _sum(call: Call) -> Results | None:
    x = call.tensor("input.0")
    columns = call.run.columns
    shape = columns.shapes[call.op.outputs[0]]
    axes = _axes(x.shape, shape)
    return None if axes is None else _out(x.sum(axis=axes).reshape(shape))


def _axes(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...] | None:
    """Which axes a reduction took, where the shapes leave no choice."""
    if not after or math.prod(after) == 1:
        return tuple(range(len(before)))
    if len(before) == len(after):
        axes = tuple(n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        return axes if all(after[n] == 1 for n in axes) else None
    return None


# -- over the last axis --------------------------------------------------------------------------


@_computes("softmax", "softmaxext")
def _softmax(call: Call) -> Results | None:
    import numpy as np

    x = call.tensor("input.0")
    axis = int(call.number("input.dim", "input.1", "axis", default=-1.0))
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return _out(e / e.sum(axis=axis, keepdims=True))


@_computes("softmax.backward")
def _softmax_backward(call: Call) -> Results | None:
    gradient, y = call.tensor("input.0"), call.saved("output.0")
    if call.forward is None:
        return None
    values = call.forward.attributes
    axis = next((v for k in ("input.dim", "input.1") if isinstance(v := values.get(k), int)), -1)
    return _out(y * (gradient - (gradient * y).sum(axis=axis, keepdims=True)))


@_computes("layernorm", "layer_norm")
def _layer_norm(call: Call) -> Results | None:
    import numpy as np

    x = call.tensor("input.0")
    if call.op.type == "layer_norm":
        count = max(1, sum(key.startswith("input.1.") for key in call.op.attributes))
        gamma, beta, epsilon = "input.2", "input.3", call.number("input.4", "input.eps")
    else:
        count, gamma, beta = 1, "input.1", "input.2"
        epsilon = call.number("input.5", "epsilon")
    axes = tuple(range(x.ndim - count, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    spread = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    y = (x - mean) / np.sqrt(spread + epsilon)
    if call.has(gamma):
        y = y * call.tensor(gamma)
    return _out(y + call.tensor(beta) if call.has(beta) else y)


@_computes("embedding")
def _embedding(call: Call) -> Results | None:
    return _out(call.tensor("input.1")[call.tensor("input.0")])


@_computes("cross_entropy")
def _cross_entropy(call: Call) -> Results | None:
    import numpy as np

    x, labels = call.tensor("input.0"), call.tensor("input.1")
    smoothing = call.number("input.label_smoothing", "input.7", default=0.0)
    if x.ndim != 2 or labels.dtype.kind == "f" or smoothing or (labels < 0).any():
        return None
    top = x.max(axis=1, keepdims=True)
    logs = x - top - np.log(np.exp(x - top).sum(axis=1, keepdims=True))
    picked = -logs[np.arange(len(labels)), labels]
    reduction = call.op.attributes.get("input.reduction") or call.op.attributes.get("input.6")
    return _out(picked.sum() if reduction == "sum" else picked.mean())


# -- optimizers ----------------------------------------------------------------------------------


def state_before(run: TensorRun, op: Op) -> Mapping[str, Any] | None:
    """What an optimizer found, worked out from what it wrote.

    A dump shows parameters and moments after the step.  Two steps that found the same state differ
    by their gradients alone, so the state before has to be equal on both sides.  As
    ``nn.AdamWeightDecay`` computes: ``m = b1·m0 + (1 - b1)·g``, ``v = b2·v0 + (1 - b2)·g²``,
    ``w = w0 - rate·(m / (sqrt(v) + eps) + decay·w0)``.
    """
    import numpy as np

    if op.type.lower() != "adamweightdecay":
        return None
    call = Call(run, op)
    try:
        weight, moment, square, gradient = (
            call._read(op, f"input.{place}")  # pyright: ignore[reportPrivateUsage]  # same module
            for place in (0, 1, 2, 8)
        )
        rate, beta1, beta2 = (_one(call, place) for place in (3, 4, 5))
        epsilon, decay = _one(call, 6), _one(call, 7)
    except (Missing, BadPayload, ValueError, TypeError):
        return None
    step = moment / (np.sqrt(square) + epsilon)
    return {
        "input.0": (weight + rate * step) / (1 - rate * decay),
        "input.1": moment - (1 - beta1) * gradient,
        "input.2": square - (1 - beta2) * gradient * gradient,
    }


def _one(call: Call, place: int) -> float:
    """A scalar argument, be it dumped with a dimension or without."""
    label = f"input.{place}"
    if call.has(label):
        return float(call.tensor(label).reshape(-1)[0])
    return call.number(label)

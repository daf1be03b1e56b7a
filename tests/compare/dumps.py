"""Small tensor dumps, written as the frameworks' tools write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]


def leaf(values: Values, file: str = "", dtype: str = "torch.float32") -> dict[str, Any]:
    """A tensor as msprobe states it."""
    is_real = values.dtype.kind == "f"  # of whole numbers it states extremes alone
    found: dict[str, Any] = {
        "type": "torch.Tensor", "dtype": dtype, "shape": list(values.shape),
        "Max": float(values.max()), "Min": float(values.min()),
        "Mean": float(values.mean()) if is_real else None,
        "Norm": float(np.linalg.norm(values)) if is_real else None, "requires_grad": True,
    }  # fmt: skip
    if file:
        found["data_name"] = file
    return found


Entry = tuple[str, Sequence[Any], Values | Sequence[Values]]
"""Name, arguments (arrays, or plain values), result or results."""


def msprobe(
    folder: Path, entries: Sequence[Entry], tensors: bool = False, framework: str = "pytorch"
) -> Path:
    """A dump of some calls, with or without the values."""
    step = folder / "step0" / "rank0"
    (step / "dump_tensor_data").mkdir(parents=True)
    data: dict[str, Any] = {}
    for name, arguments, result in entries:
        inputs = [
            _argument(step, f"{name}.input.{place}", value, tensors)
            for place, value in enumerate(arguments)
        ]
        results = [result] if isinstance(result, np.ndarray) else result
        output = [
            _argument(step, f"{name}.output.{place}", value, tensors)
            for place, value in enumerate(results)
        ]
        if name.endswith(".backward"):
            data[name] = {"input": inputs, "output": output}
        else:
            data[name] = {"input_args": inputs, "input_kwargs": {}, "output": output}
    document = {"task": "tensor" if tensors else "statistics", "level": "L1",
                "framework": framework, "data": data}  # fmt: skip
    (step / "dump.json").write_text(json.dumps(document))
    (step / "stack.json").write_text(
        json.dumps({name: [f"File model.py, line {n}, in f, \n x"] for n, name in enumerate(data)})
    )
    return folder


def _argument(step: Path, name: str, value: Any, tensors: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return None if value is None else {"type": type(value).__name__, "value": value}
    if tensors:
        np.save(step / "dump_tensor_data" / f"{name}.npy", value)
    return leaf(value, f"{name}.npy" if tensors else "", f"torch.{value.dtype}")


def npy(folder: Path, op: str, name: str, time: int, values: Mapping[str, Values]) -> None:
    """The files of one launch as MindSpore dumps it: ``{"input.0": …, "output.0": …}``."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, (place, array) in enumerate(values.items()):
        file = f"{op}.{name}.0.0.{time + n}.{place}.DefaultFormat.Float32.npy"
        np.save(folder / file, array)


def network(epsilon: float = 1e-5, noise: float = 0.0, axis: int = -1) -> list[Entry]:
    """A norm, a product, a softmax and a product, with what may be wrong in them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 16)).astype(np.float32)
    w = rng.standard_normal((16, 16)).astype(np.float32)
    ones, zeros = np.ones(16, np.float32), np.zeros(16, np.float32)
    spread = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    n = ((x - x.mean(-1, keepdims=True)) / spread).astype(np.float32)
    n = (n * (1 + noise * rng.standard_normal(n.shape))).astype(np.float32)
    m = (n @ w.T).astype(np.float32)
    e = np.exp(m - m.max(axis, keepdims=True))
    s = (e / e.sum(axis, keepdims=True)).astype(np.float32)
    o = (s @ w.T).astype(np.float32)
    return [
        ("Functional.layer_norm.0.forward", (x, 16, ones, zeros, epsilon), n),
        ("Functional.linear.0.forward", (n, w), m),
        ("Torch.softmax.0.forward", (m, axis), s),
        ("Functional.linear.1.forward", (s, w), o),
    ]

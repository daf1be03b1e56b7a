"""Operators computed again in double precision give what PyTorch and MindSpore give.

``single_calls.jsonl.xz``: single calls on small tensors, and their gradients, as PyTorch 2.13 (in
double precision) and MindSpore 2.7.0 (in single precision, on the CPU) computed them.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors.judging.reexecute import can_compute, recomputed, state_before
from irtool.compare.tensors.model import Columns, Op, Phase, TensorRun

RECORDED = lzma.decompress((Path(__file__).parent / "single_calls.jsonl.xz").read_bytes())
CALLS: list[dict[str, Any]] = list(map(json.loads, RECORDED.splitlines()))
NAMED = [pytest.param(call, id=f"{n}-{call['type']}") for n, call in enumerate(CALLS)]
WITH_GRADIENT = [
    pytest.param(call, id=f"{n}-{call['type']}")
    for n, call in enumerate(CALLS)
    if "gradient" in call and can_compute(Op(0, "", call["type"], "backward", [], [], call="x"))
]


class Dump:
    """A dump of few tensors, with their values in files."""

    def __init__(self, folder: Path, framework: str) -> None:
        self.folder, self.columns = folder, Columns()
        self.run = TensorRun("run", "msprobe", "tensors", framework, self.columns, [])

    def put(self, label: str, values: Any) -> int:
        array = np.asarray(values)
        kinds = {"f": "Float64", "i": "Int64", "b": "Bool"}
        file = self.folder / f"{len(self.columns)}.npy"
        np.save(file, array)
        return self.columns.add(label, kinds[array.dtype.kind], array.shape, file=str(file))

    def op(
        self, call: dict[str, Any], inputs: dict[str, Any], outputs: list[Any], phase: Phase
    ) -> Op:
        places = [self.put(label, values) for label, values in inputs.items()]
        made = [self.put(f"output.{n}", values) for n, values in enumerate(outputs)]
        attributes = {
            key: tuple(v) if isinstance(v, list) else v for key, v in call["plain"].items()
        }
        named = "" if "node" in call else "call"
        return Op(0, "", call["type"], phase, places, made, attributes=attributes, call=named)


def dump_of(folder: Path, call: dict[str, Any]) -> Dump:
    return Dump(folder, "mindspore" if "node" in call else "pytorch")


@pytest.mark.parametrize("call", NAMED)
def test_a_result(tmp_path: Path, call: dict[str, Any]) -> None:
    dump = dump_of(tmp_path, call)
    op = dump.op(call, call["tensors"], [call["result"]], "forward")
    found = recomputed(dump.run, op)
    assert found is not None
    assert list(found) == ["output.0"]
    assert found["output.0"].shape == np.shape(call["result"])
    near = 3e-6 if "node" in call else 1e-12
    np.testing.assert_allclose(found["output.0"], call["result"], rtol=near, atol=near)


@pytest.mark.parametrize("call", WITH_GRADIENT)
def test_the_gradients_of_a_call(tmp_path: Path, call: dict[str, Any]) -> None:
    dump = dump_of(tmp_path, call)
    forward = dump.op(call, call["tensors"], [call["result"]], "forward")
    op = dump.op(call, {"input.0": call["gradient"]}, call["gradients"], "backward")
    found = recomputed(dump.run, op, forward)
    assert found
    for label, values in found.items():
        expected = call["gradients"][int(label.removeprefix("output."))]
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert recomputed(dump.run, op) is None  # without the call that it is the gradient of


def test_gradients_of_what_is_common_are_computed() -> None:
    known = {param.values[0]["type"] for param in WITH_GRADIENT}  # pyright: ignore
    assert known >= {"relu", "tanh", "sigmoid", "silu", "exp", "sqrt", "rsqrt", "neg", "gelu",
                     "softmax", "linear", "matmul", "bmm", "mm"}  # fmt: skip


def test_what_is_not_in_the_dump_is_not_computed(tmp_path: Path) -> None:
    call: dict[str, Any] = {"type": "linear", "plain": {}}
    dump = Dump(tmp_path, "pytorch")
    assert recomputed(dump.run, dump.op(call, {"input.0": np.ones((2, 2))}, [], "forward")) is None
    assert recomputed(dump.run, Op(0, "", "no_such_call", "forward", [], [])) is None


@pytest.mark.parametrize(
    ("type_", "tensors", "plain"),
    [
        ("cross_entropy", {"input.0": [[0.5, 1.0]], "input.1": [[0.5, 0.5]]}, {}),
        ("cross_entropy", {"input.0": [[0.5, 1.0]], "input.1": [-100]}, {}),
        (
            "cross_entropy",
            {"input.0": [[0.5, 1.0]], "input.1": [1]},
            {"input.label_smoothing": 0.1},
        ),
        ("cross_entropy", {"input.0": [[[0.5, 1.0]]], "input.1": [[1, 0]]}, {}),
        ("sum", {"input.0": [[1.0, 2.0], [3.0, 4.0]]}, {}),
        ("gather", {"input.0": [[1.0], [2.0]], "input.1": [0]}, {}),
    ],
)
def test_what_the_shapes_or_arguments_leave_open_is_not_computed(
    tmp_path: Path, type_: str, tensors: dict[str, Any], plain: dict[str, Any]
) -> None:
    """Probabilities, ignored labels, smoothing, classes in another axis; which axis was summed."""
    dump = Dump(tmp_path, "pytorch")
    op = dump.op({"type": type_, "plain": plain}, tensors, [np.ones(2)], "forward")
    assert recomputed(dump.run, op) is None


def test_what_an_optimizer_found_follows_from_what_it_wrote(tmp_path: Path) -> None:
    """One step of AdamWeightDecay, forwards by its formula, and back."""
    chance = np.random.default_rng(2)
    weight, moment, gradient = chance.standard_normal((3, 4, 2))
    square = chance.uniform(0.1, 1, (4, 2))
    rate, beta1, beta2, epsilon, decay = 0.1, 0.9, 0.99, 1e-3, 0.05
    moved = beta1 * moment + (1 - beta1) * gradient
    squared = beta2 * square + (1 - beta2) * gradient**2
    written = weight - rate * (moved / (np.sqrt(squared) + epsilon) + decay * weight)
    dump = Dump(tmp_path, "mindspore")
    tensors = {"input.0": written, "input.1": moved, "input.2": squared, "input.8": gradient}
    plain = dict(zip(range(3, 8), (rate, beta1, beta2, epsilon, decay), strict=True))
    call = {"type": "AdamWeightDecay", "node": True,
            "plain": {f"input.{place}": value for place, value in plain.items()}}  # fmt: skip
    found = state_before(dump.run, dump.op(call, tensors, [], "optimizer"))
    assert found is not None
    for label, before in (("input.0", weight), ("input.1", moment), ("input.2", square)):
        np.testing.assert_allclose(found[label], before, rtol=1e-12)
    assert (
        state_before(dump.run, dump.op(call | {"type": "Adam"}, tensors, [], "optimizer")) is None
    )

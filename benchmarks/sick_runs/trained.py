# ruff: noqa: E501
# a case, or a strategy, a line
"""A perceptron that is really trained, with an operator that leaves what numbers can hold.

For an instrument that runs a sharded network on processes of one machine: ``tower(devices, rank,
…)`` gives a training cell and the batches of a step.
"""

from __future__ import annotations

import zlib
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Layer(nn.Cell):
    def __init__(self, name: str, width: int, inner: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp, sharded = o["dp"], o["tp"], o["sharded"]
        self.up, self.down = (
            self.made(f"{name}.{part}", shape, o["seed"])
            for part, shape in (("up", (width, inner)), ("down", (inner, width)))
        )
        self.one, self.two, self.act, self.join = ops.MatMul(), ops.MatMul(), ops.Tanh(), ops.Add()
        self.log, self.exp, self.sqrt, self.div, self.mul = (
            ops.Log(),
            ops.Exp(),
            ops.Sqrt(),
            ops.RealDiv(),
            ops.Mul(),
        )
        self.relu, self.cast, self.sub = ops.ReLU(), ops.Cast(), ops.Sub()
        self.fault = o["fault"] if o["fault_in"] == name else ""
        if sharded:
            self.one.shard(((dp, 1), (1, tp)))
            self.two.shard(((dp, tp), (tp, 1)))
            for each in (self.act, self.log, self.exp, self.sqrt, self.relu):
                each.shard(((dp, tp),))
            self.mul.shard(((dp, tp), ()))
            self.div.shard(((dp, tp), (dp, tp)))
            self.sub.shard(((dp, tp), (dp, tp)))
            self.join.shard(((dp, 1), (dp, 1)))

    @staticmethod
    def made(name: str, shape: tuple[int, int], seed: int) -> Parameter:
        random = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return Parameter(
            Tensor((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)),
            name=name,
        )

    def construct(self, x: Any) -> Any:
        y = self.act(self.one(x, self.up))
        if self.fault == "log":
            y = self.log(self.relu(y))
        if self.fault == "exp":
            y = self.exp(self.mul(y, 1e4))
        if self.fault == "sqrt":
            y = self.sqrt(y)
        if self.fault == "div":
            y = self.div(y, self.sub(y, y))
        if self.fault == "half":
            y = self.cast(self.cast(self.mul(y, 1e6), ms.float16), ms.float32)
        if self.fault == "mul":
            y = self.mul(self.mul(y, 3e30), 3e30)
        return self.join(x, self.two(y, self.down))


FAULTS = {
    "log": "Log",
    "exp": "Exp",
    "sqrt": "Sqrt",
    "div": "RealDiv|Div",
    "half": "Cast",
    "mul": "Mul",
}


class Tower(nn.Cell):
    def __init__(self, width: int, inner: int, layers: int, o: dict[str, Any]) -> None:
        super().__init__()
        self.layers = nn.CellList([Layer(f"layer{i}", width, inner, o) for i in range(layers)])

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Square(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.sub, self.square, self.mean = ops.Sub(), ops.Square(), ops.ReduceMean()
        if o["sharded"]:
            self.sub.shard(((dp, 1), (dp, 1)))
            self.square.shard(((dp, 1),))
            self.mean.shard(((dp, 1),))

    def construct(self, y: Any, label: Any) -> Any:
        return self.mean(self.square(self.sub(y, label)))


def tower(
    devices: int, rank: int, dp: int = 1, tp: int = 1, seed: int = 0, width: int = 16, inner: int = 32,
    layers: int = 3, rows: int = 16, fault: str = "", fault_in: str = "", rate: float = 0.05,
    bad: str = "", bad_from: int = 0,
) -> Any:  # fmt: skip
    """A training cell and its batches; from step ``bad_from`` on, counted from 0, data are ``bad``."""
    o = {
        "dp": dp,
        "tp": tp,
        "sharded": devices > 1,
        "seed": seed,
        "fault": fault,
        "fault_in": fault_in,
    }
    network = Tower(width, inner, layers, o)
    cell = nn.TrainOneStepCell(
        nn.WithLossCell(network, Square(o)), nn.Momentum(network.trainable_params(), rate, 0.9)
    )

    def batches(step: int, rank: int) -> tuple[Any, ...]:
        random = np.random.default_rng([seed, 1000 + step])
        x = random.standard_normal((rows, width)).astype(np.float32)
        y = np.sin(x * 2).astype(np.float32)
        if step >= bad_from:
            x, y = BAD[bad](x, y)
        return x, y

    return cell, batches


BAD: dict[str, Any] = {
    "": lambda x, y: (x, y),
    "scale": lambda x, y: (x * 3, y),
    "labels": lambda x, y: (x, y[::-1].copy()),
    "half_batch": lambda x, y: (
        np.concatenate([x[: len(x) // 2]] * 2),
        np.concatenate([y[len(y) // 2 :]] * 2),
    ),
    "nan": lambda x, y: (
        np.where(np.arange(x.size).reshape(x.shape) == 5, np.nan, x).astype(np.float32),
        y,
    ),
    "huge": lambda x, y: (x, y * np.float32(1e25)),
}
"""What is wrong with data, by its name."""

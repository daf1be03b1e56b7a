"""Stacked gated recurrent units, unrolled in time: ``build(settings)``.

Each unit is one cell that is called once a step of the sequence, so that its operators stand in the
graph as often; the loss is of the last state, RMSProp trains with a table of learning rates.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "half": False, "recompute": (), "keep": 0.9, "epsilon": 1e-5, "print": "", "layer": {},
    "rows": None, "act": "tanh", "rate": 1e-2, "steps": 3,
}  # fmt: skip


class Unit(nn.Cell):
    """One gated recurrent unit: gates of two products, normalised."""

    def __init__(self, into: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp, hidden = o["dp"], o["tp"], o["hidden"]
        self.w = Parameter(initializer("normal", (into, 3 * hidden), ms.float32))
        self.u = Parameter(initializer("normal", (hidden, 3 * hidden), ms.float32))
        self.b = Parameter(initializer("zeros", (3 * hidden,), ms.float32))
        rows = ((dp, 1), (1, tp)) if o["rows"] is None else o["rows"]
        self.first = ops.MatMul().shard(rows)
        self.second = ops.MatMul().shard(((dp, 1), (1, tp)))
        two = ((dp, 1), (dp, 1))
        self.bias = ops.BiasAdd().shard(((dp, 1), (1,)))
        self.split = ops.Split(1, 3).shard(((dp, 1),))
        self.sigmoid1, self.sigmoid2 = (ops.Sigmoid().shard(((dp, 1),)) for _ in range(2))
        kind = {"tanh": ops.Tanh, "relu": ops.ReLU}[o["act"]]
        self.act = kind().shard(((dp, 1),))
        self.add1, self.add2, self.add3, self.add4 = (ops.Add().shard(two) for _ in range(4))
        self.mul1, self.mul2, self.mul3 = (ops.Mul().shard(two) for _ in range(3))
        self.sub = ops.Sub().shard(((), (dp, 1)))
        self.norm = nn.LayerNorm((hidden,), epsilon=o["epsilon"])
        self.norm.layer_norm.shard(((dp, 1), (1,), (1,)))
        self.drop, self.drops = nn.Dropout(p=1 - o["keep"]), o["keep"] < 1
        if self.drops:
            self.drop.dropout.shard(((dp, 1),))
        self.half, self.shown = o["half"], o["print"]

    def construct(self, x: Any, h: Any) -> Any:
        w, u, state = self.w, self.u, h
        if self.half:
            x, state, w, u = (ops.cast(each, ms.float16) for each in (x, h, w, u))
        a, c = self.first(x, w), self.second(state, u)
        if self.half:
            a, c = ops.cast(a, ms.float32), ops.cast(c, ms.float32)
        a0, a1, a2 = self.split(self.bias(a, self.b))
        c0, c1, c2 = self.split(c)
        reset, update = self.sigmoid1(self.add1(a0, c0)), self.sigmoid2(self.add2(a1, c1))
        new = self.act(self.add3(a2, self.mul1(reset, c2)))
        h = self.add4(self.mul2(self.sub(1.0, update), new), self.mul3(update, h))
        if self.shown:
            print("state", h)
        h = self.norm(h)
        return self.drop(h) if self.drops else h


class Stack(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, hidden = o["dp"], o["hidden"]
        self.units = nn.CellList()
        for number in range(o["layers"]):
            unit = Unit(hidden, {**o, **o["layer"].get(number, {})})
            if number in o["recompute"]:
                unit.recompute()
            self.units.append(unit)
        self.begin = Tensor(np.zeros((o["batch"], hidden)), ms.float32)
        self.head = nn.Dense(hidden, o["classes"])
        self.head.matmul.shard(((dp, 1), (1, 1)))
        self.head.bias_add.shard(((dp, 1), (1,)))
        self.slice = ops.StridedSlice(shrink_axis_mask=2).shard(((dp, 1, 1),))
        self.steps = o["steps"]
        self.batch, self.hidden = o["batch"], hidden

    def construct(self, x: Any) -> Any:
        count = len(self.units)
        states = [self.begin] * count
        y = self.begin
        for step in range(self.steps):
            y = self.slice(x, (0, step, 0), (self.batch, step + 1, self.hidden), (1, 1, 1))
            for number in range(count):
                y = self.units[number](y, states[number])
                states[number] = y
        return self.head(y)


class Loss(nn.Cell):
    def __init__(self, network: nn.Cell, o: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        dp = o["dp"]
        self.network = network
        self.hot = ops.OneHot().shard(((dp, 1), (), ()))
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        self.mean = ops.ReduceMean().shard(((dp,),))
        self.classes = o["classes"]

    def construct(self, x: Any, labels: Any) -> Any:
        wanted = self.hot(labels, self.classes, self.on, self.off)
        return self.mean(self.entropy(self.network(x), wanted)[0])


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {"classes": 32, **DEFAULTS, **given}
    network = Stack(o)
    rates = nn.dynamic_lr.exponential_decay_lr(o["rate"], 0.9, 10, 2, 1)
    optimizer = nn.RMSProp(network.trainable_params(), rates)
    x = Tensor(np.ones((o["batch"], o["steps"], o["hidden"])), ms.float32)
    labels = Tensor(np.ones(o["batch"]), ms.int32)
    return nn.TrainOneStepCell(Loss(network, o), optimizer), (x, labels)

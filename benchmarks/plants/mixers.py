"""Mixers of rows and columns, trained by a function: ``build(settings)``.

Unlike the other styles layers stand in an ``nn.SequentialCell``, normalise by ``ops.RmsNorm``, mix
positions by a product over a transposed tensor, and gradients come from ``value_and_grad`` in a
cell that calls the optimizer itself.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "half": False, "recompute": (), "keep": 0.9, "epsilon": 1e-5, "print": "", "layer": {},
    "rows": None, "act": "tanh", "gain": 1.0,
}  # fmt: skip


class Norm(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        self.gamma = Parameter(initializer("ones", (o["hidden"],), ms.float32), "gamma")
        self.norm = ops.RmsNorm(o["epsilon"]).shard(((o["dp"], 1, 1), (1,)))

    def construct(self, x: Any) -> Any:
        return self.norm(x, self.gamma)[0]


class Positions(nn.Cell):
    """Mixes positions: each channel's row of them by one weight."""

    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        self.weight = _weight(o["sequence"], o["sequence"])
        self.turn = ops.Transpose().shard(((dp, 1, tp),))
        self.back = ops.Transpose().shard(((dp, tp, 1),))
        self.product = ops.BatchMatMul().shard(((dp, tp, 1), (1, 1)))

    def construct(self, x: Any) -> Any:
        return self.back(self.product(self.turn(x, (0, 2, 1)), self.weight), (0, 2, 1))


class Channels(nn.Cell):
    """Mixes channels: two products with an activation between them."""

    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        self.into, self.out = _weight(o["hidden"], o["inner"]), _weight(o["inner"], o["hidden"])
        rows = ((dp, 1, tp), (tp, 1)) if o["rows"] is None else o["rows"]
        self.first = ops.BatchMatMul().shard(((dp, 1, 1), (1, tp)))
        self.second = ops.BatchMatMul().shard(rows)
        kind = {"tanh": ops.Tanh, "relu": ops.ReLU, "sigmoid": ops.Sigmoid}[o["act"]]
        self.act = kind().shard(((dp, 1, tp),))

    def construct(self, x: Any) -> Any:
        return self.second(self.act(self.first(x, self.into)), self.out)


class Mix(nn.Cell):
    """One of the two mixers behind a norm and a dropout, with a path around them."""

    def __init__(self, inner: nn.Cell, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.norm, self.inner = Norm(o), inner
        self.drop = ops.Dropout(o["keep"]).shard(((dp, 1, 1),))
        self.add = ops.Add().shard(((dp, 1, 1), (dp, 1, 1)))
        self.mul = ops.Mul().shard(((dp, 1, 1), ()))
        self.gain, self.half = o["gain"], o["half"]

    def construct(self, x: Any) -> Any:
        y = self.norm(x)
        if self.half:
            y = ops.cast(self.inner(ops.cast(y, ms.float16)), ms.float32)
        else:
            y = self.inner(y)
        if self.gain != 1.0:
            y = self.mul(y, self.gain)
        return self.add(x, self.drop(y)[0])


class Layer(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        positions, channels = Positions(o), Channels(o)
        if o["half"]:
            positions.to_float(ms.float16)
            channels.to_float(ms.float16)
        self.positions, self.channels = Mix(positions, o), Mix(channels, o)
        self.shown = o["print"]

    def construct(self, x: Any) -> Any:
        x = self.channels(self.positions(x))
        if self.shown:
            print(x)
        return x


class Network(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        cells: list[nn.Cell] = []
        for number in range(o["layers"]):
            layer = Layer({**o, **o["layer"].get(number, {})})
            if number in o["recompute"]:
                layer.recompute()
            cells.append(layer)
        self.stem = _weight(o["patch"], o["hidden"])
        self.enter = ops.BatchMatMul().shard(((dp, 1, 1), (1, 1)))
        self.stages = nn.SequentialCell(cells)
        self.leave = ops.BatchMatMul().shard(((dp, 1, 1), (1, 1)))
        self.last = _weight(o["hidden"], o["patch"])
        self.sub = ops.Sub().shard(((dp, 1, 1), (dp, 1, 1)))
        self.square = ops.Square().shard(((dp, 1, 1),))
        self.mean = ops.ReduceMean().shard(((dp, 1, 1),))

    def construct(self, x: Any, y: Any) -> Any:
        x = self.leave(self.stages(self.enter(x, self.stem)), self.last)
        return self.mean(self.square(self.sub(x, y)))


class Step(nn.Cell):
    """A step of training without MindSpore's own cell for it."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer = nn.RMSProp(network.trainable_params(), 1e-3)
        self.grads = ms.value_and_grad(network, None, self.optimizer.parameters)

    def construct(self, x: Any, y: Any) -> Any:
        loss, grads = self.grads(x, y)
        return ops.depend(loss, self.optimizer(grads))


def _weight(*shape: int) -> Parameter:
    return Parameter(initializer("normal", shape, ms.float32))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    x = Tensor(np.ones((o["batch"], o["sequence"], o["patch"])), ms.float32)
    return Step(Network(o)), (x, x)

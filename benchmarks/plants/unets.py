"""A diffusion-like U-net of residual blocks, trained with a schedule: ``build(settings)``.

Levels hold blocks (cells numbered twice), what goes down joins what goes up again, the time of each
picture is added to its channels, and the learning rate is a schedule that the optimizer computes.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "half": False, "recompute": (), "keep": 0.9, "epsilon": 1e-5, "print": "", "layer": {},
    "rows": None, "act": "sigmoid", "norm": "batch", "rate": 1e-3, "channels": 16, "steps": 1000,
    "momentum": 0.9,
}  # fmt: skip


def _conv(into: int, out: int, dp: int, stride: int = 1, size: int = 3) -> nn.Conv2d:
    conv = nn.Conv2d(into, out, size, stride, pad_mode="same")
    conv.conv2d.shard(((dp, 1, 1, 1), (1, 1, 1, 1)))
    return conv


class Swish(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        kind = {"sigmoid": ops.Sigmoid, "tanh": ops.Tanh}[o["act"]]
        self.gate = kind().shard(((o["dp"], 1, 1, 1),))
        self.mul = ops.Mul().shard(((o["dp"], 1, 1, 1), (o["dp"], 1, 1, 1)))

    def construct(self, x: Any) -> Any:
        return self.mul(x, self.gate(x))


class ResidualBlock(nn.Cell):
    def __init__(self, into: int, out: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.norm1 = nn.BatchNorm2d(into, eps=o["epsilon"], momentum=o["momentum"])
        self.norm2 = nn.BatchNorm2d(out, eps=o["epsilon"], momentum=o["momentum"])
        for norm in (self.norm1, self.norm2):
            norm.bn_train.shard(((dp, 1, 1, 1), (1,), (1,), (1,), (1,)))
        self.conv1, self.conv2 = _conv(into, out, dp), _conv(out, out, dp)
        self.skip = _conv(into, out, dp, size=1) if into != out else None
        self.act1, self.act2 = Swish(o), Swish(o)
        self.time = nn.Dense(o["channels"], out)
        self.time.matmul.shard(((dp, 1), (1, 1)) if o["rows"] is None else o["rows"])
        self.time.bias_add.shard(((dp, 1), (1,)))
        self.plus = ops.Add().shard(((dp, 1, 1, 1), (dp, 1, 1, 1)))
        self.add = ops.Add().shard(((dp, 1, 1, 1), (dp, 1, 1, 1)))
        self.drop, self.drops = nn.Dropout(p=1 - o["keep"]), o["keep"] < 1
        if self.drops:
            self.drop.dropout.shard(((dp, 1, 1, 1),))
        if o["half"]:
            self.conv1.to_float(ms.float16)
            self.conv2.to_float(ms.float16)
        self.shown = o["print"]

    def construct(self, x: Any, time: Any) -> Any:
        y = self.conv1(self.act1(self.norm1(x)))
        moved = self.time(time)
        y = self.plus(y, ops.reshape(moved, (*moved.shape, 1, 1)))
        y = self.act2(self.norm2(y))
        if self.drops:
            y = self.drop(y)
        y = self.conv2(y)
        if self.shown:
            print("block", y)
        return self.add(y, x if self.skip is None else self.skip(x))


class Level(nn.Cell):
    """Blocks of one size of pictures."""

    def __init__(self, blocks: list[nn.Cell], turn: nn.Cell | None = None) -> None:
        super().__init__()
        self.blocks, self.turn = nn.CellList(blocks), turn

    def construct(self, x: Any, time: Any) -> Any:
        for block in self.blocks:
            x = block(x, time)
        return x


class Larger(nn.Cell):
    def __init__(self, into: int, out: int, size: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.resize = ops.ResizeNearestNeighbor((size, size)).shard(((dp, 1, 1, 1),))
        self.conv = _conv(into, out, dp)

    def construct(self, x: Any) -> Any:
        return self.conv(self.resize(x))


class UNet(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, width, count, size = o["dp"], o["channels"], o["layers"], o["size"]
        self.first = _conv(3, width, dp)

        def block(number: int, into: int, out: int) -> nn.Cell:
            made = ResidualBlock(into, out, {**o, **o["layer"].get(number, {})})
            if number in o["recompute"]:
                made.recompute()
            return made

        down = [block(i, width, width) for i in range(count)]
        self.down = nn.CellList([Level(down), Level([block(-1, 2 * width, 2 * width)])])
        self.shrink = _conv(width, 2 * width, dp, stride=2)
        self.middle = block(-2, 2 * width, 2 * width)
        self.grow = Larger(2 * width, width, size, o)
        self.up = nn.CellList([Level([block(-3, 2 * width, width), block(-4, width, width)])])
        self.join = ops.Concat(1).shard(((dp, 1, 1, 1), (dp, 1, 1, 1)))
        self.last = _conv(width, 3, dp)
        self.table = Parameter(initializer("normal", (o["steps"], width), ms.float32), "times")
        self.gather = ops.Gather().shard(((1, 1), (dp,)))

    def construct(self, x: Any, time: Any) -> Any:
        moved = self.gather(self.table, time, 0)
        x = self.down[0](self.first(x), moved)
        y = self.middle(self.down[1](self.shrink(x), moved), moved)
        return self.last(self.up[0](self.join((self.grow(y), x)), moved))


class Noise(nn.Cell):
    """How far the network is from the noise that was put in."""

    def __init__(self, network: nn.Cell, o: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        four = (o["dp"], 1, 1, 1)
        self.network = network
        self.sub, self.square = ops.Sub().shard((four, four)), ops.Square().shard((four,))
        self.mean = ops.ReduceMean().shard((four,))

    def construct(self, x: Any, time: Any, noise: Any) -> Any:
        return self.mean(self.square(self.sub(self.network(x, time), noise)))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    network = UNet(o)
    schedule = nn.CosineDecayLR(0.0, o["rate"], 100)
    optimizer = nn.Adam(network.trainable_params(), schedule)
    x = Tensor(np.ones((o["batch"], 3, o["size"], o["size"])), ms.float32)
    times = Tensor(np.ones(o["batch"]), ms.int32)
    return nn.TrainOneStepCell(Noise(network, o), optimizer), (x, times, x)

"""A network with a region that is compiled as it is, or as one sharded function.

Imported by the compiler of ``plan_region.py``. REGION names a JSON file with ``in_strategy`` and
``out_strategy`` of the region; without it nothing is sharded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Product(nn.Cell):
    """``act(x w)``."""

    def __init__(self, rows: int, columns: int, name: str) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.ones((rows, columns)), ms.float32), name=f"{name}.weight")
        self.product = ops.MatMul()
        self.act = ops.GeLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.product(x, self.weight))


class Region(nn.Cell):
    """Two products and what they are added to."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.up = Product(size, 4 * size, "up")
        self.down = Product(4 * size, size, "down")
        self.add = ops.Add()

    def construct(self, x: Tensor, rest: Tensor) -> Tensor:
        return self.add(self.down(self.up(x)), rest)


class Network(nn.Cell):
    """A product, the region, a product."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = Product(size, size, "first")
        self.region = Region(size)
        self.last = Product(size, size, "last")
        self.sharded = _sharded(self.region)

    def construct(self, x: Tensor) -> Tensor:
        y = self.first(x)
        if self.sharded is None:
            return self.last(self.region(y, x))
        return self.last(self.sharded(y, x))


def _sharded(region: nn.Cell) -> Callable[..., Tensor] | None:
    """The region as a sharded function, if REGION says how."""
    path = os.environ.get("REGION")
    if not path:
        return None
    with open(path, encoding="utf-8") as stream:
        given = json.load(stream)
    rows = [tuple(tuple(row) for row in given[key]) for key in ("in_strategy", "out_strategy")]
    return ms.shard(region, in_strategy=rows[0], out_strategy=rows[1])


def network() -> tuple[nn.Cell, tuple[Tensor, Tensor]]:
    """A step of training, and its inputs."""
    size = int(os.environ.get("SIZE", "512"))
    net = nn.WithLossCell(Network(size), nn.MAELoss())
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 1e-3, 0.9))
    batch = Tensor(np.ones((int(os.environ.get("BATCH", "1024")), size)), ms.float32)
    return step, (batch, batch)

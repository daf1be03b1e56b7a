"""A pipeline of blocks of two products, for plants that need a dump of each stage."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell


class Block(nn.Cell):
    def __init__(self, number: int, o: dict[str, Any]) -> None:
        super().__init__()
        width, inner = o["hidden"], o["inner"] * (o["heavy"] if number in o["heavy_at"] else 1)
        self.up = _weight(f"blocks.{number}.up", width, inner)
        self.down = _weight(f"blocks.{number}.down", inner, width)
        rows = ((o["dp"], 1), (1, 1))
        self.first, self.second = ops.MatMul().shard(rows), ops.MatMul().shard(rows)
        self.act = ops.ReLU().shard(((o["dp"], 1),))

    def construct(self, x: Any) -> Any:
        return self.second(self.act(self.first(x, self.up)), self.down)


class Table(nn.Cell):
    """A product with a weight that another stage may hold as well."""

    def __init__(self, table: Parameter, o: dict[str, Any], turned: bool) -> None:
        super().__init__()
        self.table = table
        self.product = ops.MatMul(transpose_b=turned).shard(((o["dp"], 1), (1, 1)))

    def construct(self, x: Any) -> Any:
        return self.product(x, self.table)


class Network(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        count, stages = o["layers"], o["stages"]
        self.blocks = nn.CellList([Block(i, o) for i in range(count)])
        for number, block in enumerate(self.blocks):
            block.pipeline_stage = number * stages // count
        self.tied = o["head_tied"]
        if self.tied:
            table = _weight("embedding.table", o["words"], o["hidden"])
            self.begin, self.end = Table(table, o, False), Table(table, o, True)
            self.begin.pipeline_stage, self.end.pipeline_stage = 0, stages - 1

    def construct(self, x: Any) -> Any:
        if self.tied:
            x = self.begin(x)
        for block in self.blocks:
            x = block(x)
        return self.end(x) if self.tied else x


class Distance(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.sub, self.sum = ops.Sub(), ops.ReduceSum()

    def construct(self, x: Any, y: Any) -> Any:
        return self.sum(self.sub(x, y))


def _weight(name: str, *shape: int) -> Parameter:
    return Parameter(initializer("normal", shape, ms.float32), name=name)


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {"heavy": 1, "heavy_at": (), "head_tied": False, **given}
    network = Network(o)
    whole = nn.PipelineCell(nn.WithLossCell(network, Distance()), o["micro"])
    cell = _TrainGradAccuStepCell(whole, nn.Momentum(network.trainable_params(), 1e-3, 0.9))
    width = o["words"] if o["head_tied"] else o["hidden"]
    x = Tensor(np.ones((o["batch"] * o["micro"], width)), ms.float32)
    return cell, (x, x)

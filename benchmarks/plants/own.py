"""A network with an operator of the user's own, which no table knows: ``build(settings)``."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops import PrimitiveWithInfer, prim_attr_register
from mindspore.ops._grad_experimental.grad_base import bprop_getters


class FusedGate(PrimitiveWithInfer):
    """Something that works on each element, as far as anybody can see."""

    @prim_attr_register
    def __init__(self) -> None:
        self.init_prim_io_names(inputs=["x"], outputs=["out"])

    def infer_shape(self, x: Any) -> Any:
        return x

    def infer_dtype(self, x: Any) -> Any:
        return x


@bprop_getters.register(FusedGate)
def _gradient(self: Any) -> Any:
    def bprop(x: Any, out: Any, dout: Any) -> Any:
        return (dout,)

    return bprop


class Network(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp, hidden, inner = o["dp"], o["tp"], o["hidden"], o["inner"]
        self.up = Parameter(initializer("normal", (hidden, inner), ms.float32), "up")
        self.down = Parameter(initializer("normal", (inner, hidden), ms.float32), "down")
        self.first = ops.MatMul().shard(((dp, 1), (1, tp)))
        self.gate = FusedGate().shard(((dp, tp),))
        self.second = ops.MatMul().shard(((dp, tp), (tp, 1)))
        self.mean = ops.ReduceMean().shard(((dp, 1),))

    def construct(self, x: Any) -> Any:
        return self.mean(self.second(self.gate(self.first(x, self.up)), self.down))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    network = Network(given)
    cell = nn.TrainOneStepCell(network, nn.Momentum(network.trainable_params(), 0.1, 0.9))
    return cell, (Tensor(np.ones((given["batch"], given["hidden"])), ms.float32),)

"""Layers of experts behind a router, trained by a function with clipping: ``build(settings)``.

Each position goes to the experts that the router gives it, as products with masks; the layers are
compiled once (``lazy_inline``) if asked, gradients are scaled, clipped to a global norm and given
to the optimizer by a cell of one's own.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "half": False, "recompute": (), "keep": 0.9, "epsilon": 1e-6, "print": "", "layer": {},
    "rows": None, "act": "silu", "experts": 4, "chosen_experts": 2, "scale": 1024.0, "clip": 1.0,
    "lazy": False, "rate": 1e-3, "decay": 0.01,
}  # fmt: skip


def _weight(name: str, *shape: int) -> Parameter:
    return Parameter(initializer("normal", shape, ms.float32), name=name)


class Norm(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        self.gamma = Parameter(initializer("ones", (o["hidden"],), ms.float32), f"{name}.gamma")
        self.norm = ops.RmsNorm(o["epsilon"]).shard(((o["dp"], 1), (1,)))

    def construct(self, x: Any) -> Any:
        return self.norm(x, self.gamma)[0]


class Router(nn.Cell):
    """The share of each expert for each position, 0 but for those that are chosen."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.weight = _weight(f"{name}.weight", o["hidden"], o["experts"])
        self.product = ops.MatMul().shard(((dp, 1), (1, 1)))
        self.softmax = ops.Softmax().shard(((dp, 1),))
        self.top = ops.TopK().shard(((dp, 1),))
        self.count = o["chosen_experts"]
        self.hot = ops.OneHot().shard(((dp, 1, 1), (), ()))
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.experts = o["experts"]
        self.total = ops.ReduceSum().shard(((dp, 1, 1),))
        self.mul = ops.Mul().shard(((dp, 1), (dp, 1)))

    def construct(self, x: Any) -> Any:
        share = self.softmax(self.product(x, self.weight))
        _, places = self.top(share, self.count)
        mask = self.total(self.hot(places, self.experts, self.on, self.off), 1)
        return self.mul(share, mask)


class Experts(nn.Cell):
    """Two products with the weights of all experts, which lie on the devices of ``tp``."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp, experts = o["dp"], o["tp"], o["experts"]
        self.router = Router(f"{name}.router", o)
        self.into = _weight(f"{name}.into", experts, o["hidden"], o["inner"])
        self.out = _weight(f"{name}.out", experts, o["inner"], o["hidden"])
        three = (tp, dp, 1)
        self.turn = ops.Transpose().shard(((dp, 1),))
        self.spread = ops.Mul().shard(((1, dp, 1), three))
        self.first = ops.BatchMatMul().shard((three, (tp, 1, 1)))
        self.second = ops.BatchMatMul().shard(
            (three, (tp, 1, 1)) if o["rows"] is None else o["rows"]
        )
        kind = {"silu": ops.Sigmoid, "relu": ops.ReLU}[o["act"]]
        self.act = kind().shard((three,))
        self.sum = ops.ReduceSum().shard((three,))
        self.half, self.count = o["half"], experts

    def construct(self, x: Any) -> Any:
        share = self.turn(self.router(x), (1, 0))
        share = ops.reshape(share, (*share.shape, 1))
        y = self.spread(ops.reshape(x, (1, -1, x.shape[-1])), share)
        into, out = self.into, self.out
        if self.half:
            y, into, out = (ops.cast(each, ms.bfloat16) for each in (y, into, out))
        y = self.second(self.act(self.first(y, into)), out)
        if self.half:
            y = ops.cast(y, ms.float32)
        return self.sum(y, 0)


class DecoderLayer(nn.Cell):
    def __init__(self, number: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        name = f"model.layers.{number}"
        self.norm, self.experts = Norm(f"{name}.norm", o), Experts(f"{name}.experts", o)
        self.drop = ops.Dropout(o["keep"]).shard(((dp, 1),))
        self.add = ops.Add().shard(((dp, 1), (dp, 1)))
        self.shown, self.tell = o["print"], ops.Print()

    def construct(self, x: Any) -> Any:
        y = self.drop(self.experts(self.norm(x)))[0]
        if self.shown:
            self.tell("experts", y)
        return self.add(x, y)


class LazyDecoderLayer(DecoderLayer):
    @lazy_inline
    def __init__(self, number: int, o: dict[str, Any]) -> None:
        super().__init__(number, o)


class Model(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.table = _weight("model.embedding", o["words"], o["hidden"])
        self.gather = ops.Gather().shard(((1, 1), (dp,)))
        kind = LazyDecoderLayer if o["lazy"] else DecoderLayer
        self.layers = nn.CellList()
        for number in range(o["layers"]):
            layer = kind(number, {**o, **o["layer"].get(number, {})})
            if number in o["recompute"]:
                layer.recompute()
            self.layers.append(layer)
        self.norm = Norm("model.norm", {**o, "epsilon": 1e-6})
        self.head = _weight("head", o["hidden"], o["words"])
        self.product = ops.MatMul().shard(((dp, 1), (1, 1)))
        self.hot = ops.OneHot().shard(((dp, 1), (), ()))
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        self.mean = ops.ReduceMean().shard(((dp,),))
        self.words = o["words"]

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.gather(self.table, ops.reshape(ids, (-1,)), 0)
        for layer in self.layers:
            x = layer(x)
        x = self.product(self.norm(x), self.head)
        wanted = self.hot(ops.reshape(labels, (-1,)), self.words, self.on, self.off)
        return self.mean(self.entropy(x, wanted)[0])


class Step(nn.Cell):
    """Scaled gradients, clipped together."""

    def __init__(self, network: nn.Cell, o: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        parameters = network.trainable_params()
        self.optimizer = nn.AdamWeightDecay(parameters, o["rate"], weight_decay=o["decay"])
        self.weights = self.optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.scale, self.clip = o["scale"], o["clip"]

    def construct(self, ids: Any, labels: Any) -> Any:
        loss = self.network(ids, labels)
        sens = ops.fill(loss.dtype, loss.shape, self.scale)
        grads = self.grad(self.network, self.weights)(ids, labels, sens)
        scaled = ()
        for each in grads:
            scaled += (each / self.scale,)
        scaled = ops.clip_by_global_norm(scaled, self.clip)
        return ops.depend(loss, self.optimizer(scaled))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    ids = Tensor(np.ones((o["batch"], o["sequence"])), ms.int32)
    return Step(Model(o), o), (ids, ids)

"""Networks of MindSpore's own cells in which one habit a time can be planted: ``build(settings)``.

``dense`` stacks ``nn.Dense``, ``nn.LayerNorm`` and ``nn.Dropout`` with strategies on the operators
inside them and lowers precision by ``to_float``; ``images`` stacks ``nn.Conv2d`` and
``nn.BatchNorm2d``, cut along the batch alone.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "half": False, "recompute": (), "lazy": False, "keep": 0.9, "epsilon": 1e-5, "print": "",
    "turned": "", "ids": "int32", "positions": "", "dynamic": "", "guard": "", "temperature": 1.0,
    "slope": 0.1, "residual": 1.0, "clip": "", "scalars": 0, "biases": 0, "layer": {}, "cut": None,
    "rows": None, "divisor": 0, "group": 1, "momentum": 0.9, "mask": "",
}  # fmt: skip


class Layer(nn.Cell):
    """A normalised two-product block, or two convolutions, with a path around them."""

    def __init__(self, number: int, o: dict[str, Any]) -> None:
        super().__init__()
        self.o = o
        self.is_dense = o["style"] == "dense"
        dp, tp, hidden = o["dp"], o["tp"], o["hidden"]
        self.dropout = nn.Dropout(p=1 - o["keep"])
        self.drops = o["keep"] < 1
        if self.is_dense:
            self._dense(dp, tp, hidden, o)
        else:
            self._images(dp, hidden, o)
        self.guard, self.epsilon, self.how = o["guard"], o["guard_epsilon"], o["print"]
        self.spread = ops.ReduceMean(keep_dims=True)
        self.histogram, self.tensor = ops.HistogramSummary(), ops.TensorSummary()
        self.shown, self.dump = ops.Print(), ops.TensorDump()
        self.residual, self.slope = o["residual"], o["slope"]

    def _dense(self, dp: int, tp: int, hidden: int, o: dict[str, Any]) -> None:
        self.norm = nn.LayerNorm((hidden,), epsilon=o["epsilon"])
        self.norm.layer_norm.shard(((dp, 1), (1,), (1,)))
        self.up = nn.Dense(hidden, o["inner"], has_bias=False)
        self.down = nn.Dense(o["inner"], hidden, has_bias=False)
        self.up.matmul.shard(((dp, 1), (tp, 1)) if o["cut"] is None else o["cut"])
        self.down.matmul.shard(((dp, tp), (1, tp)) if o["rows"] is None else o["rows"])
        if o["half"]:
            self.up.to_float(ms.float16)
            self.down.to_float(ms.float16)
        if self.drops:
            self.dropout.dropout.shard(((dp, 1),))
        self.act = ops.GeLU().shard(((dp, tp),))
        self.add = ops.Add().shard(((dp, 1), (dp, 1)))
        self.times = ops.Mul().shard(((dp, 1), ()))
        self.turned = o["turned"]
        if self.turned:
            self.side = Parameter(initializer("normal", (hidden, hidden), ms.float32), "side")
        self.turn = ops.Transpose().shard(((1, 1),))
        self.product = ops.MatMul().shard(((dp, 1), (1, 1)))

    def _images(self, dp: int, hidden: int, o: dict[str, Any]) -> None:
        self.first = nn.Conv2d(hidden, hidden, 3, pad_mode="same", group=o["group"])
        self.second = nn.Conv2d(hidden, hidden, 3, pad_mode="same")
        self.norm1 = nn.BatchNorm2d(hidden, eps=o["epsilon"], momentum=o["momentum"])
        self.norm2 = nn.BatchNorm2d(hidden)
        self.first.conv2d.shard(((dp, 1, 1, 1), (1, 1, 1, 1)))
        self.second.conv2d.shard(((dp, 1, 1, 1), (1, 1, 1, 1)))
        self.norm1.bn_train.shard(((dp, 1, 1, 1), (1,), (1,), (1,), (1,)))
        self.norm2.bn_train.shard(((dp, 1, 1, 1), (1,), (1,), (1,), (1,)))
        self.relu = ops.ReLU().shard(((dp, 1, 1, 1),))
        self.add = ops.Add().shard(((dp, 1, 1, 1), (dp, 1, 1, 1)))
        self.times = ops.Mul().shard(((dp, 1, 1, 1), ()))
        if o["half"]:
            self.first.to_float(ms.float16)
            self.second.to_float(ms.float16)
        if self.drops:
            self.dropout.dropout.shard(((dp, 1, 1, 1),))

    def inner(self, x: Any) -> Any:
        if not self.is_dense:
            y = self.relu(self.norm1(self.first(x)))
            return self.norm2(self.second(y))
        y = self.norm(x)
        if self.guard:
            y = ops.cast(self.guarded(ops.cast(y, ms.float16)), ms.float32)
        return self.down(self.act(self.up(y)))

    def guarded(self, x: Any) -> Any:
        if self.guard == "divide":
            return x / (self.spread(x, 1) + self.epsilon)
        if self.guard == "root":
            return x / ops.sqrt(self.spread(ops.square(x), 1) + self.epsilon)
        if self.guard == "log":
            return x + ops.log(self.spread(ops.abs(x), 1) + self.epsilon)
        return x / ops.maximum(self.spread(ops.abs(x), 1), self.epsilon)

    def construct(self, x: Any) -> Any:
        y = self.inner(x)
        if self.how == "print":
            print("layer", y)
        elif self.how == "dump":
            self.dump("layer", y)
        elif self.how == "histogram":
            self.histogram("layer", y)
        elif self.how == "tensor":
            self.tensor("layer", y)
        if self.is_dense and self.turned == "transpose":
            y = self.add(y, self.product(x, ops.transpose(self.side, (1, 0))))
        elif self.is_dense and self.turned == "t":
            y = self.add(y, self.product(x, self.side.T))
        if self.drops:
            y = self.dropout(y)
        if self.residual != 1.0:
            y = self.times(y, self.residual)
        return self.add(x, y)


class LazyLayer(Layer):
    @lazy_inline
    def __init__(self, number: int, o: dict[str, Any]) -> None:
        super().__init__(number, o)


class Network(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        self.o = o
        dp, hidden = o["dp"], o["hidden"]
        self.is_dense = o["style"] == "dense"
        kind = LazyLayer if o["lazy"] else Layer
        self.blocks = nn.CellList()
        for number in range(o["layers"]):
            layer = kind(number, {**o, **o["layer"].get(number, {})})
            if number in o["recompute"]:
                layer.recompute()
            self.blocks.append(layer)
        self.words = Parameter(initializer("normal", (o["words"], hidden), ms.float32), "words")
        self.gather = ops.Gather().shard(((1, 1), (dp,)))
        self.stem = nn.Conv2d(3, hidden, 3, pad_mode="same")
        self.stem.conv2d.shard(((dp, 1, 1, 1), (1, 1, 1, 1)))
        self.pool = ops.ReduceMean().shard(((dp, 1, 1, 1),))
        self.head = nn.Dense(hidden, o["classes"])
        self.head.matmul.shard(((dp, 1), (1, 1)))
        self.head.bias_add.shard(((dp, 1), (1,)))
        self.hot = ops.OneHot().shard(((dp, 1), (), ()))
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        # A reduction over a size that is not known cannot be split.
        self.mean = ops.ReduceMean().shard(((1 if o["dynamic"] else dp,),))
        self.positions = o["positions"]
        rows = o["batch"] * (o["sequence"] if self.is_dense else 1)
        self.places = Tensor(np.arange(rows), ms.int32)
        self.table = Parameter(
            initializer("normal", (rows, hidden), ms.float32), "table", requires_grad=False
        )
        self.half_table = Parameter(
            initializer("normal", (rows, hidden), ms.float16), "half", requires_grad=False
        )
        self.plus = ops.Add().shard(((dp, 1), (dp, 1)))
        self.bias = ops.Add().shard(((dp, 1), (1,)))
        self.biases = ms.ParameterTuple(
            [Parameter(initializer("zeros", (hidden,)), f"bias{i}") for i in range(o["biases"])]
        )
        self.total = ops.ReduceSum().shard(((dp, 1),))
        self.minus = ops.Sub().shard(((dp, 1), ()))

    def embedded(self, x: Any) -> Any:
        if not self.is_dense:
            return self.stem(x)
        x = self.gather(self.words, ops.reshape(x, (-1,)), 0)
        if self.positions == "gather":
            x = self.plus(x, ops.gather(self.table, self.places, 0))
        elif self.positions == "cast":
            x = self.plus(x, ops.cast(self.half_table, ms.float32))
        elif self.positions == "slice":
            x = self.plus(x, self.table[: self.places.shape[0]] * 1.0)
        return x

    def construct(self, x: Any, labels: Any) -> Any:
        o = self.o
        if o["ids"] == "int64" and self.is_dense:
            x = ops.cast(x, ms.int32)
        if o["ids"] == "int64":
            labels = ops.cast(labels, ms.int32)
        x = self.embedded(x)
        for block in self.blocks:
            x = block(x)
        if not self.is_dense:
            x = self.pool(x, (2, 3))
        for each in self.biases:
            x = self.bias(x, each)
        for _ in range(o["scalars"]):
            x = self.minus(x, self.total(x) * 1e-6)
        x = self.head(x)
        wanted = self.hot(ops.reshape(labels, (-1,)), o["classes"], self.on, self.off)
        return self.mean(self.entropy(x, wanted)[0])


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {"guard_epsilon": 1e-8, "classes": given["words"], **DEFAULTS, **given}
    network = Network(o)
    dense = o["style"] == "dense"
    parameters = network.trainable_params()
    optimizer = nn.Momentum(parameters, 1e-2, 0.9) if dense else nn.SGD(parameters, 1e-2)
    cell: Any = nn.TrainOneStepCell(network, optimizer)
    kind = ms.int64 if o["ids"] == "int64" else ms.int32
    sizes = (o["batch"], o["sequence"]) if dense else (o["batch"], 3, 32, 32)
    x = Tensor(np.ones(sizes), kind if dense else ms.float32)
    labels = Tensor(np.ones(sizes[:2] if dense else sizes[:1]), kind)
    if o["dynamic"]:
        size = ms.Symbol(divisor=o["dp"]) if o["dynamic"] == "symbol" else None
        place = 1 if o["dynamic"] == "sequence" else 0
        x = Tensor(shape=[size if i == place else n for i, n in enumerate(sizes)], dtype=x.dtype)
        rows = sizes[:2] if dense else sizes[:1]
        labels = Tensor(shape=[size if i == place else n for i, n in enumerate(rows)], dtype=kind)
        cell.set_inputs(x, labels)
    return cell, (x, labels)

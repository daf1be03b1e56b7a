# a case, or a strategy, a line
"""Networks of another kind than ``network.py``'s: experts, towers of products, one that fails.

``build(settings)`` gives a training cell and its inputs, ``failing(kind)`` a network that MindSpore
does not compile.  Settings are those of ``DEFAULTS``; ``block`` = {number: {setting: value}} holds
for one block alone.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "batch": 32, "width": 64, "inner": 128, "classes": 16, "blocks": 3, "dp": 2, "tp": 2,
    "experts": 0, "stages": 1, "micro": 1, "recompute": (), "lazy_inline": False, "half": False,
    "eps": 1e-5, "repeat": 1, "gate": None, "up": None, "down": None, "norm": None, "join": None,
    "half_loss": False, "half_norm": False, "half_sum": False, "tied": False, "outer": False,
    "optimizer": "momentum", "split": None, "block": {}, "act": None, "score": None,
    "print": False, "drop": 0.0, "guard": False, "bounce": False, "recurrent": 0,
}  # fmt: skip


def weight(name: str, *shape: int) -> Parameter:
    return Parameter(initializer("normal", shape, ms.float32), name=name)


class Tower(nn.Cell):
    """Normalise, widen, gate, narrow, add."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        self.o = o
        kind = ms.float16 if o["half"] else ms.float32
        self.kind, self.cast = kind, ops.Cast()
        self.gamma, self.beta = (
            weight(f"{name}.gamma", o["width"]),
            weight(f"{name}.beta", o["width"]),
        )
        self.up = weight(f"{name}.up", o["width"], o["inner"])
        self.gate = weight(f"{name}.gate", o["width"], o["inner"])
        self.down = weight(f"{name}.down", o["inner"], o["width"])
        self.bias = weight(f"{name}.bias", o["width"])
        self.norm = ops.LayerNorm(-1, -1, o["eps"])
        self.widen, self.gated, self.narrow = ops.MatMul(), ops.MatMul(), ops.MatMul()
        self.sigmoid, self.mul, self.add, self.join = ops.Sigmoid(), ops.Mul(), ops.Add(), ops.Add()
        self.show = ops.Print() if o["print"] else None
        self.drop = ops.Dropout(1.0 - o["drop"]).shard(((dp, 1),)) if o["drop"] else None
        self.divide, self.more = (
            ops.RealDiv().shard(((dp, 1), (dp, 1))),
            ops.Add().shard(((dp, 1), ())),
        )
        self._shard(o, dp, tp)

    def _shard(self, o: dict[str, Any], dp: int, tp: int) -> None:
        if o["outer"]:  # the axis of the weights is the outer one of the device matrix
            layout = ms.Layout((tp, dp), ("tp", "dp"))
            rows, both = layout("dp", "None"), layout("dp", "tp")
            columns, lines = layout("None", "tp"), layout("tp", "None")
            one = layout("None")
            self.norm.shard((rows, one, one))
            self.widen.shard((rows, columns))
            self.gated.shard((rows, columns))
            self.sigmoid.shard((both,))
            self.mul.shard((both, both))
            self.narrow.shard((both, lines))
            self.add.shard((rows, one))
            self.join.shard((rows, rows))
            return
        self.norm.shard(o["norm"] or ((dp, 1), (1,), (1,)))
        self.widen.shard(o["up"] or ((dp, 1), (1, tp)))
        self.gated.shard(o["gate"] or ((dp, 1), (1, tp)))
        self.sigmoid.shard(o["act"] or ((dp, tp),))
        self.mul.shard(((dp, tp), (dp, tp)))
        self.narrow.shard(o["down"] or ((dp, tp), (tp, 1)))
        self.add.shard(((dp, 1), (1,)))
        self.join.shard(o["join"] or ((dp, 1), (dp, 1)))

    def construct(self, x: Any) -> Any:
        for _ in range(self.o["repeat"]):
            x = self.step(x)
        return x

    def step(self, x: Any) -> Any:
        if self.o["half_norm"]:
            y = self.norm(
                self.cast(x, ms.float16),
                self.cast(self.gamma, ms.float16),
                self.cast(self.beta, ms.float16),
            )[0]
            y = self.cast(y, ms.float32)
        else:
            y = self.norm(x, self.gamma, self.beta)[0]
        if self.o["half"]:
            y = self.cast(y, self.kind)
            a = self.widen(y, self.cast(self.up, self.kind))
            b = self.sigmoid(self.gated(y, self.cast(self.gate, self.kind)))
            y = self.cast(self.narrow(self.mul(a, b), self.cast(self.down, self.kind)), ms.float32)
        else:
            a = self.widen(y, self.up)
            b = self.sigmoid(self.gated(y, self.gate))
            y = self.narrow(self.mul(a, b), self.down)
        y = self.add(y, self.bias)
        if self.o["guard"]:  # the guard is 0 in half precision
            y = self.cast(y, ms.float16)
            y = self.cast(self.divide(y, self.more(y, Tensor(1e-9, ms.float16))), ms.float32)
        if self.o["bounce"]:
            y = self.cast(self.cast(y, ms.float16), ms.float32)
        if self.show is not None:
            self.show(y)
        if self.drop is not None:
            y = self.drop(y)[0]
        return self.join(x, y)


class LazyTower(Tower):
    """The same, compiled once for all blocks."""

    @lazy_inline
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__(name, o)


class Recurrent(nn.Cell):
    """A cell that a loop of Python steps through time."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        self.steps, width = o["recurrent"], o["width"]
        self.into, self.again = (
            weight(f"{name}.into", width, width),
            weight(f"{name}.again", width, width),
        )
        self.bias = weight(f"{name}.bias", width)
        self.one, self.two, self.add, self.act = ops.MatMul(), ops.MatMul(), ops.Add(), ops.Tanh()

    def construct(self, x: Any) -> Any:
        state = x
        for _ in range(self.steps):
            state = self.act(
                self.add(self.one(x, self.into), self.two(state, self.again)) + self.bias
            )
        return state


class Experts(nn.Cell):
    """Tokens go to the devices of their expert and back."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, count, width = o["dp"], o["experts"], o["width"]
        each = o["batch"] // dp // count
        self.grouped = (dp, count, each, width)
        self.by_expert = (count, dp * each, width)
        self.flat = (o["batch"], width)
        self.first = weight(f"{name}.first", count, width, o["inner"])
        self.second = weight(f"{name}.second", count, o["inner"], width)
        self.reshape = ops.Reshape()
        self.there = ops.Transpose().shard(((1, dp, 1, 1),))
        self.back = ops.Transpose().shard(((1, dp, 1, 1),))
        self.one = ops.BatchMatMul().shard(((dp, 1, 1), (dp, 1, 1)))
        self.two = ops.BatchMatMul().shard(((dp, 1, 1), (dp, 1, 1)))
        self.act = ops.ReLU().shard(((dp, 1, 1),))
        self.mul = ops.Mul().shard(((dp, 1, 1, 1), ()))
        self.join = ops.Add().shard(((dp, 1), (dp, 1)))

    def construct(self, x: Any) -> Any:
        y = self.mul(self.reshape(x, self.grouped), 1.5)
        y = self.reshape(self.there(y, (1, 0, 2, 3)), self.by_expert)
        y = self.two(self.act(self.one(y, self.first)), self.second)
        count, _, width = self.by_expert
        y = self.reshape(y, (count, self.grouped[0], self.grouped[2], width))
        y = self.mul(self.back(y, (1, 0, 2, 3)), 0.5)
        return self.join(x, self.reshape(y, self.flat))


class Mixed(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        kind = LazyTower if o["lazy_inline"] else Tower
        blocks: list[nn.Cell] = []
        for i in range(o["blocks"]):
            block = kind(f"blocks.{i}", {**o, **o["block"].get(i, {})})
            if o["stages"] > 1:
                block.pipeline_stage = (
                    o["split"][i] if o["split"] else i * o["stages"] // o["blocks"]
                )
            if i in o["recompute"]:
                block.recompute()
            blocks.append(block)
        if o["experts"]:
            blocks += [Experts(f"experts.{i}", o) for i in range(2)]
        if o["recurrent"]:
            blocks.append(Recurrent("recurrent", o))
        self.blocks = nn.CellList(blocks)
        self.head = weight("head.weight", o["width"], o["classes"])
        self.product = ops.MatMul().shard(((o["dp"], 1), (1, 1)))
        self.tied, self.again = o["tied"], ops.MatMul().shard(((o["dp"], o["tp"]), (o["tp"], 1)))
        self.extra = ops.Add().shard(((o["dp"], 1), (o["dp"], 1)))
        self.sum = ops.ReduceSum(keep_dims=True).shard(((o["dp"], 1),))
        self.half_sum, self.cast = o["half_sum"], ops.Cast()
        self.less = ops.Sub().shard(((o["dp"], 1), (o["dp"], 1)))
        if o["stages"] > 1:
            for each in (self.product, self.again, self.extra, self.sum, self.less):
                each.add_prim_attr("pipeline_stage", o["stages"] - 1)

    def construct(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        if self.half_sum:
            x = self.less(x, self.cast(self.sum(self.cast(x, ms.float16), 1), ms.float32))
        y = self.product(x, self.head)
        if self.tied:
            y = self.extra(y, self.again(x, self.head))
        return y


class Loss(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.square, self.mean = ops.Square().shard(((dp, 1),)), ops.ReduceMean().shard(((dp, 1),))
        self.less = ops.Sub().shard(((dp, 1), (dp, 1)))
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        self.half, self.cast = o["half_loss"], ops.Cast()
        self.flat = ops.ReduceMean().shard(((dp,),))

    def construct(self, y: Any, label: Any) -> Any:
        if self.half:
            y = self.entropy(self.cast(y, ms.float16), self.cast(label, ms.float16))[0]
            return self.cast(self.flat(y), ms.float32)
        return self.mean(self.square(self.less(y, label)))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    network, loss = Mixed(o), Loss(o)
    with_loss: Any = nn.WithLossCell(network, loss)
    if o["stages"] > 1:
        loss.pipeline_stage = o["stages"] - 1
        with_loss = nn.PipelineCell(with_loss, o["micro"])
    parameters = network.trainable_params()
    optimizer = (
        nn.Momentum(parameters, 1e-3, 0.9)
        if o["optimizer"] == "momentum"
        else nn.AdamWeightDecay(parameters, 1e-3)
    )
    if o["stages"] > 1:
        from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell

        cell: Any = _TrainGradAccuStepCell(with_loss, optimizer)
    else:
        cell = nn.TrainOneStepCell(with_loss, optimizer)
    rows = o["batch"] * o["micro"]
    return cell, (
        Tensor(np.ones((rows, o["width"])), ms.float32),
        Tensor(np.ones((rows, o["classes"])), ms.float32),
    )


class Failing(nn.Cell):
    """A network with one mistake."""

    def __init__(self, kind: str, rows: int, width: int) -> None:
        super().__init__()
        self.kind, self.width = kind, width
        wide = width + 8 if kind in ("product", "batch") else width
        half = ms.float16 if kind in ("half_product", "half_batch") else ms.float32
        self.weight = Parameter(initializer("normal", (wide, 32), half), name="weight")
        self.stack = Parameter(initializer("normal", (4, wide, 16), half), name="stack")
        self.bias = Parameter(initializer("normal", (5,), ms.float32), name="bias")
        self.product, self.batch, self.add = ops.MatMul(), ops.BatchMatMul(), ops.Add()
        self.concat, self.reshape, self.split = ops.Concat(0), ops.Reshape(), ops.Split(1, 7)
        self.relu, self.cast, self.transpose = ops.ReLU(), ops.Cast(), ops.Transpose()
        self.split_two, self.stacked = ops.Split(1, 2), ops.Stack(0)
        self.gather, self.reduce = ops.Gather(), ops.ReduceSum()

    def construct(self, x: Any) -> Any:
        y = self.relu(x)
        if self.kind in ("product", "half_product"):
            y = self.product(y, self.weight)  # planted: product half_product
        if self.kind in ("batch", "half_batch"):
            y = self.reshape(y, (4, -1, self.width))
            y = self.batch(y, self.stack)  # planted: batch half_batch
        if self.kind == "broadcast":
            y = self.add(y, self.bias)  # planted: broadcast
        if self.kind == "reshape":
            y = self.reshape(y, (7, 3))  # planted: reshape
        if self.kind == "split":
            y = self.split(y)[0]  # planted: split
        if self.kind == "transpose":
            y = self.transpose(y, (0, 1, 2))  # planted: transpose
        if self.kind == "name":
            y = self.relu(unknown_name)  # noqa: F821  # planted: name
        if self.kind == "method":
            y = self.rellu(y)  # planted: method
        if self.kind == "arguments":
            y = self.product(y)  # planted: arguments
        if self.kind == "concat_types":
            y = self.concat((y, self.cast(y, ms.int32)))  # planted: concat_types
        if self.kind == "branches":
            if y.sum() > 0:  # planted: branches
                y = self.reshape(y, (-1,))
            else:
                y = self.cast(y, ms.float16)
        if self.kind == "unpack":
            y, _, _ = self.split_two(y)  # planted: unpack
        if self.kind == "index":
            y = (y, y)[2]  # noqa: PLE0643  # planted: index
        if self.kind == "stack":
            y = self.stacked((y, self.reshape(y, (-1, 4))))  # planted: stack
        if self.kind == "gather":
            y = self.gather(y, Tensor([0, 1], ms.float32), 0)  # planted: gather
        if self.kind == "reduce":
            y = self.reduce(y, 3)  # planted: reduce
        return y


FAILURES: dict[str, tuple[str, ...]] = {
    "product": ("MatMul",), "half_product": ("MatMul", "Float16|type"),
    "batch": ("BatchMatMul",), "half_batch": ("BatchMatMul", "Float16|type"),
    "broadcast": ("Add|broadcast",), "reshape": ("Reshape|reshape|shape",), "split": ("Split",),
    "transpose": ("Transpose|perm",), "name": ("unknown_name",), "method": ("rellu",),
    "arguments": ("MatMul|argument|input",), "concat_types": ("Concat|type",),
    "branches": ("branch|join|type|shape",), "unpack": ("unpack|values",),
    "index": ("index|range",), "stack": ("Stack|shape",), "gather": ("Gather|type|Float32",),
    "reduce": ("Reduce|axis|dim",),
}  # fmt: skip
"""By kind, what a cause has to speak of."""


def planted_line(kind: str) -> int:
    """The line of this file on which a mistake is."""
    with open(__file__, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if "# planted: " in line and kind in line.split("# planted: ")[1].split():
                return number
    raise LookupError(kind)


def failing(kind: str, rows: int, width: int) -> tuple[Any, tuple[Any, ...]]:
    """A network that does not compile, and its inputs."""
    return Failing(kind, rows, width), (Tensor(np.ones((rows, width)), ms.float32),)

# a case, or a strategy, a line
"""A decoder whose every habit is a setting, so that one rank, or one layer, can be given another.

``build(settings)`` gives a training cell and its inputs. Settings are those of ``DEFAULTS``; what
holds for one layer alone stands in ``layer`` = {number: {setting: value}}.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer

DEFAULTS: dict[str, Any] = {
    "batch": 8, "sequence": 16, "hidden": 64, "heads": 8, "inner": 128, "words": 256,
    "layers": 2, "dp": 2, "tp": 2, "stages": 1, "micro": 1, "half": False, "recompute": (),
    "lazy_inline": False, "optimizer": "momentum", "reduction": "mean", "order": "qkv",
    "norm": "layer", "experts": 0, "unroll": 1, "attention_dp": None, "attention_tp": None,
    "up": None, "down": None, "norm_strategy": None, "softmax": None, "gather": None,
    "transpose": None, "add": None, "extra_cast": False, "split_of_stage": None, "layer": {},
    "half_from": None, "max_of_loss": False, "boundary": None, "bad": None, "sizes": None,
    "head": None, "flat_up": None, "head_sharded": True, "unsharded": (), "wide": (), "clip": False,
}  # fmt: skip


class Product(nn.Cell):
    """A product with a weight: split by columns, by rows, or as ``strategy`` says."""

    def __init__(
        self,
        name: str,
        into: int,
        out: int,
        mesh: tuple[int, int],
        cut: str,
        options: dict[str, Any],
        strategy: Any = None,
    ) -> None:
        super().__init__()
        dp, tp = mesh
        kind = ms.float16 if options["half"] else ms.float32
        self.weight = Parameter(
            initializer("normal", (out, into), ms.float32), name=f"{name}.weight"
        )
        usual = {
            "column": ((dp, 1), (tp, 1)),
            "row": ((dp, tp), (1, tp)),
            "none": ((dp, 1), (1, 1)),
        }[cut]
        self.matmul = ops.MatMul(transpose_b=True)
        if strategy != "none":
            self.matmul.shard(strategy or usual)
        self.cast, self.kind, self.half = ops.Cast(), kind, options["half"]

    def construct(self, x: Any) -> Any:
        weight = self.cast(self.weight, self.kind) if self.half else self.weight
        return self.matmul(x, weight)


class Norm(nn.Cell):
    def __init__(self, name: str, hidden: int, dp: int, options: dict[str, Any]) -> None:
        super().__init__()
        self.gamma = Parameter(initializer("ones", (hidden,), ms.float32), name=f"{name}.gamma")
        self.beta = Parameter(initializer("zeros", (hidden,), ms.float32), name=f"{name}.beta")
        self.norm = ops.LayerNorm(-1, -1, 1e-5).shard(
            options["norm_strategy"] or ((dp, 1), (1,), (1,))
        )

    def construct(self, x: Any) -> Any:
        return self.norm(x, self.gamma, self.beta)[0]


class Attention(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        mesh = (o["attention_dp"] or o["dp"], o["attention_tp"] or o["tp"])
        dp, tp = mesh
        hidden = o["hidden"]
        self.four = (o["batch"], o["sequence"], o["heads"], hidden // o["heads"])
        self.flat = (o["batch"] * o["sequence"], hidden)
        self.q = Product(f"{name}.q", hidden, hidden, mesh, "column", o)
        self.k = Product(f"{name}.k", hidden, hidden, mesh, "column", o)
        self.v = Product(f"{name}.v", hidden, hidden, mesh, "column", o)
        self.out = Product(f"{name}.out", hidden, hidden, mesh, "row", o)
        heads = (dp, tp, 1, 1)
        self.reshape = ops.Reshape()
        self.transpose = ops.Transpose().shard(o["transpose"] or ((dp, 1, tp, 1),))
        self.back = ops.Transpose().shard((heads,))
        self.scores = ops.BatchMatMul(transpose_b=True).shard((heads, heads))
        self.mix = ops.BatchMatMul().shard((heads, heads))
        self.softmax = ops.Softmax(-1).shard(o["softmax"] or (heads,))
        self.mul = ops.Mul().shard((heads, ()))
        self.scale = 0.125
        self.order = o["order"]
        self.cast, self.half = ops.Cast(), o["half"]

    def split(self, x: Any) -> Any:
        return self.transpose(self.reshape(x, self.four), (0, 2, 1, 3))

    def construct(self, x: Any) -> Any:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        w = self.mul(self.scores(q, k), self.scale)
        if self.half:
            w = self.cast(self.softmax(self.cast(w, ms.float32)), ms.float16)
        else:
            w = self.softmax(w)
        y = self.back(self.mix(w, v), (0, 2, 1, 3))
        return self.out(self.reshape(y, self.flat))


class Feed(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = mesh = (o["dp"], o["tp"])
        self.up = Product(f"{name}.up", o["hidden"], o["inner"], mesh, "column", o, o["up"])
        self.down = Product(f"{name}.down", o["inner"], o["hidden"], mesh, "row", o, o["down"])
        self.act = ops.ReLU().shard(o["flat_up"] or ((dp, tp),))

    def construct(self, x: Any) -> Any:
        return self.down(self.act(self.up(x)))


class Gated(nn.Cell):
    """Two products of one input, and their reductions in one order or the other."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        mesh = (o["dp"], o["tp"])
        self.left = Product(f"{name}.left", o["hidden"], o["hidden"], mesh, "row", o)
        self.right = Product(f"{name}.right", o["hidden"], o["inner"], mesh, "row", o)
        self.join = Product(f"{name}.join", o["inner"], o["hidden"], mesh, "row", o)
        self.add = ops.Add().shard(((o["dp"], 1), (o["dp"], 1)))
        self.order = o["order"]

    def construct(self, x: Any) -> Any:
        a, b = self.left(x), self.join(self.right(x))
        return self.add(a, b) if self.order == "qkv" else self.add(b, a)


class Block(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.norm1 = Norm(f"{name}.norm1", o["hidden"], dp, o)
        self.norm2 = Norm(f"{name}.norm2", o["hidden"], dp, o)
        self.attention = Attention(f"{name}.attention", o)
        self.feed = (Gated if o.get("gated") else Feed)(f"{name}.feed", o)
        both = o["add"] or ((dp, 1), (dp, 1))
        self.add1, self.add2 = ops.Add().shard(both), ops.Add().shard(both)
        self.cast, self.half, self.unroll = ops.Cast(), o["half"], o["unroll"]
        self.max = ops.ReduceMax().shard(((dp, o["tp"]),)) if o.get("shift") == "max" else None
        self.sum = ops.ReduceSum().shard(((dp, o["tp"]),)) if o.get("shift") == "sum" else None
        self.shift = ops.Sub().shard(((dp, 1), ()))
        self.tiny = ops.Mul().shard(((dp, 1), ()))

    def construct(self, x: Any) -> Any:
        y = self.norm1(x)
        if self.half:
            y = self.cast(y, ms.float16)
        y = self.attention(y)
        if self.half:
            y = self.cast(y, ms.float32)
        x = self.add1(x, y)
        y = self.norm2(x)
        if self.half:
            y = self.cast(y, ms.float16)
        y = self.feed(y)
        if self.half:
            y = self.cast(y, ms.float32)
        x = self.add2(x, y)
        for _ in range(self.unroll - 1):
            x = self.add2(x, self.feed(self.norm2(x)))
        if self.max is not None:
            x = self.shift(x, self.max(x))
        if self.sum is not None:
            x = self.shift(x, self.sum(x))
        return x


class LazyBlock(Block):
    """The same, compiled once for all layers."""

    @lazy_inline
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__(name, o)


class Decoder(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.table = Parameter(
            initializer("normal", (o["words"], o["hidden"]), ms.float32), name="embedding"
        )
        self.gather = ops.Gather().shard(o["gather"] or ((1, 1), (dp,)))
        kind = LazyBlock if o["lazy_inline"] else Block
        layers = [kind(f"layers.{i}", {**o, **o["layer"].get(i, {})}) for i in range(o["layers"])]
        for i, layer in enumerate(layers):
            if o["stages"] > 1:
                layer.pipeline_stage = (
                    o["split_of_stage"][i]
                    if o["split_of_stage"]
                    else i * o["stages"] // o["layers"]
                )
            if i in o["recompute"]:
                layer.recompute()
        self.layers = nn.CellList(layers)
        self.norm = Norm("norm", o["hidden"], dp, {**o, "norm_strategy": None})
        self.head = Product(
            "head", o["hidden"], o["words"], (dp, o["tp"]), "none", {**o, "half": False}, o["head"]
        )
        if o["stages"] > 1:
            self.gather.add_prim_attr("pipeline_stage", 0)
            self.norm.pipeline_stage = o["stages"] - 1
            self.head.pipeline_stage = o["stages"] - 1
        self.reshape, self.count = ops.Reshape(), o["batch"] * o["sequence"]

    def construct(self, x: Any) -> Any:
        x = self.gather(self.table, self.reshape(x, (-1,)), 0)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Loss(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        self.hot = ops.OneHot().shard(((dp, 1), (), ()))
        self.mean = (ops.ReduceMean() if o["reduction"] == "mean" else ops.ReduceSum()).shard(
            ((dp,),)
        )
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.words, self.reshape = o["words"], ops.Reshape()

    def construct(self, logits: Any, labels: Any) -> Any:
        labels = self.hot(self.reshape(labels, (-1,)), self.words, self.on, self.off)
        return self.mean(self.entropy(logits, labels)[0])


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    network = Decoder(o)
    loss = Loss(o)
    with_loss: Any = nn.WithLossCell(network, loss)
    if o["stages"] > 1:
        loss.pipeline_stage = o["stages"] - 1
    if o["micro"] > 1 or o["stages"] > 1:
        with_loss = nn.PipelineCell(with_loss, o["micro"])
    parameters = network.trainable_params()
    optimizer = (
        nn.Momentum(parameters, 1e-3, 0.9)
        if o["optimizer"] == "momentum"
        else nn.AdamWeightDecay(parameters, 1e-3)
    )
    if o["stages"] > 1:
        from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell

        cell = _TrainGradAccuStepCell(with_loss, optimizer)
    else:
        cell = nn.TrainOneStepCell(with_loss, optimizer)
    count = o["batch"] * o["micro"]
    ids = Tensor(np.ones((count, o["sequence"])), ms.int32)
    return cell, (ids, ids)


class Failing(nn.Cell):
    """A small network with one mistake that type inference meets."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        half = ms.float16 if kind == "types" else ms.float32
        rows = 24 if kind == "shapes" else 16
        self.weight = Parameter(initializer("normal", (rows, 32), half), name="weight")
        self.matmul, self.concat = ops.MatMul(), ops.Concat(0)

    def construct(self, x: Any) -> Any:
        y = self.matmul(x, self.weight)
        if self.kind == "attribute":
            y = self.missing_operator(y)
        if self.kind == "concat":
            y = self.concat((y, x))
        return y


def failing(kind: str) -> tuple[Any, tuple[Any, ...]]:
    """A network that does not compile, and its inputs."""
    return Failing(kind), (Tensor(np.ones((8, 16)), ms.float32),)

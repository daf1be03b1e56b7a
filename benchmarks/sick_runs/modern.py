# ruff: noqa: E501
# a case, or a strategy, a line
"""Networks in the style of today's models and of yesterday's.

Grouped-query attention with rotary positions and RMS norms in bfloat16, and a convolutional network
with batch norms.

``build(settings)`` gives a training cell and its inputs, ``failing(kind)`` a network that MindSpore
does not compile.  ``layer`` = {number: {setting: value}} holds for one layer alone.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops.auto_generate import SiLU

DEFAULTS: dict[str, Any] = {
    "batch": 4, "sequence": 32, "hidden": 128, "heads": 8, "kv": 2, "inner": 256, "vocabulary": 512,
    "layers": 2, "dp": 2, "tp": 2, "stages": 1, "micro": 1, "lazy": False, "recompute": (),
    "recompute_feed": None, "optimizer": "adam", "clip": True, "frozen": (), "kind": "bfloat16",
    "split": None, "layer": {}, "qk": None, "tile": None, "rms": None, "silu": None, "wo": None,
    "w2": None, "soft": None, "rope": None, "add": None, "product": None, "monitor": False,
    "half_norm": False, "half_softmax": False, "dropout": 0.0, "fp32_feed": False, "repeat": 1,
    "out_head": None, "scale_loss": 0.0,
}  # fmt: skip


def weight(name: str, *shape: int, kind: Any = None) -> Parameter:
    return Parameter(initializer("normal", shape, kind or ms.float32), name=name)


class Linear(nn.Cell):
    def __init__(self, name: str, into: int, out: int, kind: Any, strategy: Any) -> None:
        super().__init__()
        self.weight = weight(f"{name}.weight", out, into)
        self.matmul, self.cast, self.kind = (
            ops.MatMul(transpose_b=True).shard(strategy),
            ops.Cast(),
            kind,
        )

    def construct(self, x: Any) -> Any:
        return self.matmul(self.cast(x, self.kind), self.cast(self.weight, self.kind))


class RMSNorm(nn.Cell):
    def __init__(self, name: str, width: int, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        rows = o["rms"] or ((dp, 1),)
        self.weight = Parameter(initializer("ones", (width,), ms.float32), name=f"{name}.weight")
        self.square, self.mean = (
            ops.Square().shard(rows),
            ops.ReduceMean(keep_dims=True).shard(rows),
        )
        self.rsqrt, self.more = ops.Rsqrt().shard(((dp, 1),)), ops.Add().shard(((dp, 1), ()))
        self.mul, self.scale = ops.Mul().shard(((dp, 1), (dp, 1))), ops.Mul().shard(((dp, 1), (1,)))
        self.half, self.cast = o["half_norm"], ops.Cast()

    def construct(self, x: Any) -> Any:
        if self.half:
            x = self.cast(x, ms.float16)
        y = self.rsqrt(self.more(self.mean(self.square(x), -1), 1e-6))
        y = self.mul(x, y)
        if self.half:
            y = self.cast(y, ms.float32)
        return self.scale(y, self.weight)


class Attention(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp, b, s, h, kv = (o[k] for k in ("dp", "tp", "batch", "sequence", "heads", "kv"))
        d = o["hidden"] // h
        kind = getattr(ms, o["kind"])
        column, row = ((dp, 1), (tp, 1)), ((dp, tp), (1, tp))
        self.wq = Linear(f"{name}.wq", o["hidden"], h * d, kind, column)
        self.wk = Linear(f"{name}.wk", o["hidden"], kv * d, kind, column)
        self.wv = Linear(f"{name}.wv", o["hidden"], kv * d, kind, column)
        self.wo = Linear(f"{name}.wo", h * d, o["hidden"], kind, o["wo"] or row)
        four = (dp, tp, 1, 1)
        self.shape_q, self.shape_kv, self.flat = (b, s, h, d), (b, s, kv, d), (b * s, h * d)
        self.few, self.all, self.times = (b, kv, 1, s, d), (b, h, s, d), (1, 1, h // kv, 1, 1)
        self.reshape, self.transpose = ops.Reshape(), ops.Transpose().shard(((dp, 1, tp, 1),))
        self.back = ops.Transpose().shard((four,))
        self.tile = ops.Tile().shard(o["tile"] or ((dp, tp, 1, 1, 1),))
        self.scores = ops.BatchMatMul(transpose_b=True).shard(o["qk"] or (four, four))
        self.mix = ops.BatchMatMul().shard((four, four))
        self.softmax, self.cast = ops.Softmax(-1).shard(o["soft"] or (four,)), ops.Cast()
        self.by, self.mask, self.kind = (
            ops.Mul().shard((four, ())),
            ops.Add().shard((four, (1, 1, 1, 1))),
            kind,
        )
        both = o["rope"] or (four, (1, 1, 1, 1))
        self.cosine, self.sine, self.plus = (
            ops.Mul().shard(both),
            ops.Mul().shard(both),
            ops.Add().shard((four, four)),
        )
        self.neg, self.cut, self.join = (
            ops.Neg().shard((four,)),
            ops.Split(3, 2).shard((four,)),
            ops.Concat(3).shard((four, four)),
        )
        angle = np.outer(np.arange(s), 1e4 ** (-np.arange(0, d, 2) / d))
        angle = np.concatenate([angle, angle], -1).reshape(1, 1, s, d)
        self.cos, self.sin = Tensor(np.cos(angle), kind), Tensor(np.sin(angle), kind)
        self.hide = Tensor(np.triu(np.full((1, 1, s, s), -1e4), 1), kind)
        self.small, self.scale = o["half_softmax"], d**-0.5

    def turn(self, x: Any) -> Any:
        left, right = self.cut(x)
        turned = self.join((self.neg(right), left))
        return self.plus(self.cosine(x, self.cos), self.sine(turned, self.sin))

    def many(self, x: Any) -> Any:
        return self.reshape(self.tile(self.reshape(x, self.few), self.times), self.all)

    def construct(self, x: Any) -> Any:
        q = self.transpose(self.reshape(self.wq(x), self.shape_q), (0, 2, 1, 3))
        k = self.transpose(self.reshape(self.wk(x), self.shape_kv), (0, 2, 1, 3))
        v = self.transpose(self.reshape(self.wv(x), self.shape_kv), (0, 2, 1, 3))
        q, k = self.turn(q), self.turn(k)
        scores = self.mask(self.by(self.scores(q, self.many(k)), self.scale), self.hide)
        if not self.small:
            scores = self.cast(scores, ms.float32)
        weights = self.cast(self.softmax(scores), self.kind)
        y = self.back(self.mix(weights, self.many(v)), (0, 2, 1, 3))
        return self.wo(self.reshape(y, self.flat))


class Feed(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        kind = ms.float32 if o["fp32_feed"] else getattr(ms, o["kind"])
        column = ((dp, 1), (tp, 1))
        self.w1 = Linear(f"{name}.w1", o["hidden"], o["inner"], kind, column)
        self.w3 = Linear(f"{name}.w3", o["hidden"], o["inner"], kind, column)
        self.w2 = Linear(
            f"{name}.w2", o["inner"], o["hidden"], kind, o["w2"] or ((dp, tp), (1, tp))
        )
        self.silu = SiLU().shard(o["silu"] or ((dp, tp),))
        self.mul = ops.Mul().shard(o["product"] or ((dp, tp), (dp, tp)))
        self.drop = ops.Dropout(1 - o["dropout"]).shard(((dp, 1),)) if o["dropout"] else None

    def construct(self, x: Any) -> Any:
        y = self.w2(self.mul(self.silu(self.w1(x)), self.w3(x)))
        return y if self.drop is None else self.drop(y)[0]


class DecoderLayer(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        self.norm1, self.norm2 = (
            RMSNorm(f"{name}.norm1", o["hidden"], o),
            RMSNorm(f"{name}.norm2", o["hidden"], o),
        )
        self.attention, self.feed = Attention(f"{name}.attention", o), Feed(f"{name}.feed", o)
        both = o["add"] or ((dp, 1), (dp, 1))
        self.add1, self.add2, self.cast = ops.Add().shard(both), ops.Add().shard(both), ops.Cast()
        self.total = ops.ReduceSum().shard(((dp, tp),)) if o["monitor"] else None
        self.apart, self.repeat = ops.Sub().shard(((dp, 1), ())), o["repeat"]

    def construct(self, x: Any) -> Any:
        x = self.add1(x, self.cast(self.attention(self.norm1(x)), ms.float32))
        for _ in range(self.repeat):
            x = self.add2(x, self.cast(self.feed(self.norm2(x)), ms.float32))
        if self.total is not None:
            x = self.apart(x, self.total(x))
        return x


class LazyDecoderLayer(DecoderLayer):
    """The same, compiled once for all layers."""

    @lazy_inline
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__(name, o)


class Model(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = o["dp"], o["tp"]
        self.table = weight("tok_embeddings.weight", o["vocabulary"], o["hidden"])
        self.gather, self.reshape = ops.Gather().shard(((1, 1), (dp,))), ops.Reshape()
        kind = LazyDecoderLayer if o["lazy"] else DecoderLayer
        layers = [
            kind(f"model.layers.{i}", {**o, **o["layer"].get(i, {})}) for i in range(o["layers"])
        ]
        for i, layer in enumerate(layers):
            if o["stages"] > 1:
                layer.pipeline_stage = (
                    o["split"][i] if o["split"] else i * o["stages"] // o["layers"]
                )
            if i in o["recompute"]:
                layer.recompute()
            if o["recompute_feed"] is not None and i in o["recompute_feed"]:
                layer.feed.recompute()
            if i in o["frozen"]:
                for each in layer.trainable_params():
                    each.requires_grad = False
        self.layers = nn.CellList(layers)
        self.norm = RMSNorm("model.norm", o["hidden"], {**o, "rms": None, "half_norm": False})
        self.head = Linear(
            "lm_head", o["hidden"], o["vocabulary"], ms.float32, o["out_head"] or ((dp, 1), (tp, 1))
        )
        if o["stages"] > 1:
            self.gather.add_prim_attr("pipeline_stage", 0)
            self.norm.pipeline_stage = self.head.pipeline_stage = o["stages"] - 1

    def construct(self, tokens: Any) -> Any:
        x = self.gather(self.table, self.reshape(tokens, (-1,)), 0)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Entropy(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        dp = o["dp"]
        self.entropy = ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1)))
        self.hot, self.mean = (
            ops.OneHot().shard(((dp, 1), (), ())),
            ops.ReduceMean().shard(((dp,),)),
        )
        self.on, self.off, self.vocabulary = (
            Tensor(1.0, ms.float32),
            Tensor(0.0, ms.float32),
            o["vocabulary"],
        )
        self.reshape = ops.Reshape()

    def construct(self, logits: Any, labels: Any) -> Any:
        hot = self.hot(self.reshape(labels, (-1,)), self.vocabulary, self.on, self.off)
        return self.mean(self.entropy(logits, hot)[0])


class ClippedStep(nn.TrainOneStepCell):
    """A step that clips gradients by their norm over all devices."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.weights)(
            *inputs, ops.fill(loss.dtype, loss.shape, self.sens)
        )
        grads = ops.clip_by_global_norm(self.grad_reducer(grads), 1.0)
        return ops.depend(loss, self.optimizer(grads))


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    network, loss = Model(o), Entropy(o)
    whole: Any = nn.WithLossCell(network, loss)
    if o["stages"] > 1:
        loss.pipeline_stage = o["stages"] - 1
        whole = nn.PipelineCell(whole, o["micro"])
    weights = network.trainable_params()
    optimizer = (
        nn.AdamWeightDecay(weights, 1e-4)
        if o["optimizer"] == "adam"
        else nn.Momentum(weights, 1e-3, 0.9)
    )
    if o["stages"] > 1:
        from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell

        cell: Any = _TrainGradAccuStepCell(whole, optimizer)
    else:
        cell = (ClippedStep if o["clip"] else nn.TrainOneStepCell)(whole, optimizer)
    tokens = Tensor(np.ones((o["batch"] * o["micro"], o["sequence"])), ms.int32)
    return cell, (tokens, tokens)


# -- convolutions ----------------------------------------------------------------------------------

CONVOLUTIONS: dict[str, Any] = {
    "batch": 16, "size": 32, "channels": 32, "blocks": 2, "dp": 4, "tp": 1, "classes": 64,
    "conv": None, "pool": None, "bn": None, "dense": None, "block": {}, "recompute": (),
    "repeat": 1, "momentum": 0.9, "drop": 0.0, "group": None,
}  # fmt: skip


class Convolved(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        c, dp = o["channels"], o["dp"]
        self.kernel = weight(f"{name}.weight", c, c, 3, 3)
        self.conv = ops.Conv2D(c, 3, pad_mode="same").shard(
            o["conv"] or ((dp, 1, 1, 1), (1, 1, 1, 1))
        )
        self.gamma, self.beta = (
            Parameter(initializer(k, (c,), ms.float32), name=f"{name}.{k}")
            for k in ("ones", "zeros")
        )
        self.mean = Parameter(
            initializer("zeros", (c,), ms.float32), name=f"{name}.mean", requires_grad=False
        )
        self.variance = Parameter(
            initializer("ones", (c,), ms.float32), name=f"{name}.variance", requires_grad=False
        )
        self.bn = ops.BatchNorm(is_training=True).shard(
            o["bn"] or ((dp, 1, 1, 1), (1,), (1,), (1,), (1,))
        )
        self.relu, self.add = (
            ops.ReLU().shard(((dp, 1, 1, 1),)),
            ops.Add().shard(((dp, 1, 1, 1), (dp, 1, 1, 1))),
        )
        self.repeat = o["repeat"]

    def construct(self, x: Any) -> Any:
        for _ in range(self.repeat):
            y = self.bn(self.conv(x, self.kernel), self.gamma, self.beta, self.mean, self.variance)[
                0
            ]
            x = self.add(x, self.relu(y))
        return x


class ConvNet(nn.Cell):
    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        c, dp, tp = o["channels"], o["dp"], o["tp"]
        self.stem = ops.Conv2D(c, 3, pad_mode="same").shard(((dp, 1, 1, 1), (1, 1, 1, 1)))
        self.first = weight("stem.weight", c, 3, 3, 3)
        self.blocks = nn.CellList(
            [Convolved(f"blocks.{i}", {**o, **o["block"].get(i, {})}) for i in range(o["blocks"])]
        )
        for i in o["recompute"]:
            self.blocks[i].recompute()
        self.pool = ops.MaxPool(2, 2).shard(o["pool"] or ((dp, 1, 1, 1),))
        self.reshape, self.dense = (
            ops.Reshape(),
            ops.MatMul().shard(o["dense"] or ((dp, 1), (1, tp))),
        )
        self.flat = (o["batch"], c * (o["size"] // 2) ** 2)
        self.head = weight("head.weight", self.flat[1], o["classes"])
        self.loss, self.mean = (
            ops.SoftmaxCrossEntropyWithLogits().shard(((dp, 1), (dp, 1))),
            ops.ReduceMean().shard(((dp,),)),
        )

    def construct(self, x: Any, label: Any) -> Any:
        x = self.stem(x, self.first)
        for block in self.blocks:
            x = block(x)
        x = self.reshape(self.pool(x), self.flat)
        return self.mean(self.loss(self.dense(x, self.head), label)[0])


def build_convolutions(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**CONVOLUTIONS, **given}
    network = ConvNet(o)
    cell = nn.TrainOneStepCell(network, nn.Momentum(network.trainable_params(), 0.1, o["momentum"]))
    images = Tensor(np.ones((o["batch"], 3, o["size"], o["size"])), ms.float32)
    return cell, (images, Tensor(np.ones((o["batch"], o["classes"])), ms.float32))


# -- what does not compile -------------------------------------------------------------------------


class Failing(nn.Cell):
    """A network with one mistake."""

    def __init__(self, kind: str, rows: int, width: int) -> None:
        super().__init__()
        self.kind, self.rows, self.width = kind, rows, width
        self.weight = weight("weight", width, width)
        self.bias = weight("bias", width + 1)
        self.gamma, self.beta = weight("gamma", width - 1), weight("beta", width - 1)
        self.image = weight("image", 8, 4, 3, 3)
        self.half = weight("half", width, width, kind=ms.bfloat16)
        self.dense, self.matmul, self.norm = (
            nn.Dense(width + 2, 8),
            ops.MatMul(),
            ops.LayerNorm(1, 1),
        )
        self.conv, self.softmax, self.tile = ops.Conv2D(8, 3), ops.Softmax(5), ops.Tile()
        self.add_bias, self.cast, self.slice = ops.BiasAdd(), ops.Cast(), ops.StridedSlice()
        self.flash, self.tables = ops.Concat(-1), {"a": 1}
        self.hot, self.squeeze = ops.OneHot(), ops.Squeeze(0)

    def helper(self, x: Any, other: Any) -> Any:
        return self.matmul(x, other)

    def construct(self, x: Any) -> Any:
        y = x * 2
        if self.kind == "dense":
            y = self.dense(y)  # planted: dense
        if self.kind == "layernorm":
            y = self.norm(y, self.gamma, self.beta)[0]  # planted: layernorm
        if self.kind == "bias":
            y = self.add_bias(y, self.bias)  # planted: bias
        if self.kind == "conv":
            y = self.conv(y, self.image)  # planted: conv
        if self.kind == "axis":
            y = self.softmax(y)  # planted: axis
        if self.kind == "bf16":
            y = self.matmul(y, self.half)  # planted: bf16
        if self.kind == "tuple_add":
            y = y + (1, 2, "a")  # noqa: RUF005  # planted: tuple_add
        if self.kind == "none":
            y = y + None  # planted: none
        if self.kind == "keyword":
            y = self.helper(y, right=self.weight)  # planted: keyword
        if self.kind == "attribute":
            y = y + self.not_set  # planted: attribute
        if self.kind == "key":
            y = y * self.tables["b"]  # planted: key
        if self.kind == "concat":
            y = self.flash((y, self.weight, self.image))  # planted: concat
        if self.kind == "squeeze":
            y = self.squeeze(y)  # planted: squeeze
        if self.kind == "mint":
            y = ops.einsum("ij,jk,kl->il", y, self.weight, self.bias)  # planted: mint
        if self.kind == "view":
            y = y.view(self.rows + 1, -1)  # planted: view
        if self.kind == "where":
            y = ops.where(y > 0, y, self.bias)  # planted: where
        if self.kind == "raise":
            raise ValueError(f"rows {self.rows} must be even")  # planted: raise
        if self.kind == "cast":
            y = self.cast(y, "float33")  # planted: cast
        if self.kind == "heads":
            y = y.reshape((self.rows, 7, self.width // 7))  # planted: heads
        return y


FAILURES: dict[str, tuple[str, ...]] = {
    "dense": ("MatMul|Dense|shape",), "layernorm": ("LayerNorm",), "bias": ("BiasAdd|bias",),
    "conv": ("Conv2D",), "axis": ("Softmax|axis",), "bf16": ("MatMul", "BFloat16|type"),
    "tuple_add": ("add|tuple|type",), "none": ("None|add|nullptr",), "keyword": ("right|argument",),
    "attribute": ("not_set",), "key": ("b|key",), "concat": ("Concat",), "squeeze": ("Squeeze|shape",),
    "mint": ("einsum|shape|dim",), "view": ("view|[Rr]eshape",), "where": ("where|[Ss]elect|broadcast",),
    "raise": ("must be even",), "cast": ("Cast|float33|type",), "heads": ("[Rr]eshape",),
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

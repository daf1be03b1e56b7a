"""Two styles of network in which one habit a time can be planted: ``build(settings)``.

``encoder`` gives strategies as tuples, normalises by one operator, drops with ``nn.Dropout`` and
trains with Adam; ``gated`` gives layouts, writes its normalisation out in small operators, gates
with SiLU and trains with momentum.  Settings are those of ``DEFAULTS``; what holds for one layer
alone stands in ``layer`` = {number: {setting: value}}.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops.auto_generate import SiLU
from mindspore.parallel import Layout

DEFAULTS: dict[str, Any] = {
    "style": "encoder", "batch": 16, "sequence": 32, "hidden": 64, "heads": 8, "inner": 128,
    "words": 256, "layers": 4, "dp": 2, "tp": 2, "half": False, "recompute": (), "lazy": False,
    "keep": 0.9, "epsilon": 1e-5, "scale": 0.125, "print": False, "dump": False, "summary": False,
    "turned": False, "ids": "int32", "positions": "none", "dynamic": "", "up": None, "down": None,
    "softmax": None, "norms": 0, "rate_off": False, "guard": "add", "loss_half": False,
    "round_trip": False, "reduced": "", "optimizer": "", "head_tied": False,
    "unsharded": (), "layer": {}, "stages": 1, "micro": 1, "long_sum": False, "extra_weights": 0,
    "mask_early": False, "axis": -1, "fusion": 1, "mesh": "", "heavy": 1, "shared": False,
    "own_recompute": False, "weights_half": False,
}  # fmt: skip


def weight(
    name: str, *shape: int, init: str = "normal", kind: Any = ms.float32, **more: Any
) -> Parameter:
    return Parameter(initializer(init, shape, kind), name=name, **more)


TAKES_LAYOUTS = frozenset(
    ("MatMul", "BatchMatMul", "Add", "Mul", "Sub", "SiLU", "GeLU", "Transpose", "Square", "Softmax")
)


class Cutting:
    """Strategies as tuples or, where operators take them, as layouts of the same mesh."""

    def __init__(self, o: dict[str, Any]) -> None:
        self.sizes = {"dp": o["dp"], "tp": o["tp"]}
        self.layouts = o["style"] == "gated"
        self.names = ("tp", "dp") if o["mesh"] == "turned" else ("dp", "tp")

    def __call__(self, operator: Any, *specs: tuple[Any, ...]) -> Any:
        if self.layouts and all(specs) and operator.name in TAKES_LAYOUTS:
            made = Layout(tuple(self.sizes[name] for name in self.names), self.names)
            rows = tuple(made(*(entry or "None" for entry in spec)) for spec in specs)
            return operator.shard(in_strategy=rows)
        rows = tuple(tuple(self.sizes.get(entry, 1) for entry in spec) for spec in specs)
        return operator.shard(rows)


class Product(nn.Cell):
    """A product with a weight that is stored turned (out, into), or turned anew in each step."""

    def __init__(self, name: str, into: int, out: int, rows: str, o: dict[str, Any], cut: str = ""):
        super().__init__()
        shard = Cutting(o)
        column = rows == "column"
        kind = ms.float16 if o["weights_half"] and o["half"] else ms.float32
        self.weight = weight(f"{name}.weight", out, into, kind=kind)
        spec = ("tp", None) if column else (None, "tp")
        left = ("dp", None) if column else ("dp", "tp")
        if rows == "none":
            spec, left = (None, None), ("dp", None)
        self.turned, self.half = o["turned"], o["half"]
        self.turn = shard(ops.Transpose(), spec)
        given = o[cut] if cut else None
        self.product = ops.MatMul(transpose_b=not self.turned)
        if cut not in o["unsharded"] or not cut:
            if given is not None:
                self.product.shard(given)
            else:
                shard(self.product, left, spec[::-1] if self.turned else spec)
        self.cast = ops.Cast()

    def construct(self, x: Any) -> Any:
        w = self.weight
        if self.half:
            w = self.cast(w, ms.float16)
        if self.turned:
            w = self.turn(w, (1, 0))
        return self.product(x, w)


class Norm(nn.Cell):
    """One operator, or the mean of squares with a guard, a root and a product."""

    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        hidden = o["hidden"]
        self.written_out = o["style"] == "gated"
        self.gamma = weight(f"{name}.gamma", hidden, init="ones")
        self.half, self.cast = o["half"], ops.Cast()
        if self.written_out:
            self.square = shard(ops.Square(), ("dp", None))
            self.mean = shard(ops.ReduceMean(keep_dims=True), ("dp", None))
            self.add = shard(ops.Add(), ("dp", None), ())
            self.most = shard(ops.Maximum(), ("dp", None), ())
            self.root = shard(ops.Rsqrt(), ("dp", None))
            self.mul = shard(ops.Mul(), ("dp", None), ("dp", None))
            self.gain = shard(ops.Mul(), ("dp", None), (None,))
            self.guard, self.epsilon = o["guard"], o["epsilon"]
            kind = ms.float16 if o["half"] else ms.float32
            self.constant = Tensor(o["epsilon"], kind)
        else:
            self.beta = weight(f"{name}.beta", hidden, init="zeros")
            self.norm = shard(ops.LayerNorm(-1, -1, o["epsilon"]), ("dp", None), (None,), (None,))

    def construct(self, x: Any) -> Any:
        if not self.written_out:
            return self.norm(x, self.gamma, self.beta)[0]
        squares = self.mean(self.square(x), 1)
        if self.guard == "add":
            squares = self.add(squares, self.epsilon)
        elif self.guard == "tensor":
            squares = self.add(squares, self.constant)
        else:
            squares = self.most(squares, self.epsilon)
        gamma = self.cast(self.gamma, ms.float16) if self.half else self.gamma
        return self.gain(self.mul(x, self.root(squares)), gamma)


class Attention(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        hidden = o["hidden"]
        self.four = (-1, o["sequence"], o["heads"], hidden // o["heads"])
        self.flat = (-1, hidden)
        self.q, self.k, self.v = (
            Product(f"{name}.{each}", hidden, hidden, "column", o) for each in "qkv"
        )
        self.out = Product(f"{name}.out", hidden, hidden, "row", o)
        heads = ("dp", "tp", None, None)
        self.reshape = ops.Reshape()
        self.transpose = shard(ops.Transpose(), ("dp", None, "tp", None))
        self.back = shard(ops.Transpose(), heads)
        self.scores = shard(ops.BatchMatMul(transpose_b=True), heads, heads)
        self.mix = shard(ops.BatchMatMul(), heads, heads)
        self.softmax = ops.Softmax(o["axis"])
        if o["softmax"]:
            self.softmax.shard(o["softmax"])
        else:
            shard(self.softmax, heads)
        self.mul = shard(ops.Mul(), heads, ())
        self.scale = o["scale"]
        self.hide = shard(ops.Mul(), heads, ("dp", None, None, None))
        self.masked = o["mask_early"]

    def split(self, x: Any) -> Any:
        return self.transpose(self.reshape(x, self.four), (0, 2, 1, 3))

    def construct(self, x: Any, mask: Any = None) -> Any:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        w = self.mul(self.scores(q, k), self.scale)
        if self.masked:
            w = self.hide(w, mask)
        w = self.softmax(w)
        return self.out(self.reshape(self.back(self.mix(w, v), (0, 2, 1, 3)), self.flat))


class Feed(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        self.gated = o["style"] == "gated"
        inner = o["inner"] * o["heavy"]
        self.up = Product(f"{name}.up", o["hidden"], inner, "column", o, "up")
        self.down = Product(f"{name}.down", inner, o["hidden"], "row", o, "down")
        if self.gated:
            self.gate = Product(f"{name}.gate", o["hidden"], o["inner"], "column", o)
        self.act = shard(SiLU() if self.gated else ops.GeLU(), ("dp", "tp"))
        self.mul = shard(ops.Mul(), ("dp", "tp"), ("dp", "tp"))

    def construct(self, x: Any) -> Any:
        y = self.act(self.up(x))
        if self.gated:
            y = self.mul(y, self.gate(x))
        return self.down(y)


class Squared(nn.Cell):
    """A value that it also gives away beside what it makes of it."""

    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        self.act = shard(ops.GeLU(), ("dp", None))
        self.mul = shard(ops.Mul(), ("dp", None), ("dp", None))

    def construct(self, x: Any) -> Any:
        y = self.act(x)
        return y, self.mul(y, y)


class Positions(nn.Cell):
    """Positions that no gradient reaches."""

    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        rows = o["batch"] * o["sequence"]
        self.table = weight("positions", rows, o["hidden"], requires_grad=False)
        self.act = shard(ops.GeLU(), ("dp", None))

    def construct(self) -> Any:
        return self.act(self.table)


class Block(nn.Cell):
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        self.name = name
        self.encoder = o["style"] == "encoder"
        self.norm1, self.norm2 = Norm(f"{name}.norm1", o), Norm(f"{name}.norm2", o)
        if self.encoder:
            self.attention = Attention(f"{name}.attention", o)
            self.dropout = nn.Dropout(p=1.0 - o["keep"])
            self.dropout.dropout.shard(((o["dp"], 1),)) if o["keep"] < 1 else None
        else:
            self.attention = Feed(f"{name}.mixer", o)
            self.dropout = shard(ops.Dropout(o["keep"]), ("dp", None))
        self.feed = Feed(f"{name}.feed", o)
        self.add1, self.add2 = (shard(ops.Add(), ("dp", None), ("dp", None)) for _ in range(2))
        self.print, self.dump, self.summary = o["print"], o["dump"], o["summary"]
        self.tell, self.write = ops.Print(), ops.TensorDump()
        self.record, self.mean = ops.ScalarSummary(), ops.ReduceMean()
        self.half, self.round_trip, self.cast = o["half"], o["round_trip"], ops.Cast()
        self.norms, self.sum = o["norms"], shard(ops.ReduceSum(), ("dp", "tp"))
        self.shift = shard(ops.Sub(), ("dp", None), ())
        self.small = shard(ops.Mul(), (), ())
        self.reduced = o["reduced"]
        self.first, self.second = ops.AllReduce(), ops.AllReduce()
        self.long, self.long_sum = shard(ops.ReduceSum(), ("dp", None)), o["long_sum"]
        self.gathered, self.scattered = ops.AllGather(), ops.ReduceScatter()
        self.shared, self.squared = o["shared"], Squared(o)
        self.squared.recompute() if o["shared"] else None
        self.both = shard(ops.Mul(), ("dp", None), ("dp", None))

    def rate(self, x: Any) -> Any:
        return self.dropout(x) if self.encoder else self.dropout(x)[0]

    def construct(self, x: Any, mask: Any = None) -> Any:
        if self.half:
            x = self.cast(x, ms.float16)
        y = self.norm1(x)
        y = self.attention(y, mask) if mask is not None else self.attention(y)
        x = self.add1(x, self.rate(y))
        if self.shared:
            y, z = self.squared(x)
            x = self.both(y, z)
        if self.print:
            self.tell("layer", x)
        if self.dump:
            self.write("layer.npy", x)
        if self.summary:
            self.record("layer", self.mean(x, ()))
        y = self.feed(self.norm2(x))
        if self.round_trip:
            y = self.cast(self.cast(y, ms.float16), ms.float32)
        x = self.add2(x, y)
        for _ in range(self.norms):
            x = self.shift(x, self.small(self.sum(x), 1e-6))
        if self.long_sum:
            x = self.shift(x, self.long(x, (0, 1)))
        if self.reduced == "scatter":
            x = self.scattered(self.gathered(x))
        elif self.reduced:
            x = self.second(self.first(x)) if self.reduced == "twice" else self.first(x)
        return x


class LazyBlock(Block):
    @lazy_inline
    def __init__(self, name: str, o: dict[str, Any]) -> None:
        super().__init__(name, o)


class Network(nn.Cell):
    """Embedding, layers, head and loss."""

    def __init__(self, o: dict[str, Any]) -> None:
        super().__init__()
        shard = Cutting(o)
        self.o = o
        self.table = weight("embedding", o["words"], o["hidden"])
        self.gather = shard(ops.Gather(), (None, None), ("dp",))
        kind = LazyBlock if o["lazy"] else Block
        layers = [kind(f"layers.{i}", {**o, **o["layer"].get(i, {})}) for i in range(o["layers"])]
        for i, layer in enumerate(layers):
            if o["stages"] > 1:
                layer.pipeline_stage = i * o["stages"] // o["layers"]
            if i in o["recompute"]:
                layer.recompute()
        self.layers = nn.CellList(layers)
        self.norm = Norm("norm", {**o, "half": False, "guard": "add", "epsilon": 1e-5})
        self.head = Product("head", o["hidden"], o["words"], "none",
                            {**o, "half": False, "turned": False})  # fmt: skip
        if o["head_tied"]:
            self.head.weight = self.table
            self.head.product.shard(((o["dp"], 1), (o["tp"], 1)))
        self.cast, self.reshape = ops.Cast(), ops.Reshape()
        self.positions = o["positions"]
        self.own = Positions(o) if self.positions == "own" else None
        if o["own_recompute"]:
            self.own.recompute()
        if self.positions != "none":
            rows = o["batch"] * o["sequence"]
            self.places = weight("positions", rows, o["hidden"], requires_grad=False)
            self.order = Tensor(np.arange(rows), ms.int32)
            self.look = shard(ops.Gather(), (None, None), ("dp",))
            self.plus = shard(ops.Add(), ("dp", None), ("dp", None))
        cells = ("dp", None, None, None)
        self.equal = shard(ops.Equal(), cells, cells)
        self.hot = shard(ops.OneHot(), ("dp", None), (), ())
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)
        self.entropy = shard(ops.SoftmaxCrossEntropyWithLogits(), ("dp", None), ("dp", None))
        # A reduction over a size that is not known cannot be split.
        self.mean = shard(ops.ReduceMean(), (None,) if o["dynamic"] else ("dp",))
        extra = o["extra_weights"]
        self.extra = ms.ParameterTuple([weight(f"extra.{i}", o["hidden"]) for i in range(extra)])
        for each in self.extra:
            each.comm_fusion = o["fusion"]
        self.bias = shard(ops.Add(), ("dp", None), (None,))
        if o["stages"] > 1:
            self.gather.add_prim_attr("pipeline_stage", 0)
            self.norm.pipeline_stage = self.head.pipeline_stage = o["stages"] - 1

    def construct(self, ids: Any, labels: Any) -> Any:
        o = self.o
        ids = self.reshape(ids, (-1,))
        if o["ids"] == "int64":
            ids = self.cast(ids, ms.int32)
        x = self.gather(self.table, ids, 0)
        if self.positions == "gathered":
            x = self.plus(x, self.look(self.places, self.order, 0))
        elif self.positions == "cast":
            x = self.plus(x, self.cast(self.cast(self.places, ms.float16), ms.float32))
        elif self.positions == "own":
            x = self.plus(x, self.own())
        if o["mask_early"]:
            words = self.reshape(ids, (o["batch"], 1, o["sequence"], 1))
            others = self.reshape(ids, (o["batch"], 1, 1, o["sequence"]))
            mask = self.cast(self.equal(words, others), ms.float32)
            for layer in self.layers:
                x = layer(x, mask)
        else:
            for layer in self.layers:
                x = layer(x)
        if o["half"]:
            x = self.cast(x, ms.float32)
        for each in self.extra:
            x = self.bias(x, each)
        x = self.head(self.norm(x))
        if o["loss_half"]:
            x = self.cast(x, ms.float16)
        wanted = self.hot(self.reshape(labels, (-1,)), o["words"], self.on, self.off)
        if o["loss_half"]:
            wanted = self.cast(wanted, ms.float16)
        return self.mean(self.entropy(x, wanted)[0])


def build(given: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A training cell and its inputs."""
    o = {**DEFAULTS, **given}
    network: Any = Network(o)
    parameters = network.trainable_params()
    if o["stages"] > 1:
        network = nn.PipelineCell(network, o["micro"])
    kind = o["optimizer"] or ("adam" if o["style"] == "encoder" else "momentum")
    optimizer: Any = (
        nn.AdamWeightDecay(parameters, 1e-3)
        if kind == "adam"
        else nn.Momentum(parameters, 1e-3, 0.9)
    )
    if o["stages"] > 1:
        from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell

        cell: Any = _TrainGradAccuStepCell(network, optimizer)
    else:
        cell = nn.TrainOneStepCell(network, optimizer)
    kind = ms.int64 if o["ids"] == "int64" else ms.int32
    shape = (o["batch"] * o["micro"], o["sequence"])
    labels = Tensor(np.ones(shape), ms.int32)
    ids = Tensor(np.ones(shape), kind)
    if o["dynamic"]:
        rows = None if o["dynamic"] == "batch" else shape[0]
        columns = None if o["dynamic"] == "sequence" else shape[1]
        ids = Tensor(shape=(rows, columns), dtype=kind)
        labels = Tensor(shape=(rows, columns), dtype=ms.int32)
        cell.set_inputs(ids, labels)
    return cell, (ids, labels)

"""Kinds of networks beside transformers: images, recurrences, tables, functions, unknown sizes."""

from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, MeanLoss, Mesh, mesh_of, settings_of, tensor, train, weight
from mindspore import Symbol, Tensor, nn, ops


def drawn_devices(draw: random.Random) -> int:
    return draw.choice((2, 4, 8, 8, 8, 16, 32, 64, 512))


def finished(
    draw: random.Random, kind: str, mesh: Mesh, devices: int, settings: dict[str, Any],
    build: Any, rank: int, inputs: Any, first: str | None = "dp",
) -> Drawn:  # fmt: skip
    """A network of one output: with a loss and an optimizer, or as it is."""
    training = draw.random() < 0.8

    def network() -> Any:
        cell = build()
        if training:
            cell = train(draw, MeanLoss(cell, rank, mesh, first))
        return cell, inputs()

    notes = {
        "mesh": mesh.sizes,
        "spoiled": mesh.notes,
        "habit": [mesh.missing, mesh.layouts, mesh.careless],
    }
    return Drawn(kind, devices, settings, notes, network, training)


# -- images ------------------------------------------------------------------------------------


class Images(nn.Cell):
    """Convolutions whose batch, channels, or rows and columns are split."""

    def __init__(self, draw: random.Random, mesh: Mesh, channels: int, out: int) -> None:
        super().__init__()
        image = draw.choice(("batch", "batch", "channels", "rows"))
        mesh.notes.append(image)
        c_in, c_out = (
            (("tp", None) if draw.random() < 0.5 else (None, "tp"))
            if image == "channels"
            else (None, None)
        )
        h = "tp" if image == "rows" else None
        size, stride = draw.choice(((1, 1), (3, 1), (3, 2), (2, 2), (5, 1)))
        mode = draw.choice(("same", "valid", "pad"))
        self.kernel = weight("conv.weight", out, channels, size, size)
        conv = ops.Conv2D(
            out, size, pad_mode=mode, pad=size // 2 if mode == "pad" else 0, stride=stride
        )
        self.conv = mesh.shard(conv, ("dp", c_in, h, None), (c_out, c_in, None, None))
        self.mean = weight("bn.mean", out, init="zeros", requires_grad=False)
        self.var = weight("bn.var", out, init="ones", requires_grad=False)
        self.scale, self.shift = (
            weight("bn.gamma", out, init="ones"),
            weight("bn.beta", out, init="zeros"),
        )
        spec = ("dp", c_out, h if draw.random() < 0.5 else None, None)
        self.norm = mesh.shard(ops.BatchNorm(is_training=True), spec, *[(c_out,)] * 4)
        self.relu = mesh.shard(ops.ReLU(), spec)
        pool = draw.choice((ops.MaxPool, ops.AvgPool))(2, 2, draw.choice(("same", "valid")))
        self.pool = mesh.shard(pool, ("dp", c_out, h if draw.random() < 0.3 else None, None))
        self.second = weight("conv2.weight", out, out, 3, 3)
        conv2 = ops.Conv2D(out, 3, pad_mode="same", dilation=draw.choice((1, 2)))
        self.conv2 = mesh.shard(conv2, ("dp", None, h, None), (None, None, None, None))
        self.last = draw.choice(("mean", "resize", "transpose", "flat"))
        if self.last == "resize":
            self.resize = mesh.shard(ops.ResizeNearestNeighbor((16, 16)), ("dp", c_out, None, None))
        elif self.last == "transpose":
            self.up = weight("up.weight", out, channels, 2, 2)
            # As its gradient reads it: channels of what it is given, as nn.Conv2dTranspose says.
            up = ops.Conv2DTranspose(out, 2, pad_mode="same", stride=2)
            self.deconv = mesh.shard(up, ("dp", None, None, None), (None, None, None, None))
        elif self.last == "flat":
            self.flat = mesh.shard(ops.Flatten(), ("dp", None, None, None))
        self.reduce = mesh.shard(ops.ReduceMean(keep_dims=True), ("dp", None, None, None))
        self.add = mesh.shard(ops.Add(), ("dp", c_out, None, None), ("dp", c_out, None, None))

    def construct(self, x: Any) -> Any:
        x = self.relu(
            self.norm(self.conv(x, self.kernel), self.scale, self.shift, self.mean, self.var)[0]
        )
        x = self.pool(x)
        x = self.add(x, self.conv2(x, self.second))
        if self.last == "resize":
            x = self.resize(x)
        elif self.last == "transpose":
            x = self.deconv(
                x, self.up, (x.shape[0], self.up.shape[1], 2 * x.shape[2], 2 * x.shape[3])
            )
        elif self.last == "flat":
            return self.flat(x)
        return self.reduce(x, (2, 3))


def images(draw: random.Random) -> Drawn:
    devices = drawn_devices(draw)
    mesh = mesh_of(draw, devices)
    channels, out = draw.choice((4, 16)) * mesh.size("tp"), 16 * mesh.size("tp")
    side = draw.choice((16, 32, 64, 30))
    settings = settings_of(draw)
    batch = devices * draw.choice((1, 2))
    local = batch // devices if "dataset_strategy" in settings else batch
    build = lambda: Images(draw, mesh, channels, out)  # noqa: E731
    return finished(
        draw, "images", mesh, devices, settings, build, 4,
        lambda: (tensor(local, channels, side, side),),
    )  # fmt: skip


# -- recurrences -------------------------------------------------------------------------------


class Recurrent(nn.Cell):
    """A gated cell unrolled over a few steps, with shared weights."""

    def __init__(
        self, draw: random.Random, mesh: Mesh, into: int, hidden: int, steps: int, batch: int
    ) -> None:
        super().__init__()
        self.steps, self.hidden = steps, hidden
        self.wx, self.wh = weight("wx", 4 * hidden, into), weight("wh", 4 * hidden, hidden)
        self.bias = weight("bias", 4 * hidden, init="zeros")
        out = draw.choice(("tp", None))
        self.mx = mesh.shard(ops.MatMul(transpose_b=True), ("dp", None), (out, None))
        self.mh = mesh.shard(ops.MatMul(transpose_b=True), ("dp", None), (out, None))
        self.add = mesh.shard(ops.Add(), ("dp", out), ("dp", out))
        self.shift = mesh.shard(ops.BiasAdd(), ("dp", out), (out,))
        self.cut = mesh.shard(ops.Split(1, 4), ("dp", None))
        self.sigmoid = mesh.shard(ops.Sigmoid(), ("dp", None))
        self.tanh = mesh.shard(ops.Tanh(), ("dp", None))
        self.mul = mesh.shard(ops.Mul(), ("dp", None), ("dp", None))
        self.slice = mesh.shard(ops.StridedSlice(), ("dp", None, None))
        self.stack = mesh.shard(ops.Stack(1), *[("dp", None)] * steps)
        self.reshape = ops.Reshape()
        self.start = Tensor(np.zeros((batch, hidden)), ms.float32)

    def construct(self, x: Any) -> Any:
        h, c, outputs = self.start, self.start, ()
        batch, width = x.shape[0], x.shape[2]
        for step in range(self.steps):
            piece = self.slice(x, (0, step, 0), (batch, step + 1, width), (1, 1, 1))
            piece = self.reshape(piece, (batch, width))
            gates = self.shift(self.add(self.mx(piece, self.wx), self.mh(h, self.wh)), self.bias)
            i, f, g, o = self.cut(gates)
            c = self.add(self.mul(self.sigmoid(f), c), self.mul(self.sigmoid(i), self.tanh(g)))
            h = self.mul(self.sigmoid(o), self.tanh(c))
            outputs += (h,)
        return self.stack(outputs)


def recurrent(draw: random.Random) -> Drawn:
    devices = drawn_devices(draw)
    mesh = mesh_of(draw, devices)
    hidden, into, steps = 8 * mesh.size("tp"), 16 * mesh.size("tp"), draw.choice((2, 3, 4))
    settings = settings_of(draw)
    batch = devices * draw.choice((1, 2))
    local = batch // devices if "dataset_strategy" in settings else batch
    return finished(
        draw, "recurrent", mesh, devices, settings,
        lambda: Recurrent(draw, mesh, into, hidden, steps, batch), 3,
        lambda: (tensor(local, steps, into),),
    )  # fmt: skip


# -- tables ------------------------------------------------------------------------------------


class Tables(nn.Cell):
    """A recommender: look-ups split by rows or columns, crossed, then a perceptron."""

    def __init__(self, draw: random.Random, mesh: Mesh, rows: int, width: int, count: int) -> None:
        super().__init__()
        self.tables = ms.ParameterTuple([weight(f"table{i}", rows, width) for i in range(count)])
        self.lookups = nn.CellList()
        self.gathers = []
        for _ in range(count):
            kind = draw.choice(("rows", "columns", "whole"))
            spec = {"rows": ("tp", None), "columns": (None, "tp"), "whole": (None, None)}[kind]
            looked = (None, None) if kind == "rows" and draw.random() < 0.9 else ("dp", None)
            self.gathers.append(mesh.shard(ops.Gather(), spec, looked))
        self.sum = mesh.shard(ops.ReduceSum(keep_dims=draw.random() < 0.5), ("dp", None, None))
        self.keep = self.sum.keep_dims
        self.concat = mesh.shard(
            ops.Concat(1), *[("dp", None, None) if self.keep else ("dp", None)] * count
        )
        self.reshape = ops.Reshape()
        total = count * width
        self.w1, self.w2 = (
            weight("up", total, 8 * mesh.size("tp")),
            weight("down", 8 * mesh.size("tp"), 16),
        )
        self.first = mesh.shard(ops.MatMul(), ("dp", None), (None, "tp"))
        self.act = mesh.shard(ops.Sigmoid(), ("dp", "tp"))
        self.second = mesh.shard(ops.MatMul(), ("dp", "tp"), ("tp", None))
        self.cross = mesh.shard(
            ops.BatchMatMul(transpose_b=True), ("dp", None, None), ("dp", None, None)
        )
        self.with_cross = draw.random() < 0.4

    def construct(self, ids: Any) -> Any:
        pieces = ()
        # MindSpore compiles this and knows no `strict`.
        for gather, table in zip(self.gathers, self.tables):  # noqa: B905
            pieces += (self.sum(gather(table, ids, 0), 1),)
        x = self.reshape(self.concat(pieces), (ids.shape[0], -1))
        y = self.second(self.act(self.first(x, self.w1)), self.w2)
        if self.with_cross:
            z = self.reshape(y, (ids.shape[0], 4, 4))
            y = self.reshape(self.cross(z, z), (ids.shape[0], 16))
        return y


def tables(draw: random.Random) -> Drawn:
    devices = drawn_devices(draw)
    mesh = mesh_of(draw, devices)
    rows, width, count = 64 * mesh.size("tp"), 8 * mesh.size("tp"), draw.choice((2, 3))
    settings = settings_of(draw)
    batch = devices * draw.choice((1, 2))
    local = batch // devices if "dataset_strategy" in settings else batch
    return finished(
        draw, "tables", mesh, devices, settings, lambda: Tables(draw, mesh, rows, width, count), 2,
        lambda: (tensor(local, 8, dtype=ms.int32),),
    )  # fmt: skip


# -- functions that are sharded ----------------------------------------------------------------


class Functional(nn.Cell):
    """``mindspore.shard`` and ``Cell.shard`` around a part of a network."""

    def __init__(self, draw: random.Random, mesh: Mesh, hidden: int) -> None:
        super().__init__()
        self.w1, self.w2 = weight("w1", hidden, hidden), weight("w2", hidden, hidden)
        self.first = mesh.shard(ops.MatMul(), ("dp", None), (None, "tp"))
        self.second = mesh.shard(ops.MatMul(), ("dp", "tp"), ("tp", None))
        self.relu = ops.ReLU()
        self.add = mesh.shard(ops.Add(), ("dp", None), ("dp", None))
        spec = draw.choice((("dp", "tp"), ("dp", None), (None, "tp"), ("tp", None)))
        given: Any = (
            mesh.layout(spec) if mesh.layouts else tuple(mesh.size(entry) for entry in spec)
        )
        after: Any = None
        if draw.random() < 0.6:
            other = draw.choice((("dp", "tp"), ("dp", None)))
            after = (
                mesh.layout(other) if mesh.layouts else tuple(mesh.size(entry) for entry in other)
            )
        mesh.notes.append(f"shard {spec} {after is not None}")
        self.inner = ms.shard(
            self.middle, in_strategy=(given,), out_strategy=(after,) if after is not None else None
        )

    def middle(self, x: Any) -> Any:
        return self.relu(x) * 2.0 + 1.0

    def construct(self, x: Any) -> Any:
        y = self.inner(self.first(x, self.w1))
        return self.add(self.second(y, self.w2), x)


def functional(draw: random.Random) -> Drawn:
    devices = drawn_devices(draw)
    mesh = mesh_of(draw, devices)
    hidden, settings = 16 * mesh.size("tp"), settings_of(draw)
    batch = devices * draw.choice((1, 2))
    local = batch // devices if "dataset_strategy" in settings else batch
    return finished(
        draw, "functional", mesh, devices, settings, lambda: Functional(draw, mesh, hidden), 2,
        lambda: (tensor(local, hidden),),
    )  # fmt: skip


# -- unknown sizes -----------------------------------------------------------------------------


class Unknown(nn.Cell):
    """Products, norms, slices and reshapes over a batch or a length that is not known."""

    def __init__(self, draw: random.Random, mesh: Mesh, hidden: int) -> None:
        super().__init__()
        self.w1, self.w2 = weight("w1", hidden, 2 * hidden), weight("w2", 2 * hidden, hidden)
        self.gamma, self.beta = (
            weight("gamma", hidden, init="ones"),
            weight("beta", hidden, init="zeros"),
        )
        self.norm = mesh.shard(ops.LayerNorm(-1, -1), ("dp", None, None), (None,), (None,))
        self.first = mesh.shard(
            ops.BatchMatMul() if draw.random() < 0.2 else ops.MatMul(), ("dp", None), (None, "tp")
        )
        self.gelu = mesh.shard(ops.GeLU(), ("dp", "tp"))
        self.second = mesh.shard(ops.MatMul(), ("dp", "tp"), ("tp", None))
        self.add = mesh.shard(ops.Add(), ("dp", None, None), ("dp", None, None))
        self.softmax = mesh.shard(ops.Softmax(-1), ("dp", None, None))
        self.transpose = mesh.shard(ops.Transpose(), ("dp", None, "tp"))
        self.slice = mesh.shard(ops.StridedSlice(), ("dp", None, None))
        self.reshape, self.shape = ops.Reshape(), ops.Shape()
        self.hidden, self.end = hidden, draw.choice(("", "transpose", "slice", "softmax"))

    def construct(self, x: Any) -> Any:
        y = self.norm(x, self.gamma, self.beta)[0]
        batch, length, _ = self.shape(y)
        y = self.reshape(y, (-1, self.hidden))
        y = self.second(self.gelu(self.first(y, self.w1)), self.w2)
        y = self.add(self.reshape(y, (batch, length, self.hidden)), x)
        if self.end == "softmax":
            y = self.softmax(y)
        elif self.end == "slice":
            y = self.slice(y, (0, 0, 0), (batch, length, self.hidden // 2), (1, 1, 1))
        elif self.end == "transpose":
            y = self.transpose(y, (0, 2, 1))
        return y


def unknown(draw: random.Random) -> Drawn:
    devices = draw.choice((2, 4, 8, 8, 16, 32))
    mesh = mesh_of(draw, devices)
    hidden, settings = 16 * mesh.size("tp"), settings_of(draw)
    settings.pop("dataset_strategy", None)
    settings["full_batch"] = True
    size = draw.choice(
        (None, Symbol(divisor=devices), Symbol(divisor=mesh.size("dp")), Symbol(divisor=2))
    )
    shape = (
        [size, draw.choice((8, None)), hidden] if draw.random() < 0.7 else [devices, size, hidden]
    )
    mesh.notes.append(str(shape))

    def build() -> Any:
        return Unknown(draw, mesh, hidden)

    def inputs() -> Any:
        return (Tensor(shape=shape, dtype=ms.float32),)

    drawn = finished(draw, "unknown", mesh, devices, settings, build, 3, inputs)
    plain = drawn.network

    def network() -> Any:
        cell, given = plain()
        cell.set_inputs(*given)
        return cell, given

    drawn.network = network
    return drawn


# -- Morph -------------------------------------------------------------------------------------


class Morphed(nn.Cell):
    """A function of the user's own with its own collectives, in layouts that it says itself."""

    def __init__(self, draw: random.Random, mesh: Mesh, batch: int, hidden: int) -> None:
        super().__init__()
        self.w1, self.w2 = weight("w1", hidden, hidden), weight("w2", hidden, hidden)
        self.first = mesh.shard(ops.MatMul(), ("dp", None), (None, "tp"))
        dp, tp = mesh.size("dp"), mesh.size("tp")
        self.kind = draw.choice(("none", "gather" if dp == mesh.devices else "none", "reduce"))
        group = "hccl_world_group"
        self.gather = ops.AllGather(group=group)
        self.sum = ops.AllReduce(group=group)
        whole = mesh.devices

        def shapes(x: Any, w: Any) -> Any:
            return (x[0], w[1])

        def types(x: Any, w: Any) -> Any:
            return x

        kind, gather, total = self.kind, self.gather, self.sum
        matmul, relu = ops.MatMul(), ops.ReLU()

        def function(x: Any, w: Any) -> Any:
            y = matmul(x, w)
            if kind == "reduce":
                y = total(y)
            elif kind == "gather":
                y = gather(y)
            return relu(y)

        self.morph = ops.Morph(function, shapes, types)
        self.morph.add_prim_attr("self_define_shard", True)
        layout = mesh.layout
        rows = ("dp", None) if kind != "reduce" else ("dp", "tp")
        into = (layout(rows), layout((None, None) if kind != "reduce" else ("tp", None)))
        self.morph.shard(
            in_strategy=into, out_strategy=(layout((None if kind == "gather" else "dp", None)),)
        )
        self.relu = mesh.shard(ops.ReLU(), ("dp", None))
        mesh.notes.append(f"morph {kind} {dp} {tp} {whole} {batch}")

    def construct(self, x: Any) -> Any:
        return self.relu(self.morph(self.first(x, self.w1), self.w2))


def morph(draw: random.Random) -> Drawn:
    devices = draw.choice((4, 8, 8, 16))
    mesh = mesh_of(draw, devices)
    if mesh.devices != devices:
        mesh.sizes["rest"] = devices // mesh.devices
    batch, hidden, settings = 2 * devices, 16 * mesh.size("tp"), settings_of(draw)
    settings.pop("dataset_strategy", None)
    settings["full_batch"] = True
    return finished(
        draw, "morph", mesh, devices, settings, lambda: Morphed(draw, mesh, batch, hidden), 2,
        lambda: (tensor(batch, hidden),),
    )  # fmt: skip

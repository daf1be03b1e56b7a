"""Decoders as mindformers writes them: sequence first, layouts, fused operators.

Rows are sequence × batch. Between the products rows may be split over data *and* tensor parallel
devices (sequence parallel), so that products gather before and scatter behind.
"""

from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, Mesh, mesh_of, settings_of, tensor, train, weight
from mindspore import Tensor, nn, ops
from mindspore.ops import auto_generate as gen
from mindspore.ops.operations.nn_ops import FlashAttentionScore
from transformers import Norm, Sizes, TokenLoss, recomputed


class Product(nn.Cell):
    """A product with a weight whose result may be scattered over rows."""

    def __init__(
        self, name: str, mesh: Mesh, into: int, out: int, column: bool, style: dict[str, Any]
    ) -> None:
        super().__init__()
        self.weight = weight(f"{name}.weight", out, into, **style["excluded"])
        rows, columns = (None, "tp") if column else ("tp", None)
        sequence = style["sequence"] and not column and mesh.layouts > 0
        spread = (("dp", "tp"), None) if sequence else ("dp", columns)
        make = gen.MatMulExt if style["mint"] else lambda: ops.MatMul(transpose_b=True)
        self.turn = mesh.shard(ops.Transpose(), (columns, rows)) if style["mint"] else None
        spec = (rows, columns) if style["mint"] else (columns, rows)
        self.product = mesh.shard(make(), ("dp", rows), spec, out=(spread,))
        self.bias = weight(f"{name}.bias", out, init="zeros") if style["bias"] else None
        self.add = mesh.shard(ops.Add(), ("dp", columns), (columns,))

    def construct(self, x: Any) -> Any:
        w = self.weight
        if self.turn is not None:
            w = self.turn(w, (1, 0))
        x = self.product(x, w)
        return x if self.bias is None else self.add(x, self.bias)


class Attention(nn.Cell):
    """One product for queries, keys and values; rotary embedding; flash attention."""

    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        s = self.s = sizes
        self.kv = s.kv_heads if s.kv_heads % mesh.size("tp") == 0 else s.heads
        self.form = style["form"]
        self.qkv = Product(name, mesh, s.hidden, s.hidden + 2 * self.kv * s.head, True, style)
        self.out = Product(f"{name}.out", mesh, s.hidden, s.hidden, False, style)
        self.cut = mesh.shard(gen.SplitWithSize(), (None, "dp", None))
        self.parts = (s.hidden, self.kv * s.head, self.kv * s.head)
        self.reshape, self.cast = ops.Reshape(), ops.Cast()
        wide = ("dp", "tp", None, None)
        self.turn = mesh.shard(ops.Transpose(), (None, "dp", "tp", None))
        self.turn_kv = mesh.shard(ops.Transpose(), (None, "dp", "tp", None))
        self.back = mesh.shard(ops.Transpose(), wide)
        self.rotary = None
        if style["rotary"] and self.form == "BNSD":
            narrow = (None, None, None, None)
            self.rotary = mesh.shard(gen.RotaryPositionEmbedding(), wide, narrow, narrow)
            self.cos = Tensor(np.ones((1, 1, s.sequence, s.head)), ms.float16)
        spec = ("dp", "tp", None, None) if self.form == "BNSD" else (None, "dp", "tp")
        flash = FlashAttentionScore(s.heads, 1.0, 0.3, 65536, 65536, 0, self.form, style["sparse"])
        size = 2048 if style["sparse"] == 2 else s.sequence
        self.flash = mesh.shard(flash, spec, spec, spec, (None, None))
        self.mask = Tensor(np.triu(np.ones((size, size)), 1), ms.uint8)

    def heads(self, x: Any, count: int, turn: Any) -> Any:
        s = self.s
        return turn(self.reshape(x, (s.sequence, s.batch, count, s.head)), (1, 2, 0, 3))

    def construct(self, x: Any) -> Any:
        s = self.s
        both = self.reshape(self.qkv(x), (s.sequence, s.batch, -1))
        q, k, v = self.cut(both, self.parts, 2)
        q, k, v = self.cast(q, ms.float16), self.cast(k, ms.float16), self.cast(v, ms.float16)
        if self.form == "BNSD":
            q = self.heads(q, s.heads, self.turn)
            k, v = self.heads(k, self.kv, self.turn_kv), self.heads(v, self.kv, self.turn_kv)
            if self.rotary is not None:
                q = self.rotary(q, self.cos, self.cos, 0)
                k = self.rotary(k, self.cos, self.cos, 0)
        y = self.flash(q, k, v, None, None, None, self.mask)[3]
        if self.form == "BNSD":
            y = self.back(y, (2, 0, 1, 3))
        y = self.reshape(self.cast(y, ms.float32), (s.sequence * s.batch, s.hidden))
        return self.out(y)


class Feed(nn.Cell):
    """Gate and content in one product, or in two; activations as newer operators have them."""

    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        self.kind = style["feed"]
        wide = 1 if self.kind == "gelu" else 2
        self.up = Product(f"{name}.up", mesh, sizes.hidden, wide * sizes.inner, True, style)
        self.down = Product(f"{name}.down", mesh, sizes.inner, sizes.hidden, False, style)
        split = ("dp", "tp")
        self.gelu = mesh.shard(ops.GeLU(), split)
        self.cut = mesh.shard(ops.Split(-1, 2), ("dp", None))
        self.silu, self.mul = mesh.shard(gen.SiLU(), split), mesh.shard(ops.Mul(), split, split)
        self.swiglu = mesh.shard(gen.Swiglu(), ("dp", None))

    def construct(self, x: Any) -> Any:
        y = self.up(x)
        if self.kind == "gelu":
            y = self.gelu(y)
        elif self.kind == "swiglu":
            y = self.swiglu(y, -1)
        else:
            gate, content = self.cut(y)
            y = self.mul(self.silu(gate), content)
        return self.down(y)


class Block(nn.Cell):
    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        self.first = Norm(f"{name}.first", mesh, sizes.hidden, style["rms"])
        self.second = Norm(f"{name}.second", mesh, sizes.hidden, style["rms"])
        self.attention = Attention(f"{name}.attention", mesh, sizes, style)
        self.feed = Feed(f"{name}.feed", mesh, sizes, style)
        rows = (("dp", "tp"), None) if style["sequence"] and mesh.layouts else ("dp", None)
        self.add1, self.add2 = (mesh.shard(ops.Add(), rows, rows) for _ in range(2))

    def construct(self, x: Any) -> Any:
        x = self.add1(x, self.attention(self.first(x)))
        return self.add2(x, self.feed(self.second(x)))


class Model(nn.Cell):
    def __init__(self, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        s = self.s = sizes
        self.table = weight("embedding", s.vocabulary, s.hidden)
        self.gather = mesh.shard(ops.Gather(), ("tp", None), (None, None))
        self.turn = mesh.shard(ops.Transpose(), ("dp", None, None))
        self.blocks = nn.CellList(
            [Block(f"block{i}", mesh, s, style) for i in range(style["layers"])]
        )
        self.norm = Norm("norm", mesh, s.hidden, style["rms"])
        self.head = weight("head", s.vocabulary, s.hidden)
        self.product = mesh.shard(ops.MatMul(transpose_b=True), ("dp", None), ("tp", None))
        self.reshape = ops.Reshape()
        recomputed(self.blocks, style["recompute"])

    def construct(self, ids: Any) -> Any:
        x = self.turn(self.gather(self.table, ids, 0), (1, 0, 2))
        x = self.reshape(x, (-1, self.s.hidden))
        for block in self.blocks:
            x = block(x)
        return self.product(self.norm(x), self.head)


def former(draw: random.Random) -> Drawn:
    devices = draw.choice((4, 8, 8, 16, 32, 64, 256))
    mesh = mesh_of(draw, devices)
    if draw.random() < 0.5:
        mesh.layouts, mesh.missing = 1.0, draw.choice((0, 0, 0.1))
        mesh.sizes["rest"] = devices // mesh.devices
    sizes = Sizes(draw, mesh)
    settings = settings_of(draw)
    settings.pop("dataset_strategy", None)
    settings["full_batch"] = True
    style = {
        "layers": draw.choice((1, 2)), "rms": draw.random() < 0.7, "bias": draw.random() < 0.3,
        "form": draw.choice(("SBH", "SBH", "BNSD")), "sparse": draw.choice((0, 0, 2)),
        "rotary": draw.random() < 0.5, "feed": draw.choice(("gelu", "split", "swiglu")),
        "sequence": draw.random() < 0.5, "mint": draw.random() < 0.3,
        "recompute": draw.choice(("", "", "", "cells", "no_communication", "part")),
        "excluded": {"parallel_optimizer": False} if draw.random() < 0.1 else {},
    }  # fmt: skip
    if mesh.missing or mesh.careless:
        style["form"] = "BNSD"  # a batch-parallel strategy would split the sequence
    training = draw.random() < 0.9

    def network() -> Any:
        model: nn.Cell = TokenLoss(Model(mesh, sizes, style), mesh, sizes)
        inputs = tuple(tensor(sizes.batch, sizes.sequence, dtype=ms.int32) for _ in range(2))
        return (train(draw, model) if training else model), inputs

    notes = {"mesh": mesh.sizes, "style": style, "spoiled": mesh.notes,
             "habit": [mesh.missing, mesh.layouts, mesh.careless]}  # fmt: skip
    return Drawn("former", devices, settings, notes, network, training)

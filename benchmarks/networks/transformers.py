"""Decoders, encoders, experts, latent attention, ring attention, pipelines: as users write them."""

from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, Mesh, mesh_of, settings_of, tensor, train, weight
from mindspore import Tensor, lazy_inline, nn, ops
from mindspore.ops.auto_generate import RmsNorm, SiLU, SplitWithSize
from mindspore.ops.operations.nn_ops import FlashAttentionScore


class Sizes:
    """Sizes that every split of a mesh divides, most of the time."""

    def __init__(self, draw: random.Random, mesh: Mesh) -> None:
        dp, tp = mesh.sizes.get("dp", 1), mesh.sizes.get("tp", 1)
        self.batch = dp * draw.choice((1, 2))
        self.sequence = draw.choice((32, 64)) * mesh.sizes.get("sp", 1)
        self.heads = tp * draw.choice((1, 2, 4))
        self.kv_heads = draw.choice([n for n in (1, tp, self.heads) if self.heads % n == 0])
        self.head = draw.choice((8, 16))
        self.hidden = self.heads * self.head
        self.inner = tp * draw.choice((32, 48, 64))
        self.vocabulary = 128 * max(1, tp)


class Linear(nn.Cell):
    """A product with a weight, split by columns or by rows."""

    def __init__(
        self, name: str, mesh: Mesh, into: int, out: int, column: bool, bias: bool = False
    ) -> None:
        super().__init__()
        self.transposed = mesh.draw.random() < 0.7
        shape = (out, into) if self.transposed else (into, out)
        self.weight = weight(f"{name}.weight", *shape)
        rows, columns = (None, "tp") if column else ("tp", None)
        spec = (columns, rows) if self.transposed else (rows, columns)
        product = ops.MatMul(transpose_b=self.transposed)
        self.product = mesh.shard(
            product, ("dp", rows), spec, out=(("dp", columns),) if column else None
        )
        self.has_bias = bias
        if bias:
            self.bias = weight(f"{name}.bias", out, init="zeros")
            self.add = mesh.shard(ops.Add(), ("dp", columns), (columns,))

    def construct(self, x: Any) -> Any:
        x = self.product(x, self.weight)
        return self.add(x, self.bias) if self.has_bias else x


class Norm(nn.Cell):
    def __init__(self, name: str, mesh: Mesh, hidden: int, rms: bool) -> None:
        super().__init__()
        self.rms = rms
        self.gamma = weight(f"{name}.gamma", hidden, init="ones")
        if rms:
            self.norm = mesh.shard(RmsNorm(1e-6), ("dp", None), (None,))
        else:
            self.beta = weight(f"{name}.beta", hidden, init="zeros")
            self.norm = mesh.shard(ops.LayerNorm(-1, -1, 1e-5), ("dp", None), (None,), (None,))

    def construct(self, x: Any) -> Any:
        if self.rms:
            return self.norm(x, self.gamma)[0]
        return self.norm(x, self.gamma, self.beta)[0]


class Rotary(nn.Cell):
    """Rotary embedding of (batch, heads, sequence, head)."""

    def __init__(self, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__()
        self.cos = Tensor(np.ones((1, 1, sizes.sequence, sizes.head)), ms.float32)
        self.sin = Tensor(np.ones((1, 1, sizes.sequence, sizes.head)), ms.float32)
        wide, narrow = ("dp", "tp", None, None), (None, None, None, None)
        self.mul_cos = mesh.shard(ops.Mul(), wide, narrow)
        self.mul_sin = mesh.shard(ops.Mul(), wide, narrow)
        self.add = mesh.shard(ops.Add(), wide, wide)
        self.neg = mesh.shard(ops.Neg(), wide)
        self.halves = mesh.shard(ops.Split(-1, 2), wide)
        self.join = mesh.shard(ops.Concat(-1), wide, wide)

    def construct(self, x: Any) -> Any:
        first, second = self.halves(x)
        turned = self.join((self.neg(second), first))
        return self.add(self.mul_cos(x, self.cos), self.mul_sin(turned, self.sin))


class Attention(nn.Cell):
    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        s, self.s, self.style = sizes, sizes, style
        kv = s.kv_heads * s.head
        self.q = Linear(f"{name}.q", mesh, s.hidden, s.hidden, True, style["bias"])
        self.k = Linear(f"{name}.k", mesh, s.hidden, kv, s.kv_heads % mesh.size("tp") == 0)
        self.v = Linear(f"{name}.v", mesh, s.hidden, kv, s.kv_heads % mesh.size("tp") == 0)
        self.o = Linear(f"{name}.o", mesh, s.hidden, s.hidden, False, style["bias"])
        heads = ("dp", None, "tp", None)
        kv_heads = ("dp", None, "tp" if s.kv_heads % mesh.size("tp") == 0 else None, None)
        self.reshape = ops.Reshape()
        self.transpose = mesh.shard(ops.Transpose(), heads)
        self.transpose_kv = mesh.shard(ops.Transpose(), kv_heads)
        self.transpose_back = mesh.shard(ops.Transpose(), ("dp", "tp", None, None))
        wide = ("dp", "tp", None, None)
        self.rotary = Rotary(mesh, s) if style["rotary"] else None
        self.group = s.heads // s.kv_heads
        if self.group > 1:
            grouped = ("dp", kv_heads[2], None, None, None)
            self.repeat = mesh.shard(ops.Tile(), grouped) if style["tile"] else None
            self.broadcast = mesh.shard(
                ops.BroadcastTo((s.batch, s.kv_heads, self.group, s.sequence, s.head)), grouped
            )
        self.flash = None
        if style["flash"]:
            flash = FlashAttentionScore(s.heads, 1.0, 1 / s.head**0.5, 65536, 65536, 0, "BNSD", 0)
            mask = (None, None)
            self.flash = mesh.shard(flash, wide, wide, wide, mask)
            self.mask = Tensor(np.triu(np.ones((s.sequence, s.sequence)), 1), ms.uint8)
        else:
            self.scores = mesh.shard(ops.BatchMatMul(transpose_b=True), wide, wide)
            self.scale = mesh.shard(ops.Mul(), wide, ())
            self.softmax = mesh.shard(ops.Softmax(-1), wide)
            self.mix = mesh.shard(ops.BatchMatMul(), wide, wide)
            self.mask = Tensor(
                np.triu(np.full((1, 1, s.sequence, s.sequence), -1e4), 1), ms.float32
            )
            self.masked = mesh.shard(ops.Add(), wide, (None, None, None, None))
        self.cast = ops.Cast()

    def heads(self, x: Any, count: int, transpose: Any) -> Any:
        return transpose(
            self.reshape(x, (self.s.batch, self.s.sequence, count, self.s.head)), (0, 2, 1, 3)
        )

    def repeated(self, x: Any) -> Any:
        if self.group == 1:
            return x
        s = self.s
        x = self.reshape(x, (s.batch, s.kv_heads, 1, s.sequence, s.head))
        x = (
            self.repeat(x, (1, 1, self.group, 1, 1))
            if self.repeat is not None
            else self.broadcast(x)
        )
        return self.reshape(x, (s.batch, s.heads, s.sequence, s.head))

    def construct(self, x: Any) -> Any:
        s = self.s
        q = self.heads(self.q(x), s.heads, self.transpose)
        k = self.heads(self.k(x), s.kv_heads, self.transpose_kv)
        v = self.repeated(self.heads(self.v(x), s.kv_heads, self.transpose_kv))
        k = self.repeated(k)
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        if self.flash is not None:
            half = ms.float16
            y = self.flash(
                self.cast(q, half),
                self.cast(k, half),
                self.cast(v, half),
                None,
                None,
                None,
                self.mask,
            )[3]
            y = self.cast(y, ms.float32)
        else:
            w = self.softmax(
                self.masked(self.scale(self.scores(q, k), Tensor(0.3, ms.float32)), self.mask)
            )
            y = self.mix(w, v)
        y = self.reshape(self.transpose_back(y, (0, 2, 1, 3)), (s.batch * s.sequence, s.hidden))
        return self.o(y)


class Feed(nn.Cell):
    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, gated: bool) -> None:
        super().__init__()
        self.up = Linear(f"{name}.up", mesh, sizes.hidden, sizes.inner, True)
        self.down = Linear(f"{name}.down", mesh, sizes.inner, sizes.hidden, False)
        inner = ("dp", "tp")
        self.gate = Linear(f"{name}.gate", mesh, sizes.hidden, sizes.inner, True) if gated else None
        self.activation = mesh.shard(SiLU() if gated else ops.GeLU(), inner)
        self.mul = mesh.shard(ops.Mul(), inner, inner)

    def construct(self, x: Any) -> Any:
        if self.gate is not None:
            return self.down(self.mul(self.activation(self.gate(x)), self.up(x)))
        return self.down(self.activation(self.up(x)))


class Experts(nn.Cell):
    """Tokens go to their best expert through products with a one-hot dispatch tensor."""

    def __init__(self, name: str, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__()
        s = self.s = sizes
        self.count = max(2, mesh.size("dp"))
        tokens = s.batch * s.sequence
        self.capacity = max(8, tokens // self.count)
        self.groups = mesh.size("dp")
        self.router = weight(f"{name}.router", s.hidden, self.count)
        self.up = weight(f"{name}.up", self.count, s.hidden, s.inner)
        self.down = weight(f"{name}.down", self.count, s.inner, s.hidden)
        self.route = mesh.shard(ops.MatMul(), ("dp", None), (None, None))
        self.softmax = mesh.shard(ops.Softmax(-1), ("dp", None))
        self.best = mesh.shard(ops.TopK(), ("dp", None))
        self.one_hot = mesh.shard(ops.OneHot(), ("dp", None), (), ())
        self.gating = mesh.shard(ops.Mul(), ("dp", None), ("dp", None))
        self.dispatch = mesh.shard(
            ops.BatchMatMul(transpose_a=True), ("dp", None, None), ("dp", None, None)
        )
        self.to_experts = mesh.shard(ops.Transpose(), ("dp", None, None))
        over = mesh.draw.choice(("dp", None))
        self.first = mesh.shard(ops.BatchMatMul(), (over, None, None), (over, None, "tp"))
        self.act = mesh.shard(ops.GeLU(), (over, None, "tp"))
        self.second = mesh.shard(ops.BatchMatMul(), (over, None, "tp"), (over, "tp", None))
        self.back = mesh.shard(ops.Transpose(), ("dp", None, None))
        self.combine = mesh.shard(ops.BatchMatMul(), ("dp", None, None), ("dp", None, None))
        self.reshape = ops.Reshape()
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def construct(self, x: Any) -> Any:
        s, groups = self.s, self.groups
        chances = self.softmax(self.route(x, self.router))
        _, index = self.best(chances, 1)
        index = self.reshape(index, (-1,))
        chosen = self.gating(self.one_hot(index, self.count, self.on, self.off), chances)
        per_group = self.reshape(chosen, (groups, -1, self.count))
        tokens = self.reshape(x, (groups, -1, s.hidden))
        sent = self.to_experts(self.dispatch(per_group, tokens), (1, 0, 2))
        done = self.second(self.act(self.first(sent, self.up)), self.down)
        y = self.combine(per_group, self.back(done, (1, 0, 2)))
        return self.reshape(y, (-1, s.hidden))


class Latent(nn.Cell):
    """Multi-head latent attention: keys and values come from one small projection."""

    def __init__(self, name: str, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__()
        s = self.s = sizes
        self.rank, self.turned = 32, 8
        self.down = Linear(f"{name}.kv_down", mesh, s.hidden, self.rank + self.turned, False)
        self.up = Linear(f"{name}.kv_up", mesh, self.rank, s.heads * 2 * s.head, True)
        self.q = Linear(f"{name}.q", mesh, s.hidden, s.heads * (s.head + self.turned), True)
        self.o = Linear(f"{name}.o", mesh, s.hidden, s.hidden, False)
        wide, heads = ("dp", "tp", None, None), ("dp", None, "tp", None)
        self.norm = Norm(f"{name}.norm", mesh, self.rank, True)
        self.cut = mesh.shard(SplitWithSize(), ("dp", None))
        self.cut_kv = mesh.shard(ops.Split(-1, 2), heads)
        self.reshape, self.concat = ops.Reshape(), mesh.shard(ops.Concat(-1), wide, wide)
        self.transpose = mesh.shard(ops.Transpose(), heads)
        self.back = mesh.shard(ops.Transpose(), wide)
        self.spread = mesh.shard(
            ops.BroadcastTo((s.batch, s.heads, s.sequence, self.turned)), ("dp", None, None, None)
        )
        self.scores = mesh.shard(ops.BatchMatMul(transpose_b=True), wide, wide)
        self.softmax = mesh.shard(ops.Softmax(-1), wide)
        self.mix = mesh.shard(ops.BatchMatMul(), wide, wide)

    def construct(self, x: Any) -> Any:
        s = self.s
        small, turned = self.cut(self.down(x), (self.rank, self.turned), -1)
        both = self.reshape(self.up(self.norm(small)), (s.batch, s.sequence, s.heads, 2 * s.head))
        key, value = self.cut_kv(both)
        key, value = self.transpose(key, (0, 2, 1, 3)), self.transpose(value, (0, 2, 1, 3))
        turned = self.spread(self.reshape(turned, (s.batch, 1, s.sequence, self.turned)))
        key = self.concat((key, turned))
        q = self.reshape(self.q(x), (s.batch, s.sequence, s.heads, s.head + self.turned))
        w = self.softmax(self.scores(self.transpose(q, (0, 2, 1, 3)), key))
        y = self.back(self.mix(w, value), (0, 2, 1, 3))
        return self.o(self.reshape(y, (s.batch * s.sequence, s.hidden)))


class Ring(nn.Cell):
    """Flash attention whose sequence is split, by a ring where it is asked for."""

    def __init__(self, name: str, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__()
        s = self.s = sizes
        draw = mesh.draw
        self.form = draw.choice(("BSH", "BSH", "BNSD", "SBH", "BSND"))
        self.q = Linear(f"{name}.q", mesh, s.hidden, s.hidden, True)
        self.k = Linear(f"{name}.k", mesh, s.hidden, s.hidden, True)
        self.v = Linear(f"{name}.v", mesh, s.hidden, s.hidden, True)
        self.o = Linear(f"{name}.o", mesh, s.hidden, s.hidden, False)
        mode = draw.choice((0, 0, 2))
        flash = FlashAttentionScore(s.heads, 1.0, 0.3, 2147483647, 2147483647, 0, self.form, mode)
        attribute = draw.choice(
            ("enable_ring_attention", "enable_flash_sp", "enable_load_balance", "")
        )
        if attribute:
            flash.add_prim_attr(attribute, True)
            if attribute == "enable_ring_attention" and draw.random() < 0.5:
                flash.add_prim_attr("enable_ra_send_recv", True)
        mesh.notes.append(f"{self.form} {attribute} sparse_mode {mode}")
        spec = {
            "BSH": ("dp", "sp", "tp"), "SBH": ("sp", "dp", "tp"),
            "BNSD": ("dp", "tp", "sp", None), "BSND": ("dp", "sp", "tp", None),
        }[self.form]  # fmt: skip
        kv = tuple(
            None if entry == "sp" and attribute != "enable_ring_attention" else entry
            for entry in spec
        )
        rows = "sp" if draw.random() < 0.6 else None
        self.with_mask = mode != 0 or draw.random() < 0.3
        masks = ((rows if mode == 0 else None, None),) if self.with_mask else ()
        self.flash = mesh.shard(flash, spec, kv, kv, *masks)
        size = 2048 if mode == 2 else s.sequence
        self.mask = Tensor(np.triu(np.ones((size, size)), 1), ms.uint8)
        self.reshape, self.cast = ops.Reshape(), ops.Cast()

    def shaped(self, x: Any) -> Any:
        s = self.s
        shape = {
            "BSH": (s.batch, s.sequence, s.hidden), "SBH": (s.sequence, s.batch, s.hidden),
            "BNSD": (s.batch, s.heads, s.sequence, s.head),
            "BSND": (s.batch, s.sequence, s.heads, s.head),
        }[self.form]  # fmt: skip
        return self.cast(self.reshape(x, shape), ms.float16)

    def construct(self, x: Any) -> Any:
        q, k, v = self.shaped(self.q(x)), self.shaped(self.k(x)), self.shaped(self.v(x))
        if self.with_mask:
            y = self.flash(q, k, v, None, None, None, self.mask)[3]
        else:
            y = self.flash(q, k, v)[3]
        return self.o(self.reshape(self.cast(y, ms.float32), (-1, self.s.hidden)))


class Block(nn.Cell):
    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        rms = style["rms"]
        self.first = Norm(f"{name}.first", mesh, sizes.hidden, rms)
        self.second = Norm(f"{name}.second", mesh, sizes.hidden, rms)
        made = {"mla": Latent, "ring": Ring}.get(style["kind"])
        self.attention = made(name, mesh, sizes) if made else Attention(name, mesh, sizes, style)
        if style["kind"] == "moe":
            self.feed = Experts(f"{name}.experts", mesh, sizes)
        else:
            self.feed = Feed(f"{name}.feed", mesh, sizes, rms)
        both = ("dp", None)
        self.add1 = mesh.shard(ops.Add(), both, both)
        self.add2 = mesh.shard(ops.Add(), both, both)
        if style["dropout"]:
            self.dropout = ops.Dropout(0.9)
            mesh.shard(self.dropout, both)
        self.with_dropout = style["dropout"]

    def construct(self, x: Any) -> Any:
        y = self.attention(self.first(x))
        if self.with_dropout:
            y = self.dropout(y)[0]
        x = self.add1(x, y)
        return self.add2(x, self.feed(self.second(x)))


class LazyBlock(Block):
    @lazy_inline
    def __init__(self, name: str, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__(name, mesh, sizes, style)


def recomputed(blocks: nn.CellList, how: str) -> None:
    """Recompute blocks, with or without their communication, or a part of each."""
    for block in blocks:
        if how == "cells":
            block.recompute()
        elif how == "no_communication":
            block.recompute(mp_comm_recompute=False)
        elif how == "optimizer":
            block.recompute(parallel_optimizer_comm_recompute=True)
        elif how == "part":
            block.feed.recompute()
            block.first.recompute()


class Model(nn.Cell):
    def __init__(self, mesh: Mesh, sizes: Sizes, style: dict[str, Any]) -> None:
        super().__init__()
        s = self.s = sizes
        block = LazyBlock if style["lazy_blocks"] else Block
        self.table = weight("embedding.table", s.vocabulary, s.hidden)
        rows = mesh.draw.choice(("tp", None))
        looked = ("dp", None) if rows is None or mesh.draw.random() < 0.1 else (None, None)
        self.gather = mesh.shard(ops.Gather(), (rows, None), looked)
        self.blocks = nn.CellList(
            [block(f"block{i}", mesh, s, style) for i in range(style["layers"])]
        )
        self.norm = Norm("norm", mesh, s.hidden, style["rms"])
        self.tied = style["tied"]
        self.head = None if self.tied else weight("head.weight", s.vocabulary, s.hidden)
        self.product = mesh.shard(
            ops.MatMul(transpose_b=True), ("dp", None), ("tp" if not self.tied else rows, None)
        )
        self.reshape = ops.Reshape()
        stages = style["stages"]
        if stages > 1:
            for index, cell in enumerate(self.blocks):
                cell.pipeline_stage = index * stages // len(self.blocks)
            self.norm.pipeline_stage = stages - 1
        recomputed(self.blocks, style["recompute"])

    def construct(self, ids: Any) -> Any:
        x = self.reshape(self.gather(self.table, ids, 0), (-1, self.s.hidden))
        for block in self.blocks:
            x = block(x)
        return self.product(self.norm(x), self.table if self.tied else self.head)


class TokenLoss(nn.Cell):
    def __init__(self, network: nn.Cell, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__()
        self.network, self.s = network, sizes
        split = mesh.draw.choice(("tp", None))
        self.one_hot = mesh.shard(ops.OneHot(), ("dp", split), (), ())
        self.loss = mesh.shard(ops.SoftmaxCrossEntropyWithLogits(), ("dp", None), ("dp", None))
        self.mean = mesh.shard(ops.ReduceMean(), ("dp",))
        self.reshape = ops.Reshape()
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def construct(self, ids: Any, labels: Any) -> Any:
        logits = self.network(ids)
        truth = self.one_hot(self.reshape(labels, (-1,)), self.s.vocabulary, self.on, self.off)
        loss, _ = self.loss(logits, truth)
        return self.mean(loss)


class LazyLoss(TokenLoss):
    @lazy_inline
    def __init__(self, network: nn.Cell, mesh: Mesh, sizes: Sizes) -> None:
        super().__init__(network, mesh, sizes)


def transformer(draw: random.Random, kind: str, stages: int = 1) -> Drawn:
    devices = draw.choice((2, 4, 8, 8, 8, 16, 32, 64, 128)) * (max(1, stages))
    devices = max(devices, 8 * stages) if devices % 8 and devices > 4 else devices
    names = ("dp", "sp", "tp") if kind == "ring" else ("dp", "tp")
    mesh = mesh_of(draw, devices // stages, names)
    if kind == "layouts":
        mesh.layouts, mesh.missing, mesh.careless = 0.9, 0.05, 0.05
        product = mesh.devices
        if product != devices // stages:
            mesh.sizes["rest"] = devices // stages // product
    sizes = Sizes(draw, mesh)
    settings = settings_of(draw)
    local = settings.get("dataset_strategy") == "data_parallel"
    if local:
        sizes.batch *= devices // stages
    style = {
        "kind": kind, "layers": stages * draw.choice((1, 2)) if stages > 1 else draw.choice((1, 2)),
        "rms": draw.random() < 0.6, "rotary": draw.random() < 0.5, "flash": draw.random() < 0.3,
        "bias": draw.random() < 0.4, "tile": draw.random() < 0.5, "dropout": draw.random() < 0.2,
        "tied": draw.random() < 0.3, "stages": stages,
        "recompute": draw.choice([*[""] * 4, "cells", "no_communication", "optimizer", "part"]),
        "lazy": stages > 1 and draw.random() < 0.5,
        "lazy_blocks": stages == 1 and draw.random() < 0.15,
    }  # fmt: skip
    training = draw.random() < 0.85 or stages > 1
    micro = stages * draw.choice((1, 2)) if stages > 1 else 1
    accumulates = training and stages == 1 and draw.random() < 0.12
    if accumulates:
        micro = 2
    style["micro"] = micro
    in_turn = training and stages == 1 and not accumulates and draw.random() < 0.06
    style["in_turn"] = in_turn
    if not local and stages == 1 and draw.random() < 0.12:
        settings.pop("full_batch", None)
        count = mesh.size("dp")
        layouts = tuple(mesh.layout(("dp", None)) for _ in range(2))
        whole = mesh.devices == devices
        given = draw.random() < 0.5 and whole
        settings["dataset_strategy"] = layouts if given else ((count, 1), (count, 1))
        style["dataset"] = count
    if stages > 1:
        settings.update(pipeline_stages=stages, global_rank=draw.randrange(devices))
        settings.setdefault("full_batch", True)
        if "dataset_strategy" in settings:
            settings.pop("full_batch", None)
        if style["lazy"] and draw.random() < 0.3:
            settings["pipeline_config"] = {
                "pipeline_interleave": True,
                "pipeline_scheduler": "1f1b",
            }

    def network() -> Any:
        whole = LazyLoss if style["lazy"] else TokenLoss
        model: nn.Cell = whole(Model(mesh, sizes, style), mesh, sizes)
        if in_turn:
            model = nn.MicroBatchInterleaved(model, 2)
        if stages > 1 or accumulates:
            from mindspore.nn.wrap.cell_wrapper import GradAccumulationCell, _TrainGradAccuStepCell

            model = (GradAccumulationCell if accumulates else nn.PipelineCell)(model, micro)
            optimizer = nn.AdamWeightDecay(model.trainable_params(), 1e-3)
            step: nn.Cell = _TrainGradAccuStepCell(model, optimizer)
        else:
            step = train(draw, model) if training else model
        batch = sizes.batch * micro * (2 if in_turn else 1)
        batch //= style.get("dataset", 1)
        if local:
            batch //= devices // stages
        inputs = tuple(tensor(batch, sizes.sequence, dtype=ms.int32) for _ in range(2))
        return step, inputs

    notes = {
        "mesh": mesh.sizes,
        "style": style,
        "spoiled": mesh.notes,
        "habit": [mesh.missing, mesh.layouts, mesh.careless],
    }
    return Drawn(kind, devices, settings, notes, network, training)

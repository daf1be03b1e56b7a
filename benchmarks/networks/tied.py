"""Small networks whose weights several pipeline stages share, or several users of one stage.

A table that the first stage looks up and the last multiplies by, a scale, a bias, a mask or a whole
product that stands in every stage: used where it is or handed on as an argument, in plain
pipelines, inlined late, cut in chunks; the users want it alike, or not.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, weight
from mindspore import Tensor, lazy_inline, nn, ops
from mindspore.nn.wrap.cell_wrapper import (
    GradAccumulationCell,
    _pipeline_clear_grad,
    _TrainGradAccuStepCell,
)

SEQUENCE = 8
ROWS = 64


def split(operator: Any, style: dict[str, Any], *rows: tuple[int, ...]) -> Any:
    """Give an operator its strategy, where the network has any."""
    return operator.shard(rows) if style["sharded"] else operator


class Lookup(nn.Cell):
    """Rows of a table by their numbers, and the table for whoever comes behind."""

    def __init__(self, table: Any, width: int, style: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = style["mesh"]
        self.table, self.width = table, width
        rows = tp if style["table"] == "rows" else 1
        columns = tp if style["table"] == "columns" else 1
        looked = 1 if rows > 1 else dp
        self.gather = split(ops.Gather(), style, (rows, columns), (looked, 1))
        self.reshape = ops.Reshape()

    def construct(self, ids: Any) -> Any:
        x = self.reshape(self.gather(self.table, ids, 0), (-1, self.width))
        return x, self.table


class Head(nn.Cell):
    """A product with the table, which is its own, or handed to it."""

    def __init__(self, table: Any, style: dict[str, Any]) -> None:
        super().__init__()
        dp, tp = style["mesh"]
        self.handed = style["handed"]
        self.table = None if self.handed else table
        kind = style["head"]
        rows, inner = (tp, 1) if kind == "rows" else (1, tp) if kind == "columns" else (1, 1)
        self.product = split(ops.MatMul(transpose_b=True), style, (dp, inner), (rows, inner))
        self.cast = ops.Cast() if style["half"] else None

    def construct(self, x: Any, table: Any) -> Any:
        own = table if self.handed else self.table
        if self.cast is not None:
            half = ms.float16
            return self.cast(self.product(self.cast(x, half), self.cast(own, half)), ms.float32)
        return self.product(x, own)


class Block(nn.Cell):
    """A product of its own, and what it shares with the blocks of other stages."""

    def __init__(self, place: int, width: int, shared: dict[str, Any], style: dict[str, Any]):
        super().__init__()
        dp, tp = style["mesh"]
        self.up = weight(f"block{place}.up", width, width)
        self.product = split(ops.MatMul(), style, (dp, 1), (1, tp))
        self.act = split(ops.ReLU() if place % 2 else ops.Tanh(), style, (dp, tp))
        other = style["unlike"] == place
        self.scale, self.bias = shared.get("scale"), shared.get("bias")
        self.mask, self.both = shared.get("mask"), shared.get("product")
        self.norm = shared.get("norm")
        self.mul = split(ops.Mul(), style, (dp, 1), (tp if other else 1,))
        if other:
            self.mul = split(ops.Mul(), style, (dp, tp), (tp,))
        self.add = split(ops.Add(), style, (dp, tp), (tp,))
        self.hide = split(ops.Mul(), style, (dp, 1), (1, 1))
        first = (tp, 1) if other else (1, tp)
        self.again = split(ops.MatMul(), style, (dp, first[0]), first)
        self.rms = split(ops.LayerNorm(1, 1), style, (dp, 1), (1,), (1,))

    def construct(self, x: Any) -> Any:
        if self.norm is not None:
            x = self.rms(x, self.norm[0], self.norm[1])[0]
        x = self.act(self.product(x, self.up))
        if self.both is not None:
            x = self.again(x, self.both)
        if self.bias is not None:
            x = self.add(x, self.bias)
        if self.scale is not None:
            x = self.mul(x, self.scale)
        if self.mask is not None:
            x = self.hide(x, self.mask)
        return x


class LazyBlock(Block):
    """The same, inlined late."""

    @lazy_inline
    def __init__(self, place: int, width: int, shared: dict[str, Any], style: dict[str, Any]):
        super().__init__(place, width, shared, style)


def shared_weights(width: int, style: dict[str, Any]) -> dict[str, Any]:
    """The weights that several blocks use."""
    given = style["shared"]
    found: dict[str, Any] = {}
    if "scale" in given:
        found["scale"] = weight("shared.scale", width, init="ones")
    if "bias" in given:
        found["bias"] = weight("shared.bias", width, init="zeros")
    if "mask" in given:
        found["mask"] = weight("shared.mask", 1, width, init="ones", requires_grad=False)
    if "product" in given:
        found["product"] = weight("shared.product", width, width)
    if "norm" in given:
        pair = (
            weight("shared.gamma", width, init="ones"),
            weight("shared.beta", width, init="zeros"),
        )
        found["norm"] = ms.ParameterTuple(pair)
    return found


class Tied(nn.Cell):
    """A table, blocks, and a head that may use the table again."""

    def __init__(self, width: int, style: dict[str, Any]) -> None:
        super().__init__()
        self.table = weight("table", ROWS, width)
        self.lookup = Lookup(self.table, width, style)
        shared = shared_weights(width, style)
        made = LazyBlock if style["lazy_blocks"] else Block
        count, stages, chunks = style["layers"], style["stages"], style["chunks"]
        blocks: list[nn.Cell] = []
        for place in range(count):
            block = made(place, width, shared if place >= style["since"] else {}, style)
            if stages > 1:
                part = place * stages * chunks // count
                block.pipeline_stage = part % stages
                if chunks > 1:
                    block.pipeline_segment = part // stages
            blocks.append(block)
        self.blocks = nn.CellList(blocks)
        own = self.table if style["tied"] else weight("head", ROWS, width)
        self.head = Head(own, style)
        if stages > 1:
            self.lookup.pipeline_stage, self.head.pipeline_stage = 0, stages - 1
            if chunks > 1:
                self.lookup.pipeline_segment, self.head.pipeline_segment = 0, chunks - 1
        self.own = own

    def construct(self, ids: Any) -> Any:
        x, _ = self.lookup(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x, self.own)


class TiedLoss(nn.Cell):
    """A number of what comes out."""

    def __init__(self, network: nn.Cell, style: dict[str, Any]) -> None:
        super().__init__()
        dp, _ = style["mesh"]
        self.network = network
        self.square = split(ops.Square(), style, (dp, 1))
        self.mean = split(ops.ReduceMean(), style, (dp, 1))

    def construct(self, ids: Any) -> Any:
        return self.mean(self.square(self.network(ids)), ())


class LazyTiedLoss(TiedLoss):
    """The same, inlined late."""

    @lazy_inline
    def __init__(self, network: nn.Cell, style: dict[str, Any]) -> None:
        super().__init__(network, style)


class Clipping(_TrainGradAccuStepCell):
    """A step that holds the norm of all summed gradients below a bound."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        summed = ops.depend(self.accu_grads, grads)
        # An optimizer that shares its states takes the gradients that were scattered.
        given = grads if self.opt_shard else summed
        loss = ops.depend(loss, self.optimizer(ops.clip_by_global_norm(given, 1.0)))
        return ops.depend(loss, self.hyper_map(_pipeline_clear_grad, summed, grads))


def tied(draw: random.Random) -> Drawn:
    """Draw what is shared, who shares it, and under which context."""
    stages = draw.choice((1, 2, 2, 2, 4))
    size = draw.choice((2, 4, 8))
    dp = draw.choice([power for power in (1, 2, 4, 8) if power <= size])
    lazy = draw.random() < 0.55
    chunks = 2 if stages > 1 and lazy and draw.random() < 0.4 else 1
    table = draw.choice(("rows", "whole", "whole", "columns"))
    count = stages * chunks * draw.choice((1, 1, 2)) if stages > 1 else draw.choice((1, 2, 3))
    alike = draw.random() < 0.8
    shared = [name for name in ("scale", "bias", "mask", "product", "norm") if draw.random() < 0.3]
    style: dict[str, Any] = {
        "stages": stages, "chunks": chunks, "layers": count, "mesh": (dp, size // dp),
        "lazy": lazy, "lazy_blocks": (lazy or stages == 1) and draw.random() < 0.2,
        "sharded": draw.random() < 0.92, "since": draw.choice((0, 0, 1)),
        "table": table, "head": table if alike else draw.choice(("rows", "columns", "whole")),
        "tied": draw.random() < 0.8, "handed": draw.random() < 0.4, "half": draw.random() < 0.2,
        "shared": shared,
        "unlike": draw.randrange(count) if draw.random() < 0.12 else -1,
        "micro": stages * draw.choice((1, 2)) if stages > 1 else draw.choice((1, 1, 2)),
        "optimizer": draw.choice(("momentum", "adam", "weight decay", "weight decay")),
        "step": draw.choice([*["accumulating"] * 6, "clipping", "clipping", "plain"]),
    }  # fmt: skip
    if chunks > 1:
        style["micro"] = 2 * stages
    settings: dict[str, Any] = {"global_rank": draw.randrange(stages * size)}
    if stages > 1:
        settings["pipeline_stages"] = stages
    match draw.randrange(4):
        case 0:
            settings["dataset_strategy"] = "data_parallel"
        case 1:
            settings["dataset_strategy"] = ((dp, 1),)
        case _:
            settings["full_batch"] = True
    if draw.random() < 0.55:
        settings["enable_parallel_optimizer"] = True
        config: dict[str, Any] = {"parallel_optimizer_threshold": draw.choice((0, 0, 1, 16))}
        if draw.random() < 0.25:
            config["optimizer_weight_shard_size"] = 2
        if draw.random() < 0.3:
            config["gradient_accumulation_shard"] = True
        settings["parallel_optimizer_config"] = config
    if lazy and (chunks > 1 or draw.random() < 0.25):
        settings["pipeline_config"] = {"pipeline_interleave": True, "pipeline_scheduler": "1f1b"}
    if draw.random() < 0.3:
        settings["gradients_mean"] = True
    width = draw.choice((16, 32, 64))
    network = partial(_network, width, style, settings)
    return Drawn("tied", stages * size, settings, {"style": style, "width": width}, network)


def _network(
    width: int, style: dict[str, Any], settings: dict[str, Any]
) -> tuple[nn.Cell, tuple[Any, ...]]:
    loss = LazyTiedLoss if style["lazy"] else TiedLoss
    network: nn.Cell = loss(Tied(width, style), style)
    parameters = network.trainable_params()
    micro, stages = style["micro"], style["stages"]
    if stages > 1:
        network = nn.PipelineCell(network, micro)
    elif micro > 1:
        network = GradAccumulationCell(network, micro)
    makers: dict[str, Any] = {
        "momentum": lambda: nn.Momentum(parameters, 1e-3, 0.9),
        "adam": lambda: nn.Adam(parameters, 1e-3),
        "weight decay": lambda: nn.AdamWeightDecay(parameters, 1e-3),
    }
    optimizer = makers[style["optimizer"]]()
    in_parts = stages > 1 or micro > 1
    steps: dict[str, Any] = {"plain": nn.TrainOneStepCell, "accumulating": _TrainGradAccuStepCell}
    step = steps.get(style["step"], Clipping) if in_parts else nn.TrainOneStepCell
    given = settings.get("dataset_strategy")
    devices = style["mesh"][0] * style["mesh"][1]
    parts = devices if given == "data_parallel" else style["mesh"][0] if given else 1
    batch = 2 * devices * micro // parts
    return step(network, optimizer), (Tensor(np.zeros((batch, SEQUENCE)), ms.int32),)

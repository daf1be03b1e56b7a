"""Small networks under every kind of context: what differs is what they are compiled for.

Ranks of any stage, stages cut in chunks, micro-batches, accumulated gradients, searches, splits of
the dataset, optimizer parallel with thresholds, shards and weights left out.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, weight
from mindspore import Tensor, lazy_inline, nn, ops
from mindspore.nn.wrap.cell_wrapper import GradAccumulationCell, _TrainGradAccuStepCell

BATCH = 64


class Block(nn.Cell):
    """Two products with an activation between them, split over the mesh."""

    def __init__(self, place: int, sizes: tuple[int, int], mesh: tuple[int, int], style: Any):
        super().__init__()
        width, inner = sizes
        dp, tp = mesh
        left = {"parallel_optimizer": False} if place in style["left_out"] else {}
        self.up = weight(f"block{place}.up", width, inner, **left)
        self.down = weight(f"block{place}.down", inner, width)
        self.scale = weight(f"block{place}.scale", width, init="ones")
        self.first, self.second = ops.MatMul(), ops.MatMul()
        self.mul, self.act = ops.Mul(), ops.ReLU() if place % 2 else ops.GeLU()
        if style["sharded"]:
            self.first.shard(((dp, 1), (1, tp)))
            self.act.shard(((dp, tp),))
            self.second.shard(((dp, tp), (tp, 1)))
            self.mul.shard(((dp, 1), (1,)))

    def construct(self, x: Any) -> Any:
        return self.mul(self.second(self.act(self.first(x, self.up)), self.down), self.scale)


class Blocks(nn.Cell):
    """A chain of blocks, each in its stage and chunk."""

    def __init__(self, sizes: tuple[int, int], mesh: tuple[int, int], style: Any) -> None:
        super().__init__()
        stages, chunks, layers = style["stages"], style["chunks"], style["layers"]
        blocks: list[nn.Cell] = []
        for place in range(layers):
            block = Block(place, sizes, mesh, style)
            if stages > 1:
                part = place * stages * chunks // layers
                block.pipeline_stage = part % stages
                if chunks > 1:
                    block.pipeline_segment = part // stages
            blocks.append(block)
        self.blocks = nn.CellList(blocks)

    def construct(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


class Loss(nn.Cell):
    """The sum of differences from what was wanted."""

    def __init__(self, network: nn.Cell, mesh: tuple[int, int], sharded: bool) -> None:
        super().__init__()
        self.network = network
        self.sub, self.mean = ops.Sub(), ops.ReduceMean()
        if sharded:
            self.sub.shard(((mesh[0], 1), (mesh[0], 1)))

    def construct(self, x: Any, y: Any) -> Any:
        return self.mean(self.sub(self.network(x), y), ())


class LazyLoss(Loss):
    """The same, inlined late."""

    @lazy_inline
    def __init__(self, network: nn.Cell, mesh: tuple[int, int], sharded: bool) -> None:
        super().__init__(network, mesh, sharded)


def contexts(draw: random.Random) -> Drawn:
    """Draw a context, and a network that it fits."""
    stages = draw.choice((1, 1, 1, 2, 2, 4))
    lazy = stages > 1 and draw.random() < 0.6
    chunks = 2 if lazy and draw.random() < 0.5 else 1
    size = draw.choice((2, 4, 8))
    mode = "semi" if stages > 1 else draw.choice(("semi", "semi", "semi", "rec", "sp"))
    dp = draw.choice([power for power in (1, 2, 4, 8) if power <= size])
    parts = stages * chunks
    style = {
        "stages": stages,
        "chunks": chunks,
        "lazy": lazy,
        "layers": parts * draw.choice((1, 2)) if parts > 1 else draw.choice((1, 2, 3)),
        "micro": draw.choice((4, 8)) if stages > 1 else 1,
        "accumulate": draw.choice((1, 1, 1, 2, 4)) if stages == 1 and mode == "semi" else 1,
        "sharded": mode != "rec" and draw.random() < 0.9,
        "left_out": (),
        "optimizer": draw.choice(("momentum", "adam", "weight decay")),
    }
    settings = _settings(draw, stages, size, mode, dp)
    if settings.get("enable_parallel_optimizer") and draw.random() < 0.3:
        style["left_out"] = (draw.randrange(style["layers"]),)
    if lazy and (chunks > 1 or draw.random() < 0.3):
        settings["pipeline_config"] = {"pipeline_interleave": True, "pipeline_scheduler": "1f1b"}
    sizes = draw.choice(((32, 64), (64, 128), (64, 256), (128, 128)))
    network = partial(_network, sizes, (dp, size // dp), style)
    notes = {"mesh": {"dp": dp, "tp": size // dp}, "style": style, "sizes": sizes}
    return Drawn("contexts", stages * size, settings, notes, network)


def _settings(draw: random.Random, stages: int, size: int, mode: str, dp: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"global_rank": draw.randrange(stages * size)}
    if stages > 1:
        settings["pipeline_stages"] = stages
    if mode != "semi":
        settings["parallel_mode"] = "auto_parallel"
        searches = {"rec": "recursive_programming", "sp": "sharding_propagation"}
        settings["search_mode"] = searches[mode]
    match draw.randrange(3):
        case 0:
            settings["full_batch"] = True
        case 1:
            settings["dataset_strategy"] = "data_parallel"
        case _:
            settings["dataset_strategy"] = ((dp, 1), (dp, 1))
    if draw.random() < 0.4:
        settings["enable_parallel_optimizer"] = True
        config: dict[str, Any] = {"parallel_optimizer_threshold": draw.choice((0, 4, 16, 64))}
        if draw.random() < 0.3:
            config["optimizer_weight_shard_size"] = 2
        if draw.random() < 0.3:
            config["gradient_accumulation_shard"] = True
        settings["parallel_optimizer_config"] = config
    for key, chance in (("gradients_mean", 0.4), ("enable_alltoall", 0.3)):
        if draw.random() < chance:
            settings[key] = True
    return settings


def _network(
    sizes: tuple[int, int], mesh: tuple[int, int], style: Any
) -> tuple[nn.Cell, tuple[Any, ...]]:
    loss = LazyLoss if style["lazy"] else Loss
    network: nn.Cell = loss(Blocks(sizes, mesh, style), mesh, style["sharded"])
    parameters = network.trainable_params()
    if style["stages"] > 1:
        network = nn.PipelineCell(network, style["micro"])
    elif style["accumulate"] > 1:
        network = GradAccumulationCell(network, style["accumulate"])
    makers: dict[str, Any] = {
        "momentum": lambda: nn.Momentum(parameters, 1e-3, 0.9),
        "adam": lambda: nn.Adam(parameters, 1e-3),
        "weight decay": lambda: nn.AdamWeightDecay(parameters, 1e-3),
    }
    in_parts = style["stages"] > 1 or style["accumulate"] > 1
    step = _TrainGradAccuStepCell if in_parts else nn.TrainOneStepCell
    data = Tensor(np.ones((BATCH, sizes[0])), ms.float32)
    return step(network, makers[style["optimizer"]]()), (data, data)

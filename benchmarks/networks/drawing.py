"""What every kind of random network draws from: devices, settings, and strategies of operators.

An operator's strategy is written with names of mesh axes (``("dp", None)``); what it becomes is
drawn: a tuple, a ``Layout``, nothing at all, or something that may be illegal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.parallel import Layout

TAKES_LAYOUTS = {
    "MatMul",
    "BatchMatMul",
    "Add",
    "Mul",
    "Sub",
    "RealDiv",
    "ReLU",
    "GeLU",
    "SiLU",
    "Sigmoid",
    "Tanh",
    "Neg",
    "Softmax",
    "LayerNorm",
    "RmsNorm",
    "Transpose",
    "Square",
    "StridedSlice",
    "Split",
    "FlashAttentionScore",
    "Cast",
    "OneHot",
    "Tile",
}
"""Operators that people give layouts; others get one now and then, too."""

Axes = tuple[Any, ...]
"""One input of an operator: for each dimension an axis of the mesh, several, or None."""


@dataclass
class Drawn:
    """One network before it is built."""

    kind: str
    devices: int
    settings: dict[str, Any]
    notes: dict[str, Any]
    network: Callable[[], tuple[nn.Cell, tuple[Any, ...]]]
    training: bool = True


@dataclass
class Mesh:
    """Axes of one stage, and how strategies are given to operators."""

    draw: random.Random
    sizes: dict[str, int]
    missing: float = 0.0
    layouts: float = 0.0
    careless: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def devices(self) -> int:
        return int(np.prod(list(self.sizes.values())))

    def size(self, entry: Any) -> int:
        names = entry if isinstance(entry, tuple) else (entry,)
        return int(np.prod([self.sizes.get(name, 1) for name in names if name]))

    def numbers(self, specs: tuple[Axes, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.size(entry) for entry in spec) for spec in specs)

    def layout(self, spec: Axes) -> Any:
        made = Layout(tuple(self.sizes.values()), tuple(self.sizes))
        known = [self.known(entry) for entry in spec]
        return made(*known) if known else made("None")

    def known(self, entry: Any) -> Any:
        if isinstance(entry, tuple):
            names = tuple(name for name in entry if name in self.sizes)
            return names if len(names) > 1 else names[0] if names else "None"
        return entry if entry in self.sizes else "None"

    def shard(self, operator: Any, *specs: Axes, out: tuple[Axes, ...] | None = None) -> Any:
        """Give an operator its strategy, in one form or another, or none."""
        kind = self.draw.random()
        name = operator.name
        if kind < self.missing:
            return operator
        if kind < self.missing + self.careless:
            strategy = spoil(self.draw, self.numbers(specs), self.devices)
            self.notes.append(f"{name} {strategy}")
            return operator.shard(strategy)
        rarely = 1.0 if name in TAKES_LAYOUTS else 0.04
        if self.draw.random() < self.layouts * rarely and all(specs):
            given = tuple(self.layout(spec) for spec in specs)
            results = tuple(self.layout(spec) for spec in out) if out else None
            if results and self.draw.random() < 0.5:
                return operator.shard(in_strategy=given, out_strategy=results)
            return operator.shard(in_strategy=given)
        return operator.shard(self.numbers(specs))


def spoil(
    draw: random.Random, strategy: tuple[tuple[int, ...], ...], devices: int
) -> tuple[tuple[int, ...], ...]:
    """Another strategy near one: often illegal, not always."""
    rows = [list(row) for row in strategy]
    row = draw.choice([row for row in rows if row] or [[1]])
    place = draw.randrange(len(row))
    match draw.randrange(8):
        case 0:
            row[place] *= 2
        case 1:
            row[place] = 1
        case 2:
            row[place] = max(1, row[place] // 2)
        case 3:
            row[place] = devices
        case 4:
            row.append(1)
        case 5:
            row[place] = 3
        case 6:
            draw.shuffle(row)
        case _:
            for other in rows:
                other[:] = [draw.choice((1, 1, 2, 4)) for _ in other]
    return tuple(tuple(row) for row in rows)


def mesh_of(draw: random.Random, devices: int, names: tuple[str, ...] = ("dp", "tp")) -> Mesh:
    """Axes whose product is all devices, or a half of them, with a habit of giving strategies."""
    rest = devices if draw.random() < 0.8 else max(1, devices // 2)
    sizes: dict[str, int] = {}
    for name in names[:-1]:
        powers = [1 << power for power in range(rest.bit_length()) if 1 << power <= min(rest, 16)]
        sizes[name] = draw.choice(powers)
        rest //= sizes[name]
    sizes[names[-1]] = min(rest, 16)
    habit = draw.choices(
        [
            (0, 0, 0),
            (0.25, 0, 0),
            (0.9, 0, 0),
            (0, 0.9, 0),
            (0.1, 0.4, 0),
            (0, 0, 0.12),
            (0.2, 0.2, 0.1),
        ],
        weights=[4, 2, 1, 2, 1, 2, 1],
    )[0]
    if sizes and any(size > 1 for size in sizes.values()) and habit[1]:
        # A Layout's device matrix must be all devices of the stage.
        product = int(np.prod(list(sizes.values())))
        if product != devices:
            sizes["rest"] = devices // product
    return Mesh(draw, sizes, *habit)


def settings_of(draw: random.Random) -> dict[str, Any]:
    """Settings of the parallel context that change what is compiled."""
    settings: dict[str, Any] = {"full_batch": True}
    if draw.random() < 0.4:
        settings["enable_alltoall"] = True
    if draw.random() < 0.25:
        settings["enable_parallel_optimizer"] = True
        config: dict[str, Any] = {"parallel_optimizer_threshold": draw.choice((0, 4, 64))}
        if draw.random() < 0.3:
            config["optimizer_weight_shard_size"] = draw.choice((2, 4))
        settings["parallel_optimizer_config"] = config
    if draw.random() < 0.3:
        settings["gradients_mean"] = True
    if draw.random() < 0.25:
        del settings["full_batch"]
        settings["dataset_strategy"] = "data_parallel"
    return settings


def weight(
    name: str, *shape: int, dtype: Any = ms.float32, init: str = "normal", **more: Any
) -> Parameter:
    return Parameter(initializer(init, shape, dtype), name=name, **more)


def tensor(*shape: int, dtype: Any = ms.float32) -> Tensor:
    return Tensor(np.ones(shape), dtype)


class MeanLoss(nn.Cell):
    """A scalar of any tensor."""

    def __init__(self, network: nn.Cell, rank: int, mesh: Mesh, first: str | None = "dp") -> None:
        super().__init__()
        self.network = network
        self.square = mesh.shard(ops.Square(), (first, *[None] * (rank - 1)))
        self.mean = mesh.shard(ops.ReduceMean(), (first, *[None] * (rank - 1)))

    def construct(self, *inputs: Any) -> Any:
        return self.mean(self.square(self.network(*inputs)), ())


def train(draw: random.Random, network: nn.Cell) -> nn.Cell:
    """A training step around a network that returns a loss."""
    parameters = network.trainable_params()
    match draw.randrange(4):
        case 0:
            optimizer: Any = nn.Adam(parameters, 1e-3)
        case 1:
            optimizer = nn.AdamWeightDecay(parameters, 1e-3)
        case 2:
            optimizer = nn.Lamb(parameters, 1e-3)
        case _:
            optimizer = nn.Momentum(parameters, 1e-3, 0.9)
    kind = draw.random()
    if kind < 0.15:
        return Stepping(network, optimizer, scaled=draw.random() < 0.5)
    return nn.TrainOneStepCell(network, optimizer)


class Stepping(nn.TrainOneStepCell):
    """A step that clips the gradients by their global norm, or begins them with a scale."""

    def __init__(self, network: nn.Cell, optimizer: Any, *, scaled: bool) -> None:
        super().__init__(network, optimizer)
        self.scaled = scaled
        self.scale = weight("scale", 1, init="ones", requires_grad=False)

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        factor = ops.ones_like(loss)
        if self.scaled:
            factor = factor * ops.reshape(self.scale, ())
        grads = self.grad(self.network, self.weights)(*inputs, factor)
        if not self.scaled:
            grads = ops.clip_by_global_norm(grads, 1.0)
        return ops.depend(loss, self.optimizer(grads))

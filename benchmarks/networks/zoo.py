"""A walk over operators: shapes and strategies are drawn, what is legal is left to chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, mesh_of, settings_of, spoil, tensor, weight
from mindspore import Tensor, nn, ops
from mindspore.ops import auto_generate as gen
from others import finished

Shape = tuple[int, ...]


class Step:
    """One call: its operator, what it is called with beside the tensor, and the result's shape."""

    def __init__(
        self, operator: Any, others: tuple[Any, ...], result: Shape, first: int | None = None
    ) -> None:
        self.operator, self.others, self.result, self.first = operator, others, result, first


class Joined(nn.Cell):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, x: Any, other: Any) -> Any:
        return self.operator((x, other))


class Chosen(nn.Cell):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, x: Any, mask: Any, other: Any) -> Any:
        return self.operator(mask, x, other)


def powers(draw: random.Random, shape: Shape, devices: int) -> tuple[int, ...]:
    """A strategy of one tensor: powers of two that mostly divide it, at most all devices."""
    rest, row = devices, []
    for size in shape:
        options = [1] + [
            p for p in (2, 4, 8) if p <= rest and (size % p == 0 or draw.random() < 0.03)
        ]
        row.append(draw.choice(options))
        rest //= row[-1]
    return tuple(row)


def unary(name: str) -> Callable[..., Any]:
    def make(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
        operator = getattr(ops, name)() if hasattr(ops, name) else getattr(gen, name)()
        return Step(operator.shard((powers(draw, shape, devices),)), (), shape)

    return make


def binary(name: str) -> Callable[..., Any]:
    def make(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
        row = powers(draw, shape, devices)
        other = tuple(1 if draw.random() < 0.3 else size for size in shape)
        cut = draw.choice((0, 0, 0, 1)) if len(shape) > 1 else 0
        other = other[cut:]
        given = tuple(1 if size == 1 else part for size, part in zip(other, row[cut:], strict=True))
        operator = getattr(ops, name)()
        if draw.random() < 0.5:
            value: Any = weight(f"p{number}", *other, init="ones")
        else:
            value = Tensor(np.ones(other), ms.float32)
        return Step(operator.shard((row, given)), (value,), shape)

    return make


def reduce(name: str) -> Callable[..., Any]:
    def make(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
        keep, axis = draw.random() < 0.5, draw.randrange(len(shape))
        operator = getattr(ops, name)(keep_dims=keep)
        result = tuple(
            1 if i == axis else size for i, size in enumerate(shape) if keep or i != axis
        )
        return Step(
            operator.shard((powers(draw, shape, devices),)),
            (draw.choice((axis, axis - len(shape))),),
            result,
        )

    return make


def softmax(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    axis = draw.randrange(len(shape))
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.8:
        row[axis] = 1
    operator = draw.choice((ops.Softmax, ops.LogSoftmax))(axis)
    return Step(operator.shard((tuple(row),)), (), shape)


def transpose(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    order = list(range(len(shape)))
    draw.shuffle(order)
    return Step(
        ops.Transpose().shard((powers(draw, shape, devices),)),
        (tuple(order),),
        tuple(shape[i] for i in order),
    )


def reshape(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    total = int(np.prod(shape))
    head = draw.choice([size for size in (2, 4, 8, 16, 32, 64) if total % size == 0] or [1])
    inner = total // head
    middle = draw.choice([size for size in (1, 2, 4, 8) if inner % size == 0])
    result = draw.choice(((head, inner), (head, middle, inner // middle), (inner, head)))
    return Step(ops.Reshape(), (result,), result)


def product(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    width, transposed = draw.choice((16, 32, 64)), draw.random() < 0.5
    row = powers(draw, shape, devices)
    n = draw.choice([p for p in (1, 2, 4) if p * int(np.prod(row)) <= devices])
    kernel = (width, shape[-1]) if transposed else (shape[-1], width)
    given = (n, row[-1]) if transposed else (row[-1], n)
    operator = (ops.MatMul if len(shape) == 2 else ops.BatchMatMul)(transpose_b=transposed)
    return Step(
        operator.shard((row, given)), (weight(f"p{number}", *kernel),), (*shape[:-1], width)
    )


def concat(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    axis = draw.randrange(len(shape))
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.8:
        row[axis] = 1
    operator = ops.Concat(axis).shard((tuple(row), tuple(row)))
    result = tuple(2 * size if i == axis else size for i, size in enumerate(shape))
    return Step(Joined(operator), (Tensor(np.ones(shape), ms.float32),), result)


def split(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    axis = draw.randrange(len(shape))
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.8:
        row[axis] = 1
    operator = ops.Split(axis, 2 if shape[axis] % 2 == 0 else 1).shard((tuple(row),))
    result = tuple(
        size // 2 if i == axis and size % 2 == 0 else size for i, size in enumerate(shape)
    )
    return Step(operator, (), result, first=0)


def tile(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    times = tuple(draw.choice((1, 1, 2)) for _ in shape)
    row = tuple(
        1 if n > 1 and draw.random() < 0.8 else p
        for n, p in zip(times, powers(draw, shape, devices), strict=True)
    )
    return Step(
        ops.Tile().shard((row,)),
        (times,),
        tuple(size * n for size, n in zip(shape, times, strict=True)),
    )


def strided(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    axis = draw.randrange(len(shape))
    ends = tuple(max(1, size // 2) if i == axis else size for i, size in enumerate(shape))
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.8:
        row[axis] = 1
    operator = ops.StridedSlice().shard((tuple(row),))
    return Step(operator, ((0,) * len(shape), ends, (1,) * len(shape)), ends)


def expand(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    if len(shape) > 3:
        return unary("ReLU")(draw, shape, devices, number)
    axis = draw.randrange(len(shape) + 1)
    return Step(
        ops.ExpandDims().shard((powers(draw, shape, devices),)),
        (axis,),
        (*shape[:axis], 1, *shape[axis:]),
    )


def cumulate(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    axis = draw.randrange(len(shape))
    return Step(ops.CumSum().shard((powers(draw, shape, devices),)), (axis,), shape)


def norm(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.8:
        row[-1] = 1
    gamma, beta = (weight(f"p{number}.{name}", shape[-1], init="ones") for name in "gb")
    if draw.random() < 0.5:
        operator = gen.RmsNorm(1e-6).shard((tuple(row), (row[-1],)))
        return Step(operator, (gamma,), shape, first=0)
    operator = ops.LayerNorm(-1, -1).shard((tuple(row), (row[-1],), (row[-1],)))
    return Step(operator, (gamma, beta), shape, first=0)


def select(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    row = powers(draw, shape, devices)
    operator = ops.Select().shard((row, row, row))
    mask, other = Tensor(np.ones(shape), ms.bool_), Tensor(np.ones(shape), ms.float32)
    return Step(Chosen(operator), (mask, other), shape)


def top(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    row = list(powers(draw, shape, devices))
    if draw.random() < 0.7:
        row[-1] = 1
    count = max(1, shape[-1] // 2)
    return Step(ops.TopK().shard((tuple(row),)), (count,), (*shape[:-1], count), first=0)


def gather(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
    row = powers(draw, shape, devices)
    rows = draw.choice((8, 16, 32))
    if draw.random() < 0.5:
        operator = ops.Gather().shard((row, (1,)))
        return Step(operator, (Tensor(np.zeros(rows), ms.int32), 0), (rows, *shape[1:]))
    axis = len(shape) - 1
    operator = ops.Gather().shard((row, (1,)))
    return Step(operator, (Tensor(np.zeros(rows), ms.int32), axis), (*shape[:-1], rows))


def unmeasured(name: str, *others: Any) -> Callable[..., Any]:
    """Operators that MindSpore's parallel pass has no class of its own for, or newer ones."""

    def make(draw: random.Random, shape: Shape, devices: int, number: int) -> Step:
        operator = getattr(gen, name)()
        if draw.random() < 0.7:
            operator.shard((powers(draw, shape, devices),))
        return Step(operator, others, shape)

    return make


STEPS: list[tuple[float, Callable[..., Any]]] = [
    *(
        (1.0, unary(name))
        for name in (
            "ReLU",
            "Sigmoid",
            "Tanh",
            "GeLU",
            "Exp",
            "Sqrt",
            "Neg",
            "Abs",
            "Square",
            "Erf",
            "Floor",
            "Sin",
            "Softplus",
            "Mish",
            "Log1p",
            "Rsqrt",
            "Reciprocal",
            "Sign",
        )
    ),
    *(
        (1.0, binary(name))
        for name in (
            "Add",
            "Sub",
            "Mul",
            "RealDiv",
            "Maximum",
            "Minimum",
            "Pow",
            "FloorDiv",
            "SquaredDifference",
            "Div",
        )
    ),
    *((2.0, reduce(name)) for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")),
    (4.0, softmax),
    (6.0, transpose),
    (6.0, reshape),
    (8.0, product),
    (3.0, concat),
    (3.0, split),
    (2.0, tile),
    (3.0, strided),
    (2.0, expand),
    (2.0, cumulate),
    (4.0, norm),
    (2.0, select),
    (2.0, top),
    (3.0, gather),
    (0.7, unmeasured("SiLU")),
    (0.7, unmeasured("GeluExt", "none")),
    (0.7, unmeasured("LogSoftmaxExt", -1, None)),
    (0.7, unmeasured("SoftplusExt", 1, 20)),
    (0.5, unmeasured("EluExt")),
]


class Walk(nn.Cell):
    def __init__(
        self, draw: random.Random, shape: Shape, devices: int, names: list[str], spoiled: float
    ) -> None:
        super().__init__()
        self.calls = []
        weights = [weight for weight, _ in STEPS]
        for number in range(draw.choice((3, 4, 6, 8))):
            make = draw.choices([make for _, make in STEPS], weights)[0]
            step = make(draw, shape, devices, number)
            kept = tuple(
                (setattr(self, f"w{number}_{i}", value), ("weight", f"w{number}_{i}"))[1]
                if isinstance(value, ms.Parameter)
                else ("constant", value)
                for i, value in enumerate(step.others)
            )
            if (
                draw.random() < spoiled
                and hasattr(step.operator, "in_strategy")
                and step.operator.in_strategy
            ):
                step.operator.shard(spoil(draw, step.operator.in_strategy, devices))
            names.append(
                f"{getattr(step.operator, 'name', 'call')} {shape} "
                f"{getattr(step.operator, 'in_strategy', None)}"
            )
            self.calls.append((step.operator, kept, step.first))
            shape = step.result
        self.shape = shape
        self.w = ms.ParameterTuple(list(self.trainable_params()))
        self.source = weight("first", *[1 for _ in shape], init="ones")

    def construct(self, x: Any) -> Any:
        for operator, kept, first in self.calls:
            others = ()
            for kind, value in kept:
                others += (getattr(self, value),) if kind == "weight" else (value,)
            x = operator(x, *others)
            if first is not None:
                x = x[first]
        return x


def zoo(draw: random.Random) -> Drawn:
    devices = draw.choice((2, 4, 8, 8, 8, 16, 64))
    mesh = mesh_of(draw, devices)
    rank = draw.choice((2, 2, 3, 3, 4))
    shape = tuple(draw.choice((8, 16, 32)) for _ in range(rank))
    settings = settings_of(draw)
    settings.pop("dataset_strategy", None)
    settings["full_batch"] = True
    names: list[str] = []
    spoiled = draw.choice((0, 0, 0.1))
    walk = Walk(draw, shape, devices, names, spoiled)
    mesh.notes.extend(names)
    mesh.missing, mesh.layouts, mesh.careless = draw.choice((0.0, 1.0)), 0.0, 0.0
    return finished(
        draw,
        "zoo",
        mesh,
        devices,
        settings,
        lambda: walk,
        len(walk.shape),
        lambda: (tensor(*shape),),
        None,
    )

"""Networks written one by one, each of another shape than those that are drawn.

They are what people write with ``mindspore.nn`` and ``mindspore.mint`` as they are: most operators
without a strategy, cells in cells, optimizers, losses and steps of every sort. A draw chooses
devices, a split and settings; the network is the same each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from drawing import Drawn, tensor, weight
from mindspore import Parameter, Symbol, Tensor, lazy_inline, mint, nn, ops
from mindspore.nn.wrap.cell_wrapper import GradAccumulationCell, _TrainGradAccuStepCell
from mindspore.ops.auto_generate import RmsNorm, SiLU
from mindspore.parallel import Layout

Built = tuple[nn.Cell, tuple[Any, ...]]
Writer = Callable[["Choice"], Built]

WRITTEN: dict[str, Writer] = {}
STAGES: dict[str, int] = {}
PREDICTS: set[str] = set()
SETTINGS: dict[str, Callable[[Choice], dict[str, Any]]] = {}
"""What a network's context must say of the dataset, and of its stages."""


class Choice:
    """Devices, a split into two axes, settings."""

    def __init__(self, draw: random.Random, stages: int) -> None:
        self.draw, self.stages = draw, stages
        size = draw.choice((2, 4, 8, 8, 16, 24, 32, 48, 64)) if stages == 1 else 8
        self.devices = size * stages
        powers = [n for n in (1, 2, 3, 4, 6, 8, 16) if size % n == 0]
        self.tp = draw.choice(powers[:5])
        self.dp = size // self.tp
        self.size = size
        self.settings: dict[str, Any] = {}
        self.sharded = draw.random() < 0.7
        self._settings()

    def _settings(self) -> None:
        draw, settings = self.draw, self.settings
        match draw.randrange(6):
            case 0:
                # What a cell reads of shapes in Python are those of one rank's rows.
                settings["dataset_strategy"] = "data_parallel"
            case 1:
                settings["dataset_strategy"] = "full_batch"
            case _:
                settings["full_batch"] = True
        if draw.random() < 0.3:
            settings["enable_parallel_optimizer"] = True
            settings["parallel_optimizer_config"] = {
                "parallel_optimizer_threshold": draw.choice((0, 8))
            }
        for key in ("gradients_mean", "enable_alltoall"):
            if draw.random() < 0.35:
                settings[key] = True
        if self.stages > 1:
            settings.update(pipeline_stages=self.stages, global_rank=draw.randrange(self.devices))

    @property
    def batch(self) -> int:
        """Rows of one rank's input."""
        local = self.settings.get("dataset_strategy") == "data_parallel"
        return 2 if local else 2 * self.size

    @property
    def whole(self) -> int:
        return 2 * self.size

    def shard(self, operator: Any, *rows: Any) -> Any:
        """Rows of letters: d and t for the axes, . for whole."""
        if not self.sharded:
            return operator
        sizes = {"d": self.dp, "t": self.tp, ".": 1, "a": self.size}
        return operator.shard(tuple(tuple(sizes[one] for one in row) for row in rows))


def whole_batch(_: Choice) -> dict[str, Any]:
    return {"full_batch": True}


def three_rows(c: Choice) -> dict[str, Any]:
    return {"dataset_strategy": ((c.dp, 1, 1), (c.dp, 1), (c.dp,))}


def three_layouts(c: Choice) -> dict[str, Any]:
    layout = Layout((c.dp, c.tp), ("dp", "tp"))
    return {"dataset_strategy": (layout("dp", "None", "tp"), layout("dp", "None"), layout("dp"))}


def in_chunks(c: Choice) -> dict[str, Any]:
    chunks = {"pipeline_interleave": True, "pipeline_scheduler": "1f1b"}
    return {**c.settings, "pipeline_config": chunks}


def written(
    stages: int = 1,
    predicts: bool = False,
    settings: Callable[[Choice], dict[str, Any]] | None = None,
) -> Callable[[Writer], Writer]:
    def keep(writer: Writer) -> Writer:
        WRITTEN[writer.__name__] = writer
        STAGES[writer.__name__] = stages
        if settings is not None:
            SETTINGS[writer.__name__] = settings
        if predicts:
            PREDICTS.add(writer.__name__)
        return writer

    return keep


def step(network: nn.Cell, choice: Choice, optimizer: Any = None) -> nn.Cell:
    parameters = network.trainable_params()
    makers = [
        lambda: nn.SGD(parameters, 0.1, momentum=0.9), lambda: nn.RMSProp(parameters, 1e-3),
        lambda: nn.Adagrad(parameters), lambda: nn.AdamWeightDecay(parameters),
        lambda: nn.Adam(parameters), lambda: nn.FTRL(parameters), lambda: nn.AdaMax(parameters),
        lambda: nn.Momentum(parameters, 0.1, 0.9, use_nesterov=True),
        lambda: nn.ProximalAdagrad(parameters), lambda: nn.Rprop(parameters),
    ]  # fmt: skip
    optimizer = optimizer or choice.draw.choice(makers)()
    return nn.TrainOneStepCell(network, optimizer)


class Scored(nn.Cell):
    """A network and a loss of its last input."""

    def __init__(self, network: nn.Cell, loss: Any) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def construct(self, *inputs: Any) -> Any:
        return self.loss(self.network(*inputs[:-1]), inputs[-1])


# -- recurrences of dense layers ----------------------------------------------------------------


class Gates(nn.Cell):
    """A step of a recurrence with ``gates`` parts: four with a memory, three, or one."""

    def __init__(self, into: int, hidden: int, gates: int) -> None:
        super().__init__()
        self.gates = gates
        self.x = nn.Dense(into, gates * hidden)
        self.h = nn.Dense(hidden, gates * hidden, has_bias=False)

    def construct(self, x: Any, h: Any, memory: Any) -> Any:
        x, h_new = self.x(x), self.h(h)
        if self.gates == 1:
            return ops.tanh(x + h_new), memory
        if self.gates == 3:
            r, z, n = ops.split(x, x.shape[1] // 3, 1)
            r_h, z_h, n_h = ops.split(h_new, x.shape[1] // 3, 1)
            r, z = ops.sigmoid(r + r_h), ops.sigmoid(z + z_h)
            return (1.0 - z) * ops.tanh(n + r * n_h) + z * h, memory
        i, f, g, o = ops.chunk(x + h_new, 4, 1)
        memory = ops.sigmoid(f) * memory + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(memory), memory


class Unrolled(nn.Cell):
    """Two layers, the second from last to first."""

    def __init__(self, gates: int, batch: int) -> None:
        super().__init__()
        self.one, self.two = Gates(16, 32, gates), Gates(32, 32, gates)
        self.start = Tensor(np.zeros((batch, 32)), ms.float32)
        self.dense = nn.Dense(32, 8)

    def construct(self, x: Any) -> Any:
        h, c, kept = self.start, self.start, []
        for place in range(3):
            h, c = self.one(x[:, place], h, c)
            kept.append(h)
        h, c = self.start, self.start
        for place in range(3):
            h, c = self.two(kept[2 - place], h, c)
        return self.dense(h)


@written()
def long_memory(c: Choice) -> Built:
    net = Unrolled(4, c.whole)
    return step(Scored(net, nn.MSELoss()), c), (tensor(c.batch, 3, 16), tensor(c.batch, 8))


@written()
def gated_recurrence(c: Choice) -> Built:
    net = Unrolled(3, c.whole)
    return step(Scored(net, nn.L1Loss()), c), (tensor(c.batch, 3, 16), tensor(c.batch, 8))


@written()
def plain_recurrence(c: Choice) -> Built:
    net = Unrolled(1, c.whole)
    return step(Scored(net, nn.HuberLoss()), c), (tensor(c.batch, 3, 16), tensor(c.batch, 8))


# -- images ------------------------------------------------------------------------------------


class Residual(nn.Cell):
    def __init__(self, into: int, out: int, stride: int, group: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, group=group)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.down = None
        if stride > 1 or into != out:
            self.down = nn.SequentialCell(nn.Conv2d(into, out, 1, stride), nn.BatchNorm2d(out))

    def construct(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


@written()
def residual_images(c: Choice) -> Built:
    group = c.draw.choice((1, 4, 16))
    net = nn.SequentialCell(
        nn.Conv2d(3, 16, 7, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, "same"),
        Residual(16, 16, 1), Residual(16, 32, 2, group), nn.AvgPool2d(2, 2), nn.Flatten(),
        nn.Dense(32 * 4, 10),
    )  # fmt: skip
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return step(Scored(net, loss), c), (
        tensor(c.batch, 3, 32, 32), tensor(c.batch, dtype=ms.int32),
    )  # fmt: skip


class Grouped(nn.Cell):
    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.depth = weight("depth", 16, 1, 3, 3)
        self.point = weight("point", 32, 16, 1, 1)
        self.norm = nn.GroupNorm(4, 32)
        self.conv1 = c.shard(ops.Conv2D(16, 3, pad_mode="same", group=16), "a...", "....")
        self.conv2 = c.shard(ops.Conv2D(32, 1), "d...", "t...")
        self.relu = c.shard(ops.ReLU6(), "dt..")

    def construct(self, x: Any) -> Any:
        x = self.relu(self.conv2(self.conv1(x, self.depth), self.point))
        return ops.mean(self.norm(x), (2, 3))


@written()
def depthwise(c: Choice) -> Built:
    return step(Scored(Grouped(c), nn.SmoothL1Loss()), c), (
        tensor(c.batch, 16, 16, 16), tensor(c.batch, 32),
    )  # fmt: skip


class Unet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 32, 3, stride=2)
        self.up = nn.Conv2dTranspose(32, 16, 2, stride=2)
        self.last = nn.Conv2d(32, 1, 1, has_bias=True)
        self.relu, self.norm = nn.LeakyReLU(0.1), nn.BatchNorm2d(16)

    def construct(self, x: Any) -> Any:
        first = self.relu(self.norm(self.down1(x)))
        y = self.up(self.relu(self.down2(first)))
        return ops.sigmoid(self.last(ops.cat((first, y), 1)))


@written()
def unet(c: Choice) -> Built:
    return step(Scored(Unet(), nn.BCELoss(reduction="mean")), c), (
        tensor(c.batch, 3, 16, 16), tensor(c.batch, 1, 16, 16),
    )  # fmt: skip


class Patches(nn.Cell):
    """A vision transformer: patches by a convolution, a class token, positions."""

    def __init__(self, c: Choice, hidden: int = 48) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, hidden, 4, 4, pad_mode="valid", has_bias=True)
        self.token = weight("token", 1, 1, hidden)
        self.position = weight("position", 1, 17, hidden)
        self.dropout = nn.Dropout(p=0.1)
        self.block = Attended(c, hidden, 12 if c.tp in (3, 6) else 4)
        self.head = nn.Dense(hidden, 10)

    def construct(self, x: Any) -> Any:
        x = self.patch(x)
        batch, width = x.shape[0], x.shape[1]
        x = ops.transpose(ops.reshape(x, (batch, width, -1)), (0, 2, 1))
        x = ops.cat((ops.broadcast_to(self.token, (batch, 1, width)), x), 1)
        x = self.dropout(x + self.position)
        return self.head(self.block(x)[:, 0])


class Attended(nn.Cell):
    """Attention over (batch, length, width) with functions, then a perceptron."""

    def __init__(self, c: Choice, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Dense(hidden, 3 * hidden), nn.Dense(hidden, hidden)
        self.up, self.down = nn.Dense(hidden, 96), nn.Dense(96, hidden)
        self.norm1, self.norm2 = nn.LayerNorm((hidden,)), nn.LayerNorm((hidden,))
        if c.sharded:
            self.qkv.matmul.shard(((c.dp, 1), (c.tp, 1)))
            self.qkv.bias_add.shard(((c.dp, c.tp), (c.tp,)))
            self.out.matmul.shard(((c.dp, c.tp), (1, c.tp)))
            self.up.matmul.shard(((c.dp, 1), (c.tp, 1)))
            self.down.matmul.shard(((c.dp, c.tp), (1, c.tp)))
        self.scores = c.shard(ops.BatchMatMul(transpose_b=True), "dt..", "dt..")
        self.values = c.shard(ops.BatchMatMul(), "dt..", "dt..")

    def construct(self, x: Any) -> Any:
        batch, length, width = x.shape
        y = ops.reshape(self.qkv(self.norm1(x)), (batch, length, 3, self.heads, -1))
        q, k, v = ops.unbind(ops.transpose(y, (2, 0, 3, 1, 4)))
        w = ops.softmax(self.scores(q, k) * 0.25, -1)
        y = ops.reshape(ops.transpose(self.values(w, v), (0, 2, 1, 3)), (batch, length, width))
        x = x + self.out(y)
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


@written()
def patches(c: Choice) -> Built:
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return step(Scored(Patches(c), loss), c), (
        tensor(c.batch, 3, 16, 16), tensor(c.batch, dtype=ms.int32),
    )  # fmt: skip


class Diffusion(nn.Cell):
    """A step's number as sines and cosines, added to an image's channels."""

    def __init__(self) -> None:
        super().__init__()
        self.frequencies = Tensor(np.ones((1, 16)), ms.float32)
        self.time = nn.SequentialCell(nn.Dense(32, 32), nn.SiLU(), nn.Dense(32, 32))
        self.into, self.mid, self.out = (
            nn.Conv2d(4, 32, 3),
            nn.Conv2d(32, 32, 3),
            nn.Conv2d(32, 4, 3),
        )
        self.norm = nn.GroupNorm(8, 32)

    def construct(self, x: Any, t: Any) -> Any:
        angle = ops.expand_dims(t, 1) * self.frequencies
        y = self.time(ops.concat((ops.sin(angle), ops.cos(angle)), 1))
        z = self.into(x) + ops.reshape(y, (y.shape[0], 32, 1, 1))
        return self.out(ops.silu(self.mid(ops.relu(self.norm(z)))))


@written()
def diffusion(c: Choice) -> Built:
    inputs = tensor(c.batch, 4, 8, 8), tensor(c.batch), tensor(c.batch, 4, 8, 8)
    return step(Scored(Diffusion(), nn.MSELoss()), c), inputs


# -- text --------------------------------------------------------------------------------------


class Words(nn.Cell):
    def __init__(self, c: Choice, blocks: int, shared: bool, tied: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(96, 48)
        heads = 12 if c.tp in (3, 6) else 4
        if shared:
            block = Attended(c, 48, heads)
            self.blocks = nn.CellList([block] * blocks, auto_prefix=False)
        else:
            self.blocks = nn.CellList([Attended(c, 48, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm((48,))
        self.head = None if tied else nn.Dense(48, 96, has_bias=False)
        self.product = c.shard(ops.MatMul(transpose_b=True), "d.", "t.")

    def construct(self, ids: Any) -> Any:
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.head is not None:
            return self.head(x)
        return self.product(ops.reshape(x, (-1, 48)), self.table.embedding_table)


class TokenScore(nn.Cell):
    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network = network

    def construct(self, ids: Any, labels: Any) -> Any:
        logits = ops.reshape(self.network(ids), (-1, 96))
        return ops.cross_entropy(logits, ops.reshape(labels, (-1,)))


def words_in(c: Choice, length: int = 16) -> tuple[Any, ...]:
    return tuple(tensor(c.batch, length, dtype=ms.int32) for _ in range(2))


@written()
def words(c: Choice) -> Built:
    return step(TokenScore(Words(c, 2, False, False)), c), words_in(c)


@written()
def words_tied(c: Choice) -> Built:
    return step(TokenScore(Words(c, 1, False, True)), c), words_in(c)


@written()
def words_one_block_thrice(c: Choice) -> Built:
    return step(TokenScore(Words(c, 3, True, True)), c), words_in(c)


@written()
def words_recomputed(c: Choice) -> Built:
    net = Words(c, 2, False, False)
    net.blocks[0].recompute(parallel_optimizer_comm_recompute=True)
    net.blocks[1].up.recompute()
    return step(TokenScore(net), c), words_in(c)


@written()
def words_accumulated(c: Choice) -> Built:
    net = TokenScore(Words(c, 1, False, False))
    parameters = net.trainable_params()
    cell = _TrainGradAccuStepCell(GradAccumulationCell(net, 2), nn.AdamWeightDecay(parameters))
    ids, labels = words_in(c)
    both = tuple(ops.cat((one, one), 0) for one in (ids, labels))
    return cell, both


@written()
def words_loss_scale(c: Choice) -> Built:
    net = TokenScore(Words(c, 1, False, False))
    net.network.blocks.to_float(ms.float16)
    optimizer = nn.AdamWeightDecay(net.trainable_params())
    manager = c.draw.choice((
        lambda: nn.DynamicLossScaleUpdateCell(2.0**12, 2, 1000),
        lambda: nn.FixedLossScaleUpdateCell(2.0**12),
    ))()  # fmt: skip
    return nn.TrainOneStepWithLossScaleCell(net, optimizer, manager), words_in(c)


@written()
def words_mixed(c: Choice) -> Built:
    net = ms.amp.auto_mixed_precision(Words(c, 1, False, False), c.draw.choice(("O2", "O3")))
    return step(TokenScore(net), c), words_in(c)


def in_stages(c: Choice, tied: bool, lazy: bool, chunks: int) -> Built:
    net = Words(c, 2 * chunks, False, tied)
    net.table.pipeline_stage = 0
    for place, block in enumerate(net.blocks):
        block.pipeline_stage = place % 2 if chunks > 1 else place
        if chunks > 1:
            block.pipeline_segment = place // 2
    net.norm.pipeline_stage = 1
    if net.head is not None:
        net.head.pipeline_stage = 1
    score = (LazyScore if lazy else TokenScore)(net)
    optimizer = nn.Adam(score.trainable_params())
    cell = _TrainGradAccuStepCell(nn.PipelineCell(score, 4), optimizer)
    rows = 4 * c.batch
    return cell, tuple(tensor(rows, 16, dtype=ms.int32) for _ in range(2))


class LazyScore(TokenScore):
    @lazy_inline
    def __init__(self, network: nn.Cell) -> None:
        super().__init__(network)


@written(stages=2)
def stages_tied(c: Choice) -> Built:
    return in_stages(c, True, False, 1)


@written(stages=2)
def stages_plain(c: Choice) -> Built:
    return in_stages(c, False, c.draw.random() < 0.5, 1)


@written(stages=2, settings=in_chunks)
def stages_chunks(c: Choice) -> Built:
    return in_stages(c, False, True, 2)


# -- several inputs, several losses --------------------------------------------------------------


class Towers(nn.Cell):
    """Two towers of one kind whose results are held against each other."""

    def __init__(self, c: Choice, shared: bool) -> None:
        super().__init__()
        make = lambda: nn.SequentialCell(nn.Dense(32, 48, activation="relu"), nn.Dense(48, 24))  # noqa: E731
        self.left = make()
        self.right = self.left if shared else make()
        self.norm, self.turn = ops.L2Normalize(1), ops.Transpose()
        self.product = c.shard(ops.MatMul(transpose_b=True), "d.", "t.")
        self.temperature = Parameter(Tensor(0.07, ms.float32), name="temperature")
        self.labels = Tensor(np.eye(c.whole), ms.float32)
        self.loss = ops.SoftmaxCrossEntropyWithLogits()

    def construct(self, a: Any, b: Any) -> Any:
        left, right = self.norm(self.left(a)), self.norm(self.right(b))
        logits = self.product(left, right) * ops.exp(self.temperature)
        rows, columns = self.loss(logits, self.labels)[0], self.loss(logits.T, self.labels)[0]
        return (ops.reduce_mean(rows) + ops.reduce_mean(columns)) / 2


@written()
def towers(c: Choice) -> Built:
    shared = c.draw.random() < 0.5
    return step(Towers(c, shared), c), (tensor(c.batch, 32), tensor(c.batch, 32))


class Multi(nn.Cell):
    """Three inputs of different ranks, two heads, two losses."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.body, self.first, self.second = nn.Dense(24, 48), nn.Dense(48, 12), nn.Dense(48, 1)
        if c.sharded:
            self.body.matmul.shard(((c.dp, 1), (c.tp, 1)))
        self.kl, self.bce = nn.KLDivLoss(reduction="mean"), ops.BinaryCrossEntropy()

    def construct(self, x: Any, y: Any, z: Any) -> Any:
        x = ops.tanh(self.body(ops.reduce_mean(x, 1)))
        one = self.kl(ops.log_softmax(self.first(x), -1), y)
        two = self.bce(ops.sigmoid(ops.squeeze(self.second(x), 1)), z, ops.ones_like(z))
        return one + 0.1 * two


@written()
def several_losses(c: Choice) -> Built:
    return step(Multi(c), c), (tensor(c.batch, 6, 24), tensor(c.batch, 12), tensor(c.batch))


@written(settings=three_rows)
def dataset_rows(c: Choice) -> Built:
    rows = c.whole // c.dp
    return step(Multi(c), c), (tensor(rows, 6, 24), tensor(rows, 12), tensor(rows))


@written(settings=three_layouts)
def dataset_layouts(c: Choice) -> Built:
    rows = c.whole // c.dp
    return step(Multi(c), c), (tensor(rows, 6, 24 // c.tp), tensor(rows, 12), tensor(rows))


# -- sequence parallel with layouts, mint, functions ---------------------------------------------


class Sequence(nn.Cell):
    """A block whose norms and sums lie along the sequence, in layouts of several axes."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        lay = Layout((c.dp, c.tp), ("dp", "tp"))
        rows, cut, whole = lay(("dp", "tp"), "None"), lay("dp", "tp"), lay("dp", "None")
        self.gamma = weight("gamma", 48, init="ones")
        self.up, self.down = weight("up", 96, 48), weight("down", 48, 96)
        self.norm = RmsNorm(1e-6).shard((rows, lay("None")))
        self.first = ops.MatMul(transpose_b=True).shard((whole, lay("tp", "None")))
        self.act = SiLU().shard((cut,))
        self.second = ops.MatMul(transpose_b=True).shard(
            (cut, lay("None", "tp")), out_strategy=(rows,)
        )
        self.add = ops.Add().shard((rows, rows))

    def construct(self, x: Any) -> Any:
        y = ops.reshape(x, (-1, 48))
        y = self.add(
            y, self.second(self.act(self.first(self.norm(y, self.gamma)[0], self.up)), self.down)
        )
        return ops.reshape(y, x.shape)


@written()
def sequence_parallel(c: Choice) -> Built:
    net = nn.SequentialCell(Sequence(c), nn.Dense(48, 8))
    rows = c.batch
    return step(Scored(net, nn.MSELoss()), c), (tensor(rows, 24, 48), tensor(rows, 24, 8))


class Minted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = mint.nn.Linear(32, 64), mint.nn.Linear(64, 32, bias=False)
        self.norm, self.table = mint.nn.LayerNorm((32,)), mint.nn.Embedding(64, 32)

    def construct(self, ids: Any) -> Any:
        x = self.norm(self.table(ids))
        y = self.down(mint.nn.functional.silu(self.up(x)))
        x = mint.add(x, y)
        w = mint.nn.functional.softmax(mint.matmul(x, mint.transpose(x, 1, 2)), dim=-1)
        x = mint.matmul(mint.tril(w), x)
        x = mint.cat((x[:, :4], mint.mul(x[:, 4:], 2.0)), dim=1)
        return mint.mean(mint.square(x))


@written()
def minted(c: Choice) -> Built:
    net = Minted()
    return step(net, c), (tensor(c.batch, 8, dtype=ms.int32),)


class Function(nn.Cell):
    """``ms.shard`` of a cell's method within another, parameters planned."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.w = weight("w", 48, 48)
        self.inner = nn.SequentialCell(nn.Dense(48, 96), nn.GELU(), nn.Dense(96, 48))
        self.cut = ms.shard(self.inner, in_strategy=((c.dp, 1),))
        self.part = ms.shard(self.middle, in_strategy=((c.dp, c.tp),))

    def middle(self, x: Any) -> Any:
        return ops.tanh(x) * ops.sigmoid(x)

    def construct(self, x: Any) -> Any:
        return ops.reduce_mean(self.part(ops.matmul(self.cut(x), self.w)))


@written()
def function_shard(c: Choice) -> Built:
    return step(Function(c), c), (tensor(c.batch, 48),)


# -- tables, graphs, experts -----------------------------------------------------------------------


class Machine(nn.Cell):
    """A factorization machine and a deep part over one table."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.v, self.w = weight("v", 192, 16), weight("w", 192, 1)
        self.gather = c.shard(ops.Gather(), "t.", "..")
        self.gather2 = c.shard(ops.Gather(), "..", "d.")
        self.deep = nn.SequentialCell(nn.Dense(6 * 16, 32, activation="relu"), nn.Dense(32, 1))
        self.mul = c.shard(ops.Mul(), "d..", "d..")
        self.total = ops.ReduceSum(keep_dims=True)

    def construct(self, ids: Any, values: Any) -> Any:
        values = ops.expand_dims(values, 2)
        linear = ops.reduce_sum(self.mul(self.gather2(self.w, ids, 0), values), 1)
        v = self.gather(self.v, ids, 0) * values
        pairs = ops.square(ops.reduce_sum(v, 1)) - ops.reduce_sum(ops.square(v), 1)
        deep = self.deep(ops.reshape(v, (v.shape[0], -1)))
        return linear + 0.5 * self.total(pairs, 1) + deep


@written()
def machine(c: Choice) -> Built:
    net = Scored(Machine(c), nn.BCEWithLogitsLoss())
    parameters = net.trainable_params()
    optimizer = c.draw.choice((nn.LazyAdam, nn.FTRL, nn.Adam))(parameters)
    inputs = tensor(c.batch, 6, dtype=ms.int32), tensor(c.batch, 6), tensor(c.batch, 1)
    return step(net, c, optimizer), inputs


class Nodes(nn.Cell):
    """Two graph convolutions by an adjacency matrix, and sums by segment."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.one, self.two = nn.Dense(16, 32), nn.Dense(32, 16)
        self.spread = c.shard(ops.MatMul(), "dt", "t.")
        self.sum = ops.UnsortedSegmentSum()

    def construct(self, x: Any, adjacency: Any, ids: Any) -> Any:
        x = ops.elu(self.one(self.spread(adjacency, x)))
        x = self.two(self.spread(adjacency, x))
        return ops.reduce_mean(ops.square(self.sum(x, ids, 8)))


@written(settings=whole_batch)
def nodes(c: Choice) -> Built:
    rows = c.whole
    inputs = tensor(rows, 16), tensor(rows, rows), tensor(rows, dtype=ms.int32)
    return step(Nodes(c), c), inputs


class Gated(nn.Cell):
    """Experts as one batched product, all of them for every token, weighted by a gate."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        experts = 12 if c.tp in (3, 6) else 8
        self.gate = nn.Dense(24, experts, has_bias=False)
        self.up, self.down = weight("up", experts, 24, 48), weight("down", experts, 48, 24)
        self.first = c.shard(ops.BatchMatMul(), "t..", "t..")
        self.second = c.shard(ops.BatchMatMul(), "td.", "t..")
        self.sum = c.shard(ops.ReduceSum(), "td.")
        self.experts = experts

    def construct(self, x: Any) -> Any:
        scores = ops.softmax(self.gate(x), -1)
        best, _ = ops.topk(scores, 2)
        scores = ops.select(scores >= best[:, 1:2], scores, ops.zeros_like(scores))
        y = ops.tile(ops.expand_dims(x, 0), (self.experts, 1, 1))
        y = self.second(ops.gelu(self.first(y, self.up)), self.down)
        y = self.sum(y * ops.expand_dims(ops.transpose(scores, (1, 0)), 2), 0)
        return ops.reduce_mean(ops.square(y - x)) + 0.01 * ops.reduce_sum(
            ops.reduce_mean(scores, 0)
        )


@written()
def gated(c: Choice) -> Built:
    return step(Gated(c), c), (tensor(c.batch, 24),)


# -- steps and control ---------------------------------------------------------------------------


class Own(nn.Cell):
    """A step of one's own: value and gradient, clipped, an update by hand, a running mean."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network = network
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.mean = self.weights.clone("mean", "zeros")
        self.grad = ops.value_and_grad(network, None, self.weights)
        self.map = ops.HyperMap()

    def construct(self, *inputs: Any) -> Any:
        loss, grads = self.grad(*inputs)
        done = self.map(_update, self.weights, self.mean, grads)
        return ops.depend(loss, done)


_update = ops.MultitypeFuncGraph("update")


@_update.register("Tensor", "Tensor", "Tensor")
def _one(parameter: Any, mean: Any, grad: Any) -> Any:
    grad = ops.clip_by_value(grad, -1.0, 1.0)
    kept = ops.assign(mean, 0.9 * mean + 0.1 * grad)
    return ops.depend(ops.assign_sub(parameter, 0.1 * grad), kept)


@written()
def own_step(c: Choice) -> Built:
    net = Scored(nn.SequentialCell(nn.Dense(32, 48), nn.Tanh(), nn.Dense(48, 8)), nn.MSELoss())
    return Own(net), (tensor(c.batch, 32), tensor(c.batch, 8))


class Branches(nn.Cell):
    """A branch and a loop over values that are known at run time only."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.one, self.two = nn.Dense(32, 32), nn.Dense(32, 32)
        self.product, self.w = c.shard(ops.MatMul(), "d.", ".t"), weight("w", 32, 48)

    def construct(self, x: Any, times: Any) -> Any:
        if ops.reduce_sum(x) > 0:
            y = self.one(x)
        else:
            y = self.two(x)
        count = times
        while count > 0:
            y = ops.relu(y)
            count = count - 1
        return ops.reduce_mean(self.product(y, self.w))


@written(predicts=True)
def branches(c: Choice) -> Built:
    return Branches(c), (tensor(c.batch, 32), Tensor(3, ms.int32))


class Cached(nn.Cell):
    """One token's attention to what is kept of those before it."""

    def __init__(self, c: Choice, batch: int, heads: int) -> None:
        super().__init__()
        self.key = weight("key", batch, heads, 32, 8, init="zeros", requires_grad=False)
        self.qk = nn.Dense(heads * 8, 2 * heads * 8, has_bias=False)
        self.heads = heads
        self.cut = c.shard(ops.Split(2, 2), "d..")
        self.scores = c.shard(ops.BatchMatMul(transpose_b=True), "dt..", "dt..")
        self.values = c.shard(ops.BatchMatMul(), "dt..", "dt..")

    def construct(self, x: Any, at: Any) -> Any:
        batch, length, _ = x.shape
        q, k = self.cut(self.qk(x))
        q, k = (
            ops.transpose(ops.reshape(y, (batch, length, self.heads, 8)), (0, 2, 1, 3))
            for y in (q, k)
        )
        mask = ops.cast(ops.equal(ops.reshape(ops.arange(0, 32), (1, 1, 32, 1)), at), ms.float32)
        kept = self.key * (1.0 - mask) + k * mask
        ops.assign(self.key, kept)
        w = ops.softmax(self.scores(q, kept), -1)
        return self.values(w, kept)


@written(predicts=True, settings=whole_batch)
def cached(c: Choice) -> Built:
    heads = 12 if c.tp in (3, 6) else 4 if c.tp < 8 else 8
    cell = Cached(c, c.whole, heads)
    return cell, (tensor(c.whole, 1, heads * 8), Tensor(3, ms.int32))


class Lengths(nn.Cell):
    """A batch whose size is not known when it is compiled."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.up, self.down = nn.Dense(32, 64), nn.Dense(64, 32)
        self.norm = nn.LayerNorm((32,))
        if c.sharded:
            self.up.matmul.shard(((c.dp, 1), (c.tp, 1)))
            self.down.matmul.shard(((c.dp, c.tp), (1, c.tp)))
        self.add = c.shard(ops.Add(), "d.", "d.")

    def construct(self, x: Any) -> Any:
        y = self.add(x, self.down(ops.relu(self.up(self.norm(x)))))
        return ops.reduce_mean(ops.concat((y, x), 1))


@written(settings=whole_batch)
def unknown_batch(c: Choice) -> Built:
    size = c.draw.choice((None, Symbol(divisor=c.size), Symbol(divisor=2 * c.dp)))
    cell = step(Lengths(c), c)
    given = Tensor(shape=[size, 32], dtype=ms.float32)
    cell.set_inputs(given)
    return cell, (given,)


class Scan(nn.Cell):
    """A linear recurrence by sums along the sequence, in other types in the middle."""

    def __init__(self, c: Choice) -> None:
        super().__init__()
        self.into, self.out = nn.Dense(24, 48), nn.Dense(48, 24)
        self.decay = weight("decay", 48)
        self.sum = c.shard(ops.CumSum(), "d.t")
        self.mul = c.shard(ops.Mul(), "d.t", "t")

    def construct(self, x: Any) -> Any:
        y = ops.cast(self.into(x), ms.float16)
        y = ops.cast(self.mul(ops.cast(y, ms.float32), ops.exp(self.decay)), ms.float32)
        y = self.sum(y, 1)
        y = ops.softplus(y) if y.ndim == 2 else ops.log(1.0 + ops.exp(y))
        return ops.reduce_mean(self.out(y))


@written()
def scan(c: Choice) -> Built:
    return step(Scan(c), c), (tensor(c.batch, 12, 24),)


class Encoder(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Dense(32, 4)

    def construct(self, x: Any) -> Any:
        y, _ = self.attention(x, x, x)
        return ops.reduce_mean(self.head(y))


@written()
def encoder(c: Choice) -> Built:
    return step(Encoder(), c), (tensor(c.batch, 6, 32),)


def by_hand(name: str) -> Callable[[random.Random], Drawn]:
    def draw_one(draw: random.Random) -> Drawn:
        choice = Choice(draw, STAGES[name])
        if name in SETTINGS:
            choice.settings = SETTINGS[name](choice)
        return Drawn(
            f"hand_{name}", choice.devices, choice.settings,
            {"mesh": {"dp": choice.dp, "tp": choice.tp}, "sharded": choice.sharded},
            lambda: WRITTEN[name](choice), name not in PREDICTS,
        )  # fmt: skip

    return draw_one


BY_HAND: dict[str, Callable[[random.Random], Drawn]] = {
    f"hand_{name}": by_hand(name) for name in WRITTEN
}

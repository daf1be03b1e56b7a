"""Networks for ``sharded_runs.py``: each builds itself for one device or cut by dp and tp.

A function gives a training cell and its batches: ``batches(step, rank)``, whole ones, which
MindSpore cuts.  Weights and data depend on the seed alone.  Faults are arguments: ``scale`` (by
place, what the cut part is multiplied by), ``rounded`` (place and rank of a part in Float16),
``scale_rank`` (place and rank: a factor of that rank alone), ``wrong_batch`` and ``wrong_labels``
(a rank with other data), ``wrong_slice`` and ``replica`` (rank and parameter).
"""

from __future__ import annotations

import zlib

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Here:
    """What is being built."""

    seed, rank = 0, 0
    plan = faults = None


def weights(name, *shape, value=0.0, spread=0.0):
    random = np.random.default_rng([Here.seed, zlib.crc32(name.encode())])
    drawn = random.standard_normal(shape) * (spread or 0.1) + value
    return Parameter(Tensor(drawn.astype(np.float32)), name=name)


def cut(operator, *strategy):
    """An operator with the strategy of each input, where anything is cut."""
    return operator.shard(strategy) if Here.plan else operator


def degrees():
    return Here.plan or (1, 1)


class Planted(nn.Cell):
    """What may be wrong with a tensor of which each rank has a part; nothing in healthy runs."""

    def __init__(self, place, *strategy):
        super().__init__()
        self.factor = Here.faults.get("scale", {}).get(place)
        alone = Here.faults.get("scale_rank")
        if alone and alone[0] == place:  # every rank multiplies, one by something
            self.factor = 1.06 if alone[1] == Here.rank else 1.0
        rounded = Here.faults.get("rounded")
        self.is_rounded = rounded == (place, Here.rank)
        self.mul = cut(ops.Mul(), strategy, ())
        self.down, self.up = cut(ops.Cast(), strategy), cut(ops.Cast(), strategy)
        self.value = Tensor(self.factor or 1.0, ms.float32)

    def construct(self, x):
        if self.is_rounded:
            return self.up(self.down(x, ms.float16), ms.float32)
        return self.mul(x, self.value) if self.factor is not None else x


class Linear(nn.Cell):
    """how: "columns" (outputs over tp), "rows" (inputs over tp), "" (data parallel alone)."""

    def __init__(self, name, inputs, outputs, how="", bias=True):
        super().__init__()
        dp, tp = degrees()
        self.weight = weights(name + ".weight", inputs, outputs, spread=inputs**-0.5)
        pair = {"columns": ((dp, 1), (1, tp)), "rows": ((dp, tp), (tp, 1)), "": ((dp, 1), (1, 1))}
        self.matmul = cut(ops.MatMul(), *pair[how])
        self.has_bias = bias
        if bias:
            self.bias = weights(name + ".bias", outputs)
            self.add = cut(ops.Add(), *(((dp, tp), (tp,)) if how == "columns" else ((dp, 1), (1,))))

    def construct(self, x):
        y = self.matmul(x, self.weight)
        return self.add(y, self.bias) if self.has_bias else y


class Norm(nn.Cell):
    def __init__(self, name, size):
        super().__init__()
        self.gamma, self.beta = (
            weights(name + ".gamma", size, value=1),
            weights(name + ".beta", size),
        )
        self.norm = cut(ops.LayerNorm(-1, -1, 1e-5), (degrees()[0], 1), (1,), (1,))

    def construct(self, x):
        return self.norm(x, self.gamma, self.beta)[0]


class Attention(nn.Cell):
    """Heads over tp; keys and values may have fewer heads, repeated."""

    def __init__(self, name, batch, time, size, heads):
        super().__init__()
        dp, tp = degrees()
        whole = (dp, tp, 1, 1)
        self.four, self.flat = (batch, time, heads, size // heads), (batch * time, size)
        self.q, self.k, self.v = (Linear(f"{name}.{part}", size, size, "columns") for part in "qkv")
        self.o = Linear(name + ".o", size, size, "rows")
        self.reshape = ops.Reshape()
        self.turn, self.back = cut(ops.Transpose(), (dp, 1, tp, 1)), cut(ops.Transpose(), whole)
        self.scores = cut(ops.BatchMatMul(transpose_b=True), whole, whole)
        self.context = cut(ops.BatchMatMul(), whole, whole)
        self.mul, self.mask = cut(ops.Mul(), whole, ()), cut(ops.Add(), whole, (1, 1, 1, 1))
        self.softmax = cut(ops.Softmax(-1), whole)
        self.scale = Tensor((size // heads) ** -0.5, ms.float32)
        self.hidden = Tensor(np.triu(np.full((1, 1, time, time), -1e9, np.float32), 1))
        self.planted = Planted(name, *whole)

    def split(self, x):
        return self.turn(self.reshape(x, self.four), (0, 2, 1, 3))

    def construct(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = self.mask(self.mul(self.scores(q, k), self.scale), self.hidden)
        y = self.planted(self.context(self.softmax(scores), v))
        return self.o(self.reshape(self.back(y, (0, 2, 1, 3)), self.flat))


class Mlp(nn.Cell):
    def __init__(self, name, size, hidden, outputs=None, act="GeLU"):
        super().__init__()
        dp, tp = degrees()
        self.up = Linear(name + ".up", size, hidden, "columns")
        self.down = Linear(name + ".down", hidden, outputs or size, "rows")
        self.act = cut(getattr(ops, act)(), (dp, tp))
        self.planted = Planted(name, dp, tp)

    def construct(self, x):
        return self.down(self.planted(self.act(self.up(x))))


class Layer(nn.Cell):
    def __init__(self, name, batch, time, size, heads, hidden):
        super().__init__()
        self.n1, self.n2 = Norm(name + ".n1", size), Norm(name + ".n2", size)
        self.attention = Attention(name + ".attn", batch, time, size, heads)
        self.mlp = Mlp(name + ".mlp", size, hidden)
        two = (degrees()[0], 1)
        self.a1, self.a2 = cut(ops.Add(), two, two), cut(ops.Add(), two, two)

    def construct(self, x):
        x = self.a1(x, self.attention(self.n1(x)))
        return self.a2(x, self.mlp(self.n2(x)))


class Decoder(nn.Cell):
    """Words and positions, layers, a head."""

    def __init__(self, batch, time, size, heads, hidden, words, layers):
        super().__init__()
        dp, _ = degrees()
        self.table = weights("words.table", words, size, spread=0.5)
        self.places = weights("places.table", time, size, spread=0.5)
        self.gather = cut(ops.Gather(), (1, 1), (dp,))
        self.gather2 = cut(ops.Gather(), (1, 1), (dp,))
        self.add = cut(ops.Add(), (dp, 1), (dp, 1))
        self.order = Tensor(np.tile(np.arange(time, dtype=np.int32), batch))
        self.layers = nn.CellList(
            [Layer(f"l{n}", batch, time, size, heads, hidden) for n in range(layers)]
        )
        self.norm, self.head = Norm("norm", size), Linear("head", size, words, bias=False)

    def construct(self, x):
        x = self.add(self.gather(self.table, x, 0), self.gather2(self.places, self.order, 0))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Mixer(nn.Cell):
    """Patches and channels mixed in turn; the channels' product is cut, patches are not."""

    def __init__(self, name, batch, patches, size, hidden):
        super().__init__()
        dp, _ = degrees()
        three = (dp, 1, 1)
        self.whole, self.flat = (batch, patches, size), (batch * patches, size)
        self.norm, self.channels = (
            Norm(name + ".norm", size),
            Mlp(name + ".mlp", size, hidden, act="Tanh"),
        )
        self.weight = weights(name + ".patches", 1, patches, patches, spread=patches**-0.5)
        self.tile = cut(ops.Tile(), (1, 1, 1))
        self.mix = cut(ops.BatchMatMul(), three, three)
        self.reshape = ops.Reshape()
        self.a1, self.a2 = cut(ops.Add(), three, three), cut(ops.Add(), (dp, 1), (dp, 1))
        self.batch = batch

    def construct(self, x):
        mixed = self.mix(self.tile(self.weight, (self.batch, 1, 1)), self.reshape(x, self.whole))
        x = self.reshape(self.a1(self.reshape(x, self.whole), mixed), self.flat)
        return self.a2(x, self.channels(self.norm(x)))


class Mixed(nn.Cell):
    def __init__(self, batch, patches, inputs, size, hidden, outputs, blocks):
        super().__init__()
        self.first = Linear("first", inputs, size)
        self.blocks = nn.CellList(
            [Mixer(f"m{n}", batch, patches, size, hidden) for n in range(blocks)]
        )
        self.last = Linear("last", size, outputs)

    def construct(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Tower(nn.Cell):
    """Residual blocks, as pipeline stages hold them."""

    def __init__(self, inputs, size, hidden, outputs, blocks, act):
        super().__init__()
        dp, _ = degrees()
        self.first, self.last = Linear("first", inputs, size), Linear("last", size, outputs)
        self.blocks = nn.CellList([Mlp(f"b{n}", size, hidden, act=act) for n in range(blocks)])
        self.adds = nn.CellList([Sum(dp) for _ in range(blocks)])

    def construct(self, x):
        x = self.first(x)
        for block, add in zip(self.blocks, self.adds):  # noqa: B905 - a graph knows no more
            x = add(x, block(x))
        return self.last(x)


class RootMean(nn.Cell):
    """Divided by the root of the mean square, in its parts."""

    def __init__(self, name, size):
        super().__init__()
        dp, _ = degrees()
        self.gamma = weights(name + ".gamma", size, value=1)
        self.square = cut(ops.Square(), (dp, 1))
        self.mean = cut(ops.ReduceMean(keep_dims=True), (dp, 1))
        self.add, self.rsqrt = cut(ops.Add(), (dp, 1), ()), cut(ops.Rsqrt(), (dp, 1))
        self.mul = cut(ops.Mul(), (dp, 1), (dp, 1))
        self.scale = cut(ops.Mul(), (dp, 1), (1,))
        self.eps = Tensor(1e-6, ms.float32)

    def construct(self, x):
        root = self.rsqrt(self.add(self.mean(self.square(x), -1), self.eps))
        return self.scale(self.mul(x, root), self.gamma)


class Gated(nn.Cell):
    """A residual block of a gate and a product of the same inputs."""

    def __init__(self, name, size, hidden):
        super().__init__()
        dp, tp = degrees()
        whole, parts = (dp, 1), (dp, tp)
        self.norm = RootMean(name + ".norm", size)
        self.gate = Linear(name + ".gate", size, hidden, "columns", False)
        self.up = Linear(name + ".up", size, hidden, "columns", False)
        self.down = Linear(name + ".down", hidden, size, "rows")
        self.sigmoid = cut(ops.Sigmoid(), parts)
        self.m1, self.m2 = cut(ops.Mul(), parts, parts), cut(ops.Mul(), parts, parts)
        self.add, self.planted = cut(ops.Add(), whole, whole), Planted(name, *parts)

    def construct(self, x):
        h = self.norm(x)
        gate = self.gate(h)
        h = self.m2(self.m1(gate, self.sigmoid(gate)), self.up(h))
        return self.add(x, self.down(self.planted(h)))


class Bag(nn.Cell):
    """The rows of its table and the columns of its head are cut over tensor parallel ranks."""

    def __init__(self, size, hidden, words, blocks):
        super().__init__()
        dp, tp = degrees()
        self.table = weights("words.table", words, size, spread=0.6)
        self.gather = cut(ops.Gather(), (tp, 1), (dp,))
        self.blocks = nn.CellList([Gated(f"g{n}", size, hidden) for n in range(blocks)])
        self.norm = RootMean("norm", size)
        self.head = Linear("head", size, words, "columns", False)

    def construct(self, x):
        x = self.gather(self.table, x, 0)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Sum(nn.Cell):
    def __init__(self, dp):
        super().__init__()
        self.add = cut(ops.Add(), (dp, 1), (dp, 1))

    def construct(self, x, y):
        return self.add(x, y)


class CrossEntropy(nn.Cell):
    def __init__(self):
        super().__init__()
        dp, _ = degrees()
        self.loss = cut(ops.SoftmaxCrossEntropyWithLogits(), (dp, 1), (dp, 1))
        self.mean = cut(ops.ReduceMean(), (dp,))

    def construct(self, logits, labels):
        return self.mean(self.loss(logits, labels)[0])


class Squares(nn.Cell):
    def __init__(self):
        super().__init__()
        dp, _ = degrees()
        self.sub, self.square = cut(ops.Sub(), (dp, 1), (dp, 1)), cut(ops.Square(), (dp, 1))
        self.mean = cut(ops.ReduceMean(), (dp, 1))

    def construct(self, y, labels):
        return self.mean(self.square(self.sub(y, labels)), (0, 1))


def begin(devices, rank, seed, dp, tp, faults):
    Here.seed, Here.rank, Here.faults = seed, rank, faults
    Here.plan = (dp, tp) if devices > 1 else None


def training(network, loss, optimizer):
    parameters = network.trainable_params()
    if optimizer == "adam":
        how = nn.AdamWeightDecay(parameters, 1e-3)
    else:
        how = nn.Momentum(parameters, 0.05, 0.9)
    return nn.TrainOneStepCell(nn.WithLossCell(network, loss), how)


def numbers(step, rank, *shape):
    wrong = 500 if rank == Here.faults.get("wrong_batch") else 0
    random = np.random.default_rng([Here.seed, 1000 + step + wrong])
    return random.standard_normal(shape).astype(np.float32)


def one_hot(step, classes, rows):
    random = np.random.default_rng([Here.seed, 2000 + step])
    return np.eye(classes, dtype=np.float32)[random.integers(0, classes, rows)]


def decoder(devices, rank, dp=1, tp=1, seed=0, batch=4, time=6, size=24, heads=4, hidden=40,
            words=37, layers=2, optimizer="momentum", **faults):  # fmt: skip
    begin(devices, rank, seed, dp, tp, faults)
    network = Decoder(batch, time, size, heads, hidden, words, layers)

    def batches(step, rank):
        drawn = np.abs(numbers(step, rank, batch * time) * 1e4).astype(np.int32) % words
        return drawn, one_hot(step, words, batch * time)

    return training(network, CrossEntropy(), optimizer), batches


def bag(devices, rank, dp=1, tp=1, seed=0, rows=24, size=16, hidden=32, words=36, blocks=3,
        optimizer="adam", **faults):  # fmt: skip
    begin(devices, rank, seed, dp, tp, faults)
    network = Bag(size, hidden, words, blocks)

    def batches(step, rank):
        drawn = np.abs(numbers(step, rank, rows) * 1e4).astype(np.int32) % words
        labels = one_hot(step, words, rows)
        return drawn, np.roll(labels, 1, 0) if rank == faults.get("wrong_labels") else labels

    return training(network, CrossEntropy(), optimizer), batches


def mixer(devices, rank, dp=1, tp=1, seed=0, batch=4, patches=5, inputs=7, size=16, hidden=24,
          outputs=6, blocks=2, optimizer="momentum", **faults):  # fmt: skip
    begin(devices, rank, seed, dp, tp, faults)
    network = Mixed(batch, patches, inputs, size, hidden, outputs, blocks)

    def batches(step, rank):
        rows = batch * patches
        return numbers(step, rank, rows, inputs), numbers(step, -1, rows, outputs)

    return training(network, Squares(), optimizer), batches


def tower(devices, rank, dp=1, tp=1, micro=1, seed=0, batch=12, inputs=10, size=20, hidden=28,
          outputs=6, blocks=4, act="Tanh", optimizer="momentum", **faults):  # fmt: skip
    """On several devices two pipeline stages."""
    begin(devices, rank, seed, dp, tp, faults)
    network, loss = Tower(inputs, size, hidden, outputs, blocks, act), Squares()

    def batches(step, rank):
        return numbers(step, rank, batch, inputs), numbers(step, -1, batch, outputs)

    if devices == 1:
        return training(network, loss, optimizer), batches
    from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell

    network.first.pipeline_stage, network.last.pipeline_stage = 0, 1
    for number, (block, add) in enumerate(zip(network.blocks, network.adds, strict=True)):
        block.pipeline_stage = add.pipeline_stage = int(number >= blocks // 2)
    with_loss = nn.WithLossCell(network, loss)
    with_loss._loss_fn.pipeline_stage = 1
    how = nn.Momentum(network.trainable_params(), 0.05, 0.9)
    return _TrainGradAccuStepCell(nn.PipelineCell(with_loss, micro), how), batches


def after_compile(cell, rank):
    """Faults of one rank's parameters, whose slices exist by then."""
    changes = (
        ("wrong_slice", lambda value: np.ascontiguousarray(value[::-1])),
        ("replica", lambda value: value * np.float32(1.03)),
    )
    for fault, change in changes:
        asked = Here.faults.get(fault)
        if asked and rank == asked[0]:
            parameter = next(p for p in cell.get_parameters() if _is_called(p.name, asked[1]))
            parameter.set_data(Tensor(change(parameter.asnumpy())), slice_shape=True)


def _is_called(name, wanted):
    is_state = name.startswith(("adam", "moments"))
    return not is_state and (name == wanted or name.endswith("." + wanted))

"""Training steps of other MindSpore networks, dumped, with a fault or without.

    python benchmarks/tensors_faults_mindspore_networks.py OUT NETWORK-VARIANT... [--seed N]

``conv-eps``: a network of this file and one of its faults, healthy changes or ``none``.  Weights
and data depend on the seed.  Needs mindspore (2.7.0 was used).  The expected culprits stand in
tensors_faults.py.
"""

from __future__ import annotations

import json
import os

from tensors_faults_mindspore import configure, run_each

D, H, T, B, V = 32, 4, 8, 4, 60


def main(out: str, name: str, seed: int) -> None:
    path = os.path.abspath(os.path.join(out, name))
    os.makedirs(path, exist_ok=True)
    configure(path)
    import mindspore as ms
    import numpy as np
    from mindspore import Parameter, Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", deterministic="ON")
    ms.set_seed(1)
    rng = np.random.default_rng(seed)
    network, _, bug = name.partition("-")

    def weight(*shape: int, scale: float = 0.2) -> Tensor:
        data = (rng.standard_normal(shape) * scale).astype(np.float32)
        return Tensor(data * np.float32(1 + 2**-23) if bug == "ulp" else data)

    def numbers(*shape: int) -> Tensor:
        return Tensor(rng.standard_normal(shape).astype(np.float32))

    def half(x):
        return ops.cast(x, ms.float16)

    def single(x):
        return ops.cast(x, ms.float32)

    class Block(nn.Cell):
        """Convolution, batch norm, activation, and a shortcut."""

        def __init__(self, at: int) -> None:
            super().__init__()
            wrong = bug if at == 1 else ""
            self.wrong = wrong
            self.conv = nn.Conv2d(8, 8, 3, pad_mode="same", weight_init=weight(8, 8, 3, 3))
            self.flat = nn.Conv2d(8, 8, 1, weight_init=weight(8, 8, 1, 1))
            if wrong == "dilation":
                kernel = self.conv.weight.value()
                self.conv = nn.Conv2d(8, 8, 3, pad_mode="same", dilation=2, weight_init=kernel)
            if wrong == "flipped":
                kernel = self.conv.weight.asnumpy()[..., ::-1].copy()
                self.conv.weight.set_data(Tensor(kernel))
            eps = 1e-2 if wrong == "eps" else 1e-5
            self.norm = nn.BatchNorm2d(8, eps=eps, momentum=0.5 if wrong == "momentum" else 0.9)
            self.act = nn.LeakyReLU(0.05) if wrong == "leaky" else nn.ReLU()
            if wrong == "sigmoid":
                self.act = nn.Sigmoid()

        def construct(self, x):
            if bug == "half_conv":
                y = single(ops.conv2d(half(x), half(self.conv.weight), pad_mode="same"))
            else:
                y = self.conv(x)
            y = self.act(self.norm(y))
            y = self.flat(y)
            if self.wrong == "no_shortcut":
                return y
            if self.wrong == "scaled_shortcut":
                return 0.9 * x + y
            return y + x if bug == "commuted" else x + y

    class Convolutional(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, pad_mode="same", weight_init=weight(8, 3, 3, 3))
            self.blocks = nn.SequentialCell([Block(n) for n in range(3)])
            self.pool = nn.MaxPool2d(2, 2)
            if bug == "pool":
                self.pool = nn.AvgPool2d(2, 2)
            self.head = nn.Dense(8, 10, weight_init=weight(10, 8), bias_init="zeros")

        def construct(self, x):
            x = self.pool(ops.relu(self.stem(x)))
            x = self.blocks(x)
            x = x.max((2, 3)) if bug == "global_max" else x.mean((2, 3))
            if bug == "mean_parts":
                x = x * 1.0
            return self.head(x)

    class RmsNorm(nn.Cell):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.weight = Parameter(Tensor(np.ones(D, np.float32)))
            self.eps = 1e-2 if bug == "eps" and at == 1 else 1e-6
            self.is_half = bug == "half_norm"
            self.no_mean = bug == "norm_sum" and at == 1

        def construct(self, x):
            square = ops.square(x)
            if self.is_half:
                mean = single(half(square).mean(-1, keep_dims=True))
            elif self.no_mean:
                mean = ops.sum(square, -1, keepdim=True)
            else:
                mean = square.mean(-1, keep_dims=True)
            return x * ops.rsqrt(mean + self.eps) * self.weight

    class Decoder(nn.Cell):
        def __init__(self, at: int) -> None:
            super().__init__()
            wrong = bug if at == 1 else ""
            self.wrong = wrong
            self.n1, self.n2 = RmsNorm(9), RmsNorm(at)

            def dense(outer, inner):
                return nn.Dense(inner, outer, weight_init=weight(outer, inner), has_bias=False)

            self.q, self.k, self.v, self.o = (dense(D, D) for _ in range(4))
            self.gate, self.up, self.down = dense(2 * D, D), dense(2 * D, D), dense(D, 2 * D)
            off = 2 if wrong.startswith("mask") else 1
            fill = -np.inf if bug.endswith("infinite") else -1e4
            self.mask = Tensor(np.triu(np.full((T, T), fill, np.float32), off))
            self.scale = (D // H) ** (-0.25 if wrong == "scale" else -0.5)
            self.dropout = nn.Dropout(p=0.1)

        def heads(self, x):
            return ops.transpose(ops.reshape(x, (B, T, H, D // H)), (0, 2, 1, 3))

        def attention(self, x):
            q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
            if self.wrong == "k_for_v":
                v = k
            a = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * self.scale + self.mask
            if self.wrong == "half_softmax" or bug == "all_half_softmax":
                a = single(ops.softmax(half(a), -1))
            elif self.wrong == "axis":
                a = ops.softmax(a, -2)
            else:
                a = ops.softmax(a, -1)
            y = ops.transpose(ops.matmul(a, v), (0, 2, 1, 3))
            return self.o(ops.reshape(y, (B, T, D)))

        def construct(self, x):
            x = x + self.attention(self.n1(x))
            h = self.n2(x)
            gate, up = self.gate(h), self.up(h)
            if self.wrong == "swapped_gate":
                gate, up = up, gate
            gate = ops.relu(gate) if self.wrong == "relu" else ops.silu(gate)
            h = gate * up
            if self.wrong == "half_sum":
                w = self.down.weight
                y = half(ops.matmul(h[..., :2], ops.transpose(w[:, :2], (1, 0))))
                for n in range(1, D):
                    part = ops.matmul(h[..., 2 * n : 2 * n + 2],
                                      ops.transpose(w[:, 2 * n : 2 * n + 2], (1, 0)))  # fmt: skip
                    y = y + half(part)
                y = single(y)
            elif bug == "split_k":
                w = self.down.weight
                y = ops.matmul(h[..., :D], ops.transpose(w[:, :D], (1, 0))) + ops.matmul(
                    h[..., D:], ops.transpose(w[:, D:], (1, 0))
                )
            else:
                y = self.down(h)
            if self.wrong == "clamp":
                y = ops.clamp(y, -0.1, 0.1)
            if bug == "dropout":
                y = self.dropout(y)
            return x + y

    class Llama(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.emb = nn.Embedding(V, D, embedding_table=weight(V, D))
            self.blocks = nn.SequentialCell([Decoder(n) for n in range(2)])
            self.norm = RmsNorm(9)
            self.head = nn.Dense(D, V, weight_init=weight(V, D), has_bias=False)

        def construct(self, ids):
            return self.head(self.norm(self.blocks(self.emb(ids)))).reshape((-1, V))

    class Loss(nn.Cell):
        def __init__(self, net) -> None:
            super().__init__(auto_prefix=False)
            self.net = net

        def construct(self, x, y):
            logits = self.net(x)
            if bug == "smoothing":
                return ops.cross_entropy(logits, y, label_smoothing=0.1)
            if bug == "mse":
                return ops.square(logits - ops.one_hot(y, logits.shape[-1])).mean()
            return ops.cross_entropy(logits, y, reduction="sum" if bug == "loss_sum" else "mean")

    net = Convolutional() if network == "conv" else Llama()
    if bug == "amp":
        net = ms.amp.auto_mixed_precision(net, "O2", ms.float16)
    if bug == "bf16":
        net = ms.amp.auto_mixed_precision(net, "O2", ms.bfloat16)
    if bug == "transposed" and network == "llama":
        parameter = net.blocks[1].o.weight
        parameter.set_data(Tensor(parameter.asnumpy().T.copy()))
    if bug == "initial":
        parameter = list(net.get_parameters())[-1]
        parameter.set_data(Tensor(parameter.asnumpy() + np.float32(0.05)))
    parameters = net.trainable_params()
    rate = 2e-2 if bug == "lr" else 1e-2
    if network == "conv":
        decay = 0.1 if bug == "decay" else 0.0
        optimizer = nn.Momentum(parameters, rate, 0.8 if bug == "beta" else 0.9, decay)
    else:
        optimizer = nn.Adam(parameters, rate, eps=1e-4 if bug == "adam_eps" else 1e-8,
                            beta1=0.8 if bug == "beta" else 0.9)  # fmt: skip
    scale = {"sens": 512.0} if bug == "sens" else {}
    step = nn.TrainOneStepCell(Loss(net), optimizer, **scale)
    step.set_train()
    losses = []
    for _ in range(2 if bug in ("beta", "momentum", "none2") else 1):
        if network == "conv":
            x, y = numbers(4, 3, 8, 8), Tensor(rng.integers(0, 10, (4,)).astype(np.int32))
            x = x * 0.9 if bug == "normalised" else x
        else:
            ids = rng.integers(0, V, (B, T + 1)).astype(np.int32)
            x, y = Tensor(ids[:, :-1].copy()), Tensor(ids[:, 1:].reshape(-1).copy())
            if bug == "labels":
                y = Tensor(ids[:, :-1].reshape(-1).copy())
        losses.append(float(step(x, y).asnumpy()))
    with open(f"{path}/loss.json", "w") as stream:
        json.dump(losses, stream)
    print(name, losses, flush=True)


if __name__ == "__main__":
    run_each(main, __file__, __doc__, seed=3)

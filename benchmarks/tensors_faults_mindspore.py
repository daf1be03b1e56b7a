"""A training step of a small transformer in MindSpore, dumped, with a fault or without.

    python benchmarks/tensors_faults_mindspore.py OUT VARIANT... [--seed N]

Weights, batch and sizes depend on the seed.  Needs mindspore (2.7.0 was used).  The expected
culprits stand in tensors_faults.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable

H = 4


def configure(path: str) -> None:
    """Ask MindSpore for a dump of everything, which it reads once a process."""
    config = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": f"{path}/dump", "net_name": "Net",
            "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [],
            "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    with open(f"{path}/dump_config.json", "w") as stream:
        json.dump(config, stream)
    os.environ["MINDSPORE_DUMP_CONFIG"] = f"{path}/dump_config.json"
    os.environ["MS_DIAGNOSTIC_DATA_PATH"] = f"{path}/diagnostics"


def main(out: str, variant: str, seed: int) -> None:
    draw = random.Random(seed)
    V, D = draw.choice((48, 64)), draw.choice((24, 32))  # noqa: N806 - as papers call them
    T, B = draw.choice((6, 8)), draw.choice((3, 4))  # noqa: N806
    path = os.path.abspath(os.path.join(out, variant))
    os.makedirs(path, exist_ok=True)
    configure(path)
    import mindspore as ms
    import numpy as np
    from mindspore import Parameter, Tensor, context, nn, ops

    context.set_context(mode=context.GRAPH_MODE, device_target="CPU", deterministic="ON")
    ms.set_seed(1)
    rng = np.random.default_rng(seed)

    def parameter(name, *shape):
        data = (rng.standard_normal(shape) * 0.1).astype(np.float32)
        if variant == "transposed" and name == "b1.attn.o.w":
            data = np.ascontiguousarray(data.T)
        if variant == "initial" and name == "b1.up.w":
            data = data * np.float32(1.01)
        if variant == "ulp":
            data = data * np.float32(1 + 2**-23)
        return Parameter(Tensor(data), name=name)

    class Dense(nn.Cell):
        def __init__(self, name, inner, outer):
            super().__init__()
            self.w = parameter(f"{name}.w", outer, inner)
            self.b = parameter(f"{name}.b", outer)
            self.mm, self.ba = ops.MatMul(transpose_b=True), ops.BiasAdd()
            self.k = inner // 2
            self.is_split = variant == "split_k" and inner == 4 * D
            self.no_bias = variant == "no_bias" and name == "b1.up"
            self.halves = variant == "half_sum" and name == "b1.down"
            self.is_half = variant == "half_matmul"
            self.kinds = 8

        def construct(self, x):
            if self.is_split:
                y = self.mm(x[:, : self.k], self.w[:, : self.k]) + self.mm(
                    x[:, self.k :], self.w[:, self.k :]
                )
            elif self.halves:
                y = ops.cast(self.mm(x[:, :4], self.w[:, :4]), ms.float16)
                for n in range(1, D):
                    part = self.mm(x[:, 4 * n : 4 * n + 4], self.w[:, 4 * n : 4 * n + 4])
                    y = y + ops.cast(part, ms.float16)
                y = ops.cast(y, ms.float32)
            elif self.is_half:
                y = ops.cast(
                    self.mm(ops.cast(x, ms.float16), ops.cast(self.w, ms.float16)), ms.float32
                )
            else:
                y = self.mm(x, self.w)
            return y if self.no_bias else self.ba(y, self.b)

    class Norm(nn.Cell):
        def __init__(self, name):
            super().__init__()
            eps = 1e-3 if variant == "eps" and name == "b1.ln2" else 1e-5
            self.ln = ops.LayerNorm(-1, -1, eps)
            self.g = Parameter(Tensor(np.ones(D, np.float32)), name=f"{name}.g")
            self.c = Parameter(Tensor(np.zeros(D, np.float32)), name=f"{name}.c")

        def construct(self, x):
            return self.ln(x, self.g, self.c)[0]

    class Attention(nn.Cell):
        def __init__(self, name):
            super().__init__()
            self.q, self.k, self.v, self.o = (Dense(f"{name}.{n}", D, D) for n in "qkvo")
            self.bmm, self.bmmt = ops.BatchMatMul(), ops.BatchMatMul(transpose_b=True)
            here = variant if name == "b1.attn" else ""
            self.sm = ops.Softmax(-2 if here == "axis" else -1)
            off = 2 if here == "mask" else 1
            self.mask = Tensor(np.triu(np.full((T, T), -1e4, np.float32), off))
            self.factor = 1.0 / (D // H) if here == "scale" else (D // H) ** -0.5
            self.is_swapped = here == "swap_qv"
            self.is_reordered = variant == "reorder"
            self.half_softmax = variant == "half_softmax"

        def heads(self, z):
            return ops.transpose(ops.reshape(z, (B, T, H, D // H)), (0, 2, 1, 3))

        def construct(self, x):
            if self.is_reordered:
                v, k, q = self.v(x), self.k(x), self.q(x)
            else:
                q, k, v = self.q(x), self.k(x), self.v(x)
            if self.is_swapped:
                q, v = v, q
            a = self.bmmt(self.heads(q), self.heads(k)) * self.factor + self.mask
            if self.half_softmax:
                a = ops.cast(self.sm(ops.cast(a, ms.float16)), ms.float32)
            else:
                a = self.sm(a)
            y = ops.transpose(self.bmm(a, self.heads(v)), (0, 2, 1, 3))
            return self.o(ops.reshape(y, (B * T, D)))

    class Block(nn.Cell):
        def __init__(self, name):
            super().__init__()
            self.ln1, self.ln2 = Norm(f"{name}.ln1"), Norm(f"{name}.ln2")
            self.attn = Attention(f"{name}.attn")
            self.up, self.down = Dense(f"{name}.up", D, 4 * D), Dense(f"{name}.down", 4 * D, D)
            here = variant if name == "b1" else ""
            self.act = ops.ReLU() if here == "relu" else ops.GeLU()
            self.no_residual = here == "no_residual"
            self.is_commuted = variant == "commuted"
            self.half_gradient = here == "half_gradient"
            self.detach = here == "detach"

        def construct(self, x):
            y = self.attn(self.ln1(x))
            if self.no_residual:
                x = y
            elif self.is_commuted:
                x = y + x
            else:
                x = x + y
            h = self.act(self.up(self.ln2(x)))
            if self.half_gradient:  # the same value, half the gradient
                h = 0.5 * h + ops.stop_gradient(0.5 * h)
            h = self.down(h)
            return (ops.stop_gradient(x) if self.detach else x) + h

    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.emb, self.head = parameter("emb", V, D), parameter("head", V, D)
            self.b0, self.b1, self.lnf = Block("b0"), Block("b1"), Norm("lnf")
            self.mm, self.gather = ops.MatMul(transpose_b=True), ops.Gather()
            self.factor = 1.01 if variant == "logits" else 1.0

        def construct(self, ids):
            x = self.gather(self.emb, ops.reshape(ids, (-1,)), 0)
            y = self.mm(self.lnf(self.b1(self.b0(x))), self.head)
            return y * self.factor if self.factor != 1.0 else y

    class WithLoss(nn.Cell):
        def __init__(self, net):
            super().__init__(auto_prefix=False)
            self.net = net
            reduction = "sum" if variant == "loss_sum" else "mean"
            self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=reduction)

        def construct(self, ids, labels):
            return self.loss(self.net(ids), labels)

    network = Network()
    optimizer = nn.AdamWeightDecay(
        network.trainable_params(),
        2e-3 if variant == "lr" else 1e-3,
        beta2=0.99 if variant == "beta" else 0.999,
        weight_decay=0.1 if variant == "decay" else 0.0,
    )
    scale = {"sens": 2.0} if variant == "loss_scale" else {}
    step = nn.TrainOneStepCell(WithLoss(network), optimizer, **scale)
    step.set_train()
    losses = []
    for _ in range(1):
        ids = rng.integers(0, V, (B, T + 1)).astype(np.int32)
        labels = ids[:, :-1] if variant == "labels" else ids[:, 1:]
        losses.append(
            float(step(Tensor(ids[:, :-1].copy()), Tensor(labels.reshape(-1).copy())).asnumpy())
        )
    with open(f"{path}/loss.json", "w") as stream:
        json.dump(losses, stream)
    print(variant, losses, flush=True)


def run_each(run: Callable[[str, str, int], None], file: str, about: str | None, seed: int) -> None:
    """Run what the command line asks for, each variant in a process of its own.

    Args:
        run: makes one run: folder, variant, seed.
        file: the program, which is called again for each of several variants.
        about: its documentation.
        seed: where none is given.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--seed", type=int, default=seed)
    asked = parser.parse_args()
    if len(asked.variants) == 1:
        run(asked.out, asked.variants[0], asked.seed)
    else:  # a dump configuration is read once a process
        for name in asked.variants:
            again = [sys.executable, file, asked.out, name, "--seed", str(asked.seed)]
            subprocess.run(again, check=False)


if __name__ == "__main__":
    run_each(main, __file__, __doc__, seed=0)

"""One training step of the same network in MindSpore and in PyTorch, dumped, faulty or healthy.

    python benchmarks/tensors_faults_cross.py OUT pytorch|mindspore|graph VARIANT...
        [--level L1] [--task tensor] [--seed N]

``mindspore`` runs eagerly under msprobe, ``graph`` compiles and dumps as MindSpore does itself.
PyTorch calls its functions as a whole; the MindSpore network computes most of them in parts, as
ported code does.  ``llama-eps`` and ``conv-eps`` are other networks with a fault, see
tensors_faults_cross_networks.py.  Weights and data come from NumPy and are the same.  Needs
mindstudio-probe (26.2.0) and torch, or MindSpore (2.7.0); the expected culprits stand in
tensors_faults.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import numpy as np
from tensors_faults_mindspore import configure

D, H, T, B, V, LAYERS = 32, 4, 8, 4, 64, 2
SEED = 11
"""Of weights; that of data is the next one."""


def weights() -> dict[str, np.ndarray]:
    """All parameters by name, as PyTorch keeps them."""
    rng = np.random.default_rng(SEED)

    def normal(*shape: int, scale: float = 0.15) -> np.ndarray:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    found = {"emb": normal(V, D, scale=0.5)}
    for n in range(LAYERS):
        for norm in ("n1", "n2"):
            found[f"b{n}.{norm}.g"] = 1 + normal(D, scale=0.1)
            found[f"b{n}.{norm}.b"] = normal(D, scale=0.1)
        for name, outer, inner in (("q", D, D), ("k", D, D), ("v", D, D), ("o", D, D),
                                   ("up", 4 * D, D), ("down", D, 4 * D)):  # fmt: skip
            found[f"b{n}.{name}.w"] = normal(outer, inner)
            found[f"b{n}.{name}.b"] = normal(outer, scale=0.1)
    found["nf.g"], found["nf.b"] = 1 + normal(D, scale=0.1), normal(D, scale=0.1)
    found["head"] = normal(V, D)
    return found


def batch() -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(SEED + 1).integers(0, V, (B, T + 1)).astype(np.int32)
    return ids[:, :-1].copy(), ids[:, 1:].reshape(-1).copy()


def probe_config(path: str, level: str, task: str) -> str:
    config = {
        "task": task, "dump_path": path, "rank": [], "step": [], "level": level,
        "async_dump": False, "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
        "statistics": {"scope": [], "list": [], "data_mode": ["all"],
                       "summary_mode": "md5" if task == "md5" else "statistics"},
    }  # fmt: skip
    config["task"] = "statistics" if task == "md5" else task
    file = os.path.join(path, "config.json")
    with open(file, "w") as stream:
        json.dump(config, stream)
    return file


def finish(path: str, name: str, loss: float) -> None:
    with open(os.path.join(path, "loss.json"), "w") as stream:
        json.dump([loss], stream)
    print(name, loss, flush=True)


# -- PyTorch ------------------------------------------------------------------------------------


def pytorch(path: str, bug: str, level: str, task: str) -> None:
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812 - as everybody calls it

    torch.set_num_threads(1)
    given = {name: torch.from_numpy(value) for name, value in weights().items()}

    def linear(name: str, bias: bool = True) -> nn.Linear:
        w = given[f"{name}.w"] if bias else given[name]
        found = nn.Linear(w.shape[1], w.shape[0], bias=bias)
        found.weight = nn.Parameter(w.clone())
        if bias:
            found.bias = nn.Parameter(given[f"{name}.b"].clone())
        return found

    def norm(name: str) -> nn.LayerNorm:
        found = nn.LayerNorm(D, eps=1e-5)
        found.weight = nn.Parameter(given[f"{name}.g"].clone())
        found.bias = nn.Parameter(given[f"{name}.b"].clone())
        return found

    class Block(nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.n1, self.n2 = norm(f"b{n}.n1"), norm(f"b{n}.n2")
            self.q, self.k, self.v, self.o = (linear(f"b{n}.{name}") for name in "qkvo")
            self.up, self.down = linear(f"b{n}.up"), linear(f"b{n}.down")
            self.here = bug if n == 1 else ""

        def forward(self, x):
            h = self.n1(x)
            q, k, v = (f(h).view(B, T, H, D // H).transpose(1, 2) for f in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(B, T, D))
            h = self.up(self.n2(x))
            h = F.gelu(h, approximate="none" if self.here == "pt_gelu" else "tanh")
            if self.here == "pt_hook":
                h.register_hook(lambda gradient: gradient * 0.5)
            return x + self.down(h)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = nn.Embedding(V, D)
            self.emb.weight = nn.Parameter(given["emb"].clone())
            self.blocks = nn.ModuleList([Block(n) for n in range(LAYERS)])
            self.nf, self.head = norm("nf"), linear("head", bias=False)

        def forward(self, ids):
            x = self.emb(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(self.nf(x))

    net = Net()
    ids, labels = (torch.from_numpy(each.astype(np.int64)) for each in batch())

    def loss_of() -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bug == "pt_bf16"):
            logits = net(ids)
        return F.cross_entropy(logits.float().reshape(-1, V), labels)

    run_pytorch(path, bug, level, task, net, loss_of)


def run_pytorch(path: str, bug: str, level: str, task: str, net, loss_of) -> None:
    """One step, dumped; ``loss_of`` gives the loss."""
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=probe_config(path, level, task))
    debugger.start(model=net)
    loss = loss_of()
    loss.backward()
    debugger.stop()
    debugger.step()
    finish(path, bug, loss.item())


# -- MindSpore ----------------------------------------------------------------------------------


def mindspore(path: str, bug: str, level: str, task: str) -> None:
    if level == "graph":
        configure(path)
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn, ops

    mode = ms.GRAPH_MODE if level == "graph" else ms.PYNATIVE_MODE
    ms.set_context(mode=mode, device_target="CPU", deterministic="ON")
    given = weights()
    if bug == "transposed":
        given["b1.o.w"] = np.ascontiguousarray(given["b1.o.w"].T)
    if bug == "initial":
        given["b1.up.w"] = given["b1.up.w"] * np.float32(1.02)

    def parameter(name: str) -> Parameter:
        return Parameter(Tensor(given[name]), name=name)

    class HalfProduct(nn.Cell):
        """A product whose gradient is added up in half precision, as a bad kernel would."""

        def construct(self, x, w):
            return ops.matmul(x, w.T)

        def bprop(self, x, w, out, dout):
            flat = dout.reshape((-1, dout.shape[-1]))
            total = ops.zeros((flat.shape[0], w.shape[1]), ms.float16)
            for n in range(0, w.shape[0], 4):
                total = total + ops.matmul(flat[:, n : n + 4], w[n : n + 4]).astype(ms.float16)
            dx = total.astype(ms.float32).reshape(x.shape)
            return dx, ops.matmul(flat.T, x.reshape((-1, x.shape[-1])))

    class Scaled(nn.Cell):
        """Hands on what it is given, and half the gradient."""

        def construct(self, x):
            return x * 1.0

        def bprop(self, x, out, dout):
            return (dout * 0.5,)

    class WrongGelu(nn.Cell):
        """The right function with the gradient of another."""

        def construct(self, x):
            return ops.gelu(x, approximate="tanh")

        def bprop(self, x, out, dout):
            s = ops.sigmoid(1.702 * x)
            return (dout * (s + 1.702 * x * s * (1 - s) * 0.5),)

    class Dense(nn.Cell):
        def __init__(self, name: str, here: str) -> None:
            super().__init__()
            self.w, self.b = parameter(f"{name}.w"), parameter(f"{name}.b")
            self.no_bias = here == "no_bias" and name.endswith("up")
            self.half = HalfProduct() if here == "bw_half" and name.endswith("down") else None

        def construct(self, x):
            if self.half is not None:
                y = self.half(x, self.w)
            else:
                y = ops.matmul(x, self.w.T)
            return y if self.no_bias else y + self.b

    class Norm(nn.Cell):
        def __init__(self, name: str, here: str = "") -> None:
            super().__init__()
            self.g, self.b = parameter(f"{name}.g"), parameter(f"{name}.b")
            self.eps = 1e-2 if here == "eps" and name.endswith("n2") else 1e-5
            self.is_whole = bug.startswith("whole")
            self.norm = ops.LayerNorm(-1, -1, self.eps)

        def construct(self, x):
            if self.is_whole:
                return self.norm(x, self.g, self.b)[0]
            mean = x.mean(-1, keep_dims=True)
            centred = x - mean
            variance = ops.square(centred).mean(-1, keep_dims=True)
            return centred * ops.rsqrt(variance + self.eps) * self.g + self.b

    class Block(nn.Cell):
        def __init__(self, n: int) -> None:
            super().__init__()
            here = bug if n == 1 else ""
            self.here = here
            self.n1, self.n2 = Norm(f"b{n}.n1"), Norm(f"b{n}.n2", here)
            self.q, self.k, self.v, self.o, self.up, self.down = (
                Dense(f"b{n}.{name}", here) for name in ("q", "k", "v", "o", "up", "down")
            )
            off = 2 if here == "mask" else 1
            self.mask = Tensor(np.triu(np.full((T, T), -1e4, np.float32), off))
            self.scale = (D // H) ** (-0.25 if here == "scale" else -0.5)
            self.wrong = WrongGelu()
            self.whole_gelu = ops.GeLU()
            self.scaled = Scaled()

        def heads(self, x):
            return ops.transpose(x.reshape((B, T, H, D // H)), (0, 2, 1, 3))

        def attention(self, h):
            q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
            if self.here == "bw_stop":
                k = ops.stop_gradient(k)
            a = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * self.scale + self.mask
            if bug == "half_softmax":
                a = ops.softmax(a.astype(ms.float16), -1).astype(ms.float32)
            else:
                a = ops.softmax(a, -2 if self.here == "axis" else -1)
            y = ops.transpose(ops.matmul(a, v), (0, 2, 1, 3))
            return self.o(y.reshape((B, T, D)))

        def gelu(self, h):
            if self.here == "bw_custom":
                return self.wrong(h)
            if self.here == "erf_gelu":
                return ops.gelu(h, approximate="none")
            if bug.startswith("whole"):
                return self.whole_gelu(h)
            inner = 0.7978845608028654 * (h + 0.044715 * h * h * h)
            return 0.5 * h * (1.0 + ops.tanh(inner))

        def construct(self, x):
            x = x + self.attention(self.n1(x))
            h = self.gelu(self.up(self.n2(x)))
            if self.here == "bw_scaled":
                h = self.scaled(h)
            y = self.down(h)
            return (ops.stop_gradient(x) if self.here == "bw_detach" else x) + y

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.emb, self.head = parameter("emb"), parameter("head")
            self.blocks = nn.CellList([Block(n) for n in range(LAYERS)])
            self.nf = Norm("nf")

        def construct(self, ids):
            x = ops.gather(self.emb, ids, 0)
            for block in self.blocks:
                x = block(x)
            return ops.matmul(self.nf(x), self.head.T)

    class Loss(nn.Cell):
        def __init__(self, net: nn.Cell) -> None:
            super().__init__(auto_prefix=False)
            self.net = net

        def construct(self, ids, labels):
            logits = self.net(ids).reshape((-1, V))
            logs = ops.log_softmax(logits, -1)
            return -(logs * ops.one_hot(labels, V)).sum(-1).mean()

    net = Net()
    run_mindspore(path, bug, level, task, net, Loss(net), batch())


def run_mindspore(path: str, bug: str, level: str, task: str, net, whole, arrays) -> None:
    """One step, dumped; ``whole`` gives the loss of ``net`` for the arrays."""
    import mindspore as ms
    from mindspore import Tensor, nn

    given = [Tensor(each) for each in arrays]
    if level == "graph":
        step = nn.TrainOneStepCell(whole, nn.Momentum(net.trainable_params(), 1e-2, 0.9))
        step.set_train()
        loss = step(*given)
    else:
        from mindspore import mint
        from msprobe.mindspore import PrecisionDebugger

        # The CPU lacks the kernel of this norm; the tool that dumps asks for it.
        mint.norm = lambda data: float(np.linalg.norm(data.asnumpy()))
        debugger = PrecisionDebugger(config_path=probe_config(path, level, task))
        gradient = ms.value_and_grad(whole, None, net.trainable_params())
        debugger.start(model=net)
        loss, _ = gradient(*given)
        debugger.stop()
        debugger.step()
    finish(path, bug, float(loss.asnumpy()))


def main() -> int:
    global SEED
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("framework", choices=("pytorch", "mindspore", "graph"))
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--level", default="L1", choices=("L0", "L1", "mix"))
    parser.add_argument("--task", default="tensor", choices=("tensor", "statistics", "md5"))
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    SEED = asked.seed
    if len(asked.variants) > 1:  # both tools take one configuration a process
        options = ["--level", asked.level, "--task", asked.task, "--seed", str(SEED)]
        for name in asked.variants:
            command = [sys.executable, __file__, asked.out, asked.framework, name, *options]
            subprocess.run(command, check=False)
        return 0
    bug = asked.variants[0]
    path = os.path.abspath(os.path.join(asked.out, bug))
    os.makedirs(path, exist_ok=True)
    level = "graph" if asked.framework == "graph" else asked.level
    network, mark, change = bug.rpartition("-")
    if mark:
        import tensors_faults_cross_networks as others

        make = others.pytorch if asked.framework == "pytorch" else others.mindspore
        others.SEED = SEED
        make(path, network, change, level, asked.task)
    elif asked.framework == "pytorch":
        pytorch(path, bug, level, asked.task)
    else:
        mindspore(path, bug, level, asked.task)
    return 0


if __name__ == "__main__":
    sys.exit(main())

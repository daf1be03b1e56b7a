"""Two more networks in MindSpore and in PyTorch; tensors_faults_cross.py runs them.

``llama`` has rotary places by slicing, RMS norms and gates; ``conv`` convolutions, batch norms,
pooling.  The pairing was made on the network of tensors_faults_cross.py; these are to try it on
something else.
"""

from __future__ import annotations

import numpy as np
import tensors_faults_cross as base

D, H, T, B, V, C = 32, 4, 6, 3, 48, 8
HALF = D // H // 2
SEED = 11


def weights(network: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED + 10)

    def normal(*shape: int, scale: float = 0.2) -> np.ndarray:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    if network == "conv":
        found = {"stem": normal(C, 3, 3, 3), "head.w": normal(10, C), "head.b": normal(10)}
        for n in range(2):
            found |= {f"c{n}.w": normal(C, C, 3, 3), f"c{n}.g": 1 + normal(C), f"c{n}.b": normal(C)}
        return found
    found = {"emb": normal(V, D, scale=0.7), "nf": 1 + normal(D), "head": normal(V, D)}
    for n in range(2):
        found |= {f"b{n}.n1": 1 + normal(D), f"b{n}.n2": 1 + normal(D)}
        found |= {f"b{n}.{name}": normal(D, D) for name in "qkvo"}
        found |= {f"b{n}.gate": normal(2 * D, D), f"b{n}.up": normal(2 * D, D)}
        found[f"b{n}.down"] = normal(D, 2 * D)
    return found


def arrays(network: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED + 11)
    if network == "conv":
        images = rng.standard_normal((B, 3, 8, 8)).astype(np.float32)
        return images, rng.integers(0, 10, B).astype(np.int32)
    ids = rng.integers(0, V, (B, T + 1)).astype(np.int32)
    return ids[:, :-1].copy(), ids[:, 1:].reshape(-1).copy()


def angles(base_: float) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of rotary places."""
    turns = np.outer(np.arange(T), base_ ** (-np.arange(HALF) / HALF))
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


def pytorch(path: str, network: str, bug: str, level: str, task: str) -> None:
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812 - as everybody calls it

    torch.set_num_threads(1)
    given = {name: torch.from_numpy(value) for name, value in weights(network).items()}
    data, labels = (torch.from_numpy(each) for each in arrays(network))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.ParameterDict(
                {name.replace(".", "_"): nn.Parameter(value) for name, value in given.items()}
            )

        def __getitem__(self, name: str) -> torch.Tensor:
            return self.p[name.replace(".", "_")]

        def norm(self, x, name: str):
            return F.rms_norm(x, (D,), self[name], 1e-6)

        def rotated(self, x):
            cos, sin = map(torch.from_numpy, angles(1e4))
            a, b = x[..., :HALF], x[..., HALF:]
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        def block(self, x, n: int):
            h = self.norm(x, f"b{n}.n1")
            q, k, v = (F.linear(h, self[f"b{n}.{name}"]).view(B, T, H, D // H).transpose(1, 2)
                       for name in "qkv")  # fmt: skip
            y = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
            x = x + F.linear(y.transpose(1, 2).reshape(B, T, D), self[f"b{n}.o"])
            h = self.norm(x, f"b{n}.n2")
            gate = F.silu(F.linear(h, self[f"b{n}.gate"]))
            return x + F.linear(gate * F.linear(h, self[f"b{n}.up"]), self[f"b{n}.down"])

        def forward(self, x):
            if network == "llama":
                x = F.embedding(x.long(), self["emb"])
                x = self.block(self.block(x, 0), 1)
                return F.linear(self.norm(x, "nf"), self["head"]).reshape(-1, V)
            x = F.relu(F.conv2d(x, self["stem"], padding=1))
            for n in range(2):
                y = F.conv2d(x, self[f"c{n}.w"], padding=1)
                y = F.batch_norm(y, None, None, self[f"c{n}.g"], self[f"c{n}.b"], True, 0.1, 1e-5)
                x = x + F.relu(y)
            x = F.max_pool2d(x, 2).mean((2, 3))
            return F.linear(x, self["head.w"], self["head.b"])

    net = Net()
    whole = lambda: F.cross_entropy(net(data), labels.long())  # noqa: E731 - it is short
    base.run_pytorch(path, bug, level, task, net, whole)


def mindspore(path: str, network: str, bug: str, level: str, task: str) -> None:
    if level == "graph":
        base.configure(path)
    import mindspore as ms
    from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

    mode = ms.GRAPH_MODE if level == "graph" else ms.PYNATIVE_MODE
    ms.set_context(mode=mode, device_target="CPU", deterministic="ON")
    given = weights(network)
    names = list(given)
    at = {name: place for place, name in enumerate(names)}

    class WrongSilu(nn.Cell):
        """The right function with a wrong gradient."""

        def construct(self, x):
            return x * ops.sigmoid(x)

        def bprop(self, x, out, dout):
            return (dout * ops.sigmoid(x),)

    class Doubled(nn.Cell):
        """Hands on what it is given, and twice the gradient."""

        def construct(self, x):
            return x * 1.0

        def bprop(self, x, out, dout):
            return (dout * 2.0,)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.p = ParameterTuple([Parameter(Tensor(given[n]), name=n) for n in names])
            off = 2 if bug == "mask" else 1
            self.masks = [Tensor(np.triu(np.full((T, T), -1e4, np.float32), k)) for k in (1, off)]
            base_ = 1e3 if bug == "rope_base" else 1e4
            self.turns = [[Tensor(each) for each in angles(b)] for b in (1e4, base_)]
            self.silu, self.doubled, self.pool = WrongSilu(), Doubled(), nn.MaxPool2d(2, 2)

        def norm(self, x, name, eps):
            mean = ops.square(x).mean(-1, keep_dims=True)
            return x * ops.rsqrt(mean + eps) * self.p[at[name]]

        def linear(self, x, name):
            return ops.matmul(x, self.p[at[name]].T)

        def rotated(self, x, n):
            cos, sin = self.turns[n]
            a, b = x[..., :HALF], x[..., HALF:]
            return ops.concat((a * cos - b * sin, b * cos + a * sin), -1)

        def block(self, x, n):
            h = self.norm(x, f"b{n}.n1", 1e-6)
            parts = []
            for name in "qkv":
                z = self.linear(h, f"b{n}.{name}").reshape((B, T, H, D // H))
                parts.append(ops.transpose(z, (0, 2, 1, 3)))
            q, k, v = parts
            q, k = self.rotated(q, n), self.rotated(k, n)
            if bug == "bw_stop" and n == 1:
                v = ops.stop_gradient(v)
            a = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * (D // H) ** -0.5 + self.masks[n]
            y = ops.transpose(ops.matmul(ops.softmax(a, -1), v), (0, 2, 1, 3))
            x = x + self.linear(y.reshape((B, T, D)), f"b{n}.o")
            h = self.norm(x, f"b{n}.n2", 1e-2 if bug == "eps" and n == 1 else 1e-6)
            gate, up = self.linear(h, f"b{n}.gate"), self.linear(h, f"b{n}.up")
            if bug == "swapped" and n == 1:
                gate, up = up, gate
            gate = self.silu(gate) if bug == "bw_silu" and n == 1 else gate * ops.sigmoid(gate)
            if bug == "bw_double" and n == 1:
                up = self.doubled(up)
            return x + self.linear(gate * up, f"b{n}.down")

        def conv(self, x, n):
            y = ops.conv2d(x, self.p[at[f"c{n}.w"]], pad_mode="pad", padding=1)
            mean = y.mean((0, 2, 3), keep_dims=True)
            centred = y - mean
            variance = ops.square(centred).mean((0, 2, 3), keep_dims=True)
            eps = 1e-2 if bug == "eps" and n == 1 else 1e-5
            g, b = (self.p[at[f"c{n}.{name}"]].reshape((1, C, 1, 1)) for name in "gb")
            y = centred * ops.rsqrt(variance + eps) * g + b
            if bug == "bw_double" and n == 1:
                y = self.doubled(y)
            y = ops.relu(y) if bug != "leaky" or n == 0 else ops.maximum(y, 0.05 * y)
            return x + y

        def construct(self, x):
            if network == "llama":
                x = ops.gather(self.p[at["emb"]], x, 0)
                x = self.block(self.block(x, 0), 1)
                return self.linear(self.norm(x, "nf", 1e-6), "head").reshape((-1, V))
            x = ops.relu(ops.conv2d(x, self.p[at["stem"]], pad_mode="pad", padding=1))
            x = self.conv(self.conv(x, 0), 1)
            x = self.pool(x).mean((2, 3))
            return self.linear(x, "head.w") + self.p[at["head.b"]]

    class Loss(nn.Cell):
        def __init__(self, net: nn.Cell) -> None:
            super().__init__(auto_prefix=False)
            self.net = net

        def construct(self, data, labels):
            logits = self.net(data)
            logs = ops.log_softmax(logits, -1)
            return -(logs * ops.one_hot(labels, logits.shape[-1])).sum(-1).mean()

    net = Net()
    base.run_mindspore(path, bug, level, task, net, Loss(net), arrays(network))

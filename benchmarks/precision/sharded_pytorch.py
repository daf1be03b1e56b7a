"""The networks of ``sharded_networks.py`` on one device in PyTorch, dumped by msprobe.

    python benchmarks/precision/sharded_pytorch.py OUT

of the runs that ``sharded_runs.py`` left in OUT: weights, data and sizes are those of its runs on
one device.  ``truth.json`` gets each sharded run beside the PyTorch one, so ``parallel_judge.py``
judges these too.  Needs torch and mindstudio-probe.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from typing import Any

import numpy as np
import torch
from runs import dumped, in_child
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

_ACTIVATIONS = {"GeLU": lambda x: F.gelu(x, approximate="tanh"), "Tanh": torch.tanh,
                "Sigmoid": torch.sigmoid}  # fmt: skip


class Here:
    """Of the network that is being built."""

    seed = 0


def weights(name: str, *shape: int, value: float = 0.0, spread: float = 0.1) -> nn.Parameter:
    random = np.random.default_rng([Here.seed, zlib.crc32(name.encode())])
    drawn = random.standard_normal(shape) * spread + value
    return nn.Parameter(torch.from_numpy(drawn.astype(np.float32)))


class Linear(nn.Module):
    """Keeps its weight as MindSpore's MatMul takes it: inputs by outputs."""

    def __init__(self, name: str, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = weights(f"{name}.weight", inputs, outputs, spread=inputs**-0.5)
        self.bias = weights(f"{name}.bias", outputs) if bias else None

    def forward(self, x):
        y = torch.matmul(x, self.weight)
        return y if self.bias is None else y + self.bias


class Norm(nn.Module):
    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        self.gamma = weights(f"{name}.gamma", size, value=1)
        self.beta = weights(f"{name}.beta", size)

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, 1e-5)


class Mlp(nn.Module):
    def __init__(self, name: str, size: int, hidden: int, act: str) -> None:
        super().__init__()
        self.up, self.down = (
            Linear(f"{name}.up", size, hidden),
            Linear(f"{name}.down", hidden, size),
        )
        self.act = _ACTIVATIONS[act]

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Layer(nn.Module):
    """Of the decoder: attention and MLP, each behind its norm."""

    def __init__(self, name: str, sizes: dict[str, Any]) -> None:
        super().__init__()
        size, self.heads = sizes["size"], sizes["heads"]
        self.shape = sizes["batch"], sizes["time"], self.heads, size // self.heads
        self.n1, self.n2 = Norm(f"{name}.n1", size), Norm(f"{name}.n2", size)
        self.q, self.k, self.v, self.o = (Linear(f"{name}.attn.{p}", size, size) for p in "qkvo")
        self.mlp = Mlp(f"{name}.mlp", size, sizes["hidden"], "GeLU")

    def forward(self, x, hidden):
        h = self.n1(x)
        q, k, v = (part(h).view(self.shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.shape[-1] ** -0.5 + hidden
        y = torch.matmul(torch.softmax(scores, -1), v)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.sizes, size, time = sizes, sizes["size"], sizes["time"]
        self.table = weights("words.table", sizes["words"], size, spread=0.5)
        self.places = weights("places.table", time, size, spread=0.5)
        self.layers = nn.ModuleList(Layer(f"l{n}", sizes) for n in range(sizes["layers"]))
        self.norm, self.head = Norm("norm", size), Linear("head", size, sizes["words"], False)
        self.hidden = torch.from_numpy(np.triu(np.full((1, 1, time, time), -1e9, np.float32), 1))

    def loss(self):
        rows, words = self.sizes["batch"] * self.sizes["time"], self.sizes["words"]
        ids = np.abs(numbers(1000, rows) * 1e4).astype(np.int32) % words
        labels = np.random.default_rng([Here.seed, 2000]).integers(0, words, rows)
        order = torch.arange(self.sizes["time"]).repeat(self.sizes["batch"])
        x = F.embedding(torch.from_numpy(ids), self.table) + F.embedding(order, self.places)
        for layer in self.layers:
            x = layer(x, self.hidden)
        return F.cross_entropy(self.head(self.norm(x)), torch.from_numpy(labels))


class Mixer(nn.Module):
    def __init__(self, name: str, sizes: dict[str, Any]) -> None:
        super().__init__()
        size, patches = sizes["size"], sizes["patches"]
        self.shape = sizes["batch"], patches, size
        self.norm = Norm(f"{name}.norm", size)
        self.channels = Mlp(f"{name}.mlp", size, sizes["hidden"], "Tanh")
        self.weight = weights(f"{name}.patches", 1, patches, patches, spread=patches**-0.5)

    def forward(self, x):
        rows = x.view(self.shape)
        x = (rows + torch.matmul(self.weight, rows)).view(x.shape)
        return x + self.channels(self.norm(x))


class Mixed(nn.Module):
    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.rows = sizes["batch"] * sizes["patches"]
        self.first, self.last = Linear("first", 7, sizes["size"]), Linear("last", sizes["size"], 6)
        self.blocks = nn.ModuleList(Mixer(f"m{n}", sizes) for n in range(2))

    def loss(self):
        x = self.first(torch.from_numpy(numbers(1000, self.rows, 7)))
        for block in self.blocks:
            x = block(x)
        return F.mse_loss(self.last(x), torch.from_numpy(numbers(1000, self.rows, 6)))


class Tower(nn.Module):
    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.rows, size = sizes["batch"], sizes["size"]
        self.first, self.last = Linear("first", 10, size), Linear("last", size, 6)
        blocks = range(sizes["blocks"])
        self.blocks = nn.ModuleList(
            Mlp(f"b{n}", size, sizes["hidden"], sizes["act"]) for n in blocks
        )

    def loss(self):
        x = self.first(torch.from_numpy(numbers(1000, self.rows, 10)))
        for block in self.blocks:
            x = x + block(x)
        return F.mse_loss(self.last(x), torch.from_numpy(numbers(1000, self.rows, 6)))


NETWORKS = {"decoder": Decoder, "mixer": Mixed, "tower": Tower}


def numbers(stream: int, *shape: int) -> np.ndarray:
    random = np.random.default_rng([Here.seed, stream])
    return random.standard_normal(shape).astype(np.float32)


def run(out: str, network: str, sizes: dict[str, Any]) -> None:
    """One step of a network, on data and weights of its run on one device."""
    torch.set_num_threads(1)
    Here.seed = sizes["seed"]
    model = NETWORKS[network](sizes)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    dumped(out, model, optimizer)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=os.path.abspath)
    out = parser.parse_args().out
    with open(os.path.join(out, "truth.json"), encoding="utf-8") as stream:
        truth: dict[str, dict[str, Any]] = json.load(stream)
    for network in NETWORKS:
        single = os.path.join(out, f"{network}-single", "run.json")
        if not os.path.exists(single):
            continue
        with open(single, encoding="utf-8") as stream:
            sizes = json.load(stream)["with"]
        made = f"{network}-pytorch"
        if not in_child(os.path.join(out, made), run, network, sizes):
            continue
        for name, entry in list(truth.items()):
            if entry["left"] == f"{network}-single":
                pair = name.replace(f"vs {network}-single", f"vs {made}")
                truth[pair] = {**entry, "left": made}
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as stream:
        json.dump(truth, stream, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""One training step of other PyTorch networks, dumped by msprobe, with a fault or without.

    python benchmarks/tensors_faults_networks.py OUT [NETWORK-VARIANT...] [--level L1]
        [--task tensor] [--steps 1]

A variant is ``llama-eps``: a network of this file and one of its faults, healthy changes or
``none``.  Needs torch and mindstudio-probe.  The expected culprits stand in tensors_faults.py.
The decision rule was made on the networks of tensors_faults_pytorch.py; these are to try it on
something else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

import torch
from msprobe.pytorch import PrecisionDebugger, seed_all
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.utils.checkpoint import checkpoint

BUG = "none"
"""The variant that is run, without the network's name; only the second block is ever wrong."""


def has(name: str, at: int = 1) -> bool:
    return at == 1 and name == BUG


# -- a decoder as Llama builds it ----------------------------------------------------------------

V, D, H, T, B = 160, 48, 4, 20, 3


class RmsNorm(nn.Module):
    def __init__(self, at: int, which: str) -> None:
        super().__init__()
        self.weight, self.at, self.which = nn.Parameter(torch.ones(D)), at, which

    def forward(self, x):
        here = self.which == "ffn"
        eps = 1e-2 if has("eps", self.at) and here else 1e-6
        if BUG == "fused_norm":
            return F.rms_norm(x, (D,), self.weight, eps)
        square = x.pow(2)
        if has("half_norm", self.at) and here:
            mean = square.half().mean(-1, keepdim=True).float()
        elif has("norm_axis", self.at) and here:
            mean = square.mean(1, keepdim=True)
        elif has("norm_sum", self.at) and here:
            mean = square.sum(-1, keepdim=True)
        else:
            mean = square.mean(-1, keepdim=True)
        y = x * torch.rsqrt(mean + eps)
        return y * (1 + self.weight if has("norm_one", self.at) and here else self.weight)


def rotated(x, at: int):
    half = x.shape[-1] // 2
    base = 1e3 if has("rope_base", at) else 1e4
    places = torch.arange(x.shape[-2], dtype=torch.float32)
    if has("rope_shift", at):
        places = places + 1
    angles = torch.outer(places, base ** (-torch.arange(half, dtype=torch.float32) / half))
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    if has("rope_sign", at):
        sin = -sin
    if has("rope_interleaved", at):
        a, b = x[..., ::2], x[..., 1::2]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class LlamaBlock(nn.Module):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.n1, self.n2 = RmsNorm(at, "attention"), RmsNorm(at, "ffn")
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(D, 2 * D, bias=False), nn.Linear(D, 2 * D, bias=False)
        self.down = nn.Linear(2 * D, D, bias=False)

    def attention(self, x):
        at = self.at
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, H, d // H).transpose(1, 2) for f in (self.q, self.k, self.v))
        if has("k_for_v", at):
            v = k
        q, k = rotated(q, at), k if has("no_rope_k", at) else rotated(k, at)
        scale = (d // H) ** (-0.25 if has("scale", at) else -0.5)
        mask = torch.ones(t, t, dtype=torch.bool).tril(1 if has("mask", at) else 0)
        if has("window", at):
            mask = mask.triu(-4)
        if BUG == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        elif BUG == "sdpa_causal":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        else:
            a = (q @ k.transpose(-1, -2)) * scale
            a = a.masked_fill(~mask, -10.0 if has("soft_mask", at) else float("-inf"))
            if has("half_softmax", at):
                a = torch.softmax(a.half(), -1).float()
            elif BUG == "softmax_double":
                a = torch.softmax(a.double(), -1).float()
            else:
                a = torch.softmax(a / 2 if has("temperature", at) else a, -1)
            y = a @ v
        if has("heads", at):
            return self.o(y.reshape(b, t, d))
        return self.o(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        at = self.at
        x = x + self.attention(self.n1(x))
        h = self.n2(x)
        gate, up = self.gate(h), self.up(h)
        if has("gelu_gate", at):
            gate = F.gelu(gate)
        elif has("swapped_gate", at):
            gate, up = F.silu(up), gate
        elif has("sigmoid", at):
            gate = torch.sigmoid(gate)
        else:
            gate = F.silu(gate)
        h = gate * up
        if has("clamp", at):
            h = h.clamp(-0.02, 0.02)
        if has("dropped_half", at):
            h = torch.cat((h[..., :D], torch.zeros_like(h[..., D:])), -1)
        if BUG == "split_k":
            w = self.down.weight
            y = F.linear(h[..., :D], w[:, :D]) + F.linear(h[..., D:], w[:, D:])
        elif BUG == "matmul":
            y = torch.matmul(h, self.down.weight.t())
        else:
            y = self.down(h)
        if has("half_residual", at):
            return (x.half() + y.half()).float()
        return x + (0.5 * y if has("residual_scale", at) else y)


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(V, D)
        nn.init.normal_(self.emb.weight, std=0.15)
        self.blocks = nn.ModuleList([LlamaBlock(n) for n in range(3)])
        self.norm = RmsNorm(9, "last")

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            if BUG == "recompute":
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return F.linear(self.norm(x), self.emb.weight)


def llama_loss(model):
    ids = torch.randint(0, V, (B, T + 1), generator=torch.Generator().manual_seed(5))
    x, y = ids[:, :-1], ids[:, 1:]
    if BUG == "labels":
        y = ids[:, :-1]
    if BUG == "batch":
        x = x.flip(0)
    y = y.reshape(-1).clone()
    logits = model(x).reshape(-1, V)
    if BUG == "z_loss":
        return F.cross_entropy(logits, y) + 1e-2 * logits.logsumexp(-1).pow(2).mean()
    if BUG == "ignored":
        y[::4] = -100
    return F.cross_entropy(logits, y, reduction="sum" if BUG == "loss_sum" else "mean")


# -- a convolutional network ---------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, at: int, wide: int) -> None:
        super().__init__()
        self.at = at
        self.c1 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.c2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.b1, self.b2 = nn.BatchNorm2d(wide), nn.BatchNorm2d(wide)

    def forward(self, x):
        at = self.at
        if has("padding", at):
            y = F.conv2d(F.pad(x, (1, 1, 1, 1), value=0.1), self.c1.weight)
        elif has("padding_mode", at):
            y = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), self.c1.weight)
        elif has("dilation", at):
            y = F.conv2d(x, self.c1.weight, padding=2, dilation=2)
        elif has("flipped", at):
            y = F.conv2d(x, self.c1.weight.flip(-1), padding=1)
        elif has("half_conv", at):
            w = self.c1.weight
            parts = [F.conv2d(x[:, n : n + 2], w[:, n : n + 2], padding=1).half()
                     for n in range(0, w.shape[1], 2)]  # fmt: skip
            y = sum(parts[1:], parts[0]).float()
        elif BUG == "split_channels":
            w = self.c1.weight
            n = w.shape[1] // 2
            y = F.conv2d(x[:, :n], w[:, :n], padding=1) + F.conv2d(x[:, n:], w[:, n:], padding=1)
        else:
            y = self.c1(x)
        y = F.leaky_relu(self.b1(y), 0.01) if has("leaky", at) else F.relu(self.b1(y))
        y = self.b2(self.c2(y))
        if has("after_add", at):
            return x + F.relu(y)
        return F.relu(x + y)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(n, 16) for n in range(3)])
        self.group = nn.GroupNorm(4, 16)
        self.head = nn.Linear(16 * 16, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for n, block in enumerate(self.blocks):
            x = block(x)
            if n == 0:
                if BUG == "avg_pool":
                    x = F.avg_pool2d(x, 2)
                else:
                    x = F.max_pool2d(x, 2)
        if BUG == "groups":
            x = F.group_norm(x, 8, self.group.weight, self.group.bias)
        else:
            x = self.group(x)
        x = F.adaptive_avg_pool2d(x, 4)
        if BUG == "flatten":
            x = x.permute(0, 2, 3, 1)
        return self.head(x.flatten(1))


def conv_loss(model):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(4, 3, 16, 16, generator=generator, dtype=torch.float32)
    x = x.to(torch.get_default_dtype())
    y = torch.randint(0, 10, (4,), generator=generator)
    if BUG == "normalised":
        x = x * 0.9
    if BUG == "bgr":
        x = x.flip(1)
    if BUG == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
        model.to(memory_format=torch.channels_last)
    if BUG == "eval":
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
    if BUG == "bn_eps":
        model.blocks[1].b1.eps = 1e-2
    if BUG == "momentum":
        model.blocks[1].b1.momentum = 0.5
    logits = model(x)
    if BUG == "one_hot":
        return -(F.one_hot(y, 10).float() * F.log_softmax(logits, -1)).sum(-1).mean()
    if BUG == "mse":
        return F.mse_loss(logits, F.one_hot(y, 10).float())
    return F.cross_entropy(logits, y)


# -- an encoder with PyTorch's own layers, and a regression ---------------------------------------


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(12, 32)
        self.place = nn.Parameter(torch.randn(10, 32) * 0.1)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True) for _ in range(2)]
        )
        self.gru = nn.GRU(32, 24, batch_first=True)
        self.out = nn.Linear(24, 3)

    def forward(self, x, mask):
        place = self.place.roll(1, 0) if BUG == "place" else self.place
        x = torch.tanh(self.into(x)) + place
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=mask)
        x, last = self.gru(x)
        if BUG == "last":
            return self.out(x[:, -2])
        if BUG == "abs":
            return self.out(last[0].abs())
        return self.out(last[0])


def encoder_loss(model):
    generator = torch.Generator().manual_seed(5)
    x, y = (
        torch.randn(*n, generator=generator, dtype=torch.float32) for n in ((4, 10, 12), (4, 3))
    )
    x, y = x.to(torch.get_default_dtype()), y.to(torch.get_default_dtype())
    mask = torch.arange(10)[None] >= torch.tensor([10, 8, 6, 9])[:, None]
    if BUG == "pad":
        mask = torch.arange(10)[None] > torch.tensor([10, 8, 6, 9])[:, None]
    if BUG == "ln_eps":
        model.layers[1].norm1.eps = 1e-2
    if BUG == "act":
        model.layers[1].activation = F.gelu
    if BUG == "swapped_gates":
        with torch.no_grad():
            w = model.gru.weight_hh_l0
            w.copy_(torch.cat((w[24:48], w[:24], w[48:])))
    if BUG == "xavier":
        nn.init.xavier_uniform_(model.layers[0].linear1.weight)
    found = model(x, mask)
    if BUG == "l1":
        return F.smooth_l1_loss(found, y)
    if BUG == "by_hand":
        return ((found - y) ** 2).mean()
    return F.mse_loss(found, y, reduction="sum" if BUG == "mse_sum" else "mean")


# -- running them ----------------------------------------------------------------------------------

NETWORKS = {
    "llama": (Llama, llama_loss, "adamw"),
    "conv": (ConvNet, conv_loss, "sgd"),
    "encoder": (Encoder, encoder_loss, "adam"),
}
STEPPED = ("none_step", "lr", "momentum_sgd", "nesterov", "decay", "coupled_decay", "beta2",
           "adam_eps", "no_bias_correction", "clip", "norm_only", "scaled_gradient", "unscaled",
           "no_zero", "foreach", "bf16_step", "twice", "accumulated", "ulp_step", "no_decay_bias",
           "micro_mean", "stale_moment")  # fmt: skip
"""Variants whose dump goes on through the optimizer; their reference is ``none_step``."""


def optimizer(kind: str, model: nn.Module):
    lr = 2e-3 if BUG == "lr" else 1e-3
    foreach = BUG == "foreach"
    decay = 0.0 if BUG == "decay" else 0.05
    if kind == "sgd":
        beta = 0.8 if BUG == "momentum_sgd" else 0.9
        return torch.optim.SGD(model.parameters(), lr, beta, weight_decay=decay,
                               nesterov=BUG == "nesterov", foreach=foreach)  # fmt: skip
    betas = (0.9, 0.99 if BUG == "beta2" else 0.999)
    eps = 1e-4 if BUG == "adam_eps" else 1e-8
    name = torch.optim.Adam if kind == "adam" or BUG == "coupled_decay" else torch.optim.AdamW
    groups = [{"params": list(model.parameters())}]
    if BUG == "no_decay_bias":
        small = [p for p in model.parameters() if p.ndim < 2]
        large = [p for p in model.parameters() if p.ndim >= 2]
        groups = [{"params": large}, {"params": small, "weight_decay": 0.0}]
    return name(groups, lr, betas, eps, decay, foreach=foreach)


def gradients(model: nn.Module, loss) -> None:
    scale = 1024.0 if BUG in ("unscaled", "scaled_gradient") else 1.0
    (loss * scale).backward()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is None:
                continue
            if BUG == "scaled_gradient":
                p.grad.mul_(1 / 1024.0)
            if BUG == "micro_mean":
                p.grad.mul_(0.25)
    if BUG == "clip":
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def perturbed(model: nn.Module) -> None:
    with torch.no_grad():
        if BUG in ("ulp", "ulp_step"):
            for p in model.parameters():
                p.mul_(1 + 2**-23)
        if BUG == "transposed":
            p = next(p for p in model.blocks[1].parameters() if p.ndim == 2)
            p.copy_(p.T.clone())
        if BUG == "one_weight":
            list(model.parameters())[-3].view(-1)[7] += 0.05
        if BUG == "bf16_weights":
            for p in model.parameters():
                p.copy_(p.bfloat16().float())
        if BUG == "half_head":
            list(model.parameters())[-2].mul_(0.5)


def run(out: str, name: str, level: str, task: str, steps: int) -> None:
    global BUG
    network, _, BUG = name.partition("-")
    build, loss_of, kind = NETWORKS[network]
    path = os.path.join(out, name)
    os.makedirs(path, exist_ok=True)
    seed_all(1)
    torch.set_num_threads(2 if BUG == "threads" else 1)
    torch.manual_seed(7 if BUG == "seed" else 0)
    model = build()
    perturbed(model)
    if BUG == "blas":
        torch.backends.mkldnn.enabled = False
    if BUG == "double":
        model.double()
        torch.set_default_dtype(torch.float64)
    config = {"task": task, "dump_path": path, "rank": [], "step": [], "level": level,
              "async_dump": False}  # fmt: skip
    config[task] = {"scope": [], "list": [], "data_mode": ["all"]}
    if task == "statistics":
        config[task]["summary_mode"] = "statistics"
    with open(os.path.join(path, "config.json"), "w") as stream:
        json.dump(config, stream)
    adam = optimizer(kind, model)
    if BUG in ("twice", "accumulated", "stale_moment"):  # a step before the one that is dumped
        with torch.no_grad():
            for p in model.parameters():
                adam.state[p]["step"] = torch.tensor(1.0)
    debugger = PrecisionDebugger(config_path=os.path.join(path, "config.json"))
    half = {"bf16": torch.bfloat16, "bf16_step": torch.bfloat16, "fp16": torch.float16}.get(BUG)
    losses: list[float] = []
    for _ in range(steps):
        debugger.start(model=model)
        if half is not None:
            with torch.autocast("cpu", dtype=half):
                loss = loss_of(model)
        else:
            loss = loss_of(model)
        adam.zero_grad()
        gradients(model, loss)
        if BUG not in STEPPED:
            debugger.stop()
        adam.step()
        if BUG in STEPPED:
            debugger.stop()
        debugger.step()
        losses.append(loss.item())
    with open(os.path.join(path, "loss.json"), "w") as stream:
        json.dump(losses, stream)
    print(name, losses)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--level", default="L1")
    parser.add_argument("--task", default="tensor")
    parser.add_argument("--steps", type=int, default=1)
    asked = parser.parse_args()
    for name in asked.variants:  # msprobe takes one configuration a process
        child = os.fork()
        if child == 0:
            run(asked.out, name, asked.level, asked.task, asked.steps)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

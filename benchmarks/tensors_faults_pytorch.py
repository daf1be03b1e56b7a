"""One training step of a small transformer in PyTorch, dumped by msprobe, with a fault or without.

    python benchmarks/tensors_faults_pytorch.py OUT VARIANT...

Needs torch and mindstudio-probe.  The expected culprits stand in tensors_faults.py.
"""

from __future__ import annotations

import json
import os
import sys

import torch
from msprobe.pytorch import PrecisionDebugger, seed_all
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

V, D, H, N, B, T = 256, 64, 4, 2, 4, 24
WITH_STEP = ("none_step", "gradient_scaled", "lr", "decay", "bf16_step")
"""Variants whose dump goes on through the optimizer; their reference is none_step."""


class Half(torch.autograd.Function):
    """A product of matrices that adds up in float16, as a bad kernel would."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        total = torch.zeros(*x.shape[:-1], w.shape[0], dtype=torch.float16)
        for k in range(0, w.shape[1], 4):
            total += (x[..., k : k + 4] @ w[:, k : k + 4].T).half()
        return total.float()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.flatten(0, -2).T @ x.flatten(0, -2)


class Block(nn.Module):
    def __init__(self, at: int, variant: str) -> None:
        super().__init__()
        self.at, self.variant = at, variant if at == 1 else ""
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def attention(self, x):
        is_ = self.variant.__eq__
        b, t, d = x.shape
        if variant_all == "split_qkv":
            parts = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
            q, k, v = (F.linear(x, w, c) for w, c in parts)
        elif variant_all == "reorder_qkv":
            parts = list(zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True))
            v, k, q = (F.linear(x, *parts[n]) for n in (2, 1, 0))
        else:
            q, k, v = self.qkv(x).chunk(3, -1)
        if is_("swap_qk"):
            q, v = v, q
        if is_("wrong_heads"):
            q, k, v = (z.reshape(b, t, d // H, H).permute(0, 3, 1, 2) for z in (q, k, v))
        else:
            q, k, v = (z.view(b, t, H, d // H).transpose(1, 2) for z in (q, k, v))
        a = torch.matmul(q, k.transpose(-1, -2))
        a = a / (d // H) if is_("scale") else a / (d // H) ** 0.5
        off = 2 if is_("mask") else 1
        a = a.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(off), -1e4)
        if variant_all == "softmax_parts":
            e = (a - a.max(-1, keepdim=True).values).exp()
            a = e / e.sum(-1, keepdim=True)
        else:
            a = torch.softmax(a, -2 if is_("axis") else -1)
        y = torch.matmul(a, v).transpose(1, 2).reshape(b, t, d)
        return self.o(y)

    def forward(self, x):
        is_ = self.variant.__eq__
        attended = self.attention(self.ln1(x))
        x = (
            attended
            if is_("no_residual")
            else attended + x
            if variant_all == "commuted"
            else x + attended
        )
        h = self.ln2(x)
        if is_("no_bias"):
            h = F.linear(h, self.up.weight)
        else:
            h = self.up(h)
        if is_("half_gradient"):
            h.register_hook(lambda g: g * 0.5)
        if is_("gelu"):
            h = F.gelu(h, approximate="tanh")
        elif is_("relu"):
            h = F.relu(h)
        else:
            h = F.gelu(h)
        w = self.down.weight
        if is_("half_sum"):
            h = Half.apply(h, w) + self.down.bias
        elif variant_all == "split_k":
            half = w.shape[1] // 2
            h = F.linear(h[..., :half], w[:, :half], self.down.bias) + F.linear(
                h[..., half:], w[:, half:]
            )
        elif variant_all == "double":
            h = F.linear(h.double(), w.double(), self.down.bias.double()).float()
        else:
            h = self.down(h)
        if is_("detach"):
            return x.detach() + h
        return x + h


class Model(nn.Module):
    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant = variant
        self.emb, self.pos = nn.Embedding(V, D), nn.Embedding(T + 1, D)
        self.blocks = nn.ModuleList([Block(n, variant) for n in range(N)])
        self.bn = nn.BatchNorm1d(D)
        self.ln, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        places = torch.arange(T) + (self.variant == "position")
        x = self.emb(ids) + self.pos(places)
        for block in self.blocks:
            x = block(x)
        x = self.bn(x.transpose(1, 2)).transpose(1, 2)
        return self.head(self.ln(x))


variant_all = ""


def main(out: str, variant: str) -> None:
    global variant_all
    variant_all = variant
    path = os.path.join(out, variant)
    os.makedirs(path, exist_ok=True)
    seed_all(1)
    torch.set_num_threads(2 if variant == "threads" else 1)
    torch.manual_seed(0)
    model = Model(variant)
    model.bn.eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        model.bn.running_mean.copy_(torch.randn(D, generator=generator) * 0.1)
        model.bn.running_var.copy_(torch.rand(D, generator=generator) + 0.5)
        block = model.blocks[1]
        if variant == "stale":
            model.bn.running_var.fill_(1.0)
        if variant == "transposed":
            block.o.weight.copy_(block.o.weight.T.clone())
        if variant == "initial":
            block.up.weight.mul_(1.01)
        if variant == "ulp":
            for p in model.parameters():
                p.mul_(1 + 2**-23)
        if variant == "eps":
            block.ln2.eps = 1e-2
        if variant == "eps_small":
            block.ln2.eps = 1e-3
    if variant == "blas":
        torch.backends.mkldnn.enabled = False
    ids = torch.randint(0, V, (B, T + 1), generator=generator)
    x, y = ids[:, :-1], ids[:, 1:].reshape(-1)
    if variant == "labels":
        y = ids[:, :-1].reshape(-1)
    config = {
        "task": "tensor",
        "dump_path": path,
        "rank": [],
        "step": [],
        "level": "L1",
        "async_dump": False,
        "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
    }
    with open(os.path.join(path, "config.json"), "w") as stream:
        json.dump(config, stream)
    lr, wd = (2e-3 if variant == "lr" else 1e-3), (0.0 if variant == "decay" else 0.1)
    adam = torch.optim.AdamW(model.parameters(), lr, weight_decay=wd, foreach=False)
    debugger = PrecisionDebugger(config_path=os.path.join(path, "config.json"))
    debugger.start(model=model)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=variant.startswith("bf16")):
        logits = model(x)
    extra = {"label_smoothing": 0.1} if variant == "smoothing" else {}
    if variant == "logits":
        logits = logits * 1.01
    loss = F.cross_entropy(logits.float().reshape(-1, V), y, **extra)
    loss.backward()
    if variant not in WITH_STEP:
        debugger.stop()
    if variant == "gradient_scaled":
        with torch.no_grad():
            for p in model.blocks[1].up.parameters():
                p.grad.mul_(0.5)
    adam.step()
    if variant in WITH_STEP:
        debugger.stop()
    debugger.step()
    with open(os.path.join(path, "loss.json"), "w") as stream:
        json.dump([loss.item()], stream)
    print(variant, loss.item())


if __name__ == "__main__":
    for name in sys.argv[2:]:  # msprobe takes one configuration a process
        child = os.fork()
        if child == 0:
            main(sys.argv[1], name)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)

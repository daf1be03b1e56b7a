"""Small PyTorch networks of five kinds, drawn by a seed, each with places where it can go wrong.

``site(name, at)`` says whether the fault of this run is here.  ``at`` numbers the blocks; faults
are always in the second one, so that something healthy lies before and after.
"""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.utils.checkpoint import checkpoint

FAULT = "none"
"""What is done to this run: a fault or a healthy change."""
_PLACE = 1


def site(name: str, at: int = _PLACE) -> bool:
    return at == _PLACE and name == FAULT


def lowered(x, name: str, half: torch.dtype, at: int = _PLACE):
    """Through half precision and back, which nothing but the values shows."""
    return x.to(half).to(x.dtype) if site(name, at) else x


def scaled_gradient(x, name: str, factor: float, at: int = _PLACE):
    if site(name, at) and x.requires_grad:
        x.register_hook(lambda g: g * factor)
    return x


class RmsNorm(nn.Module):
    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.at = at

    def forward(self, x):
        eps = 3e-2 if site("norm_eps", self.at) else 1e-6
        if FAULT == "fused_norm":
            return F.rms_norm(x, (x.shape[-1],), self.weight, eps)
        wide = x.float()
        y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return y.to(x.dtype) * self.weight


def attend(q, k, v, mask, at: int):
    """Attention in parts; ``mask`` is true where a query sees a key."""
    scale = q.shape[-1] ** -0.5
    if site("attention_scale", at):
        scale *= 1.05
    if site("scale_sqrt2", at):
        scale *= 2**-0.5
    if FAULT == "sdpa":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    scores = torch.matmul(q, k.transpose(-1, -2)) * scale
    if mask is not None:
        finite = FAULT == "finite_mask"
        least = torch.finfo(scores.dtype).min if finite else float("-inf")
        scores = scores.masked_fill(~mask, least)
    if FAULT == "softmax_double":
        weights = torch.softmax(scores.double(), -1).to(scores.dtype)
    elif site("softmax_fp16", at):
        weights = torch.softmax(scores.half(), -1).to(scores.dtype)
    elif site("softmax_axis", at):
        weights = torch.softmax(scores.masked_fill(torch.isinf(scores), -30.0), -2)
    else:
        weights = torch.softmax(scores, -1)
    if site("dropout", at):
        weights = F.dropout(weights, 0.1, True)
    return torch.matmul(weights, v)


def causal(t: int, at: int):
    mask = torch.ones(t, t, dtype=torch.bool).tril(1 if site("mask_shift", at) else 0)
    return mask.triu(-(t // 2)) if site("window", at) else mask


def rotated(x, at: int):
    half = x.shape[-1] // 2
    base = 5e2 if site("rope_base", at) else 1e4
    places = torch.arange(x.shape[-2], dtype=torch.float32)
    if site("rope_shift", at):
        places = places + 1
    angles = torch.outer(places, base ** (-torch.arange(half, dtype=torch.float32) / half))
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def mapped(linear: nn.Linear, x):
    """A product, in two halves of what it adds over where the run says so."""
    if FAULT != "split_k":
        return linear(x)
    cut = x.shape[-1] // 2
    halves = linear.weight[:, :cut], linear.weight[:, cut:]
    return F.linear(x[..., :cut], halves[0]) + F.linear(x[..., cut:], halves[1])


class DecoderBlock(nn.Module):
    """As Llama builds it, with grouped queries; with experts if there is a router."""

    def __init__(self, width: int, heads: int, at: int, experts: int) -> None:
        super().__init__()
        self.at, self.heads, self.groups = at, heads, heads // 2
        size = width // heads
        self.n1, self.n2 = RmsNorm(width, at), RmsNorm(width, at)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, self.groups * size, bias=False) for _ in range(2))
        self.router = nn.Linear(width, experts, bias=False) if experts else None
        count = max(1, experts)
        self.gate, self.up = (
            nn.ModuleList([nn.Linear(width, 2 * width, bias=False) for _ in range(count)])
            for _ in range(2)
        )
        self.down = nn.ModuleList([nn.Linear(2 * width, width, bias=False) for _ in range(count)])

    def attention(self, x):
        b, t, d = x.shape
        size, at = d // self.heads, self.at
        q = self.q(x).view(b, t, self.heads, size).transpose(1, 2)
        if FAULT == "reorder":
            v, k = (f(x).view(b, t, self.groups, size).transpose(1, 2) for f in (self.v, self.k))
        else:
            k, v = (f(x).view(b, t, self.groups, size).transpose(1, 2) for f in (self.k, self.v))
        q = lowered(rotated(q, at), "hidden_bf16_q", torch.bfloat16, at)
        k = rotated(k, at)
        times = self.heads // self.groups
        if site("groups", at):  # neighbouring heads take another head's keys
            k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        else:
            k, v = (y.repeat_interleave(times, 1) for y in (k, v))
        y = attend(q, k, v, causal(t, at), at)
        return mapped(self.o, y.transpose(1, 2).reshape(b, t, d))

    def expert(self, h, n: int):
        gate, up = mapped(self.gate[n], h), self.up[n](h)
        act = F.gelu(gate) if site("activation", self.at) else F.silu(gate)
        return self.down[n](scaled_gradient(act * up, "gradient_half", 0.5, self.at))

    def feed_forward(self, h):
        if self.router is None:
            return self.expert(h, 0)
        h2 = h.reshape(-1, h.shape[-1])
        logits = self.router(h2)
        if site("router_bf16", self.at):
            logits = F.linear(h2.bfloat16(), self.router.weight.bfloat16()).to(h2.dtype)
        shares = torch.softmax(logits.float(), -1)
        weights, chosen = torch.topk(shares, 1 if site("top_k", self.at) else 2, -1)
        if not site("no_renormalisation", self.at):
            weights = weights / weights.sum(-1, keepdim=True)
        weights = weights.to(h.dtype)
        total = torch.zeros_like(h2)
        for n in range(len(self.gate)):
            rows, slots = torch.where(chosen == n)
            if len(rows):
                part = self.expert(h2[rows], n) * weights[rows, slots].unsqueeze(-1)
                total = total.index_add(0, rows, part)
        return total.view_as(h)

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        if site("detach", self.at):
            return x.detach() + self.feed_forward(self.n2(x))
        y = self.feed_forward(self.n2(x))
        if site("residual_scale", self.at):
            return x + 0.97 * y
        return y if site("no_residual", self.at) else x + y


class Decoder(nn.Module):
    def __init__(self, draw: random.Random, experts: int) -> None:
        super().__init__()
        self.heads = draw.choice((4, 8))
        width = self.heads * draw.choice((8, 12))
        self.words, length, batch = draw.choice((97, 128)), draw.choice((17, 24)), 3
        self.embed = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList([DecoderBlock(width, self.heads, n, experts) for n in range(3)])
        self.norm, self.head = RmsNorm(width, 9), nn.Linear(width, self.words, bias=False)
        self.register_buffer("ids", torch.randint(0, self.words, (batch, length + 1)))

    def loss(self):
        ids, labels = self.ids[:, :-1], self.ids[:, 1:]
        if FAULT == "batch_order":
            ids = ids.flip(0)
        x = self.embed(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if FAULT == "recompute" else block(x)
        x = lowered(self.norm(x), "hidden_bf16_head", torch.bfloat16)
        return classified(self.head(x).flatten(0, 1), labels.flatten())


def classified(logits, labels):
    """Cross entropy, with what can be wrong about it."""
    if FAULT == "logits":
        logits = logits * 1.02
    if FAULT == "labels":
        labels = torch.where(torch.arange(len(labels)) % 5 < 2, labels.roll(1), labels)
    if FAULT == "loss_sum":
        return F.cross_entropy(logits.float(), labels, reduction="sum")
    if FAULT == "smoothing":
        return F.cross_entropy(logits.float(), labels, label_smoothing=0.05)
    return F.cross_entropy(logits.float(), labels)


class VitBlock(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.heads = at, heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        at = self.at
        eps = 5e-2 if site("norm_eps", at) else 1e-5
        h = F.layer_norm(x, x.shape[-1:], self.n1.weight, self.n1.bias, eps)
        b, t, d = x.shape
        maps = (self.k, self.q, self.v) if site("swapped_qk", at) else (self.q, self.k, self.v)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in maps)
        y = attend(q, k, v, None, at)
        if site("wrong_heads", at):
            x = x + self.o(y.reshape(b, t, d))
        else:
            x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        h = self.up(self.n2(x))
        h = F.gelu(h, approximate="tanh" if site("activation", at) else "none")
        h = lowered(h, "hidden_bf16_gelu", torch.bfloat16, at)
        y = self.down(scaled_gradient(h, "gradient_half", 0.5, at))
        if site("residual_scale", at):
            return x + 0.97 * y
        return y if site("no_residual", at) else x + y


class Vit(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 4))
        width = heads * draw.choice((12, 16))
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.place = nn.Parameter(0.1 * torch.randn(1, 16, width))
        self.blocks = nn.ModuleList([VitBlock(width, heads, n) for n in range(3)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)
        self.register_buffer("images", torch.randn(6, 3, 16, 16))
        self.register_buffer("labels", torch.randint(0, 10, (6,)))

    def loss(self):
        images = self.images
        if FAULT == "batch_order":
            images = images.flip(0)
        if FAULT == "normalised":
            images = images * 1.03
        x = self.patch(images).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if FAULT == "recompute" else block(x)
        x = self.norm(x)
        if FAULT == "pool":
            return classified(self.head(x[:, 0]), self.labels)
        return classified(self.head(x.mean(1)), self.labels)


class Lstm(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width = draw.choice((24, 32))
        self.words = 60
        self.embed = nn.Embedding(self.words, width)
        self.maps = nn.ModuleList([nn.Linear(2 * width, 4 * width) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, self.words)
        self.register_buffer("ids", torch.randint(0, self.words, (8, 7)))

    def loss(self):
        ids = self.ids.flip(0) if FAULT == "batch_order" else self.ids
        x = self.embed(ids[:, :-1])
        for layer, linear in enumerate(self.maps):
            h = c = torch.zeros_like(x[:, 0])
            results = []
            for step in range(x.shape[1]):
                here = layer == 1 and step >= 1
                i, f, g, o = linear(torch.cat((x[:, step], h), -1)).chunk(4, -1)
                if here and FAULT == "forget_bias":
                    f = f + 1.0
                if here and FAULT == "gate_order":
                    i, f = f, i
                g = torch.sin(g) if here and FAULT == "activation" else torch.tanh(g)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * g
                if here and FAULT == "cell_fp16":
                    c = c.half().to(x.dtype)
                if here and FAULT == "clamped":
                    c = c.clamp(-0.25, 0.25)
                h = torch.sigmoid(o) * torch.tanh(c)
                results.append(h)
            x = torch.stack(results, 1)
        x = scaled_gradient(self.norm(x), "gradient_half", 0.5)
        return classified(self.head(x).flatten(0, 1), ids[:, 1:].flatten())


class Unet(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w = draw.choice((8, 12))
        self.first = nn.Conv2d(3, w, 3, padding=1)
        self.down = nn.ModuleList([nn.Conv2d(w, 2 * w, 3, 2, 1), nn.Conv2d(2 * w, 2 * w, 3, 2, 1)])
        self.norms = nn.ModuleList([nn.GroupNorm(4, w), nn.GroupNorm(4, 2 * w)])
        self.middle = nn.Conv2d(2 * w, 2 * w, 3, padding=1)
        self.up = nn.ModuleList(
            [nn.Conv2d(4 * w, w, 3, padding=1), nn.Conv2d(2 * w, w, 3, padding=1)]
        )
        self.last = nn.Conv2d(w, 3, 1)
        self.register_buffer("images", torch.randn(2, 3, 16, 16))
        self.register_buffer("noise", torch.randn(2, 3, 16, 16))

    def loss(self):
        images = self.images.flip(0) if FAULT == "batch_order" else self.images
        if FAULT == "normalised":
            images = images * 1.03
        a = F.silu(self.norms[0](self.first(images)))
        b = F.relu(self.norms[1](self.down[0](a)))
        c = F.gelu(self.down[1](b)) if site("activation") else F.silu(self.down[1](b))
        c = scaled_gradient(c, "gradient_half", 0.5)
        if site("padding"):
            c = F.conv2d(F.pad(c, (1, 1, 1, 1), "replicate"), self.middle.weight, self.middle.bias)
        else:
            c = self.middle(c)
        c = lowered(c, "hidden_bf16_middle", torch.bfloat16)
        mode = "bilinear" if site("upsample") else "nearest"
        c = torch.cat((F.interpolate(c, scale_factor=2, mode=mode), b), 1)
        eps = 5e-2 if site("norm_eps") else 1e-5
        c = F.group_norm(self.up[0](c), 2 if site("groups") else 4, eps=eps)
        c = F.silu(c)
        if site("residual_scale"):
            a = 0.97 * a
        c = F.silu(self.up[1](torch.cat((F.interpolate(c, scale_factor=2), a), 1)))
        y = self.last(c).float()
        target = self.noise.float()
        if FAULT == "target":
            target = target * 1.05
        return F.l1_loss(y, target) if FAULT == "l1" else F.mse_loss(y, target)


NETWORKS = {
    "llama": lambda draw: Decoder(draw, 0), "moe": lambda draw: Decoder(draw, 4), "vit": Vit,
    "lstm": Lstm, "unet": Unet,
}  # fmt: skip

WEIGHTS = ("weights_1pct", "one_norm_2pct", "bias_12pct", "one_matrix", "one_element", "transposed",
           "layers_exchanged", "layers_rotated", "siblings_exchanged")  # fmt: skip
"""Faults of the checkpoint: of any network."""
CHECKPOINTS = ("weights_stale", "checkpoint_bf16", "rows_exchanged", "bias_zeroed", "one_bit")
"""Those that leave each number a likely one."""
_DECODER = (
    "mask_shift", "window", "attention_scale", "scale_sqrt2", "softmax_axis", "rope_base",
    "rope_shift", "groups", "activation", "residual_scale", "no_residual", "logits", "labels",
    "loss_sum", "smoothing", "batch_order", "norm_eps", "gradient_half", "detach", "dropout",
)  # fmt: skip
FAULTS = {
    "llama": _DECODER,
    "moe": (*_DECODER, "top_k", "no_renormalisation"),
    "vit": ("attention_scale", "scale_sqrt2", "softmax_axis", "swapped_qk", "wrong_heads",
            "activation", "residual_scale", "no_residual", "logits", "labels", "loss_sum",
            "smoothing", "batch_order", "normalised", "norm_eps", "gradient_half", "pool",
            "dropout"),
    "lstm": ("forget_bias", "gate_order", "activation", "clamped", "logits", "labels", "loss_sum",
             "smoothing", "batch_order", "gradient_half"),
    "unet": ("activation", "padding", "upsample", "groups", "norm_eps", "residual_scale", "l1",
             "target", "batch_order", "normalised", "gradient_half"),
}  # fmt: skip
LOWERED = {
    "llama": ("softmax_fp16", "hidden_bf16_q", "hidden_bf16_head"), "moe": ("router_bf16",),
    "vit": ("softmax_fp16", "hidden_bf16_gelu"), "lstm": ("cell_fp16",),
    "unet": ("hidden_bf16_middle",),
}  # fmt: skip
"""Half precision inside a run of Float32: to be listed, with nobody accused."""
HEALTHY = {
    "llama": ("none", "finite_mask", "sdpa", "fused_norm", "softmax_double", "reorder",
              "recompute", "split_k", "declared_bf16"),
    "moe": ("none", "finite_mask", "softmax_double", "reorder", "recompute"),
    "vit": ("none", "sdpa", "softmax_double", "recompute", "declared_bf16"),
    "lstm": ("none", "declared_bf16"), "unet": ("none", "declared_bf16"),
}  # fmt: skip
BACKENDS = ("double", "split", "plain")
"""Arithmetic of the run that is tried, beside that of the reference."""

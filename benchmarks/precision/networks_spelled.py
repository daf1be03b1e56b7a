"""One more network for ``runs.py``, whose calls can be spelled in many ways that mean the same.

A healthy variation writes every place of one kind in another form: a product as an einsum, a norm
or an activation in its parts, an addition in place.  Faults are in the second block.
"""

from __future__ import annotations

import math
import random

import networks
import torch
from networks import lowered, scaled_gradient, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def spelled(name: str) -> bool:
    return name == networks.FAULT


def scored(q, k):
    """Products of all queries with all keys."""
    if spelled("scores_einsum"):
        return torch.einsum("bhqd,bhkd->bhqk", q, k)
    if spelled("scores_bmm"):
        b, h, t, d = q.shape
        return torch.bmm(q.reshape(b * h, t, d), k.reshape(b * h, t, d).mT).view(b, h, t, t)
    if spelled("scores_baddbmm"):
        b, h, t, d = q.shape
        zero = torch.zeros((), dtype=q.dtype)
        flat = (y.reshape(b * h, t, d) for y in (q, k))
        return torch.baddbmm(zero, next(flat), next(flat).transpose(1, 2)).view(b, h, t, t)
    return torch.matmul(q, k.transpose(-1, -2))


class Linear(nn.Linear):
    def forward(self, x):
        if spelled("addmm"):
            flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight.t())
            return flat.view(*x.shape[:-1], -1)
        if spelled("matmul_bias"):
            return x @ self.weight.t() + self.bias
        if spelled("linear_einsum"):
            return torch.einsum("...i,oi->...o", x, self.weight) + self.bias
        return F.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    """Of rows; the second of a block takes no mean away."""

    def __init__(self, width: int, at: int, is_centred: bool) -> None:
        super().__init__()
        self.at, self.is_centred = at, is_centred
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.bias = nn.Parameter(0.1 * torch.randn(width))

    def forward(self, x):
        eps = 4e-2 if site("norm_eps", self.at) else 1e-5
        size = x.shape[-1:]
        if not self.is_centred:
            if spelled("rms_explicit"):
                wide = x.float()
                return (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()).to(
                    x.dtype) * self.weight  # fmt: skip
            return F.rms_norm(x, size, self.weight, eps)
        if site("norm_unbiased", self.at):
            wide = x.float()
            part = (wide - wide.mean(-1, keepdim=True)) * torch.rsqrt(
                wide.var(-1, keepdim=True) + eps)  # fmt: skip
            return part.to(x.dtype) * self.weight + self.bias
        if spelled("layer_norm_explicit"):
            wide = x.float()
            part = (wide - wide.mean(-1, keepdim=True)) * torch.rsqrt(
                wide.var(-1, unbiased=False, keepdim=True) + eps)  # fmt: skip
            return part.to(x.dtype) * self.weight + self.bias
        return F.layer_norm(x, size, self.weight, self.bias, eps)


def activated(x, at: int):
    if site("gelu_tanh", at):
        return F.gelu(x, approximate="tanh")
    if spelled("gelu_explicit"):
        return 0.5 * x * (1 + torch.erf(x * 2**-0.5))
    return F.gelu(x)


def gated(x, at: int):
    if site("gate_beta", at):
        return x * torch.sigmoid(1.1 * x)
    if spelled("silu_explicit"):
        return x * torch.sigmoid(x)
    return F.silu(x)


def attended(q, k, v, at: int):
    t, d = q.shape[-2:]
    factor = 1.0 / d if site("scale_inverse", at) else d**-0.5
    seen = torch.ones(t, t, dtype=torch.bool).tril()
    if site("sink_hidden", at):
        seen = seen & ((torch.arange(t) != 0) | (torch.arange(t)[:, None] == 0))
    if spelled("sdpa_causal"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = scored(q, k)
    scores = scores / math.sqrt(d) if spelled("divided") else scores * factor
    if spelled("mask_added"):
        scores = scores + torch.zeros(t, t, dtype=q.dtype).masked_fill(~seen, float("-inf"))
    elif spelled("mask_where"):
        scores = torch.where(seen, scores, float("-inf"))
    else:
        scores = scores.masked_fill(~seen, float("-inf"))
    if spelled("softmax_explicit"):
        power = torch.exp(scores - scores.amax(-1, keepdim=True))
        shares = power / power.sum(-1, keepdim=True)
    elif site("softmax_temperature", at):
        shares = torch.softmax(scores / 1.07, -1)
    else:
        shares = torch.softmax(scores, -1)
    shares = lowered(shares, "hidden_bf16_shares", torch.bfloat16, at)
    if spelled("values_einsum"):
        return torch.einsum("bhqk,bhkd->bhqd", shares, v)
    return shares @ v


class Block(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.heads = at, heads
        self.n1, self.n2 = Norm(width, at, True), Norm(width, at, False)
        self.qkv, self.o = Linear(width, 3 * width), Linear(width, width)
        self.gate, self.up, self.down = (
            Linear(width, 2 * width), Linear(width, 2 * width), Linear(2 * width, width)
        )  # fmt: skip
        self.mix = Linear(width, width)

    def heads_of(self, y):
        b, t, d = y.shape
        size = (b, t, self.heads, d // self.heads)
        if spelled("reshape_permute"):
            return y.reshape(size).permute(0, 2, 1, 3)
        if spelled("unflatten"):
            return y.unflatten(-1, size[2:]).swapaxes(1, 2).contiguous()
        return y.view(size).transpose(1, 2)

    def forward(self, x):
        at = self.at
        y = self.qkv(self.n1(x))
        if spelled("split_slices"):
            w = x.shape[-1]
            parts = y[..., :w], y[..., w : 2 * w], y[..., 2 * w :]
        elif spelled("split_call"):
            parts = torch.split(y, x.shape[-1], -1)
        else:
            parts = y.chunk(3, -1)
        if site("order_kqv", at):
            parts = parts[1], parts[0], parts[2]
        q, k, v = (self.heads_of(part.contiguous()) for part in parts)
        if site("value_shift", at):
            v = v.roll(1, 2)
        y = attended(q, k, v, at).transpose(1, 2).flatten(2)
        y = self.o(y)
        if spelled("in_place"):
            x = x.clone()
            x += y
        elif site("residual_half", at):
            x = x + 0.5 * y
        else:
            x = torch.add(x, y) if spelled("torch_add") else x + y
        h = self.n2(x)
        if site("gate_up_swapped", at):
            h = gated(self.up(h), at) * self.gate(h)
        else:
            h = gated(self.gate(h), at) * self.up(h)
        y = self.down(scaled_gradient(h, "gradient_fifth", 0.8, at))
        y = y + activated(self.mix(x), at)
        if site("clipped_gradient", at) and y.requires_grad:
            y.register_hook(lambda g: g * min(1.0, 0.5 * 1e-2 / g.norm().item()))
        return x + y


class Speller(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 4))
        width = heads * draw.choice((10, 14))
        self.words, length, batch = draw.choice((61, 83)), draw.choice((10, 13)), 4
        self.embed = nn.Parameter(torch.randn(self.words, width))
        self.place = nn.Parameter(0.3 * torch.randn(length, width))
        self.blocks = nn.ModuleList([Block(width, heads, n) for n in range(3)])
        self.norm = Norm(width, 9, True)
        self.register_buffer("ids", torch.randint(0, self.words, (batch, length + 1)))

    def embedded(self, ids):
        if spelled("indexed"):
            return self.embed[ids]
        if spelled("one_hot"):
            return F.one_hot(ids, self.words).to(self.embed.dtype) @ self.embed
        if spelled("index_select"):
            return self.embed.index_select(0, ids.flatten()).view(*ids.shape, -1)
        return F.embedding(ids, self.embed)

    def loss(self):
        ids, labels = self.ids[:, :-1], self.ids[:, 1:]
        place = self.place.flip(0) if spelled("places_flipped") else self.place
        x = self.embedded(ids) + place
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.embed)
        wide, flat = logits.flatten(0, 1).float(), labels.flatten()
        if spelled("last_left_out"):
            wide, flat = wide[:-5], flat[:-5]
        if spelled("loss_gathered"):
            picked = wide.gather(-1, flat[:, None]).squeeze(-1)
            return (torch.logsumexp(wide, -1) - picked).mean()
        if spelled("loss_summed"):
            return F.cross_entropy(wide, flat, reduction="sum") / len(flat)
        return networks.classified(wide, flat)


networks.NETWORKS.update(speller=Speller)
networks.FAULTS.update(
    speller=("norm_eps", "norm_unbiased", "gelu_tanh", "gate_beta", "scale_inverse", "sink_hidden",
             "softmax_temperature", "order_kqv", "value_shift", "residual_half", "gate_up_swapped",
             "gradient_fifth", "clipped_gradient", "places_flipped", "last_left_out", "logits",
             "labels", "smoothing"),
)  # fmt: skip
networks.LOWERED.update(speller=("hidden_bf16_shares",))
networks.HEALTHY.update(
    speller=("none", "scores_einsum", "scores_bmm", "scores_baddbmm", "addmm", "matmul_bias",
             "linear_einsum", "rms_explicit", "layer_norm_explicit", "gelu_explicit",
             "silu_explicit", "sdpa_causal", "divided", "mask_added", "mask_where",
             "softmax_explicit", "values_einsum", "reshape_permute", "unflatten", "split_slices",
             "split_call", "in_place", "torch_add", "indexed", "one_hot", "index_select",
             "loss_gathered", "loss_summed"),
)  # fmt: skip

"""Six more networks for ``runs.py`` that read sequences, built as no other one here.

An encoder and decoder with buckets of relative distance, latent attention beside experts of which
one is shared, packed documents with adapters of low rank, a recurrence of weighted keys and values,
gated recurrent units with attention, and latents that look at a long input.

    python benchmarks/precision/runs.py OUT --networks t5 latent packed wkv gru perceiver
"""

from __future__ import annotations

import math
import random

import networks
import torch
from networks import lowered, scaled_gradient, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def is_run(*names: str) -> bool:
    return networks.FAULT in names


def rms(x, weight, eps: float = 1e-6):
    """Divided by the root of the mean square."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def in_heads(x, heads: int):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def bucket_of(distance, is_causal: bool, buckets: int = 12, most: int = 20):
    """Of T5: near distances one bucket each, far ones in logarithmic steps."""
    found = torch.zeros_like(distance)
    if not is_causal:
        buckets //= 2
        found = (distance > 0).long() * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    near = buckets // 2
    spread = torch.log(distance.clamp(min=1).float() / near) / math.log(most / near)
    far = (near + (spread * (buckets - near)).long()).clamp(max=buckets - 1)
    return found + torch.where(distance < near, distance, far)


class T5Attention(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.heads, self.at = heads, at
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        with torch.no_grad():
            self.q.weight.mul_((width // heads) ** -0.5)

    def forward(self, x, source, bias, seen):
        q, k, v = (in_heads(f(y), self.heads)
                   for f, y in ((self.q, x), (self.k, source), (self.v, source)))  # fmt: skip
        if site("scores_divided", self.at):
            q = q * q.shape[-1] ** -0.5
        least = torch.finfo(q.dtype).min if is_run("mask_least") else float("-inf")
        hidden = torch.zeros(seen.shape, dtype=q.dtype).masked_fill(~seen, least)
        if site("distance_left_out", self.at):
            bias = None
        if is_run("bias_in_mask"):
            hidden = hidden if bias is None else bias + hidden
            return self.o(joined(torch.softmax(torch.matmul(q, k.mT) + hidden, -1) @ v))
        if is_run("fused_attention"):
            mask = hidden if bias is None else bias + hidden
            return self.o(joined(F.scaled_dot_product_attention(q, k, v, mask, scale=1.0)))
        scores = torch.matmul(q, k.mT)
        if bias is not None:
            scores = scores + bias
        shares = torch.softmax((scores + hidden).float(), -1).to(q.dtype)
        if site("shares_thinned", self.at):
            shares = F.dropout(shares, 0.05, True)
        return self.o(joined(torch.matmul(shares, v)))


class T5Layer(nn.Module):
    def __init__(self, width: int, heads: int, at: int, is_decoder: bool) -> None:
        super().__init__()
        self.at = at if is_decoder else at + 10
        self.own = T5Attention(width, heads, self.at)
        self.cross = T5Attention(width, heads, self.at + 20) if is_decoder else None
        self.norms = nn.ParameterList(1 + 0.1 * torch.randn(width) for _ in range(3))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, bias, seen, memory=None, real=None):
        eps = 1e-2 if site("norm_eps", self.at) else 1e-6
        h = rms(x, self.norms[0], eps)
        x = x + self.own(h, h, bias, seen)
        if self.cross is not None:
            if site("norm_of_cross_missing", self.at):
                x = x + self.cross(x, memory, None, real)
            else:
                x = x + self.cross(rms(x, self.norms[1]), memory, None, real)
        h = rms(x, self.norms[2])
        gate = self.gate(h)
        if is_run("gelu_written"):
            cube = 0.044715 * torch.pow(gate, 3.0)
            gate = 0.5 * gate * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (gate + cube)))
        else:
            gate = F.gelu(gate, approximate="tanh")
        h = lowered(gate * self.up(h), "hidden_fp16_gated", torch.float16, self.at)
        y = self.down(scaled_gradient(h, "gradient_more", 1.06, self.at))
        return x + y


class T5(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.heads = draw.choice((2, 4))
        width = self.heads * draw.choice((6, 10))
        self.words = draw.choice((71, 83))
        self.shared = nn.Embedding(self.words, width)
        self.encoder = nn.ModuleList(T5Layer(width, self.heads, n, False) for n in range(2))
        self.decoder = nn.ModuleList(T5Layer(width, self.heads, n, True) for n in range(3))
        self.far, self.back = nn.Embedding(12, self.heads), nn.Embedding(12, self.heads)
        self.norm = nn.Parameter(1 + 0.1 * torch.randn(width))
        source = torch.randint(2, self.words, (4, draw.choice((11, 14))))
        for row in range(1, 4):
            source[row, -2 * row :] = 0
        self.register_buffer("source", source)
        self.register_buffer("target", torch.randint(2, self.words, (4, draw.choice((8, 9)))))

    def bias(self, table, t: int, is_causal: bool):
        places = torch.arange(t)
        buckets = bucket_of(places[None] - places[:, None], is_causal)
        return table(buckets).permute(2, 0, 1)[None]

    def loss(self):
        real = (self.source != 0)[:, None, None]
        labels = self.target
        given = torch.cat((torch.zeros_like(labels[:, :1]), labels[:, :-1]), 1)
        if is_run("not_moved_right"):
            given = labels
        memory = self.shared(self.source)
        bias = self.bias(self.far, memory.shape[1], is_run("buckets_one_sided"))
        for layer in self.encoder:
            memory = layer(memory, bias, real)
        if is_run("encoder_detached"):
            memory = memory.detach()
        x, t = self.shared(given), given.shape[1]
        bias = self.bias(self.back, t, True)
        seen = torch.ones(t, t, dtype=torch.bool).tril()[None, None]
        if is_run("padding_read"):
            real = torch.ones_like(real)
        for layer in self.decoder:
            x = layer(x, bias, seen, memory, real)
        x = rms(x, self.norm)
        if not is_run("head_not_scaled"):
            x = x * x.shape[-1] ** -0.5
        table = self.shared.weight.detach() if is_run("head_untied") else self.shared.weight
        logits = F.linear(x, table).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def turned(x, at: int, base: float = 1e4):
    """Rotated by place; neighbours are pairs, as DeepSeek keeps them."""
    t, half = x.shape[-2], x.shape[-1] // 2
    angles = torch.outer(torch.arange(t).float(), base ** (-torch.arange(half).float() / half))
    if is_run("turned_complex"):
        pairs = torch.view_as_complex(x.float().unflatten(-1, (half, 2)).contiguous())
        spun = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(spun).flatten(-2).to(x.dtype)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if site("halves_for_neighbours", at):
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class LatentAttention(nn.Module):
    """Keys and values come out of a short latent; places are turned in parts of their own."""

    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.heads, self.at, self.plain, self.spun, self.short = heads, at, 8, 4, 12
        self.q = nn.Linear(width, heads * (self.plain + self.spun), bias=False)
        self.down = nn.Linear(width, self.short + self.spun, bias=False)
        self.norm = nn.Parameter(1 + 0.1 * torch.randn(self.short))
        self.up = nn.Linear(self.short, heads * 2 * self.plain, bias=False)
        self.o = nn.Linear(heads * self.plain, width, bias=False)

    def forward(self, x):
        at, b, t = self.at, x.shape[0], x.shape[1]
        q, q_spun = in_heads(self.q(x), self.heads).split((self.plain, self.spun), -1)
        short, k_spun = self.down(x).split((self.short, self.spun), -1)
        q_spun = q_spun if site("query_not_turned", at) else turned(q_spun, at)
        k_spun = turned(k_spun.unsqueeze(1), at)
        if not site("latent_not_normed", at):
            short = rms(short, self.norm)
        short = lowered(short, "latent_bf16", torch.bfloat16, at)
        size = self.plain if site("scale_of_plain", at) else self.plain + self.spun
        seen = torch.ones(t, t, dtype=torch.bool).tril()
        if is_run("absorbed"):
            keys, values = self.up.weight.view(self.heads, 2, self.plain, -1).unbind(1)
            scores = torch.einsum("bhtd,hdc,bsc->bhts", q, keys, short)
            scores = scores + torch.matmul(q_spun, k_spun.mT)
            shares = torch.softmax((scores * size**-0.5).masked_fill(~seen, float("-inf")), -1)
            y = torch.einsum("bhts,bsc,hdc->bhtd", shares, short, values)
            return self.o(joined(y))
        k, v = in_heads(self.up(short), self.heads).split(self.plain, -1)
        if site("value_of_keys", at):
            v = k
        q = torch.cat((q, q_spun), -1)
        k = torch.cat((k, k_spun.expand(b, self.heads, t, self.spun)), -1)
        scores = (torch.matmul(q, k.mT) * size**-0.5).masked_fill(~seen, float("-inf"))
        return self.o(joined(torch.softmax(scores, -1) @ v))


class SharedExperts(nn.Module):
    """Sigmoid shares, chosen with a bias that no share has, beside an expert for all."""

    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.at, self.count, self.width = at, 6, width
        self.router = nn.Linear(width, self.count, bias=False)
        self.register_buffer("leaning", 0.1 * torch.randn(self.count))
        self.up = nn.Parameter(torch.randn(self.count, width, 2 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(self.count, width, width) * width**-0.5)
        self.shared_up = nn.Linear(width, 2 * width, bias=False)
        self.shared_down = nn.Linear(width, width, bias=False)

    def expert(self, h, up, down):
        gate, value = (h @ up).chunk(2, -1)
        return (F.silu(gate) * value) @ down

    def forward(self, x):
        at = self.at
        h = x.flatten(0, 1)
        shares = torch.sigmoid(F.linear(h.float(), self.router.weight.float()))
        shares = lowered(shares, "shares_bf16", torch.bfloat16, at)
        leaned = shares + self.leaning.float()
        chosen = torch.topk(leaned, 2, -1).indices
        weights = (leaned if site("leaning_in_shares", at) else shares).gather(1, chosen)
        if site("softmax_of_chosen", at):
            weights = torch.softmax(weights, -1)
        else:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        weights = (weights * (2.4 if site("route_scale", at) else 2.5)).to(h.dtype)
        y = self.routed(h, chosen, weights)
        gate, value = self.shared_up(h).chunk(2, -1)
        shared = self.shared_down(F.silu(gate) * value)
        if site("shared_left_out", at):
            shared = shared * 0.0
        y = shared + y if is_run("shared_first") else y + shared
        return y.view_as(x)

    def routed(self, h, chosen, weights):
        if is_run("experts_sorted"):
            order = chosen.flatten().argsort(stable=True)
            counts = torch.bincount(chosen.flatten(), minlength=self.count).tolist()
            rows = order // 2
            parts = h[rows].split(counts)
            made = torch.cat([self.expert(p, self.up[n], self.down[n])
                              for n, p in enumerate(parts)])  # fmt: skip
            made = made * weights.flatten()[order].unsqueeze(-1)
            return torch.zeros_like(h).index_add(0, rows, made)
        if is_run("experts_dense"):
            dense = torch.zeros(len(h), self.count, dtype=h.dtype).scatter(1, chosen, weights)
            parts = [self.expert(h, self.up[n], self.down[n]) * dense[:, n : n + 1]
                     for n in range(self.count)]  # fmt: skip
            return torch.stack(parts).sum(0)
        total = torch.zeros_like(h)
        for n in range(self.count):
            rows, slots = torch.where(chosen == n)
            if site("capacity_dropped", self.at):
                rows, slots = rows[:5], slots[:5]
            if len(rows):
                part = self.expert(h[rows], self.up[n], self.down[n])
                total.index_add_(0, rows, part * weights[rows, slots, None])
        return total


class LatentBlock(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.attention = at, LatentAttention(width, heads, at)
        self.experts = SharedExperts(width, at)
        self.n1, self.n2 = (nn.Parameter(1 + 0.1 * torch.randn(width)) for _ in range(2))

    def forward(self, x):
        x = x + self.attention(rms(x, self.n1))
        if site("norm_of_other", self.at):
            return x + self.experts(rms(x, self.n1))
        return x + self.experts(rms(x, self.n2))


class Latent(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads, width, self.words = draw.choice((3, 4)), draw.choice((20, 28)), 77
        self.embed = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList(LatentBlock(width, heads, n) for n in range(3))
        self.norm = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.head = nn.Linear(width, self.words, bias=False)
        self.register_buffer("ids", torch.randint(0, self.words, (3, draw.choice((12, 15)))))

    def loss(self):
        x = self.embed(self.ids[:, :-1])
        for block in self.blocks:
            x = block(x)
        logits = self.head(rms(x, self.norm)).float()
        return F.cross_entropy(logits.flatten(0, 1), self.ids[:, 1:].flatten())


class Adapted(nn.Module):
    """A frozen product and one of low rank beside it."""

    def __init__(self, inputs: int, outputs: int, at: int, rank: int = 3) -> None:
        super().__init__()
        self.at, self.rank = at, rank
        frozen = torch.randn(outputs, inputs) * inputs**-0.5
        self.weight = nn.Parameter(frozen, requires_grad=networks.FAULT == "not_frozen")
        self.a = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.b = nn.Parameter(torch.randn(outputs, rank) * 0.2)

    def forward(self, x):
        scale = (8 if site("adapter_scale", self.at) else 6) / self.rank
        if is_run("adapter_merged"):
            return F.linear(x, self.weight + scale * (self.b @ self.a))
        if site("adapter_left_out", self.at):
            return F.linear(x, self.weight)
        return F.linear(x, self.weight) + F.linear(F.linear(x, self.a), self.b) * scale


class PackedBlock(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.heads, self.at = heads, at
        self.q, self.v = Adapted(width, width, at), Adapted(width, width, at + 10)
        self.k, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.qn, self.kn = (
            nn.Parameter(1 + 0.1 * torch.randn(width // heads)) for _ in range(2))  # fmt: skip
        self.n1, self.n2, self.n3 = (nn.RMSNorm(width, eps=1e-6) for _ in range(3))

    def forward(self, x, places, documents):
        at = self.at
        h = self.n1(x)
        q, k, v = (in_heads(f(h), self.heads) for f in (self.q, self.k, self.v))
        if site("norm_behind_turn", at):
            q, k = rms(self.spin(q, places), self.qn), rms(self.spin(k, places), self.kn)
        elif site("key_norm_of_query", at):
            q, k = self.spin(rms(q, self.qn), places), self.spin(rms(k, self.qn), places)
        else:
            q, k = self.spin(rms(q, self.qn), places), self.spin(rms(k, self.kn), places)
        y = self.attended(q, k, v, documents)
        y = self.o(joined(y))
        x = x + (y if site("norm_behind_missing", at) else self.n3(y))
        h = F.relu(self.up(self.n2(x)))
        h = h if site("square_missing", at) else h.square()
        return x + self.down(lowered(h, "squares_bf16", torch.bfloat16, at))

    def spin(self, x, places):
        half = x.shape[-1] // 2
        angles = places[..., None].float() * 1e4 ** (-torch.arange(half).float() / half)
        cos, sin = (y[:, None].to(x.dtype) for y in (angles.cos(), angles.sin()))
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def attended(self, q, k, v, documents):
        at, t = self.at, q.shape[2]
        if is_run("by_document"):
            rows = []
            for n in range(len(q)):
                _, sizes = torch.unique_consecutive(documents[n], return_counts=True)
                parts = [y[n : n + 1].split(sizes.tolist(), 2) for y in (q, k, v)]
                rows.append(torch.cat([self.capped(*part, None) for part in zip(*parts)], 2))  # noqa: B905
            return torch.cat(rows)
        seen = torch.ones(t, t, dtype=torch.bool).tril()
        if not site("documents_read_on", at):
            seen = seen & (documents[:, None, :, None] == documents[:, None, None, :])
        return self.capped(q, k, v, seen)

    def capped(self, q, k, v, seen):
        if seen is None:
            seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
        scores = torch.matmul(q, k.mT) * q.shape[-1] ** -0.5
        cap = 4.0 if site("cap_lower", self.at) else 5.0
        scores = cap * torch.tanh(scores / cap)
        if is_run("mask_least"):
            scores = torch.where(seen, scores, torch.finfo(scores.dtype).min)
        else:
            scores = scores.masked_fill(~seen, float("-inf"))
        return torch.matmul(torch.softmax(scores, -1), v)


class Packed(nn.Module):
    """Documents behind each other in a row; a loss that leaves their first words out."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 3))
        width, self.words, t = heads * draw.choice((8, 12)), 89, draw.choice((16, 18))
        self.embed = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList(PackedBlock(width, heads, n) for n in range(3))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, self.words, bias=False)
        self.register_buffer("ids", torch.randint(0, self.words, (3, t)))
        documents = torch.zeros(3, t, dtype=torch.long)
        for row in range(3):
            documents[row, 5 + row :] += 1
            documents[row, 11 + row :] += 1
        self.register_buffer("documents", documents)

    def loss(self):
        t = self.ids.shape[1]
        places = torch.arange(t).expand(3, t)
        first = torch.ones_like(self.documents, dtype=torch.bool)
        first[:, 1:] = self.documents[:, 1:] != self.documents[:, :-1]
        if not is_run("places_go_on"):  # turns both of a pair alike: healthy
            places = places - torch.where(first, places, 0).cummax(1).values
        x = self.embed(self.ids)
        if not is_run("embedding_not_scaled"):
            x = x * x.shape[-1] ** 0.5
        for block in self.blocks:
            x = block(x, places, self.documents)
        logits = self.head(self.norm(x)).float()[:, :-1].flatten(0, 1)
        labels = self.ids[:, 1:]
        if not is_run("joints_counted"):
            labels = labels.masked_fill(first[:, 1:], -100)
        labels = labels.flatten()
        if is_run("loss_of_all_places"):
            return F.cross_entropy(logits, labels, reduction="sum") / len(labels)
        if is_run("loss_by_mask"):
            kept = labels != -100
            return F.cross_entropy(logits[kept], labels[kept])
        return F.cross_entropy(logits, labels)


class TimeMix(nn.Module):
    """As RWKV does it: running weighted sums of values, each feature forgets at its own speed."""

    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.at = at
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.shares = nn.Parameter(torch.rand(5, width))
        self.speed, self.bonus = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.r, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)

    def before(self, x):
        if site("next_for_before", self.at):
            return F.pad(x[:, 1:], (0, 0, 0, 1))
        if is_run("moved_by_cat"):
            return torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1)
        return F.pad(x, (0, 0, 1, -1))

    def mix(self, x, old, n: int):
        share = self.shares[n]
        if site("shares_exchanged", self.at) and n == 1:
            share = 1 - share
        if is_run("mixed_lerp"):
            return torch.lerp(old, x, share.expand_as(x))
        return x * share + old * (1 - share)

    def weighted(self, k, v):
        """The recurrence, in Float32."""
        at, kind = self.at, v.dtype
        k, v = k.float(), v.float()
        decay, bonus = -torch.exp(self.speed.float()), self.bonus.float()
        if site("bonus_missing", at):
            bonus = torch.zeros_like(bonus)
        if is_run("whole_sum"):
            t = k.shape[1]
            places = torch.arange(t)
            apart = (places[:, None] - places[None] - 1).clamp(min=0).float()
            exponents = apart[..., None] * decay + k[:, None]
            own = (bonus + k).unsqueeze(2)
            here = torch.eye(t, dtype=torch.bool)[None, :, :, None]
            exponents = torch.where(here, own, exponents)
            later = (places[:, None] < places[None])[None, :, :, None]
            shares = torch.softmax(exponents.masked_fill(later, float("-inf")), 2)
            return (shares * v[:, None]).sum(2).to(kind)
        a = b = torch.zeros_like(k[:, 0])
        rows = []
        for step in range(k.shape[1]):
            if site("state_dropped", at) and step == k.shape[1] // 2:
                a = b = torch.zeros_like(a)
            here = torch.exp(bonus + k[:, step])
            rows.append((a + here * v[:, step]) / (b + here))
            grown = torch.exp(k[:, step])
            forget = torch.exp(decay)
            a, b = forget * a + grown * v[:, step], forget * b + grown
            a = lowered(a, "state_bf16", torch.bfloat16, at)
        return torch.stack(rows, 1).to(kind)

    def forward(self, x):
        at = self.at
        h = self.norm(x)
        old = self.before(h)
        r, k, v = (f(self.mix(h, old, n)) for n, f in enumerate((self.r, self.k, self.v)))
        y = self.weighted(k, v)
        r = F.hardsigmoid(r) if site("gate_hard", at) else torch.sigmoid(r)
        x = x + self.o(r * y)
        h = self.second(x)
        old = self.before(h)
        wide = torch.relu(self.up(self.mix(h, old, 3)))
        wide = wide if site("square_missing", at) else wide**2
        y = self.down(scaled_gradient(wide, "gradient_less", 0.93, at))
        gate = torch.sigmoid(self.gate(self.mix(h, old, 4)))
        return x + (y if site("gate_missing", at) else gate * y)


class Wkv(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width, self.words = draw.choice((20, 28)), draw.choice((61, 73))
        self.embed, self.first = nn.Embedding(self.words, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(TimeMix(width, n) for n in range(3))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, self.words, bias=False)
        self.register_buffer("ids", torch.randint(0, self.words, (4, draw.choice((9, 11)))))
        with torch.no_grad():  # a norm of what is normalised already would change nothing
            self.first.weight.add_(0.3 * torch.randn(width))

    def loss(self):
        x = self.embed(self.ids[:, :-1])
        x = x if is_run("first_norm_missing") else self.first(x)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x)).float()
        labels = self.ids[:, 1:] if not is_run("labels_of_here") else self.ids[:, :-1]
        if is_run("loss_by_gather"):
            return -torch.log_softmax(logits, -1).gather(-1, labels[..., None]).mean()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Gru(nn.Module):
    """An encoder that reads both ways, a decoder that is fed the truth and looks back."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.width, self.words = draw.choice((16, 20)), draw.choice((51, 57))
        w = self.width
        self.embed = nn.Embedding(self.words, w)
        self.into, self.kept = nn.ModuleList(), nn.ModuleList()
        for size in (w, w, 3 * w):  # forward, backward, decoder
            self.into.append(nn.Linear(size, 3 * w))
            self.kept.append(nn.Linear(w, 3 * w))
        self.join, self.query = nn.Linear(2 * w, w), nn.Linear(w, w, bias=False)
        self.keys, self.score = nn.Linear(2 * w, w), nn.Linear(w, 1, bias=False)
        self.out = nn.Linear(4 * w, self.words)
        source = torch.randint(1, self.words, (6, draw.choice((7, 8))))
        for row in range(1, 6):
            source[row, -(row // 2 + 1) :] = 0
        target = torch.randint(1, self.words, (6, 6))
        target[3:, -2:] = 0
        self.register_buffer("source", source)
        self.register_buffer("target", target)

    def cell(self, n: int, x, h):
        if is_run("cell_call"):
            into, kept = self.into[n], self.kept[n]
            return torch.gru_cell(x, h, into.weight, kept.weight, into.bias, kept.bias)
        r, z, new = self.into[n](x).chunk(3, -1)
        hr, hz, hn = self.kept[n](h).chunk(3, -1)
        decoder = n == 2
        if decoder and is_run("gates_exchanged"):
            r, z, hr, hz = z, r, hz, hr
        r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
        new = torch.tanh(new + (hn if decoder and is_run("reset_left_out") else r * hn))
        if decoder and is_run("update_turned"):
            return z * new + (1 - z) * h
        if is_run("state_lerp"):
            return torch.lerp(new, h, z)
        return (1 - z) * new + z * h

    def encoded(self, real):
        x = self.embed(self.source)
        t = x.shape[1]
        ways = []
        for n, order in enumerate((range(t), reversed(range(t)))):
            h, rows = torch.zeros_like(x[:, 0]), [None] * t
            for step in order:
                new = self.cell(n, x[:, step], h)
                here = real[:, step, None]
                if n == 1 and is_run("padding_moves_state"):
                    h = new
                else:
                    h = torch.where(here, new, h)
                rows[step] = h
            ways.append(torch.stack(rows, 1))
        if is_run("ways_exchanged"):
            ways.reverse()
        return torch.cat(ways, -1)

    def loss(self):
        real = self.source != 0
        memory = self.encoded(real)
        last = torch.cat((memory[:, -1, : self.width], memory[:, 0, self.width :]), -1)
        h = torch.tanh(self.join(last))
        if is_run("state_not_handed_on"):
            h = torch.zeros_like(h)
        keys = self.keys(memory)
        words, results = self.embed(torch.ones_like(self.target[:, 0])), []
        for step in range(self.target.shape[1]):
            score = self.score(torch.tanh(self.query(h).unsqueeze(1) + keys)).squeeze(-1)
            least = torch.finfo(score.dtype).min if is_run("mask_least") else float("-inf")
            if not (is_run("padding_seen") and step):
                score = score.masked_fill(~real, least)
            shares = torch.softmax(score, -1)
            seen = torch.bmm(shares.unsqueeze(1), memory).squeeze(1)
            if is_run("seen_summed"):
                seen = (shares.unsqueeze(-1) * memory).sum(1)
            h = self.cell(2, torch.cat((words, seen), -1), h)
            if step >= 1:
                h = lowered(h, "state_fp16", torch.float16)
            results.append(self.out(torch.cat((h, seen, words), -1)))
            fed = self.target[:, step]
            if is_run("fed_by_itself") and step == 2:
                fed = results[-1].argmax(-1)
            words = self.embed(fed)
        logits = torch.stack(results, 1).float().flatten(0, 1)
        labels = self.target.flatten()
        if is_run("padding_counted"):
            return F.cross_entropy(logits, labels)
        if is_run("masked_mean"):
            each = F.cross_entropy(logits, labels, reduction="none")
            return (each * (labels != 0)).sum() / (labels != 0).sum()
        return F.cross_entropy(logits, labels, ignore_index=0)


class Looker(nn.Module):
    """Queries of one array, keys and values of another one."""

    def __init__(self, width: int, size: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.heads = at, heads
        self.qn, self.kn, self.n2 = nn.LayerNorm(width), nn.LayerNorm(size), nn.LayerNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(size, 2 * width, bias=False)
        self.o = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x, source):
        at = self.at
        source = source if site("source_not_normed", at) else self.kn(source)
        k, v = self.kv(source).chunk(2, -1)
        if site("values_first", at):
            k, v = v, k
        q, k, v = (in_heads(y, self.heads) for y in (self.q(self.qn(x)), k, v))
        if is_run("fused_attention"):
            y = F.scaled_dot_product_attention(q, k, v)
        elif is_run("products_einsum"):
            shares = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5, -1)
            y = torch.einsum("bhqk,bhkd->bhqd", shares, v)
        else:
            scores = torch.matmul(q * q.shape[-1] ** -0.5, k.mT)
            scores = lowered(scores, "scores_bf16", torch.bfloat16, at)
            y = torch.matmul(torch.softmax(scores * (1.1 if site("sharper", at) else 1), -1), v)
        y = self.o(joined(y))
        x = y if site("latents_replaced", at) else x + y
        h, gate = self.up(self.n2(x)).chunk(2, -1)
        if site("gate_of_other_half", at):
            h, gate = gate, h
        return x + self.down(h * F.gelu(gate))


class Perceiver(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 4))
        width, self.bands = heads * draw.choice((6, 8)), 4
        side = draw.choice((6, 7))
        size = 3 + 2 * (2 * self.bands + 1)
        self.latents = nn.Parameter(0.5 * torch.randn(5, width))
        self.look = nn.ModuleList(Looker(width, size, heads, n) for n in range(2))
        self.think = nn.ModuleList(Looker(width, width, heads, n + 10) for n in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 9)
        self.register_buffer("pictures", torch.randn(5, side, side, 3))
        self.register_buffer("labels", torch.randint(0, 9, (5,)))

    def placed(self):
        """Pictures with sines and cosines of their places."""
        line = torch.linspace(-1, 1, self.pictures.shape[1])
        places = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1)
        top = 8.0 if is_run("frequency_top") else 10.0
        speed = torch.linspace(1.0, top / 2, self.bands)
        angles = places[..., None] * speed * (1.0 if is_run("pi_left_out") else math.pi)
        waves = torch.cat((angles.sin(), angles.cos(), places[..., None]), -1).flatten(-2)
        waves = waves.to(self.pictures.dtype).expand(*self.pictures.shape[:3], -1)
        pictures = self.pictures
        if is_run("pictures_turned"):
            pictures = pictures.transpose(1, 2)
        return torch.cat((pictures, waves), -1).flatten(1, 2)

    def loss(self):
        source = self.placed()
        x = self.latents.expand(len(source), -1, -1)
        if is_run("latents_repeated"):
            x = self.latents.unsqueeze(0).repeat(len(source), 1, 1)
        for n, (look, think) in enumerate(zip(self.look, self.think, strict=True)):
            x = look(x, source)
            x = think(x, x)
            if n == 0 and is_run("second_not_learned"):
                x = x.detach()
        x = self.norm(x).amax(1) if is_run("largest_for_mean") else self.norm(x).mean(1)
        labels = (self.labels + 1) % 9 if is_run("labels_one_more") else self.labels
        return F.cross_entropy(self.head(x).float(), labels)


networks.NETWORKS.update(
    t5=T5, latent=Latent, packed=Packed, wkv=Wkv, gru=Gru, perceiver=Perceiver,
)  # fmt: skip
networks.FAULTS.update(
    t5=("scores_divided", "distance_left_out", "shares_thinned", "norm_eps", "head_untied",
        "norm_of_cross_missing", "gradient_more", "not_moved_right", "buckets_one_sided",
        "encoder_detached", "padding_read", "head_not_scaled"),
    latent=("halves_for_neighbours", "query_not_turned", "latent_not_normed", "scale_of_plain",
            "value_of_keys", "leaning_in_shares", "softmax_of_chosen", "route_scale",
            "shared_left_out", "capacity_dropped", "norm_of_other"),
    packed=("adapter_scale", "adapter_left_out", "not_frozen", "norm_behind_turn",
            "key_norm_of_query", "norm_behind_missing", "square_missing", "documents_read_on",
            "cap_lower", "embedding_not_scaled", "joints_counted",
            "loss_of_all_places"),
    wkv=("next_for_before", "shares_exchanged", "bonus_missing", "state_dropped", "gate_hard",
         "square_missing", "gradient_less", "gate_missing", "first_norm_missing",
         "labels_of_here"),
    gru=("gates_exchanged", "reset_left_out", "update_turned", "padding_moves_state",
         "ways_exchanged", "state_not_handed_on", "padding_seen", "fed_by_itself",
         "padding_counted"),
    perceiver=("source_not_normed", "values_first", "sharper", "latents_replaced",
               "gate_of_other_half", "frequency_top", "pi_left_out", "pictures_turned",
               "second_not_learned", "largest_for_mean", "labels_one_more"),
)  # fmt: skip
networks.LOWERED.update(
    t5=("hidden_fp16_gated",), latent=("latent_bf16", "shares_bf16"), packed=("squares_bf16",),
    wkv=("state_bf16",), gru=("state_fp16",), perceiver=("scores_bf16",),
)  # fmt: skip
networks.HEALTHY.update(
    t5=("none", "mask_least", "bias_in_mask", "fused_attention", "gelu_written"),
    latent=("none", "turned_complex", "absorbed", "shared_first", "experts_sorted",
            "experts_dense"),
    packed=("none", "adapter_merged", "by_document", "mask_least", "loss_by_mask",
            "places_go_on"),
    wkv=("none", "moved_by_cat", "mixed_lerp", "whole_sum", "loss_by_gather"),
    gru=("none", "cell_call", "state_lerp", "mask_least", "seen_summed", "masked_mean"),
    perceiver=("none", "fused_attention", "products_einsum", "latents_repeated"),
)  # fmt: skip

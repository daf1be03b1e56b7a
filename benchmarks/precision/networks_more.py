"""More networks for ``runs.py``: an encoder and decoder, two towers, a scan of states.

They were written when ``networks.py`` had been mended on, so that the first figures on them say
something.  Faults are in the second block, as there.
"""

from __future__ import annotations

import random

import networks
import torch
from networks import lowered, scaled_gradient, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.utils.checkpoint import checkpoint


def slopes(heads: int, at: int):
    """Of ALiBi: how much each head dislikes distance; no powers of two, which no type rounds."""
    each = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads - 0.3)
    return each * 1.1 if site("alibi_slope", at) else each


class Attention(nn.Module):
    """Queries of one sequence, keys and values of another; queries and keys are normalised."""

    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.heads, self.at = heads, at
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.qn, self.kn = nn.LayerNorm(width // heads), nn.LayerNorm(width // heads)

    def forward(self, x, source, seen, bias):
        at = self.at
        b, t, d = x.shape
        parts = [(self.q, x), (self.k, source), (self.v, source)]
        if networks.FAULT == "order_vkq":
            q, k, v = reversed([f(y) for f, y in reversed(parts)])
        else:
            q, k, v = (f(y) for f, y in parts)
        q, k, v = (y.view(b, y.shape[1], self.heads, -1).transpose(1, 2) for y in (q, k, v))
        q = self.qn(q)
        if not site("key_norm_missing", at):
            k = self.kn(k)
        factor = (d // self.heads) ** -0.5
        if networks.FAULT == "einsum":
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * factor
        elif networks.FAULT == "scaled_before":
            scores = (q * factor) @ k.transpose(-1, -2)
        else:
            scores = q @ k.transpose(-1, -2) * factor
        if bias is not None:
            scores = scores + lowered(bias, "alibi_bf16", torch.bfloat16, at).to(scores.dtype)
        if site("soft_cap", at):
            scores = 20 * torch.tanh(scores / 20)
        if networks.FAULT == "additive_mask":
            scores = scores + torch.zeros_like(scores).masked_fill(~seen, float("-inf"))
        elif networks.FAULT == "where_mask":
            scores = torch.where(seen, scores, torch.finfo(scores.dtype).min)
        else:
            scores = scores.masked_fill(~seen, float("-inf"))
        y = torch.softmax(scores, -1) @ v
        return self.o(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    """Of an encoder, or of a decoder if it looks across."""

    def __init__(self, width: int, heads: int, at: int, is_decoder: bool) -> None:
        super().__init__()
        self.at, self.is_decoder = at, is_decoder
        self.own = Attention(width, heads, at)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(width) for _ in range(3))
        self.across = Attention(width, heads, at if is_decoder else 9) if is_decoder else None
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.scale = nn.Parameter(0.5 + 0.1 * torch.randn(width))

    def forward(self, x, memory, seen, across, bias):
        at = self.at if self.is_decoder else 9
        h = self.n1(x)
        x = x + self.own(h, h, seen, bias)
        if self.across is not None:
            if site("cross_from_self", at):
                memory = x[:, : memory.shape[1]]
                across = across[..., : memory.shape[1]]
            if site("pad_mask", at):
                across = torch.ones_like(across)
            x = x + self.across(self.n2(x), memory, across, None)
        h = self.up(x if site("norm_missing", at) else self.n3(x))
        if site("quick_gelu", at):
            h = h * torch.sigmoid(1.702 * h)
        elif site("relu", at):
            h = F.relu(h)
        else:
            h = F.relu(h).square()
        h = lowered(h, "hidden_fp16_square", torch.float16, at)
        scale = self.scale * 1.02 if site("layer_scale", at) else self.scale
        y = self.down(scaled_gradient(h, "gradient_tenth", 0.9, at)) * scale
        return x + y


class Seq2seq(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.heads = draw.choice((2, 4))
        width = self.heads * draw.choice((12, 16))
        words, self.pad = draw.choice((71, 90)), 0
        self.embed = nn.Embedding(words, width)
        with torch.no_grad():
            self.embed.weight.mul_(width**-0.5)
        self.encoder = nn.ModuleList([Layer(width, self.heads, n, False) for n in range(2)])
        self.decoder = nn.ModuleList([Layer(width, self.heads, n, True) for n in range(3)])
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(0.02 * torch.randn(words))
        batch, size = 4, draw.choice((11, 14))
        source = torch.randint(1, words, (batch, size))
        for row, length in enumerate(draw.choices(range(size // 2, size), k=batch)):
            source[row, length:] = self.pad
        target = torch.randint(1, words, (batch, size + 2))
        target[1, -4:] = target[2, -2:] = self.pad
        self.register_buffer("source", source)
        self.register_buffer("target", target)

    def embedded(self, ids):
        factor = self.embed.embedding_dim**0.5
        return self.embed(ids) * (factor * 1.02 if networks.FAULT == "embedding_scale" else factor)

    def loss(self):
        source = self.source.flip(0) if networks.FAULT == "source_order" else self.source
        ids, labels = self.target[:, :-1], self.target[:, 1:]
        seen = (source != self.pad)[:, None, None]
        memory, x = self.embedded(source), self.embedded(ids)
        for layer in self.encoder:
            memory = layer(memory, None, seen, None, None)
        t = ids.shape[1]
        places = torch.arange(t)
        causal = places[:, None] >= places + (1 if networks.FAULT == "mask_strict" else 0)
        causal = causal | torch.eye(t, dtype=torch.bool) if networks.FAULT != "mask_strict" else (
            causal | (places == 0))  # fmt: skip
        for n, layer in enumerate(self.decoder):
            distance = (places - places[:, None]).to(x.dtype)
            if site("alibi_sign", n):
                distance = -distance
            bias = slopes(self.heads, n).to(x.dtype)[:, None, None] * distance
            asked = (memory, causal, seen, bias)
            again = networks.FAULT == "recompute"
            x = checkpoint(layer, x, *asked, use_reentrant=False) if again else layer(x, *asked)
        x = self.norm(x)
        if networks.FAULT == "fused_bias":
            logits = F.linear(x, self.embed.weight, self.bias)
        elif networks.FAULT == "bias_missing":
            logits = F.linear(x, self.embed.weight)
        else:
            logits = F.linear(x, self.embed.weight) + self.bias
        logits = lowered(logits, "hidden_bf16_logits", torch.bfloat16)
        return self.judged(logits.flatten(0, 1), labels.flatten())

    def judged(self, logits, labels):
        wide = logits.float()
        if networks.FAULT == "pad_counted":
            return F.cross_entropy(wide, labels)
        if networks.FAULT == "z_loss":
            squared = wide.logsumexp(-1).square().mean()
            return F.cross_entropy(wide, labels, ignore_index=self.pad) + 1e-3 * squared
        if networks.FAULT == "nll":
            return F.nll_loss(F.log_softmax(wide, -1), labels, ignore_index=self.pad)
        if networks.FAULT == "label_shift":
            labels = labels.roll(1)
        return F.cross_entropy(wide, labels, ignore_index=self.pad)


class Towers(nn.Module):
    """Images and texts, whose vectors have to meet."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w = draw.choice((8, 12))
        self.first = nn.Conv2d(3, w, 3, padding=1)
        self.b1, self.b2 = nn.BatchNorm2d(w), nn.BatchNorm2d(2 * w)
        self.second = nn.Conv2d(w, 2 * w, 3, padding=1)
        self.squeeze, self.excite = nn.Linear(2 * w, w), nn.Linear(w, 2 * w)
        self.image = nn.Linear(2 * w, 24)
        self.embed = nn.Embedding(50, 3 * w)
        self.mix = nn.ModuleList([nn.Linear(3 * w, 3 * w) for _ in range(2)])
        self.text = nn.Linear(3 * w, 24)
        self.temperature = nn.Parameter(torch.tensor(2.3))
        count, size = draw.choice((6, 8)), 9
        self.register_buffer("images", torch.randn(count, 3, 12, 12))
        words = torch.randint(1, 50, (count, size))
        for row in range(count):
            words[row, draw.randrange(4, size) :] = 0
        self.register_buffer("words", words)

    def seen(self):
        images = self.images
        if networks.FAULT == "channels":
            images = images.flip(1)
        if networks.FAULT == "channels_last":
            images = images.contiguous(memory_format=torch.channels_last)
        x = self.first(images)
        eps = 5e-2 if networks.FAULT == "batch_eps" else 1e-5
        training = networks.FAULT != "batch_eval"
        x = F.batch_norm(x, self.b1.running_mean, self.b1.running_var, self.b1.weight,
                         self.b1.bias, training, 0.1, eps)  # fmt: skip
        x = F.leaky_relu(x, 0.02) if networks.FAULT == "leaky" else F.relu(x)
        x = F.avg_pool2d(x, 2) if networks.FAULT == "average" else F.max_pool2d(x, 2)
        x = lowered(self.b2(self.second(x)), "hidden_bf16_conv", torch.bfloat16)
        share = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        if networks.FAULT == "gate_hard":
            share = F.hardsigmoid(torch.logit(share.float())).to(x.dtype)
        x = F.hardswish(x * share[..., None, None])
        return self.image(x.amax((2, 3)) if networks.FAULT == "global_max" else x.mean((2, 3)))

    def read(self):
        x = self.embed(self.words)
        for n, linear in enumerate(self.mix):
            h = linear(x)
            h = F.elu(h, 1.1) if site("elu_alpha", n) else F.elu(h)
            x = x + scaled_gradient(h, "gradient_tenth", 0.9, n)
        real = (self.words != 0).to(x.dtype)[..., None]
        if networks.FAULT == "pad_mean":
            return self.text(x.mean(1))
        return self.text((x * real).sum(1) / real.sum(1))

    def loss(self):
        a, b = self.seen(), self.read()
        if networks.FAULT != "one_normalised":
            a = F.normalize(a, dim=-1)
        b = F.normalize(b, dim=-1) if networks.FAULT != "by_hand" else (
            b / b.norm(dim=-1, keepdim=True).clamp_min(1e-12))  # fmt: skip
        scores = (a @ b.T) * self.temperature.exp()
        if networks.FAULT == "temperature":
            scores = scores * 1.03
        wide = scores.float()
        here = torch.arange(len(wide))
        if networks.FAULT == "one_sided":
            return F.cross_entropy(wide, here)
        labels = here.roll(1) if networks.FAULT == "pairs_shifted" else here
        return (F.cross_entropy(wide, labels) + F.cross_entropy(wide.T, labels)) / 2


class ScanBlock(nn.Module):
    """A selective state space: what is kept of a sequence decays as the input says."""

    def __init__(self, width: int, states: int, at: int) -> None:
        super().__init__()
        self.at, self.states = at, states
        self.norm = networks.RmsNorm(width, at)
        self.into, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.conv = nn.Conv1d(width, width, 3, groups=width)
        self.delta = nn.Linear(width, width)
        self.bc = nn.Linear(width, 2 * states)
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, states + 1).repeat(width, 1)))
        self.skip = nn.Parameter(torch.ones(width) + 0.1 * torch.randn(width))

    def forward(self, x):
        at = self.at
        h, gate = self.into(self.norm(x)).chunk(2, -1)
        left = 1 if site("conv_shift", at) else 2
        h = self.conv(F.pad(h.transpose(1, 2), (left, 2 - left))).transpose(1, 2)
        h = F.silu(h)
        delta = self.delta(h)
        delta = delta.exp() if site("delta_exp", at) else F.softplus(delta)
        b, c = self.bc(h).chunk(2, -1)
        if site("states_swapped", at):
            b, c = c, b
        a = -torch.exp(self.decay * (1.05 if site("decay", at) else 1.0))
        state = torch.zeros(x.shape[0], x.shape[2], self.states, dtype=x.dtype)
        made = []
        for t in range(x.shape[1]):
            if networks.FAULT == "scan_einsum":
                new = torch.einsum("bd,bd,bn->bdn", delta[:, t], h[:, t], b[:, t])
            else:
                new = (delta[:, t] * h[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
            state = torch.exp(delta[:, t].unsqueeze(-1) * a) * state + new
            state = lowered(state, "state_fp16", torch.float16, at)
            made.append((state * c[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(made, 1)
        if not site("skip_missing", at):
            y = y + self.skip * h
        gate = torch.sigmoid(gate) if site("gate_sigmoid", at) else F.silu(gate)
        y = self.out(scaled_gradient(y * gate, "gradient_tenth", 0.9, at))
        return x + (y * 0.98 if site("residual_scale", at) else y)


class Scan(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width, words = draw.choice((24, 32)), draw.choice((53, 64))
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([ScanBlock(width, 4, n) for n in range(3)])
        self.norm, self.head = networks.RmsNorm(width, 9), nn.Linear(width, words, bias=False)
        self.register_buffer("ids", torch.randint(0, words, (5, 8)))

    def loss(self):
        ids, labels = self.ids[:, :-1], self.ids[:, 1:]
        if networks.FAULT == "batch_order":
            ids = ids.flip(0)
        x = self.embed(ids)
        for block in self.blocks:
            again = networks.FAULT == "recompute"
            x = checkpoint(block, x, use_reentrant=False) if again else block(x)
        return networks.classified(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


networks.NETWORKS.update(seq2seq=Seq2seq, towers=Towers, scan=Scan)
networks.FAULTS.update(
    seq2seq=("alibi_slope", "alibi_sign", "key_norm_missing", "soft_cap", "cross_from_self",
             "pad_mask", "norm_missing", "quick_gelu", "relu", "layer_scale", "gradient_tenth",
             "embedding_scale", "source_order", "mask_strict", "bias_missing", "pad_counted",
             "z_loss", "label_shift"),
    towers=("channels", "batch_eps", "batch_eval", "leaky", "average", "gate_hard", "global_max",
            "elu_alpha", "gradient_tenth", "pad_mean", "one_normalised", "temperature",
            "one_sided", "pairs_shifted"),
    scan=("conv_shift", "delta_exp", "states_swapped", "decay", "skip_missing", "gate_sigmoid",
          "gradient_tenth", "residual_scale", "batch_order", "logits", "labels", "norm_eps"),
)  # fmt: skip
networks.LOWERED.update(
    seq2seq=("alibi_bf16", "hidden_fp16_square", "hidden_bf16_logits"),
    towers=("hidden_bf16_conv",), scan=("state_fp16",),
)  # fmt: skip
networks.HEALTHY.update(
    seq2seq=("none", "order_vkq", "einsum", "scaled_before", "additive_mask", "where_mask",
             "recompute", "fused_bias", "nll"),
    towers=("none", "channels_last", "by_hand"), scan=("none", "scan_einsum", "recompute"),
)  # fmt: skip

"""A network for ``runs.py`` of small functions, each of which has two or three usual forms.

Where ``networks_spelled.py`` writes what a transformer is made of in other calls, this one does so
with arithmetic: sums with a product in them, roots and their inverses, squares, clamps, running
sums, shifted products and losses by hand.  Faults are in the second block, and change a number or a
function.
"""

from __future__ import annotations

import random

import networks
import torch
from networks import scaled_gradient, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def spelled(name: str) -> bool:
    return name == networks.FAULT


def unit_length(x, at: int):
    """Rows of length 1."""
    if site("length_eps", at):
        return x / (x.pow(2).sum(-1, keepdim=True) + 0.05).sqrt()
    if spelled("norm_function"):
        return F.normalize(x, dim=-1)
    if spelled("norm_rsqrt"):
        return x * torch.rsqrt(torch.sum(x * x, -1, True))
    if spelled("norm_vector"):
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    if spelled("norm_power"):
        return x * x.square().sum(-1, keepdim=True) ** -0.5
    return x / x.pow(2).sum(-1, keepdim=True).sqrt()


def mixed(x, y, weight, at: int):
    """Between two tensors, by a weight of each element."""
    if site("mix_swapped", at):
        x, y = y, x
    if spelled("mix_lerp"):
        return torch.lerp(x, y, weight)
    if spelled("mix_shares"):
        return (1 - weight) * x + weight * y
    if spelled("mix_addcmul"):
        return torch.addcmul(x, y - x, weight)
    return x + weight * (y - x)


def half_added(x, y, at: int):
    """A residual of which half is added."""
    part = 0.45 if site("part_added", at) else 0.5
    if spelled("added_alpha"):
        return torch.add(x, y, alpha=part)
    if spelled("added_in_place"):
        return x.clone().add_(y, alpha=part)
    if spelled("added_divided"):
        return x + y / (1 / part)
    return x + part * y


def positive(x, at: int):
    if site("floor_moved", at):
        return x.clamp(min=0.02)
    if spelled("positive_clamp"):
        return x.clamp(min=0)
    if spelled("positive_maximum"):
        return torch.maximum(x, torch.zeros((), dtype=x.dtype))
    if spelled("positive_where"):
        return torch.where(x > 0, x, torch.zeros_like(x))
    return F.relu(x)


def scaled(x, divisor, at: int):
    """Divided by a positive parameter."""
    if site("divisor_squared", at):
        return x / divisor.square()
    if spelled("divided_reciprocal"):
        return x * divisor.reciprocal()
    if spelled("divided_power"):
        return x * divisor**-1.0
    if spelled("divided_call"):
        return torch.div(x, divisor)
    return x / divisor


def gated(x, at: int):
    """The first half of the features, opened by the second."""
    a, b = x.chunk(2, -1)
    if site("gate_halves", at):
        a, b = b, a
    if spelled("gate_glu"):
        return F.glu(x, -1)
    if spelled("gate_tanh"):
        return a * (0.5 * torch.tanh(0.5 * b) + 0.5)
    if spelled("gate_parts"):
        return a / (1 + torch.exp(-b))
    return a * torch.sigmoid(b)


def running(x, at: int):
    """The mean of all rows up to each."""
    count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    if site("count_from_zero", at):
        count = count + 1
    if spelled("running_product"):
        return (torch.ones(len(count), len(count), dtype=x.dtype).tril() / count) @ x
    if spelled("running_loop"):
        total, rows = torch.zeros_like(x[:, 0]), []
        for row in x.unbind(1):
            total = total + row
            rows.append(total)
        return torch.stack(rows, 1) / count
    return torch.cumsum(x, 1) / count


class Shifted(nn.Module):
    """A causal convolution of each feature."""

    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.at, self.weight = at, nn.Parameter(0.5 * torch.randn(width, 1, 3))

    def forward(self, x):
        weight = self.weight.flip(-1) if site("taps_reversed", self.at) else self.weight
        width, size = x.shape[-1], x.shape[1]
        if spelled("taps_summed"):
            wide = F.pad(x, (0, 0, 2, 0))
            return sum(wide[:, n : n + size] * weight[:, 0, n] for n in range(3))
        if spelled("taps_unfolded"):
            return torch.einsum(
                "btdk,dk->btd", F.pad(x, (0, 0, 2, 0)).unfold(1, 3, 1), weight[:, 0]
            )
        return F.conv1d(F.pad(x.mT, (2, 0)), weight, groups=width).mT


class Block(nn.Module):
    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.at, self.shift = at, Shifted(width, at)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.weight = nn.Parameter(torch.rand(width))
        self.divisor = nn.Parameter(0.8 + 0.4 * torch.rand(width))

    def forward(self, x):
        at = self.at
        h = unit_length(self.shift(x), at) * x.shape[-1] ** 0.5
        x = mixed(x, h, self.weight, at)
        x = half_added(x, running(x, at), at)
        h = gated(self.up(scaled(x, self.divisor, at)), at)
        h = scaled_gradient(positive(h, at), "gradient_less", 0.94, at)
        return x + self.down(h)


class Idioms(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width, self.words = draw.choice((24, 32)), draw.choice((43, 58))
        self.embed = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList([Block(width, n) for n in range(3)])
        self.head = nn.Linear(width, self.words)
        self.register_buffer("ids", torch.randint(self.words, (4, draw.choice((9, 13)))))

    def loss(self):
        x = self.embed(self.ids)
        for block in self.blocks:
            x = block(x)
        wanted = F.one_hot(self.ids.roll(-1, 1), self.words).to(torch.float32)
        logits = self.head(x).float()
        if networks.FAULT == "weights_of_classes":
            return F.binary_cross_entropy_with_logits(logits, wanted, torch.tensor(1.1))
        if spelled("loss_softplus"):
            return (F.softplus(logits) - logits * wanted).mean()
        if spelled("loss_sigmoid"):
            return F.binary_cross_entropy(torch.sigmoid(logits), wanted)
        return F.binary_cross_entropy_with_logits(logits, wanted)


networks.NETWORKS.update(idioms=Idioms)
networks.FAULTS.update(
    idioms=("length_eps", "mix_swapped", "part_added", "floor_moved", "divisor_squared",
            "gate_halves", "count_from_zero", "taps_reversed", "gradient_less",
            "weights_of_classes"),
)  # fmt: skip
networks.LOWERED.update(idioms=())
networks.HEALTHY.update(
    idioms=("norm_function", "norm_rsqrt", "norm_vector", "norm_power", "mix_lerp", "mix_shares",
            "mix_addcmul", "added_alpha", "added_in_place", "added_divided", "positive_clamp",
            "positive_maximum", "positive_where", "divided_reciprocal", "divided_power",
            "divided_call", "gate_glu", "gate_tanh", "gate_parts", "running_product",
            "running_loop", "taps_summed", "taps_unfolded", "loss_softplus", "loss_sigmoid"),
)  # fmt: skip

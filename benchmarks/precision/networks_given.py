"""One more network for ``runs.py``: what is given to it beside data, and what only looks given.

Random masks come in as arguments, as a run that has to be repeated draws them before the step.  The
targets of its losses are activations: of a teacher, of patches that are normalised, of codes.
"""

from __future__ import annotations

import random

import networks
import torch
from networks import scaled_gradient, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def is_run(name: str) -> bool:
    return name == networks.FAULT


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.heads = at, heads
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, hidden=None, kept=None):
        b, t, d = x.shape
        parts = self.qkv(self.norm(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(-1, -2) * (d // self.heads) ** -0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -1e4)
        shares = torch.softmax(scores, -1)
        x = x + self.out((shares @ parts[2]).transpose(1, 2).reshape(b, t, d))
        h = F.gelu(self.up(self.second(x)))
        if kept is not None:
            h = h * kept
        return x + self.down(scaled_gradient(h, "gradient_less", 0.92, self.at))


class Distilled(nn.Module):
    """A student that learns from a teacher, from patches that were masked, and from its codes."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 4))
        width, self.size = heads * draw.choice((8, 12)), draw.choice((10, 14))
        self.first = nn.Linear(self.size, width)
        self.layers = nn.ModuleList([Layer(width, heads, n) for n in range(3)])
        self.teacher = nn.ModuleList([Layer(width, heads, -1) for n in range(2)])
        self.toward, self.back = nn.Linear(width, width), nn.Linear(width, self.size)
        self.code = nn.Linear(width, 6)
        length = draw.choice((9, 12))
        self.register_buffer("patches", torch.randn(4, length, self.size).cumsum(-1))
        for n in range(3):
            hidden = torch.rand(4, 1, length, length) < 0.1
            kept = (torch.rand(4, length, 2 * width) < 0.9).float() / 0.9
            if site("one_kept", n):
                kept[0, 0] = 0
            hidden = hidden.flip(0) if site("other_hidden", n) else hidden
            kept = kept.flip(0) if site("other_kept", n) else kept
            self.register_buffer(f"hidden{n}", hidden)
            self.register_buffer(f"kept{n}", kept)
        goal = torch.randn(4, 6)
        if is_run("goal_one"):
            goal[0, 0] += 1e-3
        self.register_buffer("goal", goal + 0.01 if is_run("goal_moved") else goal)

    def loss(self):
        x = self.first(self.patches)
        with torch.no_grad():
            taught = x
            for layer in self.teacher:
                taught = layer(taught)
            if is_run("teacher_scaled"):
                taught = taught * 1.03
        for n, layer in enumerate(self.layers):
            x = layer(x, getattr(self, f"hidden{n}"), getattr(self, f"kept{n}"))
        patches = self.patches.float()
        spread = patches.var(-1, keepdim=True)
        goal = (patches - patches.mean(-1, keepdim=True)) / (spread + 1e-6) ** 0.5
        if is_run("not_normalised"):
            goal = patches
        near = F.mse_loss(self.toward(x).float()[:, 1:], taught.float()[:, :-1])
        made = F.smooth_l1_loss(self.back(x).float(), goal)
        code = torch.softmax(self.code(x.mean(1)).float(), -1)
        sharp = code.detach() ** 2
        sharp /= sharp.sum(-1, keepdim=True)
        codes = F.kl_div(code.log(), sharp, reduction="batchmean")
        return near + made + codes + F.mse_loss(self.code(x[:, 0]).float(), self.goal.float())


networks.NETWORKS.update(distilled=Distilled)
networks.FAULTS.update(
    distilled=("other_hidden", "other_kept", "one_kept", "teacher_scaled", "not_normalised",
               "goal_moved", "goal_one", "gradient_less"),
)  # fmt: skip
networks.LOWERED.update(distilled=())
networks.HEALTHY.update(distilled=("none",))

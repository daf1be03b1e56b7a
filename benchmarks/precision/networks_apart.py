"""Four more networks for ``runs.py``, from fields that no other one here comes from.

A normalizing flow with its log determinants, a recommender of bags and pairwise products, a vector
quantizer with a straight-through gradient and a mixer in the frequency domain.  Faults are in the
second block where there are blocks; healthy variations spell a place in another form.

    python benchmarks/precision/runs.py OUT --networks flow recommender quantizer spectral
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


class Coupling(nn.Module):
    """A step of the flow: rescaled, mixed by a triangular matrix, one half moved by the other."""

    def __init__(self, size: int, hidden: int, at: int) -> None:
        super().__init__()
        self.at, self.half = at, size // 2
        self.log_scale = nn.Parameter(0.1 * torch.randn(size))
        self.shift = nn.Parameter(0.1 * torch.randn(size))
        self.lower = nn.Parameter(0.2 * torch.randn(size, size))
        self.diagonal = nn.Parameter(1 + 0.1 * torch.randn(size))
        self.up, self.middle = nn.Linear(self.half, hidden), nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.down = nn.Linear(hidden, 2 * (size - self.half))

    def conditioned(self, a):
        h = F.softplus(self.up(a))
        h = self.norm(self.middle(h)) + h
        h = F.mish(h) if is_run("mish_call") else h * torch.tanh(F.softplus(h))
        return self.down(scaled_gradient(h, "gradient_less", 0.92, self.at)).chunk(2, -1)

    def forward(self, x):
        at = self.at
        scale = torch.exp(self.log_scale)
        x = (x + self.shift) / scale if site("inverse_scale", at) else (x + self.shift) * scale
        strict = self.lower.tril(0 if site("diagonal_kept", at) else -1)
        matrix = strict + torch.diag(self.diagonal)
        if is_run("matrix_embedded"):
            matrix = strict + torch.diag_embed(self.diagonal)
        x = F.linear(x, matrix)
        a, b = x[:, : self.half], x[:, self.half :]
        bound, move = self.conditioned(a)
        bound = 2 * torch.tanh(bound / (1.9 if site("bound_moved", at) else 2))
        bound = lowered(bound, "hidden_bf16_bound", torch.bfloat16, at)
        if is_run("multiplied_add"):
            b = torch.addcmul(move, b, bound.exp())
        elif site("moved_before", at):
            b = (b + move) * bound.exp()
        else:
            b = b * bound.exp() + move
        volume = self.log_scale.sum() + self.diagonal.abs().log().sum()
        if site("volume_without_mix", at):
            volume = self.log_scale.sum()
        log_det = bound.sum(-1) + volume
        y = torch.cat((a, b), -1)
        if is_run("rolled_call"):
            return y.roll(3, -1), log_det
        return torch.cat((y[:, -3:], y[:, :-3]), -1), log_det


class Flow(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        size, hidden = draw.choice((10, 14)), draw.choice((20, 28))
        self.steps = nn.ModuleList([Coupling(size, hidden, n) for n in range(4)])
        self.register_buffer("points", torch.randn(draw.choice((9, 16)), size))

    def loss(self):
        x = self.points.flip(0) if is_run("batch_order") else self.points
        total = torch.zeros(len(x), dtype=x.dtype)
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        wide = x.float()
        if is_run("density_call"):
            density = torch.distributions.Normal(0.0, 1.0).log_prob(wide).sum(-1)
        else:
            density = (-0.5 * wide.square() - 0.5 * math.log(2 * math.pi)).sum(-1)
        if is_run("density_without_half"):
            density = (-wide.square()).sum(-1)
        total = total.float()
        if is_run("determinant_subtracted"):
            total = -total
        return -(density + total).mean()


class Crossed(nn.Module):
    """A cross layer: the first features times what a matrix makes of the present ones."""

    def __init__(self, size: int, at: int) -> None:
        super().__init__()
        self.at, self.weight = at, nn.Linear(size, size)

    def forward(self, first, x):
        y = self.weight(x)
        if site("crossed_with_itself", self.at):
            return x * y + x
        if is_run("crossed_addcmul"):
            return torch.addcmul(x, first, y)
        return first * y + x


class Recommender(nn.Module):
    """Bags of categories and numbers; all pairs are multiplied."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        size, self.fields = draw.choice((8, 12)), draw.choice((4, 5))
        self.tables = nn.ModuleList([nn.Embedding(30 + 7 * n, size) for n in range(self.fields)])
        self.dense = nn.ModuleList([nn.Linear(6, 20), nn.Linear(20, size)])
        width = size + (self.fields + 1) * self.fields // 2
        self.crossed = nn.ModuleList([Crossed(width, n) for n in range(3)])
        self.norm = nn.BatchNorm1d(width)
        self.deep = nn.Linear(width, 24)
        self.slope = nn.Parameter(torch.full((24,), 0.2) + 0.02 * torch.randn(24))
        self.last = nn.Linear(24, 1)
        batch, most = draw.choice((10, 13)), 5
        self.register_buffer("numbers", torch.rand(batch, 6) * 20)
        for n in range(self.fields):
            self.register_buffer(f"bags{n}", torch.randint(0, 30 + 7 * n, (batch, most)))
            self.register_buffer(f"shares{n}", torch.rand(batch, most) + 0.2)
        self.register_buffer("clicked", (torch.rand(batch) < 0.4).long())

    def bag(self, n: int):
        ids, shares = getattr(self, f"bags{n}"), getattr(self, f"shares{n}")
        if site("ids_shifted", n):
            ids = (ids + 1) % self.tables[n].num_embeddings
        if site("shares_left_out", n):
            shares = torch.ones_like(shares)
        if site("bag_mean", n):
            shares = shares / shares.shape[1]
        if is_run("bag_by_hand"):
            return (self.tables[n](ids) * shares[..., None]).sum(1)
        return F.embedding_bag(ids, self.tables[n].weight, mode="sum", per_sample_weights=shares)

    def loss(self):
        numbers = torch.log1p(self.numbers)
        if is_run("numbers_not_logged"):
            numbers = torch.sqrt(self.numbers)
        x = F.relu(self.dense[0](numbers))
        x = self.dense[1](x)
        parts = torch.stack((x, *(self.bag(n) for n in range(self.fields))), 1)
        pairs = torch.einsum("bif,bjf->bij", parts, parts) if is_run("pairs_einsum") else (
            torch.bmm(parts, parts.mT))  # fmt: skip
        rows, columns = torch.triu_indices(self.fields + 1, self.fields + 1, 1)
        if is_run("pairs_lower"):
            rows, columns = columns, rows  # they are symmetric
        if is_run("own_pairs"):
            columns = (columns + 1).clamp(max=self.fields)
        flat = torch.cat((x, pairs[:, rows, columns]), 1)
        flat = lowered(flat, "hidden_bf16_pairs", torch.bfloat16)
        momentum, eps = 0.1, 4e-2 if is_run("batch_eps") else 1e-5
        flat = F.batch_norm(flat, None, None, self.norm.weight, self.norm.bias, True, momentum, eps)
        y = flat
        for layer in self.crossed:
            y = layer(flat, y)
        h = self.deep(y)
        h = torch.where(h > 0, h, self.slope * h) if is_run("prelu_by_hand") else (
            F.prelu(h, self.slope))  # fmt: skip
        score = self.last(scaled_gradient(h, "gradient_less", 0.92)).squeeze(-1).float()
        clicked = self.clicked.float()
        if is_run("clicks_smoothed"):
            clicked = clicked * 0.9 + 0.05
        if is_run("focal"):
            chance = torch.sigmoid(score)
            away = torch.where(clicked > 0.5, 1 - chance, chance)
            each = F.binary_cross_entropy_with_logits(score, clicked, reduction="none")
            return (away * each).mean()
        return F.binary_cross_entropy_with_logits(score, clicked)


class Quantizer(nn.Module):
    """A signal in codes: each vector is replaced by its nearest one; the gradient passes by."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w, self.codes = draw.choice((12, 16)), draw.choice((20, 28))
        self.first, self.second = nn.Conv1d(2, w, 5, 2, 2), nn.Conv1d(w, w, 3, 2, 1)
        self.residual = nn.ModuleList([nn.Conv1d(w, w, 3, padding=1 + n, dilation=1 + n)
                                       for n in range(3)])  # fmt: skip
        self.norms = nn.ModuleList([nn.InstanceNorm1d(w, affine=True) for _ in range(3)])
        self.book = nn.Parameter(torch.randn(self.codes, w))
        self.back = nn.ConvTranspose1d(w, w, 4, 2, 1)
        self.last = nn.ConvTranspose1d(w, 2, 4, 2, 1)
        self.register_buffer("signal", torch.randn(4, 2, draw.choice((24, 32))).cumsum(-1) * 0.3)

    def blocks(self, x):
        for n, (conv, norm) in enumerate(zip(self.residual, self.norms, strict=True)):
            h = F.instance_norm(x, weight=norm.weight, bias=norm.bias,
                                eps=6e-2 if site("norm_eps", n) else 1e-5)  # fmt: skip
            h = F.selu(h) if site("selu", n) else F.elu(h)
            if site("dilation_missing", n):
                h = F.conv1d(h, conv.weight, conv.bias, padding=1)
            else:
                h = conv(h)
            x = x + (0.9 * h if site("residual_scale", n) else h)
        return x

    def nearest(self, z):
        """Of rows, without a gradient."""
        with torch.no_grad():
            if is_run("distance_call"):
                far = torch.cdist(z.float(), self.book.float())
            else:
                wide, book = z.float(), self.book.float()
                far = wide.square().sum(1, keepdim=True) - 2 * wide @ book.T + book.square().sum(1)
            if is_run("dot_for_distance"):
                far = -(z.float() @ self.book.float().T)
            return far.argmin(1)

    def loss(self):
        signal = self.signal.flip(-1) if is_run("signal_reversed") else self.signal
        x = self.blocks(self.second(F.elu(self.first(signal))))
        rows = x.transpose(1, 2).reshape(-1, x.shape[1])
        codes = self.nearest(rows)
        if is_run("codes_shifted"):
            codes = (codes + 1) % self.codes
        near = F.embedding(codes, self.book)
        if is_run("codes_as_one_hot"):
            near = F.one_hot(codes, self.codes).to(rows.dtype) @ self.book
        if is_run("not_straight"):
            through = near
        else:
            through = rows + (near - rows).detach()
        through = lowered(through, "hidden_fp16_codes", torch.float16)
        y = through.view(x.shape[0], -1, x.shape[1]).transpose(1, 2)
        y = self.last(F.elu(scaled_gradient(self.back(y), "gradient_less", 0.92)))
        wide, goal = y.float(), signal.float()
        made = F.smooth_l1_loss(wide, goal, beta=0.5 if is_run("huber_beta") else 1.0)
        share = 0.3 if is_run("commitment_more") else 0.25
        kept = F.mse_loss(rows.float(), near.detach().float())
        if is_run("squares_by_hand"):
            kept = (rows.float() - near.detach().float()).square().mean()
        return made + share * kept + F.mse_loss(near.float(), rows.detach().float())


class Waves(nn.Module):
    """A block that filters each feature by its frequencies."""

    def __init__(self, width: int, length: int, at: int) -> None:
        super().__init__()
        self.at = at
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.real = nn.Parameter(1 + 0.2 * torch.randn(length // 2 + 1, width))
        self.imaginary = nn.Parameter(0.2 * torch.randn(length // 2 + 1, width))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x):
        at = self.at
        h = self.norm(x).float()
        norm = "ortho" if site("ortho_once", at) else "backward"
        waves = torch.fft.rfft(h, dim=1, norm=norm)
        if is_run("waves_whole"):
            waves = torch.fft.fft(h, dim=1, norm=norm)[:, : h.shape[1] // 2 + 1]
        imaginary = self.imaginary.float()
        if site("conjugated", at):
            imaginary = -imaginary
        filters = torch.complex(self.real.float(), imaginary)
        if site("low_pass", at):
            waves = torch.cat((waves[:, :-1], torch.zeros_like(waves[:, -1:])), 1)
        if is_run("product_in_parts"):
            a, b = waves.real, waves.imag
            c, d = filters.real, filters.imag
            waves = torch.complex(a * c - b * d, a * d + b * c)
        else:
            waves = waves * filters
        h = torch.fft.irfft(waves, n=h.shape[1], dim=1).to(x.dtype)
        x = x + lowered(h, "hidden_bf16_waves", torch.bfloat16, at)
        a, b = self.up(self.second(x)).chunk(2, -1)
        b = F.softsign(b) if site("softsign", at) else torch.tanh(b)
        h = scaled_gradient(a * b, "gradient_less", 0.92, at)
        y = self.down(h)
        return x + (1.04 * y if site("residual_more", at) else y)


class Spectral(nn.Module):
    """Forecasts a series; each is standardized by its own mean and deviation."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        width, length, self.ahead = draw.choice((12, 20)), draw.choice((16, 20)), 6
        self.into = nn.Linear(3, width)
        self.blocks = nn.ModuleList([Waves(width, length, n) for n in range(3)])
        self.forecast, self.out = nn.Linear(length, self.ahead), nn.Linear(width, 3)
        series = torch.randn(5, length + self.ahead, 3).cumsum(1) * 0.5
        self.register_buffer("past", series[:, :length].clone())
        self.register_buffer("future", series[:, length:].clone())

    def loss(self):
        past = self.past
        mean = past.mean(1, keepdim=True)
        spread = past.std(1, keepdim=True, unbiased=not is_run("spread_biased"))
        if is_run("spread_by_hand"):
            spread = ((past - mean).square().sum(1, keepdim=True) / (past.shape[1] - 1)).sqrt()
        x = self.into((past - mean) / (spread + 1e-5))
        for block in self.blocks:
            x = block(x)
        if is_run("last_rows"):
            y = self.out(x[:, -self.ahead :])
        else:
            y = self.out(self.forecast(x.transpose(1, 2)).transpose(1, 2))
        y = y * spread + (past[:, -1:] if is_run("last_for_mean") else mean)
        wide, goal = y.float(), self.future.float()
        if is_run("quantile"):
            away = goal - wide
            return torch.maximum(0.6 * away, -0.4 * away).mean()
        if is_run("absolute_by_hand"):
            return (wide - goal).abs().mean()
        return F.l1_loss(wide, goal)


networks.NETWORKS.update(flow=Flow, recommender=Recommender, quantizer=Quantizer, spectral=Spectral)
networks.FAULTS.update(
    flow=("inverse_scale", "diagonal_kept", "bound_moved", "moved_before", "volume_without_mix",
          "density_without_half", "determinant_subtracted", "batch_order", "gradient_less"),
    recommender=("crossed_with_itself", "ids_shifted", "shares_left_out", "bag_mean",
                 "numbers_not_logged", "own_pairs", "batch_eps", "clicks_smoothed", "focal",
                 "gradient_less"),
    quantizer=("norm_eps", "selu", "dilation_missing", "residual_scale", "dot_for_distance",
               "signal_reversed", "codes_shifted", "not_straight", "huber_beta",
               "commitment_more", "gradient_less"),
    spectral=("ortho_once", "conjugated", "low_pass", "softsign", "residual_more", "last_rows",
              "last_for_mean", "spread_biased", "quantile", "gradient_less"),
)  # fmt: skip
networks.LOWERED.update(
    flow=("hidden_bf16_bound",), recommender=("hidden_bf16_pairs",),
    quantizer=("hidden_fp16_codes",), spectral=("hidden_bf16_waves",),
)  # fmt: skip
networks.HEALTHY.update(
    flow=("none", "mish_call", "matrix_embedded", "multiplied_add", "rolled_call", "density_call"),
    recommender=("none", "bag_by_hand", "pairs_einsum", "pairs_lower", "crossed_addcmul",
                 "prelu_by_hand"),
    quantizer=("none", "distance_call", "codes_as_one_hot", "squares_by_hand"),
    spectral=("none", "waves_whole", "product_in_parts", "spread_by_hand", "absolute_by_hand"),
)  # fmt: skip

"""A second network for ``parallel_runs.py``: words are cut over tensor parallel ranks as well.

    python benchmarks/precision/parallel_words.py OUT --seed 5 --levels mix --only tp2 tp2_dp2

As Megatron does it, each rank looks up the words that it holds and gives zeros for the others,
which are added up; the loss is computed of logits that stay cut.  ``--whole-words`` leaves the
table whole and gathers the logits.  Blocks compute attention and MLP beside each other, with one
reduction for both; queries share keys and values, turned by place.  Arguments, truth.json and
judge are those of ``parallel_runs.py``.
"""

from __future__ import annotations

import random
import sys

import parallel_runs as runs
import torch
import torch.distributed as dist
from parallel_runs import CopyIn, Cut, GatherColumns, Here, ReduceOut, Rms, Style, site
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

GROUPS = 4
"""Of keys and values."""
WHOLE = "--whole-words"


def is_cut() -> bool:
    return Here.cut.tp > 1 and WHOLE not in sys.argv


def at_last(name: str, at: int = -1) -> bool:
    """Whether a fault of the last rank is here; of the network where no layer is given."""
    is_here = Here.fault == name if at < 0 else site(name, at)
    return is_here and Here.rank == Here.cut.size - 1


def part(whole: torch.Tensor, axis: int, number: int | None = None) -> nn.Parameter:
    number = Here.tp if number is None else number
    return nn.Parameter(whole.detach().chunk(Here.cut.tp, axis)[number].clone())


class Words(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.each = words // Here.cut.tp
        whole = torch.randn(words, width)
        self.weight = part(whole, 0) if is_cut() else nn.Parameter(whole)

    def forward(self, ids):
        if not is_cut():
            return F.embedding(ids, self.weight)
        start = Here.tp * self.each
        if Here.fault == "words_moved" and Here.tp == Here.cut.tp - 1:
            start += 1
        outside = (ids < start) | (ids >= start + self.each)
        x = F.embedding((ids - start).masked_fill(outside, 0), self.weight)
        x = x.masked_fill(outside.unsqueeze(-1), 0.0)
        return x if Here.fault == "words_not_summed" else ReduceOut.apply(x, -1)


class Block(nn.Module):
    """Attention and MLP of one norm, added up together."""

    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.size, self.norm = at, width // heads, Rms(width)
        keys = GROUPS * self.size
        sizes = {"q": (width, width), "k": (width, keys), "v": (width, keys), "o": (width, width),
                 "gate": (width, 2 * width), "up": (width, 2 * width),
                 "down": (2 * width, width)}  # fmt: skip
        for name, (inputs, outputs) in sizes.items():
            linear = nn.Linear(inputs, outputs, bias=False)
            wrong = name == "v" and site("wrong_slice", at) and Here.tp == Here.cut.tp - 1
            axis = int(name in ("o", "down"))
            linear.weight = part(linear.weight, axis, 0 if wrong else None)
            setattr(self, name, linear)
        if at_last("other_replica", at):
            with torch.no_grad():
                self.norm.weight.mul_(1.02)

    def turned(self, x, is_late: bool):
        t, half = x.shape[-2], x.shape[-1] // 2
        places = torch.arange(t).float() + float(is_late)
        angles = torch.outer(places, 1e4 ** (-torch.arange(half).float() / half))
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def attention(self, h):
        b, t, _ = h.shape
        q, k, v = (f(h).view(b, t, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        q = self.turned(q, at_last("places_one_rank", self.at))
        k = self.turned(k, False)
        k, v = (y.repeat_interleave(q.shape[1] // k.shape[1], 1) for y in (k, v))
        late = at_last("mask_one_rank", self.at)
        seen = torch.ones(t, t, dtype=torch.bool).tril(1 if late else 0)
        least = torch.finfo(q.dtype).min if Here.fault == "mask_least" else float("-inf")
        scores = (torch.matmul(q, k.mT) * self.size**-0.5).masked_fill(~seen, least)
        shares = torch.softmax(scores.float(), -1).to(q.dtype)
        return self.o(torch.matmul(shares, v).transpose(1, 2).flatten(2))

    def feed_forward(self, h):
        gate, up = self.gate(h), self.up(h)
        if at_last("scale_one_rank", self.at):
            up = up * 1.05
        if site("scale_inside", self.at):
            gate = gate * 1.04
        y = F.silu(gate) * up
        if at_last("rounded_on_one_rank", self.at):
            y = y.to(torch.float8_e5m2 if Here.is_half else torch.bfloat16).to(y.dtype)
        return self.down(y)

    def forward(self, x):
        h = self.norm(x)
        if Here.cut.tp == 1:
            return x + (self.attention(h) + self.feed_forward(h))
        h = CopyIn.apply(h, self.at)
        a, m = self.attention(h), self.feed_forward(h)
        if Here.fault == "two_sums":
            return x + (ReduceOut.apply(a, -1) + ReduceOut.apply(m, -1))
        if site("one_sum_missing", self.at):
            return x + (ReduceOut.apply(a, -1) + m)
        return x + ReduceOut.apply(a + m, self.at)


class CutLoss(torch.autograd.Function):
    """Cross entropy of logits of which each rank has columns."""

    @staticmethod
    def forward(ctx, logits, labels):
        most = logits.max(-1, keepdim=True).values
        dist.all_reduce(most, op=dist.ReduceOp.MAX, group=Here.tp_group)
        logits, start = logits - most, Here.tp * logits.shape[-1]
        outside = (labels < start) | (labels >= start + logits.shape[-1])
        own = (labels - start).masked_fill(outside, 0)
        hit = logits.gather(-1, own.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        dist.all_reduce(hit, group=Here.tp_group)
        powers = logits.exp()
        total = powers.sum(-1)
        if Here.fault != "normaliser_not_summed":
            dist.all_reduce(total, group=Here.tp_group)
        ctx.save_for_backward(powers / total.unsqueeze(-1), own, outside)
        return (total.log() - hit).mean()

    @staticmethod
    def backward(ctx, g):
        shares, own, outside = ctx.saved_tensors
        d = shares.clone()
        d.scatter_add_(-1, own.unsqueeze(-1), -(~outside).to(d.dtype).unsqueeze(-1))
        return d * (g / own.numel()), None


class Decoder(nn.Module):
    def __init__(self, width: int, heads: int, words: int, layers: int) -> None:
        super().__init__()
        self.embed = Words(words, width)
        self.layers = nn.ModuleList(Block(width, heads, n) for n in range(layers - 1))
        self.norm, self.head = Rms(width), nn.Linear(width, words, bias=False)
        self.head.weight = part(self.head.weight, 0)

    def loss(self, ids, labels):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        x, labels = self.norm(x), labels.flatten()
        if Here.cut.tp == 1:
            return F.cross_entropy(self.head(x).float().flatten(0, 1), labels)
        logits = self.head(CopyIn.apply(x, -1)).float()
        if is_cut() and Here.fault != "loss_gathered":
            return CutLoss.apply(logits.flatten(0, 1), labels)
        return F.cross_entropy(GatherColumns.apply(logits).flatten(0, 1), labels)


def step(model: Decoder, ids, labels, shape) -> None:
    """Forward and backward of the one batch, then gradients over data parallel ranks."""
    wanted = labels[0].roll(1, 1) if at_last("labels_one_rank") else labels[0]
    loss = model.loss(ids[0], wanted)
    loss.backward()
    if Here.cut.dp > 1:
        for p in model.parameters():
            dist.all_reduce(p.grad, group=Here.dp_group)
            p.grad.div_(Here.cut.dp)


def axes(style: Style) -> dict[str, int]:
    """The axis that tensor parallel ranks cut of each parameter."""
    rows = {f"layers.*.{name}.weight": 1 for name in ("o", "down")}
    columns = {f"layers.*.{name}.weight": 0 for name in ("q", "k", "v", "gate", "up")}
    table = {} if WHOLE in sys.argv else {"embed.weight": 0}
    return rows | columns | table | {"head.weight": 0}


def drawn(seed: int) -> Style:
    draw = random.Random(seed)
    return Style(True, True, False, True, 8, 8 * draw.choice((4, 6)), draw.choice((60, 84)),
                 draw.choice((11, 13)), 1)  # fmt: skip


ONE_RANK = ("scale_one_rank", "other_replica", "places_one_rank", "mask_one_rank",
            "rounded_on_one_rank", "labels_one_rank", "wrong_data")  # fmt: skip


def at_fault(fault: str, cut: Cut) -> list[int]:
    """Ranks that have to be named; empty where it is all of them."""
    if fault in ONE_RANK:
        return [cut.size - 1]
    if fault in ("wrong_slice", "words_moved"):
        return [r for r in range(cut.size) if r % cut.tp == cut.tp - 1]
    return []


def main() -> int:
    runs.Decoder, runs.step, runs.axes, runs.at_fault = Decoder, step, axes, at_fault
    Style.drawn = staticmethod(drawn)
    runs.LAYOUTS = (Cut(tp=2), Cut(dp=2), Cut(tp=2, dp=2), Cut(tp=4))
    of_ranks = ("scale_inside", "scale_one_rank", "places_one_rank", "mask_one_rank",
                "rounded_on_one_rank", "labels_one_rank", "wrong_data",
                "other_replica")  # fmt: skip
    of_parts = ("mean_for_sum", "one_sum_missing", "wrong_slice", "missing_backward_sum")
    of_words = () if WHOLE in sys.argv else (
        "words_moved", "words_not_summed", "normaliser_not_summed")  # fmt: skip
    runs.FAULTS = dict.fromkeys(of_ranks, lambda c, s: True) | dict.fromkeys(
        of_parts + of_words, lambda c, s: c.tp > 1
    )
    orders = ("two_sums", "mask_least") + (() if WHOLE in sys.argv else ("loss_gathered",))
    runs.HEALTHY = dict.fromkeys(orders, lambda c, s: c.tp > 1)
    return runs.main()


if __name__ == "__main__":
    sys.exit(main())

"""Run one small decoder on one process and cut over several, dumped by msprobe itself.

    python benchmarks/precision/parallel_runs.py OUT --seed 3 --levels mix L1

makes for each layout (tensor, data, sequence and pipeline parallel, micro-batches) healthy runs,
which may add a bias in another order, and runs with a planted fault, all really executed (gloo).
The seed draws the network too: its norm, a gated or plain MLP, biases, a cut head, sizes.
``truth.json`` says of each run what it is to be compared with, the layouts of both, which ranks are
at fault, and around which operators the fault enters: the first tensor of each rank that differs by
a bit from the healthy run of the same layout.  Needs torch and mindstudio-probe;
``parallel_judge.py`` asks irtool.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger
from runs import entry
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


@dataclass(frozen=True)
class Cut:
    """How a run is cut; tensor parallel ranks are neighbours, pipeline stages furthest apart."""

    tp: int = 1
    dp: int = 1
    pp: int = 1
    micro: int = 1
    sequence: bool = False

    @property
    def size(self) -> int:
        return self.tp * self.dp * self.pp

    def named(self) -> str:
        words = [f"{k}{v}" for k, v in (("tp", self.tp), ("dp", self.dp), ("pp", self.pp),
                                        ("micro", self.micro)) if v > 1]  # fmt: skip
        return "_".join([*words, *(["sp"] * self.sequence)]) or "single"


@dataclass(frozen=True)
class Style:
    """What network is run, as the seed draws it.

    Attributes:
        is_rms, is_gated, has_bias: of its norms, its MLP and its products.
        is_head_cut: tensor parallel ranks hold parts of the last product, and gather its result.
        heads, width, words, length: sizes.
        at: the layer where faults are planted.
    """

    is_rms: bool
    is_gated: bool
    has_bias: bool
    is_head_cut: bool
    heads: int
    width: int
    words: int
    length: int
    at: int

    @classmethod
    def drawn(cls, seed: int) -> Style:
        draw = random.Random(seed)
        heads = draw.choice((4, 8))
        return cls(draw.random() < 0.5, draw.random() < 0.5, draw.random() < 0.75,
                   draw.random() < 0.5, heads, heads * draw.choice((4, 6, 8)),
                   draw.choice((60, 84)), draw.choice((12, 16)), draw.choice((0, 1)))  # fmt: skip


class Here:
    """The process that this is."""

    rank = tp = dp = pp = 0
    cut = Cut()
    fault = "none"
    tp_group = dp_group = None
    at = 1
    is_half = False
    style = Style.drawn(0)


def site(name: str, at: int, rank: int | None = None) -> bool:
    return Here.fault == name and at == Here.at and (rank is None or Here.rank == rank)


class CopyIn(torch.autograd.Function):
    """Into the region where tensor parallel ranks compute parts."""

    @staticmethod
    def forward(ctx, x, at):
        ctx.at = at
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        if not site("missing_backward_sum", ctx.at):
            dist.all_reduce(g, group=Here.tp_group)
        return g, None


class ReduceOut(torch.autograd.Function):
    """Out of it: partial sums are added up."""

    @staticmethod
    def forward(ctx, x, at):
        if site("missing_sum", at):
            return x
        dist.all_reduce(x, group=Here.tp_group)
        return x / Here.cut.tp if site("mean_for_sum", at) else x

    @staticmethod
    def backward(ctx, g):
        return g, None


class GatherIn(torch.autograd.Function):
    """Sequence parallel: parts of the sequence are gathered before a product."""

    @staticmethod
    def forward(ctx, x, is_cut):
        ctx.is_cut = is_cut
        parts = [torch.empty_like(x) for _ in range(Here.cut.tp)]
        dist.all_gather(parts, x.contiguous(), group=Here.tp_group)
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, g):
        if ctx.is_cut:  # what reads it is: each rank has a term of the gradient
            dist.all_reduce(g := g.contiguous(), group=Here.tp_group)
        return g.chunk(Here.cut.tp, 1)[Here.tp], None


class ScatterOut(torch.autograd.Function):
    """Sequence parallel: partial sums are added up, and each rank keeps its part."""

    @staticmethod
    def forward(ctx, x, at):
        if not site("missing_sum", at):
            dist.all_reduce(x, group=Here.tp_group)
        if site("mean_for_sum", at):
            x = x / Here.cut.tp
        return x.chunk(Here.cut.tp, 1)[Here.tp].contiguous()

    @staticmethod
    def backward(ctx, g):
        parts = [torch.empty_like(g) for _ in range(Here.cut.tp)]
        dist.all_gather(parts, g.contiguous(), group=Here.tp_group)
        return torch.cat(parts, 1), None


class GatherColumns(torch.autograd.Function):
    """Columns that ranks computed are put beside each other."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(Here.cut.tp)]
        dist.all_gather(parts, x.contiguous(), group=Here.tp_group)
        return torch.cat(parts, -1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(Here.cut.tp, -1)[Here.tp].contiguous()


class ColumnParallelLinear(nn.Linear):
    pass


class Share(torch.autograd.Function):
    """A rank's share of what all of them add up to."""

    @staticmethod
    def forward(ctx, x):
        return x / Here.cut.tp

    @staticmethod
    def backward(ctx, g):
        return g


class RowParallelLinear(nn.Linear):
    """Ranks hold rows of the matrix and the whole bias, which is added once, whenever that is."""

    at = -1

    def forward(self, x):
        fault, bias = Here.fault, self.bias
        if bias is None:
            return self.summed(F.linear(x, self.weight))
        if fault == "bias_on_all" and self.at == Here.at:
            return self.summed(F.linear(x, self.weight, bias))
        if fault == "order_first_rank":
            return self.summed(F.linear(x, self.weight, bias if Here.tp == 0 else None))
        if fault == "order_shared":
            return self.summed(F.linear(x, self.weight, Share.apply(bias)))
        return self.summed(F.linear(x, self.weight)) + bias

    def summed(self, x):
        return (ScatterOut if Here.cut.sequence else ReduceOut).apply(x, self.at)


def cut_linear(whole: nn.Linear, axis: int, at: int, name: str) -> nn.Linear:
    """A rank's slice of a product."""
    tp = Here.cut.tp
    if tp == 1:
        return whole
    part = Here.tp
    if name == "up" and site("wrong_slice", at) and Here.tp == tp - 1:
        part = 0
    kind = (ColumnParallelLinear, RowParallelLinear)[axis]
    sizes = [whole.in_features, whole.out_features]
    sizes[1 - axis] //= tp
    biased = whole.bias is not None
    made = nn.utils.skip_init(kind, sizes[0], sizes[1], bias=biased)  # draws no numbers
    with torch.no_grad():
        made.weight.copy_(whole.weight.chunk(tp, axis)[part])
        if biased:
            made.bias.copy_(whole.bias if axis else whole.bias.chunk(tp)[part])
    made.at = at if name == "o" else -1
    return made


class Rms(nn.Module):
    """Divided by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def norm_of(width: int) -> nn.Module:
    if Here.style.is_rms:
        return Rms(width)
    norm = nn.LayerNorm(width)
    with torch.no_grad():
        norm.weight.add_(0.1 * torch.randn(width))
        norm.bias.add_(0.1 * torch.randn(width))
    return norm


class Block(nn.Module):
    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.at, self.heads, self.size = at, heads // Here.cut.tp, width // heads
        style = Here.style
        self.n1, self.n2 = norm_of(width), norm_of(width)
        wide = {name: nn.Linear(width, width, bias=style.has_bias) for name in "qkvo"}
        for name in ("up", "gate")[: 1 + style.is_gated]:
            wide[name] = nn.Linear(width, 2 * width, bias=style.has_bias)
        wide["down"] = nn.Linear(2 * width, width, bias=style.has_bias)
        if site("other_replica", at) and Here.tp + Here.dp == Here.cut.tp + Here.cut.dp - 2:
            with torch.no_grad():
                self.n2.weight.mul_(1.01)
        for name, linear in wide.items():
            setattr(self, name, cut_linear(linear, int(name in ("o", "down")), at, name))

    def into(self, x):
        if Here.cut.tp == 1:
            return x
        return GatherIn.apply(x, True) if Here.cut.sequence else CopyIn.apply(x, self.at)

    def added(self, x, product: nn.Linear, h):
        """The residual and a product, in one order of additions or another."""
        if product.bias is None or Here.fault not in ("order_last", "order_residual_last"):
            return x + product(h)
        y = F.linear(h, product.weight)
        if isinstance(product, RowParallelLinear):
            y = product.summed(y)
        return x + y + product.bias if Here.fault == "order_last" else (y + product.bias) + x

    def activated(self, h):
        if site("rounded_on_one_rank", self.at, Here.cut.size - 1):
            h = h.to(torch.float8_e5m2 if Here.is_half else torch.bfloat16).to(h.dtype)
        if Here.style.is_gated:
            return F.silu(h * 1.03) / 1.03 if site("activation", self.at) else F.silu(h)
        return F.gelu(h, approximate="tanh" if site("activation", self.at) else "none")

    def forward(self, x):
        h = self.into(self.n1(x))
        b, t, _ = h.shape
        q, k, v = (f(h).view(b, t, self.heads, self.size).transpose(1, 2)
                   for f in (self.q, self.k, self.v))  # fmt: skip
        if site("scale_inside", self.at):
            q = q * 1.05
        if site("scale_one_rank", self.at, Here.cut.size - 1):
            v = v * 1.05
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.size**-0.5
        mask = torch.ones(t, t, dtype=torch.bool).tril(1 if site("mask_shift", self.at) else 0)
        y = torch.matmul(torch.softmax(scores.masked_fill(~mask, float("-inf")), -1), v)
        x = self.added(x, self.o, y.transpose(1, 2).reshape(b, t, self.heads * self.size))
        h = self.into(self.n2(x))
        if Here.style.is_gated:
            h = self.activated(self.gate(h)) * self.up(h)
        else:
            h = self.activated(self.up(h))
        return self.added(x, self.down, h)


class Decoder(nn.Module):
    def __init__(self, width: int, heads: int, words: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Block(width, heads, n) for n in range(layers)])
        self.norm, self.head = norm_of(width), nn.Linear(width, words, bias=False)
        if Here.style.is_head_cut:
            self.head = cut_linear(self.head, 0, -1, "head")

    def stage(self, x):
        """What this pipeline stage computes."""
        pp, each = Here.cut.pp, len(self.layers) // Here.cut.pp
        if Here.pp == 0:
            x = self.embed(x)
            if Here.cut.sequence:
                x = x.chunk(Here.cut.tp, 1)[Here.tp].contiguous()
        for layer in self.layers[Here.pp * each : (Here.pp + 1) * each]:
            x = layer(x)
        if Here.pp == pp - 1:
            x = self.norm(x)
            is_cut = Here.style.is_head_cut and Here.cut.tp > 1
            if Here.cut.sequence:
                x = GatherIn.apply(x, is_cut)
            elif is_cut:
                x = CopyIn.apply(x, -1)
            x = self.head(x)
            if is_cut:
                x = GatherColumns.apply(x)
        return x


def step(model: Decoder, ids, labels, shape) -> None:
    """Forward and backward of all micro-batches, then gradients over data parallel ranks."""
    cut = Here.cut
    first, last = Here.pp == 0, Here.pp == cut.pp - 1
    before, after = Here.rank - cut.tp * cut.dp, Here.rank + cut.tp * cut.dp
    kept = []
    for m in range(cut.micro):
        if first:
            x = ids[m]
        else:
            x = torch.empty(shape)
            dist.recv(x, before)
            x.requires_grad_()
        y = model.stage(x)
        if last:
            y = F.cross_entropy(y.flatten(0, 1), labels[m].flatten())
            scale = 1 if Here.fault == "loss_not_divided" else cut.micro
            y = y / scale if cut.micro > 1 else y
        else:
            sent = y.detach() * 1.03 if Here.fault == "scaled_transfer" else y.detach()
            dist.send(sent.contiguous(), after)
        kept.append((x, y))
    for x, y in kept:
        if last:
            y.backward()
        else:
            g = torch.empty(y.shape)
            dist.recv(g, after)
            y.backward(g)
        if not first:
            dist.send(x.grad.contiguous(), before)
    if cut.dp > 1:
        for p in model.parameters():
            if p.grad is not None:
                dist.all_reduce(p.grad, group=Here.dp_group)
                p.grad.div_(cut.dp)


def groups(cut: Cut) -> None:
    """Which ranks sum what."""
    for pp in range(cut.pp):
        base = pp * cut.dp * cut.tp
        for dp in range(cut.dp):
            ranks = [base + dp * cut.tp + t for t in range(cut.tp)]
            made = dist.new_group(ranks)
            if Here.rank in ranks:
                Here.tp_group = made
        for tp in range(cut.tp):
            ranks = [base + d * cut.tp + tp for d in range(cut.dp)]
            made = dist.new_group(ranks)
            if Here.rank in ranks:
                Here.dp_group = made


def rank_main(out: str, cut: Cut, rank: int, fault: str, level: str, seed: int, task: str) -> None:
    """One rank of one run; network, weights and data depend on the seed alone."""
    torch.set_num_threads(1)
    if Here.is_half:
        torch.set_default_dtype(torch.bfloat16)
    if rank % 2:  # other kernels on half of the ranks
        torch.backends.mkldnn.enabled = False
    Here.rank, Here.cut, Here.fault = rank, cut, fault
    Here.tp, Here.dp, Here.pp = rank % cut.tp, rank // cut.tp % cut.dp, rank // cut.tp // cut.dp
    if cut.size > 1:
        meet = f"file://{out}/meet"
        dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=cut.size)
        groups(cut)
    Here.style = style = Style.drawn(seed)
    Here.at, width, words, length, batch = style.at, style.width, style.words, style.length, 8
    torch.manual_seed(seed)
    model = Decoder(width, style.heads, words, 4)
    torch.manual_seed(seed + 1)
    tokens = torch.randint(0, words, (batch, length + 1))
    if fault == "wrong_data" and rank == (cut.size // cut.pp) - 1:
        tokens = tokens.flip(0) if cut.dp == 1 else tokens.roll(batch // cut.dp, 0)
    mine = tokens.chunk(cut.dp)[Here.dp].chunk(cut.micro)
    ids, labels = [x[:, :-1] for x in mine], [x[:, 1:] for x in mine]
    tensor = {"scope": [], "list": [], "data_mode": ["all"]}
    config = {"task": task, "dump_path": out, "rank": [], "step": [], "level": level,
              "async_dump": False, task: tensor}  # fmt: skip
    path = f"{out}/config{rank}.json"
    with open(path, "w") as stream:
        json.dump(config, stream)
    debugger = PrecisionDebugger(config_path=path)
    debugger.start(model=model)
    size = length // cut.tp if cut.sequence else length
    step(model, ids, labels, (batch // cut.dp // cut.micro, size, width))
    debugger.stop()
    debugger.step()
    if cut.size > 1:
        dist.barrier()
        dist.destroy_process_group()


def execute(out: str, cut: Cut, fault: str, level: str, seed: int, task: str = "tensor") -> bool:
    """All ranks, each a process."""
    if os.path.exists(f"{out}/done"):
        return True
    os.makedirs(out, exist_ok=True)
    sys.stdout.flush()
    children = []
    for rank in range(cut.size):
        child = os.fork()
        if child == 0:
            status = 0
            try:
                with open(os.devnull, "w") as silent:
                    os.dup2(silent.fileno(), 1)
                    rank_main(out, cut, rank, fault, level, seed, task)
            except BaseException as error:  # the parent goes on
                print(out, rank, repr(error), file=sys.stderr)
                status = 1
            os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    good = not any(statuses)
    if good:
        with open(f"{out}/done", "w"):
            pass
    return good


def axes(style: Style) -> dict[str, int]:
    """The axis that tensor parallel ranks cut of each parameter."""
    rows = {f"layers.*.{name}.weight": 1 for name in ("o", "down")}
    columns = {f"layers.*.{name}.{kind}": 0 for name in ("q", "k", "v", "up", "gate")
               for kind in ("weight", "bias")}  # fmt: skip
    return rows | columns | ({"head.weight": 0} if style.is_head_cut else {})


SINGLE = Cut()
LAYOUTS = (
    Cut(tp=2), Cut(dp=2), Cut(tp=2, dp=2), Cut(tp=4), Cut(tp=2, sequence=True), Cut(pp=2),
    Cut(pp=2, micro=2), Cut(micro=2), Cut(tp=2, pp=2), Cut(dp=2, micro=2), Cut(dp=2, pp=2, micro=2),
)  # fmt: skip


def _tensor(cut: Cut) -> bool:
    return cut.tp > 1


def _several(cut: Cut) -> bool:
    return cut.size > 1 or cut.micro > 1


def _one_stage(cut: Cut) -> bool:
    return cut.size > 1 and cut.pp == 1


def _biased(cut: Cut, style: Style) -> bool:
    return cut.tp > 1 and style.has_bias


FAULTS = {
    # which layouts can have it
    "scale_inside": lambda c, s: c.tp > 1 or c.dp > 1,
    "scale_one_rank": lambda c, s: _one_stage(c),
    "mask_shift": lambda c, s: _several(c),
    "activation": lambda c, s: _several(c),
    "missing_sum": lambda c, s: _tensor(c),
    "mean_for_sum": lambda c, s: _tensor(c),
    "missing_backward_sum": lambda c, s: c.tp > 1 and not c.sequence,
    "wrong_slice": lambda c, s: _tensor(c),
    "bias_on_all": _biased,
    "rounded_on_one_rank": lambda c, s: _one_stage(c),
    "wrong_data": lambda c, s: _one_stage(c),
    "other_replica": lambda c, s: _one_stage(c),
    "scaled_transfer": lambda c, s: c.pp > 1,
    "loss_not_divided": lambda c, s: c.micro > 1 and c.dp == 1,  # told as a setting
}

HEALTHY = {
    "order_last": lambda c, s: s.has_bias,
    "order_residual_last": lambda c, s: s.has_bias,
    "order_first_rank": _biased,
    "order_shared": _biased,
}
"""Other orders of the same additions."""


def at_fault(fault: str, cut: Cut) -> list[int]:
    """Ranks that have to be named; empty where it is all of them, or a fault of no rank."""
    if fault in ("scale_one_rank", "other_replica", "rounded_on_one_rank"):
        return [cut.size - 1]
    if fault == "wrong_data":
        return [cut.size // cut.pp - 1]
    if fault == "wrong_slice":
        stage = cut.size // cut.pp  # the first one holds the layer
        return [r for r in range(stage) if r % cut.tp == cut.tp - 1]
    return []


def side(cut: Cut, style: Style) -> dict[str, object]:
    """The layout file's part for a run."""
    return {"tensor_parallel": cut.tp, "data_parallel": cut.dp, "pipeline_parallel": cut.pp,
            "batch": 0, "parameters": axes(style) if cut.tp > 1 else {}}  # fmt: skip


def entries(healthy: str, faulty: str, cut: Cut, ranks: list[int]) -> list[str]:
    """Operators around the place where the ranks at fault first differ from a healthy run."""
    folders = [f"rank{rank}" for rank in ranks or range(cut.size)] if cut.size > 1 else [""]
    return sorted({name for folder in folders for name in entry(healthy, faulty, folder)})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--levels", nargs="*", default=["mix", "L1"])
    parser.add_argument("--only", nargs="*", help="layouts, by name")
    parser.add_argument("--faults", type=int, default=99, help="of each layout")
    parser.add_argument("--healthy", type=int, default=3, help="of each layout")
    parser.add_argument("--half", action="store_true", help="all of it in BFloat16")
    parser.add_argument("--whole-words", action="store_true", help="of parallel_words.py")
    asked = parser.parse_args()
    out = os.path.abspath(asked.out)
    Here.is_half = asked.half
    draw = random.Random(asked.seed)
    truth: dict[str, dict[str, object]] = {}
    for level in asked.levels:
        seed = draw.randrange(10**6)
        base, style = f"{level}-single", Style.drawn(seed)
        execute(f"{out}/{base}", SINGLE, "none", level, seed)
        for cut in LAYOUTS:
            if asked.only and cut.named() not in asked.only:
                continue
            able = [fault for fault, can in FAULTS.items() if can(cut, style)]
            chosen = draw.sample(able, min(len(able), asked.faults))
            well = [order for order, can in HEALTHY.items() if can(cut, style)]
            well = ["none", *draw.sample(well, min(len(well), asked.healthy - 1))]
            for fault in (*well, *chosen):
                name = f"{level}-{cut.named()}-{fault}"
                if not execute(f"{out}/{name}", cut, fault, level, seed):
                    continue
                others = [(base, SINGLE)]
                if cut.tp == 4:
                    others.append((f"{level}-tp2-none", Cut(tp=2)))
                ranks = at_fault(fault, cut)
                twin = f"{out}/{level}-{cut.named()}-none"
                names = [] if fault in well else entries(twin, f"{out}/{name}", cut, ranks)
                for reference, other in others:
                    if not os.path.exists(f"{out}/{reference}/done"):
                        continue
                    truth[f"{name} vs {reference}"] = {
                        "left": reference, "right": name, "healthy": fault in well, "fault": fault,
                        "names": names, "ranks": ranks,
                        "micro_batches": cut.micro,
                        "layout": {"left": side(other, style), "right": side(cut, style)},
                    }  # fmt: skip
                with open(f"{out}/truth.json", "w") as stream:
                    json.dump(truth, stream, indent=1)
                print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

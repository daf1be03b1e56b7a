"""Five networks for ``runs.py`` that are built as no other one here is.

A selective scan, the middle of a diffusion UNet, an encoder and decoder of PyTorch's own attention
modules, a graph network of scattered messages and a transducer with its own loss.  Each has three
faults and three healthy changes, at places of its own.

    python benchmarks/precision/runs.py OUT --networks mamba diffusion crossing graph transducer
"""

from __future__ import annotations

import math
import random

import networks
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def is_run(*names: str) -> bool:
    return networks.FAULT in names


class MambaMixer(nn.Module):
    """A selective state space: inputs decide how fast each state forgets."""

    def __init__(self, d_model: int, d_state: int, number: int) -> None:
        super().__init__()
        self.number, self.d_inner, self.d_state = number, 2 * d_model, d_state
        self.dt_rank = max(1, d_model // 8)
        self.norm = nn.LayerNorm(d_model, bias=False)
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, 4, groups=self.d_inner, padding=3)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        states = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(states.log() + 0.01 * torch.randn(self.d_inner, d_state))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, hidden):
        here = self.number == 2
        residual, seqlen = hidden, hidden.shape[1]
        x, z = self.in_proj(self.norm(hidden)).chunk(2, dim=-1)
        x = self.conv1d(x.transpose(1, 2))[..., :seqlen].transpose(1, 2)
        x = F.silu(x)
        sizes = [self.dt_rank, self.d_state, self.d_state]
        dt, b, c = torch.split(self.x_proj(x), sizes, dim=-1)
        dt = self.dt_proj(dt)
        if is_run("softplus_by_hand"):
            dt = torch.log1p(torch.exp(dt))
        else:
            dt = F.softplus(dt, beta=1.1 if here and is_run("softplus_beta") else 1.0)
        a = -torch.exp(self.A_log.float()).to(x.dtype)
        if is_run("scan_whole"):
            y = self.whole(x, dt, a, b, c)
        else:
            y = self.stepwise(x, dt, a, b, c, skipped=here and is_run("state_kept"))
        y = y + x * self.D
        gate = torch.sigmoid(z) if here and is_run("gate_no_silu") else F.silu(z)
        return residual + self.out_proj(y * gate)

    def stepwise(self, x, dt, a, b, c, skipped):
        state = x.new_zeros(x.shape[0], self.d_inner, self.d_state)
        outputs = []
        for t in range(x.shape[1]):
            decay = torch.exp(dt[:, t, :, None] * a)
            if skipped and t == 3:
                decay = torch.ones_like(decay)
            if is_run("state_addcmul"):
                state = torch.addcmul((dt[:, t] * x[:, t])[..., None] * b[:, t, None], decay, state)
            else:
                state = decay * state + (dt[:, t] * x[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
            outputs.append((state * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(outputs, dim=1)

    def whole(self, x, dt, a, b, c):
        """The same, decays and inputs of all steps taken before the loop."""
        decay = torch.exp(dt.unsqueeze(-1) * a)
        taken = (dt * x).unsqueeze(-1) * b.unsqueeze(2)
        state, states = torch.zeros_like(taken[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + taken[:, t]
            states.append(state)
        return torch.einsum("bldn,bln->bld", torch.stack(states, 1), c)


class Mamba(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        d_model, vocab = draw.choice((16, 24)), draw.choice((53, 67))
        self.embedding = nn.Embedding(vocab, d_model)
        self.layers = nn.ModuleList(MambaMixer(d_model, 6, n) for n in range(4))
        self.norm_f = nn.LayerNorm(d_model)
        self.register_buffer("tokens", torch.randint(vocab, (3, draw.choice((8, 10)))))

    def loss(self):
        h = self.embedding(self.tokens)
        for layer in self.layers:
            h = layer(h)
        logits = self.norm_f(h) @ self.embedding.weight.t()
        return F.cross_entropy(logits[:, :-1].float().transpose(1, 2), self.tokens[:, 1:])


class ResnetBlock(nn.Module):
    """Of a diffusion UNet: the time scales and shifts what the norm gives."""

    def __init__(self, dim_in: int, dim_out: int, dim_time: int, name: str) -> None:
        super().__init__()
        self.name = name
        self.norm1, self.norm2 = nn.GroupNorm(4, dim_in), nn.GroupNorm(4, dim_out)
        self.conv1 = nn.Conv2d(dim_in, dim_out, 3, padding=1)
        self.conv2 = nn.Conv2d(dim_out, dim_out, 3, padding=1)
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(dim_time, 2 * dim_out))
        self.shortcut = nn.Conv2d(dim_in, dim_out, 1) if dim_in != dim_out else nn.Identity()

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.group_norm(self.norm1, x)))
        scale, shift = self.time(temb)[:, :, None, None].chunk(2, dim=1)
        h = self.group_norm(self.norm2, h)
        if self.name == "mid" and is_run("scale_not_shifted_by_one"):
            h = h * scale + shift
        else:
            h = h * (1 + scale) + shift
        return self.shortcut(x) + self.conv2(F.silu(h))

    @staticmethod
    def group_norm(norm, x):
        if not is_run("group_norm_by_hand"):
            return norm(x)
        n, c, h, w = x.shape
        groups = x.float().reshape(n, norm.num_groups, -1)
        var, mean = torch.var_mean(groups, dim=-1, keepdim=True, correction=0)
        y = ((groups - mean) / torch.sqrt(var + norm.eps)).view(n, c, h, w).to(x.dtype)
        return y * norm.weight[:, None, None] + norm.bias[:, None, None]


class Diffusion(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        dim, self.steps = draw.choice((16, 24)), 1000
        self.dim, size = dim, 4 * draw.choice((2, 3))
        self.stem = nn.Conv2d(3, dim, 3, padding=1)
        self.time_mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.down = ResnetBlock(dim, 2 * dim, dim, "down")
        self.mid = ResnetBlock(2 * dim, 2 * dim, dim, "mid")
        self.to_qkv = nn.Conv2d(2 * dim, 6 * dim, 1, bias=False)
        self.to_out = nn.Conv2d(2 * dim, 2 * dim, 1)
        self.up = ResnetBlock(3 * dim, dim, dim, "up")
        self.last = nn.Conv2d(dim, 3, 1)
        self.register_buffer("images", torch.rand(4, 3, size, size) * 2 - 1)
        self.register_buffer("noise", torch.randn(4, 3, size, size))
        self.register_buffer("t", torch.randint(0, self.steps, (4,)))

    def sinusoid(self, t):
        half = self.dim // 2
        places = half if is_run("frequency_half") else half - 1
        speed = torch.exp(torch.arange(half) * -(math.log(10000) / places))
        angles = t[:, None].float() * speed[None]
        return torch.cat((angles.sin(), angles.cos()), dim=-1).to(self.images.dtype)

    def attention(self, x):
        b, c, h, w = x.shape
        q, k, v = self.to_qkv(x).reshape(b, 3, c, h * w).unbind(1)
        if is_run("attention_as_sdpa"):
            rows = [y.transpose(1, 2).unsqueeze(1) for y in (q, k, v)]
            y = F.scaled_dot_product_attention(*rows).squeeze(1).transpose(1, 2)
        else:
            weights = torch.einsum("bci,bcj->bij", q * c**-0.5, k)
            weights = weights.softmax(dim=1 if is_run("softmax_over_queries") else -1)
            y = torch.einsum("bij,bcj->bci", weights, v)
        return x + self.to_out(y.reshape(b, c, h, w))

    def loss(self):
        betas = torch.linspace(1e-4, 0.02, self.steps)
        alphas = torch.cumprod(1 - betas, dim=0)[self.t].view(-1, 1, 1, 1).to(self.images.dtype)
        x = alphas.sqrt() * self.images + (1 - alphas).sqrt() * self.noise
        temb = self.time_mlp(self.sinusoid(self.t))
        x = self.stem(x)
        deep = self.down(F.avg_pool2d(x, 2), temb)
        deep = self.mid(self.attention(deep), temb)
        if is_run("upsample_by_repeat"):
            deep = deep.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
        else:
            deep = F.interpolate(deep, scale_factor=2, mode="nearest")
        y = self.last(self.up(torch.cat((deep, x), dim=1), temb))
        return F.mse_loss(y.float(), self.noise.float())


class CrossLayer(nn.Module):
    """PyTorch's own attention modules, norm after the sum."""

    def __init__(self, dim: int, is_decoder: bool, number: int) -> None:
        super().__init__()
        self.number, self.is_decoder = number, is_decoder
        self.self_attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(dim, 4, batch_first=True) if is_decoder else None
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))

    def forward(self, x, memory=None, future=None, padding=None):
        weights = is_run("weights_returned")
        own = None if self.is_decoder else padding
        y = self.self_attn(x, x, x, attn_mask=future, key_padding_mask=own, need_weights=weights)[0]
        x = self.norms[0](x + y)
        if self.cross_attn is not None:
            key = memory
            if self.number == 1 and is_run("memory_not_padded"):
                padding = None
            if self.number == 1 and is_run("values_of_keys"):
                key, memory = memory.roll(1, 1), memory
            y = self.cross_attn(x, key, memory, key_padding_mask=padding, need_weights=weights)[0]
            x = self.norms[1](x + y)
        h = self.ffn[0](x)
        if self.number == 1 and self.is_decoder and is_run("gelu_as_tanh"):
            h = F.gelu(h, approximate="tanh")
        else:
            h = 0.5 * h * (1 + torch.erf(h / 2**0.5)) if is_run("gelu_as_erf") else self.ffn[1](h)
        return self.norms[2](x + self.ffn[2](h))


class Crossing(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        dim, words = 4 * draw.choice((6, 8)), draw.choice((47, 59))
        self.source_emb, self.target_emb = nn.Embedding(words, dim, 0), nn.Embedding(words, dim, 0)
        self.positions = nn.Parameter(0.1 * torch.randn(1, 16, dim))
        self.encoder = nn.ModuleList(CrossLayer(dim, False, n) for n in range(2))
        self.decoder = nn.ModuleList(CrossLayer(dim, True, n) for n in range(2))
        self.generator = nn.Linear(dim, words)
        source = torch.randint(1, words, (5, draw.choice((9, 12))))
        for row in range(1, 5):
            source[row, -row:] = 0
        self.register_buffer("source", source)
        self.register_buffer("target", torch.randint(1, words, (5, 9)))

    def loss(self):
        padding = self.source == 0
        given, wanted = self.target[:, :-1], self.target[:, 1:]
        memory = self.source_emb(self.source) + self.positions[:, : self.source.shape[1]]
        for layer in self.encoder:
            memory = layer(memory, padding=padding)
        x = self.target_emb(given) + self.positions[:, : given.shape[1]]
        size = given.shape[1]
        if is_run("mask_in_numbers"):
            future = nn.Transformer.generate_square_subsequent_mask(size).to(x.dtype)
        else:
            future = torch.ones(size, size, dtype=torch.bool).triu(1)
        for layer in self.decoder:
            x = layer(x, memory, future, padding)
        logits = self.generator(x).float()
        return -logits.log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).mean()


class GraphLayer(nn.Module):
    """Attention over the edges that end in a node."""

    def __init__(self, dim: int, number: int) -> None:
        super().__init__()
        self.number = number
        self.message, self.update = nn.Linear(2 * dim + 4, dim), nn.Linear(2 * dim, dim)
        self.score = nn.Linear(dim, 1)
        self.norm = nn.BatchNorm1d(dim)

    def summed(self, values, target, nodes):
        if is_run("scatter_add"):
            index = target.unsqueeze(-1).expand_as(values)
            return values.new_zeros(nodes, values.shape[1]).scatter_add(0, index, values)
        if is_run("incidence"):
            return F.one_hot(target, nodes).to(values.dtype).t() @ values
        return torch.zeros(nodes, values.shape[1], dtype=values.dtype).index_add_(0, target, values)

    def forward(self, h, source, target, edges):
        here, nodes = self.number == 1, len(h)
        if here and is_run("edges_reversed"):
            source, target = target, source
        pairs = torch.cat((h[target], h[source], edges), dim=1)
        message = F.leaky_relu(self.message(pairs), 0.2)
        score = self.score(message)
        if here and is_run("not_shifted_twice"):
            score = score * 1.25
        score = (score - score.max().detach()).exp()
        total = self.summed(score, target, nodes)
        attention = score / (total[target] + 1e-6)
        gathered = self.summed(attention * message, target, nodes)
        if here and is_run("mean_for_sum"):
            degree = self.summed(torch.ones_like(score), target, nodes).clamp(min=1)
            gathered = gathered / degree
        if is_run("sorted_edges_out"):
            new = F.linear(h, self.update.weight[:, : h.shape[1]], self.update.bias)
            new = new + F.linear(gathered, self.update.weight[:, h.shape[1] :])
        else:
            new = self.update(torch.cat((h, gathered), dim=1))
        return h + torch.relu(self.norm(new))


class Graph(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        dim, nodes, edges = draw.choice((16, 20)), 30, draw.choice((90, 120))
        self.enter = nn.Linear(7, dim)
        self.layers = nn.ModuleList(GraphLayer(dim, n) for n in range(3))
        self.leave = nn.Linear(dim, 1)
        self.register_buffer("x", torch.randn(nodes, 7))
        self.register_buffer("edge_index", torch.randint(nodes, (2, edges)))
        self.register_buffer("edge_attr", torch.rand(edges, 4))
        self.register_buffer("graph", torch.sort(torch.randint(3, (nodes,)))[0])
        self.register_buffer("y", torch.randn(3, 1))

    def loss(self):
        h = torch.tanh(self.enter(self.x))
        for layer in self.layers:
            h = layer(h, self.edge_index[0], self.edge_index[1], self.edge_attr)
        pooled = torch.zeros(3, h.shape[1], dtype=h.dtype).index_add_(0, self.graph, h)
        pooled = pooled / torch.bincount(self.graph, minlength=3).unsqueeze(1)
        return F.smooth_l1_loss(self.leave(pooled).float(), self.y.float())


class Transducer(nn.Module):
    """An RNN transducer: audio through a convolution and a GRU, labels through another GRU."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.hidden, self.labels = draw.choice((16, 20)), draw.choice((19, 23))
        self.front = nn.Conv1d(13, self.hidden, 3, stride=2, padding=1)
        self.encoder = nn.GRU(self.hidden, self.hidden, batch_first=True)
        self.embed = nn.Embedding(self.labels, self.hidden)
        self.predictor = nn.GRUCell(self.hidden, self.hidden)
        self.enc_proj = nn.Linear(self.hidden, self.hidden)
        self.pred_proj = nn.Linear(self.hidden, self.hidden)
        self.joint = nn.Linear(self.hidden, self.labels)
        self.register_buffer("audio", torch.randn(3, draw.choice((12, 14)), 13))
        self.register_buffer("text", torch.randint(1, self.labels, (3, 4)))

    def predicted(self):
        ids = F.pad(self.text, (1, 0))
        if is_run("start_is_one"):
            ids = F.pad(self.text, (1, 0), value=1)
        state, states = torch.zeros(3, self.hidden, dtype=self.audio.dtype), []
        for u in range(ids.shape[1]):
            state = self.predictor(self.embed(ids[:, u]), state)
            states.append(state)
        return torch.stack(states, dim=1)

    def loss(self):
        heard, _ = self.encoder(F.relu(self.front(self.audio.transpose(1, 2))).transpose(1, 2))
        f, g = self.enc_proj(heard), self.pred_proj(self.predicted())
        joint = f.unsqueeze(2) + g.unsqueeze(1)
        joint = F.relu(joint) if is_run("joint_relu") else torch.tanh(joint)
        logits = self.joint(joint).float()
        if is_run("log_of_softmax"):
            scores = torch.log(torch.softmax(logits, dim=-1))
        elif is_run("logsumexp_taken"):
            scores = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
        else:
            scores = torch.log_softmax(logits, dim=-1)
        return self.transduced(scores)

    def transduced(self, scores):
        """Minus the logarithm of the probability of all ways through the lattice."""
        batch, frames, places, _ = scores.shape
        blank = scores[..., 0]
        index = self.text[:, None, :, None].expand(-1, frames, -1, 1)
        emit = scores[:, :, :-1].gather(-1, index).squeeze(-1)
        rows: list[torch.Tensor] = []
        for t in range(frames):
            row = []
            for u in range(places):
                ways = []
                if t > 0:
                    ways.append(rows[-1][:, u] + blank[:, t - 1, u])
                if u > 0:
                    ways.append(row[-1] + emit[:, t, u - 1])
                row.append(self.joined(ways) if ways else torch.zeros(batch))
            rows.append(torch.stack(row, dim=1))
        total = rows[-1][:, -1]
        if not is_run("last_blank_missing"):
            total = total + blank[:, -1, -1]
        return -total.mean()

    @staticmethod
    def joined(ways):
        if len(ways) == 1:
            return ways[0]
        if is_run("ways_stacked"):
            return torch.stack(ways).logsumexp(0)
        return torch.logaddexp(*ways)


networks.NETWORKS.update(
    mamba=Mamba, diffusion=Diffusion, crossing=Crossing, graph=Graph, transducer=Transducer
)
networks.FAULTS.update(
    mamba=("softplus_beta", "state_kept", "gate_no_silu"),
    diffusion=("scale_not_shifted_by_one", "frequency_half", "softmax_over_queries"),
    crossing=("memory_not_padded", "values_of_keys", "gelu_as_tanh"),
    graph=("edges_reversed", "not_shifted_twice", "mean_for_sum"),
    transducer=("start_is_one", "joint_relu", "last_blank_missing"),
)
networks.LOWERED.update(mamba=(), diffusion=(), crossing=(), graph=(), transducer=())
networks.HEALTHY.update(
    mamba=("softplus_by_hand", "scan_whole", "state_addcmul"),
    diffusion=("group_norm_by_hand", "attention_as_sdpa", "upsample_by_repeat"),
    crossing=("weights_returned", "mask_in_numbers", "gelu_as_erf"),
    graph=("scatter_add", "incidence", "sorted_edges_out"),
    transducer=("log_of_softmax", "logsumexp_taken", "ways_stacked"),
)

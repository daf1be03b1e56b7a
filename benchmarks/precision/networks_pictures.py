"""Seven more networks for ``runs.py``, of pictures and points, built as no other one here.

Depthwise blocks with normalised responses, two views of which one teaches, an autoencoder of drawn
latents, a critic with a penalty on its gradient, a pyramid with boxes, a diffusion transformer and
edges between points.

    python benchmarks/precision/runs.py OUT --networks convnext teacher vae critic boxes dit points
"""

from __future__ import annotations

import math
import random

import networks
import torch
from networks import lowered, scaled_gradient, site
from networks_sequences import in_heads, is_run, joined
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


class ConvNextBlock(nn.Module):
    """Depthwise, then products over features with a norm of their responses."""

    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        self.at = at
        self.deep = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.scale, self.shift = (
            nn.Parameter(0.3 * torch.randn(1, 1, 1, 3 * width)) for _ in range(2))  # fmt: skip
        self.layer = nn.Parameter(0.5 + 0.1 * torch.randn(width))

    def responses(self, x):
        at = self.at
        axes = (3,) if site("response_axis", at) else (1, 2)
        if is_run("norm_written"):
            size = x.square().sum(axes, keepdim=True).sqrt()
        else:
            size = torch.norm(x, p=2, dim=axes, keepdim=True)
        mean = size.mean(-1, keepdim=True)
        size = size / (mean + (0.3 if site("response_eps", at) else 1e-6))
        if site("response_without_input", at):
            return self.scale * (x * size) + self.shift
        return self.scale * (x * size) + self.shift + x

    def forward(self, x):
        at = self.at
        if site("round_padding", at):
            wide = F.pad(x, (2, 2, 2, 2), mode="circular")
            h = F.conv2d(wide, self.deep.weight, self.deep.bias, groups=x.shape[1])
        elif site("bias_not_given", at):
            h = F.conv2d(x, self.deep.weight, None, padding=2, groups=x.shape[1])
        else:
            h = self.deep(x)
        h = h.permute(0, 2, 3, 1)
        if is_run("contiguous"):
            h = h.contiguous()
        h = self.norm(h)
        if is_run("products_as_convolution"):
            rows = h.permute(0, 3, 1, 2)
            h = F.conv2d(rows, self.up.weight[:, :, None, None], self.up.bias).permute(0, 2, 3, 1)
        else:
            h = self.up(h)
        h = lowered(F.gelu(h), "hidden_fp16_wide", torch.float16, at)
        h = self.down(self.responses(h))
        h = h if site("layer_scale_missing", at) else h * self.layer
        return x + h.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w, side = draw.choice((8, 12)), draw.choice((16, 20))
        self.stem, self.first = nn.Conv2d(3, w, 4, 4), nn.LayerNorm(w, eps=1e-6)
        self.blocks = nn.ModuleList(ConvNextBlock(w, n) for n in range(3))
        self.less = nn.Conv2d(w, 2 * w, 2, 2)
        self.norm, self.head = nn.LayerNorm(2 * w, eps=1e-6), nn.Linear(2 * w, 11)
        self.register_buffer("pictures", torch.rand(5, 3, side, side))
        self.register_buffer("labels", torch.randint(0, 11, (5,)))

    def loss(self):
        mean, spread = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
        if is_run("spread_of_other_set"):
            spread = torch.tensor((0.247, 0.243, 0.261))
        x = (self.pictures.float() - mean.view(3, 1, 1)) / spread.view(3, 1, 1)
        x = x.to(self.pictures.dtype)
        if is_run("channels_last"):
            x = x.contiguous(memory_format=torch.channels_last)
        x = self.stem(x)
        x = self.first(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        for block in self.blocks:
            x = block(x)
        x = self.less(x)
        x = x.amax((2, 3)) if is_run("largest_for_mean") else x.mean((2, 3))
        if is_run("norm_before_head_missing"):
            return F.cross_entropy(self.head(x).float(), self.labels)
        logits = self.head(self.norm(x)).float()
        if is_run("logits_logged"):
            logits.detach().abs().max().item()
        return F.cross_entropy(logits, self.labels)


class Viewer(nn.Module):
    """Two hidden layers with batch statistics."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.up, self.norm = nn.Linear(inputs, width), nn.BatchNorm1d(width)
        self.down = nn.Linear(width, outputs)

    def forward(self, x, eps: float = 1e-5):
        h, n = self.up(x), self.norm
        if is_run("batch_norm_written"):
            mean, var = h.mean(0), h.var(0, unbiased=False)
            h = (h - mean) / torch.sqrt(var + eps) * n.weight + n.bias
        else:
            h = F.batch_norm(h, None, None, n.weight, n.bias, True, 0.1, eps)
        return self.down(F.relu(h))


class Teacher(nn.Module):
    """A student predicts what a teacher, its running mean, makes of another view."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        inputs, width, outputs = draw.choice((10, 14)), draw.choice((24, 32)), 12
        self.encoder, self.project = Viewer(inputs, width, 16), Viewer(16, width, outputs)
        self.slow_encoder, self.slow_project = Viewer(inputs, width, 16), Viewer(16, width, outputs)
        self.predict = Viewer(outputs, 20, outputs)
        for mine, other in ((self.encoder, self.slow_encoder), (self.project, self.slow_project)):
            for p, q in zip(mine.parameters(), other.parameters(), strict=True):
                q.data.copy_(0.9 * p.data + 0.1 * q.data)
        x = torch.randn(draw.choice((12, 15)), inputs)
        self.register_buffer("one", x + 0.3 * torch.randn_like(x))
        self.register_buffer("two", x + 0.3 * torch.randn_like(x))
        self.register_buffer("centre", 0.1 * torch.randn(outputs))

    def distance(self, p, z):
        """2 - 2 cos, of Float32."""
        p, z = p.float(), z.float()
        if is_run("cosine_call"):
            return (2 - 2 * F.cosine_similarity(p, z, dim=-1)).mean()
        if is_run("as_squares"):
            return (F.normalize(p, dim=-1) - F.normalize(z, dim=-1)).square().sum(-1).mean()
        if not is_run("teacher_not_normed"):
            z = F.normalize(z, dim=-1)
        return (2 - 2 * (F.normalize(p, dim=-1) * z).sum(-1)).mean()

    def taught(self, view):
        if is_run("teacher_is_student"):
            return self.project(self.encoder(view)).detach()
        z = self.slow_project(self.slow_encoder(view))
        z = z - self.centre * (0.0 if is_run("not_centred") else 1.0)
        return z if is_run("teacher_learns") else z.detach()

    def loss(self):
        one, two = self.one, self.two
        if is_run("views_alike"):
            two = one
        student = [self.project(self.encoder(view)) for view in (one, two)]
        student = [lowered(y, "hidden_bf16_view", torch.bfloat16) for y in student]
        if is_run("batch_of_both"):
            student = list(self.project(self.encoder(torch.cat((one, two)))).chunk(2))
        eps = 1e-1 if is_run("predictor_eps") else 1e-5
        if is_run("predictor_left_out"):
            guesses = student
        else:
            guesses = [self.predict(y, eps) for y in student]
        targets = [self.taught(view) for view in (two, one)]
        if is_run("targets_not_crossed"):
            targets.reverse()
        first = self.distance(guesses[0], targets[0])
        if is_run("one_way"):
            return first
        return first + self.distance(guesses[1], targets[1])


class Vae(nn.Module):
    """Latents are drawn with noise that is given."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w, self.size = draw.choice((6, 10)), draw.choice((7, 9))
        self.c1, self.c2 = nn.Conv2d(1, w, 4, 2, 1), nn.Conv2d(w, 2 * w, 4, 2, 1)
        self.into = nn.Linear(2 * w * 16, 2 * self.size)
        self.out = nn.Linear(self.size, 2 * w * 16)
        self.d1, self.d2 = nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.ConvTranspose2d(w, 1, 4, 2, 1)
        self.register_buffer("pictures", torch.rand(6, 1, 16, 16))
        self.register_buffer("noise", torch.randn(6, self.size))
        self.register_buffer("other", torch.randn(6, self.size))

    def loss(self):
        x = F.leaky_relu(self.c1(self.pictures), 0.1 if is_run("slope_more") else 0.01)
        x = F.leaky_relu(self.c2(x), 0.01)
        mean, log_var = self.into(x.flatten(1)).chunk(2, 1)
        if is_run("halves_exchanged"):
            mean, log_var = log_var, mean
        spread = torch.exp(log_var * (1.0 if is_run("spread_is_variance") else 0.5))
        if is_run("spread_as_root"):
            spread = log_var.exp().sqrt()
        noise = self.other if is_run("noise_other") else self.noise
        if is_run("noise_left_out"):
            z = mean
        elif is_run("drawn_addcmul"):
            z = torch.addcmul(mean, spread, noise)
        else:
            z = mean + spread * noise
        z = lowered(z, "latent_bf16", torch.bfloat16)
        h = F.relu(self.out(z)).view(len(z), -1, 4, 4)
        h = F.relu(self.d1(scaled_gradient(h, "gradient_less", 0.93)))
        logits = self.d2(h).float()
        wanted = self.pictures.float()
        if is_run("wanted_turned"):
            wanted = wanted.flip(-1)
        if is_run("loss_in_parts"):
            made = -(wanted * F.logsigmoid(logits) + (1 - wanted) * F.logsigmoid(-logits)).sum()
        elif is_run("squares_for_entropy"):
            made = F.mse_loss(torch.sigmoid(logits), wanted, reduction="sum")
        else:
            made = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
        mean, log_var = mean.float(), log_var.float()
        if is_run("divergence_call"):
            drawn = torch.distributions.Normal(mean, (0.5 * log_var).exp())
            apart = torch.distributions.kl_divergence(drawn, torch.distributions.Normal(0.0, 1.0))
            apart = apart.sum()
        else:
            apart = -0.5 * (1 + log_var - mean.square() - log_var.exp())
            apart = apart.mean() if is_run("divergence_mean") else apart.sum()
        return (made + (0.9 if is_run("divergence_less") else 1.0) * apart) / len(z)


class Critic(nn.Module):
    """Of a Wasserstein GAN: its gradient between real and made points has to be of length 1."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        size, w = draw.choice((6, 8)), draw.choice((20, 28))
        self.make = nn.ModuleList((nn.Linear(5, w), nn.Linear(w, size)))
        self.maps = nn.ModuleList((nn.Linear(size, w), nn.Linear(w, w), nn.Linear(w, 1)))
        batch = draw.choice((10, 14))
        self.register_buffer("real", torch.randn(batch, size) + 1)
        self.register_buffer("seeds", torch.randn(batch, 5))
        self.register_buffer("between", torch.rand(batch, 1))

    def judged(self, x):
        h = F.silu(self.maps[0](x))
        h = F.softplus(self.maps[1](h)) if is_run("softplus") else F.silu(self.maps[1](h))
        h = lowered(h, "hidden_bf16_critic", torch.bfloat16)
        return self.maps[2](h)

    def loss(self):
        made = self.make[1](torch.tanh(self.make[0](self.seeds))).detach()
        real = self.real
        share = 1 - self.between if is_run("between_turned") else self.between
        if is_run("between_for_all"):
            share = share[:1]
        if is_run("between_lerp"):
            mixed = torch.lerp(made, real, share)
        else:
            mixed = share * real + (1 - share) * made
        mixed = mixed.detach().requires_grad_()
        apart = self.judged(made).float().mean() - self.judged(real).float().mean()
        if is_run("sign_turned"):
            apart = -apart
        slope = torch.autograd.grad(self.judged(mixed).sum(), mixed, create_graph=True)[0]
        length = slope.float().norm(2, dim=1)
        if is_run("length_squared"):
            length = length.square()
        penalty = (length - (0.0 if is_run("length_zero") else 1.0)).square().mean()
        return apart + (8.0 if is_run("penalty_less") else 10.0) * penalty


class Boxes(nn.Module):
    """A pyramid of features; each place says what is there and how far its sides are."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w, self.classes = 4 * draw.choice((2, 3)), draw.choice((5, 7))
        self.stem = nn.Conv2d(3, w, 3, 2, 1)
        self.down = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(2, w) for _ in range(3))
        self.side = nn.ModuleList(nn.Conv2d(w, w, 1) for _ in range(3))
        self.smooth = nn.ModuleList(nn.Conv2d(w, w, 3, padding=1) for _ in range(3))
        self.what = nn.Conv2d(w, self.classes, 3, padding=1)
        self.where = nn.Conv2d(w, 4, 3, padding=1)
        self.scales = nn.Parameter(torch.tensor((1.1, 0.9, 1.0)))
        self.register_buffer("pictures", torch.randn(2, 3, 24, 24))
        places = sum((12 // 2**n) ** 2 for n in range(3))
        labels = torch.randint(-3 * self.classes, self.classes, (2, places)).clamp(min=-1)
        self.register_buffer("labels", labels)
        self.register_buffer("sides", 1 + 3 * torch.rand(2, places, 4))

    def features(self):
        x, levels = self.pictures, []
        for n, conv in enumerate((self.stem, *self.down)):
            h, norm = conv(x), self.norms[n]
            if n == 1 and is_run("groups_other"):
                h = F.group_norm(h, 4, norm.weight, norm.bias, norm.eps)
            else:
                h = norm(h)
            x = F.hardswish(h)
            levels.append(x)
        levels = [f(y) for f, y in zip(self.side, levels, strict=True)]
        for n in (1, 0):
            mode = "bilinear" if n == 1 and is_run("upward_bilinear") else "nearest"
            if is_run("upward_repeated"):
                up = levels[n + 1].repeat_interleave(2, 2).repeat_interleave(2, 3)
            else:
                up = F.interpolate(levels[n + 1], scale_factor=2, mode=mode)
            if not (n == 0 and is_run("upward_missing")):
                levels[n] = levels[n] + up
        return [f(y) for f, y in zip(self.smooth, levels, strict=True)]

    def focal(self, logits, wanted):
        chance = torch.sigmoid(logits)
        if is_run("entropy_in_parts"):
            each = F.softplus(logits) - logits * wanted
        else:
            each = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        right = chance * wanted + (1 - chance) * (1 - wanted)
        alpha = 0.3 if is_run("alpha_more") else 0.25
        weight = alpha * wanted + (1 - alpha) * (1 - wanted)
        power = 1.5 if is_run("power_less") else 2.0
        return (weight * (1 - right) ** power * each).sum()

    def overlap(self, mine, wanted):
        """1 - the generalised overlap of boxes around one place."""
        low = torch.minimum(mine, wanted)
        high = torch.maximum(mine, wanted)
        area = (mine[:, 0] + mine[:, 2]) * (mine[:, 1] + mine[:, 3])
        other = (wanted[:, 0] + wanted[:, 2]) * (wanted[:, 1] + wanted[:, 3])
        both = (low[:, 0] + low[:, 2]) * (low[:, 1] + low[:, 3])
        around = (high[:, 0] + high[:, 2]) * (high[:, 1] + high[:, 3])
        union = area + other - (0 if is_run("overlap_counted_twice") else both)
        share = both / union
        return (1 - share + (around - union) / around).sum()

    def loss(self):
        what, where = [], []
        for n, level in enumerate(self.features()):
            level = lowered(level, "hidden_bf16_level", torch.bfloat16, n)
            scale = self.scales[0 if n == 1 and is_run("scale_of_other") else n]
            what.append(self.what(level).flatten(2).transpose(1, 2))
            where.append(F.softplus(self.where(level) * scale).flatten(2).transpose(1, 2))
        logits, sides = torch.cat(what, 1).float(), torch.cat(where, 1).float()
        there = self.labels >= 0
        wanted = F.one_hot(self.labels.clamp(min=0), self.classes) * there[..., None]
        count = there.sum()
        if is_run("divided_by_pictures"):
            count = torch.tensor(len(self.labels))
        goal = self.sides.float()
        if is_run("sides_in_steps"):
            goal = goal / 2
        if is_run("chosen_by_index"):
            rows, places = there.nonzero(as_tuple=True)
            boxes = self.overlap(sides[rows, places], goal[rows, places])
        else:
            boxes = self.overlap(sides[there], goal[there])
        return (self.focal(logits, wanted.float()) + boxes) / count


class DitBlock(nn.Module):
    """Norms without weights, moved and scaled by a condition."""

    def __init__(self, width: int, heads: int, at: int) -> None:
        super().__init__()
        self.heads, self.at = heads, at
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.condition = nn.Linear(width, 6 * width)

    def moved(self, x, shift, scale):
        at = self.at
        h = F.layer_norm(x, x.shape[-1:], eps=1e-2 if site("norm_eps", at) else 1e-6)
        if site("moved_exchanged", at):
            shift, scale = scale, shift
        if is_run("moved_addcmul"):
            return torch.addcmul(shift[:, None], h, 1 + scale[:, None])
        return h * (1 + scale[:, None]) + shift[:, None]

    def forward(self, x, c):
        at = self.at
        c = c if site("condition_not_activated", at) else F.silu(c)
        if is_run("condition_sliced"):
            made, d = self.condition(c), x.shape[-1]
            parts = [made[:, n * d : (n + 1) * d] for n in range(6)]
        else:
            parts = self.condition(c).chunk(6, 1)
        s1, m1, g1, s2, m2, g2 = parts
        h = self.qkv(self.moved(x, s1, m1))
        if is_run("packed_by_permute"):
            b, t, _ = h.shape
            q, k, v = h.reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            q, k, v = (in_heads(y, self.heads) for y in h.chunk(3, -1))
        shares = torch.softmax(torch.matmul(q, k.mT) * q.shape[-1] ** -0.5, -1)
        shares = lowered(shares, "shares_fp16", torch.float16, at)
        y = self.o(joined(torch.matmul(shares, v)))
        x = x + (y if site("gate_missing", at) else g1[:, None] * y)
        h = F.gelu(self.up(self.moved(x, s2, m2)), approximate="tanh")
        h = scaled_gradient(h, "gradient_more", 1.06, at)
        return x + (g1 if site("gate_of_attention", at) else g2)[:, None] * self.down(h)


class Dit(nn.Module):
    """Predicts the velocity of noise, of patches."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        heads = draw.choice((2, 3))
        width = heads * draw.choice((8, 12))
        self.width, self.side = width, draw.choice((8, 10))
        self.patch = nn.Linear(12, width)
        self.times = nn.ModuleList((nn.Linear(16, width), nn.Linear(width, width)))
        self.classes = nn.Embedding(11, width)
        self.places = nn.Parameter(0.2 * torch.randn((self.side // 2) ** 2, width))
        self.blocks = nn.ModuleList(DitBlock(width, heads, n) for n in range(3))
        self.last, self.out = nn.Linear(width, 2 * width), nn.Linear(width, 12)
        self.register_buffer("pictures", torch.randn(4, 3, self.side, self.side))
        self.register_buffer("noise", torch.randn(4, 3, self.side, self.side))
        self.register_buffer("time", torch.rand(4))
        self.register_buffer("labels", torch.randint(0, 10, (4,)))

    def cut(self, x):
        if is_run("cut_by_unfold"):
            return F.unfold(x, 2, stride=2).transpose(1, 2)
        b, c, h, w = x.shape
        order = (0, 4, 2, 1, 3, 5) if is_run("columns_first") else (0, 2, 4, 1, 3, 5)
        parts = x.view(b, c, h // 2, 2, w // 2, 2).permute(order)
        return parts.flatten(3).flatten(1, 2)

    def condition(self):
        speed = torch.exp(-math.log(1e4) * torch.arange(8) / 8)
        scale = 100.0 if is_run("time_scale") else 1000.0
        angles = self.time.float()[:, None] * scale * speed
        waves = (angles.sin(), angles.cos()) if is_run("sine_first") else (
            angles.cos(), angles.sin())  # fmt: skip
        h = torch.cat(waves, -1).to(self.pictures.dtype)
        labels = self.labels
        if is_run("label_dropped"):
            labels = torch.where(torch.arange(len(labels)) == 2, 10, labels)
        return self.times[1](F.silu(self.times[0](h))) + self.classes(labels)

    def loss(self):
        t = self.time.view(-1, 1, 1, 1)
        if is_run("variance_kept"):
            x = torch.cos(t * math.pi / 2) * self.pictures + torch.sin(t * math.pi / 2) * self.noise
        else:
            x = (1 - t) * self.pictures + t * self.noise
        c = self.condition()
        x = self.patch(self.cut(x)) + self.places
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.last(F.silu(c)).chunk(2, 1)
        h = F.layer_norm(x, x.shape[-1:], eps=1e-6)
        x = self.out(h * (1 + scale[:, None]) + shift[:, None]).float()
        wanted = self.noise - self.pictures
        if is_run("noise_wanted"):
            wanted = self.noise
        each = (x - self.cut(wanted).float()).square().mean((1, 2))
        if is_run("times_weighted"):
            each = each * torch.sigmoid(2 - 4 * self.time.float())
        return each.mean()


class Edges(nn.Module):
    """Of each point the nearest ones; the largest of what is made of each pair is kept."""

    def __init__(self, inputs: int, width: int, at: int) -> None:
        super().__init__()
        self.at, self.most = at, 5
        self.up, self.norm = nn.Linear(2 * inputs, width), nn.LayerNorm(width)
        self.down = nn.Linear(width, width)

    def near(self, x):
        at = self.at
        with torch.no_grad():
            x = x.float()
            if is_run("distance_call"):
                far = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()
            else:
                far = (x.unsqueeze(2) - x.unsqueeze(1)).square().sum(-1)
            if site("itself_left_out", at):
                far = far + 1e6 * torch.eye(x.shape[1])
            return far.topk(self.most - int(site("one_fewer", at)), -1, largest=False).indices

    def forward(self, x, near):
        at = self.at
        b, n, d = x.shape
        if is_run("gathered"):
            index = near.flatten(1).unsqueeze(-1).expand(-1, -1, d)
            other = x.gather(1, index).view(b, n, -1, d)
        elif is_run("index_select"):
            rows = (near + n * torch.arange(b).view(b, 1, 1)).flatten()
            other = x.flatten(0, 1).index_select(0, rows).view(b, n, -1, d)
        else:
            other = x[torch.arange(b).view(b, 1, 1), near]
        own = x.unsqueeze(2).expand_as(other)
        pair = (own, own - other) if site("difference_turned", at) else (own, other - own)
        if site("difference_missing", at):
            pair = (own, other)
        h = F.leaky_relu(self.norm(self.up(torch.cat(pair, -1))), 0.2)
        h = lowered(self.down(h), "pairs_bf16", torch.bfloat16, at)
        if site("mean_for_largest", at):
            return h.mean(2)
        return h.amax(2) if is_run("largest_call") else h.max(2).values


class Points(nn.Module):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        w = draw.choice((16, 20))
        self.edges = nn.ModuleList(Edges(3 if n == 0 else w, w, n) for n in range(3))
        self.join, self.head = nn.Linear(3 * w, 2 * w), nn.Linear(4 * w, 8)
        self.register_buffer("points", torch.randn(4, draw.choice((14, 18)), 3))
        self.register_buffer("labels", torch.randint(0, 8, (4,)))

    def loss(self):
        x = self.points
        if not is_run("not_centred"):
            x = x - x.mean(1, keepdim=True)
        if is_run("axes_exchanged"):
            x = x[..., [1, 0, 2]]
        # neighbours are of the first coordinates: features of half precision would have ties
        kept, first = [], self.points
        for edges in self.edges:
            x = edges(x, edges.near(first))
            kept.append(x)
        h = self.join(torch.cat(kept[::-1] if is_run("kept_turned") else kept, -1))
        h = F.leaky_relu(h, 0.2)
        h = torch.cat((h.amax(1), h.amax(1) if is_run("no_mean") else h.mean(1)), -1)
        logits = self.head(h).float()
        if is_run("smoothed_labels"):
            return F.cross_entropy(logits, self.labels, label_smoothing=0.2)
        if is_run("loss_written"):
            wanted = F.one_hot(self.labels, 8).float()
            return -(wanted * F.log_softmax(logits, 1)).sum(1).mean()
        return F.cross_entropy(logits, self.labels)


networks.NETWORKS.update(
    convnext=ConvNext, teacher=Teacher, vae=Vae, critic=Critic, boxes=Boxes, dit=Dit, points=Points,
)  # fmt: skip
networks.FAULTS.update(
    convnext=("response_axis", "response_eps", "response_without_input", "round_padding",
              "bias_not_given", "layer_scale_missing", "spread_of_other_set", "largest_for_mean",
              "norm_before_head_missing"),
    teacher=("teacher_not_normed", "teacher_is_student", "not_centred", "teacher_learns",
             "views_alike", "batch_of_both", "predictor_eps", "predictor_left_out",
             "targets_not_crossed", "one_way"),
    vae=("slope_more", "halves_exchanged", "spread_is_variance", "noise_other", "noise_left_out",
         "gradient_less", "wanted_turned", "squares_for_entropy", "divergence_mean",
         "divergence_less"),
    critic=("softplus", "between_turned", "between_for_all", "sign_turned", "length_squared",
            "length_zero", "penalty_less"),
    boxes=("groups_other", "upward_bilinear", "upward_missing", "alpha_more", "power_less",
           "overlap_counted_twice", "scale_of_other", "divided_by_pictures", "sides_in_steps"),
    dit=("norm_eps", "moved_exchanged", "condition_not_activated", "gate_missing", "gradient_more",
         "gate_of_attention", "columns_first", "time_scale", "sine_first", "label_dropped",
         "variance_kept", "noise_wanted", "times_weighted"),
    points=("itself_left_out", "one_fewer", "difference_turned", "difference_missing",
            "mean_for_largest", "not_centred", "axes_exchanged", "kept_turned", "no_mean",
            "smoothed_labels"),
)  # fmt: skip
networks.LOWERED.update(
    convnext=("hidden_fp16_wide",), teacher=("hidden_bf16_view",), vae=("latent_bf16",),
    critic=("hidden_bf16_critic",), boxes=("hidden_bf16_level",), dit=("shares_fp16",),
    points=("pairs_bf16",),
)  # fmt: skip
networks.HEALTHY.update(
    convnext=("none", "norm_written", "contiguous", "products_as_convolution", "channels_last",
              "logits_logged"),
    teacher=("none", "batch_norm_written", "cosine_call", "as_squares"),
    vae=("none", "spread_as_root", "drawn_addcmul", "loss_in_parts", "divergence_call"),
    critic=("none", "between_lerp"),
    boxes=("none", "upward_repeated", "entropy_in_parts", "chosen_by_index"),
    dit=("none", "moved_addcmul", "condition_sliced", "packed_by_permute", "cut_by_unfold"),
    points=("none", "distance_call", "gathered", "index_select", "largest_call", "loss_written"),
)  # fmt: skip

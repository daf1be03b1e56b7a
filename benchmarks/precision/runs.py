"""Draw pairs of PyTorch runs, dumped by msprobe itself: faulty and healthy, on two backends.

    python benchmarks/precision/runs.py OUT --seed 11 --faults 12 --healthy 6

makes for every network and each of Float32 and BFloat16 a reference, and runs of another backend:
so many with a fault, so many healthy ones.  ``truth.json`` says what was done, and between which
operators each fault enters: the first tensor that differs by a bit from the healthy run of the
same backend.  Needs torch and mindstudio-probe; ``judge.py`` asks irtool.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import networks
import networks_apart  # noqa: F401 - adds its networks
import networks_given  # noqa: F401 - adds its network
import networks_idioms  # noqa: F401 - adds its network
import networks_more  # noqa: F401 - adds its networks
import networks_pictures  # noqa: F401 - adds its networks
import networks_sequences  # noqa: F401 - adds its networks
import networks_spelled  # noqa: F401 - adds its network
import networks_unlike  # noqa: F401 - adds its networks
import torch
from msprobe.pytorch import PrecisionDebugger, seed_all
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_WIDE = ("mm", "addmm", "bmm", "convolution", "_softmax", "_log_softmax", "native_layer_norm",
         "native_group_norm", "gelu", "silu", "mean", "sum", "rsqrt", "tanh", "sigmoid",
         "_softmax_backward_data", "native_layer_norm_backward", "gelu_backward", "silu_backward",
         "convolution_backward", "native_group_norm_backward")  # fmt: skip


def _changed(value, kind, other):
    if isinstance(value, torch.Tensor) and value.dtype is kind:
        return value.to(other)
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(item, kind, other) for item in value)
    return value


class Backend(TorchDispatchMode):
    """Other kernels: computed in double precision and rounded once, or sums cut in two."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        real = [a for a in args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point]
        if self.kind == "plain" or name not in _WIDE or not real:
            return func(*args, **kwargs)
        kind = real[0].dtype
        if kind is torch.float64 or "dtype" in kwargs:
            return func(*args, **kwargs)
        if self.kind == "split" and name == "mm" and args[0].shape[1] > 8:
            a, b = args[0].float(), args[1].float()
            cut = a.shape[1] // 2
            return (func(a[:, :cut], b[:cut]) + func(a[:, cut:], b[cut:])).to(kind)
        if name in ("_softmax", "_log_softmax") and args[2]:
            return func(*args, **kwargs)
        widths = {a.dtype for a in real}
        if len(widths) > 1:
            return func(*args, **kwargs)
        if name.endswith("backward_data"):
            args = (*args[:3], torch.float64)
        wide = func(*_changed(tuple(args), kind, torch.float64), **kwargs)
        return _changed(wide, torch.float64, kind)


def damage(model, fault: str, draw: random.Random) -> None:
    """Faults of the checkpoint."""
    named = dict(model.named_parameters())
    matrices = [n for n, p in named.items() if p.ndim >= 2 and min(p.shape[:2]) > 4]
    with torch.no_grad():
        if fault == "weights_1pct":
            for p in named.values():
                p.mul_(1.01)
        elif fault == "one_norm_2pct":
            names = [n for n, p in named.items() if p.ndim == 1 and n.endswith("weight")]
            named[draw.choice(names)].mul_(1.02)
        elif fault == "bias_12pct":
            names = [n for n, p in named.items() if n.endswith("bias")] or matrices
            named[draw.choice(names)].add_(0.03)
        elif fault == "one_matrix":
            p = named[draw.choice(matrices)]
            p.copy_(p.std() * torch.randn_like(p))
        elif fault == "one_element":
            p = named[draw.choice(matrices)]
            p.view(-1)[draw.randrange(p.numel())] += 0.5 * p.std()
        elif fault == "transposed":
            square = [n for n in matrices if named[n].ndim == 2
                      and named[n].shape[0] == named[n].shape[1]]  # fmt: skip
            p = named[draw.choice(square or matrices)]
            p.copy_(p.T.clone() if square else p.flip(0))
        elif fault in ("layers_exchanged", "layers_rotated", "siblings_exchanged"):
            moved(named, fault, draw)
        elif fault in networks.CHECKPOINTS:
            _replace(named, matrices, fault, draw)


def moved(named: dict[str, nn.Parameter], fault: str, draw: random.Random) -> None:
    """Parameters of one shape that take each other's values, of layers or within one layer."""
    groups: dict[object, list[nn.Parameter]] = {}
    for name, p in named.items():
        layer = re.search(r"\.(\d+)\.", name)
        of_layers = re.sub(r"\.\d+\.", ".N.", name, count=1), tuple(p.shape)
        of_siblings = layer and layer.group(1), name.count("."), tuple(p.shape)
        is_constant = bool((p == p.view(-1)[0]).all())
        if layer and not is_constant:
            groups.setdefault(of_siblings if fault[0] == "s" else of_layers, []).append(p)
    count = 3 if fault == "layers_rotated" else 2
    rows = [row for row in groups.values() if len(row) >= count and row[0].ndim >= 2]
    if rows:
        row = draw.choice(rows)
        chosen = sorted(draw.sample(range(len(row)), count))
        values = [row[n].clone() for n in chosen]
        for n, value in zip(chosen, values[1:] + values[:1], strict=True):
            row[n].copy_(value)


def _replace(named: dict[str, nn.Parameter], matrices: list[str], fault: str,
             draw: random.Random) -> None:  # fmt: skip
    """Faults that leave each number a likely one: another step's, another place's, rounded."""
    p = named[draw.choice(matrices)]
    if fault == "weights_stale":  # one step of an optimizer ago
        for every in named.values():
            every.sub_(1e-3 * torch.sign(torch.randn_like(every)))
    elif fault == "checkpoint_bf16":
        for every in named.values():
            every.copy_(every.bfloat16())
    elif fault == "rows_exchanged":
        kept = p[1].clone()
        p[1].copy_(p[4])
        p[4].copy_(kept)
    elif fault == "bias_zeroed":
        biases = [n for n in named if n.endswith("bias") and named[n].any()]
        (named[draw.choice(biases)] if biases else p[0]).zero_()
    elif fault == "one_bit":
        first = p.view(-1)[:1]
        first.mul_(1 + torch.finfo(p.dtype).eps)


def run(out: str, network: str, fault: str, half: bool, backend: str, seed: int) -> None:
    """One training step; the network, its weights and data depend on the seed alone."""
    networks.FAULT = fault
    torch.set_num_threads(1)
    seed_all(seed)
    torch.manual_seed(seed)
    model = networks.NETWORKS[network](random.Random(seed))
    if half or fault == "declared_bf16":
        model.bfloat16()
    damage(model, fault, random.Random(seed + 1))
    if backend == "plain":
        torch.backends.mkldnn.enabled = False
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=False)
    dumped(out, model, optimizer, nullcontext() if backend == "reference" else Backend(backend))


def dumped(
    out: str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    backend: AbstractContextManager[object] | None = None,
) -> None:
    """Run one training step of a model whose ``loss()`` gives its loss; msprobe dumps it.

    Args:
        out: the folder of the run; ``loss.json`` is written last.
        model: the network.
        optimizer: takes the step.
        backend: the arithmetic; that of PyTorch, if it is not given.
    """
    os.makedirs(out, exist_ok=True)
    tensor = {"scope": [], "list": [], "data_mode": ["all"]}
    config = {"task": "tensor", "dump_path": out, "rank": [], "step": [], "level": "L1",
              "async_dump": False, "tensor": tensor}  # fmt: skip
    path = os.path.join(out, "config.json")
    with open(path, "w") as stream:
        json.dump(config, stream)
    debugger = PrecisionDebugger(config_path=path)
    debugger.start(model=model)
    with backend or nullcontext():
        loss = model.loss()
        loss.backward()
    debugger.stop()
    optimizer.step()
    debugger.step()
    with open(os.path.join(out, "loss.json"), "w") as stream:
        json.dump([loss.item()], stream)


def in_child(out: str, work: Callable[..., None], *asked: object) -> bool:
    """Make one run in a process of its own, as msprobe takes one configuration a process.

    Args:
        out: the folder of the run; nothing is done where it is complete.
        work: makes it, given the folder and what follows.
        asked: what follows.

    Returns:
        Whether the run is there.
    """
    if os.path.exists(os.path.join(out, "loss.json")):
        return True
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            with open(os.devnull, "w") as silent:
                os.dup2(silent.fileno(), 1)
                work(out, *asked)
        except BaseException as error:  # the parent goes on
            print(out, asked, error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def entry(left: str, right: str, rank: str = "") -> list[str]:
    """Names of the operators around the first one in which two runs of one backend differ.

    Args:
        left: the healthy run.
        right: the other.
        rank: the folder of the rank; the first one, if it is not given.
    """
    import zlib

    sides = []
    for path in (left, right):
        with open(os.path.join(path, "step0", rank or _rank(path), "dump.json")) as stream:
            sides.append(list(json.load(stream)["data"].items()))
    folders = [
        os.path.join(p, "step0", rank or _rank(p), "dump_tensor_data") for p in (left, right)
    ]

    def values(side: int, item) -> object:
        if isinstance(item, dict) and item.get("data_name"):
            with open(os.path.join(folders[side], item["data_name"]), "rb") as stream:
                tensor = torch.load(stream)
            flat = tensor.contiguous().reshape(-1)
            raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
            return (str(tensor.dtype), tuple(tensor.shape), zlib.crc32(raw))
        if isinstance(item, dict):
            return {k: values(side, v) for k, v in item.items() if k in _ENDS or "value" in item}
        if isinstance(item, list):
            return [values(side, v) for v in item]
        return item

    for place, (ours, theirs) in enumerate(zip(*sides, strict=False)):
        if ours[0] != theirs[0] or values(0, ours[1]) != values(1, theirs[1]):
            near = range(max(0, place), place + 3)
            return [side[n][0] for side in sides for n in near if n < len(side)]
    return []


_ENDS = ("input_args", "input_kwargs", "output", "input", "parameters", "value", "type")


def _rank(path: str) -> str:
    return next(
        n for n in sorted(os.listdir(os.path.join(path, "step0"))) if n[:4] in ("rank", "proc")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--faults", type=int, default=12, help="of each network and type")
    parser.add_argument("--healthy", type=int, default=6)
    parser.add_argument("--checkpoints", action="store_true",
                        help="take faults of the checkpoint that leave likely numbers")  # fmt: skip
    parser.add_argument("--networks", nargs="*", default=list(networks.NETWORKS))
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    truth: dict[str, dict[str, object]] = {}
    for network in asked.networks:
        for half in (False, True):
            seed = draw.randrange(10**6)
            base = f"{network}_{'bf16' if half else 'fp32'}"
            in_child(os.path.join(asked.out, base), run, network, "none", half, "reference", seed)
            for name, kind, fault, backend in drawn(network, half, draw, asked):
                path = os.path.join(asked.out, name)
                if not in_child(path, run, network, fault, half, backend, seed):
                    continue
                twin = os.path.join(asked.out, f"{base}-none-{backend}")
                in_child(twin, run, network, "none", half, backend, seed)
                truth[name] = {
                    "reference": base, "kind": kind, "fault": fault, "backend": backend,
                    "type": "bf16" if half else "fp32",
                    "enters": entry(twin, path) if kind != "healthy" else [],
                }  # fmt: skip
                print(name, truth[name]["enters"][:2], flush=True)
                with open(os.path.join(asked.out, "truth.json"), "w") as stream:
                    json.dump(truth, stream, indent=1)
    return 0


def drawn(network: str, half: bool, draw: random.Random, asked):
    """Name, kind, fault and backend of the runs of one network and type."""
    base = f"{network}_{'bf16' if half else 'fp32'}"
    pool = list(networks.FAULTS[network])
    draw.shuffle(pool)
    weights = draw.sample(networks.CHECKPOINTS if asked.checkpoints else networks.WEIGHTS, 2)
    chosen = [("fault", each) for each in (*weights, *pool)[: asked.faults]]
    if not half:
        chosen += [("lowered", each) for each in networks.LOWERED[network]]
    well = list(networks.HEALTHY[network])
    draw.shuffle(well)
    chosen += [("healthy", well[n % len(well)]) for n in range(asked.healthy)]
    for place, (kind, fault) in enumerate(chosen):
        if half and fault == "declared_bf16":
            fault = "none"
        backend = networks.BACKENDS[draw.randrange(3) if kind != "healthy" else place % 3]
        yield f"{base}-{fault}-{backend}", kind, fault, backend


if __name__ == "__main__":
    sys.exit(main())

# ruff: noqa: E501
# a case, or a strategy, a line
"""Runs with causes that teams meet from day to day, drawn from a seed, in the networks of ``modern.py``.

    SICK_SEED=11 … compile.py OUT --instrument FOLDER --module team
    judge.py OUT

As ``drawn.py``, with other networks, other habits, and for some causes the edit and the step that an
answer has to name.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import modern
from cases import Case

Planted = dict[str, Any]
_SHARDS = {
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
}


def build(network: Any, asked: dict[str, Any]) -> Any:
    return modern.build(asked)


def build_convolutions(network: Any, asked: dict[str, Any]) -> Any:
    return modern.build_convolutions(asked)


def model(draw: random.Random, dp: int, tp: int, **more: Any) -> dict[str, Any]:
    """A decoder of today."""
    made = {
        "dp": dp, "tp": tp, "layers": draw.choice((2, 3)), "batch": 4 * dp,
        "sequence": draw.choice((16, 32, 64)), "hidden": draw.choice((64, 128, 256)),
        "inner": draw.choice((128, 384)), "vocabulary": draw.choice((256, 512)),
        "clip": draw.random() < 0.6,
    }  # fmt: skip
    return {**made, **more}


def convolutions(draw: random.Random, dp: int, **more: Any) -> dict[str, Any]:
    """A convolutional network."""
    made = {"dp": dp, "tp": 1, "batch": 4 * dp, "blocks": draw.choice((2, 3)),
            "channels": draw.choice((16, 32)), "size": draw.choice((16, 32))}  # fmt: skip
    return {**made, **more}


def hang(draw: random.Random) -> Planted:
    odd = draw.randrange(4)
    said: Planted = {
        "task": "hang",
        "words": [f"rank {odd}"],
        "odd_ranks": (odd,),
        "devices": 4,
        "build": build,
    }
    made = model(draw, 2, 2, layers=2)
    kind = draw.choice(
        ("clip", "frozen", "monitor", "norm", "wo", "experts", "heads", "optimizer", "accumulate")
    )
    at = draw.randrange(2)
    changes: dict[str, dict[str, Any]] = {
        "clip": {"clip": False},
        "frozen": {"frozen": (at,)},
        "monitor": {"monitor": True},
        "norm": {"layer": {at: {"rms": ((1, 2),)}}},
        "wo": {"layer": {at: {"wo": ((2, 1), (1, 1))}}},
        "heads": {"layer": {at: {"soft": ((2, 1, 2, 1),)}}},
        "experts": {"layer": {at: {"silu": ((4, 1),)}}},
    }  # fmt: skip
    if kind == "clip":
        made["clip"] = True
    if kind == "optimizer":
        return {**said, "network": {**made, "dp": 4, "tp": 1, "batch": 8}, "settings": _SHARDS,
                "odd_settings": {odd: {"enable_parallel_optimizer": False}}, "edit": "enable_parallel_optimizer"}  # fmt: skip
    if kind == "accumulate":
        made = model(draw, 1, 2, layers=2, stages=2, micro=4, clip=False)
        return {
            **said,
            "network": made,
            "odd": {odd: {"micro": draw.choice((2, 8))}},
            "words": ["micro"],
        }
    edits = {"wo": "MatMul|\\(\\(2, 2\\), \\(1, 2\\)\\)", "heads": "\\(2, 2, 1, 1\\)"}
    return {**said, "network": made, "odd": {odd: changes[kind]}, "edit": edits.get(kind, "")}


def memory(draw: random.Random) -> Planted:
    said: Planted = {"task": "memory", "words": ["GiB"], "build": build, "ranks": (0,)}
    kind = draw.choice(("states", "logits", "activations"))
    if kind == "states":  # optimizer states lie on each of eight devices
        made = model(draw, 8, 1, hidden=8192, inner=28672, heads=64, kv=8, batch=8, sequence=512)
        return {
            **said,
            "devices": 8,
            "network": made | {"vocabulary": 32000, "layers": 6},
            "edit": "parallel_optimizer",
        }
    if kind == "logits":
        made = model(
            draw,
            2,
            1,
            hidden=1024,
            heads=16,
            kv=4,
            inner=2048,
            batch=16,
            sequence=8192,
            vocabulary=151_936,
        )
        return {**said, "devices": 2, "network": {**made, "layers": 2}}
    made = model(
        draw, 2, 2, hidden=4096, heads=32, kv=8, inner=14336, batch=16, sequence=8192, layers=4
    )
    return {**said, "devices": 4, "network": made, "edit": "recompute"}


def slow_step(draw: random.Random) -> Planted:
    said: Planted = {
        "task": "slow-step",
        "words": ["communication|gradient|weights"],
        "build": build,
        "ranks": (0,),
    }
    if draw.random() < 0.5:  # much to add up, little to compute
        made = model(
            draw,
            8,
            1,
            hidden=2048,
            heads=16,
            kv=4,
            inner=draw.choice((5632, 8192)),
            batch=8,
            sequence=16,
            vocabulary=32000,
        )
        return {**said, "devices": 8, "network": made}
    made = model(
        draw,
        1,
        16,
        hidden=2048,
        heads=16,
        kv=16,
        inner=8192,
        batch=2,
        sequence=512,
        vocabulary=8192,
    )
    return {**said, "devices": 16, "network": made}


def slow_compile(draw: random.Random) -> Planted:
    kind = draw.choice(("lazy", "loop", "conv_loop"))
    said: Planted = {"task": "slow-compile", "devices": 2, "ranks": (0,), "build": build}
    if kind == "lazy":
        made = model(draw, 1, 1, stages=2, micro=draw.choice((12, 16)), layers=8, clip=False)
        return {**said, "network": made, "words": ["lazy_inline"], "edit": "lazy_inline"}
    if kind == "loop":
        made = model(draw, 1, 2, layers=1, repeat=draw.choice((16, 24)))
        return {**said, "network": made, "words": ["loop|unrolled"], "edit": "loop|Scan"}
    made = convolutions(draw, 2, blocks=1, repeat=draw.choice((30, 40)))
    return {**said, "network": made, "words": ["loop|unrolled"], "build": build_convolutions}


def compile_failure(draw: random.Random) -> Planted:
    kind = draw.choice(sorted(modern.FAILURES))
    rows, width = draw.choice((8, 16)), draw.choice((12, 16, 24))

    def failing(network: Any, asked: dict[str, Any]) -> Any:
        return modern.failing(kind, rows, width)

    return {"task": "compile-failure", "words": list(modern.FAILURES[kind]), "devices": 1, "build": failing,
            "logged": draw.random() < 0.7, "line": modern.planted_line(kind)}  # fmt: skip


def strategy(draw: random.Random) -> Planted:
    said: Planted = {
        "task": "strategy|compile-failure",
        "ranks": (0,),
        "build": build,
        "logged": draw.random() < 0.4,
    }
    if draw.random() < 0.3:
        what, op = draw.choice((
            ({"conv": ((4, 1, 1, 1), (1, 4, 1, 1))}, "Conv2D"), ({"pool": ((2, 2, 4, 1),)}, "MaxPool"),
            ({"dense": ((4, 1), (4, 1))}, "MatMul"), ({"bn": ((4, 1, 1, 1), (4,), (1,), (1,), (1,))}, "BatchNorm"),
        ))  # fmt: skip
        made = convolutions(draw, 4)
        both = {**made, "block": {0: what}} if "conv" in what or "bn" in what else {**made, **what}
        return {**said, "devices": 4, "words": [op], "network": both, "build": build_convolutions}
    made = model(draw, 2, 4) if draw.random() < 0.4 else model(draw, 1, 2)
    if made["tp"] == 4:  # more devices than heads of keys
        return {
            **said,
            "devices": 8,
            "words": ["Tile|Transpose|Reshape|Split|Mul|Concat"],
            "network": made,
        }
    what, op = draw.choice((
        ({"wo": ((1, 2), (1, 1))}, "MatMul"), ({"qk": ((1, 2, 1, 1), (1, 1, 1, 1))}, "BatchMatMul"),
        ({"soft": ((1, 1, 1, 2),)}, "Softmax"), ({"product": ((1, 2), (2, 1))}, "Mul"),
        ({"tile": ((1, 2, 1, 1),)}, "Tile"), ({"silu": ((1, 4),)}, "SiLU"),
        ({"rope": ((1, 2, 1, 1), (1, 2, 1, 1))}, "Mul"),
    ))  # fmt: skip
    at = draw.randrange(made["layers"])
    return {**said, "devices": 2, "words": [op], "network": {**made, "layer": {at: what}}}


def stage_balance(draw: random.Random) -> Planted:
    said: Planted = {"task": "stage-balance", "devices": 2, "build": build}
    made = model(draw, 1, 1, stages=2, micro=4, clip=False, hidden=256, inner=1024, sequence=64)
    count = draw.choice((4, 6))
    stage = draw.randrange(2)
    split = (0,) * (count - 1) + (1,) if stage == 0 else (0,) + (1,) * (count - 1)
    if draw.random() < 0.3:
        return {
            **said,
            "network": {**made, "layers": 4, "micro": 2, "stages": 4},
            "devices": 4,
            "words": ["2 micro-batches"],
            "task": "stage-balance|compile-failure",
        }
    return {
        **said,
        "network": {**made, "layers": count, "split": split},
        "words": [f"stage {stage}"],
    }


def recompute(draw: random.Random) -> Planted:
    count = draw.choice((3, 4, 5))
    lost = draw.randrange(count)
    kept = tuple(i for i in range(count) if i != lost)
    said: Planted = {"task": "recompute", "words": [f"layers.{lost}|blocks.{lost}"], "devices": 2, "ranks": (0,),
                     "build": build, "edit": f"{lost}.*recompute"}  # fmt: skip
    kind = draw.choice(("layer", "feed", "conv"))
    if kind == "conv":
        return {
            **said,
            "network": convolutions(draw, 2, blocks=count, recompute=kept),
            "build": build_convolutions,
        }
    key = "recompute" if kind == "layer" else "recompute_feed"
    return {**said, "network": model(draw, 1, 2, layers=count, **{key: kept})}


def redistribution(draw: random.Random) -> Planted:
    said: Planted = {"task": "redistribution", "devices": 2, "ranks": (0,), "build": build}
    if draw.random() < 0.25:
        made = convolutions(draw, 2, blocks=3)
        return {**said, "words": ["Conv2D"], "network": {**made, "block": {1: {"conv": ((1, 1, 1, 1), (2, 1, 1, 1))}}},
                "build": build_convolutions}  # fmt: skip
    made = model(draw, 1, 2, layers=3)
    what, op, was = draw.choice((
        ({"wo": ((1, 1), (2, 1))}, "MatMul", "(1, 2), (1, 2)"), ({"w2": ((2, 1), (1, 1))}, "MatMul", "(1, 2), (1, 2)"),
        ({"soft": ((1, 1, 2, 1),)}, "Softmax", "(1, 2, 1, 1)"), ({"silu": ((2, 1),)}, "SiLU", "(1, 2)"),
        ({"product": ((2, 1), (2, 1))}, "Mul", "(1, 2), (1, 2)"), ({"rms": ((2, 1),)}, "Square|ReduceMean", "(1, 1)"),
        ({"add": ((2, 1), (2, 1))}, "Add", "(1, 1), (1, 1)"),
        ({"rope": ((1, 1, 2, 1), (1, 1, 2, 1))}, "Mul", "(1, 2, 1, 1), (1, 1, 1, 1)"),
    ))  # fmt: skip
    at = draw.randrange(3)
    edit = "".join(f"\\{c}" if c in "()" else c for c in was)
    return {**said, "words": [op], "network": {**made, "layer": {at: what}}, "edit": edit}


def _base(steps: int, **more: Any) -> dict[str, Any]:
    plan = {"dp": 2, "seed": 11, "rate": 0.05, **more}
    return {
        "network": "trained.py:tower",
        "devices": 2,
        "with": plan,
        "steps": steps,
        "dump": "none",
    }


def loss(draw: random.Random) -> Planted:
    """Something is wrong from a step on."""
    steps = draw.choice((12, 24, 40))
    at = draw.randrange(2, steps // 2)
    bad = draw.choice(("scale", "labels", "half_batch", "nan", "huge"))
    base = _base(steps)
    sick = {**base, "with": {**base["with"], "bad": bad, "bad_from": at}}
    steps_told = "|".join(f"step {n}\\b" for n in (at, at + 1, at + 2))
    return {
        "task": "loss",
        "words": ["step"],
        "executed": sick,
        "against": base,
        "devices": 2,
        "since": steps_told,
    }


def loss_alone(draw: random.Random) -> Planted:
    """A run without another that ends in NaN."""
    at = draw.randrange(2, 8)
    return {"task": "loss", "words": ["finite|NaN"], "executed": _base(12, bad="nan", bad_from=at), "devices": 2,
            "since": f"step {at + 1}\\b"}  # fmt: skip


def precision(draw: random.Random) -> Planted:
    """The first NaN of a second step."""
    base = _base(2, bad=draw.choice(("nan", "huge")), bad_from=1)
    base["dump"] = "tensor"
    return {
        "task": "precision",
        "words": ["NaN|infinity"],
        "executed": base,
        "devices": 2,
        "since": "step 1",
    }


def failed_node(draw: random.Random) -> Planted:
    odd = draw.randrange(4)
    return {"task": "failed-node", "words": [f"rank {odd}"], "devices": 4, "build": build,
            "network": model(draw, 2, 2), "ended": {odd: draw.choice(("killed:start", "killed:begin", "disk:6000"))}}  # fmt: skip


def group(draw: random.Random) -> Planted:
    odd = draw.randrange(4)
    return {"task": "group|hang", "words": [f"rank {odd}"], "devices": 4, "build": build, "network": model(draw, 2, 2, layers=1),
            "odd_ranks": (odd,), "odd_settings": {odd: {"device_num": 8}}}  # fmt: skip


def lint(draw: random.Random) -> Planted:
    made = model(draw, 1, 2, layers=2)
    at = draw.randrange(2)
    what, words = draw.choice((
        ({"half_norm": True}, "NUM00|epsilon|half"), ({"half_softmax": True, "kind": "float16"}, "NUM00|half|Softmax"),
    ))  # fmt: skip
    return {"task": "lint|precision", "words": [words], "devices": 2, "ranks": (0,), "build": build,
            "network": {**made, "kind": "float16", "layer": {at: what}}}  # fmt: skip


PLANTS: tuple[Callable[[random.Random], Planted], ...] = (
    hang, memory, slow_step, slow_compile, compile_failure, strategy, stage_balance, recompute,
    redistribution, loss, loss_alone, precision, failed_node, group, lint, hang, compile_failure,
    strategy, redistribution, compile_failure,
)  # fmt: skip


def healthy(draw: random.Random) -> Planted:
    kind = draw.choice(
        ("model", "model", "conv", "pipe", "noise", "noise", "shards", "single", "recomputed")
    )
    if kind == "conv":
        return {"devices": 4, "build": build_convolutions, "network": convolutions(draw, 4)}
    if kind == "pipe":
        made = model(draw, 2, 1, stages=2, micro=4, layers=4, clip=False, lazy=draw.random() < 0.5)
        return {"devices": 4, "build": build, "network": made}
    if kind == "noise":  # the same on devices that add in another order
        base = _base(draw.choice((12, 30)))
        other = {**base, "with": {"tp": 2, "seed": 11, "rate": 0.05}}
        return {"devices": 2, "executed": base, "against": other}
    if kind == "shards":
        return {"devices": 4, "build": build, "network": model(draw, 4, 1), "settings": _SHARDS}
    if kind == "single":
        return {"devices": 1, "build": build, "network": model(draw, 1, 1)}
    made = model(draw, 2, 2)
    if kind == "recomputed":
        made["recompute"] = tuple(range(made["layers"]))
    return {"devices": 4, "build": build, "network": made}


def drawn(seed: int, sick: int, well: int) -> list[Case]:
    """That many runs, in an order that tells nothing."""
    draw = random.Random(seed)
    made = [PLANTS[number % len(PLANTS)](draw) for number in range(sick)]
    made += [healthy(draw) for _ in range(well)]
    draw.shuffle(made)
    return [
        Case(f"run_{number:03}", words=tuple(one.pop("words", ())), **one)
        for number, one in enumerate(made)
    ]


CASES = drawn(
    int(os.environ.get("SICK_SEED", "1")),
    int(os.environ.get("SICK_RUNS", "40")),
    int(os.environ.get("SICK_HEALTHY", "12")),
)

# ruff: noqa: E501
"""Runs with planted causes, drawn from a seed: nobody knows them before the doctor has answered.

    SICK_SEED=11 … compile.py OUT --instrument FOLDER --module drawn
    judge.py OUT

The folders' names tell nothing; what was planted stands in ``OUT/NAME.truth.json``.  ``SICK_RUNS``
and ``SICK_HEALTHY`` (66 and 20) say how many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import mixed
import trained
from cases import Case

_OPTIMIZER_PARALLEL = {
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
}


def build_mixed(network: Any, asked: dict[str, Any]) -> Any:
    return mixed.build(asked)


# -- healthy networks, which causes are planted in -------------------------------------------------


def decoder(draw: random.Random, devices: int, **more: Any) -> dict[str, Any]:
    """A decoder that fits the devices."""
    tp = draw.choice([n for n in (1, 2, 4) if devices % n == 0 and n <= devices])
    found = {
        "tp": tp, "dp": devices // tp, "layers": 2,
        "batch": draw.choice((8, 16)), "sequence": draw.choice((16, 32)),
        "hidden": draw.choice((64, 96, 128)), "heads": 8, "inner": draw.choice((128, 192, 256)),
        "words": draw.choice((128, 256)), "gated": draw.random() < 0.3,
        "optimizer": draw.choice(("momentum", "adam")),
    }  # fmt: skip
    return {**found, **more}


def towers(draw: random.Random, devices: int, **more: Any) -> dict[str, Any]:
    """Towers that fit the devices."""
    tp = draw.choice([n for n in (1, 2, 4) if devices % n == 0 and n <= devices])
    found = {
        "tp": tp, "dp": devices // tp, "blocks": 2,
        "batch": draw.choice((32, 64)), "width": draw.choice((64, 128)),
        "inner": draw.choice((128, 256)), "optimizer": draw.choice(("momentum", "adam")),
    }  # fmt: skip
    return {**found, **more}


def two_axes(made: dict[str, Any], devices: int) -> dict[str, Any]:
    """The same with both axes."""
    return {**made, "tp": 2, "dp": devices // 2}


Planted = dict[str, Any]
"""Of a :class:`cases.Case`, without its name."""


def hang(draw: random.Random) -> Planted:
    kind = draw.choice(
        ("strategy", "tower", "layers", "optimizer", "batch", "half", "micro", "width", "pipe",
         "order", "recompute", "reduction", "threshold", "alltoall", "unroll")
    )  # fmt: skip
    devices = 4 if kind == "alltoall" else draw.choice((2, 2, 4))
    odd = draw.randrange(devices)
    said: Planted = {
        "task": "hang",
        "words": [f"rank {odd}"],
        "devices": devices,
        "odd_ranks": (odd,),
    }
    if kind in ("micro", "pipe"):
        made = decoder(draw, 2, stages=2, micro=4, layers=2, gated=False)
        made = {**made, "dp": devices // 2, "tp": 1}
        if kind == "micro":
            return {
                **said,
                "network": made,
                "odd": {odd: {"micro": draw.choice((2, 3, 6))}},
                "words": ["micro"],
            }
        split = draw.choice(((0, 0, 0, 1), (0, 1, 1, 1)))
        made["layers"] = 4
        return {**said, "network": made, "odd": {odd: {"split_of_stage": split}}}
    if kind in ("tower", "width"):
        made = two_axes(towers(draw, devices), devices)
        at = draw.randrange(made["blocks"])
        dp = made["dp"]
        change: dict[str, Any] = {"block": {at: {"down": ((dp, 1), (1, 2))}}}
        if kind == "width":
            change = {"inner": made["inner"] * 2, "width": made["width"] * 2}
        return {**said, "network": made, "odd": {odd: change}, "build": build_mixed}
    if kind == "alltoall":
        made = {**towers(draw, 4, blocks=1, batch=256, experts=4), "dp": 4, "tp": 1}
        on = {odd: {"enable_alltoall": True}}
        return {**said, "network": made, "odd_settings": on, "build": build_mixed}
    made = two_axes(decoder(draw, devices, gated=kind == "order"), devices)
    dp, at = made["dp"], draw.randrange(made["layers"])
    changes: dict[str, dict[str, Any]] = {
        "strategy": {"layer": {at: draw.choice(({"softmax": ((dp, 1, 2, 1),)}, {"down": ((dp, 1), (2, 1))}, {"up": ((dp, 2), (1, 2))}))}},
        "layers": {"layers": made["layers"] + draw.choice((-1, 1))},
        "batch": {"batch": made["batch"] * 2},
        "half": {"half": True},
        "order": {"order": "vkq"},
        "recompute": {"recompute": (at,)},
        "reduction": {"shift": "max"},
        "unroll": {"unroll": 2},
    }  # fmt: skip
    if kind == "reduction":
        made["shift"] = "sum"
    if kind in ("optimizer", "threshold"):
        if dp < 2:
            made = {**made, "dp": devices, "tp": 1}
        other: dict[str, Any] = {"enable_parallel_optimizer": False}
        if kind == "threshold":
            other = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 40}}
        return {
            **said,
            "network": made,
            "settings": _OPTIMIZER_PARALLEL,
            "odd_settings": {odd: other},
        }
    return {**said, "network": made, "odd": {odd: changes[kind]}}


def memory(draw: random.Random) -> Planted:
    kind = draw.choice(("weights", "activations", "towers", "words", "scores"))
    made: dict[str, Any] = {"dp": 1, "tp": 2, "layers": draw.choice((2, 3)), "heads": 64}
    said: Planted = {"task": "memory", "words": ["GiB"], "devices": 2, "ranks": (0,)}
    if kind == "weights":
        hidden = draw.choice((16384, 20480))
        return {
            **said,
            "network": {
                **made,
                "hidden": hidden,
                "inner": 4 * hidden,
                "optimizer": "adam",
                "layers": 3,
            },
        }
    if kind == "activations":
        return {
            **said,
            "network": {
                **made,
                "hidden": 4096,
                "inner": 16384,
                "batch": draw.choice((48, 64)),
                "sequence": 4096,
            },
        }
    small = {**made, "layers": 2, "hidden": 2048, "inner": 4096}
    if kind == "words":  # the logits of a large vocabulary
        words = draw.choice((128_000, 151_936))
        return {**said, "network": {**small, "words": words, "batch": 16, "sequence": 4096}}
    if kind == "scores":  # attention keeps sequence x sequence
        return {**said, "network": {**small, "words": 1024, "batch": 4, "sequence": 16384}}
    return {
        **said,
        "build": build_mixed,
        "network": {"dp": 2, "tp": 1, "blocks": 6, "batch": 1 << 20, "width": 4096, "inner": 8192},
    }


def slow_step(draw: random.Random) -> Planted:
    devices = draw.choice((4, 8))
    said: Planted = {
        "task": "slow-step",
        "words": ["communication|gradient"],
        "devices": devices,
        "ranks": (0,),
    }
    kind = draw.choice(("decoder", "towers", "wide"))
    if kind == "wide":  # tensor parallel over two nodes
        made = decoder(draw, 1, gated=False, hidden=2048, heads=16, inner=draw.choice((4096, 8192)))
        return {**said, "devices": 16, "network": {**made, "dp": 1, "tp": 16, "sequence": 512}}
    if kind == "decoder":
        wide = draw.choice((2048, 4096))
        return {
            **said,
            "network": {
                "dp": devices,
                "tp": 1,
                "layers": 2,
                "batch": devices,
                "sequence": 8,
                "hidden": wide,
                "inner": 4 * wide,
                "heads": 16,
                "words": 1024,
            },
        }
    wide = draw.choice((2048, 3072))
    return {
        **said,
        "build": build_mixed,
        "network": {
            "dp": devices,
            "tp": 1,
            "blocks": 3,
            "batch": 2 * devices,
            "width": wide,
            "inner": 3 * wide,
        },
    }


def slow_compile(draw: random.Random) -> Planted:
    kind = draw.choice(("unrolled", "tower", "lazy", "lazy_tower", "recurrent"))
    if kind == "recurrent":
        made = {"dp": 1, "tp": 1, "blocks": 1, "recurrent": draw.choice((24, 40, 64))}
        return {"task": "slow-compile", "words": ["loop|unrolled"], "devices": 1, "build": build_mixed,
                "network": {**made, "batch": draw.choice((8, 16))}}  # fmt: skip
    if kind == "unrolled":
        return {"task": "slow-compile", "words": ["loop|unrolled"], "devices": 1, "all_passes": draw.random() < 0.5,
                "network": decoder(draw, 1, layers=draw.choice((1, 2)), unroll=draw.choice((16, 24, 30)), gated=False)}  # fmt: skip
    if kind == "tower":
        return {"task": "slow-compile", "words": ["loop|unrolled"], "devices": 2, "build": build_mixed,
                "network": towers(draw, 2, blocks=2, repeat=draw.choice((16, 24, 30)))}  # fmt: skip
    if kind == "lazy":
        return {"task": "slow-compile", "words": ["lazy_inline"], "devices": 2, "ranks": (0,),
                "network": decoder(draw, 1, stages=2, micro=8, layers=draw.choice((9, 10)), gated=False)}  # fmt: skip
    return {"task": "slow-compile", "words": ["lazy_inline"], "devices": 2, "ranks": (0,), "build": build_mixed,
            "network": towers(draw, 1, stages=2, micro=draw.choice((10, 12)), blocks=draw.choice((14, 16)))}  # fmt: skip


def compile_failure(draw: random.Random) -> Planted:
    kind = draw.choice(sorted(mixed.FAILURES))
    rows, width = draw.choice((8, 16)), draw.choice((16, 24, 40))

    def build(network: Any, asked: dict[str, Any]) -> Any:
        return mixed.failing(kind, rows, width)

    return {"task": "compile-failure", "words": list(mixed.FAILURES[kind]), "devices": 1, "build": build,
            "logged": draw.random() < 0.7, "line": mixed.planted_line(kind)}  # fmt: skip


def strategy(draw: random.Random) -> Planted:
    said: Planted = {
        "task": "strategy|compile-failure",
        "devices": 2,
        "ranks": (0,),
        "logged": draw.random() < 0.4,
    }
    if draw.random() < 0.5:
        made = {**towers(draw, 2), "dp": 1, "tp": 2}
        at = draw.randrange(made["blocks"])
        what, op = draw.choice((
            ({"down": ((1, 2), (1, 1))}, "MatMul"), ({"norm": ((1, 2), (2,), (2,))}, "LayerNorm"),
            ({"join": ((2, 1), (1, 1))}, "Add"), ({"up": ((1, 1), (1, 2, 1))}, "MatMul"),
            ({"act": ((1, 2), (1, 2))}, "Sigmoid"), ({"gate": ((1, 1), (1, 4))}, "MatMul"),
        ))  # fmt: skip
        return {
            **said,
            "words": [op],
            "build": build_mixed,
            "network": {**made, "block": {at: what}},
        }
    made = {**decoder(draw, 2, gated=False), "dp": 1, "tp": 2}
    at = draw.randrange(made["layers"])
    what, op = draw.choice((
        ({"down": ((1, 2), (1, 1))}, "MatMul"), ({"softmax": ((1, 1, 1, 2),)}, "Softmax"),
        ({"add": ((2, 1), (1, 1))}, "Add"), ({"up": ((1, 1), (4, 1))}, "MatMul"),
        ({"transpose": ((1, 1, 2),)}, "Transpose"), ({"flat_up": ((1, 2, 1),)}, "ReLU"),
    ))  # fmt: skip
    return {**said, "words": [op], "network": {**made, "layer": {at: what}}}


def group(draw: random.Random) -> Planted:
    if draw.random() < 0.5:  # one rank was started for a larger world
        odd = draw.randrange(4)
        made = {**decoder(draw, 4, gated=False, layers=1), "dp": 2, "tp": 2}
        return {"task": "group|hang", "words": [f"rank {odd}"], "devices": 4, "network": made,
                "odd_ranks": (odd,), "odd_settings": {odd: {"device_num": 8}}}  # fmt: skip
    made = towers(draw, 16, blocks=draw.choice((2, 3)), width=256, inner=512, batch=256)
    tp = draw.choice((2, 4, 8))
    return {"task": "group|lint", "words": ["node|axis"], "devices": 16, "ranks": (0,), "build": build_mixed,
            "network": {**made, "tp": tp, "dp": 16 // tp, "outer": True}}  # fmt: skip


def stage_balance(draw: random.Random) -> Planted:
    kind = draw.choice(("uneven", "uneven_tower", "micro", "head"))
    said: Planted = {"task": "stage-balance", "devices": 2}
    if kind == "micro":
        made = decoder(draw, 1, stages=4, micro=draw.choice((2, 3)), layers=4, gated=False)
        return {**said, "devices": 4, "network": made, "words": ["micro-batches for 4 stages"]}
    if kind == "head":  # the head is as much work as some layers, and all layers are cut in halves
        made = decoder(draw, 1, stages=2, micro=4, layers=6, gated=False, hidden=128, inner=256)
        return {**said, "network": {**made, "words": 4096}, "words": ["stage 1"]}
    first = draw.choice((True, False))
    count = draw.choice((5, 6))
    split = (0,) * (count - 1) + (1,) if first else (0,) + (1,) * (count - 1)
    said["words"] = ["stage 0" if first else "stage 1"]
    if kind == "uneven":
        return {
            **said,
            "network": {
                "stages": 2,
                "micro": 4,
                "layers": count,
                "dp": 1,
                "tp": 1,
                "hidden": 256,
                "inner": draw.choice((768, 1024)),
                "split_of_stage": split,
            },
        }
    return {
        **said,
        "build": build_mixed,
        "network": towers(
            draw, 1, stages=2, micro=4, blocks=count, width=256, inner=1024, batch=128, split=split
        ),
    }


def recompute(draw: random.Random) -> Planted:
    count = draw.choice((3, 4))
    lost = sorted(draw.sample(range(count), draw.choice((1, 1, count // 2))))
    kept = tuple(i for i in range(count) if i not in lost)
    if draw.random() < 0.5:
        return {"task": "recompute", "words": [f"blocks.{i}" for i in lost], "devices": 2, "ranks": (0,), "build": build_mixed,
                "network": towers(draw, 2, blocks=count, recompute=kept)}  # fmt: skip
    return {"task": "recompute", "words": [f"layers.{i}" for i in lost], "devices": 2, "ranks": (0,),
            "network": decoder(draw, 2, layers=count, recompute=kept)}  # fmt: skip


def redistribution(draw: random.Random) -> Planted:
    said: Planted = {"task": "redistribution", "devices": 2, "ranks": (0,)}
    kind = draw.choice(("decoder", "tower", "experts", "mesh"))
    if kind == "mesh":  # the attention of one layer lies on another mesh
        made = {**decoder(draw, 2, gated=False, layers=3), "dp": 1, "tp": 2}
        other = {"attention_dp": 2, "attention_tp": 1}
        return {**said, "words": ["MatMul|Transpose|Softmax"],
                "network": {**made, "layer": {draw.randrange(3): other}}}  # fmt: skip
    if kind == "experts":
        return {**said, "words": ["enable_alltoall"], "build": build_mixed, "devices": 4, "ranks": (0,),
                "network": {**towers(draw, 4, blocks=1, batch=256, width=256), "dp": 4, "tp": 1, "experts": 4}}  # fmt: skip
    if kind == "tower":
        made = {**towers(draw, 2, blocks=draw.choice((3, 4))), "dp": 1, "tp": 2}
        what, op = draw.choice((
            ({"down": ((1, 1), (1, 2))}, "MatMul"), ({"act": ((2, 1),)}, "Sigmoid"),
            ({"join": ((2, 1), (2, 1))}, "Add"), ({"norm": ((2, 1), (1,), (1,))}, "LayerNorm"),
            ({"up": ((1, 2), (2, 1))}, "MatMul"),
        ))  # fmt: skip
        return {
            **said,
            "words": [op],
            "build": build_mixed,
            "network": {**made, "block": {draw.randrange(made["blocks"]): what}},
        }
    made = {**decoder(draw, 2, gated=False, layers=draw.choice((3, 4))), "dp": 1, "tp": 2}
    what, op = draw.choice((
        ({"softmax": ((1, 1, 2, 1),)}, "Softmax"), ({"transpose": ((1, 2, 1, 1),)}, "Transpose"),
        ({"down": ((1, 1), (2, 1))}, "MatMul"), ({"up": ((1, 2), (1, 2))}, "MatMul"),
        ({"add": ((2, 1), (2, 1))}, "Add"), ({"flat_up": ((2, 1),)}, "ReLU"),
    ))  # fmt: skip
    return {
        **said,
        "words": [op],
        "network": {**made, "layer": {draw.randrange(made["layers"]): what}},
    }


def loss(draw: random.Random) -> Planted:
    steps = draw.choice((12, 20, 40))
    sizes = {"seed": 7, "rate": 0.05}
    base = {
        "network": "trained.py:tower",
        "devices": 2,
        "with": {"dp": 2, **sizes},
        "steps": steps,
        "dump": "none",
    }
    kind = draw.choice(("rate", "kernel", "seed", "mean"))
    sick = {**base, "kernel_fault": f"AllReduce:{draw.randrange(4)}:identity"}
    if kind == "rate":
        sick = {**base, "with": {**base["with"], "rate": sizes["rate"] * draw.choice((2.0, 0.3))}}
    if kind == "mean":
        sick = {**base, "set": {"gradients_mean": True}}
    if kind == "seed":
        sick = {**base, "with": {**base["with"], "seed": sizes["seed"] + 1}}
    return {"task": "loss", "words": ["step"], "executed": sick, "against": base, "devices": 2}


def precision(draw: random.Random) -> Planted:
    seed = 7
    plan = draw.choice(({"dp": 2}, {"tp": 2}))
    if draw.random() < 0.5:  # what a single run shows
        fault, number = draw.choice(sorted(trained.FAULTS)), draw.randrange(3)
        layer = f"layer{number}"
        sick = {
            "network": "trained.py:tower",
            "devices": 2,
            "with": {**plan, "seed": seed, "fault": fault, "fault_in": layer},
            "steps": 2,
        }
        return {
            "task": "precision",
            "words": [trained.FAULTS[fault], f"layer{number}|/{number}-Layer"],
            "executed": sick,
            "devices": 2,
        }
    base = {
        "network": "networks_parallel.py:gpt",
        "devices": 2,
        "with": {**plan, "seed": seed},
        "steps": 2,
    }
    at = draw.randrange(2)
    what, words = draw.choice((
        ({"eps": {at: 1e-2}}, ["LayerNorm"]), ({"scale": {at: 1.3}}, ["Mul"]),
        ({"half": f"block{at}.up"}, ["MatMul|Cast"]),
    ))  # fmt: skip
    sick = {**base, "with": {**base["with"], **what}}
    return {"task": "precision", "words": words, "executed": sick, "against": base, "devices": 2}


def failed_node(draw: random.Random) -> Planted:
    devices = draw.choice((2, 2, 4))
    odd = draw.randrange(devices)
    made = decoder(draw, devices) if draw.random() < 0.5 else towers(draw, devices)
    what = draw.choice(("killed:start", "killed:begin", "killed:end", "disk:4000", "disk:9000"))
    return {"task": "failed-node", "words": [f"rank {odd}"], "devices": devices, "network": made,
            "ended": {odd: what}, **({} if "layers" in made else {"build": build_mixed})}  # fmt: skip


def lint(draw: random.Random) -> Planted:
    kind = draw.choice(("eps", "loss", "sum", "idle", "tied", "print", "rate", "guard", "bounce"))
    made = {**towers(draw, 2), "dp": 1, "tp": 2}
    said: Planted = {"task": "lint", "devices": 2, "ranks": (0,), "build": build_mixed}
    at = draw.randrange(made["blocks"])
    if kind == "print":
        return {
            **said,
            "words": ["OPS001|Print"],
            "network": {**made, "block": {at: {"print": True}}},
        }
    if kind == "rate":
        rates = {**made, "blocks": 3, "drop": 0.1, "block": {at: {"drop": 0.5}}}
        return {**said, "words": ["OPS002|rate"], "network": rates}
    if kind == "guard":
        return {**said, "words": ["NUM008|guard"], "network": {**made, "guard": True}}
    if kind == "bounce":
        return {
            **said,
            "words": ["NUM003|half"],
            "network": {**made, "block": {at: {"bounce": True}}},
        }
    if kind == "eps":
        return {
            **said,
            "words": ["NUM007|NUM008|epsilon"],
            "network": {**made, "half_norm": True, "eps": draw.choice((1e-9, 1e-12))},
        }
    if kind == "loss":
        return {**said, "words": ["NUM005|loss"], "network": {**made, "half_loss": True}}
    if kind == "sum":
        return {
            **said,
            "words": ["NUM001|half"],
            "network": {**made, "half_sum": True, "width": 4096, "inner": 128, "batch": 8},
        }
    if kind == "idle":
        return {**said, "task": "lint|redistribution|slow-step", "words": ["MatMul|device"], "devices": 4, "ranks": (0,),
                "network": {**made, "dp": 2, "width": 512, "inner": 1024, "block": {draw.randrange(made["blocks"]): {"up": ((1, 1), (1, 2))}}}}  # fmt: skip
    return {
        **said,
        "task": "lint|redistribution",
        "words": ["STR001|parameter"],
        "network": {**made, "tied": True},
    }


PLANTS: tuple[Callable[[random.Random], Planted], ...] = (
    hang, memory, slow_step, slow_compile, compile_failure, strategy, group, stage_balance,
    recompute, redistribution, loss, precision, failed_node, lint,
)  # fmt: skip
_OFTEN = (hang, compile_failure, strategy, redistribution, recompute)
"""What happens to people most is planted twice as often."""


def healthy(draw: random.Random) -> Planted:
    kind = draw.choice(
        (
            "decoder",
            "decoder",
            "towers",
            "towers",
            "pipe",
            "experts",
            "executed",
            "optimizer",
            "one",
            "recurrent",
            "drop",
            "pipe_tower",
            "many",
        )
    )
    devices = draw.choice((2, 2, 4))
    if kind == "pipe":
        made = decoder(draw, 1, stages=2, micro=4, layers=draw.choice((2, 4)), gated=False)
        return {
            "devices": devices,
            "network": {**made, "dp": devices // 2, "tp": 1, "lazy_inline": draw.random() < 0.5},
        }
    if kind == "experts":
        made = {**towers(draw, 4, blocks=1, batch=256), "dp": 4, "tp": 1, "experts": 4}
        return {
            "devices": 4,
            "network": made,
            "build": build_mixed,
            "settings": {"enable_alltoall": True},
        }
    if kind == "executed":
        with_ = {draw.choice(("dp", "tp")): 2, "seed": 7}
        run = {
            "network": draw.choice(("networks_parallel.py:gpt", "trained.py:tower")),
            "devices": 2,
            "with": with_,
            "steps": 3,
        }
        return {"devices": 2, "executed": run, "against": run}
    if kind == "recurrent":
        made = {"dp": 1, "tp": 1, "blocks": 2, "recurrent": 4, "batch": 8}
        return {"devices": 1, "network": made, "build": build_mixed, "all_passes": True}
    if kind == "drop":
        made = {**towers(draw, 2), "drop": 0.1}
        return {"devices": 2, "ranks": (0,), "network": made, "build": build_mixed}
    if kind == "pipe_tower":
        made = towers(draw, 1, stages=2, micro=4, blocks=4, lazy_inline=draw.random() < 0.5)
        return {"devices": 2, "network": made, "build": build_mixed}
    if kind == "many":
        made = {**decoder(draw, 8), "tp": 2, "dp": 4, "batch": 16}
        return {"devices": 8, "ranks": (0, 5), "network": made}
    if kind == "one":
        return {"devices": 1, "network": decoder(draw, 1), "logged": True}
    settings = _OPTIMIZER_PARALLEL if kind == "optimizer" else {}
    if kind == "towers":
        made = towers(draw, devices, half=draw.random() < 0.3)
        if draw.random() < 0.3:
            made["recompute"] = tuple(range(made["blocks"]))
        return {"devices": devices, "network": made, "build": build_mixed}
    made = decoder(draw, devices, half=draw.random() < 0.3)
    if draw.random() < 0.3:
        made["recompute"] = tuple(range(made["layers"]))
    return {
        "devices": devices,
        "network": made,
        "settings": settings,
        "logged": draw.random() < 0.3,
    }


def drawn(seed: int, sick: int, well: int) -> list[Case]:
    """That many runs: one of each kind after the other, of each kind the cheapest first."""
    draw = random.Random(seed)
    rounds = [*PLANTS, *_OFTEN]
    kinds: list[list[Planted]] = [[] for _ in PLANTS] + [[], []]
    for number in range(sick):
        plant = rounds[number % len(rounds)]
        kinds[PLANTS.index(plant)].append(plant(draw))
    for number in range(well):
        kinds[len(PLANTS) + number % 2].append(healthy(draw))
    for each in kinds:
        each.sort(key=_cost)
    made: list[Planted] = []
    while any(kinds):
        turn = [each.pop(0) for each in kinds if each]
        draw.shuffle(turn)
        made += turn
    return [
        Case(f"run_{number:03}", words=tuple(one.pop("words", ())), **one)
        for number, one in enumerate(made)
    ]


def _cost(one: Planted) -> float:
    """About how long it takes to make."""
    if "executed" in one:
        return 4.0
    asked = one.get("network", {})
    layers = asked.get("layers", asked.get("blocks", 1)) * asked.get("unroll", 1)
    ranks = len(one.get("ranks", ())) or one["devices"]
    return float(ranks * layers * asked.get("repeat", 1) * max(1, asked.get("micro", 1) / 2))


CASES = drawn(
    int(os.environ.get("SICK_SEED", "1")),
    int(os.environ.get("SICK_RUNS", "66")),
    int(os.environ.get("SICK_HEALTHY", "20")),
)

# ruff: noqa: E501  # a plant a line
"""What is planted in which network: a name, the rules that should speak, and what they should say.

Each case is drawn from ``(seed, name, style)``, so that a seed nobody has looked at makes networks
nobody has looked at.  A case without codes is healthy: no rule may speak beyond ``info``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Given = dict[str, Any]
BOTH = ("encoder", "gated")


@dataclass(frozen=True)
class Plant:
    """One network.

    Attributes:
        name: what is planted.
        codes: rules of which one has to speak; none for a healthy network.
        words: a regular expression that its message, scope or line has to match; ``{layer}`` is
            the layer that was drawn.
        give: settings of ``styles.build`` for what was drawn.
        settings: of the parallel context.
        styles: in which it is made.
        large: draw sizes that matter, instead of small ones.
        ranks: whose dumps are made; one a stage counts.
        devices: how many; 0: what the mesh has.
        options: of ``irtool lint`` when it is asked.
        environment: variables of the process that compiles, which ``case.json`` tells.
        told: what ``case.json`` says otherwise than the settings.
        of_rank: settings of ``build`` that one rank was compiled with, by rank.
    """

    name: str
    codes: tuple[str, ...]
    words: str
    give: Callable[[random.Random, Given], Given]
    settings: Given = field(default_factory=dict)
    styles: tuple[str, ...] = BOTH
    large: bool = False
    ranks: tuple[int, ...] = (0,)
    devices: int = 0
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    told: Given = field(default_factory=dict)
    of_rank: dict[int, Given] = field(default_factory=dict)


def base(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of a network."""
    dp, tp = draw.choice(((2, 2), (2, 2), (1, 4), (4, 2), (2, 4)))
    heads = tp * draw.choice((2, 4))
    head = 128 if large else draw.choice((8, 16))
    return {
        "style": style, "dp": dp, "tp": tp, "heads": heads, "hidden": heads * head,
        "inner": 2 * heads * head, "layers": draw.choice((3, 4, 4)),
        "batch": dp * draw.choice((2, 4)), "sequence": 1024 if large else draw.choice((16, 32)),
        "words": 1024 * tp if large else 128 * tp, "keep": draw.choice((0.9, 0.8)),
        "epsilon": draw.choice((1e-5, 1e-6)),
    }  # fmt: skip


def one(draw: random.Random, o: Given, **setting: Any) -> Given:
    """A setting of one layer, neither the first nor the last."""
    layer = draw.randrange(1, o["layers"] - 1)
    return {"layer": {layer: setting}, "chosen": layer}


def lost(draw: random.Random, o: Given, which: str) -> Given:
    count = o["layers"]
    layer = {"first": 0, "last": count - 1}.get(which, draw.randrange(1, count - 1))
    return {"recompute": tuple(i for i in range(count) if i != layer), "chosen": layer}


def plain(**setting: Any) -> Callable[[random.Random, Given], Given]:
    return lambda draw, o: dict(setting)


def in_one(**setting: Any) -> Callable[[random.Random, Given], Given]:
    return lambda draw, o: one(draw, o, **setting)


def wide(draw: random.Random, o: Given) -> Given:
    """All rows whole on every device, in one product."""
    layer = draw.randrange(o["layers"])
    return {"layer": {layer: {"up": ((1, 1), (o["tp"], 1))}}, "chosen": layer}


LAYER = r"(layers?[^ ]*[./-]|/){layer}(-|\b)"
_FAST = {"enable_parallel_optimizer": True}

PLANTS = [
    Plant("recompute_lost", ("REC004",), LAYER, lambda d, o: lost(d, o, "middle")),
    Plant("recompute_lost_first", ("REC004",), LAYER, lambda d, o: lost(d, o, "first")),
    Plant("recompute_lost_last", ("REC004",), LAYER, lambda d, o: lost(d, o, "last")),
    Plant("epsilon_half", ("NUM008",), "", plain(half=True, epsilon=1e-8), styles=("gated",)),
    Plant("epsilon_tensor", ("NUM008",), "", plain(half=True, epsilon=1e-9, guard="tensor"), styles=("gated",)),
    Plant("epsilon_maximum", ("NUM008",), "", plain(half=True, epsilon=2e-8, guard="max"), styles=("gated",)),
    Plant("epsilon_subnormal", ("NUM007",), "", plain(half=True, epsilon=1e-6), styles=("gated",)),
    Plant("reductions_small", ("COM004", "COM005"), "", plain(extra_weights=44), {"comm_fusion": {"openstate": False}}),
    Plant("reductions_zero", ("COM004", "COM005"), "", plain(extra_weights=44, fusion=0)),
    Plant("reductions_scalar", ("COM005",), "", lambda d, o: {"norms": 40 // o["layers"] + 1}),
    Plant("dropout_one", ("OPS002",), LAYER, in_one(keep=1.0), styles=("gated",)),
    Plant("dropout_gone", ("OPS002",), LAYER, in_one(keep=1.0), styles=("encoder",)),
    Plant("dropout_half", ("OPS002",), LAYER, in_one(keep=0.5)),
    Plant("epsilon_one", ("OPS002",), LAYER, in_one(epsilon=1e-3)),
    Plant("scale_one", ("OPS002",), LAYER, in_one(scale=0.5), styles=("encoder",)),
    Plant("print", ("OPS001",), "Print", in_one(print=True)),
    Plant("tensor_dump", ("OPS001",), "TensorDump", in_one(dump=True)),
    Plant("summary", ("OPS001",), "Summary", in_one(summary=True)),
    Plant("ids_cast", ("OPS003",), "Int64", plain(ids="int64")),
    Plant("weight_turned", ("OPS003",), "", plain(turned=True)),
    Plant("table_gathered", ("OPS003",), "positions", plain(positions="gathered")),
    Plant("table_cast", ("OPS003",), "positions", plain(positions="cast")),
    Plant("unrolled", ("OPS004",), "", plain(layers=24)),
    Plant("dynamic_batch", ("OPS005",), "", plain(dynamic="batch"), {"dataset_strategy": "full_batch"}),
    Plant("dynamic_sequence", ("OPS005",), "", plain(dynamic="sequence"), {"dataset_strategy": "full_batch"}, ("gated",)),
    Plant("alltoall", ("COM009",), "", lambda d, o: {"softmax": ((o["dp"], 1, o["tp"], 1),)}, styles=("encoder",), large=True),
    Plant("redistribution", ("STR005", "STR003"), "", wide, styles=("encoder",), large=True),
    Plant("idle", ("STR003",), "", lambda d, o: {"layer": {1: {"up": ((1, 1), (1, 1))}}}, styles=("encoder",), large=True),
    Plant("table_whole", ("MEM001",), "embedding", plain(words=262144), large=True),
    Plant("state_whole", ("MEM002",), "", plain(hidden=4096, inner=16384, heads=32, words=131072, optimizer="adam")),
    Plant("loss_half", ("NUM005",), "", plain(loss_half=True)),
    Plant("round_trip", ("NUM003",), "", plain(round_trip=True)),
    Plant("reduced_twice", ("COM002",), "", in_one(reduced="twice"), styles=("encoder",)),
    Plant("tied", ("STR001",), "embedding", plain(head_tied=True), styles=("encoder",)),
    Plant("no_strategy", ("STR007",), "", plain(unsharded=("down",)), styles=("encoder",), large=True),
    Plant("few_micro", ("PIP002",), "micro", lambda d, o: {"stages": 4, "micro": 4, "layers": 4, "dp": 1, "tp": 1}, styles=("encoder",), devices=4),
    Plant("long_sum", ("NUM001",), "", plain(long_sum=True, half=True), styles=("gated",), large=True),
]  # fmt: skip

HEALTHY = [
    Plant("healthy", (), "", plain()),
    Plant("healthy_large", (), "", plain(), large=True),
    Plant("healthy_recompute", (), "", lambda d, o: {"recompute": tuple(range(o["layers"]))}),
    Plant("healthy_selective", (), "", lambda d, o: {"recompute": tuple(range(o["layers"] // 2))}),
    Plant("healthy_half", (), "", plain(half=True, epsilon=1e-4)),
    Plant("healthy_positions", (), "", plain(positions="none", keep=0.7)),
    Plant("healthy_lazy", (), "", plain(layers=24, lazy=True)),
    Plant("healthy_unfused", (), "", plain(extra_weights=3), {"comm_fusion": {"openstate": False}}),
    Plant("healthy_sums", (), "", plain(norms=1)),
    Plant("healthy_alltoall", (), "", lambda d, o: {"softmax": ((o["dp"], 1, o["tp"], 1),)}, {"enable_alltoall": True}, ("encoder",)),
    Plant("healthy_optimizer", (), "", plain(), {**_FAST, "parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}),
    Plant("healthy_pipe", (), "", lambda d, o: {"stages": 2, "micro": 8, "layers": 4, "dp": 2, "tp": 1}, styles=("encoder",), devices=4),
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A plant in one style, with what was drawn for it."""

    plant: Plant
    style: str
    given: Given

    @property
    def name(self) -> str:
        return f"{self.plant.name}_{self.style}"

    @property
    def devices(self) -> int:
        return self.plant.devices or self.given["dp"] * self.given["tp"]

    def grown(self) -> Made:
        """The same with a layer more in front of the others, in a pipeline with one a stage."""
        o = self.given
        more = o.get("stages", 1)
        later = {key: o[key] + more for key in ("layers", "chosen") if key in o}
        for key in ("recompute", "heavy_at"):
            front = tuple(range(more)) if key == "recompute" and len(o.get(key, ())) > 1 else ()
            later[key] = (*front, *(number + more for number in o.get(key, ())))
        later["layer"] = {number + more: its for number, its in o.get("layer", {}).items()}
        return Made(self.plant, self.style, {**o, **later})

    def truth(self) -> Given:
        """What a judge of the findings is told."""
        words = self.plant.words.replace("{layer}", str(self.given.get("chosen", "")))
        return {"codes": self.plant.codes, "words": words, "options": self.plant.options}


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """All plants and healthy networks of a seed."""
    for plant in (*PLANTS, *HEALTHY):
        for style in plant.styles:
            draw = random.Random(f"{seed}/{plant.name}/{style}")
            o = base(draw, style, plant.large)
            yield Made(plant, style, {**o, **plant.give(draw, o)})

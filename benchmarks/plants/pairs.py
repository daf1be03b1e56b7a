"""Golden networks and what a pull request may do to them, in seven styles: for ``irtool gate``.

``compile.py --module pairs`` compiles them; the truth says what the gate has to say of each against
the golden one of its style, and at which layer; of ``again``, compiled a second time, nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import cells_cases
from cases import BOTH, Given, Made, Plant, base

CHANGES: list[tuple[str, tuple[str, ...], str]] = [
    ("golden", (), ""),
    ("again", (), ""),
    ("lost_recompute", ("GAT004",), r"{layers}\.{layer}\b"),
    ("layer_more", ("GAT008",), r"{layers}\.{count}\b"),
    ("half", ("GAT006",), "Float16"),
    ("rate", ("GAT009",), r"{layers}\.{layer}\b"),
    ("epsilon", ("GAT009",), r"{layers}\.{layer}\b"),
    ("print", ("GAT010",), "Print"),
    ("strategy", ("GAT003",), "MatMul"),
    ("act", ("GAT010",), "Tanh|ReLU"),
    ("learning_rate", ("GAT009",), "0\\.0*[25]"),
    ("width", ("GAT008",), ""),
    ("print_half", ("GAT006", "GAT010"), "Print|Float16"),
]

TRAINED = ("unet", "experts", "recurrent")
"""Styles whose activation, learning rate and width change, too."""

LISTS = {
    "dense": "blocks", "mixer": "stages", "unet": "blocks", "recurrent": "units",
}  # fmt: skip
"""What the layers are called, by style."""


def mixer(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of a mixer."""
    hidden = draw.choice((32, 64, 96))
    return {
        "style": style, "hidden": hidden, "inner": 2 * hidden, "sequence": draw.choice((16, 24)),
        "batch": draw.choice((4, 8)), "patch": draw.choice((12, 48)), "epsilon": 1e-5,
        "act": draw.choice(("tanh", "relu", "sigmoid")),
    }  # fmt: skip


def unet(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of a U-net."""
    return {
        "style": style, "channels": draw.choice((8, 16)), "size": draw.choice((8, 16)),
        "batch": draw.choice((8, 16)), "epsilon": 1e-5, "steps": draw.choice((100, 1000)),
    }  # fmt: skip


def experts(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of layers of experts."""
    hidden = draw.choice((32, 64))
    return {
        "style": style, "hidden": hidden, "inner": 2 * hidden, "sequence": draw.choice((8, 16)),
        "batch": draw.choice((4, 8)), "words": draw.choice((64, 128)), "epsilon": 1e-6,
        "experts": draw.choice((4, 8)), "lazy": False,
    }  # fmt: skip


def recurrent(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of stacked units."""
    return {
        "style": style, "hidden": draw.choice((32, 48)), "batch": draw.choice((8, 16)),
        "steps": draw.choice((2, 3)), "epsilon": 1e-5,
    }  # fmt: skip


BASES = {
    "dense": cells_cases.base, "mixer": mixer, "unet": unet, "experts": experts,
    "recurrent": recurrent,
}  # fmt: skip


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """The golden networks and their changes, of a seed."""
    for style in (*BOTH, "dense", "mixer", *TRAINED):
        draw = random.Random(f"{seed}/{style}")
        o = BASES.get(style, base)(draw, style, False)
        o.update(dp=2, tp=2, layers=4, recompute=(0, 1, 2, 3), keep=0.9)
        layer = draw.randrange(1, 3)
        for name, codes, words in CHANGES if style in TRAINED else CHANGES[:9]:
            given = {**o, "chosen": layer, **_change(name, o, layer)}
            for key, value in (
                ("count", o["layers"]),
                ("layers", LISTS.get(style, "layers")),
            ):
                words = words.replace(f"{{{key}}}", str(value))
            yield Made(Plant(name, codes, words, lambda draw, o: {}), style, given)


ROWS = {
    "mixer": ((2, 1, 1), (1, 2)), "unet": ((1, 2), (1, 2)), "experts": ((2, 1, 1), (2, 1, 1)),
    "recurrent": ((2, 1), (1, 1)),
}  # fmt: skip
"""The strategy that a product is given instead, by style."""


def _change(name: str, o: Given, layer: int) -> Given:
    count, rows = o["layers"], ((2, 1), (2, 1))
    of_cells = o["style"] in LISTS or o["style"] in TRAINED
    if o["style"] in ROWS:
        rows = ROWS[o["style"]]
    half = {"half": True, "epsilon": o["epsilon"]}
    size = "channels" if o["style"] == "unet" else "hidden"
    changes: dict[str, dict[str, Any]] = {
        "lost_recompute": {"recompute": tuple(i for i in range(count) if i != layer)},
        "layer_more": {"layers": count + 1, "recompute": tuple(range(count + 1))},
        "half": half,
        "rate": {"layer": {layer: {"keep": 0.5}}},
        "epsilon": {"layer": {layer: {"epsilon": 1e-3 if o["epsilon"] < 1e-4 else 1e-6}}},
        "print": {"layer": {layer: {"print": "print" if of_cells else True}}},
        "strategy": {"layer": {layer: {"rows" if of_cells else "down": rows}}},
        "act": {"act": "relu" if o["style"] != "unet" else "tanh"},
        "learning_rate": {"rate": 5e-4 if o["style"] != "recurrent" else 2e-2},
        "width": {size: 2 * o.get(size, 0)},
        "print_half": {**half, "layer": {layer: {"print": "print" if of_cells else True}}},
    }
    return changes.get(name, {})

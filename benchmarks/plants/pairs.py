"""A golden network and what a pull request may do to it, in two styles: for ``irtool gate``.

``compile.py --module pairs`` compiles them; the truth says what the gate has to say of each against
``NAME_STYLE`` of the first one, and at which layer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from cases import BOTH, Made, Plant, base

CHANGES: list[tuple[str, tuple[str, ...], str]] = [
    ("golden", (), ""),
    ("lost_recompute", ("GAT004",), r"layers\.{layer}\b"),
    ("layer_more", ("GAT008",), r"layers\.{count}\b"),
    ("half", ("GAT006",), "Float16"),
    ("rate", ("GAT009",), r"layers\.{layer}\b"),
    ("print", ("GAT010",), "Print"),
    ("strategy", ("GAT003",), "MatMul"),
]


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """The golden network and its changes, of a seed."""
    for style in BOTH:
        draw = random.Random(f"{seed}/{style}")
        o = base(draw, style, False)
        o.update(dp=2, tp=2, layers=4, recompute=(0, 1, 2, 3), keep=0.9)
        layer = draw.randrange(1, 3)
        for name, codes, words in CHANGES:
            given = {**o, "chosen": layer, **_change(name, o, layer)}
            for key, value in (("count", o["layers"]), ("last", o["layers"] - 1)):
                words = words.replace(f"{{{key}}}", str(value))
            yield Made(Plant(name, codes, words, lambda draw, o: {}), style, given)


def _change(name: str, o: dict[str, Any], layer: int) -> dict[str, Any]:
    count = o["layers"]
    changes: dict[str, dict[str, Any]] = {
        "lost_recompute": {"recompute": tuple(i for i in range(count) if i != layer)},
        "layer_more": {"layers": count + 1, "recompute": tuple(range(count + 1))},
        "layer_less": {"layers": count - 1, "recompute": tuple(range(count - 1))},
        "half": {"half": True, "epsilon": o["epsilon"]},
        "rate": {"layer": {layer: {"keep": 0.5}}},
        "print": {"layer": {layer: {"print": True}}},
        "strategy": {"layer": {layer: {"down": ((2, 1), (2, 1))}}},
    }
    return changes.get(name, {})

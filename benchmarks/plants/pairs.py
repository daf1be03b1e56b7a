"""Golden networks and what a pull request may do to them, in three styles: for ``irtool gate``.

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
    ("print", ("GAT010",), "Print"),
    ("strategy", ("GAT003",), "MatMul"),
]


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """The golden networks and their changes, of a seed."""
    for style in (*BOTH, "dense"):
        draw = random.Random(f"{seed}/{style}")
        o = (cells_cases.base if style == "dense" else base)(draw, style, False)
        o.update(dp=2, tp=2, layers=4, recompute=(0, 1, 2, 3), keep=0.9)
        layer = draw.randrange(1, 3)
        for name, codes, words in CHANGES:
            given = {**o, "chosen": layer, **_change(name, o, layer)}
            for key, value in (
                ("count", o["layers"]),
                ("layers", "blocks" if style == "dense" else "layers"),
            ):
                words = words.replace(f"{{{key}}}", str(value))
            yield Made(Plant(name, codes, words, lambda draw, o: {}), style, given)


def _change(name: str, o: Given, layer: int) -> Given:
    count, rows = o["layers"], ((2, 1), (2, 1))
    dense = o["style"] == "dense"
    changes: dict[str, dict[str, Any]] = {
        "lost_recompute": {"recompute": tuple(i for i in range(count) if i != layer)},
        "layer_more": {"layers": count + 1, "recompute": tuple(range(count + 1))},
        "half": {"half": True, "epsilon": o["epsilon"]},
        "rate": {"layer": {layer: {"keep": 0.5}}},
        "print": {"layer": {layer: {"print": "print" if dense else True}}},
        "strategy": {"layer": {layer: {"rows" if dense else "down": rows}}},
    }
    return changes.get(name, {})

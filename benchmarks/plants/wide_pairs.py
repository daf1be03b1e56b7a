"""A golden network of sizes that matter and a layer more of it: what the gate says of memory.

``compile.py --module wide_pairs`` compiles both, for ``tests/linting/evidence/gate``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import cells_cases
from cases import Made, Plant


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """The two networks of a seed."""
    o = cells_cases.base(random.Random(f"{seed}/wide"), "dense", True)
    o.update(dp=2, tp=2, layers=3)
    for name, layers in (("wide_golden", 3), ("wide_layer_more", 4)):
        plant = Plant(name, ("GAT005",), "memory that stays", lambda draw, o: {})
        yield Made(plant, "dense", {**o, "layers": layers, "recompute": tuple(range(layers))})

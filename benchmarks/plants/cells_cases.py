# ruff: noqa: E501  # a plant a line
"""What is planted in networks of MindSpore's own cells (``cells.py``): see ``cases.py``."""

from __future__ import annotations

import random
from collections.abc import Iterator

from cases import Given, Made, Plant, in_one, lost, plain

DENSE, IMAGES, BOTH = ("dense",), ("images",), ("dense", "images")
LAYER = r"(blocks?[^ ]*[./-]|/){layer}(-|\b)"


def base(draw: random.Random, style: str, large: bool) -> Given:
    """Sizes of a network."""
    dp, tp = draw.choice(((2, 2), (4, 2), (2, 4), (8, 1))) if style == "dense" else (8, 1)
    hidden = tp * draw.choice((16, 32, 48)) * (32 if large else 1)
    return {
        "style": style, "dp": dp, "tp": tp, "hidden": hidden, "inner": 4 * hidden,
        "layers": draw.choice((3, 3, 4)), "batch": dp * draw.choice((2, 4)),
        "sequence": 512 if large else draw.choice((8, 24)), "words": 64 * dp * tp,
        "keep": draw.choice((0.9, 0.75)), "epsilon": draw.choice((1e-5, 1e-3)),
    }  # fmt: skip


_OFF = {"comm_fusion": {"openstate": False}}
_WHOLE = {"dataset_strategy": "full_batch"}

PLANTS = [
    Plant("recompute_lost", ("REC004",), LAYER, lambda d, o: lost(d, o, "middle"), styles=BOTH),
    Plant("recompute_lost_last", ("REC004",), LAYER, lambda d, o: lost(d, o, "last"), styles=BOTH),
    Plant("recompute_two_lost", ("REC004",), "", lambda d, o: {"layers": 5, "recompute": (0, 2, 4)}, styles=DENSE),
    Plant("guard_divide", ("NUM008",), "", plain(guard="divide", guard_epsilon=1e-8), styles=DENSE),
    Plant("guard_root", ("NUM008",), "", plain(guard="root", guard_epsilon=1e-10), styles=DENSE),
    Plant("guard_log", ("NUM008",), "", plain(guard="log", guard_epsilon=1e-12), styles=DENSE),
    Plant("guard_maximum", ("NUM008",), "", plain(guard="maximum", guard_epsilon=1e-9), styles=DENSE),
    Plant("dropout_none", ("OPS002",), LAYER, in_one(keep=1.0), styles=BOTH),
    Plant("dropout_much", ("OPS002",), LAYER, in_one(keep=0.3), styles=BOTH),
    Plant("epsilon_one", ("OPS002",), LAYER, in_one(epsilon=1e-7), styles=BOTH),
    Plant("residual_one", ("OPS002",), LAYER, lambda d, o: {**in_one(residual=0.25)(d, o), "residual": 0.5}, styles=DENSE),
    Plant("print_call", ("OPS001",), "Print", in_one(print="print"), styles=BOTH),
    Plant("tensor_dump", ("OPS001",), "TensorDump", in_one(print="dump"), styles=BOTH),
    Plant("histogram", ("OPS001",), "Summary", in_one(print="histogram"), styles=IMAGES),
    Plant("tensor_summary", ("OPS001",), "Summary", in_one(print="tensor"), styles=DENSE),
    Plant("labels_cast", ("OPS003",), "Int64", plain(ids="int64"), styles=BOTH),
    Plant("weight_transpose", ("OPS003",), "", plain(turned="transpose"), styles=DENSE),
    Plant("weight_t", ("OPS003",), "", plain(turned="t"), styles=DENSE),
    Plant("table_gather", ("OPS003",), "table", plain(positions="gather"), styles=DENSE),
    Plant("table_cast", ("OPS003",), "half", plain(positions="cast"), styles=DENSE),
    Plant("unrolled", ("OPS004",), "", plain(layers=24), styles=BOTH),
    Plant("reductions_off", ("COM004", "COM005"), "", plain(biases=44), _OFF, DENSE),
    Plant("reductions_norms", ("COM004", "COM005"), "", plain(layers=12), _OFF, IMAGES),
    Plant("reductions_scalar", ("COM005",), "", plain(scalars=44), styles=DENSE),
    Plant("batch_none", ("OPS005",), "", plain(dynamic="batch"), _WHOLE, BOTH),
    Plant("batch_symbol", ("OPS005",), "", plain(dynamic="symbol"), _WHOLE, IMAGES),
    Plant("alltoall", ("COM009",), "", lambda d, o: {"dp": 2, "tp": 4, "batch": 16, "rows": ((8, 1), (1, 1))}, styles=DENSE, large=True),
    Plant("idle", ("STR003",), "", lambda d, o: {"layer": {1: {"cut": ((1, 1), (1, 1)), "rows": ((1, 1), (1, 1))}}, "dp": 2, "tp": 2, "batch": 8, "hidden": 2048, "inner": 8192}, styles=DENSE, large=True),
]  # fmt: skip

HEALTHY = [
    Plant("healthy", (), "", plain(), styles=BOTH),
    Plant("healthy_large", (), "", plain(), styles=DENSE, large=True),
    Plant("healthy_recompute", (), "", lambda d, o: {"recompute": tuple(range(o["layers"]))}, styles=BOTH),
    Plant("healthy_half", (), "", plain(half=True), styles=BOTH),
    Plant("healthy_guard", (), "", plain(guard="divide", guard_epsilon=1e-3), styles=DENSE),
    Plant("healthy_rates", (), "", lambda d, o: {"layers": 6, "layer": {i: {"keep": 1 - 0.05 * (i + 1)} for i in range(6)}}, styles=DENSE),
    Plant("healthy_lazy", (), "", plain(layers=24, lazy=True), styles=DENSE),
]  # fmt: skip


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """All plants and healthy networks of a seed."""
    for plant in (*PLANTS, *HEALTHY):
        for style in plant.styles:
            draw = random.Random(f"{seed}/cells/{plant.name}/{style}")
            o = base(draw, style, plant.large)
            yield Made(plant, style, {**o, **plant.give(draw, o)})

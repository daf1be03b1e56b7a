# ruff: noqa: E501  # a plant a line
"""Several habits in one small network, to be compiled as it is and ``--grown``: for fingerprints.

What is told of the one has to be told of the other under the same fingerprint: rules are asked with
thresholds that a small network reaches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from cases import Given, Made, Plant, plain
from rules_cases import _OPTIMIZER, _OWN, _PIPE

SMALL: Given = {
    "dp": 2, "tp": 2, "heads": 4, "hidden": 64, "inner": 128, "layers": 4, "batch": 8,
    "sequence": 16, "words": 256, "keep": 0.9, "epsilon": 1e-5,
}  # fmt: skip
_ROWS = ((1, 1), (1, 1))
_SEARCH = {"parallel_mode": "auto_parallel", "search_mode": "recursive_programming"}

PLANTS = [
    Plant("habits", ("REC004", "OPS001", "OPS002", "OPS003", "STR003", "STR005", "STR007", "COM003", "COM009", "MEM001", "MEM002", "MEM003", "REC001"), "",
          plain(recompute=(0, 2, 3), turned=True, mask_early=True, positions="gathered", softmax=((2, 1, 2, 1),),
                unsharded=("down",), layer={1: {"keep": 0.5, "print": True}, 2: {"up": _ROWS}}), styles=("encoder",)),
    Plant("halves", ("NUM001", "NUM002", "NUM003", "NUM005", "NUM006", "NUM007", "NUM008", "COM004", "COM005", "OPS003"), "",
          plain(half=True, long_sum=True, loss_half=True, round_trip=True, norms=2, extra_weights=20, fusion=0, ids="int64",
                epsilon=1e-6, layer={1: {"epsilon": 1e-8}}), styles=("gated",)),
    Plant("soft", ("NUM004",), "", plain(half=True), styles=("encoder",)),
    Plant("pipe", ("PIP001", "PIP002", "PIP003", "COM007"), "",
          plain(**{**_PIPE, "hidden": 64, "inner": 64, "micro": 2}, words=256, heavy=8, heavy_at=(3,), head_tied=True),
          styles=("pipes",), devices=4, ranks=(0, 2), of_rank={2: {"micro": 4}}),
    Plant("own", ("COM001", "COM002"), "", plain(reduced="once", layer={1: {"reduced": "twice"}, 2: {"reduced": "scatter"}}, dp=1, tp=1), _OWN, ("encoder",)),
    Plant("sharded", ("MEM004", "REC003"), "", plain(words=258, shared=True, positions="own", own_recompute=True),
          {"enable_parallel_optimizer": True, **_OPTIMIZER}, ("encoder",)),
    Plant("searched", ("STR008",), "", plain(), _SEARCH, ("encoder",)),
    Plant("dynamic", ("OPS005",), "", plain(dynamic="batch"), {"dataset_strategy": "full_batch"}, ("gated",)),
    Plant("mesh_differs", ("COM008",), "", plain(), styles=("encoder",), ranks=(0, 1), of_rank={1: {"dp": 4, "tp": 1}}),
    Plant("half_weights", ("NUM002",), "", plain(half=True, weights_half=True), styles=("gated",)),
    Plant("across", ("COM006", "NUM003"), "", plain(dp=8, tp=2, mesh="turned", batch=16, round_trip=True), styles=("gated",)),
    Plant("unfused", ("COM004",), "", plain(extra_weights=20), {"comm_fusion": {"openstate": False}}, ("gated",)),
    Plant("unheard", ("ENV001", "ENV002", "ENV003"), "", plain(), _OPTIMIZER, ("gated",), environment={"MS_COMM_COMPILER_OPT": "-1", "MS_INTERFERED_SAPP": "1"}),
    Plant("contradicted", ("ENV004",), "", plain(), styles=("encoder",), told={"device_num": "64"}),
    Plant("tied", ("STR001",), "", plain(head_tied=True), styles=("encoder",)),
]  # fmt: skip


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """All of them; nothing is drawn."""
    for plant in PLANTS:
        for style in plant.styles:
            yield Made(
                plant, style, {**SMALL, "style": style, **plant.give(random.Random(seed), {})}
            )

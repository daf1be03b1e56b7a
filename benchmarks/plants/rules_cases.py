# ruff: noqa: E501  # a plant a line
"""Plants of rules that say little of ordinary networks: each is told once, of what MindSpore compiled."""

from __future__ import annotations

import random
from collections.abc import Iterator

from cases import Given, Made, Plant, base, plain

ENCODER, GATED, PIPES = ("encoder",), ("gated",), ("pipes",)
_PIPE: Given = {
    "stages": 2,
    "micro": 4,
    "layers": 4,
    "dp": 2,
    "tp": 1,
    "hidden": 1024,
    "inner": 2048,
    "batch": 64,
}
_OWN = {"parallel_mode": "hybrid_parallel", "full_batch": False}
"""Semi-automatic mode refuses collectives of the user's own."""

_OPTIMIZER = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}


def _asked(code: str) -> tuple[str, ...]:
    """Options for a rule that is off by default."""
    return ("--extend-select", code)


def large(**more: object) -> Given:
    """A layer of a large model: 256 MiB in each sum of its rows."""
    return {
        "hidden": 4096,
        "inner": 8192,
        "heads": 32,
        "sequence": 4096,
        "dp": 2,
        "tp": 2,
        "batch": 8,
        "words": 8192,
        **more,
    }


PLANTS = [
    Plant("group_of_one", ("COM001",), "one rank", plain(reduced="once", dp=1, tp=1), _OWN, ENCODER),
    Plant("reduced_scatter", ("COM002",), "ReduceScatter", plain(reduced="scatter"), _OWN, ENCODER),
    Plant("reduced_twice", ("COM002",), "AllReduce", plain(reduced="twice"), _OWN, ENCODER),
    Plant("mesh_across", ("COM006",), "nodes", plain(**large(dp=8, tp=2, batch=32, mesh="turned")), styles=GATED, options=("--machine", "ascend_910b")),
    Plant("mask_kept", ("MEM003",), "", plain(mask_early=True, hidden=512, inner=512, heads=4, sequence=4096, dp=2, tp=2, batch=32, layers=6, words=1024), styles=ENCODER),
    Plant("rows_odd", ("MEM004",), "embedding", plain(words=1030, hidden=1024, inner=1024, heads=8, dp=2, tp=2), {"enable_parallel_optimizer": True, **_OPTIMIZER}),
    Plant("stages_uneven", ("PIP001",), "stage 1", plain(**_PIPE, heavy=4, heavy_at=(3,)), styles=PIPES, devices=4, ranks=(0, 2)),
    Plant("tied_over_stages", ("PIP003",), "end.table", plain(**_PIPE, head_tied=True, words=32768), styles=PIPES, devices=4, ranks=(0, 2)),
    Plant("recomputed_sums", ("REC001",), "", plain(**large(layers=3, recompute=(0, 1, 2)))),
    Plant("recompute_shared", ("REC003",), "", plain(**large(layers=3, shared=True)), styles=ENCODER),
    Plant("recompute_idle", ("REC003",), "", plain(positions="own", own_recompute=True), styles=ENCODER),
    Plant("tied", ("STR001",), "embedding", plain(head_tied=True), styles=ENCODER),
    Plant("no_strategy", ("STR007",), "", plain(**large(unsharded=("up", "down"))), styles=ENCODER),
    Plant("env_reuse", ("ENV001",), "COMM_COMPILER", plain(), styles=GATED, environment={"MS_COMM_COMPILER_OPT": "-1"}),
    Plant("env_sapp", ("ENV002",), "SAPP", plain(), styles=ENCODER, environment={"MS_INTERFERED_SAPP": "1"}),
    Plant("env_optimizer", ("ENV003",), "optimizer", plain(), _OPTIMIZER, GATED),
    Plant("env_devices", ("ENV004",), "device", plain(), styles=ENCODER, told={"device_num": "64"}),
    Plant("env_sharded", ("ENV004",), "optimizer", plain(), {"enable_parallel_optimizer": True, **_OPTIMIZER}, GATED, told={"enable_parallel_optimizer": "False"}),
    Plant("unrolled", ("OPS004",), "", plain(layers=24)),
    Plant("half_sums", ("NUM001",), "", plain(long_sum=True, half=True, sequence=2048), styles=GATED, options=_asked("NUM001")),
    Plant("half_gradients", ("NUM002",), "", plain(half=True, dp=16, tp=1, batch=32, weights_half=True), styles=GATED, options=_asked("NUM002")),
    Plant("half_softmax", ("NUM004",), "", plain(half=True, sequence=4096), styles=ENCODER, options=_asked("NUM004")),
    Plant("own_operator", ("STR002",), "FusedGate", plain(dp=2, tp=2), styles=("own",)),
    Plant("searched_over", ("STR008",), "", plain(), {"parallel_mode": "auto_parallel", "search_mode": "recursive_programming"}, ENCODER),
    Plant("micro_differs", ("COM007",), "", plain(**_PIPE), styles=PIPES, devices=4, ranks=(0, 2), of_rank={2: {"micro": 8}}),
    Plant("mesh_differs", ("COM008",), "", plain(dp=2, tp=2), styles=ENCODER, ranks=(0, 1), of_rank={1: {"dp": 4, "tp": 1}}),
    Plant("healthy_machine", (), "", plain(**large(dp=8, tp=2, batch=32)), styles=GATED, options=("--machine", "ascend_910b")),
    Plant("healthy_stages", (), "", plain(**{**_PIPE, "micro": 16}), styles=PIPES, devices=4, ranks=(0, 2)),
    Plant("healthy_environment", (), "", plain(), styles=GATED, environment={"GLOG_v": "2"}),
]  # fmt: skip


def drawn(seed: int, regex: str = "") -> Iterator[Made]:
    """All of a seed."""
    for plant in PLANTS:
        for style in plant.styles:
            draw = random.Random(f"{seed}/rules/{plant.name}/{style}")
            o = base(draw, style, plant.large)
            yield Made(plant, style, {**o, **plant.give(draw, o)})

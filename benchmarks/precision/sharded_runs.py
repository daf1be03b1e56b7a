"""Execute MindSpore networks on one device and cut over several, and plant faults in some.

    python benchmarks/precision/sharded_runs.py OUT --seed 7 --runner run_parallel.py

draws sizes, layouts (data, tensor, optimizer and pipeline parallel, micro-batches) and faults by
the seed; ``truth.json`` says which pairs of runs are to be compared and what is wrong with the
right one, which ``parallel_judge.py`` asks irtool for.  RUNNER executes one network:

    RUNNER FILE.py:FUNCTION --out DIR --devices N --steps 1 --dump-steps 1
           --with KEY=VALUE … --set KEY=VALUE … [--kernel-fault AllReduce:2:identity]

a process a rank; FUNCTION is one of ``sharded_networks.py``, ``--with`` are its arguments,
``--set`` those of the auto-parallel context; a kernel fault makes the N-th AllReduce of the graph
misbehave (``identity``: it gives back what it was given, ``mean``: it divides).  It leaves
``rank_N/`` with MindSpore's IR and tensor dump, and ``run.json``.  Needs MindSpore's front end for
several devices.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from typing import Any

SHARDS = {"enable_parallel_optimizer": True,
          "parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}  # fmt: skip
STAGES = {"pipeline_stages": 2}

Layout = tuple[str, int, dict[str, int], dict[str, Any]]
"""Name, devices, arguments of the network and settings."""
FLAT: tuple[Layout, ...] = (
    ("dp2", 2, {"dp": 2}, {}),
    ("tp2", 2, {"tp": 2}, {}),
    ("tp4", 4, {"tp": 4}, {}),
    ("dp2tp2", 4, {"dp": 2, "tp": 2}, {}),
    ("dp2opt", 2, {"dp": 2}, SHARDS),
)
STAGED: tuple[Layout, ...] = (
    ("pp2m2", 2, {"micro": 2}, STAGES),
    ("pp2m4", 2, {"micro": 4}, STAGES),
    ("pp2tp2", 4, {"micro": 2, "tp": 2}, STAGES),
)


def networks(draw: random.Random) -> dict[str, tuple[dict[str, Any], tuple[Layout, ...]]]:
    """Sizes of each network, and the layouts that it is cut to."""
    heads = 4
    return {
        "decoder": (
            {"batch": 4, "time": draw.choice((5, 6)), "size": heads * draw.choice((4, 6)),
             "heads": heads, "hidden": draw.choice((24, 40)), "words": draw.choice((29, 41)),
             "layers": 2, "optimizer": draw.choice(("momentum", "adam"))},
            FLAT,
        ),
        "mixer": (
            {"batch": 4, "patches": draw.choice((3, 5)), "size": draw.choice((12, 16)),
             "hidden": draw.choice((16, 24)), "optimizer": draw.choice(("momentum", "adam"))},
            FLAT,
        ),
        "tower": (
            {"batch": 8, "size": draw.choice((12, 20)), "hidden": draw.choice((16, 28)),
             "blocks": 4, "act": draw.choice(("Tanh", "GeLU", "Sigmoid"))},
            STAGED,
        ),
        "bag": (
            {"rows": 24, "size": draw.choice((12, 16)), "hidden": draw.choice((24, 32)),
             "words": 36, "blocks": 3, "optimizer": draw.choice(("momentum", "adam"))},
            FLAT,
        ),
    }  # fmt: skip


def planted(network: str, layout: Layout, draw: random.Random) -> tuple[str, dict[str, Any]] | None:
    """A fault that a layout can have: its name, and what the run and the truth need."""
    name, devices, degrees, _ = layout
    number = draw.randrange(2)
    block = {"decoder": f"l{number}.mlp", "mixer": f"m{number}.mlp", "tower": f"b{number}",
             "bag": f"g{number}"}[network]  # fmt: skip
    parts = {
        "decoder": ("layers", "mlp."),
        "mixer": ("blocks", "channels."),
        "tower": ("blocks", ""),
        "bag": ("blocks", ""),
    }
    cells, inner = parts[network]
    path, parameter = f"{cells}-CellList_{number}", f"{cells}.{number}.{inner}"
    last = devices - 1 if "pp2" not in name else devices // 2 - 1  # of the first stage
    pool = ["scale"]
    if "pp2" not in name or "tp" in degrees:
        pool += ["rounded"]
    if "tp" in degrees:
        pool += ["wrong_slice", "missing", "mean"]
    if "pp2" not in name:
        pool += ["replica", "data"]
    if network == "bag":
        pool += ["scale_rank", "labels"]
    fault = draw.choice(pool)
    sum_of = {"kernel": draw.randrange(2), "names": ["AllReduce"], "ranks": []}
    around = [f"{path}", "Planted"]
    made: dict[str, dict[str, Any]] = {
        "scale": {"with": {"scale": {block: 1.04}}, "names": around, "ranks": []},
        "rounded": {"with": {"rounded": (block, last)}, "names": around, "ranks": [last]},
        "scale_rank": {"with": {"scale_rank": (block, last)}, "names": around, "ranks": [last]},
        "labels": {"with": {"wrong_labels": last}, "names": ["Softmax", "StridedSlice", "label"],
                   "ranks": [last]},
        "wrong_slice": {"with": {"wrong_slice": (last, f"{parameter}up.weight")}, "names": [path],
                        "ranks": [last]},
        "missing": sum_of, "mean": sum_of,
        "replica": {"with": {"replica": (last, f"{parameter}down.bias")}, "names": [path],
                    "ranks": [last]},
        "data": {"with": {"wrong_batch": last}, "names": ["Gather", "first-Linear", "StridedSlice"],
                 "ranks": [last]},
    }  # fmt: skip
    return fault, made[fault]


def execute(asked: argparse.Namespace, name: str, network: str, devices: int,
            arguments: dict[str, Any], settings: dict[str, Any], kernel: str) -> bool:  # fmt: skip
    """One run, unless it is there already."""
    out = os.path.join(asked.out, name)
    if os.path.exists(os.path.join(out, "run.json")):
        return True
    here = os.path.dirname(os.path.abspath(__file__))
    command = [asked.python, asked.runner, f"{here}/sharded_networks.py:{network}", "--out", out,
               "--devices", str(devices), "--steps", "1", "--dump-steps", "1",
               "--timeout", str(asked.timeout)]  # fmt: skip
    for option, values in (("--with", arguments), ("--set", settings)):
        for key, value in values.items():
            command += [option, f"{key}={value!r}"]
    if kernel:
        command += ["--kernel-fault", kernel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    good = os.path.exists(os.path.join(out, "run.json"))
    print(name, "ran" if good else f"failed: {done.stdout[-300:]} {done.stderr[-300:]}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--runner", required=True, help="executes one network; see the docstring")
    parser.add_argument("--python", default=sys.executable, help="that has MindSpore")
    parser.add_argument("--faults", type=int, default=2, help="of each layout")
    parser.add_argument("--layouts", type=int, default=9, help="of each network, so many drawn")
    parser.add_argument("--timeout", type=int, default=600, help="seconds of one run")
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    draw = random.Random(asked.seed)
    truth: dict[str, dict[str, Any]] = {}
    for network, (sizes, layouts) in networks(draw).items():
        seed = draw.randrange(10**6)
        common = {"seed": seed, **sizes}
        single = f"{network}-single"
        execute(asked, single, network, 1, common, {}, "")
        healthy: list[str] = []
        for layout in draw.sample(layouts, min(len(layouts), asked.layouts)):
            short, devices, degrees, settings = layout
            with_ = {**common, **degrees}
            drawn = dict(planted(network, layout, draw) for _ in range(asked.faults))
            for fault, what in {"none": {}, **drawn}.items():
                name = f"{network}-{short}-{fault}"
                kernel = ""
                if "kernel" in what:
                    how = "identity" if fault == "missing" else "mean"
                    kernel = f"AllReduce:{what['kernel']}:{how}"
                given = {**with_, **what.get("with", {})}
                if not execute(asked, name, network, devices, given, settings, kernel):
                    continue
                for reference in (single, *healthy[-1:]):
                    truth[f"{name} vs {reference}"] = {
                        "left": reference, "right": name, "healthy": fault == "none",
                        "fault": fault, "names": what.get("names", []),
                        "ranks": what.get("ranks", []), "layout": None,
                    }  # fmt: skip
                with open(os.path.join(asked.out, "truth.json"), "w", encoding="utf-8") as stream:
                    json.dump(truth, stream, indent=1)
            if os.path.exists(os.path.join(asked.out, f"{network}-{short}-none", "run.json")):
                healthy.append(f"{network}-{short}-none")
    return 0


if __name__ == "__main__":
    sys.exit(main())

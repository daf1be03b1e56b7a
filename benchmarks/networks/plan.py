"""Compile random networks for plans: as MindSpore shards them by itself, and with files of plans.

    MINDSPORE/bin/python benchmarks/networks/plan.py OUT --instrument FOLDER --seed 7 --count 12
        --devices 8 [--alltoall] [--step save|rec|load] [--kinds decoder,former,…]

Draws the networks of ``compile.py`` without strategies, for a number of devices. Each folder
``OUT/SEED_I_KIND_DEVICES[_a2a]`` gets a folder by step: ``save`` (sharding propagation, with the
strategy file that MindSpore saves), ``rec`` (recursive search), and ``load`` (sharding propagation
by ``operators.json`` beside it; ``benchmarks/plan_networks.py`` writes it). A form of a plan that
is loaded otherwise has a step of its own: ``weights`` (``parameters.json``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from compile import DEFAULTS, NO_DEVICE, finish, in_child, plain

KINDS = "decoder,former,moe,tables,images,recurrent,mla,functional,zoo,former2"
FILES = {"load": "operators.json", "weights": "parameters.json"}


class Draw(random.Random):
    """Draws as ever, but for one number of devices."""

    devices = 8

    def choice(self, seq: Any) -> Any:
        found = super().choice(seq)
        return self.devices if {4, 8, 64} <= set(seq if isinstance(seq, tuple) else ()) else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--instrument", type=Path, required=True, help="holds virtual_devices.py")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--only", type=int, action="append")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--alltoall", action="store_true")
    parser.add_argument("--step", choices=["save", "rec", *FILES], default="save")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--seconds", type=float, default=120, help="limit of one compilation")
    options = parser.parse_args()
    sys.path[:0] = [str(options.instrument), str(Path(__file__).resolve().parent)]
    import drawing
    import kinds

    drawing.Mesh.shard = lambda self, operator, *specs, out=None: operator
    names = options.kinds.split(",")
    for index in options.only or range(options.count):
        name = names[index % len(names)]
        more = f"_{options.devices}{'_a2a' if options.alltoall else ''}"
        case = options.out / f"{options.seed}_{index:04d}_{name}{more}"
        folder = case / options.step
        file = FILES.get(options.step)
        if (folder / "case.json").exists() or (file and not (case / file).is_file()):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        draw = Draw(f"{options.seed}/{index}")
        draw.devices = options.devices
        begun = time.time()
        build = partial(compile_one, kinds.BY_NAME[name], draw, folder, options)
        ended = in_child(build, options.seconds)
        verdict = finish(folder, name, ended, False)
        print(f"{case.name} {options.step}: {verdict} in {time.time() - begun:.1f} s", flush=True)
    return 0


def compile_one(build: Any, draw: Draw, folder: Path, options: Any) -> None:
    """Compile one network in this process."""
    log = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 2)
    os.environ.update(
        GLOG_v="3", MS_DEV_SAVE_GRAPHS="1", MS_DEV_SAVE_GRAPHS_PATH=str(folder.resolve()),
        MS_DEV_DUMP_IR_CONFIG="DISABLE_BACKEND",
    )  # fmt: skip
    import numpy
    import virtual_devices
    from mindspore import context
    from mindspore.common.api import _cell_graph_executor

    numpy.random.seed(0)
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
    drawn = build(draw)
    settings: dict[str, Any] = {
        **DEFAULTS, "device_num": drawn.devices, "full_batch": True,
        "enable_alltoall": options.alltoall, "parallel_mode": "auto_parallel",
        "search_mode": "recursive_programming" if options.step == "rec" else "sharding_propagation",
    }  # fmt: skip
    if "dataset_strategy" in drawn.settings:  # sizes of batches were drawn for it
        del settings["full_batch"]
        settings["dataset_strategy"] = drawn.settings["dataset_strategy"]
    if options.step == "weights":
        settings.update(parallel_mode="semi_auto_parallel")
        del settings["search_mode"]
        path = str((folder.parent / FILES["weights"]).resolve())
        settings["strategy_ckpt_config"] = {"load_file": path, "save_file": ""}
    context.set_auto_parallel_context(**settings)
    if options.step in ("save", "load"):
        from mindspore.parallel import set_op_strategy_config

        path = folder / "saved.json" if options.step == "save" else folder.parent / FILES["load"]
        set_op_strategy_config(mode=options.step.upper(), path=str(path.resolve()))
    virtual_devices.set_device_name("Ascend")
    virtual_devices.set_world_size(drawn.devices)
    virtual_devices.answer_group_sizes()
    said = {"kind": drawn.kind, "drawn": drawn.notes, "context": plain(settings)}
    accepted, error = True, ""
    try:
        cell, inputs = drawn.network()
        cell.set_train(drawn.training)
        phase = "train" if drawn.training else "predict"
        _cell_graph_executor.compile(cell, *inputs, phase=phase)
    except Exception as problem:
        if NO_DEVICE not in str(problem).lower():
            accepted, error = False, str(problem)
    said.update(accepted=accepted, error=error[:2000])
    if (folder / "saved.json").exists():
        os.replace(folder / "saved.json", folder.parent / "saved.json")
    (folder / "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    sys.exit(main())

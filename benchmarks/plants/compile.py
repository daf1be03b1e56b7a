"""Compile networks of which each has one planted habit, and healthy ones.

    MINDSPORE/bin/python benchmarks/plants/compile.py OUT --instrument FOLDER --seed 7 [--cases RE]

Runs in MindSpore's environment and imports nothing of irtool; FOLDER holds ``virtual_devices.py``.
``OUT/NAME`` gets ``case.json`` (the parallel context, whether MindSpore accepted it) and the dumps,
``OUT/NAME.truth.json`` what was planted.  What is there already is not made again.  ``--grown``
compiles what a later commit may make of the same networks: a layer more in front of the others (in
a pipeline one a stage), from sources whose lines moved; ``--moved`` moves the lines alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

STYLES = {
    "dense": "cells", "images": "cells", "pipes": "pipes", "mixer": "mixers", "unet": "unets",
    "experts": "experts", "recurrent": "recurrents", "own": "own",
}  # fmt: skip
"""Modules that build networks, by style; all other styles are of ``styles``."""

KEPT = re.compile(r"(step_parallel_(begin|end)|\d+_validate)_.*\.ir$")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=lambda text: Path(text).resolve())
    parser.add_argument("--instrument", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", default="")
    parser.add_argument("--module", default="cases", help="that draws the cases")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--grown", action="store_true", help="a layer more, and lines that moved")
    parser.add_argument("--moved", action="store_true", help="lines that moved")
    options = parser.parse_args()
    sys.path[:0] = [str(options.instrument), str(Path(__file__).resolve().parent)]
    if options.grown or options.moved:
        sys.path.insert(0, moved(options.out / "sources"))
    import styles  # noqa: F401  # imported once for all forks
    import virtual_devices  # noqa: F401

    for made in __import__(options.module).drawn(options.seed):
        truth = options.out / f"{made.name}.truth.json"
        if truth.exists() or not re.search(options.cases, made.name):
            continue
        if options.grown:
            made = made.grown()
        begun = time.time()
        folder = options.out / made.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        ended = ""
        for rank in made.plant.ranks:
            own = folder if len(made.plant.ranks) == 1 else folder / f"rank_{rank}"
            own.mkdir(exist_ok=True)
            ended = _in_child(made, own, options.seconds, rank)
        truth.write_text(
            json.dumps({**made.truth(), "ended": ended, "given": made.given}, indent=1)
        )
        print(f"{made.name}: {ended[:160]} in {time.time() - begun:.1f} s", flush=True)
    return 0


def moved(folder: Path) -> str:
    """The folder of copies of what builds networks, in which each piece begins at another line."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in Path(__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "def build(" in text:
            text = re.sub(r"\n\n(?=(?:class|def) )", "\n\n# A line of a later commit.\n\n\n", text)
            (folder / path.name).write_text(text, encoding="utf-8")
    return str(folder)


def _in_child(made: Any, folder: Path, seconds: float, rank: int) -> str:
    child = os.fork()
    if child == 0:
        try:
            (folder / "said").write_text(_compile(made, folder, rank))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    deadline, ended = time.time() + seconds, ""
    while not ended:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ended"
        elif time.time() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            ended = "timeout"
        else:
            time.sleep(0.02)
    said = folder / "said"
    if said.exists():
        ended = said.read_text()
        said.unlink()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in ("case.json", "stderr"):
            if KEPT.search(path.name):
                path.rename(folder / path.name)
            else:
                path.unlink()
    case = folder / "case.json"
    if case.exists():
        accepted = ended == "compiled"
        case.write_text(
            json.dumps({**json.loads(case.read_text()), "accepted": accepted}, indent=1)
        )
    if ended == "compiled":
        (folder / "stderr").unlink(missing_ok=True)
    return ended


def _compile(made: Any, folder: Path, rank: int) -> str:
    log = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 2)
    os.environ.update(
        GLOG_v="3", MS_DEV_SAVE_GRAPHS="1", MS_DEV_SAVE_GRAPHS_PATH=str(folder),
        MS_DEV_DUMP_IR_CONFIG="DISABLE_BACKEND", **made.plant.environment,
    )  # fmt: skip
    import numpy
    import virtual_devices
    from mindspore import context
    from mindspore.common.api import _cell_graph_executor

    numpy.random.seed(0)
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
    settings = {
        "parallel_mode": "semi_auto_parallel", "device_num": made.devices, "global_rank": rank,
        "full_batch": True, "pipeline_stages": made.given.get("stages", 1), **made.plant.settings,
    }  # fmt: skip
    if "dataset_strategy" in settings:
        del settings["full_batch"]
    (folder / "case.json").write_text(
        json.dumps(
            {
                "name": made.name,
                "context": {
                    k: str(v) if not isinstance(v, dict) else v
                    for k, v in {**settings, **made.plant.told}.items()
                }
                | ({"environment": made.plant.environment} if made.plant.environment else {}),
            }
        )
    )
    context.set_auto_parallel_context(**settings)
    given = {**made.given, **made.plant.of_rank.get(rank, {})}
    virtual_devices.set_device_name("Ascend")
    virtual_devices.set_world_size(made.devices)
    virtual_devices.answer_group_sizes()
    try:
        style = given["style"]
        module = STYLES.get(style, "styles")
        styles = __import__(module)
        cell, inputs = styles.build(given)
        cell.set_train()
        _cell_graph_executor.compile(cell, *inputs, phase="train")
    except Exception as problem:
        if "device context" not in str(problem).lower():
            traceback.print_exc()
            return f"refused: {str(problem)[:300]}"
    return "compiled"


if __name__ == "__main__":
    sys.exit(main())

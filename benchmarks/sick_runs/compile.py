"""Compile run folders of which each has one planted cause, and healthy ones.

    MINDSPORE/bin/python benchmarks/sick_runs/compile.py OUT --instrument FOLDER [--cases REGEX]

Runs in MindSpore's environment and imports nothing of irtool; FOLDER holds ``virtual_devices.py``.
A cause is planted in the network or the settings of a rank (``cases.py``), never in what an answer
reads. ``OUT/NAME/rank_N`` gets the dumps, ``OUT/NAME.truth.json`` (beside the run, not in it) what
was planted. What is there already is not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

KEPT = re.compile(r"(step_parallel_(begin|end)|\d+_validate)_.*\.ir$|analyze_fail\.ir$")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=lambda text: Path(text).resolve())
    parser.add_argument("--instrument", type=Path, required=True)
    parser.add_argument("--cases", default="")
    parser.add_argument("--module", default="cases", help="that lists the cases")
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    sys.path[:0] = [str(options.instrument), str(Path(__file__).resolve().parent)]
    import network  # noqa: F401  # imported once for all forks
    import virtual_devices  # noqa: F401

    cases = __import__(options.module).CASES
    for case in cases:
        if not re.search(options.cases, case.name):
            continue
        truth = options.out / f"{case.name}.truth.json"
        if truth.exists():
            continue
        folder = options.out / case.name
        shutil.rmtree(folder, ignore_errors=True)
        begun, ends = time.time(), []
        for name, run in ((case.name, case.executed), (f"{case.name}.against", case.against)):
            if run:
                ends.append(_executed(run, options.out / name, options.instrument))
        for rank in () if case.executed else case.compiled:
            place = folder / f"rank_{rank}"
            place.mkdir(parents=True)
            ends.append(_in_child(case, rank, place, options.seconds))
        truth.write_text(json.dumps({**case.truth(), "ends": ends}, indent=1))
        print(f"{case.name}: {sorted(set(ends))} in {time.time() - begun:.1f} s", flush=True)
    return 0


def _executed(run: dict[str, Any], folder: Path, instrument: Path) -> str:
    """Train what a case asks for; the instrument has the networks that are not here."""
    kept = folder.parent / "made" / hashlib.md5(json.dumps(run).encode()).hexdigest()
    if not kept.exists():  # MindSpore dumps tensors to no folder that has a dot in its name
        half = kept.with_name(f"{kept.name}_half")  # one that was ended is made again
        shutil.rmtree(half, ignore_errors=True)
        said = _trained(run, half, instrument)
        if said:
            return said
        half.rename(kept)
    shutil.copytree(kept, folder)
    return "trained"


def _trained(run: dict[str, Any], folder: Path, instrument: Path) -> str:
    """Train into a folder: what went wrong."""
    file, function = run["network"].split(":")
    here = Path(__file__).resolve().parent / file
    path = here if here.exists() else instrument / file
    words = [sys.executable, str(instrument / "run_parallel.py"), f"{path}:{function}"]
    words += ["--out", str(folder), "--devices", str(run["devices"]), "--steps", str(run["steps"])]
    words += ["--dump", run.get("dump", "tensor"), "--dump-steps", "1"]
    words += ["--kernel-fault", run.get("kernel_fault", "")]
    for key, value in run["with"].items():
        words += ["--with", f"{key}={value!r}"]
    for key, value in run.get("set", {}).items():
        words += ["--set", f"{key}={value!r}"]
    done = subprocess.run(words, capture_output=True, text=True)
    (folder / "run.json").unlink(missing_ok=True)  # it says what was planted
    losses = folder / "loss.json"
    if losses.exists():  # as MindSpore's LossMonitor prints them
        for rank, values in enumerate(json.loads(losses.read_text())["loss"]):
            lines = [f"epoch: 1 step: {n}, loss is {v}\n" for n, v in enumerate(values, 1)]
            (folder / f"worker_{rank}.log").write_text("".join(lines))
        losses.unlink()
    return "" if done.returncode == 0 else f"failed: {done.stdout[-200:]}"


def _in_child(case: Any, rank: int, place: Path, seconds: float) -> str:
    child = os.fork()
    if child == 0:
        try:
            said = _compile(case, rank, place)
            (place.parent / f"said_{rank}").write_text(said)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    deadline = time.time() + seconds
    ended = ""
    kind, _, after = case.ended.get(rank, "").partition(":")
    while not ended:
        if kind == "killed" and (after == "start" or any(place.rglob(f"*_parallel_{after}_*.ir"))):
            os.kill(child, signal.SIGKILL)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ended"
        elif time.time() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            ended = "timeout"
        else:
            time.sleep(0.02)
    said = place.parent / f"said_{rank}"
    if said.exists():
        ended = said.read_text()
        said.unlink()
    if not case.all_passes:
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.suffix == ".ir" and not KEPT.search(path.name):
                path.unlink()
    return ended


def _compile(case: Any, rank: int, place: Path) -> str:
    if case.ended.get(rank, "").startswith("disk:"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = int(case.ended[rank].partition(":")[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    os.chdir(place.parent)  # analyze_fail.ir goes to rank_N/om below
    log = os.open(place / "compile.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 2)
    os.environ.update(
        GLOG_v="2" if case.logged else "3",
        MS_DEV_SAVE_GRAPHS="2" if case.all_passes else "1",
        MS_DEV_SAVE_GRAPHS_PATH=str(place.resolve()),
        MS_DEV_DUMP_IR_CONFIG="DISABLE_BACKEND",
        **case.environment.get(rank, case.environment.get(None, {})),
    )
    if not case.all_passes:
        os.environ["MS_DEV_DUMP_IR_PASSES"] = "step_parallel,validate"
    import network
    import numpy
    import virtual_devices
    from mindspore import context
    from mindspore.common.api import _cell_graph_executor

    numpy.random.seed(0)
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
    asked = {**case.network, **case.odd.get(rank, {})}
    settings = {
        "parallel_mode": "semi_auto_parallel", "device_num": case.devices, "global_rank": rank,
        "full_batch": True, "pipeline_stages": asked.get("stages", 1),
        **case.settings, **case.odd_settings.get(rank, {}),
    }  # fmt: skip
    context.set_auto_parallel_context(**settings)
    virtual_devices.set_device_name("Ascend")
    virtual_devices.set_world_size(settings["device_num"])
    virtual_devices.answer_group_sizes()
    try:
        cell, inputs = case.build(network, asked)
        cell.set_train()
        _cell_graph_executor.compile(cell, *inputs, phase="train")
    except Exception as problem:
        if "device context" not in str(problem).lower():
            traceback.print_exc()
            if not case.logged and (place / "om" / "analyze_fail.ir").exists():
                (place / "compile.log").unlink()
            return f"refused: {str(problem)[:300]}"
    if not case.logged:
        (place / "compile.log").unlink()
    return "compiled"


if __name__ == "__main__":
    sys.exit(main())

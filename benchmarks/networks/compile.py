"""Compile random networks with MindSpore's own front end, and keep what it decided.

    MINDSPORE/bin/python benchmarks/networks/compile.py OUT --instrument FOLDER --seed 7 --count 400

Runs in MindSpore's environment and imports nothing of irtool. FOLDER holds ``virtual_devices.py``,
which makes the CPU wheel compile for devices that are not there. Network ``I`` of a seed is drawn
from ``(seed, I)`` alone, so that any one of them can be made again (``--only I``), and a run that
was stopped goes on where it was. Each folder ``OUT/SEED_I_KIND`` gets ``case.json`` (verdict,
MindSpore's own error lines, the parallel context, the weights that are kept out of optimizer
parallel, what was drawn) and the dumps before and after
the parallel pass: the form that ``benchmarks/check_corpus.py`` reads.

One process imports MindSpore; every network is compiled in a fork of it. Leave the files beside
this one alone while it runs: MindSpore reads the sources of cells when it compiles them.

``--edits FOLDER`` compiles the networks that have a file there, each with the strategies that it
says (``cured.py`` writes them): does MindSpore accept what ``check`` proposes?
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

KEPT = re.compile(r"(step_parallel_(begin|end)|\d+_validate)_.*\.ir$")
NO_DEVICE = "device context"
"""In the exception with which every accepted compilation ends: there is no device to open."""
DEFAULTS = {"global_rank": 0, "pipeline_stages": 1, "parallel_mode": "semi_auto_parallel"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--instrument", type=Path, required=True, help="holds virtual_devices.py")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--only", type=int, action="append", help="compile this network alone")
    parser.add_argument("--kinds", help="comma-separated; all of them if absent")
    parser.add_argument("--seconds", type=float, default=180, help="limit of one compilation")
    parser.add_argument("--edits", type=Path, help="compile with the strategies of these files")
    parser.add_argument("--all-passes", action="store_true", help="keep the dumps of every pass")
    options = parser.parse_args()
    sys.path[:0] = [str(options.instrument), str(Path(__file__).resolve().parent)]
    import kinds

    names = options.kinds.split(",") if options.kinds else list(kinds.KINDS)
    for index in options.only or range(options.count):
        draw = random.Random(f"{options.seed}/{index}")
        name = names[index % len(names)]
        folder = options.out / f"{options.seed}_{index:04d}_{name}"
        if (folder / "case.json").exists() and not options.only:
            continue
        edits = options.edits / f"{folder.name}.json" if options.edits else None
        if edits is not None and not edits.is_file():
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begun = time.time()
        work = partial(compile_one, kinds.BY_NAME[name], draw, folder, edits)
        ended = in_child(work, options.seconds)
        verdict = finish(folder, name, ended, options.all_passes)
        print(f"{folder.name}: {verdict} in {time.time() - begun:.1f} s", flush=True)
    return 0


def in_child(work: Any, seconds: float) -> str:
    """Run in a fork; says how it ended where that was not by itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    deadline = time.time() + seconds
    while time.time() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def compile_one(build: Any, draw: random.Random, folder: Path, edits: Path | None = None) -> None:
    """Compile one network in this process, and write what came of it."""
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
    settings = {**DEFAULTS, **drawn.settings, "device_num": drawn.devices}
    context.set_auto_parallel_context(**{k: v for k, v in settings.items() if v is not None})
    virtual_devices.set_device_name("Ascend")
    virtual_devices.set_world_size(drawn.devices)
    virtual_devices.answer_group_sizes()
    said = {"kind": drawn.kind, "drawn": drawn.notes, "context": plain(settings)}
    accepted, error = True, ""
    try:
        cell, inputs = drawn.network()
        if edits is not None:
            said["edits"] = edited(cell, json.loads(edits.read_text()))
        left_out = [one.name for one in cell.get_parameters() if not one.parallel_optimizer]
        if left_out:
            # No dump tells it: a user has to.
            said["context"]["parallel_optimizer_excluded"] = left_out
        cell.set_train(drawn.training)
        phase = "train" if drawn.training else "predict"
        _cell_graph_executor.compile(cell, *inputs, phase=phase)
    except Exception as problem:
        if NO_DEVICE not in str(problem).lower():
            accepted, error = False, str(problem)
            traceback.print_exc()
    said.update(accepted=accepted, error=error[:2000])
    (folder / "said.json").write_text(json.dumps(said))


def edited(cell: Any, edits: list[dict[str, Any]]) -> dict[str, int]:
    """Give primitives other strategies, and count those that could be written and those not."""
    from mindspore.parallel import Layout

    def made(layouts: list[dict[str, Any]]) -> tuple[Any, ...]:
        return tuple(
            Layout(tuple(one["device_matrix"]), tuple(one["alias_name"]))(
                *(tuple(entry) if isinstance(entry, list) else entry for entry in one["entries"])
            )
            for one in layouts
        )

    counts = {"written": 0, "not held by an attribute": 0}
    for edit in edits:
        if edit["held_by"] is None:
            counts["not held by an attribute"] += 1
            continue
        path, name = edit["held_by"]
        holder = cell
        for step in re.findall(r"\.(\w+)|\[(\d+)\]", path):
            holder = holder[int(step[1])] if step[1] else getattr(holder, step[0])
        given = {
            "in_strategy": made(edit["in_layout"]) or rows(edit["in_strategy"]),
            "out_strategy": made(edit["out_layout"]) or rows(edit["out_strategy"]),
        }
        operator = getattr(holder, name)
        for key in ("in_strategy", "out_strategy", "in_layout", "out_layout"):
            operator.del_prim_attr(key)
        operator.shard(**given)
        counts["written"] += 1
    return counts


def rows(strategy: list[list[int]] | None) -> tuple[tuple[int, ...], ...] | None:
    return None if strategy is None else tuple(map(tuple, strategy))


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as ``case.json`` holds them: texts, and the dataset's strategy as it was given."""
    texts = {key: value for key, value in settings.items() if value is not None}
    dataset = texts.get("dataset_strategy")
    if isinstance(dataset, tuple) and not all(isinstance(row, tuple) for row in dataset):
        texts["dataset_strategy"] = [layout_of(one) for one in dataset]
    return {k: str(v) if not isinstance(v, (list, dict, tuple)) else v for k, v in texts.items()}


def layout_of(layout: Any) -> dict[str, Any]:
    """A ``Layout`` as MindSpore prints it."""
    found = layout.to_dict()
    return {key: found[key] for key in ("device_matrix", "tensor_map", "alias_name")}


def finish(folder: Path, kind: str, ended: str, all_passes: bool) -> str:
    """Write ``case.json`` from what the child left, and keep the dumps that count."""
    said_file, log_file = folder / "said.json", folder / "stderr"
    log = log_file.read_text(errors="replace") if log_file.exists() else ""
    if not said_file.exists():
        reason = ended or "the network could not be built"
        case = {"kind": kind, "unusable": reason, "log": log.splitlines()[-12:]}
    else:
        case = json.loads(said_file.read_text())
        case["log"] = [neutral(line) for line in log.splitlines() if "[ERROR]" in line][:12]
        case["error"] = neutral(case["error"])
        said_file.unlink()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in {"case.json", "stderr"}:
            if all_passes or KEPT.search(path.name):
                path.rename(folder / path.name)
            else:
                path.unlink()
    if "accepted" in case and not list(folder.glob("step_parallel_begin*")):
        case = {**case, "unusable": "it failed before the parallel pass"}
        del case["accepted"]
    (folder / "case.json").write_text(json.dumps({"name": folder.name, **case}, indent=1))
    if "unusable" not in case:
        log_file.unlink(missing_ok=True)
        return "accepted" if case["accepted"] else f"refused ({case['error'][:80]})"
    return f"unusable: {case['unusable']} {(case['log'] or [''])[-1][:160]}"


def neutral(text: str) -> str:
    """A text without the paths of the machine that made it."""
    return re.sub(r"(/[\w.@+-]+)+/(?=[\w.-]+)", "/", text)


if __name__ == "__main__":
    sys.exit(main())

"""Whether MindSpore takes pipelines as they are planned, and what it compiles each stage to.

python benchmarks/plan_stages.py --python PYTHON --compiler SCRIPT --networks FILE
                                 [--out FOLDER] [CASE ...]

Interpreter, compiler and networks are those of plan_accepted.py. For each case (all of them without
CASE: gpt2_8_s2, …: network, devices, stages):

1. MindSpore compiles the network without stages with its recursive search: the begin dump;
2. irtool plans with --to-stages, and writes the pipeline_stage of each cell (--format shard);
3. MindSpore compiles the network in PipelineCell, these lines executed, with sharding propagation,
   and saves its strategies (for the keys of the file);
4. irtool writes the strategy file with these names, and MindSpore compiles with it, once for each
   stage, up to the validate dump;
5. the strategies in each stage's dumps are compared with the planned ones; the collectives, Sends
   and Receives of its validate dump, and its parameters, with what was predicted.

What --out holds already is not made again, unless the plan changed; --again makes it all anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plan_bytes import arguments_of_cases, context_for, dump_in, error, machine_named

import irtool
from irtool.ir.collectives import collective
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.cost.costs import received_bytes
from irtool.planning.stages.stages import StagedPlan, staged_plan

WRAPPER = """
import importlib.util, os, sys
import numpy as np
from mindspore import Tensor, nn
from mindspore.nn.wrap.cell_wrapper import _TrainGradAccuStepCell


def staged():
    path, function, micro = os.environ["NETWORKS"], os.environ["NETWORK"], int(os.environ["MICRO"])
    spec = importlib.util.spec_from_file_location("networks_staged", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["networks_staged"] = module
    spec.loader.exec_module(module)
    net, inputs = getattr(module, function)()
    exec(open(os.environ["LINES"]).read(), {"net": net})
    whole = [Tensor(np.concatenate([item.asnumpy()] * micro)) for item in inputs]
    return _TrainGradAccuStepCell(nn.PipelineCell(net.network, micro), net.optimizer), whole
"""
"""The network of a micro-batch, in a PipelineCell, with inputs for all of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """A network of the file with its sizes, devices, stages, and micro-batches."""

    function: str
    sizes: dict[str, str]
    devices: int
    stages: int
    micro: int

    @property
    def micro_sizes(self) -> dict[str, str]:
        """Sizes of one micro-batch."""
        return {**self.sizes, "B": str(int(self.sizes["B"]) // self.micro)}


_GPT2, _GPT8 = {"L": "2", "B": "8"}, {"L": "8", "B": "64"}
CASES = {
    "gpt2_8_s2": Case("gpt", _GPT2, 8, 2, 4),
    "gpt2_64_s2": Case("gpt", _GPT2, 64, 2, 4),
    "gpt8_8_s2": Case("gpt", _GPT8, 8, 2, 2),
    "gpt8_8_s4": Case("gpt", _GPT8, 8, 4, 4),
    "gpt8_64_s2": Case("gpt", _GPT8, 64, 2, 2),
    "gpt8_64_s4": Case("gpt", _GPT8, 64, 4, 4),
    "resnet_8_s2": Case("resnet", {"B": "1024"}, 8, 2, 4),
}
CLASSES = ("AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "Send", "Receive")
NOT_PLANNED = ("Reshape", "Cast", "_VirtualDataset", "StridedSlice", "Send", "Receive")


@dataclass(frozen=True, slots=True)
class Lab:
    """Where MindSpore is, and where its dumps go."""

    python: str
    compiler: Path
    networks: Path
    out: Path
    again: bool
    alltoall: bool

    def compile(
        self, folder: Path, network: str, devices: int, env: dict[str, str], *options: str
    ) -> str:
        """Compile into a folder; what went wrong ("": nothing)."""
        answer = folder / "answer.json"
        if self.again or not answer.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            command = [
                self.python, str(self.compiler), network, "--devices", str(devices),
                "--out", str(folder), *options,
            ]  # fmt: skip
            if self.alltoall:
                command += ["--set", "enable_alltoall=True"]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True
            )
            lines = done.stdout.strip().splitlines()
            (folder / "log").write_text(done.stderr, encoding="utf-8")
            answer.write_text(lines[-1] if lines else '{"accepted": false, "error": "no answer"}')
        found = json.loads(answer.read_text())
        return "" if found["accepted"] else str(found["error"] or "refused")

    def plan(self, begin: Path, case: Case, path: Path, *options: str) -> str:
        """What ``irtool plan`` says if it declines."""
        done = subprocess.run(
            [
                sys.executable, "-m", "irtool", "plan", str(begin), "--full-batch",
                "--devices", str(case.devices), "--to-stages", str(case.stages),
                "--micro-batches", str(case.micro), "-o", str(path), *options,
                *(["--enable-alltoall"] if self.alltoall else []),
            ],
            capture_output=True,
            text=True,
        )  # fmt: skip
        return "" if done.returncode == 0 else done.stderr.strip()


@dataclass(slots=True)
class Outcome:
    """What was seen of one case."""

    lines: list[str] = field(default_factory=list[str])
    failed: bool = False

    def say(self, text: str, *, fails: bool = False) -> None:
        """Note something."""
        self.lines.append(text)
        self.failed |= fails


def run(lab: Lab, name: str) -> Outcome:
    """All steps for one case."""
    case, found, folder = CASES[name], Outcome(), lab.out / name
    whole = folder / "rec"
    problem = lab.compile(
        whole, f"{lab.networks}:{case.function}", case.devices, case.sizes, "--mode", "rec"
    )
    begin = dump_in(whole, "step_parallel_begin")
    if begin is None:
        found.say(f"no begin dump: {problem}", fails=True)
        return found
    wrapper, lines = folder / "wrapper.py", folder / "lines.py"
    wrapper.write_text(WRAPPER, encoding="utf-8")
    shard = folder / "shard.txt"
    if problem := lab.plan(begin, case, shard, "--format", "shard"):
        found.say(f"no plan: {problem}", fails=True)
        return found
    kept = [line for line in shard.read_text().splitlines() if ".pipeline_stage = " in line]
    if _renewed(lines, "\n".join(kept) + "\n"):
        shutil.rmtree(folder / "sp", ignore_errors=True)
        (folder / "saved.json").unlink(missing_ok=True)
    env = {
        **case.micro_sizes, "NETWORKS": str(lab.networks), "NETWORK": case.function,
        "MICRO": str(case.micro), "LINES": str(lines),
    }  # fmt: skip
    network = f"{wrapper}:staged"
    staged = ("--set", f"pipeline_stages={case.stages}")
    saved = folder / "saved.json"
    problem = lab.compile(
        folder / "sp", network, case.devices, env, *staged, "--mode", "sp", "--save", str(saved)
    )
    if not saved.is_file():
        found.say(f"MindSpore saved no names: {problem}", fails=True)
        return found
    file = folder / "operators.json"
    options = ("--format", "strategy", "--names", str(saved))
    fresh = folder / "fresh.json"
    if problem := lab.plan(begin, case, fresh, *options):
        found.say(f"no file: {problem}", fails=True)
        return found
    if _renewed(file, fresh.read_text(encoding="utf-8")):
        for stage in folder.glob("stage[0-9]*"):
            shutil.rmtree(stage)
    context = context_for(case.devices, lab.alltoall)
    machine = machine_named(None)
    plan = staged_plan(
        irtool.load(str(begin)), context, machine, case.stages, micro_batches=case.micro
    )
    for stage in range(case.stages):
        rank = stage * (case.devices // case.stages)
        out = folder / f"stage{stage}"
        problem = lab.compile(
            out, network, case.devices, env, *staged,
            "--mode", "sp", "--load", str(file), "--rank", str(rank),
        )  # fmt: skip
        validate, compiled = dump_in(out, "_validate"), dump_in(out, "step_parallel_end")
        if problem or validate is None or compiled is None:
            found.say(f"stage {stage}: refused: {problem or 'no dump'}", fails=True)
            continue
        _strategies(found, file, irtool.load(str(compiled)), stage)
        _bytes(found, plan, irtool.load(str(validate)), stage)
    return found


def _renewed(path: Path, text: str) -> bool:
    """Write a file; whether that changes it, so that what was made from it is stale."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def _strategies(found: Outcome, file: Path, compiled: Dump, stage: int) -> None:
    """Compare strategies operator by operator: how often each stands in a scope."""
    said: Any = json.loads(file.read_text(encoding="utf-8"))
    wanted: dict[str, set[object]] = {}
    for key, item in said["parallel_strategy_item"].items():
        out = said["parallel_out_strategy_item"].get(key)
        rows = out["parallel_strategy"] if out is not None else None
        entry = (_rows(item["parallel_strategy"]), None if rows is None else _rows(rows))
        wanted.setdefault(key.rpartition("-op")[0], set()).add(entry)
    got: dict[str, set[object]] = {}
    for node in compiled.nodes():
        if node.strategy is None or node.op in NOT_PLANNED or node.is_backward:
            continue
        rows = node.written_strategy(), node.written_strategy("out_strategy")
        got.setdefault(f"{node.scope}/{node.op}", set()).add(rows)
    differ = [key for key in got if got[key] != wanted.get(key)]
    count = len(got)
    found.say(
        f"stage {stage}: accepted, {count - len(differ)} of {count} kinds of operators have the "
        "planned strategies",
        fails=bool(differ) or not count,
    )
    for key in differ[:5]:
        found.say(f"  {key}: planned {wanted.get(key)}, compiled {got[key]}")


def _rows(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _bytes(found: Outcome, plan: StagedPlan, validate: Dump, stage: int) -> None:
    """Predicted and compiled bytes that a device of a stage receives (of Send: sends)."""
    nodes = plan.stages[stage].nodes
    guess: Counter[str] = Counter()
    for item in plan.inner.after.items:
        if item.node in nodes:
            for each in item.communications:
                guess[each.op] += each.received
    for each in plan.transfers:
        size = each.size * each.count
        if stage == each.source:
            guess["Send"] += size
            guess["Receive"] += size if each.returned else 0
        if stage == each.target:
            guess["Receive"] += size
            guess["Send"] += size if each.returned else 0
    truth: Counter[str] = Counter()
    for node in validate.nodes():
        if node.op in ("Send", "Receive"):
            truth[node.op] += _message(node)
            continue
        item = collective(node)
        if item is not None and not item.is_virtual and item.bytes and item.ranks:
            truth[item.op] += received_bytes(item.op, item.bytes, len(item.ranks))
    worst = 0.0
    parts: list[str] = []
    for op in CLASSES:
        if guess[op] or truth[op]:
            off = error(guess[op], truth[op])
            worst = max(worst, abs(off))
            parts.append(f"{op} {guess[op] / 1e6:.2f}/{truth[op] / 1e6:.2f} ({off:+.1f} %)")
    found.say(f"  predicted/compiled MB: {', '.join(parts)}", fails=worst > 5)
    held = sum(each.size or 0 for each in validate.parameters if each.is_weight)
    off = error(plan.stages[stage].static_bytes, held)
    found.say(
        f"  weights, gradients and states: {plan.stages[stage].static_bytes / 1e6:.1f}/"
        f"{held / 1e6:.1f} MB ({off:+.1f} %)",
        fails=abs(off) > 5,
    )


def _message(node: Node) -> int:
    """Bytes that a Send or Receive moves, from its attributes."""
    shape: Any = node.attribute("shape")
    sizes = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I32": 4, "I64": 8, "I8": 1, "Bool": 1}
    count = sizes.get(str(node.attribute("dtype")), 4)
    for extent in shape or ():
        count *= int(extent)
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 if one failed."""
    parser = arguments_of_cases(__doc__, CASES)
    given = parser.parse_args(arguments)
    unknown = set(given.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(unknown)}")
    out = given.out or Path(tempfile.mkdtemp(prefix="plan_stages_"))
    lab = Lab(
        given.python,
        given.compiler.resolve(),
        given.networks.resolve(),
        Path(out).resolve(),
        given.again,
        given.alltoall,
    )
    failed = False
    for name in given.cases or CASES:
        outcome = run(lab, name)
        failed |= outcome.failed
        print(f"{name}: {'FAILED' if outcome.failed else 'ok'}")
        print(*(f"  {line}" for line in outcome.lines), sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether MindSpore takes plans as they are, and what it compiles them to.

python benchmarks/plan_accepted.py --python PYTHON --compiler SCRIPT --networks FILE
                                   [--out FOLDER] [CASE ...]

PYTHON is an interpreter with MindSpore; SCRIPT compiles a network for devices that are not there
(SCRIPT FILE:NETWORK --devices N --mode rec|sp|semi [--save JSON] [--load JSON] [--set KEY=VALUE]
--out FOLDER; its last line is a JSON object with accepted and error), FILE has the networks.
For each case (all of them without CASE: gpt2_8, mlp_64, …; others may be given, by number of
devices and sizes: resnet_16, mlp,B=32768,L=2_8):

1. MindSpore compiles the network twice: with its recursive search, to have something to compare
   with, and with sharding propagation, saving the strategies (for the keys of the file);
2. irtool plans from the begin dump of the first, and writes both strategy files;
3. MindSpore compiles the network with each file, up to its validate dump;
4. the strategies in its begin dump are compared with the planned ones, and the collectives of the
   validate dump with what the cost model predicted for them.

--alltoall does all of this with enable_alltoall on both sides. What --out holds already is not made
again (a compilation takes up to minutes); --again makes it all anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plan_bytes import (
    Traffic,
    arguments_of_cases,
    classes,
    compiled,
    context_for,
    dump_in,
    error,
    machine_named,
    predicted,
)

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node

NETWORKS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "gpt2": ("gpt", {"L": "2", "B": "8"}),
    "gpt8": ("gpt", {"L": "8", "B": "8"}),
    "gpt8b64": ("gpt", {"L": "8", "B": "64"}),
    "mlp": ("mlp", {"B": "4096"}),
    "resnet": ("resnet", {"B": "1024"}),
    "widedeep": ("widedeep", {"B": "16384"}),
}
"""Functions of networks_large.py and their sizes."""

CASES = tuple(f"{name}_{devices}" for devices in (8, 64) for name in NETWORKS)
CASE = re.compile(rf"({'|'.join(NETWORKS)})((?:,[A-Z]+=\d+)*)_(\d+)")
"""A network, sizes instead of its own, and devices."""
NOT_PLANNED = ("Reshape", "Cast", "_VirtualDataset", "GetNext", "VirtualDataset")
"""Operators whose strategy is nobody's choice."""
BEFORE = ("Load", "Cast", "Depend", "_MirrorOperator", "_MirrorMiniStepOperator", "AllGather")
"""What may stand between a weight and its operator, before the parallel pass and after it."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Where MindSpore is, and where its dumps go."""

    python: str
    compiler: Path
    networks: Path
    out: Path
    again: bool
    alltoall: bool
    before: tuple[str, ...]

    def compile(self, case: str, name: str, *options: str) -> tuple[Path, str]:
        """The folder with the dumps of a compilation, and what went wrong ("": nothing)."""
        function, sizes, devices = network_of(case)
        folder = self.out / case / name
        answer = folder / "answer.json"
        if self.again or not answer.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            command = [
                *self.before, self.python, str(self.compiler),
                f"{self.networks}:{function}",
                "--devices", devices, "--out", str(folder), *options,
            ]  # fmt: skip
            if self.alltoall:
                command += ["--set", "enable_alltoall=True"]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **sizes}, capture_output=True, text=True
            )
            lines = done.stdout.strip().splitlines()
            (folder / "log").write_text(done.stderr, encoding="utf-8")
            answer.write_text(lines[-1] if lines else '{"accepted": false, "error": "no answer"}')
        found = json.loads(answer.read_text())
        return folder, "" if found["accepted"] else str(found["error"] or "refused")

    def irtool(self, case: str, begin: Path, name: str, *options: str) -> Path | str:
        """What ``irtool plan`` writes, or why it doesn't."""
        devices = case.rsplit("_", 1)[1]
        path = self.out / case / name
        done = subprocess.run(
            [
                *self.before, sys.executable, "-m", "irtool", "plan", str(begin),
                "--devices", devices, "--full-batch", "-o", str(path), *options,
                *(["--enable-alltoall"] if self.alltoall else []),
            ],
            capture_output=True,
            text=True,
        )  # fmt: skip
        (self.out / case / f"{name}.log").write_text(done.stderr, encoding="utf-8")
        return path if done.returncode in (0, 1) else done.stderr.strip()


@dataclass(slots=True)
class Outcome:
    """What was seen of one case."""

    case: str
    lines: list[str]
    failed: bool = False

    def say(self, text: str, *, fails: bool = False) -> None:
        """Note something."""
        self.lines.append(text)
        self.failed |= fails


def network_of(case: str) -> tuple[str, Mapping[str, str], str]:
    """Function, sizes and devices of a case.

    Raises:
        ValueError: it is not named like one.
    """
    found = CASE.fullmatch(case)
    if found is None:
        raise ValueError(f"no case {case}")
    function, sizes = NETWORKS[found[1]]
    other = dict(size.split("=") for size in found[2].split(",")[1:])
    return function, {**sizes, **other}, found[3]


def run(mindspore: Compiler, case: str) -> Outcome:
    """All four steps for one case."""
    devices = int(case.rsplit("_", 1)[1])
    found = Outcome(case, [])
    rec, problem = mindspore.compile(case, "rec", "--mode", "rec")
    if problem:
        found.say(f"recursive search: MindSpore refused its own: {problem}")
    saved = mindspore.out / case / "saved.json"
    _, problem = mindspore.compile(case, "sp", "--mode", "sp", "--save", str(saved))
    if problem:
        found.say(f"sharding propagation: {problem}")
    begin = dump_in(rec, "step_parallel_begin")
    if begin is None:
        found.say("there is no begin dump", fails=True)
        return found
    names = ["--names", str(saved)] if saved.is_file() else []
    planned = mindspore.irtool(case, begin, "plan.ir", "--format", "ir")
    if isinstance(planned, str):
        found.say(f"no plan: {planned}", fails=True)
        return found
    file = mindspore.irtool(case, begin, "operators.json", "--format", "strategy", *names)
    _loaded(mindspore, found, planned, file, "operators", "--mode", "sp", "--load")
    keys = ("--format", "strategy", "--keys", "parameters")
    file = mindspore.irtool(case, begin, "parameters.json", *keys)
    _loaded(mindspore, found, planned, file, "parameters", "--mode", "semi", "--set")
    _traffic(found, rec, mindspore.out / case / "operators", devices, mindspore.alltoall)
    return found


def _loaded(
    mindspore: Compiler, found: Outcome, planned: Path, file: Path | str, keys: str, *options: str
) -> None:
    """Compile with a file, and compare the strategies."""
    if isinstance(file, str):
        found.say(f"by {keys}: declined: {file}", fails=keys == "operators")
        return
    last = str(file)
    if keys == "parameters":
        last = f"strategy_ckpt_config={{'load_file': {last!r}, 'save_file': ''}}"
    folder, problem = mindspore.compile(found.case, keys, *options, last)
    # With weights as keys, MindSpore reads the file in its parallel pass.
    begin = dump_in(folder, "step_parallel_begin" if keys == "operators" else "step_parallel_end")
    if problem or begin is None or dump_in(folder, "_validate") is None:
        found.say(f"by {keys}: MindSpore refused it: {problem or 'no dump'}", fails=True)
        return
    wanted: dict[str, object] = _strategies(irtool.load(str(planned)))
    got = _strategies(irtool.load(str(begin)))
    what = ""
    if keys == "parameters":
        said = json.loads(file.read_text(encoding="utf-8"))["parallel_strategy_item"]
        what = f" of those that the file can say ({len(wanted)} are planned)"
        wanted = {key: _rows(item["parallel_strategy"]) for key, item in said.items()}
        got = _by_weight(irtool.load(str(begin)))
    differ = [key for key in wanted if key not in got or wanted[key] != got[key]]
    found.say(
        f"by {keys}: accepted, {len(wanted) - len(differ)} of {len(wanted)} strategies are the "
        f"planned ones{what}",
        fails=bool(differ),
    )
    for key in differ[:5]:
        found.say(f"  {key}: planned {wanted[key]}, compiled {got.get(key)}")


def _rows(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _strategies(dump: Dump) -> dict[str, object]:
    """Strategies by place of the operator."""
    seen: Counter[str] = Counter()
    found: dict[str, object] = {}
    for node in _operators(dump):
        name = f"{node.scope}/{node.op}"
        seen[name] += 1
        found[f"{name} {seen[name]}"] = (
            node.written_strategy(),
            node.written_strategy("out_strategy"),
        )
    return found


def _by_weight(dump: Dump) -> dict[str, object]:
    """Strategies by what the parameter file calls an operator."""
    return {f"{node.op}_{_weight(node)}": node.written_strategy() for node in _operators(dump)}


def _operators(dump: Dump) -> Iterator[Node]:
    for node in dump.nodes():
        if node.strategy is not None and node.op not in NOT_PLANNED:
            yield node


def _weight(node: Node) -> str | None:
    """The first operand that is a weight, behind Load and Cast."""
    for source in node.inputs:
        while isinstance(source, Node) and source.op in BEFORE:
            source = source.inputs[0]
        declared = source.declaration if isinstance(source, GraphParameter) else None
        if declared is not None and declared.has_default:
            return declared.name
    return None


def _traffic(found: Outcome, rec: Path, ours: Path, devices: int, alltoall: bool) -> None:
    """Predicted and compiled bytes of the plan and of MindSpore's own strategies."""
    machine = machine_named(None)
    truths: list[Traffic] = []
    for who, folder in (("recursive", rec), ("plan", ours)):
        begin, validate = dump_in(folder, "step_parallel_begin"), dump_in(folder, "_validate")
        if begin is None or validate is None:
            return
        guess = predicted(irtool.load(str(begin)), context_for(devices, alltoall), machine)
        truth = compiled(irtool.load(str(validate)), machine)
        truths.append(truth)
        parts = [
            f"{op} {guess.of(op) / 1e6:.1f}/{truth.of(op) / 1e6:.1f}"
            f" ({error(guess.of(op), truth.of(op)):+.1f} %)"
            for op in classes(guess, truth)
        ]
        found.say(
            f"{who}: predicted/compiled MB: all {guess.total / 1e6:.1f}/{truth.total / 1e6:.1f}"
            f" ({error(guess.total, truth.total):+.1f} %); {', '.join(parts)}; between nodes "
            f"{guess.between / 1e6:.1f}/{truth.between / 1e6:.1f}; "
            f"{1e3 * guess.seconds:.3f}/{1e3 * truth.seconds:.3f} ms"
        )
    theirs, own = truths
    dearer = own.seconds > theirs.seconds * (1 + 1e-9)
    found.say(
        f"compiled bytes, recursive over plan: {_ratio(theirs.total, own.total)}, between nodes "
        f"{_ratio(theirs.between, own.between)}; priced {_ratio(theirs.seconds, own.seconds)}",
        fails=dearer,
    )


def _ratio(first: float, second: float) -> str:
    return f"{first / second:.2f}" if second else ("1" if not first else "all gone")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 if one failed."""
    parser = arguments_of_cases(__doc__, CASES)
    parser.add_argument("--before", default="", help="a command to run others with: nice -n 5")
    given = parser.parse_args(arguments)
    for case in given.cases:
        if CASE.fullmatch(case) is None:
            parser.error(f"no case {case}")
    out = given.out or Path(tempfile.mkdtemp(prefix="plan_accepted_"))
    mindspore = Compiler(
        given.python,
        given.compiler.resolve(),
        given.networks.resolve(),
        Path(out).resolve(),
        given.again,
        given.alltoall,
        tuple(given.before.split()),
    )
    failed = False
    for case in given.cases or CASES:
        outcome = run(mindspore, case)
        failed |= outcome.failed
        print(f"{case}: {'FAILED' if outcome.failed else 'ok'}")
        print(*(f"  {line}" for line in outcome.lines), sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

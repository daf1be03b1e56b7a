"""Whether MindSpore compiles a region as the sharded function that a plan writes it as.

python benchmarks/plan_region.py --python PYTHON --compiler SCRIPT [--devices 8] [--out FOLDER]

PYTHON and SCRIPT as in plan_accepted.py. The network of plan_region_network.py is compiled with
sharding propagation; ``irtool plan --region`` plans its region, all others frozen; what
``--format shard`` prints is run as Python, with a ``mindspore.shard`` that only takes notes; the
network is compiled again with the region as the real ``mindspore.shard(fn, in_strategy=…,
out_strategy=…)``. Then what goes into the region and comes out must lie as the plan says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.files.shard_lines import ShardedFunction, function_lines, sharded_function
from irtool.planning.plans.plan import Plan, plan
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.query import query

REGION = '"region" in scope'
NETWORK = Path(__file__).with_name("plan_region_network.py")


@dataclass(frozen=True, slots=True)
class Compiler:
    """Where MindSpore is, and for how many devices it compiles."""

    python: str
    script: Path
    devices: int
    before: tuple[str, ...]

    def compile(self, out: Path, environment: Mapping[str, str]) -> Path:
        """The begin dump of a compilation.

        Raises:
            SystemExit: MindSpore refused it.
        """
        out.mkdir(parents=True, exist_ok=True)
        command = [
            *self.before, self.python, str(self.script), f"{NETWORK}:network",
            "--devices", str(self.devices), "--mode", "sp", "--out", str(out),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=out, env={**os.environ, **environment}, capture_output=True, text=True
        )
        answer = json.loads((done.stdout.strip().splitlines() or ["{}"])[-1])
        if not answer.get("accepted"):
            raise SystemExit(f"MindSpore refused it: {answer.get('error') or done.stderr[-2000:]}")
        if not any(out.rglob("*_validate_[0-9]*.ir")):
            raise SystemExit(f"MindSpore did not get to its validate dump in {out}")
        return max(out.rglob("*step_parallel_begin_[0-9]*.ir"))


def _call(function: ShardedFunction) -> dict[str, object]:
    """What the printed lines hand to ``mindspore.shard``."""
    calls: list[dict[str, object]] = []

    def shard(fn: object, **given: object) -> None:
        calls.append(given)

    names = {"mindspore": SimpleNamespace(shard=shard), "fn": None}
    exec("\n".join(function_lines(function)), names)
    (call,) = calls
    return call


def _border(begin: Path, context: ParallelContext, like: Plan) -> ShardedFunction:
    """How what goes into the region and comes out lies in a compiled network."""
    dump = irtool.load(str(begin))
    compiled = replace(like, dump=dump, report=check(dump, context))
    return sharded_function(compiled, frozenset(dump.nodes(where=query(REGION))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, plan, compile again, compare; 1 if MindSpore's layouts are others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True)
    parser.add_argument("--compiler", type=Path, required=True)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", default="", help="a command to run others with: nice -n 5")
    given = parser.parse_args(arguments)
    out = Path(given.out or tempfile.mkdtemp(prefix="plan_region_")).resolve()
    compiler = Compiler(
        given.python, given.compiler.resolve(), given.devices, tuple(given.before.split())
    )
    context = ParallelContext(
        devices=given.devices, mode="auto_parallel", search="sharding_propagation", full_batch=True
    )
    begin = compiler.compile(out / "plain", {})
    dump = irtool.load(str(begin))
    region = frozenset(dump.nodes(where=query(REGION)))
    made = plan(dump, context, default_machine(), region=region)
    function = sharded_function(made, frozenset(made.dump.nodes(where=query(REGION))))
    call = _call(function)
    print(*function_lines(function), sep="\n")
    path = out / "region.json"
    path.write_text(json.dumps(call), encoding="utf-8")
    sharded = compiler.compile(out / "sharded", {"REGION": str(path)})
    plain, found = (_border(path, context, made) for path in (begin, sharded))
    for name, each in (("without it", plain), ("compiled with it", found)):
        print(
            f"{name}: in_strategy={each.in_strategy}, out_strategy={each.out_strategy}, "
            f"weights {each.weights}"
        )
    same = _ways(found) == _ways(function)
    print("as planned" if same else "NOT as planned")
    if _ways(plain) == _ways(function):
        print("but so it is without the function, which proves nothing")
        return 1
    return 0 if same else 1


def _ways(function: ShardedFunction) -> tuple[object, ...]:
    """How everything lies that goes in and comes out; weights inside follow by propagation."""
    return function.in_strategy, function.out_strategy


if __name__ == "__main__":
    sys.exit(main())

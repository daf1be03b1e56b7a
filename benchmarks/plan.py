"""How good plans are: against MindSpore's own, and against what MindSpore makes of them.

python benchmarks/plan.py corpus FOLDER
FOLDER holds folders NET_MODE_DEVICES with a step_parallel_begin.ir each. Prints the modelled
cost of each dump's own strategies over that of irtool's plan, the bound, and CPU seconds.

python benchmarks/plan.py compiled BEGIN VALIDATE --devices N [--alltoall]
Prints what the cost model predicts for a begin dump and what its validate dump holds: bytes
that a device receives, by collective and phase, and by kind of cause.

python benchmarks/plan.py same PLANNED.ir COMPILED.ir
Whether the strategies of a plan (irtool plan --format ir) are those of the begin dump that
MindSpore wrote after it loaded the plan.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.collectives import collective
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.cost_report import step_cost
from irtool.planning.costs import received_bytes
from irtool.planning.plan import plan
from irtool.planning.plan_structure import structure_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext


def context_for(devices: int, alltoall: bool = False) -> ParallelContext:
    """The context of the corpus: full batch, one stage."""
    return ParallelContext(
        devices=devices,
        mode="auto_parallel",
        search="sharding_propagation",
        full_batch=True,
        enable_alltoall=alltoall,
    )


def corpus(folder: Path) -> None:
    """Modelled cost of the dumps' own strategies over that of plans."""
    machine = default_machine()
    print("case                     before ms   after ms  ratio   bound ms  gap %  search s  all s")
    for case in sorted(folder.iterdir()):
        found = re.fullmatch(r"(.*)_(\d+)", case.name)
        begin = case / "step_parallel_begin.ir"
        if found is None or not begin.is_file():
            continue
        started = time.process_time()
        made = plan(irtool.load(str(begin)), context_for(int(found[2])), machine)
        total = time.process_time() - started
        before = made.before.seconds if made.before is not None else float("nan")
        print(
            f"{case.name:24} {1e3 * before:9.3f}  {1e3 * made.after.seconds:9.3f}"
            f"  {before / made.after.seconds:5.2f}  {1e3 * made.lower_bound:9.3f}"
            f"  {100 * made.gap:5.2f}  {made.seconds:8.2f}  {total:5.2f}",
            flush=True,
        )


def compiled(begin: Path, validate: Path, devices: int, alltoall: bool) -> None:
    """Predicted against compiled bytes."""
    dump = irtool.load(str(begin))
    context = context_for(devices, alltoall)
    cost = step_cost(structure_of(dump, context), check(dump, context), default_machine())
    predicted: Counter[tuple[str, str]] = Counter(cost.received)
    actual: Counter[tuple[str, str]] = Counter()
    later = irtool.load(str(validate))
    for node in later.nodes():
        item = collective(node)
        if item is None or item.is_virtual or item.bytes is None or item.ranks is None:
            continue
        phase = "backward" if item.is_gradient else "forward"
        actual[item.op, phase] += received_bytes(item.op, item.bytes, len(item.ranks))
    print("collective               predicted MB   compiled MB   error %")
    for key in sorted({*predicted, *actual}):
        _row(" ".join(key), predicted[key], actual[key])
    for op in sorted({key[0] for key in (*predicted, *actual)}):
        _row(
            f"{op}, both",
            *(sum(n for k, n in c.items() if k[0] == op) for c in (predicted, actual)),
        )
    _row("all", sum(predicted.values()), sum(actual.values()))


def _row(name: str, predicted: int, actual: int) -> None:
    error = 100 * (predicted - actual) / actual if actual else float("nan")
    print(f"{name:24} {predicted / 1e6:12.3f}  {actual / 1e6:12.3f}  {error:8.2f}")


def same(planned: Path, loaded: Path) -> int:
    """Whether MindSpore took a plan as it is."""
    first, second = _strategies(planned), _strategies(loaded)
    differ = [key for key in first if first[key] != second.get(key)]
    print(f"{len(first) - len(differ)} of {len(first)} strategies are the planned ones")
    for key in differ[:10]:
        print(f"  {key}: planned {first[key]}, compiled {second.get(key)}")
    return 1 if differ else 0


def _strategies(path: Path) -> dict[str, object]:
    dump: Dump = irtool.load(str(path))
    seen: Counter[str] = Counter()
    found: dict[str, object] = {}
    for node in dump.nodes():
        if node.strategy is not None and node.op not in ("Reshape", "Cast", "_VirtualDataset"):
            found[_key(node, seen)] = (node.in_strategy, node.out_strategy)
    return found


def _key(node: Node, seen: Counter[str]) -> str:
    name = f"{node.graph.name if node.graph else ''} {node.id} {node.op}"
    seen[name] += 1
    return name


def main() -> int:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("corpus").add_argument("folder", type=Path)
    two = commands.add_parser("compiled")
    two.add_argument("begin", type=Path)
    two.add_argument("validate", type=Path)
    two.add_argument("--devices", type=int, required=True)
    two.add_argument("--alltoall", action="store_true")
    three = commands.add_parser("same")
    three.add_argument("planned", type=Path)
    three.add_argument("loaded", type=Path)
    given = parser.parse_args()
    if given.command == "corpus":
        corpus(given.folder)
    elif given.command == "compiled":
        compiled(given.begin, given.validate, given.devices, given.alltoall)
    else:
        return same(given.planned, given.loaded)
    return 0


if __name__ == "__main__":
    sys.exit(main())

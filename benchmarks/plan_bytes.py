"""What a step communicates: what the cost model predicts, and what MindSpore compiled.

python benchmarks/plan_bytes.py BEGIN VALIDATE --devices N [--alltoall] [--machine NAME|FILE]

BEGIN: step_parallel_begin; VALIDATE: the validate dump of the same compilation. Prints the bytes
that a device receives, by collective and phase, predicted and compiled, those of groups that span
nodes, and the seconds that the machine model gives to both.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import irtool
from irtool.cluster.fuse import launch_of
from irtool.cluster.machine import Machine, built_in, default_machine, machine_from
from irtool.cluster.pricing import Launch, step_seconds
from irtool.ir.collectives import collective
from irtool.ir.dump import Dump
from irtool.planning.cost.costs import received_bytes
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(slots=True)
class Traffic:
    """What one device receives in a step: bytes by collective and phase, and the model's seconds.

    ``between``: bytes of collectives whose group spans more than one node. ``unknown``: collectives
    of which a dump does not say the ranks or the size.
    """

    machine: Machine
    received: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    count: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    between: int = 0
    launches: list[Launch] = field(default_factory=list[Launch])
    unknown: int = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.received.values())

    def of(self, op: str) -> int:
        """Bytes of a class of collectives, forward and backward."""
        return sum(size for key, size in self.received.items() if key[0] == op)

    def add(self, phase: str, launch: Launch) -> None:
        """One more collective."""
        received = received_bytes(launch.op, launch.size, len(launch.ranks))
        self.received[launch.op, phase] += received
        self.count[launch.op, phase] += 1
        self.launches.append(launch)
        node = self.machine.node_devices
        if node is not None and len({rank // node for rank in launch.ranks}) > 1:
            self.between += received

    @property
    def seconds(self) -> float:
        """Seconds of all, fused ones together."""
        return sum(step_seconds(self.launches, self.machine))


def arguments_of_cases(doc: str | None, cases: Iterable[str]) -> argparse.ArgumentParser:
    """What scripts take that have MindSpore compile cases."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    parser.add_argument("--python", required=True)
    parser.add_argument("--compiler", type=Path, required=True)
    parser.add_argument("--networks", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--alltoall", action="store_true")
    parser.add_argument("--again", action="store_true")
    return parser


def dump_in(folder: Path, kind: str) -> Path | None:
    """The last dump of a kind that MindSpore wrote somewhere in a folder."""
    found = sorted(folder.rglob(f"*{kind}_[0-9]*.ir"))
    return found[-1] if found else None


def context_for(devices: int, alltoall: bool = False) -> ParallelContext:
    """The context that the networks are compiled under: full batch, one stage."""
    return ParallelContext(
        devices=devices,
        mode="auto_parallel",
        search="sharding_propagation",
        full_batch=True,
        enable_alltoall=alltoall,
    )


def predicted(begin: Dump, context: ParallelContext, machine: Machine) -> Traffic:
    """What the cost model says of a begin dump's strategies, what runs again with it."""
    cost = step_cost(structure_of(begin, context), check(begin, context), machine)
    found = Traffic(machine, unknown=len(cost.unknown))
    for item in cost.items:
        for each in (*item.communications, *item.repeated):
            found.add(each.phase, each.launch)
    return found


def compiled(validate: Dump, machine: Machine) -> Traffic:
    """What a validate dump runs: a graph that is called twice (lazy inline) counts twice."""
    found = Traffic(machine)
    for ran in validate.whole().nodes:
        item = collective(ran.node)
        if item is None or item.is_virtual:
            continue
        if item.bytes is None or item.ranks is None:
            found.unknown += 1
            continue
        phase = "backward" if item.is_gradient else "forward"
        found.add(phase, launch_of(item, item.ranks))
    return found


def classes(*all_traffic: Traffic) -> list[str]:
    """The kinds of collectives in any of them."""
    return sorted({key[0] for each in all_traffic for key in each.received})


def error(guess: float, truth: float) -> float:
    """Per cent that a guess is above the truth."""
    if truth:
        return 100 * (guess - truth) / truth
    return float("inf") if guess else 0.0


def rows(guess: Traffic, truth: Traffic) -> Iterator[str]:
    """A table of both."""
    yield "collective               predicted MB   compiled MB   error %   (number of each)"
    for key in sorted({*guess.received, *truth.received}):
        counts = f"{guess.count[key]} and {truth.count[key]}"
        yield _row(" ".join(key), guess.received[key], truth.received[key], counts)
    for op in classes(guess, truth):
        yield _row(f"{op}, both", guess.of(op), truth.of(op))
    yield _row("all", guess.total, truth.total)
    yield _row("between nodes", guess.between, truth.between)
    yield (
        f"priced by the machine model: {1e3 * guess.seconds:.3f} ms and {1e3 * truth.seconds:.3f}"
        f" ms, {error(guess.seconds, truth.seconds):.2f} %"
    )


def _row(name: str, guess: int, truth: int, more: str = "") -> str:
    return (
        f"{name:24} {guess / 1e6:12.3f}  {truth / 1e6:12.3f}  {error(guess, truth):8.2f}   {more}"
    ).rstrip()


def machine_named(name: str | None) -> Machine:
    """A built-in machine, or that of a TOML file."""
    if name is None:
        return default_machine()
    if name.endswith(".toml"):
        text = Path(name).read_text(encoding="utf-8")
        return machine_from(tomllib.loads(text))
    return built_in(name)


def main() -> int:
    """Compare two dumps of one compilation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("begin", type=Path)
    parser.add_argument("validate", type=Path)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--alltoall", action="store_true")
    parser.add_argument("--machine")
    given = parser.parse_args()
    machine = machine_named(given.machine)
    context = context_for(given.devices, given.alltoall)
    guess = predicted(irtool.load(str(given.begin)), context, machine)
    truth = compiled(irtool.load(str(given.validate)), machine)
    print(*rows(guess, truth), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

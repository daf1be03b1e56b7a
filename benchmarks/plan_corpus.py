"""Whether plans and their prices hold together on every network of a corpus.

python benchmarks/plan_corpus.py FOLDER [--limit N]

FOLDER has a folder a case, each with a ``step_parallel_begin`` and a ``case.json``. Each network is
priced as it is, planned for the devices that it has, and planned again from its plan. Then

* what the shares and the parts of a step add up to must be the step, and nothing less than nothing;
* the cost before must be that of the dump, the bound no more than the plan, the plan no more than
  the dump, and ``check`` must not refuse it;
* the plan of the plan must cost the same.

Prints what does not hold, why networks were not planned, and how many were; exits 1 if something
does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.plan import CannotPlan, Plan, plan
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

MACHINE = default_machine()


@dataclass(slots=True)
class Totals:
    """What was seen of all networks."""

    planned: int = 0
    better: int = 0
    gaps: int = 0
    faults: int = 0
    declined: Counter[str] = field(default_factory=Counter[str])


def priced(dump: Dump, context: ParallelContext) -> StepCost:
    """What the dump costs as it is."""
    return step_cost(structure_of(dump, context), check(dump, context), MACHINE)


def faults_of_cost(cost: StepCost) -> Iterator[str]:
    """Sums that are not the step."""
    if not isclose(sum(cost.shares.values()), cost.seconds):
        yield "the shares are not the step"
    if any(seconds < 0 for item in cost.items for seconds in item.seconds.values()):
        yield "something takes less than no time"
    if any(received < 0 for received in cost.received.values()):
        yield "something receives less than nothing"


def faults_of_plan(made: Plan, alone: StepCost) -> Iterator[str]:
    """What does not hold of a plan; ``alone``: the cost of the dump."""
    after, before = made.after.seconds, made.before
    yield from faults_of_cost(made.after)
    if made.report.accepted is False:
        yield "check refuses the plan"
    if made.lower_bound is not None and made.lower_bound > after * (1 + 1e-9):
        yield f"the bound {made.lower_bound} is more than the plan {after}"
    if before is not None and after > before.seconds * (1 + 1e-9):
        yield f"the plan {after} is more than the dump {before.seconds}"
    if before is not None and not isclose(before.seconds, alone.seconds):
        yield f"before {before.seconds}, but the dump costs {alone.seconds}"


def look_at(begin: Path, totals: Totals) -> Iterator[str]:
    """Price, plan, plan again; what does not hold."""
    told = json.loads((begin.parent / "case.json").read_text(encoding="utf-8"))["context"]
    dump, context = irtool.load(str(begin)), ParallelContext.from_mapping(told)
    alone = priced(dump, context)
    yield from faults_of_cost(alone)
    try:
        made = plan(dump, context, MACHINE)
    except CannotPlan as error:
        totals.declined[_kind(str(error))] += 1
        return
    totals.planned += 1
    totals.better += made.before is None or made.after.seconds < made.before.seconds
    totals.gaps += made.gap is None or made.gap > 1e-9
    yield from faults_of_plan(made, alone)
    again = plan(made.dump, context, MACHINE)
    if not isclose(again.after.seconds, made.after.seconds):
        yield f"the plan {made.after.seconds} planned again costs {again.after.seconds}"


def _kind(text: str) -> str:
    """A message without its numbers and names, to count it by."""
    kinds = (
        "has no legal strategy", "can't be", "are not known", "MindSpore would refuse", "takes a",
    )  # fmt: skip
    return next((kind for kind in kinds if kind in text), text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at all networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, metavar="N", help="the first N networks only")
    given = parser.parse_args(arguments)
    totals = Totals()
    begins = sorted(given.folder.rglob("*step_parallel_begin_[0-9]*.ir"))
    for begin in [each for each in begins if (each.parent / "case.json").is_file()][: given.limit]:
        for fault in look_at(begin, totals):
            totals.faults += 1
            print(f"{begin.parent.name}: {fault}", flush=True)
    print(
        f"{totals.planned} planned, {totals.better} of them better than their dump, {totals.gaps} "
        f"not proved to be the optimum; {totals.faults} faults"
    )
    for kind, count in totals.declined.most_common():
        print(f"{count} not planned: … {kind} …")
    return 1 if totals.faults else 0


if __name__ == "__main__":
    sys.exit(main())

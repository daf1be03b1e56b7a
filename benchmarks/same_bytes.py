"""One account of memory: what ``cost``, ``plan`` and ``recover`` count against what is compiled.

    python benchmarks/same_bytes.py FOLDER... [--devices 8] [--context JSON] [--quiet]

Each folder holds ``step_parallel_begin_*.ir`` and ``*_validate_*.ir`` of one compilation (packed or
not, anywhere inside). ``irtool cost`` predicts from the first what ``irtool memory`` counts in the
second; what ``plan`` holds a limit against is that of the strategies that the dump has, and what
``recover`` moves is what a rank stores. A context is a ``case.json`` in the folder, or
``--context`` (keys of ``set_auto_parallel_context``). Exit status: 0 all bytes equal, 1 some
differ. The tables of ``plan`` add up by operator, so they count no buffers, inputs and gathered
weights: their row is told, and need not agree (a limit is held against what is predicted in all).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irtool
from irtool.cluster.account import compiled_account, static_bytes
from irtool.cluster.machine import Machine, built_in
from irtool.cluster.memory import memory
from irtool.ir.dump import Dump
from irtool.planning.cost.holdings import holdings, is_restored
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.report import step_cost
from irtool.planning.search.problem import problem_of
from irtool.planning.search.tables import CannotPlan, model_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a network: as predicted, and as compiled; None: not known."""

    what: str
    predicted: int | None
    compiled: int
    must_agree: bool = True

    @property
    def differs(self) -> bool:
        """Whether both are known and should be the same, and are not."""
        return self.must_agree and self.predicted is not None and self.predicted != self.compiled


def context_in(folder: Path, devices: int, text: str) -> ParallelContext:
    """The context of a compilation."""
    values: dict[str, Any] = {"device_num": devices, "full_batch": True}
    file = folder / "case.json"
    if file.exists():
        values = json.loads(file.read_text(encoding="utf-8"))["context"]
    return ParallelContext.from_mapping({**values, **json.loads(text)})


def dumps_in(folder: Path) -> tuple[Dump, Dump]:
    """Begin and validate dump of a compilation."""
    kinds = ("step_parallel_begin", "validate")
    begin, validate = (irtool.load(max(folder.rglob(f"*{kind}_[0-9]*.ir*"))) for kind in kinds)
    return begin, validate


def rows_of(
    begin: Dump, validate: Dump, context: ParallelContext, machine: Machine
) -> Iterator[Row]:
    """What both sides say of one compilation."""
    cost = step_cost(structure_of(begin, context), check(begin, context), machine).memory
    compiled = memory(validate)
    seen = compiled_account(compiled)
    yield Row("weights", cost.weights, seen.weights)
    yield Row("states", cost.states, seen.states)
    yield Row("accumulated gradients", cost.accumulated, seen.accumulated)
    yield Row("gradients", cost.gradients, seen.gradients)
    yield Row("kept results", cost.activations, seen.kept)
    yield Row("gathered weights", cost.gathered, seen.gathered)
    yield Row("inputs", cost.inputs, seen.inputs)
    yield Row("other", cost.other, seen.other)
    yield Row("fused buffer", cost.fused, seen.fused)
    yield Row("in all", cost.total, seen.total)
    yield Row("plan's tables", planned_bytes(begin, context, machine), seen.total, False)
    stored = holdings(begin, context).bytes_on(context.rank)
    # Gradients that MindSpore itself sums are zero between steps; those of the user's own are not.
    own_sums = sum(
        static_bytes(item) or 0
        for item in compiled.static
        if item.cause == "accumulated gradients" and is_restored(item.name)
    )
    yield Row("recover: stored", stored, seen.weights + seen.states + seen.other + own_sums)


def planned_bytes(begin: Dump, context: ParallelContext, machine: Machine) -> int | None:
    """What ``plan --memory`` counts for the strategies that a dump has; None: not all have one."""
    try:
        problem = problem_of(begin, context, context)
        model = model_of(problem.structure, machine, problem.current, {})
    except CannotPlan:
        return None
    return None if model.own is None else round(model.memory_of(model.own))


def main() -> int:
    """Compare the compilations of some folders."""
    parser = argparse.ArgumentParser(description="Bytes as predicted and compiled.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--machine", default="ascend_910b")
    parser.add_argument("--context", default="{}")
    parser.add_argument("--quiet", action="store_true", help="only what differs, and the totals")
    options = parser.parse_args()
    equal: dict[str, int] = {}
    counted: dict[str, int] = {}
    for folder in options.folders:
        try:
            begin, validate = dumps_in(folder)
        except ValueError:
            print(f"{folder.name}: no begin and validate dump")
            continue
        context = context_in(folder, options.devices, options.context)
        if check(begin, context).accepted is not True:
            print(f"{folder.name}: MindSpore's answer to its strategies is not known")
            continue
        rows = list(rows_of(begin, validate, context, built_in(options.machine)))
        if not options.quiet or any(row.differs for row in rows):
            print(folder.name)
        for row in rows:
            same = row.predicted == row.compiled
            counted[row.what] = counted.get(row.what, 0) + (row.predicted is not None)
            equal[row.what] = equal.get(row.what, 0) + same
            if not options.quiet or row.differs:
                mark = "" if same else "differs" if row.differs else "(see above)"
                predicted = "?" if row.predicted is None else f"{row.predicted:,}"
                print(f"  {row.what:24}{predicted:>16}{row.compiled:>16,}  {mark}".rstrip())
    for what, count in counted.items():
        print(f"{what}: {equal[what]} of {count} equal")
    judged = [what for what in counted if what != "plan's tables"]
    return int(any(equal[what] != counted[what] for what in judged))


if __name__ == "__main__":
    sys.exit(main())

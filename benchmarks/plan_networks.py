"""Plans of random networks: handed over, taken by MindSpore as planned, compiled to what was said.

    MINDSPORE/bin/python benchmarks/networks/plan.py OUT … --step save
    python benchmarks/plan_networks.py write OUT/*       # a strategy file of each plan
    MINDSPORE/bin/python benchmarks/networks/plan.py OUT … --step load     # and --step weights
    MINDSPORE/bin/python benchmarks/networks/plan.py OUT … --step rec
    python benchmarks/plan_networks.py compare OUT/*

``write`` plans from the begin dump of ``save`` alone: the strategies that MindSpore saved beside it
are not looked at. ``compare`` counts the cases that MindSpore accepted, strategies as planned, and
classes of collectives whose bytes differ from what was predicted by more than a thousandth. Where
MindSpore's recursive search compiled the network, too, the seconds of a step under both are
compared. ``--overlap`` is that of the machine, for plans and for what both cost.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from plan_bytes import classes, compiled, dump_in, predicted

import irtool
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.handing_over import Again, HandedOver, hand_over
from irtool.planning.files.strategy_files import NotExpressible
from irtool.planning.plans.plan import CannotPlan, Plan, plan
from irtool.planning.plans.step.report import step_cost
from irtool.planning.search.problem import Carried
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

NOT_PLANNED = ("Reshape", "Cast", "_VirtualDataset", "GetNext", "VirtualDataset")
"""Operators whose strategy is nobody's choice."""
STEPS = {"operators": ("operators.json", "load"), "parameters": ("parameters.json", "weights")}
CLOSE = 1e-3
TIE = 1e-6
"""Part of a step by which a plan may be dearer and still costs as much."""


def context_of(case: Path, step: str = "save") -> ParallelContext:
    """The context that the networks of a case were compiled under."""
    said = json.loads((case / step / "case.json").read_text(encoding="utf-8"))
    return ParallelContext.from_mapping(said["context"])


def is_compiled(case: Path) -> bool:
    """Whether MindSpore came as far as its parallel pass, and what it was told is known."""
    answer = case / "save" / "case.json"
    known = answer.is_file() and "context" in json.loads(answer.read_text(encoding="utf-8"))
    return known and dump_in(case / "save", "step_parallel_begin") is not None


def written(case: Path, machine: Machine) -> HandedOver | str:
    """Plan a case and write the file; a text: why there is none."""
    begin = dump_in(case / "save", "step_parallel_begin")
    assert begin is not None
    dump, context = irtool.load(str(begin)), context_of(case)

    def again(carried: Carried, loaded: ParallelContext) -> Plan:
        return plan(dump, loaded, machine, carried=carried)

    try:
        free = plan(dump, context, machine)
        made = hand_over(free, Again(dump, again))
    except (CannotPlan, NotExpressible) as error:
        return str(error)
    for name, _ in STEPS.values():
        (case / name).unlink(missing_ok=True)
    (case / STEPS[made.keys][0]).write_text(made.text, encoding="utf-8")
    (case / "plan.ir").write_text(irtool.dumps(made.plan.dump), encoding="utf-8")
    more = 100 * (made.plan.after.seconds / free.after.seconds - 1)
    print(f"{case.name}: by {made.keys}, {more:.2f} % above the free plan", flush=True)
    return made


def strategies(dump: Dump) -> dict[tuple[object, ...], object]:
    """Strategies by what tells an operator in two compilations: graph, scope, primitive, name."""
    return {
        (node.graph.name.partition("_")[2] if node.graph else "", node.scope, node.op, node.name,
         node.id): (node.written_strategy(), out_in_effect(node))
        for node in dump.nodes()
        if node.has_strategy and node.op not in NOT_PLANNED
    }  # fmt: skip


def in_order(dump: Dump) -> list[tuple[object, ...]]:
    """Scope, primitive and strategies of each operator whose strategy is somebody's choice."""
    return [
        (node.scope, node.op, node.written_strategy(), out_in_effect(node))
        for node in dump.nodes()
        if node.has_strategy and node.op not in NOT_PLANNED
    ]


def out_in_effect(node: Node) -> object:
    """The ``out_strategy`` that a search or a file gave: that of the primitive is the user's."""
    return None if node.strategy is None else node.strategy.get("out_strategy")


def differences(planned: Dump, loaded: Dump, is_begin: bool) -> list[object]:
    """Operators that got another strategy than was planned.

    Behind the parallel pass places differ, and what was replaced is gone.
    """
    if is_begin:
        wanted, got = strategies(planned), strategies(loaded)
        # Between two compilations either names or the order of nodes may differ.
        pairs = zip_longest(in_order(planned), in_order(loaded))
        apart: list[object] = [one or other for one, other in pairs if one != other]
        return apart and [key for key in wanted if got.get(key) != wanted[key]]
    count = Counter((key[1:4], value) for key, value in strategies(planned).items())
    seen = Counter((key[1:4], value) for key, value in strategies(loaded).items())
    known = {key for key, _ in seen}
    return [key for key, _ in (count - seen) if key in known]


def seconds_of(dump: Dump, context: ParallelContext, machine: Machine) -> float:
    """A step of a begin dump with strategies."""
    return step_cost(structure_of(dump, context), check(dump, context), machine).seconds


def against_recursive(case: Path, planned: Dump, machine: Machine) -> Counter[str]:
    """What the plan costs beside what MindSpore's recursive search chose for the network."""
    found: Counter[str] = Counter()
    answer, begin = case / "rec" / "case.json", dump_in(case / "rec", "step_parallel_begin")
    text = answer.read_text(encoding="utf-8") if answer.is_file() else "{}"
    said: dict[str, object] = json.loads(text)
    if begin is None or not said.get("accepted"):
        return found
    found["compared with the recursive search"] += 1
    ours = seconds_of(planned, context_of(case), machine)
    theirs = seconds_of(irtool.load(str(begin)), context_of(case, "rec"), machine)
    found["not dearer than it"] += ours <= theirs * (1 + TIE)
    if ours > theirs * (1 + TIE):
        print(f"{case.name}: {ours / theirs:.4f} of what the recursive search's strategies cost")
    return found


def compared(case: Path, machine: Machine) -> Counter[str]:
    """What MindSpore made of a case's file."""
    found: Counter[str] = Counter()
    for keys, (name, step) in STEPS.items():
        answer = case / step / "case.json"
        if not (case / name).is_file() or not answer.is_file():
            continue
        found["loaded"] += 1
        said = json.loads(answer.read_text(encoding="utf-8"))
        begin = dump_in(case / step, "step_parallel_begin")
        validate = dump_in(case / step, "_validate")
        if not said.get("accepted") or begin is None or validate is None:
            why = said.get("error") or said.get("unusable") or "no dump"
            print(f"{case.name}: refused by {keys}: {why[:300]} {said.get('log', [])[:2]}")
            continue
        found["accepted"] += 1
        wanted = irtool.load(str(case / "plan.ir"))
        # A file keyed by weights is read in the parallel pass: what it gave stands behind that.
        shown = begin if keys == "operators" else dump_in(case / step, "step_parallel_end")
        differing = differences(wanted, irtool.load(str(shown)), keys == "operators")
        found["as planned"] += not differing
        if differing:
            print(f"{case.name}: {len(differing)} strategies differ, the first {differing[0]}")
        found += against_recursive(case, wanted, machine)
        guess = predicted(wanted, context_of(case), machine)
        truth = compiled(irtool.load(str(validate)), machine)
        apart = [
            f"{op} {guess.of(op)} {truth.of(op)}"
            for op in classes(guess, truth)
            if abs(guess.of(op) - truth.of(op)) > CLOSE * max(truth.of(op), 1)
        ]
        found["bytes as predicted"] += not apart
        if apart:
            print(f"{case.name}: predicted and compiled bytes: {', '.join(apart)}")
    return found


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--overlap", type=float, default=0.0)
    given = parser.parse_args()
    machine = replace(default_machine(), overlap=given.overlap)
    counts: Counter[str] = Counter()
    for case in given.cases:
        if not is_compiled(case):
            counts["not compiled"] += 1
            continue
        if given.what == "compare":
            counts += compared(case, machine)
            continue
        made = written(case, machine)
        counts["networks"] += 1
        if isinstance(made, str):
            print(f"{case.name}: NOT: {made}", flush=True)
        else:
            counts["handed over"] += 1
            counts[f"by {made.keys}"] += 1
            counts["as the free plan is"] += not made.notes
    print(", ".join(f"{key} {count}" for key, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

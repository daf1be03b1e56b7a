"""Whether irtool chooses what MindSpore's own searches choose, operator by operator.

python benchmarks/searches.py FOLDER... [--show 5] [--cost] [--only rec|sp]
FOLDER holds folders NET_rec_DEVICES or NET_sp_DEVICES (double recursive search, propagation), each
with the dump before the search (step_auto_parallel_begin*.ir) and after it
(step_parallel_begin*.ir), as MindSpore writes them with MS_DEV_SAVE_GRAPHS=1; compiled with
full_batch. Folders with a case.json (context, verdict) may have the later dump alone: what is
searched is then that dump without its strategies. In a pipeline the later dump holds the operators
of one stage; these are compared.

Prints for each case how many operators get the strategies (and out_strategy) that MindSpore gave
them: all, and those that MindSpore splits otherwise than along the batch; and CPU seconds of
the search, reading apart. --show: so many differences a case. --cost: modelled milliseconds a step
of MindSpore's plan, of irtool's for the same search, and of the optimum.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.plans.agreement import Agreement, agreement
from irtool.planning.plans.imitation import SEARCHES, Settings, choose, imitate
from irtool.planning.plans.plan import CannotPlan, plain_dump, plan
from irtool.sharding.network.context import ParallelContext

ALGORITHMS = {"rec": "recursive", "sp": "propagation"}
MODES = {"recursive_programming": "rec", "sharding_propagation": "sp"}
COEFFICIENTS = (
    ("matmul_seq_parallel", 1024.0),
    ("sapp_flash_attention_bnsd", 2.0**-10),
    ("sapp_flash_attention", 1.0),
)
"""``rp_matmul_mem_coef`` of MindSpore's own tests that set it, which no dump shows."""


@dataclass(frozen=True, slots=True)
class Case:
    """One compilation: dumps before and after the search, and under which context."""

    name: str
    mode: str
    before: Dump
    after: Dump | None
    context: ParallelContext
    settings: Settings


def cases(folder: Path) -> Iterator[Case]:
    """All cases below a folder, by name."""
    for path in sorted(folder.iterdir()):
        if (path / "case.json").is_file():
            yield from _of_case_file(path)
            continue
        found = re.fullmatch(r"(.*)_(rec|sp)_(\d+)", path.name)
        before = next(iter(path.glob("step_auto_parallel_begin*.ir")), None)
        after = next(iter(path.glob("step_parallel_begin*.ir")), None)
        if found is None or before is None:
            continue
        context = ParallelContext(devices=int(found[3]), full_batch=True)
        last = irtool.load(str(after)) if after is not None else None
        yield Case(path.name, found[2], irtool.load(str(before)), last, context, Settings())


def _of_case_file(path: Path) -> Iterator[Case]:
    given = json.loads((path / "case.json").read_text(encoding="utf-8"))["context"]
    mode = MODES.get(given.get("search_mode"))
    after = next(iter(path.glob("step_parallel_begin*.ir")), None)
    if given.get("parallel_mode") != "auto_parallel" or mode is None or after is None:
        return
    dump = irtool.load(str(after))
    begin = next(iter(path.glob("step_auto_parallel_begin*.ir")), None)
    before = irtool.load(str(begin)) if begin is not None else plain_dump(dump)
    number = next((each for key, each in COEFFICIENTS if key in path.name), None)
    context = ParallelContext.from_mapping(given)
    yield Case(path.name, mode, before, dump, context, Settings.given(number))


def compared(case: Case) -> tuple[Agreement | None, float]:
    """What agrees, and CPU seconds; None where there is no dump after the search."""
    started = time.process_time()
    choice = choose(case.before, case.context, ALGORITHMS[case.mode], settings=case.settings)
    seconds = time.process_time() - started
    if case.after is None:
        return None, seconds
    return agreement(case.before, case.after, choice.strategies, choice.outs), seconds


def costs(case: Case) -> str:
    """Modelled milliseconds: what the dump has, what is chosen here, the optimum."""
    machine = default_machine()
    dump = case.after or case.before
    algorithm = ALGORITHMS[case.mode]
    try:
        made = imitate(dump, case.context, machine, algorithm, settings=case.settings)
        best = plan(dump, case.context, machine)
    except CannotPlan as error:
        return f"  {error}"
    before = f"{1000 * made.before.seconds:9.3f}" if made.before is not None else "        -"
    return f"  {before} {1000 * made.after.seconds:9.3f} {1000 * best.after.seconds:9.3f}"


def report(case: Case, found: Agreement | None, seconds: float, shown: int) -> bool:
    """Print one case; whether at least 95 % agree."""
    if found is None:
        print(f"{case.name:60} MindSpore left no dump after its search")
        return True
    every, others = found.operators, found.others
    agree = len(every) - len(found.differing)
    telling = sum(each.agrees for each in others)
    print(
        f"{case.name[-60:]:60} {agree:5} of {len(every):5} {telling:5} of {len(others):5} "
        f"{100 * found.share:6.1f} % {seconds:6.2f} s"
    )
    for each in found.differing[:shown]:
        print(
            f"    {each.node.id} {each.node.op}: MindSpore {each.theirs} {each.out_theirs or ''} "
            f"here {each.ours} {each.out_ours or ''}"
        )
    return found.share >= 0.95


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    parser.add_argument("--only", choices=sorted(ALGORITHMS))
    parser.add_argument("--cost", action="store_true")
    arguments = parser.parse_args()
    print(f"{'case':60} {'agree, of all':14} {'not the batch':14}   share   search")
    few = total = same = operators = 0
    for folder in arguments.folders:
        for case in cases(folder):
            if arguments.only not in (None, case.mode) or ALGORITHMS[case.mode] not in SEARCHES:
                continue
            try:
                found, seconds = compared(case)
            except CannotPlan as error:
                print(f"{case.name:60} {error}")
                continue
            total += 1
            few += not report(case, found, seconds, arguments.show)
            if found is not None:
                operators += len(found.operators)
                same += len(found.operators) - len(found.differing)
            if arguments.cost:
                print(costs(case))
    print(f"{total} cases, {few} below 95 %; {same:,} of {operators:,} operators agree")
    return 1 if few else 0


if __name__ == "__main__":
    sys.exit(main())

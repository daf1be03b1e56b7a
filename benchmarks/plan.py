"""How good plans are, and how long they take: against MindSpore's own strategies and data x model.

python benchmarks/plan.py quality FOLDER... [--machine NAME|FILE] [--no-grid]
For every step_parallel_begin*.ir below the folders (a parent's name ends in _DEVICES, and
has _rec_, _sp_ or _dp_ in it or is called so): modelled seconds of the dump's own strategies
over those of irtool's plan, those of the best data x model grid over it, how far the plan may
be from the optimum, and CPU seconds of tables and search.

python benchmarks/plan.py depth BEGIN... --devices N...
CPU seconds for dumps of one network in several depths: what reads the network, what makes
tables, what searches. Best of three; run it on a quiet machine.

python benchmarks/plan.py memory FOLDER... [--limits N] [--machine NAME|FILE]
For the same dumps as `quality`, with and without `--optimizer-parallel auto` and
`--recompute auto`: under N limits of memory each, how far plans may be from the optimum.

Below 1 no ratio can be: what MindSpore chose is among what is searched. Bytes that MindSpore
compiles are compared by plan_accepted.py and plan_bytes.py.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

import numpy as np
from plan_bytes import context_for, machine_named
from plan_limits import limits

import irtool
from irtool.cluster.machine import Machine
from irtool.planning.plans.plan import plan
from irtool.planning.search.candidates import Candidate
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.search import Search
from irtool.planning.search.tables import CannotPlan, Model, model_of


def quality(folders: Sequence[Path], machine: Machine, with_grid: bool) -> None:
    """Ratios, gaps and times of all dumps in some folders."""
    print("case                          own ms    plan ms  ratio   grid ms (data x model)  ratio"
          "  gap %  seconds")  # fmt: skip
    for name, path, devices in _cases(folders):
        dump = irtool.load(str(path))
        try:
            made = plan(dump, context_for(devices), machine)
        except CannotPlan as error:
            print(f"{name:28}  {error}")
            continue
        own = made.before.seconds if made.before is not None else float("nan")
        best = made.after.seconds
        grid, sizes = _best_grid(path, devices, machine) if with_grid else (float("nan"), "")
        print(
            f"{name:28} {1e3 * own:8.3f}  {1e3 * best:9.3f}  {own / best:5.2f}"
            f"  {1e3 * grid:8.3f} {sizes:15} {grid / best:5.3f}"
            f"  {100 * (made.gap or 0.0):5.2f}  {made.seconds:7.2f}",
            flush=True,
        )


def _cases(folders: Sequence[Path]) -> Iterator[tuple[str, Path, int]]:
    for folder in folders:
        for path in sorted(folder.rglob("step_parallel_begin*.ir")):
            parts = path.parent.relative_to(folder.parent).parts
            found = [re.search(r"_(\d+)$", part) for part in parts]
            numbers = [int(match[1]) for match in found if match is not None]
            if numbers:
                yield "/".join(parts[1:]) or parts[0], path, numbers[-1]


def _best_grid(path: Path, devices: int, machine: Machine) -> tuple[float, str]:
    """The cheapest plan that cuts everything by one grid of data x model.

    Every operator splits at most one axis into as many slices as the grid has data ranks, and at
    most one into as many as it has model ranks: at least as good as any grid set by hand.
    """
    model = _model(path, devices, machine)
    best, sizes = inf, ""
    for data in (2**power for power in range(devices.bit_length())):
        if devices % data:
            continue
        other = devices // data
        unary = tuple(
            np.where([_fits(item, data, other) for item in candidates.items], numbers, inf)
            for candidates, numbers in zip(model.candidates, model.unary, strict=True)
        )
        if all(np.isfinite(numbers).any() for numbers in unary):
            _, value, _ = Search(model).best(unary)
            if value + model.constant < best:
                best, sizes = value + model.constant, f"({data} x {other})"
    return best, sizes


def _fits(item: Candidate, data: int, other: int) -> bool:
    rows = item.strategy or ()
    cut = {size for row in rows for size in row if size > 1}
    leading = rows[0][0] if rows and rows[0] else 1
    return cut <= {data, other} and (leading in (1, data) or cut == {other})


def _model(path: Path, devices: int, machine: Machine) -> Model:
    context = context_for(devices)
    target = planned_context(context, devices)
    problem = problem_of(irtool.load(str(path)), context, target)
    return model_of(problem.structure, machine, problem.current, {})


def depth(paths: Sequence[Path], all_devices: Sequence[int], machine: Machine) -> None:
    """CPU seconds by depth."""
    print("dump                                  operators  devices  network  tables  search  both")
    for devices in all_devices:
        for path in paths:
            rows = [_timed(path, devices, machine) for _ in range(3)]
            count = rows[0][0]
            read, tables, search = (min(row[at] for row in rows) for at in (1, 2, 3))
            print(
                f"{path.parent.name + '/' + path.name:42.42} {count:5} {devices:8}"
                f"  {read:7.2f} {tables:7.2f} {search:7.2f} {tables + search:5.2f}",
                flush=True,
            )


def _timed(path: Path, devices: int, machine: Machine) -> tuple[int, float, float, float]:
    dump = irtool.load(str(path))
    context = context_for(devices)
    started = time.process_time()
    problem = problem_of(dump, context, planned_context(context, devices))
    read = time.process_time()
    model = model_of(problem.structure, machine, problem.current, {})
    tables = time.process_time()
    Search(model).best(model.unary)
    done = time.process_time()
    return len(model.nodes), read - started, tables - read, done - tables


def main() -> int:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("quality")
    first.add_argument("folders", type=Path, nargs="+")
    first.add_argument("--machine")
    first.add_argument("--no-grid", action="store_true")
    second = commands.add_parser("depth")
    second.add_argument("dumps", type=Path, nargs="+")
    second.add_argument("--devices", type=int, nargs="+", default=[8, 64, 512])
    second.add_argument("--machine")
    third = commands.add_parser("memory")
    third.add_argument("folders", type=Path, nargs="+")
    third.add_argument("--limits", type=int, default=10)
    third.add_argument("--machine")
    given = parser.parse_args()
    machine = machine_named(given.machine)
    if given.command == "quality":
        quality(given.folders, machine, not given.no_grid)
    elif given.command == "memory":
        limits(list(_cases(given.folders)), machine, given.limits)
    else:
        depth(given.dumps, given.devices, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())

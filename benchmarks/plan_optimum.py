"""Whether plans are optimal: the least sum by elimination, against an integer program.

python benchmarks/plan_optimum.py BEGIN... --devices N [--alltoall] [--machine NAME|FILE]

Asks for the price of every redistribution that any plan could need, gives the whole choice to HiGHS
(scipy.optimize.milp) and compares what it finds with what irtool's search finds. For small networks
and few devices: a network of 30 operators on 8 devices takes HiGHS seconds to minutes. Needs scipy.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from pathlib import Path

import numpy as np
from plan_bytes import context_for, machine_named
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

import irtool
from irtool.planning.search.link_tables import PricedLink, result_of
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.search import Search
from irtool.planning.search.tables import Model, model_of


class Program:
    """An integer program: columns with costs, and rows of sums between two numbers."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def column(self, cost: float, *, whole: bool = False) -> int:
        """A new number between 0 and 1 (0 where the cost is infinite)."""
        self.costs.append(cost)
        self.whole.append(int(whole))
        return len(self.costs) - 1

    def row(self, sums: dict[int, float], low: float, high: float) -> None:
        """A sum that has to lie between two numbers."""
        self.rows.append((sums, low, high))

    def least(self, seconds: float) -> float:
        """The least cost; infinite if HiGHS did not prove it in time."""
        costs = np.array(self.costs)
        entries = [(at, col, value) for at, (sums, _, _) in enumerate(self.rows)
                   for col, value in sums.items()]  # fmt: skip
        at, col, value = zip(*entries, strict=True)
        matrix = csr_matrix((value, (at, col)), shape=(len(self.rows), len(costs)))
        limits = LinearConstraint(matrix, [r[1] for r in self.rows], [r[2] for r in self.rows])
        scale = 1e6  # microseconds: HiGHS' tolerances are absolute
        found = milp(
            np.where(np.isfinite(costs), costs * scale, 0.0),
            constraints=limits,
            integrality=np.array(self.whole),
            bounds=Bounds(0, np.where(np.isfinite(costs), 1.0, 0.0)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        return float(found.fun) / scale if found.status == 0 else inf


def program_of(model: Model) -> Program:
    """One binary number a candidate; redistributions between pairs of layouts follow from them."""
    made = Program()
    chosen: list[list[int]] = []
    for numbers, candidates in zip(model.unary, model.candidates, strict=True):
        legal = [item.judgement.verdict == "legal" for item in candidates.items]
        costs = np.where(legal, numbers, inf)
        chosen.append([made.column(float(cost), whole=True) for cost in costs])
        made.row(dict.fromkeys(chosen[-1], 1.0), 1, 1)
    paid: dict[object, int] = {}
    for item in model.links:
        _link(made, model, item, chosen, paid)
    for each in model.shared:
        (first, keys), *others = each.users
        made.row({chosen[first][at]: 1.0 for at in np.flatnonzero(keys < 0)}, 0, 0)
        for other, own in others:
            for key in range(-1, each.count):
                sums = {chosen[other][at]: 1.0 for at in np.flatnonzero(own == key)}
                for at in np.flatnonzero(keys == key) if key >= 0 else ():
                    sums[chosen[first][at]] = -1.0
                made.row(sums, 0, 0)
    return made


def _link(
    made: Program, model: Model, item: PricedLink, chosen: list[list[int]], paid: dict[object, int]
) -> None:
    table = item.table
    pairs = np.empty((len(table.sources), len(table.targets)), dtype=np.int64)
    for a in range(len(table.sources)):
        for b in range(len(table.targets)):
            ends = table.sources.layout(a), table.targets.layout(b)
            price = model.chains.seconds(*ends, table.want)
            pairs[a, b] = made.column(0.0 if price < inf else inf)
            if price == 0 or price == inf:
                continue
            key = result_of(item.link), table.sources.keys[a], table.targets.keys[b]
            if key not in paid:
                paid[key] = made.column(price)
            made.row({paid[key]: 1.0, int(pairs[a, b]): -1.0}, 0, inf)
    for a in range(len(table.sources)):
        ends = {chosen[item.source][at]: -1.0 for at in np.flatnonzero(table.sources.which == a)}
        made.row({**dict.fromkeys(pairs[a].tolist(), 1.0), **ends}, 0, 0)
    for b in range(len(table.targets)):
        ends = {chosen[item.target][at]: -1.0 for at in np.flatnonzero(table.targets.which == b)}
        made.row({**dict.fromkeys(pairs[:, b].tolist(), 1.0), **ends}, 0, 0)


def main() -> int:
    """Compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dumps", type=Path, nargs="+")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--alltoall", action="store_true")
    parser.add_argument("--machine")
    parser.add_argument("--seconds", type=float, default=300.0, help="time for each program")
    given = parser.parse_args()
    context = context_for(given.devices, given.alltoall)
    differ = 0
    for path in given.dumps:
        problem = problem_of(
            irtool.load(str(path)), context, planned_context(context, given.devices)
        )
        model = model_of(problem.structure, machine_named(given.machine), problem.current, {})
        started = time.process_time()
        _, value, bound = Search(model).best(model.unary)
        searched = time.process_time() - started
        program = program_of(model)
        started = time.process_time()
        least = program.least(given.seconds)
        solved = time.process_time() - started
        same = abs(least - value) <= 1e-6 * value
        differ += not same
        told = "equal" if same else "not proven in time" if least == inf else "DIFFERENT"
        print(
            f"{path.parent.name:24.24} {len(model.nodes):4} operators  irtool {1e3 * value:.6f} ms"
            f" (bound {1e3 * bound:.6f}) in {searched:.2f} s  HiGHS {1e3 * least:.6f} ms"
            f" in {solved:.2f} s  {told}",
            flush=True,
        )
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())

"""One price of communication: what ``cost`` predicts of a begin dump against what is compiled.

    python benchmarks/same_seconds.py FOLDER... [--devices 8] [--machine NAME] [--context JSON]

Each folder holds ``step_parallel_begin_*.ir`` and ``*_validate_*.ir`` of one compilation (packed or
not, anywhere inside). ``irtool cost`` prices what ``check`` predicts of the first, ``irtool comm
groups`` and ``comm fuse`` what stands in the second; both ask :mod:`irtool.cluster.pricing`. Told
are seconds by axis, in all, of what may hide, and what of it is not hidden. A context is a
``case.json`` in the folder, or ``--context`` (keys of ``set_auto_parallel_context``). Exit status:
0 all seconds equal, 1 some differ (what is hidden depends on predicted computing, and may).
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
from irtool.cluster.computing import clock_of, overlaps
from irtool.cluster.groups import group_report
from irtool.cluster.machine import Machine, built_in
from irtool.cluster.ranks import single
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.axes import axis_costs
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a network: as predicted, and as compiled."""

    what: str
    predicted: float
    compiled: float
    must_agree: bool = True

    @property
    def agrees(self) -> bool:
        """Whether both are the same, up to rounding."""
        return abs(self.predicted - self.compiled) <= CLOSE * max(self.predicted, self.compiled)


def context_in(folder: Path, devices: int, text: str) -> ParallelContext:
    """The context of a compilation."""
    values: dict[str, Any] = {"device_num": devices, "full_batch": True}
    file = folder / "case.json"
    if file.exists():
        values |= json.loads(file.read_text(encoding="utf-8"))["context"]
    return ParallelContext.from_mapping({**values, **json.loads(text)})


def rows_of(folder: Path, context: ParallelContext, machine: Machine) -> Iterator[Row]:
    """What both sides say of one compilation."""
    begin, validate = (
        irtool.load(max(folder.rglob(f"*{kind}_[0-9]*.ir*")))
        for kind in ("step_parallel_begin", "validate")
    )
    cost = step_cost(structure_of(begin, context), check(begin, context), machine)
    cluster = single(validate, context.rank, context.devices)
    counted = {axis: t.seconds for axis, t in group_report(cluster, machine).by_axis.items()}
    told = {each.axis: each.seconds for each in axis_costs(cost)}
    for axis in sorted({*told, *counted}):
        yield Row(f"{axis} axis", told.get(axis, 0.0), counted.get(axis, 0.0))
    yield Row("all", sum(told.values()), sum(counted.values()))
    (rank,) = cluster.ranks.values()
    seen = overlaps(rank, machine, clock_of(rank, machine))
    for name, mine, theirs in zip(("sums", "gathers"), cost.overlaps, seen, strict=True):
        if mine.hideable or theirs.hideable:
            yield Row(f"{name} that may hide", mine.hideable, theirs.hideable)
            yield Row(f"{name} not hidden", mine.exposed, theirs.exposed, must_agree=False)


def main() -> int:
    """Compare the compilations of some folders."""
    parser = argparse.ArgumentParser(description="Seconds as predicted and compiled.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--machine", default="ascend_910b")
    parser.add_argument("--context", default="{}")
    options = parser.parse_args()
    differ = 0
    for folder in options.folders:
        context = context_in(folder, options.devices, options.context)
        print(folder.name)
        for row in rows_of(folder, context, built_in(options.machine)):
            mark = "" if row.agrees else "differs" if row.must_agree else "(computing is predicted)"
            differ += row.must_agree and not row.agrees
            figures = f"{1e6 * row.predicted:12.3f} us  {1e6 * row.compiled:12.3f} us"
            print(f"  {row.what:24}{figures}  {mark}".rstrip())
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

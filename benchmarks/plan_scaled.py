"""Plans of scaled dumps beside plans of the same networks, really compiled at those sizes.

    MINDSPORE/bin/python benchmarks/networks/sized.py OUT/llama_small --style llama --sizes …
    MINDSPORE/bin/python benchmarks/networks/sized.py OUT/llama_a --style llama --sizes …
    python benchmarks/plan_scaled.py OUT --devices 8 64

Folders are named ``STYLE_small`` and ``STYLE_…``: the dump of the small one is scaled to the sizes
of each other one (``case.json`` has them), and both are planned. Prints seconds of a step, bytes of
a device, and by which part they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.scaling.scaled import scaled
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.context import ParallelContext

CLOSE = 0.01
"""Part of the seconds by which a plan of a scaled dump may differ."""


@dataclass(frozen=True)
class Compiled:
    """A network that was compiled at some sizes."""

    folder: Path
    dump: Dump
    sizes: dict[str, int]

    @classmethod
    def of(cls, folder: Path) -> Compiled:
        """Read a folder."""
        drawn = json.loads((folder / "case.json").read_text(encoding="utf-8"))["drawn"]["sizes"]
        (begin,) = folder.glob("step_parallel_begin*")
        return cls(folder, irtool.load(str(begin)), drawn)

    @property
    def asked(self) -> dict[str, int]:
        """Its sizes by role."""
        own = self.sizes
        names = {"inner": "feed_forward", "head": "head_size"}
        found = {names.get(name, name): number for name, number in own.items()}
        del found["head_size"]
        return {**found, "hidden": own["heads"] * own["head"]}


def planned(dump: Dump, devices: int) -> Plan:
    """The plan of a dump."""
    context = ParallelContext(devices=devices, mode="semi_auto_parallel", full_batch=True)
    return plan(dump, context, default_machine(), devices=devices)


def main() -> int:
    """Compare all networks of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--devices", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--only", nargs="*", help="names of folders")
    given = parser.parse_args()
    far = 0
    for folder in sorted(given.folder.iterdir()):
        style, _, size = folder.name.rpartition("_")
        if size == "small" or (given.only and folder.name not in given.only):
            continue
        small, large = Compiled.of(given.folder / f"{style}_small"), Compiled.of(folder)
        started = time.process_time()
        try:
            guess = scaled(small.dump, large.asked)
        except CannotPlan as error:
            print(f"{folder.name}: NOT: {error}")
            far += 1
            continue
        spent = time.process_time() - started
        for devices in given.devices:
            ours, truth = planned(guess.dump, devices), planned(large.dump, devices)
            apart = ours.after.seconds / truth.after.seconds - 1
            more = ours.after.memory.total / truth.after.memory.total - 1
            far += abs(apart) > CLOSE
            print(
                f"{folder.name} on {devices}: {1e3 * ours.after.seconds:.4f} ms scaled, "
                f"{1e3 * truth.after.seconds:.4f} ms compiled, {100 * apart:+.4f} %; memory "
                f"{100 * more:+.3f} %; scaled in {spent:.2f} s",
                flush=True,
            )
    return int(far > 0)


if __name__ == "__main__":
    sys.exit(main())

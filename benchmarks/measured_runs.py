"""How far names of profiles join, and how far the model is from what was measured, on real runs.

python benchmarks/measured_runs.py RUNS… [--machine NAME|FILE]

RUNS are run folders with a profile and graph dumps (``MS_DEV_SAVE_GRAPHS=2``).  A line for each:
names measured, joined with ``graph_build`` and with ``validate``; of the operators that are priced
the median factor between measured and modelled time (scaled to the same step), the operator that
takes most as measured with its share, and its share by the model.
"""

from __future__ import annotations

import argparse
import sys
from math import exp, log
from pathlib import Path
from statistics import median

import irtool
from irtool.artefacts.joining import join_names
from irtool.cli.machines import named_machine
from irtool.cli.profile_inputs import profile_at
from irtool.cluster.machine import default_machine
from irtool.cluster.measured import measured_step

HEAD = ("run", "names", "graph_build", "validate", "steps", "median factor", "dearest", "measured",
        "modelled")  # fmt: skip


def main() -> int:
    """Print the table; exit 1 where a run has less than 99 % joined with graph_build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--machine")
    options = parser.parse_args()
    machine = named_machine(options.machine) or default_machine()
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    short = 0
    for path in options.runs:
        profile = profile_at(path, None, None)
        if profile is None:
            print(f"| {Path(path).name} | no profile |")
            short += 1
            continue
        picked = irtool.load_run(path).compilation()
        built = [file for file in picked.kernel_graphs if file.base.startswith("graph_build_")]
        validate = picked.validate
        step = measured_step(profile, picked.read(built[0]), machine)
        early = None if validate is None else join_names(profile.seconds, validate)
        factors = [abs(log(each)) for one in step.operators if (each := step.ratio(one))]
        op, (seconds, modelled) = next(iter(step.by("operator").items()))
        cells = [
            "/".join(Path(path).parts[-2:]),
            len(profile.seconds),
            f"{step.joined.share:.1%}",
            "-" if early is None else f"{early.share:.1%}",
            len(profile.steps),
            f"{exp(median(factors)):.1f}",
            op,
            f"{seconds / step.total:.0%}",
            f"{modelled / step.modelled:.0%}",
        ]
        print("| " + " | ".join(map(str, cells)) + " |")
        short += step.joined.share < 0.99
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())

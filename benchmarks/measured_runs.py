"""How far names of profiles join, and how far what is predicted is from what was measured.

python benchmarks/measured_runs.py RUNS… [--machine NAME|FILE]

RUNS are run folders with a profile and graph dumps (``MS_DEV_SAVE_GRAPHS=2``).  A line for each:

- names measured, and the parts that join with ``graph_build`` and with ``validate``;
- of the operators that are priced the median factor between measured and modelled time, scaled to
  the same step, and the same on a machine that was calibrated on the runs in folders of other
  names: unscaled, so that the step itself is predicted, whose factor stands beside;
- the operator that takes most, its share as measured, by the model, and as calibrated;
- the most that a CPU's pool held, and what ``irtool memory`` predicts of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from math import exp, log
from pathlib import Path
from statistics import median

import irtool
from irtool.artefacts.damage import Damage
from irtool.artefacts.joining import join_names
from irtool.artefacts.recorded_memory import recorded_memory
from irtool.cli.inputs.profile import profile_at
from irtool.cli.machines import named_machine
from irtool.cluster.calibrated_operators import calibrated_operators, with_operators
from irtool.cluster.machine import Machine, default_machine
from irtool.cluster.measured import MeasuredStep, measured_step
from irtool.cluster.memory import memory
from irtool.ir.units import bytes_text

HEAD = (
    "run", "names", "graph_build", "validate", "factor", "calibrated", "its step", "dearest",
    "measured", "modelled", "calibrated", "pool held", "predicted",
)  # fmt: skip


def main() -> int:
    """Print the table; exit 1 where a run has less than 99 % joined with graph_build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--machine")
    options = parser.parse_args()
    machine = named_machine(options.machine) or default_machine()
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    steps = {path: step for path in options.runs if (step := joined(path, machine)) is not None}
    short = len(options.runs) - len(steps)
    for path, step in steps.items():
        kin = Path(path).name
        others = calibrated_operators(
            [each for name, each in steps.items() if Path(name).name != kin]
        )
        known = machine if others is None else with_operators(machine, others)
        again = joined(path, known) or step
        print("| " + " | ".join(cells(path, step, again)) + " |")
        short += step.joined.share < 0.99
    return 1 if short else 0


def joined(path: str, machine: Machine) -> MeasuredStep | None:
    """The step of a run, joined with what the backend built; None where it lacks either."""
    profile = profile_at(path, None, None)
    picked = irtool.load_run(path).compilation()
    built = [file for file in picked.kernel_graphs if file.base.startswith("graph_build_")]
    if profile is None or len(built) != 1:
        print(f"{path}: no profile, or no one graph_build", file=sys.stderr)
        return None
    return measured_step(profile, picked.read(built[0]), machine)


def cells(path: str, step: MeasuredStep, calibrated: MeasuredStep) -> Iterable[str]:
    """A line: ``calibrated`` is the same step on a machine that the other runs calibrated."""
    run = irtool.load_run(path)
    picked = run.compilation()
    validate = picked.validate
    early = None if validate is None else join_names(step.profile.seconds, validate)
    op, (seconds, modelled) = next(iter(step.by("operator").items()))
    yield "/".join(Path(path).parts[-2:])
    yield str(len(step.profile.seconds))
    yield f"{step.joined.share:.1%}"
    yield "-" if early is None else f"{early.share:.1%}"
    yield f"{factor(each for one in step.operators if (each := step.ratio(one))):.1f}"
    pairs = [(one.seconds, one.modelled) for one in calibrated.operators if one.modelled]
    yield f"{factor(measured / each for measured, each in pairs if measured):.1f}"
    yield f"{factor([calibrated.scale or 1]):.2f}"
    yield op
    yield f"{seconds / step.total:.0%}"
    yield f"{modelled / step.modelled:.0%}"
    yield f"{calibrated.by('operator')[op][1] / calibrated.modelled:.0%}"
    record = recorded_memory(run.rank(picked.rank), list[Damage]())
    built = next(file for file in picked.kernel_graphs if file.base.startswith("graph_build_"))
    predicted = memory(picked.read(built)).dynamic_bytes
    if record is None or not record.allocated:
        yield from ("-", "-")
        return
    yield bytes_text(record.allocated)
    yield f"{predicted / record.allocated:.3f}"


def factor(ratios: Iterable[float]) -> float:
    """The median factor, one way or the other."""
    return exp(median(abs(log(each)) for each in ratios))


if __name__ == "__main__":
    sys.exit(main())

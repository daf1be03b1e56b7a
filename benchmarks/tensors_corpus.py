"""What irtool says of the corpus' pairs of runs: joined, paired, accused, dated.

    python benchmarks/tensors_corpus.py CORPUS/precision [--dumped FOLDER]

FOLDER holds ``none`` and ``gelu``, dumped again with tensors.  Prints a line a pair, with what was
expected, and how many are as expected.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TypeAlias

from irtool.compare.losses.comparison import compare_losses
from irtool.compare.losses.read import read_loss
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run

Check: TypeAlias = Callable[[RunComparison], bool]


def named(name: str) -> Check:
    return lambda found: found.first is not None and found.first.pair.left.name == name


def nobody(found: RunComparison) -> bool:
    return bool(found.units) and all(unit.first is None for unit in found.units)


def joined(found: RunComparison) -> bool:
    each = [item for unit in found.units for item in unit.joined]
    return all(item is not None and item.rate == 1 and not item.mismatched for item in each)


def casts(found: RunComparison) -> bool:
    shown = found.shown
    ops = shown.comparison.only_right if shown is not None and shown.comparison else []
    return {op.type for op in ops} == {"Cast"}


def all_flagged(found: RunComparison) -> bool:
    return [dict(unit.counts) for unit in found.units] == [{"introduces error": 4}]


def paired(found: RunComparison) -> bool:
    shown = found.shown
    counts = shown.comparison.fingerprints if shown is not None and shown.comparison else {}
    return counts["forward"][0] >= 30 and counts["backward"][0] >= 43


GELU = named("Functional.gelu.1.forward")
PAIRS: tuple[tuple[str, str, tuple[Check, ...]], ...] = (
    ("mindspore_cpu/reference", "mindspore_cpu/half_matmul", (nobody, joined, casts)),
    ("mindspore_cpu/reference", "statistics/reference", (nobody,)),
    ("statistics/reference", "statistics/half_softmax", (nobody, casts)),
    ("statistics/sign_probe/b", "statistics/sign_probe/n", (all_flagged,)),
    ("msprobe_pytorch/none", "msprobe_pytorch/gelu", (GELU,)),
    ("msprobe_pytorch/L0_fp32", "msprobe_pytorch/L0_bf16", (nobody,)),
    ("msprobe_pytorch/L1_fp32", "msprobe_pytorch/L1_bf16", (nobody,)),
    ("msprobe_pytorch/mix_fp32", "msprobe_pytorch/mix_bf16", (nobody,)),
    ("msprobe_cross_pytorch_L0", "msprobe_cross_mindspore_L0", (nobody, paired)),
)
LOSSES = {"bf16": False, "ulp1": False, "lr105": True, "wd0": True, "gradscale": True}
"""Whether a curve is to be flagged."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--dumped")
    asked = parser.parse_args()
    pairs = [(os.path.join(asked.corpus, a), os.path.join(asked.corpus, b), c) for a, b, c in PAIRS]
    if asked.dumped:
        sides = (os.path.join(asked.dumped, name) for name in ("none", "gelu"))
        pairs.append((*sides, (GELU,)))  # type: ignore[arg-type]  # two of them
    good = 0
    for left, right, checks in pairs:
        found = compare_runs(*(side_of_run(load_run(p), None) for p in (left, right)), Settings())
        is_good = all(check(found) for check in checks)
        good += is_good
        first = found.first.pair.left.name if found.first else "nobody"
        wanted = ", ".join(getattr(check, "__name__", "named") for check in checks)
        print(f"{'ok ' if is_good else 'BAD'} {left} | {right}: {first} accused ({wanted})")
        for unit in found.units:
            print(f"      {unit.name}: {dict(unit.counts)}")
    for name, flagged in LOSSES.items():
        curves = (
            read_loss(os.path.join(asked.corpus, "loss", f"{n}.json")) for n in ("base", name)
        )
        found_loss = compare_losses(*curves)
        is_good = found_loss.is_suspicious == flagged
        if name == "gradscale":
            is_good = is_good and found_loss.change_step in (100, 101, 102)
        good += is_good
        step = found_loss.change_step
        print(f"{'ok ' if is_good else 'BAD'} loss {name}: {found_loss.verdict}, from step {step}")
    print(f"{good} of {len(pairs) + len(LOSSES)} as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())

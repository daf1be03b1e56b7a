"""Faulty and healthy runs: is the culprit named first, is nobody accused wrongly?

    here=benchmarks/tensors_faults
    python ${here}_pytorch.py PT $(python $here.py --list pytorch)
    python ${here}_mindspore.py MS $(python $here.py --list mindspore)
    python $here.py --pytorch PT --mindspore MS [--statistics]

Prints a table and the two shares.  With --statistics the same runs are compared once more through
their digests without sketches: figures alone, as a dump of statistics has them.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time

from irtool.compare.run_sides import RunSide, side_of_run
from irtool.compare.run_tensors import Settings, read_unit
from irtool.compare.runs import RunComparison, compare_runs
from irtool.compare.tensors import digest
from irtool.compare.tensors.report import why_text
from irtool.syntax.run import load_run

STEP = ("gradient_scaled", "lr", "decay", "bf16_step")
"""Variants whose reference went on through the optimizer."""

FAULTS = {
    "pytorch": {
        "eps": r"layer_norm\.3", "eps_small": r"layer_norm\.3", "gelu": r"gelu\.1",
        "relu": r"gelu\.1",
        "half_gradient": r"__mul__|linear\.6\.backward|gelu\.1\.backward",
        "transposed": r"linear\.5", "no_bias": r"linear\.6", "mask": r"masked_fill\.1",
        "axis": r"softmax\.1", "half_sum": r"linear\.7", "scale": r"__truediv__\.1",
        "stale": r"batch_norm\.0", "no_residual": r"__add__\.4",
        "labels": r"cross_entropy", "swap_qk": r"matmul\.2", "wrong_heads": r"matmul\.2",
        "position": r"embedding\.1|Tensor\.__add__\.0", "initial": r"linear\.6",
        "logits": r"__mul__|cross_entropy", "smoothing": r"cross_entropy",
        "gradient_scaled": r"lerp_|Tensor\.mul_",
        "lr": r"mul_\.0|addcdiv_", "decay": r"mul_|lerp_|addcdiv_",
        "detach": r"__add__\.4\.backward|layer_norm|linear|__add__",
    },
    "mindspore": {
        "eps": r"b1-Block_ln2.*LayerNorm", "transposed": r"b1-Block_attn.*o-Dense_MatMul",
        "no_bias": r"b1-Block_up.*BiasAdd|b1-Block_GeLU|b1-Block.*GeLU",
        "mask": r"attn-Attention_Add",
        "axis": r"b1-Block_attn.*Softmax", "half_sum": r"b1-Block_down.*",
        "scale": r"Muls|b1-Block_attn.*", "relu": r"b1-Block.*(GeLU|ReLU)",
        "no_residual": r"_Add-op", "swap_qv": r"b1-Block.*|BatchMatMul|Transpose",
        "half_gradient": r"Grad.*|Mul", "labels": r"SparseSoftmax|CrossEntropy",
        "initial": r"b1-Block_up.*MatMul", "logits": r"Mul|SparseSoftmax|CrossEntropy",
        "lr": r"AdamWeightDecay|hyperparameter", "beta": r"AdamWeightDecay|hyperparameter",
        "decay": r"AdamWeightDecay|hyperparameter", "detach": r"Grad|AddN|Add",
        "loss_sum": r"Loss|SparseSoftmax|Reduce|CrossEntropy|Mul|Div",
        "loss_scale": r"SparseSoftmax|CrossEntropy|Grad",
    },
}  # fmt: skip
"""Variants with a fault, and what their first operator has to be called."""

HEALTHY = {
    "pytorch": (
        "bf16", "bf16_step", "split_k", "reorder_qkv", "threads", "blas", "ulp", "commuted",
        "double", "softmax_parts", "split_qkv",
    ),
    "mindspore": ("split_k", "reorder", "half_softmax", "half_matmul", "commuted", "ulp"),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", choices=list(FAULTS))
    parser.add_argument("--pytorch")
    parser.add_argument("--mindspore")
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("variants", nargs="*")
    asked = parser.parse_args()
    if asked.list:
        more = ("none", "none_step") if asked.list == "pytorch" else ("none",)
        print(*more, *FAULTS[asked.list], *HEALTHY[asked.list])
        return 0
    tallies = {False: [0, 0, 0, 0], True: [0, 0, 0, 0]}
    for framework in FAULTS:
        folder = getattr(asked, framework)
        if folder:
            for statistics in (False, True) if asked.statistics else (False,):
                judge(framework, folder, statistics, asked.variants, tallies[statistics])
    for statistics, (named, faults, accused, healthy) in tallies.items():
        if faults or healthy:
            print(
                f"\n{'statistics' if statistics else 'tensors'}: culprit named first "
                f"{named} of {faults} ({named / max(1, faults):.0%}), accused wrongly "
                f"{accused} of {healthy}"
            )
    return 0


def judge(
    framework: str, folder: str, statistics: bool, wanted: list[str], tally: list[int]
) -> None:
    print(f"\n{framework}, {'statistics only' if statistics else 'tensors'}")
    for variant in (*FAULTS[framework], *HEALTHY[framework]):
        path = os.path.join(folder, variant)
        if not os.path.isdir(path) or (wanted and variant not in wanted):
            continue
        base = "none_step" if variant in STEP and framework == "pytorch" else "none"
        start = time.process_time()
        found = compared(os.path.join(folder, base), path, statistics)
        expected = FAULTS[framework].get(variant)
        name = named(found)
        if not found.units:
            print(f"  {variant:16} no common step: {found.missing}")
            continue
        if expected is not None:
            good = bool(name and re.search(expected, name))
            tally[0] += good
            tally[1] += 1
        else:
            good = not name
            tally[2] += not good
            tally[3] += 1
        why = why_text(found.first) if found.first else ""
        seconds = time.process_time() - start
        print(f"  {'ok ' if good else 'BAD'} {variant:16} {seconds:5.1f} s  {name}  [{why[:110]}]")
        sys.stdout.flush()


def named(found: RunComparison) -> str:
    """What the answer names first: hyperparameters, then the operator."""
    first = found.first
    told = "".join(f"hyperparameter {row.name} " for row in found.told_differently
                   if row.name != "initial weights")  # fmt: skip
    if first is None:
        return told
    makers = [each.name for each in (first.maker_left, first.maker_right) if each is not None]
    return told + " | ".join(makers or [first.pair.left.name])


def compared(left: str, right: str, statistics: bool) -> RunComparison:
    sides = [_side(path) for path in (left, right)]
    if statistics:
        for side in sides:
            _only_statistics(side)
    return compare_runs(sides[0], sides[1], Settings())


def _side(path: str) -> RunSide:
    return side_of_run(load_run(path), None)


def _only_statistics(side: RunSide) -> None:
    for key, unit in list(side.units.items()):
        tensors = read_unit(unit)
        digest.fill(tensors)
        tensors.columns.files = [""] * len(tensors.columns)
        tensors.columns.sketches.clear()
        tensors.columns.hashes = [""] * len(tensors.columns)
        tensors.level = "statistics"
        side.units[key] = tensors


if __name__ == "__main__":
    sys.exit(main())

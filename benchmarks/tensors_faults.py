"""Faulty and healthy runs: is the culprit named first, is nobody accused wrongly?

    here=benchmarks/tensors_faults
    python ${here}_pytorch.py PT $(python $here.py --list pytorch)
    python ${here}_mindspore.py MS $(python $here.py --list mindspore)
    python ${here}_mindspore_networks.py MN $(python $here.py --list mindspore_networks)
    python ${here}_networks.py PN $(python $here.py --list networks)
    python $here.py --pytorch PT --mindspore MS --mindspore_networks MN
        --networks PN [--statistics]
    python $here.py --list cross | while read call; do python ${here}_cross.py CX/$call; done
    python $here.py --cross CX [--statistics]

Prints a line a pair, and how many there are of each word.  With --statistics the same runs are
compared once more by figures alone: those that msprobe wrote into its dump.json; of MindSpore's own
dump, which holds none on a CPU, those that irtool takes of its files.  The programs that run
MindSpore take --seed N.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time

from precision.tally import Tally

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import RunSide, side_of_run
from irtool.compare.runs.units import Settings, read_unit
from irtool.compare.tensors import digest
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import NoTensors
from irtool.compare.tensors.open import Unit
from irtool.ir.run import MsprobeDump
from irtool.report.diff.runs.sentences import why_text
from irtool.syntax.run import load_run

STEPPED = frozenset(
    ("gradient_scaled", "lr", "decay", "bf16_step", "coupled_decay", "beta2", "adam_eps", "clip",
     "unscaled", "micro_mean", "no_decay_bias", "foreach", "scaled_gradient", "ulp_step",
     "momentum_sgd", "nesterov")
)  # fmt: skip
"""Variants whose reference went on through the optimizer."""

OTHER_BITS = ("ulp", "ulp_step")
"""Variants whose weights are all one bit off: another checkpoint, whoever reads it first."""

_STEP = r"hyperparameter|mul_|lerp_|add_|add\.|addcmul_|addcdiv_|__truediv__|sqrt"
"""Calls of an optimizer's step."""

_OPTIMIZER = r"hyperparameter|Adam|Momentum"
_LOSS = r"Loss|CrossEntropy|LogSoftmax|Reduce|Sub|Square|OneHot|NLL|NLLLoss|Div|Mul"

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

FAULTS["networks"] = {
    "llama-eps": r"__add__\.10", "llama-norm_axis": r"mean\.3", "llama-norm_sum": r"mean\.3|sum",
    "llama-norm_one": r"__mul__\.26|__r?add__", "llama-rope_base": r"__rpow__\.2",
    "llama-rope_shift": r"outer\.2|__add__", "llama-rope_sign": r"__mul__\.17|__neg__",
    "llama-rope_interleaved": r"__mul__\.16", "llama-k_for_v": r"__matmul__\.3",
    "llama-no_rope_k": r"__matmul__\.2|__truediv__\.3|__add__\.8",
    "llama-scale": r"__mul__\.24", "llama-mask": r"masked_fill\.1",
    "llama-window": r"masked_fill\.1", "llama-soft_mask": r"masked_fill\.1",
    "llama-temperature": r"softmax\.1|__truediv__", "llama-heads": r"linear\.10",
    "llama-gelu_gate": r"silu\.1|gelu", "llama-swapped_gate": r"silu\.1",
    "llama-sigmoid": r"silu\.1|sigmoid", "llama-clamp": r"linear\.13|clamp",
    "llama-dropped_half": r"linear\.13|cat", "llama-residual_scale": r"__add__\.11|__r?mul__",
    "llama-labels": r"cross_entropy", "llama-batch": r"embedding\.0|flip",
    "llama-z_loss": r"logsumexp|pow|mean|__add__|__r?mul__", "llama-ignored": r"cross_entropy",
    "llama-loss_sum": r"cross_entropy", "llama-transposed": r"linear\.7",
    "llama-one_weight": r"linear\.19", "llama-half_head": r"linear\.20",
    "llama-seed": r"embedding\.0",
    "llama-lr": _STEP, "llama-decay": _STEP, "llama-coupled_decay": _STEP, "llama-beta2": _STEP,
    "llama-adam_eps": _STEP, "llama-clip": r"clip|norm|" + _STEP, "llama-unscaled": r"lerp_",
    "llama-micro_mean": _STEP, "llama-no_decay_bias": _STEP,
    "conv-padding": r"conv2d\.3|pad", "conv-padding_mode": r"conv2d\.3|pad",
    "conv-dilation": r"conv2d\.3", "conv-flipped": r"conv2d\.3",
    "conv-half_conv": r"conv2d\.|batch_norm\.2", "conv-leaky": r"relu\.3",
    "conv-after_add": r"__add__\.1|relu\.4", "conv-avg_pool": r"pool2d\.0",
    "conv-groups": r"group_norm\.0", "conv-flatten": r"linear\.0",
    "conv-normalised": r"conv2d\.0|__mul__", "conv-bgr": r"conv2d\.0|flip",
    "conv-eval": r"batch_norm\.0",
    "conv-bn_eps": r"batch_norm\.2", "conv-mse": r"cross_entropy|mse", "conv-seed": r"conv2d\.0",
    "conv-one_weight": r"group_norm\.0", "conv-half_head": r"linear\.0",
    "conv-lr": _STEP, "conv-nesterov": _STEP, "conv-decay": _STEP,
    "conv-clip": r"clip|norm|" + _STEP, "conv-unscaled": r"add\.0",
    "encoder-place": r"__add__\.0|roll", "encoder-last": r"linear\.5",
    "encoder-abs": r"linear\.5|abs",
    "encoder-pad": r"multi_head_attention_forward\.0|masked_fill_|__g[et]__",
    "encoder-ln_eps": r"layer_norm\.2", "encoder-act": r"relu\.1",
    "encoder-swapped_gates": r"linear\.5|gru", "encoder-xavier": r"linear\.1",
    "encoder-l1": r"mse_loss|l1", "encoder-mse_sum": r"mse_loss",
    "encoder-one_weight": r"linear\.5|gru",
    "encoder-half_head": r"linear\.5", "encoder-lr": _STEP, "encoder-beta2": _STEP,
    "encoder-adam_eps": _STEP, "encoder-decay": _STEP,
}  # fmt: skip

FAULTS["mindspore_networks"] = {
    "conv-dilation": r"1-Block_conv-Conv2d", "conv-flipped": r"1-Block_conv-Conv2d",
    "conv-eps": r"1-Block_norm-BatchNorm2d", "conv-leaky": r"1-Block", "conv-sigmoid": r"1-Block",
    "conv-no_shortcut": r"Add-op", "conv-scaled_shortcut": r"1-Block|Muls?|Add",
    "conv-pool": r"Pool", "conv-global_max": r"Reduce|Max|Mean", "conv-smoothing": _LOSS,
    "conv-mse": _LOSS, "conv-loss_sum": _LOSS, "conv-initial": r"head-Dense|BiasAdd",
    "conv-lr": _OPTIMIZER, "conv-decay": _OPTIMIZER, "conv-normalised": r"stem-Conv2d",
    "conv-sens": _OPTIMIZER, "llama-sens": _OPTIMIZER,
    "llama-eps": r"RmsNorm_Add", "llama-norm_sum": r"Reduce", "llama-mask": r"Add",
    "llama-scale": r"Muls?", "llama-k_for_v": r"MatMul", "llama-axis": r"Softmax",
    "llama-swapped_gate": r"SiLU|Mul", "llama-relu": r"SiLU|ReLU", "llama-half_sum": r"down-Dense",
    "llama-clamp": r"down-Dense|Add|Clamp|Minimum|Maximum", "llama-labels": _LOSS,
    "llama-loss_sum": _LOSS, "llama-smoothing": _LOSS, "llama-transposed": r"o-Dense",
    "llama-initial": r"head-Dense", "llama-lr": _OPTIMIZER, "llama-adam_eps": _OPTIMIZER,
    "llama-beta": _OPTIMIZER,
}  # fmt: skip

CROSS: tuple[tuple[str, str, str], ...] = (
    ("pytorch/none", "mindspore/none", ""),
    ("mindspore/none", "pytorch/none", ""),
    ("pytorch/none", "graph/none", ""),
    ("graph/none", "pytorch/none", ""),
    ("pytorch_mix/none", "mindspore_mix/none", ""),
    ("pytorch_mix/none", "graph/none", ""),
    ("pytorch_L0/none", "mindspore_L0/none", ""),
    ("pytorch/none", "graph/whole", ""),
    ("pytorch/none", "mindspore/half_softmax", ""),
    ("pytorch/pt_bf16", "mindspore/none", ""),
    ("pytorch/pt_bf16", "graph/none", ""),
    ("pytorch/none", "mindspore/eps", r"layer_norm\.3\.forward"),
    ("pytorch/none", "graph/eps", r"layer_norm\.3\.forward"),
    ("pytorch_L0/none", "mindspore_L0/eps", r"blocks\.1\.n2\.LayerNorm\.forward"),
    ("pytorch/none", "mindspore/mask", r"attention\.1\.forward"),
    ("pytorch/none", "graph/mask", r"attention\.1\.forward"),
    ("pytorch_mix/none", "mindspore_mix/mask", r"attention\.1\.forward"),
    ("pytorch/none", "mindspore/scale", r"attention\.1\.forward"),
    ("pytorch/none", "mindspore/axis", r"attention\.1\.forward"),
    ("pytorch/none", "mindspore/no_bias", r"linear\.10\.forward"),
    ("pytorch/none", "mindspore/transposed", r"linear\.9\.forward"),
    ("pytorch/none", "mindspore/initial", r"linear\.10\.forward"),
    ("pytorch/none", "mindspore/erf_gelu", r"gelu\.1\.forward"),
    ("pytorch/pt_gelu", "mindspore/none", r"gelu\.1\.forward"),
    ("pytorch/pt_hook", "mindspore/none", r"linear\.11\.backward|gelu\.1\.backward"),
    ("pytorch/none", "mindspore/bw_scaled", r"linear\.11\.backward|gelu\.1\.backward"),
    ("mindspore/bw_scaled", "pytorch/none", r"linear\.11\.backward|gelu\.1\.backward"),
    ("pytorch/none", "graph/bw_scaled", r"linear\.11\.backward|gelu\.1\.backward"),
    ("pytorch_mix/none", "mindspore_mix/bw_scaled", r"linear\.11\.backward|gelu\.1\.backward"),
    ("pytorch_mix/none", "graph/bw_scaled", r"linear\.11\.backward|gelu\.1\.backward"),
    ("pytorch_L0/none", "mindspore_L0/bw_scaled", r"blocks\.1\.up\.Linear\.backward"),
    ("pytorch/none", "mindspore/bw_stop", r"linear\.7\.backward"),
    ("pytorch_mix/none", "mindspore_mix/bw_stop", r"linear\.7\.|k\.Linear\.(backward|param)"),
    ("pytorch/none", "graph/bw_stop", r"linear\.7\.backward"),
    ("pytorch/none", "mindspore/bw_custom", r"gelu\.1\.backward"),
    ("graph/bw_custom", "pytorch/none", r"gelu\.1\.backward"),
    ("pytorch_mix/none", "graph/bw_custom", r"gelu\.1\.backward"),
    ("pytorch_L0/none", "mindspore_L0/bw_custom", r"blocks\.1\.up\.Linear\.backward"),
    ("pytorch/none", "mindspore/bw_half", r"linear\.11\.backward"),
    ("pytorch/none", "graph/bw_half", r"linear\.11\.backward"),
    ("pytorch_mix/none", "mindspore_mix/bw_half", r"linear\.11\.backward"),
    ("pytorch/none", "mindspore/bw_detach", r"add__\.3\.backward"),
    ("pytorch/none", "graph/bw_detach", r"add__\.3\.backward"),
    ("pytorch_mix/none", "mindspore_mix/bw_detach", r"add__\.3\.backward"),
    ("pytorch/llama-none", "mindspore/llama-none", ""),
    ("pytorch/llama-none", "graph/llama-none", ""),
    ("pytorch/conv-none", "graph/conv-none", ""),
    # MindSpore 2.7.0's own gradient of a convolution is wrong on the CPU, run eagerly.
    ("pytorch/conv-none", "mindspore/conv-none", r"conv2d\.1\.backward"),
    ("pytorch/llama-none", "mindspore/llama-eps", r"linear\.11\.forward"),
    ("pytorch/llama-none", "graph/llama-eps", r"linear\.11\.forward"),
    ("pytorch/llama-none", "mindspore/llama-mask", r"attention\.1\.forward"),
    ("pytorch/llama-none", "mindspore/llama-swapped", r"silu\.1\.forward"),
    ("pytorch/llama-none", "mindspore/llama-rope_base", r"__mul__\.9\.forward"),
    ("pytorch/llama-none", "mindspore/llama-bw_silu", r"silu\.1\.backward"),
    ("pytorch_mix/llama-none", "mindspore_mix/llama-bw_silu", r"silu\.1\.backward"),
    ("pytorch/llama-none", "mindspore/llama-bw_double", r"__mul__\.17\.backward"),
    ("mindspore/llama-bw_double", "pytorch/llama-none", r"__mul__\.17\.backward"),
    ("pytorch/llama-none", "mindspore/llama-bw_stop", r"__add__\.6\.backward"),
    ("pytorch/llama-none", "graph/llama-bw_silu", r"silu\.1\.backward"),
    ("pytorch/conv-none", "mindspore/conv-eps", r"batch_norm\.1\.forward"),
    ("pytorch/conv-none", "graph/conv-eps", r"batch_norm\.1\.forward"),
    ("pytorch/conv-none", "mindspore/conv-leaky", r"relu\.2\.forward"),
    ("pytorch/conv-none", "mindspore/conv-bw_double", r"relu\.2\.backward"),
    ("pytorch/conv-none", "graph/conv-bw_double", r"relu\.2\.backward|batch_norm\.1\.backward"),
)
"""Runs of the same network in two frameworks, and which PyTorch call has to be the accused one or
between the ends of the accused stretch; empty for healthy pairs."""

HEALTHY = {
    "pytorch": (
        "bf16", "bf16_step", "split_k", "reorder_qkv", "threads", "blas", "ulp", "commuted",
        "double", "softmax_parts", "split_qkv",
    ),
    "mindspore": ("split_k", "reorder", "half_softmax", "half_matmul", "commuted", "ulp"),
    "mindspore_networks": (
        "conv-ulp", "conv-half_conv", "conv-commuted", "conv-mean_parts", "conv-amp",
        "llama-ulp", "llama-half_norm", "llama-all_half_softmax",
        "llama-half_softmax", "llama-split_k", "llama-amp",
    ),
    "networks": (
        "llama-half_norm", "llama-half_softmax", "llama-half_residual", "llama-fused_norm",
        "llama-sdpa", "llama-sdpa_causal", "llama-softmax_double", "llama-split_k",
        "llama-matmul", "llama-recompute", "llama-ulp", "llama-bf16", "llama-fp16",
        "llama-double", "llama-threads", "llama-blas", "llama-foreach", "llama-scaled_gradient",
        "llama-bf16_step", "llama-ulp_step", "conv-split_channels", "conv-channels_last",
        "conv-one_hot", "conv-ulp", "conv-bf16", "conv-fp16", "conv-double", "conv-threads",
        "conv-blas", "conv-foreach", "conv-scaled_gradient", "encoder-by_hand", "encoder-ulp",
        "encoder-bf16", "encoder-double", "encoder-threads", "encoder-blas", "encoder-foreach",
    ),
}  # fmt: skip


REFERENCES = {
    "pytorch": ("none", "none_step"),
    "mindspore": ("none",),
    "networks": [f"{n}-{base}" for n in ("llama", "conv", "encoder")
                 for base in ("none", "none_step")],
    "mindspore_networks": ["conv-none", "llama-none", "conv-none2", "llama-none2"],
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", choices=[*FAULTS, "cross"])
    parser.add_argument("--pytorch")
    parser.add_argument("--mindspore")
    parser.add_argument("--mindspore_networks")
    parser.add_argument("--networks")
    parser.add_argument("--cross")
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("variants", nargs="*")
    asked = parser.parse_args()
    if asked.list == "cross":
        runs = sorted({run for left, right, _ in CROSS for run in (left, right)})
        print(*map(cross_call, runs), sep="\n")
        return 0
    if asked.list:
        print(*REFERENCES[asked.list], *FAULTS[asked.list], *HEALTHY[asked.list])
        return 0
    tally = Tally()
    for statistics in (False, True) if asked.statistics else (False,):
        for framework in FAULTS:
            folder = getattr(asked, framework)
            if folder:
                judge(framework, folder, statistics, asked.variants, tally)
        if asked.cross:
            judge_cross(asked.cross, statistics, asked.variants, tally)
    print()
    tally.show()
    return 0


def judge(framework: str, folder: str, statistics: bool, wanted: list[str], tally: Tally) -> None:
    level = "statistics" if statistics else "tensors"
    print(f"\n{framework}, {level}")
    for variant in (*FAULTS[framework], *HEALTHY[framework]):
        path = os.path.join(folder, variant)
        if not os.path.isdir(path) or (wanted and variant not in wanted):
            continue
        network, mark, change = variant.rpartition("-")
        base = "none_step" if change in STEPPED and "mindspore" not in framework else "none"
        base = "none2" if change in ("beta", "momentum") and network else base
        base = network + mark + base
        start = time.process_time()
        found = compared(os.path.join(folder, base), path, statistics)
        if not found.units:
            print(f"  {variant:22} no common step: {found.missing}")
            continue
        expected = FAULTS[framework].get(variant, r"." if change in OTHER_BITS else "")
        names = list(map(names_of, faults_of(found))) or [""]
        names[0] = told(found) + names[0]
        word = word_of(found, expected, names)
        tally.add(word, framework, level, "fault" if expected else "healthy")
        why = why_text(found.first) if found.first else ""
        seconds = time.process_time() - start
        print(f"  {word:11} {variant:22} {seconds:5.1f} s  {first_of(names)}  [{why[:110]}]")
        sys.stdout.flush()


def word_of(found: RunComparison, expected: str, names: list[str]) -> str:
    """What an answer amounts to.

    Args:
        found: the answer.
        expected: pattern of what has to be named; empty of healthy pairs.
        names: what the answer names, in its order: settings, then operators.
    """
    named = [name for name in names if name]
    if not expected:
        return "accused" if named else "told" if found.is_suspicious else "quiet"
    if not named:
        return "told" if found.is_suspicious else "missed"
    if re.search(expected, named[0]):
        return "named"
    return "named later" if any(re.search(expected, name) for name in named[1:3]) else "wrong"


def first_of(names: list[str]) -> str:
    return next((name for name in names if name), "nobody")


def cross_call(run: str) -> str:
    """Arguments that make a run of two frameworks: folder, framework, variant, level."""
    folder, _, variant = run.partition("/")
    framework, _, level = folder.partition("_")
    return f"{folder} {framework} {variant} --level {level or 'L1'}"


def judge_cross(folder: str, statistics: bool, wanted: list[str], tally: Tally) -> None:
    level = "statistics" if statistics else "tensors"
    print(f"\nacross frameworks, {level}")
    for left, right, expected in CROSS:
        paths = [os.path.join(folder, run) for run in (left, right)]
        if not all(map(os.path.isdir, paths)) or (wanted and right not in wanted):
            continue
        start = time.process_time()
        found = compared(*paths, statistics)
        shown = found.shown.comparison if found.shown is not None else None
        if shown is None:
            print(f"  {left} | {right}: no common step: {found.missing}")
            continue
        names = [f"{names_of(item)} {stretch_of(item, shown)}" for item in faults_of(found)]
        word = word_of(found, expected, names)
        tally.add(word, "across", level, "fault" if expected else "healthy")
        crossing = getattr(shown, "crossing", None)
        counts = "{}/{}, {}/{}".format(*crossing.forward, *crossing.backward) if crossing else ""
        first = found.first
        accused = f"{first.pair.left.name} | {first.pair.right.name}" if first else "nobody"
        seconds = time.process_time() - start
        print(f"  {word:11} {left:17} {right:24} {len(shown.judged):3} pairs "
              f"{counts:14} {seconds:4.1f} s  {accused}")  # fmt: skip
        sys.stdout.flush()


def told(found: RunComparison) -> str:
    """Settings that the answer says are different."""
    shown = ("initial weights", "loss scale (right over left)")  # by the tensors themselves
    return "".join(
        f"hyperparameter {row.name} " for row in found.told_differently if row.name not in shown
    )


def faults_of(found: RunComparison) -> list[Judged]:
    """Operators that are accused, the one that the answer names first."""
    if found.first is None:
        return []
    faults = found.tensors.faults if found.tensors is not None else []
    return [found.first, *(item for item in faults if item is not found.first)]


def names_of(item: Judged) -> str:
    """The operators of one side or both that the answer names for a pair."""
    makers = [op.name for op in (item.maker_left, item.maker_right) if op is not None]
    return " | ".join(makers or [item.pair.left.name])


def stretch_of(item: Judged, shown: TensorComparison) -> str:
    """All operators between the ends of what is accused, on both sides."""
    names: list[str] = []
    for op, run in ((item.pair.left, shown.left), (item.pair.right, shown.right)):
        ends = op.members[0].index, op.members[-1].index
        names += [other.name for other in run.ops[ends[0] : ends[1] + 1]]
    return " ".join(names)


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
        try:
            tensors = read_unit(unit)
        except NoTensors:
            continue
        if not isinstance(unit, Unit) or not isinstance(unit.source, MsprobeDump):
            digest.fill(tensors)
        tensors.columns.files = [""] * len(tensors.columns)
        tensors.columns.sketches.clear()
        tensors.columns.hashes = [""] * len(tensors.columns)
        tensors.level = "statistics"
        side.units[key] = tensors


if __name__ == "__main__":
    sys.exit(main())

"""What is said of steps that nobody ran: a net under the judging of operators.

    python -m tests.compare.kept_verdicts --show stated/017   # all that is said of one step
    python -m tests.compare.kept_verdicts --record            # keep what is said now

``stated`` steps are operators with errors that are stated, from far below to far above what can be
rounding; ``computed`` ones are a training step in which something is done to some calls, dumped
and read.  Of each operator the words are kept, not the figures, as one digest a step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from irtool.compare.runs.sides import side_of_run
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Phase, TensorRun
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe
from tests.compare.steps import Given, Steps, U
from tests.compare.training_step import Change, Values, training_step

KEPT = Path(__file__).parent / "data" / "kept_verdicts.tsv"
STATED = 240
"""Steps with stated errors."""

Step = Callable[[], Sequence[str]]
"""What is said of the operators of a step, a line each."""


def words(item: Judged) -> str:
    """What is said of an operator, without figures."""
    said = (
        *(item.pair.left.name, item.pair.right.name, item.verdict, item.entered, item.wrong),
        *(item.broken, item.untold, item.lowered, item.between),
        *("".join(c for c, flag in zip("pqmo", flags(item), strict=True) if flag),),
        *((item.since.name if item.since else ""),),
        *(" ".join(change.name for change in item.attributes),),
        re.sub(r"\d[\d.e+-]*", "#", item.why),
    )
    return "|".join(said)


def flags(item: Judged) -> tuple[bool, ...]:
    return item.parameter, item.is_permuted, item.may_be_order, item.is_picked


# -- stated errors -------------------------------------------------------------------------------

_TYPES = (
    *(
        "mystery",
        "MatMul",
        "linear",
        "LayerNorm",
        "layer_norm",
        "Softmax",
        "ReduceSum",
        "ReduceMax",
    ),
    *("Add", "Mul", "Cast", "Dropout", "Adam", "AdamWeightDecay", "Conv2D", "Gather", "embedding"),
    *(
        "relu",
        "GeLU",
        "cross_entropy",
        "SoftmaxCrossEntropyWithLogits",
        "TopK",
        "Argmax",
        "Greater",
    ),
    *("UniformReal", "Reshape", "Transpose", "BatchNorm", "AllReduce", "Assign", "Sqrt", "Exp"),
)
_ERRORS = (0.0, *(U * 2.0 ** (power / 2) for power in range(-4, 49)))
_SHAPES = ((4, 4), (64, 64), (8, 1024), (16,), ())
_DTYPES = (
    *((("Float32", "Float32"),) * 12),
    *((("Float16", "Float16"), ("BFloat16", "BFloat16"), ("Float32", "BFloat16"))),
    *((("Float16", "Float32"), ("Int32", "Int32"), ("Int32", "Int64"), ("Float64", "Float32"))),
)
_ATTRIBUTES: Sequence[tuple[Mapping[str, object], Mapping[str, object]]] = (
    *[({}, {}) for _ in range(8)],
    ({"eps": 1e-5}, {"eps": 1e-6}),
    ({"axis": -1}, {"axis": 0}),
    ({"keep_prob": 0.9}, {"keep_prob": 0.9}),
    ({"alpha": 1.0}, {"alpha": 1.0000001}),
    ({}, {"beta": 2}),
)
_TRAINING: tuple[Training, ...] = ("first step", "steps before", "steps compared")


def stated(seed: int) -> Sequence[str]:
    """Some operators, each of which takes what others before it put out."""
    chance = Random(seed)
    steps = Steps(
        framework=chance.choice(("pytorch", "pytorch", "mindspore")),
        same_framework=chance.random() < 0.7,
        training=chance.choice(_TRAINING),
    )
    made = [tensor(chance, Given()) for _ in range(3)]
    number = chance.randrange(6, 16)
    for place in range(number):
        phase: Phase = "forward" if place < number * 0.5 else "backward"
        phase = "optimizer" if place >= number * 0.85 else phase
        inputs = [chance.choice(made[-6:]) for _ in range(chance.randrange(1, 4))]
        if chance.random() < 0.4:
            weight = tensor(chance, Given())
            inputs.append(weight._replace(error=chance.choice((0.0, 0.0, weight.error))))
            inputs[-1] = inputs[-1]._replace(is_parameter=True)
        worst = max(one.error for one in inputs)
        outputs = [tensor(chance, one, worst) for one in inputs[: chance.choice((1, 1, 1, 2))]]
        type_ = chance.choice(_TYPES)
        is_odd = chance.random() < 0.05
        steps.add(
            type_, inputs, outputs, phase=phase, call=f"{type_}.{place % 5}",
            is_module=chance.random() < 0.15, other_type=chance.choice(_TYPES) if is_odd else "",
            owner=chance.choice(("", "net.first", "net.second")),
            attributes=chance.choice(_ATTRIBUTES),
        )  # fmt: skip
        made += outputs
    return [words(item) for item in steps.judged()]


def tensor(chance: Random, like: Given, error: float | None = None) -> Given:
    """A tensor whose error is about that of what it is made of, or another."""
    base = chance.choice(_ERRORS)
    if error is not None and chance.random() < 0.7:
        base = error * chance.choice((0.0, 0.25, 1.0, 1.01, 1.05, 2.0, 5.0, 12.0, 60.0))
    norm = like.norm * chance.choice((1.0, 1.0, 1.0, 0.5, 3.0, 2.0**-30))
    kind = chance.random()
    return like._replace(
        error=base,
        norm=norm,
        shape=chance.choice((like.shape, like.shape, *_SHAPES)),
        dtypes=chance.choice(_DTYPES),
        broken=chance.choice(((0, 1), (1, 0), (2, 2))) if kind < 0.02 else (0, 0),
        exact=like.exact if kind < 0.95 else not like.exact,
        is_parameter=False,
        right_norm=norm * chance.choice((1.02, 1.0001, 0.5)) if 0.02 <= kind < 0.1 else None,
        is_measured=kind < 0.98,
    )


# -- computed steps ------------------------------------------------------------------------------


def in_half(values: Values) -> Values:
    return values.astype(np.float16).astype(np.float32)


def turned_round(values: Values) -> Values:
    return np.ascontiguousarray(values[::-1]) if values.ndim else values


def with_noise(size: float) -> Change:
    chance = np.random.default_rng(5)

    def changed(values: Values) -> Values:
        noise = chance.standard_normal(values.shape).astype(np.float32)
        return values * (1 + noise * np.float32(size))

    return changed


def times(factor: float) -> Change:
    return lambda values: values * np.float32(factor)


def with_infinity(values: Values) -> Values:
    return np.where(values == values.max(), np.float32(np.inf), values)


_DONE: dict[str, Change] = {
    "half": in_half, "round": turned_round, "noise": with_noise(1e-3), "fine": with_noise(2e-6),
    "scaled": times(1024.0), "little": times(1.001), "negative": times(-1.0), "zero": times(0.0),
    "infinite": with_infinity,
}  # fmt: skip
_CALLS = (
    *("Functional.layer_norm.0.forward", "Functional.linear.1.forward", "Torch.matmul.0.forward"),
    *("Functional.softmax.0.forward", "Functional.relu.0.forward", "Tensor.__add__.1.forward"),
    *("Functional.cross_entropy.0.forward", "Functional.cross_entropy.0.backward"),
    *("Functional.linear.4.backward", "Functional.softmax.0.backward", "Torch.matmul.1.backward"),
)
_ON_A_BORDER = {("Torch.matmul.0.forward", "round", False)}
"""The last bits of the products decide, which are others on other processors."""


def computed(done: Sequence[tuple[str, str]], tensors: bool, other: str = "") -> Sequence[str]:
    """What is said of a training step in which something was done to some calls."""
    left = training_step()
    right = training_step({call: _DONE[name] for call, name in done})
    if other == "less":
        right = [entry for place, entry in enumerate(right) if place % 9 != 4]
    elif other == "turned":
        right = training_step(heads=("value", "key", "query"))
    elif other == "all in half":
        right = training_step(rounded=in_half)
    elif other == "weights":
        right = training_step(seed=3)
    elif other == "swapped":
        left, right = right, left
    found = compared(left, right, tensors)
    said = [words(item) for item in found.judged]
    said.append(" ".join(op.name for op in (*found.only_left, *found.only_right)))
    return [*said, f"{found.gradient_scale:.3g} {found.fingerprints}"]


def compared(left: list[Entry], right: list[Entry], tensors: bool) -> TensorComparison:
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            side(msprobe(Path(folder) / name, entries, tensors))
            for name, entries in (("a", left), ("b", right))
        ]
        return compare_tensors(*sides)


def side(path: Path) -> TensorRun:
    (only,) = side_of_run(load_run(str(path)), None).units.values()
    return only if isinstance(only, TensorRun) else only.read()


# -- all of them ---------------------------------------------------------------------------------


def steps() -> dict[str, Step]:
    """The steps by name."""
    found: dict[str, Step] = {f"stated/{seed:03}": partial(stated, seed) for seed in range(STATED)}
    for place, call in enumerate(_CALLS):
        for number in range(3):
            name = list(_DONE)[(place * 4 + number * 2) % len(_DONE)]
            tensors = (place + number) % 2 == 0
            if (call, name, tensors) in _ON_A_BORDER:
                continue
            kind = "tensors" if tensors else "figures"
            found[f"computed/{call}/{name}/{kind}"] = partial(computed, [(call, name)], tensors)
    for other in ("less", "turned", "all in half", "weights", "swapped"):
        for tensors in (True, False):
            done = [(_CALLS[2], "noise"), (_CALLS[7], "scaled")]
            kind = "tensors" if tensors else "figures"
            found[f"computed/{other}/{kind}"] = partial(computed, done, tensors, other)
    return found


def kept_now(name: str) -> str:
    """The line that would be kept of a step now."""
    said = list(steps()[name]())
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()
    verdicts = Counter(line.split("|")[2] for line in said if line.count("|") > 2)
    return "\t".join((name, digest[:10], json.dumps(dict(sorted(verdicts.items())))))


def kept() -> dict[str, str]:
    """The lines that are kept, by step."""
    if not KEPT.exists():
        return {}
    return {line.partition("\t")[0]: line for line in KEPT.read_text("utf-8").splitlines()}


def record() -> list[str]:
    """Keep what is said now; the steps of which something else was kept."""
    before = kept()
    now = {name: kept_now(name) for name in steps()}
    KEPT.write_text("\n".join(now.values()) + "\n", encoding="utf-8", newline="\n")
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def told(options: argparse.Namespace) -> Iterator[str]:
    """What the command prints."""
    if options.show:
        yield from steps()[options.show]()
    elif options.record:
        yield from (f"other verdicts in {name}" for name in record())
    else:
        before = kept()
        yield from (
            f"other verdicts in {name}" for name in steps() if kept_now(name) != before.get(name)
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--show", metavar="NAME")
    parser.add_argument("--record", action="store_true")
    print(*told(parser.parse_args()), sep="\n")

"""Plans under a memory limit where layers are recomputed, against every choice there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.limits.memory import Limited, TooLittleMemory
from irtool.planning.limits.modes import Modes
from irtool.planning.search.exact import Floats
from irtool.planning.search.paid_once import seconds_of_links
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.search import Search
from irtool.planning.search.tables import Model, model_of
from irtool.sharding.network.context import ParallelContext

SIZES = (1024, 512, 2048, 256, 1024)
"""Columns of what goes from product to product; the first is the batch's own."""


def chain() -> Model:
    """Three products one after the other, on two devices."""
    weights = list(pairwise(SIZES[1:]))
    lines = [
        "",
        f"%para1_x: <Tensor[Float32], ({SIZES[0]}, {SIZES[1]})> : [{SIZES[0]}, {SIZES[1]}]",
    ]
    lines += [
        f"%para{at + 2}_w{at}: <Ref[Tensor[Float32]], {size}, ref_key=w{at}, is_parameter>"
        "  :  has_default"
        for at, size in enumerate(weights)
    ]
    lines += ["", "subgraph attr:", "subgraph instance: main : 0x1", "subgraph @main() {"]
    for at, (rows, columns) in enumerate(weights):
        source = f"%{at - 1}" if at else "%para1_x"
        lines.append(
            f"  %{at}(c{at}) = PrimFunc_MatMul({source}, %para{at + 2}_w{at}, Bool(0), Bool(0))"
            " {instance name: matmul} primitive_attrs: {}\n"
            f"      : (<Tensor[Float32], ({SIZES[0]}, {rows})>, <Ref[Tensor[Float32]],"
            f" ({rows}, {columns})>, <Bool, NoShape>, <Bool, NoShape>)"
            f" -> (<Tensor[Float32], ({SIZES[0]}, {columns})>)"
        )
    lines += [
        f"  Return(%{len(weights) - 1})",
        f"      : (<Tensor[Float32], ({SIZES[0]}, {SIZES[-1]})>)", "}", "",
    ]  # fmt: skip
    context = ParallelContext.from_mapping(
        {"devices": 2, "full_batch": True}, mode="auto_parallel", search="sharding_propagation"
    )
    problem = problem_of(irtool.loads("\n".join(lines)), context, planned_context(context, 2))
    return model_of(problem.structure, default_machine(), problem.current, {})


@dataclass(frozen=True)
class Recomputed:
    """What each operator makes anew where it is recomputed (mode 1), a layer for each."""

    anew: Sequence[Floats]

    def made(self, variable: int, choice: int, mode: int) -> float:
        return float(self.anew[variable][choice]) if mode else 0.0

    def layer(self, variable: int) -> str:
        return f"layer{variable}"

    def share(self, variable: int) -> float:
        return 1 / len(self.anew)

    def above(self, choices: Sequence[int], modes: Sequence[int]) -> float:
        made = [self.made(at, *each) for at, each in enumerate(zip(choices, modes, strict=True))]
        return max(made) - sum(made) / len(made)


def kept_or_made_anew(model: Model, seed: int, least: int) -> tuple[list[Modes], Recomputed]:
    """Each result is kept, or made anew in so much more time; the larger ``least``, the more alike.

    Nothing else is so hard as layers of which one makes forty times as much anew as another.
    """
    rng = np.random.default_rng(seed)
    anew = [rng.integers(least, 40, len(each)) * 100_000.0 for each in model.unary]
    modes: list[Modes] = []
    for seconds, held, made in zip(model.unary, model.memory, anew, strict=True):
        more = seconds * float(rng.uniform(0.05, 0.6))
        modes.append(Modes((seconds, seconds + more), (held + made, held + made / len(anew))))
    return modes, Recomputed(anew)


def everything(
    model: Model, modes: Sequence[Modes], overhead: Recomputed
) -> Iterator[tuple[float, float]]:
    """Bytes and seconds of every choice."""
    search = Search(model)
    for choices in product(*(range(len(each)) for each in model.candidates)):
        if any(item.items[at].judgement.verdict != "legal"
               for item, at in zip(model.candidates, choices, strict=True)):  # fmt: skip
            continue
        search.refine(choices)
        between = model.constant + seconds_of_links(model, choices)
        for picked in product((0, 1), repeat=len(modes)):
            own = list(zip(modes, choices, picked, strict=True))
            held = sum(float(each.held[mode][at]) for each, at, mode in own)
            held += model.constant_memory + overhead.above(choices, picked)
            yield held, between + sum(float(each.seconds[mode][at]) for each, at, mode in own)


@pytest.mark.parametrize(
    ("least", "seed", "close", "far"),
    [(30, 0, (0, 2, 3, 4, 5, 8), (1, 6)), (1, 1, (1, 2, 6, 7, 8), (5,))],
)
def test_the_largest_layer_counts_once_and_the_bound_is_one(
    least: int, seed: int, close: Sequence[int], far: Sequence[int]
) -> None:
    """At some limits, elevenths of the way from all that is needed to all that helps."""
    model = chain()
    modes, overhead = kept_or_made_anew(model, seed, least)
    known = sorted(everything(model, modes, overhead))
    fewest, most = known[0][0], known[-1][0]
    for part in sorted((*close, *far)):
        limit = int(fewest + part / 11 * (most - fewest)) + 1
        best = min(seconds for held, seconds in known if held <= limit)
        found = Limited(Search(model), modes, overhead)
        choice = found.cheapest(limit)
        assert found.all_bytes(choice) <= limit
        assert choice.bound <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= choice.seconds
        # What is not known to be close is not said to be.
        assert (choice.seconds <= choice.bound * 1.009) is (part in close)


def test_less_than_the_least_does_not_fit() -> None:
    model = chain()
    modes, overhead = kept_or_made_anew(model, 0, 30)
    fewest = min(held for held, _ in everything(model, modes, overhead))
    with pytest.raises(TooLittleMemory) as caught:
        Limited(Search(model), modes, overhead).cheapest(int(fewest) - 1)
    assert caught.value.fewest == pytest.approx(fewest)
    assert caught.value.least <= fewest * (1 + 1e-9)

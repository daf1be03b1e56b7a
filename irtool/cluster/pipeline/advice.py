"""What to change in a pipeline: more micro-batches, chunks, another cut; each with its price."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.cluster.memory.layers import NETWORK
from irtool.cluster.pipeline.cut import Cut, Layer
from irtool.cluster.schedule import ideal_bubble
from irtool.ir.dataclass import dataclass
from irtool.ir.units import share_text

WANTED = 0.1
"""Ratio of idle to working time that is worth getting down to."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A change worth trying.

    Attributes:
        switch: MindSpore's own name of it.
        gain: what it brings.
        price: what it costs.
    """

    switch: str
    value: str
    gain: str
    price: str


def advise(
    stages: Sequence[Sequence[Layer]], count: int, micro: int, cut: Cut | None, chunks: int = 1
) -> tuple[Advice, ...]:
    """Changes worth trying for stages of these layers: ``(p - 1) / (v m)`` and the best cut.

    Interleaving keeps ``1 + (p - 1) / (p v)`` as many activations on the first stage (the penalty
    that Megatron-LM states), and hands on ``v`` times as many tensors; ``chunks`` are those that
    stages hold already.

    Args:
        stages: layers of each stage, in seconds a micro-batch.
        count: of stages.
        micro: micro-batches of a step.
        cut: the best cut of all layers into as many stages; None: not known.
        chunks: pieces of the network that a stage holds already.

    Returns:
        Empty where nothing is worth trying.
    """
    advice: list[Advice] = []
    now = ideal_bubble(count, micro, chunks)
    if micro < count:
        advice.append(
            Advice(
                "micro_size",
                str(count),
                _less(now, ideal_bubble(count, count, chunks)),
                "smaller micro-batches; fewer than stages leaves stages idle, and interleaving "
                "is refused",
            )
        )
    if now > WANTED:
        wanted = math.ceil((count - 1) / (chunks * WANTED))
        advice.append(
            Advice(
                "micro_size",
                str(wanted),
                _less(now, ideal_bubble(count, wanted, chunks)),
                "no more activations with 1F1B if a micro-batch keeps its size; smaller "
                "operators, and a longer compilation, if the batch does",
            )
        )
        layers = min((layer_count(one) for one in stages), default=0)
        for more_chunks in (2, 4):
            if layers >= more_chunks > chunks and micro >= count:
                after = ideal_bubble(count, micro, more_chunks)
                more = (count - 1) / (count * more_chunks)
                advice.append(
                    Advice(
                        'pipeline_config={"pipeline_interleave": True}',
                        f"{more_chunks} chunks a stage",
                        _less(now, after),
                        f"{share_text(more)} more activations on stage 0, "
                        f"{more_chunks} times as many tensors between stages",
                    )
                )
    costs = [sum(layer.cost for layer in one) for one in stages]
    slowest = max(costs, default=0.0)
    if cut is not None and cut.slowest < 0.98 * slowest:
        mean = sum(costs) / len(costs)
        advice.append(
            Advice(
                "pipeline_stage",
                "; ".join(f"{index}: {_run(names)}" for index, names in enumerate(cut.stages)),
                f"slowest stage {share_text(slowest / mean - 1)} → "
                f"{share_text(cut.imbalance)} above the mean",
                "other weights on other stages: checkpoints move",
            )
        )
    return tuple(advice)


def layer_count(layers: Sequence[Layer]) -> int:
    """Number of layers, without the work that belongs to none.

    Args:
        layers: of a stage.
    """
    return sum(layer.name != NETWORK for layer in layers)


def _less(now: float, after: float) -> str:
    return f"idle time {share_text(now)} → {share_text(after)} of work"


def _run(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"

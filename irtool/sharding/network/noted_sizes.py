"""Results of which MindSpore notes another slice than the device holds, and what comes of it.

A Gather with an ``out_strategy`` may leave other rows than the layout that MindSpore notes of it.
What is inserted behind it is made for the noted slice; where a Reshape is among it, or the user's
own one follows, MindSpore refuses the network, because the numbers of elements differ. Otherwise it
may go on, with rows that are missing or repeated.

Source: networks compiled with MindSpore 2.7.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irtool.operators.layout import DYNAMIC, Shape
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.edges import Redistribution
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.redistribution import RedistributionStep

SIZES = "reshape.cc:InferShape"


def check_noted_sizes(analysis: Analysis, redistributions: Sequence[Redistribution]) -> None:
    """Refuse, or doubt, what lies behind results that are held otherwise than noted.

    Args:
        analysis: with every operator judged; takes refusals and doubts.
        redistributions: of every edge, as MindSpore makes them for the noted slices.
    """
    for chain in redistributions:
        judged = analysis.judged.get(chain.edge.producer)
        if judged is None or chain.replaces or chain.operators is None:
            continue
        slices, output = judged.judgement.output_slices, chain.edge.output
        if (
            chain.source is None
            or output >= len(slices)
            or slices[output] == chain.source.slice_shape
        ):
            continue
        if DYNAMIC not in slices[output]:
            _check(analysis, chain, slices[output])


def _check(analysis: Analysis, chain: Redistribution, held: Shape) -> None:
    assert chain.source is not None
    assert chain.target is not None
    edge = chain.edge
    wrong = (
        f"each device holds {held} of the result of {edge.producer.id}, but MindSpore notes "
        f"{chain.source.slice_shape}: another out_strategy, or none, would do"
    )
    left = _behind(held, chain.operators or ())
    if left == chain.target.slice_shape:
        return
    if left is None or primitive(edge.consumer) == "Reshape":
        message = f"a Reshape behind it can't be made: {wrong}"
        analysis.refuse("out-strategy", message, SIZES, edge.producer, "Reshape")
    elif edge.consumer.is_return:
        analysis.note(f"what the network returns has a wrong size: {wrong}", edge.producer)
    else:
        message = f"{edge.consumer.id} gets {left} instead of {chain.target.slice_shape}: {wrong}"
        analysis.doubt(message, edge.producer)


def _behind(held: Shape, steps: Sequence[RedistributionStep]) -> Shape | None:
    """What a chain of operators makes of a slice that is not the one that it was made for.

    None: a Reshape among them fails.
    """
    for step in steps:
        if step.op == "Reshape":
            if prod(held) != prod(step.output_shape):
                return None
            held = step.output_shape
        elif step.begin is not None and step.end is not None:
            held = tuple(
                max(min(high, size) - low, 0)
                for size, low, high in zip(held, step.begin, step.end, strict=True)
            )
        else:
            sizes = zip(held, step.input_shape, step.output_shape, strict=True)
            held = tuple(size * after // before for size, before, after in sizes)
    return held

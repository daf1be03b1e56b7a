"""How many of an operator's kept results a device holds at once, where a step has micro-batches.

Gradients that are accumulated free what one micro-batch keeps before the next one runs; a stage of
a pipeline holds those of the micro-batches that are on their way through the stages behind it (one
forward, one backward; where stages hold several chunks of layers, as the interleaved schedule has
it; all of them where forward passes run first, as ``gpipe`` has it).  A cell that is inlined late
stands once in the dump and runs for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irtool.cluster.schedule import interleaved
from irtool.ir.graph import Node
from irtool.ir.micro_batches import is_interleaved, micro_batch_of
from irtool.sharding.network.analysis import Analysis


def held_at_once(analysis: Analysis, instances: Mapping[str, int]) -> dict[Node, float]:
    """Results held at once for each that stands in the dump, by node; missing: one.

    Args:
        analysis: the network.
        instances: how often each graph runs in a step, by its name.
    """
    labels = _micro_batches(analysis)
    count = len({label for label in labels.values() if label is not None})
    together = _together(analysis, count)
    held: dict[Node, float] = {}
    for node in analysis.judged:
        runs = instances.get(node.graph.name, 1) if node.graph is not None else 1
        if labels.get(node) is not None:
            held[node] = together / count
        elif count and runs % count == 0:
            held[node] = runs // count * together
        elif runs > 1:
            held[node] = runs
    return held


def _together(analysis: Analysis, count: int) -> float:
    """Micro-batches of which a stage keeps results at once; of its chunks, on average."""
    context = analysis.context
    if context.stages == 1:
        return min(count, 1)
    if context.scheduler == "gpipe":
        return count
    numbers = [node.attribute("chunk") for node in analysis.network.dump.nodes()]
    chunks = max((number for number in numbers if type(number) is int), default=0) + 1
    if chunks > 1 and count >= context.stages:
        schedule = interleaved(context.stage, context.stages, count, chunks)
        return schedule.in_flight / chunks
    return min(count, context.stages - context.stage)


def _micro_batches(analysis: Analysis) -> dict[Node, int | None]:
    """The micro-batch that a node computes for; None of one that takes several, or none.

    Statements of a graph stand behind what they take, but may take results of graphs that stand
    after it: so often as there are graphs, labels may go on to another one.
    """
    network = analysis.network
    labels: dict[Node, int | None] = {}
    for _ in network.dump.graphs:
        before = dict(labels)
        for graph in network.dump.graphs:
            for node in graph.nodes:
                labels[node] = _label(node, network.inputs[node], labels)
        if labels == before:
            break
    return labels


def _label(node: Node, inputs: Iterable[object], labels: Mapping[Node, int | None]) -> int | None:
    """The micro-batch that a node says it computes for, else the one of all that it takes."""
    own = None if is_interleaved(node) else micro_batch_of(node)
    if own is not None:
        return own
    sources = {labels.get(source) for source in inputs if isinstance(source, Node)} - {None}
    return sources.pop() if len(sources) == 1 else None

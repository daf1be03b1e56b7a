"""Layouts that spread through a network: what a propagation makes of the user's layouts.

Where some operators have layouts, a search by propagation gives their neighbours the same device
matrix, as far as the strategies allow; a dump prints only the strategies.
"""

from __future__ import annotations

from dataclasses import replace

from irtool.ir.graph import Node
from irtool.operators.layout import WHOLE, TensorLayout
from irtool.sharding.judge import judge
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.edges import Edge, EdgeFinder
from irtool.sharding.network.sharded_nodes import primitive


def propagate_layouts(analysis: Analysis) -> None:
    """Give neighbours of operators with layouts the layouts that their strategies allow.

    Args:
        analysis: with every operator judged; neighbours that adopt a layout are judged again.
    """
    fixed = {node for node, item in analysis.judged.items() if item.wanted.in_layout is not None}
    if not fixed or not _was_propagated(analysis):
        return
    finder = EdgeFinder(analysis)
    edges = [edge for node in analysis.judged for edge in finder.edges(node)]
    edges = [edge for edge in edges if not edge.consumer.is_return]
    for _ in analysis.judged:
        before = len(fixed)
        for node in list(analysis.judged):
            if node in fixed or primitive(node) in ("_VirtualDataset", "Reshape"):
                continue
            if _adopts(analysis, node, edges, fixed):
                fixed.add(node)
        if len(fixed) == before:
            return


def _was_propagated(analysis: Analysis) -> bool:
    """Whether strategies were propagated: by the mode, or around functions that are sharded."""
    context = analysis.context
    if context.searches:
        return context.propagates
    return any(node.strategy is not None for node in analysis.judged)


def _adopts(analysis: Analysis, node: Node, edges: list[Edge], fixed: set[Node]) -> bool:
    """Whether a node takes over layouts of its neighbours (or has them already)."""
    judged = analysis.judged[node]
    if judged.judgement.verdict != "legal":
        return False
    own = judged.judgement.input_layouts
    given = _offered(analysis, judged, edges, fixed)
    if not any(given):
        return False
    if all(layout is None or layout.same_as(mine) for layout, mine in zip(given, own, strict=True)):
        return True
    matrix = next(layout.device_matrix for layout in given if layout is not None)
    layouts: list[TensorLayout] = []
    for layout, mine in zip(given, own, strict=True):
        if layout is None and not mine.is_whole:
            return False
        unsplit = TensorLayout(matrix, (WHOLE,) * len(mine.tensor_shape), mine.tensor_shape)
        layouts.append(layout or unsplit)
    judgement = judge(judged.call.call, None, analysis.operators, in_layout=layouts)
    if judgement.verdict != "legal":
        return False
    analysis.judged[node] = replace(judged, judgement=judgement)
    return True


def _offered(
    analysis: Analysis, judged: Judged, edges: list[Edge], fixed: set[Node]
) -> list[TensorLayout | None]:
    """Per tensor input the layout of a fixed neighbour, if it splits as the strategy says."""
    own = judged.judgement.input_layouts
    given: list[TensorLayout | None] = [None] * len(own)
    for edge in edges:
        if edge.consumer is judged.node and edge.producer in fixed:
            tensor = judged.call.slots.tensor(edge.position, edge.item)
            layout = analysis.judged[edge.producer].output_layout(edge.output)
            if tensor is not None and layout is not None and layout.splits == own[tensor].splits:
                given[tensor] = layout
    outputs = judged.judgement.output_layouts
    if any(given) or len(own) != 1 or len(outputs) != 1:
        return given
    for edge in edges:
        if edge.producer is judged.node and edge.consumer in fixed:
            layout = analysis.judged[edge.consumer].input_layout(edge.position, edge.item)
            if layout is not None and layout.splits == own[0].splits == outputs[0].splits:
                given[0] = layout
                break
    return given

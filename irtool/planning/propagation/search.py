"""MindSpore's propagation of a whole network.

Source: strategies in dumps after the search, and MindSpore's documentation of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.propagation.choices import Choice as Option
from irtool.planning.propagation.choices import Choices
from irtool.planning.propagation.network import Vertex, vertices_of
from irtool.planning.propagation.prices import Prices
from irtool.planning.propagation.reshapes import Reshapes
from irtool.planning.propagation.spread import DATASET, Spread
from irtool.planning.recursive.kinds import NotSearchable
from irtool.planning.recursive.search import NO_STRATEGY, Choice
from irtool.sharding.judge import judge
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.judged import judge_operators
from irtool.sharding.network.sharded_nodes import is_nested, primitive
from irtool.sharding.network.strategies import strategy_of


def search(analysis: Analysis, pinned: Mapping[Node, Strategy] | None = None) -> Choice:
    """Propagate what users configured (and what is pinned) to all operators.

    Args:
        analysis: the network and its context.
        pinned: strategies that are given besides those of the dump.

    Raises:
        NotSearchable: MindSpore's own search fails on this network.
    """
    judge_operators(analysis)
    vertices = vertices_of(analysis)
    choices = Choices(analysis)
    configured, outs = _configured(analysis, vertices, choices, pinned or {})
    if not configured:
        raise NotSearchable("no operator is configured, and there is no dataset")
    alone = frozenset(vertex for vertex in vertices if _is_alone(analysis, vertex))
    ranks = tuple(analysis.context.stage_ranks)
    prices = Prices(ranks, analysis.context.enable_alltoall)
    spread = Spread(
        vertices,
        choices,
        prices,
        configured,
        outs,
        alone,
        Reshapes(prices, len(ranks)),
    )
    spread.run()
    strategies: dict[Node, Strategy] = {}
    for vertex, option in spread.chosen.items():
        node = vertex.node
        if node is None or vertex.op in NO_STRATEGY or (vertex in alone and not option.strategy):
            continue
        if option.strategy:
            strategies[node] = option.strategy
    given = {vertex.node: rows for vertex, rows in outs.items() if vertex.node is not None}
    return Choice(strategies, given)


def _configured(
    analysis: Analysis,
    vertices: list[Vertex],
    choices: Choices,
    pinned: Mapping[Node, Strategy],
) -> tuple[dict[Vertex, Option], dict[Vertex, Strategy]]:
    """What is given: strategies and layouts of users, what is pinned, and the dataset."""
    given: dict[Vertex, Option] = {}
    outs: dict[Vertex, Strategy] = {}
    for vertex in vertices:
        if vertex.dataset is not None:
            given[vertex] = choices.of(vertex)[0]
            continue
        if vertex.node is None or vertex.call is None or vertex.op in NO_STRATEGY:
            continue
        judged = analysis.judged.get(vertex.node)
        if vertex.node in pinned:
            option = choices.given(vertex.call.call, pinned[vertex.node])
            if option is None:
                raise NotSearchable(f"the strategy that is given to {vertex.op} is illegal")
            given[vertex] = option
        elif judged is not None and (vertex.op == DATASET or _is_given(vertex)):
            judgement = judged.judgement
            if judgement.verdict != "legal":
                raise NotSearchable(f"the strategy that is given to {vertex.op} is illegal")
            given[vertex] = Option(
                judgement.strategy, judgement.input_layouts, judgement.output_layouts
            )
        out = _given_out(vertex, judged)
        if out is not None:
            outs[vertex] = out
    return given, outs


def _is_given(vertex: Vertex) -> bool:
    """Whether users gave a strategy or layouts; those of a Cast are ignored."""
    if _attribute(vertex, "in_layout") is not None:
        return True
    return _attribute(vertex, "in_strategy") is not None and vertex.op != "Cast"


def _given_out(vertex: Vertex, judged: Judged | None) -> Strategy | None:
    """The ``out_strategy`` that users gave, with or without a strategy; that of layouts too."""
    if judged is None:
        return None
    if judged.wanted.out_layout is not None and judged.judgement.verdict == "legal":
        return tuple(layout.splits for layout in judged.judgement.output_layouts)
    return strategy_of("out_strategy", _attribute(vertex, "out_strategy"))


def _attribute(vertex: Vertex, key: str) -> object:
    """An attribute of the primitive, where MindSpore looks for what users want."""
    block = vertex.node.primitive_attributes if vertex.node is not None else None
    return block[key] if block is not None and key in block else None


def _is_alone(analysis: Analysis, vertex: Vertex) -> bool:
    """Whether an operator takes no part: stand-alone, or its operands are nested."""
    if vertex.node is None or vertex.call is None or vertex.op == DATASET:
        return False
    if primitive(vertex.node) == "Reshape":
        return False
    if is_nested(vertex.node):
        return True
    return judge(vertex.call.call, None, analysis.operators).kind == "stand-alone"

"""A dump with other strategies: what a plan looks like to everything that reads dumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.values import Attributes, Sequence, Value, Word
from irtool.operators.call import Strategy

_STRATEGIES = ("in_strategy", "strategy", "out_strategy", "gen_strategy")


def with_strategies(
    dump: Dump,
    strategies: Mapping[Node, Strategy],
    out_strategies: Mapping[Node, Strategy] | None = None,
) -> Dump:
    """The dump with these strategies in place of those that its nodes have.

    Args:
        dump: usually ``step_parallel_begin``.
        strategies: by node of this dump; other nodes keep theirs.
        out_strategies: likewise; a node with a new strategy and none here has no out_strategy.

    Returns:
        A new dump; ``irtool.dumps`` prints it as MindSpore would have.
    """
    outs = out_strategies or {}

    def node_of(node: Node) -> Node:
        if node not in strategies:
            return node if node.graph is None else replace(node, graph=None)
        return _with(node, strategies[node], outs.get(node))

    def item_of(item: Item | Graph) -> Item | Graph:
        if not isinstance(item, Graph):
            return item
        items = tuple(node_of(inner) if isinstance(inner, Node) else inner for inner in item.items)
        return replace(item, items=items, dump=None)

    return replace(dump, items=tuple(item_of(item) for item in dump.items))


def _with(node: Node, strategy: Strategy, out: Strategy | None) -> Node:
    entries: list[tuple[str, Value]] = [("in_strategy", strategy_value(strategy))]
    if out is not None:
        entries.append(("out_strategy", strategy_value(out)))
    kept = _without_strategies(node.primitive_attributes)
    return replace(node, primitive_attributes=kept, strategy=Attributes(tuple(entries)), graph=None)


def _without_strategies(block: Attributes | None) -> Attributes | None:
    """What the user gave goes: the new strategy is the one in effect."""
    if block is None or not any(key in block for key in _STRATEGIES):
        return block
    entries = tuple(entry for entry in block.entries if entry[0] not in _STRATEGIES)
    if not entries:
        return None
    return Attributes(entries, block.label, block.separator, block.spaced)


def strategy_value(strategy: Strategy) -> Sequence:
    """``((4, 2), (2, 1))`` as the dump writes it."""
    return Sequence(tuple(Sequence(tuple(Word(str(n)) for n in row)) for row in strategy))

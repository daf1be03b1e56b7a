"""STR008: a user's strategy that a search overrode."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.values import Attributes
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule


class StrategyOverridden(NodeRule):
    """A strategy on the primitive that is not the one in effect."""

    code = "STR008"
    name = "strategy-overridden"
    severity = "warning"
    summary = "A strategy that was given is not the one in effect"
    explanation = """
        With `search_mode="recursive_programming"` MindSpore's search ignores what `shard()` says
        and puts its own strategy in its place, silently. `MS_INTERFERED_SAPP=1` makes it keep what
        was configured; `sharding_propagation` keeps it always.
        """
    hint = "set MS_INTERFERED_SAPP=1, or search by sharding_propagation"
    bad = """
        %8(x) = PrimFunc_MatMul(%6, %7, …) primitive_attrs: {in_strategy: ((2, 1), (1, 4))}
            {in_strategy: ((8, 1), (1, 1))}
        """
    good = """
        %8(x) = PrimFunc_MatMul(%6, %7, …) primitive_attrs: {in_strategy: ((2, 1), (1, 4))}
            {in_strategy: ((2, 1), (1, 4))}
        """
    cases = ("tests/linting/evidence/flatten_reshape.begin",)
    dumps = ("begin", "end", "validate")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.strategy is None:
            return
        given, kept = _strategy(node.primitive_attributes), _strategy(node.strategy)
        if given is not None and kept is not None and given != kept:
            yield self.finding(f"{node.op}: strategy {given} was given, {kept} is in effect", node)


def _strategy(block: Attributes | None) -> object:
    if block is None:
        return None
    for key in ("in_strategy", "strategy"):
        if key in block:
            return _plain(block[key])
    return None


def _plain(value: object) -> object:
    """Lists and tuples alike, so that only numbers make a difference."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)  # type: ignore[misc]  # nested numbers
    return value

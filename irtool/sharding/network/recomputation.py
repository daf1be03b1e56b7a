"""What of the forward pass runs again in the backward pass, because its cell is recomputed.

``Cell.recompute()`` keeps no results of a cell's operators: those that a gradient reads are
computed again from what the cell was given, and with them all that leads there inside of recomputed
cells, the communication that the parallel pass inserted included.  A cell's own result is kept.

Source: the copies in validate dumps of MindSpore 2.7 (``duplicated: Bool(1)``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node, Source
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.edges import Redistribution
from irtool.sharding.network.gradients import Differentiated
from irtool.sharding.network.graphs import Use
from irtool.sharding.network.sharded_nodes import TIES, primitive

SCOPE = "recompute_"
"""What the scope of a cell begins with that is recomputed."""

ATTRIBUTE = "recompute"
"""Says of one operator whether it is computed again, whatever its cell says."""

COMMUNICATES_AGAIN = "recompute_comm_op"
"""Says of one operator whether the communication around it runs again (``mp_comm_recompute``)."""

RING = "NeighborExchange"
"""Passes keys and values round between the steps of an attention."""

SUM = "AllReduce"
"""Adds up what ranks have; inside of an operator where it follows none of its results."""

KEPT = frozenset({"DropoutGenMask", "Load", "Send", "Receive", "send", "receive"})
"""Operators that never run twice."""


@dataclass(slots=True)
class Recomputed:
    """What runs again.

    ``nodes``: operators. ``behind``: operators the communication behind which runs again.
    ``chains``: what is redistributed again, by its consumer, the operand, and the tuple's item.
    ``unmeasured``: operators of which nobody knows what their gradient reads.
    """

    nodes: set[Node] = field(default_factory=set[Node])
    behind: set[Node] = field(default_factory=set[Node])
    chains: set[Use] = field(default_factory=set[Use])
    unmeasured: set[str] = field(default_factory=set[str])


def recomputed(
    analysis: Analysis, gradients: Differentiated, redistributions: Iterable[Redistribution]
) -> Recomputed:
    """What of the forward pass runs again.

    Args:
        analysis: the network.
        gradients: what of it has a gradient.
        redistributions: what is inserted between operators.
    """
    again = Recomputed()
    if not any(in_recomputed_cell(node) for node in analysis.network.inputs):
        return again
    chains: dict[Use, Redistribution] = {}
    for item in redistributions:
        edge = item.edge
        if item.operators:
            chains[Use(edge.consumer, edge.position, edge.item)] = item
    search = _Search(analysis, chains, again)
    by_node: dict[Node, set[int]] = {}
    for use in gradients.uses:
        by_node.setdefault(use.node, set()).add(use.position)
    for node, positions in by_node.items():
        if node in gradients.nodes:
            search.gradient_of(node, positions)
    return again


def in_recomputed_cell(node: Node) -> bool:
    """Whether a node's cell is recomputed.

    Args:
        node: whose scope tells it.
    """
    return (node.scope or "").startswith(SCOPE)


def runs_again(node: Node) -> bool:
    """Whether an operator's result is not kept, but computed again for the backward pass.

    Args:
        node: whose own ``recompute`` attribute wins over its cell's.
    """
    if primitive(node) in KEPT:
        return False
    said = node.attribute(ATTRIBUTE)
    return said if isinstance(said, bool) else in_recomputed_cell(node)


def communicates_again(node: Node) -> bool:
    """Whether what is communicated for an operator is not kept."""
    return in_recomputed_cell(node) and node.attribute(COMMUNICATES_AGAIN) is not False


def _stays(chain: Redistribution, node: Node) -> bool:
    """Whether what is inserted before an operator, or in its place, is kept.

    ``mp_comm_recompute=False`` keeps all that is inserted, slices and Reshapes too.
    """
    if in_recomputed_cell(node) and node.attribute(COMMUNICATES_AGAIN) is False:
        return True
    communicates = any(step.is_collective for step in chain.operators or ())
    return communicates and not communicates_again(node)


@dataclass(slots=True)
class _Search:
    """Goes back from what gradients read as far as results are not kept."""

    analysis: Analysis
    chains: dict[Use, Redistribution]
    found: Recomputed
    seen: set[int] = field(default_factory=set[int])

    def gradient_of(self, node: Node, positions: set[int]) -> None:
        """What the gradients of some operands of a node read."""
        name = primitive(node)
        measured = operator_of(name).gradients
        if measured is None:
            if not any(name in known for known in (PLUMBING, VIRTUAL, COMMUNICATION)):
                self.found.unmeasured.add(name)
            return
        for gradient in measured:
            if gradient.of in positions:
                for operand in gradient.operands:
                    self.operand(node, operand)
                if gradient.results:
                    self.node(node)

    def operand(self, node: Node, position: int) -> None:
        """One operand of a node, as it is after what is inserted before the node."""
        inputs = self.analysis.network.inputs[node]
        if position >= len(inputs):
            return
        source = inputs[position]
        items: tuple[Source, ...] = (source,)
        if isinstance(source, Node) and primitive(source) in TIES:
            items = self.analysis.network.inputs[source]
        for item, value in enumerate(items):
            use = Use(node, position, item)
            chain = self.chains.get(use)
            if chain is not None and not chain.replaces:
                if _stays(chain, node):
                    continue
                self.found.chains.add(use)
            self.value(value)

    def value(self, source: Source | None) -> None:
        """A value, and what it was made of."""
        network = self.analysis.network
        if source is None or id(source) in self.seen:
            return
        self.seen.add(id(source))
        # What a cell that stays a graph of its own is given, and what it returns, is kept.
        if not isinstance(source, Node) or network.called(source) is not None:
            return
        if primitive(source) in ("TupleGetItem", "Depend"):
            self.value(network.first(source))
        elif primitive(source) in TIES:
            for item in network.inputs[source]:
                self.value(item)
        else:
            self.result(source)

    def result(self, node: Node) -> None:
        """What an operator hands on, after the communication behind it."""
        judged = self.analysis.judged.get(node)
        is_behind = judged is not None and judged.judgement.collectives
        if is_behind and not self._communicates_inside(node):
            if not communicates_again(node):
                return
            self.found.behind.add(node)
        self.node(node)

    def _communicates_inside(self, node: Node) -> bool:
        """Whether an operator is replaced by steps with communication between them.

        They know nothing of what was said of the operator: all run again with the cell.  A norm
        whose normalised dimensions are split sums up its squares before it divides by their root.
        """
        judged = self.analysis.judged.get(node)
        if judged is None:
            return False
        judgement = judged.judgement
        return any(
            item.op == RING or (judgement.replaced and item.op == SUM and item.output is None)
            for item in judgement.collectives
        )

    def node(self, node: Node) -> None:
        """An operator that runs again, with all that it needs."""
        steps = in_recomputed_cell(node) and self._communicates_inside(node)
        if node in self.found.nodes or not (steps or runs_again(node)):
            return
        chain = self.chains.get(Use(node, 0))
        if chain is not None and chain.replaces:
            # What stands in the place of a Reshape is kept from its last communication on.
            if _stays(chain, node):
                return
            self.found.chains.add(Use(node, 0))
        self.found.nodes.add(node)
        if steps:
            self.found.behind.add(node)
        for position in range(len(self.analysis.network.inputs[node])):
            self.operand(node, position)

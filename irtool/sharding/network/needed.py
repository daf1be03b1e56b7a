"""What of the forward pass is needed, where a network hands on gradients only.

Who takes gradients and throws the result away (``GradOperation`` without the loss) leaves nothing
of the forward pass but what gradients are computed from: the compiler drops the rest, and what the
parallel pass inserted there.

Source: validate dumps of MindSpore 2.7 of such networks.
"""

from __future__ import annotations

from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.operators.judgement import Collective
from irtool.sharding.network.analysis import Analysis, Judged, item_of
from irtool.sharding.network.gradients import Differentiated, gradient_reads
from irtool.sharding.network.graphs import Network, Use
from irtool.sharding.network.sharded_nodes import primitive

EFFECTS = ("side_effect_mem", "side_effect_io")
"""Attributes of operators that run whoever reads their result."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What of the forward pass runs.

    ``nodes``: whose result is read; None where all of it is needed. ``operands``: uses whose
    operand a gradient reads, as it is after what is inserted before it.
    """

    nodes: frozenset[Node] | None = None
    operands: frozenset[Use] = frozenset()

    def computes(self, node: Node) -> bool:
        """Whether an operator runs: its result is read, or all of the forward pass is needed."""
        return self.nodes is None or node in self.nodes

    def brings(self, use: Use) -> bool:
        """Whether what is inserted before an operand runs."""
        return self.computes(use.node) or Use(use.node, use.position) in self.operands


def launched(analysis: Analysis, judged: Judged) -> tuple[Collective, ...]:
    """The collectives of an operator without those behind results that nobody reads.

    Where each result has its own, the parallel pass puts one behind each, and the compiler then
    drops what is not read.  Where there is one alone, the pass puts it behind the result that is
    read, whichever that is (the index or the value of ArgMinWithValue).

    Args:
        analysis: that knows who reads the results.
        judged: the operator, with the collectives of all its results.
    """
    collectives = judged.judgement.collectives
    if len({item.output for item in collectives}) < 2:
        return collectives
    users = [use.node for use in analysis.network.users_of(judged.node)]
    if not users or any(primitive(user) != "TupleGetItem" for user in users):
        return collectives
    read = {item_of(user) for user in users}
    return (
        collectives
        if -1 in read
        else tuple(item for item in collectives if item.output is None or item.output in read)
    )


def needed(analysis: Analysis, gradients: Differentiated) -> Needed:
    """What of the forward pass is needed.

    Args:
        analysis: the network.
        gradients: what of it has a gradient.
    """
    network = analysis.network
    if analysis.context.stages > 1 or not _drops_result(network):
        return Needed()
    search = _Search(network)
    operands: set[Use] = set()
    for use in gradients.uses:
        if use.node not in gradients.nodes:
            continue
        read, reads_result = gradient_reads(primitive(use.node), use.position)
        inputs = network.inputs[use.node]
        for place in range(len(inputs)) if read is None else read:
            if place < len(inputs):
                operands.add(Use(use.node, place))
                search.value(inputs[place])
        if reads_result:
            search.value(use.node)
    for node in network.forward:
        if any(node.attribute(name) is True for name in EFFECTS):
            search.value(node)
    search.run()
    return Needed(frozenset(search.found), frozenset(operands))


def _drops_result(network: Network) -> bool:
    """Whether nobody reads the result of what is differentiated, and no branch hides who does."""
    applied: list[Node] = []
    for node in network.inputs:
        if primitive(node) in ("Switch", "SwitchLayer", "Shard", "Partial"):
            return False
        callee = network.callee.get(node)
        if isinstance(callee, Node) and primitive(callee) == "J":
            graph = network.first(callee)
            if not isinstance(graph, Graph) or network.calls.get(graph.name):
                return False  # it runs beside its gradient, too
            applied.append(node)
    for node in applied:
        for use in network.users_of(node):
            name = primitive(use.node)
            if name == "TupleGetItem" and item_of(use.node) == 1:
                continue
            if name == "TupleGetItem" and not network.users_of(use.node):
                continue
            if name != "UpdateState":
                return False
    return bool(applied)


@dataclass(slots=True)
class _Search:
    """Goes back from values that are read to all that they are made of."""

    network: Network
    found: set[Node] = field(default_factory=set[Node])
    seen: set[int] = field(default_factory=set[int])
    todo: list[Source] = field(default_factory=list[Source])

    def value(self, source: Source | None) -> None:
        if source is not None and id(source) not in self.seen:
            self.seen.add(id(source))
            self.todo.append(source)

    def run(self) -> None:
        network = self.network
        while self.todo:
            source = self.todo.pop()
            if isinstance(source, GraphParameter):
                place = network.index_of(source)
                if place is not None:
                    graph, index = place
                    for call in network.calls.get(graph.name, ()):
                        self.value(network.argument(call, index))
            if isinstance(source, Graph) and source.result is not None:
                self.value(source.result)
            if not isinstance(source, Node):
                continue
            self.found.add(source)
            called = network.called(source)
            if called is not None:
                self.value(called)
                continue
            inputs = network.inputs[source]
            if primitive(source) == "Depend":
                inputs = inputs[:1]
            for item in (*inputs, network.callee.get(source)):
                self.value(item)

"""Which gradients of a step are the same value, so that what communicates them is done once.

The compiler merges equal operators after the gradients are made (its common subexpression
elimination).  Two gradients are the same value where the same operators, with the same constants
and weights and without any other value of the forward pass, lead to them from the gradient of the
loss: the mean of a micro-batch's loss and that of the next are given the same gradient, and its
AllReduce runs once.

Source: validate dumps of MindSpore 2.7 under gradient accumulation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Source
from irtool.ir.operators import PLUMBING
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, item_of
from irtool.sharding.network.edges import Edge, Redistribution
from irtool.sharding.network.gradients import (
    Differentiated,
    is_constant,
    sharded_graph,
    values_read,
)
from irtool.sharding.network.graphs import Port, Use
from irtool.sharding.network.sharded_nodes import TIES, primitive
from irtool.sharding.network.weights import behind
from irtool.sharding.redistribution import RedistributionStep

Chains = Mapping[Use, tuple[RedistributionStep, ...]]
"""What is inserted before a use: the operand's position and the item of it that it is before."""


@dataclass(slots=True)
class GradientValues:
    """Numbers of gradients: those with equal numbers are the same value.

    ``ports``: numbers that are known, by identity of the port. ``numbers``: by what a gradient is
    made of. ``tied``: numbers of tuples of gradients that are all the same, with that of one.
    """

    analysis: Analysis
    gradients: Differentiated
    chains: Chains
    ports: dict[int, int] = field(default_factory=dict[int, int])
    numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    tied: dict[int, int] = field(default_factory=dict[int, int])

    def of(self, port: Port) -> int:
        """The number of the gradient that comes back to a value."""
        todo = [port]
        entered: set[int] = set()
        while todo:
            key = id(todo[-1])
            links = self.gradients.behind.get(key, ())
            missing: list[Port] = []
            # What is made from values of the forward pass is compared with nothing else.
            if not any(self._is_alone(use) for _, use in links):
                missing = [later for later, _ in links if id(later) not in self.ports]
            else:
                links = ()
            if key in self.ports or (missing and key in entered):
                self.ports.setdefault(key, self._number(("of", key)))
                todo.pop()
            elif missing:
                entered.add(key)
                todo += missing
            else:
                self.ports[key] = self._sum([self._part(*link) for link in links], key)
                todo.pop()
        return self.ports[id(port)]

    def at(self, use: Use) -> int:
        """The number of the gradient of an operand, as the operator behind it hands it back."""
        if self._read(use) is None:
            return self._number(("at", use))
        return self._through(use, self.of(use.node))

    def _number(self, made_of: Hashable) -> int:
        return self.numbers.setdefault(made_of, len(self.numbers))

    def _sum(self, parts: list[int], key: int) -> int:
        if not parts:
            return self._number(("of", key))
        return parts[0] if len(parts) == 1 else self._number(("sum", *sorted(parts)))

    def _is_alone(self, use: Use) -> bool:
        """Whether a gradient that comes through a use is compared with no other."""
        network, node = self.analysis.network, use.node
        graph = node.graph if node.is_return else network.called(node)
        graph = graph or sharded_graph(network, node)
        if graph is not None and (node.is_return or network.called(node)):
            return len(network.calls.get(graph.name, ())) > 1
        return graph is not None or self._read(use) is None

    def _part(self, later: Port, use: Use) -> int:
        """What comes back through one use; ``later``: where it comes back from."""
        number = self.ports[id(later)]
        if later is not use.node or use.node.is_return:
            return number  # a call, or a Return: the same value
        number = self._through(use, number)
        for step in reversed(self.chains.get(use, ())):
            number = self._number(("gradient of", step, number))
        return number

    def _through(self, use: Use, number: int) -> int:
        """What an operator makes of the gradient of its result for one operand."""
        node, name = use.node, primitive(use.node)
        entry = operator_of(name)
        if name in TIES:
            return self.tied.get(number, self._number(("item", use.position, number)))
        if name == "TupleGetItem":
            return self._number(("among", item_of(node), number))
        if name in PLUMBING:
            return number
        if entry.is_("tuples") and entry.is_("adds"):
            tied = self._number(("each", number))
            self.tied[tied] = number
            return tied
        if (entry.is_("adds") or (entry.is_("subtracts") and use.position == 0)) and (
            self._passes_on(use)
        ):
            return number
        judged = self.analysis.judged.get(node)
        how: Hashable = None
        if judged is not None:
            judgement = judged.judgement
            how = judgement.input_slices, judgement.output_slices, judgement.collectives
        constants = tuple(_constant(source) for source in self.analysis.network.inputs[node])
        read = self._read(use)
        return self._number(("through", name, use.position, how, constants, read, number))

    def _read(self, use: Use) -> tuple[int, ...] | None:
        """Identities of the weights that a gradient reads; None where it reads anything else.

        Weights are the same value all through a step, and other values are taken for different.
        """
        values = values_read(self.analysis, use)
        if values is None:
            return None
        read: list[int] = []
        for value in values:
            if not is_constant(value):
                weight = behind(self.analysis, value)
                if weight is None:
                    return None
                read.append(id(weight))
        return tuple(read)

    def _passes_on(self, use: Use) -> bool:
        """Whether an operand is as large as the result, so that their gradients are the same."""
        result, operands = use.node.output_type, use.node.input_types
        operand = operands[use.position] if use.position < len(operands) else None
        if result is None or operand is None or len(use.node.operands) > 2:
            return False
        return result.tensors == operand.tensors


def _constant(source: Source) -> Hashable:
    """A constant operand as it is compared; None for what is computed at run time."""
    if not is_constant(source):
        return None
    text = str(source)
    return id(source) if "..." in text else text


def chains_of(redistributions: Iterable[Redistribution]) -> Chains:
    """What is inserted before each use, by the tuple's item where it is one of a tuple.

    Args:
        redistributions: of the network; those that insert nothing, or what nobody knows, are left
            out.
    """
    chains: dict[Use, tuple[RedistributionStep, ...]] = {}
    for item in redistributions:
        if item.operators:
            chains[use_of(item.edge)] = item.operators
    return chains


def use_of(edge: Edge) -> Use:
    """The use that an edge ends in: that by the MakeTuple before the consumer where there is one.

    Args:
        edge: between a producer and its consumer.
    """
    if edge.tie is not None:
        return Use(edge.tie, edge.item)
    return Use(edge.consumer, edge.position)

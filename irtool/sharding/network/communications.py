"""Every communication of a step of one stage, forward and backward, as validate will hold them.

What the parallel pass inserts on the way forward has a gradient of its own: an AllReduce for an
AllReduce, a ReduceScatter for an AllGather and the other way round, an AlltoAll for an AlltoAll, a
Receive for a Send (the gradients of these primitives, as validate dumps show them).  Weights add
the sums of their gradients, and with optimizer parallel what gathers them.  Counts are launches of
a step before the backend fuses any.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal, TypeAlias

from irtool.ir.collectives import collective
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING, POINT_TO_POINT
from irtool.ir.types import BITS
from irtool.operators.judgement import Collective
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged, real_source
from irtool.sharding.network.edges import Edge, Redistribution
from irtool.sharding.network.equal_values import representatives
from irtool.sharding.network.gradient_values import GradientValues, chains_of, use_of
from irtool.sharding.network.gradients import Differentiated
from irtool.sharding.network.graphs import Network, Use
from irtool.sharding.network.merged_gathers import (
    as_far_as_the_first,
    merged_gathers,
    operand_of,
)
from irtool.sharding.network.needed import Needed, launched, needed
from irtool.sharding.network.received import HANDED_OVER, SEND, SLICE
from irtool.sharding.network.recomputation import Recomputed
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.stages import serves_stage
from irtool.sharding.network.states import ParameterReport
from irtool.sharding.network.weights import behind, operators_behind, sums_by_server
from irtool.sharding.network.weights_across_stages import is_reached

Phase: TypeAlias = Literal["forward", "backward", "optimizer", "other"]

GRADIENT_OF: Mapping[str, str] = {
    "AllReduce": "AllReduce",
    "AllGather": "ReduceScatter",
    "ReduceScatter": "AllGather",
    "AlltoAll": "AlltoAll",
    "NeighborExchange": "NeighborExchange",
    "NeighborExchangeV2": "NeighborExchangeV2Grad",
    "Send": "Receive",
    "Receive": "Send",
}
"""What the backward pass communicates for a communication of the forward pass."""


HIDES: Mapping[str, str] = {
    "Morph": "what the function of Morph communicates is not in this dump: it",
    "Switch": "what the gradients of branches, and what stands around them, exchange",
    "Custom": "what sums up the gradients of weights of Custom, whose gradient is the user's,",
}
"""Operators that hide communications, and what is said of these."""

FOLDED = "AllReduce"
"""What is computed when the network is compiled where it sums up a constant."""

SPARSE = "bprop_return_sparse"
"""Attribute of a look-up whose gradient holds the rows that were looked up only."""

FORWARD_OF = "forward of "
"""What the reason begins with of a communication that an operator brings with it."""


USER_CODE = "user code"
"""The reason of a collective that the network's own code calls."""

AGAIN = "recomputed: "
"""What the reason begins with of a communication that runs again for the backward pass."""


@dataclass(frozen=True, slots=True)
class StepCommunication:
    """Equal communications of a step of one stage, seen from one rank.

    Attributes:
        op: the collective or transfer.
        ranks: who takes part; of a transfer sender and receiver.
        bytes: what one rank puts in each time; null where a size is not known.
        phase: when it runs.
        count: launches a step, before fusion.
        why: what it is there for; begins with "recomputed" for what recomputed cells do again.
    """

    op: str
    ranks: tuple[int, ...]
    bytes: int | None
    phase: Phase
    count: int
    why: str


def merged(items: Iterable[StepCommunication]) -> tuple[StepCommunication, ...]:
    """Equal communications counted together, in the order in which they first come.

    Equal are those with the same collective, ranks, bytes, phase and reason.

    Args:
        items: in any order; those that never run (a count of 0) are dropped.
    """
    counts: dict[Hashable, tuple[StepCommunication, int]] = {}
    for item in items:
        if item.count:
            key = (item.op, item.ranks, item.bytes, item.phase, item.why)
            first, count = counts.get(key, (item, 0))
            counts[key] = first, count + item.count
    return tuple(
        item if item.count == count else replace(item, count=count)
        for item, count in counts.values()
    )


def instances(network: Network) -> dict[str, int]:
    """How often each graph runs in a step, by its name: once, or as often as others call it.

    A graph that is handed on as a value (differentiated, a branch, a loop's body) counts once.

    Args:
        network: whose graphs are counted.

    Returns:
        Launches a step by name of a graph, at least 1; a graph that calls itself counts as called
        once.
    """
    counts: dict[str, int] = {}

    def count(name: str, above: frozenset[str]) -> int:
        if name in above:
            return 1
        if name not in counts:
            calls = [call.graph.name for call in network.calls.get(name, ()) if call.graph]
            counts[name] = sum(count(caller, above | {name}) for caller in calls) or 1
        return counts[name]

    for graph in network.dump.graphs:
        count(graph.name, frozenset())
    return counts


@dataclass(frozen=True, slots=True)
class Inserted:
    """What the parallel pass inserts, as far as it is known when communications are counted.

    ``others``: communications that stand nowhere in the network: the norm of all gradients, results
    that are handed to all stages.
    """

    redistributions: tuple[Redistribution, ...]
    weights: tuple[ParameterReport, ...]
    others: tuple[StepCommunication, ...]


@dataclass(slots=True)
class _Counter:
    """The state of one count: which nodes have a gradient, and how often graphs run.

    ``same``: by identity of an operator that equals another the one of both that is left.
    ``summed``: what is communicated of which gradients so far: of equal ones once. ``shared``:
    nodes that compute for no one micro-batch, nor does anything that they are made of.
    """

    analysis: Analysis
    gradients: Differentiated
    instances: dict[str, int]
    again: Recomputed
    values: GradientValues
    needed: Needed
    same: Mapping[int, Node]
    own: dict[Node, bool] = field(default_factory=dict[Node, bool])
    summed: set[Hashable] = field(default_factory=set[Hashable])
    used: dict[Node, set[int]] = field(default_factory=dict[Node, set[int]])
    shared: set[Node] = field(default_factory=set[Node])

    def is_own(self, node: Node) -> bool:
        """Whether the own stage computes a node at all."""
        foreign, judged = self.analysis.foreign, self.analysis.judged
        if not foreign or node.is_return:
            return True
        if node in foreign:
            return False
        own = self.own.get(node)
        if own is None:
            own = serves_stage(self.analysis.network, judged, foreign, node)
            self.own[node] = own
        return own

    def gradient_of(self, judged: Judged, item: Collective) -> tuple[bool, bool]:
        """Whether what an operator communicates has a gradient, and whether that is constant."""
        gradients, node = self.gradients, judged.node
        if item.output is not None:
            constant = id(node) in gradients.constant and not _waits(judged)
            return node in gradients.nodes, constant
        if not self.used:
            for use in gradients.uses:
                self.used.setdefault(use.node, set()).add(use.position)
        places = self.used.get(node, ())
        tensors = {judged.call.slots.tensor(place, 0) for place in places}
        return item.input in tensors and node in gradients.nodes, False

    def is_first(self, node: Node, item: Hashable) -> bool:
        """Whether a communication of a gradient was not met before; then it is from now on.

        In a pipeline those of different micro-batches stay: what orders the micro-batches of a
        stage parts them.

        Args:
            node: the operator that it is behind or before.
            item: what tells equal ones.
        """
        pipelined = self.analysis.context.stages > 1
        key = (item, node.graph, self._micro_of(node)) if pipelined else item
        known = key in self.summed
        self.summed.add(key)
        return not known

    def _micro_of(self, node: Node) -> int | None:
        """The micro-batch that a node computes for: its own word, or that of what it is made of."""
        todo, seen = [node], {node}
        while todo:
            current = todo.pop()
            if current.micro is not None and current.attribute(HANDED_OVER) is None:
                return current.micro
            for source in self.analysis.network.inputs[current]:
                if isinstance(source, Node) and source not in seen and source not in self.shared:
                    seen.add(source)
                    todo.append(source)
        self.shared |= seen
        return None

    def runs(self, node: Node) -> int:
        return self.instances.get(node.graph.name, 1) if node.graph is not None else 1

    def both(
        self, op: str, ranks: tuple[int, ...], size: int | None, node: Node, why: str,
        *, count: int = 1, gradient: bool, constant: bool = False,
        again: bool = False, once: bool = False,
    ) -> Iterator[StepCommunication]:  # fmt: skip
        """A forward communication of a node, and that of its gradient; and the copy of it."""
        count *= 1 if once else self.runs(node)
        yield StepCommunication(op, ranks, size, "forward", count, why)
        if again:
            what = why.removeprefix(FORWARD_OF)
            yield StepCommunication(op, ranks, size, "backward", count, f"{AGAIN}{what}")
        back = GRADIENT_OF.get(op)
        if gradient and back is not None and not (constant and back == FOLDED):
            gradient_size = size
            if size is not None and op == "AllGather":
                gradient_size = size * len(ranks)
            elif size is not None and op == "ReduceScatter":
                gradient_size = size // len(ranks)
            yield StepCommunication(
                back,
                ranks,
                gradient_size,
                "backward",
                count,
                f"gradient of {why.removeprefix(FORWARD_OF)}",
            )


Owner: TypeAlias = Node | Use | str | None
"""What brings a communication: an operator or collective, an edge, a weight (its name); or none."""


@dataclass(frozen=True, slots=True)
class StepCommunications:
    """The communications of a step, equal ones counted together.

    ``unknown``: sentences that say which others there may be; empty where these are all.
    ``owned``: the same ones by what brings them. ``merged``: the operator that is left of each that
    the compiler merges away, by the identity of that.
    """

    items: tuple[StepCommunication, ...] = ()
    unknown: tuple[str, ...] = ()
    owned: Mapping[Owner, tuple[StepCommunication, ...]] = field(
        default_factory=dict[Owner, tuple[StepCommunication, ...]]
    )
    merged: Mapping[int, Node] = field(default_factory=dict[int, Node])


def communications(
    analysis: Analysis, gradients: Differentiated, again: Recomputed, inserted: Inserted
) -> StepCommunications:
    """All communications of a step of the rank's stage.

    Args:
        analysis: a network whose operators are judged.
        gradients: what of the network has a gradient; nothing where it holds none.
        again: what of the forward pass runs again.
        inserted: redistributions, weights, and what else the pass inserts.

    Returns:
        The communications, and what is not known of them.
    """
    unknown = tuple(_not_counted(analysis, again, inserted.redistributions))
    equal = representatives(analysis)
    counter = _Counter(
        analysis,
        gradients,
        instances(analysis.network),
        again,
        GradientValues(analysis, gradients, chains_of(inserted.redistributions)),
        needed(analysis, gradients),
        equal,
    )
    owned: dict[Owner, list[StepCommunication]] = {}
    for owner, item in (
        *_of_network(counter),
        *_of_operators(counter),
        *_of_redistributions(counter, inserted.redistributions),
        *_of_weights(counter, inserted.weights),
        *((None, item) for item in inserted.others),
    ):
        if len(item.ranks) > 1:
            owned.setdefault(owner, []).append(item)
    items = merged(item for part in owned.values() for item in part)
    return StepCommunications(
        items, unknown, {owner: merged(part) for owner, part in owned.items()}, equal
    )


def _not_counted(
    analysis: Analysis, again: Recomputed, redistributions: Iterable[Redistribution]
) -> Iterator[str]:
    """Say which communications of a step this dump does not show, and note it once each."""
    not_shown = list(_not_shown(analysis))
    if again.unmeasured:
        names = ", ".join(sorted(again.unmeasured))
        message = f"what the gradient of {names} reads was not measured"
        not_shown.append((f"{message}: what is recomputed for it alone is not counted", None))
    for message, node in not_shown:
        analysis.note(message, node)
        yield message
    for node, judged in analysis.judged.items():
        # What takes the operator's place communicates, and nobody worked out what.
        if node not in analysis.foreign and judged.judgement.replaced and judged.judgement.unsure:
            yield f"{judged.call.call.op}: {judged.judgement.unsure}"
            break
    unknown = [item for item in redistributions if item.operators is None]
    own = sum(item.edge.consumer not in analysis.foreign for item in unknown)
    if own:
        edges = "an edge" if own == 1 else f"{own} edges"
        yield f"what is redistributed on {edges} is not known"


def _not_shown(analysis: Analysis) -> Iterator[tuple[str, Node | None]]:
    """What of the network itself hides communications: a sentence, and where it stands."""
    network = analysis.network
    takes = [node for node in network.applying("J") if node not in analysis.foreign]
    counted = "is not among the communications of a step"
    if len(takes) > 1:
        message = "what several gradients share of their forward passes is not known: it is counted"
        yield f"{message} once", takes[1]
    if sums_by_server(analysis):
        yield f"what AdaSum exchanges between servers {counted}", None
    for name, message in HIDES.items():
        hiding = (node for node in network.applying(name) if node not in analysis.foreign)
        first = next(hiding, None)
        if first is not None and (name != "Switch" or analysis.differentiates):
            yield f"{message} {counted}", first


def _of_network(counter: _Counter) -> Iterator[tuple[Node, StepCommunication]]:
    """What stands in the network itself: transfers between stages, the user's own collectives."""
    analysis = counter.analysis
    for node in analysis.network.inputs:
        if node in analysis.foreign or node not in analysis.network.forward:
            continue
        item = collective(node, analysis.context.devices)
        if item is None or item.is_virtual:
            continue
        ranks, size, why, once = item.ranks or (), item.bytes, USER_CODE, False
        if item.op in POINT_TO_POINT:
            once = _hands_over_weight(analysis, node)
            if once and analysis.foreign and not is_reached(analysis.network, node):
                continue  # the pass that cuts the stages apart does not find it
            own = analysis.context.rank
            ranks = () if item.peer is None else tuple(sorted((own, item.peer)))
            why = "transfer between stages"
            size = size if once else _handed_over(analysis, node, size)
        pair = counter.both(
            item.op, ranks, size, node, why, gradient=node in counter.gradients.nodes,
            again=node in counter.again.nodes, once=once,
        )  # fmt: skip
        yield from ((node, communication) for communication in pair)


def _hands_over_weight(analysis: Analysis, transfer: Node) -> bool:
    """Whether a transfer hands a weight from stage to stage: not each micro-batch's result."""
    handed = analysis.network.first(transfer)
    if handed is None:
        return False
    source, _ = real_source(analysis, handed)
    return behind(analysis, source) is not None


def _handed_over(analysis: Analysis, transfer: Node, said: int | None) -> int | None:
    """Bytes of what a device hands to another stage, or is handed.

    Where one dump holds all stages, a Send holds what is sent as it is before it is cut, and a
    Receive a number that stands for it: what is sent lies as who computes it leaves it.

    Args:
        analysis: a network whose operators are judged.
        transfer: the Send or Receive.
        said: what the transfer itself says.
    """
    sender = transfer if transfer.op == "Send" else analysis.network.first(transfer)
    if not isinstance(sender, Node) or primitive(sender) != "Send":
        return said
    if sender.attribute(SLICE) is not None:
        return said
    handed = analysis.network.first(sender)
    source, item = (None, 0) if handed is None else real_source(analysis, handed)
    judged = analysis.judged.get(source) if isinstance(source, Node) else None
    layout = None if judged is None else judged.output_layout(max(item, 0))
    if layout is None:
        return None
    return tensor_bytes(edge_dtype(sender, 0, 0), layout.slice_shape)


def _of_operators(counter: _Counter) -> Iterator[tuple[Node, StepCommunication]]:
    """What operators bring with them."""
    for node, judged in counter.analysis.judged.items():
        if node in counter.analysis.foreign:
            continue
        for item in launched(counter.analysis, judged):
            dtype = item.dtype_in(judged.call.call)
            size = None if item.shape is None else tensor_bytes(dtype, item.shape)
            gradient, constant = counter.gradient_of(judged, item)
            if gradient and item.output is not None:
                value = counter.values.of(node), item.output
                gradient = counter.is_first(node, (item.op, item.ranks, item.reduce, value))
            pair = counter.both(
                item.op, item.ranks, size, node, f"{FORWARD_OF}{judged.call.call.op}",
                count=judged.judgement.parts, gradient=gradient, constant=constant,
                again=node in counter.again.behind,
            )  # fmt: skip
            forward = counter.needed.computes(node) and id(node) not in counter.same
            yield from (
                (node, communication)
                for communication in pair
                if forward or communication.phase == "backward"
            )


def _of_parts(counter: _Counter, item: Redistribution) -> Iterator[tuple[Use, StepCommunication]]:
    """What stands on an edge of which one side computes in parts."""
    edge = item.edge
    dtype = edge_dtype(edge.consumer, edge.position, edge.item)
    use = Use(edge.consumer, edge.position, edge.item)
    for step, count in item.in_parts:
        pair = counter.both(
            step.op, step.ranks, tensor_bytes(dtype, step.input_shape), edge.consumer,
            "redistribution", count=count, gradient=edge.producer in counter.gradients.nodes,
            constant=Use(edge.consumer, edge.position) in counter.gradients.constant_uses,
            again=use in counter.again.chains,
        )  # fmt: skip
        yield from ((use, communication) for communication in pair)


def _is_held_back(analysis: Analysis, edge: Edge) -> bool:
    """Whether a StopGradient stands on an edge, so that nothing comes back along it."""
    use = use_of(edge)
    operands = analysis.network.inputs.get(use.node, ())
    source = operands[use.position] if use.position < len(operands) else None
    while isinstance(source, Node) and source is not edge.producer:
        if primitive(source) == "StopGradient":
            return True
        source = analysis.network.first(source) if primitive(source) in PLUMBING else None
    return False


def _is_in_parts(counter: _Counter, edge: Edge) -> bool:
    """Whether the operator at an end of an edge computes in parts."""
    ends = (counter.analysis.judged.get(node) for node in (edge.producer, edge.consumer))
    return any(end is not None and end.judgement.parts > 1 for end in ends)


def _of_redistributions(
    counter: _Counter, redistributions: Iterable[Redistribution]
) -> Iterator[tuple[Use, StepCommunication]]:
    """What stands between operators whose layouts differ.

    A chain is made for each consumer. Some AllGathers behind one value are merged before the
    gradients are made (:func:`merged_gathers`), and all equal operators afterwards. Source:
    validate dumps of MindSpore 2.7, in which the gradients of what is merged afterwards are left.
    """
    merged_before: set[object] = set()
    merged_after: set[object] = set()
    merged_again: set[object] = set()
    own = [item for item in redistributions if counter.is_own(item.edge.consumer)]
    merged = merged_gathers(counter.analysis, own)
    for item in own:
        edge = item.edge
        if not item.replaces and _is_in_parts(counter, edge):
            yield from _of_parts(counter, item)
            continue
        value = _left_of(counter, item)
        has_gradient = edge.producer in counter.gradients.nodes
        has_gradient = has_gradient and not _is_held_back(counter.analysis, edge)
        dtype = edge_dtype(edge.consumer, edge.position, edge.item)
        steps = item.operators or ()
        use = Use(edge.consumer, edge.position, edge.item)
        runs_again, gathered = use in counter.again.chains, merged.get(use)
        constant = Use(edge.consumer, edge.position) in counter.gradients.constant_uses
        first = len(as_far_as_the_first(steps)) - 1
        for index, step in enumerate(steps):
            is_merged = gathered is not None and index <= first
            left: Hashable = (gathered, index) if is_merged else (value, steps[: index + 1])
            backward = has_gradient and not (is_merged and left in merged_before)
            merged_before.add(left)
            forward = left not in merged_after
            forward = forward and counter.needed.brings(Use(edge.consumer, edge.position))
            if forward:
                merged_after.add(left)
            if backward and step.is_collective and not is_merged:
                gradient = counter.values.at(use_of(edge))
                backward = counter.is_first(edge.consumer, (steps[index:], gradient))
            again = runs_again and left not in merged_again
            if again:
                merged_again.add(left)
            if not step.is_collective:
                continue
            pair = counter.both(
                step.op, step.ranks, tensor_bytes(dtype, step.input_shape), edge.consumer,
                "redistribution", gradient=backward, constant=constant, again=again,
            )  # fmt: skip
            yield from (
                (use, communication)
                for communication in pair
                if forward or communication.phase == "backward"
            )


def _left_of(counter: _Counter, item: Redistribution) -> Hashable:
    """The value that a chain begins with, and whether it replaces a Reshape.

    Of equal values it is the one that is left after the gradients are made. What replaces a Reshape
    has other attributes than what stands before another operator: the two are not taken for equal.
    """
    value = _value_of(item.edge)
    left = counter.same.get(value) if isinstance(value, int) else None
    return (value if left is None else id(left)), item.replaces


def _value_of(edge: Edge) -> Hashable:
    """What tells values that are redistributed: each result of the network is one of its own."""
    if edge.consumer.is_return:
        return (id(edge.producer), edge.output) if edge.output else id(edge.producer)
    return id(operand_of(edge))


def _of_weights(
    counter: _Counter, weights: Iterable[ParameterReport]
) -> Iterator[tuple[str, StepCommunication]]:
    """Sums of gradients, and with optimizer parallel gathers of weights."""
    gradients = counter.gradients
    for weight in weights:
        trained = id(weight.parameter) in gradients.trained
        constant = id(weight.parameter) in gradients.constant
        dtype = weight.parameter.type.dtype if weight.parameter.type is not None else None
        base, stored = (
            None if shape is None else tensor_bytes(dtype, shape)
            for shape in (weight.base, weight.slice)
        )
        name = "optimizer parallel"
        own = weight.name
        if not weight.is_read:
            continue
        if weight.gather_ranks:
            ranks = weight.gather_ranks
            yield own, StepCommunication("AllGather", ranks, stored, "forward", 1, name)
        if weight.scatter_ranks and trained:
            ranks, count = weight.scatter_ranks, _scatters_of(counter, weight)
            yield own, StepCommunication("ReduceScatter", ranks, base, "backward", count, name)
        if weight.user is not None and weight.user.attribute(SPARSE) is True:
            # Rows and their numbers are gathered, and not summed up.
            ranks = weight.mirror_ranks or ()
            yield own, StepCommunication("AllGather", ranks, None, "backward", 2, "sparse gradient")
        elif weight.user is not None and primitive(weight.user) == "Custom":
            continue
        elif weight.mirror_ranks and trained and not constant:
            inner, count = _mirrors_of(counter, weight)
            size = stored if weight.scatter_ranks and not inner else base
            ranks, why = weight.mirror_ranks, "mirror (gradients)"
            yield own, StepCommunication("AllReduce", ranks, size, "backward", count, why)


def _scatters_of(counter: _Counter, weight: ParameterReport) -> int:
    """How often a step reduces and scatters a gradient that an optimizer's shards share.

    Once, of the sum over all micro-batches; before each sum, where that is shared, too: there what
    comes back from each stage that the weight is sent to counts like a micro-batch.
    """
    analysis = counter.analysis
    if not (analysis.accumulates and analysis.context.accumulation_shard):
        return 1
    users = operators_behind(analysis, weight.parameter) & counter.gradients.nodes
    network = analysis.network
    sends = [use for use in network.users_of(weight.parameter) if primitive(use.node) == SEND]
    back = 0 if analysis.foreign else len(sends)
    return sum(map(counter.runs, users)) + back or 1


def _mirrors_of(counter: _Counter, weight: ParameterReport) -> tuple[bool, int]:
    """Whether a weight's gradient is summed within graphs that are given it, and how often it is.

    The sum stands in each graph that uses the weight, and runs as often as that: once before all
    that load it, where several do; before each operator, where the weight is handed to one call
    only. Where gradients are accumulated it stands before all calls.
    """
    analysis = counter.analysis
    if analysis.accumulates:
        return analysis.context.sums_before_scatter, 1
    network = analysis.network
    users = operators_behind(analysis, weight.parameter) & counter.gradients.nodes
    graphs = [user.graph.name for user in users if user.graph is not None]
    direct = [use.node for use in network.users_of(weight.parameter) if use.node in network.forward]
    inner = any(network.called(use.node) for use in network.users_of(weight.parameter))
    holders = graphs if len(direct) == 1 and network.called(direct[0]) else set(graphs)
    return inner, sum(counter.instances.get(name, 1) for name in holders) or 1


def _waits(judged: Judged) -> bool:
    """Whether an operator divides a constant gradient of a type that only the network divides."""
    call = judged.call.call
    small = any(one.dtype == "BFloat16" for one in call.results)
    return small and operator_of(call.op).is_("averages")


def edge_dtype(consumer: Node, position: int, item: int) -> str:
    """The element type of one operand.

    Args:
        consumer: whose operand.
        position: of the operand.
        item: of a tuple, counted from 0; beyond its end, and of a tensor, the last there is.

    Returns:
        ``Float32`` and the like; "" where the dump prints no type.
    """
    types = consumer.input_types
    abstract = types[position] if position < len(types) else None
    dtypes = [dtype or "" for dtype, _ in abstract.tensors] if abstract is not None else []
    return dtypes[min(item, len(dtypes) - 1)] if dtypes else ""


def tensor_bytes(dtype: str | None, shape: tuple[int, ...]) -> int | None:
    """Bytes of a tensor; None if a size or the element type is not known.

    Args:
        dtype: the element type, as dumps print it.
        shape: local or whole; a negative size is unknown.
    """
    bits = BITS.get(dtype or "")
    if bits is None or any(size < 0 for size in shape):
        return None
    return prod(shape) * bits // 8

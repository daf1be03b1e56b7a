"""One of two dumps to be tied: its operators, and what is known of each."""

from __future__ import annotations

import re

from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.micro_batches import micro_batch_of
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.phases import Phase, phases
from irtool.ir.statement import GraphTarget
from irtool.ir.values import python_value
from irtool.ir.whole import CallSite, WholeNode, WholeSource

_INSERTED = re.compile(
    r"(grad)?_?(redistribution_|forward_op_?\d|parallel_optimizer|mirror|PARALLEL_|\d{6,}|virtual)"
)


class Side:
    """The operators of one dump that may be tied, with what is known of each.

    Nodes are numbers here: their places in the inlined view.  ``base`` leads from a node through
    everything that only passes a value on (loads, inserted collectives, tuples) to the operator
    or parameter that makes it; ``open`` are the nodes that may still be tied.
    """

    def __init__(self, dump: Dump) -> None:
        whole = dump.whole()
        self.nodes = whole.nodes
        stages = phases(dump)
        requested = {
            graph.name
            for call in whole.kept_calls
            if call.reason == "gradient"
            for graph in call.graphs
        }
        self._repeats = _Repeats(requested)
        self.open: dict[int, None] = {}
        self._base: list[WholeNode | str | None] = []
        self.operands: list[tuple[WholeNode | str | None, ...]] = []
        self.micro: list[int | None] = []
        self.readers: dict[int, list[tuple[int, int]]] = {}
        for item in self.nodes:
            places = tuple(self._resolve(source) for source in item.inputs)
            self.operands.append(places)
            self.micro.append(self._micro_of(item, places))
            passes = passes_on(item.node)
            # Redistributions take the place of a Reshape: neighbours are sought beyond it.
            reached = places[0] if item.op == "Reshape" and places else item
            self._base.append(self._passed(item, places) if passes else reached)
            if passes:
                continue
            if self._is_candidate(item, stages[item.node]):
                self.open[item.index] = None
            for position, place in enumerate(places):
                if isinstance(place, WholeNode):
                    self.readers.setdefault(place.index, []).append((item.index, position))

    def _is_candidate(self, item: WholeNode, stage: Phase) -> bool:
        """Whether a node is the user's and no later pass is sure to drop it."""
        if stage in ("recompute", "other") or item.node.is_backward:
            return False
        if item.op == "ZerosLike" and item.users:
            return not all(user.op == "EnvironGet" for user in item.users)
        return not self._repeats.contain(item.site)

    def _resolve(self, source: WholeSource) -> WholeNode | str | None:
        """Operator or name of the parameter that an input stems from; None for the rest."""
        if isinstance(source, WholeNode):
            return self._base[source.index]
        if isinstance(source, GraphParameter):
            reference = source.type.ref_key if source.type else None
            return reference or source.name or None
        return None

    def _passed(
        self, item: WholeNode, places: tuple[WholeNode | str | None, ...]
    ) -> WholeNode | str | None:
        if not places:
            return None
        if item.op == "TupleGetItem" and len(item.inputs) > 1:
            maker = item.inputs[0]
            index = python_value(item.node.operands[1])
            if (
                isinstance(maker, WholeNode)
                and maker.op in ("MakeTuple", "_VirtualDataset")
                and isinstance(index, int)
                and -len(maker.inputs) <= index < len(maker.inputs)
            ):
                return self.operands[maker.index][index]
        return item if item.op in ("MakeTuple", "MakeList", "call", "J") else places[0]

    def _micro_of(self, item: WholeNode, places: tuple[WholeNode | str | None, ...]) -> int | None:
        own = micro_batch_of(item.node)
        if own is not None:
            return own
        micro_batches = {
            self.micro[place.index] for place in places if isinstance(place, WholeNode)
        }
        micro_batches.discard(None)
        return micro_batches.pop() if len(micro_batches) == 1 else None

    def parameters(self, index: int) -> tuple[tuple[int, str], ...]:
        """Names of the parameters that an operator reads, with the operand's place.

        AdaSum's nodes say in an attribute (place -1) whose delta they work on.
        """
        places = enumerate(self.operands[index])
        parameters = [(position, place) for position, place in places if isinstance(place, str)]
        target = self.nodes[index].node.attribute("target_param")
        return (*parameters, (-1, target)) if isinstance(target, str) else tuple(parameters)


class _Repeats:
    """Calls of graphs whose gradient is requested as well: ``J(@G)`` runs them again."""

    def __init__(self, requested: set[str]) -> None:
        self._requested = requested
        self._known: dict[CallSite, bool] = {}

    def contain(self, site: CallSite | None) -> bool:
        """Whether a node with this call path runs in such a call."""
        path: list[CallSite] = []
        while site is not None and site not in self._known:
            path.append(site)
            site = site.outer
        inside = site is not None and self._known[site]
        for place in reversed(path):
            target = place.node.target
            inside = inside or (isinstance(target, GraphTarget) and target.graph in self._requested)
            self._known[place] = inside
        return inside


def passes_on(node: Node) -> bool:
    """Whether a node hands on its first input: passing operators and what passes inserted.

    Args:
        node: of any dump.
    """
    if node.op in PLUMBING or node.op in VIRTUAL:
        return True
    if node.instance_name and _INSERTED.match(node.instance_name):
        return True
    return (
        node.op in COMMUNICATION
        and COMMUNICATION[node.op].base not in ("Send", "Receive")
        and node.attribute("forward_comm_node_unique_id") is not None
    )

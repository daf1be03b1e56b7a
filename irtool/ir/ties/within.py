"""Ties within one dump: forward nodes by all that a backward node or a copy may know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, GraphParameter, Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.ir.phases import Phase
from irtool.ir.ties.model import Rule, Tie, forward_place

_PASSING = frozenset(("Load", "Depend", "Cast", "StopGradient", *COMMUNICATION))

_Item = TypeVar("_Item")


class ForwardNodes:
    """Forward nodes by everything that a backward node may know of its own."""

    def __init__(self, dump: Dump, stages: Mapping[Node, Phase]) -> None:
        self.by_uid: dict[str, list[Node]] = {}
        self.by_comm: dict[str, list[Node]] = {}
        self.by_instance: dict[tuple[str, str | None], list[Node]] = {}
        self.by_scope: dict[tuple[str | None, str], list[Node]] = {}
        self.parameters: dict[str, GraphParameter] = {}
        entry = dump.entry
        for parameter in entry.parameters if entry else ():
            self.parameters.setdefault(parameter.name, parameter)
        for node in dump.nodes():
            if stages[node] not in ("forward", "optimizer", "other"):
                continue
            if node.unique_id is not None:
                self.by_uid.setdefault(node.unique_id, []).append(node)
            comm = node.attribute("forward_comm_node_unique_id")
            if isinstance(comm, str):
                self.by_comm.setdefault(comm, []).append(node)
            if stages[node] == "forward" and node.op not in PLUMBING:
                self.by_scope.setdefault((node.scope, node.op), []).append(node)
                if node.instance_name:
                    self.by_instance.setdefault((node.instance_name, node.scope), []).append(node)

    def by_id(self, node: Node) -> Tie | None:
        """What ids say: one forward node, or the parameter whose gradient this is."""
        named = node.attribute("forward_node_name")
        op, _, number = named.rpartition("_") if isinstance(named, str) else ("", "", "")
        sources: tuple[tuple[Rule, list[Node]], ...] = (
            ("unique_id", self.by_uid.get(node.forward_unique_id or "", [])),
            ("forward_node_name", self.by_uid.get(number, [])),
            ("forward_comm_node_unique_id", self._same_comm(node, op)),
        )
        for rule, candidates in sources:
            chosen = _narrowed(candidates, op, node)
            if chosen is not None:
                return Tie(chosen, node, "gradient", rule)
        user = node.attribute("mirror_user_id")
        if isinstance(user, str) and user in self.parameters:
            return Tie(self.parameters[user], node, "gradient", "mirror_user_id")
        return None

    def _same_comm(self, node: Node, op: str) -> list[Node]:
        unique_id = node.attribute("forward_comm_node_unique_id")
        candidates = self.by_comm.get(unique_id, []) if isinstance(unique_id, str) else []
        wanted = op or forward_place(node)[1]
        return [item for item in candidates if item.op == wanted]

    def by_place(self, node: Node) -> Tie | None:
        """What names, scope and parameters say, if that is one forward node."""
        scope, op = forward_place(node)
        name = node.instance_name or ""
        if name.startswith("grad"):
            for base in (name[4:], name[4:].lstrip("_")):
                chosen = _only(self.by_instance.get((base, scope), []))
                if chosen is not None:
                    return Tie(chosen, node, "gradient", "instance_name")
        candidates = self.by_scope.get((scope, op), []) if op else []
        chosen = _only(candidates)
        if chosen is not None:
            return Tie(chosen, node, "gradient", "scope")
        weights = _weights(node)
        if weights:
            chosen = _only([item for item in candidates if _weights(item) == weights])
            if chosen is not None:
                return Tie(chosen, node, "gradient", "parameter")
        return None

    def in_order(self, nodes: list[Node]) -> list[Tie]:
        """Equal gradients to equal forward nodes, last to first, where their numbers agree."""
        groups: dict[tuple[str | None, str, str, str | None], list[Node]] = {}
        for node in nodes:
            scope, op = forward_place(node)
            if op and node.op not in PLUMBING:
                groups.setdefault((scope, op, node.op, node.instance_name), []).append(node)
        ties: list[Tie] = []
        for (scope, op, *_), members in groups.items():
            candidates = self.by_scope.get((scope, op), [])
            if len(candidates) == len(members):
                pairs = zip(reversed(candidates), members, strict=True)
                ties += [Tie(left, right, "gradient", "order", False) for left, right in pairs]
        return ties

    def original(self, copy: Node) -> Tie | None:
        """The forward node that a recompute copy repeats."""
        candidates = self.by_uid.get(copy.unique_id or "", [])
        chosen = _narrowed(candidates, copy.op, copy)
        if chosen is not None:
            return Tie(chosen, copy, "recompute", "unique_id")
        same = [
            item
            for item in self.by_scope.get((copy.scope, copy.op), [])
            if item.instance_name == copy.instance_name and item.micro == copy.micro
        ]
        chosen = _only(same)
        return Tie(chosen, copy, "recompute", "scope") if chosen is not None else None


def _narrowed(candidates: list[Node], op: str, node: Node) -> Node | None:
    """The one candidate, by operator and micro-batch if there are several."""
    tests: tuple[Callable[[Node], bool], ...] = (
        lambda item: item.op == op,
        lambda item: item.micro == node.micro,
        lambda item: item.graph is node.graph,
    )
    for test in tests:
        if len(candidates) < 2:
            break
        candidates = [item for item in candidates if test(item)]
    return _only(candidates)


def update_tie(item: tuple[Node, Phase]) -> Tie | None:
    """The parameter that a node of the optimizer updates.

    Args:
        item: a node with its phase.

    Returns:
        A tie from the parameter, seen through Depend; None where the node updates none.
    """
    node, stage = item
    if stage != "optimizer" or node.op in PLUMBING or not node.operands:
        return None
    first = node.inputs[0]
    for _ in range(8):
        if isinstance(first, Node) and first.op == "Depend" and first.operands:
            first = first.inputs[0]
    if not isinstance(first, GraphParameter) or first.type is None or first.type.ref_key is None:
        return None
    return Tie(first, node, "parameter", "parameter")


def _weights(node: Node) -> frozenset[str]:
    """Parameters that a node reads directly, through loads, casts and gathers."""
    weights: set[str] = set()
    for source in node.inputs:
        for _ in range(8):
            if isinstance(source, AmbiguousReference) or not isinstance(source, Node):
                break
            if source.op not in _PASSING or not source.operands:
                break
            source = source.inputs[0]
        if isinstance(source, GraphParameter) and source.type and source.type.ref_key:
            weights.add(source.type.ref_key)
    return frozenset(weights)


def _only(items: list[_Item]) -> _Item | None:
    return items[0] if len(items) == 1 else None

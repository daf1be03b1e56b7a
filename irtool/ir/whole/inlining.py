"""The whole graph: one view of a dump with its calls and closures inlined.

A dump keeps one graph a function; what a step computes is spread over ``call @G``, closures and
free variables.  :func:`inline` follows them, so that each statement appears once for every time
it runs, with its inputs resolved across graphs.  What has no single callee stays a call and says
why: control flow, recursion, gradient requests ``J(@G)``, unknown functions.  The graphs behind
such calls appear once each, with their parameters free.  :func:`join` puts the dumps of several
ranks together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from irtool.ir.collectives import collective
from irtool.ir.graph import DumpModel, Graph, Node
from irtool.ir.whole import CallSite, KeptCall, Ran, Reason, Whole, WholeNode, WholeSource
from irtool.ir.whole.running import MAX_NODES, Bound, Closure, Frame, Runner


def inline(dump: DumpModel, limit: int = MAX_NODES) -> Whole:
    """One view of the whole dump; see the module's text.

    Args:
        dump: what to inline.
        limit: how many nodes may be made before further calls are kept as they are.
    """
    inliner = _Inliner(dump, limit)
    inliner.run()
    return Whole(
        tuple(inliner.nodes), (dump,), tuple(inliner.kept), tuple(dict.fromkeys(inliner.uncertain))
    )


class _Inliner(Runner):
    """Makes the nodes of the whole view; the results are in ``nodes``, ``kept``, ``uncertain``."""

    def __init__(self, dump: DumpModel, limit: int) -> None:
        super().__init__(dump, limit)
        self.nodes: list[WholeNode] = []
        self.kept: list[KeptCall] = []
        self.uncertain: list[WholeNode] = []

    def make(
        self, frame: Frame, node: Node, inputs: tuple[Bound, ...], function: Bound | None
    ) -> Ran:
        """A node of the view."""
        made = WholeNode(
            node,
            tuple(_shown(item) for item in inputs),
            len(self.nodes),
            frame.site,
            None if function is None else _shown(function),
        )
        for producer in made.producers:
            producer.users.append(made)
        self.nodes.append(made)
        if self.guessed:
            self.uncertain.append(made)
        return made

    def keep(self, call: Ran, graphs: tuple[Graph, ...], reason: Reason) -> None:
        """The call stays a node of the view."""
        self.kept.append(KeptCall(cast("WholeNode", call), graphs, reason))

    def site(self, frame: Frame, node: Node, inputs: tuple[Bound, ...]) -> CallSite | None:
        """A call in the path of calls."""
        return CallSite(node, frame.site, tuple(_shown(item) for item in inputs))


def _shown(value: Bound) -> WholeSource:
    if isinstance(value, Closure):
        return value.graph
    if isinstance(value, tuple):
        return tuple(_shown(item) for item in value)
    return cast("WholeSource", value)


# ---- several dumps ---------------------------------------------------------------------------


def join(dumps: Mapping[int, DumpModel] | Mapping[str, DumpModel], limit: int = MAX_NODES) -> Whole:
    """One view of several ranks' dumps, joined where one sends what another receives.

    Args:
        dumps: dumps by rank, or by any other name (``rank_0`` counts as rank 0).  Without ranks,
            a Send goes to the one Receive of another dump with the same tag and group.
        limit: as for :func:`inline`, for all dumps together.
    """
    parts: list[Whole] = []
    nodes: list[WholeNode] = []
    for name, dump in dumps.items():
        part = inline(dump, max(0, limit - len(nodes)))
        parts.append(part)
        for item in part.nodes:
            object.__setattr__(item, "source", name)
        nodes += part.nodes
    transfers, unmatched = _transfers(nodes, {name: _rank(name) for name in dumps})
    for sender, receiver in transfers:
        receiver.links.append(sender)
        sender.users.append(receiver)
    ordered, cyclic = _topological(nodes)
    for index, item in enumerate((*ordered, *cyclic)):
        object.__setattr__(item, "index", index)
    return Whole(
        (*ordered, *cyclic),
        tuple(dumps.values()),
        tuple(call for part in parts for call in part.kept_calls),
        tuple(item for part in parts for item in part.uncertain),
        tuple(transfers),
        tuple(unmatched),
        tuple(cyclic),
    )


def _rank(name: int | str) -> int | None:
    if isinstance(name, int):
        return name
    match = re.search(r"(?:^|rank[_.]?)(\d+)$", name)
    return int(match[1]) if match else None


def _transfers(
    nodes: list[WholeNode], ranks: dict[int | str, int | None]
) -> tuple[list[tuple[WholeNode, WholeNode]], list[WholeNode]]:
    """Pairs of Send and Receive, the k-th of equal ones with the k-th, and those left over."""
    ends: dict[tuple[object, ...], tuple[list[WholeNode], list[WholeNode]]] = {}
    for item in nodes:
        transfer = collective(item.node)
        if transfer is None or transfer.op not in ("Send", "Receive") or item.source is None:
            continue
        sends = transfer.op == "Send"
        rank = ranks[item.source]
        if rank is None or transfer.peer is None:
            route: tuple[object, ...] = (transfer.group, transfer.is_gradient, None)
        else:
            route = (rank, transfer.peer) if sends else (transfer.peer, rank)
        pair = ends.setdefault((*route, transfer.tag), ([], []))
        pair[0 if sends else 1].append(item)
    matched: list[tuple[WholeNode, WholeNode]] = []
    unmatched: list[WholeNode] = []
    for key, (senders, receivers) in ends.items():
        # With ranks the key names both ends; without, one dump must send and one receive.
        froms, tos = ({item.source for item in side} for side in (senders, receivers))
        sure = len(key) == 3 or (
            len(senders) == len(receivers) and len(froms) == len(tos) == 1 and froms != tos
        )
        pairs = zip(senders, receivers, strict=False) if sure else ()
        taken = [(a, b) for a, b in pairs if a.source != b.source]
        matched += taken
        paired = {node for pair in taken for node in pair}
        unmatched += [node for node in (*senders, *receivers) if node not in paired]
    return matched, sorted(unmatched, key=lambda node: node.node.line)


def _topological(nodes: list[WholeNode]) -> tuple[list[WholeNode], list[WholeNode]]:
    """Nodes in an order that respects every producer, and those that wait for each other."""
    missing = {item: len(item.producers) for item in nodes}
    ready = [item for item in nodes if not missing[item]]
    ready.reverse()
    ordered: list[WholeNode] = []
    while ready:
        item = ready.pop()
        ordered.append(item)
        for user in reversed(item.users):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return ordered, [item for item in nodes if missing[item]]

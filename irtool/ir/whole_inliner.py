"""Inlining: what running a dump makes of its statements for the whole view."""

from __future__ import annotations

from typing import cast

from irtool.ir.graph import DumpModel, Graph, Node
from irtool.ir.running import Bound, Closure, Frame, Runner
from irtool.ir.whole_model import CallSite, KeptCall, Ran, Reason, WholeNode, WholeSource


class Inliner(Runner):
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

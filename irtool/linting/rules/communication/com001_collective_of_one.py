"""COM001: a collective among one rank."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.sharding.own_code import REDUCER


class CollectiveOfOne(NodeRule):
    """A collective whose group has one rank."""

    code = "COM001"
    name = "collective-of-one"
    severity = "warning"
    summary = "A collective runs over a group of one rank"
    explanation = """
        A group of one rank has nobody to talk to, yet the operator is launched, takes a
        communication stream, and keeps its neighbours from being fused. It comes from user
        code that builds a group from a rank's own number, or from a model written for more devices
        than it runs on. What MindSpore itself puts in for one device (the reductions of
        `DistributedGradReducer` too) is not told.
        """
    hint = "leave the collective out where its group has one rank"
    bad = '%8(x) = PrimFunc_AllReduce(%7) {group: "solo", rank_list: (0), op: "sum"}'
    good = '%8(x) = PrimFunc_AllReduce(%7) {group: "pair", rank_list: (0, 1), op: "sum"}'
    cases = ("tests/linting/evidence/group_of_one_encoder.validate",)
    operators = frozenset(
        op for op, what in COMMUNICATION.items() if what.base not in POINT_TO_POINT
    )

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        collective = facts.collective_by_node.get(node)
        if (
            collective is None
            or collective.is_virtual
            or collective.origin not in ("user code", "unknown")
            or REDUCER in (node.scope or "")
        ):
            return
        if collective.ranks is not None and len(collective.ranks) == 1:
            yield self.finding(
                f"{collective.op} over a group of one rank communicates nothing", node
            )

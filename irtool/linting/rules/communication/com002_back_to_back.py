"""COM002: a collective right behind one that it repeats or undoes."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.communication.chains import producer

_UNDOES = {"AllGather": "ReduceScatter"}


class BackToBack(NodeRule):
    """Two collectives over the same ranks with nothing between them."""

    code = "COM002"
    name = "redundant-collective"
    severity = "warning"
    summary = "A collective repeats or undoes the one before it"
    explanation = """
        The result of an AllReduce is the same on all ranks of its group: a second AllReduce over
        them only multiplies a sum by the number of ranks, or does nothing to a maximum. A
        ReduceScatter of what was just gathered over the same ranks multiplies what each rank had
        before. Either is a waste of a round, and with sums usually an error in scale: a gradient
        that is reduced by MindSpore and once more by user code.

        ReduceScatter and then AllGather is not meant: it is how a large AllReduce may be done.
        """
    hint = "leave one of the two out"
    bad = """
        %8(a) = PrimFunc_AllReduce(%7) {group: "4-6301172352641561019", op: "sum"}
        %9(b) = PrimFunc_AllReduce(%8) {group: "4-6301172352641561019", op: "sum"}
        """
    good = """
        %8(a) = PrimFunc_AllReduce(%7) {group: "4-6301172352641561019", op: "sum"}
        """
    cases = (
        "tests/linting/evidence/reduced_twice_encoder.validate",
        "tests/linting/evidence/reduced_scatter_encoder.validate",
    )
    operators = frozenset(
        op for op, what in COMMUNICATION.items() if what.base in ("AllReduce", "ReduceScatter")
    )

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        second = facts.collective_by_node.get(node)
        before = producer(node)
        first = facts.collective_by_node.get(before) if before is not None else None
        if second is None or first is None or second.is_virtual or first.is_virtual:
            return
        if not _same_ranks(first, second):
            return
        if first.op == second.op == "AllReduce":
            scale = "" if second.reduction in ("max", "min") else ", which multiplies the sum"
            yield self._repeated(
                f"AllReduce right behind an AllReduce over the same ranks{scale}", node, first
            )
        elif _UNDOES.get(first.op) == second.op:
            yield self._repeated(
                f"{second.op} right behind an {first.op} over the same ranks", node, first
            )

    def _repeated(self, message: str, node: Node, first: Collective) -> Finding:
        return self.finding(message, node, related=(("the one before", first.node),))


def _same_ranks(first: Collective, second: Collective) -> bool:
    if first.ranks is not None and second.ranks is not None:
        return first.ranks == second.ranks and len(first.ranks) > 1
    return first.group is not None and first.group == second.group

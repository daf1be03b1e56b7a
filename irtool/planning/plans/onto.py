"""A plan onto an old one: what is unchanged keeps its strategies, what was added is planned.

Nodes of the two dumps are matched as ``irtool diff`` does it.  An operator is unchanged if its
match is the same primitive on operands of the same shapes; it keeps the strategy that was in effect
then, wherever that is legal now.  Where kept strategies and what was added allow no common layout
(users of one weight, say), as few as possible are given up.
"""

from __future__ import annotations

from collections.abc import Mapping

from irtool.compare.graph_diff import diff_graphs
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.cost.kept import FIXED
from irtool.planning.search.operator_candidates import CannotPlan, Given
from irtool.planning.search.problem import Problem
from irtool.sharding.check import check
from irtool.sharding.judge import judge
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import OperatorReport
from irtool.sharding.network.sharded_nodes import primitive

DERIVED = frozenset({"Reshape"})
"""Operators whose strategy follows from their neighbours'."""


@dataclass(frozen=True, slots=True)
class NotKept:
    """An operator that both networks have, and why it is planned anew."""

    node: Node
    why: str


@dataclass(frozen=True, eq=False)
class Onto:
    """What a plan takes over from an old one; nodes are those of the dump to plan.

    Attributes:
        kept: operators with the strategy that they had.
        added: operators that the old network lacks.
        not_kept: operators that both have, planned anew.
        removed: how many operators only the old network has.
    """

    kept: Mapping[Node, Given]
    added: tuple[Node, ...]
    not_kept: tuple[NotKept, ...]
    removed: int

    def without(self, given_up: Mapping[Node, str]) -> Onto:
        """This plan onto the old one, with some operators given up: they are planned, too.

        Args:
            given_up: operators with the reason why each is not kept.
        """
        return Onto(
            {node: given for node, given in self.kept.items() if node not in given_up},
            self.added,
            (*self.not_kept, *(NotKept(node, why) for node, why in given_up.items())),
            self.removed,
        )


def taken_over(problem: Problem, old: Dump, context: ParallelContext) -> Onto:
    """What the plan of an old dump says of a network.

    Args:
        problem: the network to plan.
        old: a begin dump with strategies.
        context: that the old dump was compiled under.

    Raises:
        CannotPlan: the old dump has no strategies.
    """
    before = {
        item.node: item
        for item in check(old, context).operators
        if item.strategy is not None and item.verdict == "legal"
    }
    if not any(item.node.has_strategy for item in before.values()):
        raise CannotPlan("the old dump has no strategies that could be kept")
    diff = diff_graphs(old, problem.dump)
    kept: dict[Node, Given] = {}
    not_kept: list[NotKept] = []
    matched: set[Node] = set()
    for pair in diff.pairs:
        twin = problem.twins.get(pair.right)
        item = before.get(pair.left)
        if twin is None or not problem.takes_strategy(twin):
            continue
        matched.add(pair.right)
        if item is None or primitive(twin) in DERIVED:
            continue
        why = _why_not(problem, item, twin)
        if why:
            not_kept.append(NotKept(pair.right, why))
        else:
            kept[pair.right] = (item.strategy or (), item.out_strategy)
    added = tuple(
        node
        for node, twin in problem.twins.items()
        if problem.takes_strategy(twin) and node not in matched and primitive(twin) not in DERIVED
    )
    apart = DERIVED | FIXED
    removed = sum(node in before and primitive(node) not in apart for node in diff.only_left)
    return Onto(kept, added, tuple(not_kept), removed)


def _why_not(problem: Problem, item: OperatorReport, twin: Node) -> str:
    """Why an operator does not keep what its match had; empty if it does."""
    old, new = item.call.call, problem.structure.calls[twin].call.call
    if old.op != new.op:
        return f"it was {old.op}"
    shapes = [tuple(tensor.shape for tensor in call.tensors) for call in (old, new)]
    if shapes[0] != shapes[1]:
        return f"its operands were {_shapes(shapes[0])}, and are {_shapes(shapes[1])}"
    judgement = judge(
        new, item.strategy, problem.structure.operators, out_strategy=item.out_strategy
    )
    if judgement.verdict != "legal":
        return (
            judgement.reasons[0].message if judgement.reasons else "its strategy is no longer legal"
        )
    return ""


def _shapes(shapes: tuple[tuple[int, ...] | None, ...]) -> str:
    return " ".join(str(list(shape)) if shape is not None else "?" for shape in shapes)

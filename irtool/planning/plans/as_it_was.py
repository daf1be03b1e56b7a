"""A plan that changes nothing, where what the dump has costs less than the search can find.

Layouts that the code gives to some operators are handed on to neighbours whose strategies agree
with them; a strategy alone does not say on which devices its parts lie, so the search prices them
where MindSpore puts them by itself.  Then the dump may cost less than its plan, and no bound holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.ir.node import Node
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.search.operator_candidates import Given
from irtool.planning.search.problem import Problem
from irtool.sharding.check import check

if TYPE_CHECKING:
    from irtool.planning.plans.plan import Plan

NOTE = (
    "what the dump has costs less than any plan that was found: layouts of the code are handed on "
    "to neighbours, which the search does not follow"
)


def keeps(made: Plan, problem: Problem, fixed: Mapping[Node, Given]) -> bool:
    """Whether the dump's own strategies are the cheaper plan, and do what is asked."""
    before = made.before
    if before is None or made.decisions is not None:
        return False
    if before.seconds >= made.after.seconds * (1 - 1e-9):
        return False
    if made.memory_limit is not None and before.memory.total > made.memory_limit:
        return False
    return all(problem.current.get(node) == given for node, given in fixed.items())


def as_it_was(made: Plan, problem: Problem) -> Plan:
    """The plan that keeps everything; no bound is known of it."""
    assert made.before is not None
    taken = {node: given for node, given in problem.current.items() if problem.takes_strategy(node)}
    dump = with_strategies(
        problem.structure.dump,
        {node: rows for node, (rows, _) in taken.items()},
        {node: out for node, (_, out) in taken.items() if out is not None},
    )
    twins = dict(zip(made.dump.nodes(), dump.nodes(), strict=True))
    return replace(
        made,
        dump=dump,
        report=check(dump, made.context),
        operators=tuple(
            replace(item, node=twins[item.node], after=item.before, out_after=item.out_before)
            for item in made.operators
        ),
        after=made.before,
        lower_bound=None,
        notes=(*made.notes, NOTE),
    )

"""Plans and their bounds, against every strategy there is: where users share what is made once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.operators.call import Strategy
from irtool.planning.cost.structure import structure_of
from irtool.planning.limits.modes import choice_of, plain_modes
from irtool.planning.limits.proof import proved
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import plan
from irtool.planning.plans.step.report import step_cost
from irtool.planning.search.problem import Problem, planned_context, problem_of
from irtool.planning.search.search import Search
from irtool.planning.search.shared_results import lowered
from irtool.planning.search.tables import model_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

MACHINE = default_machine()
ROWS, COLUMNS = (2, 1), (1, 2)
SINGLE, HALF = "<Tensor[Float32], (4096, 4096)>", "<Tensor[Float16], (4096, 4096)>"


def network(users: list[str], last: str = HALF) -> Dump:
    """One result that all users want, each of them with a user of its own."""
    lines = [_line(0, "Abs", "%para1_x", SINGLE, SINGLE)]
    for user in users:
        at = len(lines)
        lines.append(_line(at, user, "%0", SINGLE, last))
        lines.append(_line(at + 1, "Neg", f"%{at}", last, last))
    made = [str(at) for at in range(2, len(lines), 2)]
    total, at = made[0], len(lines)
    for other in made[1:]:
        lines.append(
            f"  %{at}(a{at}) = PrimFunc_Add(%{total}, %{other}) {{instance name: add}}"
            f" primitive_attrs: {{}}\n      : ({last}, {last}) -> ({last})"
        )
        total, at = str(at), at + 1
    body = "\n".join([*lines, f"  Return(%{total})\n      : ({last})"])
    text = f"\n%para1_x: {SINGLE} : [4096, 4096]\n\nsubgraph attr:\n"
    text += f"subgraph instance: main : 0x1\nsubgraph @main() {{\n{body}\n}}\n"
    return irtool.loads(text)


def _line(at: int, op: str, operand: str, taken: str, given: str) -> str:
    return (
        f"  %{at}(a{at}) = PrimFunc_{op}({operand}) {{instance name: each}}"
        f" primitive_attrs: {{}}\n      : ({taken}) -> ({given})"
    )


def context() -> ParallelContext:
    return ParallelContext.from_mapping(
        {"devices": 2, "full_batch": True}, mode="auto_parallel", search="sharding_propagation"
    )


def pinned(problem: Problem) -> dict[str, Strategy]:
    """The result lies by columns; behind its users everything lies by rows."""
    rows: dict[str, Strategy] = {"Abs": (COLUMNS,), "Neg": (ROWS,), "Add": (ROWS, ROWS)}
    return {node.id: rows[node.op] for node in problem.structure.calls if node.op in rows}


def cheapest_of_all(problem: Problem) -> float:
    """Seconds of the cheapest of all strategies, each priced by what ``check`` says of it."""
    structure = problem.structure
    fixed = pinned(problem)
    given = {node: (fixed[node.id], None) for node in structure.calls if node.id in fixed}
    model = model_of(structure, MACHINE, {}, given)
    found = inf
    for items in product(*(candidates.items for candidates in model.candidates)):
        chosen = {
            node: item.strategy
            for node, item in zip(model.nodes, items, strict=True)
            if item.strategy is not None
        }
        dump = with_strategies(structure.dump, chosen, {})
        report = check(dump, structure.context)
        if report.accepted is True:
            cost = step_cost(structure_of(dump, structure.context), report, MACHINE)
            found = min(found, cost.seconds)
    return found


@pytest.mark.parametrize("alltoall", [False, True])
@pytest.mark.parametrize("last", [SINGLE, HALF])
@pytest.mark.parametrize("users", [["ReLU"], ["ReLU", "Exp"], ["ReLU", "ReLU", "Exp"],
                                   ["ReLU", "Exp", "Sqrt"]])  # fmt: skip
def test_the_plan_is_the_cheapest_of_all_strategies_and_its_bound_says_so(
    users: list[str], last: str, alltoall: bool
) -> None:
    dump, under = network(users, last), replace(context(), enable_alltoall=alltoall)
    problem = problem_of(dump, under, planned_context(under, 2))
    fixed = pinned(problem)
    nodes = {node.id: node for node in dump.nodes()}
    made = plan(dump, under, MACHINE, pinned={nodes[name]: s for name, s in fixed.items()})
    best = cheapest_of_all(problem)
    assert made.lower_bound is not None
    assert made.lower_bound <= best * (1 + 1e-9)
    assert made.after.seconds == pytest.approx(best, rel=1e-9)
    assert made.gap == pytest.approx(0, abs=1e-9)


def test_what_is_cheap_only_if_many_choose_alike_is_found() -> None:
    """Made alike for all three before them it is cheaper than a half for each behind them."""
    dump, under = network(["ReLU", "Exp", "Sqrt"]), context()
    problem = problem_of(dump, under, planned_context(under, 2))
    nodes = {node.id: node for node in dump.nodes()}
    fixed = {nodes[name]: rows for name, rows in pinned(problem).items()}
    made = plan(dump, under, MACHINE, pinned=fixed)
    assert made.after.seconds == pytest.approx(cheapest_of_all(problem), rel=1e-9)
    assert made.gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("users", [["ReLU", "Exp"], ["ReLU", "Exp", "Sqrt"]])
def test_the_optimum_is_proved_from_any_choice_and_without_a_bound(users: list[str]) -> None:
    dump, under = network(users), context()
    problem = problem_of(dump, under, planned_context(under, 2))
    rows = pinned(problem)
    fixed = {node: (rows[node.id], None) for node in problem.structure.calls if node.id in rows}
    search = Search(model_of(problem.structure, MACHINE, {}, fixed))
    modes = plain_modes(search.model)
    poor = [len(each) - 1 for each in search.model.candidates]
    first = choice_of(search.model, modes, poor, [0] * len(poor))
    found = proved(search, modes, first, 0.0)
    assert found.seconds < first.seconds
    assert found.seconds == pytest.approx(cheapest_of_all(problem), rel=1e-9)
    assert found.bound == pytest.approx(found.seconds, rel=1e-9)


def test_users_of_one_kind_need_no_lower_prices() -> None:
    under = context()
    problem = problem_of(network(["ReLU", "ReLU"]), under, planned_context(under, 2))
    model = model_of(problem.structure, MACHINE, {}, {})
    assert lowered(model) is None
    assert Search(model).lowered is None

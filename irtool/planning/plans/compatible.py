"""How much of an old plan can stay where not all of it can."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.graph import Node
from irtool.planning.limits.memory import Conflict, Limited
from irtool.planning.limits.modes import plain_modes
from irtool.planning.plans.onto import Onto
from irtool.planning.search.exact import Floats
from irtool.planning.search.problem import Problem
from irtool.planning.search.search import Search
from irtool.planning.search.tables import Given, Model, model_of

_GIVEN_UP = 1e3
"""Seconds a step that stand for one operator given up: more than any step of the model."""


def compatible(
    problem: Problem, machine: Machine, taken: Onto, fixed: Mapping[Node, Given]
) -> Onto:
    """What is taken over without what fits with nothing else; as little as possible is given up.

    Args:
        problem: the network to plan.
        machine: what things cost.
        taken: what would be kept.
        fixed: strategies that must be, by node without strategies.
    """
    kept = {problem.twins[node]: given for node, given in taken.kept.items()}
    overruled = {
        node: "pinned to another strategy"
        for node, given in taken.kept.items()
        if fixed.get(problem.twins[node], given) != given
    }
    taken = taken.without(overruled)
    try:
        model = model_of(problem.structure, machine, problem.current, {**kept, **fixed})
        Limited(Search(model), plain_modes(model)).at_price(0.0)
    except Conflict:
        return taken.without(_given_up(problem, machine, taken, fixed))
    return taken


def _given_up(
    problem: Problem, machine: Machine, taken: Onto, fixed: Mapping[Node, Given]
) -> dict[Node, str]:
    old = {problem.twins[node]: given for node, given in taken.kept.items()}
    model = model_of(problem.structure, machine, {**problem.current, **old}, fixed)
    known: dict[object, Floats] = {}
    modes = plain_modes(
        model, [_penalty(model, variable, old, known) for variable in range(len(model.nodes))]
    )
    choice = Limited(Search(model), modes).at_price(0.0)
    chosen = model.chosen(choice.choices)
    given_up: dict[Node, str] = {}
    for node in taken.kept:
        item = chosen[problem.twins[node]]
        if (item.strategy, item.out_strategy) != old[problem.twins[node]]:
            given_up[node] = "what was added wants a weight that both use in another layout"
    return given_up


def _penalty(
    model: Model, variable: int, old: Mapping[Node, Given], known: dict[object, Floats]
) -> Floats:
    candidates = model.candidates[variable]
    given = old.get(model.nodes[variable])
    key = (id(candidates), given)
    if key not in known:
        known[key] = np.array(
            [
                _GIVEN_UP
                if given is not None and (item.strategy, item.out_strategy) != given
                else 0.0
                for item in candidates.items
            ]
        )
    return known[key]

"""What stays as it is outside of the part of a network that is planned."""

from __future__ import annotations

import pytest

from irtool.planning.search.problem import Problem, outside, problem_of
from irtool.planning.search.tables import CannotPlan
from irtool.sharding.network.context import ParallelContext
from tests.sharding.network.small import Row, Small, constant, tensor

SQUARE = (64, 64)


def problem(*rows: Row | None) -> Problem:
    """Operators in a row behind the dataset, with these strategies (None: none)."""
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    pair = "<Tuple[Tensor[Float32]], TupleShape((64, 64))>"
    data = main.add("_VirtualDataset", [x], pair, strategy=((1, 1),))
    value = main.add("TupleGetItem", [data, constant(0)], tensor(SQUARE))
    for row in rows:
        value = main.op("ReLU", value, SQUARE, None if row is None else [row])
    main.result = value
    context = ParallelContext(devices=8, full_batch=True)
    return problem_of(net.dump(), context, context)


def frozen(found: Problem, *region: int) -> list[tuple[object, ...]]:
    """Strategies outside of some of the operators, which count from 0."""
    nodes = [found.twins[node] for node in found.dump.nodes("ReLU")]
    kept = outside(found, {nodes[place] for place in region})
    assert {node.op for node in kept} <= {"ReLU"}  # the dataset's is the context's
    return [(nodes.index(node), strategy) for node, (strategy, _) in kept.items()]


def test_strategies_outside_of_the_region_stay() -> None:
    found = problem((8, 1), (4, 2), (1, 8))
    assert frozen(found, 1) == [(0, ((8, 1),)), (2, ((1, 8),))]
    assert frozen(found, 0, 2) == [(1, ((4, 2),))]
    assert frozen(found, 0, 1, 2) == []
    assert len(frozen(found)) == 3


def test_an_operator_inside_needs_none() -> None:
    assert frozen(problem((8, 1), None, (1, 8)), 1) == [(0, ((8, 1),)), (2, ((1, 8),))]


def test_an_operator_outside_that_has_none_can_not_stay() -> None:
    found = problem((8, 1), None, None)
    with pytest.raises(CannotPlan, match=r"2 operators there have no strategy, .* line \d+: ReLU"):
        frozen(found, 0)
    with pytest.raises(CannotPlan, match="1 operators there have no strategy"):
        frozen(found, 1)

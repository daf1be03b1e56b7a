"""Bounds of plans against every strategy of small networks, written into the dump and priced.

Nothing here uses the tables of the search: what is legal and what it costs say ``check`` and the
cost of a dump.
"""

from __future__ import annotations

import random

import pytest

import irtool
from benchmarks.plan_enumerated import context_of, judged, legal, network
from irtool.cluster.machine import default_machine
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import plan
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check

SMALL = """
%para1_x: <Tensor[Float32], (16, 16)> : [16, 16]
%para2_a: <Ref[Tensor[Float32]], (16, 16), ref_key=a, is_parameter>  :  has_default
%para3_b: <Ref[Tensor[Float32]], (16, 16), ref_key=b, is_parameter>  :  has_default

subgraph attr:
subgraph instance: main : 0x1
subgraph @main() {
  %0(CNode_1) = PrimFunc_MatMul(%para1_x, %para2_a, Bool(0), Bool(0)) {instance name: one} primitive_attrs: {}
      : (<Tensor[Float32], (16, 16)>, <Ref[Tensor[Float32]], (16, 16)>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 16)>)
  %1(CNode_2) = PrimFunc_MatMul(%0, %para3_b, Bool(0), Bool(0)) {instance name: two} primitive_attrs: {}
      : (<Tensor[Float32], (16, 16)>, <Ref[Tensor[Float32]], (16, 16)>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 16)>)
  Return(%1)
      : (<Tensor[Float32], (16, 16)>)
}
"""  # noqa: E501


@pytest.mark.parametrize(("seed", "alltoall"), [(4, False), (9, True), (11, False), (12, True)])
def test_no_combination_of_legal_strategies_undercuts_the_bound(seed: int, alltoall: bool) -> None:
    made, least, count = judged(seed, 4, alltoall=alltoall)
    assert count > 50
    assert made.lower_bound is not None
    assert made.lower_bound <= least * (1 + 1e-9)
    assert made.after.seconds == pytest.approx(least, rel=1e-9)
    assert made.gap == pytest.approx(0, abs=1e-9)


def test_small_products_are_left_whole_where_cutting_them_costs_more() -> None:
    """On more devices each computes less; what they would have to exchange costs more than that."""
    dump, context, machine = irtool.loads(SMALL), context_of(8), default_machine()
    made = plan(dump, context, machine)
    assert {item.after for item in made.operators} == {((1, 1), (1, 1))}
    alone = {node: ((1, 1), (1, 1)) for node in dump.nodes() if node.op == "MatMul"}
    written = with_strategies(dump, alone, {})
    report = check(written, context)
    cost = step_cost(structure_of(written, context), report, machine)
    assert made.lower_bound == pytest.approx(cost.seconds, rel=1e-9)


def test_scattered_sums_and_gathered_blocks_are_among_all_strategies() -> None:
    dump = irtool.loads(network(random.Random(4)))
    product = next(node for node in dump.nodes() if node.op == "MatMul")
    found = list(legal(dump, product, context_of(4)))
    assert (((2, 2), (2, 1)), ((4, 1),)) in found
    assert (((2, 2), (2, 2)), None) in found

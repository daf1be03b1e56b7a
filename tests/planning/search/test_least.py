"""Lower bounds on any number of devices: never above the price of what MindSpore inserts."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.cluster.machine import built_in
from irtool.operators.judgement import Context
from irtool.operators.layout import TensorLayout
from irtool.planning.search.bounds import Moved
from irtool.planning.search.chains import Chains, Want
from irtool.planning.search.least import least_anywhere

DEVICES = 48
SHAPE = (48, 96, 24)


@st.composite
def layouts(draw: st.DrawFn) -> TensorLayout:
    """A layout with axes of any of the devices' divisors, on one dimension each or on none."""
    left, sizes = DEVICES, list[int]()
    while left > 1:
        sizes.append(draw(st.sampled_from([n for n in (2, 3, 4, 6, 8) if left % n == 0])))
        left //= sizes[-1]
    free, entries = list(range(len(sizes))), list[int]()
    for size in SHAPE:
        fitting = [-1, *(axis for axis in free if size % sizes[len(sizes) - 1 - axis] == 0)]
        axis = draw(st.sampled_from(fitting))
        entries.append(axis)
        if axis >= 0:
            free.remove(axis)
    return TensorLayout(tuple(sizes), tuple(entries), SHAPE).standard()


@pytest.mark.parametrize("enable_alltoall", [False, True])
@pytest.mark.parametrize("machine", ["ascend_910b", "gpu_a100"])
def test_a_bound_is_never_above_the_price(machine: str, enable_alltoall: bool) -> None:
    context = Context(tuple(range(DEVICES)), soc="Ascend910B")
    chains = Chains(context, built_in(machine), enable_alltoall)

    @settings(max_examples=80, deadline=None)
    @given(layouts(), layouts(), st.booleans())
    def check(source: TensorLayout, target: TensorLayout, gradient: bool) -> None:
        exact = chains.seconds(source, target, Want(4, gradient, False, False))
        least = least_anywhere([source], [target], Moved(4, gradient), built_in(machine))
        assert exact == inf or least[0, 0] <= exact * (1 + 1e-9) + 1e-15

    check()


def test_what_has_to_be_brought_costs_something() -> None:
    source = TensorLayout((DEVICES,), (0, -1, -1), SHAPE)
    target = TensorLayout((DEVICES,), (-1, -1, -1), SHAPE)
    found = least_anywhere([source], [source, target], Moved(4, True), built_in("ascend_910b"))
    assert found[0, 0] == 0
    assert found[0, 1] > 0


def test_a_gather_inside_a_node_costs_what_the_bound_says() -> None:
    """Nothing of it comes from further away than the links within the node."""
    source = TensorLayout((8,), (0, -1, -1), SHAPE)
    target = TensorLayout((8,), (-1, -1, -1), SHAPE)
    machine = built_in("ascend_910b")
    chains = Chains(Context(tuple(range(8)), soc="Ascend910B"), machine, False)
    exact = chains.seconds(source, target, Want(4, False, False, False))
    least = least_anywhere([source], [target], Moved(4, False), machine)
    assert least[0, 0] == pytest.approx(exact, rel=1e-9)

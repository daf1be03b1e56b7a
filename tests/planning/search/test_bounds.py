"""Lower bounds of redistributions: never above the price of the chain that MindSpore inserts."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.cluster.machine import built_in
from irtool.operators.judgement import Context
from irtool.operators.layout import TensorLayout
from irtool.planning.search.chains import Chains, Want, least_seconds

DEVICES = 64
SHAPES = ((64, 128, 32), (8192, 32), (64, 4096), (16, 4, 128, 32))
"""Ways to cut one tensor into dimensions: between two of them lies a Reshape."""

NEAR = [
    ("ascend_910b", False, False, 57, 0.8061),
    ("ascend_910b", False, True, 69, 0.7978),
    ("ascend_910b", True, False, 37, 0.7661),
    ("ascend_910b", True, True, 41, 0.7435),
    ("gpu_a100", False, False, 64, 0.8460),
    ("gpu_a100", False, True, 69, 0.8805),
    ("gpu_a100", True, False, 31, 0.8264),
    ("gpu_a100", True, True, 35, 0.8212),
]
"""By machine: with all-to-all or without, with a Reshape or without, how near bounds are."""


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], devices: int = DEVICES) -> TensorLayout:
    """A layout with axes of any sizes, in any order, on one dimension each or on none."""
    left, sizes = devices, list[int]()
    while left > 1:
        size = draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0]))
        sizes.append(size)
        left //= size
    free, entries = list(range(len(sizes))), list[int]()
    for size in shape:
        fitting = [-1, *(axis for axis in free if size % sizes[len(sizes) - 1 - axis] == 0)]
        axis = draw(st.sampled_from(fitting))
        entries.append(axis)
        if axis >= 0:
            free.remove(axis)
    return TensorLayout(tuple(sizes), tuple(entries), shape)


@st.composite
def pairs(draw: st.DrawFn, devices: int) -> tuple[TensorLayout, TensorLayout]:
    """A source and a target of one tensor, perhaps of different shapes."""
    first, second = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(SHAPES))
    return draw(layouts(first, devices)), draw(layouts(second, devices))


@pytest.mark.parametrize("enable_alltoall", [False, True])
@pytest.mark.parametrize("machine", ["ascend_910b", "gpu_a100"])
@pytest.mark.parametrize("devices", [DEVICES, 24, 96, 40])
def test_a_bound_is_never_above_the_price(
    devices: int, machine: str, enable_alltoall: bool
) -> None:
    chains = Chains(
        Context(tuple(range(devices)), soc="Ascend910B"), built_in(machine), enable_alltoall
    )

    @settings(max_examples=150 if devices == DEVICES else 60, deadline=None)
    @given(pairs(devices), st.booleans())
    def check(pair: tuple[TensorLayout, TensorLayout], gradient: bool) -> None:
        source, target = (layout.standard() for layout in pair)
        want = Want(4, gradient, source.tensor_shape != target.tensor_shape, False)
        exact = chains.seconds(source, target, want)
        least = least_seconds([source], [target], want, built_in(machine), enable_alltoall)
        assert exact == inf or least[0, 0] <= exact * (1 + 1e-9) + 1e-15

    check()


def test_a_bound_is_the_price_where_a_gather_and_a_slice_do() -> None:
    machine = built_in("ascend_910b")
    chains = Chains(
        Context(tuple(range(DEVICES)), soc="Ascend910B"), machine, enable_alltoall=False
    )
    source = TensorLayout((64,), (0, -1), (8192, 32))
    target = TensorLayout((8, 8), (1, 0), (8192, 32)).standard()
    want = Want(4, True, False, False)
    least = least_seconds([source], [target], want, machine, False)
    assert least[0, 0] == pytest.approx(chains.seconds(source, target, want))


@pytest.mark.parametrize(
    ("source", "target", "share"),
    [
        pytest.param((4, 24), (96,), 1.0, id="gathered, what is odd repeats"),
        pytest.param((2, 2, 24), (96,), 1.0, id="two axes"),
        pytest.param((12, 8), (96,), 0.0, id="what is odd is not at the end"),
        pytest.param((32, 3), (96,), 0.0, id="what is odd splits"),
    ],
)
def test_an_odd_part_that_repeats_leaves_bits(
    source: tuple[int, ...], target: tuple[int, ...], share: float
) -> None:
    """Layouts of 96 devices that split the first dimension, on one machine."""
    machine, want = built_in("ascend_910b"), Want(4, False, False, False)
    chains = Chains(Context(tuple(range(96)), soc="Ascend910B"), machine, enable_alltoall=False)
    split = (len(source) - 1,) if source != (32, 3) else (0,)
    if source == (2, 2, 24):
        split = (2, 1)
    one = TensorLayout(source, (*split, *[-1] * (2 - len(split))), (96, 96)).standard()
    other = TensorLayout(target, (-1, -1), (96, 96))
    least = least_seconds([one], [other], want, machine, False)[0, 0]
    assert least == pytest.approx(share * chains.seconds(one, other, want))


@pytest.mark.parametrize("enable_alltoall", [False, True])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_pairs_that_are_looked_at_together_cost_what_each_costs_alone(
    enable_alltoall: bool, data: st.DataObject
) -> None:
    machine, want = built_in("ascend_910b"), Want(4, True, False, False)
    sources, targets = (
        [each.standard() for each in data.draw(st.lists(layouts(SHAPES[0]), min_size=1))]
        for _ in range(2)
    )
    found = least_seconds(sources, targets, want, machine, enable_alltoall)
    for at, source in enumerate(sources):
        for to, target in enumerate(targets):
            alone = least_seconds([source], [target], want, machine, enable_alltoall)
            assert found[at, to] == alone[0, 0]


# -- how near they are ---------------------------------------------------------------------------


def drawn(chance: Random, shape: tuple[int, ...]) -> TensorLayout:
    """A layout, as above."""
    left, sizes = DEVICES, list[int]()
    while left > 1:
        sizes.append(chance.choice([n for n in (2, 4, 8, 16, 32, 64) if n <= left]))
        left //= sizes[-1]
    free, entries = list(range(len(sizes))), list[int]()
    for size in shape:
        fitting = [-1, *(axis for axis in free if size % sizes[len(sizes) - 1 - axis] == 0)]
        entries.append(chance.choice(fitting))
        if entries[-1] >= 0:
            free.remove(entries[-1])
    return TensorLayout(tuple(sizes), tuple(entries), shape).standard()


@pytest.mark.parametrize(("machine", "enable_alltoall", "reshaped", "met", "mean"), NEAR)
def test_a_bound_is_the_price_of_most_pairs_and_near_it_for_the_rest(
    machine: str, enable_alltoall: bool, reshaped: bool, met: int, mean: float
) -> None:
    """Of 120 drawn pairs: how many bounds are the price, and their mean share of it."""
    chance = Random(f"{machine} {enable_alltoall} {reshaped}")
    within = Context(tuple(range(DEVICES)), soc="Ascend910B")
    chains = Chains(within, built_in(machine), enable_alltoall)
    shares: list[float] = []
    for _ in range(120):
        shape = chance.choice(SHAPES)
        source = drawn(chance, shape)
        target = drawn(chance, chance.choice(SHAPES) if reshaped else shape)
        want = Want(4, chance.random() < 0.5, source.tensor_shape != target.tensor_shape, False)
        exact = chains.seconds(source, target, want)
        least = least_seconds([source], [target], want, built_in(machine), enable_alltoall)[0, 0]
        if 0 < exact < inf:
            shares.append(least / exact)
    assert sum(share > 1 - 1e-9 for share in shares) >= met
    assert sum(shares) / len(shares) >= mean

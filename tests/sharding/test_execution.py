"""What is said of a sharded operator, carried out: cut the inputs, compute, communicate, compare.

A rule says how inputs and outputs lie on devices and what is communicated.  Here the operator is
computed with numbers, on every device from its slices alone; after the communications each device
must hold its slice of what one device alone would have computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from irtool.operators.judgement import Judgement
from irtool.operators.layout import TensorLayout
from irtool.sharding.judge import judge
from tests.sharding.calls import call, context

Array = np.ndarray[Any, Any]

REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply,
}  # fmt: skip


@dataclass(frozen=True)
class Computed:
    """An operator with its arguments, and what it computes of whole inputs or of slices."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    compute: Callable[..., Any]
    constants: tuple[object, ...] = ()
    attributes: tuple[tuple[str, object], ...] = ()
    is_tuple: bool = False

    def inputs(self) -> list[Array]:
        random = np.random.default_rng(sum(map(sum, self.shapes)))
        return [random.integers(-4, 5, shape).astype(np.float64) for shape in self.shapes]

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        found = self.compute(*inputs)
        return list(found) if isinstance(found, tuple | list) else [np.asarray(found)]


def slice_of(whole: Array, layout: TensorLayout, position: int) -> Array:
    """The part of a tensor that the device at this place of the matrix holds."""
    matrix = layout.device_matrix
    place = np.unravel_index(position, matrix)
    parts: list[slice] = []
    for size, entry in zip(whole.shape, layout.tensor_map, strict=True):
        if entry == -1:
            parts.append(slice(None))
            continue
        pieces, number = 1, 0
        for axis in entry if isinstance(entry, tuple) else (entry,):
            along = len(matrix) - 1 - axis
            pieces, number = pieces * matrix[along], number * matrix[along] + int(place[along])
        length = size // pieces
        parts.append(slice(number * length, (number + 1) * length))
    return whole[tuple(parts)]


def judged_on(case: Computed, strategy: Any, devices: int, rank: int) -> Judgement:
    whole = case.results(case.inputs())
    shapes = [list(shape) for shape in case.shapes]
    operands: list[object] = [shapes] if case.is_tuple else list(shapes)
    outputs = [list(result.shape) for result in whole]
    what = call(
        case.op,
        *operands,
        *case.constants,
        out=tuple(outputs) if len(outputs) > 1 else outputs[0],
        **dict(case.attributes),
    )
    return judge(what, strategy, context(devices, rank))


def carried_out(case: Computed, strategy: Any, devices: int) -> bool:
    """Whether the strategy is legal; fails if the devices then don't hold what was promised."""
    answers = [judged_on(case, strategy, devices, rank) for rank in range(devices)]
    first = answers[0]
    assert {answer.verdict for answer in answers} == {first.verdict}
    if first.verdict != "legal" or first.unsure or first.replaced:
        return False
    whole_inputs = case.inputs()
    whole_results = case.results(whole_inputs)
    for layout, whole in zip(first.input_layouts, whole_inputs, strict=True):
        assert prod(layout.device_matrix) == devices
        assert layout.tensor_shape == whole.shape
    held = [
        case.results(
            [
                slice_of(whole, layout, rank)
                for layout, whole in zip(first.input_layouts, whole_inputs, strict=True)
            ]
        )
        for rank in range(devices)
    ]
    for number in range(len(first.collectives)):
        before = [list(results) for results in held]
        for rank, answer in enumerate(answers):
            step = answer.collectives[number]
            assert rank in step.ranks
            assert step.op == "AllReduce"
            assert step.output is not None
            assert [answers[r].collectives[number].ranks for r in step.ranks] == [step.ranks] * len(
                step.ranks
            )
            terms = [before[other][step.output] for other in step.ranks]
            held[rank][step.output] = reduce(REDUCTIONS[step.reduce], terms)
    for rank in range(devices):
        for result, layout, shape, whole in zip(
            held[rank], first.output_layouts, first.output_slices, whole_results, strict=True
        ):
            expected = slice_of(whole, layout, rank)
            assert shape == expected.shape
            np.testing.assert_allclose(result, expected)
    return True


def splits(shapes: Sequence[Sequence[int]], devices: int) -> st.SearchStrategy[Any]:
    """Strategies whose every tensor has at most so many slices."""

    def of(shape: Sequence[int]) -> st.SearchStrategy[tuple[int, ...]]:
        numbers = [
            st.sampled_from([n for n in (1, 2, 4, 8) if size % n == 0 and n <= devices])
            for size in shape
        ]
        return st.tuples(*numbers).filter(lambda split: prod(split) <= devices)

    return st.tuples(*map(of, shapes))


def matched(case: Computed, one: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The strategy of every input, where all have one shape."""
    return tuple(one for _ in case.shapes)


# -- products ------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.booleans(), st.booleans(), st.tuples(*[st.sampled_from([1, 2, 4])] * 3))
def test_matrix_products(turned_a: bool, turned_b: bool, cut: tuple[int, int, int]) -> None:
    m, k, n = cut
    case = Computed(
        "MatMul",
        ((8, 4) if turned_a else (4, 8), (16, 8) if turned_b else (8, 16)),
        lambda a, b: (a.T if turned_a else a) @ (b.T if turned_b else b),
        (turned_a, turned_b),
    )
    strategy = ((k, m) if turned_a else (m, k), (n, k) if turned_b else (k, n))
    assert carried_out(case, strategy, 8) == (m * k * n <= 8)


@settings(max_examples=40)
@given(st.booleans(), st.booleans(), st.tuples(*[st.sampled_from([1, 2, 4])] * 4), st.booleans())
def test_batches_of_matrix_products(
    turned_a: bool, turned_b: bool, cut: tuple[int, int, int, int], is_broadcast: bool
) -> None:
    b, m, k, n = cut
    batch = 1 if is_broadcast else 4
    case = Computed(
        "BatchMatMul",
        (
            (4, 8, 4) if turned_a else (4, 4, 8),
            (batch, 16, 8) if turned_b else (batch, 8, 16),
        ),
        lambda x, y: (x.swapaxes(1, 2) if turned_a else x) @ (y.swapaxes(1, 2) if turned_b else y),
        (turned_a, turned_b),
    )
    other = 1 if is_broadcast else b
    strategy = (
        (b, k, m) if turned_a else (b, m, k),
        (other, n, k) if turned_b else (other, k, n),
    )
    assert carried_out(case, strategy, 8) == (b * m * k * n <= 8)


# -- element by element --------------------------------------------------------------------------

BROADCAST = [
    ((4, 8), (4, 8)),
    ((4, 8), (8,)),
    ((8,), (4, 8)),
    ((4, 1), (1, 8)),
    ((4, 8), (1,)),
    ((2, 4, 8), (4, 1)),
    ((1, 4, 1), (2, 1, 8)),
    ((2, 4, 8), ()),
]


@settings(max_examples=80)
@given(st.sampled_from(BROADCAST), st.sampled_from(["Add", "Sub", "Mul"]), st.data())
def test_broadcast_operands(
    shapes: tuple[tuple[int, ...], ...], op: str, data: st.DataObject
) -> None:
    """Wherever both inputs are split alike, or one is of size 1, the parts are the whole."""
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
    case = Computed(op, shapes, function)
    strategy = data.draw(splits(shapes, 8))
    rank = max(map(len, shapes))
    aligned = [
        list(zip((1,) * (rank - len(s)) + s, (1,) * (rank - len(c)) + c, strict=True))
        for s, c in zip(shapes, strategy, strict=True)
    ]
    agree = all(
        one[1] == other[1] or 1 in (one[0], other[0]) for one, other in zip(*aligned, strict=True)
    )
    devices = prod(max(one[1], other[1]) for one, other in zip(*aligned, strict=True))
    assert carried_out(case, strategy, 8) == (agree and devices <= 8)


@settings(max_examples=80)
@given(
    st.lists(st.sampled_from([(8,), (1,), (4, 8), (4, 1), (1, 8)]), min_size=3, max_size=3),
    st.data(),
)
def test_three_broadcast_operands(shapes: list[tuple[int, ...]], data: st.DataObject) -> None:
    """Each input agrees with every other one, wherever both are more than one element long."""
    case = Computed("AddcmulExt", tuple(shapes), lambda a, b, c: a + b * c)
    strategy = data.draw(splits(shapes, 4))
    rank = max(map(len, shapes))
    sizes = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    cuts = [(1,) * (rank - len(cut)) + cut for cut in strategy]
    agree, devices = True, 1
    for axis in range(rank):
        found = {cut[axis] for size, cut in zip(sizes, cuts, strict=True) if size[axis] > 1}
        agree &= len(found) <= 1
        devices *= max(found, default=1)
    assert carried_out(case, strategy, 4) == (agree and devices <= 4)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("whole", "split"), [(-1, 4), (4, 4)])
def test_an_unknown_size_may_be_the_one_that_is_broadcast(
    turned: bool, whole: int, split: int
) -> None:
    """Of two different splits one is 1: if that size may be 1, the axis is split as the other."""
    shapes, strategy = [[whole, 8], [4, 8]], ((1, 2), (split, 2))
    if turned:
        shapes, strategy = shapes[::-1], strategy[::-1]
    answer = judge(call("Add", *shapes, out=[4, 8]), strategy, context(8))
    assert answer.verdict == ("legal" if whole == -1 else "illegal")
    if whole == -1:
        assert answer.device_matrix == (4, 2)
        (output,) = answer.output_layouts
        assert output.slice_shape == (1, 4)
        maps = answer.input_maps[::-1] if turned else answer.input_maps
        assert maps == ((-1, 0), (1, 0))


@settings(max_examples=40)
@given(st.sampled_from(["ReLU", "Neg", "Square", "Exp"]), splits([(4, 2, 8)], 8))
def test_one_operand(op: str, strategy: tuple[tuple[int, ...], ...]) -> None:
    functions: dict[str, Callable[[Array], Array]] = {
        "ReLU": lambda x: np.maximum(x, 0), "Neg": np.negative, "Square": np.square, "Exp": np.exp,
    }  # fmt: skip
    assert carried_out(Computed(op, ((4, 2, 8),), functions[op]), strategy, 8)


# -- reductions ----------------------------------------------------------------------------------


@settings(max_examples=80)
@given(
    st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"]),
    st.sampled_from([(0,), (1,), (2,), (-1,), (0, 2), (1, -1), (0, 1, 2), ()]),
    st.booleans(),
    splits([(4, 2, 8)], 8),
)
def test_reductions_over_axes_split_or_not(
    op: str, axes: tuple[int, ...], keep: bool, strategy: tuple[tuple[int, ...], ...]
) -> None:
    functions = {
        "ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    }  # fmt: skip
    over = axes or (0, 1, 2)
    case = Computed(
        op, ((4, 2, 8),), lambda x: functions[op](x, axis=over, keepdims=keep), (axes, keep)
    )
    assert carried_out(case, strategy, 8)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@settings(max_examples=25)
@given(splits([(4, 2, 8)], 8))
def test_normalising_over_an_axis_needs_it_whole(
    op: str, axis: int, strategy: tuple[tuple[int, ...], ...]
) -> None:
    def compute(x: Array) -> Array:
        e = np.exp(x)
        found = e / e.sum(axis, keepdims=True)
        return np.log(found) if op == "LogSoftmax" else found

    case = Computed(op, ((4, 2, 8),), compute, attributes=(("axis", axis),))
    assert carried_out(case, strategy, 8) == (strategy[0][axis] == 1)


@settings(max_examples=30)
@given(st.sampled_from([0, 1, 2, -1]), splits([(4, 2, 8)], 8))
def test_running_sums(axis: int, strategy: tuple[tuple[int, ...], ...]) -> None:
    case = Computed(
        "CumSum", ((4, 2, 8),), lambda x: np.cumsum(x, axis), (axis,),
        (("exclusive", False), ("reverse", False)),
    )  # fmt: skip
    assert carried_out(case, strategy, 8) == (strategy[0][axis] == 1)


# -- shapes --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.permutations([0, 1, 2]), splits([(4, 2, 8)], 8))
def test_transposes(order: list[int], strategy: tuple[tuple[int, ...], ...]) -> None:
    case = Computed("Transpose", ((4, 2, 8),), lambda x: x.transpose(order), (tuple(order),))
    assert carried_out(case, strategy, 8)


@settings(max_examples=40)
@given(st.sampled_from([0, 1, 2, 3, -1]), splits([(4, 2, 8)], 8))
def test_a_new_axis(axis: int, strategy: tuple[tuple[int, ...], ...]) -> None:
    case = Computed("ExpandDims", ((4, 2, 8),), lambda x: np.expand_dims(x, axis), (axis,))
    assert carried_out(case, strategy, 8)


@settings(max_examples=40)
@given(st.sampled_from([(), (0,), (2,), (0, 2), (-2,)]), splits([(1, 16, 1, 16)], 8))
def test_an_axis_less(axes: tuple[int, ...], strategy: tuple[tuple[int, ...], ...]) -> None:
    gone = axes or None
    case = Computed(
        "Squeeze", ((1, 16, 1, 16),), lambda x: np.squeeze(x, gone), attributes=(("axis", axes),)
    )
    assert carried_out(case, strategy, 8)


@settings(max_examples=40)
@given(st.sampled_from([0, 1, -1]), splits([(4, 2, 8)], 8))
def test_pieces_put_together(axis: int, strategy: tuple[tuple[int, ...], ...]) -> None:
    case = Computed(
        "Concat", ((4, 2, 8), (4, 2, 8)), lambda *x: np.concatenate(x, axis), (axis,), is_tuple=True
    )
    is_whole = strategy[0][axis] == 1
    assert carried_out(case, matched(case, strategy[0]), 8) == is_whole


@settings(max_examples=40)
@given(st.sampled_from([0, 2, -1]), splits([(4, 2, 8)], 8))
def test_a_tensor_in_pieces(axis: int, strategy: tuple[tuple[int, ...], ...]) -> None:
    case = Computed(
        "Split", ((4, 2, 8),), lambda x: tuple(np.split(x, 2, axis)), (axis, 2),
        (("num_list", (2, 2)),),
    )  # fmt: skip
    assert carried_out(case, strategy, 8) == (strategy[0][axis] == 1)


@settings(max_examples=40)
@given(splits([(4, 8), (2, 4)], 8))
def test_rows_looked_up_in_a_table_that_is_split_by_columns(
    strategy: tuple[tuple[int, ...], ...],
) -> None:
    table, index = strategy
    assume(table[0] == 1)

    def compute(values: Array, places: Array) -> Array:
        return values[places.astype(int) % 4]

    case = Computed("Gather", ((4, 8), (2, 4)), compute, (0,), (("batch_dims", 0),))
    if prod(table) * prod(index) <= 8:
        assert carried_out(case, strategy, 8)

"""What tensors and figures of ranks may be off by and still be the same, from both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from irtool.compare.layouts.assembled import (
    Assembler,
    _apart,
    _are_others,
    _as_stated,
    _groups,
    _same_figures,
)
from irtool.compare.layouts.collectives import _instead
from irtool.compare.layouts.one_rank import are_one
from irtool.compare.layouts.slices import Cut, best_cut, cuts
from irtool.compare.layouts.stages import CannotJoin, stages_of
from irtool.compare.tensors.model import Columns, Op, TensorRun
from tests.compare.test_collectives_by_hand import info, operands

Row = tuple[float, float, float, float]
WHOLE: Row = (3.0, -2.0, 0.5, 10.0)


def row(place: int, off: float) -> Row:
    """The figures of ``WHOLE`` with one of them off by so much."""
    found = list(WHOLE)
    found[place] += off
    return tuple(found)  # type: ignore[return-value]  # four again


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(("off", "is_same"), [(0.9e-4, True), (-0.9e-4, True), (1.1e-4, False)])
def test_figures_of_one_tensor_are_off_by_a_hundred_thousandth_of_its_norm(
    place: int, off: float, is_same: bool
) -> None:
    assert _same_figures([WHOLE, row(place, off)]) == is_same
    assert _same_figures([row(place, off), WHOLE, WHOLE]) == is_same


def test_figures_that_nobody_knows_tell_no_difference() -> None:
    nan, infinite = float("nan"), float("inf")
    assert _same_figures([WHOLE, (nan, -2.0, 0.5, nan)])
    assert not _same_figures([WHOLE, (nan, -2.1, 0.5, nan)])
    assert _same_figures([(infinite, 0.0, 0.0, infinite)] * 2)
    assert _same_figures([WHOLE])
    assert _same_figures([(0.0, 0.0, 0.0, 0.0)] * 2)


@pytest.mark.parametrize(
    ("place", "off", "is_other"),
    [
        (3, 0.199, False),
        (3, 0.205, True),
        (3, -0.21, True),
        (0, 0.059, False),
        (0, 0.062, True),
        (1, 0.059, False),
        (1, -0.062, True),
        (2, 5.0, False),  # a mean tells nothing
    ],
)
def test_gradients_are_surely_others_from_a_fiftieth_on(
    place: int, off: float, is_other: bool
) -> None:
    assert _are_others([WHOLE, row(place, off)]) == is_other
    assert _are_others([WHOLE, WHOLE, row(place, off)]) == is_other


@pytest.mark.parametrize(
    ("own", "dtype", "is_as_stated"),
    [
        (row(3, 10 * 2.0 * 2.0**-11), "Float16", True),
        (row(3, 10 * 2.1 * 2.0**-11), "Float16", False),
        (row(3, 10 * 2.0 * 2.0**-8), "BFloat16", True),
        (row(2, 4 * 2.0 * 2.0**-11), "Float16", True),  # of the largest mean of a part, 4
        (row(2, 4 * 2.1 * 2.0**-11), "Float16", False),
        (row(2, -4 * 2.1 * 2.0**-11), "Float16", False),
        (row(0, 2.0**-11), "Float16", False),
        (row(1, 2.0**-11), "Float16", False),
        (row(3, 10 * 2.0**-24), "Float32", False),
    ],
)
def test_figures_of_half_precision_are_stated_in_it(
    own: Row, dtype: str, is_as_stated: bool
) -> None:
    """Norms and means of the whole are rounded to it, extremes are not."""
    assert _as_stated(own, WHOLE, dtype, 4.0) == (WHOLE if is_as_stated else own)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(("off", "is_one"), [(0.9e-6, True), (1.1e-6, False), (-1.1e-6, False)])
def test_two_calls_show_one_tensor_up_to_a_millionth(place: int, off: float, is_one: bool) -> None:
    ours = (3.0, -2.0, 10.0)
    theirs = [value * (1 + off * (number == place)) for number, value in enumerate(ours)]
    assert are_one(ours, tuple(theirs)) == is_one


# -- values ----------------------------------------------------------------------------------------


def ranks_of(values: Sequence[np.ndarray]) -> dict[tuple[int, int, int], np.ndarray]:
    """Tensors of tensor parallel ranks."""
    return {(0, 0, rank): value for rank, value in enumerate(values)}


@pytest.mark.parametrize(("units", "is_alike"), [(0.95, True), (1.05, False)])
def test_kernels_of_other_ranks_may_round(units: float, is_alike: bool) -> None:
    """Up to 2^-18, which is 64 roundings of Float32."""
    values = ranks_of([np.ones(4), np.ones(4), np.full(4, 1 + units * 2.0**-18)])
    assembler: Any = Assembler.__new__(Assembler)
    assert assembler._alike(0, values, 2) == is_alike
    assert assembler._alike(0, values, 0)  # in another digit there is but one of each


def test_whole_numbers_and_shapes_of_replicas_are_equal() -> None:
    assembler: Any = Assembler.__new__(Assembler)
    large = np.full(4, 1 << 30)
    assert assembler._alike(0, ranks_of([large, large.copy()]), 2)
    assert not assembler._alike(0, ranks_of([large, large + (np.arange(4) == 3)]), 2)
    assert not assembler._alike(0, ranks_of([np.ones(4), np.ones((2, 2))]), 2)


def test_of_ranks_the_odd_one_is_that_which_differs_from_most() -> None:
    values = ranks_of([np.full(2, 2.0), np.ones(2), np.ones(2)])
    (group,) = _groups(values, 2)
    assert _apart(values, group) == {(0, 0, 0): pytest.approx(0.5), (0, 0, 2): 0.0}


def test_groups_differ_in_one_digit() -> None:
    places = [(d, m, t) for d in range(2) for m in range(2) for t in range(2)]
    values = dict.fromkeys(places, np.ones(1))
    assert _groups(values, 2) == [[(d, m, 0), (d, m, 1)] for d in range(2) for m in range(2)]
    assert [[place[2] for place in group] for group in _groups(values, 0)] == [[0] * 4, [1] * 4]


@pytest.mark.parametrize("factor", [0.25, 4.0])
@pytest.mark.parametrize(("off", "is_named"), [(0.9e-5, True), (1.2e-5, False)])
def test_a_mean_in_the_place_of_a_sum_is_named_up_to_a_hundred_thousandth(
    factor: float, off: float, is_named: bool
) -> None:
    given = operands()
    total = np.sum(np.stack(given), axis=0).astype(np.float64)
    text = _instead(info("AllReduce"), (0, 1, 4, 5), 4, given, total, factor * total * (1 + off))
    assert ("what the operands on its ranks make" not in text) == is_named


@pytest.mark.parametrize(("off", "is_named"), [(0.9e-5, True), (1.2e-5, False)])
def test_so_is_an_operand_that_is_left_out(off: float, is_named: bool) -> None:
    given = operands()
    total = np.sum(np.stack(given), axis=0).astype(np.float64)
    left = (total - given[3]) * (1 + off)
    text = _instead(info("AllReduce"), (0, 1, 4, 5), 4, given, total, left)
    assert ("leaves the operand of rank 5 out" in text) == is_named


# -- ways to cut -----------------------------------------------------------------------------------


def taken(
    errors: Mapping[int, float], likely: int | None = None, apart: Mapping[int, float] | None = None
) -> tuple[int, list[int]]:
    """Which of some ways is taken, by the error of each, and which were looked at."""
    candidates = list(cuts((8,), (2,), range(8)))
    assert len(candidates) == 3
    seen: list[int] = []

    def error(cut: Cut) -> float:
        seen.append(candidates.index(cut))
        return errors[seen[-1]]

    found = best_cut(
        candidates,
        error,
        None if likely is None else candidates[likely],
        None if apart is None else lambda cut: apart[candidates.index(cut)],
    )
    return candidates.index(found), seen


@pytest.mark.parametrize(
    ("first", "way", "seen"), [(0.9e-3, 0, [0]), (1.1e-3, 1, [0, 1]), (2e-3, 1, [0, 1])]
)
def test_a_way_that_agrees_to_a_thousandth_is_surely_right(
    first: float, way: int, seen: list[int]
) -> None:
    assert taken({0: first, 1: 1e-4, 2: 0.0}) == (way, seen)


def test_how_others_are_cut_is_looked_at_first() -> None:
    assert taken({0: 0.0, 1: 0.0, 2: 1e-4}, likely=2) == (2, [2])
    assert taken({0: 0.3, 1: 0.2, 2: 0.2}, likely=2) == (2, [2, 0, 1])


@pytest.mark.parametrize(("least", "way"), [(0.49, 1), (0.51, 2), (float("nan"), 2)])
def test_where_half_of_it_is_off_replicas_say_which_way(least: float, way: int) -> None:
    errors = {0: 1.0, 1: least, 2: 1.0}
    if np.isnan(least):
        errors = dict.fromkeys(errors, least)
    assert taken(errors, apart={0: 0.2, 1: 0.3, 2: 0.1})[0] == way


# -- stages ----------------------------------------------------------------------------------------


def named_run(names: Sequence[str]) -> TensorRun:
    ops = [Op(n, name, "Add", "forward", [], []) for n, name in enumerate(names)]
    return TensorRun("run", "mindspore", "tensors", "mindspore", Columns(), ops)


@pytest.mark.parametrize(("own", "is_joined"), [(1, True), (2, False)])
def test_ranks_of_a_stage_run_nine_tenths_alike(own: int, is_joined: bool) -> None:
    common = [f"op{n}" for n in range(10 - own)]
    runs = {rank: named_run([*common, *(f"own{rank}_{n}" for n in range(own))]) for rank in (0, 1)}
    if is_joined:
        assert stages_of(runs).ranks == [[0, 1]]
    else:
        with pytest.raises(CannotJoin, match="run different operators"):
            stages_of(runs)

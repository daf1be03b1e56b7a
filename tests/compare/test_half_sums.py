"""A product that rounds after every term, not only its result, is told from one that does not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.judging import accumulation
from irtool.compare.tensors.judging.accumulation import ENDS, adds_up_in_half, explained_by_ends
from irtool.compare.tensors.judging.cleared import only_propagates
from irtool.compare.tensors.judging.rounded_once import LEAST, times_rounded_once
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots

Array = NDArray[Any]
TERMS = 256
UNIT = 2.0**-11


def operands(seed: int = 3, size: int = 16) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((size, TERMS)).astype(np.float16),
        rng.standard_normal((TERMS, size)).astype(np.float16),
    )


def rounded_once(x: Array, w: Array) -> Array:
    return (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float16)


def tipped_over(result: Array, x: Array, w: Array) -> Array:
    """What is next to a tie, rounded the other way, as another order of terms may have it."""
    off = x.astype(np.float64) @ w.astype(np.float64) - result
    others = np.nextafter(result, np.where(off > 0, np.inf, -np.inf).astype(np.float16))
    is_tie = np.abs(off) > 0.48 * np.abs(others - result).astype(float)
    return np.where(is_tie, others, result)


def rounded_each_time(x: Array, w: Array) -> Array:
    total = np.zeros((len(x), w.shape[1]), np.float16)
    for place in range(x.shape[1]):
        total = (total + np.outer(x[:, place], w[place])).astype(np.float16)
    return total


def recorded(folder: Path, result: Array, x: Array, w: Array, type_: str = "matmul") -> TensorRun:
    """A dump of one product, its tensors in files."""
    folder.mkdir()
    columns = Columns()
    places: list[int] = []
    for label, values in (("input.0", x), ("input.1", w), ("output.0", result)):
        file = folder / f"{label}.npy"
        np.save(file, values)
        name = {"float16": "Float16", "float32": "Float32"}[values.dtype.name]
        figures = (values.max(), values.min(), values.mean(), np.linalg.norm(values.astype(float)))
        places.append(
            columns.add(label, name, values.shape, tuple(map(float, figures)), file=str(file))  # type: ignore[arg-type]  # four of them
        )
    op = Op(0, "product", type_, "forward", places[:2], places[2:])
    return TensorRun(str(folder), "msprobe", "tensor", "pytorch", columns, [op])


def judged_of(left: TensorRun, right: TensorRun, error_in: float = 0.0) -> Judged:
    pair = OpPair(left.ops[0], right.ops[0], "order")
    slots = Slots(((0, 0), (1, 1)), ((2, 2),))
    return Judged(pair, slots, error_in=error_in, output=(2, 2))


@pytest.mark.parametrize(("wrong", "name"), [(0, "left"), (1, "right"), (None, "")])
def test_the_side_that_rounds_after_every_term_is_named(
    wrong: int | None, name: str, tmp_path: Path
) -> None:
    x, w = operands()
    results = [rounded_each_time(x, w) if side == wrong else rounded_once(x, w) for side in (0, 1)]
    if wrong is None:
        results[1] = tipped_over(results[0], x, w)
    left, right = (recorded(tmp_path / str(side), results[side], x, w) for side in (0, 1))
    measure = measure_arrays(*results)
    assert adds_up_in_half(left, right, judged_of(left, right), measure, None) == name


@pytest.mark.parametrize("is_small", [False, True])
def test_an_error_that_came_in_accuses_no_kernel_but_of_products_that_cost_nothing(
    is_small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is held to what its own inputs give, so it is only a matter of time."""
    x, w = operands()
    monkeypatch.setattr(accumulation, "_SMALL", TERMS * 16 * 16 - (not is_small))
    left = recorded(tmp_path / "left", rounded_each_time(x, w), x, w)
    right = recorded(tmp_path / "right", rounded_once(x, w), x, w)
    measure = measure_arrays(rounded_each_time(x, w), rounded_once(x, w))
    for part, name in ((0.09, "left"), (0.11, "left" if is_small else "")):
        judged = judged_of(left, right, part * measure.error)
        assert adds_up_in_half(left, right, judged, measure, None) == name


def test_only_sums_of_many_terms_in_half_precision_are_looked_at(tmp_path: Path) -> None:
    x, w = operands()
    wrong, right_one = rounded_each_time(x, w), rounded_once(x, w)
    measure = measure_arrays(wrong, right_one)
    add = recorded(tmp_path / "add", wrong, x, w, "add")
    assert adds_up_in_half(add, add, judged_of(add, add), measure, None) == ""
    single = [
        recorded(tmp_path / name, some.astype(np.float32), x.astype(np.float32),
                 w.astype(np.float32))
        for name, some in (("wrong", wrong), ("right", right_one))
    ]  # fmt: skip
    assert adds_up_in_half(*single, judged_of(*single), measure, None) == ""


def test_what_rounding_its_ends_explains_grows_where_terms_cancel() -> None:
    def explained(norms: tuple[float, float], norm: float) -> float:
        columns = Columns()
        places = [
            columns.add("input.0", "Float16", (16, TERMS), (1, -1, 0, norms[0])),
            columns.add("input.1", "Float16", (TERMS, 16), (1, -1, 0, norms[1])),
            columns.add("output.0", "Float16", (16, 16), (1, -1, 0, norm)),
        ]
        op = Op(0, "product", "matmul", "forward", places[:2], places[2:])
        return explained_by_ends(TensorRun("", "msprobe", "tensor", "pytorch", columns, [op]), op)

    # Without cancellation the result is as large as its inputs over the root of the terms.
    usual = 64 * 64 / 16
    assert explained((64, 64), usual) == pytest.approx(ENDS)
    assert explained((64, 64), 4 * usual) == pytest.approx(ENDS)
    assert explained((64, 64), usual / 4) == pytest.approx(4 * ENDS)
    nan = float("nan")
    assert explained((64, 64), 0.0) == explained((64, 64), nan) == explained((nan, 64), 1) == ENDS


# -- what each side's inputs give ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "propagates", "wrong"),
    [((0, 0), True, ""), ((1, 0), False, "left"), ((0, 1), False, "right"),
     ((1, 1), False, "left and right")],
)  # fmt: skip
def test_an_operator_that_puts_out_what_its_inputs_give_is_innocent(
    off: tuple[int, int], propagates: bool, wrong: str, tmp_path: Path
) -> None:
    """Inputs differ from side to side; a result may be one hundredth off what they give."""
    runs: list[TensorRun] = []
    for side, (seed, is_off) in enumerate(zip((3, 4), off, strict=True)):
        x, w = (values.astype(np.float32) for values in operands(seed))
        result = (x.astype(np.float64) @ w.astype(np.float64)) * (1.01 if is_off else 1.0)
        runs.append(recorded(tmp_path / str(side), result.astype(np.float32), x, w))
    judged = judged_of(runs[0], runs[1])
    assert only_propagates(runs[0], runs[1], judged, None, {}) is propagates
    assert judged.wrong == wrong
    assert ("computed again in double precision" in judged.why) is not propagates


@pytest.mark.parametrize(("times", "propagates"), [(2.9, True), (3.1, False)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_result_may_be_three_times_its_rounding_off_what_its_inputs_give(
    times: float, propagates: bool, side: int, tmp_path: Path
) -> None:
    """A rounding for the root of the terms, and two of storing it."""
    off = times * (math.sqrt(TERMS) + 2) * 2.0**-24
    runs: list[TensorRun] = []
    for which in (0, 1):
        x, w = (values.astype(np.float32) for values in operands(3 + which))
        result = (x.astype(np.float64) @ w.astype(np.float64)) * (1 + off * (which == side))
        runs.append(recorded(tmp_path / str(which), result.astype(np.float32), x, w))
    judged = judged_of(runs[0], runs[1])
    assert only_propagates(runs[0], runs[1], judged, None, {}) is propagates
    assert judged.wrong == ("" if propagates else ("left", "right")[side])


def test_what_nobody_can_compute_again_is_not_innocent(tmp_path: Path) -> None:
    x, w = operands()
    run = recorded(tmp_path / "run", rounded_once(x, w), x, w, "mystery")
    judged = judged_of(run, run)
    assert only_propagates(run, run, judged, None, {}) is False
    assert judged.wrong == ""


# -- partial sums that are rounded -----------------------------------------------------------------


def rounded_in_parts(x: Array, w: Array, parts: int) -> Array:
    total = np.zeros((len(x), w.shape[1]), np.float16)
    for some in np.array_split(np.arange(x.shape[1]), parts):
        total = (total + x[:, some].astype(float) @ w[some].astype(float)).astype(np.float16)
    return total


def added_in_other_blocks(x: Array, w: Array) -> Array:
    halves = np.array_split(np.arange(x.shape[1]), 2)
    parts = [x[:, some].astype(np.float32) @ w[some].astype(np.float32) for some in halves]
    return (parts[0] + parts[1]).astype(np.float16)


def times_of(tmp_path: Path, name: str, result: Array, bias: Array | None = None) -> float:
    x, w = operands(size=64)
    run = recorded(tmp_path / name, result, x, w)
    if bias is not None:
        run = recorded(tmp_path / f"{name}, biased", result, x, np.ascontiguousarray(w.T), "linear")
        columns, file = run.columns, tmp_path / f"{name} bias.npy"
        np.save(file, bias)
        run.ops[0].inputs = (0, 1, columns.add("input.2", "Float16", bias.shape, file=str(file)))
    return times_rounded_once(run, run.ops[0], 2)


@pytest.mark.parametrize(("parts", "is_seen"), [(1, False), (2, True), (4, True)])
def test_a_sum_that_is_rounded_a_few_times_on_its_way_is_seen(
    parts: int, is_seen: bool, tmp_path: Path
) -> None:
    """One rounding of a part more gives 1.2 times the error, whatever the type's unit allows."""
    x, w = operands(size=64)
    result = rounded_in_parts(x, w, parts)
    times = times_of(tmp_path, "run", result)
    assert bool(times) is is_seen
    left = recorded(tmp_path / "left", rounded_once(x, w), x, w)
    right = recorded(tmp_path / "right", result, x, w)
    measure = measure_arrays(rounded_once(x, w), result)
    assert measure.error < ENDS * UNIT  # it is within what rounding the ends explains
    judged = judged_of(left, right)
    assert adds_up_in_half(left, right, judged, measure, None) == ("right" if is_seen else "")
    assert adds_up_in_half(right, left, judged, measure, None) == ("left" if is_seen else "")
    assert adds_up_in_half(right, right, judged, measure, None) == ""  # neither is further off


def test_other_blocks_a_bias_added_afterwards_and_cut_digits_are_healthy(tmp_path: Path) -> None:
    x, w = operands(size=64)
    exact = x.astype(float) @ w.astype(float)
    assert times_of(tmp_path, "blocks", added_in_other_blocks(x, w)) == 0.0
    nearest = exact.astype(np.float16)
    is_longer = np.abs(nearest.astype(float)) > np.abs(exact)
    cut = np.where(is_longer, np.nextafter(nearest, np.float16(0)), nearest)
    assert times_of(tmp_path, "cut", cut) == 0.0
    bias = (8 * np.random.default_rng(5).standard_normal(64)).astype(np.float16)
    assert times_of(tmp_path, "bias", (exact + bias).astype(np.float16), bias) == 0.0
    assert times_of(tmp_path, "rounded twice", nearest + bias, bias) == 0.0
    parts = rounded_in_parts(x, w, 8) + bias
    assert times_of(tmp_path, "rounded on its way", parts, bias) > LEAST


@pytest.mark.parametrize(("off", "is_seen"), [(0.10, False), (0.20, True)])
def test_a_result_may_be_15_percent_further_off_than_rounding_once(
    off: float, is_seen: bool, tmp_path: Path
) -> None:
    """Errors of that size, at random places: as many as make the sum of squares that much more."""
    x, w = operands(size=64)
    exact = x.astype(float) @ w.astype(float)
    once = exact.astype(np.float16)
    best = float(((once - exact) ** 2).sum())
    wanted = ((1 + off) ** 2 - 1) * best
    noise = np.random.default_rng(7).standard_normal(exact.shape)
    noise -= noise.ravel() @ (once - exact).ravel() / best * (once - exact)
    noise *= math.sqrt(wanted / float((noise**2).sum()))
    run = recorded(tmp_path / "run", (once + noise).astype(np.float32), x, w)
    run.columns.dtypes[2] = "Float16"
    times = times_rounded_once(run, run.ops[0], 2)
    assert (times > 0) is is_seen

"""What is taken for the cause of a fault, from both sides of each limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.judging.handed import Handed
from irtool.compare.tensors.judging.inserted import is_missing
from irtool.compare.tensors.judging.left_open import leave_open
from irtool.compare.tensors.judging.lookback import is_same_tensor, look_back
from irtool.compare.tensors.judging.otherwise import called_otherwise
from irtool.compare.tensors.judging.picked import picked_from
from irtool.compare.tensors.judging.regrouped import regrouped
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import NAN, Columns, Op, Phase, Shape, TensorRun
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from tests.compare.operators import run, tensor

U = 2.0**-24
"""Roundoff of Float32."""


def saved(
    columns: Columns, folder: Path, values: np.ndarray, dtype: str = "Float32", label: str = "x"
) -> int:
    """Put a tensor with its values into columns; its place."""
    path = folder / f"{id(columns)}_{len(columns)}.npy"
    np.save(path, values)
    figures = (values.max(), values.min(), values.mean(), np.linalg.norm(values.astype(float)))
    return columns.add(label, dtype, values.shape, tuple(map(float, figures)), str(path))


def op(
    index: int,
    name: str,
    inputs: Sequence[int],
    outputs: Sequence[int],
    phase: Phase = "forward",
    is_module: bool = False,
) -> Op:
    type_ = name.split(".")[1]
    return Op(index, name, type_, phase, inputs, outputs, is_module=is_module)


def judged(left: Op, right: Op, verdict: str = "rounding") -> Judged:
    pairs = tuple(zip(left.inputs, right.inputs, strict=True))
    slots = Slots(pairs, tuple(zip(left.outputs, right.outputs, strict=True)))
    return Judged(OpPair(left, right, "name"), slots, verdict)  # type: ignore[arg-type]


# -- a call that was asked for another result ------------------------------------------------------


def asked(norm: float, rows: int, extra: Sequence[Op] = ()) -> TensorRun:
    columns = Columns()
    given = tensor(columns, "input.0", (6, 4), norm=norm)
    made = tensor(columns, "output.0", (rows, 4), norm=1.0)
    read = tensor(columns, "output.0", (6, 4), norm=1.0)
    calls = [op(0, "Torch.topk.0", [given], [made]), op(1, "Torch.cos.0", [made], [read])]
    return run(columns, calls)


@pytest.mark.parametrize(("norm", "is_named"), [(1.0009, True), (1.0011, False), (NAN, True)])
def test_calls_are_given_the_same_up_to_a_thousandth_of_the_norm(
    norm: float, is_named: bool
) -> None:
    left, right = asked(1.0, 2), asked(norm, 1)
    first = judged(left.ops[1], right.ops[1], "introduces error")
    found = called_otherwise(left, right, first, ({1}, {1}))
    assert (found is not None and found.pair.left.name == "Torch.topk.0") == is_named


def test_only_calls_without_a_partner_before_the_accused_one_are_named() -> None:
    left, right = asked(1.0, 2), asked(1.0, 1)
    first = judged(left.ops[1], right.ops[1], "introduces error")
    assert called_otherwise(left, right, first, ({0, 1}, {1})) is None
    assert called_otherwise(left, right, first, ({1}, {0, 1})) is None
    assert called_otherwise(left, right, judged(left.ops[0], right.ops[0]), ({1}, {1})) is None
    same = asked(1.0, 2)
    assert called_otherwise(left, same, first, ({1}, {1})) is None


# -- since when an input is off --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "is_same"),
    [
        ((2.0, -2.0, 0.0, 3.0 * (1 + 0.9e-5)), True),
        ((2.0, -2.0, 0.0, 3.0 * (1 + 1.2e-5)), False),
        ((2.1, -2.0, 0.0, 3.0), False),
        ((2.0, -2.1, 0.0, 3.0), False),
    ],
)
def test_a_tensor_is_another_with_its_extremes_and_nearly_its_norm(
    figures: tuple[float, float, float, float], is_same: bool
) -> None:
    columns = Columns()
    one = columns.add("output.0", "Float32", (4, 4), (2.0, -2.0, 0.0, 3.0))
    other = columns.add("input.0", "Float32", (2, 8), figures)
    assert is_same_tensor(columns, one, other) == is_same


def test_a_tensor_of_another_size_is_another() -> None:
    columns = Columns()
    figures = (2.0, -2.0, 0.0, 3.0)
    one = columns.add("output.0", "Float32", (4, 4), figures)
    assert not is_same_tensor(columns, one, columns.add("input.0", "Float32", (4, 5), figures))


def looked_back(error: float) -> Judged:
    """What is said of an input that both sides made, so far apart, two calls before."""
    runs: list[TensorRun] = []
    for _ in range(2):
        columns = Columns()
        figures = (2.0, -2.0, 0.0, 3.0)
        made = columns.add("output.0", "Float32", (4, 4), figures)
        free = columns.add("output.0", "Float32", (4, 4), (1.0, 0.0, 0.5, 2.0))
        view = columns.add("output.0", "Float32", (16,), (1.0, 0.0, 0.5, 2.0))
        read = columns.add("input.0", "Float32", (4, 4), figures)
        calls = [
            op(0, "Torch.exp.0", [], [made]),
            op(1, "Torch.sin.0", [], [free]),
            op(2, "Tensor.view.0", [], [view]),
            op(3, "Torch.cos.0", [read], []),
        ]
        runs.append(run(columns, calls))
    maker = judged(runs[0].ops[0], runs[1].ops[0])
    reader = judged(runs[0].ops[3], runs[1].ops[3], "introduces error")
    reader.output = reader.slots.inputs[0]
    measures = {maker.slots.outputs[0]: Measure(error, 3.0, 3.0, False, 0, 0, True)}
    look_back(runs[0], runs[1], reader, [maker], measures, ({0, 3}, {0, 3}))
    return reader


@pytest.mark.parametrize(("error", "is_known"), [(0.9e-3, True), (1.1e-3, False), (NAN, False)])
def test_both_sides_made_an_input_alike_up_to_a_thousandth(error: float, is_known: bool) -> None:
    found = looked_back(error)
    assert (found.since is not None and found.since.name == "Torch.exp.0") == is_known


def test_calls_of_one_side_in_between_are_named_but_for_views() -> None:
    assert looked_back(0.0).alone == (("Torch.sin.0",), ("Torch.sin.0",))


@pytest.mark.parametrize(
    ("off", "moved", "is_permuted"),
    [
        (0.0, True, True),
        (0.8e-5, True, True),  # as it rounds
        (1.5e-5, True, False),
        (0.0, False, False),  # nothing is brought nearer
    ],
)
def test_the_same_numbers_in_another_order_are_told(
    tmp_path: Path, off: float, moved: bool, is_permuted: bool
) -> None:
    values = np.arange(1, 17, dtype=np.float32)
    other = (values[::-1] if moved else values) * np.float32(1 + off)
    left, right = Columns(), Columns()
    places = saved(left, tmp_path, values), saved(right, tmp_path, other)
    ops = op(0, "Torch.cos.0", [places[0]], []), op(0, "Torch.cos.0", [places[1]], [])
    reader = judged(*ops, "introduces error")
    reader.output = places
    look_back(run(left, [ops[0]]), run(right, [ops[1]]), reader, [], {}, (set(), set()))
    assert reader.is_permuted == is_permuted


# -- an input picked from an earlier result --------------------------------------------------------


def picked(folder: Path, result: np.ndarray, given: np.ndarray, calls_between: int = 0) -> str:
    """The call that an input is picked from, of which only the first has no partner."""
    columns = Columns()
    made = saved(columns, folder, result)
    other = saved(columns, folder, np.full((2, 2), 99, np.float32))
    read = saved(columns, folder, given)
    calls = [op(0, "Torch.exp.0", [], [made])]
    calls += [op(n, f"Torch.abs.{n}", [], [other]) for n in range(1, calls_between + 1)]
    reader = op(len(calls), "Torch.cos.0", [read], [])
    found = picked_from(run(columns, [*calls, reader]), frozenset((0,)), reader, read)
    return "" if found is None else found.name


MADE = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize(
    ("given", "is_picked"),
    [
        (MADE[2:4], True),
        (MADE[2:4] + np.float32(0.5), False),
        (np.append(MADE[2], np.float32(50)), False),  # beyond the extremes
    ],
)
def test_all_numbers_of_an_input_stand_in_what_it_is_picked_from(
    tmp_path: Path, given: np.ndarray, is_picked: bool
) -> None:
    assert bool(picked(tmp_path, MADE, given)) == is_picked


@pytest.mark.parametrize(("numbers", "is_picked"), [(4, False), (3, True)])
def test_of_fewer_than_four_numbers_extremes_alone_tell(
    tmp_path: Path, numbers: int, is_picked: bool
) -> None:
    """None of them stands in the result; all are between its extremes."""
    given = np.arange(numbers, dtype=np.float32) + np.float32(0.5)
    assert bool(picked(tmp_path, MADE, given)) == is_picked


@pytest.mark.parametrize(("between", "is_picked"), [(63, True), (64, False)])
def test_sixty_four_calls_are_looked_back(tmp_path: Path, between: int, is_picked: bool) -> None:
    assert bool(picked(tmp_path, MADE, MADE[2:4], between)) == is_picked


@pytest.mark.parametrize(("off", "is_picked"), [(0.9, True), (1.1, False)])
def test_behind_a_cast_numbers_are_one_rounding_off(
    tmp_path: Path, off: float, is_picked: bool
) -> None:
    given = (MADE[2:4] * np.float32(1 + off * 2.0**-11)).astype(np.float32)
    columns = Columns()
    made = saved(columns, tmp_path, MADE)
    path = tmp_path / "given.npy"
    np.save(path, given)
    figures = (float(given.max()), float(given.min()), NAN, NAN)
    read = columns.add("input.0", "Float16", given.shape, figures, str(path))
    reader = op(1, "Torch.cos.0", [read], [])
    calls = run(columns, [op(0, "Torch.exp.0", [], [made]), reader])
    assert (picked_from(calls, frozenset((0,)), reader, read) is not None) == is_picked


# -- what one side hands on and the other does not -------------------------------------------------


def handed(folder: Path, off: float, before: float, error: float | None = None) -> bool:
    """Whether a result that the left side alone hands on is told, moved so far on the right."""
    draw = np.random.default_rng(1)
    values = draw.standard_normal(4096).astype(np.float32)
    turned = draw.standard_normal(4096).astype(np.float32)
    turned *= np.linalg.norm(values) / np.linalg.norm(turned)
    sides = Columns(), Columns()
    other = (values + np.float32(before) * turned).astype(np.float32)
    moved = (other + np.float32(off) * turned[::-1]).astype(np.float32)
    made = tuple(
        saved(columns, folder, one) for columns, one in zip(sides, (values, other), strict=True)
    )
    read = tuple(
        saved(columns, folder, one) for columns, one in zip(sides, (values, moved), strict=True)
    )
    calls = [op(0, "Torch.exp.0", [], [place]) for place in made]
    runs = tuple(run(columns, [call]) for columns, call in zip(sides, calls, strict=True))
    known = Handed((runs[0], runs[1]))
    known.remember(calls[0], [(made[0], made[1])])
    measures = {(made[0], made[1]): Measure(before, 1.0, 1.0, False, 0, 0, True)}
    seen = math.hypot(off, before) if error is None else error
    return known.changed((read[0], read[1]), seen, measures) is not None


@pytest.mark.parametrize(
    ("off", "before", "is_told"),
    [
        (3.6 * U, 0.0, False),  # four units of the type
        (5.0 * U, 0.0, True),
        (0.019, 0.01, False),  # twice the error before
        (0.022, 0.01, True),
        (0.9, 0.24, True),
        (0.9, 0.26, False),  # so far apart before that nothing is known of it
    ],
)
def test_a_change_of_what_one_side_hands_on_is_more_than_rounding_and_what_came_before(
    tmp_path: Path, off: float, before: float, is_told: bool
) -> None:
    assert handed(tmp_path, off, before, error=1.0) == is_told


@pytest.mark.parametrize(("units", "is_told"), [(3.9, False), (4.1, True)])
def test_an_input_is_looked_at_from_four_units_on(
    tmp_path: Path, units: float, is_told: bool
) -> None:
    assert handed(tmp_path, 0.1, 0.0, error=units * U) == is_told


# -- a change that the other side lacks ------------------------------------------------------------


def lacks(share: float, noise: float, size: int = 10_000) -> bool:
    """Whether the other side lacks a change of length 1, of which it makes all but ``share``.

    What it reads is off what goes in by rounding too, at right angles to the change.
    """
    entry = math.hypot(1 - share, noise)
    out = math.hypot(share, noise)

    def apart(distance: float) -> Measure:
        return Measure(distance, 1.0, 1.0, False, 0, 0, True)

    return is_missing(apart(out), apart(1.0), apart(entry), size)


@pytest.mark.parametrize(
    ("share", "noise", "is_lacking"),
    [
        (1.0, 0.0, True),
        (0.76, 0.0, True),  # a quarter off one
        (0.74, 0.0, False),
        (1.24, 0.0, True),
        (1.26, 0.0, False),
        (0.0, 0.0, False),
        (1.0, 4.9, True),  # a twentieth times the root of the number of elements
        (1.0, 5.1, False),
    ],
)
def test_a_change_is_lacking_if_nearly_all_of_it_is_and_rounding_hides_none(
    share: float, noise: float, is_lacking: bool
) -> None:
    assert lacks(share, noise) == is_lacking


# -- the same in other parts -----------------------------------------------------------------------


def parts(folder: Path, near: float, error: float, error_in: float = 0.0, between: int = 0) -> bool:
    """Whether a later call of the left side alone is found to give what the right side gives."""
    values = np.random.default_rng(2).standard_normal(4096).astype(np.float32)
    turned = np.random.default_rng(3).standard_normal(4096).astype(np.float32)
    turned *= np.linalg.norm(values) / np.linalg.norm(turned)
    left, right = Columns(), Columns()
    made = saved(left, folder, (values + np.float32(error) * turned).astype(np.float32))
    meant = saved(left, folder, (values + np.float32(near) * turned).astype(np.float32))
    far = saved(left, folder, (values * 3).astype(np.float32))
    whole = saved(right, folder, values)
    calls = [op(0, "Functional.linear.0", [], [made])]
    calls += [op(n, f"Torch.abs.{n}", [], [far]) for n in range(1, between + 1)]
    calls.append(op(len(calls), "Tensor.add.0", [], [meant]))
    accused = judged(calls[0], op(0, "Functional.linear.0", [], [whole]), "introduces error")
    accused.error_in = error_in
    runs = run(left, calls), run(right, [accused.pair.right])
    measures = {accused.slots.outputs[0]: Measure(error, 1.0, 1.0, False, 0, 0, True)}
    return 0 in regrouped(runs[0], runs[1], [accused], ({0}, {0}), measures)


@pytest.mark.parametrize(
    ("near", "error", "error_in", "is_meant"),
    [
        (7.5 * U, 0.5, 0.0, True),  # eight units
        (8.7 * U, 0.5, 0.0, False),
        (0.0075, 0.5, 0.001, True),  # or eight times what came in
        (0.0085, 0.5, 0.001, False),
        (0.0048, 0.01, 0.001, True),  # and nearer by half
        (0.0053, 0.01, 0.001, False),
    ],
)
def test_what_is_meant_is_near_and_nearer_than_what_was_paired(
    tmp_path: Path, near: float, error: float, error_in: float, is_meant: bool
) -> None:
    assert parts(tmp_path, near, error, error_in) == is_meant


@pytest.mark.parametrize(("between", "is_meant"), [(7, True), (8, False)])
def test_it_is_one_of_the_next_eight_calls(tmp_path: Path, between: int, is_meant: bool) -> None:
    assert parts(tmp_path, 0.0, 0.5, between=between) == is_meant


# -- what figures leave open -----------------------------------------------------------------------


def left_open(between: int, least: float = -math.inf, shape: Shape = (4, 4)) -> Judged:
    """An accused call of a masked input that a call gave, so many calls before."""
    runs: list[TensorRun] = []
    for _ in range(2):
        columns = Columns()
        figures = (2.0, least, NAN, 3.0)
        made = columns.add("output.0", "Float32", shape, figures, broken=0)
        other = columns.add("output.0", "Float32", (4, 4), (1.0, 0.0, 0.5, 2.0))
        read = columns.add("input.0", "Float32", (4, 4), figures, broken=0)
        calls = [op(0, "Torch.masked_fill.0", [], [made])]
        calls += [op(n, f"Torch.abs.{n}", [], [other]) for n in range(1, between + 1)]
        calls.append(op(len(calls), "Torch.softmax.0", [read], []))
        runs.append(run(columns, calls))
    pairs = [judged(a, b) for a, b in zip(runs[0].ops, runs[1].ops, strict=True)]
    accused = pairs[-1]
    accused.may_be_order = True
    makers = Makers(runs[0], runs[1], [item.pair for item in pairs])
    measures = {accused.slots.inputs[0]: Measure(0.0, 3.0, 3.0, False, 0, 0, False)}
    leave_open((runs[0], runs[1]), accused, pairs[:-1], makers, measures)
    return accused


@pytest.mark.parametrize(("between", "is_known"), [(7, True), (8, False)])
def test_a_masked_input_is_traced_back_over_eight_calls(between: int, is_known: bool) -> None:
    found = left_open(between)
    assert found.may_be_mask
    assert (found.since is not None and found.since.name == "Torch.masked_fill.0") == is_known


def test_only_what_holds_infinity_is_masked() -> None:
    found = left_open(0, least=-1e9)
    assert not found.may_be_mask
    assert found.since is None


def test_a_result_of_another_size_is_not_that_input() -> None:
    assert left_open(0, shape=(4, 5)).since is None

"""Where both sides agree again, from both sides of each limit; figures and measures are stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.judging.rejoined import has_other_operands, reads_otherwise, rejoined
from irtool.compare.tensors.judging.verdict import Judged, Verdict
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Phase, Places, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from tests.compare.test_limits_of_causes import U

HALF_UNIT = 2.0**-11
"""Roundoff of Float16."""


def off(error: float, scale: float = 0.0) -> Measure:
    """Of tensors so far apart, the right one so much longer."""
    return Measure(error, 1.0, 1.0 + scale, error == 0, 0, 0, True)


@dataclass
class Calls:
    """Calls of two runs; a value is known by its number, which is its norm."""

    dtype: str = "Float32"
    columns: tuple[Columns, Columns] = field(default_factory=lambda: (Columns(), Columns()))
    ops: tuple[list[Op], list[Op]] = field(default_factory=lambda: ([], []))
    judged: list[Judged] = field(default_factory=list[Judged])
    measures: dict[Places, Measure] = field(default_factory=dict[Places, Measure])

    def one(
        self, which: int, name: str, given: Sequence[float], made: float, phase: Phase = "forward"
    ) -> Op:
        """A call of one side."""
        columns, ops = self.columns[which], self.ops[which]
        places = [
            columns.add("x", self.dtype, (4, 4), (norm / 2, -norm / 3, 0.1, norm))
            for norm in (*given, made)
        ]
        op = Op(len(ops), name, name.split(".")[1], phase, places[:-1], places[-1:], call=name)
        ops.append(op)
        return op

    def both(
        self,
        names: tuple[str, str],
        given: tuple[Sequence[float], Sequence[float]],
        made: tuple[float, float],
        error: float,
        *,
        verdict: Verdict = "carries error",
        error_in: float = 0.0,
        scale: float = 0.0,
        phase: Phase = "forward",
        entered: str = "",
    ) -> Judged:
        """A pair of calls whose results are so far apart."""
        left, right = (
            self.one(which, names[which], given[which], made[which], phase) for which in (0, 1)
        )
        inputs = tuple(zip(left.inputs, right.inputs, strict=False))
        slots = Slots(inputs, ((left.outputs[0], right.outputs[0]),))
        self.measures[slots.outputs[0]] = off(error, scale)
        item = Judged(OpPair(left, right, "name"), slots, verdict, error_in=error_in)
        item.error_out, item.entered = error, entered
        self.judged.append(item)
        return item

    def settled(self) -> dict[int, str]:
        """Why nothing is wrong, by the index of the left call."""
        runs = [
            TensorRun("run", "msprobe", "tensors", "pytorch", columns, ops)
            for columns, ops in zip(self.columns, self.ops, strict=True)
        ]
        return rejoined((runs[0], runs[1]), self.judged, self.measures)


ROOTS = ("Tensor.sqrt.0", "Tensor.rsqrt.0")
USES = ("Tensor.__truediv__.0", "Tensor.__mul__.0")


def is_settled(
    error: float = 0.5,
    later: float = 0.0,
    *,
    before: float = 0.0,
    dtype: str = "Float32",
    scale: float = 0.0,
    between: int = 0,
) -> bool:
    """Whether a root and its inverse are acquitted.

    Args:
        error: of these.
        later: of the results that are computed of them.
        before: of a call before.
        dtype: of all tensors.
        scale: how much longer the right result is.
        between: how many more calls the left side has between.
    """
    calls = Calls(dtype)
    calls.both(("Torch.exp.0", "Torch.exp.0"), ([1.0], [1.0]), (2.0, 2.0), before)
    calls.both(ROOTS, ([2.0], [2.0]), (3.0, 4.0), error, verdict="introduces error")
    read = 3.0
    for number in range(between):
        calls.one(0, f"Torch.sin.{number}", [read], 100.0 + number)
        read = 100.0 + number
    calls.both(USES, ([2.0, read], [2.0, 4.0]), (5.0, 5.0), later, scale=scale)
    return 1 in calls.settled()


@pytest.mark.parametrize(
    ("dtype", "error", "expected"),
    [
        ("Float32", 0.0199, False),
        ("Float32", 0.0201, True),
        ("Float16", 0.249, False),
        ("Float16", 0.251, True),
    ],
)
def test_what_is_computed_otherwise_is_grossly_off(
    dtype: str, error: float, expected: bool
) -> None:
    assert is_settled(error, dtype=dtype) == expected


@pytest.mark.parametrize(
    ("later", "before", "error", "dtype", "expected"),
    [
        (7.9 * U, 0.0, 0.5, "Float32", True),  # eight units
        (8.1 * U, 0.0, 0.5, "Float32", False),
        (0.0079, 0.001, 0.5, "Float32", True),  # or times the error before
        (0.0081, 0.001, 0.5, "Float32", False),
        (0.0312, 0.01, 0.5, "Float32", True),  # and a sixteenth of what was off
        (0.0313, 0.01, 0.5, "Float32", False),
        (1.9 * HALF_UNIT, 0.0, 0.5, "Float16", True),  # two units of half precision
        (2.1 * HALF_UNIT, 0.0, 0.5, "Float16", False),
    ],
)
def test_results_agree_as_far_as_rounding_lets_them(
    later: float, before: float, error: float, dtype: str, expected: bool
) -> None:
    assert is_settled(error, later, before=before, dtype=dtype) == expected


@pytest.mark.parametrize(("units", "expected"), [(1.4, True), (1.6, False)])
def test_in_half_precision_results_are_as_long_too(units: float, expected: bool) -> None:
    """One and a half units: rounding errs up as often as down."""
    error = 1.9 * HALF_UNIT
    assert is_settled(0.5, error, dtype="Float16", scale=units * HALF_UNIT) == expected
    assert is_settled(0.5, 4 * U, scale=units * HALF_UNIT)


@pytest.mark.parametrize(("between", "expected"), [(0, True), (30, True), (31, False)])
def test_thirty_calls_lie_between_at_most(between: int, expected: bool) -> None:
    """Thirty-two with the two that are accused."""
    assert is_settled(between=between) == expected


def test_the_first_64_that_are_accused_are_looked_at() -> None:
    calls = Calls()
    for number in range(66):
        start = 1000.0 * (number + 1)
        calls.both(
            (f"Tensor.sqrt.{number}", f"Tensor.rsqrt.{number}"),
            ([start], [start]), (start + 1, start + 2), 0.5, verdict="introduces error",
        )  # fmt: skip
        calls.both(
            (f"Tensor.__truediv__.{number}", f"Tensor.__mul__.{number}"),
            ([start + 1], [start + 2]), (start + 3, start + 3), 0.0,
        )  # fmt: skip
    assert sorted(calls.settled()) == [2 * number for number in range(64)]


@pytest.mark.parametrize(
    ("names", "error_in", "expected"),
    [
        (("Torch.tanh.0", "Torch.tanh.0"), 0.0, False),  # the same function of the same
        (("Torch.tanh.0", "Torch.tanh.0"), 0.031, False),
        (("Torch.tanh.0", "Torch.tanh.0"), 0.032, True),  # a sixteenth of what comes out
        (("Torch.tanh.0", "Torch.sin.0"), 0.0, True),
        (("Torch.dropout.0", "Torch.sin.0"), 0.0, False),
    ],
)
def test_one_function_of_the_same_is_at_fault_wherever_that_leads(
    names: tuple[str, str], error_in: float, expected: bool
) -> None:
    calls = Calls()
    calls.both(
        names, ([2.0], [2.0]), (3.0, 4.0), 0.5, verdict="introduces error", error_in=error_in
    )
    calls.both(USES, ([2.0, 3.0], [2.0, 4.0]), (5.0, 5.0), 0.0)
    assert (0 in calls.settled()) == expected


# -- gradients -------------------------------------------------------------------------------------


def gradients_settled(
    later: Sequence[float],
    *,
    error: float = 0.5,
    before: float = 0.0,
    dtype: str = "Float32",
    verdict: Verdict = "carries error",
) -> bool:
    """Whether the gradient of a sum is acquitted, by what is computed of it."""
    calls = Calls(dtype)
    calls.both(("Torch.exp.0", "Torch.exp.0"), ([1.0], [1.0]), (2.0, 2.0), before)
    calls.both(
        ("Tensor.__add__.0", "Tensor.__add__.0"), ([5.0], [6.0]), (7.0, 8.0), error,
        verdict="introduces error", phase="backward", entered="input.0 comes from nowhere",
    )  # fmt: skip
    for number, other in enumerate(later):
        name = f"Functional.linear.{number}"
        read = 20.0 + 2 * number
        calls.both(
            (name, name), ([read], [read]), (read + 1, read + 1), other, phase="backward",
            verdict=verdict,
        )  # fmt: skip
    return 1 in calls.settled()


@pytest.mark.parametrize(
    ("later", "expected"),
    [([0.0] * 2, False), ([0.0] * 3, True), ([0.0, 0.0, 0.1], False), ([0.0] * 3 + [0.1], False)],
)
def test_three_gradients_agree_and_none_does_not(later: list[float], expected: bool) -> None:
    assert gradients_settled(later) == expected
    assert not gradients_settled(later, verdict="below rounding floor")


@pytest.mark.parametrize(
    ("later", "before", "error", "dtype", "expected"),
    [
        (63 * U, 0.0, 0.5, "Float32", True),
        (65 * U, 0.0, 0.5, "Float32", False),
        (0.063, 0.001, 0.5, "Float32", True),
        (0.065, 0.001, 0.5, "Float32", False),
        (0.0, 0.0, 0.0199, "Float32", False),
        (0.0, 0.0, 0.0201, "Float32", True),
        (3.9 * HALF_UNIT, 0.0, 0.5, "Float16", True),
        (4.1 * HALF_UNIT, 0.0, 0.5, "Float16", False),
        (0.0, 0.0, 0.249, "Float16", False),
        (0.0, 0.0, 0.251, "Float16", True),
    ],
)
def test_gradients_are_off_64_times_the_error_before_at_most(
    later: float, before: float, error: float, dtype: str, expected: bool
) -> None:
    """In half precision four times."""
    assert gradients_settled([later] * 3, error=error, before=before, dtype=dtype) == expected


# -- two functions of other operands ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        (("Torch.mul.0", "Torch.div.0"), 0.0159, False),
        (("Torch.mul.0", "Torch.div.0"), 0.0161, True),
        (("Torch.mul.0", "Torch.mul.1"), 0.5, False),
    ],
)
def test_operands_are_others_where_they_are_16_times_further_apart(
    names: tuple[str, str], given: float, expected: bool
) -> None:
    calls = Calls()
    item = calls.both(names, ([1.0], [2.0]), (3.0, 3.0), 0.001)
    calls.measures[item.slots.inputs[0]] = off(given)
    assert has_other_operands(item, calls.measures) == expected
    assert reads_otherwise(item, calls.measures) == expected
    item.verdict = "introduces error"
    assert not reads_otherwise(item, calls.measures)


@pytest.mark.parametrize(
    ("name", "argument", "numbers", "expected"),
    [
        ("mul", "input.1", ("1", "0.353553"), True),
        ("mul", "input.1", ("1", "(none)"), False),
        ("mul", "input.1", ("1", "0"), False),
        ("mul", "eps", ("1", "0.353553"), False),
        ("add", "input.1", ("1", "0.353553"), False),
    ],
)
def test_of_products_with_another_number_one_may_be_scaled_before(
    name: str, argument: str, numbers: tuple[str, str], expected: bool
) -> None:
    """``(q * s) @ k`` times 1 is ``q @ k`` times s."""
    calls = Calls()
    item = calls.both((f"Torch.{name}.0", f"Torch.{name}.1"), ([1.0], [2.0]), (3.0, 3.0), 0.001)
    calls.measures[item.slots.inputs[0]] = off(0.6)
    assert not has_other_operands(item, calls.measures)
    item.attributes = (AttributeChange(argument, *numbers),)
    assert has_other_operands(item, calls.measures) is expected
    calls.measures[item.slots.inputs[0]] = off(0.0159)  # that is no scale
    assert not has_other_operands(item, calls.measures)


def test_operands_of_one_side_alone_are_others() -> None:
    calls = Calls()
    item = calls.both(("Torch.mul.0", "Torch.div.0"), ([1.0], [1.0]), (3.0, 3.0), 0.001)
    assert not has_other_operands(item, calls.measures)
    for only in ({"only_left": (0,)}, {"only_right": (0,)}):
        item.slots = item.slots._replace(**only)
        assert has_other_operands(item, calls.measures)
        item.slots = Slots(item.slots.inputs, item.slots.outputs)


def test_of_results_that_nobody_knows_no_operand_is_another() -> None:
    calls = Calls()
    item = calls.both(("Torch.mul.0", "Torch.div.0"), ([1.0], [1.0]), (3.0, 3.0), math.nan)
    calls.measures[item.slots.inputs[0]] = off(0.5)
    assert has_other_operands(item, calls.measures)  # NaN counts as nothing
    del calls.measures[item.slots.outputs[0]]
    assert not has_other_operands(item, calls.measures)

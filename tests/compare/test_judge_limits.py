"""Limits of what is said of an operator, from both sides, where only one rule is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.tensors.judging import judge as judging
from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.judging.judge import Judge
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from tests.compare.operators import run, tensor
from tests.compare.steps import Columns, U

HALF_UNIT = 2.0**-11


def measured(error: float, *, equal: bool = False, exact: bool = True) -> Measure:
    return Measure(error, 1.0, 1.0, equal, 0, 0, exact)


def judge_of(
    types: tuple[str, str] = ("mystery", "mystery"),
    *,
    dtype: str = "Float32",
    same_framework: bool = True,
    given: float = 0.0,
    made: float = 0.0,
) -> tuple[Judge, Judged]:
    """A pair of calls with one input and one result, so far apart."""
    columns = Columns(), Columns()
    calls: list[Op] = []
    for one, name in zip(columns, types, strict=True):
        places = [tensor(one, label, (4, 4), dtype, 1.0) for label in ("input.0", "output.0")]
        calls.append(Op(0, name, name, "forward", places[:1], places[1:], call=f"{name}.0"))
    runs = [run(one, [call]) for one, call in zip(columns, calls, strict=True)]
    pair = OpPair(calls[0], calls[1], "order")
    measures = {(0, 0): measured(given, equal=not given), (1, 1): measured(made, equal=not made)}
    makers = Makers(runs[0], runs[1], [pair])
    judge = Judge(runs[0], runs[1], measures, makers, same_framework)
    judged = Judged(pair, Slots(((0, 0),), ((1, 1),)), error_in=given, error_out=made)
    judged.output = (1, 1)
    return judge, judged


# -- two frameworks, both computed rightly ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "error_in", "error_out", "is_cleared"),
    [
        ("layer_norm", 1e-6, 0.99e-3, True),  # a norm may have another epsilon: a thousand times
        ("layer_norm", 1e-6, 1.01e-3, False),
        ("layer_norm", 0.0, 990 * U, True),  # of a rounding at least
        ("layer_norm", 0.0, 1010 * U, False),
        ("mystery", 1e-6, 0.99 * 30e-6, True),
        ("mystery", 1e-6, 1.01 * 30e-6, False),
        ("mystery", 0.0, 29 * U, True),
        ("mystery", 0.0, 31 * U, False),
    ],
)
def test_frameworks_may_differ_by_arguments_that_cannot_be_set_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error_in: float,
    error_out: float,
    is_cleared: bool,
) -> None:
    monkeypatch.setattr(judging, "only_propagates", lambda *_: True)
    judge, judged = judge_of((name, name), same_framework=False, given=error_in, made=error_out)
    assert judge._is_cleared(judged) == is_cleared
    words = "another epsilon" if name == "layer_norm" else "other arguments"
    assert (words in judged.why) is not is_cleared


def test_of_one_framework_it_is_enough_that_both_are_computed_rightly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "only_propagates", lambda *_: True)
    judge, judged = judge_of(made=0.5)
    assert judge._is_cleared(judged)
    judged.attributes = (AttributeChange("eps", "1", "2"),)
    assert not judge._is_cleared(judged)
    other, named = judge_of(("mystery", "riddle"), made=0.5)
    assert not other._is_cleared(named)
    monkeypatch.setattr(judging, "only_propagates", lambda *_: False)
    judged.attributes = ()
    assert not judge._is_cleared(judged)


# -- a first optimizer step ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "error_in", "is_sign"),
    [(0.019, 0.0, False), (0.021, 0.0, True), (0.19, 0.1, False), (0.21, 0.1, True)],
)
def test_a_first_step_is_off_by_signs_from_a_fiftieth_or_twice_what_came_in(
    error: float, error_in: float, is_sign: bool
) -> None:
    judge, judged = judge_of(("addcdiv_", "addcdiv_"), given=error_in, made=error)
    judge.past.zero_state = True
    assert judge._is_first_step(judged, measured(error, exact=False)) == is_sign
    assert not judge._is_first_step(judged, measured(error))  # values show what is wrong
    judge.past.zero_state = False
    assert not judge._is_first_step(judged, measured(error, exact=False))


# -- calls of other names --------------------------------------------------------------------------

RENAMED = (AttributeChange("operator", "mystery", "riddle"),)


@pytest.mark.parametrize(
    ("error", "before", "error_in", "is_same"),
    [
        (3.9 * U, 0.0, 0.0, True),  # four roundings
        (4.1 * U, 0.0, 0.0, False),
        (1.24e-5, 1e-5, 0.0, True),  # a quarter more than the error before
        (1.26e-5, 1e-5, 0.0, False),
        (0.99 * 2.0**-16, 1e-3, 0.0, True),  # and less than any two functions differ by
        (1.01 * 2.0**-16, 1e-3, 0.0, False),
        (0.0101, 0.0, 0.01, True),  # or two per cent more than came in
        (0.0103, 0.0, 0.01, False),
        (0.0499, 0.0, 0.049, True),  # of five per cent at most
        (0.0499, 0.0, 0.0495, False),
    ],
)
def test_a_call_of_another_name_gives_the_same_within_what_it_was_given(
    monkeypatch: pytest.MonkeyPatch, error: float, before: float, error_in: float, is_same: bool
) -> None:
    monkeypatch.setattr(judging, "difference_of_functions", lambda *_: 1.0)
    judge, judged = judge_of(("mystery", "riddle"), given=error_in, made=error)
    judged.attributes = RENAMED
    judge.past.worst = before
    assert judge._gives_the_same(judged, measured(error)) == is_same


@pytest.mark.parametrize(("apart", "is_same"), [(0.9 * 2.0**-48, True), (1.1 * 2.0**-48, False)])
def test_two_names_of_one_function_make_the_same_in_double_precision(
    monkeypatch: pytest.MonkeyPatch, apart: float, is_same: bool
) -> None:
    monkeypatch.setattr(judging, "difference_of_functions", lambda *_: apart)
    judge, judged = judge_of(("mystery", "riddle"), made=0.5)
    assert judge._is_one_function(judged, measured(0.5)) == is_same
    assert not judge._is_one_function(judged, measured(0.5, exact=False))


# -- half precision --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eighths", "dtype", "is_told"),
    [(0.99, "Float16", False), (1.01, "Float16", True), (1.01, "Float32", False)],
)
def test_equal_inputs_of_other_arguments_give_results_an_eighth_of_a_unit_apart(
    eighths: float, dtype: str, is_told: bool
) -> None:
    error = eighths * HALF_UNIT / 8
    judge, judged = judge_of(dtype=dtype, made=error)
    assert judge._is_told_alone(judged, measured(error)) == is_told
    other, off = judge_of(dtype=dtype, given=U, made=error)
    assert not other._is_told_alone(off, measured(error))


@pytest.mark.parametrize(
    ("eighths", "dtype", "is_told"),
    [(0.99, "Float16", False), (1.01, "Float16", True), (1.01, "Float32", False)],
)
def test_other_arguments_compute_otherwise_from_an_eighth_of_a_unit_on(
    monkeypatch: pytest.MonkeyPatch, eighths: float, dtype: str, is_told: bool
) -> None:
    apart = eighths * HALF_UNIT / 8
    monkeypatch.setattr(judging, "difference_of_functions", lambda *_: apart)
    judge, judged = judge_of(dtype=dtype, given=U, made=U)
    assert judge._computes_otherwise(judged, measured(U)) == is_told
    assert ("rounding to half precision hides that" in judged.why) == is_told


@pytest.mark.parametrize(("exact", "phase", "seen"), [
    (False, "backward", 2.0**-8 / 16), (True, "backward", 0.0), (False, "forward", 0.0),
])  # fmt: skip
def test_figures_of_gradients_hide_a_sixteenth_of_a_unit(
    monkeypatch: pytest.MonkeyPatch, exact: bool, phase: Any, seen: float
) -> None:
    asked: list[float] = []

    def budget(account: Any) -> tuple[float, float]:
        asked.append(account.before)
        return 0.0, 0.0

    monkeypatch.setattr(judging, "budget", budget)
    judge, judged = judge_of()
    judge.past.unit = 2.0**-8
    judged.pair.left.phase = phase
    judge._budget(judged.pair, ((1, 1), measured(0.1, exact=exact)), [], [])
    judge.past.worst = 0.5
    judge._budget(judged.pair, ((1, 1), measured(0.1, exact=exact)), [], [])
    assert asked == [seen, 0.5]


# -- parameters of a module ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("norm", "dtype", "is_residue"),
    [
        (0.9e-6, "Float32", True),
        (1.1e-6, "Float32", False),
        (0.9 * HALF_UNIT, "Float16", True),
        (1.1 * HALF_UNIT, "Float16", False),
    ],
)
def test_a_bias_a_millionth_of_the_others_is_what_cancelling_left(
    monkeypatch: pytest.MonkeyPatch, norm: float, dtype: str, is_residue: bool
) -> None:
    """Of coarser types a unit."""
    columns = Columns(), Columns()
    for one in columns:
        tensor(one, "weight.grad", (4, 4), dtype, 1.0)
        tensor(one, "bias.grad", (4,), dtype, norm)
    op = Op(0, "module", "Linear", "backward", [], [0, 1], call="module", is_module=True)
    pair = OpPair(op, op, "order")
    measures = {(0, 0): measured(0.0, equal=True), (1, 1): Measure(0.9, norm, norm, False, 0, 0)}
    runs = [run(one, [op]) for one in columns]
    judge = Judge(runs[0], runs[1], measures, Makers(runs[0], runs[1], [pair]))
    monkeypatch.setattr(judging, "budget", lambda _: (1.0, 0.0))
    marked: list[object] = []
    judge.past = SimpleNamespace(  # type: ignore[assignment]
        **{name: getattr(judge.past, name) for name in ("worst", "unit", "composite", "is_mixed")},
        before=lambda _: 0.0, mark_residue=marked.append, zero_state=False, forward={},
    )  # fmt: skip
    judged = Judged(pair, Slots((), ((0, 0), (1, 1))))
    judge._outputs(judged, [], [], list(measures.items()))
    assert marked == [(1, 1)] * is_residue

"""What is said of one operator, from measures that are stated: each rule, on both sides of it.

``mystery`` is an operator that no table knows.  From an input and an output of 4 × 4 elements in
Float32 it may make 3 times the input's error (times 1.42), and of its own 3 · √8 roundings of a sum
and two of storing: ``ALLOWED``.
"""

from __future__ import annotations

import math

import pytest

from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.judging.verdict import Judged
from tests.compare.steps import Given, Steps, U

ALLOWED = (3 * math.sqrt(8) + 2) * U
HALVES = ("Float16", "Float16")
OTHER = ({"eps": 1e-5}, {"eps": 1e-3})
SAME = Given()


def of(*inputs: Given, out: Given, **options: object) -> Judged:
    (found,) = Steps().add("mystery", inputs, [out], **options).judged()  # type: ignore[arg-type]
    return found


def said(found: Judged) -> tuple[str, float, float, float, float]:
    return found.verdict, found.error_in, found.error_out, found.budget, found.z


# -- equal ---------------------------------------------------------------------------------------


def test_equal_tensors_are_equal_bits() -> None:
    found = of(SAME, out=SAME)
    assert (found.verdict, found.error_in, found.error_out) == ("equal bits", 0.0, 0.0)
    assert (found.why, found.broken, found.output) == ("", "", None)


@pytest.mark.parametrize(("norm", "verdict"), [(1.0, "equal figures"), (math.nan, "equal bits")])
def test_figures_do_not_make_bits_equal_but_a_checksum_does(norm: float, verdict: str) -> None:
    """A checksum alone comes without figures; figures are equal whatever the order of values."""
    stated = Given(exact=False, norm=norm, equal=True)
    assert of(stated, out=stated).verdict == verdict


def test_equal_results_of_other_arguments_are_told() -> None:
    found = of(SAME, out=SAME, attributes=OTHER)
    assert found.verdict == "attribute differs"
    assert found.attributes == (AttributeChange("eps", "1e-05", "0.001"),)


def test_arguments_of_two_frameworks_are_not_set_side_by_side() -> None:
    steps = Steps(same_framework=False).add("mystery", [SAME], [SAME], attributes=OTHER)
    (found,) = steps.judged()
    assert (found.verdict, found.attributes) == ("equal bits", ())


def test_one_input_that_differs_is_not_equal() -> None:
    found = of(SAME, Given(U), out=SAME)
    assert said(found)[:3] == ("carries error", U, 0.0)


def test_a_second_output_that_differs_is_not_equal() -> None:
    (found,) = Steps().add("mystery", [SAME], [SAME, Given(U)]).judged()
    assert said(found)[:3] == ("carries error", 0.0, U)


def test_an_operator_of_which_nothing_is_known_is_not_comparable() -> None:
    (found,) = Steps().add("mystery", [SAME], [Given(is_measured=False)]).judged()
    assert found.verdict == "not comparable"
    assert found.why == "no float output on both sides"


def test_a_parameter_at_the_end_of_the_step_is_no_operator() -> None:
    (found,) = Steps().add("Parameter", [], [Given(0.5)]).judged()
    assert (found.verdict, found.why) == ("not comparable", "the state at the end of the step")


# -- rounding ------------------------------------------------------------------------------------


def test_four_units_are_rounding_whatever_the_operator_does() -> None:
    found = of(Given(1.5 * U), Given(0.5 * U), out=Given(4 * U))
    assert said(found) == ("carries error", 1.5 * U, 4 * U, 4 * U, 1.0)
    assert found.output == (2, 2)


def test_of_several_outputs_the_one_that_is_furthest_apart_is_shown() -> None:
    (found,) = Steps().add("mystery", [SAME], [Given(U), Given(2 * U), Given(U / 2)]).judged()
    assert (found.error_out, found.z, found.output) == (2 * U, 0.5, (2, 2))


def test_more_than_four_units_are_held_against_what_is_allowed() -> None:
    found = of(SAME, out=Given(4.1 * U))
    assert said(found) == pytest.approx(("carries error", 0.0, 4.1 * U, ALLOWED, 4.1 * U / ALLOWED))


def test_an_input_that_is_further_apart_is_no_rounding() -> None:
    found = of(Given(4.1 * U), out=Given(U))
    assert found.budget == pytest.approx(1.42 * 3 * 4.1 * U + ALLOWED)


def test_units_of_half_precision_are_held_against_what_is_allowed() -> None:
    found = of(Given(dtypes=HALVES), out=Given(2.0**-12, dtypes=HALVES))
    assert found.budget == pytest.approx(3 * math.sqrt(8) * U + 2 * 2.0**-11)


def test_with_other_arguments_even_rounding_is_held_against_what_is_allowed() -> None:
    found = of(SAME, out=Given(2 * U), attributes=OTHER)
    assert found.verdict == "attribute differs"
    assert found.budget == pytest.approx(ALLOWED)


# -- what came in --------------------------------------------------------------------------------


def test_the_error_that_came_in_is_the_largest() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U)])
    steps.add("mystery", [Given(3 * U), Given(9 * U), Given(U)], [Given(20 * U)])
    found = steps.judged()[1]
    assert found.error_in == 9 * U
    # Of an operator that no table knows the largest counts; three inputs have six sizes.
    allowed = 1.42 * 3 * 9 * U + (3 * math.sqrt(16) + 2) * U
    assert found.budget == pytest.approx(allowed)


def test_without_measured_inputs_nothing_came_in() -> None:
    found = of(Given(is_measured=False), out=Given(9 * U))
    assert found.error_in == 0.0
    (found,) = Steps().add("mystery", [], [Given(9 * U)]).judged()
    assert math.isnan(found.error_in)


def test_a_gradient_brings_the_error_of_the_forward_call() -> None:
    steps = Steps().add("mystery", [Given(9 * U)], [Given(30 * U)], call="mystery.0")
    steps.add("mystery", [SAME], [Given(5 * U)], phase="backward", call="mystery.0")
    forward, backward = steps.judged()
    assert forward.error_in == 9 * U
    assert backward.error_in == 30 * U


def test_the_forward_call_of_another_is_not_asked() -> None:
    steps = Steps().add("mystery", [Given(9 * U)], [Given(30 * U)], call="mystery.0")
    steps.add("mystery", [SAME], [Given(4 * U)], phase="backward", call="mystery.1")
    assert steps.judged()[1].error_in == 0.0


# -- whole numbers -------------------------------------------------------------------------------

COUNTS = ("Int32", "Int32")


def test_other_whole_numbers_from_equal_inputs_are_introduced() -> None:
    found = of(SAME, out=Given(0.25, dtypes=COUNTS))
    assert said(found)[:3] == ("introduces error", 0.0, 0.25)
    assert (found.z, found.output) == (math.inf, (1, 1))
    assert found.why == "from equal inputs it gives other whole numbers"


def test_other_whole_numbers_from_inputs_that_differ_say_nothing() -> None:
    found = of(Given(9 * U), out=Given(0.25, dtypes=COUNTS))
    assert (found.verdict, found.why) == ("not comparable", "no float output on both sides")


def test_whole_numbers_without_inputs_are_introduced_where_nothing_differed_before() -> None:
    (found,) = Steps().add("mystery", [], [Given(0.25, dtypes=COUNTS)]).judged()
    assert found.verdict == "introduces error"
    steps = Steps().add("mystery", [SAME], [Given(5 * U)])
    steps.add("mystery", [], [Given(0.25, dtypes=COUNTS)])
    assert steps.judged()[1].verdict == "not comparable"


def test_who_is_given_other_whole_numbers_carries_them_on() -> None:
    steps = Steps().add("mystery", [SAME], [Given(0.25, dtypes=COUNTS)])
    steps.add("mystery", [Given(0.25, dtypes=COUNTS)], [Given(0.5)])
    found = steps.judged()[1]
    assert found.verdict == "carries error"
    assert found.why == "works on other whole numbers than the other side"


# -- the limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exact", "z", "verdict"),
    [
        (True, 2.99, "carries error"),
        (True, 3.01, "introduces error"),
        (False, 9.99, "carries error"),
        (False, 10.01, "introduces error"),
    ],
)
def test_values_may_take_three_times_what_is_allowed_figures_ten(
    exact: bool, z: float, verdict: str
) -> None:
    found = of(Given(exact=exact), out=Given(z * ALLOWED, exact=exact))
    assert said(found) == pytest.approx((verdict, 0.0, z * ALLOWED, ALLOWED, z))


@pytest.mark.parametrize(
    ("z", "verdict"), [(0.99, "attribute differs"), (1.01, "introduces error")]
)
def test_with_other_arguments_what_is_allowed_is_all(z: float, verdict: str) -> None:
    found = of(SAME, out=Given(z * ALLOWED), attributes=OTHER)
    assert said(found) == pytest.approx((verdict, 0.0, z * ALLOWED, ALLOWED, z))


def test_another_shape_alone_is_not_another_argument() -> None:
    out = Given(1.5 * ALLOWED, right_shape=(2, 8))
    assert of(SAME, out=out).verdict == "attribute differs"
    assert of(SAME, out=out._replace(error=3.5 * ALLOWED)).verdict == "introduces error"


@pytest.mark.parametrize(
    ("times", "verdict"), [(9.9, "attribute differs"), (10.1, "introduces error")]
)
def test_what_other_arguments_make_may_stand_out_against_all_before(
    times: float, verdict: str
) -> None:
    """Sixteen terms of which the sum is small: a thousand times the inputs' error is explained.

    Norms of 1 that leave 0.001 magnify 1,000 times; what is seen is a tenth of that, and ten
    times as much as anything before it.
    """
    steps = Steps().add("mystery", [SAME], [Given(16 * U)])
    inputs = [Given(16 * U, norm=1.0, shape=(16, 4))]
    out = Given(times * 16 * U, norm=0.001, shape=(4,))
    steps.add("ReduceSum", inputs, [out], attributes=({"axis": 0.0}, {"axis": 1.0}))
    found = steps.judged()[1]
    assert found.z < 1
    assert found.verdict == verdict


def test_of_two_outputs_the_one_with_the_larger_ratio_decides() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U), Given(3.5 * ALLOWED), Given(5 * U)])
    (found,) = steps.judged()
    assert (found.verdict, found.output) == ("introduces error", (2, 2))
    assert found.z == pytest.approx(3.5)


def test_random_numbers_differ_by_intention() -> None:
    (found,) = Steps().add("dropout", [SAME], [Given(0.7)]).judged()
    assert (found.verdict, found.why) == ("not comparable", "random by intention")
    other = ({"p": 0.5}, {"p": 0.25})
    (found,) = Steps().add("dropout", [SAME], [Given(0.7)], attributes=other).judged()
    assert found.verdict == "introduces error"


# -- residue -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("norms", "verdict"),
    [
        ((0.9, 0.9), "below rounding floor"),
        ((0.9, 1.1), "below rounding floor"),  # the smaller one, where it is not zero
        ((1.1, 1.1), "introduces error"),
        ((0.0, 1.1), "introduces error"),
    ],
)
def test_a_sum_that_cancels_is_residue(norms: tuple[float, float], verdict: str) -> None:
    """64 terms of norm 8: rounding alone leaves 3 · √64 · U · 8 · √64."""
    floor = 3 * 8 * U * 8 * 8
    out = Given(1.0, norm=norms[0] * floor, right_norm=norms[1] * floor, shape=(4,))
    (found,) = Steps().add("ReduceSum", [Given(norm=8.0, shape=(64, 4))], [out]).judged()
    assert found.verdict == verdict
    if verdict == "below rounding floor":
        assert found.why == "the result is rounding residue: its terms cancel"


@pytest.mark.parametrize(("share", "verdict"), [(0.9, "not accused"), (1.1, "introduces error")])
def test_a_gradient_of_a_parameter_may_cancel_beside_the_others_of_its_module(
    share: float, verdict: str
) -> None:
    """A key's bias: a millionth of the largest gradient of the module is rounding."""
    outputs = [Given(5 * U, norm=2.0), Given(1.0, norm=share * 2e-6)]
    steps = Steps().add("LayerNorm", [], outputs, phase="backward", is_module=True)
    (found,) = steps.judged()
    assert (found.verdict == "introduces error") == (verdict == "introduces error")


def test_what_is_made_of_residue_says_nothing() -> None:
    """And whoever reads it is not accused of an input from nowhere."""
    residue = Given(1.0, norm=1e-9, shape=(4,))
    steps = Steps().add("ReduceSum", [Given(norm=8.0, shape=(64, 4))], [residue])
    steps.add("mystery", [residue], [Given(1.0, norm=3e-9, shape=(4,))])
    steps.add("mystery", [SAME], [Given(5 * U)])
    found = steps.judged()
    assert [item.verdict for item in found] == [
        "below rounding floor",
        "carries error",
        "carries error",
    ]
    # Residue is no error: the last is held against what it may do, not against 1.0.
    assert found[2].budget == pytest.approx(ALLOWED)


# -- NaN and infinity ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "out", "expected"),
    [
        ((0, 0), (0, 0), ""),
        ((0, 0), (3, 3), "both"),
        ((0, 0), (3, 0), "left"),
        ((0, 0), (0, 3), "right"),
        ((1, 1), (3, 3), ""),
        ((0, 1), (0, 3), ""),
    ],
)
def test_where_nan_begins(inputs: tuple[int, int], out: tuple[int, int], expected: str) -> None:
    found = of(Given(5 * U, broken=inputs), out=Given(5 * U, broken=out))
    assert found.broken == expected


@pytest.mark.parametrize("type_", ["full", "fill", "fill_", "where", "select", "tensor"])
def test_infinity_that_was_asked_for_begins_nowhere(type_: str) -> None:
    out = Given(broken=(3, 3), equal=True)
    (found,) = Steps().add(type_, [SAME], [out]).judged()
    assert (found.verdict, found.broken) == ("equal bits", "")
    asked = ({"value": -math.inf}, {"value": -math.inf})
    (found,) = Steps().add("mystery", [SAME], [out], attributes=asked).judged()
    assert found.broken == ""


@pytest.mark.parametrize(
    ("inputs", "out", "wrong", "kind"),
    [
        ((0, 0), (2, 1), "left", "finite"),
        ((0, 0), (1, 2), "right", "finite"),
        ((1, 1), (1, 2), "right", "equally finite"),
    ],
)
def test_who_makes_nan_on_one_side_is_accused(
    inputs: tuple[int, int], out: tuple[int, int], wrong: str, kind: str
) -> None:
    found = of(Given(5 * U, broken=inputs), out=Given(5 * U, broken=out))
    assert (found.verdict, found.wrong) == ("introduces error", wrong)
    assert found.why == f"NaN or infinity on the {wrong} side, from {kind} inputs"
    assert (found.z, found.error_out, found.output) == (math.inf, math.inf, (1, 1))


def test_nan_that_came_in_goes_on() -> None:
    steps = Steps().add("mystery", [SAME], [Given(5 * U, broken=(0, 1))])
    steps.add("mystery", [Given(5 * U, broken=(0, 1))], [Given(5 * U, broken=(0, 7))])
    found = steps.judged()
    assert [item.verdict for item in found] == ["introduces error", "not comparable"]
    assert found[1].why == "NaN or infinity"


def test_elements_that_one_side_did_not_count_are_alike() -> None:
    found = of(SAME, out=Given(5 * U, broken=(-1, 4)))
    assert found.verdict == "carries error"


# -- precision -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtypes", "verdict"),
    [
        (("Float32", "Float16"), "lower precision, explained"),
        (("BFloat16", "Float16"), "lower precision, explained"),
        (("Float16", "Float16"), "carries error"),
        (("Float32", "Int32"), "carries error"),  # the input's types count as well
    ],
)
def test_another_coarsest_type_is_lower_precision(dtypes: tuple[str, str], verdict: str) -> None:
    found = of(Given(dtypes=HALVES) if dtypes[1] == "Int32" else SAME,
               out=Given(2.0**-12, dtypes=dtypes))  # fmt: skip
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("before", "verdict"),
    [(0.99 * 2.0**-10, "lower precision, explained"), (1.01 * 2.0**-10, "carries error")],
)
def test_less_error_than_came_in_is_no_lower_precision_behind_another(
    before: float, verdict: str
) -> None:
    """The first operator of a shorter type is listed though its error came in with the cast."""
    steps = Steps().add("mystery", [SAME], [Given(before)])
    steps.add("mystery", [Given(before)], [Given(before, dtypes=("Float32", "Float16"))])
    assert steps.judged()[1].verdict == verdict


@pytest.mark.parametrize(
    ("type_", "error", "verdict"),
    [
        ("OwnBlock", 0.99 * 2.0**-8, "not comparable"),
        ("OwnBlock", 1.01 * 2.0**-8, "introduces error"),
        ("LayerNorm", 0.99 * 2.0**-8, "introduces error"),
    ],
)
def test_a_module_of_ones_own_may_compute_in_half_within(
    type_: str, error: float, verdict: str
) -> None:
    (found,) = Steps().add(type_, [SAME], [Given(error)], is_module=True).judged()
    assert found.verdict == verdict
    told = "half precision within the module, or a fault (level L0)"
    assert (found.untold, found.why) == ((told, told) if verdict == "not comparable" else ("", ""))


def test_what_is_not_told_is_still_the_largest_error_before() -> None:
    """A later input that is as far apart comes from there."""
    steps = Steps().add("OwnBlock", [SAME], [Given(2.0**-9)], is_module=True)
    steps.add("OwnBlock", [Given(2.0**-9)], [Given(2.0**-9)], is_module=True)
    found = steps.judged()[1]
    assert (found.verdict, found.entered) == ("carries error", "")


# -- a first step --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moments", "type_", "error", "verdict"),
    [
        (0.0, "addcdiv_", 0.021, "not comparable"),
        (0.0, "addcdiv_", 0.019, "introduces error"),
        (0.0, "mystery", 0.021, "introduces error"),
        (1.0, "addcdiv_", 0.021, "introduces error"),
    ],
)
def test_a_first_step_from_zero_turns_gradients_into_signs(
    moments: float, type_: str, error: float, verdict: str
) -> None:
    stated = Given(exact=False)
    steps = Steps().add("lerp_", [stated._replace(norm=moments)], [stated], phase="optimizer")
    steps.add(type_, [stated], [Given(error, exact=False)], phase="optimizer")
    found = steps.judged()[1]
    if verdict == "not comparable":
        told = "a first optimizer step from zero state: only signs of gradients count"
        assert (found.verdict, found.why) == (verdict, told)
    else:
        assert "first optimizer step" not in found.why


# -- results of another size ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "attributes", "error_in", "is_accused"),
    [
        ("mean", ({"dim": 0.0}, {"dim": 1.0}), 0.0, True),
        ("mean", ({}, {}), 0.0, False),
        ("mystery", ({"dim": 0.0}, {"dim": 1.0}), 0.0, False),
        ("mean", ({"dim": 0.0}, {"dim": 1.0}), 9.9 * 2.0**-19, True),
        ("mean", ({"dim": 0.0}, {"dim": 1.0}), 10.1 * 2.0**-19, False),
    ],
)
def test_other_arguments_that_give_another_size(
    type_: str,
    attributes: tuple[dict[str, object], dict[str, object]],
    error_in: float,
    is_accused: bool,
) -> None:
    """Up to ten times the largest error before, the inputs agree."""
    steps = Steps().add("mystery", [SAME], [Given(2.0**-19)])
    out = Given(math.nan, shape=(3,), right_shape=(5,))
    given = Given(error_in, shape=(5, 3), exact=False)
    steps.add(type_, [given], [out], attributes=attributes)
    found = steps.judged()[1]
    assert (found.verdict == "introduces error") == is_accused
    if is_accused:
        assert found.why == "its result is [3] on the left and [5] on the right"
        assert (found.z, found.output) == (math.inf, (3, 3))

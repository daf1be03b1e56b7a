"""An input that is further apart than anything before it: each rule, on both sides of it."""

from __future__ import annotations

import pytest

from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from tests.compare.steps import Given, Steps, U

SAME = Given()
WRONG = Given(0.5)
"""A result that shows the input's error."""
HALF = ("Float16", "Float16")
NOWHERE = "input.0 is further apart than anything before it"


def reader(given: Given, out: Given = WRONG, **options: object) -> Judged:
    """An operator that reads a tensor, after one whose result is 9 units apart."""
    steps = Steps().add("mystery", [SAME], [Given(9 * U)])
    return steps.add("mystery", [given], [out], **options).judged()[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "exact", "is_accused"),
    [(7.9, True, False), (8.1, True, True), (39.0, False, False), (41.0, False, True)],
)
def test_eight_times_of_all_before_is_from_nowhere_of_figures_forty(
    times: float, exact: bool, is_accused: bool
) -> None:
    found = reader(Given(times * 9 * U, exact=exact))
    assert found.entered == (NOWHERE if is_accused else "")
    if is_accused:
        assert (found.verdict, found.error_in, found.budget) == ("introduces error", 9 * U, 9 * U)
        assert (found.error_out, found.output) == (times * 9 * U, (2, 2))
        assert found.z == pytest.approx(times)


@pytest.mark.parametrize(("units", "is_accused"), [(31.0, False), (33.0, True)])
def test_where_nothing_differed_before_four_roundings_stand_for_it(
    units: float, is_accused: bool
) -> None:
    (found,) = Steps().add("mystery", [Given(units * U)], [WRONG]).judged()
    assert bool(found.entered) == is_accused
    if is_accused:
        assert (found.budget, found.error_in) == (U, 0.0)
        assert found.z == pytest.approx(units)


@pytest.mark.parametrize(("units", "is_accused"), [(31.0, False), (33.0, True)])
def test_of_half_precision_four_of_its_roundings(units: float, is_accused: bool) -> None:
    found = reader(Given(units * 2.0**-11, dtypes=HALF), Given(0.5, dtypes=HALF))
    assert bool(found.entered) == is_accused


@pytest.mark.parametrize("side", [0, 1])
def test_the_coarser_type_of_the_two_counts(side: int) -> None:
    dtypes = ("Float16", "Float32") if side == 0 else ("Float32", "Float16")
    assert not reader(Given(31 * 2.0**-11, dtypes=dtypes)).entered
    assert reader(Given(33 * 2.0**-11, dtypes=dtypes)).entered


def test_an_input_without_effect_is_no_fault() -> None:
    """A weight that one side keeps transposed: all that comes out agrees."""
    assert not reader(Given(0.5), Given(8 * 9 * U)).entered
    assert reader(Given(0.5), Given(8.1 * 9 * U)).entered
    assert reader(Given(0.5), Given(9 * U, broken=(0, 1))).entered
    assert reader(Given(0.5), Given(9 * U, is_measured=False)).entered


def test_every_result_has_to_agree_for_an_input_to_be_without_effect() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U)])
    steps.add("mystery", [Given(0.5)], [Given(9 * U), WRONG])
    assert steps.judged()[1].entered == NOWHERE


def test_the_first_input_that_is_from_nowhere_is_named() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U)])
    steps.add("mystery", [Given(9 * U), Given(0.25), Given(0.5)], [WRONG])
    found = steps.judged()[1]
    assert found.entered == "input.1 is further apart than anything before it"
    assert found.error_out == 0.25


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "exact", "is_accused"),
    [(0.0, True, False), (U / 100, True, True), (3.9e-6, False, False), (4.1e-6, False, True)],
)
def test_a_parameter_is_the_same_to_the_bit_of_figures_to_the_order_of_sums(
    error: float, exact: bool, is_accused: bool
) -> None:
    found = reader(Given(error, exact=exact, is_parameter=True))
    assert found.parameter == is_accused
    told = "input.0, a parameter, differs before it is used"
    assert found.entered == (told if is_accused else "")


@pytest.mark.parametrize(
    ("error", "right", "is_accused"),
    [
        (0.9 * 2.0**-8, "BFloat16", False),
        (1.1 * 2.0**-8, "BFloat16", True),
        (2.0**-20, "Float32", True),
    ],
)
def test_a_parameter_of_another_type_may_be_rounded_to_it(
    error: float, right: str, is_accused: bool
) -> None:
    found = reader(Given(error, dtypes=("Float32", right), is_parameter=True))
    assert found.parameter == is_accused


@pytest.mark.parametrize(
    ("training", "shape", "error", "is_accused"),
    [
        ("first step", (4, 4), 0.1, True),
        ("steps compared", (4, 4), 0.9, False),
        ("steps before", (4, 4), 0.29, False),
        ("steps before", (4, 4), 0.31, True),
        ("steps before", (16,), 0.31, False),  # vectors may begin at zero
    ],
)
def test_training_before_moves_parameters_apart(
    training: Training, shape: tuple[int, ...], error: float, is_accused: bool
) -> None:
    steps = Steps(training=training).add("mystery", [SAME], [Given(9 * U)])
    steps.add("mystery", [Given(error, shape=shape, is_parameter=True)], [WRONG])
    assert steps.judged()[1].parameter == is_accused


@pytest.mark.parametrize(
    ("training", "shape", "error", "is_accused"),
    [
        ("first step", (4, 4), 0.1, True),
        ("steps before", (4, 4), 0.29, False),
        ("steps before", (4, 4), 0.31, True),
        ("steps compared", (4, 4), 0.29, False),
        ("steps compared", (16,), 0.31, False),
    ],
)
def test_what_was_trained_may_stand_in_an_input_that_nobody_calls_a_parameter(
    training: Training, shape: tuple[int, ...], error: float, is_accused: bool
) -> None:
    steps = Steps(training=training).add("mystery", [SAME], [Given(9 * U)])
    steps.add("mystery", [Given(error, shape=shape)], [WRONG])
    assert bool(steps.judged()[1].entered) == is_accused


# -- whole numbers -------------------------------------------------------------------------------

COUNTS = ("Int64", "Int64")


def test_other_whole_numbers_where_nothing_differed_before() -> None:
    given = Given(1e-6, dtypes=COUNTS)
    (found,) = Steps().add("mystery", [given], [WRONG]).judged()
    assert found.entered == "input.0 is not the same on both sides"


@pytest.mark.parametrize(("error", "is_accused"), [(0.29, False), (0.31, True)])
def test_rounding_tips_a_few_whole_numbers_over(error: float, is_accused: bool) -> None:
    assert bool(reader(Given(error, dtypes=COUNTS)).entered) == is_accused


@pytest.mark.parametrize(("error", "is_accused"), [(0.39, False), (0.41, True)])
def test_ten_times_the_root_of_the_error_before_tips_over(error: float, is_accused: bool) -> None:
    steps = Steps().add("mystery", [SAME], [Given(0.04**2)])
    steps.add("mystery", [Given(error, dtypes=COUNTS)], [WRONG])
    assert bool(steps.judged()[1].entered) == is_accused


@pytest.mark.parametrize(("kind", "is_accused"), [("cross_entropy", True), ("mystery", False)])
def test_labels_are_data_which_nothing_tips_over(kind: str, is_accused: bool) -> None:
    steps = Steps().add("mystery", [SAME], [Given(0.01)])
    steps.add(kind, [Given(0.2, dtypes=COUNTS)], [WRONG])
    assert bool(steps.judged()[1].entered) == is_accused


def test_whole_numbers_that_differed_before_explain_others() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U), Given(0.2, dtypes=COUNTS)])
    steps.add("mystery", [Given(0.9, dtypes=COUNTS)], [WRONG])
    assert not steps.judged()[1].entered


def test_the_backward_pass_reads_what_the_forward_pass_read() -> None:
    given = Given(0.9, dtypes=COUNTS)
    (found,) = Steps().add("mystery", [given], [WRONG], phase="backward").judged()
    assert not found.entered


def test_other_whole_numbers_without_any_effect() -> None:
    (found,) = Steps().add("mystery", [Given(0.9, dtypes=COUNTS)], [SAME]).judged()
    assert not found.entered


# -- NaN -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "is_accused"), [((0, 2), True), ((2, 0), True), ((2, 2), False), ((0, 0), False)]
)
def test_nan_that_nobody_made(broken: tuple[int, int], is_accused: bool) -> None:
    found = reader(Given(U, broken=broken), Given(9 * U, broken=broken))
    told = "input.0 has NaN or infinity on one side, nothing before has"
    assert found.entered == (told if is_accused else "")


def test_nan_that_somebody_made_before_is_his() -> None:
    steps = Steps().add("mystery", [SAME], [Given(U, broken=(0, 1))])
    steps.add("mystery", [Given(U, broken=(0, 2))], [Given(U, broken=(0, 2))])
    assert [bool(item.entered) for item in steps.judged()] == [False, False]


# -- a dump of modules alone ---------------------------------------------------------------------


def module_reader(given: Given, phase: str = "forward", before: float = 9 * U) -> Judged:
    steps = Steps().add("OwnBlock", [SAME], [Given(before)], is_module=True)
    steps.add("OwnBlock", [given], [WRONG], is_module=True, phase=phase)  # type: ignore[arg-type]
    return steps.judged()[1]


@pytest.mark.parametrize(("error", "is_accused"), [(0.99 * 2.0**-8, False), (1.01 * 2.0**-8, True)])
def test_between_modules_half_precision_may_be_at_work(error: float, is_accused: bool) -> None:
    found = module_reader(Given(error))
    assert bool(found.entered) == is_accused
    if not is_accused:
        assert found.untold == "input.0: half precision between modules, or a fault (level L0)"


def test_where_the_calls_were_dumped_too_nothing_is_between_them() -> None:
    steps = Steps().add("mystery", [SAME], [Given(9 * U)])
    steps.add("OwnBlock", [Given(0.99 * 2.0**-8)], [WRONG], is_module=True)
    assert steps.judged()[1].entered == NOWHERE


@pytest.mark.parametrize(
    ("phase", "error", "is_accused"),
    [("backward", 0.079, False), ("backward", 0.081, True), ("forward", 0.079, True)],
)
def test_a_rectifier_between_modules_gives_twice_the_root_of_the_error(
    phase: str, error: float, is_accused: bool
) -> None:
    """0.0016 before: 2 · √0.0016 = 0.08."""
    assert bool(module_reader(Given(error), phase, 0.04**2).entered) == is_accused

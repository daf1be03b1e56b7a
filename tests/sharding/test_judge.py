"""How one call is judged: where repeats stand, whose reason goes first, what follows of groups."""

from __future__ import annotations

import pytest

from irtool.operators.layout import UserLayout
from tests.sharding.calls import call, collectives, judged, reason

SUMMED = (2, 2), (2, 1)
"""A product over four of eight devices, of which two sum up."""


def product(**attributes: object):
    return call("MatMul", [8, 16], [16, 32], False, False, out=[8, 32], **attributes)


def layouts(*maps: tuple[int, ...], matrix: tuple[int, ...] = (2, 4)) -> tuple[UserLayout, ...]:
    return tuple(UserLayout(matrix, entries) for entries in maps)


# -- devices that repeat the same ------------------------------------------------------------------


def test_devices_that_repeat_lie_beside_each_other() -> None:
    found = judged(product(), SUMMED)
    assert (found.device_matrix, found.repeats) == ((2, 2, 1, 2), 2)
    assert collectives(found) == [("AllReduce", "sum", (0, 2))]
    assert [layout.tensor_map for layout in found.input_layouts] == [(3, 2), (2, 1)]


def test_an_attribute_lays_the_repeats_farthest_apart() -> None:
    found = judged(product(repeated_num_in_dev_matrix_right_=False), SUMMED)
    assert (found.device_matrix, found.repeats) == ((2, 2, 2, 1), 2)
    assert collectives(found) == [("AllReduce", "sum", (0, 1))]
    assert [layout.tensor_map for layout in found.input_layouts] == [(2, 1), (1, 0)]
    assert found.mirrors == ((0, 4), (0, 2, 4, 6))


@pytest.mark.parametrize("value", [True, None, 0])
def test_only_false_lays_the_repeats_otherwise(value: object) -> None:
    found = judged(product(repeated_num_in_dev_matrix_right_=value), SUMMED)
    assert found.device_matrix == (2, 2, 1, 2)


@pytest.mark.parametrize("strategy", [((4, 1), (1, 1)), ((1, 1), (4, 1)), ((2, 1), (1, 1))])
def test_a_lookup_chooses_for_itself_where_its_repeats_lie(
    strategy: tuple[tuple[int, ...], ...],
) -> None:
    given = [64, 32], [16, 8], 0, 0
    plain = judged(call("Gather", *given, out=[16, 8, 32]), strategy)
    told = call("Gather", *given, out=[16, 8, 32], repeated_num_in_dev_matrix_right_=False)
    found = judged(told, strategy)
    assert plain.repeats > 1
    assert found.device_matrix == plain.device_matrix


def test_no_axis_is_added_where_all_devices_are_used() -> None:
    found = judged(product(), ((2, 4), (4, 1)))
    assert (found.device_matrix, found.repeats) == ((2, 4, 1), 1)


# -- which reason is told --------------------------------------------------------------------------


def test_the_form_of_a_strategy_goes_before_the_operators_own_rule() -> None:
    assert reason(judged(product(), ((2, 3), (2, 1))))[0] == "not-divisible"
    assert reason(judged(product(), ((2, 4), (2, 1))))[0] == "axis-mismatch"


def test_an_operator_without_unknown_sizes_goes_before_its_output_strategy() -> None:
    mask = call("DropoutDoMask", [-1, 32], [64], 0.5, out=[-1, 32])
    assert reason(judged(mask, ((1, 2),)))[0] == "dynamic-shape"


@pytest.mark.parametrize("attributes", [{}, {"cell_shard_op": True}])
def test_an_output_strategy_that_nobody_asked_the_operator_for_is_none(
    attributes: dict[str, object],
) -> None:
    """One that comes of a sharded cell is looked past; one of the user's own is refused."""
    relu = call("ReLU", [8, 16], out=[8, 16], **attributes)
    found = judged(relu, ((2, 4),), out_strategy=((4, 2),))
    assert found.verdict == ("legal" if attributes else "illegal")
    if not attributes:
        assert reason(found)[0] == "out-strategy"


@pytest.mark.parametrize("mark", [1, "yes", None])
def test_a_mark_of_sharding_by_itself_must_be_a_truth_value(mark: object) -> None:
    relu = call("ReLU", [8, 16], out=[8, 16], self_define_shard=mark)
    assert reason(judged(relu, ((2, 4),)))[0] == "attribute"


def test_an_operator_without_a_rule_takes_no_layouts() -> None:
    found = judged(call("DynamicRNN", [8, 16], out=[8, 16]), None, layouts=layouts((1, 0)))
    assert reason(found) == ("layout-unsupported", "operator_info.cc:CheckInputLayout")


def test_layouts_for_another_number_of_tensors_are_nobodys_knowledge() -> None:
    found = judged(product(), None, layouts=layouts((1, 0)))
    assert found.verdict == "unknown"
    assert "2 inputs and 1 layouts" in found.reasons[0].message


def test_layouts_must_use_all_devices() -> None:
    found = judged(product(), None, devices=16, layouts=layouts((1, -1), (-1, 0)))
    assert found.verdict == "illegal"


# -- sums of gradients -----------------------------------------------------------------------------


def test_layouts_have_the_gradient_of_each_input_summed() -> None:
    found = judged(product(), None, layouts=layouts((1, -1), (-1, 0)))
    assert found.mirrors == ((0, 1, 2, 3), (0, 4))


def test_the_gradient_of_a_scalar_is_not_summed_under_layouts() -> None:
    """MindSpore leaves it out, and the sums of those behind it move up a place."""
    add = call("Add", [], [8, 16], out=[8, 16])
    found = judged(add, None, layouts=layouts((), (1, -1)))
    assert found.verdict == "legal", found.reasons
    assert found.mirrors == ((0, 1, 2, 3), (0,))


def test_a_strategy_sums_the_gradient_of_a_scalar() -> None:
    add = call("Add", [], [8, 16], out=[8, 16])
    assert judged(add, ((), (2, 1))).mirrors[0] == tuple(range(8))


# -- the loss --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "divisor"), [(((8, 1),), 1), (((4, 1),), 2), (((1, 1),), 8), (((2, 2),), 2)]
)
def test_a_loss_is_divided_by_the_devices_that_repeat_it(
    strategy: tuple[tuple[int, ...], ...], divisor: int
) -> None:
    assert judged(call("ReLU", [8, 16], out=[8, 16]), strategy).loss_divisor == divisor

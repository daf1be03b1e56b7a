"""Layouts whose last axis is no axis of devices: one device computes its parts in turn."""

from __future__ import annotations

from dataclasses import replace

from irtool.operators.call import OperatorCall, tensor
from irtool.operators.case import Case
from irtool.operators.judgement import Reduction, Sharding
from irtool.operators.layout import TensorLayout, UserLayout
from irtool.operators.notation_reader import read_rules
from irtool.sharding.interleave import in_parts, part_layouts, parts_of
from tests.sharding.calls import context

(RULE,) = read_rules("Mine: [a b] [c] -> [a b] [a]\n")
CALL = OperatorCall("Mine", (tensor(64, 32), tensor(16)), (tensor(64, 32), tensor(64)), {})
APART = UserLayout((2, 4, 3), ((2, 0), 1), interleaved=True)
"""Rows on two groups of devices, in three parts; columns on four devices."""
BESIDE = UserLayout((2, 4, 3), (1,), interleaved=True)
DEVICES = UserLayout((2, 4, 3), (1, 0))

CASE = Case(
    RULE, CALL, ((6, 4), (4,)), context(8),
    layouts=(APART.full_layout((64, 32)), BESIDE.full_layout((16,))),
)  # fmt: skip
SHARDING = Sharding(
    (2, 4, 3), (((2, 0), 1), (1,)), (((2, 0), 1), ((2, 0),)),
    reductions=(Reduction("AllReduce", (1, 2), "max"), Reduction("AllReduce", (0, 1))),
    complete=True,
)  # fmt: skip


def test_the_last_axis_of_an_interleaved_layout_says_how_many_parts() -> None:
    assert parts_of((DEVICES, APART)) == 3
    assert parts_of((DEVICES,)) == 1
    assert parts_of((APART.tensor_layout((64, 32)),)) == 1
    assert parts_of(()) == parts_of(None) == 1


def test_layouts_of_parts_keep_their_axis() -> None:
    found = part_layouts(CASE, SHARDING)
    assert found.inputs == CASE.layouts
    assert found.outputs == (
        TensorLayout((2, 4, 3), ((2, 0), 1), (64, 32)),
        TensorLayout((2, 4, 3), ((2, 0),), (64,)),
    )


def test_outputs_may_have_a_matrix_of_their_own() -> None:
    found = part_layouts(CASE, replace(SHARDING, output_matrix=(4, 2, 3)))
    assert [one.device_matrix for one in found.inputs] == [(2, 4, 3), (2, 4, 3)]
    assert [one.device_matrix for one in found.outputs] == [(4, 2, 3), (4, 2, 3)]


def test_outputs_that_the_call_does_not_tell_have_no_layout() -> None:
    call = OperatorCall("Mine", CALL.inputs, (tensor(64, 32),), {})
    known = replace(CASE, call=call)
    assert len(part_layouts(known, SHARDING).outputs) == 1
    _, stripped = in_parts(known, SHARDING)
    assert [index for index, _ in stripped.raw_outputs] == [0]
    assert stripped.output_maps == ((1, 0), (1,))


def test_without_parts_axes_of_devices_are_left_and_slices_are_those_of_one_part() -> None:
    case, stripped = in_parts(CASE, SHARDING)
    assert stripped.device_matrix == (2, 4)
    assert stripped.output_matrix is None
    assert stripped.input_maps == ((1, 0), (0,))
    assert stripped.output_maps == ((1, 0), (1,))
    assert stripped.raw_inputs == ((0, (64 // 6, 8)), (1, (4,)))
    assert stripped.raw_outputs == ((0, (64 // 6, 8)), (1, (64 // 6,)))
    assert case.layouts == (
        TensorLayout((2, 4), (1, 0), (64, 32)),
        TensorLayout((2, 4), (0,), (16,)),
    )
    assert case.strategy == ((2, 4), (4,))


def test_nothing_is_added_up_over_parts() -> None:
    _, stripped = in_parts(CASE, SHARDING)
    assert stripped.reductions == (
        Reduction("AllReduce", (1,), "max"),
        Reduction("AllReduce", (0, 1)),
    )


def test_outputs_of_another_matrix_lose_the_axis_of_that() -> None:
    _, stripped = in_parts(CASE, replace(SHARDING, output_matrix=(4, 2, 3)))
    assert stripped.device_matrix == (2, 4)
    assert stripped.output_matrix == (4, 2)
    assert stripped.raw_inputs[0] == (0, (64 // 6, 8))
    assert stripped.raw_outputs[0] == (0, (64 // 12, 16))


def test_what_the_operator_itself_takes_in_stays() -> None:
    _, stripped = in_parts(CASE, replace(SHARDING, raw_inputs=((1, (7,)),)))
    assert stripped.raw_inputs == ((0, (64 // 6, 8)), (1, (7,)))


def test_a_case_without_layouts_has_no_strategy_of_parts() -> None:
    case, _ = in_parts(replace(CASE, layouts=None), SHARDING)
    assert case.layouts is None
    assert case.strategy == ()

"""Elementwise operators and broadcast arithmetic."""

from __future__ import annotations

from dataclasses import replace

from irtool.operators.layout import UserLayout
from irtool.sharding.judge import judge
from tests.sharding.calls import call, collectives, context, judged, reason

ADD = "arithmetic_info.cc:BaseCheckStrategy"


def test_activation() -> None:
    legal = judged(call("ReLU", [64, 32], out=[64, 32]), ((2, 4),))
    assert legal.input_slices == legal.output_slices == ((32, 8),)
    assert legal.collectives == ()
    assert legal.loss_divisor == 1


def test_broadcast_leaves_sizes_of_one_whole() -> None:
    legal = judged(call("Add", [64, 32], [64, 1], out=[64, 32]), ((2, 4), (2, 1)))
    assert (legal.device_matrix, legal.input_maps) == ((2, 4), ((1, 0), (1, -1)))
    assert legal.mirrors == ((0,), (0, 1, 2, 3))
    both = judged(call("Mul", [64, 1], [1, 32], out=[64, 32]), ((2, 1), (1, 4)))
    assert (both.device_matrix, both.input_maps, both.output_maps) == (
        (2, 4),
        ((1, -1), (-1, 0)),
        ((1, 0),),
    )


def test_a_shorter_operand_is_aligned_from_the_right() -> None:
    legal = judged(call("Add", [8, 64, 32], [32], out=[8, 64, 32]), ((2, 1, 4), (4,)))
    assert legal.input_maps == ((2, 1, 0), (0,))
    assert legal.input_slices == ((4, 64, 8), (8,))


def test_operands_that_disagree() -> None:
    judgement = judged(call("Add", [64, 32], [64, 32], out=[64, 32]), ((2, 4), (4, 2)))
    assert reason(judgement) == ("axis-mismatch", ADD)


def test_scalars() -> None:
    legal = judged(call("Mul", [64, 32], [], out=[64, 32]), ((8, 1), ()))
    assert legal.input_maps == ((1, 0), ())


def test_three_operands() -> None:
    what = call("Lerp", [16, 8], [16, 8], [16, 8], out=[16, 8])
    assert judged(what, ((2, 4), (2, 4), (2, 4))).verdict == "legal"
    assert reason(judged(what, ((2, 4), (2, 4), (2, 2))))[0] == "axis-mismatch"


def test_masked_fill_takes_two_entries_or_three() -> None:
    what = call("MaskedFill", [16, 8], [16, 8], [], out=[16, 8])
    for strategy in (((2, 4), (2, 4)), ((2, 4), (2, 4), ())):
        assert judged(what, strategy).input_maps[:2] == ((1, 0), (1, 0))


def test_the_value_of_masked_fill_bears_no_layout() -> None:
    tensors = call("MaskedFill", [16, 8], [16, 8], [], out=[16, 8])
    value = replace(tensors.inputs[2], is_parameter=True)
    weight = replace(tensors, inputs=(*tensors.inputs[:2], value))
    cut = ((2, 4), (2, 4), ())
    assert judged(tensors, cut).strategy == cut[:2]
    assert reason(judged(weight, cut)) == (
        "operand-position", "parallel_preprocessor.cc:SetParallelShape",
    )  # fmt: skip
    assert reason(judged(tensors, ((2, 4), (2, 2), ())))[0] == "axis-mismatch"
    assert reason(judged(tensors, ((2, 3), (2, 3), ())))[0] != "axis-mismatch"


def test_the_value_of_masked_fill_where_some_size_is_not_known() -> None:
    """An entry for the value would be needed, and is dropped; elsewhere nobody knows."""
    somewhere = replace(context(8), dynamic=True)
    here = call("MaskedFill", [-1, 8], [-1, 8], [], out=[-1, 8])
    there = call("MaskedFill", [16, 8], [16, 8], [], out=[16, 8])
    without = call("MaskedFill", [16, 8], [16, 8], 0.5, out=[16, 8])
    cut = ((1, 4), (1, 4), ())
    assert judge(here, cut, somewhere).reasons[0].code == "strategy-size"
    assert judge(there, cut, somewhere).verdict == "unknown"
    assert judge(without, cut[:2], somewhere).verdict == "legal"


def test_outer() -> None:
    legal = judged(call("Outer", [16], [8], out=[16, 8]), ((2,), (4,)))
    assert (legal.device_matrix, legal.output_maps) == ((2, 4), ((1, 0),))
    axis = UserLayout((2, 2, 2), (2,))
    same = judged(call("Outer", [16], [8], out=[16, 8]), None, layouts=(axis, axis))
    assert reason(same) == ("layout", "arithmetic_info.cc:CheckInputLayout")


def test_added_and_removed_dimensions() -> None:
    assert judged(call("ExpandDims", [16, 8], 1, out=[16, 1, 8]), ((2, 4),)).output_maps == (
        (1, -1, 0),
    )
    squeezed = judged(call("Squeeze", [16, 1, 8], out=[16, 8], axis=(1,)), ((2, 1, 4),))
    assert squeezed.output_maps == ((2, 0),)


def test_l2_loss_is_summed_up() -> None:
    legal = judged(call("L2Loss", [16, 8], out=[]), ((2, 2),))
    assert collectives(legal) == [("AllReduce", "sum", (0, 2, 4, 6))]
    assert legal.loss_divisor == 8


def test_select_and_add_n() -> None:
    three = call("Select", [16, 8], [16, 8], [16, 8], out=[16, 8])
    assert reason(judged(three, ((2, 4), (2, 4), (4, 2)))) == (
        "axis-mismatch",
        "select_info.cc:CheckStrategy",
    )
    many = call("AddN", [[8, 8, 8], [8, 8, 8], [8, 8, 8]], out=[8, 8, 8])
    assert judged(many, ((2, 2, 2),) * 3).verdict == "legal"
    assert reason(judged(many, ((2, 2, 2), (2, 2, 2), (2, 2, 1)))) == (
        "axis-mismatch",
        "addn_info.cc:CheckStrategy",
    )


def test_repeats() -> None:
    what = call("RepeatInterleaveTensor", [8, 16], [8], 0, None, out=[16, 16])
    assert judged(what, ((1, 4), (1,))).output_slices == ((16, 4),)
    assert reason(judged(what, ((2, 4), (1,))))[0] == "axis-split"
    flat = call("RepeatInterleaveInt", [16, 8], 2, None, None, out=[256])
    assert reason(judged(flat, ((2, 4),)))[0] == "axis-split"


def test_layouts() -> None:
    left = UserLayout((2, 2, 2), ((2, 1), -1))
    right = UserLayout((2, 2, 2), (1, -1))
    what = call("Add", [16, 8], [16, 8], out=[16, 8])
    legal = judged(what, None, layouts=(left, left))
    assert legal.output_maps == (((2, 1), -1),)
    assert legal.output_slices == ((4, 8),)
    assert reason(judged(what, None, layouts=(left, right))) == (
        "axis-mismatch",
        "arithmetic_info.cc:CheckInputLayout",
    )
    given = judged(what, None, layouts=(left, left), out_layouts=(left,))
    assert reason(given) == ("out-layout", "arithmetic_info.cc:CheckOutputLayout")
    none = judged(call("Select", [16], [16], [16], out=[16]), None, layouts=(right,) * 3)
    assert reason(none)[0] in ("layout", "layout-unsupported")


def test_dropout_mask_has_its_own_size() -> None:
    what = call("DropoutDoMask", [128, 64], [1024], [], out=[128, 64])
    assert judged(what, ((2, 4),), 16).input_slices == ((64, 16), (128,), ())

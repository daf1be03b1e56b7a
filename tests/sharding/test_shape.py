"""Operators that move elements about."""

from __future__ import annotations

import pytest

from irtool.operators.call import Operand, OperatorCall, constant
from irtool.operators.layout import TensorLayout
from tests.sharding.calls import call, judged, reason


def test_transpose_has_no_gradient_to_sum() -> None:
    legal = judged(call("Transpose", [16, 8, 4], (2, 0, 1), out=[4, 16, 8]), ((2, 2, 1),))
    assert legal.device_matrix == (2, 2, 1, 2)
    assert (legal.input_maps, legal.output_maps) == (((3, 2, 1),), ((1, 3, 2),))
    assert legal.mirrors == ((0,),)


def test_concat_and_split() -> None:
    concat = call("Concat", [[16, 8], [16, 8]], 1, out=[16, 16])
    assert judged(concat, ((8, 1), (8, 1))).output_slices == ((2, 16),)
    assert reason(judged(concat, ((2, 4), (2, 4))))[0] == "axis-split"
    assert reason(judged(concat, ((8, 1), (4, 1)))) == (
        "axis-mismatch",
        "concat_info.cc:CheckStrategy",
    )
    skipping = call("Concat", [[16, 8], [16, 8]], 1, out=[16, 16], skip_redistribution=True)
    assert judged(skipping, ((2, 4), (2, 4))).output_slices == ((8, 4),)
    split = call("Split", [16, 8], 0, 2, out=([8, 8], [8, 8]))
    assert judged(split, ((1, 4),)).output_slices == ((8, 2), (8, 2))
    assert reason(judged(split, ((2, 4),))) == ("axis-split", "split_info.cc:CheckStrategy")


def test_stack() -> None:
    legal = judged(call("Stack", [[16, 8], [16, 8]], out=[16, 2, 8], axis=1), ((2, 4), (2, 4)))
    assert legal.output_maps == ((1, -1, 0),)


def test_slices_of_whole_dimensions_only() -> None:
    what = call("Slice", [128, 64, 32], (0, 0, 0), (128, 32, 32), out=[128, 32, 32])
    assert judged(what, ((2, 1, 4),)).output_slices == ((64, 32, 8),)
    assert reason(judged(what, ((2, 2, 1),))) == ("axis-split", "slice_info.cc:CheckStrategy")
    along = call("SliceExt", [128, 64, 32], 0, 64, 128, 1, out=[64, 64, 32])
    assert judged(along, ((1, 8, 1),)).output_slices == ((64, 8, 32),)
    assert reason(judged(along, ((2, 4, 1),)))[0] == "axis-split"


def test_strided_slices_and_their_masks() -> None:
    def what(begin: object, end: object, strides: object, out: list[int], *masks: int) -> object:
        return call("StridedSlice", [128, 64, 32], begin, end, strides, *masks, out=out)

    plain = what((0, 0, 0), (128, 32, 32), (1, 1, 1), [128, 32, 32], 0, 0, 0, 0, 0)
    assert judged(plain, ((4, 1, 2),)).output_slices == ((32, 32, 16),)  # type: ignore[arg-type]
    assert reason(judged(plain, ((1, 2, 1),)))[0] == "axis-split"  # type: ignore[arg-type]
    # begin and end of dimension 1 are masked: it is taken whole
    masked = what((0, 5, 0), (128, 6, 32), (1, 1, 1), [128, 64, 32], 2, 2, 0, 0, 0)
    assert judged(masked, ((1, 8, 1),)).verdict == "legal"  # type: ignore[arg-type]
    # dimension 0 is new, then dimension 0 of the input is shrunk
    shaped = what((0, 0, 0), (1, 1, 64), (1, 1, 1), [1, 64, 32], 0, 0, 0, 1, 2)
    legal = judged(shaped, ((1, 4, 2),))  # type: ignore[arg-type]
    assert legal.output_maps == ((-1, 1, 0),)
    assert reason(judged(shaped, ((2, 1, 1),)))[0] == "axis-split"  # type: ignore[arg-type]
    strided = what((0, 0, 0), (128, 64, 32), (2, 1, 1), [64, 64, 32], 0, 0, 0, 0, 0)
    assert reason(judged(strided, ((2, 1, 1),)))[0] == "axis-split"  # type: ignore[arg-type]


def test_tile_takes_a_strategy_of_its_output() -> None:
    legal = judged(call("Tile", [16, 8], (2, 1), out=[32, 8]), ((2, 4),))
    assert (legal.device_matrix, legal.input_maps, legal.output_maps) == (
        (2, 4),
        ((-1, 0),),
        ((1, 0),),
    )
    longer = judged(call("Tile", [16, 8], (4, 1, 2), out=[4, 16, 16]), ((4, 2, 1),))
    assert longer.input_maps == ((1, -1),)
    assert reason(judged(call("Tile", [16, 8], (2, 1), out=[32, 8]), ((4, 2),)))[0] == (
        "not-divisible"
    )


def test_broadcast() -> None:
    what = call("BroadcastTo", [16, 8], (4, 16, 8), out=[4, 16, 8])
    assert judged(what, ((2, 4),)).output_maps == ((-1, 1, 0),)


@pytest.mark.parametrize(
    ("strategy", "is_legal"), [((), False), ((1,), False), ((1, 1), True), ((1, 1, 1), True)]
)
def test_a_broadcast_that_splits_nothing_is_checked_by_its_layout_alone(
    strategy: tuple[int, ...], is_legal: bool
) -> None:
    """A longer strategy passes, a shorter one leaves the layout without axes to point at."""
    found = judged(call("BroadcastTo", [1, 8], (16, 8), out=[16, 8]), (strategy,))
    assert (found.verdict == "legal") == is_legal
    if is_legal:
        assert found.output_slices == ((16, 8),)
    else:
        assert reason(found)[0] == "layout"


@pytest.mark.parametrize(("strategy", "is_legal"), [((1, 4), True), ((2, 1), False)])
def test_a_dimension_that_is_broadcast_stays_whole(
    strategy: tuple[int, ...], is_legal: bool
) -> None:
    """Of two rows, which stand for sixteen, no device can hold one."""
    found = judged(call("BroadcastTo", [2, 8], (16, 8), out=[16, 8]), (strategy,))
    assert (found.verdict == "legal") == is_legal
    assert is_legal or reason(found)[0] == "axis-split"


def test_reshape_takes_the_layouts_of_its_neighbours() -> None:
    what = call("Reshape", [16, 8], (4, 32), out=[4, 32])
    source = TensorLayout((2, 4), (1, -1), (16, 8))
    target = TensorLayout((8,), (-1, 0), (4, 32))
    legal = judged(what, None, layouts=(source,), out_layouts=(target,))  # type: ignore[arg-type]
    assert legal.input_slices == ((8, 8),)
    assert legal.output_layouts == (target,)
    assert judged(what, None).output_slices == ((4, 32),)


def test_padding() -> None:
    what = call("PadV3", [16, 8], (1, 1), [], out=[16, 10])
    assert judged(what, ((4, 1), ())).verdict == "legal"
    assert reason(judged(what, ((1, 4), ())))[0] == "axis-split"


def test_a_strided_slice_has_one_strategy() -> None:
    what = call("StridedSlice", [32, 64], (0, 0), (32, 64), (1, 1), 0, 0, 0, 0, 0, out=[32, 64])
    assert judged(what, ((2, 4),)).verdict == "legal"
    assert reason(judged(what, ((2, 4), (1,)))) == (
        "strategy-size",
        "operator_info.cc:CheckStrategyByVector",
    )
    tile = call("Tile", [32, 64], (4, 1), out=[128, 64])
    assert reason(judged(tile, ((2, 4), (1,))))[0] == "strategy-size"


def test_a_new_axis_makes_more_strides_than_a_strategy_has_values() -> None:
    what = call(
        "StridedSlice", [32, 64], (0, 0, 0), (32, 1, 64), (1, 1, 1), 0, 0, 0, 2, 0, out=[32, 1, 64]
    )
    assert reason(judged(what, ((2, 4),))) == (
        "strategy-length",
        "strided_slice_info.cc:CheckStrategy",
    )
    assert judged(what, None).verdict == "illegal"


def test_a_begin_counted_from_the_end_does_not_take_all() -> None:
    what = call("StridedSlice", [32, 64], (-32, 0), (32, 64), (1, 1), 0, 0, 0, 0, 0, out=[32, 64])
    assert reason(judged(what, ((2, 1),))) == (
        "axis-split",
        "strided_slice_info.cc:CheckInputStrategy",
    )


def test_symbols_tell_whether_a_dynamic_dimension_is_taken_whole() -> None:
    def part(*symbols: str) -> Operand:
        return Operand((-1, -1), divisors=(1, 8), symbols=symbols)

    computed = Operand(items=(Operand(()), Operand(())))
    inputs = (part("s1", "s2"), computed, computed, constant((1, 1)), *(constant(0),) * 5)
    whole = OperatorCall("StridedSlice", inputs, (part("s3", "s2"),))
    assert judged(whole, ((1, 8),)).verdict == "legal"
    cut = OperatorCall("StridedSlice", inputs, (part("s3", "s4"),))
    assert reason(judged(cut, ((1, 8),)))[0] == "axis-split"


@pytest.mark.parametrize(("pads", "has_gradient"), [((0, 2), True), ([2], False)])
def test_the_gradient_of_padding_is_made_of_constant_pads_only(
    pads: object, has_gradient: bool
) -> None:
    """Inference takes pads that are computed; training ends where the gradient is made."""
    found = judged(call("PadV3", [16, 8], pads, None, out=[16, 10]), ((8, 1), (1,))[:1])
    assert found.verdict == "legal", found.reasons
    assert (found.no_gradient == "") is has_gradient

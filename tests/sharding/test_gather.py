"""Gather in its modes, and operators that write rows."""

from __future__ import annotations

import pytest

from irtool.operators.call import Strategy
from tests.sharding.calls import call, collectives, judged, reason

ROWS = call("Gather", [64, 64], [64, 64], 0, 0, out=[64, 64, 64])
COLUMNS = call("Gather", [64, 64], [64, 64], 1, 0, out=[64, 64, 64])


def test_a_whole_axis_needs_no_communication() -> None:
    legal = judged(ROWS, ((1, 4), (2, 1)))
    assert legal.device_matrix == (2, 1, 1, 4)
    assert (legal.input_maps, legal.output_maps) == (((1, 0), (3, 2)), ((3, 2, 0),))
    assert legal.collectives == ()


# test_gatherv2_semi_auto*: what follows from a split axis
@pytest.mark.parametrize(
    ("what", "strategy", "op", "ranks", "raw", "scattered"),
    [
        (ROWS, ((8, 1), (1, 1)), "ReduceScatter", tuple(range(8)), (64, 64, 64), (8, 64, 64)),
        (ROWS, ((2, 4), (1, 1)), "ReduceScatter", (0, 4), (64, 64, 16), (32, 64, 16)),
        (COLUMNS, ((1, 8), (1, 1)), "ReduceScatter", tuple(range(8)), (64, 64, 64), (8, 64, 64)),
        (COLUMNS, ((2, 4), (1, 1)), "ReduceScatter", (0, 1, 2, 3), (32, 64, 64), (8, 64, 64)),
    ],
)
def test_a_split_axis(
    what: object, strategy: Strategy, op: str, ranks: object, raw: object, scattered: object
) -> None:
    legal = judged(what, strategy)  # type: ignore[arg-type]
    assert collectives(legal) == [(op, "sum", ranks)]
    assert (legal.raw_outputs, legal.output_slices) == ((raw,), (scattered,))


def test_rows_that_do_not_divide_are_all_reduced() -> None:
    what = call("Gather", [64, 64], [3, 64], 0, 0, out=[3, 64, 64])
    assert collectives(judged(what, ((8, 1), (1, 1)))) == [("AllReduce", "sum", tuple(range(8)))]


def test_repeated_calculation_stands_left() -> None:
    legal = judged(ROWS, ((4, 1), (1, 1)))
    assert legal.device_matrix == (2, 4, 1)
    assert collectives(legal) == [("ReduceScatter", "sum", (0, 1, 2, 3))]


def test_batch_and_axis() -> None:
    legal = judged(ROWS, ((4, 1), (2, 1)))
    assert legal.device_matrix == (2, 4)
    assert collectives(legal) == [("AllReduce", "sum", (0, 1, 2, 3))]
    both = judged(ROWS, ((2, 1), (2, 2)))
    assert (both.device_matrix, both.output_maps) == ((2, 2, 2), ((2, 1, -1),))


def test_output_strategies() -> None:
    reduced = judged(ROWS, ((8, 1), (1, 1)), out_strategy=((1, 1, 1),))
    assert collectives(reduced)[0][0] == "AllReduce"
    assert reduced.output_maps == ((-1, -1, 0),)
    scattered = judged(ROWS, ((8, 1), (1, 1)), out_strategy=((8, 1, 1),))
    assert collectives(scattered)[0][0] == "ReduceScatter"
    assert reason(judged(ROWS, ((8, 1), (1, 1)), out_strategy=((4, 1, 1),))) == (
        "out-strategy",
        "gather_info.cc:CheckOutputStrategy",
    )


def test_what_is_refused() -> None:
    split = judged(call("Gather", [64, 64], [3, 64], 1, 0, out=[64, 3, 64]), ((1, 4), (1, 2)))
    assert reason(split) == ("axis-split", "gather_info.cc:CheckSplitAxisStrategy")
    assert reason(judged(COLUMNS, ((1, 4), (1, 1))))[0] == "repeated"
    cube = call("Gather", [8, 8, 8], [8], 2, 0, out=[8, 8, 8])
    assert reason(judged(cube, ((1, 1, 8), (1,))))[0] == "gather-mode"


def test_batch_dimensions() -> None:
    what = call("Gather", [8, 16, 8], [8, 4], 1, 1, out=[8, 4, 8])
    legal = judged(what, ((2, 1, 2), (2, 2)))
    assert legal.device_matrix == (2, 2, 1, 2)
    assert (legal.input_maps, legal.output_maps) == (((3, 1, 0), (3, 2)), ((3, 2, 0),))
    assert reason(judged(what, ((2, 1, 2), (4, 1))))[0] == "axis-mismatch"


def test_uneven_rows() -> None:
    what = call("Gather", [64, 64], [64, 4], 0, 0, out=[64, 4, 64], manual_split=(10, 20, 30, 4))
    legal = judged(what, ((4, 2), (1, 4)), rank=5)
    assert legal.input_slices == ((30, 32), (64, 1))
    assert legal.output_slices == ((64, 1, 32),)
    short = call("Gather", [64, 64], [64, 4], 0, 0, out=[64, 4, 64], manual_split=(10, 20, 30))
    assert reason(judged(short, ((4, 2), (1, 4))))[0] == "manual-split"


def test_embedding() -> None:
    what = call("Embedding", [16, 4], [32, 8], None, None, 2.0, False, out=[16, 4, 8])
    assert judged(what, ((1, 1), (1, 8))).output_maps == ((3, 2, 0),)
    assert reason(judged(what, ((2, 1), (1, 1)))) == (
        "gather-mode",
        "gather_info.cc:CheckProductValidity",
    )


def test_gather_d_and_gather_nd() -> None:
    along = call("GatherD", [16, 8], 0, [8, 8], out=[8, 8])
    assert collectives(judged(along, ((2, 4), (1, 4)))) == [("AllReduce", "sum", (0, 4))]
    assert judged(along, ((1, 4), (1, 4))).input_maps == ((2, 1), (-1, 1))
    assert reason(judged(along, ((1, 4), (1, 2))))[0] == "axis-mismatch"
    nd = call("GatherNd", [16, 8], [8, 4, 1], out=[8, 4, 8])
    assert judged(nd, ((1, 1), (2, 4, 1))).output_maps == ((2, 1, -1),)
    assert reason(judged(nd, ((2, 1), (1, 1, 1)))) == (
        "axis-split",
        "gathernd_info.cc:CheckStrategy",
    )


def test_index_adds_up_over_all_pieces() -> None:
    what = call("Index", [128, 128], [[32], [32]], out=[32])
    legal = judged(what, ((2, 4), (1,), (1,)), 16)
    assert collectives(legal) == [("AllReduce", "sum", tuple(range(0, 16, 2)))]


def test_scatter() -> None:
    update = call("ScatterUpdate", [16, 8], [4], [4, 8], out=[16, 8])
    assert judged(update, ((1, 8), (1,), (1, 8))).input_slices == ((16, 1), (4,), (4, 1))
    assert reason(judged(update, ((2, 4), (1,), (1, 4))))[0] == "axis-split"
    add = call("ScatterAdd", [16, 8], [4], [4, 8], out=[16, 8])
    assert judged(add, ((2, 4), (1,), (1, 4))).replaced
    assert reason(judged(add, ((2, 4), (1,), (1, 2)))) == (
        "axis-mismatch",
        "scatter_math_ops_info.cc:CheckStrategy",
    )


def test_scatter_nd() -> None:
    update = call("TensorScatterUpdate", [16, 8, 4], [3, 1], [3, 8, 4], out=[16, 8, 4])
    legal = judged(update, ((1, 2, 4), (1, 1), (1, 2, 4)))
    assert legal.input_maps == ((2, 1, 0), (-1, -1), (-1, 1, 0))
    assert reason(judged(update, ((2, 2, 2), (1, 1), (1, 2, 2)))) == (
        "axis-split",
        "scatter_nd_ops_info.cc:CheckInputStrategy",
    )
    add = call("TensorScatterAdd", [16, 8, 4], [3, 1], [3, 8, 4], out=[16, 8, 4])
    assert judged(add, ((2, 2, 2), (1, 1), (1, 2, 2))).verdict == "legal"
    assert reason(judged(add, ((2, 2, 2), (1, 1), (1, 1, 2))))[0] == "axis-mismatch"


def test_segments() -> None:
    total = call("UnsortedSegmentSum", [16, 8, 4], [16, 8], 16, out=[16, 4])
    legal = judged(total, ((2, 2, 2), (2, 2)))
    assert legal.output_maps == ((-1, 0),)
    assert collectives(legal) == [("AllReduce", "sum", (0, 2, 4, 6))]
    assert reason(judged(total, ((2, 2, 2), (2, 1))))[0] == "axis-mismatch"
    least = call("UnsortedSegmentMin", [16, 8], [16], 16, out=[16, 8])
    assert collectives(judged(least, ((2, 2), (2,)))) == [("AllGather", "", tuple(range(8)))]


def test_one_dimensional_indices_and_the_rows_of_the_table_are_split_together() -> None:
    what = call("Gather", [64, 32], [16], 0, 0, out=[16, 32])
    legal = judged(what, ((4, 1), (2,)))
    assert collectives(legal) == [("AllReduce", "sum", (0, 1, 2, 3))]
    assert legal.output_slices == ((8, 32),)
    scattered = judged(what, ((4, 1), (2,)), out_strategy=((8, 1),))
    assert collectives(scattered) == [("ReduceScatter", "sum", (0, 1, 2, 3))]
    assert scattered.output_slices == ((2, 32),)
    assert reason(judged(what, ((2, 1), (2,))))[0] == "axis-split"  # not on all devices


def test_an_index_along_the_first_dimension_is_whole_by_default() -> None:
    along = call("GatherD", [16, 32], 0, [16, 32], out=[16, 32])
    assert judged(along, None).strategy == ((1, 1), (1, 1))
    across = call("GatherD", [16, 32], 1, [16, 32], out=[16, 32])
    assert judged(across, None).strategy == ((8, 1), (8, 1))


# what MindSpore 2.7.0 lists in its refusals, for every mode
@pytest.mark.parametrize(
    ("axis", "batch", "strategy", "allowed"),
    [
        (0, 0, ((8, 1), (1, 1)), {(1, 1, 1), (8, 1, 1)}),
        (0, 0, ((2, 4), (1, 1)), {(1, 1, 4), (2, 1, 4)}),
        (0, 0, ((4, 1), (2, 1)), {(2, 1, 1), (8, 1, 1)}),
        (0, 0, ((2, 1), (2, 2)), {(2, 2, 1), (4, 2, 1)}),
        (0, 0, ((1, 4), (2, 1)), {(2, 1, 4)}),
        (1, 0, ((8, 1), (1, 1)), {(1, 1, 1)}),  # the table's columns only, whatever the axis
        (1, 0, ((2, 1), (2, 2)), {(2, 2, 1)}),
        (1, 0, ((1, 8), (1, 1)), {(1, 1, 8)}),
    ],
)
def test_an_output_strategy_is_one_of_two(
    axis: int, batch: int, strategy: Strategy, allowed: set[tuple[int, ...]]
) -> None:
    what = call("Gather", [64, 64], [64, 64], axis, batch, out=[64, 64, 64])
    tried = [(a, b, c) for a in (1, 2, 4, 8) for b in (1, 2) for c in (1, 4, 8)]
    legal = {out for out in tried if judged(what, strategy, out_strategy=(out,)).verdict == "legal"}
    assert legal == allowed


def test_an_output_strategy_goes_with_batch_dimensions_along_axis_0_only() -> None:
    what = call("Gather", [8, 16, 8], [8, 4], 1, 1, out=[8, 4, 8])
    illegal = judged(what, ((2, 1, 2), (2, 2)), out_strategy=((2, 2, 2),))
    assert reason(illegal) == ("out-strategy", "gather_info.cc:CheckOutputStrategy")


def test_rows_scattered_behind_two_split_dimensions_of_indices() -> None:
    scattered = judged(ROWS, ((2, 1), (2, 2)), out_strategy=((4, 2, 1),))
    assert collectives(scattered) == [("ReduceScatter", "sum", (0, 1))]
    assert scattered.output_layouts[0].device_matrix == (4, 2)
    assert scattered.output_slices == ((16, 32, 64),)


def test_two_split_dimensions_of_indices_need_all_devices() -> None:
    illegal = judged(ROWS, ((2, 1), (2, 2)), 16)
    assert reason(illegal) == ("repeated", "tensor_layout.cc:IsValidTensorLayout")
    assert judged(ROWS, ((2, 1), (4, 2)), 16).verdict == "legal"


def test_a_table_split_both_ways_goes_with_one_dimension_of_indices() -> None:
    what = call("Gather", [64, 32], [16], 0, 0, out=[16, 32])
    legal = judged(what, ((2, 2), (2,)))
    assert (legal.device_matrix, legal.output_maps) == ((2, 2, 2), ((2, 0),))
    assert collectives(legal) == [("AllReduce", "sum", (0, 2))]
    scattered = judged(what, ((2, 2), (2,)), out_strategy=((4, 2),))
    assert collectives(scattered) == [("ReduceScatter", "sum", (0, 2))]
    assert scattered.output_slices == ((4, 16),)
    # along the other axis MindSpore adds up what does not belong together
    columns = call("Gather", [64, 32], [16], 1, 0, out=[64, 16])
    assert judged(columns, ((2, 2), (2,))).verdict == "unknown"


def test_what_is_held_is_told_apart_from_what_mindspore_notes() -> None:
    scattered = judged(ROWS, ((4, 1), (2, 1)), out_strategy=((8, 1, 1),))
    assert scattered.output_slices == ((8, 64, 64),)
    assert scattered.output_layouts[0].slice_shape == (16, 64, 64)
    whole = judged(COLUMNS, ((1, 8), (1, 1)), out_strategy=((1, 1, 8),))
    assert collectives(whole) == [("AllReduce", "sum", tuple(range(8)))]
    assert whole.output_slices == ((64, 64, 64),)
    assert whole.output_layouts[0].slice_shape == (8, 64, 64)

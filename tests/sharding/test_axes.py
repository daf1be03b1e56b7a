"""Operators along axes, reductions, sorting, transforms."""

from __future__ import annotations

import pytest

from irtool.operators.layout import UserLayout
from tests.sharding.calls import call, collectives, judged, reason


@pytest.mark.parametrize(
    ("op", "extra", "attributes"),
    [
        ("Softmax", (1,), {}),
        ("LogSoftmax", (-1,), {}),
        ("CumSum", (1,), {}),
        ("CumsumExt", (1, None), {}),
        ("Sort", (), {"axis": 1}),
        ("Swiglu", (-1,), {}),
        ("L2Normalize", (), {"axis": (1,)}),
    ],
)
def test_the_axis_is_whole(
    op: str, extra: tuple[object, ...], attributes: dict[str, object]
) -> None:
    out: object = ([16, 8], [16, 8]) if op == "Sort" else [16, 8]
    what = call(op, [16, 8], *extra, out=out, **attributes)
    legal = judged(what, ((8, 1),))
    assert legal.verdict == "legal"
    assert legal.output_maps[0] == (1, 0)
    assert reason(judged(what, ((1, 8),)))[0] == "axis-split"


def test_where_the_log_says_so() -> None:
    softmax = call("Softmax", [8, 16, 32], (2,), out=[8, 16, 32])
    assert reason(judged(softmax, ((2, 1, 4),)))[1] == "activation_info.cc:CheckStrategy"
    longest = call("MaxDim", [8, 16], 0, True, out=([1, 16], [1, 16]))
    assert judged(longest, ((1, 8),)).output_maps == ((-1, 0), (-1, 0))
    assert reason(judged(longest, ((2, 4),)))[1] == "max_dim_info.cc:CheckStrategy"


def test_the_last_dimension_of_top_k() -> None:
    what = call("TopK", [16, 64], 8, out=([16, 8], [16, 8]))
    assert judged(what, ((8, 1),)).output_slices == ((2, 8), (2, 8))
    assert reason(judged(what, ((2, 4),))) == ("axis-split", "topk_info.cc:CheckStrategy")


@pytest.mark.parametrize(
    ("op", "reduce"),
    [
        ("ReduceSum", "sum"),
        ("ReduceMean", "sum"),
        ("ReduceMax", "max"),
        ("ReduceMin", "min"),
        ("ReduceProd", "prod"),
        ("ReduceAny", "sum"),
        ("ReduceAll", "prod"),
        ("SumExt", "sum"),
    ],
)
def test_reductions(op: str, reduce: str) -> None:
    what = call(op, [16, 8, 32], (1,), False, out=[16, 32])
    legal = judged(what, ((2, 2, 2),))
    assert legal.output_maps == ((2, 0),)
    assert collectives(legal) == [("AllReduce", reduce, (0, 2))]
    assert collectives(judged(what, ((4, 1, 2),))) == []


def test_kept_dimensions_and_all_of_them() -> None:
    kept = judged(call("ReduceSum", [16, 8], (-1,), True, out=[16, 1]), ((2, 4),))
    assert kept.output_maps == ((1, -1),)
    whole = judged(call("ReduceMean", [16, 8], (), False, out=[]), ((2, 2),))
    assert collectives(whole) == [("AllReduce", "sum", (0, 2, 4, 6))]
    assert whole.loss_divisor == 8
    batch = call("ReduceMean", [16, 8], 0, False, out=[8], cross_batch=True)
    assert collectives(judged(batch, ((8, 1),))) == []
    assert len(collectives(judged(batch, ((4, 1),)))) == 1


def test_a_split_axis_of_argmax_is_accepted() -> None:
    what = call("Argmax", [16, 8, 32], -1, out=[16, 8])
    assert collectives(judged(what, ((4, 1, 2),))) == [("AllReduce", "max", (0, 1))]
    pair = call("ArgMinWithValue", [16, 8, 32], -1, False, out=([16, 8], [16, 8]))
    assert collectives(judged(pair, ((4, 1, 2),))) == [("AllReduce", "min", (0, 1))]


def test_both_sums_of_squares() -> None:
    what = call("SquareSumAll", [16, 8], [16, 8], out=([], []))
    assert collectives(judged(what, ((2, 4), (2, 4)))) == [
        ("AllReduce", "sum", tuple(range(8))),
        ("AllReduce", "sum", tuple(range(8))),
    ]


@pytest.mark.parametrize(
    ("what", "good", "bad"),
    [
        (call("FFT", [4, 16, 8], None, -1, None, out=[4, 16, 8]), (4, 2, 1), (4, 1, 2)),
        (call("FFTN", [4, 16, 8], None, (1, 2), None, out=[4, 16, 8]), (4, 1, 1), (2, 2, 1)),
        (call("DCT", [4, 16, 8], 2, 8, -1, 2, out=[4, 16, 8]), (4, 2, 1), (1, 1, 2)),
        (call("FFTShift", [4, 16, 8], 1, out=[4, 16, 8]), (4, 1, 2), (1, 2, 1)),
        (call("TraceV2", [4, 8, 8], 0, -2, -1, None, out=[4]), (4, 1, 1), (2, 2, 1)),
    ],
)
def test_only_the_batch_of_a_transform(what: object, good: object, bad: object) -> None:
    legal = judged(what, (good,))  # type: ignore[arg-type]
    assert legal.verdict == "legal", legal.findings
    assert reason(judged(what, (bad,)))[0] == "axis-split"  # type: ignore[arg-type]


def test_the_axes_of_a_transform_are_mapped_whole() -> None:
    legal = judged(call("FFTShift", [4, 16, 8], 1, out=[4, 16, 8]), ((4, 1, 2),))
    assert (legal.device_matrix, legal.input_maps) == ((4, 1, 2), ((2, -1, 0),))


def test_layouts_of_softmax_and_reductions() -> None:
    rows = UserLayout((2, 2, 2), ((2, 1), -1))
    softmax = judged(call("Softmax", [16, 8], 1, out=[16, 8]), None, layouts=(rows,))
    assert softmax.output_maps == (((2, 1), -1),)
    total = judged(call("SumExt", [16, 8], 0, False, None, out=[8]), None, layouts=(rows,))
    assert collectives(total) == [("AllReduce", "sum", (0, 2, 4, 6))]
    plain = judged(call("ReduceSum", [16, 8], 0, False, out=[8]), None, layouts=(rows,))
    assert reason(plain) == ("layout-unsupported", "operator_info.cc:CheckInputLayout")


def test_a_layout_may_not_put_the_axis_of_a_softmax_on_any_device_axis() -> None:
    what = call("Softmax", [16, 32, 64], 1, out=[16, 32, 64])
    layout = UserLayout((1, 4, 2), (1, 2, -1))  # dimension 1 lies along an axis of one device
    assert reason(judged(what, None, layouts=(layout,))) == (
        "axis-split",
        "activation_info.cc:CheckInputLayout",
    )
    assert judged(what, None, layouts=(UserLayout((1, 4, 2), (1, -1, 0)),)).verdict == "legal"


def test_square_sums_take_the_second_input_to_be_split_like_the_first() -> None:
    what = call("SquareSumAll", [16, 32], [16, 32], out=([], []))
    legal = judged(what, ((2, 4), (1, 4)))
    assert legal.input_slices == ((8, 8), (8, 8))


def test_the_index_of_the_largest_is_split_by_default_whatever_its_axis() -> None:
    value = call("ArgMaxWithValue", [16, 32], out=([32], [32]), axis=0)
    assert judged(value, None).strategy == ((8, 1),)
    index = call("Argmax", [16, 32], out=[32], axis=0)
    assert judged(index, None).strategy == ((1, 1),)

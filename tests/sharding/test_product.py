"""Matrix products."""

from __future__ import annotations

import pytest

from irtool.operators.call import Operand, Strategy
from irtool.operators.judgement import Judgement
from irtool.operators.layout import Shape, UserLayout
from tests.sharding.calls import call, collectives, judged, reason

CHECK = "matmul_info.cc:CheckInputStrategy"


def matmul(strategy: Strategy, devices: int = 8, **options: object) -> Judgement:
    what = call("MatMul", [64, 32], [32, 16], False, False, out=[64, 16])
    return judged(what, strategy, devices, **options)  # type: ignore[arg-type]


def test_the_summed_up_dimension_is_communicated() -> None:
    weight = call("MatMul", [256, 784], [512, 784], False, True, out=[256, 512])
    legal = judged(weight, ((4, 2), (1, 2)))
    assert legal.device_matrix == (4, 2, 1)
    assert legal.input_maps == ((2, 1), (0, 1))
    assert legal.input_slices == ((64, 392), (512, 392))
    assert legal.output_slices == ((64, 512),)
    assert collectives(legal) == [("AllReduce", "sum", (0, 1))]
    assert legal.collectives[0].group == "2-5004544844489628105"
    assert legal.mirrors[1] == (0, 2, 4, 6)


def test_repeated_over_the_rest() -> None:
    legal = matmul(((2, 2), (2, 1)))
    assert legal.device_matrix == (2, 2, 1, 2)
    assert collectives(legal) == [("AllReduce", "sum", (0, 2))]


@pytest.mark.parametrize("turned", [(True, False), (True, True), (False, True)])
def test_the_matrix_is_m_k_n_however_inputs_stand(turned: tuple[bool, bool]) -> None:
    first = [32, 64] if turned[0] else [64, 32]
    second = [16, 32] if turned[1] else [32, 16]
    strategy: list[Shape] = [(4, 2), (2, 1)]
    rows = [s[::-1] if t else s for s, t in zip(strategy, turned, strict=True)]
    what = call("MatMul", first, second, *turned, out=[64, 16])
    legal = judged(what, tuple(rows))
    assert legal.device_matrix == (4, 2, 1)
    assert collectives(legal) == [("AllReduce", "sum", (0, 1))]


def test_batches() -> None:
    what = call("BatchMatMul", [2, 8, 64, 32], [8, 32, 16], False, False, out=[2, 8, 64, 16])
    legal = judged(what, ((2, 2, 1, 2), (2, 2, 1)))
    assert legal.device_matrix == (2, 2, 1, 2, 1)
    assert legal.input_maps == ((4, 3, 2, 1), (3, 1, 0))
    assert collectives(legal) == [("AllReduce", "sum", (0, 1))]
    assert reason(judged(what, ((2, 2, 1, 2), (1, 2, 1)))) == (
        "axis-mismatch",
        "matmul_info.cc:CheckBatchDimensions",
    )


def test_a_batch_of_one_is_broadcast() -> None:
    what = call("BatchMatMul", [8, 64, 32], [1, 32, 16], False, False, out=[8, 64, 16])
    assert judged(what, ((4, 2, 1), (1, 1, 1))).input_maps == ((3, 2, 1), (-1, 1, 0))


def test_disagreement_about_the_summed_up_dimension() -> None:
    assert reason(matmul(((2, 4), (1, 2)))) == ("axis-mismatch", CHECK)


def test_equal_blocks_on_all_devices_are_gathered() -> None:
    legal = matmul(((4, 2), (4, 2)))
    assert legal.device_matrix == (4, 2)
    assert [(c.op, c.ranks) for c in legal.collectives] == [
        ("AllGather", (0, 1)),
        ("AllGather", (0, 2, 4, 6)),
    ]
    assert legal.raw_inputs == ((16, 32), (32, 8))


def test_output_strategy() -> None:
    legal = matmul(((4, 2), (2, 1)), out_strategy=((8, 1),))
    assert collectives(legal) == [("ReduceScatter", "sum", (0, 1))]
    assert (legal.raw_outputs, legal.output_slices) == (((16, 16),), ((8, 16),))
    assert collectives(matmul(((4, 2), (2, 1)), out_strategy=((4, 1),)))[0][0] == "AllReduce"
    for given in (((2, 1),), ((4, 2),)):
        assert reason(matmul(((4, 2), (2, 1)), out_strategy=given)) == (
            "out-strategy",
            "matmul_info.cc:CheckOutputStrategy",
        )


def test_layouts_scatter_rows_or_not() -> None:
    what = call("MatMul", [1024, 1024], [1024, 1024], False, False, out=[1024, 1024])
    inputs = (UserLayout((2, 2, 2), (2, 1)), UserLayout((2, 2, 2), (1, 0)))
    assert collectives(judged(what, None, layouts=inputs)) == [("AllReduce", "sum", (0, 2))]
    scattered = judged(
        what, None, layouts=inputs, out_layouts=(UserLayout((2, 2, 2), ((2, 1), 0)),)
    )
    assert collectives(scattered) == [("ReduceScatter", "sum", (0, 2))]
    assert (scattered.raw_outputs, scattered.output_slices) == (((512, 512),), ((256, 512),))
    twice = judged(
        what, None, layouts=(UserLayout((2, 2, 2), (2, 1)), UserLayout((2, 2, 2), (1, 2)))
    )
    assert reason(twice) == ("layout", "matmul_info.cc:log_func_mm")


def test_tensor_parallelism_in_two_and_three_dimensions() -> None:
    two = judged(
        call("BatchMatMul", [128, 64, 32], [128, 32, 64], False, False, out=[128, 64, 64],
             enable_nd_tp=True),
        None,
        layouts=(UserLayout((1, 2, 4), (2, -1, (1, 0))), UserLayout((1, 2, 4), (2, 1, 0))),
    )  # fmt: skip
    assert [(c.op, c.ranks) for c in two.collectives] == [
        ("AllGather", (0, 1, 2, 3)),
        ("ReduceScatter", (0, 4)),
    ]
    assert two.raw_inputs == ((128, 64, 16), (128, 16, 16))
    assert (two.raw_outputs, two.output_slices) == (((128, 64, 16),), ((128, 64, 8),))
    three = judged(
        call("MatMul", [64, 32], [128, 32], False, True, out=[64, 128], enable_nd_tp=True),
        None,
        16,
        layouts=(UserLayout((2, 2, 4), ((2, 1), 0)), UserLayout((2, 2, 4), (1, (0, 2)))),
    )
    assert [(c.op, c.ranks) for c in three.collectives] == [
        ("AllGather", (0, 4)),
        ("AllGather", (0, 8)),
        ("ReduceScatter", (0, 1, 2, 3)),
    ]
    assert three.output_slices == ((8, 64),)


def test_interleaved_layouts_compute_in_parts() -> None:
    what = call("MatMul", [64, 32], [32, 16], False, False, out=[64, 16])
    first = UserLayout((2, 4, 2), ((2, 0), 1), interleaved=True)
    second = UserLayout((2, 4, 2), (1, -1), interleaved=True)
    legal = judged(what, None, layouts=(first, second))
    assert (legal.parts, legal.device_matrix) == (2, (2, 4))
    assert legal.input_slices == ((32, 8), (8, 16))
    assert (legal.raw_inputs, legal.raw_outputs) == (((16, 8), (8, 16)), ((16, 16),))


def test_bias() -> None:
    what = call("BiasAdd", [16, 8, 4, 4], [8], "NCHW", out=[16, 8, 4, 4])
    legal = judged(what, ((2, 2, 2, 1), (2,)))
    assert legal.input_maps == ((3, 2, 1, 0), (2,))
    assert reason(judged(what, ((2, 2, 2, 1), (1,)))) == (
        "axis-mismatch",
        "bias_add_info.cc:CheckStrategy",
    )


def test_feed_forward() -> None:
    what = call("FFN", [1024, 512], [16, 512, 2048], [16, 2048, 512], [16], [16, 2048], [16, 512],
                out=[1024, 512])  # fmt: skip
    strategy = ((1, 1), (1, 1, 8), (1, 8, 1), (1,), (1, 8), (1, 1))
    legal = judged(what, strategy)
    assert legal.input_slices[1:3] == ((16, 512, 256), (16, 256, 512))
    assert legal.input_slices[4:] == ((16, 256), (16, 512))
    assert collectives(legal) == [("AllReduce", "sum", tuple(range(8)))]
    bad = ((2, 1), *strategy[1:])
    assert reason(judged(what, bad)) == ("axis-split", "f_f_n_info.cc:CheckStrategy")


def test_products_of_quantised_weights() -> None:
    what = call("WeightQuantBatchMatmul", [1024, 2048], [1024, 128], [128], [128], [128], [128],
                [128], True, False, 0, out=[2048, 128])  # fmt: skip
    legal = judged(what, ((1, 1), (1, 4), (4,), (4,), (4,), (4,), (4,)), 4)
    assert legal.input_slices[1:3] == ((1024, 32), (32,))


def test_tensor_dot() -> None:
    what = call("TensorDot", [16, 8, 4], [4, 8, 2], out=[16, 2], axes=((1, 2), (1, 0)))
    legal = judged(what, ((2, 2, 1), (1, 2, 2)))
    assert legal.device_matrix == (2, 2, 1, 2)
    assert legal.input_maps == ((3, 2, 1), (1, 2, 0))
    assert collectives(legal) == [("AllReduce", "sum", (0, 2))]


@pytest.mark.parametrize(("output", "op"), [((2, 2, 1), "AllReduce"), ((2, 4, 1), "ReduceScatter")])
def test_a_batched_product_may_have_an_output_strategy(output: Shape, op: str) -> None:
    what = call("BatchMatMul", [8, 16, 32], [8, 32, 16], False, False, out=[8, 16, 16])
    legal = judged(what, ((2, 2, 2), (2, 2, 1)), out_strategy=(output,))
    assert collectives(legal) == [(op, "sum", (0, 1))]
    assert legal.output_layouts[0].splits == output


@pytest.mark.parametrize(
    ("output", "check"),
    [
        ((4, 2, 1), "CheckOutputStrategy"),  # another batch
        ((2, 2, 2), "CheckOutputLayout"),  # other columns
        ((2, 1, 1), "CheckOutputLayout"),  # other rows
    ],
)
def test_an_output_strategy_of_a_batched_product_follows_its_inputs(
    output: Shape, check: str
) -> None:
    what = call("BatchMatMul", [8, 16, 32], [8, 32, 16], False, False, out=[8, 16, 16])
    refused = judged(what, ((2, 2, 2), (2, 2, 1)), out_strategy=(output,))
    assert reason(refused) == ("out-strategy", f"matmul_info.cc:{check}")


@pytest.mark.parametrize(
    ("op", "check", "inputs"),
    [
        ("QuantBatchMatmul", "quant_batch_matmul_info.cc", (None,) * 3),
        ("WeightQuantBatchMatmul", "weight_quant_batch_matmul_info.cc", (None,) * 4),
    ],
)
def test_products_of_quantised_matrices_scatter_likewise(
    op: str, check: str, inputs: tuple[None, ...]
) -> None:
    what = call(op, [64, 32], [32, 16], [16], *inputs, False, False, 0, out=[64, 16])
    strategy = ((2, 2), (2, 2), (2,))
    scattered = judged(what, strategy, out_strategy=((4, 2),))
    assert collectives(scattered) == [("ReduceScatter", "sum", (0, 2))]
    assert scattered.output_slices == ((16, 8),)
    assert collectives(judged(what, strategy, out_strategy=((2, 2),)))[0][0] == "AllReduce"
    refused = judged(what, strategy, out_strategy=((8, 2),))
    assert reason(refused) == ("out-strategy", f"{check}:CheckOutputStrategy")


def test_statistics_of_quantisation_only_compare_the_rows_of_an_output_strategy() -> None:
    what = call("DynamicQuantExt", [16, 8], None, out=([16, 8], [16]))
    assert judged(what, ((4, 1),), out_strategy=((2, 1), (2,))).verdict == "legal"
    for out in (((4, 1),), ((4, 1), (2,)), ((4, 1), (4, 1))):
        refused = judged(what, ((4, 1),), out_strategy=out)
        assert reason(refused) == ("out-strategy", "dynamic_quant_ext_info.cc:CheckOutputStrategy")


def test_sizes_that_are_not_known_don_t_bind_an_output_strategy() -> None:
    """What divides them only binds the strategy of the inputs (seen with MindSpore 2.7.0)."""
    rows = Operand((-1, 32), "Float32", divisors=(1, 32))
    result = Operand((-1, 16), "Float32", divisors=(1, 16))
    what = call("MatMul", rows, [32, 16], False, False, out=result)
    assert judged(what, ((1, 8), (8, 1)), out_strategy=((8, 1),)).verdict == "legal"
    assert reason(judged(what, ((8, 1), (1, 1))))[0] == "not-divisible"

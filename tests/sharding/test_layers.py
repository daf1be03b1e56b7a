"""Norms, convolution, pooling, images, losses."""

from __future__ import annotations

import pytest

from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Judgement
from tests.sharding.calls import call, collectives, judged, reason


def test_layer_norm() -> None:
    what = call("LayerNorm", [16, 8, 64], [64], [64], 2, 2, 1e-7,
                out=([16, 8, 64], [16, 8, 1], [16, 8, 1]))  # fmt: skip
    legal = judged(what, ((2, 4, 1), (1,), (1,)))
    assert legal.output_maps == ((2, 1, 0), (2, 1, -1), (2, 1, -1))
    assert legal.mirrors[1] == tuple(range(8))
    assert reason(judged(what, ((2, 1, 4), (4,), (4,)))) == (
        "axis-split",
        "layer_norm_info.cc:CheckStrategy",
    )


def test_rms_norm_over_split_dimensions() -> None:
    what = call("RmsNorm", [16, 8, 64], [64], 1e-6, out=([16, 8, 64], [16, 8, 1]))
    legal = judged(what, ((2, 1, 4), (4,)))
    assert legal.output_maps == ((2, 1, 0), (2, 1, -1))
    assert collectives(legal) == [("AllReduce", "sum", (0, 1, 2, 3))]
    assert reason(judged(what, ((2, 1, 4), (1,))))[0] == "axis-mismatch"


def test_batch_and_group_norm() -> None:
    batch = call("BatchNorm", [16, 8], [8], [8], [8], [8], True, 1e-5, 0.1, 0,
                 out=([16, 8], [8], [8], [8], [8]))  # fmt: skip
    legal = judged(batch, ((2, 2), (2,), (2,), (2,), (2,)))
    assert (legal.device_matrix, legal.input_maps[:2]) == ((2, 2, 2), ((2, 1), (1,)))
    assert reason(judged(batch, ((2, 2), (1,), (2,), (2,), (2,))))[0] == "axis-mismatch"
    group = call("GroupNorm", [16, 8, 4, 4], 4, [8], [8], 1e-5,
                 out=([16, 8, 4, 4], [16, 4], [16, 4]))  # fmt: skip
    assert judged(group, ((4, 1, 1, 1), (1,), (1,))).output_slices[1] == (4, 4)
    assert reason(judged(group, ((2, 2, 1, 1), (1,), (1,))))[0] == "axis-split"


def conv(
    size: int = 16, kernel: int = 3, stride: int = 1, mode: int = 1, pad: tuple[int, int] = (1, 1)
) -> OperatorCall:
    out = (size + sum(pad) - kernel) // stride + 1
    return call(
        "Conv2D",
        [16, 8, size, size],
        [8, 8, kernel, kernel],
        out=[16, 8, out, out],
        kernel_size=(kernel, kernel),
        stride=(1, 1, stride, stride),
        dilation=(1, 1, 1, 1),
        pad_list=(*pad, *pad),
        pad_mode=mode,
        group=1,
        format="NCHW",
    )


def test_channels_of_a_convolution() -> None:
    legal = judged(conv(), ((2, 2, 1, 1), (2, 2, 1, 1)))
    assert legal.device_matrix == (2, 2, 1, 1, 2)
    assert legal.input_maps == ((4, 3, 2, 1), (0, 3, -1, -1))
    assert collectives(legal) == [("AllReduce", "sum", (0, 2))]
    assert reason(judged(conv(), ((2, 2, 1, 1), (2, 1, 1, 1)))) == (
        "axis-mismatch",
        "conv2d_info.cc:CheckStrategy",
    )
    assert reason(judged(conv(), ((2, 1, 1, 1), (1, 1, 3, 1))))[0] == "not-power-of-two"


def test_halos() -> None:
    legal = judged(conv(), ((2, 1, 4, 1), (1, 1, 1, 1)), rank=1)
    assert legal.raw_inputs[0] == (8, 8, 6, 16)
    assert collectives(legal) == [("NeighborExchangeV2", "", (0, 1, 2))]
    assert judged(conv(), ((2, 1, 4, 1), (1, 1, 1, 1))).raw_inputs[0] == (8, 8, 5, 16)


@pytest.mark.parametrize(
    ("what", "strategy", "function"),
    [
        (conv(stride=2, kernel=3, mode=2, pad=(0, 0)), ((1, 1, 2, 1), (1, 1, 1, 1)),
         "operator_info.cc:InferByStrategy"),
        (conv(size=17, kernel=3, stride=2, mode=2, pad=(0, 0)), ((1, 1, 1, 1), (1, 1, 1, 1)), ""),
        (conv(size=16, kernel=1, stride=2, mode=0, pad=(1, 0)), ((1, 1, 2, 1), (1, 1, 1, 1)),
         "operator_info.cc:InferByStrategy"),
        (conv(size=8, kernel=5, mode=1, pad=(2, 2)), ((1, 1, 8, 1), (1, 1, 1, 1)),
         "conv2d_info.cc:InferCommunicationAttrs"),
    ],
)  # fmt: skip
def test_split_images(what: OperatorCall, strategy: Strategy, function: str) -> None:
    judgement = judged(what, strategy)
    if not function:
        assert judgement.verdict == "legal"
        return
    # an odd number of output rows, padding where none is allowed, a halo of more than one slice
    assert reason(judgement)[1] == function


def test_strides_of_batch_and_channel() -> None:
    what = conv()
    odd = call(
        "Conv2D", [16, 8, 16, 16], [8, 8, 3, 3], out=[16, 8, 16, 16],
        **{**what.attributes, "stride": (2, 2, 2, 2)},
    )  # fmt: skip
    assert reason(judged(odd, ((2, 1, 1, 1), (1, 1, 1, 1)))) == (
        "attribute",
        "conv2d_info.cc:CheckAttrsBase",
    )


def test_pools() -> None:
    what = call("MaxPool", [16, 8, 16, 16], out=[16, 8, 8, 8], kernel_size=(1, 1, 2, 2),
                strides=(1, 1, 2, 2), pad_mode=2, format="NCHW")  # fmt: skip
    assert judged(what, ((2, 1, 2, 2),)).output_slices == ((8, 8, 4, 4),)
    wide = call("MaxPool", [16, 8, 16, 16], out=[16, 8, 8, 8], kernel_size=(1, 1, 3, 3),
                strides=(1, 1, 2, 2), pad_mode=1, format="NCHW")  # fmt: skip
    assert reason(judged(wide, ((2, 1, 2, 1),))) == (
        "image-split",
        "maxpool_info.cc:CheckHWStrategy",
    )
    deep = call("MaxPool3D", [32, 16, 16, 16, 16], out=[32, 16, 4, 4, 4],
                kernel_size=(1, 1, 4, 4, 4), strides=(1, 1, 5, 5, 5), pad_mode="CALCULATED",
                pad_list=(3, 0, 3, 0, 3, 0), format="NCDHW")  # fmt: skip
    assert reason(judged(deep, ((1, 1, 4, 4, 1),), 16)) == (
        "image-split",
        "max_avg_pool_3d_info.cc:CheckHWStrategyPadModeByDimension",
    )
    assert reason(judged(deep, ((1, 1, 1, 1, 2),)))[1] == "max_avg_pool_3d_info.cc:CheckStrategy"


@pytest.mark.parametrize(
    ("what", "good", "bad"),
    [
        (call("IOU", [16, 4], [8, 4], out=[8, 16]), ((4, 1), (2, 1)), ((4, 2), (1, 1))),
        (call("BoundingBoxEncode", [16, 4], [16, 4], out=[16, 4]), ((8, 1), (8, 1)),
         ((8, 1), (4, 1))),
        (call("Cdist", [4, 16, 8], [4, 8, 8], 2.0, out=[4, 16, 8]), ((2, 2, 1), (2, 2, 1)),
         ((2, 2, 1), (1, 2, 1))),
        (call("PReLU", [16, 8, 4], [8], out=[16, 8, 4]), ((2, 2, 2), (2,)), ((2, 2, 2), (1,))),
        (call("ROIAlign", [8, 4, 16, 16], [16, 5], out=[16, 4, 2, 2]), ((2, 2, 1, 1), (2, 1)),
         ((2, 1, 2, 1), (1, 1))),
        (call("ResizeNearestNeighbor", [16, 8, 16, 16], (32, 32), True, False,
              out=[16, 8, 32, 32]), ((8, 1, 1, 1),), ((2, 1, 2, 1),)),
        (call("SoftmaxCrossEntropyWithLogits", [16, 8], [16, 8], out=([16], [16, 8])),
         ((4, 1), (4, 1)), ((4, 2), (4, 2))),
        (call("SparseSoftmaxCrossEntropyWithLogits", [16, 8], [16], out=[]), ((8, 1), (8,)),
         ((4, 1), (4,))),
        (call("KLDivLoss", [16, 8], [16, 8], out=[], reduction="mean"), ((4, 2), (4, 2)),
         ((4, 2), (2, 2))),
    ],
)  # fmt: skip
def test_images_and_losses(what: OperatorCall, good: Strategy, bad: Strategy) -> None:
    legal = judged(what, good)
    assert legal.verdict == "legal", legal.findings
    assert judged(what, bad).verdict == "illegal"


def divisor(judgement: Judgement) -> int:
    assert judgement.verdict == "legal"
    return judgement.loss_divisor


def test_loss_divisors() -> None:
    entropy = call("SoftmaxCrossEntropyWithLogits", [16, 8], [16, 8], out=([16], [16, 8]))
    assert divisor(judged(entropy, ((4, 1), (4, 1)))) == 2
    mean = call("KLDivLoss", [16, 8], [16, 8], out=[], reduction="mean")
    assert divisor(judged(mean, ((4, 2), (4, 2)))) == 8


def test_one_hot_takes_the_strategy_of_its_output() -> None:
    what = call("OneHot", [16], 8, [], [], -1, out=[16, 8])
    legal = judged(what, ((2, 4), (), ()))
    assert (legal.input_slices[0], legal.output_slices) == ((8,), ((8, 2),))
    first = judged(call("OneHot", [16], 8, [], [], 0, out=[8, 16]), ((2, 4), (), ()))
    assert (first.device_matrix, first.input_maps[0], first.output_maps) == (
        (4, 2),
        (1,),
        ((0, 1),),
    )
    many = call("OneHot", [16, 4], 8, [], [], -1, out=[16, 4, 8])
    assert reason(judged(many, ((1, 2, 1), (), ()))) == (
        "axis-split",
        "onehot_info.cc:CheckStrategy",
    )

"""Images: resizing, regions of interest, boxes, grids, distances."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "resized by batch and channel": Accepted(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1),),
        outputs=((4, 3, 2, 1),),
    ),
    "the height": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((2, 1, 4, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        check="resizebilinear_v2_info.cc:CheckStrategy",
        says="Do not support split H dimension",
    ),
    "columns from the right": Accepted(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((2, 1, 1, 4))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        rank=1,
        matrix=(2, 1, 1, 4),
        forward=(("NeighborExchangeV2", "", (0, 1, 2)),),
        local=(4, 16, 32, 9),
    ),
    "columns from both sides: corners are aligned": Accepted(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(64)), Bool(1), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 1, 8))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        rank=3,
        matrix=(1, 1, 1, 8),
        forward=(("NeighborExchangeV2", "", (2, 3, 4)),),
        local=(8, 16, 32, 6),
    ),
    "nothing to exchange": Accepted(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(32), I64(32)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 1, 4))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=2,
        matrix=(1, 1, 1, 4, 2),
        forward=(("NeighborExchangeV2", "", (2,)),),
        local=(8, 16, 32, 8),
    ),
    "a width that shrinks": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(32), I64(16)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 1, 4))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 32, 16)>)
        """,
        rank=2,
        check="resizebilinear_v2_info.cc:InferOverlapRightSizeByRankBias",
        says="Invalid right overlap, the rank bias is 1, the map boundary is 14, the local boundar",
    ),
    "a new width that does not divide": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(60)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 1, 8))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 60)>)
        """,
        rank=3,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((1, 1, 1, 8),), shape is [8, 16, 64, 60], shape valu",
    ),
    "the width on another target": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeBilinearV2(%1, (I64(64), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 1, 8))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        context={"target": "GPU"},
        check="resizebilinear_v2_info.cc:CheckStrategy",
        says="Do not support split W dimension in GPU platform",
    ),
    "nearest neighbours": Accepted(
        """
        %2(CNode_7) = PrimFunc_ResizeNearestNeighbor(%1, (I64(64), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 4, 2))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((3, 2, 1, 0),),
        outputs=((3, 2, 1, 0),),
    ),
    "nearest neighbours: a new height that does not divide": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeNearestNeighbor(%1, (I64(62), I64(64)), Bool(0), Bool(0))
            primitive_attrs: {in_strategy: ((1, 1, 4, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 62, 64)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((1, 1, 4, 1),), shape is [8, 16, 62, 64], shape valu",
    ),
    "nearest neighbours: corners are aligned": Refused(
        """
        %2(CNode_7) = PrimFunc_ResizeNearestNeighbor(%1, (I64(64), I64(64)), Bool(1), Bool(0))
            primitive_attrs: {in_strategy: ((2, 1, 4, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        check="resizebilinear_v2_info.cc:CheckStrategy",
        says="The align_corners is True, do not support split from H or W",
    ),
    "regions of split images are added up": Accepted(
        """
        %3(CNode_8) = ROIAlign(%1, %2) primitive_attrs: {pooled_height: I64(7), pooled_width:
            I64(7), sample_num: I64(2), roi_end_mode: I64(1), spatial_scale: F32(0.5),
            in_strategy: ((2, 2, 1, 1), (2, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 5)>) ->
            (<Tensor[Float32], (16, 16, 7, 7)>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "regions and channels": Accepted(
        """
        %3(CNode_8) = ROIAlign(%1, %2) primitive_attrs: {pooled_height: I64(7), pooled_width:
            I64(7), sample_num: I64(2), roi_end_mode: I64(1), spatial_scale: F32(0.5),
            in_strategy: ((1, 4, 1, 1), (2, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 5)>) ->
            (<Tensor[Float32], (16, 16, 7, 7)>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1, -1, -1), (0, -1)),
        outputs=((0, 1, -1, -1),),
    ),
    "regions of split heights": Refused(
        """
        %3(CNode_8) = ROIAlign(%1, %2) primitive_attrs: {pooled_height: I64(7), pooled_width:
            I64(7), sample_num: I64(2), roi_end_mode: I64(1), spatial_scale: F32(0.5),
            in_strategy: ((2, 1, 2, 1), (1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 5)>) ->
            (<Tensor[Float32], (16, 16, 7, 7)>)
        """,
        check="roi_align_info.cc:CheckStrategy",
        says="Invalid strategy, the value of strategy[0][2] and strategy[0][3] must be 1, but got",
    ),
    "crops of split images are added up": Accepted(
        """
        %4(CNode_9) = CropAndResize(%1, %2, %3, (I64(24), I64(24))) primitive_attrs:
            {extrapolation_value: F32(0.5), method: "bilinear", in_strategy: ((2, 1, 1, 2), (2,
            1), (2))}
            : (<Tensor[Float32], (8, 32, 32, 16)>, <Tensor[Float32], (16, 4)>, <Tensor[Int32],
            (16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 24,
            24, 16)>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "crops of split heights": Refused(
        """
        %4(CNode_9) = CropAndResize(%1, %2, %3, (I64(24), I64(24))) primitive_attrs:
            {extrapolation_value: F32(0.5), method: "bilinear", in_strategy: ((1, 2, 1, 1), (1,
            1), (1))}
            : (<Tensor[Float32], (8, 32, 32, 16)>, <Tensor[Float32], (16, 4)>, <Tensor[Int32],
            (16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 24,
            24, 16)>)
        """,
        check="crop_and_resize_info.cc:CheckStrategy",
        says="It is not support the H/W dimension of input images, inputs_strategy[0][1] and input",
    ),
    "boxes and their images disagree": Refused(
        """
        %4(CNode_9) = CropAndResize(%1, %2, %3, (I64(24), I64(24))) primitive_attrs:
            {extrapolation_value: F32(0.5), method: "bilinear", in_strategy: ((1, 1, 1, 1), (2,
            1), (4))}
            : (<Tensor[Float32], (8, 32, 32, 16)>, <Tensor[Float32], (16, 4)>, <Tensor[Int32],
            (16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 24,
            24, 16)>)
        """,
        check="crop_and_resize_info.cc:CheckStrategy",
        says="The value of inputs_strategy[1][0] and inputs[2][0] must be equal, but got strategy",
    ),
    "crops: a strategy that is made": Accepted(
        """
        %4(CNode_9) = CropAndResize(%1, %2, %3, (I64(24), I64(24))) primitive_attrs:
            {extrapolation_value: F32(0.5), method: "bilinear"}
            : (<Tensor[Float32], (8, 32, 32, 16)>, <Tensor[Float32], (16, 4)>, <Tensor[Int32],
            (16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 24,
            24, 16)>)
        """,
        matrix=(8, 1, 1),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "boxes, repeated": Accepted(
        """
        %3(CNode_8) = BoundingBoxEncode(%1, %2) primitive_attrs: {stds: (1, 1, 1, 1), means: (0,
            0, 0, 0), in_strategy: ((2, 1), (2, 1))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16,
            4)>)
        """,
        matrix=(2, 4),
        inputs=((1, -1), (1, -1)),
        outputs=((1, -1),),
    ),
    "boxes disagree": Refused(
        """
        %3(CNode_8) = BoundingBoxEncode(%1, %2) primitive_attrs: {stds: (1, 1, 1, 1), means: (0,
            0, 0, 0), in_strategy: ((8, 1), (4, 1))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16,
            4)>)
        """,
        check="bounding_box_encode_info.cc:CheckStrategy",
        says="Strategies of relevant dimensions must be equal, but the strategy is ((8, 1), (4, 1)",
    ),
    "coordinates of boxes": Refused(
        """
        %3(CNode_8) = BoundingBoxEncode(%1, %2) primitive_attrs: {stds: (1, 1, 1, 1), means: (0,
            0, 0, 0), in_strategy: ((2, 2), (2, 2))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16,
            4)>)
        """,
        check="bounding_box_encode_info.cc:CheckStrategy",
        says="Cannot do this operator in the strategy: ((2, 2), (2, 2)), only support shard the fi",
    ),
    "intersections": Accepted(
        """
        %3(CNode_8) = IOU(%1, %2) primitive_attrs: {in_strategy: ((4, 1), (2, 1))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8,
            16)>)
        """,
        matrix=(4, 2),
        inputs=((1, -1), (0, -1)),
        outputs=((0, 1),),
    ),
    "coordinates of the second boxes": Refused(
        """
        %3(CNode_8) = IOU(%1, %2) primitive_attrs: {in_strategy: ((2, 1), (1, 4))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8,
            16)>)
        """,
        check="iou_info.cc:CheckStrategy",
        says="Only supports shard the 0th dimension of each input tensor, but got strategy ((2, 1)",
    ),
    "more devices than there are": Refused(
        """
        %3(CNode_8) = IOU(%1, %2) primitive_attrs: {in_strategy: ((8, 1), (8, 1))}
            : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8,
            16)>)
        """,
        check="operator_info.cc:InferRepeatedCalcInfo",
        says="The strategy is ((8, 1), (8, 1)), it requires 64 devices, but the device number of t",
    ),
    "a grid, cut where the image is": Accepted(
        """
        %3(CNode_8) = PrimFunc_GridSampler2D(%1, %2, I64(0), I64(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (8, 16, 16, 2)>, <Int64,
            NoShape>, <Int64, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (4, 3, 2, 1)),
        outputs=((4, 3, 2, 1),),
    ),
    "a grid that is split differently": Refused(
        """
        %3(CNode_8) = PrimFunc_GridSampler2D(%1, %2, I64(0), I64(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 4, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (8, 16, 16, 2)>, <Int64,
            NoShape>, <Int64, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        check="grid_sampler2d.cc:CheckStrategy",
        says="Invalid strategy. The strategy of the input_x and grid should be same, but they are",
    ),
    "slopes by channel": Accepted(
        """
        %3(CNode_7) = PrimFunc_PReLU(%1, %2) primitive_attrs: {in_strategy: ((2, 2, 1, 1), (2))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16)>) -> (<Tensor[Float32],
            (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (3,)),
        outputs=((4, 3, 2, 1),),
    ),
    "one slope": Accepted(
        """
        %3(CNode_7) = PrimFunc_PReLU(%1, %2) primitive_attrs: {in_strategy: ((2, 4, 1, 1), (1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (1)>) -> (<Tensor[Float32],
            (8, 16, 32, 32)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0), (-1,)),
        outputs=((3, 2, 1, 0),),
    ),
    "slopes are whole": Refused(
        """
        %3(CNode_7) = PrimFunc_PReLU(%1, %2) primitive_attrs: {in_strategy: ((2, 4, 1, 1), (1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16)>) -> (<Tensor[Float32],
            (8, 16, 32, 32)>)
        """,
        check="prelu_info.cc:CheckStrategy",
        says="Invalid channel strategy.",
    ),
    "distances": Accepted(
        """
        %3(CNode_8) = PrimFunc_Cdist(%1, %2, F32(2)) primitive_attrs: {in_strategy: ((2, 2, 1),
            (2, 2, 1))}
            : (<Tensor[Float32], (8, 16, 32)>, <Tensor[Float32], (8, 4, 32)>, <Float32, NoShape>)
            -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, -1), (2, 0, -1)),
        outputs=((2, 1, 0),),
    ),
    "distances: batches disagree": Refused(
        """
        %3(CNode_8) = PrimFunc_Cdist(%1, %2, F32(2)) primitive_attrs: {in_strategy: ((2, 1, 1),
            (4, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32)>, <Tensor[Float32], (8, 4, 32)>, <Float32, NoShape>)
            -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        check="cdist_info.cc:CheckStrategy",
        says="Sharding num of batch-dimension must be equal, but got strategy ((2, 1, 1), (4, 1, 1",
    ),
    "distances: coordinates": Refused(
        """
        %3(CNode_8) = PrimFunc_Cdist(%1, %2, F32(2)) primitive_attrs: {in_strategy: ((1, 2, 2),
            (1, 2, 1))}
            : (<Tensor[Float32], (8, 16, 32)>, <Tensor[Float32], (8, 4, 32)>, <Float32, NoShape>)
            -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        check="cdist_info.cc:CheckStrategy",
        says="The last dimension of each input cannot be shard, but got strategy ((1, 2, 2), (1, 2",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

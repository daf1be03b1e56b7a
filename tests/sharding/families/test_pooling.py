"""Pooling: windows that may not cross a cut, halos in three dimensions."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "batch and channels, repeated": Accepted(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2), strides: (1, 1, 2,
            2), in_strategy: ((2, 2, 1, 1)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1),),
        outputs=((4, 3, 2, 1),),
    ),
    "windows that do not overlap": Accepted(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2), strides: (1, 1, 2,
            2), in_strategy: ((1, 1, 4, 2)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((3, 2, 1, 0),),
        outputs=((3, 2, 1, 0),),
    ),
    "windows that overlap": Refused(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3), strides: (1, 1, 2,
            2), in_strategy: ((2, 1, 4, 1)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 15, 15)>)
        """,
        check="maxpool_info.cc:CheckHWStrategy",
        says="Do not support to split h dimension when out_shape of h dimension is not divisible b",
    ),
    "overlapping windows of a whole image": Accepted(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3), strides: (1, 1, 2,
            2), in_strategy: ((2, 4, 1, 1)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 15, 15)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0),),
        outputs=((3, 2, 1, 0),),
    ),
    "only the whole dimension overlaps": Accepted(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 3, 2), strides: (1, 1, 2,
            2), in_strategy: ((1, 1, 1, 4)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 15, 16)>)
        """,
        matrix=(1, 1, 1, 4, 2),
        inputs=((4, 3, 2, 1),),
        outputs=((4, 3, 2, 1),),
    ),
    "output rows that do not divide": Refused(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2), strides: (1, 1, 2,
            2), in_strategy: ((1, 1, 8, 1)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 24, 24)>) -> (<Tensor[Float32], (8, 16, 12, 12)>)
        """,
        check="maxpool_info.cc:CheckHWStrategy",
        says="Do not support to split h dimension when out_shape of h dimension is not divisible b",
    ),
    "windows smaller than their stride": Accepted(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 1, 1), strides: (1, 1, 2,
            2), in_strategy: ((1, 1, 2, 1)), pad_mode: I64(2), format: "NCHW"}
            : (<Tensor[Float32], (8, 16, 32, 32)>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(1, 1, 2, 1, 4),
        inputs=((4, 3, 2, 1),),
        outputs=((4, 3, 2, 1),),
    ),
    "channels last": Refused(
        """
        %2(CNode_7) = MaxPool(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2), strides: (1, 1, 2,
            2), in_strategy: ((8, 1, 1, 1)), pad_mode: I64(2), format: "NHWC"}
            : (<Tensor[Float32], (8, 32, 32, 16)>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        context={"target": "GPU"},
        check="maxpool_info.cc:GetAttrs",
        says="The format only support 'NCHW', but got NHWC",
    ),
    "the average": Accepted(
        """
        %2(CNode_7) = PrimFunc_AvgPool(%1, (I64(2), I64(2)), (I64(2), I64(2)), I64(2), I64(0))
            primitive_attrs: {in_strategy: ((1, 1, 4, 2))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((3, 2, 1, 0),),
        outputs=((3, 2, 1, 0),),
    ),
    "the average of windows that overlap": Refused(
        """
        %2(CNode_7) = PrimFunc_AvgPool(%1, (I64(3), I64(3)), (I64(2), I64(2)), I64(2), I64(0))
            primitive_attrs: {in_strategy: ((2, 1, 4, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 15, 15)>)
        """,
        check="avgpool_info.cc:CheckHWStrategy",
        says="Do not support to split h dimension when out_shape of h dimension is not divisible b",
    ),
    "three dimensions": Accepted(
        """
        %2(CNode_7) = MaxPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2, 2), strides: (1,
            1, 2, 2, 2), ceil_mode: I64(0), in_strategy: ((1, 1, 4, 2, 1)), pad_mode: "VALID",
            format: "NCDHW", pad_list: (0, 0, 0, 0, 0, 0)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 8, 8, 8)>)
        """,
        matrix=(1, 1, 4, 2, 1),
        inputs=((4, 3, 2, 1, 0),),
        outputs=((4, 3, 2, 1, 0),),
    ),
    "three dimensions: halos and corners": Accepted(
        """
        %2(CNode_7) = MaxPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3, 3), strides: (1,
            1, 1, 1, 1), ceil_mode: I64(0), in_strategy: ((1, 1, 4, 2, 1)), pad_mode: "SAME",
            format: "NCDHW", pad_list: (1, 1, 1, 1, 1, 1)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 16, 16, 16)>)
        """,
        rank=2,
        matrix=(1, 1, 4, 2, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2, 3, 4, 5)),),
        local=(8, 16, 6, 9, 16),
    ),
    "three dimensions: the last one": Refused(
        """
        %2(CNode_7) = MaxPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 2, 2, 2), strides: (1,
            1, 2, 2, 2), ceil_mode: I64(0), in_strategy: ((1, 1, 4, 1, 2)), pad_mode: "VALID",
            format: "NCDHW", pad_list: (0, 0, 0, 0, 0, 0)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 8, 8, 8)>)
        """,
        check="max_avg_pool_3d_info.cc:CheckStrategy",
        says="Do not support to split the last dimension of input, but the strategy of input is ([",
    ),
    "three dimensions: valid mode": Refused(
        """
        %2(CNode_7) = MaxPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3, 3), strides: (1,
            1, 1, 1, 1), ceil_mode: I64(0), in_strategy: ((1, 1, 4, 2, 1)), pad_mode: "VALID",
            format: "NCDHW", pad_list: (0, 0, 0, 0, 0, 0)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 14, 14, 14)>)
        """,
        check="max_avg_pool_3d_info.cc:CheckHWStrategyBase",
        says="Do not support to split 2th dimension when out_shape of 2th dimension is not divisib",
    ),
    "the average in three dimensions": Accepted(
        """
        %2(CNode_7) = AvgPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3, 3), strides: (1,
            1, 1, 1, 1), ceil_mode: Bool(0), in_strategy: ((1, 1, 4, 2, 1)), divisor_override:
            I64(0), pad_mode: "SAME", format: "NCDHW", pad_list: (1, 1, 1, 1, 1, 1),
            count_include_pad: Bool(1)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 16, 16, 16)>)
        """,
        rank=2,
        matrix=(1, 1, 4, 2, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2, 3, 4, 5)),),
        local=(8, 16, 6, 9, 16),
    ),
    "the average with a stride": Accepted(
        """
        %2(CNode_7) = AvgPool3D(%1) primitive_attrs: {kernel_size: (1, 1, 3, 3, 3), strides: (1,
            1, 2, 2, 2), ceil_mode: Bool(0), in_strategy: ((1, 1, 4, 1, 1)), divisor_override:
            I64(0), pad_mode: "SAME", format: "NCDHW", pad_list: (0, 1, 0, 1, 0, 1),
            count_include_pad: Bool(1)}
            : (<Tensor[Float32], (8, 16, 16, 16, 16)>) -> (<Tensor[Float32], (8, 16, 8, 8, 8)>)
        """,
        rank=2,
        matrix=(1, 1, 4, 1, 1, 2),
        forward=(("NeighborExchangeV2", "", (0, 2, 4)),),
        local=(8, 16, 5, 16, 16),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

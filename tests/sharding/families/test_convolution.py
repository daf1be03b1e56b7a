"""Convolution: channels that are summed up, halos of split images, groups."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "the transposed one, without a strategy": Accepted(
        """
        %3(conv2d_trans_ret) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(16), I64(16)))
            primitive_attrs: {kernel_size: (3, 3), mode: I64(1), out_channel: I64(8), pad: (0, 0, 0,
            0), pad_mode: I64(1), format: "NCHW", pad_list: (0, 1, 0, 1), groups: I64(1), stride:
            (1, 1, 2, 2), group: I64(1), dilation: (1, 1, 1, 1)}
            : (<Tensor[Float32], (8, 8, 8, 8)>, <Tensor[Float32], (8, 16, 3, 3)>, <Tuple[Int64*4],
            TupleShape(NoShape, NoShape, NoShape, NoShape)>) -> (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(8, 1, 1, 1, 1),
        inputs=((4, 3, 2, 1), (3, 0, -1, -1)),
        outputs=((4, 0, 2, 1),),
    ),
    "output channels, repeated": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 1, 1, 1, 2, 2),
        inputs=((5, 4, 3, 2), (1, 4, -1, -1)),
        outputs=((5, 1, 3, 2),),
    ),
    "input channels are summed up": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "input channels disagree": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 4, 1, 1), (1, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategy",
        says="The shard num of c-in for input strategy is 4, but the shard num of c-in for weight",
    ),
    "the kernel is split": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(2), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (0, 1, 0, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 1, 1), (1, 1, 2, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 2, 2)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategy",
        says="The kernel size can not be split, but the strategy for kernel size is (2, 1)",
    ),
    "channels of groups are split": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(2), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 8, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategyBase",
        says="The group is 2, the cout and cin can not be split, but the shard num of cout is 2, t",
    ),
    "groups by batch": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(2), dilation: (1, 1, 1, 1), in_strategy: ((8, 1, 1, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 8, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(8, 1, 1, 1, 1),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
    ),
    "rows from below": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1)),),
        local=(4, 16, 9, 32),
    ),
    "rows from both sides": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=1,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2)),),
        local=(4, 16, 10, 32),
    ),
    "rows, columns and corners": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((1, 1, 4, 2), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=5,
        matrix=(1, 1, 4, 2, 1),
        forward=(("NeighborExchangeV2", "", (2, 3, 4, 5, 6, 7)),),
        local=(8, 16, 10, 17),
    ),
    "neighbours of repeated devices": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((1, 1, 2, 2), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=4,
        matrix=(1, 1, 2, 2, 1, 2),
        forward=(("NeighborExchangeV2", "", (0, 2, 4, 6)),),
        local=(8, 16, 17, 17),
    ),
    "halos and a sum": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((1, 2, 4, 1), (1, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=1,
        matrix=(1, 2, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2)), ("AllReduce", "sum", (1, 5))),
        local=(8, 8, 10, 32),
    ),
    "padding that no window reaches": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(0), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 2, 2), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1)),),
        local=(4, 16, 8, 32),
    ),
    "rows are sent up and come from below": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (0, 1, 0, 1), stride: (1, 1, 2, 2), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((1, 1, 8, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        rank=2,
        matrix=(1, 1, 8, 1, 1),
        forward=(("NeighborExchangeV2", "", (1, 2, 3)),),
        local=(8, 16, 5, 32),
    ),
    "uneven halos": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(5), out_channel: I64(16),
            pad_mode: I64(0), format: "NCHW", pad_list: (2, 2, 2, 2), stride: (1, 1, 2, 2), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 5, 5)>) ->
            (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        rank=2,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (1, 2, 3)),),
        local=(4, 16, 11, 32),
    ),
    "a kernel of one row needs no halo": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(1), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (0, 0, 0, 0), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 1, 1)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 1, 4, 1, 1),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
    ),
    "windows that do not overlap": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(2), out_channel: I64(16),
            pad_mode: I64(2), format: "NCHW", pad_list: (0, 0, 0, 0), stride: (1, 1, 2, 2), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 2, 2)>) ->
            (<Tensor[Float32], (8, 16, 16, 16)>)
        """,
        matrix=(2, 1, 4, 1, 1),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
    ),
    "windows that overlap in valid mode": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(2), format: "NCHW", pad_list: (0, 0, 0, 0), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 2, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 30, 30)>)
        """,
        check="operator_info.cc:InferByStrategy",
        says="CheckStrategy failed.",
    ),
    "rows left over by the stride": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(0), format: "NCHW", pad_list: (0, 0, 0, 0), stride: (1, 1, 2, 2), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 15, 15)>)
        """,
        check="operator_info.cc:InferByStrategy",
        says="CheckStrategy failed.",
    ),
    "a halo of more than one slice": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(11), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (5, 5, 5, 5), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((1, 1, 8, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 11, 11)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=3,
        check="conv2d_info.cc:InferCommunicationAttrs",
        says="The send or recv len larger than slice shape of 2th dimension 4",
    ),
    "a dilated kernel": Accepted(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (2, 2, 2, 2), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 2, 2), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1)),),
        local=(4, 16, 10, 32),
    ),
    "channels last": Refused(
        """
        %3(CNode_7) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NHWC", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((8, 1, 1, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 32, 32, 16)>, <Tensor[Float32], (16, 3, 3, 16)>) ->
            (<Tensor[Float32], (8, 32, 32, 16)>)
        """,
        context={"target": "GPU"},
        check="conv2d_info.cc:CheckAttrsBase",
        says="The format must be 'NCHW', but got NHWC",
    ),
    "transposed: output channels are summed up": Accepted(
        """
        %3(CNode_7) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(32), I64(32)))
            primitive_attrs: {kernel_size: (4, 4), out_channel: I64(16), pad_mode: I64(0), format:
            "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 2, 2), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((2, 4, 1, 1), (4, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 16, 16)>, <Tensor[Float32], (16, 16, 4, 4)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 4, 1, 1, 1),
        inputs=((4, 3, 2, 1), (3, 0, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "transposed: both channels": Accepted(
        """
        %3(CNode_7) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(32), I64(32)))
            primitive_attrs: {kernel_size: (4, 4), out_channel: I64(16), pad_mode: I64(0), format:
            "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 2, 2), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 16, 16)>, <Tensor[Float32], (16, 16, 4, 4)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (3, 0, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "transposed: channels disagree": Refused(
        """
        %3(CNode_7) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(32), I64(32)))
            primitive_attrs: {kernel_size: (4, 4), out_channel: I64(16), pad_mode: I64(0), format:
            "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 2, 2), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((2, 4, 1, 1), (1, 4, 1, 1))}
            : (<Tensor[Float32], (8, 16, 16, 16)>, <Tensor[Float32], (16, 16, 4, 4)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategy",
        says="The shard num of c-out for input strategy is 4, but the shard num of c-out for weigh",
    ),
    "transposed: halos of both dimensions": Accepted(
        """
        %3(CNode_7) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(32), I64(32)))
            primitive_attrs: {kernel_size: (4, 4), out_channel: I64(16), pad_mode: I64(0), format:
            "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 2, 2), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((1, 1, 2, 4), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 16, 16)>, <Tensor[Float32], (16, 16, 4, 4)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        rank=5,
        matrix=(1, 1, 2, 4, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2, 4, 5, 6)),),
        local=(8, 16, 9, 6),
    ),
    "transposed: a split image in valid mode": Refused(
        """
        %3(CNode_7) = Conv2DTranspose(%1, %2, (I64(8), I64(16), I64(64), I64(64)))
            primitive_attrs: {kernel_size: (4, 4), out_channel: I64(16), pad_mode: I64(2), format:
            "NCHW", pad_list: (0, 0, 0, 0), stride: (1, 1, 4, 4), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 16, 16)>, <Tensor[Float32], (16, 16, 4, 4)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 64, 64)>)
        """,
        check="operator_info.cc:InferByStrategy",
        says="CheckStrategy failed.",
    ),
    "the gradient of a convolution": Accepted(
        """
        %3(CNode_7) = Conv2DBackpropInput(%1, %2, (I64(8), I64(16), I64(32), I64(32)))
            primitive_attrs: {kernel_size: (3, 3), out_channel: I64(16), pad_mode: I64(1), format:
            "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group: I64(1), dilation: (1, 1,
            1, 1), in_strategy: ((2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (3, 0, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "three dimensions: a sum": Accepted(
        """
        %3(CNode_7) = Conv3D(%1, %2) primitive_attrs: {kernel_size: (3, 3, 3), out_channel:
            I64(16), offset_x: I64(0), pad_mode: I64(1), format: "NCDHW", pad_list: (1, 1, 1, 1,
            1, 1), stride: I64(1), dilations: (1, 1, 1, 1, 1), strides: (1, 1, 1, 1, 1), group:
            I64(1), dilation: I64(1), in_strategy: ((2, 4, 1, 1, 1), (1, 4, 1, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 16, 16)>, <Tensor[Float16], (16, 16, 3, 3, 3)>) ->
            (<Tensor[Float16], (8, 16, 16, 16, 16)>)
        """,
        matrix=(2, 4, 1, 1, 1),
        inputs=((4, 3, 2, 1, -1), (0, 3, -1, -1, -1)),
        outputs=((4, 0, 2, 1, -1),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "three dimensions: halos": Accepted(
        """
        %3(CNode_7) = Conv3D(%1, %2) primitive_attrs: {kernel_size: (3, 3, 3), out_channel:
            I64(16), offset_x: I64(0), pad_mode: I64(1), format: "NCDHW", pad_list: (1, 1, 1, 1,
            1, 1), stride: I64(1), dilations: (1, 1, 1, 1, 1), strides: (1, 1, 1, 1, 1), group:
            I64(1), dilation: I64(1), in_strategy: ((2, 1, 4, 1, 1), (1, 1, 1, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 16, 16)>, <Tensor[Float16], (16, 16, 3, 3, 3)>) ->
            (<Tensor[Float16], (8, 16, 16, 16, 16)>)
        """,
        rank=1,
        matrix=(2, 1, 4, 1, 1),
        forward=(("NeighborExchangeV2", "", (0, 1, 2)),),
        local=(4, 16, 6, 16, 16),
    ),
    "three dimensions: the last one": Refused(
        """
        %3(CNode_7) = Conv3D(%1, %2) primitive_attrs: {kernel_size: (3, 3, 3), out_channel:
            I64(16), offset_x: I64(0), pad_mode: I64(1), format: "NCDHW", pad_list: (1, 1, 1, 1,
            1, 1), stride: I64(1), dilations: (1, 1, 1, 1, 1), strides: (1, 1, 1, 1, 1), group:
            I64(1), dilation: I64(1), in_strategy: ((2, 1, 1, 1, 4), (1, 1, 1, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 16, 16)>, <Tensor[Float16], (16, 16, 3, 3, 3)>) ->
            (<Tensor[Float16], (8, 16, 16, 16, 16)>)
        """,
        check="conv3d_info.cc:CheckStrategy",
        says="Do not support to split the last dimension of input, but the strategy for input is [",
    ),
    "three dimensions: the kernel": Refused(
        """
        %3(CNode_7) = Conv3D(%1, %2) primitive_attrs: {kernel_size: (2, 2, 2), out_channel:
            I64(16), offset_x: I64(0), pad_mode: I64(1), format: "NCDHW", pad_list: (0, 1, 0, 1,
            0, 1), stride: I64(1), dilations: (1, 1, 1, 1, 1), strides: (1, 1, 1, 1, 1), group:
            I64(1), dilation: I64(1), in_strategy: ((2, 1, 1, 1, 1), (1, 1, 1, 1, 2))}
            : (<Tensor[Float16], (8, 16, 16, 16, 16)>, <Tensor[Float16], (16, 16, 2, 2, 2)>) ->
            (<Tensor[Float16], (8, 16, 16, 16, 16)>)
        """,
        check="conv3d_info.cc:CheckStrategy",
        says="The kernel size can not be split, but the strategy for kernel size is (1, 1, 2)",
    ),
    "the newer operator: a sum": Accepted(
        """
        %3(CNode_7) = PrimFunc_Convolution(%1, %2, None, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(1)) primitive_attrs: {in_strategy:
            ((2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>, <None,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Bool,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "the newer operator: groups": Accepted(
        """
        %3(CNode_7) = PrimFunc_Convolution(%1, %2, None, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(2)) primitive_attrs: {in_strategy:
            ((2, 2, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 8, 3, 3)>, <None,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Bool,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "the newer operator passes over the second dimension of the weight": Accepted(
        """
        %3(CNode_7) = PrimFunc_Convolution(%1, %2, None, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(1)) primitive_attrs: {in_strategy:
            ((2, 1, 1, 1), (1, 8, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>, <None,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Bool,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(2, 1, 1, 1, 1, 4),
        inputs=((5, 4, 3, 2), (1, 4, -1, -1)),
        outputs=((5, 1, 3, 2),),
    ),
    "the newer operator compares channels with the weight's rows": Refused(
        """
        %3(CNode_7) = PrimFunc_Convolution(%1, %2, None, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(2)) primitive_attrs: {in_strategy:
            ((2, 1, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 8, 3, 3)>, <None,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Bool,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategy",
        says="The shard num of c-out for input strategy is 1, but the shard num of c-out for weigh",
    ),
    "the newer operator: a split image": Refused(
        """
        %3(CNode_7) = PrimFunc_Convolution(%1, %2, None, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(1)) primitive_attrs: {in_strategy:
            ((2, 1, 4, 1), (1, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>, <None,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Bool,
            NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategy",
        says="Do not support split H or W dimension.",
    ),
    "the newer operator: a bias": Refused(
        """
        %4(CNode_7) = PrimFunc_Convolution(%1, %2, %3, (I64(1), I64(1)), (I64(1), I64(1)),
            (I64(1), I64(1)), Bool(0), (I64(0), I64(0)), I64(1)) primitive_attrs: {in_strategy:
            ((2, 1, 1, 1), (4, 1, 1, 1), (4))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>,
            <Tensor[Float32], (16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tuple[Int64*2], TupleShape(NoShape,
            NoShape)>, <Bool, NoShape>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        check="conv2d_info.cc:CheckStrategyBase",
        says="The size of strategy must be 2, but got 3",
    ),
    "trained": Accepted(
        """
        %3(CNode_89) = Conv2D(%1, %2) primitive_attrs: {kernel_size: I64(3), out_channel: I64(16),
            pad_mode: I64(1), format: "NCHW", pad_list: (1, 1, 1, 1), stride: (1, 1, 1, 1), group:
            I64(1), dilation: (1, 1, 1, 1), in_strategy: ((4, 1, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float32], (8, 16, 32, 32)>, <Tensor[Float32], (16, 16, 3, 3)>) ->
            (<Tensor[Float32], (8, 16, 32, 32)>)
        """,
        matrix=(4, 1, 1, 1, 2),
        inputs=((4, 3, 2, 1), (0, 3, -1, -1)),
        outputs=((4, 0, 2, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

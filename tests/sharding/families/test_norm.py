"""Norms: what is normalised is whole, or its squares are summed up."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "rows, repeated": Accepted(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 2, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1), (1,), (1,)),
        outputs=((3, 2, 1), (3, 2, -1), (3, 2, -1)),
    ),
    "the normalised axis": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 1, 4), (4), (4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckStrategy",
        says="The dimensions starting form begin_norm_axis cannot be split, the begin_norm_axis is",
    ),
    "two normalised axes": Accepted(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(1), I64(1), F32(1e-07)) primitive_attrs:
            {in_strategy: ((8, 1, 1), (1, 1), (1, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (8, 32)>, <Tensor[Float32], (8,
            32)>, <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*3], TupleShape((16, 8, 32), (16, 1, 1), (16, 1, 1))>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0), (1, 0), (1, 0)),
        outputs=((2, 1, 0), (2, -1, -1), (2, -1, -1)),
    ),
    "one of two normalised axes": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(1), I64(1), F32(1e-07)) primitive_attrs:
            {in_strategy: ((2, 4, 1), (4, 1), (4, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (8, 32)>, <Tensor[Float32], (8,
            32)>, <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*3], TupleShape((16, 8, 32), (16, 1, 1), (16, 1, 1))>)
        """,
        check="layer_norm_info.cc:CheckStrategy",
        says="The dimensions starting form begin_norm_axis cannot be split, the begin_norm_axis is",
    ),
    "gamma and beta alone": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 1, 1), (2), (2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckStrategy",
        says="The strategies of input and gamma must be right aligned, but the strategy of input i",
    ),
    "too few entries": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 1, 1), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckStrategy",
        says="Invalid strategy size 2",
    ),
    "a strategy that is made": Accepted(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0), (0,), (0,)),
        outputs=((2, 1, 0), (2, 1, -1), (2, 1, -1)),
    ),
    "layouts": Accepted(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1, -1),
            'interleaved_parallel': false, 'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2),
            'tensor_map': (-1), 'interleaved_parallel': false, 'alias_name': (a, b, c)},
            {'device_matrix': (2, 2, 2), 'tensor_map': (-1), 'interleaved_parallel': false,
            'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
    ),
    "layouts of the normalised axis": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2), 'tensor_map': (2, -1, 1),
            'interleaved_parallel': false, 'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2),
            'tensor_map': (1), 'interleaved_parallel': false, 'alias_name': (a, b, c)},
            {'device_matrix': (2, 2, 2), 'tensor_map': (1), 'interleaved_parallel': false,
            'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckInputLayout",
        says="The dimensions starting form begin_norm_axis cannot be split, but the tensor map of",
    ),
    "a layout of gamma alone": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1, -1),
            'interleaved_parallel': false, 'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2),
            'tensor_map': (0), 'interleaved_parallel': false, 'alias_name': (a, b, c)},
            {'device_matrix': (2, 2, 2), 'tensor_map': (-1), 'interleaved_parallel': false,
            'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckInputLayout",
        says="The tensor map of gamma [[0]] does not equal to tensor map of beta [[-1]]",
    ),
    "the newer layer norm": Accepted(
        """
        %4(CNode_10) = PrimFunc_LayerNormV3(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((4, 2, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, 0), (0,), (0,)),
        outputs=((2, 1, 0), (2, 1, -1), (2, 1, -1)),
    ),
    "the newer layer norm: the normalised axis": Refused(
        """
        %4(CNode_10) = PrimFunc_LayerNormV3(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 2, 2), (2), (2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        check="layer_norm_info.cc:CheckStrategy",
        says="The dimensions starting form begin_norm_axis cannot be split, the begin_norm_axis is",
    ),
    "trained": Accepted(
        """
        %4(CNode_94) = PrimFunc_LayerNorm(%1, %2, %3, I64(-1), I64(-1), F32(1e-07))
            primitive_attrs: {in_strategy: ((2, 2, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 32), (16, 8, 1), (16, 8, 1))>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1), (1,), (1,)),
        outputs=((3, 2, 1), (3, 2, -1), (3, 2, -1)),
    ),
    "the batch of an RMS norm": Accepted(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((8, 1,
            1), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0), (0,)),
        outputs=((2, 1, 0), (2, 1, -1)),
    ),
    "a split axis of an RMS norm is summed up": Accepted(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((2, 1,
            4), (4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "a split axis of an RMS norm, repeated": Accepted(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((1, 2,
            2), (2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "two axes of an RMS norm": Accepted(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((2, 2,
            2), (2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (8, 32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 1, 1))>)
        """,
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "gamma of an RMS norm": Refused(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((2, 1,
            4), (1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        check="rms_norm_info.cc:CheckStrategy",
        says="Invalid gamma strategy [1]",
    ),
    "layouts of the axis of an RMS norm": Accepted(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1, 0), 'interleaved_parallel': false,
            'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2), 'tensor_map': (0),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "layouts that disagree": Refused(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1, 0), 'interleaved_parallel': false,
            'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2), 'tensor_map': (-1),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        check="rms_norm_info.cc:CheckInputLayout",
        says="RmsNorm Invalid gamma layout [const vector]{[const vector]{-1}}, 0th tensor map in g",
    ),
    "too few entries for an RMS norm": Refused(
        """
        %3(CNode_10) = PrimFunc_RmsNorm(%1, %2, F32(1e-06)) primitive_attrs: {in_strategy: ((8, 1,
            1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tensor[Float32], (32)>, <Float32, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 8, 32), (16, 8, 1))>)
        """,
        check="rms_norm_info.cc:CheckStrategy",
        says="Invalid strategy size 1",
    ),
    "the batch of a group norm": Accepted(
        """
        %4(CNode_10) = PrimFunc_GroupNorm(%1, I64(4), %2, %3, F32(1e-05)) primitive_attrs:
            {in_strategy: ((8, 1, 1, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 4, 4), (16, 4), (16, 4))>)
        """,
        matrix=(8, 1, 1, 1),
        inputs=((3, -1, -1, -1), (-1,), (-1,)),
        outputs=((3, -1, -1, -1), (3, -1), (3, -1)),
    ),
    "the batch of a group norm, repeated": Accepted(
        """
        %4(CNode_10) = PrimFunc_GroupNorm(%1, I64(4), %2, %3, F32(1e-05)) primitive_attrs:
            {in_strategy: ((2, 1, 1, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 4, 4), (16, 4), (16, 4))>)
        """,
        matrix=(2, 1, 1, 1, 4),
        inputs=((4, -1, -1, -1), (-1,), (-1,)),
        outputs=((4, -1, -1, -1), (4, -1), (4, -1)),
    ),
    "channels of a group norm": Refused(
        """
        %4(CNode_10) = PrimFunc_GroupNorm(%1, I64(4), %2, %3, F32(1e-05)) primitive_attrs:
            {in_strategy: ((2, 2, 1, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 4, 4), (16, 4), (16, 4))>)
        """,
        check="group_norm_info.cc:CheckStrategy",
        says="only support batch dim parallel for now.",
    ),
    "weights of a group norm": Refused(
        """
        %4(CNode_10) = PrimFunc_GroupNorm(%1, I64(4), %2, %3, F32(1e-05)) primitive_attrs:
            {in_strategy: ((2, 1, 1, 1), (2), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 4, 4), (16, 4), (16, 4))>)
        """,
        check="group_norm_info.cc:CheckStrategy",
        says="only input dim can be split for now.",
    ),
    "too few entries for a group norm": Refused(
        """
        %4(CNode_10) = PrimFunc_GroupNorm(%1, I64(4), %2, %3, F32(1e-05)) primitive_attrs:
            {in_strategy: ((8, 1, 1, 1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3],
            TupleShape((16, 8, 4, 4), (16, 4), (16, 4))>)
        """,
        check="group_norm_info.cc:CheckStrategy",
        says="strategies count must be 3.",
    ),
    "the batch of a batch norm, repeated": Accepted(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((2, 1, 1, 1),
            (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        matrix=(2, 1, 1, 1, 4),
        inputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
        outputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
    ),
    "channels of a batch norm": Accepted(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((2, 4, 1, 1),
            (4), (4), (4), (4))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0), (2,), (2,), (2,), (2,)),
        outputs=((3, 2, 1, 0), (2,), (2,), (2,), (2,)),
    ),
    "channels of a batch norm alone": Refused(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((2, 4, 1, 1),
            (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        check="batchnorm_info.cc:CheckStrategy",
        says="Invalid strategy, the index is 1, it must be equal to 4, but got 1",
    ),
    "images of a batch norm": Accepted(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((2, 1, 2, 1),
            (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        matrix=(2, 1, 2, 1, 2),
        inputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
        outputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
    ),
    "inference": Accepted(
        """
        %6(CNode_10) = PrimFunc_BatchNorm(%1, %2, %3, %4, %5, Bool(0), F32(1e-05), F32(0.1),
            I64(0)) primitive_attrs: {in_strategy: ((2, 2, 1, 1), (2), (2), (2), (2))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Tensor[Float32], (8)>,
            <Tensor[Float32], (8)>, <Tensor[Float32], (8)>, <Bool, NoShape>, <Float32, NoShape>,
            <Float32, NoShape>, <Int64, NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16,
            8, 4, 4), (8), (8), (8), (8))>)
        """,
        matrix=(2, 2, 1, 1, 2),
        inputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
        outputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
    ),
    "two dimensions": Accepted(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((4, 2), (2),
            (2), (2), (2))}
            : (<Tensor[Float32], (16, 8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]],
            (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Bool, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Tuple[Tensor[Float32]*5], TupleShape((16, 8), (8), (8), (8), (8))>)
        """,
        matrix=(4, 2),
        inputs=((1, 0), (0,), (0,), (0,), (0,)),
        outputs=((1, 0), (0,), (0,), (0,), (0,)),
    ),
    "a group of three": Refused(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {group_size: I64(3),
            in_strategy: ((8, 1, 1, 1), (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        check="batchnorm_info.cc:GetAttrs",
        says="The group size is out of range, it must be in [1, 8], it must be the power of 2, and",
    ),
    "groups and a batch that is repeated": Refused(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {group_size: I64(2),
            in_strategy: ((4, 1, 1, 1), (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        check="batchnorm_info.cc:CheckStrategy",
        says="The config group size only support the N dimension is shard with device num",
    ),
    "a batch norm by batch": Accepted(
        """
        %2(CNode_13) = PrimFunc_BatchNorm(%1, %para2_w1, %para3_w2, %para4_w3, %para5_w4, Bool(1),
            F32(1e-05), F32(0.1), I64(0), UMonad[U]) primitive_attrs: {in_strategy: ((4, 1, 1, 1),
            (1), (1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Ref[Tensor[Float32]], (8)>,
            <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>, <Ref[Tensor[Float32]], (8)>,
            <Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <UMonad,
            NoShape>) -> (<Tuple[Tensor[Float32]*5], TupleShape((16, 8, 4, 4), (8), (8), (8),
            (8))>)
        """,
        matrix=(4, 1, 1, 1, 2),
        inputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
        outputs=((4, 3, 2, 1), (3,), (3,), (3,), (3,)),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

"""Products over one axis: plain, with bias, by expert, of quantised matrices, by blocks."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "the axis that is summed up": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((4, 2), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1), (1, 0)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "a sum, repeated": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2), (2, 1)),
        outputs=((3, 1),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "the summed axis disagrees": Refused(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 4), (1, 2))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        check="matmul_info.cc:CheckInputStrategy",
        says="Invalid strategy for mat_a [2, 4] and mat_b [1, 2]. The transpose_a is: 0, and trans",
    ),
    "both matrices turned": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(1), Bool(1)) primitive_attrs: {in_strategy:
            ((2, 2), (2, 2))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Float32], (16, 32)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(2, 2, 2),
        inputs=((1, 2), (0, 1)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "equal blocks on all devices are gathered": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((4, 2), (4, 2))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(4, 2),
        forward=(("AllGather", "", (0, 1)), ("AllGather", "", (0, 2, 4, 6))),
    ),
    "the result is scattered": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {out_strategy:
            ((8, 1)), in_strategy: ((4, 2), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1), (1, 0)),
        outputs=((1, 0),),
        forward=(("ReduceScatter", "sum", (0, 1)),),
    ),
    "a result that can't be made": Refused(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {out_strategy:
            ((2, 1)), in_strategy: ((4, 2), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        check="matmul_info.cc:CheckOutputStrategy",
        says="The input strategy is ([const vector]{4, 2}, [const vector]{2, 1}), the first dimens",
    ),
    "more devices than there are": Refused(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((4, 2), (2, 4))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        check="operator_info.cc:InferRepeatedCalcInfo",
        says="The strategy is ((4, 2), (2, 4)), it requires 32 devices, but the device number of t",
    ),
    "a strategy that is made for a turned matrix": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(1), Bool(0))
            : (<Tensor[Float32], (32, 64)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(8, 1, 1),
        inputs=((1, 2), (1, 0)),
        outputs=((2, 0),),
    ),
    "layouts": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1), 'interleaved_parallel': false,
            'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2), 'tensor_map': (1, 0),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "layouts that use an axis twice": Refused(
        """
        %3(CNode_7) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': (2, 1), 'interleaved_parallel': false,
            'alias_name': (a, b, c)}, {'device_matrix': (2, 2, 2), 'tensor_map': (1, 2),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        check="matmul_info.cc:log_func_mm",
        says="The device_matrix [const vector]{2, 2, 2} axis 0 has been shard for more than once a",
    ),
    "trained": Accepted(
        """
        %3(CNode_89) = PrimFunc_MatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2), (2, 2))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (64, 16)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (1, 0)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "batches": Accepted(
        """
        %3(CNode_7) = PrimFunc_BatchMatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 1, 2), (2, 2, 1))}
            : (<Tensor[Float32], (2, 8, 64, 32)>, <Tensor[Float32], (8, 32, 16)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (2, 8, 64, 16)>)
        """,
        matrix=(2, 2, 1, 2, 1),
        inputs=((4, 3, 2, 1), (3, 1, 0)),
        outputs=((4, 3, 2, 0),),
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "batches disagree": Refused(
        """
        %3(CNode_7) = PrimFunc_BatchMatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 1, 2), (1, 2, 1))}
            : (<Tensor[Float32], (2, 8, 64, 32)>, <Tensor[Float32], (8, 32, 16)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (2, 8, 64, 16)>)
        """,
        check="matmul_info.cc:CheckBatchDimensions",
        says="Strategies of batch dimensions are not equal, long strategy is [2, 2, 1, 2], short s",
    ),
    "a batch of one": Accepted(
        """
        %3(CNode_7) = PrimFunc_BatchMatMul(%1, %2, Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((4, 2, 1), (1, 1, 1))}
            : (<Tensor[Float32], (8, 64, 32)>, <Tensor[Float32], (1, 32, 16)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (8, 64, 16)>)
        """,
        matrix=(4, 2, 1, 1),
        inputs=((3, 2, 1), (-1, 1, 0)),
        outputs=((3, 2, 0),),
    ),
    "a strategy that is made for batches": Accepted(
        """
        %3(CNode_7) = PrimFunc_BatchMatMul(%1, %2, Bool(0), Bool(0))
            : (<Tensor[Float32], (8, 64, 32)>, <Tensor[Float32], (8, 32, 16)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (8, 64, 16)>)
        """,
        matrix=(8, 1, 1, 1),
        inputs=((3, 2, 1), (3, 1, 0)),
        outputs=((3, 2, 0),),
    ),
    "the newer product": Accepted(
        """
        %3(CNode_7) = PrimFunc_MatMulExt(%1, %2) primitive_attrs: {in_strategy: ((4, 2), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>) -> (<Tensor[Float32],
            (64, 16)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1), (1, 0)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "the newer product: the summed axis disagrees": Refused(
        """
        %3(CNode_7) = PrimFunc_MatMulExt(%1, %2) primitive_attrs: {in_strategy: ((4, 2), (1, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32, 16)>) -> (<Tensor[Float32],
            (64, 16)>)
        """,
        check="matmul_info.cc:CheckInputStrategy",
        says="Invalid strategy for mat_a [4, 2] and mat_b [1, 1]. The transpose_a is: 0, and trans",
    ),
    "the newer product of batches": Accepted(
        """
        %3(CNode_7) = PrimFunc_BatchMatMulExt(%1, %2) primitive_attrs: {in_strategy: ((1, 4, 2),
            (1, 2, 1))}
            : (<Tensor[Float32], (8, 64, 32)>, <Tensor[Float32], (8, 32, 16)>) ->
            (<Tensor[Float32], (8, 64, 16)>)
        """,
        matrix=(1, 4, 2, 1),
        inputs=((3, 2, 1), (3, 1, 0)),
        outputs=((3, 2, 0),),
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "a bias lies along the second dimension": Accepted(
        """
        %3(CNode_7) = PrimFunc_BiasAdd(%1, %2, I64(0)) primitive_attrs: {in_strategy: ((2, 2, 2,
            1), (2))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        matrix=(2, 2, 2, 1),
        inputs=((3, 2, 1, 0), (2,)),
        outputs=((3, 2, 1, 0),),
    ),
    "a bias that does not": Refused(
        """
        %3(CNode_7) = PrimFunc_BiasAdd(%1, %2, I64(0)) primitive_attrs: {in_strategy: ((2, 2, 2,
            1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        check="bias_add_info.cc:CheckStrategy",
        says="Invalid strategy.",
    ),
    "a bias, repeated": Accepted(
        """
        %3(CNode_7) = PrimFunc_BiasAdd(%1, %2, I64(0)) primitive_attrs: {in_strategy: ((2, 2),
            (2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (1,)),
        outputs=((2, 1),),
    ),
    "two layers by their inner size": Accepted(
        """
        %8(CNode_68) = PrimFunc_FFNExt(%1, %2, %3, %5, %6, %7, None, None, None, None, None, None,
            None, None, I64(22), I64(0)) primitive_attrs: {in_strategy: ((1, 1), (1, 1, 8), (1, 8,
            1), (1), (1, 8), (1, 1))}
            : (<Tensor[Float16], (1024, 512)>, <Tensor[Float16], (16, 512, 2048)>,
            <Tensor[Float16], (16, 2048, 512)>, <Tuple[Int64*16], TupleShape(NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape)>, <Tensor[Float16], (16, 2048)>,
            <Tensor[Float16], (16, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (1024, 512)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((2, 1), (3, 1, 0), (3, 0, 1), (-1,), (3, 0), (3, 1)),
        outputs=((2, 1),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "two layers: the second weight is not compared": Accepted(
        """
        %8(CNode_68) = PrimFunc_FFNExt(%1, %2, %3, %5, %6, %7, None, None, None, None, None, None,
            None, None, I64(22), I64(0)) primitive_attrs: {in_strategy: ((1, 1), (1, 1, 8), (1, 4,
            1), (1), (1, 8), (1, 1))}
            : (<Tensor[Float16], (1024, 512)>, <Tensor[Float16], (16, 512, 2048)>,
            <Tensor[Float16], (16, 2048, 512)>, <Tuple[Int64*16], TupleShape(NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape)>, <Tensor[Float16], (16, 2048)>,
            <Tensor[Float16], (16, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (1024, 512)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((2, 1), (3, 1, 0), (3, 0, 1), (-1,), (3, 0), (3, 1)),
        outputs=((2, 1),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "two layers: tokens": Refused(
        """
        %8(CNode_68) = PrimFunc_FFNExt(%1, %2, %3, %5, %6, %7, None, None, None, None, None, None,
            None, None, I64(22), I64(0)) primitive_attrs: {in_strategy: ((2, 1), (1, 1, 8), (1, 8,
            1), (1), (1, 8), (1, 1))}
            : (<Tensor[Float16], (1024, 512)>, <Tensor[Float16], (16, 512, 2048)>,
            <Tensor[Float16], (16, 2048, 512)>, <Tuple[Int64*16], TupleShape(NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape)>, <Tensor[Float16], (16, 2048)>,
            <Tensor[Float16], (16, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (1024, 512)>)
        """,
        check="f_f_n_info.cc:CheckStrategy",
        says="Invalid strategy, all dimension of x's strategy must be 1,but got [const vector]{2,",
    ),
    "two layers: experts": Refused(
        """
        %8(CNode_68) = PrimFunc_FFNExt(%1, %2, %3, %5, %6, %7, None, None, None, None, None, None,
            None, None, I64(22), I64(0)) primitive_attrs: {in_strategy: ((1, 1), (2, 1, 4), (2, 4,
            1), (1), (1, 4), (1, 1))}
            : (<Tensor[Float16], (1024, 512)>, <Tensor[Float16], (16, 512, 2048)>,
            <Tensor[Float16], (16, 2048, 512)>, <Tuple[Int64*16], TupleShape(NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape)>, <Tensor[Float16], (16, 2048)>,
            <Tensor[Float16], (16, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (1024, 512)>)
        """,
        check="f_f_n_info.cc:CheckStrategy",
        says="Invalid strategy: The expert dim must be 1 at the same time, but got strategy_w1's s",
    ),
    "two layers: the hidden size": Refused(
        """
        %8(CNode_68) = PrimFunc_FFNExt(%1, %2, %3, %5, %6, %7, None, None, None, None, None, None,
            None, None, I64(22), I64(0)) primitive_attrs: {in_strategy: ((1, 2), (1, 2, 4), (1, 4,
            1), (1), (1, 4), (1, 1))}
            : (<Tensor[Float16], (1024, 512)>, <Tensor[Float16], (16, 512, 2048)>,
            <Tensor[Float16], (16, 2048, 512)>, <Tuple[Int64*16], TupleShape(NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape, NoShape, NoShape, NoShape)>, <Tensor[Float16], (16, 2048)>,
            <Tensor[Float16], (16, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (1024, 512)>)
        """,
        check="f_f_n_info.cc:CheckStrategy",
        says="Invalid strategy: The hidden size dim must be 1 at the same time, but got x's strate",
    ),
    "quantised weights": Accepted(
        """
        %4(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, None, None, None, None, Bool(0),
            Bool(0), I64(0)) primitive_attrs: {in_strategy: ((2, 2), (2, 2), (2))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float16], (64)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (1, 0), (0,)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "quantised weights: offsets are not compared": Accepted(
        """
        %5(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, %4, None, None, None, Bool(0),
            Bool(0), I64(0)) primitive_attrs: {in_strategy: ((2, 1), (1, 4), (4), (2))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float16], (64)>,
            <Tensor[Float16], (64)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool,
            NoShape>, <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (1, 0), (0,), (0,)),
        outputs=((2, 0),),
    ),
    "quantised weights with one scale": Accepted(
        """
        %4(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, None, None, None, None, Bool(0),
            Bool(0), I64(0)) primitive_attrs: {in_strategy: ((2, 1), (1, 4), (1))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float16], (1)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (1, 0), (-1,)),
        outputs=((2, 0),),
    ),
    "quantised weights, turned, scaled by group": Accepted(
        """
        %4(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, None, None, None, None, Bool(0),
            Bool(1), I64(0)) primitive_attrs: {in_strategy: ((2, 2), (2, 2), (2, 2))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (64, 32)>, <Tensor[Float16], (64, 4)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (0, 1), (0, 1)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "quantised weights: one scale a column in two dimensions": Refused(
        """
        %4(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, None, None, None, None, Bool(0),
            Bool(0), I64(0)) primitive_attrs: {in_strategy: ((2, 2), (2, 2), (1, 2))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float16], (1, 64)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        check="tensor_layout.cc:TensorShapeDimensionIsDividedBySplitDeviceDimension",
        says="0th input shape is not divisible. The input shape is 1, but the slice number is 2",
    ),
    "quantised weights: the summed axis disagrees": Refused(
        """
        %4(CNode_7) = PrimFunc_WeightQuantBatchMatmul(%1, %2, %3, None, None, None, None, Bool(0),
            Bool(0), I64(0)) primitive_attrs: {in_strategy: ((2, 4), (2, 1), (1))}
            : (<Tensor[Float16], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float16], (64)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        check="weight_quant_batch_matmul_info.cc:CheckInputStrategy",
        says="Invalid strategy for mat_x [2, 4] and mat_weight [2, 1]. The trans_x is: 0, and tran",
    ),
    "both quantised": Accepted(
        """
        %4(CNode_7) = PrimFunc_QuantBatchMatmul(%1, %2, %3, None, None, None, Bool(0), Bool(0),
            I64(42)) primitive_attrs: {in_strategy: ((2, 2), (2, 2), (2))}
            : (<Tensor[Int8], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float32], (64)>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>, <Bool, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (1, 0), (0,)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "both quantised, the first turned": Accepted(
        """
        %4(CNode_7) = PrimFunc_QuantBatchMatmul(%1, %2, %3, None, None, None, Bool(1), Bool(0),
            I64(42)) primitive_attrs: {in_strategy: ((2, 2), (2, 2), (2))}
            : (<Tensor[Int8], (32, 16)>, <Tensor[Int8], (32, 64)>, <Tensor[Float32], (64)>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>, <Bool, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 2, 2),
        inputs=((1, 2), (1, 0), (0,)),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "both quantised, with offset, bias and a scale a row": Accepted(
        """
        %7(CNode_8) = PrimFunc_QuantBatchMatmul(%1, %2, %3, %4, %5, %6, Bool(0), Bool(0), I64(42))
            primitive_attrs: {in_strategy: ((2, 1), (1, 4), (4), (4), (4), (2))}
            : (<Tensor[Int8], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float32], (64)>,
            <Tensor[Float32], (64)>, <Tensor[Int32], (64)>, <Tensor[Float32], (16)>, <Bool,
            NoShape>, <Bool, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (1, 0), (0,), (0,), (0,), (2,)),
        outputs=((2, 0),),
    ),
    "both quantised: a bias of one number": Refused(
        """
        %5(CNode_7) = PrimFunc_QuantBatchMatmul(%1, %2, %3, None, %4, None, Bool(0), Bool(0),
            I64(42)) primitive_attrs: {in_strategy: ((2, 1), (1, 4), (4), (1))}
            : (<Tensor[Int8], (16, 32)>, <Tensor[Int8], (32, 64)>, <Tensor[Float32], (64)>, <None,
            NoShape>, <Tensor[Int32], (1)>, <None, NoShape>, <Bool, NoShape>, <Bool, NoShape>,
            <Int64, NoShape>) -> (<Tensor[Float16], (16, 64)>)
        """,
        check="tensor_layout.cc:TensorShapeDimensionIsDividedBySplitDeviceDimension",
        says="0th input shape is not divisible. The input shape is 1, but the slice number is 4",
    ),
    "both quantised: batches disagree": Refused(
        """
        %4(CNode_7) = PrimFunc_QuantBatchMatmul(%1, %2, %3, None, None, None, Bool(0), Bool(0),
            I64(42)) primitive_attrs: {in_strategy: ((2, 2, 1), (1, 1, 2), (2))}
            : (<Tensor[Int8], (8, 16, 32)>, <Tensor[Int8], (8, 32, 64)>, <Tensor[Float32], (64)>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <Bool, NoShape>, <Bool, NoShape>,
            <Int64, NoShape>) -> (<Tensor[Float16], (8, 16, 64)>)
        """,
        check="quant_batch_matmul_info.cc:CheckBatchDimensions",
        says="Strategies of batch dimensions are not equal, long strategy is [2, 2, 1], short stra",
    ),
    "grouped products": Accepted(
        """
        %5(CNode_14) = PrimFunc_GroupedMatmul(%2, %3, None, None, None, None, None, %4, I64(3),
            I64(0), Bool(0), Bool(0)) primitive_attrs: {in_strategy: (((2, 2)), ((1, 2, 2)), (1)),
            group_info: (1, 1, 0, 0, 0, 0, 0)}
            : (<Tuple[Tensor[Float16]], TupleShape((16, 32))>, <Tuple[Ref[Tensor[Float16]]],
            TupleShape((4, 32, 64))>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Tensor[Int64], (4)>, <Int64, NoShape>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tuple[Tensor[Float16]], TupleShape((16, 64))>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "grouped products, repeated": Accepted(
        """
        %5(CNode_14) = PrimFunc_GroupedMatmul(%2, %3, None, None, None, None, None, %4, I64(3),
            I64(0), Bool(0), Bool(0)) primitive_attrs: {in_strategy: (((1, 2)), ((1, 2, 1)), (1)),
            group_info: (1, 1, 0, 0, 0, 0, 0)}
            : (<Tuple[Tensor[Float16]], TupleShape((16, 32))>, <Tuple[Ref[Tensor[Float16]]],
            TupleShape((4, 32, 64))>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Tensor[Int64], (4)>, <Int64, NoShape>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tuple[Tensor[Float16]], TupleShape((16, 64))>)
        """,
        matrix=(1, 2, 1, 4),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "grouped products: experts stay whole": Accepted(
        """
        %5(CNode_14) = PrimFunc_GroupedMatmul(%2, %3, None, None, None, None, None, %4, I64(3),
            I64(0), Bool(0), Bool(0)) primitive_attrs: {in_strategy: (((1, 1)), ((4, 1, 1)), (1)),
            group_info: (1, 1, 0, 0, 0, 0, 0)}
            : (<Tuple[Tensor[Float16]], TupleShape((16, 32))>, <Tuple[Ref[Tensor[Float16]]],
            TupleShape((4, 32, 64))>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Tensor[Int64], (4)>, <Int64, NoShape>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tuple[Tensor[Float16]], TupleShape((16, 64))>)
        """,
        matrix=(1, 1, 1, 8),
    ),
    "grouped products: the summed axis disagrees": Refused(
        """
        %5(CNode_14) = PrimFunc_GroupedMatmul(%2, %3, None, None, None, None, None, %4, I64(3),
            I64(0), Bool(0), Bool(0)) primitive_attrs: {in_strategy: (((1, 4)), ((1, 2, 1)), (1)),
            group_info: (1, 1, 0, 0, 0, 0, 0)}
            : (<Tuple[Tensor[Float16]], TupleShape((16, 32))>, <Tuple[Ref[Tensor[Float16]]],
            TupleShape((4, 32, 64))>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Tensor[Int64], (4)>, <Int64, NoShape>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tuple[Tensor[Float16]], TupleShape((16, 64))>)
        """,
        check="grouped_matmul_info.cc:CheckStrategy",
        says="Invalid strategy for mat_x [1, 4] and mat_w [1, 2, 1]. The shard num of first input'",
    ),
    "two products in a list": Accepted(
        """
        %5(CNode_14) = PrimFunc_GroupedMatmul(%3, %4, None, None, None, None, None, None, I64(0),
            I64(-1), Bool(0), Bool(0)) primitive_attrs: {in_strategy: (((2, 2), (2, 2)), ((2, 2),
            (2, 2))), group_info: (2, 2, 0, 0, 0, 0, 0)}
            : (<Tuple[Tensor[Float16]*2], TupleShape((16, 32), (8, 32))>,
            <Tuple[Ref[Tensor[Float16]]*2], TupleShape((32, 64), (32, 64))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((16, 64), (8, 64))>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 2)), ("AllReduce", "sum", (0, 2))),
    ),
    "a compressed weight": Accepted(
        """
        %6(CNode_7) = PrimFunc_QuantLinearSparse(%1, %2, %3, %4, %5) primitive_attrs:
            {in_strategy: ((8, 1), (1), (1), (1), (1))}
            : (<Tensor[Int8], (16, 32)>, <Tensor[Int8], (2048)>, <Tensor[Int64], (64)>,
            <Tensor[Int8], (128)>, <Tensor[Int32], (64)>) -> (<Tensor[Float16], (16, 64)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1), (-1,), (0,), (-1,), (0,)),
        outputs=((2, 0),),
    ),
    "a compressed weight that is split": Refused(
        """
        %6(CNode_7) = PrimFunc_QuantLinearSparse(%1, %2, %3, %4, %5) primitive_attrs:
            {in_strategy: ((1, 1), (4), (4), (1), (4))}
            : (<Tensor[Int8], (16, 32)>, <Tensor[Int8], (2048)>, <Tensor[Int64], (64)>,
            <Tensor[Int8], (128)>, <Tensor[Int32], (64)>) -> (<Tensor[Float16], (16, 64)>)
        """,
        check="quant_linear_sparse_info.cc:CheckStrategy",
        says="weight's and compressIdx's strategy should be (1,)",
    ),
    "blocks of queries and keys": Accepted(
        """
        %5(CNode_13) = MatmulDDS(%1, %2, %3, %4) primitive_attrs: {bs: I64(4), heads: I64(16),
            in_strategy: ((4, 2, 1, 1), (4, 2, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float16], (64, 256, 16, 16)>, <Tensor[Float16], (64, 256, 16, 16)>,
            <Tensor[Float16], (16, 16, 256, 64)>, <Tensor[Float16], (4, 16, 64, 16)>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((4, 16, 1, 64, 64, 16, 16), (4, 16, 1, 16, 64,
            16, 16))>)
        """,
    ),
    "blocks: heads and masks disagree": Refused(
        """
        %5(CNode_13) = MatmulDDS(%1, %2, %3, %4) primitive_attrs: {bs: I64(4), heads: I64(16),
            in_strategy: ((4, 2, 1, 1), (4, 2, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1))}
            : (<Tensor[Float16], (64, 256, 16, 16)>, <Tensor[Float16], (64, 256, 16, 16)>,
            <Tensor[Float16], (16, 16, 256, 64)>, <Tensor[Float16], (4, 16, 64, 16)>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((4, 16, 1, 64, 64, 16, 16), (4, 16, 1, 16, 64,
            16, 16))>)
        """,
        check="matmul_dds_info.cc:CheckStrategies",
        says="Invalid strategy. The strategys[0][1]:2, strategys[1][1]:2, strategys[2][1]:1, strat",
    ),
    "blocks of values": Accepted(
        """
        %4(CNode_9) = DSDMatmul(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4, 1, 1, 1, 1, 1),
            (2, 4, 1, 1, 1, 1, 1), (2, 4, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 4, 4, 16, 16)>, <Tensor[Float16], (8, 16, 16, 16, 4,
            16, 16)>, <Tensor[Float16], (512, 64, 16, 16)>) -> (<Tensor[Float16], (8, 16, 4, 64,
            16, 16)>)
        """,
        matrix=(2, 4, 1, 1, 1, 1, 1),
        inputs=((6, 5, -1, -1, -1, -1, -1), (6, 5, -1, -1, -1, -1, -1), (6, 5, -1, -1)),
        outputs=((6, 5, -1, -1, -1, -1),),
    ),
    "blocks of values: heads disagree": Refused(
        """
        %4(CNode_9) = DSDMatmul(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4, 1, 1, 1, 1, 1),
            (2, 2, 1, 1, 1, 1, 1), (2, 4, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 4, 4, 16, 16)>, <Tensor[Float16], (8, 16, 16, 16, 4,
            16, 16)>, <Tensor[Float16], (512, 64, 16, 16)>) -> (<Tensor[Float16], (8, 16, 4, 64,
            16, 16)>)
        """,
        check="dsd_matmul_info.cc:CheckStrategy",
        says="The strategys[1][1] should equal to strategys[0][1]:4",
    ),
    "blocks of values: blocks are split": Refused(
        """
        %4(CNode_9) = DSDMatmul(%1, %2, %3) primitive_attrs: {in_strategy: ((1, 1, 2, 1, 1, 1, 1),
            (1, 1, 2, 1, 1, 1, 1), (1, 1, 1, 1))}
            : (<Tensor[Float16], (8, 16, 16, 4, 4, 16, 16)>, <Tensor[Float16], (8, 16, 16, 16, 4,
            16, 16)>, <Tensor[Float16], (512, 64, 16, 16)>) -> (<Tensor[Float16], (8, 16, 4, 64,
            16, 16)>)
        """,
        check="dsd_matmul_info.cc:CheckStrategy",
        says="The strategys[0][2] should be 1",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

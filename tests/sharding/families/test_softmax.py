"""Operators along an axis that is whole."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "softmax, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-1))) primitive_attrs: {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "softmax along a split axis": Refused(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-1))) primitive_attrs: {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "the logarithm of softmax": Refused(
        """
        %2(CNode_7) = PrimFunc_LogSoftmax(%1, I64(-1)) primitive_attrs: {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8,
            32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "several axes": Accepted(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(1), I64(2))) primitive_attrs: {in_strategy: ((8,
            1, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "one of several axes": Refused(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(1), I64(2))) primitive_attrs: {in_strategy: ((2,
            4, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(4) is not 1",
    ),
    "an axis counted from behind": Accepted(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-2))) primitive_attrs: {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "a split axis counted from behind": Refused(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-2))) primitive_attrs: {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "layouts": Accepted(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-1))) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), 0, -1), 'interleaved_parallel':
            false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
    ),
    "a layout of the axis": Refused(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-1))) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), -1, 0), 'interleaved_parallel':
            false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckInputLayout",
        says="Calculate axis can not be split",
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_7) = PrimFunc_Softmax(%1, (I64(-1)))
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "sorting has two outputs": Accepted(
        """
        %2(CNode_10) = Sort(%1) primitive_attrs: {descending: Bool(0), axis: I64(-1), in_strategy:
            ((2, 1, 1))}
            : (<Tensor[Float32], (16, 32, 32)>) -> (<Tuple[Tensor[Float32],Tensor[Int32]],
            TupleShape((16, 32, 32), (16, 32, 32))>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1), (3, 2, 1)),
    ),
    "sorting along a split axis": Refused(
        """
        %2(CNode_10) = Sort(%1) primitive_attrs: {descending: Bool(0), axis: I64(-1), in_strategy:
            ((2, 1, 2))}
            : (<Tensor[Float32], (16, 32, 32)>) -> (<Tuple[Tensor[Float32],Tensor[Int32]],
            TupleShape((16, 32, 32), (16, 32, 32))>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "the newer sorting": Accepted(
        """
        %2(CNode_12) = PrimFunc_SortExt(%1, I64(-1), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((8, 1, 1))}
            : (<Tensor[Float32], (16, 32, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 32, 32), (16, 32,
            32))>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0), (2, 1, 0)),
    ),
    "reversing a split axis": Refused(
        """
        %2(CNode_7) = PrimFunc_ReverseV2(%1, (I64(2))) primitive_attrs: {in_strategy: ((2, 1, 2))}
            : (<Tensor[Float32], (16, 32, 32)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 32, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "a gated unit halves its axis": Accepted(
        """
        %2(CNode_9) = PrimFunc_Swiglu(%1, I64(-1)) primitive_attrs: {in_strategy: ((8, 1, 1))}
            : (<Tensor[Float32], (16, 32, 32)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 32,
            16)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "a gated unit along a split axis": Refused(
        """
        %2(CNode_9) = PrimFunc_Swiglu(%1, I64(-1)) primitive_attrs: {in_strategy: ((2, 1, 2))}
            : (<Tensor[Float32], (16, 32, 32)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 32,
            16)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension(2) is not 1",
    ),
    "matrices are whole": Accepted(
        """
        %2(CNode_7) = PrimFunc_Cholesky(%1, Bool(0)) primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (16, 32, 32)>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 32,
            32)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "rows of a matrix": Refused(
        """
        %2(CNode_7) = PrimFunc_Cholesky(%1, Bool(0)) primitive_attrs: {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 32, 32)>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 32,
            32)>)
        """,
        check="elementary_function_info.cc:CheckStrategy",
        says="The last two dimensions can not be split, but the strategy is [const vector]{2, 2, 1",
    ),
    "normalised columns": Accepted(
        """
        %2(CNode_7) = L2Normalize(%1) primitive_attrs: {axis: [0], in_strategy: ((1, 8)), epsilon:
            F32(0.0001)}
            : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 8),
        inputs=((1, 0),),
        outputs=((1, 0),),
    ),
    "split columns": Refused(
        """
        %2(CNode_7) = L2Normalize(%1) primitive_attrs: {axis: [0], in_strategy: ((2, 4)), epsilon:
            F32(0.0001)}
            : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="l2_normalize_info.cc:CheckStrategy",
        says="The dim 0 of input strategy must be 1.",
    ),
    "a strategy that is made is refused": Refused(
        """
        %2(CNode_7) = L2Normalize(%1) primitive_attrs: {axis: [0], epsilon: F32(0.0001)}
            : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="l2_normalize_info.cc:CheckStrategy",
        says="The dim 0 of input strategy must be 1.",
    ),
    "running sums": Accepted(
        """
        %2(CNode_7) = PrimFunc_CumSum(%1, I64(1), Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 1, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>)
            -> (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "running sums along a split axis": Refused(
        """
        %2(CNode_7) = PrimFunc_CumSum(%1, I64(1), Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>)
            -> (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="For distributed operator CumSumInfo11, the input's dimension 'dim'/'axis' can not be",
    ),
    "running sums: an axis counted from behind": Refused(
        """
        %2(CNode_9) = PrimFunc_CumSum(%1, I64(-3), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>)
            -> (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="For distributed operator CumSumInfo11, the input's dimension 'dim'/'axis' can not be",
    ),
    "running sums: nothing is split where the axis is the first": Accepted(
        """
        %2(CNode_7) = PrimFunc_CumSum(%1, I64(0), Bool(0), Bool(0))
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>)
            -> (<Tensor[Float32], (16, 8, 32)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "running products along a split axis": Refused(
        """
        %2(CNode_7) = PrimFunc_CumProd(%1, I64(1), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>, <Bool, NoShape>)
            -> (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="For distributed operator CumProdInfo11, the input's dimension 'dim'/'axis' can not b",
    ),
    "running minima have two outputs": Accepted(
        """
        %2(CNode_10) = PrimFunc_Cummin(%1, I64(1)) primitive_attrs: {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((16, 8, 32), (16, 8, 32))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0), (2, 1, 0)),
    ),
    "running maxima have two outputs": Accepted(
        """
        %2(CNode_10) = PrimFunc_Cummax(%1, I64(1)) primitive_attrs: {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 8, 32), (16, 8, 32))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0), (2, 1, 0)),
    ),
    "the newer running sums": Refused(
        """
        %2(CNode_7) = PrimFunc_CumsumExt(%1, I64(1), None) primitive_attrs: {in_strategy: ((2, 2,
            1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <None, NoShape>) ->
            (<Tensor[Float32], (16, 8, 32)>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="For distributed operator CumsumExtInfo11, the input's dimension 'dim'/'axis' can not",
    ),
    "maxima along a dimension that is kept": Accepted(
        """
        %2(CNode_10) = PrimFunc_MaxDim(%1, I64(1), Bool(1)) primitive_attrs: {in_strategy: ((2, 1,
            4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 1, 32), (16, 1, 32))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, -1, 0), (2, -1, 0)),
    ),
    "maxima along a dimension that goes": Accepted(
        """
        %2(CNode_10) = PrimFunc_MaxDim(%1, I64(1), Bool(0)) primitive_attrs: {in_strategy: ((2, 1,
            4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 32), (16, 32))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 0), (2, 0)),
    ),
    "maxima along a split dimension": Refused(
        """
        %2(CNode_10) = PrimFunc_MaxDim(%1, I64(1), Bool(0)) primitive_attrs: {in_strategy: ((2, 2,
            1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 32), (16, 32))>)
        """,
        check="max_dim_info.cc:CheckStrategy",
        says="For distributed operator MaxDimInfo11, the input's dimension 'dim' can not be split,",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

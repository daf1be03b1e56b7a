"""Parts of tensors."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "whole dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_Slice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32), I64(32)))
            primitive_attrs: {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (128, 32, 32)>)
        """,
        matrix=(2, 1, 4),
    ),
    "a cut dimension": Refused(
        """
        %2(CNode_7) = PrimFunc_Slice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32), I64(32)))
            primitive_attrs: {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (128, 32, 32)>)
        """,
        check="slice_info.cc:CheckStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now",
    ),
    "a dimension that begins later": Refused(
        """
        %2(CNode_7) = PrimFunc_Slice(%1, (I64(0), I64(32), I64(0)), (I64(128), I64(32), I64(32)))
            primitive_attrs: {in_strategy: ((1, 2, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (128, 32, 32)>)
        """,
        check="slice_info.cc:CheckStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now",
    ),
    "a size of -1 is not taken as whole": Refused(
        """
        %2(CNode_9) = PrimFunc_Slice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(-1), I64(32)))
            primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (128, 64, 32)>)
        """,
        check="slice_info.cc:CheckStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now",
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_7) = PrimFunc_Slice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32), I64(32)))
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (128, 32, 32)>)
        """,
        matrix=(8, 1, 1),
    ),
    "a cut first dimension: nothing is split": Accepted(
        """
        %2(CNode_7) = PrimFunc_Slice(%1, (I64(0), I64(0), I64(0)), (I64(64), I64(32), I64(32)))
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>) ->
            (<Tensor[Float32], (64, 32, 32)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "one dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_SliceExt(%1, I64(0), I64(0), I64(16), I64(1)) primitive_attrs:
            {in_strategy: ((1, 8, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 64, 32)>)
        """,
        matrix=(1, 8, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "one split dimension": Refused(
        """
        %2(CNode_7) = PrimFunc_SliceExt(%1, I64(0), I64(0), I64(16), I64(1)) primitive_attrs:
            {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 64, 32)>)
        """,
        check="slice_info.cc:CheckStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now",
    ),
    "strided, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 32, 32)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "strided: a cut dimension": Refused(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((1, 2, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 32, 32)>)
        """,
        check="strided_slice_info.cc:CheckInputStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now, the begin",
    ),
    "strided: begin and end are masked": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(5), I64(0)), (I64(128), I64(6),
            I64(32)), (I64(1), I64(1), I64(1)), I64(2), I64(2), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((1, 8, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 64, 32)>)
        """,
        matrix=(1, 8, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "strided: the end is masked": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(10),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(2), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 64, 32)>)
        """,
        matrix=(2, 4, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "strided by two": Refused(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(64),
            I64(32)), (I64(2), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (64, 64, 32)>)
        """,
        check="strided_slice_info.cc:CheckInputStrategy",
        says="When a certain dimension is split, now does not support that the stride is not 1, th",
    ),
    "strided backwards": Accepted(
        """
        %2(CNode_9) = PrimFunc_StridedSlice(%1, (I64(127), I64(0), I64(0)), (I64(0), I64(64),
            I64(32)), (I64(-1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((1, 4, 2))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (127, 64, 32)>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "an ellipsis": Refused(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(64),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(1), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 64, 32)>)
        """,
        check="strided_slice_info.cc:GetAttrs",
        says="It can not support ellipsis_mask now",
    ),
    "a new axis": Refused(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0), I64(0)), (I64(1),
            I64(128), I64(64), I64(32)), (I64(1), I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0),
            I64(1), I64(0)) primitive_attrs: {in_strategy: ((1, 4, 2))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*4], TupleShape(NoShape, NoShape,
            NoShape, NoShape)>, <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>,
            <Tuple[Int64*4], TupleShape(NoShape, NoShape, NoShape, NoShape)>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float32], (1, 128, 64, 32)>)
        """,
        check="strided_slice_info.cc:CheckStrategy",
        says="The size of strategy must be larger or equal to the size of strides",
    ),
    "an axis that goes": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(1), I64(64),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(1))
            primitive_attrs: {in_strategy: ((1, 4, 2))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (64, 32)>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1, 0),),
        outputs=((1, 0),),
    ),
    "a split axis that goes": Refused(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(1), I64(64),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(1))
            primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (64, 32)>)
        """,
        check="strided_slice_info.cc:CheckInputStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now, the begin",
    ),
    "an end counted from behind": Refused(
        """
        %2(CNode_9) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(-1),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 63, 32)>)
        """,
        check="strided_slice_info.cc:CheckInputStrategy",
        says="When a dimension is not fully fetched, the dimension can not be split now, the begin",
    ),
    "a begin counted from behind": Accepted(
        """
        %2(CNode_9) = PrimFunc_StridedSlice(%1, (I64(0), I64(-8), I64(0)), (I64(128), I64(64),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 8, 32)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
    "an end beyond the last": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(100),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 64, 32)>)
        """,
        matrix=(2, 4, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "less strides than dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0)), (I64(128)), (I64(1)), I64(0), I64(0),
            I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64], TupleShape(NoShape)>,
            <Tuple[Int64], TupleShape(NoShape)>, <Tuple[Int64], TupleShape(NoShape)>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float32], (128, 64, 32)>)
        """,
        matrix=(2, 4, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "a cut dimension on purpose": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(128), I64(32),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            primitive_attrs: {skip_redistribution: Bool(1), in_strategy: ((4, 2, 1))}
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (128, 32, 32)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "strided: a cut first dimension, nothing is split": Accepted(
        """
        %2(CNode_7) = PrimFunc_StridedSlice(%1, (I64(0), I64(0), I64(0)), (I64(64), I64(32),
            I64(32)), (I64(1), I64(1), I64(1)), I64(0), I64(0), I64(0), I64(0), I64(0))
            : (<Tensor[Float32], (128, 64, 32)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tuple[Int64*3],
            TupleShape(NoShape, NoShape, NoShape)>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (64, 32, 32)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

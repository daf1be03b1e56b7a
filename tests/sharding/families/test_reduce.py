"""Reductions: what is reduced and split is communicated."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "a sum over a split dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(1)), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "a sum over a whole dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(1)), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((4, 1, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
    ),
    "a sum that keeps its dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(1)), Bool(1), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 1, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, -1, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "a dimension counted from behind": Accepted(
        """
        %2(CNode_9) = PrimFunc_ReduceSum(%1, (I64(-1)), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 1),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "all dimensions, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (), Bool(0), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[], TupleShape()>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "two dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(0), I64(2)), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((1,),),
        forward=(("AllReduce", "sum", (0, 1, 4, 5)),),
    ),
    "a sum, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(1)), Bool(0), Bool(0)) primitive_attrs:
            {in_strategy: ((1, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(1, 2, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 1),),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "a mean": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceMean(%1, (), Bool(0)) primitive_attrs: {in_strategy: ((2, 2,
            1))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[], TupleShape()>, <Bool, NoShape>) ->
            (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "a maximum": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceMax(%1, (I64(1)), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "max", (0, 2)),),
    ),
    "a minimum": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceMin(%1, (I64(1)), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "min", (0, 2)),),
    ),
    "a product": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceProd(%1, (I64(1)), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "prod", (0, 2)),),
    ),
    "any": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceAny(%1, (I64(1)), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Bool], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>)
            -> (<Tensor[Bool], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "all": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReduceAll(%1, (I64(1)), Bool(0)) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Bool], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>)
            -> (<Tensor[Bool], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "prod", (0, 2)),),
    ),
    "the newer sum": Accepted(
        """
        %2(CNode_7) = PrimFunc_SumExt(%1, None, Bool(0), None) primitive_attrs: {in_strategy: ((2,
            2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>, <None, NoShape>, <Bool, NoShape>, <None, NoShape>)
            -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "the newer sum keeps its dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_SumExt(%1, (I64(1)), Bool(1), None) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <None, NoShape>) -> (<Tensor[Float32], (16, 1, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, -1, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "the newer mean": Accepted(
        """
        %2(CNode_7) = PrimFunc_MeanExt(%1, (I64(1)), Bool(0), None) primitive_attrs: {in_strategy:
            ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool,
            NoShape>, <None, NoShape>) -> (<Tensor[Float32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "sum", (0, 2)),),
    ),
    "the maximum of all, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_Max(%1) primitive_attrs: {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 32)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((),),
        forward=(("AllReduce", "max", (0, 2, 4, 6)),),
    ),
    "a maximum and where it is": Accepted(
        """
        %2(CNode_10) = PrimFunc_ArgMaxWithValue(%1, I64(1), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Int64],Tensor[Float32]], TupleShape((16, 32), (16, 32))>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0), (2, 0)),
        forward=(("AllReduce", "max", (0, 2)),),
    ),
    "a maximum that keeps its dimension": Accepted(
        """
        %2(CNode_10) = PrimFunc_ArgMaxWithValue(%1, I64(1), Bool(1)) primitive_attrs:
            {in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Int64],Tensor[Float32]], TupleShape((16, 1, 32), (16, 1, 32))>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, -1, 0), (2, -1, 0)),
        forward=(("AllReduce", "max", (0, 2)),),
    ),
    "a minimum and where it is": Accepted(
        """
        %2(CNode_10) = PrimFunc_ArgMinWithValue(%1, I64(-1), Bool(0)) primitive_attrs:
            {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Int64],Tensor[Float32]], TupleShape((16, 8), (16, 8))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0),),
        outputs=((2, 1), (2, 1)),
        forward=(("AllReduce", "min", (0, 1, 2, 3)),),
    ),
    "nothing is split along the dimension": Accepted(
        """
        %2(CNode_10) = PrimFunc_ArgMaxWithValue(%1, I64(0), Bool(0))
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Bool, NoShape>) ->
            (<Tuple[Tensor[Int64],Tensor[Float32]], TupleShape((8, 32), (8, 32))>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((1, 0), (1, 0)),
        forward=(("AllReduce", "max", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "where the maximum is": Accepted(
        """
        %2(CNode_7) = PrimFunc_Argmax(%1, I64(1), I64(34)) primitive_attrs: {in_strategy: ((2, 2,
            2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Int32], (16, 32)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 0),),
        forward=(("AllReduce", "max", (0, 2)),),
    ),
    "where the minimum is": Accepted(
        """
        %2(CNode_7) = PrimFunc_Argmin(%1, I64(-1), I64(34)) primitive_attrs: {in_strategy: ((4, 1,
            2))}
            : (<Tensor[Float32], (16, 8, 32)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Int32], (16, 8)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 1),),
        forward=(("AllReduce", "min", (0, 1)),),
    ),
    "sums of squares, repeated": Accepted(
        """
        %3(CNode_8) = SquareSumAll(%1, %2) primitive_attrs: {in_strategy: ((2, 2), (2, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((), ())>)
        """,
        forward=(("AllReduce", "sum", (0, 2, 4, 6)), ("AllReduce", "sum", (0, 2, 4, 6))),
    ),
    "sums of squares: the second input is not compared": Accepted(
        """
        %3(CNode_8) = SquareSumAll(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (4, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((), ())>)
        """,
        forward=(
            ("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),
            ("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),
        ),
    ),
    "a mean over the batch of all devices": Accepted(
        """
        %2(CNode_23) = PrimFunc_ReduceMean(%1, (I64(0)), Bool(0)) primitive_attrs: {cross_batch:
            Bool(1), in_strategy: ((8, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>)
            -> (<Tensor[Float32], (8)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((0,),),
    ),
    "a mean over the batch of half of them": Accepted(
        """
        %2(CNode_23) = PrimFunc_ReduceMean(%1, (I64(0)), Bool(0)) primitive_attrs: {cross_batch:
            Bool(1), in_strategy: ((4, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>)
            -> (<Tensor[Float32], (8)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1),),
        outputs=((1,),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "a sum over the batch": Accepted(
        """
        %2(CNode_23) = PrimFunc_ReduceSum(%1, (I64(0)), Bool(0), Bool(0)) primitive_attrs:
            {cross_batch: Bool(1), in_strategy: ((4, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1),),
        outputs=((1,),),
    ),
    "no dimension, and none reduced": Refused(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (), Bool(0), Bool(1)) primitive_attrs: {in_strategy:
            ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[], TupleShape()>, <Bool, NoShape>, <Bool,
            NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="tensor_layout.cc:IsValidTensorLayout",
        says="tensor_map_origin_ size must be equal to tensor_shape_origin_ size! tensor_map_origi",
    ),
    "layouts": Accepted(
        """
        %2(CNode_7) = PrimFunc_SumExt(%1, (I64(0)), Bool(0), None) primitive_attrs: {in_layout:
            ({'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), 0), 'interleaved_parallel':
            false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "an operator without layouts": Refused(
        """
        %2(CNode_7) = PrimFunc_ReduceSum(%1, (I64(0)), Bool(0), Bool(0)) primitive_attrs:
            {in_layout: ({'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), 0),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64], TupleShape(NoShape)>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        check="operator_info.cc:CheckInputLayout",
        says="Current op ReduceSumInfo11 does not support config layout. Please check https://www.",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

"""Operators that are split over all devices along the batch, or not at all."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "cross entropy by class number": Accepted(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0), in_strategy: ((8, 1), (8))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(8,),
        inputs=((0, -1), (0,)),
        outputs=((),),
    ),
    "half of the devices": Refused(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0), in_strategy: ((4, 1), (4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        check="batch_parallel_info.cc:CheckStrategy",
        says="It is not a valid data parallel strategy.",
    ),
    "two dimensions": Refused(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0), in_strategy: ((2, 4), (2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        check="batch_parallel_info.cc:CheckStrategy",
        says="It is not a valid data parallel strategy.",
    ),
    "not at all": Accepted(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0), in_strategy: ((1, 1), (1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(8,),
        inputs=((-1, -1), (-1,)),
        outputs=((),),
    ),
    "classes: accepted, and mapped whole": Accepted(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0), in_strategy: ((1, 8), (1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(8,),
        inputs=((-1, -1), (-1,)),
        outputs=((),),
    ),
    "a strategy that is made": Accepted(
        """
        %3(CNode_8) = SparseSoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {sens: F32(1),
            is_grad: Bool(0)}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(8,),
        inputs=((0, -1), (0,)),
        outputs=((),),
    ),
    "triangular systems": Accepted(
        """
        %3(CNode_8) = PrimFunc_SolveTriangular(%1, %2, I64(0), Bool(1), Bool(0)) primitive_attrs:
            {in_strategy: ((8, 1, 1), (8, 1, 1))}
            : (<Tensor[Float32], (16, 8, 8)>, <Tensor[Float32], (16, 8, 8)>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 8, 8)>)
        """,
        matrix=(8,),
        inputs=((0, -1, -1), (0, -1, -1)),
        outputs=((0, -1, -1),),
    ),
    "triangular systems: half of the devices": Refused(
        """
        %3(CNode_8) = PrimFunc_SolveTriangular(%1, %2, I64(0), Bool(1), Bool(0)) primitive_attrs:
            {in_strategy: ((4, 1, 1), (4, 1, 1))}
            : (<Tensor[Float32], (16, 8, 8)>, <Tensor[Float32], (16, 8, 8)>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 8, 8)>)
        """,
        check="batch_parallel_info.cc:CheckStrategy",
        says="It is not a valid data parallel strategy.",
    ),
    "triangular systems: rows are mapped whole": Accepted(
        """
        %3(CNode_8) = PrimFunc_SolveTriangular(%1, %2, I64(0), Bool(1), Bool(0)) primitive_attrs:
            {in_strategy: ((1, 8, 1), (1, 8, 1))}
            : (<Tensor[Float32], (16, 8, 8)>, <Tensor[Float32], (16, 8, 8)>, <Int64, NoShape>,
            <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (16, 8, 8)>)
        """,
        matrix=(8,),
        inputs=((-1, -1, -1), (-1, -1, -1)),
        outputs=((0, -1, -1),),
    ),
    "least squares: an output is empty": Refused(
        """
        %3(CNode_11) = PrimFunc_LstsqV2(%1, %2, None) primitive_attrs: {in_strategy: ((8, 1, 1),
            (8, 1, 1))}
            : (<Tensor[Float32], (16, 8, 8)>, <Tensor[Float32], (16, 8, 8)>, <None, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Int64],Tensor[Float32]], TupleShape((16, 8, 8), (0),
            (16), (0))>)
        """,
        check="arrangement.cc:Init",
        says="invalid arrangement [ 0 ]",
    ),
    "boxes, repeated": Accepted(
        """
        %3(CNode_10) = CheckValid(%1, %2) primitive_attrs: {in_strategy: ((2, 1), (1))}
            : (<Tensor[Float16], (16, 4)>, <Tensor[Float16], (3)>) -> (<Tensor[Bool], (16)>)
        """,
        matrix=(2, 4),
        inputs=((1, -1), (-1,)),
        outputs=((1,),),
    ),
    "coordinates of boxes": Refused(
        """
        %3(CNode_10) = CheckValid(%1, %2) primitive_attrs: {in_strategy: ((2, 2), (1))}
            : (<Tensor[Float16], (16, 4)>, <Tensor[Float16], (3)>) -> (<Tensor[Bool], (16)>)
        """,
        check="batch_parallel_info.cc:CheckStrategy",
        says="The second dimension of the first input can not be split, but got 2",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

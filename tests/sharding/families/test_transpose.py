"""Dimensions in another order."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted

RECORDS = {
    "three dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_Transpose(%1, (I64(2), I64(0), I64(1))) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1),),
        outputs=((1, 3, 2),),
    ),
    "repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_Transpose(%1, (I64(1), I64(0), I64(2))) primitive_attrs:
            {in_strategy: ((2, 1, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        matrix=(2, 1, 2, 2),
        inputs=((3, 2, 1),),
        outputs=((2, 3, 1),),
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_7) = PrimFunc_Transpose(%1, (I64(1), I64(0), I64(2)))
            : (<Tensor[Float32], (16, 8, 4)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0),),
        outputs=((1, 2, 0),),
    ),
    "layouts": Accepted(
        """
        %2(CNode_7) = PrimFunc_Transpose(%1, (I64(2), I64(0), I64(1))) primitive_attrs:
            {in_layout: ({'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), 0, -1),
            'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (16, 8, 4)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted) -> None:
    record.verify()

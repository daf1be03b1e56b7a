"""Rows that are combined by segment."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "sums": Accepted(
        """
        %3(CNode_8) = PrimFunc_UnsortedSegmentSum(%1, %2, I64(16)) primitive_attrs: {in_strategy:
            ((2, 2, 2), (2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0), (2, 1)),
        outputs=((-1, 0),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "sums by column, repeated": Accepted(
        """
        %3(CNode_8) = PrimFunc_UnsortedSegmentSum(%1, %2, I64(16)) primitive_attrs: {in_strategy:
            ((1, 1, 4), (1, 1))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((3, 2, 1), (3, 2)),
        outputs=((-1, 1),),
    ),
    "sums: segment numbers disagree": Refused(
        """
        %3(CNode_8) = PrimFunc_UnsortedSegmentSum(%1, %2, I64(16)) primitive_attrs: {in_strategy:
            ((2, 2, 2), (2, 1))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        check="unsorted_segment_op_info.cc:CheckStrategy",
        says="Invalid strategy. The shape and the strategy of the input0 and input1 should be same",
    ),
    "sums of all rows": Accepted(
        """
        %3(CNode_8) = PrimFunc_UnsortedSegmentSum(%1, %2, I64(16)) primitive_attrs: {in_strategy:
            ((8, 1, 1), (8, 1))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0), (2, 1)),
        outputs=((-1, 0),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "sums: a strategy that is made": Accepted(
        """
        %3(CNode_8) = PrimFunc_UnsortedSegmentSum(%1, %2, I64(16))
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(8, 1, 1),
        inputs=((2, 1, 0), (2, 1)),
        outputs=((-1, 0),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "products": Accepted(
        """
        %3(CNode_8) = UnsortedSegmentProd(%1, %2, I64(16)) primitive_attrs: {in_strategy: ((2, 2,
            1), (2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, 1), (3,)),
        outputs=((-1, 2, 1),),
        forward=(("AllReduce", "prod", (0, 4)),),
    ),
    "minima of all devices": Accepted(
        """
        %3(CNode_8) = UnsortedSegmentMin(%1, %2, I64(16)) primitive_attrs: {in_strategy: ((2, 2,
            2), (2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllGather", "", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "maxima by column": Accepted(
        """
        %3(CNode_8) = UnsortedSegmentMax(%1, %2, I64(16)) primitive_attrs: {in_strategy: ((1, 1,
            4), (1, 1))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 4)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((3, 2, 1), (3, 2)),
        outputs=((-1, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

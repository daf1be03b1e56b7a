"""The k largest."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "by row": Accepted(
        """
        %2(CNode_10) = TopK(%1, I64(8)) primitive_attrs: {sorted: Bool(1), in_strategy: ((8, 1))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((16, 8), (16, 8))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "by row, repeated": Accepted(
        """
        %2(CNode_10) = TopK(%1, I64(8)) primitive_attrs: {sorted: Bool(1), in_strategy: ((2, 1))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((16, 8), (16, 8))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
    "the last dimension": Refused(
        """
        %2(CNode_10) = TopK(%1, I64(8)) primitive_attrs: {sorted: Bool(1), in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((16, 8), (16, 8))>)
        """,
        check="topk_info.cc:CheckStrategy",
        says="Now we can not support to split last dimension",
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_10) = TopK(%1, I64(8)) primitive_attrs: {sorted: Bool(1)}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((16, 8), (16, 8))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "by row, newer": Accepted(
        """
        %2(CNode_12) = PrimFunc_TopkExt(%1, I64(8), I64(-1), Bool(1), Bool(1)) primitive_attrs:
            {in_strategy: ((8, 1))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>, <Int64, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 8), (16,
            8))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "the last dimension, newer": Refused(
        """
        %2(CNode_12) = PrimFunc_TopkExt(%1, I64(8), I64(-1), Bool(1), Bool(1)) primitive_attrs:
            {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>, <Int64, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((16, 8), (16,
            8))>)
        """,
        check="topk_info.cc:CheckStrategy",
        says="The dim can not be split",
    ),
    "by column": Accepted(
        """
        %2(CNode_10) = PrimFunc_TopkExt(%1, I64(8), I64(0), Bool(1), Bool(1)) primitive_attrs:
            {in_strategy: ((1, 8))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>, <Int64, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((8, 64), (8,
            64))>)
        """,
        matrix=(1, 8),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "a split column": Refused(
        """
        %2(CNode_10) = PrimFunc_TopkExt(%1, I64(8), I64(0), Bool(1), Bool(1)) primitive_attrs:
            {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 64)>, <Int64, NoShape>, <Int64, NoShape>, <Bool, NoShape>,
            <Bool, NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int64]], TupleShape((8, 64), (8,
            64))>)
        """,
        check="topk_info.cc:CheckStrategy",
        says="The dim can not be split",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

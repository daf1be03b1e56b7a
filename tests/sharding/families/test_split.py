"""Tensors taken apart."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "parts, repeated": Accepted(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(0), I64(2)) primitive_attrs: {in_strategy: ((1, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
    "along a split axis": Refused(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(0), I64(2)) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        check="split_info.cc:CheckStrategy",
        says="The axis can not be split",
    ),
    "along a split axis on purpose": Accepted(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(0), I64(2)) primitive_attrs: {skip_redistribution:
            Bool(1), in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "an axis counted from behind": Accepted(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(-1), I64(2)) primitive_attrs: {in_strategy: ((8,
            1))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 4), (16, 4))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "along the first axis nothing is split": Accepted(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(0), I64(2))
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        matrix=(1, 1, 8),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_10) = PrimFunc_Split(%1, I64(1), I64(2))
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16, 4), (16, 4))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "by sizes, repeated": Accepted(
        """
        %2(CNode_10) = SplitV(%1) primitive_attrs: {split_dim: I64(0), size_splits: [8, 8],
            num_split: I64(2), in_strategy: ((1, 2))}
            : (<Tensor[Float32], (16, 8)>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8,
            8))>)
        """,
        matrix=(1, 2, 4),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
    "by sizes along a split axis": Refused(
        """
        %2(CNode_10) = SplitV(%1) primitive_attrs: {split_dim: I64(0), size_splits: [8, 8],
            num_split: I64(2), in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8,
            8))>)
        """,
        check="split_info.cc:CheckStrategy",
        says="The axis can not be split",
    ),
    "by sizes: along the first axis nothing is split": Accepted(
        """
        %2(CNode_10) = SplitV(%1) primitive_attrs: {split_dim: I64(0), size_splits: [8, 8],
            num_split: I64(2)}
            : (<Tensor[Float32], (16, 8)>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8,
            8))>)
        """,
        matrix=(1, 1, 8),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
    "by one size along a split axis": Refused(
        """
        %2(CNode_10) = PrimFunc_SplitTensor(%1, I64(8), I64(0)) primitive_attrs: {in_strategy:
            ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        check="split_info.cc:CheckStrategy",
        says="The axis can not be split",
    ),
    "by a list of sizes": Accepted(
        """
        %2(CNode_10) = PrimFunc_SplitWithSize(%1, (I64(8), I64(8)), I64(0)) primitive_attrs:
            {in_strategy: ((1, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Int64,
            NoShape>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 8), (8, 8))>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1),),
        outputs=((2, 1), (2, 1)),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

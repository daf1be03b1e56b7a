"""Tensors put together."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "joined": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1)) primitive_attrs: {in_strategy: ((8, 1), (8, 1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "joined, the axis counted from behind": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(-1)) primitive_attrs: {in_strategy: ((8, 1), (8,
            1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "joined, repeated": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1)) primitive_attrs: {in_strategy: ((2, 1), (2, 1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (2, 1)),
        outputs=((2, 1),),
    ),
    "joined along a split axis": Refused(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1)) primitive_attrs: {in_strategy: ((2, 4), (2, 4))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        check="concat_info.cc:CheckStrategy",
        says="The axis can not be split",
    ),
    "joined along a split axis on purpose": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1)) primitive_attrs: {skip_redistribution: Bool(1),
            in_strategy: ((2, 4), (2, 4))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "joined: inputs disagree": Refused(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1)) primitive_attrs: {in_strategy: ((8, 1), (4, 1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        check="concat_info.cc:CheckStrategy",
        says="The strategy of each input tensor must be equal",
    ),
    "joined: a strategy that is made": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(1))
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "joined along the first axis: nothing is split": Accepted(
        """
        %4(CNode_9) = PrimFunc_Concat(%3, I64(0))
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        matrix=(1, 1, 8),
        inputs=((2, 1), (2, 1)),
        outputs=((2, 1),),
    ),
    "stacked": Accepted(
        """
        %4(CNode_9) = Stack(%3) primitive_attrs: {num: I64(2), axis: I64(1), N: I64(2),
            in_strategy: ((2, 4), (2, 4))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>) -> (<Tensor[Float32],
            (16, 2, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0)),
        outputs=((1, -1, 0),),
    ),
    "stacked: inputs disagree": Refused(
        """
        %4(CNode_9) = Stack(%3) primitive_attrs: {num: I64(2), axis: I64(1), N: I64(2),
            in_strategy: ((8, 1), (4, 1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>) -> (<Tensor[Float32],
            (16, 2, 8)>)
        """,
        check="pack_info.cc:CheckStrategy",
        says="The strategy of each input tensor must be equal",
    ),
    "stacked: an axis counted from behind stands one further in front": Accepted(
        """
        %4(CNode_9) = Stack(%3) primitive_attrs: {num: I64(2), axis: I64(-1), N: I64(2),
            in_strategy: ((8, 1), (8, 1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>) -> (<Tensor[Float32],
            (16, 8, 2)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, -1, 0),),
    ),
    "the newer stack": Accepted(
        """
        %4(CNode_9) = PrimFunc_StackExt(%3, I64(1)) primitive_attrs: {in_strategy: ((8, 1), (8,
            1))}
            : (<Tuple[Tensor[Float32]*2], TupleShape((16, 8), (16, 8))>, <Int64, NoShape>) ->
            (<Tensor[Float32], (16, 2, 8)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, -1, 0),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

"""Tensors repeated, broadcast, filled, padded."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "repeated dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(2), I64(1))) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        matrix=(2, 4),
        inputs=((-1, 0),),
        outputs=((1, 0),),
    ),
    "more pieces than repetitions": Refused(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(2), I64(1))) primitive_attrs: {in_strategy: ((4, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((4, 2),), shape is [2, 8], shape value 2 at dim inde",
    ),
    "a new dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(4), I64(1), I64(2))) primitive_attrs: {in_strategy:
            ((4, 2, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 16)>)
        """,
        matrix=(4, 2, 1),
        inputs=((1, -1),),
        outputs=((2, 1, 0),),
    ),
    "repeated dimensions, on repeated devices": Accepted(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(2), I64(1))) primitive_attrs: {in_strategy: ((2, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        matrix=(2, 1, 4),
        inputs=((-1, 1),),
        outputs=((2, 1),),
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(1), I64(2)))
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8, 1),
        inputs=((1, -1),),
        outputs=((1, 0),),
    ),
    "a strategy that is made for repetitions": Refused(
        """
        %2(CNode_7) = PrimFunc_Tile(%1, (I64(2), I64(1)))
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((8, 1),), shape is [2, 8], shape value 2 at dim inde",
    ),
    "broadcast to a new dimension": Accepted(
        """
        %2(CNode_7) = PrimFunc_BroadcastTo(%1, (I64(4), I64(16), I64(8))) primitive_attrs:
            {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(2, 4),
    ),
    "broadcast, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_BroadcastTo(%1, (I64(4), I64(16), I64(8))) primitive_attrs:
            {in_strategy: ((2, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(2, 1, 4),
    ),
    "a broadcast dimension stays whole": Accepted(
        """
        %2(CNode_7) = PrimFunc_BroadcastTo(%1, (I64(16), I64(8))) primitive_attrs: {in_strategy:
            ((1, 4))}
            : (<Tensor[Float32], (1, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 4, 2),
    ),
    "a split broadcast dimension": Refused(
        """
        %2(CNode_7) = PrimFunc_BroadcastTo(%1, (I64(16), I64(8))) primitive_attrs: {in_strategy:
            ((2, 4))}
            : (<Tensor[Float32], (1, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((2, 4),), shape is [1, 8], shape value 1 at dim inde",
    ),
    "a size that is kept": Accepted(
        """
        %2(CNode_7) = PrimFunc_BroadcastTo(%1, (I64(4), I64(-1), I64(8))) primitive_attrs:
            {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*3], TupleShape(NoShape, NoShape,
            NoShape)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(2, 4),
    ),
    "filled, repeated": Accepted(
        """
        %2(CNode_7) = FillV2((I64(16), I64(8)), %1) primitive_attrs: {in_strategy: ((2, 2), ())}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], ()>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((),),
        outputs=((2, 1),),
    ),
    "filled: a shape that does not divide": Refused(
        """
        %2(CNode_7) = FillV2((I64(16), I64(8)), %1) primitive_attrs: {in_strategy: ((3, 4), ())}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], ()>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((3, 4), ()), shape is [16, 8], shape value 16 at dim",
    ),
    "filled: too few entries": Refused(
        """
        %2(CNode_7) = FillV2((I64(16), I64(8)), %1) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], ()>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((2, 4),), strategy size: 1 is not equal to inputs size: 2",
    ),
    "filled: a strategy that is made": Accepted(
        """
        %2(CNode_7) = FillV2((I64(16), I64(8)), %1)
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], ()>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(8, 1),
        inputs=((),),
        outputs=((1, 0),),
    ),
    "padded": Accepted(
        """
        %2(CNode_7) = PadV3(%1, (I64(1), I64(1)), F32(0)) primitive_attrs: {paddings_contiguous:
            Bool(1), in_strategy: ((4, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Float32, NoShape>) -> (<Tensor[Float32], (16, 10)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1),),
        outputs=((2, 1),),
    ),
    "a split padded dimension": Refused(
        """
        %2(CNode_7) = PadV3(%1, (I64(1), I64(1)), F32(0)) primitive_attrs: {paddings_contiguous:
            Bool(1), in_strategy: ((1, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Float32, NoShape>) -> (<Tensor[Float32], (16, 10)>)
        """,
        check="pad_info.cc:CheckStrategy",
        says="the padding dimension of input can not be split, the strategy of input is [const vec",
    ),
    "padded with a tensor": Accepted(
        """
        %2(CNode_19) = PadV3(%1, (I64(1), I64(1)), Tensor(shape=[], dtype=Float32, value=0))
            primitive_attrs: {paddings_contiguous: Bool(1), in_strategy: ((4, 1), ())}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>,
            <Tensor[Float32], (), value=...>) -> (<Tensor[Float32], (16, 10)>)
        """,
        matrix=(4, 1, 2),
        outputs=((2, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

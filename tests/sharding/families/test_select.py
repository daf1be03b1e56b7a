"""Three or more inputs of one shape; triangles; positions."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "choices, repeated": Accepted(
        """
        %4(CNode_9) = PrimFunc_Select(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2), (2, 2),
            (2, 2))}
            : (<Tensor[Bool], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (2, 1), (2, 1)),
        outputs=((2, 1),),
    ),
    "choices disagree": Refused(
        """
        %4(CNode_9) = PrimFunc_Select(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4), (2, 4),
            (4, 2))}
            : (<Tensor[Bool], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        check="select_info.cc:CheckStrategy",
        says="Now we only support the case that all three strategies are equal",
    ),
    "incomplete beta": Accepted(
        """
        %4(CNode_9) = PrimFunc_Betainc(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4), (2, 4),
            (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>)
            -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "sums of many": Accepted(
        """
        %5(CNode_10) = PrimFunc_AddN(%4) primitive_attrs: {in_strategy: ((2, 4), (2, 4), (2, 4))}
            : (<Tuple[Tensor[Float32]*3], TupleShape((16, 8), (16, 8), (16, 8))>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "sums: inputs disagree": Refused(
        """
        %5(CNode_10) = PrimFunc_AddN(%4) primitive_attrs: {in_strategy: ((2, 4), (2, 4), (4, 2))}
            : (<Tuple[Tensor[Float32]*3], TupleShape((16, 8), (16, 8), (16, 8))>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        check="addn_info.cc:CheckStrategy",
        says="The strategy for each input must be equal to strategies[0]: [const vector]{2, 4}, bu",
    ),
    "sums: a strategy that is made": Accepted(
        """
        %5(CNode_10) = PrimFunc_AddN(%4)
            : (<Tuple[Tensor[Float32]*3], TupleShape((16, 8), (16, 8), (16, 8))>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "positions by batch and heads": Accepted(
        """
        %4(CNode_9) = PrimFunc_RotaryPositionEmbedding(%1, %2, %3, I64(0)) primitive_attrs:
            {in_strategy: ((2, 4, 1, 1), (2, 4, 1, 1), (2, 4, 1, 1))}
            : (<Tensor[Float16], (8, 16, 32, 128)>, <Tensor[Float16], (8, 16, 32, 128)>,
            <Tensor[Float16], (8, 16, 32, 128)>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 16,
            32, 128)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, -1, -1), (3, 2, -1, -1), (3, 2, -1, -1)),
        outputs=((3, 2, -1, -1),),
    ),
    "positions by sequence": Accepted(
        """
        %4(CNode_9) = PrimFunc_RotaryPositionEmbedding(%1, %2, %3, I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 2, 1), (2, 1, 2, 1), (2, 1, 2, 1))}
            : (<Tensor[Float16], (8, 16, 32, 128)>, <Tensor[Float16], (8, 16, 32, 128)>,
            <Tensor[Float16], (8, 16, 32, 128)>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 16,
            32, 128)>)
        """,
        matrix=(2, 1, 2, 1, 2),
        inputs=((4, -1, 2, -1), (4, -1, 2, -1), (4, -1, 2, -1)),
        outputs=((4, -1, 2, -1),),
    ),
    "positions: sizes of one": Accepted(
        """
        %4(CNode_9) = PrimFunc_RotaryPositionEmbedding(%1, %2, %3, I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 4, 1), (1, 1, 1, 1), (1, 1, 1, 1))}
            : (<Tensor[Float16], (8, 16, 32, 128)>, <Tensor[Float16], (1, 16, 1, 128)>,
            <Tensor[Float16], (1, 16, 1, 128)>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 16,
            32, 128)>)
        """,
        matrix=(2, 1, 4, 1),
        inputs=((3, -1, 1, -1), (-1, -1, -1, -1), (-1, -1, -1, -1)),
        outputs=((3, -1, 1, -1),),
    ),
    "positions: cosines disagree": Refused(
        """
        %4(CNode_9) = PrimFunc_RotaryPositionEmbedding(%1, %2, %3, I64(0)) primitive_attrs:
            {in_strategy: ((2, 4, 1, 1), (2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float16], (8, 16, 32, 128)>, <Tensor[Float16], (8, 16, 32, 128)>,
            <Tensor[Float16], (8, 16, 32, 128)>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 16,
            32, 128)>)
        """,
        check="rotary_position_embedding_info.cc:CheckStrategy",
        says="The strategy for each input must be equal to strategies[0]: [const vector]{2, 4, 1,",
    ),
    "positions: the size of a head": Refused(
        """
        %4(CNode_9) = PrimFunc_RotaryPositionEmbedding(%1, %2, %3, I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 1, 2), (2, 1, 1, 2), (2, 1, 1, 2))}
            : (<Tensor[Float16], (8, 16, 32, 128)>, <Tensor[Float16], (8, 16, 32, 128)>,
            <Tensor[Float16], (8, 16, 32, 128)>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 16,
            32, 128)>)
        """,
        check="rotary_position_embedding_info.cc:CheckStrategy",
        says="The strategy for each input must be equal to strategies[0]: [const vector]{2, 1, 1,",
    ),
    "lower triangles of split matrices": Accepted(
        """
        %2(CNode_7) = Tril(%1) primitive_attrs: {diagonal: I64(0), in_strategy: ((2, 2, 2))}
            : (<Tensor[Float32], (16, 8, 8)>) -> (<Tensor[Float32], (16, 8, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0),),
        outputs=((2, 1, 0),),
    ),
    "upper triangles, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_Triu(%1, I64(0)) primitive_attrs: {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (16, 8, 8)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8, 8)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, 2, 1),),
        outputs=((3, 2, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

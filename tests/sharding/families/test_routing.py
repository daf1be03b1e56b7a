"""Routing tokens to experts."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "capacities by batch, repeated": Accepted(
        """
        %2(CNode_10) = PrimFunc_TopKRouter(%1, I64(4), I64(4), I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 1))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>)
            -> (<Tuple[Tensor[Int32]*2], TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1), (3, -1, -1)),
    ),
    "capacities: tokens": Refused(
        """
        %2(CNode_10) = PrimFunc_TopKRouter(%1, I64(4), I64(4), I64(0)) primitive_attrs:
            {in_strategy: ((1, 2, 1))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>)
            -> (<Tuple[Tensor[Int32]*2], TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        check="topkrouter_info.cc:CheckStrategy",
        says="Invalid strategy: The expert_index last two dimensions can't be shard, but got exper",
    ),
    "capacities: choices": Refused(
        """
        %2(CNode_10) = PrimFunc_TopKRouter(%1, I64(4), I64(4), I64(0)) primitive_attrs:
            {in_strategy: ((1, 1, 2))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>)
            -> (<Tuple[Tensor[Int32]*2], TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        check="topkrouter_info.cc:CheckStrategy",
        says="Invalid strategy: The expert_index last two dimensions can't be shard, but got exper",
    ),
    "capacities: a strategy that is made": Accepted(
        """
        %2(CNode_10) = PrimFunc_TopKRouter(%1, I64(4), I64(4), I64(0))
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>)
            -> (<Tuple[Tensor[Int32]*2], TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1), (3, -1, -1)),
    ),
    "capacities by probability": Accepted(
        """
        %3(CNode_11) = PrimFunc_TopPRouter(%1, I64(4), I64(4), I64(0), F32(0.5), %2)
            primitive_attrs: {in_strategy: ((2, 1, 1), (), (), (), (), (2, 1, 1))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Tensor[Float32], (4, 16, 2)>) -> (<Tuple[Tensor[Int32]*2],
            TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        matrix=(2, 1, 1, 4),
        outputs=((3, -1, -1), (3, -1, -1)),
    ),
    "capacities by probability: only the first entry counts": Accepted(
        """
        %3(CNode_11) = PrimFunc_TopPRouter(%1, I64(4), I64(4), I64(0), F32(0.5), %2)
            primitive_attrs: {in_strategy: ((2, 1, 1), (1), (1), (1), (1), (1, 1, 1))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Tensor[Float32], (4, 16, 2)>) -> (<Tuple[Tensor[Int32]*2],
            TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        matrix=(2, 1, 1, 4),
        outputs=((3, -1, -1), (3, -1, -1)),
    ),
    "capacities by probability: tokens": Refused(
        """
        %3(CNode_11) = PrimFunc_TopPRouter(%1, I64(4), I64(4), I64(0), F32(0.5), %2)
            primitive_attrs: {in_strategy: ((1, 2, 1), (1), (1), (1), (1), (1, 2, 1))}
            : (<Tensor[Int32], (4, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Tensor[Float32], (4, 16, 2)>) -> (<Tuple[Tensor[Int32]*2],
            TupleShape((4, 4, 4), (4, 16, 2))>)
        """,
        check="topprouter_info.cc:CheckStrategy",
        says="Invalid strategy: The expert_index last two dimensions can't be shard, but got exper",
    ),
    "capacities by probability: tokens of the probabilities": Refused(
        """
        %3(out) = PrimFunc_TopPRouter(%0, I64(3), I64(4), I64(0), F32(0.5), %2)
            primitive_attrs: {in_strategy: ((2, 1, 1), (1), (1), (1), (1), (1, 2, 1))}
            : (<Tensor[Int32], (2, 16, 2)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Tensor[Float32], (2, 16, 2)>) -> (<Tuple[Tensor[Int32]*2],
            TupleShape((2, 4, 4), (2, 16, 2))>)
        """,
        check="topprouter_info.cc:CheckStrategy",
        says="Invalid strategy: The router_prob last two dimensions can't be shard",
    ),
    "tokens in order of experts": Accepted(
        """
        %4(CNode_12) = PrimFunc_MoeInitRouting(%1, %2, %3, I64(16)) primitive_attrs: {in_strategy:
            ((1, 1), (1, 1), (1, 1))}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int32], (16, 2)>, <Tensor[Int32], (16, 2)>,
            <Int64, NoShape>) -> (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((32, 8),
            (32), (32))>)
        """,
        matrix=(8,),
        inputs=((-1, -1), (-1, -1), (-1, -1)),
        outputs=((-1, -1), (-1,), (-1,)),
    ),
    "tokens in order: one split dimension is passed over": Accepted(
        """
        %4(CNode_12) = PrimFunc_MoeInitRouting(%1, %2, %3, I64(16)) primitive_attrs: {in_strategy:
            ((2, 1), (1, 1), (1, 1))}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int32], (16, 2)>, <Tensor[Int32], (16, 2)>,
            <Int64, NoShape>) -> (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((32, 8),
            (32), (32))>)
        """,
        matrix=(8,),
        inputs=((-1, -1), (-1, -1), (-1, -1)),
        outputs=((-1, -1), (-1,), (-1,)),
    ),
    "tokens in order: two split dimensions": Refused(
        """
        %4(CNode_12) = PrimFunc_MoeInitRouting(%1, %2, %3, I64(16)) primitive_attrs: {in_strategy:
            ((2, 4), (2, 2), (2, 2))}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int32], (16, 2)>, <Tensor[Int32], (16, 2)>,
            <Int64, NoShape>) -> (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((32, 8),
            (32), (32))>)
        """,
        check="moe_init_routing_info.cc:CheckStrategy",
        says="Invalid strategy: The x can't be shard, but got shard num : (2, 4)",
    ),
    "tokens an expert": Accepted(
        """
        %2(CNode_7) = PrimFunc_MoeComputeExpertTokens(%1, I64(4)) primitive_attrs: {in_strategy:
            ((1))}
            : (<Tensor[Int32], (32)>, <Int64, NoShape>) -> (<Tensor[Int32], (4)>)
        """,
        matrix=(1, 8),
        inputs=((1,),),
        outputs=((1,),),
    ),
    "tokens an expert, by token": Refused(
        """
        %2(CNode_7) = PrimFunc_MoeComputeExpertTokens(%1, I64(4)) primitive_attrs: {in_strategy:
            ((2))}
            : (<Tensor[Int32], (32)>, <Int64, NoShape>) -> (<Tensor[Int32], (4)>)
        """,
        check="moe_compute_expert_tokens_info.cc:CheckStrategy",
        says="Invalid strategy: The token num can't be shard, but got shard num : 2",
    ),
    "gates": Accepted(
        """
        %2(CNode_10) = PrimFunc_MoeGatingTopKSoftmax(%1, None, I64(2)) primitive_attrs:
            {in_strategy: ((1, 1))}
            : (<Tensor[Float16], (16, 8)>, <None, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((16, 2), (16, 2), (16, 2))>)
        """,
        matrix=(8,),
        inputs=((-1, -1),),
        outputs=((-1, -1), (-1, -1), (-1, -1)),
    ),
    "gates by token": Refused(
        """
        %2(CNode_10) = PrimFunc_MoeGatingTopKSoftmax(%1, None, I64(2)) primitive_attrs:
            {in_strategy: ((2, 1))}
            : (<Tensor[Float16], (16, 8)>, <None, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((16, 2), (16, 2), (16, 2))>)
        """,
        check="moe_gating_top_k_softmax_info.cc:CheckStrategy",
        says="Invalid strategy for MoeGatingTopKSoftmax, shared num is now only supported 1.",
    ),
    "gates: a strategy that is made is refused": Refused(
        """
        %2(CNode_10) = PrimFunc_MoeGatingTopKSoftmax(%1, None, I64(2))
            : (<Tensor[Float16], (16, 8)>, <None, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Int32]*2], TupleShape((16, 2), (16, 2), (16, 2))>)
        """,
        check="moe_gating_top_k_softmax_info.cc:CheckStrategy",
        says="Invalid strategy for MoeGatingTopKSoftmax, shared num is now only supported 1.",
    ),
    "results in their old order": Accepted(
        """
        %7(CNode_12) = PrimFunc_MoeFinalizeRouting(%1, %2, None, %3, %4, %5, %6) primitive_attrs:
            {in_strategy: ((1, 1), (1, 1), (1, 1), (1, 1), (1), (1, 1))}
            : (<Tensor[Float16], (32, 8)>, <Tensor[Float16], (16, 8)>, <None, NoShape>,
            <Tensor[Float16], (4, 8)>, <Tensor[Float16], (16, 2)>, <Tensor[Int32], (32)>,
            <Tensor[Int32], (16, 2)>) -> (<Tensor[Float16], (16, 8)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 1), (3, 1), (2, 1), (3, -1), (3,), (3, 1)),
        outputs=((3, 1),),
    ),
    "results by token": Refused(
        """
        %7(CNode_12) = PrimFunc_MoeFinalizeRouting(%1, %2, None, %3, %4, %5, %6) primitive_attrs:
            {in_strategy: ((2, 1), (2, 1), (1, 1), (2, 1), (2), (2, 1))}
            : (<Tensor[Float16], (32, 8)>, <Tensor[Float16], (16, 8)>, <None, NoShape>,
            <Tensor[Float16], (4, 8)>, <Tensor[Float16], (16, 2)>, <Tensor[Int32], (32)>,
            <Tensor[Int32], (16, 2)>) -> (<Tensor[Float16], (16, 8)>)
        """,
        check="moe_finalize_routing_info.cc:CheckStrategy",
        says="Invalid strategy: The token num can't be shard, but got shard num : 2",
    ),
    "results: choices": Refused(
        """
        %7(CNode_12) = PrimFunc_MoeFinalizeRouting(%1, %2, None, %3, %4, %5, %6) primitive_attrs:
            {in_strategy: ((1, 1), (1, 1), (1, 1), (1, 2), (1), (1, 2))}
            : (<Tensor[Float16], (32, 8)>, <Tensor[Float16], (16, 8)>, <None, NoShape>,
            <Tensor[Float16], (4, 8)>, <Tensor[Float16], (16, 2)>, <Tensor[Int32], (32)>,
            <Tensor[Int32], (16, 2)>) -> (<Tensor[Float16], (16, 8)>)
        """,
        check="moe_finalize_routing_info.cc:CheckStrategy",
        says="Invalid strategy: The k can't be shard, but got shard num : 2",
    ),
    "results: too few entries": Refused(
        """
        %7(CNode_12) = PrimFunc_MoeFinalizeRouting(%1, %2, None, %3, %4, %5, %6) primitive_attrs:
            {in_strategy: ((1, 1), (1, 1), (1, 1), (1, 1), (1, 1))}
            : (<Tensor[Float16], (32, 8)>, <Tensor[Float16], (16, 8)>, <None, NoShape>,
            <Tensor[Float16], (4, 8)>, <Tensor[Float16], (16, 2)>, <Tensor[Int32], (32)>,
            <Tensor[Int32], (16, 2)>) -> (<Tensor[Float16], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((1, 1), (1, 1), (1, 1), (1, 1), (1, 1)), strategy size: 5 is not eq",
    ),
    "masks of errors": Accepted(
        """
        %2(CNode_41) = PrimFunc_GenerateEodMaskV2(%1, Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), I64(0), (I64(1)), I64(0), I64(0), F32(0),
            I64(0), F32(0)) primitive_attrs: {in_strategy: ((2, 4), (), (), (), ())}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (),
            value=...>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (), value=...>, <Int64,
            NoShape>, <Tuple[Int64], TupleShape(NoShape)>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tensor[Float16], (16,
            8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (), (), (), ()),
        outputs=((1, 0),),
    ),
    "masks of errors, repeated": Accepted(
        """
        %2(CNode_41) = PrimFunc_GenerateEodMaskV2(%1, Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), I64(0), (I64(1)), I64(0), I64(0), F32(0),
            I64(0), F32(0)) primitive_attrs: {in_strategy: ((2, 1), (), (), (), ())}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (),
            value=...>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (), value=...>, <Int64,
            NoShape>, <Tuple[Int64], TupleShape(NoShape)>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tensor[Float16], (16,
            8)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (), (), (), ()),
        outputs=((2, 1),),
    ),
    "masks of errors: too few entries": Refused(
        """
        %2(CNode_41) = PrimFunc_GenerateEodMaskV2(%1, Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=1), I64(0), (I64(1)), I64(0), I64(0), F32(0),
            I64(0), F32(0)) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (),
            value=...>, <Tensor[Int64], (), value=...>, <Tensor[Int64], (), value=...>, <Int64,
            NoShape>, <Tuple[Int64], TupleShape(NoShape)>, <Int64, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Int64, NoShape>, <Float32, NoShape>) -> (<Tensor[Float16], (16,
            8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((2, 4),), strategy size: 1 is not equal to inputs size: 5",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

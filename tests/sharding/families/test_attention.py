"""Attention: batch, sequence of the query, heads."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "heads before the sequence": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(1),
            I64(0)) primitive_attrs: {in_strategy: ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1, 1))}
            : (<Tensor[Float16], (4, 32, 1024, 128)>, <Tensor[Float16], (4, 32, 1024, 128)>,
            <Tensor[Float16], (4, 32, 1024, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64,
            NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 32, 1024, 128))>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0, -1), (2, 1, -1, -1), (2, 1, -1, -1)),
        outputs=((2, 1, 0, -1), (2, 1, 0, -1), (-1,), (2, 1, 0, -1)),
    ),
    "heads in the hidden size": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(0),
            I64(0)) primitive_attrs: {in_strategy: ((2, 1, 4), (2, 1, 4), (2, 1, 4))}
            : (<Tensor[Float16], (4, 1024, 4096)>, <Tensor[Float16], (4, 1024, 4096)>,
            <Tensor[Float16], (4, 1024, 4096)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 1024, 4096))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0), (2, -1, 0), (2, -1, 0)),
        outputs=((2, 0, 1, -1), (2, 0, 1, -1), (-1,), (2, 1, 0)),
    ),
    "the sequence first": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(2),
            I64(0)) primitive_attrs: {in_strategy: ((1, 2, 4), (1, 2, 4), (1, 2, 4))}
            : (<Tensor[Float16], (1024, 4, 4096)>, <Tensor[Float16], (1024, 4, 4096)>,
            <Tensor[Float16], (1024, 4, 4096)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (1024, 4, 4096))>)
        """,
        matrix=(1, 2, 4),
        inputs=((2, 1, 0), (-1, 1, 0), (-1, 1, 0)),
        outputs=((1, 0, 2, -1), (1, 0, 2, -1), (-1,), (2, 1, 0)),
    ),
    "heads behind the sequence": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(3),
            I64(0)) primitive_attrs: {in_strategy: ((2, 1, 4, 1), (2, 1, 4, 1), (2, 1, 4, 1))}
            : (<Tensor[Float16], (4, 1024, 32, 128)>, <Tensor[Float16], (4, 1024, 32, 128)>,
            <Tensor[Float16], (4, 1024, 32, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64,
            NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 1024, 32, 128))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0, -1), (2, -1, 0, -1), (2, -1, 0, -1)),
        outputs=((2, 0, 1, -1), (2, 0, 1, -1), (-1,), (2, 1, 0, -1)),
    ),
    "repeated": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(0),
            I64(0)) primitive_attrs: {in_strategy: ((2, 1, 2), (2, 1, 2), (2, 1, 2))}
            : (<Tensor[Float16], (4, 1024, 4096)>, <Tensor[Float16], (4, 1024, 4096)>,
            <Tensor[Float16], (4, 1024, 4096)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 1024, 4096))>)
        """,
        matrix=(2, 1, 2, 2),
        inputs=((3, 2, 1), (3, -1, 1), (3, -1, 1)),
        outputs=((3, 1, 2, -1), (3, 1, 2, -1), (-1,), (3, 2, 1)),
    ),
    "one head of keys for all": Accepted(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(1),
            I64(0)) primitive_attrs: {in_strategy: ((4, 2, 1, 1), (4, 1, 1, 1), (4, 1, 1, 1))}
            : (<Tensor[Float16], (4, 32, 1024, 128)>, <Tensor[Float16], (4, 1, 1024, 128)>,
            <Tensor[Float16], (4, 1, 1024, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64,
            NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 32, 1024, 128))>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, 0, -1), (2, -1, -1, -1), (2, -1, -1, -1)),
        outputs=((2, 1, 0, -1), (2, 1, 0, -1), (-1,), (2, 1, 0, -1)),
    ),
    "a mask follows the query": Accepted(
        """
        %5(CNode_13) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, %4, None, None,
            None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(1),
            I64(0)) primitive_attrs: {in_strategy: ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1, 1), (2,
            1, 2, 1))}
            : (<Tensor[Float16], (4, 32, 1024, 128)>, <Tensor[Float16], (4, 32, 1024, 128)>,
            <Tensor[Float16], (4, 32, 1024, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Tensor[UInt8], (4, 1, 1024, 1024)>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 32, 1024, 128))>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0, -1), (2, 1, -1, -1), (2, 1, -1, -1), (2, -1, 0, -1)),
        outputs=((2, 1, 0, -1), (2, 1, 0, -1), (-1,), (2, 1, 0, -1)),
    ),
    "a mask that does not": Refused(
        """
        %5(CNode_13) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, %4, None, None,
            None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(1),
            I64(0)) primitive_attrs: {in_strategy: ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1, 1), (2,
            1, 1, 1))}
            : (<Tensor[Float16], (4, 32, 1024, 128)>, <Tensor[Float16], (4, 32, 1024, 128)>,
            <Tensor[Float16], (4, 32, 1024, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Tensor[UInt8], (4, 1, 1024, 1024)>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 32, 1024, 128))>)
        """,
        check="flash_attention_score_info.cc:CheckStrategyExpected",
        says="The input strategy must be [const vector]{[const vector]{2, 2, 2, 1}, [const vector]",
    ),
    "the sequence of the keys": Refused(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(0),
            I64(0)) primitive_attrs: {in_strategy: ((1, 2, 1), (1, 2, 1), (1, 2, 1))}
            : (<Tensor[Float16], (4, 1024, 4096)>, <Tensor[Float16], (4, 1024, 4096)>,
            <Tensor[Float16], (4, 1024, 4096)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 1024, 4096))>)
        """,
        check="flash_attention_score_info.cc:CheckStrategy",
        says="The S-Dimension of input 'key' cannot be split, but got the strategy of key is [cons",
    ),
    "values disagree": Refused(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(0),
            I64(0)) primitive_attrs: {in_strategy: ((2, 1, 4), (2, 1, 4), (2, 1, 2))}
            : (<Tensor[Float16], (4, 1024, 4096)>, <Tensor[Float16], (4, 1024, 4096)>,
            <Tensor[Float16], (4, 1024, 4096)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 1024, 4096))>)
        """,
        check="flash_attention_score_info.cc:CheckStrategyExpected",
        says="The input strategy must be [const vector]{[const vector]{2, 1, 4}, [const vector]{2,",
    ),
    "heads of keys are whole": Refused(
        """
        %4(CNode_12) = PrimFunc_FlashAttentionScore(%1, %2, %3, None, None, None, None, None,
            None, None, I64(32), F32(1), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(1),
            I64(0)) primitive_attrs: {in_strategy: ((2, 2, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1))}
            : (<Tensor[Float16], (4, 32, 1024, 128)>, <Tensor[Float16], (4, 32, 1024, 128)>,
            <Tensor[Float16], (4, 32, 1024, 128)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <Int64,
            NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float32]*2,Tensor[Float16]*2], TupleShape((4, 32, 1024, 8), (4, 32,
            1024, 8), (1), (4, 32, 1024, 128))>)
        """,
        check="flash_attention_score_info.cc:CheckStrategy",
        says="The split num of N1-dim and N2-dim must be equal if N2 > 1, but got 2 and 1",
    ),
    "one new token": Accepted(
        """
        %6(CNode_11) = PrimFunc_IncreFlashAttention(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, I64(32), I64(0), F32(1), I64(16), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((4, 1, 2), (4, 1, 2), (4, 1, 2))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            2048))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 2048))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (4, 1, 4096)>)
        """,
        matrix=(4, 2),
        inputs=((1, -1, 0), (1, -1, 0), (1, -1, 0)),
        outputs=((1, -1, 0),),
    ),
    "one new token: the sequence": Refused(
        """
        %6(CNode_11) = PrimFunc_IncreFlashAttention(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, I64(32), I64(0), F32(1), I64(16), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((2, 1, 2), (2, 2, 2), (2, 2, 2))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            2048))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 2048))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (4, 1, 4096)>)
        """,
        check="incre_flash_attention_info.cc:CheckStrategy",
        says="For IncreFlashAttentionInfo11 : The in_strategy among 'query' , 'key' and 'value' mu",
    ),
    "one new token, lists of keys": Accepted(
        """
        %6(CNode_14) = PrimFunc_FusedInferAttentionScore(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, I64(32), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(32),
            I64(0), I64(1), I64(0), I64(0), Bool(0), I64(0), I64(0)) primitive_attrs:
            {in_strategy: ((4, 1, 2), ((4, 1, 2)), ((4, 1, 2)))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            4096))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 4096))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Float32]], TupleShape((4, 1, 4096), (1))>)
        """,
        matrix=(4, 1, 2),
    ),
    "the same, repeated": Accepted(
        """
        %6(CNode_14) = PrimFunc_FusedInferAttentionScore(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, I64(32), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(32),
            I64(0), I64(1), I64(0), I64(0), Bool(0), I64(0), I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 2), ((2, 1, 2)), ((2, 1, 2)))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            4096))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 4096))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Float32]], TupleShape((4, 1, 4096), (1))>)
        """,
        matrix=(2, 1, 2, 2),
    ),
    "keys along their sequence, nothing to combine": Accepted(
        """
        %6(CNode_14) = PrimFunc_FusedInferAttentionScore(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, I64(32), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(32),
            I64(0), I64(1), I64(0), I64(0), Bool(0), I64(0), I64(0)) primitive_attrs:
            {in_strategy: ((2, 1, 2), ((2, 2, 2)), ((2, 2, 2)))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            4096))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 4096))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Float32]], TupleShape((4, 1, 4096), (1))>)
        """,
        matrix=(2, 2, 2),
    ),
    "a prompt, lists of keys": Accepted(
        """
        %6(CNode_14) = PrimFunc_FusedInferAttentionScore(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, I64(32), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(32),
            I64(0), I64(1), I64(0), I64(0), Bool(0), I64(0), I64(0)) primitive_attrs:
            {in_strategy: ((2, 2, 2), ((2, 1, 2)), ((2, 1, 2)))}
            : (<Tensor[Float16], (4, 1024, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            4096))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 4096))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Float32]], TupleShape((4, 1024, 4096), (1))>)
        """,
        matrix=(2, 2, 2),
    ),
    "lists of keys and values disagree": Refused(
        """
        %6(CNode_14) = PrimFunc_FusedInferAttentionScore(%1, %3, %5, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, I64(32), F32(1), I64(2147483647), I64(2147483647), I64(0), I64(32),
            I64(0), I64(1), I64(0), I64(0), Bool(0), I64(0), I64(0)) primitive_attrs:
            {in_strategy: ((4, 1, 2), ((4, 1, 2)), ((2, 1, 2)))}
            : (<Tensor[Float16], (4, 1, 4096)>, <Tuple[Tensor[Float16]], TupleShape((4, 1024,
            4096))>, <Tuple[Tensor[Float16]], TupleShape((4, 1024, 4096))>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16],Tensor[Float32]], TupleShape((4, 1, 4096), (1))>)
        """,
        check="fused_infer_attention_score_info.cc:CheckStrategy",
        says="For FusedInferAttentionScoreInfo11 : The in_strategy among 'key' and 'value' must be",
    ),
    "a prompt by batch, sequence and heads": Accepted(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2), (2, 1, 2), (2, 1, 2))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0), (2, -1, 0), (2, -1, 0)),
        outputs=((2, 1, 0),),
    ),
    "a prompt, repeated": Accepted(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((2, 1, 2), (2, 1, 2), (2, 1, 2))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 1, 2, 2),
        inputs=((3, 2, 1), (3, -1, 1), (3, -1, 1)),
        outputs=((3, 2, 1),),
    ),
    "a prompt: keys follow the query whatever they say": Accepted(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((2, 1, 2), (4, 1, 2), (4, 1, 2))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 1, 2, 2),
        inputs=((3, 2, 1), (3, -1, 1), (3, -1, 1)),
        outputs=((3, 2, 1),),
    ),
    "a prompt, heads first": Accepted(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(1), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1,
            1))}
            : (<Tensor[Float16], (8, 8, 1024, 64)>, <Tensor[Float16], (8, 8, 1024, 64)>,
            <Tensor[Float16], (8, 8, 1024, 64)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float16], (8, 8, 1024, 64)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0, -1), (2, 1, -1, -1), (2, 1, -1, -1)),
        outputs=((2, 1, 0, -1),),
    ),
    "a prompt: the size of a head": Refused(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(1), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((2, 1, 1, 2), (2, 1, 1, 2), (2, 1, 1,
            2))}
            : (<Tensor[Float16], (8, 8, 1024, 64)>, <Tensor[Float16], (8, 8, 1024, 64)>,
            <Tensor[Float16], (8, 8, 1024, 64)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float16], (8, 8, 1024, 64)>)
        """,
        check="prompt_flash_attention_info.cc:CheckStrategyOnIndex",
        says="For PromptFlashAttentionInfo11: The D-Dimention of input query should be 1, but got",
    ),
    "a prompt: more pieces than heads": Refused(
        """
        %4(CNode_9) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, None, None,
            None, None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8),
            I64(0), I64(1)) primitive_attrs: {in_strategy: ((1, 1, 16), (1, 1, 16), (1, 1, 16))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1024, 512)>)
        """,
        devices=16,
        check="prompt_flash_attention_info.cc:CheckStrategy",
        says="For PromptFlashAttentionInfo11: head_num % query_strategy[2] must be 0, but got 8(he",
    ),
    "a prompt with a mask of two dimensions": Accepted(
        """
        %5(CNode_10) = PrimFunc_PromptFlashAttention(%1, %2, %3, %4, None, None, None, None, None,
            None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2), (2, 1, 2), (2, 1, 2), (2, 1))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (1024, 1024)>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>) -> (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0), (2, -1, 0), (2, -1, 0), (1, -1)),
        outputs=((2, 1, 0),),
    ),
    "a prompt with a mask that is whole": Refused(
        """
        %5(CNode_10) = PrimFunc_PromptFlashAttention(%1, %2, %3, %4, None, None, None, None, None,
            None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2), (2, 1, 2), (2, 1, 2), (2, 1, 1,
            1))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1, 1024, 1024)>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1024, 512)>)
        """,
        check="prompt_flash_attention_info.cc:CheckStrategyOnIndex",
        says="For PromptFlashAttentionInfo11: The S-Dimention of input atten_mask should be 2, but",
    ),
    "a prompt with a compressed mask": Accepted(
        """
        %5(CNode_10) = PrimFunc_PromptFlashAttention(%1, %2, %3, %4, None, None, None, None, None,
            None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8), I64(2),
            I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2), (2, 1, 2), (2, 1, 2), (1, 1))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (2048, 2048)>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <None, NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>) -> (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0), (2, -1, 0), (2, -1, 0), (1, -1)),
        outputs=((2, 1, 0),),
    ),
    "a prompt with lengths": Accepted(
        """
        %8(CNode_71) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, %5, %7, None, None, None,
            None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((2, 1, 2), (2, 1, 2), (2, 1, 2), (2), (2))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <Tuple[Int64*8],
            TupleShape(NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape, NoShape)>,
            <Tuple[Int64*8], TupleShape(NoShape, NoShape, NoShape, NoShape, NoShape, NoShape,
            NoShape, NoShape)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 1, 2, 2),
        inputs=((3, 2, 1), (3, -1, 1), (3, -1, 1), (-1,), (-1,)),
        outputs=((3, 2, 1),),
    ),
    "a prompt with shifts": Accepted(
        """
        %5(CNode_10) = PrimFunc_PromptFlashAttention(%1, %2, %3, None, None, None, %4, None, None,
            None, None, None, I64(8), F32(1), I64(2147483647), I64(0), I64(0), I64(8), I64(0),
            I64(1)) primitive_attrs: {in_strategy: ((2, 2, 2), (2, 1, 2), (2, 1, 2), (2, 2, 2,
            1))}
            : (<Tensor[Float16], (8, 1024, 512)>, <Tensor[Float16], (8, 1024, 512)>,
            <Tensor[Float16], (8, 1024, 512)>, <None, NoShape>, <None, NoShape>, <None, NoShape>,
            <Tensor[Float16], (8, 8, 1024, 1024)>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <None, NoShape>, <None, NoShape>, <Int64, NoShape>, <Float32, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1024, 512)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1, 0), (2, -1, 0), (2, -1, 0), (2, -1, -1, -1)),
        outputs=((2, 1, 0),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

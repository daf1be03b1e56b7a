"""Caches, positions and states of inference."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "pages by batch and heads": Accepted(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1), (2, 1), (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        matrix=(2, 1, 1, 1, 4),
        inputs=((4, 1, 0), (-1, -1, 0, -1), (-1, -1, 0, -1), (4, -1), (-1,)),
        outputs=((4, 1, 0),),
    ),
    "pages, repeated": Accepted(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 2), (1, 1, 2, 1), (1, 1, 2, 1), (2, 1), (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        matrix=(2, 1, 1, 1, 2, 2),
        inputs=((5, 2, 1), (-1, -1, 1, -1), (-1, -1, 1, -1), (5, -1), (-1,)),
        outputs=((5, 2, 1),),
    ),
    "pages: heads disagree": Refused(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 4), (1, 1, 2, 1), (1, 1, 2, 1), (2, 1), (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="paged_attention_info.cc:CheckStrategy",
        says="Invalid strategy: The cache num_head and update hidden_size must be shard at the sam",
    ),
    "pages: tables": Refused(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1), (2, 2), (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="paged_attention_info.cc:CheckStrategy",
        says='Invalid strategy: The second dim of block_tables "max_num_block_per_batch" can\'t be',
    ),
    "pages: blocks": Refused(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 4), (2, 1, 4, 1), (2, 1, 4, 1), (2, 1), (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="paged_attention_info.cc:CheckStrategy",
        says="Invalid strategy: The block_size can't be shard, but got key_cache's block_size stra",
    ),
    "pages: lengths are whole": Accepted(
        """
        %6(CNode_11) = PrimFunc_PagedAttention(%1, %2, %3, %4, %5, None, None, None, None, None,
            I64(40), F32(0.1), I64(40), I64(0), I64(0), I64(0)) primitive_attrs: {in_strategy:
            ((2, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1), (2, 1), (1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None, NoShape>, <None,
            NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        matrix=(2, 1, 1, 1, 4),
        inputs=((4, 1, 0), (-1, -1, 0, -1), (-1, -1, 0, -1), (4, -1), (-1,)),
        outputs=((4, 1, 0),),
    ),
    "pages with a mask": Accepted(
        """
        %7(CNode_12) = PrimFunc_PagedAttentionMask(%1, %2, %3, %4, %5, None, None, %6, I64(40),
            F32(0.1), I64(40), I64(0)) primitive_attrs: {in_strategy: ((2, 1, 4), (1, 1, 4, 1),
            (1, 1, 4, 1), (2, 1), (2), (2, 4, 1, 1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <Tensor[Float16], (8, 40, 1, 64)>, <Int64,
            NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1, 5120)>)
        """,
        matrix=(2, 4),
        inputs=((1, -1, 0), (-1, -1, 0, -1), (-1, -1, 0, -1), (1, -1), (1,), (1, 0, -1, -1)),
        outputs=((1, -1, 0),),
    ),
    "pages with a mask: heads disagree": Refused(
        """
        %7(CNode_12) = PrimFunc_PagedAttentionMask(%1, %2, %3, %4, %5, None, None, %6, I64(40),
            F32(0.1), I64(40), I64(0)) primitive_attrs: {in_strategy: ((2, 1, 4), (1, 1, 4, 1),
            (1, 1, 4, 1), (2, 1), (2), (2, 2, 1, 1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (1024, 16, 40, 128)>,
            <Tensor[Float16], (1024, 16, 40, 128)>, <Tensor[Int32], (8, 64)>, <Tensor[Int32],
            (8)>, <None, NoShape>, <None, NoShape>, <Tensor[Float16], (8, 40, 1, 64)>, <Int64,
            NoShape>, <Float32, NoShape>, <Int64, NoShape>, <Int64, NoShape>) ->
            (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="paged_attention_mask_info.cc:CheckStrategy",
        says="Invalid strategy: The cache num_head and update hidden_size must be shard at the sam",
    ),
    "new keys into pages": Accepted(
        """
        %4(CNode_12) = PrimFunc_ReshapeAndCache(%1, %2, %para4_w2, %para5_w3, %3, UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1, 4), (1, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1),
            (1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (8, 1, 5120)>,
            <Ref[Tensor[Float16]], (1024, 16, 40, 128)>, <Ref[Tensor[Float16]], (1024, 16, 40,
            128)>, <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        matrix=(1, 1, 1, 1, 4, 2),
        inputs=((5, 2, 1), (5, 2, 1), (-1, -1, 1, -1), (-1, -1, 1, -1), (-1,)),
        outputs=((-1, -1, 1),),
    ),
    "new keys: slots": Refused(
        """
        %4(CNode_12) = PrimFunc_ReshapeAndCache(%1, %2, %para4_w2, %para5_w3, %3, UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1, 4), (1, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1),
            (2))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (8, 1, 5120)>,
            <Ref[Tensor[Float16]], (1024, 16, 40, 128)>, <Ref[Tensor[Float16]], (1024, 16, 40,
            128)>, <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="reshape_and_cache_info.cc:CheckStrategy",
        says="Invalid strategy: The slot_mapping can't be shard, but got slot_mapping's strategy:",
    ),
    "new keys: heads disagree": Refused(
        """
        %4(CNode_12) = PrimFunc_ReshapeAndCache(%1, %2, %para4_w2, %para5_w3, %3, UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1, 4), (1, 1, 4), (1, 1, 2, 1), (1, 1, 2, 1),
            (1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (8, 1, 5120)>,
            <Ref[Tensor[Float16]], (1024, 16, 40, 128)>, <Ref[Tensor[Float16]], (1024, 16, 40,
            128)>, <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="reshape_and_cache_info.cc:CheckStrategy",
        says="Invalid strategy: The update's hidden_size and cache's num_head must be shard at the",
    ),
    "new keys: blocks": Refused(
        """
        %4(CNode_12) = PrimFunc_ReshapeAndCache(%1, %2, %para4_w2, %para5_w3, %3, UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1, 4), (1, 1, 4), (1, 2, 4, 1), (1, 2, 4, 1),
            (1))}
            : (<Tensor[Float16], (8, 1, 5120)>, <Tensor[Float16], (8, 1, 5120)>,
            <Ref[Tensor[Float16]], (1024, 16, 40, 128)>, <Ref[Tensor[Float16]], (1024, 16, 40,
            128)>, <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 1, 5120)>)
        """,
        check="reshape_and_cache_info.cc:CheckStrategy",
        says="Invalid strategy: The num_blocks can't be shard, but got key_cache's num_blocks stra",
    ),
    "positions": Accepted(
        """
        %6(CNode_14) = PrimFunc_ApplyRotaryPosEmb(%1, %2, %3, %4, %5, I64(1)) primitive_attrs:
            {in_strategy: ((2, 1, 4), (2, 1, 4), (1, 1), (1, 1), (2))}
            : (<Tensor[Float16], (8, 16, 512)>, <Tensor[Float16], (8, 16, 512)>, <Tensor[Float16],
            (64, 128)>, <Tensor[Float16], (64, 128)>, <Tensor[Int32], (8)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((8, 16, 512), (8, 16, 512))>)
        """,
        matrix=(4, 2),
        inputs=((0, -1, 1), (0, -1, 1), (-1, -1), (-1, -1), (-1,)),
        outputs=((0, -1, 1), (0, -1, 1)),
    ),
    "positions: the sequence": Refused(
        """
        %6(CNode_14) = PrimFunc_ApplyRotaryPosEmb(%1, %2, %3, %4, %5, I64(1)) primitive_attrs:
            {in_strategy: ((2, 2, 1), (2, 2, 1), (1, 1), (1, 1), (2))}
            : (<Tensor[Float16], (8, 16, 512)>, <Tensor[Float16], (8, 16, 512)>, <Tensor[Float16],
            (64, 128)>, <Tensor[Float16], (64, 128)>, <Tensor[Int32], (8)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((8, 16, 512), (8, 16, 512))>)
        """,
        check="apply_rotary_pos_emb_info.cc:CheckStrategy3Dims",
        says="Invalid strategy: The seq_len can't be shard, but got query's seq_len strategy: 2, k",
    ),
    "positions: cosines": Refused(
        """
        %6(CNode_14) = PrimFunc_ApplyRotaryPosEmb(%1, %2, %3, %4, %5, I64(1)) primitive_attrs:
            {in_strategy: ((2, 1, 4), (2, 1, 4), (1, 2), (1, 1), (2))}
            : (<Tensor[Float16], (8, 16, 512)>, <Tensor[Float16], (8, 16, 512)>, <Tensor[Float16],
            (64, 128)>, <Tensor[Float16], (64, 128)>, <Tensor[Int32], (8)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((8, 16, 512), (8, 16, 512))>)
        """,
        check="apply_rotary_pos_emb_info.cc:CheckStrategy",
        says="Invalid strategy: The cos and sin can't be shard, but got cos's strategy: [const vec",
    ),
    "positions: query and key disagree": Refused(
        """
        %6(CNode_14) = PrimFunc_ApplyRotaryPosEmb(%1, %2, %3, %4, %5, I64(1)) primitive_attrs:
            {in_strategy: ((2, 1, 4), (2, 1, 2), (1, 1), (1, 1), (2))}
            : (<Tensor[Float16], (8, 16, 512)>, <Tensor[Float16], (8, 16, 512)>, <Tensor[Float16],
            (64, 128)>, <Tensor[Float16], (64, 128)>, <Tensor[Int32], (8)>, <Int64, NoShape>) ->
            (<Tuple[Tensor[Float16]*2], TupleShape((8, 16, 512), (8, 16, 512))>)
        """,
        check="apply_rotary_pos_emb_info.cc:CheckStrategy3Dims",
        says="Invalid strategy: The hidden_size must be shard at the same time, but got query's st",
    ),
    "a cache is updated": Accepted(
        """
        %3(CNode_11) = PrimFunc_KVCacheScatterUpdate(%para3_w0, %1, %2, I64(2), I64(3), UMonad[U])
            primitive_attrs: {in_strategy: ((2, 4, 1, 1), (1), (2, 4, 1, 1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Int64], (8)>, <Tensor[Float16],
            (8, 8, 2, 64)>, <Int64, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0), (-1,), (3, 2, 1, 0)),
        outputs=((3, 2, 1, 0),),
    ),
    "a cache is updated: indices": Refused(
        """
        %3(CNode_11) = PrimFunc_KVCacheScatterUpdate(%para3_w0, %1, %2, I64(2), I64(3), UMonad[U])
            primitive_attrs: {in_strategy: ((2, 4, 1, 1), (2), (2, 4, 1, 1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Int64], (8)>, <Tensor[Float16],
            (8, 8, 2, 64)>, <Int64, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>)
        """,
        check="kv_cache_scatter_update_info.cc:CheckStrategy",
        says="Invalid strategy: The indices can't be shard, but got indices's strategy: [const vec",
    ),
    "a cache is updated: heads disagree": Refused(
        """
        %3(CNode_11) = PrimFunc_KVCacheScatterUpdate(%para3_w0, %1, %2, I64(2), I64(3), UMonad[U])
            primitive_attrs: {in_strategy: ((2, 4, 1, 1), (1), (2, 2, 1, 1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Int64], (8)>, <Tensor[Float16],
            (8, 8, 2, 64)>, <Int64, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>)
        """,
        check="kv_cache_scatter_update_info.cc:CheckStrategy4Dims",
        says="KVCacheScatterUpdateInfo11 Invalid strategy: The num_head must be shard at the same",
    ),
    "a cache is updated: the sequence": Refused(
        """
        %3(CNode_11) = PrimFunc_KVCacheScatterUpdate(%para3_w0, %1, %2, I64(2), I64(3), UMonad[U])
            primitive_attrs: {in_strategy: ((2, 1, 2, 1), (1), (2, 1, 2, 1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Int64], (8)>, <Tensor[Float16],
            (8, 8, 2, 64)>, <Int64, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>)
        """,
        check="kv_cache_scatter_update_info.cc:CheckStrategy4Dims",
        says="Invalid strategy: The seq_len can't be shard, but got strategy_var's seq_len strateg",
    ),
    "a cache is updated: a strategy that is made is refused": Refused(
        """
        %3(CNode_11) = PrimFunc_KVCacheScatterUpdate(%para3_w0, %1, %2, I64(2), I64(3), UMonad[U])
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Int64], (8)>, <Tensor[Float16],
            (8, 8, 2, 64)>, <Int64, NoShape>, <Int64, NoShape>, <UMonad, NoShape>) ->
            (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>)
        """,
        check="kv_cache_scatter_update_info.cc:CheckStrategy",
        says="KVCacheScatterUpdateInfo11 Invalid strategy: The batch must be shard at the same tim",
    ),
    "a cache by batch and heads": Accepted(
        """
        %3(CNode_11) = KVCacheMgr(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {in_strategy:
            ((2, 4, 1, 1), (2, 4, 1, 1), (2))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Float16], (8, 8, 1, 64)>,
            <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 8, 1024, 64)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0), (3, 2, 1, 0), (-1,)),
        outputs=((3, 2, 1, 0),),
    ),
    "a cache: its sequence is not looked at": Accepted(
        """
        %3(CNode_11) = KVCacheMgr(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {in_strategy:
            ((1, 1, 2, 1), (1, 1, 1, 1), (1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Float16], (8, 8, 1, 64)>,
            <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 8, 1024, 64)>)
        """,
        matrix=(1, 1, 1, 1, 8),
        inputs=((4, 3, 2, 1), (4, 3, 2, 1), (-1,)),
        outputs=((4, 3, 2, 1),),
    ),
    "a cache: what is new is not looked at": Accepted(
        """
        %3(CNode_11) = KVCacheMgr(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {in_strategy:
            ((1, 1, 1, 1), (1, 1, 2, 1), (1))}
            : (<Ref[Tensor[Float16]], (8, 8, 1024, 64)>, <Tensor[Float16], (8, 8, 1, 64)>,
            <Tensor[Int32], (8)>, <UMonad, NoShape>) -> (<Tensor[Float16], (8, 8, 1024, 64)>)
        """,
        matrix=(1, 1, 1, 1, 8),
        inputs=((4, 3, 2, 1), (4, 3, 2, 1), (-1,)),
        outputs=((4, 3, 2, 1),),
    ),
    "a recurrence by batch and channel": Accepted(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64), in_strategy: ((4), (4), (2, 1, 4), (2, 1,
            4), (2, 4), (2, 4), (2, 4))}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        matrix=(2, 1, 4),
        inputs=((0,), (0,), (2, 1, 0), (2, 1, 0), (2, 0), (2, 0), (2, 0)),
        outputs=((2, 1, 0), (2, 0), (2, 0), (2, 0)),
    ),
    "a recurrence, repeated": Accepted(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64), in_strategy: ((4), (4), (1, 1, 4), (1, 1,
            4), (1, 4), (1, 4), (1, 4))}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((1,), (1,), (3, 2, 1), (3, 2, 1), (3, 1), (3, 1), (3, 1)),
        outputs=((3, 2, 1), (3, 1), (3, 1), (3, 1)),
    ),
    "a recurrence: a strategy that is made": Accepted(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64)}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        matrix=(8, 1, 1),
        inputs=((0,), (0,), (2, 1, 0), (2, 1, 0), (2, 0), (2, 0), (2, 0)),
        outputs=((2, 1, 0), (2, 0), (2, 0), (2, 0)),
    ),
    "a recurrence: its sequence": Refused(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64), in_strategy: ((1), (1), (1, 2, 1), (1, 2,
            1), (1, 1), (1, 1), (1, 1))}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        check="wkv_info.cc:CheckStrategy",
        says="Invalid strategy: The sequence length can't be shard, but got k's strategy: [const v",
    ),
    "a recurrence: channels disagree": Refused(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64), in_strategy: ((2), (2), (2, 1, 4), (2, 1,
            4), (2, 4), (2, 4), (2, 4))}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        check="wkv_info.cc:CheckStrategy",
        says="Invalid strategy: The hidden dim must be shard at the same time, but got w's strateg",
    ),
    "a recurrence: batches disagree": Refused(
        """
        %8(CNode_14) = WKV(%0, %1, %3, %4, %5, %6, %7) primitive_attrs: {batch_size: I64(8),
            seq_length: I64(16), hidden_size: I64(64), in_strategy: ((4), (4), (2, 1, 4), (2, 1,
            4), (1, 4), (1, 4), (1, 4))}
            : (<Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>,
            <Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 64)>, <Tensor[Float32], (8,
            64)>, <Tensor[Float32], (8, 64)>) -> (<Tuple[Tensor[Float32]*4], TupleShape((8, 16,
            64), (8, 64), (8, 64), (8, 64))>)
        """,
        check="wkv_info.cc:CheckStrategy",
        says="Invalid strategy: The batch dim must be shard at the same time, but got k's strategy",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

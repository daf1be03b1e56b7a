"""Rows of a table by their indices."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "rows added by index": Accepted(
        """
        %4(CNode_9) = PrimFunc_IndexAddExt(%1, I64(1), %2, %3, I64(1)) primitive_attrs:
            {in_strategy: ((4, 1, 2), (1), (4, 1, 2))}
            : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Int32], (4)>,
            <Tensor[Float32], (8, 4, 64)>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1, 0), (-1,), (2, 1, 0)),
        outputs=((2, 1, 0),),
    ),
    "rows added by index, repeated": Accepted(
        """
        %4(CNode_9) = PrimFunc_IndexAddExt(%1, I64(0), %2, %3, I64(1)) primitive_attrs:
            {in_strategy: ((1, 2, 2), (1), (1, 2, 2))}
            : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Int32], (4)>,
            <Tensor[Float32], (4, 16, 64)>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
        """,
        matrix=(1, 2, 2, 2),
        inputs=((3, 2, 1), (-1,), (3, 2, 1)),
        outputs=((3, 2, 1),),
    ),
    "rows that are split otherwise": Refused(
        """
        %4(CNode_9) = PrimFunc_IndexAddExt(%1, I64(1), %2, %3, I64(1)) primitive_attrs:
            {in_strategy: ((4, 1, 2), (1), (2, 1, 2))}
            : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Int32], (4)>,
            <Tensor[Float32], (8, 4, 64)>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
        """,
        check="index_add_info.cc:CheckStrategy",
        says="The strategy for Source must be equal to Input: [const vector]{4, 1, 2}",
    ),
    "rows split along the index": Refused(
        """
        %4(CNode_9) = PrimFunc_IndexAddExt(%1, I64(1), %2, %3, I64(1)) primitive_attrs:
            {in_strategy: ((2, 2, 1), (1), (2, 2, 1))}
            : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Int32], (4)>,
            <Tensor[Float32], (8, 4, 64)>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
        """,
        check="index_add_info.cc:CheckStrategy",
        says="The dimensions corresponding to dim can not be split, but the strategy is 2",
    ),
    "rows with a split index": Refused(
        """
        %4(CNode_9) = PrimFunc_IndexAddExt(%1, I64(1), %2, %3, I64(1)) primitive_attrs:
            {in_strategy: ((2, 1, 1), (2), (2, 1, 1))}
            : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Int32], (4)>,
            <Tensor[Float32], (8, 4, 64)>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
        """,
        check="index_add_info.cc:CheckStrategy",
        says="The index can not be split,  the strategy of which should be 1 but is 2",
    ),
    "a whole axis": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((1,
            4), (2, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((1, 0), (3, 2)),
        outputs=((3, 2, 0),),
    ),
    "split rows": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((8,
            1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(8, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "split rows and columns": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((2,
            4), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(2, 4),
        forward=(("ReduceScatter", "sum", (0, 4)),),
    ),
    "split columns and rows, along columns": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(0)) primitive_attrs: {in_strategy: ((2,
            4), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3)),),
    ),
    "rows of the result that do not divide": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((8,
            1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (3, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (3, 64, 64)>)
        """,
        matrix=(8, 1),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "split rows, repeated to the left": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((4,
            1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(2, 4, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3)),),
    ),
    "rows and indices": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((4,
            1), (2, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(2, 4),
        forward=(("AllReduce", "sum", (0, 1, 2, 3)),),
    ),
    "rows and both dimensions of indices": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {in_strategy: ((2,
            1), (2, 2))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(2, 2, 2),
        forward=(("AllReduce", "sum", (0, 1)),),
    ),
    "a result that is added up": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {out_strategy: ((1,
            1, 1)), in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(8, 1),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "a result that is scattered": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {out_strategy: ((8,
            1, 1)), in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(8, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "a result that can't be made": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {out_strategy: ((4,
            1, 1)), in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        check="gather_info.cc:CheckOutputStrategy",
        says="The output strategy [const vector]{4, 1, 1} is invalid, it must be [const vector]{1,",
    ),
    "split columns, and indices": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(0)) primitive_attrs: {in_strategy: ((1,
            4), (1, 2))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (3, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 3, 64)>)
        """,
        check="gather_info.cc:CheckSplitAxisStrategy",
        says="param is split at dim (axis)1 ,index can't be split.",
    ),
    "split columns, repeated": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(0)) primitive_attrs: {in_strategy: ((1,
            4), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        check="gather_info.cc:CheckSplitAxisStrategy",
        says="Invalid strategy. Don't support repeated calc.",
    ),
    "the third axis": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(2), I64(0)) primitive_attrs: {in_strategy: ((1,
            1, 8), (1))}
            : (<Tensor[Float32], (8, 8, 8)>, <Tensor[Int32], (8)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8, 8, 8)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="invalid gather mode: 9",
    ),
    "an axis counted from behind": Accepted(
        """
        %3(CNode_9) = PrimFunc_Gather(%0, %2, I64(-1), I64(0)) primitive_attrs: {in_strategy: ((1,
            8), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(1, 8),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "batch dimensions": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(1)) primitive_attrs: {in_strategy: ((2,
            1, 2), (2, 2))}
            : (<Tensor[Float32], (8, 16, 8)>, <Tensor[Int32], (8, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8, 4, 8)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 1, 0), (3, 2)),
        outputs=((3, 2, 0),),
    ),
    "batch dimensions disagree": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(1)) primitive_attrs: {in_strategy: ((2,
            1, 2), (4, 1))}
            : (<Tensor[Float32], (8, 16, 8)>, <Tensor[Int32], (8, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8, 4, 8)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="batch mode, the strategy of the batch dims of param and indices must be equal, but t",
    ),
    "batch dimensions and a split axis": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(1)) primitive_attrs: {in_strategy: ((2,
            2, 1), (2, 1))}
            : (<Tensor[Float32], (8, 16, 8)>, <Tensor[Int32], (8, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8, 4, 8)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="batch mode, the axis can not be split, but the param strategy is [const vector]{2, 2",
    ),
    "a strategy that is made": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0))
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        matrix=(8, 1, 1, 1),
        inputs=((1, 0), (3, 2)),
        outputs=((3, 2, 0),),
    ),
    "uneven rows": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30, 4), in_strategy: ((4, 2), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        rank=5,
        matrix=(4, 2),
    ),
    "uneven rows with offsets": Accepted(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs:
            {manual_split_with_offset: ((10, 0), (20, 10), (30, 30), (4, 60)), in_strategy: ((4,
            2), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        rank=2,
        matrix=(4, 2),
    ),
    "uneven rows: too few": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30), in_strategy: ((4, 2), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="The indices_strategy[-1] 4 must be equal to manual split size 3",
    ),
    "uneven rows: too many": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30, 5), in_strategy: ((4, 2), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="Sum of split shapes 65 must be equal to param_shape[0] 64",
    ),
    "uneven rows, repeated": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30, 4), in_strategy: ((4, 1), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="Manual split doesn't support repeated calc",
    ),
    "uneven rows: the first dimension of indices": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30, 4), in_strategy: ((4, 2), (2, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 4, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="Only the last dim of indices can be split, but got [const vector]{2, 4}",
    ),
    "uneven rows: less than fields": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (3,
            27, 30, 4), in_strategy: ((4, 2), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 16)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 16, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="The split value [const vector]{3, 27, 30, 4} must be larger than or equal to indices",
    ),
    "uneven rows: a table smaller than the fields": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(0), I64(0)) primitive_attrs: {manual_split: (4,
            4, 4, 4, 4, 4, 4, 4), in_strategy: ((8, 1), (1, 8))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (64, 64)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 64)>)
        """,
        check="gather_info.cc:CheckStrategy",
        says="The split value [const vector]{4, 4, 4, 4, 4, 4, 4, 4} must be larger than or equal",
    ),
    "uneven columns": Refused(
        """
        %3(CNode_7) = PrimFunc_Gather(%0, %2, I64(1), I64(0)) primitive_attrs: {manual_split: (10,
            20, 30, 4), in_strategy: ((1, 4), (1, 4))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 4)>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tensor[Float32], (64, 64, 4)>)
        """,
        check="gather_info.cc:GetAttrs",
        says="The axis must be 0 if manual split, bug got 1",
    ),
    "selected rows": Accepted(
        """
        %3(CNode_7) = PrimFunc_IndexSelect(%0, I64(0), %2) primitive_attrs: {in_strategy: ((8, 1),
            (1))}
            : (<Tensor[Float32], (64, 64)>, <Int64, NoShape>, <Tensor[Int32], (64)>) ->
            (<Tensor[Float32], (64, 64)>)
        """,
        matrix=(8, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "sparse rows": Accepted(
        """
        %3(CNode_7) = SparseGatherV2(%0, %2, I64(0)) primitive_attrs: {bprop_return_sparse:
            Bool(1), in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 16)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (64, 16, 64)>)
        """,
        matrix=(8, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "rows on the host": Accepted(
        """
        %3(CNode_7) = EmbeddingLookup(%0, %2, I64(0)) primitive_attrs: {bprop_return_sparse:
            Bool(1), primitive_target: "CPU", in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 16)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (64, 16, 64)>)
        """,
        matrix=(8, 1),
        forward=(("ReduceScatter", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "rows that are not on the host": Refused(
        """
        %3(CNode_7) = EmbeddingLookup(%0, %2, I64(0)) primitive_attrs: {bprop_return_sparse:
            Bool(1), in_strategy: ((8, 1), (1, 1))}
            : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (64, 16)>, <Int64, NoShape>) ->
            (<Tensor[Float32], (64, 16, 64)>)
        """,
        check="gather_info.cc:GetAttrs",
        says="must be set the cpu target",
    ),
    "an embedding by column": Accepted(
        """
        %2(CNode_10) = PrimFunc_Embedding(%1, %para2_w1, None, None, F32(2), Bool(0), UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1), (1, 8))}
            : (<Tensor[Int32], (64, 16)>, <Ref[Tensor[Float32]], (64, 64)>, <None, NoShape>,
            <None, NoShape>, <Float32, NoShape>, <Bool, NoShape>, <UMonad, NoShape>) ->
            (<Tensor[Float32], (64, 16, 64)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 2), (1, 0)),
        outputs=((3, 2, 0),),
    ),
    "an embedding with a norm": Refused(
        """
        %2(CNode_10) = PrimFunc_Embedding(%1, %para2_w1, None, F32(1), F32(2), Bool(0), UMonad[U])
            primitive_attrs: {in_strategy: ((1, 1), (1, 8))}
            : (<Tensor[Int32], (64, 16)>, <Ref[Tensor[Float32]], (64, 64)>, <None, NoShape>,
            <Float32, NoShape>, <Float32, NoShape>, <Bool, NoShape>, <UMonad, NoShape>) ->
            (<Tensor[Float32], (64, 16, 64)>)
        """,
        check="gather_info.cc:GetAttrs",
        says="max_norm must be none, but get 1",
    ),
    "elements along a split dimension": Accepted(
        """
        %3(CNode_8) = PrimFunc_GatherD(%1, I64(0), %2) primitive_attrs: {in_strategy: ((2, 4), (1,
            4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Tensor[Int32], (8, 8)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        matrix=(2, 4),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "elements: indices disagree": Refused(
        """
        %3(CNode_8) = PrimFunc_GatherD(%1, I64(0), %2) primitive_attrs: {in_strategy: ((1, 4), (1,
            2))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Tensor[Int32], (8, 8)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        check="gatherd_info.cc:CheckStrategy",
        says="The dimension 1of X and Index should be same, but got 4 and 2",
    ),
    "elements: indices along the dimension": Refused(
        """
        %3(CNode_8) = PrimFunc_GatherD(%1, I64(0), %2) primitive_attrs: {in_strategy: ((1, 4), (2,
            4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Tensor[Int32], (8, 8)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        check="gatherd_info.cc:CheckStrategy",
        says="Index dimension dim can not be splited.",
    ),
    "elements, repeated": Accepted(
        """
        %3(CNode_8) = PrimFunc_GatherD(%1, I64(0), %2) primitive_attrs: {in_strategy: ((2, 1), (1,
            1))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Tensor[Int32], (8, 8)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        matrix=(2, 1, 4),
        forward=(("AllReduce", "sum", (0, 4)),),
    ),
    "elements by position": Accepted(
        """
        %3(CNode_8) = PrimFunc_GatherNd(%1, %2) primitive_attrs: {in_strategy: ((1, 1), (2, 4,
            1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (8, 4, 1)>) -> (<Tensor[Float32], (8,
            4, 8)>)
        """,
        matrix=(2, 4, 1),
        inputs=((-1, -1), (2, 1, 0)),
        outputs=((2, 1, -1),),
    ),
    "elements of a split table": Refused(
        """
        %3(CNode_8) = PrimFunc_GatherNd(%1, %2) primitive_attrs: {in_strategy: ((2, 1), (1, 1,
            1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (8, 4, 1)>) -> (<Tensor[Float32], (8,
            4, 8)>)
        """,
        check="gathernd_info.cc:CheckStrategy",
        says="The input can not be split",
    ),
    "elements: a strategy that is made": Accepted(
        """
        %3(CNode_8) = PrimFunc_GatherNd(%1, %2)
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (8, 4, 1)>) -> (<Tensor[Float32], (8,
            4, 8)>)
        """,
        matrix=(8, 1, 1),
        inputs=((-1, -1), (2, 1, 0)),
        outputs=((2, 1, -1),),
    ),
    "elements by indices": Accepted(
        """
        %5(CNode_10) = PrimFunc_Index(%1, %4) primitive_attrs: {in_strategy: ((2, 4), ((1), (1)))}
            : (<Tensor[Float32], (128, 128)>, <Tuple[Tensor[Int64]*2], TupleShape((32), (32))>) ->
            (<Tensor[Float32], (32)>)
        """,
        matrix=(2, 4),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "elements of a whole table are added up over one rank": Accepted(
        """
        %5(CNode_10) = PrimFunc_Index(%1, %4) primitive_attrs: {in_strategy: ((1, 1), ((1), (1)))}
            : (<Tensor[Float32], (128, 128)>, <Tuple[Tensor[Int64]*2], TupleShape((32), (32))>) ->
            (<Tensor[Float32], (32)>)
        """,
        forward=(("AllReduce", "sum", (0,)),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

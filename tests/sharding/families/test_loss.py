"""Losses and one-hot encoding."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "mean of labelled rows": Accepted(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, None, I64(1), I64(-100), F32(0),
            F32(0), Bool(0)) primitive_attrs: {in_strategy: ((4, 1), (4))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((1), (32, 64), (0), (0))>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1), (2,)),
        outputs=((-1,), (2, 1)),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "a loss a row": Accepted(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, %3, I64(2), I64(-100), F32(0),
            F32(0), Bool(0)) primitive_attrs: {in_strategy: ((2, 1), (2), (1))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <Tensor[Float32], (64)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((32), (32, 64), (0), (0))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (2,), (1,)),
        outputs=((2,), (2, 1)),
    ),
    "labelled rows without a strategy": Accepted(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, %3, I64(0), I64(-100), F32(0),
            F32(0), Bool(0))
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <Tensor[Float32], (64)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((1), (32, 64), (0), (0))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1,), (0,)),
        outputs=((-1,), (1, 0)),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "labels split otherwise": Refused(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, None, I64(1), I64(-100), F32(0),
            F32(0), Bool(0)) primitive_attrs: {in_strategy: ((4, 1), (2))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((1), (32, 64), (0), (0))>)
        """,
        check="loss_info.cc:CheckStrategy",
        says="Strategies of batch dimensions are not equal.",
    ),
    "classes of rows": Refused(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, None, I64(1), I64(-100), F32(0),
            F32(0), Bool(0)) primitive_attrs: {in_strategy: ((2, 4), (2))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <None, NoShape>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((1), (32, 64), (0), (0))>)
        """,
        check="loss_info.cc:CheckStrategy",
        says="The strategy of inputs corresponding to num_class dimension is not 1, input: 4",
    ),
    "the weight a class": Refused(
        """
        %4(CNode_9) = PrimFunc_CrossEntropyLoss(%1, %2, %3, I64(1), I64(-100), F32(0),
            F32(0), Bool(0)) primitive_attrs: {in_strategy: ((2, 1), (2), (2))}
            : (<Tensor[Float32], (32, 64)>, <Tensor[Int32], (32)>, <Tensor[Float32], (64)>,
            <Int64, NoShape>, <Int64, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Bool,
            NoShape>) -> (<Tuple[Tensor[Float32]*4], TupleShape((1), (32, 64), (0), (0))>)
        """,
        check="loss_info.cc:CheckStrategy",
        says="The strategy for weight must be (1,), but got: [const vector]{2}",
    ),
    "cross entropy": Accepted(
        """
        %3(CNode_11) = SoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((8,
            1), (8, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16), (16, 8))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1,), (1, 0)),
    ),
    "cross entropy, repeated": Accepted(
        """
        %3(CNode_11) = SoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((2,
            1), (2, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16), (16, 8))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (2, 1)),
        outputs=((2,), (2, 1)),
    ),
    "cross entropy: classes": Refused(
        """
        %3(CNode_11) = SoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((2,
            4), (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16), (16, 8))>)
        """,
        check="loss_info.cc:CheckStrategy",
        says="The strategy corresponding to axis dimension is not 1, input: 4, label: 4",
    ),
    "cross entropy: labels disagree": Refused(
        """
        %3(CNode_11) = SoftmaxCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((8,
            1), (4, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16), (16, 8))>)
        """,
        check="loss_info.cc:CheckStrategy",
        says="Strategies of relevant dimensions are not equal.",
    ),
    "cross entropy: a strategy that is made": Accepted(
        """
        %3(CNode_11) = SoftmaxCrossEntropyWithLogits(%1, %2)
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) ->
            (<Tuple[Tensor[Float32]*2], TupleShape((16), (16, 8))>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1,), (1, 0)),
    ),
    "divergence of each element": Accepted(
        """
        %3(CNode_8) = KLDivLoss(%1, %2) primitive_attrs: {reduction: "none", in_strategy: ((2, 4),
            (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "mean divergence is added up": Accepted(
        """
        %3(CNode_8) = KLDivLoss(%1, %2) primitive_attrs: {reduction: "mean", in_strategy: ((2, 2),
            (2, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (2, 1)),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "summed divergence": Accepted(
        """
        %3(CNode_8) = KLDivLoss(%1, %2) primitive_attrs: {reduction: "sum", in_strategy: ((2, 4),
            (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0)),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 1, 2, 3, 4, 5, 6, 7)),),
    ),
    "divergence a sample": Accepted(
        """
        %3(CNode_8) = KLDivLoss(%1, %2) primitive_attrs: {reduction: "batchmean", in_strategy:
            ((2, 2), (2, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1), (2, 1)),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "divergence: labels disagree": Refused(
        """
        %3(CNode_8) = KLDivLoss(%1, %2) primitive_attrs: {reduction: "mean", in_strategy: ((2, 4),
            (4, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], ()>)
        """,
        check="kldiv_loss_info.cc:CheckStrategy",
        says="The strategy of 'logits' and 'labels' must be the same, but got strategy ((2, 4), (4",
    ),
    "one-hot by index": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((8,
            1), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(8, 1),
        outputs=((1, 0),),
    ),
    "one-hot by class": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((1,
            8), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        rank=3,
        matrix=(1, 8),
    ),
    "one-hot, repeated": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((2,
            2), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
    ),
    "classes first": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(0)) primitive_attrs: {in_strategy: ((2,
            4), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16)>)
        """,
        matrix=(4, 2),
    ),
    "classes last, by name": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(1)) primitive_attrs: {in_strategy: ((2,
            4), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
    ),
    "two dimensions of indices": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((8,
            1, 1), (), ())}
            : (<Tensor[Int32], (16, 4)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 4, 8)>)
        """,
        matrix=(8, 1, 1),
        outputs=((2, 1, 0),),
    ),
    "the second dimension of indices": Refused(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((2,
            2, 1), (), ())}
            : (<Tensor[Int32], (16, 4)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 4, 8)>)
        """,
        check="onehot_info.cc:CheckStrategy",
        says="When input dimension is > 1, axis must be -1, and strategy must be data parallel.",
    ),
    "two dimensions, classes first": Refused(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(0)) primitive_attrs: {in_strategy: ((1,
            2, 1), (), ())}
            : (<Tensor[Int32], (16, 4)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 4)>)
        """,
        check="onehot_info.cc:CheckStrategy",
        says="When input dimension is > 1, axis must be -1, and strategy must be data parallel.",
    ),
    "classes elsewhere": Refused(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(2)) primitive_attrs: {in_strategy: ((2,
            1, 1, 1), (), ())}
            : (<Tensor[Int32], (16, 4, 4)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 4, 8,
            4)>)
        """,
        check="onehot_info.cc:GetAttrs",
        says="Axis 2 is out of range[-1, 1].",
    ),
    "classes that do not divide": Refused(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(12), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1)) primitive_attrs: {in_strategy: ((1,
            8), (), ())}
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 12)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((1, 8), (), ()), shape is [16, 12], shape value 12 a",
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1))
            : (<Tensor[Int32], (16)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(8, 1),
        outputs=((1, 0),),
    ),
    "a strategy that is made, indices that do not divide": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHot(%1, I64(8), Tensor(shape=[], dtype=Float32, value=1),
            Tensor(shape=[], dtype=Float32, value=0), I64(-1))
            : (<Tensor[Int32], (12)>, <Int64, NoShape>, <Tensor[Float32], (), value=...>,
            <Tensor[Float32], (), value=...>, <Int64, NoShape>) -> (<Tensor[Float32], (12, 8)>)
        """,
        matrix=(1, 1, 8),
        outputs=((2, 1),),
    ),
    "the newer one-hot": Accepted(
        """
        %2(CNode_21) = PrimFunc_OneHotExt(%1, I64(8), Tensor(shape=[], dtype=Int64, value=1),
            Tensor(shape=[], dtype=Int64, value=0), I64(-1))
            : (<Tensor[Int64], (16)>, <Int64, NoShape>, <Tensor[Int64], (), value=...>,
            <Tensor[Int64], (), value=...>, <Int64, NoShape>) -> (<Tensor[Int64], (16, 8)>)
        """,
        matrix=(8, 1),
        outputs=((1, 0),),
    ),
    "sigmoid cross entropy": Accepted(
        """
        %3(CNode_8) = SigmoidCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((8,
            1), (8, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "sigmoid cross entropy: labels disagree": Refused(
        """
        %3(CNode_8) = SigmoidCrossEntropyWithLogits(%1, %2) primitive_attrs: {in_strategy: ((2,
            4), (4, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "log likelihood runs batch parallel": Accepted(
        """
        %4(CNode_12) = PrimFunc_NLLLoss(%1, %2, %3, I64(1), I64(-100)) primitive_attrs:
            {in_strategy: ((8, 1), (8), (1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int32], (16)>, <Tensor[Float32], (8)>, <Int64,
            NoShape>, <Int64, NoShape>) -> (<Tuple[Tensor[Float32]*2], TupleShape((), ())>)
        """,
        matrix=(8,),
        inputs=((-1, -1), (-1,), (-1,)),
        outputs=((), ()),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

"""Tensors made of numbers: ranges, random numbers, choices."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "a line": Accepted(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(8)) primitive_attrs: {in_strategy:
            ((4))}
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        matrix=(4, 2),
    ),
    "a line, repeated": Accepted(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(8)) primitive_attrs: {in_strategy:
            ((2))}
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        matrix=(2, 4),
    ),
    "a line that does not divide": Refused(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(6)) primitive_attrs: {in_strategy:
            ((4))}
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (6)>)
        """,
        check="lin_space_info.cc:CheckStrategy",
        says="The strategy is ((4),), output size is  6 cannot be divisible by strategy value 4",
    ),
    "more pieces than devices": Refused(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(16)) primitive_attrs: {in_strategy:
            ((16))}
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (16)>)
        """,
        check="lin_space_info.cc:CheckStrategy",
        says="The strategy is ((16),), the device size in this stage is 8 cannot be divisible by t",
    ),
    "a strategy of another form": Refused(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(8)) primitive_attrs: {in_strategy: ((2),
            (1))}
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (8)>)
        """,
        check="lin_space_info.cc:CheckStrategy",
        says="The shape of input_strategy must be [1, 1], but got strategy ((2), (1))",
    ),
    "a strategy that is made": Accepted(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(16))
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (16)>)
        """,
        matrix=(8,),
    ),
    "a strategy that is made does not divide": Refused(
        """
        %0(CNode_20) = PrimFunc_LinSpace(Tensor(shape=[], dtype=Float32, value=0),
            Tensor(shape=[], dtype=Float32, value=1), I64(6))
            : (<Tensor[Float32], (), value=...>, <Tensor[Float32], (), value=...>, <Int64,
            NoShape>) -> (<Tensor[Float32], (6)>)
        """,
        check="lin_space_info.cc:CheckStrategy",
        says="The strategy is ((8),), output size is  6 cannot be divisible by strategy value 8",
    ),
    "the newer line": Accepted(
        """
        %0(CNode_6) = PrimFunc_LinSpaceExt(F32(0), F32(1), I64(8), None) primitive_attrs:
            {in_strategy: ((4))}
            : (<Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>, <None, NoShape>) ->
            (<Tensor[Float32], (8)>)
        """,
        matrix=(4, 2),
    ),
    "normal numbers, repeated": Accepted(
        """
        %0(CNode_6) = StandardNormal((I64(16), I64(8))) primitive_attrs: {side_effect_hidden:
            Bool(1), in_strategy: ((2, 2))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=(),
        outputs=((2, 1),),
    ),
    "normal numbers that do not divide": Refused(
        """
        %0(CNode_6) = StandardNormal((I64(16), I64(8))) primitive_attrs: {side_effect_hidden:
            Bool(1), in_strategy: ((3, 4))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((3, 4),), shape is [16, 8], shape value 16 at dim in",
    ),
    "uniform numbers: a strategy that is made": Accepted(
        """
        %0(CNode_6) = UniformReal((I64(16), I64(8))) primitive_attrs: {side_effect_hidden:
            Bool(1)}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(8, 1),
        inputs=(),
        outputs=((1, 0),),
    ),
    "gamma numbers": Accepted(
        """
        %3(CNode_8) = Gamma((I64(16), I64(8)), %1, %2) primitive_attrs: {side_effect_hidden:
            Bool(1), in_strategy: ((2, 4), (1), (1))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], (1)>,
            <Tensor[Float32], (1)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((-1,), (-1,)),
        outputs=((1, 0),),
    ),
    "gamma numbers, repeated": Accepted(
        """
        %3(CNode_8) = Gamma((I64(16), I64(8)), %1, %2) primitive_attrs: {side_effect_hidden:
            Bool(1), in_strategy: ((2, 2), (1), (1))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], (1)>,
            <Tensor[Float32], (1)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((-1,), (-1,)),
        outputs=((2, 1),),
    ),
    "gamma numbers: alpha is split": Refused(
        """
        %3(CNode_8) = Gamma((I64(4), I64(16), I64(8)), %1, %2) primitive_attrs:
            {side_effect_hidden: Bool(1), in_strategy: ((2, 2, 1), (2, 1), (1, 1))}
            : (<Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tensor[Float32], (16,
            8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        check="gamma_info.cc:CheckStrategy",
        says="Cannot shard the input `alpha` and `beta`, but got strategy ((2, 2, 1), (2, 1), (1,",
    ),
    "gamma numbers: the shape's entry": Refused(
        """
        %3(CNode_8) = Gamma((I64(16), I64(8)), %1, %2) primitive_attrs: {side_effect_hidden:
            Bool(1), in_strategy: ((1), (2, 4), (2, 4))}
            : (<Tuple[Int64*2], TupleShape(NoShape, NoShape)>, <Tensor[Float32], (1)>,
            <Tensor[Float32], (1)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((1), (2, 4), (2, 4)), strategy len: 1 is not equal to inputs len: 2",
    ),
    "gamma numbers: a strategy that is made": Accepted(
        """
        %3(CNode_8) = Gamma((I64(4), I64(16), I64(8)), %1, %2) primitive_attrs:
            {side_effect_hidden: Bool(1)}
            : (<Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape)>, <Tensor[Float32], (16,
            8)>, <Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((-1, -1), (-1, -1)),
        outputs=((3, 2, 1),),
    ),
    "candidates": Accepted(
        """
        %2(CNode_10) = UniformCandidateSampler(%1) primitive_attrs: {in_strategy: ((2, 4)),
            range_max: I64(16), num_true: I64(8), side_effect_hidden: Bool(1), unique: Bool(0),
            num_sampled: I64(4), remove_accidental_hits: Bool(0)}
            : (<Tensor[Int64], (16, 8)>) -> (<Tuple[Tensor[Int64],Tensor[Float32]*2],
            TupleShape((4), (16, 8), (4))>)
        """,
    ),
    "candidates without accidental hits": Refused(
        """
        %2(CNode_10) = UniformCandidateSampler(%1) primitive_attrs: {in_strategy: ((2, 4)),
            range_max: I64(16), num_true: I64(8), side_effect_hidden: Bool(1), unique: Bool(0),
            num_sampled: I64(4), remove_accidental_hits: Bool(1)}
            : (<Tensor[Int64], (16, 8)>) -> (<Tuple[Tensor[Int64],Tensor[Float32]*2],
            TupleShape((4), (16, 8), (4))>)
        """,
        check="uniform_candidate_sampler_info.cc:CheckStrategy",
        says="When remove accidental_hits is true, the operation only supports (1,1) shard.",
    ),
    "random choices": Accepted(
        """
        %2(CNode_10) = RandomChoiceWithMask(%1) primitive_attrs: {count: I64(16),
            side_effect_hidden: Bool(1), in_strategy: ((1, 1))}
            : (<Tensor[Bool], (16, 8)>) -> (<Tuple[Tensor[Int32],Tensor[Bool]], TupleShape((16,
            2), (16))>)
        """,
        matrix=(8,),
        inputs=((-1, -1),),
        outputs=((-1, -1), (-1,)),
    ),
    "random choices by row": Refused(
        """
        %2(CNode_10) = RandomChoiceWithMask(%1) primitive_attrs: {count: I64(16),
            side_effect_hidden: Bool(1), in_strategy: ((2, 1))}
            : (<Tensor[Bool], (16, 8)>) -> (<Tuple[Tensor[Int32],Tensor[Bool]], TupleShape((16,
            2), (16))>)
        """,
        check="random_choice_with_mask_info.cc:CheckStrategy",
        says="Each dimension of input tensor is not splittable, but the strategy is ((2, 1),)",
    ),
    "distinct elements": Accepted(
        """
        %2(CNode_10) = Unique(%1) primitive_attrs: {in_strategy: ((1))}
            : (<Tensor[Float32], (16)>) -> (<Tuple[Tensor[Float32],Tensor[Int32]],
            TupleShape((-1), (16))>)
        """,
        matrix=(8,),
        inputs=((-1,),),
        outputs=((-1,), (-1,)),
    ),
    "distinct elements of a piece": Refused(
        """
        %2(CNode_10) = Unique(%1) primitive_attrs: {in_strategy: ((2))}
            : (<Tensor[Float32], (16)>) -> (<Tuple[Tensor[Float32],Tensor[Int32]],
            TupleShape((-1), (16))>)
        """,
        check="unique_info.cc:CheckStrategy",
        says="Currently, unique only support repeat calculate in all devices",
    ),
    "distinct elements: a strategy that is made is refused": Refused(
        """
        %2(CNode_10) = Unique(%1)
            : (<Tensor[Float32], (16)>) -> (<Tuple[Tensor[Float32],Tensor[Int32]],
            TupleShape((-1), (16))>)
        """,
        check="unique_info.cc:CheckStrategy",
        says="Currently, unique only support repeat calculate in all devices",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

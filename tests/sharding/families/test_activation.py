"""One tensor in, the same shape out; masks, repeats, added and removed dimensions."""

from __future__ import annotations

import pytest

from tests.sharding.calls import call, judged
from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((2, 1))}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1),),
        outputs=((2, 1),),
    ),
    "four devices": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((2, 2))}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
        devices=4,
        matrix=(2, 2),
        inputs=((1, 0),),
        outputs=((1, 0),),
    ),
    "24 devices": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((3, 8))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        devices=24,
        matrix=(3, 8),
        inputs=((1, 0),),
        outputs=((1, 0),),
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1)
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0),),
        outputs=((1, 0),),
    ),
    "a strategy that is made, of what divides": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1)
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, 1),),
        outputs=((2, 1),),
    ),
    "more devices than there are": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((4, 4))}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
        check="operator_info.cc:InferRepeatedCalcInfo",
        says="The strategy is ((4, 4),), it requires 16 devices, but the device number of this sta",
    ),
    "a size that does not divide": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((8, 1))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 0, the strategy is ((8, 1),), shape is [12, 32], shape value 12 at dim i",
    ),
    "a number that is no power of two": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((3, 1))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((3, 1),), the value of strategy must be the power of 2, but get 3",
    ),
    "nothing": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((0, 1))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((0, 1),), the value of strategy must be larger than 0, but get 0",
    ),
    "too many entries": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((2, 1), (1, 1))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((2, 1), (1, 1)), strategy size: 2 is not equal to inputs size: 1",
    ),
    "too few numbers": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_strategy: ((2))}
            : (<Tensor[Float32], (12, 32)>) -> (<Tensor[Float32], (12, 32)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((2),), strategy len: 1 is not equal to inputs len: 2, index: 0",
    ),
    "a result of one's own": Refused(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {out_strategy: ((2, 4)), in_strategy:
            ((2, 4))}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
        check="operator_info.cc:CheckOutputStrategy",
        says="It does not support to set output strategy now, please modify the shard set",
    ),
    "layouts": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2),
            'tensor_map': ((2, 1), 0), 'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
    ),
    "layouts, repeated": Accepted(
        """
        %2(CNode_7) = PrimFunc_ReLU(%1) primitive_attrs: {in_layout: ({'device_matrix': (2, 2, 2),
            'tensor_map': (0, -1), 'interleaved_parallel': false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
        """,
    ),
    "dropout and its mask": Accepted(
        """
        %2(CNode_10) = PrimFunc_Dropout(%1, F32(0.5), I64(0), I64(0)) primitive_attrs:
            {side_effect_hidden: Bool(1), in_strategy: ((2, 4))}
            : (<Tensor[Float32], (64, 32)>, <Float32, NoShape>, <Int64, NoShape>, <Int64,
            NoShape>) -> (<Tuple[Tensor[Float32]*2], TupleShape((64, 32), (64, 32))>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((1, 0), (1, 0)),
    ),
    "the newer dropout: its mask has one dimension": Accepted(
        """
        %4(CNode_12) = PrimFunc_DropoutExt(%1, F32(0.5), %2, %3) primitive_attrs:
            {side_effect_hidden: Bool(1), in_strategy: ((2, 4), (1), (1))}
            : (<Tensor[Float32], (64, 32)>, <Float32, NoShape>, <Tensor[Int64], (1)>,
            <Tensor[Int64], (1)>) -> (<Tuple[Tensor[Float32],Tensor[UInt8]], TupleShape((64, 32),
            (256))>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (-1,), (-1,)),
        outputs=((1, 0), (0,)),
    ),
    "the newer dropout: seeds": Refused(
        """
        %3(CNode_23) = PrimFunc_DropoutExt(%1, F32(0.5), Tensor(shape=[2], dtype=Int64, value=[1
            2]), %2) primitive_attrs: {side_effect_hidden: Bool(1), in_strategy: ((2, 4), (2),
            (1))}
            : (<Tensor[Float32], (64, 32)>, <Float32, NoShape>, <Tensor[Int64], (2), value=...>,
            <Tensor[Int64], (1)>) -> (<Tuple[Tensor[Float32],Tensor[UInt8]], TupleShape((64, 32),
            (256))>)
        """,
        check="activation_info.cc:CheckStrategy",
        says="Input `seed` and `offset` are not supported to shard, but get strategy((2, 4), (2),",
    ),
    "dropout by a mask, repeated": Accepted(
        """
        %3(CNode_21) = DropoutDoMask(%1, %2, Tensor(shape=[], dtype=Float32, value=0.5))
            primitive_attrs: {in_strategy: ((2, 2))}
            : (<Tensor[Float32], (128, 64)>, <Tensor[UInt8], (1024)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (128, 64)>)
        """,
        matrix=(2, 2, 2),
        outputs=((2, 1),),
    ),
    "dropout by a mask: its own entry": Refused(
        """
        %3(CNode_21) = DropoutDoMask(%1, %2, Tensor(shape=[], dtype=Float32, value=0.5))
            primitive_attrs: {in_strategy: ((2, 4), (1))}
            : (<Tensor[Float32], (128, 64)>, <Tensor[UInt8], (1024)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (128, 64)>)
        """,
        check="dropout_do_mask_info.cc:CheckStrategy",
        says="Invalid strategy size 2, it must be 1",
    ),
    "dropout by a mask: a strategy that is made": Accepted(
        """
        %3(CNode_21) = DropoutDoMask(%1, %2, Tensor(shape=[], dtype=Float32, value=0.5))
            : (<Tensor[Float32], (128, 64)>, <Tensor[UInt8], (1024)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (128, 64)>)
        """,
        matrix=(8, 1),
        outputs=((1, 0),),
    ),
    "a new dimension in front": Accepted(
        """
        %2(CNode_7) = PrimFunc_ExpandDims(%1, I64(0)) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>) -> (<Tensor[Float32], (1, 16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((-1, 1, 0),),
    ),
    "a new dimension behind": Accepted(
        """
        %2(CNode_9) = PrimFunc_ExpandDims(%1, I64(-1)) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 8, 1)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((1, 0, -1),),
    ),
    "all dimensions of size one go": Accepted(
        """
        %2(CNode_7) = PrimFunc_Squeeze(%1, ()) primitive_attrs: {in_strategy: ((2, 1, 4))}
            : (<Tensor[Float32], (16, 1, 8)>, <Tuple[], TupleShape()>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        matrix=(2, 1, 4),
    ),
    "one dimension goes": Accepted(
        """
        %2(CNode_7) = PrimFunc_Squeeze(%1, (I64(-1))) primitive_attrs: {in_strategy: ((2, 4, 1))}
            : (<Tensor[Float32], (16, 8, 1)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4, 1),
    ),
    "half the sum of squares, repeated": Accepted(
        """
        %2(CNode_7) = L2Loss(%1) primitive_attrs: {in_strategy: ((2, 2))}
            : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], ()>)
        """,
        matrix=(2, 2, 2),
        inputs=((2, 1),),
        outputs=((),),
        forward=(("AllReduce", "sum", (0, 2, 4, 6)),),
    ),
    "repeats along a split axis": Accepted(
        """
        %2(CNode_7) = PrimFunc_RepeatInterleaveInt(%1, I64(2), I64(0), None) primitive_attrs:
            {in_strategy: ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <Int64, NoShape>, <None, NoShape>) ->
            (<Tensor[Float32], (32, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((1, 0),),
    ),
    "repeats of the flattened tensor": Refused(
        """
        %2(CNode_7) = PrimFunc_RepeatInterleaveInt(%1, I64(2), None, None) primitive_attrs:
            {in_strategy: ((1, 1))}
            : (<Tensor[Float32], (16, 8)>, <Int64, NoShape>, <None, NoShape>, <None, NoShape>) ->
            (<Tensor[Float32], (256)>)
        """,
        check="elementary_function_info.cc:CheckStrategy",
        says="For distributed operator RepeatInterleaveIntInfo11, all dimensions cannot be split w",
    ),
    "repeats by a tensor along a split axis": Refused(
        """
        %2(CNode_19) = PrimFunc_RepeatInterleaveTensor(%1, Tensor(shape=[16], dtype=Int64,
            value=[2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2]), I64(0), None) primitive_attrs: {in_strategy:
            ((2, 4), (1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int64], (16), value=...>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (32, 8)>)
        """,
        check="elementary_function_info.cc:CheckStrategy",
        says="For distributed operator RepeatInterleaveTensorInfo11, the input's dimension 'dim' c",
    ),
    "repeats by a tensor": Accepted(
        """
        %2(CNode_19) = PrimFunc_RepeatInterleaveTensor(%1, Tensor(shape=[16], dtype=Int64,
            value=[2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2]), I64(0), None) primitive_attrs: {in_strategy:
            ((1, 4), (1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Int64], (16), value=...>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (32, 8)>)
        """,
        matrix=(1, 4, 2),
        inputs=((2, 1), (-1,)),
        outputs=((2, 1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()


# Each was compiled for a tensor of (64, 32) and the strategy ((2, 4),), with one result for all.
ALIKE = """
ReLU ReLU6 GeLU FastGeLU SiLU Sigmoid HSigmoid HShrink SoftShrink Tanh Elu SeLU Mish Softplus
Softsign Sqrt Rsqrt Square Neg Abs Exp Expm1 Log Log1p Cos Sin Tan ACos Asin Atan Cosh Sinh
Acosh Asinh Atanh Ceil Floor Round Rint Trunc Sign Erf Erfc Erfinv Inv Reciprocal BesselI0
BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 Lgamma Identity ZerosLike Invert LogicalNot
IsFinite NanToNum PopulationCount EluExt LeakyReLUExt SoftplusExt Muls FmodScalar
RemainderTensorScalar RemainderScalarTensor
ClampScalar Quant
"""


@pytest.mark.parametrize("op", ALIKE.split())
def test_the_result_lies_like_the_input(op: str) -> None:
    legal = judged(call(op, [64, 32], out=[64, 32]), ((2, 4),))
    assert legal.device_matrix == (2, 4)
    assert legal.input_maps == legal.output_maps == ((1, 0),)
    assert legal.collectives == ()

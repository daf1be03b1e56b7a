"""Broadcast from the right."""

from __future__ import annotations

import pytest

from tests.sharding.calls import call, judged
from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "a size of one stays whole": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (64, 1)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, -1)),
        outputs=((1, 0),),
    ),
    "a size of one on both sides": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 1), (1, 4))}
            : (<Tensor[Float32], (64, 1)>, <Tensor[Float32], (1, 32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(2, 4),
        inputs=((1, -1), (-1, 0)),
        outputs=((1, 0),),
    ),
    "a shorter operand": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 1, 4), (4))}
            : (<Tensor[Float32], (8, 64, 32)>, <Tensor[Float32], (32)>) -> (<Tensor[Float32], (8,
            64, 32)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1, 0), (0,)),
        outputs=((2, 1, 0),),
    ),
    "a shorter operand, repeated": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 1), (1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (1,)),
        outputs=((2, 1),),
    ),
    "operands disagree": Refused(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (4, 2))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32],
            (64, 32)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "one operand is whole": Refused(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (2, 1))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32],
            (64, 32)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "a shorter operand disagrees": Refused(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (2))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "a broadcast operand disagrees": Refused(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((4, 1), (2, 4))}
            : (<Tensor[Float32], (64, 1)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "a strategy that is made": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2)
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(8, 1),
        inputs=((1, 0), (0,)),
        outputs=((1, 0),),
    ),
    "a strategy that is made for a size of one": Accepted(
        """
        %3(CNode_7) = PrimFunc_Add(%1, %2)
            : (<Tensor[Float32], (1, 32)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(8, 1),
        inputs=((-1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
    "trained": Accepted(
        """
        %3(CNode_89) = PrimFunc_Add(%1, %2) primitive_attrs: {in_strategy: ((2, 4), (4))}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (32)>) -> (<Tensor[Float32], (64,
            32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (0,)),
        outputs=((1, 0),),
    ),
    "layouts": Accepted(
        """
        %3(CNode_8) = PrimFunc_Add(%1, %2) primitive_attrs: {in_layout: ({'device_matrix': (2, 2,
            2), 'tensor_map': ((2, 1), 0), 'interleaved_parallel': false, 'alias_name': (a, b,
            c)}, {'device_matrix': (2, 2, 2), 'tensor_map': ((2, 1), 0), 'interleaved_parallel':
            false, 'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32],
            (64, 32)>)
        """,
    ),
    "layouts that disagree": Refused(
        """
        %3(CNode_8) = PrimFunc_Add(%1, %2) primitive_attrs: {in_layout: ({'device_matrix': (2, 2,
            2), 'tensor_map': ((2, 1), 0), 'interleaved_parallel': false, 'alias_name': (a, b,
            c)}, {'device_matrix': (2, 2, 2), 'tensor_map': (2, 0), 'interleaved_parallel': false,
            'alias_name': (a, b, c)})}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (64, 32)>) -> (<Tensor[Float32],
            (64, 32)>)
        """,
        check="arithmetic_info.cc:CheckInputLayout",
        says="Invalid strategy. The 0th dim of input 0 tensor map is [const vector]{2, 1} is not e",
    ),
    "a scalar": Accepted(
        """
        %2(CNode_19) = PrimFunc_Mul(%1, Tensor(shape=[], dtype=Float32, value=2)) primitive_attrs:
            {in_strategy: ((2, 4), ())}
            : (<Tensor[Float32], (64, 32)>, <Tensor[Float32], (), value=...>) ->
            (<Tensor[Float32], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), ()),
        outputs=((1, 0),),
    ),
    "three operands": Accepted(
        """
        %4(CNode_9) = PrimFunc_Lerp(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4), (2, 4),
            (4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (8)>) ->
            (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0), (0,)),
        outputs=((1, 0),),
    ),
    "three operands disagree": Refused(
        """
        %4(CNode_9) = PrimFunc_Lerp(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 4), (2, 4),
            (2, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>)
            -> (<Tensor[Float32], (16, 8)>)
        """,
        check="arithmetic_info.cc:CheckStrategy",
        says="Invalid strategy.",
    ),
    "three operands of different shapes": Accepted(
        """
        %4(CNode_9) = PrimFunc_AddcmulExt(%1, %2, %3, F32(1)) primitive_attrs: {in_strategy: ((2,
            4), (4), (2, 1))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (8)>, <Tensor[Float32], (16, 1)>,
            <Float32, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (0,), (1, -1)),
        outputs=((1, 0),),
    ),
    "three other operands disagree": Refused(
        """
        %4(CNode_9) = PrimFunc_AddcmulExt(%1, %2, %3, F32(1)) primitive_attrs: {in_strategy: ((2,
            4), (2, 4), (2, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>, <Tensor[Float32], (16, 8)>,
            <Float32, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="arithmetic_info.cc:CheckStrategy",
        says="Invalid strategy. inputs_shape: [[16, 8], [16, 8], [16, 8]] strategy: ((2, 4), (2, 4",
    ),
    "two entries for three inputs": Accepted(
        """
        %3(CNode_20) = PrimFunc_MaskedFill(%1, %2, Tensor(shape=[], dtype=Float32, value=1))
            primitive_attrs: {in_strategy: ((2, 4), (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Bool], (16, 8)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        outputs=((1, 0),),
    ),
    "three entries": Accepted(
        """
        %3(CNode_20) = PrimFunc_MaskedFill(%1, %2, Tensor(shape=[], dtype=Float32, value=1))
            primitive_attrs: {in_strategy: ((2, 4), (2, 4), ())}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Bool], (16, 8)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        outputs=((1, 0),),
    ),
    "a mask that is broadcast": Accepted(
        """
        %3(CNode_20) = PrimFunc_MaskedFill(%1, %2, Tensor(shape=[], dtype=Float32, value=1))
            primitive_attrs: {in_strategy: ((2, 4), (4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Bool], (8)>, <Tensor[Float32], (), value=...>)
            -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
        outputs=((1, 0),),
    ),
    "a mask that disagrees": Refused(
        """
        %3(CNode_20) = PrimFunc_MaskedFill(%1, %2, Tensor(shape=[], dtype=Float32, value=1))
            primitive_attrs: {in_strategy: ((2, 4), (4, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Bool], (16, 8)>, <Tensor[Float32], (),
            value=...>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "vectors, repeated": Accepted(
        """
        %3(CNode_8) = PrimFunc_Outer(%1, %2) primitive_attrs: {in_strategy: ((2), (2))}
            : (<Tensor[Float32], (16)>, <Tensor[Float32], (8)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 2, 2),
        inputs=((2,), (1,)),
        outputs=((2, 1),),
    ),
    "vectors on more devices than there are": Refused(
        """
        %3(CNode_8) = PrimFunc_Outer(%1, %2) primitive_attrs: {in_strategy: ((4), (4))}
            : (<Tensor[Float32], (16)>, <Tensor[Float32], (8)>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="operator_info.cc:InferRepeatedCalcInfo",
        says="The strategy is ((4), (4)), it requires 16 devices, but the device number of this st",
    ),
    "one scale a column": Accepted(
        """
        %3(CNode_7) = Dequant(%1, %2) primitive_attrs: {sqrt_mode: Bool(0), dtype: F16, relu_flag:
            Bool(0), in_strategy: ((2, 4), (4))}
            : (<Tensor[Int32], (64, 32)>, <Tensor[UInt64], (32)>) -> (<Tensor[Float16], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (0,)),
        outputs=((1, 0),),
    ),
    "scales by row": Accepted(
        """
        %4(CNode_7) = AntiQuant(%1, %2, %3) primitive_attrs: {sqrt_mode: Bool(0), dtype: F16,
            in_strategy: ((2, 4), (2, 1), (2, 1))}
            : (<Tensor[Int8], (64, 32)>, <Tensor[Float32], (64, 1)>, <Tensor[Float32], (64, 1)>)
            -> (<Tensor[Float16], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, -1), (1, -1)),
        outputs=((1, 0),),
    ),
    "scales disagree": Refused(
        """
        %4(CNode_7) = AntiQuant(%1, %2, %3) primitive_attrs: {sqrt_mode: Bool(0), dtype: F16,
            in_strategy: ((2, 4), (2), (4))}
            : (<Tensor[Int8], (64, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>) ->
            (<Tensor[Float16], (64, 32)>)
        """,
        check="arithmetic_info.cc:BaseCheckStrategy",
        says="Invalid strategy.",
    ),
    "offsets are not compared": Accepted(
        """
        %4(CNode_7) = AntiQuant(%1, %2, %3) primitive_attrs: {sqrt_mode: Bool(0), dtype: F16,
            in_strategy: ((2, 4), (4), (2))}
            : (<Tensor[Int8], (64, 32)>, <Tensor[Float32], (32)>, <Tensor[Float32], (32)>) ->
            (<Tensor[Float16], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (0,), (-1,)),
        outputs=((1, 0),),
    ),
    "one offset": Accepted(
        """
        %4(CNode_9) = PrimFunc_QuantV2(%1, %2, %3, Bool(0), I64(0), I64(32)) primitive_attrs:
            {in_strategy: ((2, 4), (4), (1))}
            : (<Tensor[Float16], (64, 32)>, <Tensor[Float16], (32)>, <Tensor[Float16], (1)>,
            <Bool, NoShape>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Int8], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (0,), (-1,)),
        outputs=((1, 0),),
    ),
    "assignment": Accepted(
        """
        %2(CNode_10) = PrimFunc_Assign(%para2_w0, %1, UMonad[U]) primitive_attrs: {in_strategy:
            ((2, 4), (2, 4))}
            : (<Ref[Tensor[Float32]], (64, 32)>, <Tensor[Float32], (64, 32)>, <UMonad, NoShape>)
            -> (<Ref[Tensor[Float32]], (64, 32)>)
        """,
        matrix=(2, 4),
        inputs=((1, 0), (1, 0)),
        outputs=((1, 0),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()


# Each was compiled for two tensors of (64, 32) and the strategy ((2, 4), (2, 4)).
ALIKE = """
Add Sub Mul Div RealDiv FloorDiv Mod FloorMod Pow DivNoNan MulNoNan TruncateDiv TruncateMod
Maximum Minimum Equal NotEqual ApproximateEqual Greater GreaterEqual Less LessEqual Atan2 Xdivy
Xlogy SquaredDifference Hypot Igamma Igammac NextAfter Zeta FmodTensor RemainderTensorTensor
IsClose BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Gcd LogicalAnd LogicalOr Polar
Assign AssignAdd AssignSub InplaceCopy AddExt SubExt DivMod
"""


@pytest.mark.parametrize("op", ALIKE.split())
def test_the_result_lies_like_both_operands(op: str) -> None:
    legal = judged(call(op, [64, 32], [64, 32], out=[64, 32]), ((2, 4), (2, 4)))
    assert legal.device_matrix == (2, 4)
    assert legal.input_maps == ((1, 0), (1, 0))
    assert legal.output_maps == ((1, 0),)
    assert legal.collectives == ()

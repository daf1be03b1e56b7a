"""Statistics of quantisation."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "one range, repeated": Accepted(
        """
        %4(CNode_7) = FakeQuantPerLayer(%1, %2, %3) primitive_attrs: {quant_delay: I64(0), ema:
            Bool(0), num_bits: I64(8), symmetric: Bool(0), in_strategy: ((2, 1, 1, 1), (1), (1)),
            narrow_range: Bool(0), ema_decay: F32(0.999), training: Bool(1)}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (1)>, <Tensor[Float32], (1)>)
            -> (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        matrix=(2, 1, 1, 1, 4),
        inputs=((4, 3, 2, 1), (-1,), (-1,)),
        outputs=((4, 3, 2, 1),),
    ),
    "one range that is split": Refused(
        """
        %4(CNode_7) = FakeQuantPerLayer(%1, %2, %3) primitive_attrs: {quant_delay: I64(0), ema:
            Bool(0), num_bits: I64(8), symmetric: Bool(0), in_strategy: ((2, 4, 1, 1), (4), (4)),
            narrow_range: Bool(0), ema_decay: F32(0.999), training: Bool(1)}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (1)>, <Tensor[Float32], (1)>)
            -> (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="Input index 1, the strategy is ((2, 4, 1, 1), (4), (4)), shape is [1], shape value 1",
    ),
    "a range a channel": Accepted(
        """
        %4(CNode_7) = FakeQuantPerChannel(%1, %2, %3) primitive_attrs: {quant_delay: I64(0), ema:
            Bool(0), num_bits: I64(8), symmetric: Bool(0), in_strategy: ((2, 4, 1, 1), (4), (4)),
            channel_axis: I64(1), narrow_range: Bool(0), ema_decay: F32(0.999), training: Bool(1)}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Tensor[Float32], (8)>)
            -> (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        matrix=(2, 4, 1, 1),
        inputs=((3, 2, 1, 0), (2,), (2,)),
        outputs=((3, 2, 1, 0),),
    ),
    "ranges that are whole": Refused(
        """
        %4(CNode_7) = FakeQuantPerChannel(%1, %2, %3) primitive_attrs: {quant_delay: I64(0), ema:
            Bool(0), num_bits: I64(8), symmetric: Bool(0), in_strategy: ((2, 4, 1, 1), (1), (1)),
            channel_axis: I64(1), narrow_range: Bool(0), ema_decay: F32(0.999), training: Bool(1)}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Tensor[Float32], (8)>)
            -> (<Tensor[Float32], (16, 8, 4, 4)>)
        """,
        check="quant_info.cc:CheckStrategy",
        says="The the strategy is [const vector]{[const vector]{2, 4, 1, 1}, [const vector]{1}, [c",
    ),
    "minimum and maximum of all pieces": Accepted(
        """
        %4(CNode_10) = MinMaxUpdatePerLayer(%1, %2, %3) primitive_attrs: {ema_decay: F32(0.999),
            ema: Bool(0), in_strategy: ((1, 1, 2, 2), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (1)>, <Tensor[Float32], (1)>)
            -> (<Tuple[Tensor[Float32]*2], TupleShape((1), (1))>)
        """,
        forward=(("AllReduce", "min", (0, 2, 4, 6)), ("AllReduce", "max", (0, 2, 4, 6))),
    ),
    "minimum and maximum, repeated": Accepted(
        """
        %4(CNode_10) = MinMaxUpdatePerLayer(%1, %2, %3) primitive_attrs: {ema_decay: F32(0.999),
            ema: Bool(0), in_strategy: ((2, 1, 1, 1), (1), (1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (1)>, <Tensor[Float32], (1)>)
            -> (<Tuple[Tensor[Float32]*2], TupleShape((1), (1))>)
        """,
        forward=(("AllReduce", "min", (0, 4)), ("AllReduce", "max", (0, 4))),
    ),
    "minimum and maximum a channel, of all pieces": Accepted(
        """
        %4(CNode_10) = MinMaxUpdatePerChannel(%1, %2, %3) primitive_attrs: {channel_axis: I64(1),
            ema_decay: F32(0.999), ema: Bool(0), in_strategy: ((2, 4, 1, 1), (4), (4))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (8)>, <Tensor[Float32], (8)>)
            -> (<Tuple[Tensor[Float32]*2], TupleShape((8), (8))>)
        """,
        forward=(
            ("AllReduce", "min", (0, 1, 2, 3, 4, 5, 6, 7)),
            ("AllReduce", "max", (0, 1, 2, 3, 4, 5, 6, 7)),
        ),
    ),
    "too few entries": Refused(
        """
        %4(CNode_10) = MinMaxUpdatePerLayer(%1, %2, %3) primitive_attrs: {ema_decay: F32(0.999),
            ema: Bool(0), in_strategy: ((8, 1, 1, 1))}
            : (<Tensor[Float32], (16, 8, 4, 4)>, <Tensor[Float32], (1)>, <Tensor[Float32], (1)>)
            -> (<Tuple[Tensor[Float32]*2], TupleShape((1), (1))>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((8, 1, 1, 1),), strategy size: 1 is not equal to inputs size: 3",
    ),
    "scales of rows": Accepted(
        """
        %2(CNode_10) = PrimFunc_DynamicQuantExt(%1, None) primitive_attrs: {in_strategy: ((2, 1))}
            : (<Tensor[Float16], (16, 8)>, <None, NoShape>) ->
            (<Tuple[Tensor[Int8],Tensor[Float32]], TupleShape((16, 8), (16))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1),),
        outputs=((2, 1), (2,)),
    ),
    "scales of split rows": Accepted(
        """
        %2(CNode_10) = PrimFunc_DynamicQuantExt(%1, None) primitive_attrs: {in_strategy: ((2, 4))}
            : (<Tensor[Float16], (16, 8)>, <None, NoShape>) ->
            (<Tuple[Tensor[Int8],Tensor[Float32]], TupleShape((16, 8), (16))>)
        """,
        matrix=(2, 4),
        inputs=((1, 0),),
        outputs=((1, 0), (1,)),
    ),
    "smoothing lies along the columns whatever it says": Accepted(
        """
        %3(CNode_10) = PrimFunc_DynamicQuantExt(%1, %2) primitive_attrs: {in_strategy: ((2, 1),
            (4))}
            : (<Tensor[Float16], (16, 8)>, <Tensor[Float16], (8)>) ->
            (<Tuple[Tensor[Int8],Tensor[Float32]], TupleShape((16, 8), (16))>)
        """,
        matrix=(2, 1, 4),
        inputs=((2, 1), (1,)),
        outputs=((2, 1), (2,)),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

"""The dataset, operators without rule, layouts of one's own."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "a batch over all devices": Accepted(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (512, 32)>) -> (<Tuple[Tensor[Float32]], TupleShape((512, 32))>)
        """,
        context={"dataset_strategy": "data_parallel"},
        matrix=(8, 1),
        inputs=((1, -1),),
        outputs=((1, -1),),
    ),
    "columns": Accepted(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (64, 128)>) -> (<Tuple[Tensor[Float32]], TupleShape((64, 128))>)
        """,
        context={"dataset_strategy": "((1, 4),)"},
        matrix=(1, 4, 2),
        inputs=((-1, 1),),
        outputs=((-1, 1),),
    ),
    "two dimensions": Refused(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (128, 128)>) -> (<Tuple[Tensor[Float32]], TupleShape((128,
            128))>)
        """,
        context={"dataset_strategy": "((2, 4),)"},
        check="virtual_dataset_info.cc:CheckStrategy",
        says="The dataset shard strategy only support shard in one dim.",
    ),
    "all of it": Accepted(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (64, 32)>) -> (<Tuple[Tensor[Float32]], TupleShape((64, 32))>)
        """,
        matrix=(1, 1, 8),
        inputs=((-1, -1),),
        outputs=((-1, -1),),
    ),
    "a batch that does not divide": Accepted(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (96, 32)>) -> (<Tuple[Tensor[Float32]], TupleShape((96, 32))>)
        """,
        context={"dataset_strategy": "data_parallel"},
        matrix=(8, 1),
        inputs=((1, -1),),
        outputs=((1, -1),),
    ),
    "half of the devices": Accepted(
        """
        %0(CNode_15) = _VirtualDataset(%para1_x0)
            : (<Tensor[Float32], (256, 32)>) -> (<Tuple[Tensor[Float32]], TupleShape((256, 32))>)
        """,
        context={"dataset_strategy": "((4, 1),)"},
        matrix=(4, 1, 2),
        inputs=((2, -1),),
        outputs=((2, -1),),
    ),
    "layouts of one's own": Accepted(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {out_layout:
            ({'device_matrix': (4, 2), 'tensor_map': (1, -1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), in_layout: ({'device_matrix': (4, 2), 'tensor_map': (1, -1),
            'interleaved_parallel': false, 'alias_name': (a, b)}, {'device_matrix': (4, 2),
            'tensor_map': (-1, -1), 'interleaved_parallel': false, 'alias_name': (a, b)},
            {'device_matrix': (4, 2), 'tensor_map': (-1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), self_define_shard: Bool(1)}
            : (<Tensor[Float32], (8, 8)>, <Tensor[Int32], (2, 2)>, <Tensor[Float32], (2)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
    ),
    "a strategy for layouts of one's own": Refused(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {self_define_shard:
            Bool(1), in_strategy: ((4, 1), (1, 1), (1))}
            : (<Tensor[Float32], (8, 8)>, <Tensor[Int32], (2, 2)>, <Tensor[Float32], (2)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        check="self_define_shard_info.cc:CheckStrategy",
        says="self define shard op SelfDefineShardInfo11 only support config layout rather than st",
    ),
    "layouts of inputs only": Refused(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {in_layout:
            ({'device_matrix': (4, 2), 'tensor_map': (1, -1), 'interleaved_parallel': false,
            'alias_name': (a, b)}, {'device_matrix': (4, 2), 'tensor_map': (-1, -1),
            'interleaved_parallel': false, 'alias_name': (a, b)}, {'device_matrix': (4, 2),
            'tensor_map': (-1), 'interleaved_parallel': false, 'alias_name': (a, b)}),
            self_define_shard: Bool(1)}
            : (<Tensor[Float32], (8, 8)>, <Tensor[Int32], (2, 2)>, <Tensor[Float32], (2)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        check="self_define_shard_info.cc:InferOutputTensorInfo",
        says="Please pass output layout to SelfDefineShardInfo11, self define shard ops does not s",
    ),
    "layouts that do not divide": Refused(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {out_layout:
            ({'device_matrix': (4, 2), 'tensor_map': ((1, 0), -1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), in_layout: ({'device_matrix': (4, 2), 'tensor_map': ((1, 0),
            -1), 'interleaved_parallel': false, 'alias_name': (a, b)}, {'device_matrix': (4, 2),
            'tensor_map': (-1, -1), 'interleaved_parallel': false, 'alias_name': (a, b)},
            {'device_matrix': (4, 2), 'tensor_map': (-1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), self_define_shard: Bool(1)}
            : (<Tensor[Float32], (4, 8)>, <Tensor[Int32], (2, 2)>, <Tensor[Float32], (2)>) ->
            (<Tensor[Float32], (4, 8)>)
        """,
        check="tensor_layout.cc:TensorShapeDimensionIsDividedBySplitDeviceDimension",
        says="1th input shape is not divisible. The input shape is 1, but the slice number is 2",
    ),
    "layouts of two matrices": Refused(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {out_layout:
            ({'device_matrix': (4, 2), 'tensor_map': (1, -1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), in_layout: ({'device_matrix': (4, 2), 'tensor_map': (1, -1),
            'interleaved_parallel': false, 'alias_name': (a, b)}, {'device_matrix': (2, 4),
            'tensor_map': (-1, -1), 'interleaved_parallel': false, 'alias_name': (a, b)},
            {'device_matrix': (4, 2), 'tensor_map': (-1), 'interleaved_parallel': false,
            'alias_name': (a, b)}), self_define_shard: Bool(1)}
            : (<Tensor[Float32], (8, 8)>, <Tensor[Int32], (2, 2)>, <Tensor[Float32], (2)>) ->
            (<Tensor[Float32], (8, 8)>)
        """,
        check="self_define_shard_info.cc:CheckLayout",
        says="The device_matrix of input 1 is [const vector]{2, 4}, which is not equal to previous",
    ),
    "no rule, and a batch that does not divide": Accepted(
        """
        %2(CNode_7) = PrimFunc_Flatten(%1)
            : (<Tensor[Float32], (15, 4)>) -> (<Tensor[Float32], (15, 4)>)
        """,
        matrix=(8,),
        inputs=((-1, -1),),
        outputs=((-1, -1),),
    ),
    "no rule, and a strategy that is passed over": Accepted(
        """
        %2(CNode_7) = PrimFunc_Flatten(%1) primitive_attrs: {in_strategy: ((1, 2, 1))}
            : (<Tensor[Float32], (16, 4, 4)>) -> (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8,),
        inputs=((0, -1, -1),),
        outputs=((0, -1),),
    ),
    "no rule, by batch": Accepted(
        """
        %2(CNode_7) = PrimFunc_Flatten(%1)
            : (<Tensor[Float32], (16, 4, 4)>) -> (<Tensor[Float32], (16, 16)>)
        """,
        matrix=(8,),
        inputs=((0, -1, -1),),
        outputs=((0, -1),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

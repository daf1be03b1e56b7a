"""Writing rows and elements."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "rows are replaced, repeated": Accepted(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1), in_strategy: ((1, 2), (1), (1, 2))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 2, 4),
        inputs=((2, 1), (-1,), (-1, 1)),
        outputs=((2, 1),),
    ),
    "rows are replaced: split rows": Refused(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1), in_strategy: ((2, 4), (1), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_ops_info.cc:CheckStrategy",
        says="The first dimension of input can not be split",
    ),
    "rows are replaced: indices": Refused(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1), in_strategy: ((1, 4), (2), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_ops_info.cc:CheckStrategy",
        says="The indices can not be split",
    ),
    "rows are replaced: rows of updates": Refused(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1), in_strategy: ((1, 4), (1), (2, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_ops_info.cc:CheckStrategy",
        says="The first 1 dimensions of updates can not be split",
    ),
    "rows are replaced: updates disagree": Refused(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1), in_strategy: ((1, 4), (1), (1, 2))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_ops_info.cc:CheckStrategy",
        says="updates.strategy must be equal to indices.strategy + input.strategy[1:]",
    ),
    "rows are replaced: a strategy that is made": Accepted(
        """
        %3(CNode_11) = ScatterUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(1)}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 1, 8),
        inputs=((2, 1), (-1,), (-1, 1)),
        outputs=((2, 1),),
    ),
    "larger rows": Accepted(
        """
        %3(CNode_11) = ScatterMax(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((1, 8), (1), (1, 8))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 8),
        inputs=((1, 0), (-1,), (-1, 0)),
        outputs=((1, 0),),
    ),
    "split rows are added to": Accepted(
        """
        %3(CNode_11) = ScatterAdd(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((2, 4), (1), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
    ),
    "rows are added to: indices": Refused(
        """
        %3(CNode_11) = ScatterAdd(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((1, 4), (2), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_math_ops_info.cc:CheckStrategy",
        says="The indices can not be split",
    ),
    "split rows are subtracted from": Accepted(
        """
        %3(CNode_11) = ScatterSub(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((2, 4), (1), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(2, 4),
    ),
    "rows are divided": Accepted(
        """
        %3(CNode_11) = ScatterDiv(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((1, 8), (1), (1, 8))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        matrix=(1, 8),
        inputs=((1, 0), (-1,), (-1, 0)),
        outputs=((1, 0),),
    ),
    "smaller rows: split rows": Refused(
        """
        %3(CNode_11) = ScatterMin(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((2, 4), (1), (1, 4))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_ops_info.cc:CheckStrategy",
        says="The first dimension of input can not be split",
    ),
    "rows are multiplied: updates disagree": Refused(
        """
        %3(CNode_11) = ScatterMul(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((1, 4), (1), (1, 2))}
            : (<Ref[Tensor[Float32]], (16, 8)>, <Tensor[Int32], (4)>, <Tensor[Float32], (4, 8)>,
            <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8)>)
        """,
        check="scatter_math_ops_info.cc:CheckStrategy",
        says="updates.strategy must be equal to indices.strategy + input.strategy[1:]",
    ),
    "elements are replaced, repeated": Accepted(
        """
        %3(CNode_11) = ScatterNdUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs:
            {use_locking: Bool(1), in_strategy: ((1, 2, 2), (1, 1), (1, 2, 2))}
            : (<Ref[Tensor[Float32]], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3,
            8, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(1, 2, 2, 2),
        inputs=((3, 2, 1), (-1, -1), (-1, 2, 1)),
        outputs=((3, 2, 1),),
    ),
    "elements are replaced: split rows": Refused(
        """
        %3(CNode_11) = ScatterNdUpdate(%para3_w0, %1, %2, UMonad[U]) primitive_attrs:
            {use_locking: Bool(1), in_strategy: ((2, 2, 2), (1, 1), (1, 2, 2))}
            : (<Ref[Tensor[Float32]], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3,
            8, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="scatter_nd_ops_info.cc:CheckInputStrategy",
        says="For ScatterNdUpdateInfo11, the input cannot be shard at gather dims input[:1].",
    ),
    "split elements are added to": Accepted(
        """
        %3(CNode_11) = ScatterNdAdd(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((2, 2, 2), (1, 1), (1, 2, 2))}
            : (<Ref[Tensor[Float32]], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3,
            8, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(2, 2, 2),
    ),
    "elements are subtracted: indices": Refused(
        """
        %3(CNode_11) = ScatterNdSub(%para3_w0, %1, %2, UMonad[U]) primitive_attrs: {use_locking:
            Bool(0), in_strategy: ((1, 2, 4), (3, 1), (1, 2, 4))}
            : (<Ref[Tensor[Float32]], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3,
            8, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="operator_info.cc:CheckStrategyByVector",
        says="The strategy is ((1, 2, 4), (3, 1), (1, 2, 4)), the value of strategy must be the po",
    ),
    "elements of a copy": Accepted(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {in_strategy: ((1, 2, 4),
            (1, 1), (1, 2, 4))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(1, 2, 4),
        inputs=((2, 1, 0), (-1, -1), (-1, 1, 0)),
        outputs=((2, 1, 0),),
    ),
    "elements of a copy: split rows": Refused(
        """
        %4(CNode_9) = TensorScatterUpdate(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2, 2),
            (1, 1), (1, 2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="scatter_nd_ops_info.cc:CheckInputStrategy",
        says="For ScatterNdUpdate/TensorScatterUpdate, the input cannot be shard at gather dims in",
    ),
    "elements of a copy: updates disagree": Refused(
        """
        %4(CNode_9) = TensorScatterAdd(%1, %2, %3) primitive_attrs: {in_strategy: ((1, 2, 4), (1,
            1), (1, 1, 4))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="scatter_nd_ops_info.cc:CheckStrategy",
        says="updates.strategy must be equal to indices.strategy[:-1] + input.strategy[indices.str",
    ),
    "larger elements of a copy: split rows": Refused(
        """
        %4(CNode_9) = TensorScatterMax(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2, 2), (1,
            1), (1, 2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="scatter_nd_ops_info.cc:CheckInputStrategy",
        says="For ScatterNdUpdate/TensorScatterUpdate, the input cannot be shard at gather dims in",
    ),
    "split elements of a copy": Accepted(
        """
        %4(CNode_9) = TensorScatterMul(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2, 2), (1,
            1), (1, 2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(2, 2, 2),
    ),
    "split elements of a copy are subtracted from": Accepted(
        """
        %4(CNode_9) = TensorScatterSub(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2, 2), (1,
            1), (1, 2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(2, 2, 2),
    ),
    "elements of a copy are divided": Accepted(
        """
        %4(CNode_9) = TensorScatterDiv(%1, %2, %3) primitive_attrs: {in_strategy: ((1, 2, 4), (1,
            1), (1, 2, 4))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(1, 2, 4),
        inputs=((2, 1, 0), (-1, -1), (-1, 1, 0)),
        outputs=((2, 1, 0),),
    ),
    "smaller elements of a copy: split rows": Refused(
        """
        %4(CNode_9) = TensorScatterMin(%1, %2, %3) primitive_attrs: {in_strategy: ((2, 2, 2), (1,
            1), (1, 2, 2))}
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        check="scatter_nd_ops_info.cc:CheckInputStrategy",
        says="For ScatterNdUpdate/TensorScatterUpdate, the input cannot be shard at gather dims in",
    ),
    "elements of a copy: a strategy that is made": Accepted(
        """
        %4(CNode_9) = TensorScatterAdd(%1, %2, %3)
            : (<Tensor[Float32], (16, 8, 4)>, <Tensor[Int32], (3, 1)>, <Tensor[Float32], (3, 8,
            4)>) -> (<Tensor[Float32], (16, 8, 4)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((3, 2, 1), (-1, -1), (-1, 2, 1)),
        outputs=((3, 2, 1),),
    ),
    "fixed rows, repeated": Accepted(
        """
        %3(CNode_8) = InplaceAdd(%1, %2) primitive_attrs: {indices: (0, 1), in_strategy: ((1, 2),
            (1, 2))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (2, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        matrix=(2, 4),
        inputs=((-1, 1), (-1, 1)),
        outputs=((-1, 1),),
    ),
    "fixed rows that are split": Refused(
        """
        %3(CNode_8) = InplaceAdd(%1, %2) primitive_attrs: {indices: (0, 1), in_strategy: ((2, 4),
            (2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (2, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        check="inplace_op_info.cc:CheckStrategy",
        says="The 1st dimension of x and input_v is not supported sharding, but got strategy ((2,",
    ),
    "fixed rows are subtracted from": Accepted(
        """
        %3(CNode_8) = InplaceSub(%1, %2) primitive_attrs: {indices: (0, 1), in_strategy: ((1, 8),
            (1, 8))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (2, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        matrix=(8,),
        inputs=((-1, 0), (-1, 0)),
        outputs=((-1, 0),),
    ),
    "fixed rows disagree": Refused(
        """
        %3(CNode_8) = InplaceUpdate(%1, %2) primitive_attrs: {indices: (0, 1), in_strategy: ((1,
            8), (1, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (2, 8)>) -> (<Tensor[Float32], (16,
            8)>)
        """,
        check="inplace_op_info.cc:CheckStrategy",
        says="The strategy of x and input_v must be the same, but got strategy ((1, 8), (1, 4))",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

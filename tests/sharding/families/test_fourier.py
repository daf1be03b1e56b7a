"""Transforms: only the batch is split."""

from __future__ import annotations

import pytest

from tests.sharding.families.records import Accepted, Refused

RECORDS = {
    "one dimension": Accepted(
        """
        %2(CNode_11) = PrimFunc_FFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "one dimension, repeated": Accepted(
        """
        %2(CNode_11) = PrimFunc_FFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((2,
            2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(2, 2, 1, 2),
        inputs=((3, 2, -1),),
        outputs=((3, 2, -1),),
    ),
    "one split dimension": Refused(
        """
        %2(CNode_11) = PrimFunc_FFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            1, 2))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "the first dimension": Accepted(
        """
        %2(CNode_9) = PrimFunc_FFT(%1, None, I64(0), None) primitive_attrs: {in_strategy: ((1, 2,
            4))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(1, 2, 4),
        inputs=((-1, 1, 0),),
        outputs=((-1, 1, 0),),
    ),
    "a strategy that is made": Accepted(
        """
        %2(CNode_11) = PrimFunc_FFT(%1, None, I64(-1), None)
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, 2, -1),),
        outputs=((3, 2, -1),),
    ),
    "more pieces than devices": Refused(
        """
        %2(CNode_11) = PrimFunc_FFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            4, 1))}
            : (<Tensor[Float32], (16, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (16, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="FFTInfo11 The number of splits cannot be greater than the number of devices.",
    ),
    "of real numbers": Accepted(
        """
        %2(CNode_11) = PrimFunc_RFFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "to real numbers": Accepted(
        """
        %2(CNode_9) = PrimFunc_IRFFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            2, 1))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None,
            NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "back": Accepted(
        """
        %2(CNode_11) = PrimFunc_IFFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "back to symmetric numbers": Refused(
        """
        %2(CNode_11) = PrimFunc_IHFFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            1, 2))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "of real numbers in two dimensions": Accepted(
        """
        %2(CNode_11) = PrimFunc_RFFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "to real numbers in two dimensions": Accepted(
        """
        %2(CNode_9) = PrimFunc_IRFFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "back in two dimensions": Refused(
        """
        %2(CNode_11) = PrimFunc_IFFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "of symmetric numbers in two dimensions": Accepted(
        """
        %2(CNode_9) = PrimFunc_HFFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "back to symmetric numbers in two dimensions": Accepted(
        """
        %2(CNode_11) = PrimFunc_IHFFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "back in several dimensions": Accepted(
        """
        %2(CNode_11) = PrimFunc_IFFTN(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "of real numbers in several dimensions": Refused(
        """
        %2(CNode_11) = PrimFunc_RFFTN(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "to real numbers in several dimensions": Accepted(
        """
        %2(CNode_9) = PrimFunc_IRFFTN(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "of symmetric numbers in several dimensions": Accepted(
        """
        %2(CNode_9) = PrimFunc_HFFTN(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "back to symmetric numbers in several dimensions": Refused(
        """
        %2(CNode_11) = PrimFunc_IHFFTN(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 5)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "back from cosines": Accepted(
        """
        %2(CNode_9) = PrimFunc_IDCT(%1, I64(2), None, I64(-1), None) primitive_attrs:
            {in_strategy: ((4, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <Int64, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "back from cosines in several dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_IDCTN(%1, I64(2), None, (I64(1), I64(2)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <Int64, NoShape>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "of symmetric numbers": Refused(
        """
        %2(CNode_9) = PrimFunc_HFFT(%1, None, I64(-1), None) primitive_attrs: {in_strategy: ((4,
            1, 2))}
            : (<Tensor[Complex64], (4, 16, 8)>, <None, NoShape>, <Int64, NoShape>, <None,
            NoShape>) -> (<Tensor[Float32], (4, 16, 14)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "two dimensions": Accepted(
        """
        %2(CNode_11) = PrimFunc_FFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3, -1, -1),),
    ),
    "one of two dimensions": Refused(
        """
        %2(CNode_11) = PrimFunc_FFT2(%1, None, (I64(-2), I64(-1)), None) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "all dimensions": Accepted(
        """
        %2(CNode_9) = PrimFunc_FFTN(%1, None, None, None) primitive_attrs: {in_strategy: ((1, 1,
            1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((-1, -1, -1),),
        outputs=((-1, -1, -1),),
    ),
    "one of all dimensions": Refused(
        """
        %2(CNode_9) = PrimFunc_FFTN(%1, None, None, None) primitive_attrs: {in_strategy: ((2, 1,
            1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>, <None, NoShape>, <None, NoShape>)
            -> (<Tensor[Complex64], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "shifted": Accepted(
        """
        %2(CNode_23) = PrimFunc_FFTShift(%1, (I64(1))) primitive_attrs: {in_strategy: ((4, 1, 2))}
            : (<Tensor[Float32], (4, 16, 8)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(4, 1, 2),
        inputs=((2, -1, 0),),
        outputs=((2, -1, 0),),
    ),
    "shifted along all dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_FFTShift(%1, None) primitive_attrs: {in_strategy: ((1, 1, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(1, 1, 1, 8),
        inputs=((-1, -1, -1),),
        outputs=((-1, -1, -1),),
    ),
    "shifted along two": Accepted(
        """
        %2(CNode_7) = PrimFunc_FFTShift(%1, (I64(0), I64(2))) primitive_attrs: {in_strategy: ((1,
            8, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(1, 8, 1),
        inputs=((-1, 1, -1),),
        outputs=((-1, 1, -1),),
    ),
    "shifted back along a split dimension": Refused(
        """
        %2(CNode_23) = PrimFunc_IFFTShift(%1, (I64(1))) primitive_attrs: {in_strategy: ((1, 2,
            1))}
            : (<Tensor[Float32], (4, 16, 8)>, <Tuple[Int64], TupleShape(NoShape)>) ->
            (<Tensor[Float32], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "cosines": Accepted(
        """
        %2(CNode_9) = PrimFunc_DCT(%1, I64(2), None, I64(-1), None) primitive_attrs: {in_strategy:
            ((4, 2, 1))}
            : (<Tensor[Float32], (4, 16, 8)>, <Int64, NoShape>, <None, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        matrix=(4, 2, 1),
        inputs=((2, 1, -1),),
        outputs=((2, 1, -1),),
    ),
    "cosines along a split dimension": Refused(
        """
        %2(CNode_7) = PrimFunc_DCTN(%1, I64(2), None, (I64(1), I64(2)), None) primitive_attrs:
            {in_strategy: ((1, 1, 2))}
            : (<Tensor[Float32], (4, 16, 8)>, <Int64, NoShape>, <None, NoShape>, <Tuple[Int64*2],
            TupleShape(NoShape, NoShape)>, <None, NoShape>) -> (<Tensor[Float32], (4, 16, 8)>)
        """,
        check="fft_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "the trace of matrices": Accepted(
        """
        %2(CNode_9) = PrimFunc_TraceV2(%1, I64(0), I64(-2), I64(-1), None) primitive_attrs:
            {in_strategy: ((4, 1, 1))}
            : (<Tensor[Float32], (4, 8, 8)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4)>)
        """,
        matrix=(4, 1, 1, 2),
        inputs=((3, -1, -1),),
        outputs=((3,),),
    ),
    "the trace of the first two dimensions": Accepted(
        """
        %2(CNode_7) = PrimFunc_TraceV2(%1, I64(0), I64(0), I64(1), None) primitive_attrs:
            {in_strategy: ((1, 1, 4))}
            : (<Tensor[Float32], (8, 8, 4)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4)>)
        """,
        matrix=(1, 1, 4, 2),
        inputs=((-1, -1, 1),),
        outputs=((1,),),
    ),
    "the trace of split matrices": Refused(
        """
        %2(CNode_9) = PrimFunc_TraceV2(%1, I64(0), I64(-2), I64(-1), None) primitive_attrs:
            {in_strategy: ((2, 2, 1))}
            : (<Tensor[Float32], (4, 8, 8)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4)>)
        """,
        check="tracev2_info.cc:CheckStrategy",
        says="Cannot split tensor on Non-batch dim.",
    ),
    "the trace, repeated": Accepted(
        """
        %2(CNode_9) = PrimFunc_TraceV2(%1, I64(0), I64(-2), I64(-1), None) primitive_attrs:
            {in_strategy: ((2, 1, 1))}
            : (<Tensor[Float32], (4, 8, 8)>, <Int64, NoShape>, <Int64, NoShape>, <Int64, NoShape>,
            <None, NoShape>) -> (<Tensor[Float32], (4)>)
        """,
        matrix=(2, 1, 1, 4),
        inputs=((3, -1, -1),),
        outputs=((3,),),
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_as_mindspore_has_it(record: Accepted | Refused) -> None:
    record.verify()

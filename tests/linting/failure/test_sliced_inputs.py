"""Sizes that point to the dataset's slices get no edit of the line where they first have to fit."""

from __future__ import annotations

import pytest

from irtool.ir.finding import SourceLine
from irtool.linting.failure.finding import Explained, LoggedFinding
from irtool.linting.failure.report import Place, report_of
from irtool.linting.failure.sliced_inputs import sliced_input

_ROWS = "For 'MatMul' the input dimensions must be equal, but got 'x1_col': 64 and 'x2_row': 32."
_ADD = "For 'Add', input1.shape and input2.shape need to broadcast. The value of input1.shape[0] …"


def _reshape(have: str, want: str) -> str:
    return f"must be equal, but got x_shape: {{{have}}}, and out_shape: {{{want}}}"


@pytest.mark.parametrize(
    ("message", "operands", "inputs", "times"),
    [
        (_reshape("384, 64", "8, 16, 4, 16"), (), ("Float32[384,32]",), "3 times more"),
        (_reshape("128, 64", "8, 16, 4, 48"), (), ("Float32[128,32]",), "3 times fewer"),
        (_reshape("384, 64", "8, 16, 4, 17"), (), ("Float32[384,32]",), ""),  # no whole number
        (_reshape("384, 64", "8, 16, 4, 16"), (), ("Float32[383,32]",), ""),  # no input's
        (_reshape("100, 64", "8, 100, 4"), (), ("Float32[25,100]",), "2 times more"),
        (_reshape("25, 96", "25, 32"), (), ("Float32[25,7]",), ""),  # 25 is not 3 of anything
        (_reshape("384, 64", "8, 16, 4, 16"), (), (), ""),
        (_ADD, ("Float32[384,32]", "Float32[128,32]"), ("Float32[384,8]",), "3 times more"),
        (_ADD, ("Float32[384,32]", "Float32[384,16]"), ("Float32[384,32]",), ""),  # a feature
        (_ROWS, ("Float32[8,64]", "Float32[32,16]"), ("Float32[8,64]",), "2 times more"),
        (_ROWS, ("Float32[8,64]", "Float32[32,64]"), ("Float32[8,64]",), ""),  # transposed it fits
        ("For 'Add', something else", ("Float32[4]", "Float32[2]"), ("Float32[4]",), ""),
    ],
)
def test_a_whole_number_of_times_and_an_inputs_dimension(
    message: str, operands: tuple[str, ...], inputs: tuple[str, ...], times: str
) -> None:
    told = sliced_input(message, operands, inputs)
    assert ("dataset_strategy" in told) == bool(times)
    assert times in told


@pytest.mark.parametrize(("inputs", "has_edit"), [(("Float32[384,32]",), False), ((), True)])
def test_what_may_come_from_the_dataset_gets_no_edit(
    inputs: tuple[str, ...], has_edit: bool
) -> None:
    line = SourceLine("net.py", 7, text="y = x.reshape((8, 16, 4, 16))")
    finding = LoggedFinding(
        "shape", "error", _reshape("384, 64", "8, 16, 4, 16"), "a.ir", 1, op="Reshape",
        source=line, inputs=inputs,
    )  # fmt: skip
    explained = Explained("a.ir", "analyze_fail", 1, findings=(finding,))
    (told,) = report_of([(explained, Place())]).findings
    assert (told.edit is not None) == has_edit
    assert ("dataset_strategy" in told.message) != has_edit

"""What mends a failure of shapes: a part of its line, a weight's shape, an operator's argument."""

from __future__ import annotations

import pytest

from irtool.ir.finding import Edit, SourceLine
from irtool.linting.failure.shape_edits import shape_edit

_AXIS = "For primitive[ReduceSum], the axis value must be in [-2,2), but got 3."
_INDEX = "TupleGetItem evaluator index should be in range[-2, 2), but got 2."
_ROWS = "For 'MatMul' the input dimensions must be equal, but got 'x1_col': 16 and 'x2_row': 24."
_ADD = "For 'Add', input1.shape and input2.shape need to broadcast. The value of input1.shape[2] …"
_BIAS = "For 'BiasAdd', bias[0] shape should be equal to input_x[1] shape when data_format is 0"
_KEY = "The key b does not exist in the dict:{'a': 1}"
_WEIGHTS = "For 'LayerNorm', gamma or beta shape must match input shape, but …"
_SPLIT = "For 'Split', x_shape[1] must be divisible by output_num = 7, but got 16"
_DTYPE = "the input 'dtype' expect a type, but got AbstractScalar(Type: String, Value: float33, …"


_PERM = "For 'Transpose', size of perm should equal to rank of x, but got 3 and 2!"


def _reshape(out: str) -> str:
    return (
        "For primitive[Reshape], the accumulate of x_shape must be equal to out_shape, but got "
        f"x_shape: {{8, 16}}, and out_shape: {{{out}}}"
    )


def edit_of(message: str, line: str, *operands: str, op: str = "") -> Edit | None:
    return shape_edit(message, op, operands, SourceLine("net.py", 7, text=line))


@pytest.mark.parametrize(
    ("message", "line", "operands", "new"),
    [
        (_AXIS, "y = self.reduce(y, 3)", ("Float32[8,16]", "Int64"), "y = self.reduce(y, -1)"),
        (_INDEX, "y = pair[2]", ("Tuple[Float32[8],Float32[8]]", "Int64"), "y = pair[1]"),
        (_reshape("8, 7, 2"), "y = y.reshape((8, 7, 2))", (), "y = y.reshape((8, 8, 2))"),
        (
            _ROWS,
            "y = self.matmul(y, self.w)",
            ("Float32[8,16]", "Float32[24,16]"),
            "y = self.matmul(y, ops.swapaxes(self.w, -1, -2))",
        ),
        (
            "For 'MatMulExt' op, shape1[-1] must be equal to shape2[-2], but got 16 and 24.",
            "y = ops.matmul(y, self.w)",
            ("Float32[8,16]", "Float32[24,16]"),
            "y = ops.matmul(y, ops.swapaxes(self.w, -1, -2))",
        ),
        (_ADD, "y = y + s", ("Float32[8,16]", "Float32[8]"), "y = y + ops.expand_dims(s, -1)"),
        (_KEY, 'y = y * self.t["b"]', ("Func", "String"), "y = y * self.t['a']"),
        (_DTYPE, "y = self.cast(y, 'float33')", (), "y = self.cast(y, mindspore.float32)"),
        (_PERM, "y = self.t(y, (0, 2, 1))", (), "y = self.t(y, (1, 0))"),
        (
            _PERM.replace("3 and 2", "3 and 4"),
            "y = ops.transpose(y, (0, 2, 1))",
            (),
            "y = ops.transpose(y, (0, 1, 3, 2))",
        ),
        (_reshape("6, 4, 5"), "y = y.reshape((-1, 4, 5))", (), "y = y.reshape((-1, 4, 4))"),
        ("there is no attribute rellu", "y = ops.rellu(y)", (), "y = ops.relu(y)"),
    ],
)
def test_a_part_of_the_line_is_written_otherwise(
    message: str, line: str, operands: tuple[str, ...], new: str
) -> None:
    found = edit_of(message, line, *operands)
    assert found == Edit(file="net.py", line=7, old=line, new=new)


@pytest.mark.parametrize(
    ("message", "op", "line", "operands", "setting", "value"),
    [
        (_AXIS, "ReduceSum", "y = self.reduce(y)", (), "axis of ReduceSum", -1),
        (_SPLIT, "Split", "y = self.split(y)", ("Float32[8,16]",), "output_num of Split", 8),
        (_reshape("8, 7, 2"), "Reshape", "y = self.heads(y)", (), "shape of Reshape", "(8, 8, 2)"),
        (
            _ROWS,
            "MatMul",
            "y = self.matmul(y, self.w)",
            ("Float32[8,16]", "Float32[24,32]"),
            "shape of self.w",
            "(16, 32)",
        ),
        (
            _BIAS,
            "BiasAdd",
            "y = self.add(y, self.bias)",
            ("Float32[8,16]", "Float32[17]"),
            "shape of self.bias",
            "(16,)",
        ),
        (
            _WEIGHTS,
            "LayerNorm",
            "y = self.norm(y, self.gamma, self.beta)[0]",
            ("Float32[8,16]", "Float32[15]", "Float32[15]"),
            "shape of self.gamma, self.beta",
            "(16,)",
        ),
    ],
)
def test_what_stands_elsewhere_is_named(
    message: str, op: str, line: str, operands: tuple[str, ...], setting: str, value: object
) -> None:
    found = edit_of(message, line, *operands, op=op)
    assert found == Edit(setting=setting, value=value)  # type: ignore[arg-type]  # a number or text


@pytest.mark.parametrize(
    ("message", "line", "operands"),
    [
        ("Out of memory.", "y = self.matmul(y, self.w)", ("Float32[8,16]", "Float32[24,32]")),
        (_reshape("9, 14"), "y = y.reshape((9, 14))", ()),  # more than one number is wrong
        (_INDEX, "a, b, c = pair", ("Tuple[Float32[8],Float32[8]]", "Int64")),
        (_ROWS, "y = self.matmul(y, x)", ("Float32[8,16]", "Float32[24,32]")),  # no weight
        ("there is no attribute not_set", "y = y + self.not_set", ()),
        (_KEY.replace("'a': 1", "'left': 1, 'right': 2"), 'y = self.t["b"]', ("Func", "String")),
    ],
)
def test_nothing_is_guessed(message: str, line: str, operands: tuple[str, ...]) -> None:
    assert edit_of(message, line, *operands) is None


@pytest.mark.parametrize(
    ("cell", "message", "operands", "setting", "value"),
    [
        ("Dense", _ROWS, ("Float32[8,16]", "Float32[8,18]"), "in_channels of self.part", 16),
        (
            "LayerNorm",
            _WEIGHTS,
            ("Float32[8,16]", "Float32[15]", "Float32[15]"),
            "normalized_shape of self.part",
            "(16,)",
        ),
        ("Conv2d", _ROWS, ("Float32[8,16]", "Float32[8,18]"), None, None),
    ],
)
def test_a_cell_of_mindspore_is_made_for_the_last_dimension(
    cell: str, message: str, operands: tuple[str, ...], setting: str | None, value: object
) -> None:
    source = SourceLine("net.py", 7, text="y = self.part(y)")
    found = shape_edit(message, "", operands, source, cell)
    wanted = None if setting is None else Edit(setting=setting, value=value)  # type: ignore[arg-type]  # a number or text
    assert found == wanted


def test_a_failure_without_a_line_has_no_edit() -> None:
    assert shape_edit(_ROWS, "MatMul", ("Float32[8,16]", "Float32[24,32]"), None) is None

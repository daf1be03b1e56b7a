"""The cast that is proposed where operands have different types."""

from __future__ import annotations

import pytest

from irtool.ir.finding import SourceLine
from irtool.linting.failure.casts import cast_of

SAID = "For 'MatMul', the type of 'x2' should be same as 'x1', but got Float32 and Float16."
MIXED = ("Float32[8,16]", "Float16[16,32]")


def line(text: str) -> SourceLine:
    return SourceLine("net.py", 7, text=text)


@pytest.mark.parametrize(
    ("text", "operands", "new"),
    [
        ("y = self.matmul(x, self.w)", MIXED,
         "y = self.matmul(x, ops.cast(self.w, mindspore.float32))"),
        ("y = self.matmul(x, self.w)", MIXED[::-1],
         "y = self.matmul(ops.cast(x, mindspore.float32), self.w)"),
        ("y = x @ self.w", ("Int8[4,8]", "Float32[8,8]"),
         "y = ops.cast(x, mindspore.float32) @ self.w"),
        ("return x @ self.b", MIXED, "return x @ ops.cast(self.b, mindspore.float32)"),
    ],
)  # fmt: skip
def test_the_narrower_operand_is_cast(text: str, operands: tuple[str, ...], new: str) -> None:
    edit = cast_of(SAID, operands, line(text))
    assert edit is not None
    assert (edit.file, edit.line, edit.old, edit.new) == ("net.py", 7, text, new)


def test_the_sign_that_fails_is_told_from_a_call_with_as_many_operands() -> None:
    said = "For primitive[MatMulExt], the input type must be same."
    edit = cast_of(said, ("Int8[4,8]", "Float32[8,8]"), line("y = ops.zeros(s, k) @ self.w.T"))
    assert edit is not None
    assert edit.new == "y = ops.cast(ops.zeros(s, k), mindspore.float32) @ self.w.T"
    called = cast_of(SAID, MIXED, line("y = self.matmul(x, w) @ z"))
    assert called is not None
    assert called.new == "y = self.matmul(x, ops.cast(w, mindspore.float32)) @ z"


@pytest.mark.parametrize(
    ("message", "operands", "text"),
    [
        ("the input dimensions must be equal", MIXED, "y = self.matmul(x, w)"),
        (SAID, ("Float32[8]", "Float32[8]"), "y = self.matmul(x, w)"),
        (SAID, ("Int64[8]", "Int32[8]"), "y = self.matmul(x, w)"),
        (SAID, MIXED, "y = f(self.matmul(x, w), w)"),
        (SAID, MIXED, "y = self.matmul("),
        (SAID, MIXED, ""),
    ],
)
def test_where_nobody_can_say_nothing_is_proposed(
    message: str, operands: tuple[str, ...], text: str
) -> None:
    assert cast_of(message, operands, line(text)) is None


JOINED = "For primitive[Concat], the input[tensors] elements should have same type, but got: A, B."


@pytest.mark.parametrize(
    ("operands", "new"),
    [
        ("Tuple[Float32[8,16],Int32[8,16]]", "self.join((x, ops.cast(y, mindspore.float32)))"),
        ("Tuple[Float16[8,16],Float32[8,16]]", "self.join((ops.cast(x, mindspore.float32), y))"),
        ("Tuple[Float32[8],Float32[8]]", None),
        ("Tuple[Int32[8],Int64[8]]", None),
        ("Tuple[Float32[8],Int32[8],Float32[8]]", None),  # more elements than the line has
    ],
)
def test_the_odd_element_of_a_tuple_is_cast(operands: str, new: str | None) -> None:
    edit = cast_of(JOINED, (operands,), line("self.join((x, y))"))
    assert (None if edit is None else edit.new) == new

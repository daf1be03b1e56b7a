"""NUM: half precision, and the order of summation."""

from __future__ import annotations

import numpy as np
import pytest

from irtool.ir.finding import Finding
from tests.linting.cases import compilation, dump_of, lint, rule, the_one

WORLD = (
    'group: "hccl_world_group", rank_list: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)'
)


def statement(call: str, source: str, result: str, more: str = "") -> str:
    """One statement with a type line: the first operand's type, and the result's."""
    operands = call.count(", ") if "(I64" not in call else 1
    types = ", ".join([f"<Tensor[{source}>", *["<Int64, NoShape>"] * operands])
    return f"%0(a) = PrimFunc_{call}{more}\n      : ({types}) -> (<Tensor[{result}>)"


def found(code: str, *statements: str, **values: float) -> list[Finding]:
    text = dump_of(*statements, parameters=("%para1_x: <Tensor[Float16], (32, 65536)>",))
    return list(lint(rule(code, **values), compilation({"validate": text})).findings)


# -- NUM001 --------------------------------------------------------------------------------------


def test_a_long_sum_in_half_precision_is_named() -> None:
    text = statement("ReduceSum(%para1_x, I64(1))", "Float16], (32, 65536)", "Float16], (32)")
    (one,) = found("NUM001", text)
    assert one.message == "ReduceSum adds 65,536 numbers in float16"
    assert (one.line, one.node, one.severity) == (6, "%0", "info")


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("Float32], (32, 65536)", "Float32], (32)"),
        ("Float16], (32, 64)", "Float16], (32)"),
        ("Float16], (32, 65536)", "Float32], (32)"),
        ("Float16], (-1, 65536)", "Float16], (-1)"),
    ],
)
def test_float32_short_and_unknown_sums_are_fine(source: str, result: str) -> None:
    assert not found("NUM001", statement("ReduceSum(%para1_x, I64(1))", source, result))


def test_the_length_that_is_told_can_be_set() -> None:
    text = statement("ReduceMean(%para1_x, I64(1))", "BFloat16], (32, 64)", "BFloat16], (32)")
    assert len(found("NUM001", text, least_length=64)) == 1
    assert not found("NUM001", text, least_length=65)


# -- NUM002 --------------------------------------------------------------------------------------


def gradient(dtype: str, attributes: str, name: str = "grad_mirror_MirrorOperator") -> str:
    more = f" {{instance name: {name}}} primitive_attrs: {{{attributes}}}"
    return statement("AllReduce(%para1_x)", f"{dtype}], (64)", f"{dtype}], (64)", more)


def test_gradients_summed_in_half_precision_are_named() -> None:
    (one,) = found("NUM002", gradient("Float16", WORLD))
    assert "over 16 ranks in float16" in one.message


@pytest.mark.parametrize(
    "text",
    [
        gradient("Float32", WORLD),
        gradient("Float16", "rank_list: (0, 1)"),
        gradient("Float16", WORLD, "forward_op_123"),
        gradient("Float16", WORLD + ', op: "max"'),
    ],
    ids=["float32", "few ranks", "no gradient", "no sum"],
)
def test_other_reductions_of_gradients_are_fine(text: str) -> None:
    assert not found("NUM002", text)


# -- NUM003 --------------------------------------------------------------------------------------

DOWN = """%0(a) = PrimFunc_Cast(%para1_x, I64(42))
      : (<Tensor[Float32], (8)>, <Int64, NoShape>) -> (<Tensor[Float16], (8)>)"""
UP = """%1(b) = PrimFunc_Cast(%0, I64(43))
      : (<Tensor[Float16], (8)>, <Int64, NoShape>) -> (<Tensor[Float32], (8)>)"""


def test_a_cast_down_and_straight_up_is_named() -> None:
    (one,) = found("NUM003", DOWN, UP)
    assert (one.node, one.related[0].node) == ("%1", "%0")


def test_a_cast_whose_half_result_is_used_elsewhere_is_fine() -> None:
    more = "%2(c) = PrimFunc_ReLU(%0)\n      : (<Tensor[Float16], (8)>) -> (<Tensor[Float16], (8)>)"
    assert not found("NUM003", DOWN, UP, more)


_SOFT = """%2(p) = PrimFunc_Softmax(%0, (I64(-1)))
      : (<Tensor[Float16], (8)>, <Tuple[Int64]>) -> (<Tensor[Float16], (8)>)"""


def test_a_softmax_alone_in_half_precision_is_named() -> None:
    up = UP.replace("(%0,", "(%2,")
    (one,) = found("NUM003", DOWN, _SOFT, up)
    assert (one.node, one.related[0].node) == ("%2", "%0")
    assert "Softmax alone works in Float16" in one.message
    more = "%3(c) = PrimFunc_ReLU(%2)\n      : (<Tensor[Float16], (8)>) -> (<Tensor[Float16], (8)>)"
    assert not found("NUM003", DOWN, _SOFT, up, more)
    assert not found("NUM003", DOWN, _SOFT.replace("Softmax", "Exp"), up)


def test_a_cast_up_and_down_loses_nothing() -> None:
    up = DOWN.replace("Float32", "T").replace("Float16", "Float32").replace("T]", "Float16]")
    assert not found("NUM003", up, UP.replace("Float32", "T").replace("Float16", "Float32")
                     .replace("T]", "Float16]"))  # fmt: skip


# -- NUM004, NUM005 ------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["Softmax", "LayerNorm", "RmsNorm"])
def test_softmax_and_norms_over_a_long_axis_are_told(operator: str) -> None:
    long = statement(f"{operator}(%para1_x)", "Float16], (8, 4096)", "Float16], (8, 4096)")
    short = statement(f"{operator}(%para1_x)", "Float16], (4096, 8)", "Float16], (4096, 8)")
    wide = statement(f"{operator}(%para1_x)", "Float32], (8, 4096)", "Float32], (8, 4096)")
    (one,) = found("NUM004", long)
    assert one.message == f"{operator} over an axis of 4,096 works in float16"
    assert not found("NUM004", short)
    assert not found("NUM004", wide)


def test_a_loss_in_half_precision_is_named() -> None:
    text = statement("NLLLoss(%para1_x)", "BFloat16], (8, 10)", "BFloat16], ()")
    (one,) = found("NUM005", text)
    assert one.message == "NLLLoss is computed in bfloat16"
    assert not found("NUM005", text.replace("BFloat16", "Float32"))


# -- NUM006 --------------------------------------------------------------------------------------


def test_partial_sums_in_half_precision_are_told_when_asked_for() -> None:
    text = gradient("Float16", "rank_list: (0, 1)", "forward_op_1544267")
    (one,) = found("NUM006", text)
    assert one.message == "partial sums of 2 ranks are added in float16"
    assert not rule("NUM006").is_default
    assert not found("NUM006", text.replace("Float16", "Float32"))


# -- NUM007 --------------------------------------------------------------------------------------


def epsilon(call: str, dtype: str) -> str:
    types = f"(<Tensor[{dtype}], (8)>, <Float32, NoShape>) -> (<Tensor[{dtype}], (8)>)"
    return f"%0(a) = PrimFunc_{call}\n      : {types}"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("Add(%para1_x, F32(1e-08))", "the constant of Add 1e-08 is rounded to 0 in float16"),
        ("Add(%para1_x, F32(1e-06))", "is subnormal"),
        ("Add(%para1_x, Tensor(shape=[], dtype=Float16, value=1e-06))", "is subnormal"),
        ("LayerNorm(%para1_x, F32(1e-12))", "LayerNorm 1e-12 is rounded to 0"),
    ],
)
def test_an_epsilon_that_float16_cannot_hold_is_named(call: str, words: str) -> None:
    text = epsilon(call, "Float16")
    (one,) = [*found("NUM007", text), *found("NUM008", text)]
    assert words in one.message


ZERO = "Tensor(shape=[], dtype=Float16, value=0)"


@pytest.mark.parametrize(
    ("guard", "reader", "told"),
    [
        ("Add", "Rsqrt(%0)", True),
        ("Maximum", "Rsqrt(%0)", True),
        ("Maximum", "Log(%0)", True),
        ("Add", "RealDiv(%para1_x, %0)", True),
        ("Add", "RealDiv(%0, %para1_x)", False),
        ("Maximum", "ReLU(%0)", False),
        ("Add", "MatMul(%0, %para1_x)", False),
    ],
)
def test_a_guard_that_became_zero(guard: str, reader: str, told: bool) -> None:
    half = "<Tensor[Float16], (8)>"
    text = dump_of(
        f"%0(a) = PrimFunc_{guard}(%para1_x, {ZERO})",
        f"      : ({half}, <Tensor[Float16], ()>) -> ({half})",
        f"%1(b) = PrimFunc_{reader}",
        f"      : ({half}, {half}) -> ({half})",
    )
    assert bool(found("NUM008", text)) == told
    assert not found("NUM008", text.replace("Float16", "BFloat16").replace("=0)", "=1e-8)"))


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        ("Add(%para1_x, F32(1e-08))", "Float32"),
        ("Add(%para1_x, F32(1e-08))", "BFloat16"),
        ("Add(%para1_x, F32(0.001))", "Float16"),
        ("LayerNorm(%para1_x, F32(1e-05))", "Float16"),
    ],
)
def test_an_epsilon_that_the_type_can_hold_is_fine(call: str, dtype: str) -> None:
    assert not found("NUM007", epsilon(call, dtype))
    assert not found("NUM008", epsilon(call, dtype))


@pytest.mark.parametrize("op", ["Add", "LayerNorm"])
@pytest.mark.parametrize("power", range(-27, -8))
@pytest.mark.parametrize("factor", [1.0, 1 + 2.0**-20])
def test_an_epsilon_is_told_as_float16_itself_rounds_it(op: str, power: int, factor: float) -> None:
    """Powers of two and what is a little more: zero, subnormal, or held, as numpy has it."""
    value = factor * 2.0**power
    half = float(np.float16(value))
    held = half >= float(np.finfo(np.float16).smallest_normal)
    messages = [
        item.message
        for code in ("NUM007", "NUM008")
        for item in found(code, epsilon(f"{op}(%para1_x, F32({value!r}))", "Float16"))
    ]
    if half == 0:
        assert len(messages) == 1
        assert "is rounded to 0" in messages[0]
    elif not held and op == "Add":
        assert len(messages) == 1
        assert "is subnormal" in messages[0]
    else:
        assert not messages


def test_an_epsilon_attribute_counts_too() -> None:
    text = dump_of(
        "%0(a) = PrimFunc_BatchNorm(%para1_x) primitive_attrs: {epsilon: F32(1e-10)}",
        "      : (<Tensor[Float16], (8)>) -> (<Tensor[Float16], (8)>)",
    )
    assert the_one(lint(rule("NUM008"), compilation({"validate": text}))).op == "BatchNorm"

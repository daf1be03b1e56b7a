"""Operators without a rule: their layouts are looked up by the place of an operand."""

from __future__ import annotations

import pytest

import irtool
from irtool.operators import measured
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult

HEAD = """\
# Total params: 2
# Params:
%para1_inputs0: <Tensor[Float32], (8, 16, 64)> : [8, 16, 64]
%para2_w: <Ref[Tensor[Float32]], (64), ref_key=w, is_parameter>  :  has_default

subgraph @1_net() {
  %0(x) = _VirtualDataset(%para1_inputs0) {instance name: _virtual_dataset}
      : (<Tensor[Float32], (8, 16, 64)>) -> (<Tuple[Tensor[Float32]], TupleShape((8, 16, 64))>)
  %1(x) = TupleGetItem(%0, I64(0))
      : (<Tuple[Tensor[Float32]], TupleShape((8, 16, 64))>, <Int64, NoShape>) -> (<Tensor[Float32], (8, 16, 64)>)
"""  # noqa: E501  (lines as MindSpore prints them)

NORM = """\
  %2(y) = PrimFunc_LayerNormExt({operands}, F32(1e-05))
      : (<Tensor[Float32], (8, 16, 64)>, <Tuple[Int64], TupleShape(NoShape)>, <Tensor[Float32], (64)>, <Tensor[Float32], (64)>, <Float32, NoShape>) -> (<Tuple[Tensor[Float32]*3], TupleShape((8, 16, 64), (8, 16, 1), (8, 16, 1))>)
  Return(%2)
      : (<Tuple[Tensor[Float32]*3], TupleShape((8, 16, 64), (8, 16, 1), (8, 16, 1))>)
}
"""  # noqa: E501  (lines as MindSpore prints them)

CONSTANT = "Tensor(shape=[64], dtype=Float32, value=[...])"


@pytest.fixture(autouse=True)
def _whatever_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here operators are made up that nobody can have measured."""
    monkeypatch.setattr(measured, "ENFORCED", False)


def report_of(text: str, devices: int = 8) -> CheckResult:
    return check(irtool.loads(HEAD + text), ParallelContext(devices=devices, full_batch=True))


def normalised(operands: str) -> CheckResult:
    return report_of(NORM.replace("{operands}", operands))


def reasons(report: CheckResult) -> list[tuple[str, str]]:
    return [(item.check, item.op) for item in report.findings if item.severity == "error"]


def test_a_parameter_behind_the_last_layout_is_refused() -> None:
    report = normalised(f"%1, (I64(64)), {CONSTANT}, %para2_w")
    assert report.accepted is False
    assert reasons(report) == [("parallel_preprocessor.cc:SetParallelShape", "LayerNormExt")]


def test_a_constant_behind_the_last_layout_is_refused() -> None:
    report = normalised(f"%1, (I64(64)), {CONSTANT}, {CONSTANT}")
    assert reasons(report) == [("parallel_processer.cc:CreateSliceForTensor", "LayerNormExt")]


def test_a_parameter_behind_a_constant_gets_the_next_layout() -> None:
    report = normalised(f"%1, (I64(64)), %para2_w, {CONSTANT}")
    (weight,) = report.parameters
    assert weight.slice == (64,)
    assert "the parameter w" not in " ".join(item.message for item in report.findings)


def test_nothing_is_inserted_before_a_result_behind_the_last_layout() -> None:
    computed = NORM.replace("%2(y)", "%3(y)").replace("Return(%2)", "Return(%3)")
    relu = """\
  %2(r) = PrimFunc_ReLU(%para2_w)
      : (<Ref[Tensor[Float32]], (64), ref_key=w, is_parameter>) -> (<Tensor[Float32], (64)>)
"""
    report = report_of(relu + computed.replace("{operands}", f"%1, (I64(64)), {CONSTANT}, %2"))
    assert report.accepted is None
    assert "comes as its producer leaves it" in report.findings[0].message


def test_side_effects_have_no_layout_to_stand_alone_in() -> None:
    report = report_of("""\
  %2(u) = UpdateState(UMonad[U], %1)
      : (<UMonad, NoShape>, <Tensor[Float32], (8, 16, 64)>) -> (<UMonad, NoShape>)
  %3(y) = PrimFunc_TransposeView(%para2_w, (I64(0)), %2)
      : (<Ref[Tensor[Float32]], (1), ref_key=w>, <Tuple[Int64], TupleShape(NoShape)>, <UMonad, NoShape>) -> (<Tensor[Float32], (1)>)
  Return(%3)
      : (<Tensor[Float32], (1)>)
}
""")  # noqa: E501  (lines as MindSpore prints them)
    assert reasons(report) == [("stand_alone_info.cc:InferTensorInfo", "TransposeView")]


def test_what_shows_in_a_whole_dump_alone_is_not_said_of_half_a_dump() -> None:
    """Whether a gradient is taken of it may stand in the half that is missing."""
    report = report_of("""\
  %2(u) = UpdateState(UMonad[U], %1)
      : (<UMonad, NoShape>, <Tensor[Float32], (8, 16, 64)>) -> (<UMonad, NoShape>)
  %3(y) = PrimFunc_TransposeView(%para2_w, (I64(0)), %2)
      : (<Ref[Tensor[Float32]], (1), ref_key=w>, <Tuple[Int64], TupleShape(NoShape)>, <UMonad, NoShape>) -> (<Tensor[Float32], (1)>)
  Return(%3)
      : (<Tensor[Float32], (1)>)
""")  # noqa: E501  (lines as MindSpore prints them)
    assert reasons(report) == []


def test_tuples_of_results_are_for_operators_that_are_known_to_take_them() -> None:
    report = report_of("""\
  %2(t) = MakeTuple(%1, %1)
      : (<Tensor[Float32], (8, 16, 64)>, <Tensor[Float32], (8, 16, 64)>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 16, 64), (8, 16, 64))>)
  %3(y) = Einsum(%2) primitive_attrs: {equation: "bsh,bth->bst"}
      : (<Tuple[Tensor[Float32]*2], TupleShape((8, 16, 64), (8, 16, 64))>) -> (<Tensor[Float32], (8, 16, 16)>)
  Return(%3)
      : (<Tensor[Float32], (8, 16, 16)>)
}
""")  # noqa: E501  (lines as MindSpore prints them)
    assert reasons(report) == [("parallel_processer.cc:Redistribution", "Einsum")]


def test_a_layout_of_a_tensor_of_another_rank_is_no_reason_to_fall() -> None:
    report = report_of("""\
  %2(i) = PrimFunc_ReLU(%para2_w)
      : (<Ref[Tensor[Float32]], (64), ref_key=w, is_parameter>) -> (<Tensor[Float32], (64)>)
  %3(y) = PrimFunc_NoSuchOperator(%1, I64(1), %2, %1)
      : (<Tensor[Float32], (8, 16, 64)>, <Int64, NoShape>, <Tensor[Float32], (64)>, <Tensor[Float32], (8, 16, 64)>) -> (<Tensor[Float32], (8, 16, 64)>)
  Return(%3)
      : (<Tensor[Float32], (8, 16, 64)>)
}
""")  # noqa: E501  (lines as MindSpore prints them)
    assert report.accepted is not True


def test_an_operand_that_was_left_out_takes_no_place() -> None:
    report = report_of("""\
  %2(y) = PrimFunc_NoSuchOperator(%1, None, %para2_w)
      : (<Tensor[Float32], (8, 16, 64)>, <None, NoShape>, <Ref[Tensor[Float32]], (64), ref_key=w, is_parameter>) -> (<Tensor[Float32], (8, 16, 64)>)
  Return(%2)
      : (<Tensor[Float32], (8, 16, 64)>)
}
""")  # noqa: E501  (lines as MindSpore prints them)
    assert report.accepted
    assert report.parameters[0].slice == (64,)

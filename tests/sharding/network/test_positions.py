"""Operators without a rule: their layouts are looked up by the place of an operand."""

from __future__ import annotations

import pytest

import irtool
from irtool.operators import measured
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, constant, tensor

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


def beside(
    op: str, rows: int, other: int, *, computed: bool = True, attributes: str = ""
) -> CheckResult:
    """An operator without a rule, its first operand split, another one beside it.

    Args:
        op: its name.
        rows: length of the first operand, a result.
        other: length of the second one.
        computed: the second one is a result, else a weight.
        attributes: of the operator.
    """
    net = Small()
    x = net.input("x", (rows, 4))
    w = net.weight("w", (other, 4))
    main = net.graph("main")
    first = main.op("ReLU", x, (rows, 4))
    second = main.op("ReLU", w, (other, 4)) if computed else w
    main.result = main.add(
        f"PrimFunc_{op}", [first, second], tensor((rows, 4)), attributes=attributes
    )
    return net.checked()


def messages(report: CheckResult) -> str:
    """All that is said of a network."""
    return " ".join(item.message for item in report.findings)


def test_operands_that_must_fit_a_split_one_are_refused() -> None:
    report = beside("LogAddExp", 16, 16)
    assert report.accepted is False
    (error,) = [item for item in report.findings if item.severity == "error"]
    assert error.code == "operands-differ"
    assert "operand 0 is split into 8, operand 1 of the same length stays whole" in error.message
    assert beside("LogAddExp", 16, 16, computed=False).accepted is False


def test_one_row_a_device_may_be_broadcast() -> None:
    report = beside("LogAddExp", 8, 8)
    assert report.accepted is None
    assert "or broadcast its one row to" in messages(report)


@pytest.mark.parametrize("op", ["LogAddExp", "NoSuchOperator"])
def test_operands_of_another_length_do_not_matter(op: str) -> None:
    report = beside(op, 16, 1)
    assert report.accepted
    assert "of the same length" not in messages(report)


def test_what_does_not_fit_is_only_noted_where_nobody_knows_the_operator() -> None:
    report = beside("NoSuchOperator", 16, 16)
    assert report.accepted
    assert "may refuse, or compute something else from" in messages(report)
    weight = beside("NoSuchOperator", 16, 16, computed=False)
    assert weight.accepted
    assert "of the same length" not in messages(weight)


def test_an_operand_that_can_not_be_split_leaves_the_others_as_long() -> None:
    report = beside("LogAddExp", 9, 9)
    assert report.accepted
    assert "of the same length" not in messages(report)


def test_as_many_results_as_rows_are_fewer_where_rows_are_split() -> None:
    assert "fewer tensors than its users ask for" in messages(beside("Unstack", 16, 16))
    along = beside("Unstack", 16, 16, attributes="axis: I64(0)")
    assert along.accepted is None
    other = beside("Unstack", 16, 16, attributes="axis: I64(1)")
    assert "fewer tensors" not in messages(other)


def behind_the_last(strategy: tuple[int, ...]) -> CheckResult:
    """An operator without a rule: its second tensor stands behind as many constants as layouts."""
    net = Small()
    x, w = net.input("x", (16, 4)), net.weight("w", (16, 4))
    main = net.graph("main")
    first = main.op("ReLU", x, (16, 4))
    second = main.op("ReLU", w, (16, 4), strategy=[strategy])
    operands = [first, constant(1), second]
    main.result = main.add("PrimFunc_NoSuchOperator", operands, tensor((16, 4)))
    return net.checked()


def test_a_result_behind_the_last_layout_does_no_harm_where_it_is_whole() -> None:
    assert "comes as its producer leaves it" not in messages(behind_the_last((1, 1)))
    assert "comes as its producer leaves it" in messages(behind_the_last((8, 1)))
    assert "comes as its producer leaves it" in messages(behind_the_last((1, 2)))


def test_one_sharded_result_in_a_tuple_is_enough() -> None:
    report = report_of("""\
  %2(t) = MakeTuple(%1, %para2_w)
      : (<Tensor[Float32], (8, 16, 64)>, <Ref[Tensor[Float32]], (64), ref_key=w, is_parameter>) -> (<Tuple[Tensor[Float32]*2], TupleShape((8, 16, 64), (64))>)
  %3(y) = Einsum(%2) primitive_attrs: {equation: "bsh,h->bs"}
      : (<Tuple[Tensor[Float32]*2], TupleShape((8, 16, 64), (64))>) -> (<Tensor[Float32], (8, 16)>)
  Return(%3)
      : (<Tensor[Float32], (8, 16)>)
}
""")  # noqa: E501  (lines as MindSpore prints them)
    assert reasons(report) == [("parallel_processer.cc:Redistribution", "Einsum")]

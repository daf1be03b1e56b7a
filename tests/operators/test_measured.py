"""What was measured is data: operator, kind of strategy, inputs, and the branch of each flag."""

from __future__ import annotations

import pytest

from irtool.operators import measured
from irtool.operators.call import Operand, OperatorCall, constant, tensor
from irtool.operators.judgement import Context
from irtool.operators.measured import form_of, why_not_measured
from irtool.operators.table import declare, forget_declared
from irtool.sharding.judge import judge


def call(op: str, *inputs: Operand, **attributes: object) -> OperatorCall:
    return OperatorCall(op, inputs, (tensor(16, 16),), attributes)


@pytest.mark.parametrize(
    ("asked", "form"),
    [
        (call("ReLU", tensor(16, 32)), "t"),
        (call("ReLU", tensor(-1, 32)), "d"),
        (call("AddN", Operand(items=(tensor(4), tensor(4)))), "(t)"),
        (
            call("MatMul", tensor(16, 8), tensor(16, 8), constant(False), constant(True)),
            "t t transpose_a=False transpose_b=True",
        ),
        (
            call("MatMul", tensor(16, 8), tensor(16, 8), transpose_b=True),
            "t t transpose_a=False transpose_b=True",
        ),
        (call("Softmax", tensor(16, 8), constant(-1)), "t"),
        (call("Softmax", tensor(16, 8), tensor()), "t axis=tensor"),
    ],
)
def test_sizes_and_ranks_are_one_form_and_flags_are_several(asked: OperatorCall, form: str) -> None:
    assert form_of(asked) == form


def test_what_was_measured_is_known() -> None:
    assert why_not_measured(call("ReLU", tensor(16, 32)), "tuple") == ""
    assert why_not_measured(call("ReLU", tensor(4, 4, 4, 4)), "layout") == ""


def test_what_was_not_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = {"ReLU": {"tuple": frozenset({"t"})}}
    monkeypatch.setattr(measured, "_known", lambda op: forms.get(op, {}))
    assert why_not_measured(call("ReLU", tensor(4)), "tuple") == ""
    assert why_not_measured(call("Tanh", tensor(4)), "tuple") == "Tanh was never measured"
    assert why_not_measured(call("ReLU", tensor(4)), "layout") == (
        "ReLU was never measured with layouts"
    )
    assert why_not_measured(call("ReLU", tensor(-1)), "tuple") == (
        "ReLU was measured with a strategy, but not as (d)"
    )


def test_layouts_are_refused_by_a_class_whatever_the_call() -> None:
    """StridedSlice takes none, so one form of it tells of all; what takes them is asked by form."""
    ends = [tensor(2), constant((1, 1)), constant((0, 0))]
    cut = call("StridedSlice", tensor(-1, 32), constant((0, 0)), *ends)
    for kind in ("layout", "out_layout"):
        assert why_not_measured(cut, kind) == ""
    assert "but not as" in why_not_measured(call("TruncateDiv", tensor(-1, 8), tensor(8)), "layout")
    assert "never measured" in why_not_measured(call("NoSuchThing", tensor(4)), "layout")


def test_where_only_what_was_measured_counts_the_rest_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms = {"ReLU": {"tuple": frozenset({"t"})}}
    monkeypatch.setattr(measured, "_known", lambda op: forms.get(op, {}))
    asked, other = call("ReLU", tensor(16, 16)), call("Tanh", tensor(16, 16))
    context = Context(tuple(range(8)), 8)
    assert judge(other, ((2, 4),), context).verdict == "legal"
    context = Context(tuple(range(8)), 8, measured_only=True)
    assert judge(asked, ((2, 4),), context).verdict == "legal"
    assert judge(asked, ((3, 4),), context).verdict == "illegal"
    unknown = judge(other, ((2, 4),), context)
    assert unknown.verdict == "unknown"
    assert unknown.reasons[0].message == "Tanh was never measured"
    assert judge(asked, None, context).verdict == "unknown"


def test_what_a_user_declares_is_not_held_against_the_records() -> None:
    declare("NoSuchThing: [*x] -> [*x]")
    assert why_not_measured(call("NoSuchThing", tensor(4)), "tuple") == ""
    forget_declared()

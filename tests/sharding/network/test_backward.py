"""Gradients that MindSpore can't make of an operator of which only the first operand is split.

Source: compilations of Addmm with MindSpore 2.7.0, recorded in ``benchmarks/record_operators``.
"""

from __future__ import annotations

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, constant, tensor


def addmm(rows: int, devices: int, *, trains: bool = True) -> CheckResult:
    """The gradient of ``x + x @ w``, of a weight, for rows that all devices share."""
    small = Small()
    x, weight = small.input("x", (rows, 8)), small.weight("w", (8, 8))
    inner = small.graph("inner")
    given = inner.parameter(tensor((rows, 8)))
    numbers = [constant(1), constant(1)]
    inner.result = inner.add("PrimFunc_Addmm", [given, given, weight, *numbers], tensor((rows, 8)))
    body = small.graph("main")
    if trains:
        (body.result,) = body.gradients(inner, [x], [weight])
    else:
        body.result = body.add("call @inner", [x], tensor((rows, 8)))
    return small.checked(device_num=devices)


def refusals(report: CheckResult) -> list[str]:
    return [item.message for item in report.findings if item.code == "gradient"]


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_its_gradient_is_refused_where_the_first_operand_is_split(devices: int) -> None:
    (message,) = refusals(addmm(16, devices))
    assert f"operand 0 is split into {devices} and the others are not" in message
    assert message.endswith("refuses")


@pytest.mark.parametrize(
    ("rows", "devices", "trains"),
    [
        pytest.param(16, 1, True, id="one device"),
        pytest.param(12, 8, True, id="rows that do not divide: it stands alone"),
        pytest.param(16, 8, False, id="inference"),
    ],
)
def test_where_nothing_is_split_or_trained_it_is_taken(
    rows: int, devices: int, trains: bool
) -> None:
    assert refusals(addmm(rows, devices, trains=trains)) == []

"""Layouts that a user gives: which of them are none, before any operator is asked."""

from __future__ import annotations

import pytest

from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, tensor

SQUARE = (64, 64)


def layout(matrix: str, entries: str, interleaved: bool = False) -> str:
    """A layout as a dump prints it."""
    return (
        f"{{'device_matrix': ({matrix}), 'tensor_map': ({entries}), "
        f"'interleaved_parallel': {str(interleaved).lower()}}}"
    )


def relu(*layouts: str, out: str = "") -> CheckResult:
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    given = f"in_layout: ({', '.join(layouts)})" + (f", out_layout: ({out})" if out else "")
    main.result = main.add("PrimFunc_ReLU", [x], tensor(SQUARE), attributes=given)
    return net.checked()


def refusal(report: CheckResult) -> str:
    """Why MindSpore refuses the network for its layouts; "": it does not."""
    found = [item.message for item in report.findings if item.code == "layout"]
    assert (report.accepted is False) is bool(found), report.findings
    return found[0] if found else ""


ROWS = layout("8", "0, -1")


def test_a_layout_of_all_devices_is_one() -> None:
    report = relu(ROWS)
    assert refusal(report) == ""
    assert report.operators[0].input_slices == ((8, 64),)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (layout("4", "0, -1"), "the device matrix (4,) is not that of 8 devices"),
        (layout("4, 4", "0, -1"), "the device matrix (4, 4) is not that of 8 devices"),
        (layout("4, 2", "1, 0"), ""),
        (layout("8", "0"), "the tensor map (0,) is not one of the shape (64, 64)"),
        (layout("8", "0, -1, -1"), "the tensor map (0, -1, -1) is not one of the shape (64, 64)"),
        (layout("4, 2", "2, -1"), "the tensor map (2, -1) has axes that the matrix lacks"),
        (layout("4, 2", "-1, (1, 2)"), "the tensor map (-1, (1, 2)) has axes that the matrix"),
        (layout("4, 2", "(1, 0), -1"), ""),
    ],
)
def test_what_is_no_layout_is_refused(given: str, why: str) -> None:
    found = refusal(relu(given))
    assert found == (f"in_layout 0: {why}" if why else "") or found.startswith(
        f"in_layout 0: {why}"
    )


@pytest.mark.parametrize(("matrix", "is_one"), [("8, 2", True), ("4, 2", False)])
def test_the_interleaved_axis_is_none_of_devices(matrix: str, is_one: bool) -> None:
    found = refusal(relu(layout(matrix, "1, -1", interleaved=True)))
    assert ("is not that of 8 devices" in found) is not is_one


def test_each_tensor_needs_one() -> None:
    assert refusal(relu(ROWS, ROWS)) == "in_layout has 2 layouts for 1 tensors"


def test_the_layout_of_a_result_is_looked_at_too() -> None:
    assert refusal(relu(ROWS, out=layout("4", "0, -1"))).startswith("out_layout 0: the device")


def test_the_same_axis_can_not_split_two_dimensions() -> None:
    assert refusal(relu(layout("4, 2", "1, 1"))).startswith("in_layout 0: ")


def test_what_does_not_divide_is_refused() -> None:
    net = Small()
    x = net.input("x", (12, 64))
    main = net.graph("main")
    main.result = main.add(
        "PrimFunc_ReLU", [x], tensor((12, 64)), attributes=f"in_layout: ({ROWS})"
    )
    assert net.checked().accepted is False

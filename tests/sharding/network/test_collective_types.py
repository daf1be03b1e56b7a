"""Numbers that collectives do not take: the network compiles, and fails where they are launched."""

from __future__ import annotations

import pytest

from irtool.sharding.network.collective_types import takes_type
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Small, constant, tensor

SQUARE = (64, 64)


def product(dtype: str, strategy: tuple[tuple[int, ...], ...]) -> CheckResult:
    net = Small()
    x, w = net.input("x", SQUARE, dtype), net.input("w", SQUARE, dtype)
    main = net.graph("main")
    turns = [constant(False), constant(False)]
    main.result = main.add("PrimFunc_MatMul", [x, w, *turns], tensor(SQUARE, dtype), user=strategy)
    return net.checked()


def refused(report: CheckResult, what: str = "add up") -> list[str]:
    found = [item.message for item in report.findings if item.code == "collective-type"]
    return [message for message in found if what in message]


@pytest.mark.parametrize(
    ("dtype", "taken"),
    [("Float32", True), ("Float16", True), ("BFloat16", True), ("Int32", True), ("Int8", True),
     ("Complex64", True), ("Float64", False), ("Int64", False), ("UInt8", False),
     ("Complex128", False)],
)  # fmt: skip
def test_sums_over_devices_take_some_types(dtype: str, taken: bool) -> None:
    found = refused(product(dtype, ((1, 8), (8, 1))))
    assert found == ([] if taken else [f"AllReduce would add up result 0, but it takes no {dtype}"])


def test_what_is_not_summed_may_be_of_any_type() -> None:
    assert refused(product("Float64", ((8, 1), (1, 1)))) == []


def two_layouts(dtype: str) -> CheckResult:
    """An operator whose result is wanted whole."""
    net = Small()
    x = net.input("x", SQUARE, dtype)
    main = net.graph("main")
    first = main.add("PrimFunc_ReLU", [x], tensor(SQUARE, dtype), user=((8, 1),))
    main.result = main.add("PrimFunc_Abs", [first], tensor(SQUARE, dtype), user=((1, 1),))
    return net.checked()


@pytest.mark.parametrize(
    ("dtype", "taken"),
    [("Float32", True), ("Float16", True), ("BFloat16", True), ("Complex64", True),
     ("Int8", True), ("Int32", True), ("Int64", True), ("UInt8", True), ("Float64", False)],
)  # fmt: skip
def test_gathers_take_some_types(dtype: str, taken: bool) -> None:
    assert bool(refused(two_layouts(dtype), "AllGather")) is not taken


def test_of_other_collectives_none_is_known_to_be_refused() -> None:
    assert takes_type("AlltoAll", "Float64")
    assert takes_type("AllReduce", None)
    assert not takes_type("AllReduce", "Float64")


@pytest.mark.parametrize("item", [0, 1])
def test_of_several_results_only_those_count_that_are_read(item: int) -> None:
    """The place of the largest along an axis, and the largest: places of 64 bits are refused."""
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    pair = "<Tuple[Tensor[Int64],Tensor[Float32]], TupleShape((64), (64))>"
    both = main.add(
        "PrimFunc_ArgMaxWithValue", [x, constant(1), constant(False)], pair, user=((1, 8),)
    )
    main.result = main.add(
        "TupleGetItem", [both, constant(item)], tensor((64,), ("Int64", "Float32")[item])
    )
    report = net.checked()
    assert bool(refused(report)) is (item == 0)
    if item == 1:
        assert [(each.op, each.count) for each in report.communications] == [("AllReduce", 1)]


@pytest.mark.parametrize("op", ["ReduceAll", "ReduceAny"])
@pytest.mark.parametrize(
    ("dtype", "taken"), [("Bool", True), ("Float32", True), ("Float64", False), ("UInt8", False)]
)
def test_truth_values_are_summed_up_as_numbers_and_others_as_they_are(
    op: str, dtype: str, taken: bool
) -> None:
    net = Small()
    x = net.input("x", SQUARE, dtype)
    main = net.graph("main")
    operands = [x, constant((1,)), constant(False)]
    main.result = main.add(f"PrimFunc_{op}", operands, tensor((64,), dtype), user=((1, 8),))
    assert bool(refused(net.checked())) is not taken


@pytest.mark.parametrize(
    ("dtype", "summed", "gathered"),
    [
        ("Float16", True, True),
        ("Float32", True, True),
        ("BFloat16", True, True),
        ("Complex64", True, True),
        ("Int8", True, True),
        ("Int32", True, True),
        ("Int64", False, True),
        ("UInt8", False, True),
        ("Int16", False, False),
        ("UInt16", False, False),
        ("Bool", False, False),
        ("Float64", False, False),
        ("Complex128", False, False),
        (None, True, True),
    ],
)
def test_the_types_that_are_taken(dtype: str | None, summed: bool, gathered: bool) -> None:
    assert takes_type("AllReduce", dtype) is summed
    assert takes_type("AllGather", dtype) is gathered

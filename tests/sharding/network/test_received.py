"""What comes from another pipeline stage: how it lies, as far as the strategy behind it tells."""

from __future__ import annotations

import pytest

from irtool.sharding.network.received import NOT_TOLD
from irtool.sharding.network.report import CheckResult
from tests.sharding.network.small import Row, Shape, Small, Value, edge, tensor


def received(
    strategy: list[Row] | None,
    part: str,
    wanted: Row = (1, 1),
    shape: Shape = (64, 64),
    note: str = "",
) -> CheckResult:
    """A Receive, and a ReLU behind it, on the second of two stages with eight devices each."""
    net = Small()
    x = net.input("x", shape)
    main = net.graph("main")
    attributes = f"{part}src_rank: I64(0), sr_tag: I64(0)"
    got = main.add(
        "Receive", [x], tensor(shape), strategy=strategy, attributes=attributes, note=note
    )
    main.result = main.op("ReLU", got, shape, [wanted])
    return net.checked(device_num=16, pipeline_stages=2, global_rank=9)


def splits(report: CheckResult) -> tuple[int, ...] | None:
    """How what came lies; None: that is not known, and said so."""
    item = edge(report, "Receive", "ReLU")
    if item.source is None:
        assert item.operators is None
        assert item.why == NOT_TOLD
        return None
    return item.source.splits


# -- what a sum, or another operator of each element, leaves ---------------------------------------


@pytest.mark.parametrize(
    ("strategy", "part", "expected"),
    [
        ([(8, 1)], "8, 64", (8, 1)),
        ([(2, 4), (2, 4)], "32, 16", (2, 4)),
        ([(2, 2), (2,)], "32, 32", (2, 2)),  # a bias lies along the last dimension
        ([(2, 2), (1,)], "32, 32", (2, 2)),
        ([(2, 2), (1, 2)], "32, 32", (2, 2)),  # repeated along the first
        ([(2, 2), ()], "32, 32", (2, 2)),  # a number has no row to cut
        ([(2, 1), (2,)], "32, 64", None),  # a bias in parts beside a last dimension that is whole
        ([(4, 2), (2, 2)], "16, 32", None),
        ([(1, 1)], "8, 64", None),  # no operand is cut as what came is
        ([(2, 2, 1)], "32, 32", None),  # of a tensor with other dimensions
    ],
)
def test_an_operator_of_each_element_leaves_its_result_as_its_largest_operand_lies(
    strategy: list[Row], part: str, expected: tuple[int, ...] | None
) -> None:
    assert splits(received(strategy, f"shape: [{part}], ")) == expected


# -- what a product leaves -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "part", "expected"),
    [
        ([(2, 4), (4, 1)], "32, 64", (2, 1)),
        ([(4, 2), (4, 1)], "32, 64", (2, 1)),  # the first one transposed
        ([(2, 4), (1, 4)], "32, 64", (2, 1)),  # the second one
        ([(4, 2), (1, 4)], "32, 64", (2, 1)),  # both
        ([(1, 2), (2, 4)], "64, 16", (1, 4)),
        ([(2, 4), (2, 1)], "32, 64", None),  # they don't meet: 4 parts and 2
        ([(2, 4), (4, 2)], "32, 64", None),  # it would be cut into two columns
        ([(4, 1), (1, 1)], "32, 64", None),  # and into four rows
    ],
)
def test_a_product_leaves_what_is_not_summed_up_cut_as_in_its_operands(
    strategy: list[Row], part: str, expected: tuple[int, ...] | None
) -> None:
    assert splits(received(strategy, f"shape: [{part}], ", (4, 2))) == expected


@pytest.mark.parametrize(
    ("second", "expected"), [((2, 2, 1), (2, 2, 1)), ((1, 2, 1), None), ((2, 1), None)]
)
def test_products_of_a_batch_are_cut_alike_along_it(
    second: Row, expected: tuple[int, ...] | None
) -> None:
    report = received([(2, 2, 2), second], "shape: [2, 32, 64], ", (1, 1, 1), (4, 64, 64))
    assert splits(report) == expected


@pytest.mark.parametrize(
    ("strategy", "ranks"),
    [([(1, 2), (2, 4)], (8, 9, 10, 11)), ([(1, 4), (1, 4)], (9, 11, 13, 15))],
)
def test_what_is_summed_up_stands_before_the_columns_and_copies_behind_them(
    strategy: list[Row], ranks: tuple[int, ...]
) -> None:
    """Eight devices hold a row of four slices each: neighbours after a product, others apart."""
    item = edge(received(strategy, "shape: [64, 16], "), "Receive", "ReLU")
    assert [step.ranks for step in item.operators or () if step.op == "AllGather"] == [ranks]


# -- what is not told ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        "",  # no slice at all
        "shape: [8], ",
        "shape: [8, 64, 1], ",
        "shape: [7, 64], ",  # 64 rows don't divide by it
        "shape: [-1, 64], ",
    ],
)
def test_without_a_slice_that_fits_the_tensor_nothing_is_known(part: str) -> None:
    assert splits(received([(8, 1)], part)) is None


def test_without_a_strategy_nothing_is_known() -> None:
    assert splits(received(None, "shape: [8, 64], ")) is None


@pytest.mark.parametrize("note", [" {out_strategy: ((8, 1))}", " {in_strategy: (8, 1)}"])
def test_a_strategy_of_the_result_or_in_no_form_tells_nothing(note: str) -> None:
    assert splits(received(None, "shape: [8, 64], ", note=note)) is None


def test_more_parts_than_devices_tell_nothing() -> None:
    assert splits(received([(16, 1)], "shape: [4, 64], ")) is None


# -- what was not received at all ------------------------------------------------------------------


def test_with_the_sender_in_the_same_dump_it_lies_as_the_sender_left_it() -> None:
    net = Small()
    x = net.input("x", (64, 64))
    main = net.graph("main")
    sent = main.add("Send", [main.op("Exp", x, (64, 64), [(2, 4)])], tensor((64, 64)))
    attributes = "shape: [8, 64], src_rank: I64(0), sr_tag: I64(0)"
    got = main.add("Receive", [sent], tensor((64, 64)), [(8, 1)], attributes=attributes)
    main.result = main.op("ReLU", got, (64, 64), [(1, 1)])
    report = net.checked(device_num=16, pipeline_stages=2, global_rank=9)
    assert not [item for item in report.redistributions if item.producer.op == "Receive"]


@pytest.mark.parametrize("is_weight", [True, False])
def test_behind_a_weight_that_is_handed_over_nothing_is_redistributed(is_weight: bool) -> None:
    """It is cut already where the parallel pass begins, as the first operator wanted it."""
    net = Small()
    x = net.input("x", (64, 64))
    main = net.graph("main")
    mark = " cnode_primal_attrs: {pipeline_param: Bool(1)}" if is_weight else ""
    attributes = "shape: [8, 64], src_rank: I64(0), sr_tag: I64(0)"
    zero = Value("Tensor(shape=[], dtype=Float32, value=0)", "<Tensor[Float32], (), value=...>")
    got = main.add("Receive", [zero], tensor((64, 64)), [(8, 1)], attributes=attributes, note=mark)
    main.result = main.product(x, got, (64, 64), [(1, 8), (8, 1)])
    report = net.checked(device_num=16, pipeline_stages=2, global_rank=9)
    behind = [item for item in report.redistributions if item.producer.op == "Receive"]
    assert bool(behind) is not is_weight

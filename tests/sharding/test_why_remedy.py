"""What would remove a collective: a legal change of strategy, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from irtool.ir.graph import Node
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why import Cause
from irtool.sharding.why.layouts import with_layouts
from irtool.sharding.why.remedy import with_remedy
from irtool.sharding.why.walk import surroundings
from tests.sharding.network.small import Row, Shape, Small, constant, tensor

SQUARE = (64, 64)


def node_of(report: CheckResult, op: str) -> Node:
    return next(item.node for item in report.operators if item.op == op)


def remedy(net: Small, cause: Cause, report: CheckResult | None) -> str:
    around = surroundings(net.dump(), net.dump())
    return with_remedy(around, cause, report).remedy


# -- partial sums ----------------------------------------------------------------------------------


def summed(
    strategy: Sequence[Row],
    rows: int = 64,
    columns: int = 64,
    ranks: tuple[int, ...] = (0, 1, 2, 3),
    **options: object,
) -> str:
    """The remedy of the sum of a product cut so, in which these ranks take part."""
    net = Small()
    x, w = net.input("x", (rows, 64)), net.input("w", (64, columns))
    main = net.graph("main")
    main.result = main.product(x, w, (rows, columns), strategy)
    report = net.checked(**options)
    node = node_of(report, "MatMul")
    cause = Cause(node, "forward reduction", "", operator=node, begin=node, ranks=ranks)
    return remedy(net, cause, report)


def test_what_cut_the_sum_cuts_the_rows_instead() -> None:
    assert summed(((2, 4), (4, 1))) == (
        "give MatMul %0 the strategy ((8, 1), (1, 1)) instead of ((2, 4), (4, 1)): "
        "then nothing has to be summed up"
    )


def test_or_the_columns_where_there_are_too_few_rows() -> None:
    assert "the strategy ((2, 1), (1, 4)) instead of" in summed(((2, 4), (4, 1)), rows=4)


def test_or_nothing_where_there_are_too_few_columns_as_well() -> None:
    assert summed(((2, 4), (4, 1)), rows=4, columns=2) == (
        "MatMul %0 has no legal strategy without it that uses as many devices "
        "(now ((2, 4), (4, 1)))"
    )


@pytest.mark.parametrize("ranks", [(), (0, 4), (0, 9), (0, 1, 2, 3, 8)])
def test_of_a_group_that_is_not_the_sums_nothing_is_proposed(ranks: tuple[int, ...]) -> None:
    text = summed(((2, 4), (4, 1)), ranks=ranks)
    assert text == "" if ranks != (0, 4) else "no legal strategy" in text


def test_in_a_later_stage_ranks_count_from_its_first() -> None:
    stages = {"device_num": 16, "pipeline_stages": 2, "global_rank": 8}
    text = summed(((2, 4), (4, 1)), ranks=(8, 9, 10, 11), **stages)
    assert "the strategy ((8, 1), (1, 1)) instead of" in text
    assert summed(((2, 4), (4, 1)), ranks=(0, 1, 2, 3), **stages) == ""


def test_without_the_begin_dump_only_the_cut_is_told() -> None:
    net = Small()
    x, w = net.input("x", SQUARE), net.input("w", SQUARE)
    main = net.graph("main")
    main.result = main.product(x, w, SQUARE, ((2, 4), (4, 1)))
    node = next(iter(net.dump().nodes("MatMul")))
    cause = Cause(node, "forward reduction", "", operator=node)
    text = "goes away if MatMul %0 is not cut along what it sums up"
    assert remedy(net, cause, None) == f"{text} (its strategy is ((2, 4), (4, 1)))"
    assert remedy(net, replace(cause, operator=None), None) == ""


def test_without_a_strategy_the_operator_alone_is_told() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    main.result = main.op("ReLU", x, SQUARE)
    node = next(iter(net.dump().nodes("ReLU")))
    cause = Cause(node, "operator", "", operator=node)
    assert remedy(net, cause, None) == ("goes away if ReLU %0 is not cut along what it sums up")


def test_what_is_recomputed_can_be_kept_as_well() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    main.result = main.op("ReLU", x, SQUARE, [(8, 1)])
    node = next(iter(net.dump().nodes("ReLU")))
    kept = "recompute(mp_comm_recompute=False) keeps its result instead"
    cause = Cause(node, "operator", "", is_recomputed=True, op="AllReduce")
    assert remedy(net, cause, None) == kept
    other = remedy(net, replace(cause, operator=node), None)
    assert other.startswith(f"{kept}; else goes away if ReLU %0")
    # What does not communicate is not kept by that.
    assert kept not in remedy(net, replace(cause, op=""), None)


# -- layouts that differ ---------------------------------------------------------------------------


def between(
    first: Row, second: Row, shape: Shape = SQUARE, op: str = "ReLU"
) -> tuple[Small, CheckResult, Cause]:
    """Two operators of one element each, cut so, and the cause of what stands between them."""
    net = Small()
    x = net.input("x", shape)
    main = net.graph("main")
    one = main.op("Exp", x, shape, [first])
    main.result = main.op(op, one, shape, [second])
    report = net.checked()
    producer, consumer = node_of(report, "Exp"), node_of(report, op)
    cause = Cause(
        consumer, "redistribution", "", operator=producer, consumer=consumer,
        begin=consumer, producer_begin=producer,
    )  # fmt: skip
    return net, report, cause


def test_either_side_may_have_the_others_layout() -> None:
    net, report, cause = between((8, 1), (2, 4))
    assert remedy(net, cause, report) == (
        "give ReLU %1 its producer's layout: ((8, 1),) instead of ((2, 4),); or "
        "give Exp %0 its consumer's layout: ((2, 4),) instead of ((8, 1),)"
    )


def test_a_side_that_may_not_be_cut_so_is_left_as_it_is() -> None:
    net, report, cause = between((8, 1), (2, 1), op="Softmax")
    assert remedy(net, cause, report) == (
        "give Softmax %1 its producer's layout: ((8, 1),) instead of ((2, 1),); or "
        "give Exp %0 its consumer's layout: ((2, 1),) instead of ((8, 1),)"
    )
    net, report, cause = between((1, 8), (8, 1), op="Softmax")
    assert remedy(net, cause, report) == (
        "give Exp %0 its consumer's layout: ((8, 1),) instead of ((1, 8),)"
    )


def test_what_a_layout_brings_is_said() -> None:
    net = Small()
    x, w = net.input("x", SQUARE), net.input("w", SQUARE)
    main = net.graph("main")
    one = main.op("Exp", x, SQUARE, [(2, 4)])
    main.result = main.product(one, w, SQUARE, ((8, 1), (1, 1)))
    report = net.checked()
    producer, consumer = node_of(report, "Exp"), node_of(report, "MatMul")
    cause = Cause(
        consumer, "redistribution", "", operator=producer, consumer=consumer,
        begin=consumer, producer_begin=producer,
    )  # fmt: skip
    assert remedy(net, cause, report) == (
        "give MatMul %1 its producer's layout: ((2, 4), (4, 1)) instead of ((8, 1), (1, 1)) "
        "(which brings AllReduce); or "
        "give Exp %0 its consumer's layout: ((8, 1),) instead of ((2, 4),)"
    )


def test_without_the_begin_dump_both_strategies_are_told() -> None:
    net, _, cause = between((8, 1), (2, 4))
    printed = "goes away if both sides cut the tensor alike (Exp %0 has ((8, 1),)"
    assert remedy(net, cause, None) == f"{printed}, ReLU %1 has ((2, 4),))"
    assert remedy(net, replace(cause, consumer=None), None) == f"{printed})"
    assert remedy(net, replace(cause, consumer=None, operator=None), None) == ""


def test_an_edge_that_is_not_known_has_no_remedy() -> None:
    net, report, cause = between((8, 1), (2, 4))
    assert remedy(net, cause, replace(report, redistributions=())) == ""
    unknown = tuple(replace(item, source=None) for item in report.redistributions)
    assert remedy(net, cause, replace(report, redistributions=unknown)) == ""


def test_a_reshape_hands_on_what_stays_the_slowest() -> None:
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    one = main.op("Exp", x, SQUARE, [(1, 8)])
    main.result = main.op("ReLU", main.reshape(one, (4096,)), (4096,), [(8,)])
    dump = net.dump()
    report = check(dump, ParallelContext(devices=8, full_batch=True))
    producer, consumer = node_of(report, "Exp"), node_of(report, "ReLU")
    cause = Cause(
        consumer, "redistribution", "", operator=producer, consumer=consumer,
        begin=consumer, producer_begin=producer,
    )  # fmt: skip
    around = surroundings(dump, dump)
    assert with_remedy(around, cause, report).remedy == (
        "Reshape %1 hands on what it can: cut only the dimension that stays the slowest in both "
        "shapes, alike before and behind it"
    )
    layouts = with_layouts(around, cause, report)
    assert layouts.message == (
        " in the place of Reshape %1; (64, 64) cut (1, 8) is wanted as (4096,) cut (8,)"
    )


# -- parameters ------------------------------------------------------------------------------------


def mirrored(
    rows: int = 64, columns: int = 256, over: tuple[int, ...] | None = (0, 2), **options: object
) -> str:
    """The remedy of the sum of a weight's gradient over some ranks; 64 rows of a KB each."""
    net = Small()
    x, w = net.input("x", (64, rows)), net.weight("w", (rows, columns))
    main = net.graph("main")
    main.result = main.product(x, w, (64, columns), ((2, 1), (1, 4)))
    report = net.checked(**options)
    node = node_of(report, "MatMul")
    return remedy(net, Cause(node, "mirror", "", parameter="w", ranks=over), report)


WHOLE = "needed as long as w is whole on ranks that see different data"


def test_optimizer_parallel_halves_the_states_of_two_replicas() -> None:
    assert mirrored() == (
        f"{WHOLE}; enable_parallel_optimizer=True turns it into a ReduceScatter of the gradient "
        "and an AllGather of the weight, and keeps 1/2 of its optimizer state on each device"
    )


@pytest.mark.parametrize(("threshold", "is_small"), [(64, False), (65, True)])
def test_not_of_a_weight_below_the_threshold(threshold: int, is_small: bool) -> None:
    config = {"parallel_optimizer_threshold": threshold}
    text = mirrored(parallel_optimizer_config=config)
    assert ("its 65536 bytes are below parallel_optimizer_threshold" in text) is is_small


@pytest.mark.parametrize(("rows", "divides"), [(64, True), (66, True), (65, False)])
def test_not_of_rows_that_do_not_divide(rows: int, divides: bool) -> None:
    text = mirrored(rows, 1024)
    assert ("its first dimension does not divide into 2" in text) is not divides


def test_not_of_a_weight_that_is_excluded() -> None:
    assert mirrored(parallel_optimizer_excluded=["w"]) == (
        f"{WHOLE}; optimizer parallel would not change it: "
        "it is kept whole by parallel_optimizer=False"
    )


def test_nothing_more_is_said_where_it_is_on() -> None:
    assert mirrored(enable_parallel_optimizer=True) == WHOLE


def test_less_is_said_of_what_is_not_known() -> None:
    less = "; optimizer parallel would make it a ReduceScatter and an AllGather"
    assert mirrored(over=None) == WHOLE + less
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    main.result = main.op("ReLU", x, SQUARE, [(8, 1)])
    node = next(iter(net.dump().nodes("ReLU")))
    cause = Cause(node, "mirror", "", ranks=(0, 1))
    other = WHOLE.replace("w is", "the parameter is") + less
    assert remedy(net, cause, None) == other
    assert remedy(net, cause, net.checked()) == other


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("optimizer parallel", "needed as long as w is sharded over its replicas"),
        ("pipeline", "goes away where both sides are given the same pipeline_stage"),
        ("loss division", "loss_repeated_mean=False leaves it out"),
        ("user code", ""),
    ],
)
def test_what_no_strategy_changes_says_what_does(kind: str, text: str) -> None:
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    main.result = main.op("ReLU", x, SQUARE)
    node = next(iter(net.dump().nodes("ReLU")))
    cause = Cause(node, kind, "", parameter="w")  # pyright: ignore[reportArgumentType]  # one of them
    assert remedy(net, cause, None).startswith(text)
    assert bool(remedy(net, cause, None)) is bool(text)


# -- inputs ----------------------------------------------------------------------------------------


def test_an_input_is_read_as_its_user_wants_it() -> None:
    """To compute all of it on every device, as it is read, would be no remedy."""
    net = Small()
    x = net.input("x", SQUARE)
    main = net.graph("main")
    pair = "<Tuple[Tensor[Float32]], TupleShape((64, 64))>"
    data = main.add("_VirtualDataset", [x], pair)
    item = main.add("TupleGetItem", [data, constant(0)], tensor(SQUARE))
    main.result = main.op("ReLU", item, SQUARE, [(8, 1)])
    report = net.checked()
    relu = node_of(report, "ReLU")
    cause = Cause(relu, "dataset", "", consumer=relu, begin=relu)
    assert remedy(net, cause, report) == (
        "read this input cut (8, 1) (dataset_strategy; now (1, 1))"
    )

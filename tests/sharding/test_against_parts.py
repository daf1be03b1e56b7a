"""What a comparison says of single things: what is handed on, not compared, or made later."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.sharding.against import (
    _broadcasts,
    _explained,
    _is_end,
    _loss_division,
    _not_compared,
    _unpredicted,
)
from irtool.sharding.against.model import Difference, Unmatched
from irtool.sharding.against.parameters import _is_needless
from irtool.sharding.network.analysis import item_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, CollectiveReport
from irtool.sharding.why.cause import Cause
from tests.sharding.network.small import Small, constant, tensor


def two_operators(second: str = "Neg", name: str = "main", attributes: str = "") -> Dump:
    """A ReLU, and one more operator, its result returned."""
    small = Small()
    x = small.input("x", (8, 4))
    main = small.graph(name)
    first = main.op("ReLU", x, (8, 4))
    main.result = main.add(f"PrimFunc_{second}", [first], tensor((8, 4)), attributes=attributes)
    return small.dump()


DUMP = two_operators()
FIRST, SECOND, RETURN = DUMP.graphs[0].nodes


# -- which pass the later dump is of ----------------------------------------------------------


def named(dump: Dump, path: str) -> Dump:
    return replace(dump, path=path)


def test_the_name_of_a_dump_tells_its_pass() -> None:
    other = two_operators("_MirrorOperator")
    assert _is_end(DUMP, named(DUMP, "ir/step_parallel_end_0019.ir"))
    assert not _is_end(DUMP, named(other, "20_validate_0082.ir"))
    assert not _is_end(DUMP, named(two_operators(name="other"), "step_parallel_end/mine.ir"))
    assert _is_end(DUMP, named(DUMP, "runs\\step_parallel_end.ir"))


@pytest.mark.parametrize(
    "op", ["_VirtualDataset", "_MirrorOperator", "_MirrorMicroStepOperator", "_VirtualDiv"]
)
def test_virtual_operators_are_only_there_right_after_the_parallel_pass(op: str) -> None:
    assert _is_end(DUMP, named(two_operators(op, "other"), "mine.ir"))


def test_what_is_inserted_has_no_type_right_after_the_parallel_pass() -> None:
    mark = 'forward_comm_node_unique_id: "7"'
    typed = two_operators("AllGather", attributes=mark)
    untyped = irtool.loads(
        irtool.dumps(typed).replace(
            "(<Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8, 4)>)", "(<null>) -> (<null>)"
        )
    )
    assert _is_end(DUMP, named(untyped, "mine.ir"))
    assert not _is_end(DUMP, named(typed, "mine.ir"))
    assert not _is_end(DUMP, named(two_operators(), "mine.ir"))
    assert not _is_end(two_operators(name="another"), named(untyped, "mine.ir"))


# -- what can not be compared -----------------------------------------------------------------


def test_why_an_operator_was_not_compared() -> None:
    told = _not_compared(FIRST, "legal", "ReLU", False)
    assert told.what == "ReLU %0"
    assert told.why.startswith("it was not found in the later dump")
    assert _not_compared(FIRST, "legal", "ReLU", True).why.endswith("which is an excerpt")
    assert _not_compared(FIRST, "illegal", "ReLU", True).why == "its strategy is illegal"
    assert _not_compared(FIRST, "unknown", "ReLU", False).why == "its strategy is unknown"


def inserted(op: str = "AllGather", **fields: object) -> Cause:
    """A collective of a redistribution between the first operator and the second."""
    cause = Cause(SECOND, "redistribution", "it gathers", op=op, ranks=(0, 1), begin=SECOND)
    return replace(cause, operator=FIRST, consumer=SECOND, **fields)


def unpredicted(cause: Cause, *, seen: bool = False, partial: bool = False) -> object:
    """What is said of one collective, None for nothing."""
    found = list(_unpredicted([cause], frozenset({SECOND} if seen else ()), partial))
    return found[0] if found else None


def test_a_collective_that_nobody_promised_is_a_difference() -> None:
    found = unpredicted(inserted(producer_begin=FIRST))
    assert isinstance(found, Difference)
    assert (found.kind, found.predicted, found.actual) == (
        "extra collective",
        "none",
        "AllGather (0, 1)",
    )
    assert found.message == "AllGather %1 was not predicted: it gathers"
    assert (found.begin, found.node, found.producer) == (SECOND, SECOND, FIRST)


@pytest.mark.parametrize(
    "fields", [{"kind": "operator"}, {"is_gradient": True}, {"is_recomputed": True}]
)
def test_others_are_told_elsewhere(fields: dict[str, object]) -> None:
    assert unpredicted(replace(inserted(), **fields)) is None
    assert unpredicted(inserted(), seen=True) is None


def test_what_stands_on_no_edge_can_not_be_compared() -> None:
    for cause in (inserted(begin=None), replace(inserted(), consumer=None),
                  replace(inserted(), consumer=RETURN)):  # fmt: skip
        found = unpredicted(cause)
        assert isinstance(found, Unmatched)
        assert found.why == "it stands on no edge that could be compared"
        assert found.what == "AllGather: it gathers"
    assert isinstance(unpredicted(inserted(), partial=True), Unmatched)


def test_nothing_tells_how_what_another_stage_sends_lies() -> None:
    received = two_operators("Receive").graphs[0].nodes[1]
    found = unpredicted(replace(inserted(), operator=received))
    assert isinstance(found, Unmatched)
    assert found.why == "nothing tells how what another stage sends lies"
    called = two_operators().graphs[0].nodes[0]
    assert isinstance(unpredicted(replace(inserted(), operator=called)), Difference)


# -- results and losses -----------------------------------------------------------------------


def handed(*groups: tuple[int, ...], node: Node = SECOND) -> list[Cause]:
    return [Cause(node, "result broadcast", "", ranks=ranks) for ranks in groups]


def promised(*groups: tuple[int, ...]) -> CheckResult:
    items = tuple(CollectiveReport("Broadcast", ranks, "", None, "") for ranks in groups)
    return CheckResult(True, ParallelContext(devices=8), (), broadcasts=items)


def test_results_are_handed_to_all_stages_as_often_as_promised() -> None:
    assert not list(_broadcasts(promised((0, 4)), handed((0, 4))))
    assert not list(_broadcasts(promised(), []))
    (missing,) = _broadcasts(promised((0, 4)), [])
    assert (missing.kind, missing.predicted, missing.actual) == ("missing collective", "1", "0")
    (extra,) = _broadcasts(promised((0, 4)), handed((0, 4), (0, 4)))
    assert (extra.kind, extra.predicted, extra.actual) == ("extra collective", "1", "2")
    assert extra.node is SECOND


def test_results_are_handed_to_the_ranks_promised() -> None:
    (other,) = _broadcasts(promised((0, 4)), handed((0, 2)))
    assert (other.kind, other.predicted, other.actual) == ("group", "(0, 4)", "(0, 2)")
    unknown = [Cause(SECOND, "result broadcast", "", ranks=None)]
    assert not list(_broadcasts(promised((0, 4)), unknown))
    others = [Cause(SECOND, "mirror", "", ranks=(0, 1))]
    assert not list(_broadcasts(promised(), others))


def test_the_loss_is_divided_as_promised() -> None:
    divided = two_operators("_VirtualDiv", attributes="divisor: I64(8)")
    (found,) = _loss_division(promised(), divided)
    assert (found.kind, found.predicted, found.actual) == ("loss division", "none", "8")
    assert not list(_loss_division(promised(), DUMP))


# -- what later passes made -------------------------------------------------------------------


def test_what_later_passes_made_is_told_by_reason() -> None:
    causes = [
        Cause(FIRST, "mirror", "", is_recomputed=True),
        Cause(FIRST, "mirror", "", is_gradient=True),
        Cause(SECOND, "mirror", ""),
        Cause(FIRST, "redistribution", "", is_gradient=True),
        Cause(SECOND, "redistribution", ""),
        Cause(SECOND, "user code", ""),
    ]
    told = {item.cause: (item.count, item.nodes) for item in _explained(causes)}
    assert told == {
        "copies made by recomputation": (1, (FIRST,)),
        "sums of gradients, from the mirrors of parameters": (2, (FIRST, SECOND)),
        "gradients of predicted ones": (1, (FIRST,)),
        "the network's own": (1, (SECOND,)),
    }


def test_a_collective_runs_once_where_nothing_else_is_said() -> None:
    assert CollectiveReport("AllReduce", (0, 1), "", None, "").count == 1


def test_the_item_that_is_taken_out() -> None:
    small = Small()
    x = small.input("x", (8, 4))
    main = small.graph("main")
    main.add("TupleGetItem", [x, constant(2)], tensor((8, 4)))
    main.add("TupleGetItem", [x], tensor((8, 4)))
    main.result = main.add("TupleGetItem", [x, x], tensor((8, 4)))
    nodes = small.dump().graphs[0].nodes
    assert [item_of(node) for node in nodes[:3]] == [2, -1, -1]


# -- mirrors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "stands", "is_needless"),
    [((0,), False, True), ((0,), True, False), ((0, 1), False, False), (None, False, False)],
)
def test_a_mirror_over_one_rank_may_be_dropped(
    ranks: tuple[int, ...] | None, stands: bool, is_needless: bool
) -> None:
    weight = SimpleNamespace(mirror_ranks=ranks)
    node = FIRST if stands else None
    assert _is_needless(weight, node) is is_needless  # type: ignore[arg-type]

"""What collectives give, against what the operands on their ranks make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.collectives import _cancelled, _instead, _wanted
from irtool.ir.collectives import Collective, collective
from tests.cluster.rank_dumps import Do, rank_dump

Array = NDArray[Any]


def info(op: str, reduction: str = "sum") -> Collective:
    dump = rank_dump(Do(op, (0, 1, 4, 5)))
    (node,) = (node for node in dump.nodes() if node.op == op)
    found = collective(node)
    assert found is not None
    from dataclasses import replace

    return replace(found, reduction=reduction)


def operands(seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 9, (4, 2)).astype(np.float32) for _ in range(4)]


@pytest.mark.parametrize(
    ("reduction", "function"),
    [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod), ("", np.sum)],
)
def test_an_allreduce_gives_all_ranks_the_same(reduction: str, function: Any) -> None:
    given = operands()
    found = _wanted(info("AllReduce", reduction), given)
    assert found is not None
    for result in found:
        np.testing.assert_array_equal(result, function(np.stack(given), axis=0))
    assert found[0].dtype == np.float64


def test_a_gather_joins_operands_in_the_order_of_ranks() -> None:
    given = operands()
    found = _wanted(info("AllGather"), given)
    assert found is not None
    assert len(found) == 4
    for result in found:
        np.testing.assert_array_equal(result, np.concatenate(given))
    scalars = _wanted(info("AllGather"), [np.float32(n).reshape(()) for n in range(4)])
    assert scalars is not None
    assert scalars[0].tolist() == [0, 1, 2, 3]


def test_a_scatter_gives_each_rank_its_rows_of_the_sum() -> None:
    given = operands()
    found = _wanted(info("ReduceScatter"), given)
    assert found is not None
    np.testing.assert_array_equal(np.concatenate(found), sum(given))
    assert {result.shape for result in found} == {(1, 2)}
    assert _wanted(info("ReduceScatter"), [np.ones((6, 2))] * 4) is None


def test_what_is_not_known_is_not_wanted() -> None:
    assert _wanted(info("AllReduce", "median"), operands()) is None
    assert _wanted(info("Broadcast"), operands()) is None
    assert _wanted(info("AllReduce"), [np.ones(2), np.ones(3)] * 2) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda given, total: given[2], "its own operand back: nothing was exchanged"),
        (lambda given, total: total / 4, "the mean of the operands, not their sum"),
        (lambda given, total: total * 4, "adds the sum up 4 times"),
        (lambda given, total: total - given[3], "leaves the operand of rank 5 out"),
        (lambda given, total: total - given[0], "leaves the operand of rank 0 out"),
        (lambda given, total: total + 1, "does not give what the operands on its ranks make"),
    ],
)
def test_what_is_given_instead_of_a_sum(changed: Any, words: str) -> None:
    given = operands()
    total = np.sum(np.stack(given), axis=0).astype(np.float64)
    group = (0, 1, 4, 5)
    text = _instead(info("AllReduce"), group, 4, given, total, changed(given, total))
    assert text.startswith("AllReduce over ranks 0, 1, 4, 5 ")
    assert words in text


def test_terms_that_cancel_leave_more_rounding() -> None:
    one = np.full((2, 2), 3.0)
    assert _cancelled([one, one], [one + one]) == 1.0
    assert _cancelled([one, -0.5 * one], [0.5 * one]) == pytest.approx(np.sqrt(1.25) / 0.5)
    assert _cancelled([one, -one], [one - one]) == 1.0  # of nothing no part can be told

"""What collectives give, against what the operands on their ranks make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.collectives import (
    WrongCollective,
    _cancelled,
    _instead,
    _wanted,
    wrong_collectives,
)
from irtool.compare.layouts.ranks import Ranks
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.ir.collectives import Collective, collective
from tests.cluster.rank_dumps import Do, rank_dump, receive, send

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


# -- runs ------------------------------------------------------------------------------------------

U = 2.0**-24
"""Roundoff of Float32."""


def rank_run(
    folder: Path, rank: int, do: Do, tensors: dict[str, Array], name: str = "call", dtype: str = ""
) -> TensorRun:
    """A rank's dump of one communication."""
    (node,) = (node for node in rank_dump(do).nodes() if node.op == do.op)
    columns = Columns()
    places: list[int] = []
    for label, values in tensors.items():
        path = folder / f"{rank}.{name}.{label}.npy"
        np.save(path, values)
        places.append(columns.add(label, dtype or "Float32", values.shape, file=str(path)))
    op = Op(0, name, do.op, "forward", places[:1], places[1:], node=node)
    return TensorRun("run", "mindspore", "tensors", "mindspore", columns, [op])


def reduced(
    folder: Path, off: dict[int, float], group: tuple[int, ...] = (0, 1, 4, 5), dtype: str = ""
) -> list[WrongCollective]:
    """What is wrong of a sum over four ranks, whose result is off by a share on some of them."""
    rng = np.random.default_rng(3)
    given = {rank: rng.integers(1, 9, (4, 2)).astype(np.float32) for rank in (0, 1, 4, 5)}
    total = np.sum(np.stack(list(given.values())), axis=0, dtype=np.float64)
    runs = {
        rank: rank_run(
            folder,
            rank,
            Do("AllReduce", group),
            {"input.0": given[rank], "output.0": total * (1 + off.get(rank, 0.0))},
            dtype=dtype,
        )
        for rank in given
    }
    return list(wrong_collectives(Ranks(runs)))


@pytest.mark.parametrize(
    ("off", "wrong"),
    [
        ({}, ()),
        ({1: 15.5 * U, 5: -15.5 * U}, ()),  # eight roundings, times the root of four ranks
        ({1: 16.5 * U}, (1,)),
        ({0: 0.5, 5: 0.1}, (0, 5)),
    ],
)
def test_a_result_may_be_eight_roundings_of_its_sum_off(
    tmp_path: Path, off: dict[int, float], wrong: tuple[int, ...]
) -> None:
    found = reduced(tmp_path, off)
    assert tuple(rank for one in found for rank in one.ranks) == wrong
    for one in found:
        assert one.group == (0, 1, 4, 5)
        assert one.explained == pytest.approx(16 * U)
        largest = max(off.values())
        assert one.error == pytest.approx(largest / (1 + largest), rel=0.01)  # of the longer one


def test_half_precision_rounds_more(tmp_path: Path) -> None:
    assert not reduced(tmp_path, {1: 15.5 * 2.0**-11}, dtype="Float16")
    assert reduced(tmp_path, {1: 16.5 * 2.0**-11}, dtype="Float16")


def test_of_a_group_of_which_a_rank_is_missing_nothing_is_said(tmp_path: Path) -> None:
    assert not reduced(tmp_path, {1: 0.5}, group=(0, 1, 4, 5, 6))


def arrived(folder: Path, off: float, tags: tuple[int, int] = (3, 3)) -> list[WrongCollective]:
    """What is wrong of a transfer from rank 0 to rank 1."""
    values = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    other = values * np.float32(1 + off)
    runs = {
        0: rank_run(folder, 0, send(1, tags[0]), {"input.0": values, "output.0": values}, "sent"),
        1: rank_run(folder, 1, receive(0, tags[1]), {"input.0": other, "output.0": other}, "got"),
    }
    return list(wrong_collectives(Ranks(runs)))


@pytest.mark.parametrize(("off", "is_wrong"), [(0.0, False), (2 * U, True), (0.1, True)])
def test_what_arrives_is_what_was_sent(tmp_path: Path, off: float, is_wrong: bool) -> None:
    found = arrived(tmp_path, off)
    assert [one.ranks for one in found] == [(1,)] * is_wrong
    for one in found:
        assert one.why == "Receive on rank 1 does not give what rank 0 sent"


def test_a_tag_tells_which_transfer_is_meant(tmp_path: Path) -> None:
    assert not arrived(tmp_path, 0.1, tags=(3, 4))

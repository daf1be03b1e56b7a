"""A table whose rows ranks cut: each looks up its own, and their sum is what one device has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.declared import SideLayout
from irtool.compare.layouts.local_indices import OwnRows, local_indices
from irtool.compare.layouts.looked_up import (
    Lookup,
    adds_up_to,
    are_local,
    first_rows,
    lookup_of,
    whole_indices,
    whole_rows,
)
from irtool.compare.tensors.model import Columns, Op
from irtool.ir.dump import Dump
from irtool.syntax.load import loads
from tests.compare.dumps import Entry
from tests.compare.test_declared_layouts import ONE, compared, written

Values = NDArray[Any]
ROWS, WIDTH, WORDS = 4, 6, 12


def network(table: Values, ids: Values, parts: int, fault: str = "") -> list[list[Entry]]:
    """Words, their sum over ranks, a norm of them."""
    size = WORDS // parts
    local: list[tuple[list[Entry], Values]] = []
    for rank in range(parts):
        own = table[rank * size : (rank + 1) * size]
        mine: Values = np.array(ids[::-1] if fault == "data" and rank == parts - 1 else ids)
        first = rank * size + (fault == "offset" and rank == parts - 1)
        outside = (mine < first) | (mine >= first + size)
        index = np.where(outside, 0, mine - first)
        found = own[index]
        entries: list[Entry] = []
        if parts > 1:
            entries += [
                ("Tensor.__lt__.0.forward", [mine, first], mine < first),
                ("Tensor.__ge__.0.forward", [mine, first + size], mine >= first + size),
                ("Tensor.__sub__.0.forward", [mine, first], mine - first),
                ("Tensor.masked_fill.0.forward", [mine - first, outside, 0], index),
            ]
        entries.append(("Functional.embedding.0.forward", [index, own], found))
        kept = np.where(outside[..., None], np.float32(0), found)
        if parts > 1:
            entries.append(("Tensor.masked_fill.1.forward", [found, outside[..., None], 0.0], kept))
        local.append((entries, kept))
    total = np.asarray(np.sum([kept for _, kept in local], axis=0), np.float32)
    ranks: list[list[Entry]] = []
    for rank, (entries, kept) in enumerate(local):
        read = np.asarray(kept if fault == "missing" else total)
        if parts > 1 and fault != "missing":
            entries.append(("Distributed.all_reduce.0.forward", [kept], total))
        off = 1.02 if fault == "replica" and rank == parts - 1 else 1
        weight = np.asarray(np.linspace(0.5, 1.5, WIDTH) * off, np.float32)
        entries.append(("Tensor.square.0.forward", [read], read * read))
        entries.append(("Tensor.__mul__.0.forward", [read, weight], read * weight))
        ranks.append(entries)
    return ranks


def run(folder: Path, parts: int, fault: str = "", tensors: bool = True) -> Path:
    draw = np.random.default_rng(3)
    table = draw.normal(size=(WORDS, WIDTH)).astype(np.float32)
    ids = np.reshape(draw.permutation(np.tile(np.arange(WORDS), 2)), (ROWS, -1))
    return written(folder, network(table, ids, parts, fault), tensors)


@pytest.mark.parametrize("parts", [(1, 2), (1, 4), (2, 4), (4, 2), (2, 1)])
@pytest.mark.parametrize("tensors", [True, False])
def test_ranks_that_look_up_rows_of_their_own_are_accused_of_nothing(
    tmp_path: Path, parts: tuple[int, int], tensors: bool
) -> None:
    left = run(tmp_path / "left", parts[0], tensors=tensors)
    right = run(tmp_path / "right", parts[1], tensors=tensors)
    found = compared(left, right, SideLayout(parts[0]), SideLayout(parts[1]))
    assert found.first is None
    assert not [row for row in found.hyperparameters if row.same is False]


@pytest.mark.parametrize(
    ("fault", "parts", "name", "ranks"),
    [
        ("offset", (1, 2), "embedding", (1,)),
        ("offset", (1, 4), "__lt__", (3,)),
        ("offset", (2, 4), "__lt__", (3,)),
        ("data", (1, 2), "__lt__", (1,)),
        ("data", (1, 4), "__lt__", (3,)),
        ("missing", (1, 2), "square", (0, 1)),
        ("replica", (1, 2), "__mul__", (1,)),
        ("replica", (2, 4), "__mul__", (3,)),
    ],
)
def test_what_is_wrong_between_them_is_named_with_its_rank(
    tmp_path: Path, fault: str, parts: tuple[int, int], name: str, ranks: tuple[int, ...]
) -> None:
    left, right = run(tmp_path / "left", parts[0]), run(tmp_path / "right", parts[1], fault)
    first = compared(left, right, SideLayout(parts[0]), SideLayout(parts[1])).first
    assert first is not None
    assert (first.pair.right.type, first.ranks) == (name, ranks)


def test_a_parameter_of_one_rank_is_a_fact_behind_another_fault(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    x = draw.normal(size=(ROWS, WIDTH)).astype(np.float32)
    given = [x, x * np.float32(1.1)]
    weights = [draw.normal(size=(WIDTH, WIDTH)).astype(np.float32)] * 2
    ranks: list[list[list[Entry]]] = []
    for fault in (False, True):
        own = [weights[0], weights[1] * np.float32(1.02 if fault else 1)]
        inputs = given if fault else [x, x]
        ranks.append(
            [
                [
                    ("Torch.tanh.0.forward", [a], np.tanh(a)),
                    (
                        "Functional.linear.0.forward",
                        [np.tanh(a), w],
                        np.matmul(np.tanh(a), np.transpose(w)),
                    ),
                ]
                for a, w in zip(inputs, own, strict=True)
            ]
        )
    left = written(tmp_path / "left", ranks[0][:1])
    right = written(tmp_path / "right", ranks[1])
    found = compared(left, right, ONE, SideLayout(2))
    assert found.first is not None
    assert (found.first.pair.right.type, found.first.ranks) == ("tanh", (1,))
    (row,) = (row for row in found.hyperparameters if row.name == "initial weights")
    assert row.same is False
    assert "on rank 1" in row.where


# -- what the parts are --------------------------------------------------------------------------


def call(type_: str, *shapes: tuple[str, tuple[int, ...]]) -> tuple[Op, Columns]:
    """A call whose last tensor is its result."""
    columns = Columns()
    places = [
        columns.add(f"{'output.0' if n == len(shapes) - 1 else f'input.{n}'}", dtype, shape)
        for n, (dtype, shape) in enumerate(shapes)
    ]
    return Op(0, f"T.{type_}.0.forward", type_, "forward", places[:-1], places[-1:]), columns


FLOAT, WHOLE = "Float32", "Int64"


@pytest.mark.parametrize(
    ("type_", "shapes", "is_lookup"),
    [
        ("embedding", [(WHOLE, (4, 3)), (FLOAT, (9, 5)), (FLOAT, (4, 3, 5))], True),
        ("__getitem__", [(FLOAT, (9, 5)), (WHOLE, (4,)), (FLOAT, (4, 5))], True),
        ("__getitem__", [(FLOAT, (9, 5)), (WHOLE, (4,)), (FLOAT, (4, 1))], False),  # another cut
        ("gather", [(FLOAT, (9, 5)), (WHOLE, (9, 1)), (FLOAT, (9, 1))], False),  # along the last
        ("__mul__", [(FLOAT, (5, 5)), (WHOLE, (5,)), (FLOAT, (5, 5))], False),  # no lookup
        ("embedding", [(FLOAT, (4, 3)), (FLOAT, (9, 5)), (FLOAT, (4, 3, 5))], False),
    ],
)
def test_a_lookup_gives_a_row_for_each_index(
    type_: str, shapes: list[tuple[str, tuple[int, ...]]], is_lookup: bool
) -> None:
    found = lookup_of(*call(type_, *shapes))
    assert (found is not None) == is_lookup
    if type_ == "embedding" and is_lookup:
        assert found == Lookup("input.1", "input.0", "output.0")


@pytest.mark.parametrize(
    ("numbers", "sizes", "expected"),
    [
        ((0, 6), (6,), (6, ())),
        ((6, 12), (6,), (6, ())),  # where parts end
        ((0, 7), (6,), None),  # of two nobody knows which is wrong
        ((0, 6), (5,), None),  # no part has six rows
        ((1, 7), (6,), None),  # the first part does not begin in its middle
        ((0, 3, 6, 10), (3,), (3, (3,))),
        ((0, 3, 7, 10), (3,), None),  # half of them is no exception
        ((5, 5, 5, 5), (3,), None),
    ],
)
def test_where_parts_begin_is_one_part_further_on_each_rank(
    numbers: tuple[int, ...], sizes: tuple[int, ...], expected: tuple[int, tuple[int, ...]] | None
) -> None:
    found = first_rows(dict(enumerate(numbers)), frozenset(sizes))
    assert found == (None if expected is None else (expected[0], frozenset(expected[1])))


def test_indices_and_rows_count_where_they_are_a_ranks_own() -> None:
    ids = np.array([0, 5, 2, 3])
    local = {0: np.array([0, 0, 2, 0]), 1: np.array([0, 2, 0, 0])}
    np.testing.assert_array_equal(whole_indices(local, ids, 3), ids)
    assert are_local(local, ids, 3)
    assert not are_local(local, np.array([0, 5, 2, 4]), 3)
    assert not are_local(local, np.array([0, 5, 2, 6]), 3)  # no part has that row
    rows = {0: np.array([[1.0], [9], [2], [9]]), 1: np.array([[9.0], [4], [9], [3]])}
    np.testing.assert_array_equal(whole_rows(rows, ids, 3)[:, 0], [1, 4, 2, 3])


def test_parts_that_are_zero_at_each_others_positions_make_up_the_rows() -> None:
    total = np.array([1.0, 2.0])
    assert adds_up_to([np.array([1.0, 0]), np.array([0, 2.0])], total)
    assert not adds_up_to([np.array([1.0, 0]), np.array([0, 3.0])], total)
    assert not adds_up_to([np.array([0.5, 0]), np.array([0.5, 2.0])], total)  # both have the first


# -- graphs of MindSpore -------------------------------------------------------------------------

_GRAPH = """
# IR entry: @f
# Total subgraphs: 1
# Total params: 2
# Params list:
%para1_ids : <Tensor[Int32], (4)>
%para2_table : <Tensor[Float32], (6, 2)>
subgraph @f() {{
{body}
  Return(%9)
      : (<Tensor[Float32], (4, 2)>)
}}
"""
_LOCAL = """  %1(a) = PrimFunc_Sub(%para1_ids, Tensor(shape=[], dtype=Int32, value=6))
      : (<Tensor[Int32], (4)>, <Tensor[Int32], ()>) -> (<Tensor[Int32], (4)>)
  %2(b) = PrimFunc_ReLU(%1)
      : (<Tensor[Int32], (4)>) -> (<Tensor[Int32], (4)>)
  %3(c) = PrimFunc_Minimum(%2, Tensor(shape=[], dtype=Int32, value=5))
      : (<Tensor[Int32], (4)>, <Tensor[Int32], ()>) -> (<Tensor[Int32], (4)>)
"""
_LOOKUP = """  %9(d) = PrimFunc_Gather(%para2_table, {ids}, I64(0), I64(0))
      : (<Tensor[Float32], (6, 2)>, <Tensor[Int32], (4)>, <Int64, NoShape>, <Int64, NoShape>) -> (<Tensor[Float32], (4, 2)>)
"""  # noqa: E501


def graph(body: str) -> Dump:
    return loads(_GRAPH.format(body=body))


def test_a_rank_takes_its_first_row_off_before_it_looks_up() -> None:
    dump = graph(_LOCAL + _LOOKUP.format(ids="%3"))
    (gather,) = (node for node in dump.nodes() if node.op == "Gather")
    found = local_indices(gather)
    assert found is not None
    assert (found.label, found.rows, found.subtraction.op) == ("input.1", "output.0", "Sub")
    assert found.lookups == (gather,)


@pytest.mark.parametrize("ids", ["%para1_ids", "%2"])
def test_other_indices_are_of_the_whole_table(ids: str) -> None:
    body = _LOCAL.replace("PrimFunc_Sub", "PrimFunc_Mul") + _LOOKUP.format(ids=ids)
    (gather,) = (node for node in graph(body).nodes() if node.op == "Gather")
    assert local_indices(gather) is None


def test_rows_of_others_are_no_terms_of_the_sum() -> None:
    (gather,) = (
        node for node in graph(_LOCAL + _LOOKUP.format(ids="%3")).nodes() if node.op == "Gather"
    )
    local = local_indices(gather)
    assert local is not None
    ids = np.array([0, 7])
    both = frozenset({0, 1})
    own = OwnRows(
        local, dict.fromkeys((0, 1), ids), {0: ids < 6, 1: ids >= 6}, dict.fromkeys((0, 1), both)
    )
    rows = {0: np.array([[1.0], [2.0]]), 1: np.array([[3.0], [4.0]])}
    kept, groups = own.applied("output.0", rows, dict.fromkeys((0, 1), frozenset[int]()))
    np.testing.assert_array_equal(kept[0][:, 0], [1, 0])
    np.testing.assert_array_equal(kept[1][:, 0], [0, 4])
    assert groups == {0: both, 1: both}
    whole, _ = own.applied("input.1", rows, {})
    np.testing.assert_array_equal(whole[1], ids)

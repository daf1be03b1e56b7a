"""Weights with several users in the recursive search: whose strategy counts for the others."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.planning.recursive.fitting import Devices
from irtool.planning.recursive.kinds import Kind
from irtool.planning.recursive.shared_weights import agree_on_weights, follow_shared_tables

EIGHT = Devices(8, 8)


class User:
    """An operator that reads a weight."""

    def __init__(self, kind: Kind, *inputs: tuple[int, ...], op: str = "", **values: Any) -> None:
        self.kind, self.inputs, self.op, self.values = kind, inputs, op, values

    def value(self, name: str, default: object) -> object:
        return self.values.get(name, default)

    def flag(self, name: str) -> bool:
        return bool(self.values.get(name))


def spread(users: list[User], strategies: Mapping[int, Any]) -> Any:
    return SimpleNamespace(operators=users, strategies=dict(strategies))


def table(*indices: int, **values: Any) -> User:
    return User(Kind.GATHER, (1024, 64), indices, op="Gather", **values)


def product(**flags: bool) -> User:
    return User(Kind.MATMUL, (32, 64), (64, 1024), op="MatMul", **flags)


# -- tables in training ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "rows"),
    [
        (product(), ((2, 1), (4, 2))),  # the second operand is the weight
        (User(Kind.CAST, (1024, 64), op="Cast"), ((4, 2),)),
        (User(Kind.ELEMENTWISE, (1024, 64), op="Mul"), ((4, 2),)),
    ],
)
def test_a_gather_takes_its_table_as_another_user_does(other: User, rows: Any) -> None:
    """What devices are left (8 of 4 x 2: one) goes to the first dimension of the indices."""
    found = spread([table(16, 4), other], {0: ((1, 1), (8, 1)), 1: rows})
    follow_shared_tables(found, [(0, 1)], EIGHT)
    assert found.strategies[0] == ((4, 2), (1, 1))
    assert found.strategies[1] == rows


def test_the_last_other_user_counts_and_leaves_devices_to_the_indices() -> None:
    cast = User(Kind.CAST, (1024, 64), op="Cast")
    found = spread([table(16, 4), cast, cast], {0: (), 1: ((8, 1),), 2: ((1, 2),)})
    follow_shared_tables(found, [(0, 1, 2)], EIGHT)
    assert found.strategies[0] == ((1, 2), (4, 1))


def test_users_of_another_kind_do_not_count() -> None:
    add = User(Kind.ELEMENTWISE, (1024, 64), op="Add")
    found = spread([table(16, 4), add], {0: ((1, 1), (8, 1)), 1: ((8, 1),)})
    follow_shared_tables(found, [(0, 1), (0,)], EIGHT)
    assert found.strategies[0] == ((1, 1), (8, 1))


# -- all users in inference ------------------------------------------------------------------------


def test_the_user_that_splits_a_weight_most_is_followed() -> None:
    """Eight pieces of the table against two: the Gather's rows are no more split by its indices."""
    turned = User(Kind.MATMUL, (32, 64), (1024, 64), op="MatMul", transpose_b=True)
    users = [table(16, 4), turned]
    found = spread(users, {0: ((2, 1), (4, 1)), 1: ((1, 1), (8, 1))})
    agree_on_weights(found, {"w": (0, 1)}, EIGHT)
    assert found.strategies == {0: ((8, 1), (1, 1)), 1: ((1, 1), (8, 1))}


@pytest.mark.parametrize(
    ("axis", "row", "indices"),
    [
        (0, (1, 4), (2, 1)),  # along the looked-up dimension it is whole: two devices are left
        (1, (4, 1), (2, 1)),
        (0, (4, 1), (1, 1)),
        (1, (1, 4), (1, 1)),
    ],
)
def test_devices_are_left_to_indices_where_the_looked_up_dimension_is_whole(
    axis: int, row: tuple[int, int], indices: tuple[int, int]
) -> None:
    cast = User(Kind.CAST, (1024, 64), op="Cast")
    found = spread([table(16, 4, axis=axis), cast], {0: ((1, 1), (8, 1)), 1: (row,)})
    agree_on_weights(found, {"w": (0, 1)}, EIGHT)
    assert found.strategies[0] == (row, indices)


def test_of_equal_splits_the_one_with_less_left_in_sum_is_taken() -> None:
    """1024 x 64 in (8, 1): 128 + 64; in (1, 8): 1024 + 8."""
    for first, second in (((8, 1), (1, 8)), ((1, 8), (8, 1))):
        found = spread([table(16)] * 3, {0: (first, (1,)), 1: (), 2: (second, (1,))})
        agree_on_weights(found, {"w": (0, 2, 1)}, EIGHT)
        assert [rows[0] for rows in found.strategies.values()] == [(8, 1)] * 3


@pytest.mark.parametrize(
    ("flags", "first", "weight"),
    [
        ({}, (4, 4), (4, 2)),
        ({"transpose_b": True}, (4, 4), (2, 4)),
        ({"transpose_a": True}, (4, 4), (4, 2)),
    ],
)
def test_a_product_turns_the_row_of_a_transposed_weight(
    flags: dict[str, bool], first: tuple[int, int], weight: tuple[int, int]
) -> None:
    """Cut in four along the first dimension of the weight; 16 devices, four are left for rows."""
    cast = User(Kind.CAST, (64, 1024), op="Cast")
    found = spread([cast, product(**flags)], {0: ((4, 2),), 1: ((2, 8), (1, 1))})
    agree_on_weights(found, {"w": (0, 1)}, Devices(16, 16))
    assert found.strategies[1] == (first, weight)


def test_nobody_splits_nobody_follows() -> None:
    users = [table(16), product()]
    found = spread(users, {0: (), 1: ()})
    agree_on_weights(found, {"w": (0, 1)}, EIGHT)
    assert found.strategies == {0: (), 1: ()}

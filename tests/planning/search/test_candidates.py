"""Candidates: which strategies an operator may have, asked of its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from irtool.operators.call import OperatorCall, constant, tensor
from irtool.operators.judgement import Context
from irtool.operators.table import declare, forget_declared
from irtool.planning.search import candidates as module
from irtool.planning.search.candidates import Space, candidates_of
from irtool.sharding.judge import judge

EIGHT = Context(tuple(range(8)), 8)


def strategies(call: OperatorCall, context: Context = EIGHT) -> set[object]:
    return {item.strategy for item in candidates_of(call, context).items}


def matmul(rows: int = 64, summed: int = 64, columns: int = 64) -> OperatorCall:
    return OperatorCall(
        "MatMul",
        (tensor(rows, summed), tensor(summed, columns)),
        (tensor(rows, columns),),
        {"transpose_a": False, "transpose_b": False},
    )


def test_a_product_splits_rows_columns_and_the_sum_or_gathers_equal_blocks() -> None:
    found = strategies(matmul())
    halves = (1, 2, 4, 8)
    cut = {((m, k), (k, n)) for m in halves for k in halves for n in halves if m * k * n <= 8}
    assert found == cut | {((m, 8 // m), (m, 8 // m)) for m in halves}


def test_turned_matrices_gather_no_blocks() -> None:
    call = matmul()
    call = replace(call, attributes={"transpose_a": False, "transpose_b": True})
    assert ((2, 4), (2, 4)) in strategies(matmul())
    assert ((8, 1), (8, 1)) not in strategies(call)


def test_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert candidates_of(matmul(), EIGHT).left_out == 0
    count = len(strategies(matmul())) - 4
    monkeypatch.setattr(module, "MOST", count)
    assert candidates_of(matmul(), EIGHT).left_out == 0
    monkeypatch.setattr(module, "MOST", count - 1)
    assert candidates_of(matmul(), EIGHT).left_out == 1


def cuts(call: OperatorCall, space: Space | None) -> set[tuple[int, int, int]]:
    """Slices of rows, sum and columns; what is scattered or gathered in blocks left out."""
    found: set[tuple[int, int, int]] = set()
    for item in candidates_of(call, EIGHT, space).items:
        assert item.strategy is not None
        (rows, summed), (also, columns) = item.strategy
        if summed == also:
            found.add((rows, summed, columns))
    return found


def test_of_too_many_strategies_every_second_number_of_slices_is_looked_at() -> None:
    all_of_them = cuts(matmul(), None)
    assert cuts(matmul(), Space(len(all_of_them), 1)) == all_of_them
    few = cuts(matmul(), Space(len(all_of_them) - 1, len(all_of_them) - 1))
    assert few < all_of_them
    assert {number for values in few for number in values} == {1, 4, 8}
    assert (1, 1, 1) in few
    assert (8, 1, 1) in few
    assert (1, 1, 8) in few
    left_out = candidates_of(
        matmul(), EIGHT, Space(len(all_of_them) - 1, len(all_of_them) - 1)
    ).left_out
    assert left_out == len(all_of_them) - len(few)


def test_of_too_many_strategies_plain_ones_and_those_next_to_a_good_one_are_looked_at() -> None:
    near = cuts(matmul(), Space(5, 5, frozenset({((2, 1), (1, 4))})))
    assert near == {
        (m, k, n) for m, k, n in cuts(matmul(), None) if m in (1, 2, 4) and k < 4 and n > 1
    } | {(1, 1, 1), (8, 1, 1), (1, 8, 1), (1, 1, 8)}
    assert (2, 1, 4) in near
    assert (4, 1, 2) in near
    assert (4, 1, 1) not in near
    assert (1, 4, 2) not in near


def test_a_split_sum_may_be_scattered() -> None:
    outs = {
        item.out_strategy
        for item in candidates_of(matmul(), EIGHT).items
        if item.strategy == ((2, 4), (4, 1))
    }
    assert outs == {None, ((8, 1),)}


def gather(*indices: int) -> OperatorCall:
    inputs = (tensor(64, 32), tensor(*indices), constant(0), constant(0))
    return OperatorCall("Gather", inputs, (tensor(*indices, 32),), {})


def ways(call: OperatorCall, *strategy: tuple[int, ...]) -> dict[object, str]:
    """By out_strategy the collective of a strategy."""
    return {
        item.out_strategy: item.judgement.collectives[0].op
        for item in candidates_of(call, EIGHT).items
        if item.strategy == strategy
    }


def test_rows_of_a_split_table_may_be_left_whole() -> None:
    found = ways(gather(8, 16), (4, 2), (1, 1))
    assert found == {None: "ReduceScatter", ((1, 1, 2),): "AllReduce"}


def test_rows_of_a_split_table_may_be_scattered_where_indices_are_split() -> None:
    found = ways(gather(8), (4, 1), (2,))
    assert found == {None: "AllReduce", ((8, 1),): "ReduceScatter"}


def test_columns_of_a_split_table_are_scattered_in_one_way_only() -> None:
    inputs = (tensor(64, 32), tensor(8), constant(1), constant(0))
    call = OperatorCall("Gather", inputs, (tensor(64, 8),), {})
    assert {item.out_strategy for item in candidates_of(call, EIGHT).items} == {None}


def test_rows_are_not_scattered_where_mindspore_refuses_what_comes_behind() -> None:
    assert ways(gather(8, 16), (4, 1), (2, 1)) == {None: "AllReduce"}


def test_operands_of_an_addition_are_split_together_but_where_one_is_broadcast() -> None:
    call = OperatorCall("Add", (tensor(8, 8), tensor(8)), (tensor(8, 8),))
    found = strategies(call)
    assert ((2, 4), (4,)) in found
    assert all(rows[0][1] == rows[1][0] for rows in found)  # type: ignore[index]  # pairs of rows


def test_an_axis_that_may_not_be_split_is_left_whole() -> None:
    call = OperatorCall("Softmax", (tensor(8, 8),), (tensor(8, 8),), {"axis": (-1,)})
    assert strategies(call) == {((n, 1),) for n in (1, 2, 4, 8)}


@pytest.mark.parametrize("devices", [1, 4, 24])
def test_only_divisors_of_sizes_and_devices_are_tried(devices: int) -> None:
    context = Context(tuple(range(devices)), devices, soc="Ascend910B")
    call = OperatorCall("ReLU", (tensor(12, 5),), (tensor(12, 5),))
    found = strategies(call, context)
    divisors = [n for n in range(1, devices + 1) if devices % n == 0 and 12 % n == 0]
    assert found == {((n, 1),) for n in divisors}


def test_axes_are_found_where_groups_of_two_are_refused() -> None:
    """Three servers of the first generation: halves would not fit the servers, thirds do."""
    first = Context(tuple(range(24)), 24)
    call = OperatorCall("ReLU", (tensor(12, 5),), (tensor(12, 5),))
    assert ((3, 1),) in strategies(call, first)


def test_every_candidate_is_legal_by_the_judge() -> None:
    call = matmul(16, 32, 8)
    for item in candidates_of(call, EIGHT).items:
        found = judge(call, item.strategy, EIGHT, out_strategy=item.out_strategy)
        assert found.verdict == "legal"


def test_an_operator_without_a_rule_has_mindspores_own_choice_and_says_so() -> None:
    call = OperatorCall("NobodyKnows", (tensor(8, 8),), (tensor(8, 8),))
    found = candidates_of(call, EIGHT)
    assert len(found) == 1
    assert "no rule" in found.why
    assert found.items[0].strategy is None


@pytest.fixture
def declared() -> Iterator[Callable[[str], tuple[str, ...]]]:
    yield declare
    forget_declared()


def test_an_operator_of_the_users_has_the_strategies_that_its_entry_tells(
    declared: Callable[[str], tuple[str, ...]],
) -> None:
    declared("MyRowNorm: [*x !c] [!c] -> [*x !c]\nMyHeads: [b n] -> [b n] divides n 2")
    normed = OperatorCall("MyRowNorm", (tensor(8, 8), tensor(8)), (tensor(8, 8),))
    assert strategies(normed) == {((n, 1), (1,)) for n in (1, 2, 4, 8)}
    heads = OperatorCall("MyHeads", (tensor(2, 8),), (tensor(2, 8),))
    assert strategies(heads) == {((b, n),) for b in (1, 2) for n in (1, 2)}


def test_a_function_of_irtools_tells_the_axes_of_a_users_operator_too(
    declared: Callable[[str], tuple[str, ...]],
) -> None:
    declared("MyTable(axis@2): function gather takes [*. .] [*.] mirror 0 repeats right")
    inputs = (tensor(8, 4), tensor(8), constant(0))
    own = OperatorCall("MyTable", inputs, (tensor(8, 4),))
    irtools = OperatorCall("SparseGatherV2", inputs, (tensor(8, 4),))
    assert len(strategies(own)) > 10
    assert strategies(own) == strategies(irtools)


def test_an_entry_that_tells_no_axes_leaves_what_mindspore_makes_of_it(
    declared: Callable[[str], tuple[str, ...]],
) -> None:
    declared('MyBroadcast: function broadcast_to takes [*.] batch "first"')
    of = OperatorCall("MyBroadcast", (tensor(8, 4),), (tensor(2, 8, 4),))
    assert strategies(of) == {((8, 1),)}

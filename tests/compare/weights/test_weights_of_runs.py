"""Weights of two runs: the same numbers, whatever call reads them, and which of them differ."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.facts import Fact, facts_of
from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single

LEVELS = [True, False]
WIDTH = 16


def fact(folder: Path, left: list[Entry], right: list[Entry], tensors: bool = True) -> Fact:
    found = compared(folder, left, right, tensors)
    (only,) = [item for item in facts_of(found) if item.kind == "initial weights"]
    return only


def scaled_rows(
    other: tuple[int, ...] = (), factor: float = 1.02, moved: tuple[int, ...] = ()
) -> list[Entry]:
    """Rows that are normalised by hand and multiplied by a weight each, six times.

    Args:
        other: which weights are others.
        factor: how many times; 0 for one of other numbers.
        moved: weights that are off by rounding alone, as what was computed is.
    """
    x, w = numbers(12, 16), numbers(16, 16, seed=50)
    is_right = bool(other) or bool(moved)
    entries: list[Entry] = []
    for n in range(6):
        weight = single(1 + 0.1 * numbers(16, seed=n))
        if n in other:
            weight = single(weight * factor if factor else 1 + 0.1 * numbers(16, seed=70 + n))
        if n in moved:
            weight = single(weight * (1 + 2.0**-22 * np.sign(numbers(16, seed=60))))
        y = single(x @ w)
        if is_right:
            y = single(y * (1 + 1e-7 * numbers(12, 16, seed=90 + n)))
        entries.append((f"Torch.matmul.{n}.forward", (x, w), y))
        scale = single(y / np.sqrt((y * y).mean(-1, keepdims=True)))
        entries.append((f"Torch.tanh.{n}.forward", (y,), scale))
        x = single(scale * weight)
        entries.append((f"Tensor.__mul__.{n}.forward", (scale, weight), x))
    return entries


@pytest.mark.parametrize("tensors", LEVELS)
def test_another_weight_that_a_product_reads_is_a_fact(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, scaled_rows(), scaled_rows((4,)), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Tensor.__mul__.4.forward"
    assert found.first.parameter
    (told,) = [item for item in facts_of(found) if item.kind == "initial weights"]
    assert told.compared == 6  # matrices of products of two may be parts of results
    assert [item.text for item in told.differing] == [
        "Tensor.__mul__.4.forward.input.1: 1.02 times the left one"
    ]


@pytest.mark.parametrize("tensors", LEVELS)
def test_equal_is_said_where_all_are(tmp_path: Path, tensors: bool) -> None:
    told = fact(tmp_path, scaled_rows(), scaled_rows(), tensors)
    assert told.compared == 6
    assert not told.differing
    assert not told.unsure


def test_a_table_that_differs_by_rounding_may_have_been_computed(tmp_path: Path) -> None:
    told = fact(tmp_path, scaled_rows(), scaled_rows(moved=(1,)))
    assert told.unsure == ["Tensor.__mul__.1.forward.input.1"]
    assert not told.differing


@pytest.mark.parametrize(("count", "are_weights"), [(2, True), (3, False)])
def test_two_of_three_of_a_kind_have_to_be_equal(
    tmp_path: Path, count: int, are_weights: bool
) -> None:
    """The first one is accused by what it does; the others are held against their kind."""
    others = tuple(range(6 - count, 6))
    told = fact(tmp_path, scaled_rows(), scaled_rows(others, 0))
    assert (len(told.differing) == count) is are_weights
    assert bool(told.unsure) is not are_weights


@pytest.mark.parametrize("tensors", LEVELS)
def test_one_factor_of_all_is_told(tmp_path: Path, tensors: bool) -> None:
    told = fact(tmp_path, scaled_rows(), scaled_rows(tuple(range(6))), tensors)
    assert len(told.differing) == 6
    assert math.isclose(told.factor, 1.02, rel_tol=1e-5)
    two = scaled_rows((0, 1))
    two[5] = scaled_rows((1,), 1.03)[5]
    assert math.isnan(fact(tmp_path / "two", scaled_rows(), two, tensors).factor)


# -- other calls, other layouts -------------------------------------------------------------------


def projected(
    packed: bool = False,
    *,
    scaled: float = 1.0,
    exchanged: bool = False,
    order: slice = slice(None),
    has_bias: bool = False,
) -> list[Entry]:
    """Queries, keys and values of some rows, and a product of two of them.

    Args:
        packed: one matrix for all three.
        scaled: the keys' matrix times this.
        exchanged: queries and keys have changed places.
        order: in which the rows of the packed matrix stand.
        has_bias: whether each has a bias, by which the calls are told apart.
    """
    x = single(np.tanh(numbers(12, WIDTH)))
    q, k, v = (single(0.3 * numbers(WIDTH, WIDTH, seed=n)) for n in (1, 2, 3))
    k = single(k * scaled)
    biases = [numbers(WIDTH, seed=n) for n in (4, 5, 6)]
    if exchanged:
        q, k = k, q
    entries: list[Entry] = [("Torch.tanh.0.forward", (numbers(12, WIDTH),), x)]
    made: list[Array] = []

    def linear(w: Array, b: Array) -> Array:
        y = single(x @ w.T + (b if has_bias else 0))
        arguments = (x, w, b) if has_bias else (x, w)
        entries.append((f"Functional.linear.{len(entries)}.forward", arguments, y))
        return y

    if packed:
        whole, bias = np.concatenate((q, k, v))[order], np.concatenate(biases)[order]
        y = linear(single(whole), single(bias))
        back = np.argsort(np.arange(3 * WIDTH)[order])
        made = np.split(single(y[:, back]), 3, axis=1)
    else:
        made = [linear(w, b) for w, b in zip((q, k, v), biases, strict=True)]
    scores = single(made[0] @ made[1].T)
    entries.append(("Torch.matmul.0.forward", (made[0], single(made[1].T)), scores))
    entries.append(("Torch.matmul.1.forward", (scores, made[2]), single(scores @ made[2])))
    return entries


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
@pytest.mark.parametrize("sides", [(False, True), (True, False)])
def test_three_matrices_in_one_are_the_same_weights(
    tmp_path: Path, tensors: bool, has_bias: bool, order: slice, sides: tuple[bool, bool]
) -> None:
    left, right = (projected(side, order=order, has_bias=has_bias) for side in sides)
    told = fact(tmp_path, left, right, tensors)
    assert told.compared == (6 if has_bias else 3)
    assert not told.differing
    assert not told.lone
    assert len(told.reordered) == (2 if has_bias else 1)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_which_of_three_packed_matrices_differs_is_told(tmp_path: Path, order: slice) -> None:
    for name, left, right in (
        ("a", projected(), projected(True, scaled=1.02, order=order)),
        ("b", projected(True, order=order), projected(scaled=1.02)),
    ):
        told = fact(tmp_path / name, left, right)
        (text,) = [item.text for item in told.differing]
        begin = "Functional.linear.2.forward.input.1: 1.02 times the left one"
        assert text == begin + ("" if order.step is None else ", in another order")


def test_of_figures_the_packed_matrix_is_told_to_differ(tmp_path: Path) -> None:
    told = fact(tmp_path, projected(), projected(True, scaled=1.02), tensors=False)
    assert [item.name for item in told.differing] == ["Functional.linear.1.forward.input.1"]


@pytest.mark.parametrize("tensors", LEVELS)
def test_the_operator_is_not_accused_of_being_packed(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, projected(), projected(True, scaled=1.02), tensors)
    assert found.first is not None
    assert found.first.pair.left.type == "matmul"


@pytest.mark.parametrize("tensors", LEVELS)
def test_two_weights_that_changed_places_are_said_so(tmp_path: Path, tensors: bool) -> None:
    left, right = projected(has_bias=True), projected(exchanged=True, has_bias=True)
    told = fact(tmp_path, left, right, tensors)
    assert sorted(item.text for item in told.differing) == [
        "Functional.linear.1.forward.input.1: exchanged with Functional.linear.2.forward.input.1",
        "Functional.linear.2.forward.input.1: exchanged with Functional.linear.1.forward.input.1",
    ]


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize("scaled", [1.0, 1.01])
def test_a_weight_that_another_call_reads_the_other_way_round_is_found(
    tmp_path: Path, tensors: bool, scaled: float
) -> None:
    x = single(np.tanh(numbers(12, WIDTH)))
    w = numbers(8, WIDTH, seed=1)
    other = single(w * scaled)
    begin: Entry = ("Torch.tanh.0.forward", (numbers(12, WIDTH),), x)
    left: list[Entry] = [begin, ("Functional.linear.0.forward", (x, w), single(x @ w.T))]
    right: list[Entry] = [
        begin,
        ("Torch.mm.0.forward", (x, single(other.T)), single(x @ other.T)),
        ("Torch.mm.1.forward", (x, single(x.T)), single(x @ x.T)),
    ]
    told = fact(tmp_path, left, right, tensors)
    assert told.compared == 1
    texts = [item.text for item in told.differing]
    name = "Functional.linear.0.forward.input.1"
    assert texts == ([] if scaled == 1 else [f"{name}: 1.01 times the left one"])


def hidden(order: list[int] | None = None, wrong: bool = False) -> list[Entry]:
    """Two products with a function between them; hidden units stand in an order of their own."""
    order = order or list(range(WIDTH))
    x = single(np.tanh(numbers(12, WIDTH)))
    up, down = numbers(WIDTH, WIDTH, seed=1)[order], numbers(WIDTH, WIDTH, seed=2)
    down = down if wrong else down[:, order]
    y = single(x @ up.T)
    act = single(np.tanh(y))
    z = single(act @ down.T)
    return [
        ("Torch.tanh.0.forward", (numbers(12, WIDTH),), x),
        ("Functional.linear.0.forward", (x, single(up)), y),
        ("Torch.tanh.1.forward", (y,), act),
        ("Functional.linear.1.forward", (act, single(down)), z),
        ("Torch.tanh.2.forward", (z,), single(np.tanh(z))),
    ]


def test_hidden_units_in_another_order_are_no_other_weights(tmp_path: Path) -> None:
    order = list(np.random.default_rng(1).permutation(WIDTH))
    found = compared(tmp_path, hidden(), hidden(order))
    assert found.first is None
    (told,) = [item for item in facts_of(found) if item.kind == "initial weights"]
    assert not told.differing
    assert len(told.reordered) == 2


def test_rows_in_another_order_that_nobody_puts_back_are_a_fault(tmp_path: Path) -> None:
    order = list(np.random.default_rng(1).permutation(WIDTH))
    found = compared(tmp_path, hidden(), hidden(order, wrong=True))
    assert found.first is not None
    assert found.first.parameter
    (told,) = [item for item in facts_of(found) if item.kind == "initial weights"]
    assert [item.text for item in told.differing] == [
        "Functional.linear.0.forward.input.1: the same numbers in another order"
    ]

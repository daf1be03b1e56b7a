"""Ranks that should hold the same and do not, of runs that a layout file tells of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.assembled import multiple_of
from irtool.compare.layouts.declared import SideLayout
from tests.compare.dumps import Entry
from tests.compare.test_declared_layouts import ONE, compared, written

Values = NDArray[Any]
ROWS, WIDTH = 8, 12
TWO, FOUR = SideLayout(2), SideLayout(2, 2)


def drawn(seed: int, *shape: int) -> Values:
    return np.asarray(np.random.default_rng(seed).normal(size=shape), np.float32)


# -- gradients -----------------------------------------------------------------------------------


def backward(rows: int, parts: int, fault: str) -> list[list[Entry]]:
    """A gradient that all tensor parallel ranks hold, and terms that they add up behind."""
    x, weight = drawn(1, ROWS, WIDTH), drawn(2, WIDTH, WIDTH)
    ranks: list[list[Entry]] = []
    for data in range(ROWS // rows):
        mine = x[data * rows : (data + 1) * rows]
        for part in range(parts):
            last = (data + 1) * rows == ROWS and part == parts - 1
            factor = {"replica": 1.1, "little": 1.004}.get(fault, 1.0) if last else 1.0
            own = np.split(weight, parts, axis=0)[part]
            grad = np.asarray(np.tanh(mine) * np.float32(factor), np.float32)
            columns = np.split(grad, parts, axis=1)[part]
            ranks.append(
                [
                    ("Torch.exp.0.forward", [mine], np.exp(mine)),
                    (
                        "Functional.linear.0.forward",
                        [mine, own],
                        np.matmul(mine, np.transpose(own)),
                    ),
                    ("Torch.exp.0.backward", [np.tanh(mine)], grad),
                    ("Functional.linear.0.backward", [columns], np.matmul(columns, own)),
                ]
            )
    return ranks


@pytest.mark.parametrize("layout", [TWO, FOUR])
@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(("fault", "is_named"), [("", False), ("little", False), ("replica", True)])
def test_a_gradient_that_is_a_multiple_on_one_rank_is_no_term(
    tmp_path: Path, layout: SideLayout, tensors: bool, fault: str, is_named: bool
) -> None:
    rows = ROWS // layout.data_parallel
    one = written(tmp_path / "one", backward(ROWS, 1, ""), tensors)
    several = written(tmp_path / "several", backward(rows, 2, fault), tensors)
    first = compared(one, several, ONE, layout).first
    told = first is not None and " times on rank " in first.why
    assert told == is_named
    if first is not None and told:
        last = 2 * layout.data_parallel - 1
        assert (first.pair.right.name, first.ranks) == ("Torch.exp.0.backward", (last,))
        assert "1.1 times" in first.why
    assert (first is None) == (not fault)


def test_a_factor_leaves_nothing_over() -> None:
    a = drawn(3, 20)
    factor, rest = multiple_of(a, a * np.float32(1.25))
    assert abs(factor - 1.25) < 1e-6
    assert rest < 1e-6
    assert multiple_of(a, a + drawn(4, 20))[1] > 0.1
    assert multiple_of(a[:7], a[:7])[1] == np.inf  # too few to say so
    assert multiple_of(a[:8], a[:8])[1] < 1e-6
    assert multiple_of(a, np.zeros_like(a))[1] == np.inf


# -- what is made before ranks share the work ------------------------------------------------------


def places(rows: int, parts: int, fault: str) -> list[list[Entry]]:
    """Angles that every rank makes for itself, and what it makes of its part of the batch."""
    x, step = drawn(5, ROWS, WIDTH), np.arange(1.0, WIDTH + 1, dtype=np.float32)
    ranks: list[list[Entry]] = []
    for data in range(ROWS // rows):
        mine = x[data * rows : (data + 1) * rows]
        for part in range(parts):
            last = (data + 1) * rows == ROWS and part == parts - 1
            shift = np.float32(1.0 if fault == "all" or (fault == "one" and last) else 0.0)
            angles = step + shift
            ranks.append(
                [
                    ("Tensor.__add__.0.forward", [step], angles),
                    ("Tensor.cos.0.forward", [angles], np.cos(angles)),
                    ("Tensor.__mul__.0.forward", [mine, np.cos(angles)], mine * np.cos(angles)),
                ]
            )
    return ranks


@pytest.mark.parametrize("layout", [TWO, FOUR, SideLayout(1, 2)])
@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("fault", ["", "one", "all"])
def test_a_vector_of_one_rank_is_told_where_it_is_made(
    tmp_path: Path, layout: SideLayout, tensors: bool, fault: str
) -> None:
    rows = ROWS // layout.data_parallel
    one = written(tmp_path / "one", places(ROWS, 1, ""), tensors)
    several = written(tmp_path / "several", places(rows, layout.tensor_parallel, fault), tensors)
    first = compared(one, several, ONE, layout).first
    assert (first is not None) == bool(fault)
    if first is not None:
        assert first.pair.right.type == "__add__"
        last = layout.tensor_parallel * layout.data_parallel - 1
        assert first.ranks == ((last,) if fault == "one" else ())


# -- terms, by figures ---------------------------------------------------------------------------


def summed(parts: int, fault: str) -> list[list[Entry]]:
    """A product over a cut axis and what is added to it: the whole, or a share on each rank."""
    x, weight, rest = drawn(6, ROWS, WIDTH), drawn(7, WIDTH, WIDTH), drawn(8, ROWS, WIDTH)
    terms = [
        np.matmul(a, w)
        for a, w in zip(np.split(x, parts, 1), np.split(weight, parts, 0), strict=True)
    ]
    total = np.asarray(np.sum(terms, axis=0), np.float32)
    ranks: list[list[Entry]] = []
    for a, w, term in zip(np.split(x, parts, 1), np.split(weight, parts, 0), terms, strict=True):
        entries: list[Entry] = [("Torch.matmul.0.forward", [a, w], term)]
        share = rest / np.float32(parts)
        if fault == "missing":
            entries.append(("Tensor.__add__.0.forward", [term, rest], term + rest))
        elif fault == "share" and parts > 1:
            entries.append(("Tensor.__add__.0.forward", [term, share], term + share))
            entries.append(("Distributed.all_reduce.0.forward", [term + share], total + rest))
        else:
            if parts > 1:
                entries.append(("Distributed.all_reduce.0.forward", [term], total))
            entries.append(("Tensor.__add__.0.forward", [total, rest], total + rest))
        ranks.append(entries)
    return ranks


@pytest.mark.parametrize(("fault", "is_named"), [("", False), ("share", False), ("missing", True)])
def test_terms_that_are_added_to_the_whole_are_told_by_figures(
    tmp_path: Path, fault: str, is_named: bool
) -> None:
    one = written(tmp_path / "one", summed(1, ""), tensors=False)
    two = written(tmp_path / "two", summed(2, fault), tensors=False)
    first = compared(one, two, ONE, TWO).first
    assert (first is not None and "partial sum" in first.why) == is_named
    if first is not None and is_named:
        assert first.pair.right.type == "__add__"


# -- terms that are rounded ------------------------------------------------------------------------


def test_a_product_whose_terms_ranks_round_is_healthy(tmp_path: Path) -> None:
    x, weight = (drawn(seed, 64, 64).astype(np.float16) for seed in (9, 10))
    cells = [np.split(values, 2, 1) for values in (x, weight)]

    def product(a: Values, b: Values) -> Values:
        wide = np.matmul(a.astype(np.float64), np.transpose(b).astype(np.float64))
        return np.asarray(wide, np.float16)

    terms = [product(a, b) for a, b in zip(*cells, strict=True)]
    total = np.asarray(terms[0] + terms[1], np.float16)
    whole = product(x, weight)
    one: list[Entry] = [
        ("Functional.linear.0.forward", [x, weight], whole),
        ("Torch.tanh.0.forward", [whole], np.tanh(whole)),
    ]
    two: list[list[Entry]] = [
        [
            ("Functional.linear.0.forward", [a, b], term),
            ("Distributed.all_reduce.0.forward", [term], total),
            ("Torch.tanh.0.forward", [total], np.tanh(total)),
        ]
        for a, b, term in zip(*cells, terms, strict=True)
    ]
    sides = written(tmp_path / "one", [one]), written(tmp_path / "two", two)
    assert compared(*sides, ONE, TWO).first is None

"""What runs are given is compared exactly, and told before any operator is accused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs, first_case
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import sentences
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

WORDS, WIDTH = 11, 6


def step(
    ids: int = 0,
    labels: int = 0,
    weight: float = 0.0,
    seed: int = 1,
    pixels: float = 0.0,
    is_half: bool = False,
) -> list[Entry]:
    """Data through a product, an embedding, dropout and a loss; what is other than usual."""
    draw = np.random.default_rng(0)
    images = draw.normal(size=(4, WIDTH)).astype(np.float32)
    images[0, 0] += pixels
    if is_half:
        images = images.astype(np.float16).astype(np.float32)
    matrix = draw.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    table = draw.normal(size=(WORDS, WIDTH)).astype(np.float32)
    table[0, 0] += np.float32(weight)
    indices = np.arange(4)
    indices[1] += ids
    targets = np.arange(4)
    targets[2] += labels
    product = images @ matrix.T
    embedded = table[indices]
    mask = np.random.default_rng(seed).random(embedded.shape) > 0.1
    kept = (embedded * mask).astype(np.float32)
    shares = kept - np.log(np.exp(kept).sum(-1, keepdims=True))
    loss = np.asarray(-shares[np.arange(4), targets].mean(), np.float32)
    return [
        ("Functional.linear.0.forward", [images, matrix], product),
        ("Functional.embedding.0.forward", [indices, table], embedded),
        ("Functional.dropout.0.forward", [embedded], kept),
        ("Functional.cross_entropy.0.forward", [kept, targets], loss),
    ]


def compared(folder: Path, *, tensors: bool = True, **other: Any) -> RunComparison:
    paths = [
        msprobe(folder / "left", step(), tensors=tensors),
        msprobe(folder / "right", step(**other), tensors=tensors),
    ]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def rows(found: RunComparison) -> dict[str, tuple[str, bool | None]]:
    return {row.name: (row.right, row.same) for row in found.hyperparameters}


@pytest.mark.parametrize(
    ("kind", "other", "text"),
    [
        ("initial weights", {"weight": 1e-6}, "1 of 2 differ"),
        ("input data", {"pixels": 1e-6}, "1 of 1 differ"),
        ("indices", {"ids": 1}, "1 of 1 differ"),
        ("labels", {"labels": 1}, "1 of 1 differ"),
    ],
)
def test_one_element_that_differs_is_told(
    tmp_path: Path, kind: str, other: dict[str, Any], text: str
) -> None:
    found = compared(tmp_path, **other)
    assert rows(found)[kind] == (text, False)
    assert found.is_suspicious


@pytest.mark.parametrize("tensors", [True, False])
def test_what_is_equal_is_said_to_be_equal(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, tensors=tensors)
    told = rows(found)
    word = "equal" if tensors else "equal extremes, means and norms"
    assert told["initial weights"] == (f"{word} (2 compared)", True)
    # Statistics state extremes of whole numbers and nothing else, which proves little.
    wanted = ("equal (1 compared)", True) if tensors else ("equal extremes (1 compared)", None)
    assert told["labels"] == told["indices"] == wanted
    assert not found.is_suspicious


def test_what_extremes_hide_of_whole_numbers_is_said(tmp_path: Path) -> None:
    found = compared(tmp_path, tensors=False, labels=-1)
    assert rows(found)["labels"] == ("equal extremes (1 compared)", None)
    text = sentences(found, first_case(found))
    assert any("what indices and labels are between their extremes" in line for line in text)


def test_a_weight_that_is_off_in_its_last_bit_is_another_weight(tmp_path: Path) -> None:
    """Of what an operator computes that would be rounding; nobody has computed a weight."""
    found = compared(tmp_path, weight=1e-7)
    assert rows(found)["initial weights"] == ("1 of 2 differ", False)
    assert found.first is not None
    assert found.first.parameter


def test_random_numbers_that_differ_are_a_fact_and_accuse_nobody(tmp_path: Path) -> None:
    found = compared(tmp_path, seed=2)
    assert rows(found)["random numbers"] == ("1 of 1 differ", None)
    assert not found.told_differently


def test_an_input_after_the_first_operator_is_not_taken_for_data(tmp_path: Path) -> None:
    assert rows(compared(tmp_path))["input data"][0] == "equal (1 compared)"


def scaled(factor: float, added: bool) -> list[Entry]:
    """A product in half precision, on one side times a number, and what reads it."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(8, WIDTH)).astype(np.float16)
    w = draw.normal(size=(WIDTH, WIDTH)).astype(np.float16)
    y = x @ w.T
    if added:  # another kernel
        y = (y * np.float32(1.0012)).astype(np.float16)
    z = (y * np.float32(factor)).astype(np.float16)
    made: list[Entry] = [("Functional.linear.0.forward", [x, w], y)]
    if added:
        made.append(("Tensor.__mul__.0.forward", [y, factor], z))
    made.append(("Functional.mystery.0.forward", [z], z * 2))
    return made


@pytest.mark.parametrize(("factor", "is_named"), [(1.02, True), (1.004, False)])
def test_a_number_that_one_side_multiplies_by_is_found_in_its_result(
    tmp_path: Path, factor: float, is_named: bool
) -> None:
    left = msprobe(tmp_path / "left", scaled(1.0, False))
    right = msprobe(tmp_path / "right", scaled(factor, True))
    sides = [side_of_run(load_run(str(path)), None) for path in (left, right)]
    first = compare_runs(sides[0], sides[1], Settings()).first
    told = first.entered if first is not None else ""
    assert ("is 1.02 times" in told) is is_named


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(("pixels", "answer"), [
    (0.0, ("1 of 1 rounded on one side, the others equal", None)), (0.5, ("1 of 1 differ", False)),
])  # fmt: skip
def test_data_that_one_side_rounds_to_half_precision_are_the_same_data(
    tmp_path: Path, pixels: float, answer: tuple[str, bool | None], tensors: bool
) -> None:
    """Stored in Float32, they are known by their values, all of which Float16 has."""
    found = rows(compared(tmp_path, tensors=tensors, is_half=True, pixels=pixels))
    text, same = found["input data"]
    assert (text.removesuffix(" by their figures"), same) == answer


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
def test_weights_of_calls_without_a_partner_are_not_called_equal(
    tmp_path: Path, side: str, tensors: bool
) -> None:
    """An expert that one side alone has: nothing is compared of it, and it accuses nobody."""
    lone = np.linspace(-2, 3, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)
    entries = step()
    given = entries[0][1][0]
    more: Entry = ("Functional.linear.1.forward", [given, lone], given @ lone.T)
    again: Entry = ("Functional.linear.1.forward", entries[0][1], entries[0][2])
    for name, entry, is_partial in (("other", more, True), ("again", again, False)):
        folders = [
            msprobe(
                tmp_path / name / which,
                [*entries, entry] if which == side else entries,
                tensors=tensors,
            )
            for which in ("left", "right")
        ]
        sides = [side_of_run(load_run(str(folder)), None) for folder in folders]
        comparison = compare_runs(sides[0], sides[1], Settings())
        (row,) = (row for row in comparison.hyperparameters if row.name == "initial weights")
        assert ("others not" in row.left) == is_partial
        assert row.same is (None if is_partial else True)
        assert not comparison.told_differently

"""One side computes in one call what the other does in two: neither is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.comparison import compare_tensors
from irtool.compare.tensors.judging.attributes import AttributeChange, changed_attributes
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import Array, compared, numbers, single, softmax, unit

LEVELS = [True, False]


def with_bias(is_fused: bool, factor: float = 1.0) -> list[Entry]:
    """A product and its bias, and what reads their sum."""
    x, w, b = numbers(12, 16), numbers(8, 16, seed=1), numbers(8, seed=2)
    product = single(x @ w.T)
    result = single(factor * (product + b))
    read = ("Torch.softmax.0.forward", (result, -1), softmax(result))
    if is_fused:
        return [("Functional.linear.0.forward", (x, w, b), result), read]
    return [
        ("Functional.linear.0.forward", (x, w), product),
        ("Tensor.__add__.0.forward", (product, b), result),
        read,
    ]


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize("is_left", [True, False])
def test_a_bias_that_one_side_fuses_is_no_fault(
    tmp_path: Path, tensors: bool, is_left: bool
) -> None:
    sides = with_bias(not is_left), with_bias(is_left)
    found = compared(tmp_path, *sides, tensors)
    assert found.first is None
    (item,) = (each for each in found.judged if each.pair.left.type == "linear")
    assert item.verdict == "not comparable"
    assert "computed in other parts: what Tensor.__add__.0.forward gives" in item.why


@pytest.mark.parametrize(("factor", "is_accused"), [(1.0, False), (1.01, True)])
def test_a_fused_bias_hides_no_fault(tmp_path: Path, factor: float, is_accused: bool) -> None:
    found = compared(tmp_path, with_bias(False), with_bias(True, factor))
    assert (found.first is not None) == is_accused


def masked(is_added: bool) -> list[Entry]:
    """Scores that are masked, or that a mask made first is added to."""
    scores = numbers(12, 12)
    mask = np.triu(np.ones((12, 12), bool), 1)
    result = np.where(mask, np.float32(-np.inf), scores)
    read = ("Torch.softmax.0.forward", (result, -1), softmax(result))
    if not is_added:
        return [("Tensor.masked_fill.0.forward", (scores, mask, -np.inf), result), read]
    zeros = np.zeros((12, 12), np.float32)
    made = np.where(mask, np.float32(-np.inf), zeros)
    return [
        ("Tensor.masked_fill.0.forward", (zeros, mask, -np.inf), made),
        ("Tensor.__add__.0.forward", (scores, made), result),
        read,
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_mask_that_one_side_adds_is_no_fault(tmp_path: Path) -> None:
    assert compared(tmp_path, masked(False), masked(True)).first is None


def coarse(values: Array, bits: int = 0xFFF00000) -> Array:
    """Numbers of few bits, so that norms that are printed with three digits are alike."""
    return (values.view(np.uint32) & np.uint32(bits)).view(np.float32)


def projections(is_swapped: bool) -> list[Entry]:
    """Two products whose weights have one norm and one largest value, in either order."""
    x = numbers(12, 16)
    first = coarse(numbers(16, 16, seed=1))
    second = single(np.abs(first) * np.where(numbers(16, 16, seed=2) > 0, 1, -1))
    second[0, 0] = first.max()
    second[0, 1] = first.min()
    weights = (second, first) if is_swapped else (first, second)
    return [
        (f"Functional.linear.{n}.forward", (x, w), single(x @ w.T)) for n, w in enumerate(weights)
    ]


@pytest.mark.parametrize("tensors", LEVELS)
def test_calls_that_change_places_are_paired_by_the_means_of_their_weights(
    tmp_path: Path, tensors: bool
) -> None:
    found = compared(tmp_path, projections(False), projections(True), tensors)
    assert found.first is None
    assert found.is_equal


def lowered(sides: str, which: int) -> list[Entry]:
    """A value that goes through half precision where the dump shows nothing of it."""
    x, w = numbers(64, 64), numbers(64, 64, seed=1)
    noise = single(1 + 1e-7 * numbers(64, 64, seed=9))
    made = single(x @ w.T) * (noise if which else 1)
    is_lowered = sides in ("both", ("left", "right")[which])
    read = single(single(made).astype(np.float16)) if is_lowered else made
    if is_lowered and which:  # a neighbour, as other kernels round
        read = single(np.nextafter(read.astype(np.float16), np.float16(9)))
    return [
        ("Functional.linear.0.forward", (x, w), single(made)),
        ("Functional.linear.1.forward", (read, w), single(read @ w.T)),
    ]


@pytest.mark.parametrize(("sides", "is_seen"), [("both", False), ("right", True)])
def test_precision_that_both_sides_lower_is_nothing_to_see(
    tmp_path: Path, sides: str, is_seen: bool
) -> None:
    found = compared(tmp_path, lowered(sides, 0), lowered(sides, 1))
    assert found.first is None
    assert any(item.lowered for item in found.judged) == is_seen


def test_whole_numbers_of_what_may_be_in_another_order(tmp_path: Path) -> None:
    x = numbers(40)
    index = [("Torch.argmax.0.forward", (x,), np.array([n])) for n in (3, 30)]
    (tmp_path / "x").mkdir()
    found = compared(tmp_path / "x", *[[each] for each in index], False)
    assert found.first is not None
    assert found.first.may_be_order


@pytest.mark.parametrize(
    ("values", "verdict"),
    [(("none", "tanh"), "attribute differs"), ((4, 8), "carries error")],
)
def test_of_runs_that_are_cut_words_are_arguments_and_numbers_follow_the_slices(
    tmp_path: Path, values: tuple[object, object], verdict: str
) -> None:
    x, noise = numbers(40), single(1 + 6e-8 * np.sign(numbers(40, seed=3)))
    sides = [
        unit(msprobe(tmp_path / str(n), [("Functional.gelu.0.forward", (x, value), y)], True))
        for n, (value, y) in enumerate(zip(values, (x, single(x * noise)), strict=True))
    ]
    found = compare_tensors(*sides, known={0: 0}, sharded=True)
    assert [item.verdict for item in found.judged] == [verdict]


@pytest.mark.parametrize(
    ("change", "is_word"),
    [(("input.1", "none", "tanh"), True), (("input.1", "4", "8"), False),
     (("operator", "Linear", "ColumnParallelLinear"), False),
     (("input.1", "(none)", "tanh"), False)],
)  # fmt: skip
def test_what_an_operator_is_called_is_no_argument(
    change: tuple[str, str, str], is_word: bool
) -> None:
    assert AttributeChange(*change).is_word == is_word


def read_by(kind: str, factor: float = 1.0) -> list[Entry]:
    """The same loss of logits, or of what their softmax gives."""
    x, labels = numbers(40, 8), np.arange(40) % 8
    logged = np.log(softmax(x))
    loss = single([factor * -logged[np.arange(40), labels].mean()])
    if kind == "whole":
        return [("Functional.cross_entropy.0.forward", (x, labels), loss)]
    return [
        ("Functional.log_softmax.0.forward", (x, -1), single(logged)),
        ("Functional.nll_loss.0.forward", (single(logged), labels), loss),
    ]


def test_another_operator_that_gives_the_same_is_nothing_to_see(tmp_path: Path) -> None:
    found = compared(tmp_path, read_by("whole"), read_by("parts"))
    assert found.first is None
    assert not found.counts.get("attribute differs")


def test_another_operator_that_gives_something_else_is(tmp_path: Path) -> None:
    found = compared(tmp_path, read_by("whole"), read_by("parts", 1.001))
    assert found.first is not None


@pytest.mark.parametrize(
    ("values", "is_told"),
    [((-np.inf, -65504.0), False), ((-3.3895e38, -3.4028e38), False), ((-np.inf, -1e4), True),
     ((-np.inf, np.inf), True)],
)  # fmt: skip
def test_masks_of_the_least_numbers_are_one_argument(
    values: tuple[float, float], is_told: bool
) -> None:
    changes = changed_attributes({"input.2": values[0]}, {"input.2": values[1]})
    assert bool(list(changes)) == is_told


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [(np.float64, "carries error"), (np.float16, "lower precision, explained")],
)
def test_more_precision_than_float32_is_nothing_to_see(
    tmp_path: Path, kind: type, verdict: str
) -> None:
    x, w = numbers(12, 16), numbers(16, 16, seed=1)
    made = numbers(12, 16, seed=2)
    noise = 1 + (2.0**-22 if kind is np.float64 else 2.0**-12) * numbers(12, 16, seed=3)
    sides: list[list[Entry]] = [
        [("Functional.mystery.0.forward", (x, w), made)],
        [("Functional.mystery.0.forward", (x, w), (made * noise).astype(kind))],
    ]
    (item,) = compared(tmp_path, *sides).judged
    assert item.verdict == verdict

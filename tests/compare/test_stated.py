"""Distances from the figures that dumps state: worked out by hand for each figure."""

from __future__ import annotations

import math

import pytest

from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.measuring.stated import measure_stated
from irtool.compare.tensors.model import NAN, Columns, Shape

Figures = tuple[float, float, float, float]
"""Largest, smallest, mean, norm."""

BASE: Figures = (4.0, -2.0, 0.5, 8.0)
"""Of 16 elements: their root mean square is 2."""


def measured(
    left: Figures,
    right: Figures,
    shapes: tuple[Shape, Shape] = ((4, 4), (4, 4)),
    *,
    hashes: tuple[str, str] = ("", ""),
    broken: tuple[int, int] = (0, 0),
    resolution: float = 0.0,
) -> Measure:
    columns: list[Columns] = []
    for figures, shape, checksum, count in zip((left, right), shapes, hashes, broken, strict=True):
        one = Columns(resolution=resolution)
        one.add("output.0", "Float32", shape, figures, checksum=checksum, broken=count)
        columns.append(one)
    (found,) = measure_stated(columns[0], columns[1], [(0, 0)])
    return found


def test_equal_figures_are_equal() -> None:
    found = measured(BASE, BASE)
    assert (found.error, found.equal, found.exact) == (0.0, True, False)
    assert (found.left, found.right) == (8.0, 8.0)


@pytest.mark.parametrize(
    ("right", "error"),
    [
        ((4.1, -2.0, 0.5, 8.0), 0.1 / 4.1),  # over the largest magnitude of either side
        ((3.9, -2.0, 0.5, 8.0), 0.1 / 4.0),
        ((4.0, -2.4, 0.5, 8.0), 0.4 / 4.0),
        ((4.0, -2.0, 0.7, 8.0), 0.2 / 2.0),  # over the root mean square
        ((4.0, -2.0, 0.5, 8.8), 0.8 / 8.8),
        ((4.4, -2.0, 0.5, 10.0), 2.0 / 10.0),  # the largest of them counts
    ],
)
def test_each_figure_has_a_scale_of_its_own(right: Figures, error: float) -> None:
    for one, other in ((BASE, right), (right, BASE)):
        found = measured(one, other)
        assert found.error == pytest.approx(error)
        assert not found.equal


def test_a_mean_is_held_against_the_root_mean_square_of_the_larger_norm() -> None:
    found = measured((4.0, -2.0, 0.5, 8.0), (4.0, -2.0, 0.5 + 1e-3, 8.0), ((64,), (64,)))
    assert found.error == pytest.approx(1e-3 / 1.0)


def test_a_mean_is_held_against_the_extreme_where_no_norm_is_stated() -> None:
    found = measured((4.0, -2.0, 0.5, NAN), (4.0, -2.0, 0.9, NAN))
    assert found.error == pytest.approx(0.1)
    assert found.left == pytest.approx(4.0 * 4)  # at most: all elements as large as the largest


def test_what_is_infinite_on_both_sides_is_the_same_and_says_nothing_more() -> None:
    found = measured((math.inf, -2.0, NAN, 8.0), (math.inf, -2.2, NAN, 8.0))
    assert (found.broken_left, found.broken_right) == (1, 1)
    assert not found.equal
    assert found.error == 0.0 or found.error < 1


def test_what_is_infinite_on_one_side_is_counted() -> None:
    found = measured((math.inf, -2.0, 0.5, 8.0), BASE)
    assert (found.broken_left, found.broken_right) == (1, 0)
    assert not found.equal
    low = measured(BASE, (4.0, -math.inf, 0.5, 8.0))
    assert (low.broken_left, low.broken_right) == (0, 1)
    counted = measured(BASE, BASE, broken=(7, 0))
    assert (counted.broken_left, counted.broken_right) == (7, 0)


def test_a_figure_that_one_side_lacks_is_a_difference_without_a_size() -> None:
    found = measured(BASE, (4.0, -2.0, NAN, 8.0))
    assert found.error == 0.0
    assert not found.equal


def test_few_digits_hide_small_differences() -> None:
    right = (4.0, -2.0, 0.5, 8.004)
    assert measured(BASE, right).error == pytest.approx(0.004 / 8.004)
    hidden = measured(BASE, right, resolution=1e-3)
    assert (hidden.error, hidden.equal) == (0.0, True)
    seen = measured(BASE, (4.0, -2.0, 0.5, 8.04), resolution=1e-3)
    assert seen.error == pytest.approx(0.04 / 8.04 - 1e-3)
    assert not seen.equal


def test_zeros_are_no_distance_from_zeros_and_far_from_anything() -> None:
    zeros = (0.0, 0.0, 0.0, 0.0)
    assert measured(zeros, zeros).error == 0.0
    assert measured(zeros, BASE).error == 1.0


def test_other_sizes_are_not_compared() -> None:
    found = measured(BASE, BASE, ((4, 4), (4, 5)))
    assert math.isnan(found.error)
    assert (found.equal, found.note) == (False, "shapes differ")
    assert measured(BASE, BASE, ((4, 4), (2, 8))).equal


NOTHING: Figures = (NAN, NAN, NAN, NAN)


def test_checksums_alone_tell_whether_it_is_equal() -> None:
    same = measured(NOTHING, NOTHING, hashes=("aa", "aa"))
    assert (same.error, same.equal, same.note) == (0.0, True, "")
    other = measured(NOTHING, NOTHING, hashes=("aa", "bb"))
    assert math.isnan(other.error)
    assert (other.equal, other.note) == (False, "only checksums")


def test_checksums_of_other_kinds_tell_nothing() -> None:
    found = measured(NOTHING, NOTHING, hashes=("aa", "bbbb"), broken=(3, 4))
    assert math.isnan(found.error)
    assert found.note == "no values"
    assert (found.broken_left, found.broken_right) == (3, 4)
    assert measured(NOTHING, NOTHING).note == "no values"
    assert measured(BASE, NOTHING).note == "no values"


def test_tensors_of_no_elements_are_equal() -> None:
    found = measured(NOTHING, NOTHING, ((0, 4), (0, 4)))
    assert (found.error, found.equal) == (0.0, True)


def test_equal_figures_of_other_checksums_are_not_equal_bits() -> None:
    assert not measured(BASE, BASE, hashes=("aa", "bb")).equal
    assert measured(BASE, BASE, hashes=("aa", "aa")).equal
    assert measured(BASE, BASE, hashes=("aa", "bbbb")).equal
    assert measured(BASE, BASE, hashes=("aa", "")).equal


def test_pairs_may_be_any_of_the_tensors() -> None:
    left, right = Columns(), Columns()
    for columns, norms in ((left, (1.0, 2.0, 3.0)), (right, (3.0, 1.0, 2.0))):
        for norm in norms:
            columns.add("output.0", "Float32", (4,), (1.0, -1.0, 0.0, norm))
    found = measure_stated(left, right, [(0, 1), (2, 0), (1, 0)])
    assert [one.equal for one in found] == [True, True, False]
    assert [(one.left, one.right) for one in found] == [(1.0, 1.0), (3.0, 3.0), (2.0, 3.0)]

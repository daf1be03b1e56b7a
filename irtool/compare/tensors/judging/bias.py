"""Whether two tensors differ by a factor: what rounding does not do, however coarse the type.

Rounding to nearest errs up as often as down, so over many elements it changes neither the scale of
a tensor nor its norm: of *n* elements that are each off by up to *u* relative, the factor that fits
best is off by about u/sqrt(3 n).  A factor of 1.02 stands out of BFloat16, whose single elements
are off by up to 0.4 %, as soon as there are a few dozen of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Places


def scale_of(measure: Measure) -> float:
    """By how much the right tensor is the larger one: the factor that fits best, less 1.

    From values and sketches by least squares, ``<l, r> / <l, l> - 1``, of which the product is
    known through both norms and the distance; from figures by the norms alone.  NaN where nothing
    is known.

    Args:
        measure: of the two tensors.
    """
    left, right = measure.left, measure.right
    if not left > 0 or not math.isfinite(left) or not math.isfinite(right):
        return math.nan
    if not measure.exact:
        return right / left - 1.0
    product = (left * left + right * right - measure.distance**2) / 2
    return product / (left * left) - 1.0


_MAGNIFIED = 3.0
"""How many times the factors of its inputs an operator's result may be off by one."""
_UNITS = 1.5
"""Units of the coarsest type that a factor may be: kernels may cut off, and state norms in it."""
_LONE_UNITS = 4.1
"""The same of one element, which rounding either way takes a step of the type: four units."""
_MANY = 1 << 20
_SPREAD = 8.0
"""Standard deviations of a norm whose elements are off by chance, each by the error of the inputs
over the root of how many there are: four, and functions of second degree double the error."""
_STATED_UNITS = 2.05
"""The same from figures: norms that are stated in the type may be a step of it apart though the
tensors are not, and a step is up to two units."""
LEAST_FIGURES = 1e-3
"""Factor that is believed from stated figures at least."""
LEAST_EXACT = 2.0**-20
"""The same from values, which only half precision hides."""


def is_comparable(measure: Measure) -> bool:
    """Whether norms tell a factor: nothing is NaN, infinite or zero on one side.

    Args:
        measure: of a pair of tensors.
    """
    scale = scale_of(measure)
    return (
        math.isfinite(scale)
        and measure.right > 0
        and measure.broken_left <= 0
        and measure.broken_right <= 0
    )


def explained_scale(
    scales: Sequence[float], error: float, unit: float, exact: bool, size: int = _MANY
) -> float:
    """The factor, less 1, that a result may be off by.

    Args:
        scales: of what it is computed from.
        error: largest relative error of that: squared it lengthens a tensor, as noise does, and a
            tensor of few elements is longer or shorter by chance.
        unit: roundoff of the coarsest type.
        exact: from values, not from figures.
        size: elements of the result; many, if it is not given.
    """
    known = [abs(scale) for scale in scales if math.isfinite(scale)]
    carried = _MAGNIFIED * max(known, default=0.0)
    lone = _LONE_UNITS * unit / math.sqrt(max(1, size))
    least = _UNITS * unit if exact else max(_STATED_UNITS * unit, LEAST_FIGURES)
    least = max(least, lone)
    by_chance = _SPREAD * error / math.sqrt(max(1, size))
    return carried + 2.0 * error * error + by_chance + least


def evenly(size: int, least: float = 0.25) -> float:
    """Units that rounding so many elements may change their factor by: a quarter, or four sigma.

    Args:
        size: number of elements; each is off by up to a unit, up as often as down.
        least: what is allowed however many elements there are.
    """
    return min(1.0, max(least, 4.0 / math.sqrt(3.0 * max(1, size))))


_ROUNDED = 0.58
"""Units that an element, rounded on two sides, is off by at random: root mean square."""
_DEVIATIONS = 6.0
"""Standard deviations that chance may move a mean by."""


def mean_shift(columns: tuple[Columns, Columns], places: Places) -> float:
    """By how much the stated means of two tensors differ for sure, as independent errors count.

    Args:
        columns: of both dumps.
        places: of the tensor in both.

    Returns:
        The difference, less what stating means in the type hides, times √n over the root mean
        square: errors of relative size *e* at random give about *e*.  0 where nothing is known.
    """
    (left, right), (a, b) = columns, places
    size = math.prod(left.shapes[a])
    means, norm = (left.mean[a], right.mean[b]), max(left.norm[a], right.norm[b])
    if not (0 < norm < math.inf) or not all(map(math.isfinite, means)):
        return 0.0
    unit = max(roundoff(left.dtypes[a]), roundoff(right.dtypes[b]))
    largest = max(map(abs, means))
    step = unit * 2.0 ** math.frexp(largest)[1] if largest else 0.0
    return max(0.0, abs(means[1] - means[0]) - step) * size / norm


def explained_shift(unit: float, before: float) -> float:
    """How large that may be by chance.

    Args:
        unit: roundoff of the coarsest type.
        before: largest relative error before.
    """
    return _DEVIATIONS * math.hypot(_ROUNDED * unit, before)

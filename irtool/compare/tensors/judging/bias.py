"""Whether two tensors differ by a factor: what rounding does not do, however coarse the type.

Rounding to nearest errs up as often as down, so over many elements it changes neither the scale of
a tensor nor its norm: of *n* elements that are each off by up to *u* relative, the factor that fits
best is off by about u/sqrt(3 n).  A factor of 1.02 stands out of BFloat16, whose single elements
are off by up to 0.4 %, as soon as there are a few dozen of them.
"""

from __future__ import annotations

import math

from irtool.compare.tensors.measuring.measure import Measure


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

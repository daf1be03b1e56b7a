"""Gradients of a run whose loss is scaled: a power of two times those of the other run.

Half precision needs the loss scaled up, so that small gradients do not vanish, and the optimizer
takes the factor out again.  What lies between is right, only larger.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Places
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.semantics import family

_LEAST = 6
"""Binary logarithm of the smallest scale that is believed: a smaller factor may be a fault."""
_SHARE = 0.8
"""Share of the gradients with any factor that have to agree on one."""
_NEAR = 0.25
"""How far, in powers of two, norms may be from an exact factor."""


def gradient_scale(
    pairs: Sequence[OpPair], slots: Sequence[Slots], measures: dict[Places, Measure]
) -> float:
    """Right gradients over left ones: a power of two, 1 where they are not scaled.

    Args:
        pairs: of operators.
        slots: tensors of each pair.
        measures: of all pairs of tensors; those of gradients become what they are without the
            factor.
    """
    results = [
        measures[places]
        for pair, tensors in zip(pairs, slots, strict=True)
        if pair.left.phase == "backward"
        for places in tensors.outputs
    ]
    near = [_power(measure.right / measure.left) for measure in results if measure.left > 0]
    powers = Counter(power for power in near if power is not None)
    unscaled = powers.pop(0, 0)  # gradients below a scale that was taken out, forward values
    if not powers:
        return 1.0
    power, times = powers.most_common(1)[0]
    others = powers.total() - times
    if power != next(factor for factor in near if factor != 0):
        return 1.0  # the loss was not scaled by it: a residue of rounding may be any multiple
    if abs(power) < _LEAST or times < _SHARE * (times + others) or times < _SHARE * unscaled:
        return 1.0
    scale = 2.0**power
    for places in (*_gradients(pairs, slots, measures, power), *_losses(pairs, slots, scale)):
        measure = measures[places]
        if measure.left > 0 and _power(measure.right / measure.left) == power:
            measures[places] = _without(measure, scale)
    return scale


def _gradients(
    pairs: Sequence[OpPair],
    slots: Sequence[Slots],
    measures: Mapping[Places, Measure],
    power: int,
) -> Iterator[Places]:
    """All tensors from the first scaled gradient on, up to the optimizer."""
    has_begun = False
    for pair, tensors in zip(pairs, slots, strict=True):
        has_begun = has_begun or (
            pair.left.phase == "backward"
            and any(
                measures[p].left > 0 and _power(measures[p].right / measures[p].left) == power
                for p in tensors.outputs
            )
        )
        if has_begun and pair.left.phase != "optimizer":
            yield from (*tensors.inputs, *tensors.outputs)


def _losses(pairs: Sequence[OpPair], slots: Sequence[Slots], scale: float) -> Iterator[Places]:
    """What the factor itself multiplies."""
    for pair, tensors in zip(pairs, slots, strict=True):
        if pair.left.phase == "forward" and family(pair.left.type) == "product":
            ours, theirs = pair.left.attributes, pair.right.attributes
            if any(_is_times(ours.get(name), theirs.get(name), scale) for name in ours):
                yield from tensors.outputs


def _is_times(left: object, right: object, scale: float) -> bool:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    return bool(left) and math.isclose(right / left, scale, rel_tol=1e-9)


def _power(ratio: float) -> int | None:
    """The power of two that a ratio is near to."""
    if not ratio > 0 or not math.isfinite(ratio):
        return None
    exact = math.log2(ratio)
    power = round(exact)
    return power if abs(exact - power) <= _NEAR else None


def _without(measure: Measure, scale: float) -> Measure:
    """A measure against the right tensor without its factor.

    From the norms and the distance alone, through the product of both tensors.
    """
    left, right = measure.left, measure.right
    other = right / scale
    largest = max(left, other)
    if not measure.exact:
        return measure._replace(error=abs(left - other) / largest, right=other)
    product = (left * left + right * right - measure.distance**2) / 2
    square = (left * left + other * other - 2 * product / scale) / (largest * largest)
    resolution = 2.0**-48 * max(scale, 1 / scale)
    error = math.sqrt(square) if square > resolution else 0.0
    return measure._replace(error=error, right=other)

"""What one rank alone has off: its slices held to the other run's by themselves.

In the whole, what is off on one of *P* ranks is smaller by the root of *P*, and a factor by *P*.
The slices of other ranks, which went through the same rounding, say what is usual.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from irtool.compare.tensors.judging.attributes import AttributeChange, changed_attributes
from irtool.compare.tensors.judging.bias import explained_scale
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Places
from irtool.ir.dataclass import dataclass
from irtool.ir.units import numbered_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pieces: TypeAlias = "Mapping[int, Sequence[tuple[NDArray[Any], NDArray[Any]]]]"
"""By rank what it should hold of a tensor, as the other run has it, and what it holds."""
_FACTOR_SHARE = 0.5
"""Share of a slice's squared error that one factor explains, for it to be that factor."""


@dataclass(frozen=True, slots=True)
class SliceError:
    """How far one rank's slices of a tensor are from the other run's.

    Attributes:
        error: distance, relative to what a rank holds on the average (root mean square).
        scale: the factor that fits best, less 1; of a slice that is smaller than the average as
            many times smaller.
        size: number of elements.
    """

    error: float
    scale: float
    size: int

    @property
    def is_factor(self) -> bool:
        """Whether the slice is off by a factor, and by little else."""
        return self.scale**2 >= _FACTOR_SHARE * self.error**2 > 0


def slice_errors(pieces: Pieces) -> dict[int, SliceError]:
    """The errors of all ranks; empty where a slice cannot be measured (NaN, infinity, all zero).

    Args:
        pieces: expected and real slices by rank.
    """
    import numpy as np

    sums: dict[int, tuple[float, float, float, int]] = {}
    for rank, pairs in pieces.items():
        own = apart = product = 0.0
        size = 0
        for expected, value in pairs:
            ours = np.asarray(expected, np.float64).ravel()
            theirs = np.asarray(value, np.float64).ravel()
            are_finite = np.isfinite(ours).all() and np.isfinite(theirs).all()
            if ours.size != theirs.size or not are_finite:
                return {}
            own += float(np.dot(ours, ours))
            product += float(np.dot(ours, theirs))
            apart += float(np.dot(theirs - ours, theirs - ours))
            size += ours.size
        sums[rank] = own, product, apart, size
    usual = sum(row[0] for row in sums.values()) / max(1, len(sums))
    if not usual > 0:
        return {}
    return {
        rank: SliceError(
            math.sqrt(apart / usual),
            (product / own - 1) * min(1.0, math.sqrt(own / usual)) if own > 0 else 0.0,
            size,
        )
        for rank, (own, product, apart, size) in sums.items()
    }


@dataclass(slots=True)
class Slices:
    """Goes through the tensors of a run in the order of execution.

    Attributes:
        error: the largest error of a slice so far.
        scale: the largest factor of one, less 1.
    """

    error: float = 0.0
    scale: float = 0.0

    def scaled(self, errors: Mapping[int, SliceError], unit: float) -> tuple[int, ...]:
        """Ranks whose slices are off by a factor that other ranks do not have.

        Where there are none, the errors count for what comes after.

        Args:
            errors: of one tensor by rank.
            unit: roundoff of its type.
        """
        if len(errors) < 2:
            return ()
        usual = sorted(abs(item.scale) for item in errors.values())[(len(errors) - 1) // 2]
        odd: list[int] = []
        for rank, item in errors.items():
            noise = explained_scale([self.scale, usual], self.error, unit, True, item.size)
            if item.is_factor and abs(item.scale) > noise:
                odd.append(rank)
        if odd and len(odd) < len(errors):
            return tuple(sorted(odd))
        self.see(errors.values())
        return ()

    def see(self, errors: Iterable[SliceError]) -> None:
        """Take errors for what is usual."""
        for item in errors:
            self.error = max(self.error, item.error)
            self.scale = max(self.scale, abs(item.scale))


def scaled_on(
    item: Judged,
    label: str,
    places: Places,
    which: int,
    ranks: tuple[int, ...],
    errors: Mapping[int, SliceError],
) -> Judged:
    """What is said of slices that are off by a factor.

    Args:
        item: of the operators.
        label: of the tensor.
        places: of it in both runs.
        which: 0 for the left run, 1 for the right one.
        ranks: whose slices are off.
        errors: of all.
    """
    judged = Judged(item.pair, item.slots, "introduces error")
    judged.ranks, judged.output = ranks, places
    worst = max(ranks, key=lambda rank: errors[rank].error)
    judged.error_out = errors[worst].error
    judged.error_in = judged.budget = max(
        error.error for rank, error in errors.items() if rank not in ranks
    )
    judged.wrong = ("left", "right")[which]
    judged.why = (
        f"{label} on {numbered_text('rank', ranks)} is {1 + errors[worst].scale:.4g} times what "
        "the other run has there; the parts of other ranks are not"
    )
    if places in item.slots.inputs:
        judged.entered = judged.why
    return judged


def say_arguments(
    judged: Judged, other: Mapping[str, object], lead: Mapping[str, object],
    own: Mapping[int, Mapping[str, object]],
) -> None:  # fmt: skip
    """Say which arguments of the ranks at fault differ: those of the lowest rank were judged.

    What the operator computes of its inputs was reckoned with the arguments of that rank as well,
    so it explains nothing where these differ.

    Args:
        judged: that is accused; its reason is changed.
        other: arguments of the operator in the other run.
        lead: of it on the lowest rank.
        own: of it on the ranks at fault.
    """
    usual = set(map(str, changed_attributes(other, lead)))
    changes = [
        AttributeChange(f"{change.name} on rank {rank}", change.left, change.right)
        for rank, arguments in own.items()
        for change in changed_attributes(other, arguments)
        if str(change) not in usual and not change.is_shape
    ]
    if changes:
        judged.attributes, judged.why = tuple(changes), ""

"""Tensors of a run that is cut, put together by their figures where no values were dumped.

Slices tell the extremes, the mean and the norm of the whole.  What ranks hold terms of, as partial
sums before an AllReduce, does not follow from figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from irtool.compare.layouts.ranks import Ranks
from irtool.compare.layouts.slices import Cut
from irtool.compare.tensors.model import Columns

SUMMED = 4e-6
"""Relative difference of norms and means that another order of summing can make."""
Figures: TypeAlias = tuple[float, float, float, float]
"""Largest, smallest, mean, norm."""


def figures_of(ranks: Ranks, name: str, label: str) -> dict[int, Figures] | None:
    """The figures of one tensor on all ranks.

    Args:
        ranks: all of them.
        name: of the operator.
        label: of the tensor.

    Returns:
        By rank; None where one of them has none.
    """
    figures: dict[int, Figures] = {}
    for rank, run in ranks.runs.items():
        place = ranks.tensors[rank].get((name, label))
        if place is None or math.isnan(run.columns.norm[place]):
            return None
        figures[rank] = figures_in(run.columns, place)
    return figures


def figures_in(columns: Columns, place: int) -> Figures:
    """The figures that a dump states of a tensor.

    Args:
        columns: that it is in.
        place: where it is.
    """
    return columns.most[place], columns.least[place], columns.mean[place], columns.norm[place]


def joined_figures(figures: Sequence[Figures]) -> Figures:
    """The figures of a tensor by those of its parts, all of one size.

    Args:
        figures: largest, smallest, mean and norm of each part; one at least.
    """
    most = max(row[0] for row in figures)
    least = min(row[1] for row in figures)
    mean = math.fsum(row[2] for row in figures) / len(figures)
    norm = math.sqrt(math.fsum(row[3] ** 2 for row in figures))
    return most, least, mean, norm


def whole_figures(cut: Cut, figures: Mapping[int, Figures]) -> Figures:
    """The figures of a tensor whose ranks hold parts of it, each maybe several times.

    Args:
        cut: which rank holds which part.
        figures: of the part that each rank holds; of replicas the lowest rank's count.
    """
    return joined_figures([figures[ranks[0]] for ranks in cut.replicas()])


def apart(
    cut: Cut, figures: Mapping[int, Figures], groups: Mapping[int, frozenset[int]]
) -> dict[int, float]:
    """How far ranks are from the lowest one that holds the same part, relative to its norm.

    Args:
        cut: which part each rank holds.
        figures: by rank.
        groups: over which ranks it is a partial sum; those are no replicas of each other.
    """
    errors: dict[int, float] = {}
    for ranks in cut.replicas():
        first = figures[ranks[0]]
        scale = max(abs(first[3]), math.ulp(1.0))
        for rank in ranks[1:]:
            if rank in groups[ranks[0]]:
                continue
            errors[rank] = max(
                abs(a - b) / scale for a, b in zip(first, figures[rank], strict=True)
            )
    return errors


_FACTOR = 1e-3
"""Factor, less 1, from which one part is looked for that has it."""


def odd_parts(
    parts: Sequence[Figures], whole: Figures, slack: float, is_exact: bool = False
) -> tuple[int, ...]:
    """Which of a tensor's parts is off, as far as figures tell: one of those that are returned.

    A part with the figures of another one is that other slice.  One part alone that is off by a
    factor is so in all figures: the norm of the others says the factor, which the mean and both
    extremes have to bear out.  Of what is given exactly a part is right that has an extreme of the
    whole.

    Args:
        parts: figures of all parts, of one size, in their order.
        whole: of the tensor as the other run has it.
        slack: relative error that is no difference.
        is_exact: a weight or data: nothing computed it.

    Returns:
        Places of parts; empty where they do not tell, or all of them may be off.
    """
    if len(parts) < 2 or agree(joined_figures(parts), whole, slack):
        return ()
    twins = _twins(parts)
    if twins:
        return twins
    factors = [_factor(parts, whole, place) for place in range(len(parts))]
    common = joined_figures(parts)[3] / whole[3] if whole[3] > 0 else math.nan
    if common and agree(joined_figures([_times(row, 1 / common) for row in parts]), whole, slack):
        return ()  # all of them have it
    scaled = [
        place
        for place, factor in enumerate(factors)
        if factor > 0
        and abs(factor - 1) > max(_FACTOR, slack)
        and agree(
            joined_figures([_times(row, 1 / factor) if other == place else row
                            for other, row in enumerate(parts)]), whole, slack,
        )
    ]  # fmt: skip
    if len(scaled) == 1:
        return tuple(scaled)
    if not is_exact:
        return ()
    rest = [place for place, row in enumerate(parts)
            if row[0] != whole[0] and row[1] != whole[1]]  # fmt: skip
    return tuple(rest) if len(rest) < len(parts) else ()


def _twins(parts: Sequence[Figures]) -> tuple[int, ...]:
    """Parts that have one another's figures; extremes alone, of whole numbers, tell no part."""
    places: dict[Figures, list[int]] = {}
    for place, row in enumerate(parts):
        if not any(map(math.isnan, row)) and row[0] != row[1]:
            places.setdefault(row, []).append(place)
    return tuple(sorted(place for same in places.values() if len(same) > 1 for place in same))


def _factor(parts: Sequence[Figures], whole: Figures, place: int) -> float:
    """By which one part is too long, as the norms of the others and the whole say it; else NaN."""
    rest = whole[3] ** 2 - math.fsum(
        row[3] ** 2 for other, row in enumerate(parts) if other != place
    )
    return parts[place][3] / math.sqrt(rest) if rest > 0 else math.nan


def _times(row: Figures, factor: float) -> Figures:
    most, least, mean, norm = row
    return most * factor, least * factor, mean * factor, norm * factor


def agree(ours: Figures, theirs: Figures, slack: float) -> bool:
    """Whether figures are those of one tensor.

    Args:
        ours: of one.
        theirs: of the other.
        slack: relative difference that is none; of means relative to the extremes.
    """
    ends = max(abs(theirs[0]), abs(theirs[1]))
    scales = ends, ends, ends, abs(theirs[3])
    return all(
        (math.isnan(a) and math.isnan(b)) or abs(a - b) <= slack * scale
        for a, b, scale in zip(ours, theirs, scales, strict=True)
    )

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
        columns = run.columns
        figures[rank] = (columns.most[place], columns.least[place], columns.mean[place],
                         columns.norm[place])  # fmt: skip
    return figures


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

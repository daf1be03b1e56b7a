"""The optimum where the least sum of a model's tables leaves a gap: no limit of memory holds.

What several users want of one result alike is paid for once; tables over two operators each do not
say so, and a table of a result and all of its users may be too large.  Only few choices may still
be part of something cheaper than what is known (``narrow``), and over those
such tables are small.
"""

from __future__ import annotations

from collections.abc import Sequence

from irtool.planning.limits.bucket_tree import TooWide
from irtool.planning.limits.layers import exact
from irtool.planning.limits.modes import Choice, Modes, choice_of
from irtool.planning.limits.narrow import Narrow, Within
from irtool.planning.search.search import CLOSE, Search

_ROOM = 1e30
"""Bytes that are more than anything takes."""
_TRIES = 8
"""How often what was found is taken for the next bound."""


def proved(search: Search, modes: Sequence[Modes], best: Choice, bound: float) -> Choice:
    """The cheapest choice without a limit; its bound is less where there is too much to look at.

    Args:
        search: of the model.
        modes: by variable.
        best: a choice that is known.
        bound: seconds that nothing is below.
    """
    narrow = Narrow(search, modes, None, 0.0)
    best = exact(search, modes, best)
    for _ in range(_TRIES):
        if best.seconds <= bound * (1 + CLOSE):
            break
        within = Within(_ROOM, best.seconds)
        try:
            narrow.start(within)
            narrow.restrict(within)
            narrowed = narrow.best(within)
        except TooWide:
            break
        bound = max(bound, min(narrowed.bound, best.seconds))
        if narrowed.choices is None:
            break
        chosen = exact(search, modes, choice_of(search.model, modes, *narrowed.choices))
        if chosen.seconds >= best.seconds:
            break
        best = chosen
    return Choice(best.choices, best.modes, best.seconds, best.held, min(bound, best.seconds))

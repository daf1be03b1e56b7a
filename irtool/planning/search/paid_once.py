"""What several users want of one result alike is made once, and paid for once: exactly so.

In the tables of a model each pair of operators pays by itself, and users of one kind share a price
as if they chose alike.  Here the result and all of its users are looked at together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from irtool.planning.search.exact import Table
from irtool.planning.search.link_tables import PricedLink
from irtool.planning.search.tables import Model

Ints = npt.NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.bool_)


def paid_once(items: Sequence[PricedLink], keep: Sequence[Ints] | None = None) -> Table:
    """What all users of a result pay for it: one that wants what another has pays nothing.

    Args:
        items: the links of one result.
        keep: by variable, the candidates that are looked at; None: all.
    """
    source = items[0].source
    counts = {item.target: len(item.table.targets.which) for item in items}
    counts[source] = len(items[0].table.sources.which)
    scope = tuple(sorted(counts))
    left = {
        variable: np.arange(counts[variable]) if keep is None else keep[variable]
        for variable in scope
    }
    sizes = {variable: len(left[variable]) for variable in scope}
    number: dict[object, int] = {}
    total = np.zeros([sizes[variable] for variable in scope])
    before: list[tuple[int, Ints]] = []
    for item in items:
        table, target = item.table, item.target
        which = table.targets.which[left[target]]
        keys = [number.setdefault(key, len(number)) for key in table.targets.keys]
        wanted = np.array(keys, dtype=np.int64)[which]
        prices = table.prices[np.ix_(table.sources.which[left[source]], which)]
        paid = _over(prices, (source, target), scope, sizes)
        for other, others in before:
            if other == target:
                same = _over(wanted == others, (target,), scope, sizes)
            else:
                alike = wanted[:, None] == others[None, :]
                same = _over(alike, (target, other), scope, sizes)
            paid = np.where(same, 0.0, paid)
        before.append((target, wanted))
        total = total + paid
    return Table(scope, total)


def seconds_of_links(model: Model, choices: Sequence[int]) -> float:
    """What all redistributions between operators cost under some choices, each paid for once.

    Args:
        model: the tables of the network; prices that were not asked for yet are lower bounds.
        choices: a candidate for every variable.
    """
    total = 0.0
    paid: set[object] = set()
    for item in model.links:
        table = item.table
        source = int(table.sources.which[choices[item.source]])
        wanted = int(table.targets.which[choices[item.target]])
        key = item.result, table.targets.keys[wanted]
        if key not in paid:
            paid.add(key)
            total += float(table.prices[source, wanted])
    return total


def _over(
    values: npt.NDArray[Number],
    variables: tuple[int, ...],
    scope: tuple[int, ...],
    sizes: Mapping[int, int],
) -> npt.NDArray[Number]:
    """A table over some variables of a scope, so that it broadcasts to the scope."""
    ordered = values if list(variables) == sorted(variables) else np.transpose(values)
    return np.reshape(
        ordered, [sizes[variable] if variable in variables else 1 for variable in scope]
    )

"""A bound that holds where operators of different kinds want one result alike.

What several users want of one result in one layout is made once, and paid for once.  In a
model's tables only users of one kind share it: they mostly choose alike.
Users of different kinds may choose alike, too; then a plan costs less than its tables say, and the
least sum of the tables may lie above the optimum.  Here each user that could have a layout pays an
equal part of its price.  All of them together then pay the price, some of them less than that: no
plan costs less than this sum says, so its least is a bound.
A result whose users are all of one kind costs there what it costs in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats
from irtool.planning.search.link_tables import LinkTable, PricedLink
from irtool.planning.search.tables import Model


@dataclass(frozen=True, eq=False, slots=True)
class Lowered:
    """A model whose sums no plan is below.

    ``model``: it; ``own``: the tables of the model that it is made from which have others here;
    ``rebates``: by variable what its numbers are less.
    """

    model: Model
    own: tuple[LinkTable, ...]
    others: tuple[LinkTable, ...]
    rebates: dict[int, Floats]

    def renewed(self, unary: Sequence[Floats]) -> tuple[Floats, ...]:
        """Take over prices that were asked for since; the numbers that belong to the model."""
        self.renew_all()
        return tuple(
            numbers - self.rebates[variable] if variable in self.rebates else numbers
            for variable, numbers in enumerate(unary)
        )

    def renew_all(self) -> None:
        """Take over prices that were asked for since, here and in the model."""
        for table in (*self.own, *self.others):
            table.renew()


def lowered(model: Model) -> Lowered | None:
    """Prices that no plan is below; None: those of the model are such prices.

    Args:
        model: the tables of the network.
    """
    results: dict[object, list[PricedLink]] = {}
    for item in model.links:
        results.setdefault(item.result, []).append(item)
    alone: dict[object, int] = {}
    for one in model.alone:
        alone[one.result] = alone.get(one.result, 0) + 1
    made: dict[object, tuple[LinkTable, LinkTable]] = {}
    tables: dict[int, LinkTable] = {}
    known: dict[object, tuple[LinkTable | None, ...]] = {}
    for result, items in results.items():
        own = tuple(item.table for item in items)
        same = tuple(id(table) for table in own), alone.get(result, 0)
        if same not in known:
            known[same] = tuple(_shared(own, alone.get(result, 0), made))
        for item, table in zip(items, known[same], strict=True):
            if table is not None:
                tables[id(item)] = table
    rebates: dict[int, Floats] = {}
    for one in model.alone:
        users = alone[one.result] + len(results.get(one.result, ()))
        if users > 1:
            less = np.where(np.isfinite(one.seconds), one.seconds, 0.0) * (1 - 1 / users)
            rebates[one.variable] = rebates.get(one.variable, 0.0) + less
    if not tables and not rebates:
        return None
    links = tuple(replace(item, table=tables.get(id(item), item.table)) for item in model.links)
    own, others = zip(*made.values(), strict=True) if made else ((), ())
    return Lowered(replace(model, links=links), own, others, rebates)


def _shared(
    own: Sequence[LinkTable], alone: int, made: dict[object, tuple[LinkTable, LinkTable]]
) -> Iterator[LinkTable | None]:
    """By user of a result its prices here; None: they are those of the model."""
    wanted = [frozenset(table.targets.keys) for table in own]
    for table in own:
        counts = [alone + sum(key in keys for keys in wanted) for key in table.targets.keys]
        share = 1 / np.array(counts, dtype=np.float64)
        if np.array_equal(share, table.share):
            yield None
            continue
        key = id(table), share.tobytes()
        if key not in made:
            made[key] = table, table.with_share(share)
        yield made[key][1]

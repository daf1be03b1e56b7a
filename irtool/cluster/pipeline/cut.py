"""Where to cut a network into stages: the exact best cut of its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf
from operator import add

from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer with the seconds (or operations) of one micro-batch, and the bytes that stay."""

    name: str
    cost: float
    static: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Layers by stage; ``slowest`` is the cost of the slowest stage."""

    stages: tuple[tuple[str, ...], ...]
    costs: tuple[float, ...]
    slowest: float

    @property
    def imbalance(self) -> float:
        """How much slower the slowest stage is than the mean: 0 is perfect."""
        mean = sum(self.costs) / len(self.costs) if self.costs else 0.0
        return self.slowest / mean - 1 if mean else 0.0


def best_cut(
    layers: Sequence[Layer],
    stages: int,
    static_limit: int | None = None,
    fits: Callable[[int, int, int], bool] | None = None,
) -> Cut | None:
    """The cut into runs of layers whose slowest stage is fastest; exact, by dynamic programming.

    Among those, the one whose other stages are most even (least sum of squares).  Every stage gets
    a layer at least.

    Args:
        layers: in order.
        stages: how many runs.
        static_limit: bytes that may stay on a device; None for any number.
        fits: whether a stage (its number) can hold the layers from one up to before another.

    Returns:
        None where there are fewer layers than stages, or no cut stays below the limit.
    """
    count = len(layers)
    if not 0 < stages <= count:
        return None
    costs = [0.0, *accumulate(layer.cost for layer in layers)]
    sizes = [0, *accumulate(layer.static for layer in layers)]

    def allowed(stage: int, first: int, last: int) -> bool:
        if static_limit is not None and sizes[last] - sizes[first] > static_limit:
            return False
        return fits is None or fits(stage, first, last)

    def cost(first: int, last: int) -> float:
        return costs[last] - costs[first]

    def even(first: int, last: int) -> float:
        # More than the slowest stage has to take is not even, however even the others are.
        return cost(first, last) ** 2 if cost(first, last) <= slowest else inf

    slowest = _best_edges(count, stages, allowed, cost, max)[0]
    if slowest == inf:
        return None
    edges = _best_edges(count, stages, allowed, even, add)[1]
    pairs = list(pairwise(edges))
    return Cut(
        tuple(tuple(layer.name for layer in layers[a:b]) for a, b in pairs),
        tuple(cost(a, b) for a, b in pairs),
        slowest,
    )


def _best_edges(
    count: int,
    stages: int,
    allowed: Callable[[int, int, int], bool],
    value: Callable[[int, int], float],
    join: Callable[[float, float], float],
) -> tuple[float, list[int]]:
    """The least value of a cut, and where its runs begin and end.

    Args:
        count: layers.
        stages: runs.
        allowed: whether a run may be a stage (its number, its first layer, the one behind it).
        value: of a run of layers.
        join: of the values of runs; must not fall when one of them rises.
    """
    best = [0.0, *[inf] * count]
    begins: list[list[int]] = []
    for stage in range(stages):
        following, begin = [inf] * (count + 1), [0] * (count + 1)
        for last in range(1, count + 1):
            for first in range(last - 1, -1, -1):
                if best[first] == inf or not allowed(stage, first, last):
                    continue
                own = value(first, last)
                if own > following[last]:
                    break  # more layers only make this stage's value larger
                joined = join(best[first], own)
                if joined < following[last]:
                    following[last], begin[last] = joined, first
        best = following
        begins.append(begin)
    edges = [count]
    for begin in reversed(begins):
        edges.append(begin[edges[-1]])
    return best[count], edges[::-1]

"""The order that the C++ library's unstable sort leaves among equal items.

MindSpore takes the first of what it sorted by cost; where many cost the same, which one that is
depends on how GCC's ``std::sort`` moves equal items about: quicksort with the median of three down
to 16 items, then insertion. (Where quicksort goes too deep it sorts in another way, which is not
reproduced; then the first of equal items is taken.)

Source: programs compiled with GCC's C++ library.
"""

from __future__ import annotations

from collections.abc import Sequence

_FEW = 16


def first_of_sorted(costs: Sequence[float]) -> int:
    """Which item stands first after the sort; -1 if there are none.

    Args:
        costs: of the items, in the order in which they are given to ``std::sort``.
    """
    if not costs:
        return -1
    order = list(range(len(costs)))
    _partitioned(order, costs, 0, len(order), 2 * (len(order).bit_length() - 1))
    # Insertion, which comes last, keeps equal items in order.
    return min(order, key=lambda index: costs[index])


def _partitioned(
    order: list[int], costs: Sequence[float], first: int, last: int, deep: int
) -> None:
    """Bring small items before large ones, until all that is left is nearly in place."""
    while last - first > _FEW:
        if deep == 0:
            order[first:last] = sorted(order[first:last], key=lambda index: costs[index])
            return
        deep -= 1
        cut = _cut(order, costs, first, last)
        _partitioned(order, costs, cut, last, deep)
        last = cut


def _cut(order: list[int], costs: Sequence[float], first: int, last: int) -> int:
    """Split around the median of the second, the middle and the last item."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if costs[order[a]] < costs[order[b]]:
        if costs[order[b]] < costs[order[c]]:
            median = b
        elif costs[order[a]] < costs[order[c]]:
            median = c
        else:
            median = a
    elif costs[order[a]] < costs[order[c]]:
        median = a
    elif costs[order[b]] < costs[order[c]]:
        median = c
    else:
        median = b
    order[first], order[median] = order[median], order[first]
    pivot = costs[order[first]]
    low, high = first + 1, last
    while True:
        while costs[order[low]] < pivot:
            low += 1
        high -= 1
        while pivot < costs[order[high]]:
            high -= 1
        if low >= high:
            return low
        order[low], order[high] = order[high], order[low]
        low += 1

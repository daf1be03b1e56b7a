"""The best cap for the reuse of communication subgraphs, and how far micro-batches can go.

MindSpore's choice under a cap is no monotone function of it (kinds are taken in the order of their
keys, as wholes), so every cap from 1 to the label limit is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from irtool.cluster.reuse.graph import Candidate, Choice, Graph
from irtool.cluster.reuse.streams import LABEL_LIMIT, compute_streams, total_streams
from irtool.ir.dataclass import dataclass

_MOST_MICROS = 1 << 20


@dataclass(frozen=True, slots=True)
class LargestMicro:
    """Most micro-batches that the stream limit allows.

    ``with_reuse``: with the best cap for each number; ``reusing``: most at which the labels still
    hold some kind (kinds are taken as wholes, so beyond it reuse does nothing).
    """

    without: int
    with_reuse: int
    reusing: int


def best_choice(graph: Graph) -> Choice | None:
    """The cap with the fewest streams whose labels fit; ties: labels, subgraphs, the smaller cap.

    None where no cap saves a stream.

    Args:
        graph: with its kinds of collectives.
    """
    best = min(_choices(graph), key=_order, default=None)
    if best is None or best.streams >= graph.choose(0).streams:
        return None
    return best


def _choices(graph: Graph) -> Iterable[Choice]:
    """The choices under all caps whose labels fit, each once, with the smallest such cap."""
    seen: set[tuple[str, ...]] = set()
    for cap in range(1, LABEL_LIMIT):
        taken, reused = _taken(graph.candidates, cap)
        if taken in seen:
            continue
        seen.add(taken)
        choice = graph.outcome(cap, taken, reused)
        if choice.labels <= LABEL_LIMIT:
            yield choice


def _order(choice: Choice) -> tuple[int, int, int, int]:
    return choice.streams, choice.labels, choice.subgraphs, choice.cap


def _taken(candidates: Iterable[Candidate], cap: int) -> tuple[tuple[str, ...], int]:
    taken: list[str] = []
    reused = 0
    for item in candidates:
        if item.eligible and reused + item.count <= cap:
            taken.append(item.key)
            reused += item.count
    return tuple(taken), reused


def ideal_streams(graph: Graph) -> int:
    """Streams of the best set of kinds that the labels allow, in whatever order.

    This is the 0-1 knapsack, solved exactly by dynamic programming over the labels.

    Args:
        graph: with its kinds of collectives.
    """
    budget = LABEL_LIMIT - 1 - graph.control_labels
    best: list[tuple[int, tuple[str, ...], int]] = [(0, (), 0)] * (max(budget, 0) + 1)
    for item in graph.candidates:
        weight, gain = item.count + 1, item.streams - 1
        if not item.eligible or gain <= 0:
            continue
        for size in range(len(best) - 1, weight - 1, -1):
            saved, keys, count = best[size - weight]
            if saved + gain > best[size][0]:
                best[size] = (saved + gain, (*keys, item.key), count + item.count)
    _, keys, count = best[-1]
    return graph.outcome(0, keys, count).streams


# -- micro-batches ---------------------------------------------------------------------------------


def largest_micro(graph: Graph) -> LargestMicro | None:
    """How many micro-batches the streams and labels allow.

    Communication and operators of a micro-batch are taken to grow with their number, all others
    to stay.  None where the graph has none.

    Args:
        graph: with its kinds of collectives.
    """
    if not graph.micros:
        return None
    return LargestMicro(
        _largest(lambda micros: _fits(graph, micros, reuse=False)),
        _largest(lambda micros: _fits(graph, micros, reuse=True)),
        _largest(lambda micros: _reuses(graph, micros)),
    )


def _largest(fits: Callable[[int], bool]) -> int:
    low, high = 0, 1
    while high < _MOST_MICROS and fits(high):
        low, high = high, 2 * high
    # Few micro-batches may need no reuse yet, more do: look further up once before giving up.
    if not low:
        high = next((2 * size for size in _SIZES if fits(size)), 1)
        low = high // 2 if high > 1 else 0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


_SIZES = tuple(2**power for power in range(14, 0, -1))


def _grown_kinds(graph: Graph, micros: int) -> list[Candidate]:
    return [
        replace(
            item,
            count=_grown(item.count, item.in_micros, graph.micros, micros),
            operators=_grown(item.operators, item.in_micros, graph.micros, micros)
            if not item.barred.startswith("not tagged: fusion")
            else item.operators,
        )
        for item in graph.candidates
    ]


def _reuses(graph: Graph, micros: int) -> bool:
    """Whether the labels still hold some kind that would be reused."""
    budget = LABEL_LIMIT - 1 - graph.control_labels
    return any(item.eligible and item.count + 1 <= budget for item in _grown_kinds(graph, micros))


def _fits(graph: Graph, micros: int, reuse: bool) -> bool:
    """Whether a graph of so many micro-batches needs no more streams than there are."""
    grown = _grown_kinds(graph, micros)
    compute = _grown(graph.compute, graph.compute_in_micros, graph.micros, micros)
    base = compute_streams(compute)
    limit = graph.target.usable_streams
    if total_streams(base, _queued(grown, ())) <= limit:
        return True
    if not reuse:
        return False
    seen: set[tuple[str, ...]] = set()
    for cap in range(1, LABEL_LIMIT):
        taken, reused = _taken(grown, cap)
        labels = 1 + len(taken) + reused + graph.control_labels
        if taken in seen or labels > LABEL_LIMIT:
            continue
        seen.add(taken)
        if total_streams(base, _queued(grown, taken) + len(taken)) <= limit:
            return True
    return False


def _grown(count: int, inside: int, before: int, after: int) -> int:
    return count - inside + -(-inside * after // before)


def _queued(candidates: Iterable[Candidate], taken: tuple[str, ...]) -> int:
    """Communication streams where kinds of one group share theirs."""
    used: dict[str | None, int] = {}
    for item in candidates:
        if item.key not in taken:
            used[item.group] = used.get(item.group, 0) + -(-item.operators * 1000 // item.capacity)
    return sum(-(-share // 1000) for share in used.values())

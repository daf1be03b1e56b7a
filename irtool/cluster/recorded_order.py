"""A recorded order of launches as the nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.cluster.launch_order import launches_nothing
from irtool.ir.whole import Whole, WholeNode


def recorded_launches(inlined: Whole, names: Sequence[str]) -> tuple[WholeNode, ...] | str:
    """The nodes in the order in which a run recorded them, or why the record does not fit.

    Args:
        inlined: the graph, with calls inlined.
        names: full names, in order; those of nodes that launch nothing are passed over.

    Returns:
        All nodes that are launched, each after what it depends on.
    """
    by_name: dict[str, list[WholeNode]] = {}
    for item in inlined.nodes:
        if item.node.full_name is not None and not launches_nothing(item.op):
            by_name.setdefault(item.node.full_name, []).append(item)
    twice = next((name for name, items in by_name.items() if len(items) > 1), None)
    if twice is not None:
        return f"{twice} stands for several nodes"
    launched = [by_name[name][0] for name in names if name in by_name]
    if len(set(launched)) < len(launched):
        return "it launches an operator twice"
    unknown = [name for name in names if name not in by_name]
    missing = len(by_name) - len(launched)
    if missing:
        return f"it lacks {missing} of {len(by_name)} operators of this dump"
    strange = [name for name in unknown if not _is_silent(inlined, name)]
    if strange:
        return f"{len(strange)} of its operators are not in this dump, the first: {strange[0]}"
    place = {item: number for number, item in enumerate(launched)}
    for item in launched:
        for producer in item.producers:
            if place.get(producer, -1) > place[item]:
                return f"it launches {item.node.full_name} before what that needs"
    return tuple(launched)


def _is_silent(inlined: Whole, name: str) -> bool:
    """Whether it is a node of the graph that launches nothing."""
    return any(item.node.full_name == name for item in inlined.nodes)

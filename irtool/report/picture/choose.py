"""Which part of the material is drawn: around a node, between two, or what a query chooses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from irtool.ir.graph import Node
from irtool.report.picture.leaves import Leaf, Link, Material

_LONGEST_DETOUR = 64
"""Left-out statements that a line between two chosen ones may stand for."""


def find_leaves(material: Material, text: str) -> list[Leaf]:
    """Leaves that a name means: ``%12``, ``@graph:%12``, a debug, full, instance or parameter name.

    The most exact way in which the text names anything decides; a part of a name comes last.

    Args:
        material: what may be drawn.
        text: the name; operators are found in any case of letters.

    Returns:
        in the order of the material; empty where nothing has this name.
    """
    graph, _, id = text.rpartition(":") if text.startswith("@") else ("", "", text)
    tests: tuple[Callable[[Leaf], bool], ...] = (
        lambda leaf: leaf.node is not None and leaf.node.id == id and _in_graph(leaf.node, graph),
        lambda leaf: text in _names(leaf),
        lambda leaf: any(name.endswith(f"/{text}") for name in _names(leaf)),
        lambda leaf: leaf.name.lower() == text.lower(),
        lambda leaf: any(text in name for name in _names(leaf)),
    )
    for test in tests:
        leaves = [leaf for leaf in material.leaves if test(leaf)]
        if leaves:
            return leaves
    return []


def _in_graph(node: Node, graph: str) -> bool:
    return not graph or (node.graph is not None and node.graph.name == graph.removeprefix("@"))


def _names(leaf: Leaf) -> tuple[str, ...]:
    node = leaf.node
    if node is None:
        return (leaf.name,)
    return tuple(filter(None, (node.name, node.full_name, node.instance_name)))


def around(material: Material, centres: Iterable[Leaf], radius: int) -> Material:
    """What is at most ``radius`` steps away, along edges in either direction.

    Args:
        material: what may be drawn.
        centres: where steps are counted from.
        radius: steps; other users of a parameter that is reached are not followed.
    """
    distance = dict.fromkeys(centres, 0)
    pending = deque(distance)
    while pending:
        leaf = pending.popleft()
        if distance[leaf] == radius:
            continue
        near = [link.tail for link in material.into[leaf]]
        if leaf.parameter is None or distance[leaf] == 0:
            near += [link.head for link in material.out_of[leaf]]
        for other in near:
            if other not in distance:
                distance[other] = distance[leaf] + 1
                pending.append(other)
    return material.part(distance)


def between(material: Material, starts: Collection[Leaf], ends: Collection[Leaf]) -> Material:
    """Everything on a path from one of ``starts`` to one of ``ends``; empty if there is none.

    Args:
        material: what may be drawn.
        starts: leaves; paths run along edges from them.
        ends: leaves that paths lead to.
    """
    after = _reached(starts, lambda leaf: [link.head for link in material.out_of[leaf]])
    before = _reached(ends, lambda leaf: [link.tail for link in material.into[leaf]])
    return material.part(after & before)


def _reached(starts: Iterable[Leaf], step: Callable[[Leaf], list[Leaf]]) -> set[Leaf]:
    reached = set(starts)
    pending = list(reached)
    while pending:
        for other in step(pending.pop()):
            if other not in reached:
                reached.add(other)
                pending.append(other)
    return reached


def where(material: Material, chosen: Collection[Leaf]) -> Material:
    """Chosen leaves alone, with lines where values get from one to another through others.

    Args:
        material: what may be drawn.
        chosen: leaves of it.

    Returns:
        a line through others says through how many; ways longer than 64 steps are not followed.
    """
    kept = set(chosen)
    links: list[Link] = []
    for head in kept:
        seen: dict[Leaf, int] = {}
        pending = deque((link, link.tail, 0) for link in material.into[head])
        while pending:
            link, tail, steps = pending.popleft()
            if tail in seen or steps > _LONGEST_DETOUR:
                continue
            seen[tail] = steps
            if tail in kept:
                note = link.note if not steps else f"through {steps}"
                kind = link.kind if not steps else "order"
                label, size = (link.label, link.bytes) if not steps else ("", None)
                links.append(
                    replace(
                        link, tail=tail, head=head, note=note, kind=kind, label=label, bytes=size
                    )
                )
                continue
            pending += [(inner, inner.tail, steps + 1) for inner in material.into[tail]]
    return material.part(kept, links)

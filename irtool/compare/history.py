"""A node's history: what each pass of one compilation made of it, and which pass made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from irtool.compare.edits import Edit
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.compare.side import TRANSPARENT
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node

Event: TypeAlias = Literal[
    "present", "added", "copied", "merged", "changed", "replaced", "removed", "unchanged"
]
"""What a pass did: ``present`` in the first dump, ``added`` by this pass, ``copied`` to several
nodes, ``merged`` with others into fewer, ``replaced`` by other operators."""


@dataclass(frozen=True, slots=True)
class PassText:
    """A dump of a series: its name, a fingerprint of its text, and how to read it."""

    name: str
    fingerprint: str
    read: Callable[[], Dump]


@dataclass(frozen=True, slots=True)
class Moment:
    """What became of the nodes in one dump.

    Attributes:
        name: of the dump.
        event: what the pass did to them, since the dump before.
        details: what changed, in words; several changes of one pass are told one by one.
        nodes: in this dump; of ``removed``, those of the dump before.
    """

    name: str
    event: Event
    details: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class _Link:
    """From nodes of one dump to what they are in the next, or were in the one before."""

    event: Event
    details: tuple[str, ...]
    nodes: tuple[Node, ...]


def is_compared(node: Node) -> bool:
    """Whether a node does something: what only hands values on is looked through.

    Args:
        node: of any kind.
    """
    return node.op not in TRANSPARENT and not node.is_return


def history(passes: Sequence[PassText], position: int, nodes: Sequence[Node]) -> tuple[Moment, ...]:
    """What each pass made of some nodes, from the pass that added them on.

    Args:
        passes: dumps of one compilation, in the order of time.
        position: the dump whose nodes are meant.
        nodes: of that dump.

    Returns:
        A moment for each dump in which they, or what they come from, are, and one for the pass
        that removed them.
    """
    earlier = list(_backward(passes, position, tuple(nodes)))
    later = list(_forward(passes, position, tuple(nodes)))
    return (*reversed(earlier), *later)


def _backward(
    passes: Sequence[PassText], position: int, nodes: tuple[Node, ...]
) -> Iterator[Moment]:
    """Moments up to the dump ``position``, the last first."""
    for number in range(position, 0, -1):
        before, after = passes[number - 1], passes[number]
        if before.fingerprint == after.fingerprint:
            yield Moment(after.name, "unchanged", (), nodes)
            nodes = _same_places(nodes, before.read())
            continue
        link = _origin(diff_graphs(before.read(), _dump_of(nodes)), nodes)
        yield Moment(after.name, link.event, link.details, nodes)
        if link.event == "added":
            return
        nodes = link.nodes
    yield Moment(passes[0].name, "present", (), nodes)


def _forward(
    passes: Sequence[PassText], position: int, nodes: tuple[Node, ...]
) -> Iterator[Moment]:
    """Moments behind the dump ``position``."""
    for number in range(position + 1, len(passes)):
        before, after = passes[number - 1], passes[number]
        if before.fingerprint == after.fingerprint:
            nodes = _same_places(nodes, after.read())
            yield Moment(after.name, "unchanged", (), nodes)
            continue
        link = _fate(diff_graphs(_dump_of(nodes), after.read()), nodes)
        yield Moment(after.name, link.event, link.details, link.nodes or nodes)
        if not link.nodes:
            return
        nodes = link.nodes


def _dump_of(nodes: Sequence[Node]) -> Dump:
    dump = nodes[0].graph.dump if nodes[0].graph is not None else None
    assert isinstance(dump, Dump)  # they were read from one
    return dump


def _same_places(nodes: Sequence[Node], dump: Dump) -> tuple[Node, ...]:
    """The nodes at the same places of a dump whose text is the same up to names."""
    places = {
        (number, place): node
        for number, graph in enumerate(dump.graphs)
        for place, node in enumerate(graph.nodes)
    }
    wanted = set(map(id, nodes))
    own = _dump_of(nodes)
    return tuple(
        places[number, place]
        for number, graph in enumerate(own.graphs)
        for place, node in enumerate(graph.nodes)
        if id(node) in wanted and (number, place) in places
    )


def _fate(diff: GraphDiff, nodes: tuple[Node, ...]) -> _Link:
    """What nodes of the left dump became in the right one."""
    pairs = [(pair.left, pair.right, pair.what) for pair in diff.pairs]
    edits = [(edit.left, edit.right, edit) for edit in diff.edits]
    return _link(nodes, pairs, edits, "removed", ("copied", "merged"))


def _origin(diff: GraphDiff, nodes: tuple[Node, ...]) -> _Link:
    """What nodes of the right dump were in the left one."""
    pairs = [(pair.right, pair.left, pair.what) for pair in diff.pairs]
    edits = [(edit.right, edit.left, edit) for edit in diff.edits]
    return _link(nodes, pairs, edits, "added", ("merged", "copied"))


def _link(
    nodes: tuple[Node, ...],
    pairs: Sequence[tuple[Node, Node, Sequence[object]]],
    edits: Sequence[tuple[Sequence[Node], Sequence[Node], Edit]],
    gone: Event,
    many: tuple[Event, Event],
) -> _Link:
    """What nodes are in the other dump, and what happened to them.

    Args:
        nodes: of one dump.
        pairs: of equal nodes, the one of this dump first, and what changed.
        edits: nodes of this dump, and what stands in the other for them.
        gone: what happened if the other dump has nothing of them.
        many: and if it has more nodes than there are here, or fewer.
    """
    wanted = set(nodes)
    here = [pair for pair in pairs if pair[0] in wanted]
    lost = wanted - {own for own, _, _ in here}
    edited = [(others, edit) for own, others, edit in edits if lost.intersection(own)]
    replaced = tuple(node for others, _ in edited for node in others)
    there = tuple(dict.fromkeys((*(other for _, other, _ in here), *replaced)))
    details = [str(change) for _, _, what in here for change in what]
    details += [f"{edit.kind}: {edit.detail}" for _, edit in edited]
    event: Event = "changed" if details else "unchanged"
    if not there:
        event = gone
    elif replaced:
        event = "replaced"
    elif len(there) != len(nodes):
        event = many[0] if len(there) > len(nodes) else many[1]
    return _Link(event, tuple(dict.fromkeys(details)), there)

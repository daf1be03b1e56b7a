"""The tree of frames: stage, phase, micro-batch, graph, scopes; and what repeats in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.report.picture.leaves import LANES, Leaf, Link, Material
from irtool.report.picture.model import FrameKind
from irtool.report.picture.places import is_numbered, natural, pattern

LANE_TITLES = {
    "forward": "forward",
    "recompute": "recomputed for the backward pass",
    "backward": "backward",
    "optimizer": "optimizer",
}
FEWEST_OTHERS = 3
"""So many frames like ``stage1``, ``stage2`` make a row; ``norm1`` and ``norm2`` are two things."""
MOST_RUNS = 3
"""Into so many runs equal frames are parted by others; layers that alternate stay together."""
PART_SIZE = 40
"""About as many leaves are put together where no scope divides them."""


@dataclass(slots=True, eq=False)
class Scope:
    """One frame with what is in it: leaves of its own, and inner frames by name."""

    name: str
    kind: FrameKind
    parent: Scope | None = None
    children: dict[tuple[FrameKind, str], Scope] = field(
        default_factory=dict[tuple[FrameKind, str], "Scope"]
    )
    leaves: list[Leaf] = field(default_factory=list[Leaf])

    def child(self, kind: FrameKind, name: str) -> Scope:
        """The inner frame of a name, made if it is not there."""
        frame = self.children.get((kind, name))
        if frame is None:
            frame = self.children[kind, name] = Scope(name, kind, self)
        return frame

    @property
    def path(self) -> str:
        """Names of scopes from the outside, joined by slashes; lanes and stages are left out."""
        parts: list[str] = []
        frame: Scope | None = self
        while frame is not None:
            if frame.kind == "scope":
                parts.append(frame.name)
            frame = frame.parent
        return "/".join(reversed(parts))

    def all_leaves(self) -> Iterator[Leaf]:
        """Leaves of it and of everything in it."""
        pending: list[Scope] = [self]
        while pending:
            scope = pending.pop()
            yield from scope.leaves
            pending += scope.children.values()

    def inner(self) -> Iterator[Scope]:
        """It and every frame in it."""
        pending: list[Scope] = [self]
        while pending:
            scope = pending.pop()
            yield scope
            pending += scope.children.values()


def tree_of(material: Material, most_leaves: int) -> Scope:
    """The tree of all leaves.

    Args:
        material: what may be drawn.
        most_leaves: frames with more leaves of their own get them divided into parts, in order.
    """
    root = Scope("", "scope")
    stages = {leaf.stage for leaf in material.leaves}
    lanes = {leaf.lane for leaf in material.leaves if leaf.lane != "other"}
    micros = {leaf.micro for leaf in material.leaves if leaf.micro is not None}
    sources = {leaf.stage: leaf.source for leaf in material.leaves}
    # Joined ranks of which none sends to another are no stages of one pipeline.
    joined = any(link.kind == "transfer" for link in material.links)
    for leaf in material.leaves:
        frame = root
        if len(stages) > 1 and leaf.stage is not None:
            source = sources[leaf.stage]
            name = f"stage {leaf.stage}" + (f" · rank {source}" if isinstance(source, int) else "")
            frame = frame.child(
                "stage", f"rank {source}" if source is not None and not joined else name
            )
        if len(lanes) > 1 and leaf.lane != "other":
            frame = frame.child("phase", leaf.lane)
        if len(micros) > 1 and leaf.micro is not None and leaf.lane != "optimizer":
            frame = frame.child("micro", f"micro-batch {leaf.micro}")
        for graph in leaf.graphs:
            frame = frame.child("graph", graph)
        for part in leaf.place:
            frame = frame.child("scope", part)
        frame.leaves.append(leaf)
    for scope in list(root.inner()):
        if most_leaves and len(scope.leaves) > most_leaves:
            _divide(scope, most_leaves)
    return root


def _divide(scope: Scope, most: int) -> None:
    """Put leaves into parts, in the order of the dump; parts of parts where there are very many."""
    size = PART_SIZE
    while len(scope.leaves) / size > most:
        size *= PART_SIZE
    leaves, scope.leaves = sorted(scope.leaves, key=lambda leaf: leaf.index), []
    for start in range(0, len(leaves), size):
        some = leaves[start : start + size]
        first, last = (leaf.node.id if leaf.node else leaf.name for leaf in (some[0], some[-1]))
        part = scope.child("part", f"{start // size + 1}: {first} … {last}")
        part.leaves = some
        if len(some) > max(most, PART_SIZE):
            _divide(part, most)


def in_order(scopes: Iterable[Scope]) -> list[Scope]:
    """Frames from left to right: lanes by phase, others by number.

    Args:
        scopes: the frames in one frame.
    """
    lanes = {name: index for index, name in enumerate(LANES)}
    return sorted(scopes, key=lambda scope: (lanes.get(scope.name, 9), natural(scope.name)))


# ---- what repeats ----------------------------------------------------------------------------

Label = Callable[[Leaf], object]


def families(
    scope: Scope, into: Mapping[Leaf, list[Link]], label: Label, alone: Callable[[Scope], bool]
) -> list[list[Scope]]:
    """The frames in a scope, those of equal structure together: ``0-Block`` to ``23-Block``.

    Structure is operators, types, strategies, scopes and how they are joined; names of statements
    and parameters are not.  Frames belong together only if their names differ in numbers alone.

    Args:
        scope: whose inner frames are looked at.
        into: links by head.
        label: what must be equal of a leaf besides its place and its inputs.
        alone: frames that must not be folded.
    """
    by_pattern: dict[tuple[object, ...], list[Scope]] = defaultdict(list)
    for child in in_order(scope.children.values()):
        number = id(child) if alone(child) else 0
        by_pattern[child.kind, pattern(child.name), number].append(child)
    groups: list[list[Scope]] = []
    for members in by_pattern.values():
        if len(members) < (2 if is_numbered(members[0].name) else FEWEST_OTHERS):
            groups += [[member] for member in members]
            continue
        by_structure: dict[object, list[Scope]] = defaultdict(list)
        for member in members:
            signatures = leaf_signatures(member, into, label)
            by_structure[tuple(sorted(signatures.values()))].append(member)
        for alike in by_structure.values():
            groups += runs(alike, members)
    return groups


def runs(some: Sequence[Scope], members: Sequence[Scope]) -> list[list[Scope]]:
    """Frames that follow each other, where others stand between them at few places.

    Folded together, layers before and after another one would stand before and after it at once.

    Args:
        some: frames, in order.
        members: all frames of the row that they are of, in order.
    """
    places = {id(scope): place for place, scope in enumerate(members)}
    groups: list[list[Scope]] = []
    for scope in some:
        if groups and places[id(scope)] == places[id(groups[-1][-1])] + 1:
            groups[-1].append(scope)
        else:
            groups.append([scope])
    return groups if len(groups) <= MOST_RUNS else [list(some)]


def leaf_signatures(scope: Scope, into: Mapping[Leaf, list[Link]], label: Label) -> dict[Leaf, int]:
    """A number for each leaf in a frame, equal where what leads to it inside the frame is equal.

    Args:
        scope: the frame; names of inner frames count without their numbers.
        into: what leads to each leaf; edges that only order do not count.
        label: what has to be equal of two leaves themselves.

    Returns:
        numbers that can be compared between frames, in this process only.
    """
    placed: list[tuple[Leaf, tuple[str, ...]]] = []
    pending: list[tuple[Scope, tuple[str, ...]]] = [(scope, ())]
    while pending:
        frame, place = pending.pop()
        placed += [(leaf, place) for leaf in frame.leaves]
        pending += [(child, (*place, pattern(child.name))) for child in frame.children.values()]
    placed.sort(key=lambda pair: (pair[0].node is not None, pair[0].index))
    signatures: dict[Leaf, int] = {}
    for leaf, place in placed:
        inputs = tuple(
            (link.position, link.kind, signatures.get(link.tail))
            for link in into[leaf]
            if link.kind != "order"
        )
        signatures[leaf] = hash((label(leaf), place, inputs))
    return signatures

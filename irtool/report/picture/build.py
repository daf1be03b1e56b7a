"""Builds a picture: opens frames within the bound, makes boxes, bundles the edges between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.units import bytes_text, plural
from irtool.report.picture.absorb import absorb
from irtool.report.picture.boxes import leaf_box, repeated_name, scope_box, short_parameter
from irtool.report.picture.edge_labels import shape_text
from irtool.report.picture.expand import Expansion, Unit
from irtool.report.picture.leaves import Leaf, Material
from irtool.report.picture.model import Box, Edge, EdgeKind, Frame, Picture
from irtool.report.picture.overlay import Overlay
from irtool.report.picture.places import range_title
from irtool.report.picture.tree import LANE_TITLES, PART_SIZE, Scope, tree_of
from irtool.sharding.network.report import CheckResult

MAX_BOXES = 300
"""Boxes of a picture, unless the user says otherwise."""
FOLD_FROM = 120
"""Boxes from which repeated layers are drawn once, even if all of them would fit."""
_MOST_HELD = 3
_HUB = 6
"""Boxes that a parameter's lines lead to at most; beyond, the box says how many there are."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a picture shall be.

    Attributes:
        most: boxes at most; 0 for any number.
        expand: scopes to open in any case.
        colour_by: ``op``, ``strategy``, ``stage``, ``bytes``, or the topic of an overlay.
        focus: statements to point out.
    """

    most: int = MAX_BOXES
    expand: Sequence[str] = ()
    colour_by: str = "op"
    focus: Collection[Leaf] = ()


class NoSuchScope(LookupError):
    """No scope has such a name; the argument is the name."""


def picture(
    material: Material,
    wishes: Wishes | None = None,
    overlays: Sequence[Overlay] = (),
    report: CheckResult | None = None,
) -> Picture:
    """Choose what is opened and folded, and make boxes and edges of it.

    Args:
        material: what may be drawn.
        wishes: which scopes are opened, how many boxes there may be, …; None: the usual ones.
        overlays: what other commands found, as marks on boxes.
        report: what ``check`` says of the dump; gives slices in boxes.

    Raises:
        NoSuchScope: a scope to expand is not there.
    """
    return _Builder(material, wishes or Wishes(), overlays, report).build()


class _Builder:
    def __init__(
        self,
        material: Material,
        wishes: Wishes,
        overlays: Sequence[Overlay],
        report: CheckResult | None,
    ) -> None:
        self.material = material
        self.wishes = wishes
        self.overlays = overlays
        self.report = report
        self.boxes: list[Box] = []
        self.frames: list[Frame] = []
        self.box_of: dict[Leaf, Box] = {}
        self.focus = set(wishes.focus)

    def build(self) -> Picture:
        most = self.wishes.most
        fold = bool(most) and len(self.material.leaves) > min(most, FOLD_FROM)
        absorbed = absorb(self.material, weights=fold)
        self.material = absorbed.material
        self.held, self.updates = absorbed.held, absorbed.updates
        root = tree_of(self.material, max(most // 3, PART_SIZE) if fold else 0)
        self.expansion = Expansion(root, self.material.into, self._label, fold, self.wishes.expand)
        self.expansion.run(most)
        for text in self.wishes.expand:
            if text not in self.expansion.met:
                raise NoSuchScope(text)
        self.same: dict[Leaf, list[Leaf]] = defaultdict(list)
        for leaf in self.material.leaves:
            self.same[self.expansion.drawn(leaf)].append(leaf)
        self._draw(self.expansion.root, "", 1, [])
        boxes, edges = _without_hubs(self.boxes, self._edges())
        return Picture(
            title=self.material.title,
            boxes=boxes,
            edges=_with_ties(edges, self._ties()),
            frames=self._frames_with_notes(),
            colour_by=self.wishes.colour_by,
            notes=self.material.notes,
            shown=sum(leaf.node is not None for leaf in self.material.leaves),
            hidden=self.material.hidden,
            left_out=self.material.left_out,
        )

    def _label(self, leaf: Leaf) -> object:
        """What must be equal of two leaves for their frames to be folded."""
        node = leaf.node
        if node is None:
            type = leaf.parameter.type if leaf.parameter else None
            return leaf.kind, type.short() if type else "", leaf in self.focus
        marks = [overlay.marks.get(node) for overlay in self.overlays]
        stands_out = tuple((mark.severity, mark.text) for mark in marks if mark and mark.severity)
        shape = node.output_type.short() if node.output_type else ""
        return (
            node.op,
            shape,
            str(node.written_strategy()),
            stands_out,
            leaf.kind,
            leaf in self.focus,
        )

    # -- boxes and frames ----------------------------------------------------------------------

    def _draw(self, unit: Unit, frame: str, repeats: int, outer: list[str]) -> None:
        """Draw a frame with what is in it; ``outer`` are names of frames that hold nothing else."""
        scope = unit.first
        repeats *= unit.repeats
        title = range_title([member.name for member in unit.members])
        if not unit.is_open:
            self._draw_closed(unit, frame, repeats, " / ".join((*outer, title)))
            return
        only = unit.inner[0] if len(unit.inner) == 1 and not scope.leaves else None
        leaves = [leaf for leaf in scope.leaves if leaf not in self.expansion.alias]
        scopes = scope.kind == "scope" and only is not None and only.first.kind == "scope"
        if only is not None and scopes and unit.repeats == 1:
            self._draw(only, frame, repeats, [*outer, title] if scope.name else outer)
            return
        alone = scope.kind == "scope" and len(leaves) == 1 and not unit.inner and unit.repeats == 1
        if scope.name and not alone:
            frame = self._frame(unit, frame, " / ".join((*outer, title)))
        for leaf in leaves:
            box = leaf_box(leaf, self.same[leaf], frame, repeats, self.overlays, self.report)
            lines = (*self._held_lines(leaf), *box.lines)
            box = replace(box, lines=lines)
            self._put(replace(box, focus=leaf in self.focus), self.same[leaf])
        for inner in unit.inner:
            self._draw(inner, frame, repeats, [])

    def _held_lines(self, leaf: Leaf) -> list[str]:
        """The parameter that an operator updates, and those that are written into its box."""
        lines: list[str] = []
        if leaf in self.updates:
            targets = [self.updates[same] for same in self.same[leaf] if same in self.updates]
            lines.append(short_parameter(repeated_name(targets)))
        else:
            for index, parameter in enumerate(self.held.get(leaf, ())):
                others = [self.held.get(same, ()) for same in self.same[leaf]]
                names = repeated_name([held[index] for held in others if index < len(held)])
                type = parameter.parameter.type if parameter.parameter else None
                shape = shape_text(type.dimensions if type else None)
                lines.append(f"{short_parameter(names)} {shape}".rstrip())
        if len(lines) > _MOST_HELD:
            lines[_MOST_HELD:] = [f"… {len(lines) - _MOST_HELD} more parameters"]
        return lines

    def _frame(self, unit: Unit, parent: str, title: str) -> str:
        scope = unit.first
        if scope.kind == "phase":
            title = LANE_TITLES.get(scope.name, scope.name)
        id = f"f{len(self.frames)}"
        outer = next((frame.total for frame in self.frames if frame.id == parent), 1)
        total = outer * unit.repeats
        self.frames.append(Frame(id, scope.kind, title, parent, unit.repeats, scope.name, total))
        return id

    def _draw_closed(self, unit: Unit, frame: str, repeats: int, title: str) -> None:
        leaves = [leaf for leaf in unit.first.all_leaves() if leaf not in self.expansion.alias]
        behind = [same for leaf in leaves for same in self.same[leaf]]
        for member in unit.members[1:]:
            inside = [leaf for leaf in member.all_leaves() if leaf not in self.expansion.alias]
            behind += [same for leaf in inside for same in self.same[leaf]]
        if unit.first.kind == "phase":
            title = LANE_TITLES.get(unit.first.name, title)
        box = scope_box(f"s{len(self.boxes)}", title, leaves, behind, frame, repeats, self.overlays)
        box = replace(box, focus=not self.focus.isdisjoint(behind))
        self._put(box, behind)

    def _put(self, box: Box, leaves: Sequence[Leaf]) -> None:
        self.boxes.append(box)
        for leaf in leaves:
            self.box_of[leaf] = box

    def _frames_with_notes(self) -> tuple[Frame, ...]:
        """Frames of lanes and of repeats say what they take from other lanes."""
        by_id = {frame.id: frame for frame in self.frames}
        taken: dict[str, dict[str, dict[Leaf, int | None]]] = defaultdict(dict)
        for link in self.material.links:
            if link.tail.lane == link.head.lane or link.tail.node is None or link.kind != "data":
                continue
            if link.tail.source != link.head.source or link.tail.lane == "other":
                continue
            frame = by_id.get(self.box_of[link.head].frame)
            while frame is not None:
                if frame.kind == "phase" or frame.repeats > 1:
                    values = taken[frame.id].setdefault(link.tail.lane, {})
                    values[link.tail] = link.tail.bytes
                frame = by_id.get(frame.parent)
        return tuple(
            replace(frame, note=_taken_text(frame, taken[frame.id])) for frame in self.frames
        )

    # -- edges ---------------------------------------------------------------------------------

    def _edges(self) -> list[Edge]:
        bundles: dict[tuple[str, str, EdgeKind], list[tuple[int | None, str, str]]] = {}
        for link in self.material.links:
            tail, head = self.box_of[link.tail], self.box_of[link.head]
            if tail is head:
                continue
            kind: EdgeKind | None = self._kind(link.tail, link.head)
            if kind is None:
                continue
            if kind == "data":
                kind = link.kind
            facts = (link.bytes, link.label, link.note)
            bundles.setdefault((tail.id, head.id, kind), []).append(facts)
        return [_bundle(key, facts) for key, facts in bundles.items()]

    def _kind(self, tail: Leaf, head: Leaf) -> EdgeKind | None:
        """``data``; ``repeat`` from one layer to the next; None for what the first layer shows."""
        ours, theirs = self.expansion.instances(tail), self.expansion.instances(head)
        shared = [(ours[unit], theirs[unit]) for unit in ours if unit in theirs]
        if all(one == other for one, other in shared):
            return "data" if all(one == 0 for one, _ in shared) else None
        differing = [pair for pair in shared if pair[0] != pair[1]]
        first = all(min(pair) == 0 for pair in differing)
        same = all(one == 0 for one, other in shared if one == other)
        return "repeat" if first and same else None

    def _ties(self) -> list[Edge]:
        counts: Counter[tuple[str, str, EdgeKind]] = Counter()
        for bond in self.material.bonds:
            if self._kind(bond.left, bond.right) != "data":
                continue
            left, right = self.box_of[bond.left], self.box_of[bond.right]
            kind: EdgeKind = "recompute" if bond.kind == "recompute" else "tie"
            if left is not right:
                counts[left.id, right.id, kind] += 1
        return [Edge(left, right, kind, number) for (left, right, kind), number in counts.items()]


def _taken_text(frame: Frame, taken: Mapping[str, Mapping[Leaf, int | None]]) -> str:
    parts: list[str] = []
    for lane, values in taken.items():
        count = max(1, round(len(values) / frame.total))
        size = sum(size or 0 for size in values.values()) // frame.total
        what = f"{plural(count, 'value')} of the {lane} pass" if lane != "recompute" else ""
        what = what or f"{plural(count, 'value')} computed again"
        parts.append(f"{what} ({bytes_text(size)})")
    return f"{'each takes' if frame.total > 1 else 'takes'} {', '.join(parts)}" if parts else ""


def _without_hubs(boxes: list[Box], edges: list[Edge]) -> tuple[tuple[Box, ...], list[Edge]]:
    """Parameters that go nearly everywhere say so, rather than sending lines there."""
    counts = Counter(edge.tail for edge in edges if edge.kind == "data")
    kinds = {box.id: box.kind for box in boxes}
    hubs = {id for id, n in counts.items() if n > _HUB and kinds[id] in ("parameter", "input")}
    labelled = tuple(
        replace(box, lines=(*box.lines, f"to {counts[box.id]} boxes")) if box.id in hubs else box
        for box in boxes
    )
    return labelled, [edge for edge in edges if edge.tail not in hubs]


def _with_ties(edges: list[Edge], ties: list[Edge]) -> tuple[Edge, ...]:
    """Edges and ties; where a value goes between two boxes anyway, that edge is the tie, too.

    (Graphviz fails on two edges between the same boxes of which one ranks and one doesn't.)
    """
    joined = {frozenset((tie.tail, tie.head)) for tie in ties}
    drawn = [
        replace(edge, is_tie=True) if frozenset((edge.tail, edge.head)) in joined else edge
        for edge in edges
    ]
    there = {frozenset((edge.tail, edge.head)) for edge in edges}
    return (*drawn, *(tie for tie in ties if frozenset((tie.tail, tie.head)) not in there))


def _bundle(key: tuple[str, str, EdgeKind], facts: list[tuple[int | None, str, str]]) -> Edge:
    tail, head, kind = key
    sizes = [size for size, _, _ in facts if size is not None]
    labels = list(dict.fromkeys(label for _, label, _ in facts if label))
    notes = list(dict.fromkeys(note for _, _, note in facts if note))
    return Edge(
        tail, head, kind, len(facts), sum(sizes) if sizes else None,
        labels[0] if len(labels) == 1 else "", "; ".join(notes[:3]),
    )  # fmt: skip


def drawn_nodes(picture: Picture) -> set[Node]:
    """Every statement that a picture stands for."""
    return {node for box in picture.boxes for node in box.nodes}


def communicates(node: Node) -> bool:
    """Whether a statement is a collective.

    Args:
        node: of a dump.
    """
    return node.op in COMMUNICATION


__all__ = ["MAX_BOXES", "NoSuchScope", "Scope", "Wishes", "drawn_nodes", "picture"]

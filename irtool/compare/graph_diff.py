"""The difference of two dumps' graphs: what was matched, what changed, where it begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from irtool.compare.changes import Change, changes
from irtool.compare.changes import Kind as ChangeKind
from irtool.compare.edits import Edit, EditKind, Pattern, fold
from irtool.compare.fingerprints import Numbering, order_fingerprint
from irtool.compare.matching import Matching, Round, match
from irtool.compare.regions import Region, regions
from irtool.compare.side import Side, side_of
from irtool.compare.sums import ReorderedSum, reordered_sums
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING

Changed: TypeAlias = dict[int, tuple[Change, ...]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A node of the left dump and its match; ``what`` differs between them, if anything."""

    left: Node
    right: Node
    round: Round
    what: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterEdit:
    """A parameter of the network that only one dump has, or whose type changed."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two dumps begin to differ, in the order of the flow."""

    left: Node | None
    right: Node | None
    why: str


@dataclass(frozen=True, eq=False)
class GraphDiff(Shown):
    """The difference of two dumps.

    Attributes:
        left: one dump.
        right: the other.
        pairs: matched nodes, each pair once, in the order of the left dump's flow.
        only_left: nodes of the left dump without a match.
        only_right: nodes of the right dump without a match.
        edits: what happened, in the order of the flow.
        patterns: the same, equal edits of repeated layers folded.
        parameters: parameters that differ.
        passing: nodes that only hand on values or order, by operator: numbers on both sides,
            where they differ.
        first_divergence: where it begins; None if the dumps are identical.
        is_identical: equal up to numbers, addresses, hashes and source lines.
    """

    left: Dump
    right: Dump
    pairs: tuple[Pair, ...]
    only_left: tuple[Node, ...]
    only_right: tuple[Node, ...]
    edits: tuple[Edit, ...]
    patterns: tuple[Pattern, ...]
    parameters: tuple[ParameterEdit, ...]
    passing: tuple[tuple[str, int, int], ...]
    first_divergence: Divergence | None
    is_identical: bool

    @property
    def changed(self) -> tuple[Pair, ...]:
        """Matched nodes that differ in something."""
        return tuple(pair for pair in self.pairs if pair.what)


def diff_graphs(left: Dump, right: Dump, given: Iterable[tuple[Node, Node]] = ()) -> GraphDiff:
    """Compare the graphs of two dumps, of whatever pass, version or target.

    Args:
        left: one dump.
        right: the other.
        given: nodes that are known to be the same; they are matched first.
    """
    sides = side_of(left), side_of(right)
    matching = match(*sides, given=_places(sides, given))
    sums = reordered_sums(matching)
    summed = {index for item in sums for index in item.left}
    changed = {index: changes(matching, index, index in summed) for index in matching.left}
    pairs = _pairs(matching, changed)
    edits = sorted(
        (
            *_changed_edits(matching, changed),
            *_region_edits(matching, sums),
            *_sum_edits(matching, sums),
        ),
        key=lambda edit: edit.order,
    )
    parameters = _parameter_edits(left, right)
    passing = _passing(sides)
    equal = matching.is_identical and not edits and not parameters and not passing
    is_reordered = equal and not _same_order(sides)
    return GraphDiff(
        left,
        right,
        pairs,
        _unmatched(matching, 0),
        _unmatched(matching, 1),
        tuple(edits),
        fold(edits),
        parameters,
        passing,
        _first(edits, parameters, passing, is_reordered),
        equal and not is_reordered,
    )


def _places(
    sides: tuple[Side, Side], given: Iterable[tuple[Node, Node]]
) -> Iterable[tuple[int, int]]:
    for left, right in given:
        yield from zip(
            sides[0].by_node.get(left, ()), sides[1].by_node.get(right, ()), strict=False
        )


def _pairs(matching: Matching, changed: Changed) -> tuple[Pair, ...]:
    """Each pair of nodes once, however often the nodes run."""
    pairs: dict[tuple[Node, Node], Pair] = {}
    for index in sorted(matching.left):
        left = matching.sides[0].operators[index].node
        right = matching.sides[1].operators[matching.left[index]].node
        known = pairs.get((left, right))
        if known is None or (changed[index] and not known.what):
            pairs[left, right] = Pair(left, right, matching.rounds[index], changed[index])
    return tuple(pairs.values())


def _unmatched(matching: Matching, which: int) -> tuple[Node, ...]:
    """Nodes none of whose runs is matched."""
    side = matching.sides[which]
    taken = matching.right if which else matching.left
    return tuple(
        node for node, places in side.by_node.items() if not any(place in taken for place in places)
    )


# -- edits ---------------------------------------------------------------------------------------


def _changed_edits(matching: Matching, changed: Changed) -> Iterable[Edit]:
    seen: set[tuple[Node, Node, Change]] = set()
    for index, differences in changed.items():
        left = matching.sides[0].operators[index]
        right = matching.sides[1].operators[matching.left[index]]
        for change in differences:
            if (left.node, right.node, change) in seen:
                continue
            seen.add((left.node, right.node, change))
            follows = change.what == "result" and _follows(matching, changed, index, change.kind)
            yield Edit(
                change.kind, change.detail, (left.node,), (right.node,), left.phase, index, follows
            )


def _follows(matching: Matching, changed: Changed, index: int, kind: ChangeKind) -> bool:
    """Whether a result's type changed because an operand's did, not by the operator itself."""
    return any(
        change.what == "result" and change.kind == kind
        for _, made in matching.sides[0].operators[index].producers()
        for change in changed.get(made.operator, ())
    )


def _sum_edits(matching: Matching, sums: Sequence[ReorderedSum]) -> Iterable[Edit]:
    for item in sums:
        left, right = _nodes(matching.sides[0], item.left), _nodes(matching.sides[1], item.right)
        phase = matching.sides[0].operators[item.left[0]].phase
        detail = f"{item.terms} terms, {len(left)} → {len(right)} additions"
        order = float(min(item.left))
        yield Edit("reduction reordered", detail, left, right, phase, order)


def _region_edits(matching: Matching, sums: Sequence[ReorderedSum]) -> Iterable[Edit]:
    places = _flow(matching)
    summed = (
        {index for item in sums for index in item.left},
        {index for item in sums for index in item.right},
    )
    lone = _lone_backward(matching)
    if lone is not None:
        yield from _backward_edit(matching, lone)
    for region in regions(matching):
        left = _nodes(matching.sides[0], region.left)
        right = _nodes(matching.sides[1], region.right)
        which, first = (0, region.left[0]) if region.left else (1, region.right[0])
        phase = matching.sides[which].operators[first].phase
        if lone == which and phase == "backward":
            continue
        if summed[0].issuperset(region.left) and summed[1].issuperset(region.right):
            continue
        order = places[first] if which else float(first)
        yield Edit(region.kind, _region_detail(region, left, right), left, right, phase, order)


def _flow(matching: Matching) -> list[float]:
    """Where each operator of the right side stands in the left one's flow.

    A matched one stands where its match does, another behind what leads into it.
    """
    places: list[float] = []
    for operator in matching.sides[1].operators:
        match = matching.right.get(operator.index)
        before = [places[made.operator] for _, made in operator.producers()]
        places.append(float(match) if match is not None else max(before, default=-1.0) + 0.5)
    return places


def _lone_backward(matching: Matching) -> int | None:
    """The side that alone has a backward pass, where one has none."""
    has = [
        any(item.phase == "backward" and item.op not in PLUMBING for item in side.operators)
        for side in matching.sides
    ]
    return None if has[0] == has[1] else has.index(True)


def _backward_edit(matching: Matching, which: int) -> Iterable[Edit]:
    """One edit for a whole backward pass: one dump was taken before differentiation.

    None where all of it is matched with what is no backward pass on the other side.
    """
    side = matching.sides[which]
    taken = matching.right if which else matching.left
    free = [item.index for item in side.operators if item.phase == "backward"]
    nodes = _nodes(side, [index for index in free if index not in taken])
    if not nodes:
        return
    sides = ((), nodes) if which else (nodes, ())
    kind: EditKind = "backward pass added" if which else "backward pass removed"
    order = float(len(matching.sides[0].operators))
    yield Edit(kind, _operators_text(nodes), *sides, "backward", order)


def _nodes(side: Side, places: Sequence[int]) -> tuple[Node, ...]:
    return tuple(dict.fromkeys(side.operators[place].node for place in places))


def _region_detail(region: Region, left: tuple[Node, ...], right: tuple[Node, ...]) -> str:
    ours, theirs = _operators_text(left), _operators_text(right)
    if region.left and region.right:
        return f"{ours} → {theirs}"
    (node, *rest) = left or right
    if not rest and region.kind.startswith(("cast", "collective")):
        types = [item.short() for item in (*node.input_types[:1], node.output_type) if item]
        return f"{node.op} {' → '.join(types)}"
    return ours or theirs


def _operators_text(nodes: tuple[Node, ...]) -> str:
    """``MatMul, 2 × Add``: operators by first occurrence, at most four of them."""
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    parts = [f"{count} × {op}" if count > 1 else op for op, count in counts.items()]
    more = f", … {len(parts) - 4} more" if len(parts) > 4 else ""
    return ", ".join(parts[:4]) + more


# -- the rest ------------------------------------------------------------------------------------


def _parameter_edits(left: Dump, right: Dump) -> tuple[ParameterEdit, ...]:
    ours, theirs = ({item.name: item.type for item in dump.parameters} for dump in (left, right))
    edits: list[ParameterEdit] = []
    for name in dict.fromkeys((*ours, *theirs)):
        texts = [
            None if name not in types else (kind.short() if (kind := types[name]) else "")
            for types in (ours, theirs)
        ]
        if texts[0] != texts[1]:
            edits.append(ParameterEdit(name, texts[0], texts[1]))
    return tuple(edits)


def _same_order(sides: tuple[Side, Side]) -> bool:
    """Whether what only orders nodes (Depend, UpdateState, Load) is the same as well."""
    numbering = Numbering()
    return order_fingerprint(sides[0], numbering) == order_fingerprint(sides[1], numbering)


def _passing(sides: tuple[Side, Side]) -> tuple[tuple[str, int, int], ...]:
    names = dict.fromkeys((*sides[0].passing, *sides[1].passing))
    counts = [(op, sides[0].passing.get(op, 0), sides[1].passing.get(op, 0)) for op in names]
    return tuple(item for item in counts if item[1] != item[2])


def _first(
    edits: Sequence[Edit],
    parameters: Sequence[ParameterEdit],
    passing: Sequence[tuple[str, int, int]],
    is_reordered: bool,
) -> Divergence | None:
    if edits:
        edit = edits[0]
        left, right = (side[0] if side else None for side in (edit.left, edit.right))
        return Divergence(left, right, f"{edit.kind}: {edit.detail}")
    if parameters:
        item = parameters[0]
        return Divergence(None, None, f"parameter {item.name}: {item.before} → {item.after}")
    if passing:
        op, before, after = passing[0]
        return Divergence(None, None, f"{op}: {before} → {after} nodes")
    if is_reordered:
        return Divergence(None, None, "order changed: Depend, UpdateState or Load stand elsewhere")
    return None

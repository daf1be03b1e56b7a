"""Layers of two dumps: which are in both, and what of an edit is in which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from irtool.cluster.weight_layers import cells_of
from irtool.compare.edits import Edit, Pattern
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.linting.facts import DumpFacts
from irtool.linting.gate import GateFacts
from irtool.linting.layers import kind_of
from irtool.linting.places import user_frames


@dataclass(frozen=True, slots=True)
class LayerChange:
    """Layers that only one of the dumps has."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """Those of either dump."""
        return (*self.added, *self.removed)


def forward_layers(facts: DumpFacts) -> dict[str, list[Node]]:
    """Numbered cells with their forward operators, in printed order: layers, and those in them.

    Args:
        facts: of one dump.

    Returns:
        By the cell's name, ``layers.0`` or ``layers.0.experts.1``.
    """
    return facts.kept("gate.layers", lambda: _forward_layers(facts))


def _forward_layers(facts: DumpFacts) -> dict[str, list[Node]]:
    layers: dict[str, list[Node]] = {}
    for node in facts.dump.nodes():
        if node.op in PLUMBING or node.op in COMMUNICATION or node.is_recomputed:
            continue
        if facts.phases.get(node) == "forward":
            for cell in cells_of(node):
                layers.setdefault(cell, []).append(node)
    return layers


def layer_change(facts: GateFacts) -> LayerChange:
    """Layers that came or went, where others of their kind are in both dumps.

    A kind of which no layer is in both was renamed or replaced: that is no layer more or less.
    What stands in a layer that came or went is part of it.

    Args:
        facts: of the golden dump and the new one.
    """
    old, new = forward_layers(facts.old), forward_layers(facts.new)
    lasting = {kind_of(layer) for layer in old if layer in new}

    def alone(side: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
        known = set(other)
        return outermost(cell for cell in side if cell not in known and kind_of(cell) in lasting)

    return LayerChange(alone(new, old), alone(old, new))


def outermost(cells: Iterable[str]) -> tuple[str, ...]:
    """Cells that stand in none of the others.

    Args:
        cells: by name; their order is kept.
    """
    named = tuple(cells)
    return tuple(cell for cell in named if not any(is_within(cell, other) for other in named))


def is_within(cell: str, other: str) -> bool:
    """Whether a cell stands in another one.

    Args:
        cell: by name: ``layers.0.experts.1`` is in ``layers.0``.
        other: by name; no cell is within itself.
    """
    return cell.startswith(f"{other}.")


def siblings(cell: str, layers: Iterable[str]) -> int:
    """How many cells stand in the same cell as one does, itself included if it is listed.

    Args:
        cell: by name, ``layers.1``.
        layers: names of cells.
    """
    of = cell.rpartition(".")[0]
    return sum(layer.rpartition(".")[0] == of for layer in layers)


def in_changed_layer(edit: Edit, change: LayerChange) -> bool:
    """Whether an edit is part of a layer that came or went.

    Args:
        edit: of the diff of both dumps.
        change: the layers that only one of them has.
    """
    return not set(change.layers).isdisjoint(cells_of(edit.node))


def is_completed(edit: Edit, change: LayerChange, facts: GateFacts) -> bool:
    """Whether an edit makes a layer what its like are, beside which a layer came or went.

    What nobody reads is not there: of a last layer that returns more than is used, such as the
    state of a recurrent one, operators come as soon as a layer follows, and go with it.

    Args:
        edit: of the diff of both dumps.
        change: the layers that only one of them has.
        facts: of both dumps.
    """
    cells = cells_of(edit.node)
    if not cells or not any(kind_of(changed) == kind_of(cells[0]) for changed in change.layers):
        return False
    side = facts.new if change.added else facts.old
    layers = forward_layers(side)
    own = Counter(node.op for node in layers.get(cells[0], ()))
    return any(
        own == Counter(node.op for node in nodes)
        for layer, nodes in layers.items()
        if layer != cells[0] and layer not in change.layers and kind_of(layer) == kind_of(cells[0])
    )


def where(pattern: Pattern) -> str:
    """Where a pattern of edits stands: `` in layers.1``, or the last part of the scope.

    Args:
        pattern: of edits that are alike.

    Returns:
        With a blank in front, to follow a sentence; three cells at most; empty where no scope is.
    """
    numbered = list(
        dict.fromkeys(cells[-1] for edit in pattern.edits if (cells := cells_of(edit.node)))
    )
    if numbered:
        more = f" and {len(numbered) - 3} more" if len(numbered) > 3 else ""
        return f" in {', '.join(numbered[:3])}{more}"
    scope = (pattern.first.node.scope or "").rpartition("/")[2]
    return f" in {scope}" if scope else ""


def shown(nodes: Iterable[Node]) -> Node | None:
    """The node that a person can look at: one with a line of Python, else the first.

    Args:
        nodes: in the order in which they are preferred.

    Returns:
        None where there are none.
    """
    first: Node | None = None
    for node in nodes:
        first = first or node
        if user_frames(node):
            return node
    return first

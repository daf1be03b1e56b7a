"""Edits: what differs between two graphs; those that repeat from layer to layer are one pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from irtool.compare.changes import Kind as ChangeKind
from irtool.compare.identity import scope_pattern
from irtool.compare.regions import RegionKind
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.phases import Phase

_NODE = re.compile(r"%\d+")
_NUMBERED = re.compile(r"(?<=[._/-])\d+(?=[._/-])")
_BACKWARD = re.compile(r"^Gradients/|/Grad_")

EditKind: TypeAlias = (
    ChangeKind | RegionKind | Literal["backward pass added", "backward pass removed"]
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: nodes that changed, appeared, went or took each other's place.

    ``kind`` says what happened, ``detail`` to what; ``order`` is where it stands in the flow.
    ``follows`` marks a result whose type changed only because an operand's did.
    """

    kind: EditKind
    detail: str
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    phase: Phase
    order: float
    follows: bool = False

    @property
    def node(self) -> Node:
        """The node that stands for the edit."""
        return (self.left or self.right)[0]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Equal edits of several layers.

    ``layers`` is in how many scopes that differ in numbers alone they are found, ``edits`` all of
    them in the order of the flow.  ``counterpart`` is the number (from 0, in the list of patterns)
    of the pattern of the forward or backward operators that go with these.
    """

    edits: tuple[Edit, ...]
    layers: int
    scope: str
    counterpart: int | None = None

    @property
    def first(self) -> Edit:
        """The first edit of the pattern, its example."""
        return self.edits[0]

    @property
    def detail(self) -> str:
        """What happened, without the numbers of nodes where there are several."""
        detail = self.first.detail
        return _generalised(detail) if len(self.edits) > 1 else detail


def fold(edits: Sequence[Edit]) -> tuple[Pattern, ...]:
    """Edits that differ only in the layer, as patterns, in the order of their first edit.

    Args:
        edits: of two graphs.
    """
    groups: dict[tuple[object, ...], list[Edit]] = {}
    for edit in edits:
        node = edit.node
        place = scope_pattern(node.scope)
        key = (edit.kind, node.op, edit.phase, place, _generalised(edit.detail))
        groups.setdefault(key, []).append(edit)
    made = [
        Pattern(tuple(members), len({edit.node.scope for edit in members}), str(key[3]))
        for key, members in groups.items()
    ]
    return _with_counterparts(made)


def _generalised(detail: str) -> str:
    return _NUMBERED.sub("#", _NODE.sub("%#", detail))


def _with_counterparts(patterns: list[Pattern]) -> tuple[Pattern, ...]:
    """Tie patterns of backward operators to those of the forward operators they belong to."""
    forward: dict[str, int] = {}
    for number, pattern in enumerate(patterns):
        if pattern.first.phase == "forward":
            for edit in pattern.edits:
                for identity in _identities(edit.node, backward=False):
                    forward.setdefault(identity, number)
    partner: dict[int, int] = {}
    for number, pattern in enumerate(patterns):
        if pattern.first.phase != "backward":
            continue
        for identity in _identities(pattern.first.node, backward=True):
            if identity in forward:
                partner[number] = forward[identity]
                partner.setdefault(forward[identity], number)
                break
    return tuple(
        Pattern(pattern.edits, pattern.layers, pattern.scope, partner.get(number))
        for number, pattern in enumerate(patterns)
    )


def _identities(node: Node, backward: bool) -> list[str]:
    """What a forward node and its gradients have in common: the id, else scope and operator."""
    identities: list[str] = []
    identity = node.forward_unique_id if backward else node.unique_id
    if identity is not None:
        identities.append(f"id {identity}")
    scope = _BACKWARD.sub("/" if backward else "", node.scope or "").strip("/")
    if scope:
        identities.append(f"scope {scope}" if backward else f"scope {scope}/{node.op}")
    return identities

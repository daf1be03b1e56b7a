"""What may be drawn at all: every statement and parameter that is shown, and what goes between.

A leaf is one box of the picture in which nothing is folded or collapsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node

Lane: TypeAlias = Literal["forward", "recompute", "backward", "optimizer", "other"]
LANES: tuple[Lane, ...] = ("forward", "recompute", "backward", "optimizer")
"""Phases, from left to right."""

LeafKind: TypeAlias = Literal["operator", "parameter", "input", "result", "call"]


@dataclass(slots=True, eq=False)
class Leaf:
    """One statement as it runs, or a parameter.

    ``place`` is the way of scopes to it, the outermost first; ``index`` its place in an order that
    respects producers; ``graphs`` are branches and loop bodies around it.
    """

    index: int
    kind: LeafKind
    name: str
    node: Node | None = None
    parameter: GraphParameter | None = None
    source: int | str | None = None
    stage: int | None = None
    lane: Lane = "other"
    micro: int | None = None
    graphs: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    bytes: int | None = None

    @property
    def id(self) -> str:
        """Stable within a picture of the same dump."""
        return f"n{self.index}"

    @property
    def source_name(self) -> str | None:
        """Name of the dump that it is of, in a joined picture."""
        return None if self.source is None else str(self.source)

    def __repr__(self) -> str:
        return f"<Leaf {self.id} {self.name}>"


LinkKind: TypeAlias = Literal["data", "transfer", "call", "order"]


@dataclass(frozen=True, slots=True)
class Link:
    """A value that goes from one leaf to another, as the operand at ``position``."""

    tail: Leaf
    head: Leaf
    kind: LinkKind = "data"
    position: int = 0
    bytes: int | None = None
    label: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bond:
    """Two leaves that belong together: forward and backward, original and copy, or an update."""

    left: Leaf
    right: Leaf
    kind: Literal["gradient", "recompute", "parameter"]


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that may be drawn of one dump, or of the joined dumps of a run.

    ``hidden`` counts statements that are never drawn: monads, loads, what only orders or passes on;
    ``left_out`` those that were not asked for.
    """

    title: str
    leaves: tuple[Leaf, ...]
    links: tuple[Link, ...]
    bonds: tuple[Bond, ...]
    hidden: int = 0
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @cached_property
    def into(self) -> dict[Leaf, list[Link]]:
        """Links by the leaf that they lead to."""
        by_head: dict[Leaf, list[Link]] = {leaf: [] for leaf in self.leaves}
        for link in self.links:
            by_head[link.head].append(link)
        return by_head

    @cached_property
    def out_of(self) -> dict[Leaf, list[Link]]:
        """Links by the leaf that they come from."""
        by_tail: dict[Leaf, list[Link]] = {leaf: [] for leaf in self.leaves}
        for link in self.links:
            by_tail[link.tail].append(link)
        return by_tail

    def part(self, leaves: Iterable[Leaf], links: Sequence[Link] | None = None) -> Material:
        """A part of it: some leaves, with the links and bonds between them."""
        kept = set(leaves)
        chosen = self.links if links is None else links
        shown = sum(leaf.node is not None for leaf in kept)
        before = sum(leaf.node is not None for leaf in self.leaves)
        return Material(
            self.title,
            tuple(leaf for leaf in self.leaves if leaf in kept),
            tuple(link for link in chosen if link.tail in kept and link.head in kept),
            tuple(bond for bond in self.bonds if bond.left in kept and bond.right in kept),
            self.hidden,
            self.left_out + before - shown,
            self.notes,
        )

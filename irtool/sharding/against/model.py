"""The answer to ``check --against``: plain data."""

from __future__ import annotations

from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

DifferenceKind = Literal[
    "strategy",
    "slice",
    "group",
    "missing collective",
    "extra collective",
    "redistribution",
    "parameter slice",
    "mirror",
    "optimizer parallel",
    "loss division",
    "dataset slice",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as predicted.

    ``predicted`` and ``actual`` are texts ("" where there is nothing), ``cause`` says what the
    difference means. ``begin`` is the node whose strategy promised it, ``node`` what stands in the
    later dump; ``producer`` is the other end of an edge, in the begin dump; ``parameter`` the
    parameter's name where it is about one. ``root``: the operator whose other strategy it follows
    from, where there is one.
    """

    kind: DifferenceKind
    message: str
    predicted: str
    actual: str
    cause: str
    begin: Node | None = None
    node: Node | None = None
    parameter: str | None = None
    producer: Node | None = None
    root: Node | None = None


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An operator, edge, or collective that could not be compared, and why."""

    what: str
    why: str
    begin: Node | None = None
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """Collectives that later passes made of predicted ones: no difference."""

    cause: str
    count: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer: ``matched`` of ``total`` operators of the begin dump were found and compared."""

    differences: tuple[Difference, ...]
    unmatched: tuple[Unmatched, ...]
    explained: tuple[Explained, ...]
    matched: int
    total: int

    @property
    def share(self) -> float:
        """Operators compared, of all that have a strategy; 1.0 where there are none."""
        return self.matched / self.total if self.total else 1.0

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, of something that was compared."""
        return not self.differences and (self.matched > 0 or not self.total)

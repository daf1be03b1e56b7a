"""The model of ties: one tie, and all of a dump or between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.operators import PLUMBING, VIRTUAL

Kind: TypeAlias = Literal["gradient", "recompute", "parameter", "pass"]
Rule: TypeAlias = Literal[
    "unique_id",
    "forward_node_name",
    "forward_comm_node_unique_id",
    "mirror_user_id",
    "instance_name",
    "scope",
    "parameter",
    "debug_name",
    "location",
    "sr_tag",
    "neighbours",
    "order",
]
End: TypeAlias = Node | GraphParameter


@dataclass(frozen=True, slots=True)
class Tie:
    """``left`` and ``right`` belong together, by the rule ``how``.

    Kinds: ``gradient`` (forward node or parameter, then a backward node), ``recompute`` (original,
    copy), ``parameter`` (parameter, the node that updates it), ``pass`` (the same operator in an
    earlier and a later dump).
    """

    left: End
    right: Node
    kind: Kind
    how: Rule
    certain: bool = True


@dataclass(frozen=True, eq=False)
class Ties:
    """Ties of one dump, or between two; ``tieable`` counts, by kind, what could have been tied."""

    items: tuple[Tie, ...]
    tieable: Mapping[Kind, int]

    @cached_property
    def _by_end(self) -> dict[End, list[Tie]]:
        by_end: dict[End, list[Tie]] = {}
        for tie in self.items:
            by_end.setdefault(tie.left, []).append(tie)
            by_end.setdefault(tie.right, []).append(tie)
        return by_end

    def of(self, end: End) -> tuple[Tie, ...]:
        """The ties of a node or parameter."""
        return tuple(self._by_end.get(end, ()))

    def partners(self, end: End) -> tuple[End, ...]:
        """What a node or parameter is tied to."""
        return tuple(
            tie.right if tie.left is end or tie.left == end else tie.left for tie in self.of(end)
        )

    @property
    def counts(self) -> dict[Rule, int]:
        """Number of ties by rule."""
        return dict(Counter(tie.how for tie in self.items))

    def tied(self, kind: Kind) -> int:
        """Number of tieable ends of a kind that are tied."""
        if kind == "pass":
            return len({id(tie.left) for tie in self.items if tie.kind == kind})
        return len(
            {
                id(tie.right)
                for tie in self.items
                if tie.kind == kind
                and tie.right.op not in PLUMBING
                and (kind != "gradient" or forward_place(tie.right)[1] not in VIRTUAL)
            }
        )

    def share(self, kind: Kind | None = None) -> float:
        """Tied ends among those that could be tied; 1.0 where there are none."""
        kinds: Iterable[Kind] = self.tieable if kind is None else (kind,)
        possible = sum(self.tieable.get(item, 0) for item in kinds)
        return sum(self.tied(item) for item in kinds) / possible if possible else 1.0

    def __iter__(self) -> Iterator[Tie]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def forward_place(node: Node) -> tuple[str | None, str]:
    """Scope and operator of the forward node: ``Gradients/Default/net/Grad_MatMul``.

    Args:
        node: a backward one, whose scope spells its forward node's.

    Returns:
        The scope (None where none is left), and the operator of a last part ``Grad_…``, else empty.
    """
    parts = (node.scope or "").split("/")
    if parts[0] == "Gradients":
        parts = parts[1:]
    if parts and parts[-1].startswith("Grad_"):
        return "/".join(parts[:-1]) or None, parts[-1][len("Grad_") :]
    return "/".join(parts) or None, ""

"""What other commands found, to be laid over a picture: one mark a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

OverlaySeverity: TypeAlias = Literal[
    "error", "warning", "info", "first", "added", "removed", "changed", "good"
]
"""How a mark stands out: findings by severity, differences by kind (``first``: where two
dumps part), ``good`` for an improvement."""

Topic: TypeAlias = Literal["findings", "plan", "diff", "memory", "cost", "measured", "error"]
"""What an overlay tells of; ``--color-by memory|cost|error`` colours by that overlay."""

_WORST: tuple[OverlaySeverity, ...] = (
    "error", "first", "removed", "warning", "changed", "added", "info", "good",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """What is said of one node: a number, how it stands out, and a few words."""

    value: float | None = None
    severity: OverlaySeverity | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """Marks of nodes under one title.

    Attributes:
        topic: what it tells of.
        title: for the legend: ``findings of check``, ``memory at the peak``.
        unit: of the values: ``bytes``, ``seconds``, or any word; "" where there are none.
        marks: by node of the dump that is drawn.
        total: how marks of several nodes in one box become one: their ``sum`` or the ``max``.
        unplaced: marks of nodes that the dump does not hold, as text.
    """

    topic: Topic
    title: str
    unit: str = ""
    marks: Mapping[Node, Mark] = field(default_factory=dict[Node, Mark])
    total: Literal["sum", "max"] = "sum"
    unplaced: tuple[str, ...] = ()

    def of(self, nodes: Iterable[Node]) -> Mark | None:
        """One mark for all nodes of a box; None where none of them has any."""
        marks = [self.marks[node] for node in dict.fromkeys(nodes) if node in self.marks]
        if len(marks) < 2:
            return marks[0] if marks else None
        values = [mark.value for mark in marks if mark.value is not None]
        value = None
        if values:
            value = max(values) if self.total == "max" else sum(values)
        texts = dict.fromkeys(mark.text for mark in marks if mark.text)
        text = next(iter(texts), "")
        if len(texts) > 1:
            text += f" … and {len(texts) - 1} more"
        return Mark(value, worst(mark.severity for mark in marks), text)


def worst(severities: Iterable[OverlaySeverity | None]) -> OverlaySeverity | None:
    """The one that must not be overlooked.

    Args:
        severities: None where a mark has none.

    Returns:
        None where none has any.
    """
    there = set(severities)
    return next((item for item in _WORST if item in there), None)

"""Indices that the graph of a rank makes of those into a whole table, for its own rows.

Where a table is cut over its rows, MindSpore puts ``Minimum(ReLU(Sub(indices, first)), rows - 1)``
before the Gather and multiplies what it gives by where that is ``Sub(indices, first)``; ranks are
added up behind (gather_info.cc).  The gradient of the table takes the same indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irtool.compare.layouts.ranks import operand, readers
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEEPS_INSIDE = ("Minimum", "Maximum", "ReLU", "Cast")
"""What keeps local indices among a rank's rows."""


@dataclass(frozen=True, slots=True)
class LocalIndices:
    """An operator that takes rows of its own, or adds to them.

    Attributes:
        label: of its operand that says which.
        rows: label of what has a row for each: the result of a lookup, the operand of a gradient.
        subtraction: the node that takes the first row off indices into the whole table.
        lookups: nodes that take rows by these indices.
    """

    label: str
    rows: str
    subtraction: Node
    lookups: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OwnRows:
    """What is known of a rank's own rows.

    Attributes:
        local: the operator.
        indices: into the whole table, by rank; empty where the dump lacks them.
        inside: where these are of a rank's own rows.
        groups: over which ranks rows are added up.
    """

    local: LocalIndices
    indices: Mapping[int, NDArray[Any]]
    inside: Mapping[int, NDArray[Any]]
    groups: Mapping[int, frozenset[int]]

    def applied(
        self,
        label: str,
        values: Mapping[int, NDArray[Any]],
        groups: Mapping[int, frozenset[int]],
    ) -> tuple[dict[int, NDArray[Any]], dict[int, frozenset[int]]]:
        """A tensor as if the table were whole: indices into that, rows as terms of a sum.

        Args:
            label: of the tensor.
            values: by rank.
            groups: over which ranks it is a partial sum.
        """
        if label == self.local.label:
            return dict(self.indices), dict.fromkeys(values, frozenset[int]())
        import numpy as np

        own: dict[int, NDArray[Any]] = {}
        for rank, value in values.items():
            inside = self.inside[rank]
            shape = (*inside.shape, *(1,) * (value.ndim - inside.ndim))
            own[rank] = np.where(np.reshape(inside, shape), value, value.dtype.type(0))
        return own, {rank: groups[rank] or self.groups[rank] for rank in values}


def local_indices(node: Node) -> LocalIndices | None:
    """What a node takes rows by, where that is local indices; None for any other node.

    Args:
        node: of one rank's graph.
    """
    kind = family(node.op)
    if kind not in ("lookup", "scatter"):
        return None
    source = operand(node, 1)
    if source is None:
        return None
    lookups = tuple(user for user in readers(source[0]) if family(user.op) == "lookup")
    maker: tuple[Node, int] | None = source
    for _ in _KEEPS_INSIDE:
        if maker is None or maker[0].op not in _KEEPS_INSIDE:
            break
        maker = operand(maker[0], 0)
    if maker is None or maker is source or maker[0].op != "Sub":
        return None
    return LocalIndices("input.1", "output.0" if kind == "lookup" else "input.0", maker[0], lookups)

"""Floating-point operations of nodes, from the shapes of their tensors.

How many an operator does stands in its entry of the table of operators.  Where the table does not
say it, or a tensor is of unknown shape, it is None: counted as unknown, never as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from irtool.cluster.launch_order import launches_nothing
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.types import BITS, Abstract, ScalarType
from irtool.ir.values import python_value
from irtool.operators.counting import Shape, Tensors, size_of
from irtool.operators.table import operator_of


@dataclass(frozen=True, slots=True)
class Flops:
    """How many operations some nodes do; ``unknown`` counts, by operator, those nobody knows."""

    operations: int
    unknown: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Whether every operator was counted."""
        return not self.unknown


def flops(node: Node) -> int | None:
    """Operations of one node: a multiplication and an addition are two.

    Args:
        node: of any dump; its types give the shapes.

    Returns:
        0 for what moves, orders or communicates; None for an operator that no line describes, or
        with a tensor of unknown shape.
    """
    tensors = Tensors(
        [_shapes(item) for item in node.input_types], _shapes(node.output_type), _attributes(node)
    )
    return flops_of(node.op, tensors)


_MOST_OPERATIONS = 1e100
"""Nobody counts so many: some size is absurd, though each tensor may just about exist."""


def flops_of(op: str, tensors: Tensors) -> int | None:
    """Operations of an operator on tensors of given shapes (slices, say).

    Args:
        op: the operator.
        tensors: shapes of what it takes and gives, and its attributes.

    Returns:
        None if no line describes the operator, or a size is not known.
    """
    if launches_nothing(op):
        return 0
    entry = operator_of(op)
    if entry.flops is None:
        nothing = op in COMMUNICATION or op in VIRTUAL or op in PLUMBING
        return 0 if nothing else None
    count = size_of(entry.flops)(tensors)
    return None if count is None or count > _MOST_OPERATIONS else max(0, math.floor(count))


def total_flops(nodes: Iterable[Node]) -> Flops:
    """Operations of many nodes.

    Args:
        nodes: of any dumps.

    Returns:
        Their sum, and how many nodes of which operators could not be counted.
    """
    total = 0
    unknown: dict[str, int] = {}
    for node in nodes:
        count = flops(node)
        if count is None:
            unknown[node.op] = unknown.get(node.op, 0) + 1
        else:
            total += count
    return Flops(total, unknown)


def _shapes(abstract: Abstract | None) -> list[Shape]:
    """Shapes of the tensors in a type; a number counts as a tensor of one element."""
    if abstract is None:
        return []
    if isinstance(abstract.type, ScalarType) and abstract.type.name in BITS:
        return [()]
    return [shape for _, shape in abstract.tensors]


def _attributes(node: Node) -> Callable[[str | int], object]:
    def attribute(key: str | int) -> object:
        if isinstance(key, str):
            return node.attribute(key)
        return python_value(node.operands[key]) if key < len(node.operands) else None

    return attribute

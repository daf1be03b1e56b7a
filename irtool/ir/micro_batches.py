"""The micro-batch that an operator computes for, where it says so itself."""

from __future__ import annotations

import re

from irtool.ir.graph import Node

_CELL = re.compile(r"/(\d{1,6})-_MicroBatch")
"""The cell of MindSpore that cuts a micro-batch out of a batch, in a scope."""

_INTERLEAVED = "interleave_inputs-CellList/"
"""The cells that cut a batch for MicroBatchInterleaved, in a scope."""


def micro_batch_of(node: Node) -> int | None:
    """The micro-batch that a node says it computes for: a pipeline's, or one that a cell cuts out.

    Args:
        node: its attribute ``micro`` goes before the ``_MicroBatch`` cell in its scope.

    Returns:
        Its number, from 0; None where the node itself says none.
    """
    if node.micro is not None:
        return node.micro
    cell = _CELL.search(node.scope or "")
    return int(cell[1]) if cell is not None else None


def is_interleaved(node: Node) -> bool:
    """Whether a node cuts a batch into parts that run side by side, not one by one.

    Args:
        node: whose scope is asked for a cell of MicroBatchInterleaved.
    """
    return _INTERLEAVED in (node.scope or "")

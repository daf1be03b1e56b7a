"""The micro-batch that an operator computes for, where it says so itself."""

from __future__ import annotations

import re

from irtool.ir.graph import Node

_CELL = re.compile(r"/(\d{1,6})-_MicroBatch")
"""The cell of MindSpore that cuts a micro-batch out of a batch, in a scope."""

_INTERLEAVED = "interleave_inputs-CellList/"
"""The cells that cut a batch for MicroBatchInterleaved, in a scope."""


def micro_batch_of(node: Node) -> int | None:
    """Its number: of a pipeline's the attribute ``micro``, of one that is cut out its cell's."""
    if node.micro is not None:
        return node.micro
    cell = _CELL.search(node.scope or "")
    return int(cell[1]) if cell is not None else None


def is_interleaved(node: Node) -> bool:
    """Whether it cuts out a part of a batch whose parts run side by side, not one by one."""
    return _INTERLEAVED in (node.scope or "")

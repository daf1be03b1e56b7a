"""How much an operator computes, and how many devices share it."""

from __future__ import annotations

from math import prod

from irtool.cluster.flops import flops
from irtool.sharding.network.report import OperatorReport


def gigaflops(item: OperatorReport) -> float:
    """Operations of the whole operator, in units of 10⁹; 0 where they are not known.

    Args:
        item: the operator as ``irtool check`` reports it.
    """
    return (flops(item.node) or 0) / 1e9


def repeats(item: OperatorReport, devices: int) -> int:
    """How many devices compute the same part of an operator.

    All axes of the device matrix count that split a tensor of the operator: a contracted dimension
    shares the work as well.

    Args:
        item: the operator as ``irtool check`` reports it.
        devices: of the stage.
    """
    matrix = item.device_matrix
    used: set[int] = set()
    for entries in (*item.input_maps, *item.output_maps):
        for entry in entries:
            axes = entry if isinstance(entry, tuple) else (entry,)
            used |= {len(matrix) - 1 - axis for axis in axes if axis >= 0}
    return max(1, devices // max(1, prod(matrix[axis] for axis in used)))

"""Redistributions as texts: of tables, and of the edges of a graph on a page."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import ranks_text, tuple_text
from irtool.sharding.network.report import RedistributionReport
from irtool.sharding.redistribution import RedistributionStep


def layouts_text(edge: RedistributionReport) -> str:
    """How the tensor of an edge is split before and after: ``(2, 1) → (4, 2)``; "" if unknown.

    Args:
        edge: from one operator to another; a number for each dimension of the tensor.
    """
    if edge.source is None or edge.target is None:
        return ""
    return f"{tuple_text(edge.source.splits)} → {tuple_text(edge.target.splits)}"


def chain_text(steps: Sequence[RedistributionStep]) -> str:
    """``AllGather(0) 0-3, Split(0), Concat(1)``; a number is the axis.

    Args:
        steps: of a redistribution, in the order in which they run; ranks are those of the
            collective.
    """
    return ", ".join(
        step.op
        + (f"({step.axis})" if step.axis is not None else "")
        + (f" {ranks_text(step.ranks)}" if step.ranks else "")
        for step in steps
    )

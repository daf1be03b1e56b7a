"""What a comparison of runs shows in the graphs of a page: faults, errors, suspects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.runs.comparison import RunComparison
from irtool.compare.tensors.case import Case
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op
from irtool.ir.graph import Node
from irtool.report.picture.overlay import Mark, Overlay, OverlaySeverity
from irtool.report.text import shortened

_MOST = 5
"""Faults or suspects that are marked, on both sides: so many a graph can be opened at."""
_WHY = 60


def run_overlays(comparison: RunComparison, case: Case | None) -> list[Overlay]:
    """What is known of nodes, the most telling first; overlays that mark nothing are left out.

    Args:
        comparison: of the runs.
        case: the first operator that introduces error.
    """
    overlays = [_suspects(comparison)]
    if comparison.tensors is not None:
        overlays = [_verdicts(comparison.tensors, case), _errors(comparison.tensors), *overlays]
    return [overlay for overlay in overlays if overlay.marks]


def _verdicts(tensors: TensorComparison, case: Case | None) -> Overlay:
    """Where error begins, other faults, and operators that got other arguments."""
    marks: dict[Node, Mark] = {}
    faults = tensors.faults[:_MOST]
    for item in faults:
        _mark(marks, _ops(item), "warning", item.verdict)
    changed = [item for item in tensors.judged if item.verdict == "attribute differs"]
    for item in changed[: _MOST - len(faults)]:
        _mark(marks, _ops(item), "changed", "; ".join(map(str, item.attributes[:2])))
    if case is not None:
        _mark(marks, (case.left, case.right), "error", "error begins here")
    return Overlay("findings", "what tensors show", marks=marks)


def _mark(marks: dict[Node, Mark], ops: Sequence[Op], severity: OverlaySeverity, text: str) -> None:
    for op in ops:
        if op.node is not None:
            marks[op.node] = Mark(None, severity, shortened(text, _WHY))


def _errors(tensors: TensorComparison) -> Overlay:
    """The relative error of each operator's output."""
    marks = {
        op.node: Mark(item.error_out, None, item.verdict)
        for item in tensors.judged
        if not math.isnan(item.error_out)
        for op in _ops(item)
        if op.node is not None
    }
    return Overlay("error", "relative error of outputs", marks=marks, total="max")


def _suspects(comparison: RunComparison) -> Overlay:
    """Without tensors: what in the graphs may make numbers differ, the heaviest first."""
    marks: Mapping[Node, Mark] = {
        node: Mark(None, "warning", shortened(item.why, _WHY))
        for item in reversed(comparison.suspects[:_MOST])
        for node in item.nodes
    }
    return Overlay("diff", "suspects", marks=marks)


def _ops(item: Judged) -> tuple[Op, Op]:
    return item.pair.left, item.pair.right

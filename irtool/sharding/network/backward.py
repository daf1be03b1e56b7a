"""Operators whose gradient MindSpore can't make, or not of the slices that they work on.

The parallel pass takes such a network; the passes behind it refuse it.

Source: networks compiled with MindSpore 2.7.0.
"""

from __future__ import annotations

from irtool.ir.graph import Source
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged, real_source
from irtool.sharding.network.gradients import Differentiated
from irtool.sharding.network.loss import gradients_asked
from irtool.sharding.network.positions import operands_as_long


def check_backward(analysis: Analysis, gradients: Differentiated) -> None:
    """Refuse operators through which a gradient comes back that can't be made.

    Args:
        analysis: with every operator judged; takes the refusals.
        gradients: the nodes that a gradient comes back through.
    """
    results = _results(analysis) if analysis.differentiates else set[Source]()
    for node, judged in analysis.judged.items():
        # a gradient is handed to results of any type
        if node not in gradients.nodes and node not in results:
            continue
        call = judged.call.call
        entry = operator_of(call.op)
        shapes = {tensor.shape for tensor in call.tensors}
        if entry.is_("no_gradient"):
            analysis.refuse("gradient", f"MindSpore can't make the gradient of {call.op}", "", node)
        elif judged.judgement.no_gradient:
            analysis.refuse("gradient", judged.judgement.no_gradient, "", node)
        elif entry.is_("alike_gradient") and len(shapes) > 1:
            message = f"the gradient of {call.op} is made for operands of one shape"
            analysis.refuse("gradient", message, "", node)
        elif judged.judgement.kind == "batch-parallel":
            _check_slices(analysis, judged)
        elif entry.is_("looks_up") and node in results:
            _check_rows(analysis, judged)


def _check_slices(analysis: Analysis, judged: Judged) -> None:
    """An operator without a rule, of which only operand 0 is split, and so is its gradient."""
    entry = operator_of(judged.call.call.op)
    first, split = judged.call.call.tensors[0], judged.judgement.strategy[0][:1]
    results = judged.call.call.results
    longer = any((result.shape or ())[:1] != (first.shape or ())[:1] for result in results)
    follows = entry.is_("whole_gradient") or (longer and entry.is_("length_gradient"))
    aligned = entry.is_("aligned_gradient") and operands_as_long(judged)
    if not (follows or aligned) or split in ((), (1,)):
        return
    message = (
        f"MindSpore has no rule for it: operand 0 is split into {split[0]} and the others are not, "
        "which its gradient"
    )
    if not follows and (first.shape or ())[:1] == split:
        # one row is left on each device, which some operators broadcast
        analysis.doubt(f"{message} may refuse", judged.node)
    else:
        analysis.refuse("gradient", f"{message} refuses", "", judged.node)


def _results(analysis: Analysis) -> set[Source]:
    """What gives the results that a gradient is handed back to."""
    network = analysis.network
    results = (network.returned(graph) for _, graph in gradients_asked(network))
    return {real_source(analysis, result)[0] for result in results if result is not None}


def _check_rows(analysis: Analysis, judged: Judged) -> None:
    """Rows that are looked up are the result: a gradient of rows alone would be a constant."""
    call = judged.call.call
    sparse = call.attributes.get("primitive_target") == "CPU" or call.op == "SparseGatherV2"
    devices = analysis.context.stage_size
    if sparse and any(1 < len(ranks) < devices for ranks in judged.judgement.mirrors):
        message = (
            "its gradient lists rows, and is a constant where nothing comes behind: the passes "
            "behind the parallel one may not take it"
        )
        analysis.doubt(message, judged.node)

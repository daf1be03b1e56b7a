"""What a gradient begins with: MindSpore splits it as the result that it is handed back to.

It looks for the one operator that gives the result. Of several results it takes the gradient only
where one of them at least is held back by ``StopGradient`` (as ``has_aux`` does), and then it
splits nothing.

Source: networks compiled with MindSpore 2.7.0.
"""

from __future__ import annotations

from irtool.ir.graph import Graph, Node, Source
from irtool.ir.types import SequenceType
from irtool.operators.layout import DYNAMIC
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged, real_source
from irtool.sharding.network.loss import gradients_asked
from irtool.sharding.network.sharded_nodes import primitive

OF_A_TUPLE = "step_parallel_utils.cc:FindLossCNode"
SHAPE = "step_parallel.cc:SplitSens"


def check_sens(analysis: Analysis) -> None:
    """Refuse gradients of what MindSpore can't hand a gradient to.

    Pipelines are left alone: nobody measured them.

    Args:
        analysis: with every operator judged; takes the refusals.
    """
    if analysis.context.stages > 1:
        return
    for call, graph in gradients_asked(analysis.network):
        result = analysis.network.returned(graph)
        if result is None:
            continue
        abstract = call.input_types[0] if call.input_types else None
        if abstract is not None and isinstance(abstract.type, SequenceType):
            _check_several(analysis, call, graph, result)
        else:
            _check_noted(analysis, result)


def _check_several(analysis: Analysis, call: Node, graph: Graph, result: Source) -> None:
    source, _ = real_source(analysis, result, through_items=False)
    made = isinstance(source, Node) and primitive(source) == "MakeTuple"
    items = analysis.network.inputs[source] if made and isinstance(source, Node) else ()
    kept = [item for item in items if not _is_held_back(analysis, item)]
    given = analysis.network.first(call)
    if len(kept) == len(items) or isinstance(given, Node):
        message = (
            f"the gradient is taken of several results of {graph.name}, which MindSpore can't find "
            "the operator of: return one, and the others through has_aux or StopGradient"
        )
        analysis.refuse("sens", message, OF_A_TUPLE, source if isinstance(source, Node) else call)
        return
    for item in kept:
        _check_whole(analysis, item)


def _is_held_back(analysis: Analysis, item: Source) -> bool:
    while isinstance(item, Node) and primitive(item) in ("Depend", "Load"):
        following = analysis.network.first(item)
        if following is None:
            return False
        item = following
    return isinstance(item, Node) and primitive(item) == "StopGradient"


def _check_whole(analysis: Analysis, item: Source) -> None:
    """A result beside those that are held back gets a gradient that nobody splits."""
    source, index = real_source(analysis, item)
    judged = analysis.judged.get(source) if isinstance(source, Node) else None
    if judged is None or judged.judgement.verdict != "legal":
        return
    slices, wholes = judged.judgement.output_slices, judged.call.call.results
    index = max(index, 0)
    if index >= min(len(slices), len(wholes)) or DYNAMIC in slices[index]:
        return
    if slices[index] != wholes[index].shape:
        message = (
            f"of several results this one gets a gradient of its whole shape {wholes[index].shape},"
            f" though each device holds {slices[index]}"
        )
        analysis.refuse("sens", message, "", judged.node)


def _check_noted(analysis: Analysis, result: Source) -> None:
    """The gradient handed in is sliced as MindSpore notes the result: it must be so."""
    source, item = real_source(analysis, result)
    judged = analysis.judged.get(source) if isinstance(source, Node) else None
    if judged is None or judged.judgement.verdict != "legal":
        return
    if judged.judgement.kind == "rule":
        _check_held(analysis, judged, max(item, 0))
    call = judged.call.call
    given = judged.wanted.in_layout
    if given is None or not operator_of(call.op).is_("noted_as_input"):
        return
    if any(isinstance(entry, tuple) for layout in given for entry in layout.tensor_map):
        return  # along several axes nothing is compared
    if call.results[0].shape != call.tensors[0].shape:
        message = (
            f"under layouts MindSpore notes the shape {call.tensors[0].shape} of the input for the "
            f"result, and takes no gradient of shape {call.results[0].shape} for it: give a "
            "strategy, or let another operator come last"
        )
        analysis.refuse("sens", message, SHAPE, judged.node)


def _check_held(analysis: Analysis, judged: Judged, item: int) -> None:
    layouts, slices = judged.judgement.output_layouts, judged.judgement.output_slices
    if item >= min(len(layouts), len(slices)) or DYNAMIC in slices[item]:
        return
    noted = layouts[item].slice_shape
    if noted != slices[item]:
        message = (
            f"each device holds {slices[item]} of this result, but MindSpore notes {noted}, and "
            "slices the gradient so that is handed in"
        )
        analysis.refuse("sens", message, "", judged.node)

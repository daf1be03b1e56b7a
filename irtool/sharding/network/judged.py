"""Judge every operator of a network, in MindSpore's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.ir.graph import Node
from irtool.operators.judgement import Context, Judgement, Reason
from irtool.operators.table import operator_of
from irtool.sharding.judge import judge, judge_configured
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.graphs import where
from irtool.sharding.network.layouts import layout_problem
from irtool.sharding.network.positions import placed
from irtool.sharding.network.sharded_nodes import has_strategy, is_nested, primitive
from irtool.sharding.network.strategies import (
    StrategyFormatError,
    Wanted,
    lies_flat,
    padded,
    wanted,
)

COLLECTIVES = frozenset({
    "AllReduce", "AllGather", "AlltoAll", "ReduceScatter", "Broadcast", "NeighborExchange",
    "NeighborExchangeV2", "SyncBatchNorm", "CollectiveScatter", "CollectiveGather",
    "BatchISendIRecv", "AlltoAllV",
})  # fmt: skip
"""Operators that a network may not hold of its own where MindSpore inserts them."""

SLICES_BATCH = "strided_slice_flag"
"""Attribute of slices that cut micro-batches out of the input."""

NO_COLLECTIVES = "step_parallel_utils.cc:ExceptionIfHasCommunicationOp"
FORMAT = "step_parallel_utils.cc:ExtractStrategy"
MASK = "dropout_do_mask_info.cc:GetDropoutGenMaskReplaceOp"
NEVER_IN_PARTS = "interleaved_parallel.cc:EraseResVirtualConverterEnd"
PARTS = "tensor_layout.cc:InitFromExtendVector"


def judge_operators(analysis: Analysis, instead: Mapping[Node, Wanted] | None = None) -> None:
    """Judge all operators but Reshape, whose layouts come from its neighbours.

    Args:
        analysis: the network; gets the judgements.
        instead: what to judge in the place of what the dump asks for, by node.
    """
    proposed = instead or {}
    network = analysis.network
    for node in where(analysis.order, lambda node: node in network.forward):
        if primitive(node) in COLLECTIVES:
            message = f"the network holds {primitive(node)}, where MindSpore inserts collectives"
            analysis.refuse("communication", message, NO_COLLECTIVES, node)
    for node in where(analysis.order, lambda node: has_strategy(network, node)):
        if primitive(node) == "Reshape":
            continue
        judged = _judged(analysis, node, proposed.get(node))
        analysis.judged[node] = judged
        _report(analysis, judged)
    _check_parts(analysis)


def _check_parts(analysis: Analysis) -> None:
    """Refuse operators that can't compute in parts, and networks cut into different numbers.

    MindSpore 2.7 takes interleaved layouts beside others that are not.
    """
    first = 0
    for node, judged in analysis.judged.items():
        cut = any(layout.interleaves for layout in judged.wanted.in_layout or ())
        if cut and operator_of(primitive(node)).is_("never_in_parts"):
            message = f"{primitive(node)} can't be computed in interleaved parts"
            analysis.refuse("interleaved-parts", message, NEVER_IN_PARTS, node)
            return
        for layout in judged.wanted.in_layout or ():
            if not layout.interleaved:
                continue
            parts = layout.device_matrix[-1]
            first = first or parts
            if parts != first:
                message = f"layouts interleave {parts} parts here, and {first} in other operators"
                analysis.refuse("interleaved-parts", message, PARTS, node)
                return


def _judged(analysis: Analysis, node: Node, proposed: Wanted | None) -> Judged:
    call = call_of(analysis.network, node)
    try:
        asked = proposed or wanted(node, overridden=analysis.context.overrides)
    except StrategyFormatError as error:
        reason = Reason("format", str(error), FORMAT)
        return Judged(node, call, Wanted(), Judgement("illegal", (), (reason,)))
    if call.missing:
        reason = Reason("unknown", call.missing, "")
        return Judged(node, call, asked, Judgement("unknown", asked.strategy or (), (reason,)))
    if primitive(node) in ("_VirtualDataset", "GetNext"):
        return _dataset(analysis, node, call, asked)
    if node.attribute(SLICES_BATCH) is not None:
        # MindSpore's own slices of micro-batches take everything whole, whatever is asked.
        unsplit = tuple((1,) * len(tensor.shape or ()) for tensor in call.call.tensors)
        asked = Wanted(unsplit)
    nested = is_nested(node)
    if nested and proposed is None:
        reason = _nesting_problem(node, call, asked)
        if reason is not None:
            return Judged(node, call, asked, Judgement("illegal", (), (reason,)))
    pads = operator_of(call.call.op).is_("pads")
    if nested and pads and asked.strategy is not None:
        asked = replace(asked, strategy=padded(asked.strategy, call.call))
    reason = None
    if not asked.by_attribute:
        reason = layout_problem(call.call, asked, analysis.context, nested=nested)
    if reason is not None:
        return Judged(node, call, asked, Judgement("illegal", (), (reason,)))
    judgement = judgement_of(analysis, call, asked)
    if judgement.verdict == "legal" and not _has_drawn_mask(analysis, node):
        message = "its mask is not that of an operator that draws one, which is replaced with it"
        reason = Reason("mask", message, MASK)
        return Judged(node, call, asked, Judgement("illegal", judgement.strategy, (reason,)))
    return placed(analysis, Judged(node, call, asked, judgement))


def _has_drawn_mask(analysis: Analysis, node: Node) -> bool:
    """Whether an operator that needs a mask drawn for it has one, or the dump does not tell."""
    if not operator_of(primitive(node)).is_("masked"):
        return True
    inputs = analysis.network.inputs[node]
    source = inputs[1] if len(inputs) > 1 else None
    if not isinstance(source, Node):
        return True
    drawn = operator_of(primitive(source))
    return drawn.is_("random") and drawn.is_("unsharded")


def _nesting_problem(node: Node, call: NodeCall, asked: Wanted) -> Reason | None:
    """Why a strategy does not follow the nesting of the operands, or MindSpore makes none."""
    if not any(operand.items for operand in call.call.inputs):
        return None
    if asked.is_nothing and operator_of(call.call.op).is_("tuples"):
        message = "an operator with tuples among its operands gets no strategy of MindSpore's own"
        return Reason("nested-strategy", message, "")
    if asked.strategy is not None and lies_flat(node, call.call):
        message = "the strategy of a tuple operand must be a tuple with a row for each tensor in it"
        return Reason("nested-strategy", message, "")
    return None


def judgement_of(analysis: Analysis, call: NodeCall, asked: Wanted) -> Judgement:
    """Judge one call under what is asked of it; calls that repeat from layer to layer only once."""
    # The class too: equal numbers and flags are not the same constant.
    try:
        shown = tuple((item, type(item.value)) for item in call.call.inputs)
        attributes = call.node.primitive_attributes
        key = (call.call.op, shown, call.call.outputs, attributes, asked)
        judgement = analysis.judgements.get(key)
    except TypeError:
        return _judgement(call, asked, analysis.operators)
    if judgement is None:
        judgement = analysis.judgements[key] = _judgement(call, asked, analysis.operators)
    return judgement


def _judgement(call: NodeCall, asked: Wanted, context: Context) -> Judgement:
    if asked.by_attribute:
        return judge_configured(call.call, asked.in_layout or (), context)
    if asked.in_layout is not None or asked.out_layout is not None:
        return judge(
            call.call,
            None,
            context,
            in_layout=asked.in_layout or (),
            out_layout=asked.out_layout,
        )
    return judge(call.call, asked.strategy, context, out_strategy=asked.out_strategy)


def _dataset(analysis: Analysis, node: Node, call: NodeCall, asked: Wanted) -> Judged:
    """The dataset: its strategy is the context's, whatever stands in the dump.

    Only where the context's is lost, or a search overrode it, what stands behind the statement
    counts.
    """
    context = analysis.context
    if isinstance(context.dataset, str):
        if asked.is_nothing:
            lost = Reason(
                "unknown", "the dataset strategy was given as layouts, which are not known", ""
            )
            return Judged(node, call, asked, Judgement("unknown", (), (lost,)))
        return Judged(node, call, asked, judgement_of(analysis, call, asked))
    if context.overrides and node.strategy is not None and not asked.is_nothing:
        return Judged(node, call, asked, judgement_of(analysis, call, asked))
    rows = context.dataset
    layouts = tuple(row for row in rows or () if not isinstance(row, tuple))
    if layouts:
        given = Wanted(in_layout=layouts)
        if primitive(node) == "_VirtualDataset":
            problem = layout_problem(call.call, given, context, nested=False)
            if problem is not None:
                return Judged(node, call, given, Judgement("illegal", (), (problem,)))
        return Judged(node, call, given, judgement_of(analysis, call, given))
    return Judged(node, call, Wanted(), judge(call.call, None, analysis.operators))


def _report(analysis: Analysis, judged: Judged) -> None:
    judgement, node = judged.judgement, judged.node
    for reason in judgement.reasons:
        if judgement.verdict == "illegal":
            analysis.refuse(reason.code, reason.message, reason.check, node)
        else:
            analysis.doubt(reason.message, node)
    if judgement.verdict == "legal" and judgement.unsure:
        analysis.note(judgement.unsure, node)

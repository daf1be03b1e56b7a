"""``check --why``: why a collective, slice, concat or split stands in a dump.

Instance names say which pass inserted a node, and its neighbours between which operators it
stands; gradients and recompute copies are explained by what they are gradient or copy of. The
begin dump adds the lines before the compilation, and the answer of ``check`` layouts and what to
change. What stays unknown says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.ir.collectives import Collective, Origin, collective, is_collective
from irtool.ir.comments import Location
from irtool.ir.dump import Dump
from irtool.ir.framework import is_framework
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.whole import WholeNode
from irtool.operators.table import operator_of
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why.cause import Cause, CauseKind
from irtool.sharding.why.layouts import with_layouts
from irtool.sharding.why.remedy import with_remedy
from irtool.sharding.why.walk import (
    Surroundings,
    before,
    consumers,
    is_part,
    is_redistribution,
    operator_at,
    owner,
    producer,
    surroundings,
)

__all__ = ["Cause", "CauseKind", "explain", "explain_all", "is_cut"]


def explain(
    node: Node, dump: Dump, report: CheckResult | None = None, begin: Dump | None = None
) -> Cause:
    """Why ``node`` stands in ``dump`` (``validate`` or ``step_parallel_end``).

    Args:
        node: a collective, StridedSlice, Concat or Split; any other node is answered, too.
        dump: the dump that holds the node.
        report: the answer of ``check`` for the begin dump: layouts and remedies come from it.
        begin: the begin dump itself; without it (and a report) names and attributes must do.
    """
    return explain_in(surroundings(dump, begin), node, report)


def explain_all(
    dump: Dump, report: CheckResult | None = None, begin: Dump | None = None
) -> tuple[Cause, ...]:
    """Why every communication node is there, and every slice, concat and split of the compiler.

    Args:
        dump: taken after the parallel pass.
        report: what ``check`` says of the begin dump; None: goes by names and attributes alone.
        begin: the begin dump itself.
    """
    around = surroundings(dump, begin)
    causes: list[Cause] = []
    for node in dump.nodes(where=lambda node: is_collective(node) or is_cut(node)):
        cause = explain_in(around, node, report)
        if is_collective(node) or cause.kind not in ("user code", "optimizer"):
            causes.append(cause)
    return tuple(causes)


def is_cut(node: Node) -> bool:
    """Whether a node slices, splits or joins.

    Args:
        node: of any kind.
    """
    return operator_of(node.op).is_("parts")


def explain_in(around: Surroundings, node: Node, report: CheckResult | None = None) -> Cause:
    """Why a node is there, where its surroundings are known already.

    Args:
        around: the dump that holds the node, looked around in once.
        node: to be explained.
        report: of ``check`` for the begin dump; without it no layouts are told.

    Returns:
        The cause; what could not be known is in its ``missing``.
    """
    cause = _traced(around, node)
    cause = _completed(around, cause)
    if report is not None:
        cause = with_layouts(around, cause, report)
    cause = with_remedy(around, cause, report)
    if around.before is None:
        cause = replace(cause, missing=(*cause.missing, _NO_BEGIN))
    elif report is None:
        cause = replace(cause, missing=(*cause.missing, _NO_REPORT))
    return cause


_NO_BEGIN = "layouts and lines before the compilation: no begin dump was given"
_NO_REPORT = "layouts: the begin dump was not checked"


# -- gradients and copies lead back to what they repeat ----------------------------------------


def _traced(around: Surroundings, node: Node) -> Cause:
    if node.is_recomputed:
        original = around.original.get(node)
        cause = _traced(around, original) if original is not None else _own(around, node)
        message = f"recomputed in the backward pass: {cause.message}"
        return replace(
            cause, node=node, message=message, is_recomputed=True, forward=original or cause.forward
        )
    if not node.is_backward:
        return _own(around, node)
    forward = around.forward.get(node)
    sent = collective(node)
    if sent is not None and sent.origin == "mirror":
        forward = None  # it may be tied to the gather of the same parameter
    if isinstance(forward, Node) and forward is not node and not forward.is_backward:
        cause = _own(around, forward)
        message = f"gradient of {_named(forward)}: {cause.message}"
        return replace(cause, node=node, message=message, is_gradient=True, forward=forward)
    return replace(_own(around, node), is_gradient=True)


def _completed(around: Surroundings, cause: Cause) -> Cause:
    """Add what the node itself says: what is sent, how often, for which micro-batch."""
    node = cause.node
    sent = collective(node)
    chain = cause.kind in ("redistribution", "dataset", "constant")
    operator = cause.consumer if chain else cause.operator
    cause = replace(
        cause,
        micro=node.micro,
        times=around.times(node),
        location=cause.location or _user_line(node, cause.forward, operator, cause.operator),
        begin=around.begin.get(operator) if operator is not None else None,
        producer_begin=(
            around.begin.get(cause.operator) if cause.operator is not None and chain else None
        ),
    )
    if cause.begin is None and cause.forward is not None:
        cause = replace(cause, begin=around.begin.get(cause.forward))
    if cause.begin is None:
        cause = replace(cause, begin=around.begin.get(node))
    if cause.times is None:
        missing = "how often it runs: it stands in a loop or branch"
        cause = replace(cause, missing=(*cause.missing, missing))
    if sent is None:
        return cause
    return replace(
        cause,
        op=sent.op,
        ranks=sent.ranks,
        group=sent.group,
        bytes=0 if sent.is_virtual else sent.bytes,
        parameter=cause.parameter or sent.parameter,
    )


def _user_line(*nodes: Node | None) -> Location | None:
    """The first node's line that is not in MindSpore's own package."""
    for node in nodes:
        location = node.location if node is not None else None
        if location is not None and not is_framework(location.path):
            return location
    return None


# -- by a node's own marks -----------------------------------------------------------------------


def _own(around: Surroundings, node: Node) -> Cause:
    """What its own name, attributes and neighbours say."""
    item = around.instance(node)
    sent = collective(node)
    if node.attribute("mirror_user_id") is not None and "Mirror" in (node.scope or ""):
        return _mirror(around, node, sent, item)  # also the gathers of sparse gradients
    if is_redistribution(node):
        return _redistribution(around, node, item)
    if sent is not None:
        return _BY_ORIGIN[sent.origin](around, node, sent, item)
    return _local(around, node, item)


def _redistribution(around: Surroundings, node: Node, item: WholeNode | None) -> Cause:
    if item is None:
        return Cause(node, "unknown", "a redistribution", missing=("where it stands",))
    source = producer(item)
    users = [operator_at(around, user).node for user in consumers(item, around.phases)]
    # what only looks at a tensor takes it as it is laid out for others
    consumer = min(users, key=lambda user: operator_of(user.op).is_("debug"), default=None)
    producing = operator_at(around, source).node if isinstance(source, WholeNode) else None
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    to = "the result" if consumer is None or consumer.is_return else _named(consumer)
    if isinstance(source, GraphParameter):
        weight = source.type is not None and source.type.ref_key is not None
        name = source.name or f"an argument of @{source.graph}"
        if not weight and source.declaration is not None:
            message = f"cuts the input {name} of the dataset to what {to}{more} reads"
            return Cause(node, "dataset", message, consumer=consumer, parameter=name)
        message = f"redistribution from {name} to {to}{more}"
        return Cause(node, "redistribution", message, consumer=consumer, parameter=name)
    if producing is None:
        message = f"cuts a constant to what {to}{more} takes"
        return Cause(node, "constant", message, consumer=consumer)
    if producing.op == "Receive":
        message = f"redistribution from the stage before ({_named(producing)}) to {to}{more}"
    else:
        message = f"redistribution from {_named(producing)} to {to}{more}"
    return Cause(node, "redistribution", message, operator=producing, consumer=consumer)


def _forward_reduction(
    around: Surroundings, node: Node, sent: Collective, item: WholeNode | None
) -> Cause:
    source = producer(item) if item is not None else None
    operator = operator_at(around, source).node if isinstance(source, WholeNode) else None
    if node.is_backward and around.forward.get(node) is None:
        message = f"gradient of a forward reduction in {node.scope}, which is gone"
        return Cause(node, "forward reduction", message, missing=("the forward node: it is gone",))
    if operator is None:
        return Cause(
            node,
            "forward reduction",
            "forward reduction of an operator that was folded into a constant",
            missing=("its operator: it has become a constant or parameter",),
        )
    what = f"adds up the partial results of {_named(operator)}"
    if sent.reduction not in ("sum", None):
        what = f"takes the {sent.reduction} over the parts of {_named(operator)}"
    if sent.op == "ReduceScatter":
        what += " and leaves each device its slice of them (out_strategy)"
    return Cause(node, "forward reduction", f"forward reduction: {what}", operator=operator)


def _operator(
    around: Surroundings, node: Node, sent: Collective | None, item: WholeNode | None
) -> Cause:
    operator = owner(around, item) if item is not None else None
    if operator is None:
        message = f"part of the sharded form of an operator in {node.scope}"
        return Cause(node, "operator", message, missing=("which operator: it is gone",))
    what = "its sharded form needs data of other devices" if sent else "its sharded form"
    message = f"part of {_named(operator.node)}: {what}"
    return Cause(node, "operator", message, operator=operator.node)


def _mirror(
    around: Surroundings, node: Node, sent: Collective | None, item: WholeNode | None
) -> Cause:
    tied = around.forward.get(node)
    name = sent.parameter if sent is not None else None
    if name is None and isinstance(tied, GraphParameter):
        name = tied.name
    missing = () if name else ("which parameter: no attribute says it",)
    over = _ranks_text(sent)
    message = f"mirror: sums the gradient of {name or 'a parameter'} over its copies{over}"
    return Cause(node, "mirror", message, parameter=name, missing=missing)


def _optimizer_parallel(
    around: Surroundings, node: Node, sent: Collective, item: WholeNode | None
) -> Cause:
    name = sent.parameter
    if sent.op == "ReduceScatter":
        what = "sums the gradient of {} and leaves each device its part"
    else:
        what = "gathers {}, of which each device holds a part"
    missing = () if name else ("which parameter: no attribute says it",)
    message = "optimizer parallel: " + what.format(name or "a parameter")
    return Cause(node, "optimizer parallel", message, parameter=name, missing=missing)


def _pipeline(around: Surroundings, node: Node, sent: Collective, item: WholeNode | None) -> Cause:
    near: WholeNode | GraphParameter | None = None
    if item is not None and sent.op == "Send":
        near = producer(item)
    elif item is not None:
        users = consumers(item, around.phases)
        near = users[0] if users else None
    operator = near.node if isinstance(near, WholeNode) and not near.node.is_return else None
    peer = "another rank" if sent.peer is None else f"rank {sent.peer}"
    what = "gradient" if node.is_backward else "value"
    if node.attribute("pipeline_param") is not None:
        what = "shared parameter"
    if sent.op == "Send":
        of = f" of {_named(operator)}" if operator is not None else ""
        message = f"pipeline: sends the {what}{of} to the stage of {peer}"
    else:
        to = f" for {_named(operator)}" if operator is not None else ""
        message = f"pipeline: receives a {what}{to} from the stage of {peer}"
    return Cause(node, "pipeline", message, operator=operator)


def _simple(kind: CauseKind, message: str) -> _Reader:
    def read(around: Surroundings, node: Node, sent: Collective, item: WholeNode | None) -> Cause:
        return Cause(node, kind, message, parameter=sent.parameter)

    return read


def _user_code(around: Surroundings, node: Node, sent: Collective, item: WholeNode | None) -> Cause:
    if "optimizer-" in (node.scope or "") or around.phases.get(node) == "optimizer":
        return Cause(node, "optimizer", f"the optimizer's own {node.op} in {node.scope}")
    return Cause(node, "user code", f"{node.op} of the network itself", operator=node)


def _unknown(around: Surroundings, node: Node, sent: Collective, item: WholeNode | None) -> Cause:
    if "optimizer-" in (node.scope or "") or around.phases.get(node) == "optimizer":
        return Cause(node, "optimizer", f"the optimizer's own {node.op} in {node.scope}")
    if node.attribute("forward_comm_node_unique_id") is not None and item is not None:
        return _operator(around, node, sent, item)
    if item is not None and _is_broadcast_result(around, item):
        # Those of several results bear no name.
        return Cause(node, "result broadcast", _BROADCAST)
    why = "it has no instance name, no line of the user's, and no node that it belongs to"
    return Cause(node, "unknown", f"{node.op} of unknown origin", missing=(f"its cause: {why}",))


_BROADCAST = "hands the last stage's result to all stages"


def _is_broadcast_result(around: Surroundings, item: WholeNode) -> bool:
    """Whether a node adds up nothing but a result of the whole network."""
    entry = around.dump.entry
    users = consumers(item, around.phases)
    ends = all(user.node.is_return and user.node.graph is entry for user in users)
    return item.op == "AllReduce" and bool(users) and ends


_Reader = Callable[[Surroundings, Node, Collective, "WholeNode | None"], Cause]

_BY_ORIGIN: dict[Origin, _Reader] = {
    "forward reduction": _forward_reduction,
    "operator": _operator,
    "redistribution": lambda around, node, sent, item: _redistribution(around, node, item),
    "mirror": _mirror,
    "optimizer parallel": _optimizer_parallel,
    "pipeline": _pipeline,
    "ring attention": _simple("ring attention", "ring attention: passes keys and values around"),
    "adasum": _simple("optimizer", "AdaSum: combines gradients between servers"),
    "global norm": _simple("optimizer", "global norm of the gradients: sums over their slices"),
    "result broadcast": _simple("result broadcast", _BROADCAST),
    "user code": _user_code,
    "unknown": _unknown,
}


# -- nodes that don't communicate ----------------------------------------------------------------

_ACCUMULATION = ("grad_accu_num", "grad_accu_forward_begin")
_MICRO = ("slice_index", "pipeline_begin", "strided_slice_flag")


def _local(around: Surroundings, node: Node, item: WholeNode | None) -> Cause:
    if node.op == "StridedSlice":
        batch = "" if node.micro is None else f" {node.micro}"
        if any(node.attribute(key) is not None for key in _ACCUMULATION):
            message = f"gradient accumulation: cuts micro-batch{batch} out of the batch"
            return Cause(node, "gradient accumulation", message)
        if any(node.attribute(key) is not None for key in _MICRO):
            return Cause(node, "micro-batch", f"pipeline: cuts micro-batch{batch} out of the batch")
    if node.op in ("_VirtualDiv", "RealDiv") and "Grad__VirtualDiv" in (node.scope or node.op):
        return Cause(node, "loss division", "divides the loss's gradient by its repetitions")
    if node.op == "_VirtualDiv":
        return Cause(node, "loss division", "divides the loss's gradient by its repetitions")
    if node.op == "_GetTensorSlice":
        return Cause(node, "constant", "cuts a constant to this device's slice")
    name = node.instance_name or ""
    if is_part(node) or name.startswith("forward_op"):
        return _operator(around, node, None, item)
    if item is not None and is_cut(node) and _in_ring(item):
        return Cause(node, "ring attention", "ring attention: joins or cuts keys and values")
    if "optimizer-" in (node.scope or "") or around.phases.get(node) == "optimizer":
        return Cause(node, "optimizer", f"the optimizer's own {node.op} in {node.scope}")
    if node.is_backward:
        return Cause(node, "user code", f"part of the gradient in {node.scope}", operator=None)
    return Cause(node, "user code", f"{node.op} of the network itself", operator=node)


def _in_ring(item: WholeNode) -> bool:
    """Whether an unnamed cut feeds or follows what ring attention sends around."""
    if item.node.instance_name or item.node.location is not None:
        return False
    near = [*before(item), *item.users]
    for user in item.users:
        near += user.users
    return any(_is_ring(place.node) for place in near) or _is_ring_step(item)


def _is_ring(node: Node) -> bool:
    keys = ("RING_ATTENTION_INDEX", "RING_ATTENTION_POS", "FLASH_SP_COMM_TYPE", "flash_tag")
    return any(node.attribute(key) is not None for key in keys)


def _is_ring_step(item: WholeNode) -> bool:
    marks = ("RING_ATTENTION_UPDATE_SUM", "RING_ATTENTION_UPDATE_MAX", "RING_ATTENTION_UPDATE_MUL")
    todo, seen = list(item.producers), 0
    while todo and seen < 12:
        place, seen = todo.pop(0), seen + 1
        if any(place.node.attribute(key) is not None for key in marks):
            return True
        todo += place.producers
    return False


def _named(node: Node) -> str:
    """``MatMul %7``, or its graph's result."""
    return "the result" if node.is_return else f"{node.op} {node.id}"


def _ranks_text(sent: Collective | None) -> str:
    if sent is None or sent.ranks is None:
        return ""
    if len(sent.ranks) > 8:
        return f" (ranks {sent.ranks[0]} to {sent.ranks[-1]}, {len(sent.ranks)} of them)"
    return f" (ranks {', '.join(map(str, sent.ranks))})"

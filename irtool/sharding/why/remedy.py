"""What to change so that a collective, slice, concat or split goes away.

Every strategy that is proposed is legal: it was judged as ``check`` judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from irtool.ir.types import BITS
from irtool.operators.call import Strategy
from irtool.operators.judgement import Judgement
from irtool.operators.layout import TensorLayout, axes_of, coordinates
from irtool.sharding.judge import judge
from irtool.sharding.network.report import (
    CheckResult,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.layouts import redistribution_of
from irtool.sharding.why.walk import Surroundings

_DATA = ("_VirtualDataset", "GetNext")


def with_remedy(around: Surroundings, cause: Cause, report: CheckResult | None) -> Cause:
    """Add the change of strategy that would remove the node asked for.

    Args:
        around: the dump that holds the node.
        cause: complete but for its remedy.
        report: of ``check`` for the begin dump; without it no strategies are proposed.

    Returns:
        With the remedy "" where there is none.
    """
    text = ""
    if cause.kind in ("forward reduction", "operator"):
        text = _of_reduction(cause, report)
    elif cause.kind in ("redistribution", "dataset"):
        text = _of_redistribution(around, cause, report)
    elif cause.kind == "mirror":
        text = _of_mirror(cause, report)
    elif cause.kind in _FIXED:
        text = _FIXED[cause.kind].format(name=cause.parameter or "the parameter")
    if cause.is_recomputed and cause.op:
        text = f"recompute(mp_comm_recompute=False) keeps its result instead{_then(text)}"
    return replace(cause, remedy=text)


def _then(text: str) -> str:
    return f"; else {text}" if text else ""


_FIXED = {
    "optimizer parallel": (
        "needed as long as {name} is sharded over its replicas; with parallel_optimizer=False on "
        "the parameter, or a larger parallel_optimizer_threshold, it stays whole, and a mirror "
        "AllReduce sums its gradient instead"
    ),
    "pipeline": "goes away where both sides are given the same pipeline_stage",
    "micro-batch": "needed for as many micro-batches as PipelineCell is given",
    "gradient accumulation": "needed for as many steps as gradients are accumulated over",
    "loss division": "loss_repeated_mean=False leaves it out (and changes the gradients)",
}


# -- partial sums --------------------------------------------------------------------------------


def _of_reduction(cause: Cause, report: CheckResult | None) -> str:
    operator = report.operator(cause.begin) if report is not None and cause.begin else None
    node = cause.operator
    if operator is None or operator.strategy is None or report is None:
        if node is None:
            return ""
        strategy = node.written_strategy()
        now = f" (its strategy is {shown(strategy)})" if strategy is not None else ""
        return f"goes away if {node.op} {node.id} is not cut along what it sums up{now}"
    reduced = _axes_between(operator, cause.ranks or (), report)
    if not reduced:
        return ""
    for strategy in _moved(operator, reduced):
        judged = _judged(operator, strategy, report)
        if judged.verdict == "legal" and not judged.collectives:
            now, then = shown(operator.strategy), shown(strategy)
            return (
                f"give {operator.op} {operator.node.id} the strategy {then} instead of {now}: "
                "then nothing has to be summed up"
            )
    return (
        f"{operator.op} {operator.node.id} has no legal strategy without it that uses as many "
        f"devices (now {shown(operator.strategy)})"
    )


def _axes_between(
    operator: OperatorReport, ranks: tuple[int, ...], report: CheckResult
) -> set[int]:
    """Axes of the device matrix along which a group extends."""
    devices = report.context.stage_ranks
    matrix = operator.device_matrix
    if not ranks or any(rank not in devices for rank in ranks) or not matrix:
        return set()
    places = [coordinates(matrix, rank - devices[0]) for rank in ranks]
    if len(places[0]) != len(matrix):
        return set()
    return {axis for axis in range(len(matrix)) if len({place[axis] for place in places}) > 1}


def _moved(operator: OperatorReport, reduced: set[int]) -> Iterator[Strategy]:
    """The strategy with the reduced axes whole, and their devices given to another axis."""
    matrix = operator.device_matrix
    freed = prod(matrix[axis] for axis in reduced)
    sizes = {axis: 1 if axis in reduced else size for axis, size in enumerate(matrix)}
    others = [
        axis
        for tensor_map in operator.input_maps
        for entry in tensor_map
        for axis in axes_of(matrix, entry)
        if axis not in reduced
    ]
    for axis in dict.fromkeys(others):
        yield _strategy(operator, {**sizes, axis: sizes[axis] * freed})


def _strategy(operator: OperatorReport, sizes: dict[int, int]) -> Strategy:
    """The operator's strategy if the axes of its device matrix had other sizes."""
    matrix = operator.device_matrix
    return tuple(
        tuple(prod(sizes.get(axis, 1) for axis in axes_of(matrix, entry)) for entry in tensor_map)
        for tensor_map in operator.input_maps
    )


def _judged(operator: OperatorReport, strategy: Strategy, report: CheckResult) -> Judgement:
    context = report.context.for_operators(dynamic=operator.call.call.is_dynamic)
    return judge(operator.call.call, strategy, context)


# -- layouts that differ ---------------------------------------------------------------------------


def _of_redistribution(around: Surroundings, cause: Cause, report: CheckResult | None) -> str:
    if report is None:
        return _as_printed(cause)
    edge = redistribution_of(around, cause, report).redistribution
    if edge is None or edge.source is None or edge.target is None:
        return ""
    if edge.replaces:
        return (
            f"Reshape {edge.consumer.id} hands on what it can: cut only the dimension that stays "
            "the slowest in both shapes, alike before and behind it"
        )
    texts: list[str] = []
    consumer = report.operator(edge.consumer)
    if edge.source.is_whole and edge.producer.op in _DATA:
        consumer = None  # to compute all of it on every device is no remedy
    if consumer is not None and consumer.strategy is not None:
        texts += _as_wanted(consumer, edge, report)
    producer = report.operator(edge.producer)
    if edge.producer.op in _DATA:
        texts.append(
            f"read this input cut {edge.target.splits} (dataset_strategy; now {edge.source.splits})"
        )
    elif producer is not None and producer.strategy is not None:
        texts += _as_left(producer, edge.source, edge.target, report)
    return "; or ".join(texts[:2])


def _as_printed(cause: Cause) -> str:
    """Without the begin dump's layouts: the strategies on both sides."""
    sides = [
        f"{node.op} {node.id} has {shown(node.written_strategy())}"
        for node in (cause.operator, cause.consumer)
        if node is not None and node.has_strategy
    ]
    if not sides:
        return ""
    return f"goes away if both sides cut the tensor alike ({', '.join(sides)})"


def _as_wanted(
    consumer: OperatorReport, edge: RedistributionReport, report: CheckResult
) -> Iterator[str]:
    """Strategies for the consumer under which its input lies as the producer leaves it."""
    tensor = consumer.call.slots.tensor(edge.input, edge.item)
    if tensor is None or edge.source is None or tensor >= len(consumer.input_maps):
        return
    layout = edge.source
    for strategy in _with_splits(consumer, consumer.judgement.input_layouts[tensor], layout):
        judged = _judged(consumer, strategy, report)
        if judged.verdict == "legal" and judged.input_layouts[tensor].same_as(layout):
            yield _given(consumer, strategy, "its producer's layout", judged)
            return


def _as_left(
    producer: OperatorReport, source: TensorLayout, target: TensorLayout, report: CheckResult
) -> Iterator[str]:
    """Strategies for the producer under which it leaves what the consumer wants."""
    layouts = producer.judgement.output_layouts
    output = next((index for index, item in enumerate(layouts) if item.same_as(source)), None)
    if output is None:
        return
    for strategy in _with_splits(producer, layouts[output], target):
        judged = _judged(producer, strategy, report)
        fits = judged.verdict == "legal" and output < len(judged.output_layouts)
        if fits and judged.output_layouts[output].same_as(target):
            yield _given(producer, strategy, "its consumer's layout", judged)
            return


def _given(operator: OperatorReport, strategy: Strategy, whose: str, judged: Judgement) -> str:
    now = shown(operator.strategy)
    text = f"give {operator.op} {operator.node.id} {whose}: {shown(strategy)} instead of {now}"
    before = {item.op for item in operator.judgement.collectives}
    new = sorted({item.op for item in judged.collectives} - before)
    return f"{text} (which brings {' and '.join(new)})" if new else text


def _with_splits(
    operator: OperatorReport, layout: TensorLayout, wanted: TensorLayout
) -> Iterator[Strategy]:
    """Strategies that cut one tensor as wanted, other axes as before or not at all."""
    matrix = operator.device_matrix
    if layout.device_matrix != matrix or len(layout.tensor_map) != len(wanted.splits):
        return
    sizes: dict[int, int] = {}
    for entry, split in zip(layout.tensor_map, wanted.splits, strict=True):
        axes = axes_of(matrix, entry)
        if not axes and split > 1:
            return
        for position, axis in enumerate(axes):
            sizes[axis] = split if position == 0 else 1
    kept = {axis: size for axis, size in enumerate(matrix) if axis not in sizes}
    if prod(sizes.values()) * prod(kept.values()) <= prod(matrix):
        yield _strategy(operator, {**kept, **sizes})
    yield _strategy(operator, sizes)


# -- parameters ------------------------------------------------------------------------------------


def _of_mirror(cause: Cause, report: CheckResult | None) -> str:
    name = cause.parameter or "the parameter"
    over = len(cause.ranks) if cause.ranks is not None else None
    text = f"needed as long as {name} is whole on ranks that see different data"
    parameter = next((p for p in report.parameters if p.name == name), None) if report else None
    if report is None or parameter is None or over is None:
        return f"{text}; optimizer parallel would make it a ReduceScatter and an AllGather"
    why_not = _not_sharded(parameter, over, report)
    if why_not:
        return f"{text}; optimizer parallel would not change it: {why_not}"
    if report.context.parallel_optimizer:
        return text  # of shares that optimizer_weight_shard_size keeps small, say
    return (
        f"{text}; enable_parallel_optimizer=True turns it into a ReduceScatter of the gradient and "
        f"an AllGather of the weight, and keeps 1/{over} of its optimizer state on each device"
    )


def _not_sharded(parameter: ParameterReport, over: int, report: CheckResult) -> str:
    """Why optimizer parallel leaves a parameter alone; "" if it doesn't."""
    dtype = parameter.parameter.type.dtype if parameter.parameter.type else None
    size = prod(parameter.shape) * BITS.get(dtype or "", 32) // 8
    if size < report.context.threshold * 1024:
        return f"its {size} bytes are below parallel_optimizer_threshold"
    if report.context.excludes(parameter.name):
        return "it is kept whole by parallel_optimizer=False"
    if not parameter.base or parameter.base[0] % over:
        return f"its first dimension does not divide into {over}"
    return ""


def shown(strategy: object) -> str:
    """A strategy as Python writes it.

    Args:
        strategy: nested tuples of numbers.
    """
    return str(strategy)

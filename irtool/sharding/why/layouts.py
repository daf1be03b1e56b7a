"""What the answer of ``check`` adds to a cause: the layouts on both sides of a redistribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.types import Abstract
from irtool.ir.whole import WholeNode
from irtool.operators.layout import Shape, TensorLayout
from irtool.operators.steps import RESHAPE
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.redistribution import RedistributionStep
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.walk import Surroundings, hands_on

_CHAINS = ("redistribution", "dataset")
_MOST_STEPS = 2_000


def with_layouts(around: Surroundings, cause: Cause, report: CheckResult) -> Cause:
    """Add the layouts that a redistribution leads from and to, and a weight's user.

    Args:
        around: the dump that holds the node.
        cause: as names and neighbours tell it.
        report: of ``check`` for the begin dump.

    Returns:
        The cause given where it is no redistribution; where no predicted one fits, ``missing`` says
        so.
    """
    if cause.begin is None and cause.kind in ("mirror", "optimizer parallel"):
        user = next((p.user for p in report.parameters if p.name == cause.parameter), None)
        return replace(cause, begin=user)
    if cause.kind not in _CHAINS:
        return cause
    attribution = redistribution_of(around, cause, report)
    chain = attribution.redistribution
    if chain is None:
        return replace(cause, missing=(*cause.missing, f"layouts: {attribution.why_none}"))
    if chain.source is None or chain.target is None:
        missing = f"layouts: {chain.why or 'they are not known'}"
        return replace(cause, missing=(*cause.missing, missing))
    place = _place(chain, cause)
    others = chain.source.splits == chain.target.splits
    wanted = "the same cut over other devices" if others else _shown(chain.target)
    message = f"{cause.message}{place}; {_shown(chain.source)} is wanted as {wanted}"
    return replace(
        cause,
        message=message,
        source=chain.source,
        target=chain.target,
        producer_begin=cause.producer_begin or chain.producer,
    )


def _shown(layout: TensorLayout) -> str:
    """``(64, 512) cut (2, 4)``."""
    return f"{layout.tensor_shape} cut {layout.splits}"


def _place(chain: RedistributionReport, cause: Cause) -> str:
    """Where a redistribution stands about a Reshape that the later dump does not hold."""
    if chain.replaces:
        return f" in the place of Reshape {chain.consumer.id}"
    followed = cause.operator is None or cause.operator.op != RESHAPE
    if chain.producer.op == RESHAPE and chain.producer is not cause.producer_begin and followed:
        return f" behind Reshape {chain.producer.id}"
    return ""


# -- which of the predicted redistributions --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribution:
    """The predicted redistribution that a node of a later dump belongs to, or why none is told."""

    redistribution: RedistributionReport | None
    why_none: str = ""


def redistribution_of(around: Surroundings, cause: Cause, report: CheckResult) -> Attribution:
    """The predicted redistribution that a node of a later dump belongs to.

    Of those on the way from the producer to the consumer, the one that holds an operator of the
    same name, group and shapes. Reshapes, which later passes merge, belong to the only one there.

    Args:
        around: the later dump.
        cause: of the node, with its producer and its consumer.
        report: of ``check`` for the begin dump.

    Returns:
        Without a redistribution where none or several fit; ``why_none`` says which.
    """
    node = cause.forward or cause.node
    candidates = [item for item in _candidates(around, cause, report) if item.operators != ()]
    if not candidates:
        return Attribution(None, "no predicted redistribution is here")
    holding = _distinct(
        [
            item
            for item in candidates
            if any(_is_step(node, step, cause.ranks) for step in item.operators or ())
        ]
    )
    if len(holding) == 1:
        return Attribution(holding[0])
    group = f" over {','.join(map(str, cause.ranks))}" if cause.ranks else ""
    if holding:
        edges = ", ".join(_edge(item) for item in holding)
        why = f"{len(holding)} predicted redistributions hold an equal {node.op}{group}: {edges}"
        return Attribution(None, why)
    # It stands in what is not predicted, or is of no use to tell redistributions apart.
    unknown = [item for item in candidates if item.operators is None]
    others = _distinct(unknown or ([] if cause.op else candidates))
    if len(others) == 1:
        return Attribution(others[0])
    edges = ", ".join(_edge(item) for item in _distinct(candidates))
    why = f"no redistribution predicted here holds this {node.op}{group}: {edges}"
    return Attribution(None, why)


def _distinct(items: Sequence[RedistributionReport]) -> list[RedistributionReport]:
    """One of those of which the same is told: the operands of one operator, cut alike."""
    distinct: dict[object, RedistributionReport] = {}
    for item in items:
        layouts = tuple(
            (layout.tensor_shape, layout.splits) if layout is not None else None
            for layout in (item.source, item.target)
        )
        key = (item.producer, item.consumer, item.replaces, layouts, item.operators)
        distinct.setdefault(key, item)
    return list(distinct.values())


def _edge(item: RedistributionReport) -> str:
    consumer = f"{item.consumer.op} {item.consumer.id}"
    if item.replaces:
        return f"in the place of {consumer}"
    return f"{item.producer.op} {item.producer.id} → {consumer}"


def _is_step(node: Node, step: RedistributionStep, ranks: tuple[int, ...] | None) -> bool:
    """Whether a node may be the operator that a step predicts; what is unknown fits."""
    if node.op != step.op or (step.ranks and ranks is not None and step.ranks != ranks):
        return False
    after = _first_shape(node.output_type)
    if after is None:  # right after the parallel pass: what is inserted has no types yet
        return True
    before = _first_shape(node.input_types[0] if node.input_types else None)
    fits_before = before is None or _fits(before, step.input_shape)
    return fits_before and _fits(after, step.output_shape)


def _first_shape(type: Abstract | None) -> Shape | None:
    """The shape of a tensor, or of the first part of several."""
    return next((shape for _, shape in type.each_tensor()), None) if type is not None else None


def _fits(shape: Shape, predicted: Shape) -> bool:
    """Whether two shapes may be the same; -1 and -2 stand for what is unknown."""
    if -2 in (*shape, *predicted):
        return True
    if len(shape) != len(predicted):
        return False
    pairs = zip(shape, predicted, strict=True)
    return all(one == other or min(one, other) < 0 for one, other in pairs)


def _candidates(
    around: Surroundings, cause: Cause, report: CheckResult
) -> Iterator[RedistributionReport]:
    """Edges into the consumer from the producer, then Reshapes between, then looser ones.

    A Reshape between has a chain in its own place, one before it, and one behind it.
    """
    consumer, producer = cause.begin, cause.producer_begin
    wants_dataset = cause.kind == "dataset"
    into = [item for item in report.redistributions if _ends_at(item, cause)]
    for item in into:
        is_data = producer is None and item.producer.op in ("_VirtualDataset", "GetNext")
        if is_data or item.producer is producer:
            yield item
    reshapes = {item.consumer: item for item in report.redistributions if item.replaces}
    if consumer is not None:
        between = _reshapes_before(around, consumer, producer, reshapes)
        yield from (item for item in into if item.producer in between)
        for node in between:
            yield reshapes[node]
            yield from (
                item
                for item in report.redistributions
                if item.consumer is node and not item.replaces
            )
    if not wants_dataset or producer is not None:
        yield from (item for item in into if producer is None)


def _ends_at(item: RedistributionReport, cause: Cause) -> bool:
    if item.replaces:
        return False
    if cause.begin is None:
        return cause.consumer is not None and cause.consumer.is_return and item.consumer.is_return
    return item.consumer is cause.begin


def _reshapes_before(
    around: Surroundings,
    consumer: Node,
    producer: Node | None,
    reshapes: dict[Node, RedistributionReport],
) -> list[Node]:
    """Reshapes on the way from the producer to the consumer in the begin dump, nearest first."""
    if around.before is None:
        return []
    places = around.before.instances(consumer)
    todo: list[tuple[WholeNode, tuple[Node, ...]]] = [(place, ()) for place in places[:1]]
    passed: list[Node] = []
    for _ in range(_MOST_STEPS):
        if not todo:
            break
        place, path = todo.pop(0)
        for source in place.producers:
            if source.node in reshapes:
                todo.append((source, (*path, source.node)))
            elif source.node is producer or (producer is None and _is_input(source)):
                passed += path
            elif hands_on(source.node):
                todo.append((source, path))
    return list(dict.fromkeys(passed))


def _is_input(place: WholeNode) -> bool:
    return place.op in ("_VirtualDataset", "GetNext")

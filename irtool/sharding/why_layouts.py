"""What the answer of ``check`` adds to a cause: the layouts on both sides of a redistribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.ir.graph import Node
from irtool.ir.whole import WholeNode
from irtool.operators.layout import TensorLayout
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.why_cause import Cause
from irtool.sharding.why_walk import Surroundings, hands_on

_CHAINS = ("redistribution", "dataset")
_MOST_STEPS = 2_000


def with_layouts(around: Surroundings, cause: Cause, report: CheckResult) -> Cause:
    """Add the layouts that a redistribution leads from and to, and a weight's user."""
    if cause.begin is None and cause.kind in ("mirror", "optimizer parallel"):
        user = next((p.user for p in report.parameters if p.name == cause.parameter), None)
        return replace(cause, begin=user)
    if cause.kind not in _CHAINS:
        return cause
    chain = redistribution_of(around, cause, report)
    if chain is None:
        missing = "layouts: no predicted redistribution is here"
        return replace(cause, missing=(*cause.missing, missing))
    if chain.source is None or chain.target is None:
        missing = f"layouts: {chain.why or 'they are not known'}"
        return replace(cause, missing=(*cause.missing, missing))
    place = f" in the place of Reshape {chain.consumer.id}" if chain.replaces else ""
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


def redistribution_of(
    around: Surroundings, cause: Cause, report: CheckResult
) -> RedistributionReport | None:
    """The predicted redistribution that a node of a later dump belongs to."""
    node = cause.forward or cause.node
    candidates = [item for item in _candidates(around, cause, report) if item.operators != ()]
    for item in candidates:
        if any(_is_step(node, step.op, step.ranks, cause.ranks) for step in item.operators or ()):
            return item
    return candidates[0] if candidates else None


def _is_step(node: Node, op: str, ranks: tuple[int, ...], actual: tuple[int, ...] | None) -> bool:
    return node.op == op and (not ranks or actual is None or ranks == actual)


def _candidates(
    around: Surroundings, cause: Cause, report: CheckResult
) -> Iterator[RedistributionReport]:
    """Edges into the consumer from the producer, then Reshapes between, then looser ones."""
    consumer, producer = cause.begin, cause.producer_begin
    wants_dataset = cause.kind == "dataset"
    into = [item for item in report.redistributions if _ends_at(item, cause)]
    for item in into:
        is_data = producer is None and item.producer.op in ("_VirtualDataset", "GetNext")
        if is_data or item.producer is producer:
            yield item
    reshapes = {item.consumer: item for item in report.redistributions if item.replaces}
    if consumer is not None:
        for node in _reshapes_before(around, consumer, producer, reshapes):
            yield reshapes[node]
            # An edge into the Reshape itself has a chain of its own.
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

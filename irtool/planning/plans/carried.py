"""A layout carried on: operators behind a redistribution that take what is there, or before it.

One operator alone that takes its producer's layout often only moves a gather to the next edge; with
its neighbours it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.judgement import Judgement
from irtool.operators.layout import TensorLayout
from irtool.planning.search.candidates import candidates_of
from irtool.sharding.network.report import CheckResult, OperatorReport, RedistributionReport

_LONGEST = 4
"""Operators that change together."""
_CHOICES = 2
"""Strategies of the first of them that are followed."""

Chain = Mapping[Node, Strategy]
"""What operators are given, in order, the nearest to the redistribution first."""


def carried(edge: RedistributionReport, report: CheckResult) -> Iterator[Chain]:
    """Strategies under which operators behind a redistribution take what is before it.

    Likewise those under which operators before it leave what is wanted; short chains first.

    Args:
        edge: the redistribution.
        report: what ``check`` says of the network.
    """
    if edge.source is None or edge.target is None:
        return
    chains = [*_behind(edge, report), *_before(edge, report)]
    yield from sorted(chains, key=len)


def _behind(edge: RedistributionReport, report: CheckResult) -> Iterator[Chain]:
    item = report.operator(edge.consumer)
    tensor = None if item is None else item.call.slots.tensor(edge.input, edge.item)
    if item is None or tensor is None or edge.source is None or not _is_free(item):
        return
    for strategy, judged in _taking(item, tensor, edge.source, report)[:_CHOICES]:
        chain = {item.node: strategy}
        yield dict(chain)
        place, outputs = item, judged.output_layouts
        while len(chain) < _LONGEST and outputs:
            following = _next(place, outputs[0], report)
            if following is None or following[0].node in chain:
                break
            place, tensor = following
            found = _taking(place, tensor, outputs[0], report)
            if not found:
                break
            chain[place.node], outputs = found[0][0], found[0][1].output_layouts
            yield dict(chain)


def _next(
    item: OperatorReport, layout: TensorLayout, report: CheckResult
) -> tuple[OperatorReport, int] | None:
    """The first user of an operator that takes something else, and which of its tensors that is."""
    for user in item.node.users:
        other = report.operator(user)
        if other is None or not _is_free(other):
            continue
        for position, source in enumerate(user.inputs):
            tensor = other.call.slots.tensor(position) if source is item.node else None
            layouts = other.judgement.input_layouts
            if tensor is not None and tensor < len(layouts) and not layouts[tensor].same_as(layout):
                return other, tensor
    return None


def _before(edge: RedistributionReport, report: CheckResult) -> Iterator[Chain]:
    item = report.operator(edge.producer)
    if item is None or edge.source is None or edge.target is None or not _is_free(item):
        return
    outputs = item.judgement.output_layouts
    output = next((n for n, layout in enumerate(outputs) if layout.same_as(edge.source)), None)
    if output is None:
        return
    for strategy, judged in _leaving(item, output, edge.target, report)[:_CHOICES]:
        chain = {item.node: strategy}
        yield dict(chain)
        place = item
        while len(chain) < _LONGEST:
            sources = (node for node in place.node.inputs if isinstance(node, Node))
            above = next((each for node in sources if (each := report.operator(node))), None)
            wanted = judged.input_layouts[0] if judged.input_layouts else None
            if above is None or wanted is None or above.node in chain or not _is_free(above):
                break
            found = _leaving(above, 0, wanted, report)
            if not found:
                break
            place, judged = above, found[0][1]
            chain[place.node] = found[0][0]
            yield dict(chain)


def _is_free(item: OperatorReport) -> bool:
    """Whether a strategy can be given to it: Reshape makes its own of what is around it."""
    return item.strategy is not None and item.op != "Reshape"


_Choice = tuple[Strategy, Judgement]


def _taking(
    item: OperatorReport, tensor: int, layout: TensorLayout, report: CheckResult
) -> list[_Choice]:
    """Strategies under which one tensor lies so, those first that communicate least."""

    def fits(judged: Judgement) -> bool:
        layouts = judged.input_layouts
        return tensor < len(layouts) and layouts[tensor].same_as(layout)

    return [(s, j) for s, j in _others(item, report) if fits(j)]


def _leaving(
    item: OperatorReport, output: int, layout: TensorLayout, report: CheckResult
) -> list[_Choice]:
    """Strategies under which one result lies so, those first that communicate least."""

    def fits(judged: Judgement) -> bool:
        layouts = judged.output_layouts
        return output < len(layouts) and layouts[output].same_as(layout)

    return [(s, j) for s, j in _others(item, report) if fits(j)]


def _others(item: OperatorReport, report: CheckResult) -> list[_Choice]:
    context = report.context.for_operators(dynamic=item.call.call.is_dynamic)
    found = [
        (each.strategy, each.judgement)
        for each in candidates_of(item.call.call, context).items
        if each.strategy is not None and each.judgement.verdict == "legal"
    ]

    def order(choice: _Choice) -> tuple[int, int]:
        strategy, judged = choice
        apart = sum(a != b for a, b in zip(strategy, item.strategy or (), strict=False))
        return len(judged.collectives), apart

    return sorted(found, key=order)

"""What would be legal instead of an illegal strategy: the nearest ones, found by trying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from math import log2, prod
from typing import cast

from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.layout import Shape
from irtool.sharding.judge import judge
from irtool.sharding.network.report import CheckFinding, OperatorReport, Report

_MOST_TRIED = 400
_MOST_FOUND = 3
_MOST_ASKED = 50


def legal_instead(report: Report) -> dict[CheckFinding, tuple[Strategy, ...]]:
    """For illegal strategies the nearest legal ones, found by trying."""
    found: dict[CheckFinding, tuple[Strategy, ...]] = {}
    known: dict[object, tuple[Strategy, ...]] = {}
    for finding in report.findings:
        operator = report.operator(finding.node) if finding.node is not None else None
        if operator is None or operator.verdict != "illegal" or not _by_strategy(operator):
            continue
        shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
        key = (operator.op, operator.strategy, operator.out_strategy, shapes, finding.code)
        if key not in known and len(known) < _MOST_ASKED:
            known[key] = tuple(_nearest(report, operator))
        found[finding] = known.get(key, ())
    return found


def _by_strategy(operator: OperatorReport) -> bool:
    """Whether it was given a strategy of one row a tensor (and not layouts, or nested rows)."""
    node = operator.node
    given = node.in_strategy
    if not operator.strategy or node.in_layout is not None:
        return False
    if given is None:
        return True  # MindSpore's own strategy is refused, the user may give one
    if not isinstance(given, tuple):
        return False
    rows = cast("tuple[tuple[object, ...], ...]", given)
    return not any(isinstance(item, tuple) for row in rows for item in row)


def _nearest(report: Report, operator: OperatorReport) -> Iterator[Strategy]:
    call = operator.call.call
    context = report.context.for_operators(dynamic=call.is_dynamic)
    count = 0
    for shapes in _shapes(call):
        for strategy in _variants(report, operator, shapes):
            if judge(call, strategy, context).verdict == "legal":
                yield strategy
                count += 1
                if count == _MOST_FOUND:
                    return
        if count:
            return


def _shapes(call: OperatorCall) -> Iterator[list[Shape]]:
    """What a strategy may be about: the inputs, or (as of Tile and OneHot) output and inputs."""
    inputs = [tensor.divisible_shape for tensor in call.tensors]
    yield inputs
    outputs = [tensor.divisible_shape for tensor in call.results[:1]]
    if outputs and outputs != inputs[:1]:
        yield [*outputs, *inputs[1:]]


def _variants(
    report: Report, operator: OperatorReport, shapes: Sequence[Shape]
) -> Iterable[Strategy]:
    """Strategies near an illegal one: first those that differ least, at most so many."""
    given = operator.strategy or ()
    if len(given) != len(shapes):
        given = tuple(given[i] if i < len(given) else () for i in range(len(shapes)))
    rows = [
        tuple(row[i] if i < len(row) else 1 for i in range(len(shape)))
        for row, shape in zip(given, shapes, strict=True)
    ]
    flat = [value for row in rows for value in row]
    allowed = [_allowed(size, report.context.stage_size) for shape in shapes for size in shape]
    fixed = [
        value if value in values else max((v for v in values if v <= value), default=1)
        for value, values in zip(flat, allowed, strict=True)
    ]
    ends = [sum(map(len, rows[: i + 1])) for i in range(len(rows))]
    made: dict[Strategy, float] = {}
    for changed in _changed(fixed, allowed):
        strategy = tuple(
            tuple(changed[end - len(row) : end]) for row, end in zip(rows, ends, strict=True)
        )
        made.setdefault(strategy, _distance(flat, changed))
    if operator.out_strategy is None:
        made.pop(operator.strategy or (), None)
    return sorted(made, key=lambda each: made[each])[:_MOST_TRIED]


def _allowed(size: int, devices: int) -> list[int]:
    """Into how many slices a dimension may be cut."""
    return [n for n in range(1, devices + 1) if devices % n == 0 and (size < 0 or size % n == 0)]


def _changed(base: Sequence[int], allowed: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The values themselves, and with one or two of them changed."""
    yield list(base)
    for places in (*combinations(range(len(base)), 1), *combinations(range(len(base)), 2)):
        for values in product(*(allowed[place] for place in places)):
            made = list(base)
            for place, value in zip(places, values, strict=True):
                made[place] = value
            yield made


def _distance(before: Sequence[int], after: Sequence[int]) -> float:
    """How far apart: values changed, how much, and how many devices less are used."""
    changes = [
        abs(log2(max(new, 1) / max(old, 1)))
        for old, new in zip(before, after, strict=True)
        if old != new
    ]
    less = log2(max(prod(before), 1) / max(prod(after), 1))
    return len(changes) + sum(changes) + max(less, 0) / 4

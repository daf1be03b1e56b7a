"""What would be legal instead of an illegal strategy: the nearest ones, found by trying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, count, islice, product
from math import log2, prod
from typing import TypeAlias, TypeVar, cast

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Judgement
from irtool.operators.layout import WHOLE, Shape, TensorLayout, UserLayout, split_of
from irtool.operators.table import rule_of
from irtool.sharding.check import check
from irtool.sharding.judge import judge
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.strategies import StrategyFormatError, Wanted, wanted

Layouts: TypeAlias = tuple[UserLayout, ...]
"""One layout a tensor input."""
_Option = TypeVar("_Option")

SHARED = "parameter-users"
"""The code of findings about parameters that several operators want in different layouts."""
_MOST_TRIED = 400
_MOST_FOUND = 3
_MOST_TWINS = 2
_MOST_ASKED = 50
_MOST_CHECKS = 16


@dataclass(frozen=True, slots=True)
class Proposals:
    """What would be legal in the place of what is refused.

    Attributes:
        strategies: for findings about strategies the nearest legal ones.
        layouts: for findings about layouts, likewise: one layout a tensor input.
        together: whether the network is accepted with the first of each; None where nothing was
            proposed. The first ones are such that it is, wherever a bounded search found any.
    """

    strategies: Mapping[Finding, tuple[Strategy, ...]]
    layouts: Mapping[Finding, tuple[Layouts, ...]]
    together: bool | None = None


NO_PROPOSALS = Proposals({}, {})


def proposals(dump: Dump, report: CheckResult) -> Proposals:
    """The nearest legal strategies and layouts, those first that the whole network accepts.

    Args:
        dump: the dump that was checked.
        report: what ``check`` says of it.
    """
    strategies, layouts = legal_instead(report), layouts_instead(report)
    options: dict[Node, list[Wanted]] = {}
    for finding, rows in strategies.items():
        node = node_of(finding)
        if node is not None and rows:
            options[node] = [Wanted(row) for row in rows]
    for finding, given in layouts.items():
        node = node_of(finding)
        if node is not None and given:
            options[node] = [Wanted(in_layout=one) for one in given]
    if not options:
        return Proposals(strategies, layouts)
    chosen = _accepted_together(dump, report, options)
    if chosen is None:
        return Proposals(strategies, layouts, False)
    first = {node: options[node][place] for node, place in chosen.items()}

    def taken(finding: Finding) -> Wanted:
        node = node_of(finding)
        return Wanted() if node is None else first.get(node, Wanted())

    return Proposals(
        {finding: _first(rows, taken(finding).strategy) for finding, rows in strategies.items()},
        {finding: _first(given, taken(finding).in_layout) for finding, given in layouts.items()},
        True,
    )


def _first(options: tuple[_Option, ...], chosen: _Option | None) -> tuple[_Option, ...]:
    """The options with one of them in front."""
    if chosen is None:
        return options
    return (chosen, *(option for option in options if option != chosen))


def _accepted_together(
    dump: Dump, report: CheckResult, options: Mapping[Node, Sequence[Wanted]]
) -> dict[Node, int] | None:
    """Which option of each node to take so that the network is accepted; None: none was found.

    Starts with the nearest ones and moves on where the check still refuses: the operator itself,
    or the first of those whose next option has not been tried.
    """
    chosen = dict.fromkeys(options, 0)
    for _ in range(_MOST_CHECKS):
        instead = {node: options[node][place] for node, place in chosen.items()}
        tried = check(dump, report.context, instead)
        errors = [finding for finding in tried.findings if finding.severity == "error"]
        if not errors:
            return chosen
        movable = [node for node in chosen if chosen[node] + 1 < len(options[node])]
        if not movable:
            return None
        refused = {node_of(finding) for finding in errors}
        chosen[next((node for node in movable if node in refused), movable[0])] += 1
    return None


def legal_instead(report: CheckResult) -> dict[Finding, tuple[Strategy, ...]]:
    """For illegal strategies the nearest legal ones of each operator alone, found by trying."""
    instead: dict[Finding, tuple[Strategy, ...]] = {}
    known: dict[object, tuple[Strategy, ...]] = {}
    for finding, operator in _illegal(report):
        if _layouts_of(operator) and not _takes_layouts(operator):
            instead[finding] = tuple(_instead_of_layouts(report, operator))
        if not _by_strategy(operator):
            continue
        shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
        key = (operator.op, operator.strategy, operator.out_strategy, shapes, finding.code)
        if key not in known and len(known) < _MOST_ASKED:
            known[key] = tuple(
                dict.fromkeys((*_nearest(report, operator), *_of_twins(report, operator)))
            )
        equals = _of_equals(report, operator)
        instead[finding] = tuple(dict.fromkeys((*equals, *known.get(key, ()))))
    for finding in report.findings:
        operator = _subject(report, finding)
        if finding.code == SHARED and operator is not None and _by_strategy(operator):
            tried = (*_of_twins(report, operator), *_for_shared(report, operator))
            instead[finding] = tuple(dict.fromkeys(tried))
    return instead


def _subject(report: CheckResult, finding: Finding) -> OperatorReport | None:
    """The operator that a finding is about, of another stage, too; None if it is about none."""
    node = node_of(finding)
    if node is None:
        return None
    return report.operator(node) or report.elsewhere.get(node)


def _for_shared(report: CheckResult, operator: OperatorReport) -> Iterator[Strategy]:
    """The nearest legal strategies under which a weight lies as another user of it wants it."""
    call = operator.call.call
    context = report.context.for_operators(dynamic=call.is_dynamic)
    held = _layouts_of_weights(report, operator)
    tried = _variants(report, operator, [tensor.divisible_shape for tensor in call.tensors])
    made = ((strategy, judge(call, strategy, context)) for strategy in tried)
    yield from islice(
        (one for one, judgement in made if _settles(operator, judgement, held)), _MOST_FOUND
    )


def _layouts_for_shared(report: CheckResult, operator: OperatorReport) -> Iterator[Layouts]:
    """The same for an operator that was given layouts."""
    call, given = operator.call.call, _layouts_of(operator)
    context = report.context.for_operators(dynamic=call.is_dynamic)
    held = _layouts_of_weights(report, operator)
    places = [(i, j) for i, layout in enumerate(given) for j in range(len(layout.tensor_map))]
    changes = (*combinations(places, 1), *combinations(places, 2))
    tried = islice((made for change in changes for made in _remapped(given, change)), _MOST_TRIED)
    made = ((layouts, judge(call, None, context, in_layout=layouts)) for layouts in tried)
    yield from islice(
        (one for one, judgement in made if _settles(operator, judgement, held)), _MOST_FOUND
    )


def _layouts_of_weights(report: CheckResult, operator: OperatorReport) -> set[TensorLayout]:
    """How other operators want operands that are as large as a weight of the network."""
    shapes = {weight.shape for weight in report.parameters}
    others = (*report.operators, *report.elsewhere.values())
    return {
        layout
        for other in others
        if other.node is not operator.node
        for layout in other.judgement.input_layouts
        if layout.tensor_shape in shapes
    }


def _settles(operator: OperatorReport, judgement: Judgement, held: Iterable[TensorLayout]) -> bool:
    """Whether an operator would take one of its operands in such a layout, and does not yet."""
    if judgement.verdict != "legal":
        return False
    pairs = list(zip(operator.judgement.input_layouts, judgement.input_layouts, strict=True))
    return any(
        new.tensor_shape == layout.tensor_shape and new.same_as(layout) and not old.same_as(layout)
        for layout in held
        for old, new in pairs
    )


def _of_equals(report: CheckResult, operator: OperatorReport) -> tuple[Strategy, ...]:
    """The legal strategy that most operators of the same line of Python have, in other layers."""
    lines = _lines(operator.node)
    if not lines:
        return ()
    shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
    counts = Counter(
        other.strategy
        for other in report.operators
        if other.op == operator.op
        and other.verdict == "legal"
        and _lines(other.node) == lines
        and _by_strategy(other)
        and tuple(tensor.shape for tensor in other.call.call.tensors) == shapes
    )
    return tuple(strategy for strategy, _ in counts.most_common(1) if strategy)


def _lines(node: Node) -> tuple[tuple[str, int], ...]:
    """The lines of Python that made a node, from the outermost call on."""
    return tuple((location.path, location.line) for location in node.comments.locations)


def _of_twins(report: CheckResult, operator: OperatorReport) -> tuple[Strategy, ...]:
    """The legal strategies of operators like this one, as steps of a recurrence: the commonest."""
    shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
    counts = Counter(
        other.strategy
        for other in report.operators
        if other.op == operator.op
        and other.verdict == "legal"
        and other.strategy != operator.strategy
        and _by_strategy(other)
        and tuple(tensor.shape for tensor in other.call.call.tensors) == shapes
    )
    return tuple(strategy for strategy, _ in counts.most_common(_MOST_TWINS) if strategy)


def _instead_of_layouts(report: CheckResult, operator: OperatorReport) -> Iterator[Strategy]:
    """For an operator that takes no layouts the strategies nearest to what they come to."""
    call = operator.call.call
    given = _fitted(_layouts_of(operator), call)
    if rule_of(call.op) is None:
        return  # no strategy is looked at of it
    rows = tuple(layout.strategy for layout in given)
    context = report.context.for_operators(dynamic=call.is_dynamic)
    if judge(call, rows, context).verdict == "legal":
        yield rows
    yield from islice(_nearest(report, replace(operator, strategy=rows)), _MOST_FOUND - 1)


def layouts_instead(report: CheckResult) -> dict[Finding, tuple[Layouts, ...]]:
    """For illegal layouts the nearest legal ones of each operator alone, found by trying."""
    instead: dict[Finding, tuple[Layouts, ...]] = {}
    for finding, operator in _illegal(report):
        given = _layouts_of(operator)
        if given and _takes_layouts(operator) and len(instead) < _MOST_ASKED:
            instead[finding] = tuple(_nearest_layouts(report, operator, given))
    for finding in report.findings:
        operator = _subject(report, finding)
        if finding.code == SHARED and operator is not None and _layouts_of(operator):
            instead[finding] = tuple(_layouts_for_shared(report, operator))
    return instead


def _takes_layouts(operator: OperatorReport) -> bool:
    """Whether an operator may be given layouts at all; one that shards itself may."""
    rule = rule_of(operator.call.call.op)
    return bool(operator.call.call.attributes.get("self_define_shard")) or (
        rule is not None and rule.layout
    )


def _illegal(report: CheckResult) -> Iterator[tuple[Finding, OperatorReport]]:
    for finding in report.findings:
        operator = _subject(report, finding)
        if operator is not None and operator.verdict == "illegal":
            yield finding, operator


def _layouts_of(operator: OperatorReport) -> Layouts:
    """The user's input layouts; none where they can't be read."""
    try:
        return wanted(operator.node).in_layout or ()
    except StrategyFormatError:
        return ()


def _nearest_layouts(
    report: CheckResult, operator: OperatorReport, given: Layouts
) -> Iterator[Layouts]:
    """Layouts over the same devices with one entry of a tensor map changed, or two.

    Those that can't be layouts of the tensors are made so first.
    """
    call = operator.call.call
    context = report.context.for_operators(dynamic=call.is_dynamic)
    wrong, given = given, _fitted(_over_devices(given, context.stage_size), call)
    places = [(i, j) for i, layout in enumerate(given) for j in range(len(layout.tensor_map))]
    yielded = 0
    changes = (*combinations(places, 1), *combinations(places, 2))
    tried = (made for change in changes for made in _remapped(given, change))
    for layouts in islice(chain(() if wrong == given else (given,), tried), _MOST_TRIED):
        if judge(call, None, context, in_layout=layouts).verdict == "legal":
            yield layouts
            yielded += 1
            if yielded == _MOST_FOUND:
                return


def _over_devices(given: Layouts, devices: int) -> Layouts:
    """Layouts over all devices: those over fewer get an axis more, of those over more one shrinks.

    An axis more comes first: tensor maps count from the last one.
    """
    made: list[UserLayout] = []
    for layout in given:
        matrix, names = layout.device_matrix, layout.alias_name
        there = prod(matrix[:-1] if layout.interleaved else matrix)
        if there and devices % there == 0 and there < devices:
            matrix = (devices // there, *matrix)
            free = next(name for name in map("r{}".format, count()) if name not in names)
            names = (free, *names) if names else ()
        elif there > devices and there % devices == 0:
            excess = there // devices
            axis = next((index for index, size in enumerate(matrix) if size % excess == 0), None)
            if axis is not None:
                matrix = (*matrix[:axis], matrix[axis] // excess, *matrix[axis + 1 :])
        made.append(replace(layout, device_matrix=matrix, alias_name=names))
    return tuple(made)


def _fitted(given: Layouts, call: OperatorCall) -> Layouts:
    """One layout a tensor, an entry a dimension: whole where none was given, or none divides."""
    made: list[UserLayout] = []
    for index, tensor in enumerate(call.tensors):
        sizes = tensor.divisible_shape
        model = given[min(index, len(given) - 1)]
        entries = given[index].tensor_map[: len(sizes)] if index < len(given) else ()
        entries += (WHOLE,) * (len(sizes) - len(entries))
        fitting = tuple(
            entry if size % split_of(model.device_matrix, entry) == 0 else WHOLE
            for entry, size in zip(entries, sizes, strict=True)
        )
        made.append(replace(model, tensor_map=fitting))
    return tuple(made)


def _remapped(given: Layouts, change: Sequence[tuple[int, int]]) -> Iterator[Layouts]:
    """The layouts with other axes, or none, at some places of their tensor maps."""
    axes = [range(WHOLE, len(given[i].device_matrix)) for i, _ in change]
    for values in product(*axes):
        made = list(given)
        for (i, j), value in zip(change, values, strict=True):
            entries = list(made[i].tensor_map)
            entries[j] = value
            made[i] = replace(made[i], tensor_map=tuple(entries))
        if tuple(made) != given and all(map(_is_map, made)):
            yield tuple(made)


def _is_map(layout: UserLayout) -> bool:
    """Whether no axis of the device matrix stands twice in a tensor map."""
    used = [
        axis
        for entry in layout.tensor_map
        for axis in (entry if isinstance(entry, tuple) else (entry,))
        if axis != WHOLE
    ]
    return len(used) == len(set(used))


def _by_strategy(operator: OperatorReport) -> bool:
    """Whether it was given a strategy of one row a tensor (and not layouts, or nested rows)."""
    node = operator.node
    given = node.written_strategy()
    if not operator.strategy or node.in_layout is not None:
        return False
    if given is None:
        return True  # MindSpore's own strategy is refused, the user may give one
    if not isinstance(given, tuple):
        return False
    rows = cast("tuple[tuple[object, ...], ...]", given)
    return not any(isinstance(item, tuple) for row in rows for item in row)


def _nearest(report: CheckResult, operator: OperatorReport) -> Iterator[Strategy]:
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
    report: CheckResult, operator: OperatorReport, shapes: Sequence[Shape]
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
    return sorted(made, key=lambda variant: made[variant])[:_MOST_TRIED]


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
    # One axis may stand in several operands (a norm's weights): it is taken out of all of them.
    cut = [place for place, value in enumerate(base) if value > 1]
    for number in range(3, len(cut) + 1):
        for places in combinations(cut, number):
            yield [1 if place in places else value for place, value in enumerate(base)]


def _distance(before: Sequence[int], after: Sequence[int]) -> float:
    """How far apart: values changed, how much, and how many devices less are used."""
    changes = [
        abs(log2(max(new, 1) / max(old, 1)))
        for old, new in zip(before, after, strict=True)
        if old != new
    ]
    less = log2(max(prod(before), 1) / max(prod(after), 1))
    return len(changes) + sum(changes) + max(less, 0) / 4

"""Strategies and layouts near one that is refused: a value for each axis of the operator.

An axis lies in several operands, and is split alike in all of them: so what is tried is a value for
each axis, as the operator's entry tells them. Where no entry does, single numbers are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import combinations, count, islice, product
from math import gcd, log2, prod
from typing import TypeAlias, TypeVar

from irtool.operators.axes import CallAxes, axes_of, dimensions_of
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Context
from irtool.operators.layout import WHOLE, MapEntry, Shape, UserLayout, entries_of, split_of

Layouts: TypeAlias = tuple[UserLayout, ...]
"""One layout a tensor input."""
_Value = TypeVar("_Value")

MOST_TRIED = 400
_MOST_COMBINED = 4_000
_LESS = 0.25
"""What it counts, beside the change itself, that fewer devices are used."""
_UNSPLIT = 0.5
"""What it counts that a dimension lies along no devices any more."""


# -- strategies ----------------------------------------------------------------------------------


def strategies_near(
    call: OperatorCall, given: Strategy, context: Context, fits: Callable[[Strategy], bool]
) -> Iterator[Strategy]:
    """Strategies that fit, the nearest first; that which was given is not among them.

    Args:
        call: the operator.
        given: its strategy, of whatever form.
        context: devices and target.
        fits: whether a strategy is legal, and what else is wanted of it.
    """
    is_any = False
    axes = axes_of(call, context)
    if axes is not None:
        for strategy in islice(_by_axes(axes, given, context.stage_size), MOST_TRIED):
            if strategy != given and fits(strategy):
                is_any = True
                yield strategy
    if is_any:
        return
    for shapes in _shapes(call):
        for strategy in _by_numbers(given, shapes, context.stage_size):
            if strategy != given and fits(strategy):
                is_any = True
                yield strategy
        if is_any:
            return


def _by_axes(axes: CallAxes, given: Strategy, devices: int) -> Iterator[Strategy]:
    """Strategies that split each axis alike wherever it lies, and use no more than all devices."""
    rows = _fitted_rows(given, axes.rows)
    options: list[list[tuple[float, int]]] = []
    for axis in axes.axes:
        before = [rows[tensor][place] for tensor, place in axis.entries]
        sizes = [size for tensor, place in axis.entries if (size := axes.rows[tensor][place]) > 0]
        whole = gcd(*sizes, axis.limit) if sizes else axis.limit
        values = _allowed(whole or -1, devices)
        options.append(sorted((sum(_cost(old, new) for old in before), new) for new in values))
    for values in islice(nearest_combinations(options), _MOST_COMBINED):
        if devices % prod(values) == 0:
            made = [[1] * len(row) for row in rows]
            for axis, value in zip(axes.axes, values, strict=True):
                for tensor, place in axis.entries:
                    made[tensor][place] = value
            yield tuple(map(tuple, made))


def _cost(old: int, new: int) -> float:
    if old == new:
        return 0
    steps = log2(max(new, 1) / max(old, 1))
    return 1 + abs(steps) + max(-steps, 0) * _LESS


def nearest_combinations(
    options: Sequence[Sequence[tuple[float, _Value]]],
) -> Iterator[tuple[_Value, ...]]:
    """One value of each list, those that cost least together first.

    Args:
        options: values with what each costs, the cheapest first.
    """
    if not all(options):
        return
    start: tuple[int, ...] = (0,) * len(options)
    # Of those that cost as much the one that changes the first ones comes first.
    heap: list[tuple[float, tuple[int, ...]]] = [
        (sum(values[0][0] for values in options), start[::-1])
    ]
    seen: set[tuple[int, ...]] = {start}
    while heap:
        cost, backwards = heappop(heap)
        places = backwards[::-1]
        yield tuple(values[place][1] for values, place in zip(options, places, strict=True))
        for index, place in enumerate(places):
            following = (*places[:index], place + 1, *places[index + 1 :])
            if place + 1 < len(options[index]) and following not in seen:
                seen.add(following)
                more = options[index][place + 1][0] - options[index][place][0]
                heappush(heap, (cost + more, following[::-1]))


def _fitted_rows(given: Strategy, shapes: Sequence[Shape]) -> list[tuple[int, ...]]:
    """A row a tensor and a number a dimension: 1 where none was given."""
    rows = given if len(given) == len(shapes) else (*given, *([()] * len(shapes)))[: len(shapes)]
    return [
        tuple(row[i] if i < len(row) else 1 for i in range(len(shape)))
        for row, shape in zip(rows, shapes, strict=True)
    ]


def _shapes(call: OperatorCall) -> Iterator[list[Shape]]:
    """What a strategy may be about: the inputs, or (as of Tile and OneHot) output and inputs."""
    inputs = [tensor.divisible_shape for tensor in call.tensors]
    yield inputs
    outputs = [tensor.divisible_shape for tensor in call.results[:1]]
    if outputs and outputs != inputs[:1]:
        yield [*outputs, *inputs[1:]]


def _by_numbers(given: Strategy, shapes: Sequence[Shape], devices: int) -> Iterable[Strategy]:
    """Strategies with one or two numbers changed, those that differ least first."""
    rows = _fitted_rows(given, shapes)
    flat = [value for row in rows for value in row]
    allowed = [_allowed(size, devices) for shape in shapes for size in shape]
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
        made.setdefault(strategy, distance(flat, changed))
    return sorted(made, key=lambda variant: made[variant])[:MOST_TRIED]


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


def distance(before: Sequence[int], after: Sequence[int]) -> float:
    """How far apart two strategies are: values changed, how much, and how many devices less.

    Args:
        before: the splits of the strategy that is refused, in line.
        after: those of the other one, as many.

    Returns:
        No unit: 1 for each number changed, 1 for each factor of two, and 0.25 for each factor of
        two by which fewer devices are used; 0 for equal ones.
    """
    changes = [
        abs(log2(max(new, 1) / max(old, 1)))
        for old, new in zip(before, after, strict=True)
        if old != new
    ]
    less = log2(max(prod(before), 1) / max(prod(after), 1))
    return len(changes) + sum(changes) + max(less, 0) * _LESS


# -- layouts -------------------------------------------------------------------------------------


def layouts_near(
    call: OperatorCall, given: Layouts, context: Context, fits: Callable[[Layouts], bool]
) -> Iterator[Layouts]:
    """Layouts over the same device matrix that fit, the nearest first.

    Those that can't be layouts of the tensors are made so first.

    Args:
        call: the operator.
        given: its layouts.
        context: devices and target.
        fits: whether layouts are legal, and what else is wanted of them.
    """
    fitted = fitted_layouts(over_devices(given, context.stage_size), call)
    seen = {given}
    for layouts in islice(_layouts_tried(call, fitted, context), MOST_TRIED):
        if layouts not in seen:
            seen.add(layouts)
            if fits(layouts):
                yield layouts


def _layouts_tried(call: OperatorCall, given: Layouts, context: Context) -> Iterator[Layouts]:
    yield given
    yield from _by_axes_of_layouts(call, given, context)
    places = [(i, j) for i, layout in enumerate(given) for j in range(len(layout.tensor_map))]
    for change in (*combinations(places, 1), *combinations(places, 2)):
        yield from _remapped(given, change)


def _by_axes_of_layouts(call: OperatorCall, given: Layouts, context: Context) -> Iterator[Layouts]:
    """Layouts that give each axis of the operator the same axes of the device matrix."""
    dimensions = dimensions_of(call, context)
    if dimensions is None or not given or len(dimensions.inputs) != len(given):
        return
    matrix = given[0].device_matrix
    if any(layout.device_matrix != matrix for layout in given):
        return
    places: dict[object, list[tuple[int, int]]] = {}
    for i, keys in enumerate(dimensions.inputs):
        for j, key in enumerate(keys):
            if key is not None and j < len(given[i].tensor_map):
                places.setdefault(key, []).append((i, j))
    shapes = [tensor.divisible_shape for tensor in call.tensors]
    options = [
        _entries(given, [shapes[i][j] for i, j in there], there) for there in places.values()
    ]
    for values in islice(nearest_combinations(options), _MOST_COMBINED):
        maps = [[WHOLE if j < len(shapes[i]) else e for j, e in enumerate(layout.tensor_map)]
                for i, layout in enumerate(given)]  # fmt: skip
        for there, value in zip(places.values(), values, strict=True):
            for i, j in there:
                maps[i][j] = value
        made = tuple(
            replace(layout, tensor_map=tuple(entries))
            for layout, entries in zip(given, maps, strict=True)
        )
        if all(map(_is_map, made)):
            yield made


def _entries(
    given: Layouts, sizes: Sequence[int], places: Sequence[tuple[int, int]]
) -> list[tuple[float, MapEntry]]:
    """What an axis may lie along, with what it costs: what some place says, one axis, none."""
    matrix = given[0].device_matrix
    written = [given[i].tensor_map[j] for i, j in places]
    last = 1 if given[0].interleaved else 0
    candidates = dict.fromkeys([*written, WHOLE, *range(last, len(matrix))])
    options: list[tuple[float, MapEntry]] = []
    for place, entry in enumerate(candidates):
        split = split_of(matrix, entry)
        if all(size < 0 or size % split == 0 for size in sizes):
            changed = sum(
                1 + (_UNSPLIT if entry == WHOLE else 0) for old in written if old != entry
            )
            options.append((changed + place / 1000, entry))
    return sorted(options, key=lambda option: option[0])


def over_devices(given: Layouts, devices: int) -> Layouts:
    """Layouts over all devices: those over fewer get an axis more, of those over more one shrinks.

    An axis more comes first: tensor maps count from the last one.

    Args:
        given: a layout for each tensor.
        devices: of the stage.

    Returns:
        Layouts for which neither is possible stay as they are.
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


def fitted_layouts(given: Layouts, call: OperatorCall) -> Layouts:
    """One layout a tensor, an entry a dimension: whole where none was given, or none divides.

    Args:
        given: one layout at least.
        call: the operator whose tensors are laid.
    """
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
        if all(map(_is_map, made)):
            yield tuple(made)


def _is_map(layout: UserLayout) -> bool:
    """Whether no axis of the device matrix stands twice in a tensor map."""
    used = [axis for entry in layout.tensor_map for axis in entries_of(entry)]
    return max(Counter(used).values(), default=1) == 1

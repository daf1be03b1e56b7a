"""A rule's notation applied to one call: axes bound to splits, then matrix, maps, collectives.

Under a strategy every named axis gets one axis of the device matrix. Under user layouts the matrix
is given, and every named axis gets the device axes that the layouts map it to.
"""

from __future__ import annotations

from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Operand
from irtool.operators.case import Case
from irtool.operators.fitting import assigned
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import (
    DYNAMIC,
    WHOLE,
    MapEntry,
    Shape,
    TensorMap,
    entries_of,
    entry_of,
    split_of,
)
from irtool.operators.notation import (
    Axis,
    Change,
    InputPattern,
    OutputPattern,
    Reduce,
    Rule,
    Whole,
)

Key = tuple[str, int]
"""A named axis: its name, and for ``*x`` and ``~x`` the place counted from the right."""


@dataclass(slots=True)
class _Bound:
    """What is known of one named axis: into how many slices, along which device axes."""

    split: int
    entry: tuple[int, ...]
    size: int


@dataclass(slots=True)
class Binding:
    """All axes of a call: per input the key of each dimension (None: an axis without name)."""

    case: Case
    dimensions: list[list[Key | None]] = field(default_factory=list[list["Key | None"]])
    bound: dict[Key, _Bound] = field(default_factory=dict[Key, _Bound])
    names: list[str] = field(default_factory=list[str])
    # Of a call of which nothing is split: see ``bound_whole``.
    results: list[list[Key | None]] = field(default_factory=list[list["Key | None"]])
    ordered: list[Key] = field(default_factory=list[Key])
    splittable: list[Key] = field(default_factory=list[Key])
    reduced: list[tuple[Reduce, list[Key]]] = field(
        default_factory=list[tuple[Reduce, list["Key"]]]
    )
    judged: set[Key] = field(default_factory=set["Key"])
    limits: dict[Key, int] = field(default_factory=dict["Key", int])
    counts: dict[str, int] = field(default_factory=dict[str, int])


def bound_whole(case: Case) -> Binding:
    """The axes of a call, of which nothing is split yet.

    Args:
        case: under a strategy of ones.

    Raises:
        Refused: MindSpore would refuse the call.
        Unsure: an attribute or a shape that decides is not known.
    """
    binding = _bound(case)
    _bind_results(binding)
    binding.results = [
        [None] * len(result.shape or ())
        if result.shape is None
        else _result_dimensions(binding, pattern, result.shape)
        for pattern, result in _outputs(case)
    ]
    unsplit = _unsplit(binding)
    binding.ordered = _ordered(binding)
    mapped = set(binding.ordered)
    binding.splittable = [key for key in binding.bound if key not in unsplit and key in mapped]
    binding.reduced = [(reduce, _reduced_keys(binding, reduce)) for reduce in case.rule.reduces]
    binding.judged = {
        key
        for judged in case.rule.judged
        if not judged.flag or case.flag(judged.flag)
        for axis in judged.over
        for key in _named(binding, axis)
    }
    for limit in case.rule.limits:
        number = case.number(limit.number) if isinstance(limit.number, str) else limit.number
        binding.limits |= dict.fromkeys(_named(binding, Axis(limit.axis)), number)
    return binding


def _unsplit(binding: Binding) -> set[Key | None]:
    """The axes that must be whole."""
    case = binding.case
    unsplit = {
        key
        for index, pattern in enumerate(assigned(case.rule, case.call))
        for key, (axis, _) in zip(
            binding.dimensions[index], _laid_out(binding, pattern, index), strict=True
        )
        if axis.unsplit
    }
    for demand in case.rule.wholes:
        if not _is_waived(case, demand):
            axes = case.axes(demand.attribute, len(case.shape(0)))
            unsplit |= {binding.dimensions[0][axis] for axis in axes}
    return unsplit | _resized(binding)


def _resized(binding: Binding) -> set[Key]:
    """The axes that must be whole because they come out in another size."""
    case = binding.case
    names = {axis.name for pattern in case.rule.inputs for axis in pattern.axes if axis.sized}
    if not names:
        return set()
    before: dict[Key | None, int] = {}
    for index, keys in enumerate(binding.dimensions):
        before |= zip(keys, case.shape(index), strict=True)
    resized: set[Key] = set()
    for pattern, result in _outputs(case):
        shape = result.shape or ()
        for key, size in zip(_result_dimensions(binding, pattern, shape), shape, strict=True):
            if key is not None and key[0] in names and before.get(key) != size:
                resized.add(key)
    return resized


def _bind_results(binding: Binding) -> None:
    """Axes of outputs that lie along no input: their strategy is one of the output."""
    for pattern, result in _outputs(binding.case):
        rank = len(result.shape or ())
        for axis in pattern.axes:
            if axis.unsplit or axis.name in binding.names:
                continue
            binding.names.append(axis.name)
            places = rank - _fixed(binding, pattern) if axis.many else 1
            for place in range(places):
                binding.bound[axis.name, place] = _Bound(1, (), 0)


def _bound(case: Case) -> Binding:
    binding = Binding(case)
    patterns = assigned(case.rule, case.call)
    for index, pattern in enumerate(patterns):
        (axis, *more) = [axis for axis in pattern.axes if axis.many] or [Axis("")]
        if axis.name and not more and axis.mark != "~":
            binding.counts[axis.name] = len(case.shape(index)) - len(pattern.axes) + 1
    for index, pattern in enumerate(patterns):
        _bind(binding, index, pattern)
    return binding


def evaluate(case: Case) -> Sharding:
    """What the rule's notation says of a case: device matrix, tensor maps, collectives.

    Args:
        case: under a strategy or user layouts.

    Raises:
        Refused: MindSpore would refuse it.
        Unsure: an attribute or a shape that decides is not known.
    """
    rule = case.rule
    binding = _bound(case)
    _check_whole(binding)
    keys = _ordered(binding)
    matrix = _matrix(binding, keys)
    inputs = tuple(_input_map(binding, keys, index) for index in range(len(binding.dimensions)))
    outputs = tuple(_output_maps(binding, keys))
    return Sharding(
        device_matrix=matrix,
        input_maps=inputs,
        output_maps=outputs,
        reductions=tuple(_reductions(binding, keys)),
        mirrored=_mirrored(rule, len(inputs)),
        complete=case.layouts is not None,
        loss_output=rule.loss,
    )


def _bind(binding: Binding, index: int, pattern: InputPattern) -> None:
    """Give each dimension of an input its axis, and compare with what the axis has already."""
    case = binding.case
    axes = _laid_out(binding, pattern, index)
    keys: list[Key | None] = []
    for dimension, (axis, place) in enumerate(axes):
        split = case.strategy[index][dimension]
        if axis.unsplit and split != 1:
            case.refuse("axis-split", _may_not_split(case, index, dimension))
        key = (axis.name, place) if axis.name else None
        keys.append(key)
        if key is None:
            continue
        if axis.name not in binding.names:
            binding.names.append(axis.name)
        _merge(binding, key, index, dimension, axis)
    binding.dimensions.append(keys)


def _laid_out(binding: Binding, pattern: InputPattern, index: int) -> list[tuple[Axis, int]]:
    """The axis of every dimension, with its place from the right within a ``*x`` or ``~x``.

    Where a pattern has several of them, other inputs must say of how many axes all but one are.
    """
    case = binding.case
    rank = len(case.shape(index))
    many = [axis for axis in pattern.axes if axis.many]
    spare = rank - (len(pattern.axes) - len(many))
    counts = {axis.name: binding.counts.get(axis.name) for axis in many if len(many) > 1}
    left = [axis for axis in many if counts.get(axis.name) is None]
    if len(left) > 1:
        raise Unsure("an input pattern has more than one axis of any number")
    spare -= sum(count for count in counts.values() if count is not None)
    if spare < 0 or (spare and not left):
        raise Unsure(
            f"the rule of {case.call.op} has {len(pattern.axes)} axes, the input has rank {rank}"
        )
    laid: list[tuple[Axis, int]] = []
    for axis in pattern.axes:
        if axis.many:
            count = counts.get(axis.name)
            places = spare if count is None else count
            laid += [(axis, place) for place in range(places - 1, -1, -1)]
        else:
            laid.append((axis, 0))
    for name in pattern.swaps:
        if case.flag(name):
            laid[-2:] = [laid[-1], laid[-2]]
    return laid


def _merge(binding: Binding, key: Key, index: int, dimension: int, axis: Axis) -> None:
    """Note the split of an axis; two inputs must agree, or one be of size 1 if it is broadcast."""
    case = binding.case
    split = case.strategy[index][dimension]
    size = case.sizes(index)[dimension]
    entry: tuple[int, ...] = ()
    if case.layouts is not None:
        entry = entries_of(case.layouts[index].tensor_map[dimension])
    known = binding.bound.get(key)
    if known is None:
        binding.bound[key] = _Bound(split, entry, size)
        return
    same = known.entry == entry if case.layouts is not None else known.split == split
    if same:
        known.size = max(known.size, size)
        return
    is_broadcast = 1 in (known.size, size) or (
        DYNAMIC in (known.size, size) and 1 in (known.split, split)
    )
    if axis.mark != "~" or not is_broadcast:
        says = case.rule.equal_says or "the splits of one axis differ"
        case.refuse(
            "axis-mismatch",
            f"{says}: axis {axis.name} is split by {split} in dimension {dimension} of input "
            f"{index}, by {known.split} elsewhere; strategy {case.strategy}",
        )
    if known.size == 1 or (size != 1 and split > known.split):
        binding.bound[key] = _Bound(split, entry, size)


def _may_not_split(case: Case, index: int, dimension: int) -> str:
    return (
        f"dimension {dimension} of input {index} can not be split, "
        f"but its strategy is {case.strategy[index]}"
    )


def _check_whole(binding: Binding) -> None:
    """Dimensions that an attribute names, or that change their size, must not be split."""
    case = binding.case
    resized = _resized(binding)
    for index, keys in enumerate(binding.dimensions if resized else ()):
        for dimension, key in enumerate(keys):
            if key in resized and case.strategy[index][dimension] != 1:
                says = f"{_may_not_split(case, index, dimension)}: its size changes"
                case.refuse("axis-split", says)
    for demand in case.rule.wholes:
        if _is_waived(case, demand):
            continue
        for dimension in case.axes(demand.attribute, len(case.shape(0))):
            if case.strategy[0][dimension] != 1:
                says = demand.says or _may_not_split(case, 0, dimension)
                case.refuse(
                    "axis-split",
                    f"{says}: {demand.attribute} is {case.attribute(demand.attribute)}, "
                    f"the strategy is {case.strategy[0]}",
                )


def _is_waived(case: Case, demand: Whole) -> bool:
    """Whether a flag, or a layout, allows what is else forbidden."""
    if demand.unless == "layout":
        return case.layouts is not None
    return bool(demand.unless) and case.has(demand.unless) and case.flag(demand.unless)


def _ordered(binding: Binding) -> list[Key]:
    """Keys in the order of the device matrix, slowest first."""
    names = list(binding.case.rule.order or binding.names)
    return [
        key
        for name in names
        for key in sorted((k for k in binding.bound if k[0] == name), key=lambda k: -k[1])
    ]


def _matrix(binding: Binding, keys: list[Key]) -> tuple[int, ...]:
    layouts = binding.case.layouts
    if layouts is not None:
        return layouts[0].device_matrix if layouts else ()
    return tuple(binding.bound[key].split for key in keys)


def _entry(binding: Binding, keys: list[Key], key: Key | None) -> MapEntry:
    """The tensor-map entry of a dimension along this axis."""
    if key is None or key not in binding.bound:
        return WHOLE
    if binding.case.layouts is not None:
        return entry_of(binding.bound[key].entry)
    return len(keys) - 1 - keys.index(key) if key in keys else WHOLE


def _input_map(binding: Binding, keys: list[Key], index: int) -> TensorMap:
    case = binding.case
    if case.layouts is not None:
        return case.layouts[index].tensor_map
    entries: list[MapEntry] = []
    for dimension, key in enumerate(binding.dimensions[index]):
        split = case.strategy[index][dimension]
        broadcast = key is not None and binding.bound[key].split != split
        if broadcast or (case.rule.ones_whole and case.shape(index)[dimension] == 1):
            entries.append(WHOLE)
        else:
            entries.append(_entry(binding, keys, key))
    return tuple(entries)


def _outputs(case: Case) -> list[tuple[OutputPattern, Operand]]:
    """A pattern for each tensor that comes out."""
    results = case.call.results
    patterns = list(case.rule.outputs)
    if patterns and patterns[-1].every:
        patterns += [patterns[-1]] * (len(results) - len(patterns))
    if len(results) > len(patterns):
        raise Unsure(f"the rule of {case.call.op} has no place for {len(results)} outputs")
    return list(zip(patterns, results, strict=False))


def _output_maps(binding: Binding, keys: list[Key]) -> list[TensorMap]:
    ones_whole = binding.case.rule.ones_whole
    maps: list[TensorMap] = []
    for pattern, result in _outputs(binding.case):
        entries: list[MapEntry] = []
        for place, key in enumerate(_result_dimensions(binding, pattern, result.shape)):
            single = ones_whole and result.shape is not None and result.shape[place] == 1
            entries.append(WHOLE if single else _entry(binding, keys, key))
        maps.append(tuple(entries))
    return maps


def _result_dimensions(
    binding: Binding, pattern: OutputPattern, shape: Shape | None
) -> list[Key | None]:
    """The axis of each dimension of an output; it must have as many as the pattern says."""
    dimensions = _output_dimensions(binding, pattern, None if shape is None else len(shape))
    if shape is not None and len(shape) != len(dimensions):
        raise Unsure(
            f"the rule of {binding.case.call.op} gives an output of rank {len(dimensions)}, "
            f"the call has rank {len(shape)}"
        )
    return dimensions


def _output_dimensions(
    binding: Binding, pattern: OutputPattern, rank: int | None
) -> list[Key | None]:
    """The axes of an output, after drops, inserts and permutations; ``*.`` fills up to ``rank``."""
    dimensions: list[Key | None] = []
    for axis in pattern.axes:
        if not axis.name:
            count = 1
            if axis.many:
                count = 0 if rank is None else max(0, rank - _fixed(binding, pattern))
            dimensions += [None] * count
        elif axis.many:
            keys = sorted((k for k in binding.bound if k[0] == axis.name), key=lambda k: -k[1])
            dimensions += keys
        else:
            dimensions.append((axis.name, 0))
    for change in pattern.changes:
        dimensions = _changed(binding.case, change, dimensions)
    return dimensions


def _fixed(binding: Binding, pattern: OutputPattern) -> int:
    """Dimensions of an output apart from those that ``*.`` fills up."""
    return sum(
        sum(key[0] == axis.name for key in binding.bound) if axis.many else 1
        for axis in pattern.axes
        if axis.name or not axis.many
    )


def _changed(case: Case, change: Change, dimensions: list[Key | None]) -> list[Key | None]:
    rank = len(dimensions)
    if change.kind == "insert":
        places = rank if change.inside else rank + 1
        for place in sorted(n % places if n < 0 else n for n in case.numbers(change.attribute)):
            dimensions = [*dimensions[:place], None, *dimensions[place:]]
        return dimensions
    if change.kind == "permute":
        return [dimensions[place] for place in _permutation(case, change.attribute, rank)]
    axes = case.axes(change.attribute, rank)
    if change.ones and not case.numbers(change.attribute):
        axes = tuple(axis for axis, size in enumerate(case.shape(0)) if size == 1)
    kept = change.kind == "unsplit" or (change.keep and case.flag(change.keep))
    if kept:
        return [None if place in axes else key for place, key in enumerate(dimensions)]
    return [key for place, key in enumerate(dimensions) if place not in axes]


def _permutation(case: Case, name: str, rank: int) -> tuple[int, ...]:
    places = tuple(number % rank for number in case.numbers(name)) if rank else ()
    if sorted(places) != list(range(rank)):
        raise Unsure(f"{name} {places} is no permutation of {rank} axes")
    return places


def _reduced_keys(binding: Binding, reduce: Reduce) -> list[Key]:
    """The axes that a reduction is over: one by its name, or those that an attribute names."""
    return _named(binding, reduce.over)


def _named(binding: Binding, over: Axis) -> list[Key]:
    """An axis, all of a ``*x``, or the axes of the first input that an attribute names."""
    case = binding.case
    if over.name in {attribute.name for attribute in case.rule.attributes}:
        named = (binding.dimensions[0][axis] for axis in case.axes(over.name, len(case.shape(0))))
        return [key for key in named if key is not None]
    return [key for key in binding.bound if key[0] == over.name]


def _reductions(binding: Binding, keys: list[Key]) -> list[Reduction]:
    """Forward collectives over the axes that the rule contracts, if they are split."""
    reductions: list[Reduction] = []
    for reduce in binding.case.rule.reduces:
        over = _reduced_keys(binding, reduce)
        axes = tuple(sorted(set(_device_axes(binding, keys, over))))
        if axes:
            why = f"{reduce.over.name} is contracted and split"
            reductions.append(Reduction("AllReduce", axes, reduce.reduce, why, reduce.output))
    return reductions


def _device_axes(binding: Binding, keys: list[Key], over: list[Key]) -> list[int]:
    matrix = _matrix(binding, keys)
    return [
        len(matrix) - 1 - place
        for key in over
        for place in entries_of(_entry(binding, keys, key))
        if split_of(matrix, place) > 1
    ]


def _mirrored(rule: Rule, count: int) -> tuple[bool, ...] | None:
    if rule.mirror is None:
        return None
    return tuple(index in rule.mirror for index in range(count))

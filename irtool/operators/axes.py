"""The axes of a call: what may be split together, and what becomes of it.

Read off its operator's entry, without a strategy.  A signature says of each axis where it lies in
operands and results; clauses say which axes are added up, which stay whole, and of which a function
says what follows.  Where all that depends on attributes or ranks, a function beside the entry gives
the signature of the call (``irregular.AXES``), in the same notation.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.operators.call import OperatorCall
from irtool.operators.case import Case
from irtool.operators.irregular import AXES
from irtool.operators.judgement import Context, Refused, Unsure
from irtool.operators.layout import Shape
from irtool.operators.pattern import Binding, Key, bound_whole
from irtool.operators.table import rule_of

Role: TypeAlias = Literal["passed", "summed", "kept"]
"""``passed``: it comes out again; ``summed``: it is added up, and what splits it communicates;
``kept``: it ends in the operator, and nothing follows from splitting it."""

Place: TypeAlias = tuple[int, int]
"""A dimension: the number of its tensor, and its own."""

OF_A_FUNCTION = "cell_shard_op"
"""Attribute of the operator whose result is that of a function which ``ms.shard`` was given."""

REPEATS_LEFT = "repeated_num_in_dev_matrix_right_"
"""Attribute of a primitive: False puts the axis of repeated calculation at the left end.

The underscore at its end belongs to it; without one it means nothing.
"""
_NO_COMMUNICATION = "cross_batch"
"""Attribute of a reduction that is not to communicate."""


@dataclass(frozen=True, slots=True)
class CallAxis:
    """An axis that may be split.

    Attributes:
        name: as the entry has it; axes of ``*x`` and ``~x`` are numbered from the right.
        role: what becomes of it.
        entries: the numbers of a strategy that say its split, all alike.
        inputs, outputs: the dimensions that lie along it, of tensors of size 1 none.
        judged: the operator's function says whether it may be split, and what follows: halos,
            uneven parts, masks, groups of some sizes only.
        limit: a number that its split must divide beside the sizes; 0: none.
    """

    name: str
    role: Role
    entries: tuple[Place, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    judged: bool = False
    limit: int = 0


@dataclass(frozen=True, slots=True)
class CallSum:
    """A reduction over axes (by their numbers), behind an output."""

    op: str
    reduce: str
    output: int
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallAxes:
    """All axes of a call that may be split.

    Attributes:
        rows: the shapes that the entries of a strategy are about.
        axes: by the first number of a strategy that says their split.
        order: their numbers as they stand in the device matrix, slowest first.
        sums: the collectives that follow.
        mirrored: by input whether its gradient is summed up over replicas if it is a weight.
        right: whether the axis of repeated calculation stands right of the others.
    """

    rows: tuple[Shape, ...]
    axes: tuple[CallAxis, ...]
    order: tuple[int, ...]
    sums: tuple[CallSum, ...]
    mirrored: tuple[bool, ...]
    right: bool


def axes_of(call: OperatorCall, context: Context) -> CallAxes | None:
    """The axes of a call; None of operators whose entry, or a user's, does not tell them.

    Where tensors have other ranks than the entry is about nothing is told either.

    Args:
        call: its shapes and attributes decide where the entry says so.
        context: of the run; axes are about shapes and flags, not about its devices.
    """
    binding = _binding(call, context)
    if binding is None:
        return None
    try:
        return _read(binding)
    except (Refused, Unsure):
        return None


def _binding(call: OperatorCall, context: Context) -> Binding | None:
    """A call of which nothing is split, applied to its signature; None: it has none."""
    rule = rule_of(call.op)
    if rule is None or rule.kind == "unknown":
        return None
    case = Case(
        rule, call, tuple((1,) * len(tensor.shape or ()) for tensor in call.tensors), context
    )
    try:
        axes_function = AXES.get(rule.function)
        if axes_function is not None:
            from irtool.operators.notation_reader import read_body  # it imports Lark

            plain = {"inputs": (), "outputs": (), "order": None, "ones_whole": False}
            fields = {**plain, **read_body(axes_function(case))}
            case = replace(case, rule=replace(rule, kind="notation", **fields))
        elif rule.kind == "function" and not rule.outputs:
            return None
        return bound_whole(replace(case, rule=replace(case.rule, kind="notation")))
    except (Refused, Unsure):
        return None


@dataclass(frozen=True, slots=True)
class CallDimensions:
    """By tensor the axis of each dimension, whether it may be split or not; None: of none.

    Dimensions along one axis are of one size, or 1 where a signature broadcasts.
    """

    inputs: tuple[tuple[Key | None, ...], ...]
    outputs: tuple[tuple[Key | None, ...], ...]


def dimensions_of(call: OperatorCall, context: Context) -> CallDimensions | None:
    """Which dimensions of a call lie along one axis; None of operators that do not tell.

    Args:
        call: of any operator.
        context: of the run.
    """
    binding = _binding(call, context)
    if binding is None:
        return None
    return CallDimensions(tuple(map(tuple, binding.dimensions)), tuple(map(tuple, binding.results)))


def _rows(case: Case) -> tuple[list[Shape], dict[tuple[str, int], int]]:
    """What a strategy's entries are about: their shapes; the entry of an input or output."""
    words = case.rule.rows
    if words is None:
        words = tuple(range(len(case.tensors)))[: case.rule.read_inputs]
    shapes: list[Shape] = []
    entry: dict[tuple[str, int], int] = {}
    for word in words:
        if word == "output":
            entry["output", 0] = len(shapes)
            shapes.append(case.call.results[0].divisible_shape)
        elif word == "scalar":
            shapes.append(())
        else:
            for index in range(1, len(case.tensors)) if word == "others" else (int(word),):
                entry["input", index] = len(shapes)
                shapes.append(case.tensor(index).divisible_shape)
    return shapes, entry


def _read(binding: Binding) -> CallAxes:
    case, rule = binding.case, binding.case.rule
    rows, entry = _rows(case)
    inputs = _places(binding.dimensions, [tensor.shape or () for tensor in case.tensors])
    results = [tensor.shape or () for tensor in case.call.results]
    outputs = _places(binding.results, results)
    entries = {
        key: tuple(
            sorted(
                (entry[side, tensor], dimension)
                for side, places in (("input", inputs), ("output", outputs))
                for tensor, dimension in places.get(key, ())
                if (side, tensor) in entry
            )
        )
        for key in binding.splittable
    }
    keys = sorted((key for key in entries if entries[key]), key=lambda key: entries[key])
    number = {key: index for index, key in enumerate(keys)}
    sums = tuple(
        CallSum(
            "AllReduce",
            reduce.reduce,
            reduce.output,
            tuple(number[key] for key in over if key in number),
        )
        for reduce, over in binding.reduced
    )
    summed = {index for one in sums for index in one.axes}
    limits = _limits(binding)
    silent = bool(case.call.attributes.get(_NO_COMMUNICATION))
    axes = tuple(
        CallAxis(
            f"{key[0]}{key[1]}" if key[1] else key[0],
            "summed" if index in summed else "passed" if key in outputs else "kept",
            entries[key],
            inputs.get(key, ()),
            outputs.get(key, ()),
            silent or key in binding.judged,
            limits.get(key, 0),
        )
        for index, key in enumerate(keys)
    )
    order = tuple(number[key] for key in binding.ordered if key in number)
    count = len(case.tensors)
    mirror = range(count) if rule.mirror is None else rule.mirror
    mirrored = tuple(index in mirror for index in range(count))
    right = rule.repeats_right or case.call.attributes.get(REPEATS_LEFT) is not False
    sums = tuple(one for one in sums if one.axes)
    return CallAxes(tuple(rows), axes, order, sums, mirrored, right)


def _limits(binding: Binding) -> dict[Key, int]:
    """What the split of an axis must divide: sizes, of 1 too where nothing is broadcast."""
    case, limits = binding.case, dict(binding.limits)
    wide = {axis.name for pattern in case.rule.inputs for axis in pattern.axes if axis.mark == "~"}
    inputs = [tensor.shape or () for tensor in case.tensors]
    outputs = [result.shape or () for result in case.call.results]
    for keys, shape, broadcast in (
        *((keys, shape, wide) for keys, shape in zip(binding.dimensions, inputs, strict=True)),
        *((keys, shape, set[str]()) for keys, shape in zip(binding.results, outputs, strict=True)),
    ):
        for key, size in zip(keys, shape, strict=True):
            spared = size == 1 and (case.rule.ones_whole or key is None or key[0] in broadcast)
            if key is not None and size > 0 and not spared:
                limits[key] = gcd(limits.get(key, 0), size)
    return limits


def _places(
    dimensions: list[list[Key | None]], shapes: list[tuple[int, ...]]
) -> dict[Key, tuple[Place, ...]]:
    """By axis the dimensions that lie along it, but for those of size 1."""
    places: dict[Key, tuple[Place, ...]] = {}
    for tensor, (keys, shape) in enumerate(zip(dimensions, shapes, strict=True)):
        for dimension, (key, size) in enumerate(zip(keys, shape, strict=True)):
            if key is not None and size != 1:
                places[key] = (*places.get(key, ()), (tensor, dimension))
    return places

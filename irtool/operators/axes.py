"""The axes of a call: what may be split together, and what becomes of it.

Read off the notation of the operator's entry, without a strategy.  A signature says of each axis
where it lies in operands and results; clauses say which axes are added up, and which stay whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from irtool.operators.call import OperatorCall
from irtool.operators.case import Case
from irtool.operators.functions import KEEPS_AXES, SELF_CHECKED
from irtool.operators.judgement import Context, Refused, Unsure
from irtool.operators.notation import Rule
from irtool.operators.pattern import Binding, Key, bound_whole
from irtool.operators.table import rule_of

Role: TypeAlias = Literal["passed", "summed", "kept"]
"""``passed``: it comes out again; ``summed``: it is added up, and what splits it communicates;
``kept``: it ends in the operator, and nothing follows from splitting it."""

Place: TypeAlias = tuple[int, int]
"""A dimension: the number of its tensor, and its own."""

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
        inputs, outputs: the dimensions that lie along it, of tensors of size 1 none.
    """

    name: str
    role: Role
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


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
        axes: by the first dimension that lies along them.
        order: their numbers as they stand in the device matrix, slowest first.
        sums: the collectives that follow.
        mirrored: by input whether its gradient is summed up over replicas if it is a weight.
        right: whether the axis of repeated calculation stands right of the others.
    """

    axes: tuple[CallAxis, ...]
    order: tuple[int, ...]
    sums: tuple[CallSum, ...]
    mirrored: tuple[bool, ...]
    right: bool


def axes_of(call: OperatorCall, context: Context) -> CallAxes | None:
    """The axes of a call; None where the notation does not tell them.

    That is so of operators without a rule, of those whose entry leaves it to a function that does
    not keep to a signature, and of tensors of unknown sizes.
    """
    rule = rule_of(call.op)
    if rule is None or not _tells_axes(rule, call):
        return None
    whole = tuple((1,) * len(tensor.shape or ()) for tensor in call.tensors)
    try:
        binding = bound_whole(Case(rule, call, whole, context))
        return _read(binding, rule)
    except (Refused, Unsure):
        return None


def _tells_axes(rule: Rule, call: OperatorCall) -> bool:
    if rule.kind != "notation" or rule.read_inputs is not None:
        return False
    if rule.function and (rule.function not in KEEPS_AXES or rule.function in SELF_CHECKED):
        return False
    if call.attributes.get(_NO_COMMUNICATION):
        return False
    sizes = (size for tensor in (*call.tensors, *call.results) for size in tensor.shape or (1,))
    return all(tensor.shape is not None for tensor in call.results) and min(sizes, default=1) > 0


def _read(binding: Binding, rule: Rule) -> CallAxes:
    case = binding.case
    inputs = _places(binding.dimensions, [tensor.shape or () for tensor in case.tensors])
    results = [tensor.shape or () for tensor in case.call.results]
    outputs = _places(binding.results, results)
    keys = [key for key in binding.splittable if key in inputs]
    keys.sort(key=lambda key: inputs[key])
    number = {key: at for at, key in enumerate(keys)}
    sums = tuple(
        CallSum("AllReduce", reduce, 0, tuple(number[key] for key in over if key in number))
        for reduce, over in binding.reduced
    )
    summed = {at for one in sums for at in one.axes}
    axes = tuple(
        CallAxis(
            f"{key[0]}{key[1]}" if key[1] else key[0],
            "summed" if at in summed else "passed" if key in outputs else "kept",
            inputs[key],
            outputs.get(key, ()),
        )
        for at, key in enumerate(keys)
    )
    order = tuple(number[key] for key in binding.ordered if key in number)
    count = len(case.tensors)
    mirror = range(count) if rule.mirror is None else rule.mirror
    mirrored = tuple(index in mirror for index in range(count))
    right = case.call.attributes.get(REPEATS_LEFT) is not False
    return CallAxes(axes, order, tuple(one for one in sums if one.axes), mirrored, right)


def _places(
    dimensions: list[list[Key | None]], shapes: list[tuple[int, ...]]
) -> dict[Key, tuple[Place, ...]]:
    """By axis the dimensions that lie along it, but for those of size 1."""
    found: dict[Key, tuple[Place, ...]] = {}
    for tensor, (keys, shape) in enumerate(zip(dimensions, shapes, strict=True)):
        for dimension, (key, size) in enumerate(zip(keys, shape, strict=True)):
            if key is not None and size != 1:
                found[key] = (*found.get(key, ()), (tensor, dimension))
    return found

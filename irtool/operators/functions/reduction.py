"""Reductions and other operators along axes: what the notation leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from irtool.operators.case import Case
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Refused, Sharding, Unsure
from irtool.operators.layout import WHOLE, identity_map
from irtool.operators.pattern import evaluate

Base = Callable[[], Sharding]


@irregular("reduce")
def reduce(case: Case, base: Base) -> Sharding:
    """No communication where the attribute ``cross_batch`` asks for none."""
    skips = case.has("skip_mode") and case.flag("skip_mode")
    if case.call.op == "ReduceSum" and skips and not case.numbers("axis"):
        message = "with skip_mode and no axis the output keeps its axes, which its map has lost"
        raise Refused("layout", message, "tensor_layout.cc:IsValidTensorLayout")
    if case.layouts is not None:
        _check_reduced(case)
    sharding = base()
    if not (case.has("cross_batch") and case.flag("cross_batch")):
        return sharding
    averaged = case.call.op == "ReduceMean"
    if averaged and case.strategy[0][0] != case.devices:
        return sharding
    return replace(sharding, reductions=())


def _check_reduced(case: Case) -> None:
    """Under layouts all that is reduced must be split: MindSpore 2.7 looks up its device axis."""
    rank = len(case.shape(0))
    name = next((name for name in ("dim", "axis") if case.has(name)), "")
    for axis in case.axes(name, rank) if name else range(rank):
        if not case.is_split(0, axis):
            case.refuse("layout", f"dimension {axis} is reduced and lies along no device axis")


@irregular("softmax")
def softmax(case: Case, base: Base) -> Sharding:
    """Under layouts the axis must not lie along any device axis, not even one of size 1.

    Of several axes MindSpore looks at the first one only, as they are written.
    """
    sharding = base()
    if case.layouts is not None:
        axis = case.numbers("dim" if case.has("dim") else "axis")[0] % len(case.shape(0))
        if case.is_split(0, axis):
            case.refuse("axis-split", f"the axis {axis} lies along an axis of the device matrix")
    return sharding


@irregular("sort_ext")
def sort_ext(case: Case, base: Base) -> Sharding:
    """Under layouts the sorted dimension must lie along an axis of the device matrix of size 1.

    Where it lies along none, MindSpore (2.7.0) reads its split from nowhere: that was 1 in none of
    fourteen compilations, and all were refused.
    """
    sharding = base()
    if case.layouts is not None:
        axis = case.numbers("dim")[0] % len(case.shape(0))
        entry, split = case.layouts[0].tensor_map[axis], case.layouts[0].splits[axis]
        if isinstance(entry, tuple) and split == 1:
            raise Unsure("SortExt along several device axes of size 1")
        if entry == WHOLE or split != 1:
            message = f"the axis {axis} does not lie along an axis of the device matrix of size 1"
            case.refuse("axis-split", message, "activation_info.cc:CheckInputLayout")
    return sharding


@irregular("square_sums")
def square_sums(case: Case, base: Base) -> Sharding:
    """The second input is taken to be split like the first."""
    return evaluate(replace(case, strategy=(case.strategy[0],) * 2))


@irregular("max_dim")
def max_dim(case: Case, base: Base) -> Sharding:
    """Under layouts MindSpore 2.7 reads the split of a whole dimension from nowhere."""
    sharding = base()
    if case.layouts is not None:
        raise Unsure("MaxDim with layouts: the outcome differs from run to run")
    return sharding


@irregular("fourier")
def fourier(case: Case, base: Base) -> Sharding:
    """The split must fit on the devices of the stage."""
    sharding = base()
    product = prod(case.strategy[0])
    if product > case.devices:
        message = f"{product} slices are more than the {case.devices} devices of the stage"
        case.refuse("device-count", message)
    return replace(sharding, input_maps=sharding.output_maps)


@axes("trace")
def trace_axes(case: Case) -> str:
    """All dimensions but the two of the diagonal."""
    rank = len(case.shape(0))
    gone = {case.number(name) % rank for name in ("axis1", "axis2")}
    x = [f"!x{place}" if place in gone else f"x{place}" for place in range(rank)]
    rest = [name for place, name in enumerate(x) if place not in gone]
    return f"[{' '.join(x)}] -> [{' '.join(rest)}]"


@irregular("trace")
def trace(case: Case, base: Base) -> Sharding:
    """The sum of a diagonal: its two dimensions are whole and go."""
    rank = len(case.shape(0))
    gone = {case.number(name) % rank for name in ("axis1", "axis2")}
    for axis in gone:
        if case.strategy[0][axis] != 1:
            message = f"only a batch dimension can be split, strategy {case.strategy[0]}"
            case.refuse("axis-split", message)
    plain = identity_map(rank)
    out = tuple(entry for axis, entry in enumerate(plain) if axis not in gone)
    inputs = tuple(WHOLE if axis in gone else entry for axis, entry in enumerate(plain))
    return Sharding(case.strategy[0], (inputs,), (out,))

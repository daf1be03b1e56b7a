"""What MindSpore makes of the attribute ``layout: {dev_matrix, input_tensor_map}`` of a primitive.

The attribute says how each tensor operand lies, and goes before a strategy. MindSpore checks the
matrix and the maps alike for all operators; then the operator's class says how its result lies.
Few classes do (``configured`` of an entry). The results of all others have no layout, and the
compilation fails.

Source: compilations of single operators with MindSpore 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod

from irtool.operators.case import Case
from irtool.operators.judgement import Refused, Sharding, Unsure
from irtool.operators.layout import DYNAMIC, WHOLE, DeviceMatrix, Shape, TensorMap, UserLayout

MATRIX = "operator_info.cc:GetLayoutConfig"
MAPS = "operator_info.cc:CheckLayoutConfigBase"
NO_RESULT = "operator_info.cc:InferAsLossDivisor"
RESULT_RANK = "tensor_layout.cc:IsValidTensorLayout"
SAME_AXIS = "map.cc:Init"
ATTRIBUTE = "the attribute layout"
NO_CLASS = (
    "the attribute layout leaves the result of {op}, which MindSpore has no class for, without a "
    "layout: nothing is redistributed behind it, and whether it compiles depends on its user"
)
"""Why nobody can say what comes of an operator that MindSpore runs batch parallel."""

Maps = tuple[tuple[int, ...], ...]


def configured_sharding(case: Case, given: Sequence[UserLayout]) -> Sharding:
    """What follows from the attribute ``layout``.

    Args:
        case: the call.
        given: matrix and map of each tensor operand, as the attribute has them.

    Raises:
        Refused: MindSpore does not take it.
        Unsure: nobody measured what it makes of it.
    """
    op, rule = case.call.op, case.rule
    maps = _checked(case, given)
    if rule.configured == "unknown":
        raise Unsure(f"nobody measured what {ATTRIBUTE} makes of {op}")
    if rule.configured not in RESULTS:
        message = f"{ATTRIBUTE} leaves the result of {op} without a layout: MindSpore takes it for"
        takes = "elementwise operators, products, Softmax and Transpose only"
        raise Refused("layout-unsupported", f"{message} {takes}", NO_RESULT)
    result = RESULTS[rule.configured](case, maps)
    if len(result) != len(case.result()):
        message = f"{ATTRIBUTE} gives the result of {op} the map {result} of its operand"
        raise Refused("layout", f"{message}, which has another rank", RESULT_RANK)
    for entries in (*maps, result):
        axes = [axis for axis in entries if axis != WHOLE]
        if len(set(axes)) != len(axes):
            message = f"{ATTRIBUTE} cuts two dimensions along one device axis: {entries}"
            raise Refused("layout", message, SAME_AXIS)
    matrix = given[0].device_matrix
    mirrored = None if rule.mirror is None else tuple(i in rule.mirror for i in range(len(maps)))
    return Sharding(matrix, maps, (result,), mirrored=mirrored, complete=True)


def _checked(case: Case, given: Sequence[UserLayout]) -> Maps:
    """The maps, along axes of more than one device, once what MindSpore asks of all is checked."""
    if len(given) != len(case.tensors):
        message = f"{ATTRIBUTE} has {len(given)} maps, the operator has {len(case.tensors)} tensors"
        raise Refused("layout", message, MAPS)
    if not given:
        raise Unsure(f"nobody measured {ATTRIBUTE} of an operator without tensors")
    matrix = given[0].device_matrix
    if prod(matrix) != case.devices:
        message = f"the matrix {matrix} of {ATTRIBUTE} has {prod(matrix)} devices"
        raise Refused("device-count", f"{message}, the stage has {case.devices}", MATRIX)
    return tuple(
        _map(matrix, layout.tensor_map, case.shape(index), f"input {index}")
        for index, layout in enumerate(given)
    )


def _map(matrix: DeviceMatrix, entries: TensorMap, shape: Shape, what: str) -> tuple[int, ...]:
    """One map; a dimension along a device axis of size 1 is whole."""
    if len(entries) != len(shape):
        message = f"the map {entries} of {ATTRIBUTE} does not have the rank of {what} {shape}"
        raise Refused("layout", message, MAPS)
    axes: list[int] = []
    for entry, size in zip(entries, shape, strict=True):
        if not isinstance(entry, int) or not WHOLE <= entry < len(matrix):
            message = f"the map {entries} of {ATTRIBUTE} names no axis of the matrix {matrix}"
            raise Refused("layout", message, MAPS)
        parts = 1 if entry == WHOLE else matrix[len(matrix) - 1 - entry]
        if parts > 1 and (size == DYNAMIC or size % parts):
            known = "that is not known" if size == DYNAMIC else str(size)
            message = f"{what}: a size {known} can't be cut into {parts} by {ATTRIBUTE}"
            raise Refused("layout", message, MAPS)
        axes.append(entry if parts > 1 else WHOLE)
    return tuple(axes)


def _passed(_: Case, maps: Maps) -> tuple[int, ...]:
    """The result lies as the first operand does."""
    return maps[0]


def _normalised(case: Case, maps: Maps) -> tuple[int, ...]:
    """The result lies as the first operand does, if what the operator works along is whole."""
    rank = len(maps[0])
    for whole in case.rule.wholes:
        if any(maps[0][axis] != WHOLE for axis in case.axes(whole.attribute, rank)):
            case.refuse("axis-split", f"{ATTRIBUTE} cuts the axis that {case.call.op} works along")
    return maps[0]


def _broadcast(case: Case, maps: Maps) -> tuple[int, ...]:
    """Two operands that are cut alike wherever they are of one size."""
    shapes = [case.shape(index)[::-1] for index in range(2)]
    result: list[int] = []
    pairs = zip_longest(shapes[0], shapes[1], maps[0][::-1], maps[1][::-1], fillvalue=None)
    if shapes[0] != shapes[1] and maps[0] == maps[1]:
        case.refuse("layout", f"{ATTRIBUTE} has the same map for operands of two shapes")
    for left, right, first, second in pairs:
        if left == right and first != second:
            case.refuse("layout", f"{ATTRIBUTE} cuts operands of the same size differently")
        entry = second if first in (None, WHOLE) else first
        result.append(WHOLE if entry is None else entry)
    return tuple(result[::-1])


def _product(case: Case, maps: Maps) -> tuple[int, ...]:
    """Matrices as they stand, of as many dimensions, the one that is summed up whole."""
    left, right = maps
    if any(case.has(name) and case.flag(name) for name in ("transpose_a", "transpose_b")):
        case.refuse("layout", f"{ATTRIBUTE} is not taken with transpose_a or transpose_b")
    if len(left) != len(right):
        case.refuse("layout", f"{ATTRIBUTE} is not taken where a product broadcasts")
    if left[-1] != WHOLE or right[-2] != WHOLE:
        case.refuse("layout", f"{ATTRIBUTE} cuts the dimension that a product sums up")
    pairs = zip(left[:-2], right[:-2], case.shape(0)[:-2], case.shape(1)[:-2], strict=True)
    for first, second, rows, others in pairs:
        if rows == others and first != second:
            case.refuse("layout", f"{ATTRIBUTE} cuts the batches of a product differently")
    return (*left[:-1], right[-1])


def _permuted(case: Case, maps: Maps) -> tuple[int, ...]:
    """Transpose: the map in the new order."""
    rank = len(maps[0])
    return tuple(maps[0][axis % rank] for axis in case.numbers("perm"))


RESULTS: Mapping[str, Callable[[Case, Maps], tuple[int, ...]]] = {
    "passed": _passed,
    "normalised": _normalised,
    "broadcast": _broadcast,
    "product": _product,
    "permuted": _permuted,
}
"""How the result lies, by the word that an entry has behind ``configured``."""

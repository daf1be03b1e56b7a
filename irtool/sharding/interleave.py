"""Interleaved layouts: a calculation cut into parts that one device computes in turn.

The last axis of such a matrix is no axis of devices; while one part is communicated, the next one
is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from irtool.operators.call import Operand
from irtool.operators.case import Case
from irtool.operators.judgement import Sharding
from irtool.operators.layout import (
    DeviceMatrix,
    Shape,
    TensorLayout,
    TensorMap,
    UserLayout,
    map_without_last_axis,
)


def parts_of(layouts: Sequence[UserLayout | TensorLayout] | None) -> int:
    """How many parts layouts make of the calculation: one where none cuts along their axis.

    Args:
        layouts: of the inputs; None: none are given.
    """
    cut = [x for x in layouts or () if isinstance(x, UserLayout) and x.interleaves]
    return cut[0].device_matrix[-1] if cut else 1


def has_part_axis(layouts: Sequence[UserLayout | TensorLayout] | None) -> bool:
    """Whether the layouts name an axis of parts, which is none of devices.

    Args:
        layouts: of the inputs; None: none are given.
    """
    return any(isinstance(x, UserLayout) and x.interleaved for x in layouts or ())


class PartLayouts(NamedTuple):
    """Layouts of operands and results with the axis that interleaves parts."""

    inputs: tuple[TensorLayout, ...] = ()
    outputs: tuple[TensorLayout, ...] = ()


def part_layouts(case: Case, sharding: Sharding) -> PartLayouts:
    """The layouts of a call before the interleaving axis is taken away.

    Args:
        case: the call, with the user's layouts.
        sharding: what its rule makes of them, with the interleaving axis last in its matrix.
    """

    def laid(
        matrix: DeviceMatrix, maps: Sequence[TensorMap], operands: Sequence[Operand]
    ) -> tuple[TensorLayout, ...]:
        pairs = zip(maps, operands, strict=False)
        return tuple(TensorLayout(matrix, entry, operand.shape or ()) for entry, operand in pairs)

    matrix = sharding.output_matrix or sharding.device_matrix
    return PartLayouts(
        laid(sharding.device_matrix, sharding.input_maps, case.tensors),
        laid(matrix, sharding.output_maps, case.call.results),
    )


def in_parts(case: Case, sharding: Sharding) -> tuple[Case, Sharding]:
    """Take the interleaving axis away again; local shapes stay those of one part.

    Args:
        case: the call, with the user's layouts.
        sharding: what its rule makes of them, with the interleaving axis last in its matrix.

    Returns:
        Both over axes of devices only.
    """
    matrix = sharding.output_matrix or sharding.device_matrix

    def local(tensor_map: TensorMap, operand: Operand, matrix: DeviceMatrix) -> Shape:
        return TensorLayout(matrix, tensor_map, operand.shape or ()).slice_shape

    raw = dict(sharding.raw_inputs)
    raw_inputs = tuple(
        (index, raw.get(index) or local(tensor_map, operand, sharding.device_matrix))
        for index, (tensor_map, operand) in enumerate(
            zip(sharding.input_maps, case.tensors, strict=True)
        )
    )
    raw_outputs = tuple(
        (index, local(tensor_map, operand, matrix))
        for index, (tensor_map, operand) in enumerate(
            zip(sharding.output_maps, case.call.results, strict=False)
        )
    )
    last = len(sharding.device_matrix) - 1
    reductions = tuple(
        replace(reduction, axes=tuple(axis for axis in reduction.axes if axis != last))
        for reduction in sharding.reductions
    )
    stripped = replace(
        sharding,
        device_matrix=sharding.device_matrix[:-1],
        input_maps=tuple(map_without_last_axis(m) for m in sharding.input_maps),
        output_maps=tuple(map_without_last_axis(m) for m in sharding.output_maps),
        output_matrix=sharding.output_matrix and sharding.output_matrix[:-1],
        reductions=reductions,
        raw_inputs=raw_inputs,
        raw_outputs=raw_outputs,
    )
    layouts = case.layouts and tuple(layout.without_last_axis() for layout in case.layouts)
    strategy = tuple(layout.splits for layout in layouts or ())
    return replace(case, layouts=layouts, strategy=strategy), stripped

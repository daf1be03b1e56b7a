"""Elementwise operators with something of their own: masks, repeats, removed dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from irtool.operators.case import Case
from irtool.operators.checks import BY_VECTOR, check_strategy
from irtool.operators.defaults import adjusted
from irtool.operators.functions.common import (
    base_maps,
    first_sharding,
    layout_maps,
    must_be_whole,
)
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import WHOLE, TensorMap, identity_map
from irtool.operators.pattern import evaluate

Base = Callable[[], Sharding]
REPEAT_LAYOUT = "elementary_function_info.cc:log_func_ele"


@irregular("arithmetic")
def arithmetic(case: Case, base: Base) -> Sharding:
    """Operands of an addition and the like; layouts must be over one device matrix."""
    if case.layouts is not None:
        layout_maps(case)
    return base()


@irregular("scale_and_offset")
def scale_and_offset(case: Case, base: Base) -> Sharding:
    """X and its scale as in an addition; the offset is not checked, only mapped where it fits."""
    if len(case.tensors) < 3:
        return base()
    if case.layouts is not None:
        case.refuse("layout", "layouts are taken of two inputs, here are three")
    call = replace(case.call, inputs=case.tensors[:2])
    sharding = evaluate(replace(case, call=call, strategy=case.strategy[:2]))
    offset = case.strategy[2]
    matrix = sharding.device_matrix[-len(offset) :] if offset else ()
    plain = identity_map(len(matrix))
    third = tuple(
        entry if split == size else WHOLE
        for entry, split, size in zip(plain, offset, matrix, strict=True)
    )
    return replace(sharding, input_maps=(*sharding.input_maps, third))


@irregular("masked_fill", self_checked=True)
def masked_fill(case: Case, base: Base) -> Sharding:
    """A third entry of the strategy, for the value, is dropped, which only constants bear."""
    value = case.tensors[2] if len(case.tensors) > 2 else None
    if value is not None and value.is_parameter:
        message = "the value is a parameter, which no layout is found for"
        case.refuse("operand-position", message, "parallel_preprocessor.cc:SetParallelShape")
    if value is not None and case.context.dynamic:
        if not case.call.is_dynamic:
            raise Unsure("a tensor as the value of MaskedFill in a network with unknown sizes")
        message = "with unknown sizes the value needs an entry, which is then dropped"
        case.refuse("strategy-size", message, BY_VECTOR)
    shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
    strategy = case.strategy[:2]
    check_strategy(strategy, shapes[:2], case.context)
    scalars = tuple(() for _ in case.tensors[2:])
    return replace(_with_strategy(case, (*strategy, *scalars)), strategy=strategy)


def _with_strategy(case: Case, strategy: tuple[tuple[int, ...], ...]) -> Sharding:
    return evaluate(replace(case, strategy=strategy))


@irregular("outer")
def outer(case: Case, base: Base) -> Sharding:
    """Two vectors: their axes must not be split along the same device axis."""
    if case.layouts is not None:
        layout_maps(case)
        first, second = (layout.tensor_map[0] for layout in case.layouts)
        used, others = (layout.used_axes for layout in case.layouts)
        if first == second or used & others:  # MindSpore compares the entries, whole ones, too
            case.refuse("layout", "both vectors are split along the same device axis, or whole")
    return base()


@irregular("l2_loss")
def l2_loss(case: Case, base: Base) -> Sharding:
    """Under layouts MindSpore adds nothing up: each device has the loss of its own piece."""
    sharding = base()
    return sharding if case.layouts is None else replace(sharding, reductions=())


@irregular("alike")
def alike(case: Case, base: Base) -> Sharding:
    """All inputs have one strategy, as the notation says; they must have one shape too."""
    shapes = {tensor.shape for tensor in case.tensors}
    if len(shapes) > 1 and case.call.op in ("Select", "Betainc"):
        case.refuse("shape", f"all inputs must have the same shape, not {sorted(map(str, shapes))}")
    return base()


@irregular("dropout_ext")
def dropout_ext(case: Case, base: Base) -> Sharding:
    """Seed and offset are not split; the mask is one-dimensional, split over all axes."""
    for index in range(1, len(case.tensors)):
        must_be_whole(case, index, "seed and offset")
    sharding = first_sharding(case, others=True)
    outputs = (identity_map(len(case.shape(0))), (0,))[: len(case.call.results)]
    return replace(
        sharding,
        output_maps=outputs,
        output_matrices=((1, (prod(case.strategy[0]),)),),
        output_slices=() if case.call.is_dynamic else ((1, (_mask_bytes(case),)),),
    )


def _mask_bytes(case: Case) -> int:
    """Bytes of a mask of one bit an element of the slice, made for 128 elements at a time."""
    elements = prod(size // s for size, s in zip(case.shape(0), case.strategy[0], strict=True))
    return -(-elements // 128) * 16


@irregular("dropout_do_mask", self_checked=True)
def dropout_do_mask(case: Case, base: Base) -> Sharding:
    """One strategy, for x; mask and probability follow."""
    if not case.strategy:
        first = ((case.devices, *((1,) * (len(case.shape(0)) - 1))),)
        case = replace(case, strategy=adjusted(first, (case.sizes(0),), case.devices))
    if len(case.strategy) != 1:
        message = f"the strategy must have one entry, for x, but has {len(case.strategy)}"
        case.refuse("strategy-size", message)
    check_strategy(case.strategy, (case.sizes(0),), case.context)
    rank = len(case.shape(0))
    maps = (identity_map(rank), *((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:]))
    mask = ((1, (_mask_bytes(case),)),) if len(case.tensors) > 1 else ()
    return Sharding(
        device_matrix=case.strategy[0],
        input_maps=maps,
        output_maps=(identity_map(rank),),
        mirrored=(True, *(False for _ in case.tensors[1:])),
        input_slices=mask,
        strategy=case.strategy,
    )


@irregular("repeat")
def repeat(case: Case, base: Base) -> Sharding:
    """Repeats along an axis are local; of the flattened tensor (no axis) nothing may be split."""
    names = [name for name in ("dim", "axis") if case.has(name)]
    dim = case.attribute(names[0]) if names else None
    matrix, tensor_map = base_maps(case)
    extended = case.call.op == "RepeatInterleaveTensor"
    if case.call.op.startswith("RepeatInterleave") and dim is None:
        # Refused even where every number of slices is 1.
        check = "elementary_function_info.cc:CheckStrategy"
        if case.layouts is not None:
            check = REPEAT_LAYOUT
        case.refuse("axis-split", "no dimension can be split when 'dim' is None", check)
    rank = len(case.shape(0))
    if extended and isinstance(dim, int) and case.strategy[0][dim % rank] != 1:
        message = f"the dimension 'dim' {dim} can not be split, strategy {case.strategy[0]}"
        case.refuse("axis-split", message, REPEAT_LAYOUT if case.layouts is not None else "")
    if extended and isinstance(dim, int) and not _lies_along(case, dim % rank):
        message = f"the dimension 'dim' {dim} must lie along a device axis, one of size 1"
        case.refuse("axis-split", message, REPEAT_LAYOUT)
    for index in range(1, len(case.tensors)):
        must_be_whole(case, index, "the input 'repeats'")
    out = tensor_map if dim is not None else tuple(WHOLE for _ in case.result(0))
    return Sharding(
        device_matrix=matrix,
        input_maps=(tensor_map, *((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])),
        output_maps=(out,),
        complete=case.layouts is not None,
    )


def _lies_along(case: Case, dimension: int) -> bool:
    """Whether a layout names a device axis for a dimension, as it must where none may split it."""
    return case.layouts is None or case.layouts[0].tensor_map[dimension] != WHOLE


@irregular("rotary_position_embedding")
def rotary_position_embedding(case: Case, base: Base) -> Sharding:
    """x, cos, sin: one strategy where sizes are equal, 1 where they are 1; last one whole."""
    first = case.strategy[0]
    if first and first[-1] != 1:
        case.refuse("axis-split", f"the last dimension can not be split, strategy {first}")
    plain = identity_map(len(first))
    maps: list[TensorMap] = [
        tuple(WHOLE if split == 1 else plain[place] for place, split in enumerate(first))
    ]
    for index, tensor in enumerate(case.tensors[1:], 1):
        shape = tensor.shape or ()
        if len(shape) != len(first):
            raise Unsure("cos and sin have another rank than x")
        for dimension, size in enumerate(shape):
            split = case.strategy[index][dimension]
            if split != (1 if size == 1 else first[dimension]):
                case.refuse(
                    "axis-mismatch", f"strategies of x, cos and sin differ: {case.strategy}"
                )
        maps.append(
            tuple(
                WHOLE if size == 1 else maps[0][dimension] for dimension, size in enumerate(shape)
            )
        )
    return Sharding(device_matrix=first, input_maps=tuple(maps), output_maps=(maps[0],))


@irregular("triangle")
def triangle(case: Case, base: Base) -> Sharding:
    """Matrices of rank 2 to 6."""
    rank = len(case.shape(0))
    if not 2 <= rank <= 6:
        case.refuse("shape", f"the rank must be 2 to 6, not {rank}")
    axes = len(case.layouts[0].device_matrix) if case.layouts else 2
    if axes < 2:
        case.refuse("layout", f"a layout needs a device matrix of two axes or more, not {axes}")
    sharding = base()
    split = [axis for axis in case.strategy[0][-2:] if axis > 1]
    return replace(sharding, replaced="a mask made for the rank's own piece") if split else sharding

"""Operators that move elements: concatenation, slices, tiles; Reshape takes what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.defaults import adjusted
from irtool.operators.functions.common import base_maps, whole_sharding
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import (
    DYNAMIC,
    WHOLE,
    DeviceMatrix,
    MapEntry,
    TensorLayout,
    TensorMap,
    identity_map,
)

Base = Callable[[], Sharding]


@irregular("reshape", self_checked=True, out_layout=True)
def reshape(case: Case, base: Base) -> Sharding:
    """The layouts of its neighbours, as ``in_layout`` and ``out_layout``; whole without them."""
    if case.layouts is None:
        return whole_sharding(case, (case.devices,))
    source = case.layouts[0]
    target = case.output_layouts[0] if case.output_layouts else None
    if target is None:
        result = case.result(0)
        outputs: tuple[TensorMap, ...] = ((WHOLE,) * len(result),)
        return Sharding(
            source.device_matrix,
            tuple(layout.tensor_map for layout in case.layouts),
            outputs,
            complete=True,
        )
    return Sharding(
        device_matrix=source.device_matrix,
        input_maps=tuple(layout.tensor_map for layout in case.layouts),
        output_maps=(target.tensor_map,),
        complete=True,
        output_matrix=target.device_matrix,
        replaced="a redistribution from producer to first user",
    )


@irregular("permuted", out_layout=True)
def permuted(case: Case, base: Base) -> Sharding:
    """Transpose: an output layout is the input's in the new order, or keeps its tensor map.

    With the same tensor map MindSpore wants a device matrix that is permuted instead.
    """
    sharding = base()
    if case.output_layouts is None:
        return sharding
    given = case.output_layouts[0]
    source = sharding.input_maps[0]
    if case.call.is_dynamic and given.tensor_map != source:
        message = (
            f"with unknown sizes the output's tensor map {given.tensor_map} must be that of the "
            f"input, {source}"
        )
        case.refuse("out-layout", message, "transpose_info.cc:log_func_tr")
    natural = TensorLayout(sharding.device_matrix, sharding.output_maps[0], given.tensor_shape)
    fits = given.standard() == natural.standard()  # axes of size 1 are not compared
    if case.call.is_dynamic and not fits:
        raise Unsure("a transposed tensor of unknown sizes with the tensor map that it had before")
    if fits:
        cut_twice = any(isinstance(entry, tuple) for entry in given.tensor_map)
        if cut_twice and given.device_matrix != natural.device_matrix:
            raise Unsure("an output layout over a device matrix with other axes of size 1")
        return replace(sharding, output_matrix=given.device_matrix, output_maps=(given.tensor_map,))
    if given.tensor_map != source:
        message = (
            f"the output's tensor map {given.tensor_map} is neither the input's, {source}, nor "
            f"that in the new order, {natural.tensor_map}"
        )
        case.refuse("out-layout", message)
    return _with_permuted_matrix(case, sharding, given, natural)


def _with_permuted_matrix(
    case: Case, sharding: Sharding, given: TensorLayout, natural: TensorLayout
) -> Sharding:
    """An output whose tensor map is the input's: its device matrix must be the permuted one."""
    rank = len(case.shape(0))
    order = [place % rank for place in case.numbers("perm")]
    wanted = _permuted_matrix(sharding.device_matrix, given.tensor_map, order)
    if wanted is None or wanted != given.device_matrix:
        expected = "can not be permuted so" if wanted is None else f"should be {wanted}"
        message = (
            f"the output's tensor map is the input's, {given.tensor_map}, and its device matrix "
            f"{given.device_matrix} {expected}: give the map in the new order, "
            f"{natural.tensor_map}, over the input's matrix {natural.device_matrix}"
        )
        case.refuse("out-layout", message)
    if given.slice_shape != natural.slice_shape:
        raise Unsure(
            f"MindSpore takes an output layout of slices {given.slice_shape}, and a device has "
            f"{natural.slice_shape} of the transposed tensor: what follows was not measured"
        )
    return replace(sharding, output_matrix=given.device_matrix, output_maps=(given.tensor_map,))


def _permuted_matrix(
    matrix: DeviceMatrix, tensor_map: TensorMap, order: Sequence[int]
) -> DeviceMatrix | None:
    """The matrix that MindSpore expects of an output with the input's tensor map; None: none.

    It exchanges axes of the matrix for each exchange that the order is made of. Entries of the map
    count from the right; it takes them as places from the left, and so does this.

    Raises:
        Unsure: where it would read beyond the end of the matrix.

    Source: ``CheckOutputLayout`` in MindSpore's transpose_info.cc.
    """
    sizes = list(matrix)
    for one, other in _exchanges(order):
        pair = [e if isinstance(e, tuple) else (e,) for e in (tensor_map[one], tensor_map[other])]
        early, late = pair if pair[0][0] < pair[1][0] else reversed(pair)
        if any(abs(a - b) != 1 for axes in pair for a, b in pairwise(axes)):
            return None
        if WHOLE in (*early, *late):
            continue
        moved, passed = [sizes[axis] for axis in late], [sizes[axis] for axis in early]
        start, place = late[0], early[0]
        if start + len(late) > len(sizes):
            raise Unsure(f"how MindSpore permutes the device matrix {matrix} for {tensor_map}")
        sizes[start : start + len(late)] = []
        sizes[place:place] = moved
        if start - early[-1] == 1:
            continue
        end = start + len(late)
        sizes[end:end] = passed
        erased = place + len(early)
        if erased + len(early) > len(sizes):
            raise Unsure(f"how MindSpore permutes the device matrix {matrix} for {tensor_map}")
        sizes[erased : erased + len(early)] = []
    return tuple(sizes)


def _exchanges(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The exchanges of two places, in turn, that bring dimensions into an order."""
    now = list(range(len(order)))
    for place, wanted in enumerate(order):
        if now[place] != wanted:
            other = now.index(wanted)
            yield place, other
            now[place], now[other] = now[other], now[place]


@axes("stacked")
def stacked_axes(case: Case) -> str:
    """Equal axes and a whole one; counted from behind, the function says what is held."""
    names = [f"x{place}" for place in range(len(case.shape(0)))]
    place = case.number("dim" if case.has("dim") else "axis")
    result = names.copy()
    result.insert(place % (len(names) + 1), ".")
    judged = f" judged ({' '.join(names)})" if place < 0 and names else ""
    inputs = " ".join([f"[{' '.join(names)}]"] * len(case.tensors))
    return f"{inputs} -> [{' '.join(result)}]{judged}"


@irregular("stacked")
def stacked(case: Case, base: Base) -> Sharding:
    """A place counted from behind: MindSpore's layout has the new dimension one place before it."""
    sharding = base()
    name = "dim" if case.has("dim") else "axis"
    place = case.number(name)
    if place >= 0 or case.layouts is not None:
        return sharding
    split = list(case.strategy[0])
    split.insert(place % (len(split) + 1), 1)
    result = case.result(0)
    if DYNAMIC in result:
        return sharding
    held = tuple(size // cut for size, cut in zip(result, split, strict=True))
    return replace(sharding, output_slices=((0, held),))


@axes("slice")
def slice_axes(case: Case) -> str:
    """The dimensions that are taken whole."""
    names = " ".join(
        f"x{axis}" if is_whole else f"!x{axis}" for axis, is_whole in enumerate(_taken_whole(case))
    )
    return f"[{names}]{' [*.]' * (len(case.tensors) - 1)} -> [{names}]"


def _taken_whole(case: Case) -> list[bool]:
    begin, size = case.numbers("begin"), case.numbers("size")
    return [
        start == 0 and (taken == extent or extent == DYNAMIC)
        for start, taken, extent in zip(begin, size, case.shape(0), strict=True)
    ]


@irregular("slice")
def slice_(case: Case, base: Base) -> Sharding:
    """A dimension that is not taken whole can not be split."""
    for axis, complete in enumerate(_taken_whole(case)):
        if not complete and case.strategy[0][axis] != 1:
            message = f"dimension {axis} is not taken whole, so it can not be split"
            case.refuse("axis-split", f"{message}: strategy {case.strategy[0]}")
    return _sliced(case)


@irregular("slice_ext")
def slice_ext(case: Case, base: Base) -> Sharding:
    """The dimension that is cut can not be split."""
    axis = case.number("dim") % len(case.shape(0))
    if case.strategy[0][axis] != 1:
        message = f"dimension {axis} is not taken whole, so it can not be split"
        case.refuse("axis-split", f"{message}: strategy {case.strategy[0]}")
    return _sliced(case)


def _sliced(case: Case) -> Sharding:
    """Input and output lie alike; the local size is a slice of the whole output's."""
    plain = identity_map(len(case.shape(0)))
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    sharding = Sharding(case.strategy[0], (plain, *others), (plain,))
    if any(split > 1 for split in case.strategy[0]):
        return replace(sharding, replaced="the same slice with local sizes")
    return sharding


@dataclass(frozen=True, slots=True)
class _Step:
    """One dimension of a strided slice: ``source`` is the input's dimension (None: a new one).

    ``whole``: everything of it is taken.
    """

    source: int | None
    whole: bool
    stride: int | None
    shrunk: bool


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask")
_STRIDED_CHECK = "strided_slice_info.cc:CheckInputStrategy"


@axes("strided_slice")
def strided_slice_axes(case: Case) -> str:
    """Dimensions that are taken whole, or all of them where a flag says so."""
    rank = len(case.shape(0))
    axes = [f"x{axis}" for axis in range(rank)]
    skipped = case.has("skip_redistribution") and case.flag("skip_redistribution")
    out: list[str] = []
    steps = _steps(case)
    for step in steps:
        if step.source is None:
            out.append(".")
            continue
        if step.stride != 1 or step.shrunk or not (step.whole or skipped):
            axes[step.source] = f"!x{step.source}"
        if not step.shrunk:
            out.append(axes[step.source])
    seen = sum(step.source is not None for step in steps)
    others = " [*.]" * (len(case.tensors) - 1)
    return f"[{' '.join(axes)}]{others} -> [{' '.join([*out, *axes[seen:]])}] strategy of (0)"


@irregular("strided_slice", self_checked=True)
def strided_slice(case: Case, base: Base) -> Sharding:
    """Strided, shrunk and partly taken dimensions are whole; masks are folded first."""
    if case.number("ellipsis_mask"):
        message = "an ellipsis mask is not supported"
        case.refuse("attribute", message, "strided_slice_info.cc:GetAttrs")
    check_strategy(case.strategy, (case.sizes(0),), case.context)
    matrix = case.strategy[0]
    steps = _steps(case)
    if len(matrix) < len(steps):
        message = f"the strategy {matrix} has fewer values than there are strides, {len(steps)}"
        case.refuse("strategy-length", message)
    if case.call.is_dynamic:
        _check_dynamic_steps(case)
    skipped = case.has("skip_redistribution") and case.flag("skip_redistribution")
    for step in steps:
        _check_step(case, step, skipped)
    plain = identity_map(len(matrix))
    seen = [step.source for step in steps if step.source is not None]
    rest = range(len(seen), len(matrix))
    out: list[MapEntry] = [
        WHOLE if step.source is None else plain[step.source] for step in steps if not step.shrunk
    ]
    out += [plain[axis] for axis in rest]
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    return Sharding(matrix, (plain, *others), (tuple(out),))


def _steps(case: Case) -> list[_Step]:
    begin, end, strides = (_known(case, name) for name in ("begin", "end", "strides"))
    shape = case.shape(0)
    begins, ends, news, shrinks = (case.number(name) for name in _MASKS)
    count = len(strides or begin or end or ())
    if not count:
        raise Unsure("begin, end and strides are not constant")
    steps: list[_Step] = []
    source = 0
    for place in range(count):
        bit = 1 << place
        if news & bit:
            steps.append(_Step(None, True, 1, False))
            continue
        if source >= len(shape):
            raise Unsure("more strides than dimensions")
        start = 0 if begins & bit else _at(begin, place)
        stop = shape[source] if ends & bit else _at(end, place)
        is_whole = _is_whole(case, source, place, start, stop)
        steps.append(_Step(source, is_whole, _at(strides, place, 1), bool(shrinks & bit)))
        source += 1
    return steps


def _at(
    values: tuple[int | None, ...] | None, place: int, otherwise: int | None = None
) -> int | None:
    return values[place] if values else otherwise


def _is_whole(case: Case, source: int, place: int, start: int | None, stop: int | None) -> bool:
    """Whether a dimension is taken whole; where shapes are dynamic, symbols of sizes tell."""
    size = case.shape(0)[source]
    if not case.call.is_dynamic:
        if start is None or stop is None:
            raise Unsure(f"begin or end of dimension {source} is not constant")
        return start == 0 and stop >= size
    if case.strategy[0][source] == 1:
        return True
    after = case.result(0)[place] if place < len(case.result(0)) else DYNAMIC
    if DYNAMIC not in (size, after):
        return size == after
    before, result = case.tensors[0].symbols, case.call.results[0].symbols
    if source < len(before) and place < len(result):
        return before[source] == result[place]
    raise Unsure(f"nothing tells whether dimension {source} is taken whole")


def _known(case: Case, name: str) -> tuple[int | None, ...] | None:
    """Numbers of an input, None for those that are not constant."""
    try:
        return case.numbers(name)
    except Unsure:
        place = next((a.position for a in case.rule.attributes if a.name == name), None)
        inputs = case.call.inputs
        if place is not None and place >= len(inputs):
            raise Unsure(f"{case.call.op} has no input that says its {name}") from None
        items = inputs[place].items if place is not None else ()
        known = tuple(i.value if isinstance(i.value, int) else None for i in items)
        return known or None


def _check_dynamic_steps(case: Case) -> None:
    """With dynamic shapes a split input allows no masks, and wants constant strides."""
    if prod(case.strategy[0]) == 1:
        return
    if any(case.number(name) for name in _MASKS):
        case.refuse("dynamic-shape", "masks are not supported where shapes are dynamic")
    if _known(case, "strides") is None:
        case.refuse("dynamic-shape", "strides must be constant where shapes are dynamic")


def _check_step(case: Case, step: _Step, skipped: bool) -> None:
    if step.source is None or case.strategy[0][step.source] == 1:
        return
    where = f"dimension {step.source}, strategy {case.strategy[0]}"
    if step.stride is None:
        raise Unsure(f"the stride is not constant: {where}")
    if step.stride != 1:
        message = f"a dimension with stride {step.stride} can not be split: {where}"
        case.refuse("axis-split", message, _STRIDED_CHECK)
    if not step.whole and not skipped:
        message = f"a dimension that is not taken whole can not be split: {where}"
        case.refuse("axis-split", message, _STRIDED_CHECK)
    if step.shrunk:
        message = f"a dimension that is shrunk can not be split: {where}"
        case.refuse("axis-split", message, _STRIDED_CHECK)


@axes("tile")
def tile_axes(case: Case) -> str:
    """Dimensions of the output; where one is repeated, it is cut into its repetitions."""
    multiples = case.numbers("dims")
    added = len(multiples) - len(case.shape(0))
    out = [f"x{axis}" for axis in range(len(multiples))]
    source = ["." if times != 1 else f"x{axis}" for axis, times in enumerate(multiples)][added:]
    limits = [
        f"divides x{axis} {max(times, 1)}"
        for axis, times in enumerate(multiples)
        if times != 1 or axis < added
    ]
    others = " [*.]" * (len(case.tensors) - 1)
    return (
        f"[{' '.join(source)}]{others} -> [{' '.join(out)}] order ({' '.join(out)}) "
        f"strategy of (output) {' '.join(limits)}"
    )


@irregular("tile", self_checked=True, out_layout=True)
def tile(case: Case, base: Base) -> Sharding:
    """The strategy is one of the output: a repeated dimension is cut into its repetitions."""
    multiples = case.numbers("dims")
    if case.layouts is not None:
        return _tiled_layout(case, case.layouts[0], multiples)
    shape = case.sizes(0)
    added = len(multiples) - len(shape)
    if added < 0:
        raise Unsure("Tile has less multiples than dimensions")
    limits = tuple(
        (shape[axis - added] if axis >= added else 1) if times == 1 else max(times, 1)
        for axis, times in enumerate(multiples)
    )
    strategy = case.strategy or _tile_batch(case)
    check_strategy(strategy, (limits,), case.context)
    matrix = strategy[0]
    plain = identity_map(len(matrix))
    source = tuple(
        WHOLE if multiples[axis] != 1 else plain[axis] for axis in range(added, len(matrix))
    )
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    return Sharding(matrix, (source, *others), (plain,), strategy=strategy)


def _tiled_layout(case: Case, layout: TensorLayout, multiples: tuple[int, ...]) -> Sharding:
    """Under a layout, which is one of the input, repeated dimensions are whole."""
    if len(multiples) != len(layout.tensor_map):
        message = f"{len(multiples)} multiples for a layout of {len(layout.tensor_map)} dimensions"
        case.refuse("layout", message, "tile_info.cc:InferOutputTensorInfo")
    for axis, times in enumerate(multiples):
        if times != 1 and layout.splits[axis] != 1:
            case.refuse("axis-split", f"dimension {axis} is repeated, so it can not be split")
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    source = layout.tensor_map
    if case.output_layouts is None:
        return Sharding(layout.device_matrix, (source, *others), (source,), complete=True)
    target = case.output_layouts[0]
    _check_tiled(case, layout, target, multiples)
    cut = tuple(
        times // split if times > 1 else times
        for times, split in zip(multiples, target.splits, strict=True)
    )
    local = tuple(size * times for size, times in zip(layout.slice_shape, cut, strict=True))
    return Sharding(
        layout.device_matrix,
        (source, *others),
        (target.tensor_map,),
        complete=True,
        output_slices=((0, local),),
    )


def _check_tiled(
    case: Case, source: TensorLayout, target: TensorLayout, multiples: tuple[int, ...]
) -> None:
    """Repetitions may be cut, other dimensions lie as they did; the first one is not looked at."""
    check = "tile_info.cc:log_func_tile"
    for axis, (times, split) in enumerate(zip(multiples, target.splits, strict=True)):
        if times > 1 and times % split:
            message = f"{times} repetitions of dimension {axis} are not divisible by {split}"
            case.refuse("out-layout", message, check)
        if axis and times <= 1 and source.tensor_map[axis] != target.tensor_map[axis]:
            message = f"dimension {axis} is not repeated, so its output map is that of the input"
            case.refuse("out-layout", message, check)


def _tile_batch(case: Case) -> Strategy:
    """What MindSpore makes looks at the input, though it is checked against the output."""
    shape = case.sizes(0)
    count = len(case.numbers("dims"))
    if count > len(shape):
        return ((case.devices, *(1 for _ in range(count - 1))),)
    first = tuple(1 if place else case.devices for place in range(len(shape)))
    return adjusted((first,), (shape,), case.devices)


@irregular("broadcast_to", self_checked=True)
def broadcast_to(case: Case, base: Base) -> Sharding:
    """The input's dimensions keep their axes, those added in front are whole.

    Where nothing is split, the strategy may be of any length.
    """
    result, shape = case.result(0), case.shape(0)
    added = len(result) - len(shape)
    matrix = case.strategy[0] if len(case.strategy) else ()
    tensor_map = identity_map(len(shape))
    if len(case.strategy) != 1 or prod(matrix) != 1:
        shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
        check_strategy(case.strategy, shapes, case.context)
    for axis, size in enumerate(shape):
        if axis < len(matrix) and matrix[axis] != 1 and result[added + axis] != size:
            message = f"dimension {axis} is broadcast, so it can not be split"
            case.refuse("axis-split", f"{message}: strategy {matrix}")
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    out = ((WHOLE,) * added) + tensor_map
    return Sharding(matrix, (tensor_map, *others), (out,))


@irregular("fill", self_checked=True)
def fill(case: Case, base: Base) -> Sharding:
    """The strategy is one of the shape that is filled, and ``()`` for the value."""
    shape = case.result(0)
    strategy = case.strategy
    if not strategy:
        first = ((case.devices, *((1,) * (len(shape) - 1))), ()) if shape else ((), ())
        strategy = adjusted(first, (shape, ()), case.devices)
    check_strategy(strategy, (shape, ()), case.context)
    inputs = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors)
    return Sharding(
        strategy[0],
        inputs,
        (identity_map(len(shape)),),
        mirrored=(False,) * len(inputs),
        strategy=strategy,
    )


CONSTANT_MODES = ("constant", 0)
"""The mode of a pad as an attribute and as a number."""


@irregular("pad", self_checked=True)
def pad(case: Case, base: Base) -> Sharding:
    """Padded dimensions are whole; told by comparing the sizes before and after.

    Of the strategy only the first entry is looked at, whatever else it holds. Source: MindSpore
    2.7 takes any number of further entries, zeros among them.
    """
    if case.attribute("mode") not in CONSTANT_MODES:
        message = f"only the mode constant is supported, not {case.attribute('mode')}"
        case.refuse("attribute", message, "pad_info.cc:GetAttrs")
    if case.layouts is None:
        check_strategy(case.strategy[:1], (case.sizes(0),), case.context)
    matrix, tensor_map = base_maps(case)
    for axis, (size, after) in enumerate(zip(case.shape(0), case.result(0), strict=True)):
        if size != after and case.strategy[0][axis] != 1:
            message = f"padded dimension {axis} can not be split, strategy {case.strategy[0]}"
            case.refuse("axis-split", message)
    others = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    pads = case.call.inputs[1] if len(case.call.inputs) > 1 else None
    computed = pads is not None and pads.shape is not None and not pads.is_constant
    no_gradient = PADS_COMPUTED if computed else ""
    return Sharding(matrix, (tensor_map, *others), (tensor_map,), no_gradient=no_gradient)


PADS_COMPUTED = "MindSpore makes the gradient of padding only where the pads are constants"
"""Source: networks with pads as an input of theirs, compiled with MindSpore 2.7.0."""

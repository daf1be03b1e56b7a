"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import cast

from irtool.operators.axes import OF_A_FUNCTION
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import given_inputs, layout_maps
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import (
    WHOLE,
    MapEntry,
    Shape,
    TensorLayout,
    TensorMap,
    axes_of,
    entries_of,
    entry_of,
    identity_map,
    split_of,
)

Base = Callable[[], Sharding]
OUT = "matmul_info.cc:CheckOutputStrategy"
OUT_LAYOUT = "matmul_info.cc:CheckOutputLayout"
BATCH = "matmul_info.cc:CheckBatchDimensions"
LAYOUT = "matmul_info.cc:log_func_mm"


@irregular("matmul", out_strategy=True, out_layout=True)
def matmul(case: Case, base: Base) -> Sharding:
    """Special cases of MatMul and BatchMatMul: ranks, batches, output strategy, n-d layouts."""
    if min(len(case.shape(0)), len(case.shape(1))) < 2:
        case.refuse("shape", "both inputs must have at least two dimensions")
    if case.layouts is not None:
        return _by_layout(case, base)
    if _is_gathered(case):
        return _gathered(case)
    _check_contracted(case)
    _check_batches(case)
    sharding = _mapped(case, base())
    if case.out_strategy is None:
        return sharding
    if OF_A_FUNCTION in case.call.attributes and case.call.op != "MatMul":
        # Elsewhere MindSpore makes layouts of the strategies; here the one of the result is lost.
        if case.call.op == "MatMulExt":
            return sharding
        raise Unsure(f"nobody measured an output strategy of {case.call.op} in a sharded function")
    if len(case.result(0)) > 2:
        return _with_batched_output(case, sharding)
    return with_split_sum(case, sharding, OUT if case.call.op == "MatMul" else OUT_LAYOUT)


def _axes(case: Case) -> tuple[int, int, int, int]:
    """Dimensions of m and k in the first input, of k and n in the second."""
    first, second = len(case.shape(0)), len(case.shape(1))
    turned = [case.has(name) and case.flag(name) for name in ("transpose_a", "transpose_b")]
    m, k = (first - 1, first - 2) if turned[0] else (first - 2, first - 1)
    other, n = (second - 1, second - 2) if turned[1] else (second - 2, second - 1)
    return m, k, other, n


def _check_contracted(case: Case) -> None:
    _, k, other, _ = _axes(case)
    first, second = case.strategy[0][k], case.strategy[1][other]
    if first != second:
        case.refuse(
            "axis-mismatch",
            f"the dimension that is summed up is split by {first} in the first input, "
            f"by {second} in the second: {case.strategy[0]} and {case.strategy[1]}",
        )


def _check_batches(case: Case) -> None:
    """Batch dimensions, aligned from the right: equal splits, or a size of 1 on one side."""
    first, second = case.strategy[0][:-2], case.strategy[1][:-2]
    sizes = case.sizes(0)[:-2], case.sizes(1)[:-2]
    for place in range(1, min(len(first), len(second)) + 1):
        if first[-place] != second[-place] and 1 not in (sizes[0][-place], sizes[1][-place]):
            message = f"the strategies of batch dimensions differ: {case.strategy}"
            case.refuse("axis-mismatch", message, BATCH)


def _mapped(case: Case, sharding: Sharding) -> Sharding:
    return replace(sharding, mirrored=(True, True, *(False for _ in case.tensors[2:])))


def _is_gathered(case: Case) -> bool:
    """Both matrices cut into the same blocks over all devices: gathered before a local product."""
    if case.call.op not in ("MatMul", "BatchMatMul") or case.out_strategy is not None:
        return False
    first, second = case.strategy[:2]
    turned = any(case.has(n) and case.flag(n) for n in ("transpose_a", "transpose_b"))
    return len(first) == 2 and first == second and not turned and prod(first) == case.devices


def _gathered(case: Case) -> Sharding:
    first = case.strategy[0]
    plain = identity_map(2)
    left, right = case.shape(0), case.shape(1)
    raw = ((0, (left[0] // first[0], left[1])), (1, (right[0], right[1] // first[1])))
    pieces = [tuple(n // cut for n, cut in zip(shape, first, strict=True))
              for shape in (left, right)]  # fmt: skip
    return Sharding(
        device_matrix=first,
        raw_inputs=raw,
        input_maps=(plain, plain),
        output_maps=(plain,),
        reductions=(
            Reduction(
                "AllGather", (1,), "", "the columns of the first input", None, shape=pieces[0]
            ),
            Reduction(
                "AllGather",
                (0,),
                "",
                "the rows of the second input",
                None,
                input=1,
                shape=pieces[1],
            ),
        ),
        replaced="AllGather of both inputs, then a local product",
    )


def with_split_sum(case: Case, sharding: Sharding, check: str) -> Sharding:
    """AllReduce, or a ReduceScatter that splits the rows of the result further.

    Args:
        case: with an ``out_strategy`` of one row: rows and columns of the result.
        sharding: without that, over a device matrix (m, k, n).
        check: MindSpore's file and function that refuses.

    Raises:
        Refused: it is neither (m, n) nor (m k, n).
    """
    given = case.out_strategy
    assert given is not None
    check_strategy(given, (case.call.results[0].shape or (),), case.context)
    m, k, n = sharding.device_matrix
    rows, columns = given[0]
    if columns != n:
        message = f"the second value of the output strategy must be {n}, not {columns}"
        case.refuse("out-strategy", message, check)
    if rows not in (m, m * k):
        message = f"the first value of the output strategy must be {m} or {m * k}, not {rows}"
        case.refuse("out-strategy", message, check)
    if rows == m or k == 1:
        return sharding
    result = case.result(0)
    unscattered = (result[0] // m if result[0] > 0 else -1, result[1] // n if result[1] > 0 else -1)
    scatter = Reduction("ReduceScatter", (1,), "sum", "k is contracted and split", 0, unscattered)
    return replace(sharding, reductions=(scatter,), output_matrix=(m * k, n), output_maps=((1, 0),))


def _with_batched_output(case: Case, sharding: Sharding) -> Sharding:
    """An ``out_strategy`` with batch dimensions, which MindSpore turns into a layout."""
    assert case.out_strategy is not None
    check_strategy(case.out_strategy, (case.call.results[0].shape or (),), case.context)
    given = case.out_strategy[0]
    if len(case.shape(0)) < len(given):
        message = "an output strategy needs a first input with all dimensions of the result"
        case.refuse("out-strategy", message, "matmul_info.cc:InferOutputTensorInfo")
    first = case.strategy[0][:-2]
    if given[:-2] != first:
        message = f"the output strategy splits the batch by {given[:-2]}, the input by {first}"
        case.refuse("out-strategy", message, OUT)
    if case.shape(0)[:-2] != case.result(0)[:-2]:
        message = "an output strategy needs a first input with the batch of the result"
        case.refuse("out-strategy", message, "matmul_info.cc:InferOutputTensorInfo")
    *_, m, k, n = sharding.device_matrix
    if given[-2:] not in ((m, n), (m * k, n)):
        wanted = f"{(*first, m, n)} or {(*first, m * k, n)}"
        message = f"the output strategy must be {wanted}, not {given}"
        case.refuse("out-strategy", message, OUT_LAYOUT)
    if k == 1 or given[-2] == m:
        return sharding
    (plain,) = sharding.output_maps
    rows: MapEntry = (2, 1)  # the axes of m and k
    local = _unscattered(case, sharding)
    reduction = replace(sharding.reductions[0], op="ReduceScatter", shape=local)
    return replace(sharding, reductions=(reduction,), output_maps=((*plain[:-2], rows, plain[-1]),))


def _by_layout(case: Case, base: Base) -> Sharding:
    """The user's layouts: device axes of m and n must differ."""
    matrix, maps = layout_maps(case)
    if case.has("enable_nd_tp") and case.flag("enable_nd_tp"):
        return _several_dimensions(case, matrix, maps)
    m, k, other, n = _axes(case)
    if maps[0][k] != maps[1][other]:
        case.refuse("axis-mismatch", "the dimension that is summed up has two layouts", LAYOUT)
    if case.call.is_dynamic and min(map(len, maps)) > 2 and maps[0][:-2] != maps[1][:-2]:
        raise Unsure("layouts that differ along a batch of which sizes are not known")
    shared = set(entries_of(maps[0][m])) & set(entries_of(maps[1][n]))
    if shared:
        message = f"device axis {sorted(shared)} of {matrix} splits rows and columns of the result"
        case.refuse("layout", message, LAYOUT)
    sharding = replace(base(), input_maps=maps)
    outputs = case.output_layouts
    if outputs is None:
        return sharding
    return _with_out_layout(case, sharding, outputs[0].tensor_map)


def _several_dimensions(case: Case, matrix: Shape, maps: tuple[TensorMap, ...]) -> Sharding:
    """Tensor parallelism in two or three dimensions (``enable_nd_tp``).

    Two: k of the first input along ``(x, y)``, the second ``[k x, n y]``: the first is gathered
    along y, the partial products are scattered along x, so that n lies along ``(y, x)``.
    Three: rows of the first along ``(…, z, y)``, k along x, the second ``[k (x, z), n y]``: the
    first is gathered along y, the second along z, rows of the result lie along ``(…, z, x)``.
    """
    m, k, other, n = _axes(case)
    rows, inner = entries_of(maps[0][m]), entries_of(maps[0][k])
    depth, columns = entries_of(maps[1][other]), entries_of(maps[1][n])
    if inner == (*depth, *columns) and len(inner) == 2 and m < k:
        gathers = ((0, columns),)
        scattered = depth
        out_rows, out_columns = rows, (*columns, *depth)
    elif len(columns) == len(inner) == 1 and rows[-1:] == columns and depth[:1] == inner:
        gathers = ((0, columns), (1, depth[1:]))
        scattered = inner
        out_rows, out_columns = (*rows[:-1], *inner), columns
    else:
        case.refuse("layout", f"layouts {maps} don't fit a product in several dimensions")
    local = [
        TensorLayout(matrix, tensor_map, case.shape(index)).slice_shape
        for index, tensor_map in enumerate(maps)
    ]
    reductions = [
        Reduction(
            "AllGather", axes_of(matrix, axes), "", "gathered for the product", None, local[i], i
        )
        for i, axes in gathers
        if axes and split_of(matrix, axes) > 1
    ]
    if split_of(matrix, scattered) > 1:
        why = "k is contracted and split"
        reductions.append(Reduction("ReduceScatter", axes_of(matrix, scattered), "sum", why, 0))
    lead = maps[0][:-2] if len(maps[0]) >= len(maps[1]) else maps[1][:-2]
    out = (*lead, entry_of(out_rows), entry_of(out_columns))
    raw = _gathered_shapes(case, matrix, gathers, local)
    raw_out = _product_shape(case, raw)
    reductions = [replace(r, shape=raw_out) if r.op == "ReduceScatter" else r for r in reductions]
    return Sharding(
        matrix,
        maps,
        (out,),
        tuple(reductions),
        raw_inputs=tuple(enumerate(raw)),
        complete=True,
        replaced="gathers, a local product, and a ReduceScatter",
    )


def _gathered_shapes(
    case: Case,
    matrix: Shape,
    gathers: tuple[tuple[int, tuple[int, ...]], ...],
    local: list[Shape],
) -> list[Shape]:
    """Local inputs of a product in several dimensions, after they are gathered."""
    assert case.layouts is not None
    raw = list(local)
    for index, along in gathers:
        sizes = list(raw[index])
        for place, entry in enumerate(case.layouts[index].tensor_map):
            if along and set(along) <= set(entries_of(entry)):
                sizes[place] *= split_of(matrix, along)
        raw[index] = tuple(sizes)
    return raw


def _product_shape(case: Case, raw: list[Shape]) -> Shape:
    m, _, _, n = _axes(case)
    lead = raw[0][:-2] if len(raw[0]) >= len(raw[1]) else raw[1][:-2]
    return (*lead, raw[0][m], raw[1][n])


def _with_out_layout(case: Case, sharding: Sharding, given: TensorMap) -> Sharding:
    """The layout that the inputs give, or rows split further: a ReduceScatter."""
    inferred = sharding.output_maps[0]
    if _effective(case, sharding, given) == _effective(case, sharding, inferred):
        return sharding
    k = case.layouts[0].tensor_map[_axes(case)[1]] if case.layouts is not None else WHOLE
    rows = (*entries_of(inferred[-2]), *entries_of(k))
    # Rows that were whole can't be scattered: no layout can say "whole, and along k".
    entry: MapEntry = entry_of(rows) if entries_of(inferred[-2]) else WHOLE
    scattered = (*inferred[:-2], entry, inferred[-1])
    first = (*entries_of(inferred[0]), *entries_of(k))
    leading: MapEntry = entry_of(first) if entries_of(inferred[0]) else WHOLE
    if given not in (scattered, (leading, *inferred[1:])):
        case.refuse(
            "out-layout",
            f"the output layout must be {inferred} or {scattered}, not {given}",
            "matmul_info.cc:CheckOutputLayout",
        )
    scatters = tuple(
        replace(reduction, op="ReduceScatter", shape=_unscattered(case, sharding))
        for reduction in sharding.reductions
    )
    return replace(sharding, reductions=scatters, output_maps=(given,))


def _effective(case: Case, sharding: Sharding, tensor_map: TensorMap) -> TensorLayout:
    """A layout of the result without device axes of size 1, which MindSpore does not compare."""
    return TensorLayout(sharding.device_matrix, tensor_map, case.result(0)).standard()


def _unscattered(case: Case, sharding: Sharding) -> Shape:
    layout = TensorLayout(sharding.device_matrix, sharding.output_maps[0], case.result(0))
    return layout.slice_shape


@irregular("bias_add", out_layout=True)
def bias_add(case: Case, base: Base) -> Sharding:
    """X and b: the bias lies along dimension 1, whatever the data format says."""
    rank = len(case.shape(0))
    if rank < 2:
        raise Unsure("BiasAdd of a tensor with less than two dimensions")
    if case.layouts is not None:
        matrix, maps = layout_maps(case)
        if maps[0][-1] != maps[1][0]:  # of layouts MindSpore looks at the last dimension
            case.refuse("axis-mismatch", "the last dimension and the bias have different layouts")
        if maps[0][1] != maps[1][0]:
            message = "the slices of the bias are not as long as dimension 1 of those of x"
            case.refuse("axis-mismatch", message, "bias_add.cc:InferShape")
        if case.output_layouts is not None and case.output_layouts[0].tensor_map != maps[0]:
            case.refuse_output_layout()
        return Sharding(matrix, maps, (maps[0],), complete=True)
    if case.strategy[0][1] != case.strategy[1][0]:
        message = f"the channels of x and the bias are split differently: {case.strategy}"
        case.refuse("axis-mismatch", message)
    plain = identity_map(rank)
    return Sharding(case.strategy[0], (plain, (plain[1],)), (plain,))


FFN_INPUTS = (
    "expert", "bias1", "bias2", "scale", "offset", "deq_scale1", "deq_scale2",
    "antiquant_scale1", "antiquant_scale2", "antiquant_offset1", "antiquant_offset2",
)  # fmt: skip
INNER = ("bias1", "deq_scale1", "antiquant_scale1", "antiquant_offset1")
"""Optional inputs of FFN whose last dimension is the inner size."""


@axes("ffn")
def ffn_axes(case: Case) -> str:
    """The inner size, along which some optional inputs lie."""
    names = given_inputs(case, FFN_INPUTS, 3)
    experts = ". " * (len(case.shape(1)) - 2)
    others: list[str] = []
    for index, name in enumerate(names, 3):
        rank = len(case.shape(index))
        along = name in INNER or (name == "scale" and rank == 2)
        others.append("[" + ". " * (rank - 1) + ("f]" if along else ".]"))
    return f"[*.] [{experts}. f] [{experts}f .] {' '.join(others)} -> [*.] reduce f with sum"


@irregular("ffn")
def ffn(case: Case, base: Base) -> Sharding:
    """X [tokens h] whole; weights [(expert) h f], [(expert) f h]: only f may be split."""
    x, first, second = case.strategy[:3]
    if x[-1] != 1 or first[-2] != 1 or second[-1] != 1:
        case.refuse("axis-split", f"the hidden size can not be split, but is in {case.strategy}")
    if any(split != 1 for split in x):
        case.refuse("axis-split", f"x can not be split, but its strategy is {x}")
    if first[0] != 1 and len(first) == 3:
        message = f"the experts can not be split: {first} and {second}"
        case.refuse("axis-split", message)
    names = given_inputs(case, FFN_INPUTS, 3)
    if len(names) + 3 != len(case.tensors):
        raise Unsure("which inputs of FFN are given is not clear")
    rank = len(x)
    experts = (first[0],) if len(first) == 3 else ()
    matrix = (*experts, *x, first[-1])
    x_map = tuple(range(rank, 0, -1))
    lead = (rank + 1,) * len(experts)
    maps: list[TensorMap] = [x_map, (*lead, 1, 0), (*lead, 0, 1)]
    for index, name in enumerate(names, 3):
        maps.append(_ffn_map(case, index, name, first[-1], lead))
    reductions = ()
    if first[-1] > 1:
        over = (len(matrix) - 1,)
        reductions = (Reduction("AllReduce", over, "sum", "the inner size is contracted"),)
    return Sharding(matrix, tuple(maps), (x_map,), reductions)


def _ffn_map(case: Case, index: int, name: str, inner: int, lead: tuple[int, ...]) -> TensorMap:
    """Optional inputs lie along the inner size, or are whole; biases along experts too."""
    strategy = case.strategy[index]
    rank = len(strategy)
    along = name in INNER or (name == "scale" and rank == 2)
    wanted = (*((1,) * (rank - 1)), inner if along else 1)
    if strategy != wanted:
        message = f"the strategy of {name} must be {wanted}, but is {strategy}"
        case.refuse("axis-mismatch", message)
    if name in ("bias1", "bias2") and (rank == 2 or not lead):
        return (*lead, 0 if along else 1)
    return (*((WHOLE,) * (rank - 1)), 0 if along else WHOLE)


@axes("tensor_dot")
def tensor_dot_axes(case: Case) -> str:
    """Contracted dimensions are of both inputs, the others come out."""
    ranks = len(case.shape(0)), len(case.shape(1))
    pairs = _contracted(case, ranks)
    first = [f"a{place}" for place in range(ranks[0])]
    second = [f"b{place}" for place in range(ranks[1])]
    for left, right in pairs:
        second[right] = first[left]
    summed = [first[left] for left, _ in pairs]
    out = [name for name in (*first, *second) if name not in summed]
    return (
        f"[{' '.join(first)}] [{' '.join(second)}] -> [{' '.join(out)}] judged ({' '.join(summed)})"
    )


@irregular("tensor_dot")
def tensor_dot(case: Case, base: Base) -> Sharding:
    """Contracted dimensions must be split alike; what is left of both comes out."""
    ranks = len(case.shape(0)), len(case.shape(1))
    pairs = _contracted(case, ranks)
    first, second = case.strategy[:2]
    for left, right in pairs:
        if first[left] != second[right]:
            case.refuse("axis-mismatch", f"contracted dimensions are split differently: {pairs}")
    contracted = {right: left for left, right in pairs}
    free = [place for place in range(ranks[1]) if place not in contracted]
    matrix = (*first, *(second[place] for place in free))
    last = len(matrix) - 1
    second_map = tuple(
        last - (contracted[place] if place in contracted else ranks[0] + free.index(place))
        for place in range(ranks[1])
    )
    kept = [place for place in range(ranks[0]) if place not in contracted.values()]
    out = (*(last - place for place in kept), *range(len(free) - 1, -1, -1))
    over = tuple(left for left, _ in pairs if matrix[left] > 1)
    reductions = (Reduction("AllReduce", over, "sum", "axes are contracted"),) if over else ()
    return Sharding(
        matrix, (tuple(last - p for p in range(ranks[0])), second_map), (out,), reductions
    )


def _contracted(case: Case, ranks: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Which dimensions of both inputs are summed up together."""
    axes = case.attribute("axes")
    if isinstance(axes, int):
        return tuple((ranks[0] - axes + place, place) for place in range(axes))
    sides: list[tuple[int, ...]] = []
    for side in cast("tuple[object, ...]", axes) if isinstance(axes, (tuple, list)) else ():
        numbers = cast("tuple[object, ...]", side) if isinstance(side, (tuple, list)) else (side,)
        sides.append(tuple(number for number in numbers if isinstance(number, int)))
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise Unsure(f"axes of TensorDot are {axes!r}")
    pairs = zip(sides[0], sides[1], strict=True)
    return tuple((left % ranks[0], right % ranks[1]) for left, right in pairs)
